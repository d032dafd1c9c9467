//! The mistakes of a workflow's author: code, message, position, hint. All mistakes are reported, not only the first.
//! This module does not decide what a mistake is.

mod fix;
mod render;
mod terminal;

pub use fix::Fix;
pub use terminal::{TerminalText, drives_terminals, visible};

use crate::source::{Bundle, Lines, Mistake, Span};
pub use windlass_value::{did_you_mean, members, nearest};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The file is refused.
    Error,
    /// The file can run, but something in it looks wrong.
    Warning,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    pub severity: Severity,
    /// A stable, documented code in kebab case, such as `unknown-type`.
    pub code: &'static str,
    pub message: String,
    pub span: Span,
    pub hint: Option<String>,
}

impl Diagnostic {
    /// Creates a mistake for which the file is refused.
    pub fn error(code: &'static str, span: Span, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Error,
            code,
            message: message.into(),
            span,
            hint: None,
        }
    }

    pub fn warning(code: &'static str, span: Span, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Warning,
            code,
            message: message.into(),
            span,
            hint: None,
        }
    }

    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Returns the message and the hint in one line.
    #[must_use]
    pub fn to_line(&self) -> String {
        match &self.hint {
            Some(hint) => format!("{}: {hint}", self.message),
            None => self.message.clone(),
        }
    }

    /// Returns the fixes that result from the diagnostic's hint. `lines` are the lines of the file with the mistake.
    #[must_use]
    pub fn fixes(&self, lines: &Lines<'_>) -> Vec<Fix> {
        fix::fixes(self, lines)
    }
}

impl From<Mistake> for Diagnostic {
    fn from(mistake: Mistake) -> Self {
        Self {
            severity: Severity::Error,
            code: mistake.code,
            message: mistake.message,
            span: mistake.span,
            hint: mistake.hint,
        }
    }
}

/// Maximum number of diagnostics for one file. More would not help an author.
const MAX_DIAGNOSTICS: usize = 200;

/// The mistakes of a workflow's author, and the warnings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diagnostics {
    items: Vec<Diagnostic>,
    /// Number of diagnostics beyond the maximum.
    dropped: usize,
    errors: bool,
}

impl Diagnostics {
    /// Adds a diagnostic. The same mistake at the same position is added once.
    pub fn push(&mut self, diagnostic: impl Into<Diagnostic>) {
        let diagnostic = diagnostic.into();
        self.errors |= diagnostic.severity == Severity::Error;
        if self.items.len() >= MAX_DIAGNOSTICS {
            self.dropped += 1;
        } else if !self.items.contains(&diagnostic) {
            self.items.push(diagnostic);
        }
    }

    /// Turns every warning into an error.
    #[must_use]
    pub fn strict(mut self) -> Self {
        for item in &mut self.items {
            item.severity = Severity::Error;
        }
        self.errors = !self.items.is_empty();
        self
    }

    /// Removes the warnings with these codes, for a caller that knows that they do not apply.
    pub fn forget(&mut self, codes: &[&str]) {
        self.items
            .retain(|one| one.severity == Severity::Error || !codes.contains(&one.code));
    }

    /// Turns the warnings with this code into errors. Returns false if no diagnostic has the code.
    pub fn refuse(&mut self, code: &str) -> bool {
        let mut any = false;
        for one in self.items.iter_mut().filter(|one| one.code == code) {
            one.severity = Severity::Error;
            any = true;
        }
        self.errors |= any;
        any
    }

    /// Returns true if a diagnostic has this code.
    #[must_use]
    pub fn has(&self, code: &str) -> bool {
        self.items.iter().any(|one| one.code == code)
    }

    /// Replaces the diagnostics with the same code and position by this one, which has more details.
    pub fn supersede(&mut self, diagnostic: Diagnostic) {
        let same = |item: &Diagnostic| (item.code, item.span) == (diagnostic.code, diagnostic.span);
        self.items.retain(|item| !same(item));
        self.push(diagnostic);
    }

    /// Returns true if the maximum is reached. Then a caller should not search all names of a file for a hint: there
    /// may be thousands of mistakes and names, and the hint would not be shown.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.items.len() >= MAX_DIAGNOSTICS
    }

    /// Returns true if the workflow is refused because of a diagnostic.
    #[must_use]
    pub fn has_errors(&self) -> bool {
        self.errors
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Returns all diagnostics in the order of the text.
    #[must_use]
    pub fn sorted(&self) -> Vec<&Diagnostic> {
        let mut items: Vec<&Diagnostic> = self.items.iter().collect();
        items.sort_by_key(|item| (item.span.file, item.span.line, item.span.column));
        items
    }

    /// Renders all diagnostics for people, by position: message, `file:line:column`, the line with a caret, the hint.
    /// `colour` adds ANSI escapes.
    #[must_use]
    pub fn render(&self, bundle: &Bundle, colour: bool) -> TerminalText {
        let mut text = TerminalText::default();
        for item in self.sorted() {
            if !text.is_empty() {
                text = text.and("\n");
            }
            text.push(&render::render(item, bundle, colour));
        }
        match self.dropped {
            0 => text,
            more => text.and(format!("\nand {more} more\n")),
        }
    }
}

impl Extend<Diagnostic> for Diagnostics {
    fn extend<T: IntoIterator<Item = Diagnostic>>(&mut self, iter: T) {
        for diagnostic in iter {
            self.push(diagnostic);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn a_slip_finds_its_word() {
        let known = ["http", "shell", "until", "doUntil"];
        assert_eq!(nearest("htpt", known), Some("http"));
        assert_eq!(nearest("Until", known), Some("until"));
        assert_eq!(nearest("dountil", known), Some("doUntil"));
        assert_eq!(nearest("spreadsheet", known), None);
        assert_eq!(nearest("x", []), None);
    }
}
