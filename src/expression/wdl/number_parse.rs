//! Text to numbers, as .NET reads them: signs before or behind, brackets for a minus, groups,
//! a point, an exponent.

use super::culture::Culture;
use rust_decimal::Decimal;

/// Longer text is no number.
const MAX_LENGTH: usize = 400;

/// A whole number of 64 bits: blanks around it and a sign before it are allowed.
pub(crate) fn int(text: &str) -> Option<i64> {
    let trimmed = text.trim();
    if trimmed.len() > MAX_LENGTH {
        return None;
    }
    trimmed.parse().ok()
}

/// A double; none when the text is none or is too large for one.
pub(crate) fn float(text: &str, culture: Culture) -> Option<f64> {
    let float: f64 = plain(text, culture)?.parse().ok()?;
    float.is_finite().then_some(float)
}

/// A decimal of at most 28 digits.
pub(crate) fn decimal(text: &str) -> Option<Decimal> {
    let plain = plain(text, Culture::EN_US)?;
    if plain.contains('e') {
        Decimal::from_scientific(&plain).ok()
    } else {
        Decimal::from_str_exact(&plain)
            .or_else(|_| plain.parse())
            .ok()
    }
}

/// The number as Rust writes numbers.
fn plain(text: &str, culture: Culture) -> Option<String> {
    let mut rest = text.trim();
    if rest.len() > MAX_LENGTH {
        return None;
    }
    let mut negative = None;
    if let Some(inner) = rest
        .strip_prefix('(')
        .and_then(|rest| rest.strip_suffix(')'))
    {
        negative = Some(true);
        rest = inner.trim();
    }
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
    // A group follows a digit; how many digits it has does not matter.
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

/// Without the marks between groups; a narrow or no-break space may be a plain one.
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
