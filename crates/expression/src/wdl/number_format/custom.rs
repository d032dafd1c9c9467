//! Custom format strings for numbers: `#,##0.00;(0)`.

use super::super::culture::Culture;
use super::super::number::Number;
use super::digits::Digits;

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

/// Splits a custom pattern into sections of tokens.
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

/// Parses `E0`, `E+0`, `E-0`. Any other text is the letter itself.
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

/// The digits and options that a section requires.
#[derive(Debug, Default)]
struct FormatShape {
    /// Least number of digits before the point: those from the first `0` on.
    least_whole: usize,
    places_whole: usize,
    /// Least number of decimals (up to the last `0`), and greatest number.
    least_fraction: usize,
    places_fraction: usize,
    grouped: bool,
    shift: i32,
    exponent: bool,
}

fn shape(tokens: &[Token]) -> FormatShape {
    let mut shape = FormatShape::default();
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

pub(super) fn custom(number: Number, pattern: &str, culture: Culture) -> Result<String, String> {
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
    // A number that is rounded to zero is shown like zero: by the third section, or else by the first.
    let other = digits.negative || section(2).is_some();
    let tokens = if shown.is_zero() && !digits.is_zero() && other {
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
    shape: &FormatShape,
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
    let fraction_len = shown
        .fraction
        .trim_end_matches('0')
        .len()
        .max(shape.least_fraction);
    let fraction = shown
        .fraction
        .get(..fraction_len)
        .unwrap_or(&shown.fraction);
    let group = if shape.grouped {
        culture.group_separator()
    } else {
        ""
    };
    let total = whole.len();
    let mut digits = whole.chars();
    let mut written = 0;
    let mut place = 0;
    let mut decimals = fraction.chars();
    let mut after_point = false;
    for token in tokens {
        match token {
            Token::Zero | Token::Digit if after_point => out.extend(decimals.next()),
            Token::Zero | Token::Digit => {
                place += 1;
                // The first placeholder writes all digits that have no placeholder of their own.
                let left = shape.places_whole - place;
                let until = total.saturating_sub(left);
                while written < until {
                    out.extend(digits.next());
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
