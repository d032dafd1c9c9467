//! Renders a diagnostic for people. For a long line, only the part near the mistake is printed.

use super::{Diagnostic, Severity, TerminalText, visible};
use crate::source::Bundle;
use std::fmt::Write as _;
use unicode_width::UnicodeWidthChar;

/// Maximum number of characters of a source line that are shown.
const WINDOW: usize = 100;

/// Renders one diagnostic. The text ends with a line break.
pub(super) fn render(diagnostic: &Diagnostic, bundle: &Bundle, colour: bool) -> TerminalText {
    let paint = |code, text: &str| TerminalText::tinted(colour, code, text);
    let (word, tint) = match diagnostic.severity {
        Severity::Error => ("error", "1;31"),
        Severity::Warning => ("warning", "1;33"),
    };
    let span = diagnostic.span;
    let file = bundle.file(span.file);
    let path = bundle.shown_path(span.file).unwrap_or("-".into());
    let mut out = paint(tint, &format!("{word}[{}]", diagnostic.code)).and(": ");
    out.push(&paint("1", &one_line(&diagnostic.message)));
    let number = span.line.to_string();
    let margin = " ".repeat(number.len());
    let bar = paint("34", "|");
    let _ = write!(out, "\n{margin}");
    out.push(&paint("34", "-->"));
    let _ = writeln!(out, " {}:{}:{}", one_line(&path), span.line, span.column);
    let index = usize::try_from(span.line.saturating_sub(1)).unwrap_or(usize::MAX);
    if let Some(line) = file.and_then(|file| file.content().lines().nth(index)) {
        let column = usize::try_from(span.column.saturating_sub(1)).unwrap_or(usize::MAX);
        let length = usize::try_from(span.length.max(1)).unwrap_or(1);
        let (shown, blank, carets) = window(line, column, length);
        let _ = write!(out, "{margin} ");
        out.push(&bar);
        let _ = writeln!(out);
        out.push(&paint("34", &number));
        let _ = write!(out, " ");
        out.push(&bar);
        let _ = write!(out, " {shown}\n{margin} ");
        out.push(&bar);
        let _ = write!(out, " {}", " ".repeat(blank));
        out.push(&paint(tint, &"^".repeat(carets)).and("\n"));
    }
    if let Some(hint) = &diagnostic.hint {
        let _ = write!(out, "{margin} ");
        out.push(
            &paint("34", "=")
                .and(" hint: ")
                .and(one_line(hint))
                .and("\n"),
        );
    }
    out
}

fn one_line(text: &str) -> String {
    text.replace('\n', " ")
}

/// Returns the part of a line near a column, the number of cells before the caret, and the number of carets.
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
        let mut bytes = [0; 4];
        let text = visible(char.encode_utf8(&mut bytes));
        let cells = text.chars().filter_map(|char| char.width()).sum::<usize>();
        if index < column {
            blank += cells;
        } else if index - column < length {
            carets += cells;
        }
        shown.push_str(&text);
    }
    if from + WINDOW < total {
        shown.push_str(" …");
    }
    (shown.trim_end().to_owned(), blank, carets.max(1))
}
