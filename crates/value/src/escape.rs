//! Escapes text for markup.

/// Escapes `&`, `<` and `>` for XML and HTML. `other` writes each other character.
#[must_use]
pub fn escape_markup(text: &str, other: impl Fn(&mut String, char)) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            letter => other(&mut out, letter),
        }
    }
    out
}
