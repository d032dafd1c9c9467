//! Finds JSON that no value can represent: an integer beyond 64 bits, a number beyond the range of a double, or half of
//! a surrogate pair. Our readers of JSON refuse such text, because serde_json would round the numbers.

use serde::de::IgnoredAny;

/// Maximum number of bytes of a number that a message shows.
const SHOWN: usize = 60;

/// Describes the first part of this text that no value can represent. Returns `None` if there is no such part, or if
/// the text is not JSON.
#[must_use]
pub fn inexact_json(text: &[u8]) -> Option<String> {
    let (what, at) = found(text)?;
    serde_json::from_slice::<IgnoredAny>(text).ok()?;
    let before = text.get(..at).unwrap_or_default();
    let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
    let column = before
        .iter()
        .rev()
        .take_while(|byte| **byte != b'\n')
        .count()
        + 1;
    Some(format!("{what} (line {line}, column {column})"))
}

/// Finds the first part that no value can represent, with its position. The text may be something other than JSON.
fn found(text: &[u8]) -> Option<(String, usize)> {
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        match byte {
            b'"' => match after_text(text, at + 1) {
                Ok(after) => at = after,
                Err(lone) => {
                    let escape = text.get(lone..lone + 6).unwrap_or_default();
                    let escape = String::from_utf8_lossy(escape);
                    return Some((format!("`{escape}` is half of a character"), lone));
                }
            },
            b'-' | b'0'..=b'9' => {
                let rest = text.get(at..).unwrap_or_default();
                let length = rest.iter().take_while(|byte| in_number(**byte)).count();
                let number = rest.get(..length).unwrap_or_default();
                if let Some(why) = unfit_number(number) {
                    let shown = number.get(..SHOWN).unwrap_or(number);
                    let more = if number.len() > SHOWN { "…" } else { "" };
                    let shown = String::from_utf8_lossy(shown);
                    return Some((format!("the number {shown}{more} {why}"), at));
                }
                at += length;
            }
            _ => at += 1,
        }
    }
    None
}

/// Returns the position after the text in quotes that begins at `at`. The error is the position of half of a surrogate
/// pair.
fn after_text(text: &[u8], mut at: usize) -> Result<usize, usize> {
    loop {
        match (text.get(at), text.get(at + 1)) {
            (None, _) | (Some(b'"'), _) => return Ok(at + 1),
            (Some(b'\\'), Some(b'u')) => match (unit(text, at), unit(text, at + 6)) {
                (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => at += 12,
                (Some(0xd800..=0xdfff), _) => return Err(at),
                _ => at += 6,
            },
            (Some(b'\\'), _) => at += 2,
            _ => at += 1,
        }
    }
}

/// Returns the code unit of an escape such as `\ud83d`.
fn unit(text: &[u8], at: usize) -> Option<u16> {
    let digits = text.get(at..at + 6)?.strip_prefix(b"\\u")?;
    u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

fn in_number(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E')
}

/// Explains why a number would change if it was converted to a value. Returns `None` if it would not change, or if this
/// is not a number.
fn unfit_number(number: &[u8]) -> Option<&'static str> {
    let text = std::str::from_utf8(number).ok()?;
    if !text.contains(['.', 'e', 'E']) {
        // A fast path: a number with fewer than 19 characters always fits.
        let fits = text.len() < 19 || text.parse::<i64>().is_ok();
        return (!fits).then_some("does not fit 64 bits");
    }
    let float: f64 = text.parse().ok()?;
    let mantissa = text.split(['e', 'E']).next().unwrap_or_default();
    let zero = !mantissa.contains(|digit| ('1'..='9').contains(&digit));
    match float.is_finite() && (zero || float != 0.0) {
        true => None,
        false => Some("does not fit a double"),
    }
}
