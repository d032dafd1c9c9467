//! Where each part of a text begins and ends, and how it is written, so that an edit changes that part
//! alone. It reads texts that [`super::parse`] has read without a mistake of their syntax.

use super::spans::{self, NodeShape, Spans};
use super::tree::Style;
use super::{Bundle, MAX_DEPTH};
use std::ops::Range;

/// A value as it is written.
#[derive(Clone, Debug)]
pub struct WrittenText {
    /// Its bytes; of a block, from its first key or dash to the end of its last value.
    pub range: Range<usize>,
    pub form: Form,
}

#[derive(Clone, Debug)]
pub enum Form {
    /// Of a value that is left out, the range is empty.
    Scalar(Style),
    /// A value that is written elsewhere.
    Alias,
    List {
        /// In brackets.
        flow: bool,
        items: Vec<WrittenText>,
    },
    Map {
        /// In braces.
        flow: bool,
        entries: Vec<WrittenEntry>,
    },
}

#[derive(Clone, Debug)]
pub struct WrittenEntry {
    pub key: String,
    pub key_range: Range<usize>,
    pub value: WrittenText,
}

/// How a file is written, and whether that is JSON. None: it does not read.
#[must_use]
pub fn layout(bundle: &Bundle, file: u16) -> Option<(WrittenText, bool)> {
    let content = bundle.file(file)?.content();
    if super::is_json(bundle, file) {
        let mut json = Json {
            text: content,
            at: 0,
        };
        return Some((json.value(0)?, true));
    }
    let yaml = Yaml {
        text: content,
        spans: spans::read(content, file).ok()?,
    };
    Some((yaml.value(0, 0, '-')?, false))
}

struct Json<'t> {
    text: &'t str,
    at: usize,
}

impl Json<'_> {
    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn blank(&mut self) {
        loop {
            let rest = self.rest();
            let trimmed = rest.trim_start();
            let end = match trimmed.get(..2) {
                Some("//") => trimmed.find('\n').unwrap_or(trimmed.len()),
                Some("/*") => trimmed.find("*/").map_or(trimmed.len(), |end| end + 2),
                _ => 0,
            };
            let passed = rest.len() - trimmed.len() + end;
            self.at += passed;
            if passed == 0 {
                return;
            }
        }
    }

    fn take(&mut self, sign: char) -> bool {
        self.blank();
        let found = self.rest().starts_with(sign);
        self.at += usize::from(found);
        found
    }

    fn value(&mut self, depth: usize) -> Option<WrittenText> {
        if depth > MAX_DEPTH {
            return None;
        }
        self.blank();
        let start = self.at;
        let form = match self.rest().chars().next()? {
            '{' => {
                self.at += 1;
                let mut entries = Vec::new();
                while !self.take('}') {
                    self.blank();
                    let key_start = self.at;
                    let key = serde_json::from_str(self.string()?).ok()?;
                    let key_range = key_start..self.at;
                    if !self.take(':') {
                        return None;
                    }
                    let value = self.value(depth + 1)?;
                    entries.push(WrittenEntry {
                        key,
                        key_range,
                        value,
                    });
                    self.take(',');
                }
                Form::Map {
                    flow: true,
                    entries,
                }
            }
            '[' => {
                self.at += 1;
                let mut items = Vec::new();
                while !self.take(']') {
                    items.push(self.value(depth + 1)?);
                    self.take(',');
                }
                Form::List { flow: true, items }
            }
            '"' => {
                self.string()?;
                Form::Scalar(Style::Double)
            }
            _ => {
                let is_part = |c: char| c.is_ascii_alphanumeric() || "+-._".contains(c);
                let rest = self.rest();
                let length = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
                self.at += length;
                (length > 0).then_some(Form::Scalar(Style::Plain))?
            }
        };
        let range = start..self.at;
        Some(WrittenText { range, form })
    }

    fn string(&mut self) -> Option<&str> {
        let start = self.at;
        let mut escaped = false;
        let end = self.rest().bytes().skip(1).position(|byte| {
            let ends = byte == b'"' && !escaped;
            escaped = byte == b'\\' && !escaped;
            ends
        })?;
        self.at += end + 2;
        self.text.get(start..self.at)
    }
}

struct Yaml<'t> {
    text: &'t str,
    spans: Spans,
}

impl Yaml<'_> {
    /// A value, or a key. `before` is the end of what precedes it: its key, or the value before. One that is left
    /// out is behind the next `sign`.
    fn value(&self, id: usize, before: usize, sign: char) -> Option<WrittenText> {
        let node = self.spans.node_span(id)?;
        let range = node.start..node.end;
        let (range, form) = match &node.shape {
            NodeShape::Scalar(style) => {
                let range = self.scalar(range, *style, before, sign);
                (range, Form::Scalar(*style))
            }
            NodeShape::Alias(_) => (range, Form::Alias),
            NodeShape::Sequence(ids) => {
                let (start, flow) = self.opening(range.start)?;
                let (mut items, mut last) = (Vec::with_capacity(ids.len()), start);
                for id in ids {
                    let item = self.value(*id, last, '-')?;
                    last = item.range.end;
                    items.push(item);
                }
                let end = if flow || items.is_empty() {
                    range.end
                } else {
                    last
                };
                (start..end.max(start), Form::List { flow, items })
            }
            NodeShape::Mapping(pairs) => {
                let (start, flow) = self.opening(range.start)?;
                let (mut entries, mut last) = (Vec::with_capacity(pairs.len()), start);
                for (key, value) in pairs {
                    let written = self.value(*key, last, ':')?;
                    let value = self.value(*value, written.range.end, ':')?;
                    last = value.range.end;
                    entries.push(WrittenEntry {
                        key: self.key(*key, &written),
                        key_range: written.range,
                        value,
                    });
                }
                let end = if flow || entries.is_empty() {
                    range.end
                } else {
                    last
                };
                (start..end.max(start), Form::Map { flow, entries })
            }
        };
        Some(WrittenText { range, form })
    }

    /// The text of a key; none of one that is written elsewhere.
    fn key(&self, id: usize, written: &WrittenText) -> String {
        let mut range = written.range.clone();
        match written.form {
            Form::Scalar(Style::Block) => {
                range.end = self.spans.node_span(id).map_or(range.end, |node| node.end);
            }
            Form::Scalar(_) => {}
            _ => return String::new(),
        }
        let text = self.text.get(range).unwrap_or_default();
        match written.form {
            Form::Scalar(Style::Plain) if !text.contains('\n') => text.to_owned(),
            _ => serde_yaml::from_str(text).unwrap_or_default(),
        }
    }

    fn scalar(&self, range: Range<usize>, style: Style, before: usize, sign: char) -> Range<usize> {
        let between = |to: usize| self.text.get(before..to).unwrap_or_default();
        match style {
            // A value that is left out is behind its colon or its dash.
            Style::Plain if range.is_empty() => {
                let rest = self.text.get(before..).unwrap_or_default();
                let at = rest.find(sign).map_or(before, |at| before + at + 1);
                at..at
            }
            // The parser begins with the content, behind the header.
            Style::Block => {
                let header = between(range.start).find(['|', '>']);
                let start = header.map_or(range.start, |at| before + at);
                start..self.trimmed(start, range.end)
            }
            Style::Single | Style::Double => range.start..self.closed(range, style),
            Style::Plain => {
                let text = self.text.get(range.clone()).unwrap_or_default();
                let text = text.split(" #").next().unwrap_or_default();
                range.start..range.start + text.trim_end().len()
            }
        }
    }

    /// The end of a text in quotes: the parser reports where the next thing begins.
    fn closed(&self, range: Range<usize>, style: Style) -> usize {
        let text = self.text.get(range.clone()).unwrap_or_default();
        let quote = if style == Style::Single { '\'' } else { '"' };
        let mut signs = text.char_indices().skip(1).peekable();
        while let Some((at, sign)) = signs.next() {
            match sign {
                '\\' if style == Style::Double => drop(signs.next()),
                '\'' if quote == sign && signs.peek().is_some_and(|(_, next)| *next == sign) => {
                    signs.next();
                }
                sign if sign == quote => return range.start + at + 1,
                _ => {}
            }
        }
        range.end
    }

    fn trimmed(&self, start: usize, end: usize) -> usize {
        let text = self.text.get(start..end).unwrap_or_default();
        start + text.trim_end().len()
    }

    /// Where a collection begins, and whether that is a bracket: anchors and tags are no part of it.
    fn opening(&self, start: usize) -> Option<(usize, bool)> {
        let mut at = start;
        while let Some(rest) = self.text.get(at..)
            && rest.starts_with(['&', '!'])
        {
            let word = rest.find(char::is_whitespace).unwrap_or(rest.len());
            let after = rest.get(word..).unwrap_or_default();
            at += word + after.len() - after.trim_start().len();
        }
        Some((at, self.text.get(at..)?.starts_with(['{', '['])))
    }
}
