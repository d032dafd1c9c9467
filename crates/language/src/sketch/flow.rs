//! Reads lists and maps in brackets.
//! In JSON, these are all lists and maps. In YAML, they are a part of the language.

use super::reader::{MAX_DEPTH, Reader};
use super::{Kind, Member, Scalar, SketchNode, Style};
use std::ops::Range;

impl Reader<'_> {
    /// Reads a list or map in brackets.
    /// In YAML it ends at a line that is indented by `indent` or less, even if its closing bracket is missing.
    pub(super) fn flow(&mut self, indent: Option<usize>) -> SketchNode {
        let start = self.at;
        let is_map = self.byte(start) == Some(b'{');
        self.at += 1;
        self.depth += 1;
        let (mut members, mut items) = (Vec::new(), Vec::new());
        while let Some(at) = self.flow_next(indent) {
            let deep = self.depth > MAX_DEPTH;
            match self.byte(at) {
                Some(b'}' | b']') => {
                    if (self.byte(at) == Some(b'}')) == is_map {
                        self.at += 1;
                    }
                    break;
                }
                Some(b',') => self.at += 1,
                _ if deep => self.at = self.line_end(at),
                _ if is_map => members.push(self.flow_member(indent)),
                _ => items.push(self.flow_value(indent)),
            }
            // Move on by at least one character, so that the loop ends.
            if self.at <= at {
                self.at = self.after(at);
            }
        }
        self.depth -= 1;
        SketchNode {
            range: start..self.at,
            kind: match is_map {
                true => Kind::Map(members),
                false => Kind::List(items),
            },
        }
    }

    /// Returns the offset after the character at `at`.
    fn after(&self, at: usize) -> usize {
        let width = self.rest(at).chars().next().map_or(1, char::len_utf8);
        (at + width).min(self.text.len())
    }

    /// Moves to the next character inside of brackets. Returns `None` at their end.
    fn flow_next(&mut self, indent: Option<usize>) -> Option<usize> {
        let before = self.at;
        loop {
            let at = self.next()?;
            // In JSON, `//` begins a comment.
            if indent.is_none() && self.rest(at).starts_with("//") {
                self.at = self.line_end(at);
                continue;
            }
            let new_line = self.text.get(before..at)?.contains('\n');
            let ended = new_line && indent.is_some_and(|indent| self.column(at) <= indent);
            if ended && !matches!(self.byte(at), Some(b'}' | b']')) {
                self.at = before;
                return None;
            }
            return Some(at);
        }
    }

    fn flow_member(&mut self, indent: Option<usize>) -> Member {
        let at = self.at;
        let quoted = matches!(self.byte(at), Some(b'"' | b'\''));
        let key = match quoted {
            true => match self.quoted(None).kind {
                Kind::Text(scalar) => scalar.inner,
                _ => at..at,
            },
            false => self.flow_plain(true),
        };
        let end = self.at;
        let colon = self
            .flow_next(indent)
            .filter(|at| self.byte(*at) == Some(b':'));
        let value = match colon {
            Some(colon) => {
                self.at = colon + 1;
                Some(self.flow_value(indent))
            }
            None => {
                self.at = end;
                None
            }
        };
        Member {
            name: self.text.get(key.clone()).unwrap_or_default().to_owned(),
            quoted,
            complete: value.is_some(),
            value: value.unwrap_or_else(|| SketchNode::nothing(key.end)),
            key,
        }
    }

    fn flow_value(&mut self, indent: Option<usize>) -> SketchNode {
        let before = self.at;
        let Some(at) = self.flow_next(indent) else {
            return SketchNode::nothing(before);
        };
        match self.byte(at) {
            Some(b'{' | b'[') => self.flow(indent),
            Some(b'"' | b'\'') => self.quoted(indent),
            Some(b',' | b'}' | b']') => {
                self.at = before;
                SketchNode::nothing(before)
            }
            _ => {
                let inner = self.flow_plain(false);
                SketchNode {
                    range: inner.clone(),
                    kind: Kind::Text(Scalar {
                        inner,
                        style: Style::Plain,
                    }),
                }
            }
        }
    }

    /// Reads a word without quotes in brackets.
    fn flow_plain(&mut self, key: bool) -> Range<usize> {
        let start = self.at;
        let line = self
            .text
            .get(start..self.line_end(start))
            .unwrap_or_default();
        let bytes = line.as_bytes();
        let colon = |at: usize| {
            let next = bytes.get(at + 1);
            key && matches!(
                next,
                None | Some(b' ' | b',' | b'}' | b']' | b'{' | b'[' | b'"' | b'\r')
            )
        };
        let ends = bytes.iter().enumerate().position(|(at, byte)| match byte {
            b',' | b'}' | b']' => true,
            b':' => colon(at),
            _ => false,
        });
        let word = line.get(..ends.unwrap_or(line.len())).unwrap_or(line);
        self.at = start + word.len();
        start..start + word.trim_end().len()
    }
}
