//! .NET's format strings for dates: the standard letters and custom patterns.

use super::Stamp;
use crate::wdl::culture::{Culture, Pattern};
use chrono::{Datelike, Timelike};

/// The default format, `o`: ISO 8601 with seven decimals.
pub(crate) const ROUND_TRIP: &str = "yyyy'-'MM'-'dd'T'HH':'mm':'ss'.'fffffffK";

/// Returns the custom pattern for a standard letter.
pub(crate) fn standard(letter: char, culture: Culture) -> Option<String> {
    let pattern = |wanted: Pattern| culture.pattern(wanted);
    let both = |date: Pattern, time: Pattern| format!("{} {}", pattern(date), pattern(time));
    Some(match letter {
        'd' => pattern(Pattern::ShortDate),
        'D' => pattern(Pattern::LongDate),
        'f' => both(Pattern::LongDate, Pattern::ShortTime),
        'F' | 'U' => both(Pattern::LongDate, Pattern::LongTime),
        'g' => both(Pattern::ShortDate, Pattern::ShortTime),
        'G' => both(Pattern::ShortDate, Pattern::LongTime),
        'm' | 'M' => pattern(Pattern::MonthDay),
        'o' | 'O' => ROUND_TRIP.into(),
        'r' | 'R' => "ddd, dd MMM yyyy HH':'mm':'ss 'GMT'".into(),
        's' => "yyyy'-'MM'-'dd'T'HH':'mm':'ss".into(),
        't' => pattern(Pattern::ShortTime),
        'T' => pattern(Pattern::LongTime),
        'u' => "yyyy'-'MM'-'dd HH':'mm':'ss'Z'".into(),
        'y' | 'Y' => pattern(Pattern::YearMonth),
        _ => return None,
    })
}

/// Returns true for formats that are the same in every culture.
fn invariant(letter: char) -> bool {
    matches!(letter, 'o' | 'O' | 'r' | 'R' | 's' | 'u')
}

/// Writes a timestamp in a .NET format. The error describes what is wrong with the format.
pub(crate) fn format(stamp: Stamp, format: &str, culture: Culture) -> Result<String, String> {
    let mut letters = format.chars();
    match (letters.next(), letters.next()) {
        (None, _) => custom(stamp, ROUND_TRIP, culture),
        (Some(letter), None) => {
            let culture = if invariant(letter) {
                Culture::EN_US
            } else {
                culture
            };
            match standard(letter, culture) {
                Some(pattern) => custom(stamp, &pattern, culture),
                None => Err(format!("`{format}` is not a valid format of a date")),
            }
        }
        _ => custom(stamp, format, culture),
    }
}

/// A token of a pattern.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    /// A letter and its number of repetitions.
    Field(char, usize),
    Literal(char),
}

/// Splits a custom pattern into tokens.
pub(super) fn tokens(pattern: &str) -> Result<Vec<Token>, String> {
    let mut tokens = Vec::new();
    let mut letters = pattern.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            'd' | 'f' | 'F' | 'g' | 'h' | 'H' | 'K' | 'm' | 'M' | 's' | 't' | 'y' | 'z' => {
                let mut count = 1;
                while letters.next_if_eq(&letter).is_some() {
                    count += 1;
                }
                if matches!(letter, 'f' | 'F') && count > 7 {
                    return Err(format!(
                        "`{letter}` is repeated {count} times; 7 are allowed"
                    ));
                }
                tokens.push(Token::Field(letter, count));
            }
            ':' | '/' => tokens.push(Token::Field(letter, 1)),
            '\'' | '"' => loop {
                match letters.next() {
                    Some('\\') => match letters.next() {
                        Some(escaped) => tokens.push(Token::Literal(escaped)),
                        None => return Err("the format ends with `\\`".into()),
                    },
                    Some(inner) if inner == letter => break,
                    Some(inner) => tokens.push(Token::Literal(inner)),
                    None => return Err(format!("the format has no closing `{letter}`")),
                }
            },
            '\\' => match letters.next() {
                Some(escaped) => tokens.push(Token::Literal(escaped)),
                None => return Err("the format ends with `\\`".into()),
            },
            '%' => {
                if matches!(letters.peek(), None | Some('%')) {
                    return Err("`%` in the format must precede a letter".into());
                }
            }
            other => tokens.push(Token::Literal(other)),
        }
    }
    Ok(tokens)
}

fn custom(stamp: Stamp, pattern: &str, culture: Culture) -> Result<String, String> {
    let tokens = tokens(pattern)?;
    let has_day = tokens
        .iter()
        .any(|token| matches!(token, Token::Field('d', 1 | 2)));
    let mut out = String::new();
    for token in &tokens {
        match token {
            Token::Literal(letter) => out.push(*letter),
            Token::Field('F', count) => {
                let digits = fraction(stamp, *count);
                let shown = digits.trim_end_matches('0');
                if shown.is_empty() && out.ends_with('.') {
                    out.pop();
                }
                out.push_str(shown);
            }
            Token::Field(letter, count) => {
                out.push_str(&field(stamp, *letter, *count, culture, has_day));
            }
        }
    }
    Ok(out)
}

fn fraction(stamp: Stamp, count: usize) -> String {
    let ticks = stamp.wall.nanosecond() % 1_000_000_000 / 100;
    let digits = format!("{ticks:07}");
    digits.get(..count.min(7)).unwrap_or_default().to_owned()
}

fn name(names: &[&str], index: u32) -> String {
    let index = usize::try_from(index).unwrap_or(usize::MAX);
    names.get(index).copied().unwrap_or_default().to_owned()
}

/// Writes a number with at least `count` digits; `most` limits the padding.
fn padded(value: u32, count: usize, most: usize) -> String {
    let width = count.min(most);
    format!("{value:0width$}")
}

fn field(stamp: Stamp, letter: char, count: usize, culture: Culture, has_day: bool) -> String {
    let wall = stamp.wall;
    match letter {
        'd' => match count {
            1 | 2 => padded(wall.day(), count, 2),
            3 => name(culture.short_days(), wall.weekday().num_days_from_sunday()),
            _ => name(culture.days(), wall.weekday().num_days_from_sunday()),
        },
        'M' => match count {
            1 | 2 => padded(wall.month(), count, 2),
            3 => name(culture.short_months(), wall.month0()),
            _ => name(culture.months(has_day), wall.month0()),
        },
        'y' => {
            let year = u32::try_from(wall.year()).unwrap_or(0);
            if count <= 2 {
                padded(year % 100, count, 2)
            } else {
                padded(year, count, 16)
            }
        }
        'H' => padded(wall.hour(), count, 2),
        'h' => padded(wall.hour12().1, count, 2),
        'm' => padded(wall.minute(), count, 2),
        's' => padded(wall.second(), count, 2),
        'f' => fraction(stamp, count),
        't' => {
            let (am, pm) = culture.am_pm();
            let word = if wall.hour() < 12 { am } else { pm };
            let shown = if count == 1 { 1 } else { usize::MAX };
            word.chars().take(shown).collect()
        }
        'g' => "A.D.".into(),
        'K' => if stamp.utc { "Z" } else { "" }.into(),
        // The engine's own zone is UTC.
        'z' => match count {
            1 => "+0".into(),
            2 => "+00".into(),
            _ => "+00:00".into(),
        },
        ':' => culture.time_separator().into(),
        '/' => culture.date_separator().into(),
        _ => String::new(),
    }
}
