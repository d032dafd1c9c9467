//! Maps a byte inside the value of a text to its position in the file. Nothing is parsed again: the value and its
//! notation (the text as it is written in the file) are read in parallel.
//!
//! Apart from white space and escapes, the value and the notation have the same characters in the same order. So the
//! mapping is exact for these characters, however the lines are folded or indented.

use super::Span;
use super::tree::{Kind, Node, Style, Text};

impl Node {
    /// Returns the position of `length` bytes at `offset` inside this text. If the value is not text, returns the
    /// position of the whole value. `content` is the file's [`super::SourceFile::content`].
    #[must_use]
    pub fn place(&self, content: &str, offset: usize, length: usize) -> Span {
        match &self.kind {
            Kind::String(text) => {
                locate(content, text, self.span, offset, length).unwrap_or(self.span)
            }
            _ => self.span,
        }
    }
}

/// Returns the position of `length` bytes at `offset` of `text`; `None` if the notation does not match the value.
fn locate(content: &str, text: &Text, start: Span, offset: usize, length: usize) -> Option<Span> {
    let mut notation = Notation::open(content.get(text.start..)?, text.style, start);
    let end = offset.saturating_add(length.max(1));
    let mut found: Option<Span> = None;
    for (index, meant) in text.text.char_indices() {
        if index >= end {
            break;
        }
        notation.skip_to(meant);
        if index >= offset {
            match &mut found {
                None => found = Some(notation.span()),
                Some(span) if span.line == notation.line => {
                    span.length = notation.column - span.column + 1;
                }
                Some(_) => break,
            }
        }
        let width = notation.consume(meant);
        if let Some(span) = &mut found
            && span.line == notation.line
            && width > 1
        {
            span.length += width - 1;
        }
    }
    Some(found.unwrap_or_else(|| notation.span()))
}

/// The notation of a text, which is read from its beginning.
struct Notation<'a> {
    rest: std::str::Chars<'a>,
    style: Style,
    file: u16,
    line: u32,
    column: u32,
}

impl<'a> Notation<'a> {
    fn open(rest: &'a str, style: Style, start: Span) -> Self {
        let mut this = Self {
            rest: rest.chars(),
            style,
            file: start.file,
            line: start.line,
            column: start.column,
        };
        match style {
            // The start of a block is the start of its content, so the header was skipped before.
            Style::Plain | Style::Block => {}
            Style::Single | Style::Double => {
                this.step();
            }
        }
        this
    }

    fn span(&self) -> Span {
        Span {
            file: self.file,
            line: self.line,
            column: self.column,
            length: 1,
        }
    }

    fn peek(&self) -> Option<char> {
        self.rest.clone().next()
    }

    fn step(&mut self) -> Option<char> {
        let char = self.rest.next()?;
        if char == '\n' {
            self.line += 1;
            self.column = 1;
        } else {
            self.column += 1;
        }
        Some(char)
    }

    /// Skips the parts that only the notation has: indentation, folds, and escaped line ends.
    fn skip_to(&mut self, meant: char) {
        loop {
            let mut ahead = self.rest.clone();
            match (ahead.next(), ahead.next()) {
                (Some('\\'), Some('\n' | '\r')) if self.style == Style::Double => {
                    self.step();
                    self.step();
                    while self.peek().is_some_and(char::is_whitespace) {
                        self.step();
                    }
                }
                (Some(char), _) if char.is_whitespace() && !meant.is_whitespace() => {
                    self.step();
                }
                _ => return,
            }
        }
    }

    /// Reads the notation of one character and returns the length of that notation.
    fn consume(&mut self, meant: char) -> u32 {
        let Some(next) = self.peek() else { return 0 };
        match (self.style, next) {
            (Style::Double, '\\') => self.escape(),
            (Style::Single, '\'') => {
                self.step();
                self.step();
                2
            }
            _ if meant.is_whitespace() && !next.is_whitespace() => 0,
            _ => {
                self.step();
                1
            }
        }
    }

    fn escape(&mut self) -> u32 {
        self.step();
        let digits = match self.step() {
            Some('x') => 2,
            Some('u') => 4,
            Some('U') => 8,
            _ => 0,
        };
        let code: String = (0..digits).filter_map(|_| self.step()).collect();
        let surrogate =
            u32::from_str_radix(&code, 16).is_ok_and(|code| (0xD800..0xDC00).contains(&code));
        if surrogate && self.peek() == Some('\\') {
            return 2 + digits + self.escape();
        }
        2 + digits
    }
}
