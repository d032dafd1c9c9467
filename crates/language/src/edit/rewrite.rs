//! Changes a text so that it has another value, with as few changes as possible.
//! Unchanged parts retain their quotes, layout and comments.

use super::same;
use serde_json::{Map, Value};
use std::ops::Range;
use windlass_source::source::{Form, Style, WrittenEntry, WrittenText};
use windlass_source::write::{
    WriteStyle, block, double, item_text, line, lines, scalar, value_after_key,
};

/// The changes to a text. Each replaces a range of bytes.
pub(super) struct Rewrite<'t> {
    text: &'t str,
    json: bool,
    patches: Vec<(Range<usize>, String)>,
}

/// The position of a value in the text, with what the format of a new value there depends on.
#[derive(Clone, Copy)]
struct InsertPoint {
    /// Whether the value is inside of brackets (flow style in YAML).
    flow: bool,
    /// The indentation of the key or the dash before the value.
    indent: usize,
    key_end: Option<usize>,
}

/// Returns the text in which the value `new` replaces `old`.
pub(super) fn rewrite(
    text: &str,
    written: &WrittenText,
    json: bool,
    old: &Value,
    new: &Value,
) -> String {
    let mut rewrite = Rewrite {
        text,
        json,
        patches: Vec::new(),
    };
    let place = InsertPoint {
        flow: json,
        indent: 0,
        key_end: None,
    };
    rewrite.change(written, old, new, place);
    rewrite.into_text()
}

/// Returns the text in which an entry has another key.
pub(super) fn with_key(text: &str, entry: &WrittenEntry, json: bool, key: &str) -> String {
    let manner = WriteStyle {
        json,
        flow: true,
        ..WriteStyle::default()
    };
    let mut text = text.to_owned();
    if text.get(entry.key_range.clone()).is_some() {
        text.replace_range(entry.key_range.clone(), &scalar(key, manner));
    }
    text
}

impl<'t> Rewrite<'t> {
    fn into_text(mut self) -> String {
        // The sort is stable, so several insertions at the same position stay in their order.
        self.patches.sort_by_key(|(range, _)| range.start);
        let mut out = String::with_capacity(self.text.len());
        let mut from = 0;
        let windows = self.text.contains("\r\n");
        for (range, new) in &self.patches {
            out.push_str(self.text.get(from..range.start).unwrap_or_default());
            match windows {
                true => out.push_str(&new.replace('\n', "\r\n")),
                false => out.push_str(new),
            }
            from = range.end.max(from);
        }
        out.push_str(self.text.get(from..).unwrap_or_default());
        out
    }

    fn manner(&self, flow: bool) -> WriteStyle {
        WriteStyle {
            json: self.json,
            flow: flow && !self.json,
            portable: false,
        }
    }

    fn put(&mut self, range: Range<usize>, new: String) {
        self.patches.push((range, new));
    }

    /// Returns the start of the line that contains this byte.
    fn line_start(&self, at: usize) -> usize {
        let before = self.text.get(..at).unwrap_or_default();
        before.rfind('\n').map_or(0, |at| at + 1)
    }

    /// Returns the end of the line that contains this byte, without the line break.
    fn line_end(&self, at: usize) -> usize {
        let rest = self.text.get(at..).unwrap_or_default();
        let end = rest.find('\n').map_or(self.text.len(), |end| at + end);
        let carriage = self
            .text
            .get(at..end)
            .is_some_and(|line| line.ends_with('\r'));
        end - usize::from(carriage)
    }

    fn column(&self, at: usize) -> usize {
        let before = self.text.get(self.line_start(at)..at);
        before.unwrap_or_default().chars().count()
    }

    /// Returns true if only blanks are before this byte on its line.
    fn is_first(&self, at: usize) -> bool {
        let before = self.text.get(self.line_start(at)..at);
        before.unwrap_or_default().trim().is_empty()
    }

    fn change(&mut self, written: &WrittenText, old: &Value, new: &Value, place: InsertPoint) {
        if same(old, new) {
            return;
        }
        match (&written.form, old, new) {
            (Form::Map { flow, entries }, Value::Object(before), Value::Object(after)) => {
                let flow = *flow || place.flow;
                if after.is_empty()
                    || entries.is_empty()
                    || !self.map(written, entries, flow, before, after)
                {
                    self.replace(written, new, place);
                }
            }
            (Form::List { flow, items }, Value::Array(before), Value::Array(after)) => {
                let flow = *flow || place.flow;
                let fits = !after.is_empty() && items.len() == before.len() && !items.is_empty();
                if !fits || !self.list(written, items, flow, before, after) {
                    self.replace(written, new, place);
                }
            }
            _ => self.replace(written, new, place),
        }
    }

    /// Changes a map entry by entry.
    /// If this is not possible, nothing is changed and the function returns false.
    fn map(
        &mut self,
        written: &WrittenText,
        entries: &[WrittenEntry],
        flow: bool,
        before: &Map<String, Value>,
        after: &Map<String, Value>,
    ) -> bool {
        let mark = self.patches.len();
        let Some(first) = entries.first() else {
            return false;
        };
        let indent = self.column(first.key_range.start);
        let spans: Vec<_> = entries
            .iter()
            .map(|entry| entry.key_range.start..entry.value.range.end.max(entry.key_range.end))
            .collect();
        let is_retained = |entry: &WrittenEntry| after.contains_key(&entry.key);
        if !entries.iter().any(is_retained) {
            return false;
        }
        for (index, entry) in entries.iter().enumerate() {
            match (before.get(&entry.key), after.get(&entry.key)) {
                (Some(old), Some(new)) => {
                    let place = InsertPoint {
                        flow,
                        indent,
                        key_end: Some(entry.key_range.end),
                    };
                    self.change(&entry.value, old, new, place);
                }
                (_, None) => {
                    if !self.remove(&spans, index, flow) {
                        self.patches.truncate(mark);
                        return false;
                    }
                }
                (None, Some(_)) => {}
            }
        }
        // The index of the entry after which the next new entry is inserted.
        let mut behind_entry: Option<usize> = None;
        for (key, value) in after {
            let place = entries.iter().position(|entry| entry.key == *key);
            if place.is_some() {
                behind_entry = place;
                continue;
            }
            let manner = self.manner(flow);
            let name = scalar(key, manner);
            let text = match flow {
                true => format!("{name}: {}", self.in_flow(value, &spans, written)),
                false => format!("{name}:{}", value_after_key(value, manner, indent)),
            };
            self.insert(&spans, behind_entry, text, flow, indent);
        }
        true
    }

    fn list(
        &mut self,
        written: &WrittenText,
        items: &[WrittenText],
        flow: bool,
        before: &[Value],
        after: &[Value],
    ) -> bool {
        let mark = self.patches.len();
        let is_same = |(a, b): &(&Value, &Value)| same(a, b);
        let head = before.iter().zip(after).take_while(is_same).count();
        let most = before.len().min(after.len()) - head;
        let backwards = before.iter().rev().zip(after.iter().rev());
        let tail = backwards.take_while(is_same).count().min(most);
        let (old, new) = (before.len() - tail, after.len() - tail);
        let starts: Vec<_> = items
            .iter()
            .map(|item| match flow {
                true => item.range.start,
                false => self.dash(item.range.start),
            })
            .collect();
        let spans: Vec<_> = starts
            .iter()
            .zip(items)
            .map(|(start, item)| *start..item.range.end)
            .collect();
        let Some(indent) = starts.first().map(|start| self.column(*start)) else {
            return false;
        };
        let pairs = old.min(new) - head;
        for index in head..head + pairs {
            if let (Some(item), Some(old), Some(new)) =
                (items.get(index), before.get(index), after.get(index))
            {
                let key_end = None;
                self.change(
                    item,
                    old,
                    new,
                    InsertPoint {
                        flow,
                        indent,
                        key_end,
                    },
                );
            }
        }
        for index in head + pairs..old {
            if !self.remove(&spans, index, flow) {
                self.patches.truncate(mark);
                return false;
            }
        }
        let last = (head + pairs).checked_sub(1);
        // New items are written in the form of the existing ones.
        let is_flow = |item: &WrittenText| {
            matches!(
                item.form,
                Form::Map { flow: true, .. } | Form::List { flow: true, .. }
            )
        };
        let in_line = !flow && !items.is_empty() && items.iter().all(is_flow);
        for value in after.get(head + pairs..new).unwrap_or_default() {
            let text = match flow {
                true => self.in_flow(value, &spans, written),
                false if in_line => format!("- {}", line(value, self.manner(false))),
                false => {
                    let text = match value {
                        Value::Object(members) if !members.is_empty() => {
                            lines(value, self.manner(false), indent + 2)
                        }
                        value => item_text(value, self.manner(false), indent),
                    };
                    format!("- {text}")
                }
            };
            self.insert(&spans, last, text, flow, indent);
        }
        true
    }

    /// Formats a value inside of brackets.
    /// It is written on several lines if the other values in the brackets have lines of their own. Otherwise it is on
    /// one line.
    fn in_flow(&self, value: &Value, spans: &[Range<usize>], written: &WrittenText) -> String {
        match spans.first() {
            Some(first) if self.json && self.has_lines(written, first) => {
                item_text(value, self.manner(true), self.column(first.start))
            }
            _ => line(value, self.manner(true)),
        }
    }

    /// Returns true if the values in brackets have lines of their own.
    fn has_lines(&self, written: &WrittenText, first: &Range<usize>) -> bool {
        let opening = self.text.get(written.range.start..first.start);
        opening.is_some_and(|opening| opening.contains('\n'))
    }

    fn dash(&self, item: usize) -> usize {
        let before = self.text.get(..item).unwrap_or_default();
        before.rfind('-').unwrap_or(item)
    }

    /// Removes an entry or an item.
    /// Returns false and removes nothing if it is the only one, or shares a line with others.
    fn remove(&mut self, spans: &[Range<usize>], index: usize, flow: bool) -> bool {
        let Some(span) = spans.get(index).cloned() else {
            return false;
        };
        let next = spans.get(index + 1);
        if flow {
            if let Some(next) = next {
                self.put(
                    span.start..self.end_behind_comma(span.end, next.start),
                    String::new(),
                );
                return true;
            }
            let Some(last) = index.checked_sub(1).and_then(|index| spans.get(index)) else {
                return false;
            };
            let between = self.text.get(last.end..span.start).unwrap_or_default();
            let Some(comma) = between.find(',').map(|at| last.end + at) else {
                return false;
            };
            let before = self.text.get(comma + 1..span.start).unwrap_or_default();
            let blank = before.len() - before.trim_end().len();
            self.put(comma..comma + 1, String::new());
            self.put(span.start - blank..span.end, String::new());
            return true;
        }
        if self.is_first(span.start) {
            let end = self.line_end(span.end);
            let rest = self.text.get(end..).unwrap_or_default();
            let broken = rest.find('\n').map_or(rest.len(), |at| at + 1);
            self.put(self.line_start(span.start)..end + broken, String::new());
            return true;
        }
        match next {
            Some(next) => {
                self.put(span.start..next.start, String::new());
                true
            }
            None => false,
        }
    }

    /// Returns the end of an entry in brackets: after its comma and a comment on the same line.
    /// A comment on a later line belongs to the next entry.
    fn end_behind_comma(&self, end: usize, next: usize) -> usize {
        let between = self.text.get(end..next).unwrap_or_default();
        let Some(comma) = between.find(',') else {
            return next;
        };
        let behind = between.get(comma + 1..).unwrap_or_default();
        let first = behind.split('\n').next().unwrap_or_default();
        let is_line = first.len() < behind.len() && first.trim_start().starts_with(['/', '#']);
        let skipped = if is_line { first.len() } else { 0 };
        let rest = behind.get(skipped..).unwrap_or_default();
        next - rest.trim_start().len()
    }

    /// Returns true if a comment follows on the same line.
    fn has_comment_behind(&self, end: usize) -> bool {
        let rest = self.text.get(end..self.line_end(end)).unwrap_or_default();
        rest.trim_start().starts_with('#')
    }

    /// Inserts an entry or an item after the one with index `behind`, or before the first one.
    fn insert(
        &mut self,
        spans: &[Range<usize>],
        behind: Option<usize>,
        text: String,
        flow: bool,
        indent: usize,
    ) {
        let Some(first) = spans.first() else { return };
        let after = behind.and_then(|index| spans.get(index));
        let own_line = format!("\n{:indent$}", "");
        if !flow {
            match after {
                Some(span) => {
                    let end = self.line_end(span.end);
                    self.put(end..end, own_line + &text);
                }
                None => self.put(first.start..first.start, text + &own_line),
            }
            return;
        }
        let gap = match self.is_first(first.start) {
            true => own_line,
            false => String::from(" "),
        };
        match after {
            Some(span) => self.put(span.end..span.end, format!(",{gap}{text}")),
            None => self.put(first.start..first.start, format!("{text},{gap}")),
        }
    }

    fn replace(&mut self, written: &WrittenText, new: &Value, place: InsertPoint) {
        let range = written.range.clone();
        let manner = self.manner(place.flow);
        let current = self.text.get(range.clone()).unwrap_or_default();
        if let (Form::Scalar(style), Value::String(text)) = (&written.form, new)
            && let Some(quoted) = self.in_style(*style, text, current, place)
        {
            return self.put(range, quoted);
        }
        // The lines of a block value would begin after the comment. So the new value must stay on the line.
        let stays_on_line = !current.contains('\n') && self.has_comment_behind(range.end);
        if place.flow || stays_on_line {
            let column = self.column(self.line_start(range.start));
            let indent = self.indent_of_line(range.start).max(column);
            let text = match self.json {
                true => item_text(new, manner, indent),
                false => line(new, manner),
            };
            let gap = if range.is_empty() { " " } else { "" };
            return self.put(range, format!("{gap}{text}"));
        }
        let Some(key_end) = place.key_end else {
            let text = match range.is_empty() {
                true => format!(" {}", item_text(new, manner, place.indent)),
                false => item_text(new, manner, place.indent),
            };
            return self.put(range, text);
        };
        let between = self.text.get(key_end..range.start).unwrap_or_default();
        let colon = between.find(':').map_or(range.start, |at| key_end + at + 1);
        let text = value_after_key(new, manner, place.indent);
        // Anchors and comments between the key and the value are retained.
        let between = self.text.get(colon..range.start).unwrap_or_default();
        if text.starts_with(' ') && !between.contains('\n') {
            let gap = if between.is_empty() { " " } else { "" };
            return self.put(range, format!("{gap}{}", text.trim_start()));
        }
        self.put(colon..range.end, text);
    }

    fn indent_of_line(&self, at: usize) -> usize {
        let line = self.text.get(self.line_start(at)..).unwrap_or_default();
        line.len() - line.trim_start_matches(' ').len()
    }

    /// Formats a text in the style of the current value, if this is possible for the new text.
    fn in_style(
        &self,
        style: Style,
        text: &str,
        current: &str,
        place: InsertPoint,
    ) -> Option<String> {
        let control = text.chars().any(char::is_control);
        match style {
            Style::Double => Some(double(text)),
            Style::Single if !control => Some(format!("'{}'", text.replace('\'', "''"))),
            Style::Block if current.starts_with('|') => {
                let header = current.lines().next().unwrap_or_default();
                let first = current
                    .lines()
                    .skip(1)
                    .find(|line| !line.trim().is_empty())?;
                let indent = first.len() - first.trim_start_matches(' ').len();
                let new = block(text, indent.max(place.indent + 1), self.manner(false))?;
                // The header of a block text (`|` or `>`) is retained with its comment, unless the new text needs
                // another header.
                let own = new.lines().next().unwrap_or_default();
                match header.split_whitespace().next() == Some(own) {
                    true => Some(format!("{header}{}", new.get(own.len()..)?)),
                    false => Some(new),
                }
            }
            _ => None,
        }
    }
}
