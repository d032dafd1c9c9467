//! Text for people, in a terminal. Characters from a file cannot control the terminal, because they are escaped. Only
//! the colours control it, and these are added separately.

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;

/// Text for a terminal. Text that is appended is first escaped with [`visible`]; line breaks remain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TerminalText(String);

impl TerminalText {
    /// Returns text for machines, such as JSON, unchanged.
    #[must_use]
    pub fn exact(text: String) -> Self {
        Self(text)
    }

    /// Returns text in a colour, if `colour` is true.
    #[must_use]
    pub fn tinted(colour: bool, code: &'static str, text: &str) -> Self {
        let text = visible(text);
        Self(match colour {
            true => format!("\u{1b}[{code}m{text}\u{1b}[0m"),
            false => text.into_owned(),
        })
    }

    /// Appends further text.
    #[must_use]
    pub fn and(mut self, text: impl AsRef<str>) -> Self {
        self.0.push_str(&visible(text.as_ref()));
        self
    }

    /// Appends text that is already escaped and coloured.
    pub fn push(&mut self, text: &Self) {
        self.0.push_str(&text.0);
    }

    /// Removes white space at the end.
    #[must_use]
    pub fn trimmed(mut self) -> Self {
        self.0.truncate(self.0.trim_end().len());
        self
    }
}

impl Deref for TerminalText {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for TerminalText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Write for TerminalText {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.push_str(&visible(text));
        Ok(())
    }
}

impl<T: AsRef<str>> From<T> for TerminalText {
    fn from(text: T) -> Self {
        Self::default().and(text)
    }
}

impl FromIterator<TerminalText> for TerminalText {
    fn from_iter<I: IntoIterator<Item = TerminalText>>(texts: I) -> Self {
        let mut all = Self::default();
        texts.into_iter().for_each(|text| all.push(&text));
        all
    }
}

/// Returns a text in which characters that would control a terminal are escapes such as `\u{1b}`, and a tab is a space.
#[must_use]
pub fn visible(text: &str) -> Cow<'_, str> {
    let drives = |c: char| c != '\n' && drives_terminals(c);
    if !text.contains(drives) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for char in text.chars() {
        match char {
            '\t' => shown.push(' '),
            char if drives(char) => shown.extend(char.escape_unicode()),
            char => shown.push(char),
        }
    }
    Cow::Owned(shown)
}

/// Returns true for control characters, and for characters that change the order in which text is read.
#[must_use]
pub fn drives_terminals(char: char) -> bool {
    char.is_control() || matches!(char, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::TerminalText;

    #[test]
    fn only_its_own_colours_drive_a_terminal() {
        let text = TerminalText::tinted(true, "1", "a\u{1b}[2J").and("\u{9b}\r\n\u{202e}\t\u{7f}ü");
        assert_eq!(
            &*text,
            "\u{1b}[1ma\\u{1b}[2J\u{1b}[0m\\u{9b}\\u{d}\n\\u{202e} \\u{7f}ü"
        );
    }
}
