//! Reads JSON text (RFC 8259) with comments into a tree. Apart from comments, it accepts only text that the RFC allows,
//! and nesting is limited to [`MAX_DEPTH`]. The crate serde_json reads escapes and numbers.

use super::tree::Style;
use super::written::{Key, ListParts, MapParts, ReadValue};
use super::{Kind, MAX_DEPTH, MAX_NODES, Mistake, Span, Text};
use std::borrow::Cow;

pub(super) fn parse(content: &str, file: u16) -> (Option<ReadValue>, Vec<Mistake>) {
    let mut reader = Reader {
        content,
        file,
        at: 0,
        line: 1,
        column: 1,
        nodes: 0,
        mistakes: Vec::new(),
    };
    match reader.document() {
        Ok(value) => (Some(value), reader.mistakes),
        Err(mistake) => {
            reader.mistakes.push(mistake);
            (None, reader.mistakes)
        }
    }
}

struct Reader<'a> {
    content: &'a str,
    file: u16,
    at: usize,
    line: u32,
    column: u32,
    nodes: usize,
    mistakes: Vec<Mistake>,
}

impl<'a> Reader<'a> {
    fn document(&mut self) -> Result<ReadValue, Mistake> {
        let value = self.value(0)?;
        self.blank();
        match self.peek() {
            None => Ok(value),
            Some(_) => Err(self.unexpected("the end of the file")),
        }
    }

    fn rest(&self) -> &'a str {
        self.content.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<u8> {
        self.content.as_bytes().get(self.at).copied()
    }

    fn span(&self) -> Span {
        Span {
            file: self.file,
            line: self.line,
            column: self.column,
            length: 1,
        }
    }

    fn advance(&mut self, bytes: usize) {
        for char in self.rest().get(..bytes).unwrap_or_default().chars() {
            if char == '\n' {
                self.line += 1;
                self.column = 1;
            } else {
                self.column += 1;
            }
        }
        self.at += bytes;
    }

    /// Skips blanks and comments. A comment is `// …` up to the end of its line, or `/* … */`.
    fn blank(&mut self) {
        loop {
            let rest = self.rest();
            let blank = rest.len() - rest.trim_start_matches([' ', '\t', '\n', '\r']).len();
            let comment = |end: &str, unread: usize| Some(rest.find(end)? + end.len() - unread);
            let skipped = match rest.get(..2) {
                _ if blank > 0 => blank,
                Some("//") => comment("\n", 1).unwrap_or(rest.len()),
                Some("/*") => comment("*/", 0).unwrap_or(0),
                _ => 0,
            };
            if skipped == 0 {
                return;
            }
            self.advance(skipped);
        }
    }

    fn unexpected(&self, wanted: &str) -> Mistake {
        let found = match self.rest().chars().next() {
            None => String::from("the end of the file"),
            Some(char) => format!("`{char}`"),
        };
        let mistake = Mistake::new(
            "syntax",
            self.span(),
            format!("expected {wanted}, found {found}"),
        );
        match (self.peek(), wanted) {
            (Some(b'/'), _) => mistake.hint("a comment is `// …`, or `/* … */` with its end"),
            (Some(b'#'), _) => mistake.hint("a comment in JSON is `// …` or `/* … */`"),
            (Some(b'}' | b']'), "a value" | "a key in quotes") if self.is_after_comma() => {
                mistake.hint("JSON allows no comma before a closing bracket")
            }
            (Some(b'\''), _) => mistake.hint("JSON text needs double quotes"),
            _ => mistake.hint("this is read as JSON"),
        }
    }

    fn is_after_comma(&self) -> bool {
        let before = self.content.get(..self.at).unwrap_or_default();
        before.trim_end().ends_with(',')
    }

    fn value(&mut self, depth: usize) -> Result<ReadValue, Mistake> {
        self.blank();
        let (span, start) = (self.span(), self.at);
        self.nodes += 1;
        if depth > MAX_DEPTH || self.nodes > MAX_NODES {
            return Err(super::mistakes::too_much(span, depth > MAX_DEPTH));
        }
        let mut style = Style::Plain;
        let (span, kind) = match self.peek() {
            Some(b'{') => {
                let entries = self.object(depth)?;
                return Ok(entries.finish(span, start..self.at, true, &mut self.mistakes));
            }
            Some(b'[') => {
                let items = self.array(depth)?;
                return Ok(items.finish(span, start..self.at, true));
            }
            Some(b'"') => {
                let (text, span) = self.string()?;
                style = Style::Double;
                (span, Kind::String(Text { text, style, start }))
            }
            Some(b'-' | b'0'..=b'9') => self.number()?,
            Some(b'a'..=b'z' | b'A'..=b'Z') => self.word()?,
            _ => return Err(self.unexpected("a value")),
        };
        Ok(ReadValue::scalar(span, kind, start..self.at, style))
    }

    fn object(&mut self, depth: usize) -> Result<MapParts, Mistake> {
        self.advance(1);
        let mut entries = MapParts::default();
        self.blank();
        if self.peek() == Some(b'}') {
            self.advance(1);
            return Ok(entries);
        }
        loop {
            self.blank();
            if !entries.is_empty() && self.ends_after_comma(b'}') {
                return Ok(entries);
            }
            if self.peek() != Some(b'"') {
                return Err(self.unexpected("a key in quotes"));
            }
            let start = self.at;
            let (text, span) = self.string()?;
            let range = start..self.at;
            self.blank();
            if self.peek() != Some(b':') {
                return Err(self.unexpected("`:`"));
            }
            self.advance(1);
            let value = self.value(depth + 1)?;
            entries.add(Key { text, span, range }, value, &mut self.mistakes);
            self.blank();
            match self.peek() {
                Some(b',') => self.advance(1),
                Some(b'}') => {
                    self.advance(1);
                    return Ok(entries);
                }
                _ => return Err(self.unexpected("`,` or `}`")),
            }
        }
    }

    fn array(&mut self, depth: usize) -> Result<ListParts, Mistake> {
        self.advance(1);
        let mut items = ListParts::default();
        self.blank();
        if self.peek() == Some(b']') {
            self.advance(1);
            return Ok(items);
        }
        loop {
            self.blank();
            if !items.is_empty() && self.ends_after_comma(b']') {
                return Ok(items);
            }
            items.add(self.value(depth + 1)?);
            self.blank();
            match self.peek() {
                Some(b',') => self.advance(1),
                Some(b']') => {
                    self.advance(1);
                    return Ok(items);
                }
                _ => return Err(self.unexpected("`,` or `]`")),
            }
        }
    }

    /// Called after a comma. If a closing bracket follows, skips the bracket, reports a mistake and returns true.
    fn ends_after_comma(&mut self, bracket: u8) -> bool {
        let ends = self.peek() == Some(bracket);
        if ends {
            let what = format!("unexpected comma before `{}`", char::from(bracket));
            let mistake = Mistake::new("syntax", self.span(), what);
            let hint = "JSON allows no comma before a closing bracket";
            self.mistakes
                .push(mistake.hint(hint).forgiven("it is left out"));
            self.advance(1);
        }
        ends
    }

    fn string(&mut self) -> Result<(String, Span), Mistake> {
        let span = self.span();
        let mut escaped = false;
        let end = self.rest().bytes().skip(1).position(|byte| {
            let ends = byte == b'"' && !escaped;
            escaped = byte == b'\\' && !escaped;
            ends
        });
        let Some(raw) = end.and_then(|end| self.rest().get(..end + 2)) else {
            return Err(
                Mistake::new("syntax", span, "this text has no closing quote")
                    .hint("end it with `\"`"),
            );
        };
        // Logic Apps allows line breaks and tabs in a text, so this mistake does not end the reading.
        let broken = raw.contains(['\n', '\r', '\t']);
        if broken {
            let what = "this text has a line break or a tab in it";
            let mistake = Mistake::new("syntax", span, what).hint("write `\\n` and `\\t`");
            self.mistakes.push(mistake.forgiven("it is taken as it is"));
        }
        let whole = match broken {
            true => Cow::Owned(on_one_line(raw)),
            false => Cow::Borrowed(raw),
        };
        let text = serde_json::from_str::<String>(&whole).map_err(|error| {
            let before = u32::try_from(error.column().saturating_sub(1)).unwrap_or(0);
            let column = span.column.saturating_add(before);
            let what = error.to_string();
            let what = what
                .split(" at line ")
                .next()
                .unwrap_or_default()
                .to_owned();
            Mistake::new("syntax", Span { column, ..span }, what)
                .hint("escape it as JSON does: `\\n`, `\\\"`, `\\\\`, `\\u0041`")
        })?;
        self.advance(raw.len());
        let length = self.column.saturating_sub(span.column).max(1);
        Ok((text, Span { length, ..span }))
    }

    fn number(&mut self) -> Result<(Span, Kind), Mistake> {
        let (raw, span) =
            self.take_while(|byte| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E'));
        let digits = raw.strip_prefix('-').unwrap_or(raw);
        if digits.len() > 18
            && digits.bytes().all(|digit| digit.is_ascii_digit())
            && raw.parse::<i64>().is_err()
        {
            return Err(super::mistakes::out_of_range(raw, span));
        }
        let number = serde_json::from_str::<serde_json::Number>(raw).ok();
        let kind = number.and_then(|number| match number.as_i64() {
            Some(int) => Some(Kind::Int(int)),
            None => number.as_f64().map(Kind::Float),
        });
        let kind = kind.ok_or_else(|| {
            Mistake::new("syntax", span, format!("`{raw}` is not a valid number"))
                .hint("numbers look like 7, -0.5 or 1e3")
        })?;
        Ok((span, kind))
    }

    fn word(&mut self) -> Result<(Span, Kind), Mistake> {
        let (raw, span) = self.take_while(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        let kind = match raw {
            "null" => Kind::Null,
            "true" => Kind::Bool(true),
            "false" => Kind::Bool(false),
            _ => {
                return Err(
                    Mistake::new("syntax", span, format!("`{raw}` is not a valid value"))
                        .hint("text needs double quotes; the other words are true, false, null"),
                );
            }
        };
        Ok((span, kind))
    }

    /// Reads bytes as long as `is_accepted` returns true. Returns them with their position.
    fn take_while(&mut self, is_accepted: impl Fn(u8) -> bool) -> (&'a str, Span) {
        let span = self.span();
        let rest = self.rest();
        let length = rest.bytes().take_while(|byte| is_accepted(*byte)).count();
        let raw = rest.get(..length).unwrap_or_default();
        self.advance(raw.len());
        let length = u32::try_from(raw.len()).unwrap_or(1).max(1);
        (raw, Span { length, ..span })
    }
}

/// Returns a text in quotes with its line breaks and tabs as escapes, so that serde_json accepts it.
fn on_one_line(raw: &str) -> String {
    raw.replace('\n', "\\n")
        .replace('\r', "\\r")
        .replace('\t', "\\t")
}
