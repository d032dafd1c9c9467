//! Limits how much text the parser reads before it returns its next event. A list or map in brackets can be a key: this
//! depends on whether a `:` follows the closing bracket. So until this bracket, the parser stores everything that it
//! reads and returns no event.

use super::{Mistake, Span};
use std::cell::Cell;

/// Maximum number of signs (characters that `is_sign` accepts) inside one pair of brackets at the position of a key.
const MAX_AHEAD: usize = 100_000;

pub(super) struct Lookahead<'a> {
    content: &'a str,
    /// Number of signs since the parser's last event.
    count: Cell<usize>,
    /// Byte at which that event ends.
    from: Cell<usize>,
    limit_reached: Cell<bool>,
}

const fn is_sign(char: char) -> bool {
    matches!(
        char,
        ',' | '[' | ']' | '{' | '}' | ':' | '?' | '&' | '*' | '!' | '\'' | '"'
    )
}

impl<'a> Lookahead<'a> {
    pub fn new(content: &'a str) -> Self {
        Self {
            content,
            count: Cell::new(0),
            from: Cell::new(0),
            limit_reached: Cell::new(false),
        }
    }

    /// Returns true if the whole text does not exceed the limit.
    pub fn is_bounded(&self) -> bool {
        let signs = self.content.chars().filter(|char| is_sign(*char));
        signs.count() <= MAX_AHEAD
    }

    /// Returns the text up to the limit.
    pub fn chars(&self) -> impl Iterator<Item = char> + '_ {
        self.content
            .chars()
            .take_while(|next| self.continues(*next))
    }

    fn continues(&self, next: char) -> bool {
        self.count
            .set(self.count.get() + usize::from(is_sign(next)));
        // A long text without brackets may also contain this many signs, but it is one event and is allowed.
        if self.count.get() == MAX_AHEAD && self.is_flow() {
            self.limit_reached.set(true);
        }
        !self.limit_reached.get()
    }

    fn is_flow(&self) -> bool {
        let mut rest = self.content.get(self.from.get()..).unwrap_or_default();
        loop {
            rest = rest.trim_start_matches([' ', '\t', '\r', '\n', '-', '?', ':', ',']);
            match rest.strip_prefix('#') {
                Some(comment) => rest = comment.trim_start_matches(|char| char != '\n'),
                None => return rest.starts_with(['[', '{', '&', '!', '*']),
            }
        }
    }

    pub fn restart_at(&self, ends: usize) {
        self.count.set(0);
        self.from.set(ends);
    }

    pub fn is_limit_reached(&self) -> bool {
        self.limit_reached.get()
    }

    pub fn mistake(&self, file: u16) -> Mistake {
        let before = self.content.get(..self.from.get()).unwrap_or_default();
        let start = Span {
            file,
            ..Span::START
        };
        let span = start.after(before);
        let what = "too much text in one pair of brackets where a key may begin";
        Mistake::new("too-many-values", span, what)
            .hint("write it in lines that begin with `- `, or as JSON")
    }
}
