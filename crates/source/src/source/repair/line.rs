//! The repairs of one line.

/// Repairs the content of a line, or returns `None` if it would stay the same. The second text has the signs that close
/// all open brackets.
pub(super) type Repair = fn(&str, &str) -> Option<String>;

/// Closes the quote and the brackets that the line opens.
pub(super) fn close(line: &str, _: &str) -> Option<String> {
    let closing = LineParts::of(line).closing();
    (!closing.is_empty()).then(|| format!("{line}{closing}"))
}

/// Closes the quote of the line and all open brackets.
pub(super) fn close_all(line: &str, all: &str) -> Option<String> {
    let quote = LineParts::of(line).quote();
    (!all.is_empty()).then(|| format!("{line}{quote}{all}"))
}

/// Closes the quote of the line and ends the line with a comma.
pub(super) fn comma(line: &str, _: &str) -> Option<String> {
    let quote = LineParts::of(line).quote();
    let is_needed = !quote.is_empty() || !line.trim_end().ends_with(',');
    is_needed.then(|| format!("{line}{quote},"))
}

/// Removes the line.
pub(super) fn blank(line: &str, _: &str) -> Option<String> {
    (!line.trim().is_empty()).then(|| " ".repeat(line.len()))
}

/// Makes a text of the last item of the line.
pub(super) fn as_item(line: &str, _: &str) -> Option<String> {
    let (before, item) = line.split_at_checked(LineParts::of(line).last)?;
    let plain = plain(item);
    (plain != item).then(|| format!("{before}{plain}"))
}

/// Makes a text of the last item of the line, and closes all open brackets.
pub(super) fn as_item_of_all(line: &str, all: &str) -> Option<String> {
    Some(format!("{}{all}", as_item(line, all)?))
}

/// Makes a text of the value of the line.
pub(super) fn as_value(line: &str, _: &str) -> Option<String> {
    let start = indentation(line);
    let text = line.get(start..)?;
    let colon = text.find(": ").map_or(0, |colon| colon + 2);
    let value = text.get(colon..)?;
    let blanks = value.len() - value.trim_start().len();
    let (before, value) = line.split_at_checked(start + colon + blanks)?;
    let plain = plain(value);
    (plain != value).then(|| format!("{before}{plain}"))
}

/// Makes a key of the line.
pub(super) fn as_key(line: &str, _: &str) -> Option<String> {
    let (before, key) = line.split_at_checked(indentation(line))?;
    let key = key.trim_end();
    (!key.is_empty() && !key.contains(": ") && !key.ends_with(':'))
        .then(|| format!("{before}{}:", plain(key)))
}

pub(super) fn closing_of(bracket: char) -> char {
    match bracket {
        '[' => ']',
        _ => '}',
    }
}

/// What a line opens and does not close.
#[derive(Default)]
pub(super) struct LineParts {
    quote: Option<char>,
    brackets: Vec<char>,
    /// The byte at which the last item, key or value begins.
    last: usize,
}

impl LineParts {
    pub fn of(line: &str) -> Self {
        let start = indentation(line);
        let mut parts = Self {
            last: start,
            ..Self::default()
        };
        let mut begins = true;
        let mut chars = line.char_indices().skip_while(|(at, _)| *at < start);
        while let Some((at, char)) = chars.next() {
            let after = at + char.len_utf8();
            match (parts.quote, char) {
                (Some('"'), '\\') => drop(chars.next()),
                (Some(quote), _) if quote == char => parts.quote = None,
                (Some(_), _) => {}
                (None, '"' | '\'') if begins => {
                    parts.quote = Some(char);
                    begins = false;
                }
                (None, '[' | '{') if begins => {
                    parts.brackets.push(char);
                    parts.last = after;
                }
                (None, ']' | '}') => drop(parts.brackets.pop()),
                (None, ',') => (begins, parts.last) = (true, after),
                (None, ':') if line.get(after..).is_some_and(|rest| rest.starts_with(' ')) => {
                    (begins, parts.last) = (true, after);
                }
                (None, ' ') => {}
                (None, _) => begins = false,
            }
        }
        parts
    }

    pub fn has_brackets(&self) -> bool {
        !self.brackets.is_empty()
    }

    fn quote(&self) -> String {
        self.quote.into_iter().collect()
    }

    fn closing(&self) -> String {
        let brackets = self.brackets.iter().rev().map(|sign| closing_of(*sign));
        self.quote.into_iter().chain(brackets).collect()
    }
}

/// Returns the byte after the blanks and dashes that begin a line.
fn indentation(line: &str) -> usize {
    let mut rest = line.trim_start_matches(' ');
    while let Some(item) = rest.strip_prefix("- ") {
        rest = item.trim_start_matches(' ');
    }
    line.len() - rest.len()
}

/// Replaces the characters that have a meaning in YAML. The length in bytes stays the same. A comment and a comma at
/// the end are unchanged.
fn plain(text: &str) -> String {
    let (text, comment) = text
        .split_at_checked(text.find(" #").unwrap_or(text.len()))
        .unwrap_or((text, ""));
    let trimmed = text.trim_end();
    let body = trimmed.strip_suffix(',').unwrap_or(trimmed);
    let is_plain = |char: char| match char.is_ascii() {
        true => char.is_ascii_alphanumeric() || matches!(char, ' ' | '_' | '.' | '/'),
        false => !char.is_control() && !matches!(char, '\u{feff}' | '\u{fffe}' | '\u{ffff}'),
    };
    let mut plain: String = body
        .chars()
        .flat_map(|char| {
            let (char, count) = match is_plain(char) {
                true => (char, 1),
                false => ('x', char.len_utf8()),
            };
            std::iter::repeat_n(char, count)
        })
        .collect();
    plain.push_str(text.get(body.len()..).unwrap_or_default());
    plain.push_str(comment);
    plain
}
