//! Shortens long texts, but never splits a character. Also writes bytes as hexadecimal digits.

/// Returns the first characters, at most `max`.
#[must_use]
pub fn first_chars(text: &str, max: usize) -> &str {
    let end = text.char_indices().nth(max);
    end.and_then(|(end, _)| text.get(..end)).unwrap_or(text)
}

/// Returns the beginning of a text, at most `max` bytes.
#[must_use]
pub fn first_bytes(text: &str, max: usize) -> &str {
    let end = (0..=max).rfind(|at| text.is_char_boundary(*at));
    match max < text.len() {
        true => end.and_then(|end| text.get(..end)).unwrap_or_default(),
        false => text,
    }
}

/// Returns the first characters, at most `max`, followed by a mark if the text has more characters.
#[must_use]
pub fn shortened(text: &str, max: usize) -> String {
    let head = first_chars(text, max);
    let mark = if head.len() < text.len() { "…" } else { "" };
    format!("{head}{mark}")
}

/// Does the same as [`shortened`], but the result with the mark has at most `max` characters.
#[must_use]
pub fn fitted(text: &str, max: usize) -> String {
    match first_chars(text, max).len() < text.len() {
        true => shortened(text, max.saturating_sub(1)),
        false => text.to_owned(),
    }
}

/// Joins all words of a text, with one space between them.
#[must_use]
pub fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns bytes as hexadecimal digits.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::{first_bytes, fitted, shortened};

    #[test]
    fn no_character_is_cut() {
        assert_eq!(shortened("aéb", 3), "aéb");
        assert_eq!(shortened("aéb", 2), "aé…");
        assert_eq!(fitted("aéb", 3), "aéb");
        assert_eq!(fitted("aéb", 2), "a…");
        assert_eq!(fitted("a", 0), "…");
        assert_eq!(first_bytes("aéb", 2), "a");
        assert_eq!(first_bytes("aéb", 9), "aéb");
    }
}
