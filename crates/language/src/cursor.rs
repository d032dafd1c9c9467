//! Determines what is at a position in an expression: the language, the enclosing call, and whether the position is
//! in a text or a word.
//! This module reads single characters, because an expression that is being typed cannot be parsed yet.

use super::sketch::{Scalar, Style};
use std::ops::Range;
use windlass_engine::Dialect;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Language {
    Wdl,
    Jinja,
}

/// A text whose escapes are resolved: each character with the offset of its first byte in the file.
pub(super) struct UnescapedText(Vec<(usize, char)>);

/// An expression in a text, as ranges of character indexes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Region {
    pub language: Language,
    /// The expression without its delimiters.
    pub inner: Range<usize>,
    pub outer: Range<usize>,
}

/// What is being typed in an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TypedToken {
    /// A text that is an argument of a call.
    Argument {
        function: String,
        number: usize,
        start: usize,
    },
    /// A name. In WDL, it is the name of a function.
    Name {
        start: usize,
    },
    /// A member after a dot. In WDL, it is a member of a call's result; in Jinja, of the names before it.
    Member {
        of: Vec<String>,
        start: usize,
    },
    Filter {
        start: usize,
    },
    Test {
        start: usize,
    },
    /// Anything else.
    Other,
}

impl UnescapedText {
    pub fn of(text: &str, scalar: &Scalar) -> Self {
        let raw = text.get(scalar.inner.clone()).unwrap_or_default();
        let mut chars = raw.char_indices().peekable();
        let mut meant = Vec::with_capacity(raw.len());
        while let Some((at, mut letter)) = chars.next() {
            let next = chars.peek().map(|(_, next)| *next);
            match (scalar.style, letter, next) {
                (Style::Single, '\'', Some('\'')) => drop(chars.next()),
                (Style::Double, '\\', Some(next)) => {
                    letter = next;
                    chars.next();
                }
                _ => {}
            }
            meant.push((scalar.inner.start + at, letter));
        }
        Self(meant)
    }

    pub fn char(&self, index: usize) -> Option<char> {
        self.0.get(index).map(|(_, letter)| *letter)
    }

    /// Returns the byte offset of a character, or `end` after the last one.
    pub fn byte(&self, index: usize, end: usize) -> usize {
        self.0.get(index).map_or(end, |(byte, _)| *byte)
    }

    /// Returns the index of the first character at or after a byte.
    pub fn index(&self, byte: usize) -> usize {
        self.0.partition_point(|(at, _)| *at < byte)
    }

    pub fn text(&self, range: Range<usize>) -> String {
        let chars = self.0.get(range).unwrap_or_default();
        chars.iter().map(|(_, letter)| letter).collect()
    }

    fn is(&self, index: usize, text: &str) -> bool {
        let mut letters = text.chars().enumerate();
        letters.all(|(offset, letter)| self.char(index + offset) == Some(letter))
    }

    /// Returns the first position at or after `from` where `text` is outside of quotes.
    fn find(&self, from: usize, text: &str) -> Option<usize> {
        let mut quote = None;
        for index in from..self.0.len() {
            let letter = self.char(index)?;
            match quote {
                Some(open) if letter == open => quote = None,
                Some(_) => {}
                None if self.is(index, text) => return Some(index),
                None if letter == '\'' || (letter == '"' && text != "}") => quote = Some(letter),
                None => {}
            }
        }
        None
    }

    /// Returns the expression that contains a character.
    /// If `bare` is true and the text has no markers, the whole text is an expression.
    pub fn region(&self, at: usize, dialect: Dialect, bare: bool) -> Option<Region> {
        let length = self.0.len();
        let wdl = matches!(dialect, Dialect::Loom | Dialect::Azure);
        let jinja = dialect != Dialect::Azure;
        if wdl && self.is(0, "@") && !self.is(0, "@@") && !self.is(0, "@{") {
            return (at > 0).then_some(Region {
                language: Language::Wdl,
                inner: 1..length,
                outer: 0..length,
            });
        }
        let before = |open: &str| {
            (0..at.saturating_sub(1))
                .rev()
                .find(|index| self.is(*index, open))
        };
        if wdl && let Some(open) = before("@{") {
            let end = self.find(open + 2, "}");
            let literal = open > 0 && self.char(open - 1) == Some('@');
            if !literal && end.is_none_or(|end| at <= end) {
                return Some(Region {
                    language: Language::Wdl,
                    inner: open + 2..end.unwrap_or(length),
                    outer: open..end.map_or(length, |end| end + 1),
                });
            }
        }
        for (open, close) in [("{{", "}}"), ("{%", "%}")] {
            if !jinja {
                break;
            }
            if let Some(start) = before(open) {
                let end = self.find(start + 2, close);
                if end.is_none_or(|end| at <= end) {
                    return Some(Region {
                        language: Language::Jinja,
                        inner: start + 2..end.unwrap_or(length),
                        outer: start..end.map_or(length, |end| end + 2),
                    });
                }
            }
        }
        let marked = self.find(0, "{{").is_some() || self.is(0, "@");
        (bare && jinja && !marked).then_some(Region {
            language: Language::Jinja,
            inner: 0..length,
            outer: 0..length,
        })
    }

    /// Returns what is being typed at a character of a region.
    pub fn typed(&self, region: &Region, at: usize) -> TypedToken {
        match region.language {
            Language::Wdl => self.typed_wdl(region.inner.start, at),
            Language::Jinja => self.typed_jinja(region.inner.start, at),
        }
    }

    fn typed_wdl(&self, from: usize, at: usize) -> TypedToken {
        let mut calls: Vec<(String, usize)> = Vec::new();
        let mut text: Option<usize> = None;
        let mut word = from;
        let mut index = from;
        while index < at {
            let Some(letter) = self.char(index) else {
                break;
            };
            if text.is_some() {
                if letter == '\'' {
                    let doubled = self.char(index + 1) == Some('\'') && index + 1 < at;
                    match doubled {
                        true => index += 1,
                        false => text = None,
                    }
                    word = index + 1;
                }
            } else if !is_word(letter) {
                match letter {
                    '\'' => text = Some(index + 1),
                    '(' => calls.push((self.text(word..index), 0)),
                    ')' => drop(calls.pop()),
                    ',' => {
                        if let Some((_, number)) = calls.last_mut() {
                            *number += 1;
                        }
                    }
                    _ => {}
                }
                word = index + 1;
            }
            index += 1;
        }
        if let Some(start) = text {
            let Some((function, number)) = calls.pop() else {
                return TypedToken::Other;
            };
            return TypedToken::Argument {
                function,
                number,
                start,
            };
        }
        if word > from && self.char(word - 1) == Some('.') {
            return TypedToken::Member {
                of: self.call_before(from, word - 1).into_iter().collect(),
                start: word,
            };
        }
        TypedToken::Name { start: word }
    }

    /// Returns the call that ends before a `.` or `?.` at `dot`, as its name and `()`.
    fn call_before(&self, from: usize, dot: usize) -> Option<String> {
        let mut index = dot;
        if index > from && self.char(index - 1) == Some('?') {
            index -= 1;
        }
        if index == from || self.char(index - 1) != Some(')') {
            return None;
        }
        let (mut depth, mut quoted) = (0_usize, false);
        while index > from {
            index -= 1;
            match self.char(index)? {
                '\'' => quoted = !quoted,
                ')' if !quoted => depth += 1,
                '(' if !quoted => {
                    depth -= 1;
                    if depth == 0 {
                        let start = self.word_start(from, index);
                        return Some(format!("{}()", self.text(start..index)));
                    }
                }
                _ => {}
            }
        }
        None
    }

    fn word_start(&self, from: usize, at: usize) -> usize {
        let mut start = at;
        while start > from && self.char(start - 1).is_some_and(is_word) {
            start -= 1;
        }
        start
    }

    fn typed_jinja(&self, from: usize, at: usize) -> TypedToken {
        let start = self.word_start(from, at);
        let mut index = start;
        let before = |index: usize| (index > from).then(|| self.char(index - 1)).flatten();
        let subscript = matches!(before(index), Some('\'' | '"')) && before(index - 1) == Some('[');
        if subscript || before(index) == Some('.') {
            index -= 1 + usize::from(subscript);
            let mut of = Vec::new();
            loop {
                let word = self.word_start(from, index);
                if word == index {
                    return TypedToken::Other;
                }
                of.push(self.text(word..index));
                match before(word) {
                    Some('.') => index = word - 1,
                    _ => break,
                }
            }
            of.reverse();
            return TypedToken::Member { of, start };
        }
        if self.in_quotes(from, at) {
            return TypedToken::Other;
        }
        while before(index).is_some_and(char::is_whitespace) {
            index -= 1;
        }
        if before(index) == Some('|') {
            return TypedToken::Filter { start };
        }
        let words = self.text(from..index);
        let mut words = words.split_whitespace().rev();
        let is = match words.next() {
            Some("not") => words.next() == Some("is"),
            last => last == Some("is"),
        };
        match is && index < start {
            true => TypedToken::Test { start },
            false => TypedToken::Name { start },
        }
    }

    fn in_quotes(&self, from: usize, at: usize) -> bool {
        let mut quote = None;
        for letter in (from..at).filter_map(|index| self.char(index)) {
            match quote {
                Some(open) if letter == open => quote = None,
                None if matches!(letter, '\'' | '"') => quote = Some(letter),
                _ => {}
            }
        }
        quote.is_some()
    }

    /// Returns the word that contains a character, or that ends before the character.
    pub fn word(&self, region: &Region, at: usize) -> Range<usize> {
        let start = self.word_start(region.inner.start, at);
        let mut end = at;
        while end < region.inner.end && self.char(end).is_some_and(is_word) {
            end += 1;
        }
        start..end
    }

    /// Returns the call or name at a character, with its arguments and with the members after it.
    /// This is the part of an expression whose value can be shown.
    pub fn operand(&self, region: &Region, at: usize) -> Option<Range<usize>> {
        let word = self.word(region, at);
        let first = self.char(word.start).filter(|_| !word.is_empty())?;
        if first.is_ascii_digit() {
            return None;
        }
        let mut start = word.start;
        if region.language == Language::Jinja {
            // Extend the range to the member at the cursor and the names before it.
            while start > region.inner.start && self.char(start - 1) == Some('.') {
                let before = self.word_start(region.inner.start, start - 1);
                if before == start - 1 {
                    return None;
                }
                start = before;
            }
            let called = self.char(word.end) == Some('(');
            return (!called && !self.in_quotes(region.inner.start, at)).then_some(start..word.end);
        }
        if self.char(word.end) != Some('(') {
            return None;
        }
        let mut end = self.close(word.end, region.inner.end)? + 1;
        loop {
            let mut next = end + usize::from(self.char(end) == Some('?'));
            match self.char(next) {
                Some('.') => {
                    next += 1;
                    let begin = next;
                    while next < region.inner.end && self.char(next).is_some_and(is_word) {
                        next += 1;
                    }
                    if next == begin {
                        break;
                    }
                    end = next;
                }
                Some('[') => end = self.close(next, region.inner.end)? + 1,
                _ => break,
            }
        }
        Some(start..end.min(region.inner.end))
    }

    /// Returns the position of the bracket that closes the one at `open`.
    fn close(&self, open: usize, end: usize) -> Option<usize> {
        let (mut depth, mut quoted) = (0_usize, false);
        for index in open..end {
            match self.char(index)? {
                '\'' => quoted = !quoted,
                '(' | '[' if !quoted => depth += 1,
                ')' | ']' if !quoted => {
                    depth -= 1;
                    if depth == 0 {
                        return Some(index);
                    }
                }
                _ => {}
            }
        }
        None
    }
}

/// Returns true for the characters of names. [`super::MARK`] counts as one of them.
fn is_word(letter: char) -> bool {
    letter.is_alphanumeric() || matches!(letter, '_' | super::MARK)
}
