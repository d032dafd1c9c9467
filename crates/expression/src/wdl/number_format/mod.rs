//! .NET's format strings for numbers: the standard letters with a precision, and custom patterns. All digits are text,
//! so no digit is lost.

mod custom;
mod digits;

use super::culture::Culture;
use super::number::Number;
use custom::custom;
use digits::{Digits, grouped};

/// Maximum precision in a format.
const MAX_PRECISION: usize = 99;

/// Writes a number in a .NET format. The error describes what is wrong with the format.
pub(crate) fn format(number: Number, format: &str, culture: Culture) -> Result<String, String> {
    let mut letters = format.chars();
    let Some(first) = letters.next() else {
        return Ok(general(number, None, false, culture));
    };
    let digits = letters.as_str();
    let plain = digits.bytes().all(|byte| byte.is_ascii_digit()) && digits.len() <= 9;
    if first.is_ascii_alphabetic() && plain {
        let precision = match digits {
            "" => None,
            digits => Some(digits.parse::<usize>().map_err(|_| bad(format))?),
        };
        if precision.is_some_and(|precision| precision > MAX_PRECISION) {
            return Err(format!(
                "a precision of {digits} is more than {MAX_PRECISION}"
            ));
        }
        return standard(number, first, precision, culture).ok_or_else(|| bad(format));
    }
    custom(number, format, culture)
}

fn bad(format: &str) -> String {
    format!("`{format}` is not a valid format of a number")
}

fn joined(digits: &Digits, group: &str, point: &str) -> String {
    let mut out = grouped(&digits.whole, group);
    if !digits.fraction.is_empty() {
        out.push_str(point);
        out.push_str(&digits.fraction);
    }
    out
}

fn standard(
    number: Number,
    letter: char,
    precision: Option<usize>,
    culture: Culture,
) -> Option<String> {
    let digits = Digits::of(number);
    let point = culture.decimal_point();
    let group = culture.group_separator();
    let sign = |shown: &Digits| {
        if shown.negative && !shown.is_zero() {
            "-"
        } else {
            ""
        }
    };
    Some(match letter.to_ascii_uppercase() {
        'C' => {
            let shown = digits.rounded(precision.unwrap_or(culture.currency_decimals()));
            let amount = joined(&shown, group, point);
            let symbol = culture.currency_symbol();
            let (before, space) = culture.currency_layout();
            let space = if space { "\u{a0}" } else { "" };
            let sign = sign(&shown);
            if before {
                format!("{sign}{symbol}{space}{amount}")
            } else {
                format!("{sign}{amount}{space}{symbol}")
            }
        }
        'D' => {
            let Number::Int(int) = number else {
                return None;
            };
            let width = precision.unwrap_or(0);
            format!(
                "{}{:0width$}",
                if int < 0 { "-" } else { "" },
                int.unsigned_abs()
            )
        }
        'E' => {
            let shown = exponential(&digits, precision.unwrap_or(6), point);
            let shown = format!("{}{shown}", sign(&digits));
            if letter == 'e' {
                shown.replace('E', "e")
            } else {
                shown
            }
        }
        'F' => {
            let shown = digits.rounded(precision.unwrap_or(2));
            format!("{}{}", sign(&shown), joined(&shown, "", point))
        }
        'G' => general(
            number,
            precision.filter(|digits| *digits > 0),
            letter == 'g',
            culture,
        ),
        'N' => {
            let shown = digits.rounded(precision.unwrap_or(2));
            format!("{}{}", sign(&shown), joined(&shown, group, point))
        }
        'P' => {
            let shown = digits.shifted(2).rounded(precision.unwrap_or(2));
            let space = if culture.percent_space() {
                "\u{a0}"
            } else {
                ""
            };
            format!("{}{}{space}%", sign(&shown), joined(&shown, group, point))
        }
        'R' => general(number, None, false, culture),
        'X' => {
            let Number::Int(int) = number else {
                return None;
            };
            let width = precision.unwrap_or(0);
            if letter == 'X' {
                format!("{int:0width$X}")
            } else {
                format!("{int:0width$x}")
            }
        }
        'B' => {
            let Number::Int(int) = number else {
                return None;
            };
            let width = precision.unwrap_or(0);
            format!("{int:0width$b}")
        }
        _ => return None,
    })
}

/// Writes one digit, the decimals, `E`, a sign and at least three digits.
fn exponential(digits: &Digits, decimals: usize, point: &str) -> String {
    let (mut exponent, mantissa) = digits.scientific();
    let mut shown = mantissa.rounded(decimals);
    if shown.whole.len() > 1 {
        exponent += 1;
        shown = shown.shifted(-1).rounded(decimals);
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!(
        "{}E{sign}{:03}",
        joined(&shown, "", point),
        exponent.unsigned_abs()
    )
}

/// Writes the format `G`: scientific notation for very small or large exponents, otherwise plain.
fn general(number: Number, precision: Option<usize>, small: bool, culture: Culture) -> String {
    let digits = &Digits::of(number);
    let point = culture.decimal_point();
    let (mut exponent, mantissa) = digits.scientific();
    let mut shown = mantissa;
    if let Some(precision) = precision {
        shown = shown.rounded(precision - 1);
        if shown.whole.len() > 1 {
            exponent += 1;
            shown = shown.shifted(-1);
        }
    }
    shown.fraction = shown.fraction.trim_end_matches('0').to_owned();
    let sign = if digits.negative && !digits.is_zero() {
        "-"
    } else {
        ""
    };
    // All digits of a whole number are written.
    let most = match number {
        Number::Int(_) => 19,
        Number::Float(_) | Number::Decimal(_) => 15,
    };
    let limit = precision.map_or(most, |precision| i32::try_from(precision).unwrap_or(most));
    if exponent < -4 || exponent >= limit.max(1) {
        let mark = if small { 'e' } else { 'E' };
        let direction = if exponent < 0 { '-' } else { '+' };
        let mantissa = joined(&shown, "", point);
        return format!(
            "{sign}{mantissa}{mark}{direction}{:02}",
            exponent.unsigned_abs()
        );
    }
    let mut plain = shown.shifted(exponent);
    plain.fraction = plain.fraction.trim_end_matches('0').to_owned();
    format!("{sign}{}", joined(&plain, "", point))
}
