//! Time spans like .NET's TimeSpan: `[-][d.]hh:mm:ss[.fffffff]`.

use super::TICK;
use crate::wdl::culture::Culture;
use chrono::TimeDelta;

/// Number of ticks of a second.
const SECOND: i64 = 10_000_000;
/// Number of ticks of a day.
const DAY: i64 = 86_400 * SECOND;

/// Converts a difference to ticks; saturates far outside of the years 1 to 9999.
pub(crate) fn ticks(delta: TimeDelta) -> i64 {
    let whole = delta.num_seconds().saturating_mul(SECOND);
    whole.saturating_add(i64::from(delta.subsec_nanos()) / TICK)
}

/// Parses `[-]d` or `[-][d.]hh:mm[:ss[.f…]]`.
pub(crate) fn parse(text: &str) -> Option<i64> {
    let text = text.trim();
    let (negative, rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let digits = |part: &str| -> Option<i64> {
        let plain = !part.is_empty() && part.len() <= 8;
        let plain = plain && part.bytes().all(|byte| byte.is_ascii_digit());
        plain.then(|| part.parse().ok()).flatten()
    };
    let (days, clock) = match rest.split_once(':') {
        None => (digits(rest)?, None),
        Some((before, _)) => match before.split_once('.') {
            Some((days, _)) => (digits(days)?, rest.get(days.len() + 1..)),
            None => (0, Some(rest)),
        },
    };
    let mut total = days.checked_mul(DAY)?;
    if let Some(clock) = clock {
        let parts: Vec<&str> = clock.split(':').collect();
        let (hours, minutes, seconds) = match parts.as_slice() {
            [hours, minutes] => (digits(hours)?, digits(minutes)?, 0),
            [hours, minutes, seconds] => {
                let (whole, fraction) = seconds.split_once('.').unwrap_or((seconds, "0"));
                if fraction.len() > 7 {
                    return None;
                }
                let padded = format!("{fraction:0<7}");
                let ticks = digits(whole)? * SECOND + digits(&padded)?;
                (digits(hours)?, digits(minutes)?, ticks)
            }
            _ => return None,
        };
        if hours > 23 || minutes > 59 || seconds >= 60 * SECOND {
            return None;
        }
        total = total.checked_add((hours * 60 + minutes) * 60 * SECOND + seconds)?;
    }
    Some(if negative { -total } else { total })
}

struct Fields {
    days: u64,
    hours: u64,
    minutes: u64,
    seconds: u64,
    fraction: u64,
}

fn fields(ticks: i64) -> Fields {
    let all = ticks.unsigned_abs();
    let seconds = all / SECOND.unsigned_abs();
    Fields {
        days: seconds / 86_400,
        hours: seconds / 3_600 % 24,
        minutes: seconds / 60 % 60,
        seconds: seconds % 60,
        fraction: all % SECOND.unsigned_abs(),
    }
}

/// Formats like `ToString("c")`.
pub(crate) fn show(ticks: i64) -> String {
    let f = fields(ticks);
    let sign = if ticks < 0 { "-" } else { "" };
    let days = if f.days > 0 {
        format!("{}.", f.days)
    } else {
        String::new()
    };
    let fraction = if f.fraction > 0 {
        format!(".{:07}", f.fraction)
    } else {
        String::new()
    };
    format!(
        "{sign}{days}{:02}:{:02}:{:02}{fraction}",
        f.hours, f.minutes, f.seconds
    )
}

/// Formats a span in one of .NET's formats. The error describes what is wrong with the format.
pub(crate) fn format(ticks: i64, format: &str, culture: Culture) -> Result<String, String> {
    let f = fields(ticks);
    let sign = if ticks < 0 { "-" } else { "" };
    let point = culture.decimal_point();
    match format {
        "" | "c" | "t" | "T" => return Ok(show(ticks)),
        "g" => {
            let days = if f.days > 0 {
                format!("{}:", f.days)
            } else {
                String::new()
            };
            let digits = format!("{:07}", f.fraction);
            let digits = digits.trim_end_matches('0');
            let mark = if digits.is_empty() { "" } else { point };
            let (h, m, s) = (f.hours, f.minutes, f.seconds);
            return Ok(format!("{sign}{days}{h}:{m:02}:{s:02}{mark}{digits}"));
        }
        "G" => {
            let (d, h, m, s) = (f.days, f.hours, f.minutes, f.seconds);
            return Ok(format!(
                "{sign}{d}:{h:02}:{m:02}:{s:02}{point}{:07}",
                f.fraction
            ));
        }
        _ => {}
    }
    if format.chars().count() == 1 {
        return Err(format!("`{format}` is not a valid format of a time span"));
    }
    custom(&f, format)
}

fn custom(f: &Fields, format: &str) -> Result<String, String> {
    let mut out = String::new();
    let mut letters = format.chars().peekable();
    while let Some(letter) = letters.next() {
        let mut count = 1;
        while matches!(letter, 'd' | 'h' | 'm' | 's' | 'f' | 'F')
            && letters.next_if_eq(&letter).is_some()
        {
            count += 1;
        }
        let widest = match letter {
            'd' => 8,
            'h' | 'm' | 's' => 2,
            _ => 7,
        };
        if count > widest {
            return Err(format!(
                "`{letter}` is repeated {count} times; {widest} are allowed"
            ));
        }
        match letter {
            'd' => out.push_str(&format!("{:0count$}", f.days)),
            'h' => out.push_str(&format!("{:0count$}", f.hours)),
            'm' => out.push_str(&format!("{:0count$}", f.minutes)),
            's' => out.push_str(&format!("{:0count$}", f.seconds)),
            'f' | 'F' => {
                let digits = format!("{:07}", f.fraction);
                let digits = digits.get(..count).unwrap_or_default();
                let shown = if letter == 'F' {
                    digits.trim_end_matches('0')
                } else {
                    digits
                };
                out.push_str(shown);
            }
            '\\' => match letters.next() {
                Some(escaped) => out.push(escaped),
                None => return Err("the format ends with `\\`".into()),
            },
            '%' => {}
            '\'' | '"' => {
                let mut closed = false;
                for inner in letters.by_ref() {
                    if inner == letter {
                        closed = true;
                        break;
                    }
                    out.push(inner);
                }
                if !closed {
                    return Err(format!("the format has no closing `{letter}`"));
                }
            }
            other => {
                return Err(format!(
                    "`{other}` in the format of a time span needs a `\\` before it"
                ));
            }
        }
    }
    Ok(out)
}
