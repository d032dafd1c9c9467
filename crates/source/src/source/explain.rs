//! Explains why a text is not YAML. Recognises the usual reasons in the lines near the error.

use super::mistakes::unquoted_template;
use super::{Mistake, Span};

/// Returns a better explanation of the parser's mistake, if a usual reason fits. `open` is the innermost bracket that
/// was still open when the parser stopped.
pub(super) fn explain(content: &str, mistake: Mistake, open: Option<(Span, char)>) -> Mistake {
    if mistake.code != "syntax" || mistake.hint.is_some() {
        return mistake;
    }
    let last = usize::try_from(mistake.span.line).unwrap_or(usize::MAX);
    let lines = content.lines().enumerate();
    let next = lines.clone().nth(last);
    let near = lines.take(last).skip(last.saturating_sub(3));
    let lines: Vec<(usize, &str)> = near.collect();
    for (index, line) in lines.iter().rev() {
        let span_at = |byte, length| span_in_line(*index, line, byte, length, mistake.span);
        if let Some(tab) = tab_indentation(*index, line, mistake.span) {
            return tab;
        }
        if let Some(start) = value_start(line, "{{") {
            return unquoted_template(span_at(start, 2), Some(plain_value(line, start)));
        }
        if let Some(start) = value_start(line, "@") {
            let rest = plain_value(line, start);
            let quoted = if rest.contains('"') {
                format!("'{}'", rest.replace('\'', "''"))
            } else {
                format!("\"{rest}\"")
            };
            return Mistake::new(
                "unquoted-expression",
                span_at(start, rest.chars().count()),
                "YAML allows no text without quotes to begin with `@`",
            )
            .hint(format!("quote it: {quoted}"));
        }
        if let Some(start) = value_start(line, "`").or_else(|| value_start(line, "%")) {
            return Mistake::new(
                "syntax",
                span_at(start, 1),
                "no text without quotes begins like this",
            )
            .hint("quote it");
        }
    }
    // If a tab indents the next line, the parser reports the mistake at this line.
    if let Some(tab) = next.and_then(|(index, line)| tab_indentation(index, line, mistake.span)) {
        return tab;
    }
    if let Some(bracket) = open.filter(|open| is_unclosed(open.0, &mistake)) {
        let (span, sign) = bracket;
        let what = format!("this `{sign}` is not closed, or a `,` is missing behind it");
        let hint = format!("line {} cannot continue it", mistake.span.line);
        return Mistake::new("syntax", span, what).hint(hint);
    }
    if let Some(key) = broken_key(&lines, &mistake) {
        return key;
    }
    let hint = match mistake.message.as_str() {
        message if message.contains("mapping values are not allowed") => {
            "a `: ` inside a text needs quotes around the text; else check the indentation"
        }
        message if message.contains("simple key") || message.contains("expected ':'") => {
            "a key needs a `:` and a space after it"
        }
        message if message.contains("YAML whitespace") => "write a space behind the `:`, not a tab",
        message if message.contains("escape") || message.contains("surrogate") => {
            "in double quotes a backslash begins an escape: write `\\\\` for a backslash, or use single quotes"
        }
        message if message.contains("trailing content") => {
            let what = "text follows the closing quote";
            let hint = "quote all of it; in single quotes, write a quote twice";
            return Mistake::new("syntax", mistake.span, what).hint(hint);
        }
        message if message.contains("expected ','") => {
            "write a `,` between two entries; quote a text that contains `,`, `: `, a bracket or a brace"
        }
        message if message.contains("invalid indentation in quoted") => {
            "indent each line of a text in quotes more than its key, or close the quote"
        }
        message if message.contains("quoted scalar") => "a quote is opened and not closed",
        message if message.contains("anchor") => "define the anchor with & before it is used",
        _ => "check the indentation and the quotes above this place",
    };
    mistake.hint(hint)
}

/// Returns true if the mistake is an unclosed bracket. The parser notices one only at the next key or at the end of the
/// file.
fn is_unclosed(bracket: Span, mistake: &Mistake) -> bool {
    let signs = ["flow", "expected ','", "indicator"];
    mistake.span.line > bracket.line && signs.iter().any(|sign| mistake.message.contains(sign))
}

/// Returns the span of a part of a line. `byte` and `length` are in bytes of the line.
fn span_in_line(index: usize, line: &str, byte: usize, length: usize, span: Span) -> Span {
    let before = line.get(..byte).unwrap_or_default().chars().count();
    Span {
        line: u32::try_from(index + 1).unwrap_or(u32::MAX),
        column: u32::try_from(before + 1).unwrap_or(u32::MAX),
        length: u32::try_from(length).unwrap_or(1),
        ..span
    }
}

fn tab_indentation(index: usize, line: &str, span: Span) -> Option<Mistake> {
    let indentation = line.len() - line.trim_start().len();
    let tab = line.get(..indentation)?.find('\t')?;
    let span = span_in_line(index, line, tab, 1, span);
    Some(
        Mistake::new("tab-indentation", span, "a tab in the indentation")
            .hint("YAML is indented with spaces only"),
    )
}

/// Finds a key without its colon, or without the space after the colon. The parser notices such a mistake only at the
/// next key.
fn broken_key(lines: &[(usize, &str)], mistake: &Mistake) -> Option<Mistake> {
    let message = &mistake.message;
    let is_colon = message.contains("simple key") || message.contains("expected ':'");
    let is_space = message.contains("mapping values are not allowed");
    if !is_colon && !is_space {
        return None;
    }
    let line_of = |index: usize| u32::try_from(index + 1).unwrap_or(u32::MAX);
    // The mistake is in an earlier line, unless this line has text before the reported position.
    let is_here = |(index, line): &(usize, &str)| {
        line_of(*index) == mistake.span.line
            && is_colon
            && mistake.span.column > 1
            && !line.contains(": ")
    };
    let mut candidates = lines.iter().rev().filter(|(index, line)| {
        let text = line.trim();
        let is_earlier = line_of(*index) < mistake.span.line || is_here(&(*index, line));
        is_earlier && !text.is_empty() && !text.starts_with('#')
    });
    let (index, line) = candidates.next()?;
    let start = line.len() - line.trim_start_matches([' ', '-']).len();
    let text = line.get(start..)?.trim_end();
    let is_name = |char: char| char.is_alphanumeric() || "_$-.".contains(char);
    let colon = text.find(':').filter(|colon| {
        let key = text.get(..*colon).unwrap_or_default();
        *colon + 1 < text.len() && key.starts_with(char::is_alphabetic) && key.chars().all(is_name)
    });
    let span = span_in_line(*index, line, start, text.chars().count(), mistake.span);
    match colon {
        Some(colon) if !text.get(colon + 1..)?.starts_with([' ', '/']) => {
            let span = span_in_line(*index, line, start + colon, 1, mistake.span);
            let what = "a space is missing behind the `:`";
            Some(Mistake::new("syntax", span, what).hint("write `key: value`"))
        }
        None if !text.contains(':') && (is_colon || text.chars().all(is_name)) => {
            let what = "this key has no `:`";
            Some(Mistake::new("syntax", span, what).hint("a key needs a `:` and a space after it"))
        }
        _ => None,
    }
}

/// Finds the byte at which a value of this line begins with `mark`.
fn value_start(line: &str, mark: &str) -> Option<usize> {
    let mut from = 0;
    while let Some(found) = line.get(from..).and_then(|rest| rest.find(mark)) {
        let at = from + found;
        let before = line.get(..at).unwrap_or_default();
        let trimmed = before.trim_end();
        let opens = trimmed.is_empty()
            || (trimmed.len() < before.len() && trimmed.ends_with([':', '-', ',']))
            || trimmed.ends_with(['[', '{']);
        if opens {
            return Some(at);
        }
        from = at + mark.len();
    }
    None
}

/// Returns the text without quotes that begins at `start`. If the text is inside of a list or map on the same line, it
/// ends where the list or map continues or is closed. Otherwise it ends with the line.
fn plain_value(line: &str, start: usize) -> &str {
    let (before, rest) = line.split_at_checked(start).unwrap_or((line, ""));
    let count = |spans: [char; 2]| before.matches(spans).count();
    if count(['{', '[']) <= count(['}', ']']) {
        return rest.trim_end();
    }
    let (mut open, mut quoted) = (0_usize, false);
    let end = rest.char_indices().find(|(_, letter)| {
        match letter {
            '\'' => quoted = !quoted,
            _ if quoted => {}
            '(' | '[' | '{' => open += 1,
            ')' | ']' | '}' if open > 0 => open -= 1,
            ']' | '}' | ',' => return open == 0,
            _ => {}
        }
        false
    });
    let end = end.map_or(rest.len(), |(at, _)| at);
    rest.get(..end).unwrap_or(rest).trim_end()
}
