//! Parses timestamps: ISO 8601, dates as people write them in a culture, or exactly by a pattern.

use super::Stamp;
use super::format::{Token, standard, tokens};
use crate::wdl::culture::{Culture, Pattern};
use chrono::{DateTime, Datelike, NaiveDate, NaiveTime, TimeDelta, Utc};

/// Maximum length in bytes of a timestamp.
const MAX_LENGTH: usize = 128;

/// Parses a timestamp in any usual form of the culture. A date without a year is in the year of `now`, and a time
/// without a date is on the day of `now`.
pub(crate) fn parse(text: &str, culture: Culture, now: DateTime<Utc>) -> Option<Stamp> {
    let text = text.trim();
    if text.is_empty() || text.len() > MAX_LENGTH {
        return None;
    }
    iso(text).or_else(|| loose(text, culture, now))
}

/// The fields that were parsed.
#[derive(Debug, Default)]
struct ParsedFields {
    year: Option<i32>,
    month: Option<u32>,
    day: Option<u32>,
    weekday: Option<u32>,
    hour: Option<u32>,
    minute: u32,
    second: u32,
    nanos: u32,
    /// `Some(true)` is after noon.
    pm: Option<bool>,
    /// Minutes east of UTC.
    offset: Option<i64>,
}

impl ParsedFields {
    fn stamp(&self, now: DateTime<Utc>) -> Option<Stamp> {
        let today = now.date_naive();
        let date = match (self.year, self.month, self.day) {
            (None, None, None) => today,
            (year, month, day) => {
                let year = year.unwrap_or_else(|| today.year());
                NaiveDate::from_ymd_opt(year, month?, day.unwrap_or(1))?
            }
        };
        let agrees = self
            .weekday
            .is_none_or(|weekday| date.weekday().num_days_from_sunday() == weekday);
        let known = (1..=9999).contains(&date.year());
        if !agrees || !known {
            return None;
        }
        let hour = match (self.hour.unwrap_or(0), self.pm) {
            (hour, None) => hour,
            (hour @ 1..=12, Some(pm)) => hour % 12 + if pm { 12 } else { 0 },
            _ => return None,
        };
        let time = NaiveTime::from_hms_nano_opt(hour, self.minute, self.second, self.nanos)?;
        let wall = date.and_time(time);
        match self.offset {
            None => Some(Stamp { wall, utc: false }),
            Some(minutes) => Some(Stamp {
                wall: wall.checked_sub_signed(TimeDelta::try_minutes(minutes)?)?,
                utc: true,
            }),
        }
    }
}

/// A reader of the remaining text.
struct Rest<'t>(&'t str);

impl Rest<'_> {
    fn peek(&self) -> Option<char> {
        self.0.chars().next()
    }

    fn accept(&mut self, wanted: char) -> bool {
        match self.0.strip_prefix(wanted) {
            Some(rest) => {
                self.0 = rest;
                true
            }
            None => false,
        }
    }

    fn spaces(&mut self) {
        self.0 = self.0.trim_start();
    }

    /// Reads a number of `least` to `most` digits.
    fn number(&mut self, least: usize, most: usize) -> Option<u32> {
        let count = self
            .0
            .bytes()
            .take(most)
            .take_while(u8::is_ascii_digit)
            .count();
        if count < least {
            return None;
        }
        let (digits, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        digits.parse().ok()
    }

    /// Reads the decimals of a second as nanoseconds. Decimals after the seventh are ignored.
    fn nanos(&mut self) -> Option<u32> {
        let count = self.0.bytes().take_while(u8::is_ascii_digit).count();
        let (digits, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        let significant = digits.get(..count.min(7))?;
        format!("{significant:0<9}")
            .parse()
            .ok()
            .filter(|_| count > 0)
    }

    /// Reads the longest word that matches without regard to case, and returns its index.
    fn word(&mut self, words: &[&str]) -> Option<usize> {
        let lower = self.0.to_lowercase();
        let found = words
            .iter()
            .enumerate()
            .filter(|(_, word)| !word.is_empty() && lower.starts_with(&word.to_lowercase()))
            .max_by_key(|(_, word)| word.len())?;
        let letters = found.1.chars().count();
        self.0 = self
            .0
            .char_indices()
            .nth(letters)
            .map_or("", |(at, _)| self.0.get(at..).unwrap_or_default());
        Some(found.0)
    }

    /// Reads `Z`, `+hh`, `+hhmm` or `+hh:mm`, and returns minutes east of UTC.
    fn zone(&mut self) -> Option<i64> {
        if self.accept('Z') || self.accept('z') {
            return Some(0);
        }
        let sign = match self.peek()? {
            '+' => 1,
            '-' => -1,
            _ => return None,
        };
        self.0 = self.0.get(1..)?;
        let hours = i64::from(self.number(1, 2)?);
        let colon = self.accept(':');
        let minutes = match self.number(2, 2) {
            Some(minutes) => i64::from(minutes),
            None if colon => return None,
            None => 0,
        };
        (hours <= 14 && minutes <= 59).then_some(sign * (hours * 60 + minutes))
    }

    /// Reads `hh:mm[:ss[.f…]]` into the fields.
    fn clock(&mut self, found: &mut ParsedFields) -> Option<()> {
        found.hour = Some(self.number(1, 2)?);
        if !self.accept(':') {
            return None;
        }
        found.minute = self.number(1, 2)?;
        if self.accept(':') {
            found.second = self.number(1, 2)?;
            if self.accept('.') || self.accept(',') {
                found.nanos = self.nanos()?;
            }
        }
        Some(())
    }
}

/// Parses `yyyy-MM-dd[Thh:mm[:ss[.f…]]][zone]`.
fn iso(text: &str) -> Option<Stamp> {
    let mut rest = Rest(text);
    let mut found = ParsedFields {
        year: i32::try_from(rest.number(4, 4)?).ok(),
        ..ParsedFields::default()
    };
    if !rest.accept('-') {
        return None;
    }
    found.month = Some(rest.number(1, 2)?);
    if rest.accept('-') {
        found.day = Some(rest.number(1, 2)?);
    }
    if rest.accept('T') || rest.accept('t') || rest.accept(' ') {
        rest.spaces();
        rest.clock(&mut found)?;
        rest.spaces();
    }
    found.offset = rest.zone();
    rest.0
        .is_empty()
        .then(|| found.stamp(DateTime::UNIX_EPOCH))
        .flatten()
}

/// Parses a date as people write it: numbers in the culture's order, names of months and days, a clock.
fn loose(text: &str, culture: Culture, now: DateTime<Utc>) -> Option<Stamp> {
    let mut rest = Rest(text);
    let mut found = ParsedFields::default();
    let mut numbers: Vec<(u32, usize)> = Vec::new();
    let (am, pm) = culture.am_pm();
    loop {
        rest.0 = rest
            .0
            .trim_start_matches([' ', ',', '/', '\u{a0}', '\u{202f}']);
        let Some(letter) = rest.peek() else { break };
        if letter.is_ascii_digit() {
            let before = rest.0;
            let digits = before.bytes().take_while(u8::is_ascii_digit).count();
            if before.as_bytes().get(digits) == Some(&b':') {
                if found.hour.is_some() {
                    return None;
                }
                rest.clock(&mut found)?;
                continue;
            }
            numbers.push((rest.number(1, 4)?, digits));
            if digits > 4 || numbers.len() > 3 {
                return None;
            }
            // The separators include the point in `15.`, the hyphen in `15-` and the suffixes of CJK dates.
            rest.0 = rest
                .0
                .trim_start_matches(['.', '年', '月', '日', '년', '월', '일']);
            if numbers.len() < 3 && found.hour.is_none() {
                rest.0 = rest.0.strip_prefix('-').unwrap_or(rest.0);
            }
        } else if found.hour.is_some() && matches!(letter, '+' | '-') {
            found.offset = Some(rest.zone()?);
        } else {
            word(&mut rest, &mut found, &mut numbers, culture, (am, pm))?;
        }
    }
    assign(&mut found, &numbers, culture)?;
    found.stamp(now)
}

fn word(
    rest: &mut Rest<'_>,
    found: &mut ParsedFields,
    numbers: &mut Vec<(u32, usize)>,
    culture: Culture,
    (am, pm): (&str, &str),
) -> Option<()> {
    let month = rest
        .word(culture.months(true))
        .or_else(|| rest.word(culture.months(false)));
    let month = match month {
        Some(month) => Some(month),
        // The short name of a month may be the beginning of a day's full name, so full names of days are tried first.
        None => match rest.word(culture.days()) {
            Some(day) => {
                found.weekday = u32::try_from(day).ok();
                return Some(());
            }
            None => rest.word(culture.short_months()),
        },
    };
    if let Some(month) = month {
        if found.month.is_some() {
            return None;
        }
        found.month = u32::try_from(month + 1).ok();
        rest.0 = rest.0.trim_start_matches(['.', '-']);
        return Some(());
    }
    if let Some(day) = rest.word(culture.short_days()) {
        found.weekday = u32::try_from(day).ok();
        rest.0 = rest.0.trim_start_matches('.');
        return Some(());
    }
    if let Some(index) = rest.word(&[am, pm, "AM", "PM"]) {
        if found.hour.is_none() {
            found.hour = Some(numbers.pop()?.0);
        }
        found.pm = Some(index % 2 == 1);
        return Some(());
    }
    if found.hour.is_some() && rest.word(&["GMT", "UTC", "Z"]).is_some() {
        found.offset = Some(0);
        return Some(());
    }
    // A date in another order may have a `T` before its time, and Spanish and Portuguese dates contain `de`.
    let known = rest.word(&["de", "den", "T"]).is_some();
    (known && !rest.0.is_empty()).then_some(())
}

/// Assigns the numbers to year, month and day.
fn assign(found: &mut ParsedFields, numbers: &[(u32, usize)], culture: Culture) -> Option<()> {
    let year = |(value, digits): (u32, usize)| -> Option<i32> {
        let full = match (digits, value) {
            (1 | 2, 0..=49) => value + 2000,
            (1 | 2, _) => value + 1900,
            _ => value,
        };
        i32::try_from(full).ok()
    };
    let long = |(_, digits): (u32, usize)| digits >= 3;
    if found.month.is_some() {
        match *numbers {
            [] => {}
            [only] if long(only) => found.year = year(only),
            [only] => found.day = Some(only.0),
            [first, second] if long(first) => {
                found.year = year(first);
                found.day = Some(second.0);
            }
            [first, second] => {
                found.day = Some(first.0);
                found.year = year(second);
            }
            _ => return None,
        }
        return Some(());
    }
    let order = order(culture);
    match *numbers {
        [] => {}
        [a, b, c] => {
            let (y, m, d) = match order {
                _ if long(a) => (a, b, c),
                Order::Year if !long(c) => (a, b, c),
                Order::Month => (c, a, b),
                Order::Day | Order::Year => (c, b, a),
            };
            found.year = year(y);
            found.month = Some(m.0);
            found.day = Some(d.0);
        }
        [a, b] if long(a) => {
            found.year = year(a);
            found.month = Some(b.0);
        }
        [a, b] if long(b) => {
            found.month = Some(a.0);
            found.year = year(b);
        }
        [a, b] => {
            let day_first = matches!(order, Order::Day);
            let (month, day) = if day_first { (b, a) } else { (a, b) };
            found.month = Some(month.0);
            found.day = Some(day.0);
        }
        _ => return None,
    }
    Some(())
}

/// The field with which a date of numbers begins.
enum Order {
    Year,
    Month,
    Day,
}

fn order(culture: Culture) -> Order {
    match culture.pattern(Pattern::ShortDate).chars().next() {
        Some('y') => Order::Year,
        Some('M') => Order::Month,
        _ => Order::Day,
    }
}

/// Parses a timestamp exactly by a .NET pattern. Returns an error if the pattern is not valid, and `None` if the text
/// does not match it.
pub(crate) fn parse_exact(
    text: &str,
    pattern: &str,
    culture: Culture,
    now: DateTime<Utc>,
) -> Result<Option<Stamp>, String> {
    let mut letters = pattern.chars();
    let expanded = match (letters.next(), letters.next()) {
        (Some(letter), None) => standard(letter, culture)
            .ok_or_else(|| format!("`{pattern}` is not a valid format of a date"))?,
        _ => pattern.to_owned(),
    };
    let tokens = tokens(&expanded)?;
    if text.len() > MAX_LENGTH {
        return Ok(None);
    }
    let mut rest = Rest(text.trim());
    let mut found = ParsedFields::default();
    for token in &tokens {
        if exact(&mut rest, &mut found, token, culture).is_none() {
            return Ok(None);
        }
    }
    Ok(rest.0.is_empty().then(|| found.stamp(now)).flatten())
}

fn exact(
    rest: &mut Rest<'_>,
    found: &mut ParsedFields,
    token: &Token,
    culture: Culture,
) -> Option<()> {
    let (letter, count) = match token {
        Token::Literal(letter) => return rest.accept(*letter).then_some(()),
        Token::Field(letter, count) => (*letter, *count),
    };
    let least = count.min(2);
    match letter {
        'd' if count <= 2 => found.day = Some(rest.number(least, 2)?),
        'd' => {
            let names = if count == 3 {
                culture.short_days()
            } else {
                culture.days()
            };
            found.weekday = u32::try_from(rest.word(names)?).ok();
        }
        'M' if count <= 2 => found.month = Some(rest.number(least, 2)?),
        'M' => {
            let index = if count == 3 {
                rest.word(culture.short_months())
            } else {
                let inflected = rest.word(culture.months(true));
                inflected.or_else(|| rest.word(culture.months(false)))
            };
            found.month = u32::try_from(index? + 1).ok();
        }
        'y' => {
            let value = if count <= 2 {
                rest.number(least, 2)?
            } else {
                rest.number(count.min(4), 4)?
            };
            let full = match (count, value) {
                (1 | 2, 0..=49) => value + 2000,
                (1 | 2, _) => value + 1900,
                _ => value,
            };
            found.year = i32::try_from(full).ok();
        }
        'h' | 'H' => found.hour = Some(rest.number(least, 2)?),
        'm' => found.minute = rest.number(least, 2)?,
        's' => found.second = rest.number(least, 2)?,
        'f' => {
            let digits = rest
                .0
                .get(..count)
                .filter(|part| part.bytes().all(|b| b.is_ascii_digit()))?;
            found.nanos = format!("{digits:0<9}").parse().ok()?;
            rest.0 = rest.0.get(count..)?;
        }
        'F' => {
            let digits = rest
                .0
                .bytes()
                .take(count)
                .take_while(u8::is_ascii_digit)
                .count();
            let (part, left) = rest.0.split_at_checked(digits)?;
            found.nanos = format!("{part:0<9}").parse().ok()?;
            rest.0 = left;
        }
        't' => {
            let (am, pm) = culture.am_pm();
            found.pm = Some(rest.word(&[am, pm, "AM", "PM", "A", "P"])? % 2 == 1);
        }
        'z' => found.offset = Some(rest.zone()?),
        'K' => found.offset = rest.zone(),
        ':' => return (rest.accept(culture.time_separator()) || rest.accept(':')).then_some(()),
        '/' => return (rest.accept(culture.date_separator()) || rest.accept('/')).then_some(()),
        _ => {}
    }
    Some(())
}
