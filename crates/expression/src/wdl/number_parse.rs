//! Parses numbers as .NET does: signs before or after the digits, groups, a decimal point, an exponent.

use super::culture::Culture;
use rust_decimal::Decimal;

/// Maximum length in bytes of a number.
const MAX_LENGTH: usize = 400;

/// Parses a whole number of 64 bits. Spaces at both ends, a sign before the digits, groups and a fraction of zeros are
/// allowed, as in `1.0` and ` +1,000 `. Digits alone are exact.
pub(crate) fn int(text: &str) -> Option<i64> {
    let trimmed = text.trim();
    if trimmed.len() > MAX_LENGTH {
        return None;
    }
    if let Ok(int) = trimmed.parse() {
        return Some(int);
    }
    let float = match trimmed.ends_with(['+', '-']) {
        true => return None,
        false => float(trimmed, Culture::EN_US)?,
    };
    #[allow(clippy::cast_possible_truncation)]
    (float.fract() == 0.0 && float.abs() < 9.2e18 && (float != 0.0 || is_zero(trimmed)))
        .then_some(float as i64)
}

/// Returns true if all digits are zeros, so that a number too small for a double is not accepted as 0.
fn is_zero(text: &str) -> bool {
    let mantissa = text.split(['e', 'E']).next().unwrap_or_default();
    !mantissa.contains(|digit| ('1'..='9').contains(&digit))
}

/// Parses a double. A number that is too large is infinite. The words for numbers that are not finite are the
/// culture's.
pub(crate) fn float(text: &str, culture: Culture) -> Option<f64> {
    let word = text.trim();
    if word.eq_ignore_ascii_case("NaN") {
        return Some(f64::NAN);
    }
    if culture == Culture::INVARIANT {
        let (word, infinity) = match word.strip_prefix('-') {
            Some(rest) => (rest, f64::NEG_INFINITY),
            None => (word.strip_prefix('+').unwrap_or(word), f64::INFINITY),
        };
        if word.eq_ignore_ascii_case("Infinity") {
            return Some(infinity);
        }
    }
    plain(text, culture)?.parse().ok()
}

/// Parses a decimal of at most 28 digits, without an exponent.
pub(crate) fn decimal(text: &str) -> Option<Decimal> {
    let plain = plain(text, Culture::EN_US).filter(|plain| !plain.contains('e'))?;
    Decimal::from_str_exact(&plain)
        .or_else(|_| plain.parse())
        .ok()
}

/// Returns the number in Rust's notation.
fn plain(text: &str, culture: Culture) -> Option<String> {
    let mut rest = text.trim();
    if rest.len() > MAX_LENGTH {
        return None;
    }
    let mut negative = None;
    let mut sign = |minus: bool| -> Option<()> {
        let first = negative.is_none();
        negative = Some(minus);
        first.then_some(())
    };
    if let Some(after) = rest.strip_prefix(['+', '-']) {
        sign(rest.starts_with('-'))?;
        rest = after;
    }
    if let Some(before) = rest.strip_suffix(['+', '-']) {
        sign(rest.ends_with('-'))?;
        rest = before;
    }
    let (mantissa, exponent) = match rest.find(['e', 'E']) {
        Some(at) => (rest.get(..at)?, Some(rest.get(at + 1..)?)),
        None => (rest, None),
    };
    let (whole, fraction) = match mantissa.split_once(culture.decimal_point()) {
        Some((whole, fraction)) => (whole, fraction),
        None => (mantissa, ""),
    };
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    // A group must follow a digit; its number of digits is not checked.
    let group = culture.group_separator();
    let groups_only = group.is_empty() || !whole.starts_with(group);
    let whole = if group.is_empty() {
        whole.to_owned()
    } else {
        ungrouped(whole, group)
    };
    let none = whole.is_empty() && fraction.is_empty();
    if !groups_only || none || !digits(&whole) || !digits(fraction) {
        return None;
    }
    let mut out = String::new();
    if negative == Some(true) {
        out.push('-');
    }
    out.push_str(if whole.is_empty() { "0" } else { &whole });
    if !fraction.is_empty() {
        out.push('.');
        out.push_str(fraction);
    }
    if let Some(exponent) = exponent {
        let power: i32 = exponent.parse().ok()?;
        out.push_str(&format!("e{power}"));
    }
    Some(out)
}

/// Removes the separators between groups. A plain space may replace a narrow or no-break space.
fn ungrouped(whole: &str, group: &str) -> String {
    let blank = group.chars().all(char::is_whitespace);
    if blank {
        whole
            .chars()
            .filter(|letter| !letter.is_whitespace())
            .collect()
    } else {
        whole.replace(group, "")
    }
}
