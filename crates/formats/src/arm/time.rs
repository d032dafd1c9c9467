//! The date functions of deployment expressions.
//! In a deployment, a year has 365 days and a month has 30, so that every duration has a fixed length.

use super::functions::{as_text, wdl};
use chrono::{Datelike, NaiveDateTime, TimeDelta};
use windlass_expression::Value;
use windlass_value::time::parse_nominal_duration;

/// The default format of an instant.
const SECONDS: &str = "yyyy-MM-ddTHH:mm:ssZ";
/// The default format of `utcNow()`, in the notation of chrono.
const COMPACT: &str = "%Y%m%dT%H%M%SZ";
/// The format, in the notation of chrono, of an instant that is passed to the functions of WDL. They preserve seven
/// decimals.
const EXACT: &str = "%Y-%m-%dT%H:%M:%S%.9f";

/// The time at which every deployment happens, because this crate uses no clock.
const NOW: &str = "2000-01-01T00:00:00Z";

/// Computes `utcNow(format)`.
pub(super) fn now(arguments: &[Value]) -> Result<Value, String> {
    let form = arguments.first().map_or("yyyyMMddTHHmmssZ".into(), as_text);
    formatted("formatDateTime", Value::text(NOW), &form)
}

/// Formats a value with a format in the notation of .NET.
pub(super) fn formatted(function: &str, value: Value, form: &str) -> Result<Value, String> {
    wdl(function, vec![value, Value::text(form)])
}

/// Computes `dateTimeAdd(base, duration, format)`.
pub(super) fn add(arguments: &[Value]) -> Result<Value, String> {
    let [base, duration, form] =
        [0, 1, 2].map(|index| arguments.get(index).map(as_text).unwrap_or_default());
    let length = parse_duration(&duration).ok_or_else(|| {
        format!("`dateTimeAdd` needs a duration such as P1D or -PT1H30M, and has `{duration}`")
    })?;
    let (moment, zone) = parse_instant(&base)?;
    let moment = moment
        .checked_add_signed(length)
        .filter(|moment| (1..=9999).contains(&moment.year()))
        .ok_or_else(|| String::from("`dateTimeAdd` returns a year outside of 1 to 9999"))?;
    let moment = Value::text(format!("{}{zone}", moment.format(EXACT)));
    let form = if form.is_empty() { SECONDS } else { &form };
    formatted("formatDateTime", moment, form)
}

/// Computes `dateTimeFromEpoch(seconds)`.
pub(super) fn from_epoch(arguments: &[Value]) -> Result<Value, String> {
    let seconds = arguments.first().cloned().unwrap_or_default();
    let epoch = Value::text("1970-01-01T00:00:00Z");
    let moment = wdl("addSeconds", vec![epoch, seconds])?;
    formatted("formatDateTime", moment, SECONDS)
}

/// Computes `dateTimeToEpoch(moment)`.
pub(super) fn to_epoch(arguments: &[Value]) -> Result<Value, String> {
    let text = arguments.first().map(as_text).unwrap_or_default();
    let (moment, _) = parse_instant(&text)?;
    Ok(Value::Int(moment.and_utc().timestamp()))
}

/// Parses an instant.
/// Returns it without its zone, and the text that is appended for the zone: `Z` or nothing.
fn parse_instant(text: &str) -> Result<(NaiveDateTime, &'static str), String> {
    if let Ok(compact) = NaiveDateTime::parse_from_str(text, COMPACT) {
        return Ok((compact, "Z"));
    }
    let none = || format!("`{text}` is not a valid time such as 2020-01-30T00:00:00Z");
    let exact = formatted("formatDateTime", Value::text(text), "o").map_err(|_| none())?;
    let exact = exact.as_str().unwrap_or_default();
    let (wall, zone) = match exact.strip_suffix('Z') {
        Some(wall) => (wall, "Z"),
        None => (exact, ""),
    };
    let wall = NaiveDateTime::parse_from_str(wall, "%Y-%m-%dT%H:%M:%S%.f");
    Ok((wall.map_err(|_| none())?, zone))
}

/// Returns the length of an ISO 8601 duration, which may be negative.
fn parse_duration(text: &str) -> Option<TimeDelta> {
    let later = |text: &str| TimeDelta::from_std(parse_nominal_duration(text)?).ok();
    match text.strip_prefix('-') {
        Some(earlier) => later(earlier).map(|length| -length),
        None => later(text),
    }
}

#[cfg(test)]
mod tests {
    use super::parse_duration;
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
            assert_eq!(
                parse_duration(text),
                TimeDelta::try_seconds(seconds),
                "{text}"
            );
        }
        assert_eq!(parse_duration("-PT0.5S"), TimeDelta::try_milliseconds(-500));
        let endless = format!("P{}D", "9".repeat(60));
        for text in [
            "", "-", "P", "PT", "P1DT", "junk", "1h", "P1", "1D", "P1H", "PT1D", "P1D1Y", "P-1D",
            "P1.5D", "PT.5S", "p1d", "P1D ", &endless,
        ] {
            assert_eq!(parse_duration(text), None, "{text}");
        }
    }
}
