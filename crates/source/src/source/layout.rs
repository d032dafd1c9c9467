//! Where each part of a text begins and ends, and how it is written, so that an edit changes that part
//! alone. It reads texts that [`super::parse`] has read without a mistake of their syntax.

use super::tree::Style;
use super::{Bundle, MAX_DEPTH, MAX_NODES};
use saphyr_parser::{Event, Parser, ScalarStyle};
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
    let mut yaml = Yaml {
        text: content,
        bytes: content.char_indices().map(|(at, _)| at).collect(),
        open: Vec::new(),
        root: None,
        count: 0,
    };
    yaml.read()?;
    Some((yaml.root?, false))
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

/// A collection whose end has not come.
struct Open {
    start: usize,
    flow: bool,
    items: Vec<WrittenText>,
    /// Of a map: the keys that have their values, and the one that waits for it.
    entries: Option<Vec<WrittenEntry>>,
    key: Option<(String, Range<usize>)>,
}

struct Yaml<'t> {
    text: &'t str,
    /// Where each character begins.
    bytes: Vec<usize>,
    open: Vec<Open>,
    root: Option<WrittenText>,
    count: usize,
}

impl Yaml<'_> {
    fn byte(&self, character: usize) -> usize {
        let byte = self.bytes.get(character);
        byte.copied().unwrap_or(self.text.len())
    }

    fn read(&mut self) -> Option<()> {
        for next in Parser::new_from_str(self.text) {
            let (event, at) = next.ok()?;
            let (start, end) = (self.byte(at.start.index()), self.byte(at.end.index()));
            self.count += 1;
            if self.count > MAX_NODES * 3 {
                return None;
            }
            match event {
                Event::Scalar(text, style, ..) => {
                    let style = match style {
                        ScalarStyle::Plain => Style::Plain,
                        ScalarStyle::SingleQuoted => Style::Single,
                        ScalarStyle::DoubleQuoted => Style::Double,
                        ScalarStyle::Literal | ScalarStyle::Folded => Style::Block,
                    };
                    let range = self.scalar(start..end, style);
                    self.put(
                        WrittenText {
                            range,
                            form: Form::Scalar(style),
                        },
                        Some(&text),
                    );
                }
                Event::Alias(_) => self.put(
                    WrittenText {
                        range: start..end,
                        form: Form::Alias,
                    },
                    None,
                ),
                Event::SequenceStart(..) => self.begin(start, false)?,
                Event::MappingStart(..) => self.begin(start, true)?,
                // Of what is in brackets, the closing one.
                Event::SequenceEnd | Event::MappingEnd => {
                    let closing = self.text.get(start..).unwrap_or_default();
                    self.end(if closing.starts_with(['}', ']']) {
                        start + 1
                    } else {
                        end
                    })?;
                }
                _ => {}
            }
        }
        Some(())
    }

    /// What precedes the next value: the end of its key and its colon, or of the value before.
    fn before(&self) -> usize {
        let Some(open) = self.open.last() else {
            return 0;
        };
        let last = match (&open.key, &open.entries) {
            (Some((_, key)), _) => return key.end,
            (None, Some(entries)) => entries.last().map(|entry| entry.value.range.end),
            (None, None) => open.items.last().map(|item| item.range.end),
        };
        last.unwrap_or(open.start)
    }

    fn scalar(&self, range: Range<usize>, style: Style) -> Range<usize> {
        let before = self.before();
        let between = |to: usize| self.text.get(before..to).unwrap_or_default();
        match style {
            // A value that is left out is behind its colon or its dash.
            Style::Plain if range.is_empty() => {
                let sign = match self.open.last().is_some_and(|open| open.entries.is_some()) {
                    true => ':',
                    false => '-',
                };
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

    fn begin(&mut self, start: usize, map: bool) -> Option<()> {
        // Anchors and tags are no part of it.
        let mut at = start;
        while let Some(rest) = self.text.get(at..)
            && rest.starts_with(['&', '!'])
        {
            let word = rest.find(char::is_whitespace).unwrap_or(rest.len());
            let after = rest.get(word..).unwrap_or_default();
            at += word + after.len() - after.trim_start().len();
        }
        let flow = self.text.get(at..)?.starts_with(['{', '[']);
        self.open.push(Open {
            start: at,
            flow,
            items: Vec::new(),
            entries: map.then(Vec::new),
            key: None,
        });
        (self.open.len() <= MAX_DEPTH).then_some(())
    }

    fn end(&mut self, end: usize) -> Option<()> {
        let open = self.open.pop()?;
        let last = match &open.entries {
            Some(entries) => entries.last().map(|entry| entry.value.range.end),
            None => open.items.last().map(|item| item.range.end),
        };
        let end = match (open.flow, last) {
            (false, Some(last)) => last,
            _ => end,
        };
        let (range, flow) = (open.start..end.max(open.start), open.flow);
        let form = match open.entries {
            Some(entries) => Form::Map { flow, entries },
            None => Form::List {
                flow,
                items: open.items,
            },
        };
        self.put(WrittenText { range, form }, None);
        Some(())
    }

    /// Puts a value, or a key with this text, where it belongs.
    fn put(&mut self, written: WrittenText, text: Option<&str>) {
        let Some(open) = self.open.last_mut() else {
            self.root = Some(written);
            return;
        };
        let Some(entries) = &mut open.entries else {
            open.items.push(written);
            return;
        };
        match open.key.take() {
            Some((key, key_range)) => entries.push(WrittenEntry {
                key,
                key_range,
                value: written,
            }),
            None => open.key = Some((text.unwrap_or_default().to_owned(), written.range)),
        }
    }
}
