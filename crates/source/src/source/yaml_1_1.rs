//! The values of words without quotes in YAML 1.1. They differ from YAML 1.2: `no` and `on` are booleans, `1_000`,
//! `017` and `1:30` are numbers, and `1e3` is text. The rules are those of PyYAML, with which The Edge Agent reads its
//! files. A date is text, as The Edge Agent shows it, and so is every word that is not another kind of value.

use super::{Kind, Mistake, Span, mistakes};

/// Returns the value of a word; `None` if the word is text.
///
/// # Errors
/// The word is a whole number beyond 64 bits.
pub(super) fn value(word: &str, span: Span) -> Result<Option<Kind>, Mistake> {
    match word {
        "yes" | "Yes" | "YES" | "on" | "On" | "ON" => return Ok(Some(Kind::Bool(true))),
        "no" | "No" | "NO" | "off" | "Off" | "OFF" => return Ok(Some(Kind::Bool(false))),
        _ => {}
    }
    let (sign, digits) = match word.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", word.strip_prefix('+').unwrap_or(word)),
    };
    if let Some((digits, radix)) = whole(digits) {
        let number = i64::from_str_radix(&format!("{sign}{digits}"), radix);
        let number = number.map_err(|_| mistakes::out_of_range(word, span))?;
        return Ok(Some(Kind::Int(number)));
    }
    if let Some(number) = sixties(digits) {
        let number = number.and_then(|number| {
            if sign.is_empty() {
                Some(number)
            } else {
                number.checked_neg()
            }
        });
        let number = number.ok_or_else(|| mistakes::out_of_range(word, span))?;
        return Ok(Some(Kind::Int(number)));
    }
    let sign_of = |number: f64| if sign.is_empty() { number } else { -number };
    let number = fraction(digits, digits.len() < word.len());
    Ok(number.map(|number| Kind::Float(sign_of(number))))
}

/// Returns the digits of a whole number, and their base.
fn whole(digits: &str) -> Option<(String, u32)> {
    let (digits, radix) = if let Some(bits) = digits.strip_prefix("0b") {
        (bits, 2)
    } else if let Some(hex) = digits.strip_prefix("0x") {
        (hex, 16)
    } else if digits.len() > 1 && digits.starts_with('0') {
        (digits, 8)
    } else {
        (digits, 10)
    };
    let fits = |letter: char| letter == '_' || letter.is_digit(radix);
    let begins = radix != 10 || digits.starts_with(|first: char| first.is_ascii_digit());
    let bare = without_gaps(digits);
    (begins && digits.chars().all(fits) && !bare.is_empty()).then_some((bare, radix))
}

/// Reads a whole number to the base of 60, as times are written. Returns `None` if the text is not such a number, and
/// `Some(None)` if it is a number beyond 64 bits.
fn sixties(text: &str) -> Option<Option<i64>> {
    let (first, rest) = text.split_once(':')?;
    let begins = first.starts_with(|first: char| ('1'..='9').contains(&first));
    let (first, _) = whole(first).filter(|(_, radix)| begins && *radix == 10)?;
    let mut number = first.parse::<i64>().ok();
    for part in rest.split(':') {
        let part = below_sixty(part)?;
        number = number.and_then(|number| number.checked_mul(60)?.checked_add(part));
    }
    Some(number)
}

fn below_sixty(part: &str) -> Option<i64> {
    let digits = part.len() <= 2 && part.chars().all(|letter| letter.is_ascii_digit());
    part.parse().ok().filter(|number| digits && *number < 60)
}

/// Reads a number with a point. If no digit is before the point, the number has no sign.
fn fraction(digits: &str, signed: bool) -> Option<f64> {
    let (before, after) = digits.split_once('.')?;
    let is_digits = |text: &str| {
        text.chars()
            .all(|letter| letter == '_' || letter.is_ascii_digit())
    };
    let begins = |text: &str| text.starts_with(|first: char| first.is_ascii_digit());
    let (after, exponent) = match after.find(['e', 'E']) {
        Some(at) => (after.get(..at)?, after.get(at + 1..)?),
        None => (after, "+0"),
    };
    let power = exponent.strip_prefix(['-', '+'])?;
    let power = !power.is_empty() && power.chars().all(|letter| letter.is_ascii_digit());
    let whole = is_digits(before)
        && if before.is_empty() {
            !signed && begins(after)
        } else {
            begins(before)
        };
    if !(whole && power && is_digits(after)) {
        return None;
    }
    let text = format!(
        "{}.{}e{exponent}",
        without_gaps(before),
        without_gaps(after)
    );
    text.parse().ok().filter(|number: &f64| number.is_finite())
}

fn without_gaps(digits: &str) -> String {
    digits.replace('_', "")
}
