//! The usual reasons for text that is not YAML, recognised by the lines around the error.

use super::mistakes::unquoted_template;
use super::{Mistake, Span};

/// Says what is usually wrong where the parser gave up.
pub(super) fn explain(content: &str, mistake: Mistake) -> Mistake {
    if mistake.code != "syntax" || mistake.hint.is_some() {
        return mistake;
    }
    let last = usize::try_from(mistake.span.line).unwrap_or(usize::MAX);
    let near = content
        .lines()
        .enumerate()
        .take(last)
        .skip(last.saturating_sub(3));
    let lines: Vec<(usize, &str)> = near.collect();
    for (index, line) in lines.iter().rev() {
        let at = |byte: usize, length: usize| Span {
            line: u32::try_from(index + 1).unwrap_or(u32::MAX),
            column: u32::try_from(line.get(..byte).unwrap_or_default().chars().count() + 1)
                .unwrap_or(u32::MAX),
            length: u32::try_from(length).unwrap_or(1),
            ..mistake.span
        };
        let indentation = line.len() - line.trim_start().len();
        let tab = line.get(..indentation).and_then(|blank| blank.find('\t'));
        if let Some(tab) = tab {
            return Mistake::new("tab-indentation", at(tab, 1), "a tab in the indentation")
                .hint("YAML is indented with spaces only");
        }
        if let Some(start) = value_start(line, "{{") {
            return unquoted_template(at(start, 2), Some(plain_value(line, start)));
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
                at(start, rest.chars().count()),
                "YAML allows no text without quotes to begin with `@`",
            )
            .hint(format!("quote it: {quoted}"));
        }
        if let Some(start) = value_start(line, "`").or_else(|| value_start(line, "%")) {
            return Mistake::new(
                "syntax",
                at(start, 1),
                "no text without quotes begins like this",
            )
            .hint("quote it");
        }
    }
    let hint = match mistake.message.as_str() {
        message if message.contains("mapping values are not allowed") => {
            "a `: ` inside a text needs quotes around the text; else check the indentation"
        }
        message if message.contains("simple key") || message.contains("expected ':'") => {
            "a key needs a `:` and a space after it"
        }
        message if message.contains("quoted scalar") || message.contains("quote") => {
            "a quote is opened and not closed"
        }
        message if message.contains("anchor") => "define the anchor with & before it is used",
        _ => "check the indentation and the quotes above this place",
    };
    mistake.hint(hint)
}

/// The byte at which a value of this line begins with `mark`.
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

/// The text without quotes that begins there: inside of a list or map on the line it ends where the
/// list or map continues or closes, else with the line.
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
