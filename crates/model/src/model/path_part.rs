//! Encodes names as parts of paths, such as loop paths and idempotency keys.
//! A name may have any character. In a path `/`, `#` and `%` have a meaning, and so has `~` at the beginning of a
//! part.

use percent_encoding::percent_decode_str;
use std::borrow::Cow;

/// Encodes a name as a part of a path. Different names have different encodings, and most names stay unchanged.
#[must_use]
pub fn path_part(name: &str) -> Cow<'_, str> {
    if !name.contains(['/', '#', '%']) && !name.starts_with('~') {
        return Cow::Borrowed(name);
    }
    let (begin, rest) = match name.strip_prefix('~') {
        Some(rest) => ("%7E", rest),
        None => ("", name),
    };
    let mut part = String::from(begin);
    for letter in rest.chars() {
        match letter {
            '/' => part.push_str("%2F"),
            '#' => part.push_str("%23"),
            '%' => part.push_str("%25"),
            other => part.push(other),
        }
    }
    Cow::Owned(part)
}

/// Decodes the name in a part of a path.
#[must_use]
pub fn name_of_part(part: &str) -> Cow<'_, str> {
    percent_decode_str(part).decode_utf8_lossy()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_names_are_one_part() {
        let names = [
            "a",
            "a/b",
            "a#0",
            "a#0/b",
            "a%2Fb",
            "a%252Fb",
            "~2",
            "%7E2",
            "a~2",
            "%",
            "prüfen 1",
        ];
        for name in names {
            let part = path_part(name);
            assert!(
                !part.contains(['/', '#']) && !part.starts_with('~'),
                "{part}"
            );
            assert_eq!(name_of_part(&part), name);
        }
        assert_eq!(path_part("Send_mail (2) ü"), "Send_mail (2) ü");
    }
}
