//! Reads text that is being typed. Where the reader stops at an error, a line is repaired, and the text is read again.
//! A repair only replaces characters, or adds some at the end of a line. So each position of the repaired text has a
//! position in the real text.

mod line;

use super::written::{Form, ReadValue, WrittenText};
use super::yaml::{Attempt, attempt};
use super::{Schema, Span, Style};
use line::{
    LineParts, Repair, as_item, as_item_of_all, as_key, as_value, blank, close, close_all,
    closing_of, comma,
};
use std::borrow::Cow;
use std::ops::Range;

/// Maximum number of bytes that are read to repair one text. It limits the number of repairs of a large text.
const MAX_READ: usize = 16 * 1024 * 1024;
/// Maximum number of lines before an error that are left out.
const MAX_LEFT_OUT: usize = 4;
/// Maximum number of times that a text is read.
const MAX_REPAIRS: usize = 500;

/// Returns the notation of a text in spite of its errors. `typed` is the byte at which the text is being typed, so that
/// this line is repaired first.
///
/// The keys of the result are those of the repaired text. Their ranges are those of the real text.
#[must_use]
pub fn read_repaired(text: &str, typed: Option<usize>) -> WrittenText {
    let mut lines = RepairedLines::new(text);
    let typed = typed.map(|at| (lines.line_at(at), at));
    let mut left = (MAX_READ / text.len().max(1)).clamp(1, MAX_REPAIRS);
    let mut result = lines.read();
    // In JSON, a word that is being typed and the next line would be one text.
    if text.trim_start().starts_with(['{', '['])
        && let Some(repaired) = typed.and_then(|(line, _)| lines.repaired(line, comma, ""))
    {
        let attempt = repaired.read();
        if attempt.error.is_none() || is_further(stop_of(&attempt), stop_of(&result)) {
            (lines, result) = (repaired, attempt);
        }
    }
    while let Some(stop) = stop_of(&result) {
        let better = lines.improve(typed, stop, &result.open, &mut left);
        let is_limit_reached = better.is_none() && left == 0;
        (lines, result) = better.unwrap_or_else(|| match is_limit_reached {
            true => lines.before(stop, &result.open),
            false => lines.without(stop),
        });
        left = left.saturating_sub(1);
        if is_limit_reached {
            break;
        }
    }
    match result.value {
        Some(ReadValue { mut written, .. }) => {
            lines.restore(&mut written);
            written
        }
        None => WrittenText {
            range: 0..0,
            form: Form::Scalar(Style::Plain),
        },
    }
}

/// The line (from 0) and the column (from 1) at which the reader stopped.
type Stop = (usize, usize);

fn stop_of(attempt: &Attempt) -> Option<Stop> {
    let span = attempt.error.as_ref()?.span;
    let column = usize::try_from(span.column).unwrap_or(usize::MAX);
    Some((line_of(span), column))
}

/// Returns true if a reader that stopped at `reached` read more than one that stopped at `before`. `None` is the end of
/// the text.
fn is_further(reached: Option<Stop>, before: Option<Stop>) -> bool {
    match (reached, before) {
        (_, None) => false,
        (None, Some(_)) => true,
        (Some(reached), Some(before)) => reached > before,
    }
}

/// Returns the line of a span, from 0.
fn line_of(span: Span) -> usize {
    usize::try_from(span.line.saturating_sub(1)).unwrap_or(usize::MAX)
}

/// The lines of a text, with their repairs.
#[derive(Clone)]
struct RepairedLines<'t> {
    real: &'t str,
    lines: Vec<Line<'t>>,
}

#[derive(Clone)]
struct Line<'t> {
    /// The bytes of the line in the real text, without its line break.
    real: Range<usize>,
    /// The line with its repairs and its line break.
    text: Cow<'t, str>,
}

impl<'t> RepairedLines<'t> {
    fn new(real: &'t str) -> Self {
        let mut end = 0;
        let lines = real.split_inclusive('\n').map(|line| {
            let start = end;
            end += line.len();
            let (content, _) = content_of(line);
            Line {
                real: start..start + content.len(),
                text: line.into(),
            }
        });
        let lines = lines.collect();
        Self { real, lines }
    }

    fn read(&self) -> Attempt {
        let text: String = self.lines.iter().map(|line| &*line.text).collect();
        attempt(&text, 0, Schema::Core)
    }

    fn line_at(&self, at: usize) -> usize {
        let after = self.lines.partition_point(|line| line.real.start <= at);
        after.saturating_sub(1)
    }

    /// Returns the text with the repair with which the reader reads most, or `None` if no repair helps. `left` is the
    /// number of texts that may be read.
    fn improve(
        &self,
        typed: Option<(usize, usize)>,
        stop: Stop,
        open: &[(Span, char)],
        left: &mut usize,
    ) -> Option<(Self, Attempt)> {
        for group in self.candidates(typed, stop, open) {
            let mut best = None;
            let mut furthest = Some(stop);
            for repaired in group {
                if *left == 0 || furthest.is_none() {
                    break;
                }
                *left -= 1;
                let attempt = repaired.read();
                let reached = stop_of(&attempt);
                if is_further(reached, furthest) {
                    furthest = reached;
                    best = Some((repaired, attempt));
                }
            }
            if best.is_some() {
                return best;
            }
        }
        None
    }

    /// Returns the text with each of the repairs that may remove an error, in groups: a repair of a group is only used if
    /// no repair of the groups before it helps.
    fn candidates(
        &self,
        typed: Option<(usize, usize)>,
        stop: Stop,
        open: &[(Span, char)],
    ) -> [Vec<Self>; 3] {
        let stopped = stop.0.min(self.lines.len().saturating_sub(1));
        let is_filled = |line: &usize| {
            let text = self.lines.get(*line).map_or("", |line| line.text.trim());
            !text.is_empty() && !text.starts_with('#')
        };
        let before = (0..stopped).rev().find(is_filled);
        let bracket = open.last().map(|(span, _)| line_of(*span));
        let typed_line = typed.map(|(line, _)| line);
        let lines = [typed_line, Some(stopped), before, bracket];
        let closing = closing_of_all(open);
        let repaired = |lines: &[Option<usize>], repairs: &[Repair]| {
            let mut repaired = Vec::new();
            for repair in repairs {
                let lines = lines.iter().flatten();
                repaired.extend(lines.filter_map(|line| self.repaired(*line, repair, &closing)));
            }
            repaired
        };
        // The reader has not noted a bracket yet if all of it may be a key.
        let is_in_brackets = !open.is_empty() || self.opens_bracket(stop);
        let (additions, replacements): (&[Repair], &[Repair]) = match is_in_brackets {
            true => (
                &[close, comma, close_all],
                &[as_item, as_item_of_all, as_key, as_value],
            ),
            false => (&[close, as_key], &[as_value, blank]),
        };
        let mut added = repaired(&lines, additions);
        added.extend(self.with_comma_before(stop).filter(|_| is_in_brackets));
        let without_typed = typed.and_then(|(line, at)| self.without_char(line, at));
        let mut replaced: Vec<Self> = without_typed.into_iter().collect();
        replaced.extend(repaired(&[typed_line], replacements));
        [
            added,
            replaced,
            repaired(&[Some(stopped), before, bracket], replacements),
        ]
    }

    /// Returns true if the line has an open bracket before the character at which the reader stopped.
    fn opens_bracket(&self, (line, column): Stop) -> bool {
        let text = self.lines.get(line).map_or("", |line| &*line.text);
        let before = text.char_indices().nth(column.saturating_sub(1));
        let before = before.and_then(|(at, _)| text.get(..at));
        before.is_some_and(|before| LineParts::of(before).has_brackets())
    }

    /// Returns the text with a comma instead of the blank before the character at which the reader stopped.
    fn with_comma_before(&self, (line, column): Stop) -> Option<Self> {
        self.changed(line, |content| {
            let (at, _) = content.char_indices().nth(column.checked_sub(1)?)?;
            let (before, after) = content.split_at_checked(at)?;
            let before = before.strip_suffix(' ')?;
            let is_item = !before.trim_end().ends_with([':', ',', '[', '{']);
            is_item.then(|| format!("{before},{after}"))
        })
    }

    /// Returns the text with blanks instead of the character at a byte of the real text.
    fn without_char(&self, line: usize, at: usize) -> Option<Self> {
        let start = self.lines.get(line)?.real.start;
        self.changed(line, |content| {
            let (before, rest) = content.split_at_checked(at.checked_sub(start)?)?;
            let char = rest.chars().next()?;
            let after = rest.get(char.len_utf8()..)?;
            Some(format!("{before}{}{after}", " ".repeat(char.len_utf8())))
        })
    }

    fn repaired(
        &self,
        line: usize,
        repair: impl Fn(&str, &str) -> Option<String>,
        closing: &str,
    ) -> Option<Self> {
        self.changed(line, |content| repair(content, closing))
    }

    fn changed(&self, line: usize, change: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let (content, end) = content_of(&self.lines.get(line)?.text);
        let text = format!("{}{end}", change(content)?);
        let mut changed = self.clone();
        changed.lines.get_mut(line)?.text = text.into();
        Some(changed)
    }

    /// Reads the text without the line at which the reader stopped. If this line is blank already, reads the text before
    /// it.
    fn without(&self, stop: Stop) -> (Self, Attempt) {
        let line = stop.0.min(self.lines.len().saturating_sub(1));
        let without = self.repaired(line, blank, "").unwrap_or_else(|| {
            let mut before = self.clone();
            before.lines.truncate(line.saturating_sub(1));
            before
        });
        let attempt = without.read();
        (without, attempt)
    }

    /// Reads the text before the line at which the reader stopped, with all brackets closed. The error may be in one of
    /// the lines before it: then these are left out, too.
    fn before(&self, stop: Stop, open: &[(Span, char)]) -> (Self, Attempt) {
        let mut before = self.clone();
        for left_out in 0..MAX_LEFT_OUT {
            before.lines.truncate(stop.0.saturating_sub(left_out));
            let last = before.lines.len().saturating_sub(1);
            let closed = before.repaired(last, close_all, &closing_of_all(open));
            let closed = closed.unwrap_or_else(|| before.clone());
            let attempt = closed.read();
            if attempt.error.is_none() {
                return (closed, attempt);
            }
        }
        let attempt = before.read();
        (before, attempt)
    }

    /// Converts the positions of the repaired text to those of the real text.
    fn restore(&self, written: &mut WrittenText) {
        let mut starts = Vec::with_capacity(self.lines.len());
        let mut start = 0;
        for line in &self.lines {
            starts.push(start);
            start += line.text.len();
        }
        self.restore_in(&starts, written);
    }

    fn restore_in(&self, starts: &[usize], written: &mut WrittenText) {
        self.restore_range(starts, &mut written.range);
        match &mut written.form {
            Form::Scalar(_) | Form::Alias => {}
            Form::List { items, .. } => {
                for item in items {
                    self.restore_in(starts, item);
                }
            }
            Form::Map { entries, .. } => {
                for entry in entries {
                    self.restore_range(starts, &mut entry.key_range);
                    let key = self.real.get(entry.key_range.clone()).unwrap_or_default();
                    if key.len() == entry.key.len() {
                        entry.key = key.to_owned();
                    }
                    self.restore_in(starts, &mut entry.value);
                }
            }
        }
    }

    fn restore_range(&self, starts: &[usize], range: &mut Range<usize>) {
        let real = |at: usize| {
            let index = starts
                .partition_point(|start| *start <= at)
                .saturating_sub(1);
            let within = at.saturating_sub(starts.get(index).copied().unwrap_or_default());
            let line = self.lines.get(index).map_or(0..0, |line| line.real.clone());
            (line.start + within).min(line.end)
        };
        *range = real(range.start)..real(range.end);
    }
}

/// Splits a line into its content and its line break.
fn content_of(line: &str) -> (&str, &str) {
    let content = line.trim_end_matches(['\n', '\r']);
    line.split_at_checked(content.len()).unwrap_or((line, ""))
}

fn closing_of_all(open: &[(Span, char)]) -> String {
    open.iter()
        .rev()
        .map(|(_, sign)| closing_of(*sign))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes a tree as its keys and texts, with a `~` for a missing value.
    fn tree(written: &WrittenText, text: &str) -> String {
        match &written.form {
            Form::Scalar(_) | Form::Alias => match text.get(written.range.clone()) {
                None | Some("") => String::from("~"),
                Some(text) => text.to_owned(),
            },
            Form::List { items, .. } => {
                let items: Vec<_> = items.iter().map(|item| tree(item, text)).collect();
                format!("[{}]", items.join(" "))
            }
            Form::Map { entries, .. } => {
                let entries = entries.iter().map(|entry| {
                    let key = text.get(entry.key_range.clone()).unwrap_or_default();
                    format!("{key}={}", tree(&entry.value, text))
                });
                format!("{{{}}}", entries.collect::<Vec<_>>().join(" "))
            }
        }
    }

    /// Reads a text in which `^` is where it is being typed.
    fn read(text: &str) -> String {
        tree(&read_repaired(text, text.find('^')), text)
    }

    #[test]
    fn a_line_with_an_error_keeps_its_place_and_the_others_their_values() {
        for (text, wanted) in [
            ("a: 1\nb^\nc: 2\n", "{a=1 b^=~ c=2}"),
            ("a:\n  b^\n    c: 1\n", "{a={b^={c=1}}}"),
            ("a: {{ x^ }}\nb: 1\n", "{a={{ x^ }} b=1}"),
            ("a: \"x^\nb: 1\n", "{a=\"x^ b=1}"),
            ("a: [1, {b: x^\nc: 2\n", "{a=[1 {b=x^}] c=2}"),
            ("a:\n  - b: 1\n    c^\n  - d: 2\n", "{a=[{b=1 c^=~} {d=2}]}"),
            ("{\"a\": {\"b\": 1, \"c^", "{\"a\"={\"b\"=1 \"c^=~}}"),
            (
                "{\"a\": {\n  \"b^\n  \"c\": 1\n}, \"d\": 2}",
                "{\"a\"={\"b^=~ \"c\"=1} \"d\"=2}",
            ),
            (r#"{"a": 1, ^}"#, r#"{"a"=1 ^=~}"#),
            (r#"{"a": "x" ^}"#, r#"{"a"="x" ^=~}"#),
            ("a: 1\nb: @x()\nc: *no\n", "{a=1 b=@x() c=*no}"),
            ("", "~"),
        ] {
            assert_eq!(read(text), wanted, "{text}");
        }
    }

    #[test]
    fn the_number_of_repairs_is_limited() {
        let broken = "a: [1\n- {{ x\n".repeat(20_000);
        let read = read_repaired(&broken, None);
        assert!(read.range.end <= broken.len());
        let keys = (0..20_000).map(|key| format!("k{key}: 1\nhalf\n"));
        let half = keys.collect::<String>();
        let read = tree(&read_repaired(&half, None), &half);
        assert!(read.starts_with("{k0=1 half=~ k1=1"), "{read}");
        let minified = format!("{{{}", "\"a\": 1 2, ".repeat(50_000));
        let read = read_repaired(&minified, Some(17));
        assert!(read.range.end <= minified.len());
    }
}
