//! Positions in the form of the Language Server Protocol: lines and UTF-16 code units, both from 0. Also applies edits
//! whose ranges have such positions.

use super::Span;
use super::bundle::BYTE_ORDER_MARK;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use utoipa::ToSchema;

/// A position in a text, as editors count it.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema,
)]
#[serde(deny_unknown_fields)]
pub struct Position {
    /// Line, from 0.
    pub line: u32,
    /// Position in the line, from 0, in UTF-16 code units.
    pub character: u32,
}

/// A range of a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TextRange {
    /// First position of the range.
    pub start: Position,
    /// Position after the range.
    pub end: Position,
}

/// Replacement of one range of a text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TextEdit {
    /// Range that is replaced.
    pub range: TextRange,
    /// New text of the range.
    pub new_text: String,
}

/// A text with the positions of its lines. Converts between byte offsets and positions of editors. Every returned byte
/// offset is the beginning of a character, or the end of the text.
pub struct Lines<'t> {
    text: &'t str,
    /// The byte at which each line begins.
    starts: Vec<usize>,
}

impl<'t> Lines<'t> {
    #[must_use]
    pub fn new(text: &'t str) -> Self {
        let breaks = text.match_indices('\n').map(|(at, _)| at + 1);
        Self {
            text,
            starts: std::iter::once(0).chain(breaks).collect(),
        }
    }

    /// Returns the text itself.
    #[must_use]
    pub fn text(&self) -> &'t str {
        self.text
    }

    /// Returns the number of lines.
    #[must_use]
    pub fn count(&self) -> usize {
        self.starts.len()
    }

    /// Returns the byte at which a line (from 0) begins; after the last line, the end of the text.
    #[must_use]
    pub fn start(&self, line: usize) -> usize {
        self.starts.get(line).copied().unwrap_or(self.text.len())
    }

    /// Returns the text of a line (from 0), without its line break.
    #[must_use]
    pub fn line(&self, line: usize) -> &'t str {
        let text = self.text.get(self.start(line)..self.start(line + 1));
        text.unwrap_or_default().trim_end_matches(['\n', '\r'])
    }

    /// Returns the line (from 0) of a byte.
    #[must_use]
    pub fn line_of(&self, offset: usize) -> usize {
        self.starts
            .partition_point(|start| *start <= offset)
            .saturating_sub(1)
    }

    /// Returns the byte at a position. If the position is after the end of its line, returns the end of the line.
    #[must_use]
    pub fn offset(&self, at: Position) -> usize {
        let line = usize::try_from(at.line).unwrap_or(usize::MAX);
        if line >= self.starts.len() {
            return self.text.len();
        }
        let mut left = usize::try_from(at.character).unwrap_or(usize::MAX);
        let text = self.line(line);
        let end = text.char_indices().find(|(_, letter)| {
            let here = left == 0 || letter.len_utf16() > left;
            left = left.saturating_sub(letter.len_utf16());
            here
        });
        self.start(line) + end.map_or(text.len(), |(at, _)| at)
    }

    /// Returns the position of a byte.
    #[must_use]
    pub fn position(&self, offset: usize) -> Position {
        let line = self.line_of(offset.min(self.text.len()));
        let before = self.text.get(self.start(line)..offset.min(self.text.len()));
        let units = before
            .unwrap_or_default()
            .chars()
            .map(char::len_utf16)
            .sum();
        Position {
            line: small(line),
            character: small(units),
        }
    }

    /// Returns the positions of bytes.
    #[must_use]
    pub fn range(&self, bytes: Range<usize>) -> TextRange {
        TextRange {
            start: self.position(bytes.start),
            end: self.position(bytes.end),
        }
    }

    /// Returns the bytes between two positions.
    #[must_use]
    pub fn bytes(&self, range: TextRange) -> Range<usize> {
        let start = self.offset(range.start);
        start..self.offset(range.end).max(start)
    }

    /// Returns the bytes of a span of this text.
    #[must_use]
    pub fn of_span(&self, span: Span) -> Range<usize> {
        let number = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
        let line = number(span.line).saturating_sub(1);
        let text = self.line(line);
        let at = |characters: usize| {
            let found = text.char_indices().nth(characters);
            self.start(line) + found.map_or(text.len(), |(at, _)| at)
        };
        let column = number(span.column).saturating_sub(1);
        at(column)..at(column.saturating_add(number(span.length)))
    }
}

fn small(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// Applies edits to a text. The positions of all edits refer to the text before any edit. Returns `None` if two edits
/// overlap. A byte order mark at the beginning remains, and positions do not count it.
#[must_use]
pub fn edited(text: &str, edits: &[TextEdit]) -> Option<String> {
    if let Some(content) = text.strip_prefix(BYTE_ORDER_MARK) {
        return Some(format!("{BYTE_ORDER_MARK}{}", edited(content, edits)?));
    }
    let lines = Lines::new(text);
    let mut places: Vec<_> = edits
        .iter()
        .map(|edit| (lines.bytes(edit.range), &*edit.new_text))
        .collect();
    places.sort_by_key(|(bytes, _)| bytes.start);
    let (mut new, mut done) = (String::new(), 0);
    for (bytes, with) in places {
        new.push_str(text.get(done..bytes.start)?);
        new.push_str(with);
        done = bytes.end;
    }
    new.push_str(text.get(done..)?);
    Some(new)
}

#[cfg(test)]
mod tests {
    use super::{Lines, Position, TextEdit, edited};
    use crate::source::Span;

    #[test]
    fn places_are_counted_in_utf16() {
        let text = "a: ü😀x\r\nb: 2";
        let lines = Lines::new(text);
        let at = |line, character| Position { line, character };
        assert_eq!(lines.offset(at(0, 3)), 3);
        assert_eq!(lines.offset(at(0, 4)), 5);
        // A position inside a surrogate pair is converted to the beginning of the pair.
        assert_eq!(lines.offset(at(0, 5)), 5);
        assert_eq!(lines.offset(at(0, 6)), 9);
        assert_eq!(lines.offset(at(0, 99)), 10);
        assert_eq!(lines.offset(at(9, 0)), text.len());
        for offset in [0, 3, 5, 9, 10, 12, text.len()] {
            assert_eq!(lines.offset(lines.position(offset)), offset);
        }
        let span = Span {
            file: 0,
            line: 1,
            column: 5,
            length: 2,
        };
        assert_eq!(&text[lines.of_span(span)], "😀x");
    }

    #[test]
    fn edits_are_made_at_the_places_of_before() {
        let edit = |from: usize, to: usize, new: &str| TextEdit {
            range: Lines::new("one two").range(from..to),
            new_text: new.to_owned(),
        };
        let both = [edit(4, 7, "2"), edit(0, 3, "three")];
        assert_eq!(edited("one two", &both).as_deref(), Some("three 2"));
        assert_eq!(edited("one two", &[edit(0, 4, ""), edit(2, 5, "")]), None);
    }
}
