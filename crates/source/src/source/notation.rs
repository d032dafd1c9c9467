//! Finds where the parts of a YAML text begin and end, for parts whose position the parser does not report.

use super::tree::Style;
use std::ops::Range;

/// The anchor and the tag before a value.
pub(super) struct Properties {
    /// The byte after the last property.
    pub end: usize,
    /// The byte at which the value's content begins.
    pub content_start: usize,
}

impl Properties {
    /// Reads the anchor (if the number `anchor` is not 0) and the tag (if `tagged` is true), in any order.
    pub fn read(text: &str, begin: usize, anchor: usize, tagged: bool) -> Self {
        let count = usize::from(anchor != 0) + usize::from(tagged);
        let (mut end, mut content_start) = (begin, begin);
        for _ in 0..count {
            let rest = text.get(content_start..).unwrap_or_default();
            let length = match rest.starts_with("!<") {
                true => rest.find('>').map_or(rest.len(), |at| at + 1),
                false => rest.find(ends_property).unwrap_or(rest.len()),
            };
            end = content_start + length;
            content_start = skip_blanks(text, end);
        }
        Self { end, content_start }
    }
}

fn ends_property(char: char) -> bool {
    char.is_whitespace() || matches!(char, ',' | '[' | ']' | '{' | '}')
}

/// Returns the first byte at or after `at` that is not in blanks or comments.
fn skip_blanks(text: &str, at: usize) -> usize {
    let mut rest = text.get(at..).unwrap_or_default().trim_start();
    while rest.starts_with('#') {
        rest = rest.trim_start_matches(|char| char != '\n').trim_start();
    }
    text.len() - rest.len()
}

/// Returns the position of a value that is missing. This is after `sign`, if only blanks and comments are between `at`
/// and the sign.
pub(super) fn position_after_sign(text: &str, at: usize, sign: char) -> usize {
    let begin = skip_blanks(text, at);
    match text.get(begin..).is_some_and(|rest| rest.starts_with(sign)) {
        true => begin + 1,
        false => at,
    }
}

/// Finds the header of a block (`|` or `>`).
pub(super) fn block_header(text: &str, at: usize) -> Option<usize> {
    let mut at = skip_blanks(text, at);
    while text.get(at..)?.starts_with([':', '-', '?']) {
        at = skip_blanks(text, at + 1);
    }
    text.get(at..)?.starts_with(['|', '>']).then_some(at)
}

/// Finds the content of a block, after its header and the indentation of its first line.
pub(super) fn block_content(text: &str, header: usize) -> usize {
    let rest = text.get(header..).unwrap_or_default();
    let lines = rest.find('\n').map_or(rest.len(), |end| end + 1);
    let rest = rest.get(lines..).unwrap_or_default();
    text.len() - rest.trim_start_matches(' ').len()
}

/// Removes the blanks at the end of a range.
pub(super) fn trimmed(text: &str, range: Range<usize>) -> Range<usize> {
    let inside = text.get(range.clone()).unwrap_or_default();
    range.start..range.start + inside.trim_end_matches([' ', '\t', '\r', '\n']).len()
}

/// Finds the end of a text in quotes.
pub(super) fn quoted_end(text: &str, begin: usize, style: Style) -> Option<usize> {
    let quote = if style == Style::Single { '\'' } else { '"' };
    let mut signs = text.get(begin..)?.char_indices().skip(1).peekable();
    while let Some((at, sign)) = signs.next() {
        match sign {
            '\\' if style == Style::Double => drop(signs.next()),
            '\'' if quote == sign && signs.peek().is_some_and(|(_, next)| *next == sign) => {
                signs.next();
            }
            sign if sign == quote => return Some(begin + at + 1),
            _ => {}
        }
    }
    None
}
