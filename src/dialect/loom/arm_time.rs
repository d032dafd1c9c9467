//! The functions of deployment expressions that reckon with dates. A deployment's years have 365
//! days and its months 30, so that every duration has one length.

use super::arm_functions::shared;
use crate::expression::Value;
use chrono::{Datelike, NaiveDateTime, TimeDelta};

/// How a moment is written if no format is given.
const SECONDS: &str = "yyyy-MM-ddTHH:mm:ssZ";
/// What `utcNow()` gives, for chrono.
const COMPACT: &str = "%Y%m%dT%H%M%SZ";
/// How a moment is handed to the functions of WDL: they keep seven decimals.
const EXACT: &str = "%Y-%m-%dT%H:%M:%S%.9f";
const NANOS: i128 = 1_000_000_000;

/// A value in a form of .NET.
pub(super) fn formatted(function: &str, value: Value, form: &str) -> Result<Value, String> {
    shared(function, vec![value, Value::text(form)])
}

/// `dateTimeAdd(base, duration, format)`.
pub(super) fn add(base: &str, duration: &str, form: &str) -> Result<Value, String> {
    let length = length(duration).ok_or_else(|| {
        format!("`dateTimeAdd` takes a duration such as P1D or -PT1H30M, and has `{duration}`")
    })?;
    let (moment, zone) = moment(base)?;
    let moment = moment
        .checked_add_signed(length)
        .filter(|moment| (1..=9999).contains(&moment.year()))
        .ok_or_else(|| String::from("`dateTimeAdd` gives a year outside of 1 to 9999"))?;
    let moment = Value::text(format!("{}{zone}", moment.format(EXACT)));
    let form = if form.is_empty() { SECONDS } else { form };
    formatted("formatDateTime", moment, form)
}

/// `dateTimeFromEpoch(seconds)`.
pub(super) fn from_epoch(seconds: Value) -> Result<Value, String> {
    let epoch = Value::text("1970-01-01T00:00:00Z");
    let moment = shared("addSeconds", vec![epoch, seconds])?;
    formatted("formatDateTime", moment, SECONDS)
}

/// A moment without its zone, and the zone that is written after it: `Z` or none.
fn moment(text: &str) -> Result<(NaiveDateTime, &'static str), String> {
    if let Ok(compact) = NaiveDateTime::parse_from_str(text, COMPACT) {
        return Ok((compact, "Z"));
    }
    let none = || format!("`{text}` is no moment such as 2020-01-30T00:00:00Z");
    let exact = formatted("formatDateTime", Value::text(text), "o").map_err(|_| none())?;
    let exact = exact.as_str().unwrap_or_default();
    let (wall, zone) = match exact.strip_suffix('Z') {
        Some(wall) => (wall, "Z"),
        None => (exact, ""),
    };
    let wall = NaiveDateTime::parse_from_str(wall, "%Y-%m-%dT%H:%M:%S%.f");
    Ok((wall.map_err(|_| none())?, zone))
}

/// How long an ISO 8601 duration is.
fn length(text: &str) -> Option<TimeDelta> {
    let (sign, rest) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text),
    };
    let rest = rest.strip_prefix('P').filter(|rest| !rest.is_empty())?;
    let (date, clock) = match rest.split_once('T') {
        Some((_, "")) => return None,
        Some((date, clock)) => (date, clock),
        None => (rest, ""),
    };
    let day = 86_400;
    let date = parts(
        date,
        &[
            ('Y', 365 * day),
            ('M', 30 * day),
            ('W', 7 * day),
            ('D', day),
        ],
    )?;
    let clock = parts(clock, &[('H', 3600), ('M', 60), ('S', 1)])?;
    let nanos = date.checked_add(clock)?.checked_mul(sign)?;
    let seconds = i64::try_from(nanos.div_euclid(NANOS)).ok()?;
    TimeDelta::new(seconds, u32::try_from(nanos.rem_euclid(NANOS)).ok()?)
}

/// The sum of numbers that each have one of these units, in this order, in nanoseconds.
fn parts(text: &str, units: &[(char, i128)]) -> Option<i128> {
    let mut rest = text;
    let mut sum = 0_i128;
    for (unit, seconds) in units {
        let Some((number, after)) = rest.split_once(*unit) else {
            continue;
        };
        let nanos = nanos(number, *unit == 'S')?;
        sum = sum.checked_add(nanos.checked_mul(*seconds)?)?;
        rest = after;
    }
    rest.is_empty().then_some(sum)
}

/// A number times a thousand million. Only seconds may have decimals.
fn nanos(number: &str, may_have_decimals: bool) -> Option<i128> {
    let (whole, decimals) = match number.split_once('.') {
        Some((whole, decimals)) if may_have_decimals && !decimals.is_empty() => (whole, decimals),
        Some(_) => return None,
        None => (number, "0"),
    };
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(decimals) {
        return None;
    }
    let decimals = decimals.get(..decimals.len().min(9))?;
    let decimals: i128 = format!("{decimals:0<9}").parse().ok()?;
    let whole: i128 = whole.parse().ok()?;
    whole.checked_mul(NANOS)?.checked_add(decimals)
}

#[cfg(test)]
mod tests {
    use super::length;
    use chrono::TimeDelta;

    #[test]
    fn a_duration_has_one_length() {
        for (text, seconds) in [
            ("P1Y2M3D", (365 + 60 + 3) * 86_400),
            ("-P3Y", -3 * 365 * 86_400),
            ("P2W", 14 * 86_400),
            ("PT1H1M1S", 3661),
            ("P1DT1M", 86_460),
        ] {
            assert_eq!(length(text), TimeDelta::try_seconds(seconds), "{text}");
        }
        assert_eq!(length("-PT0.5S"), TimeDelta::try_milliseconds(-500));
        let endless = format!("P{}D", "9".repeat(60));
        for text in [
            "", "-", "P", "PT", "P1DT", "junk", "1h", "P1", "1D", "P1H", "PT1D", "P1D1Y", "P-1D",
            "P1.5D", "PT.5S", "PT1.S", "p1d", "P1D ", &endless,
        ] {
            assert_eq!(length(text), None, "{text}");
        }
    }
}
