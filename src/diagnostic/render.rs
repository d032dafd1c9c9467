//! A diagnostic as text for people. It never prints more of a line than fits a terminal, and
//! never a control character of the file.

use super::{Diagnostic, Severity};
use crate::source::Bundle;
use std::fmt::Write as _;
use unicode_width::UnicodeWidthChar;

/// The most characters of a source line that are shown.
const WINDOW: usize = 100;

struct Paint {
    colour: bool,
}

impl Paint {
    fn with(&self, code: &str, text: &str) -> String {
        if self.colour {
            format!("\u{1b}[{code}m{text}\u{1b}[0m")
        } else {
            text.to_owned()
        }
    }
}

/// One diagnostic, ending in a line break.
pub(super) fn render(diagnostic: &Diagnostic, bundle: &Bundle, colour: bool) -> String {
    let paint = Paint { colour };
    let (word, tint) = match diagnostic.severity {
        Severity::Error => ("error", "1;31"),
        Severity::Warning => ("warning", "1;33"),
    };
    let span = diagnostic.span;
    let file = bundle.file(span.file);
    let path = file.map_or("-", |file| file.path.as_str());
    let mut out = String::new();
    let head = paint.with(tint, &format!("{word}[{}]", diagnostic.code));
    let message = printable(&diagnostic.message);
    let _ = writeln!(out, "{head}: {}", paint.with("1", &message));
    let number = span.line.to_string();
    let margin = " ".repeat(number.len());
    let arrow = paint.with("34", "-->");
    let bar = paint.with("34", "|");
    let _ = writeln!(out, "{margin}{arrow} {path}:{}:{}", span.line, span.column);
    let index = usize::try_from(span.line.saturating_sub(1)).unwrap_or(usize::MAX);
    if let Some(line) = file.and_then(|file| file.content().lines().nth(index)) {
        let column = usize::try_from(span.column.saturating_sub(1)).unwrap_or(usize::MAX);
        let length = usize::try_from(span.length.max(1)).unwrap_or(1);
        let (shown, blank, carets) = window(line, column, length);
        let _ = writeln!(out, "{margin} {bar}");
        let _ = writeln!(out, "{} {bar} {shown}", paint.with("34", &number));
        let carets = paint.with(tint, &"^".repeat(carets));
        let _ = writeln!(out, "{margin} {bar} {}{carets}", " ".repeat(blank));
    }
    if let Some(hint) = &diagnostic.hint {
        let _ = writeln!(
            out,
            "{margin} {} hint: {}",
            paint.with("34", "="),
            printable(hint)
        );
    }
    out
}

fn printable(text: &str) -> String {
    text.chars()
        .map(|char| if char.is_control() { ' ' } else { char })
        .collect()
}

/// The part of a line around a column, how many cells lie before the caret, and how many carets.
fn window(line: &str, column: usize, length: usize) -> (String, usize, usize) {
    let total = line.chars().count();
    let column = column.min(total);
    let from = if total <= WINDOW {
        0
    } else {
        column.saturating_sub(WINDOW / 2).min(total - WINDOW)
    };
    let mut shown = String::new();
    let (mut blank, mut carets) = (0, 0);
    if from > 0 {
        shown.push_str("… ");
        blank += 2;
    }
    for (index, char) in line.chars().enumerate().skip(from).take(WINDOW) {
        let char = if char.is_control() { ' ' } else { char };
        let cells = char.width().unwrap_or(0);
        if index < column {
            blank += cells;
        } else if index - column < length {
            carets += cells;
        }
        shown.push(char);
    }
    if from + WINDOW < total {
        shown.push_str(" …");
    }
    (shown.trim_end().to_owned(), blank, carets.max(1))
}
