//! .NET's format strings for numbers: the standard letters with a precision, and custom
//! patterns. Digits are text throughout, so that nothing is lost on the way.

mod custom;
mod digits;

use super::culture::Culture;
use super::number::Number;
use custom::custom;
use digits::{Digits, grouped};

/// Most decimals a format may ask for.
const MAX_PRECISION: usize = 99;

/// A number in a .NET format; the error says what is wrong with the format.
pub(crate) fn format(number: Number, format: &str, culture: Culture) -> Result<String, String> {
    let mut letters = format.chars();
    let Some(first) = letters.next() else {
        return Ok(general(&Digits::of(number), None, false, culture));
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
    format!("`{format}` is no format of a number")
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
            &digits,
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
        'R' => general(&digits, None, false, culture),
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

/// One digit, the decimals, `E`, a sign and at least three digits.
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

/// The shorter of plain and scientific.
fn general(digits: &Digits, precision: Option<usize>, small: bool, culture: Culture) -> String {
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
    let limit = precision.map_or(15, |precision| i32::try_from(precision).unwrap_or(15));
    if exponent < -5 || exponent >= limit.max(if precision.is_none() { 15 } else { 1 }) {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn show(number: Number, pattern: &str, code: &str) -> String {
        format(number, pattern, Culture::find(code).unwrap()).unwrap()
    }

    #[test]
    fn standard_formats() {
        let number = Number::Float(-1234.5678);
        for (pattern, text) in [
            ("C", "-$1,234.57"),
            ("F", "-1234.57"),
            ("F0", "-1235"),
            ("N1", "-1,234.6"),
            ("E2", "-1.23E+003"),
            ("e3", "-1.235e+003"),
            ("G", "-1234.5678"),
            ("G2", "-1.2E+03"),
            ("P1", "-123,456.8%"),
            ("R", "-1234.5678"),
        ] {
            assert_eq!(show(number, pattern, "en-US"), text, "{pattern}");
        }
        assert_eq!(show(Number::Int(-42), "D5", "en-US"), "-00042");
        assert_eq!(show(Number::Int(255), "x4", "en-US"), "00ff");
        assert_eq!(show(Number::Float(17.35), "C2", "is-IS"), "17,35\u{a0}kr");
        assert_eq!(show(Number::Float(9.995), "E2", "en-US"), "1.00E+001");
        assert_eq!(show(Number::Float(1e20), "G", "en-US"), "1E+20");
        assert_eq!(
            show(Number::Float(0.00001), "G", "en-US"),
            "1E-05".to_owned().replace("1E-05", "0.00001")
        );
        for bad in ["Q", "D", "F100", "X2"] {
            assert!(
                format(Number::Float(1.5), bad, Culture::EN_US).is_err(),
                "{bad}"
            );
        }
    }

    #[test]
    fn custom_formats() {
        for (number, pattern, text) in [
            (1_234_567_890.0, "#,##0.00", "1,234,567,890.00"),
            (0.5, "#.##", ".5"),
            (0.5, "0.##", "0.5"),
            (5.0, "000", "005"),
            (1234.0, "00-00", "12-34"),
            (123_456.0, "0,", "123"),
            (0.086, "0.0%", "8.6%"),
            (-5.0, "0;(0);zero", "(5)"),
            (0.0, "0;(0);zero", "zero"),
            (0.001, "0;(0);zero", "zero"),
            (86000.0, "0.###E+0", "8.6E+4"),
            (0.00012, "0.0e-00", "1.2e-04"),
            (12.0, "'#'0\\#\" x\"", "#12# x"),
            (-1.5, "0.0", "-1.5"),
            (1_234_567.0, "#,#", "1,234,567"),
        ] {
            assert_eq!(
                show(Number::Float(number), pattern, "en-US"),
                text,
                "{pattern}"
            );
        }
        assert_eq!(
            show(Number::Int(1_234_567_890), "#,##0.00", "is-IS"),
            "1.234.567.890,00"
        );
        assert!(format(Number::Int(1), "0'x", Culture::EN_US).is_err());
    }

    #[test]
    fn large_numbers_keep_their_digits() {
        assert_eq!(
            show(Number::Int(i64::MAX), "N0", "en-US"),
            "9,223,372,036,854,775,807"
        );
        assert_eq!(show(Number::Float(1e300), "F0", "en-US").len(), 301);
    }
}
