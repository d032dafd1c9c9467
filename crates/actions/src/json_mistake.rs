//! Where a text stops being JSON, in the words of Python, which The Edge Agent has them from.

/// Deeper than this nothing is looked for.
const MAX_DEPTH: usize = 200;

/// What is wrong, and where.
pub(super) struct JsonMistake {
    pub(super) message: &'static str,
    pub(super) line: i64,
    pub(super) column: i64,
}

/// The first mistake of a text; none when Python would read it.
pub(super) fn mistake(text: &str) -> Option<JsonMistake> {
    let mut scanner = Scanner {
        letters: text.chars().collect(),
        at: 0,
    };
    let (message, at) = scanner.document().err()?;
    let before = scanner.letters.get(..at).unwrap_or(&scanner.letters);
    let line = before.iter().filter(|letter| **letter == '\n').count() + 1;
    let start = before.iter().rposition(|letter| *letter == '\n');
    let column = at - start.map_or(0, |start| start + 1) + 1;
    let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
    Some(JsonMistake {
        message,
        line: number(line),
        column: number(column),
    })
}

type ScanResult = Result<(), (&'static str, usize)>;

struct Scanner {
    letters: Vec<char>,
    at: usize,
}

impl Scanner {
    fn next(&self) -> Option<char> {
        self.letters.get(self.at).copied()
    }

    fn space(&mut self) {
        while matches!(self.next(), Some(' ' | '\t' | '\n' | '\r')) {
            self.at += 1;
        }
    }

    fn document(&mut self) -> ScanResult {
        self.space();
        self.value(0)?;
        self.space();
        match self.next() {
            None => Ok(()),
            Some(_) => Err(("Extra data", self.at)),
        }
    }

    fn value(&mut self, depth: usize) -> ScanResult {
        let start = self.at;
        match self.next() {
            Some('"') => self.text(),
            Some('{') if depth < MAX_DEPTH => self.object(depth),
            Some('[') if depth < MAX_DEPTH => self.array(depth),
            _ if self.word() || self.number() => Ok(()),
            _ => Err(("Expecting value", start)),
        }
    }

    fn word(&mut self) -> bool {
        const WORDS: [&str; 6] = ["null", "true", "false", "NaN", "Infinity", "-Infinity"];
        let rest = self.letters.get(self.at..).unwrap_or_default();
        let starts = |word: &&&str| {
            let mut letters = rest.iter();
            word.chars().all(|letter| letters.next() == Some(&letter))
        };
        let found = WORDS.iter().find(starts).map_or(0, |word| word.len());
        self.at += found;
        found > 0
    }

    fn digits(&mut self) -> bool {
        let start = self.at;
        while self.next().is_some_and(|letter| letter.is_ascii_digit()) {
            self.at += 1;
        }
        self.at > start
    }

    fn number(&mut self) -> bool {
        let start = self.at;
        self.at += usize::from(self.next() == Some('-'));
        if self.next() == Some('0') {
            self.at += 1;
        } else if !self.digits() {
            self.at = start;
            return false;
        }
        let whole = self.at;
        if self.next() == Some('.') {
            self.at += 1;
            if !self.digits() {
                self.at = whole;
                return true;
            }
        }
        let mantissa = self.at;
        if matches!(self.next(), Some('e' | 'E')) {
            self.at += 1;
            self.at += usize::from(matches!(self.next(), Some('+' | '-')));
            if !self.digits() {
                self.at = mantissa;
            }
        }
        true
    }

    fn text(&mut self) -> ScanResult {
        let start = self.at;
        self.at += 1;
        loop {
            match self.next() {
                None => return Err(("Unterminated string starting at", start)),
                Some('"') => break,
                Some('\\') => self.escape(start)?,
                Some(letter) if letter < ' ' => {
                    return Err(("Invalid control character at", self.at));
                }
                Some(_) => self.at += 1,
            }
        }
        self.at += 1;
        Ok(())
    }

    fn escape(&mut self, start: usize) -> ScanResult {
        let slash = self.at;
        self.at += 1;
        match self.next() {
            None => return Err(("Unterminated string starting at", start)),
            Some('"' | '\\' | '/' | 'b' | 'f' | 'n' | 'r' | 't') => {}
            Some('u') => {
                let digits = self.letters.get(self.at + 1..self.at + 5);
                let is_hex = |digits: &[char]| digits.iter().all(char::is_ascii_hexdigit);
                if !digits.is_some_and(is_hex) {
                    return Err(("Invalid \\uXXXX escape", self.at));
                }
                self.at += 4;
            }
            Some(_) => return Err(("Invalid \\escape", slash)),
        }
        self.at += 1;
        Ok(())
    }

    fn object(&mut self, depth: usize) -> ScanResult {
        self.at += 1;
        self.space();
        if self.next() == Some('}') {
            self.at += 1;
            return Ok(());
        }
        loop {
            if self.next() != Some('"') {
                let message = "Expecting property name enclosed in double quotes";
                return Err((message, self.at));
            }
            self.text()?;
            self.space();
            if self.next() != Some(':') {
                return Err(("Expecting ':' delimiter", self.at));
            }
            self.at += 1;
            self.space();
            self.value(depth + 1)?;
            if self.ends('}')? {
                return Ok(());
            }
        }
    }

    fn array(&mut self, depth: usize) -> ScanResult {
        self.at += 1;
        self.space();
        if self.next() == Some(']') {
            self.at += 1;
            return Ok(());
        }
        loop {
            self.value(depth + 1)?;
            if self.ends(']')? {
                return Ok(());
            }
        }
    }

    /// Whether this was the last one; else there is a comma.
    fn ends(&mut self, end: char) -> Result<bool, (&'static str, usize)> {
        self.space();
        let next = self.next();
        if next != Some(end) && next != Some(',') {
            return Err(("Expecting ',' delimiter", self.at));
        }
        self.at += 1;
        self.space();
        Ok(next == Some(end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistakes_are_those_of_python() {
        for (text, message, line, column) in [
            (
                "{a",
                "Expecting property name enclosed in double quotes",
                1,
                2,
            ),
            ("[1,2", "Expecting ',' delimiter", 1, 5),
            ("[1 2]", "Expecting ',' delimiter", 1, 4),
            ("```json\n{}", "Expecting value", 1, 1),
            ("{\"a\":1} x", "Extra data", 1, 9),
            ("", "Expecting value", 1, 1),
            ("{\"a\" 1}", "Expecting ':' delimiter", 1, 6),
            ("{\n \"a\":\"b", "Unterminated string starting at", 2, 6),
            ("\"\\x\"", "Invalid \\escape", 1, 2),
        ] {
            let found = mistake(text).unwrap();
            assert_eq!(
                (found.message, found.line, found.column),
                (message, line, column),
                "{text}"
            );
        }
        assert!(mistake(" {\"a\": [1.5e3, null, \"\\u00e9\"]} ").is_none());
        assert!(mistake(&"[".repeat(100_000)).is_some());
    }
}
