//! .NET's format strings for numbers: the standard letters with a precision, and custom
//! patterns. Digits are text throughout, so that nothing is lost on the way.

use super::culture::Culture;
use super::number::Number;

/// Most decimals a format may ask for.
const MAX_PRECISION: usize = 99;

/// A number as decimal digits.
#[derive(Clone, Debug, PartialEq)]
struct Digits {
    negative: bool,
    /// Without leading zeros; `0` for none.
    whole: String,
    fraction: String,
}

impl Digits {
    fn of(number: Number) -> Self {
        let text = match number {
            Number::Int(int) => int.to_string(),
            Number::Float(float) => format!("{float}"),
            Number::Decimal(decimal) => decimal.to_string(),
        };
        let (negative, plain) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.as_str()),
        };
        let (whole, fraction) = plain.split_once('.').unwrap_or((plain, ""));
        Self {
            negative,
            whole: whole.into(),
            fraction: fraction.into(),
        }
    }

    fn is_zero(&self) -> bool {
        let zeros = |text: &str| text.bytes().all(|byte| byte == b'0');
        zeros(&self.whole) && zeros(&self.fraction)
    }

    /// The point so many places to the right, or to the left.
    fn shifted(&self, places: i32) -> Self {
        let mut all = format!("{}{}", self.whole, self.fraction);
        let point = i64::try_from(self.whole.len()).unwrap_or(0) + i64::from(places);
        if point <= 0 {
            let zeros = usize::try_from(-point).unwrap_or(0) + 1;
            all = format!("{}{all}", "0".repeat(zeros));
        }
        let point = usize::try_from(point.max(1)).unwrap_or(1);
        while all.len() < point {
            all.push('0');
        }
        let (whole, fraction) = all.split_at_checked(point).unwrap_or((all.as_str(), ""));
        let whole = match whole.trim_start_matches('0') {
            "" => "0",
            trimmed => trimmed,
        };
        Self {
            negative: self.negative,
            whole: whole.into(),
            fraction: fraction.into(),
        }
    }

    /// Rounded half away from zero to so many decimals, padded with zeros to them.
    fn rounded(&self, decimals: usize) -> Self {
        let mut fraction = self.fraction.clone();
        if fraction.len() <= decimals {
            let missing = decimals - fraction.len();
            fraction.push_str(&"0".repeat(missing));
            return Self {
                fraction,
                ..self.clone()
            };
        }
        let up = fraction
            .as_bytes()
            .get(decimals)
            .is_some_and(|digit| *digit >= b'5');
        fraction.truncate(decimals);
        let mut digits: Vec<u8> = self.whole.bytes().chain(fraction.bytes()).collect();
        if up {
            let mut carry = true;
            for digit in digits.iter_mut().rev() {
                if *digit == b'9' {
                    *digit = b'0';
                } else {
                    *digit += 1;
                    carry = false;
                    break;
                }
            }
            if carry {
                digits.insert(0, b'1');
            }
        }
        let text = String::from_utf8(digits).unwrap_or_default();
        let (whole, fraction) = text
            .split_at_checked(text.len() - decimals)
            .unwrap_or_default();
        Self {
            negative: self.negative,
            whole: whole.into(),
            fraction: fraction.into(),
        }
    }

    /// The power of ten of the first digit, and the number with one digit before the point.
    fn scientific(&self) -> (i32, Self) {
        if self.is_zero() {
            return (0, self.clone());
        }
        let exponent = if self.whole == "0" {
            let zeros = self
                .fraction
                .bytes()
                .take_while(|digit| *digit == b'0')
                .count();
            -1 - i32::try_from(zeros).unwrap_or(0)
        } else {
            i32::try_from(self.whole.len()).unwrap_or(1) - 1
        };
        (exponent, self.shifted(-exponent))
    }
}

/// Digits in groups of three.
fn grouped(whole: &str, separator: &str) -> String {
    let mut out = String::new();
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            out.push_str(separator);
        }
        out.push(digit);
    }
    out
}

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

/// A piece of a custom pattern.
#[derive(Clone, Debug, PartialEq)]
enum Token {
    Zero,
    Digit,
    Point,
    Comma,
    Percent(char),
    Exponent {
        plus: bool,
        digits: usize,
        letter: char,
    },
    Literal(char),
}

/// The sections of a custom pattern in pieces.
fn sections(pattern: &str) -> Result<Vec<Vec<Token>>, String> {
    let mut sections = vec![Vec::new()];
    let mut letters = pattern.chars().peekable();
    while let Some(letter) = letters.next() {
        let token = match letter {
            ';' => {
                sections.push(Vec::new());
                continue;
            }
            '0' => Token::Zero,
            '#' => Token::Digit,
            '.' => Token::Point,
            ',' => Token::Comma,
            '%' | '‰' => Token::Percent(letter),
            'E' | 'e' => exponent(letter, &mut letters),
            '\\' => match letters.next() {
                Some(escaped) => Token::Literal(escaped),
                None => return Err("the format ends with `\\`".into()),
            },
            '\'' | '"' => {
                let section = sections.last_mut();
                let mut inner: Vec<Token> = Vec::new();
                loop {
                    match letters.next() {
                        Some(next) if next == letter => break,
                        Some(next) => inner.push(Token::Literal(next)),
                        None => return Err(format!("the format has no closing `{letter}`")),
                    }
                }
                if let Some(section) = section {
                    section.extend(inner);
                }
                continue;
            }
            other => Token::Literal(other),
        };
        if let Some(section) = sections.last_mut() {
            section.push(token);
        }
    }
    Ok(sections)
}

/// `E0`, `E+0`, `E-0`; else the letter itself.
fn exponent(letter: char, letters: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Token {
    let mut ahead = letters.clone();
    let plus = ahead.next_if_eq(&'+').is_some();
    if !plus {
        ahead.next_if_eq(&'-');
    }
    let mut digits = 0;
    while digits < 10 && ahead.next_if_eq(&'0').is_some() {
        digits += 1;
    }
    if digits == 0 {
        return Token::Literal(letter);
    }
    *letters = ahead;
    Token::Exponent {
        plus,
        digits,
        letter,
    }
}

/// What a section asks for.
#[derive(Debug, Default)]
struct Shape {
    /// Digits before the point, from the first `0`.
    least_whole: usize,
    places_whole: usize,
    /// Decimals up to the last `0`, and in all.
    least_fraction: usize,
    places_fraction: usize,
    grouped: bool,
    shift: i32,
    exponent: bool,
}

fn shape(tokens: &[Token]) -> Shape {
    let mut shape = Shape::default();
    let mut after_point = false;
    let mut seen_zero = false;
    let mut commas = 0;
    for token in tokens {
        match token {
            Token::Zero | Token::Digit => {
                let zero = *token == Token::Zero;
                if after_point {
                    shape.places_fraction += 1;
                    if zero {
                        shape.least_fraction = shape.places_fraction;
                    }
                } else {
                    shape.grouped |= commas > 0 && shape.places_whole > 0;
                    commas = 0;
                    shape.places_whole += 1;
                    seen_zero |= zero;
                    if seen_zero {
                        shape.least_whole += 1;
                    }
                }
            }
            Token::Comma if !after_point && shape.places_whole > 0 => commas += 1,
            Token::Point => after_point = true,
            Token::Percent(mark) => shape.shift += if *mark == '%' { 2 } else { 3 },
            Token::Exponent { .. } => shape.exponent = true,
            Token::Comma | Token::Literal(_) => {}
        }
    }
    shape.shift -= 3 * commas;
    shape
}

fn custom(number: Number, pattern: &str, culture: Culture) -> Result<String, String> {
    let sections = sections(pattern)?;
    let digits = Digits::of(number);
    let section = |index: usize| sections.get(index).filter(|section| !section.is_empty());
    let first = sections.first().map(Vec::as_slice).unwrap_or_default();
    let (tokens, signed) = if digits.is_zero() {
        (section(2).map_or(first, Vec::as_slice), true)
    } else if digits.negative {
        (
            section(1).map_or(first, Vec::as_slice),
            section(1).is_none(),
        )
    } else {
        (first, true)
    };
    let mut shape_of = shape(tokens);
    let mut power = 0;
    let mut shown = digits.shifted(shape_of.shift);
    if shape_of.exponent {
        let (exponent, mantissa) = shown.scientific();
        let before = i32::try_from(shape_of.places_whole).unwrap_or(1).max(1) - 1;
        power = exponent - before;
        shown = mantissa.shifted(before);
    }
    shown = shown.rounded(shape_of.places_fraction);
    // What rounds to zero is shown as zero is.
    let tokens = if shown.is_zero() && !digits.is_zero() && section(2).is_some() {
        let tokens = section(2).map_or(first, Vec::as_slice);
        shape_of = shape(tokens);
        shown = digits
            .shifted(shape_of.shift)
            .rounded(shape_of.places_fraction);
        tokens
    } else {
        tokens
    };
    let mut out = String::new();
    if signed && shown.negative && !shown.is_zero() {
        out.push('-');
    }
    write(&mut out, tokens, &shape_of, &shown, power, culture);
    Ok(out)
}

fn write(
    out: &mut String,
    tokens: &[Token],
    shape: &Shape,
    shown: &Digits,
    power: i32,
    culture: Culture,
) {
    let whole = if shown.whole == "0" && shape.least_whole == 0 {
        ""
    } else {
        shown.whole.as_str()
    };
    let padding = shape.least_whole.saturating_sub(whole.len());
    let whole = format!("{}{whole}", "0".repeat(padding));
    let kept = shown
        .fraction
        .trim_end_matches('0')
        .len()
        .max(shape.least_fraction);
    let fraction = shown.fraction.get(..kept).unwrap_or(&shown.fraction);
    let group = if shape.grouped {
        culture.group_separator()
    } else {
        ""
    };
    let total = whole.len();
    let mut written = 0;
    let mut place = 0;
    let mut decimals = fraction.chars();
    let mut after_point = false;
    for token in tokens {
        match token {
            Token::Zero | Token::Digit if after_point => out.extend(decimals.next()),
            Token::Zero | Token::Digit => {
                place += 1;
                // The first placeholder takes the digits that have none of their own.
                let left = shape.places_whole - place;
                let until = total.saturating_sub(left);
                while written < until {
                    out.extend(whole.chars().nth(written));
                    written += 1;
                    let rest = total - written;
                    if rest > 0 && rest.is_multiple_of(3) {
                        out.push_str(group);
                    }
                }
            }
            Token::Point => {
                if shape.places_whole == 0 && !after_point && !whole.is_empty() {
                    out.push_str(&whole);
                }
                if !after_point && !fraction.is_empty() {
                    out.push_str(culture.decimal_point());
                }
                after_point = true;
            }
            Token::Comma => {}
            Token::Percent(mark) => out.push(*mark),
            Token::Exponent {
                plus,
                digits,
                letter,
            } => {
                let sign = match (power < 0, plus) {
                    (true, _) => "-",
                    (false, true) => "+",
                    (false, false) => "",
                };
                let digits = *digits;
                out.push_str(&format!("{letter}{sign}{:0digits$}", power.unsigned_abs()));
            }
            Token::Literal(letter) => out.push(*letter),
        }
    }
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
