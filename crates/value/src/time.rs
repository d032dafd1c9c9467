//! Instants and durations as data. This file never reads the clock: `now` is always passed in.

use bincode::{Decode, Encode};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{KnownFormat, ObjectBuilder, Schema, SchemaFormat, SchemaType, Type};
use utoipa::{PartialSchema, ToSchema};

/// Milliseconds of an hour.
const HOUR: i64 = 3_600_000;

/// An instant, in milliseconds since 1970-01-01T00:00:00Z.
///
/// It is absolute, so that due times and deadlines have the same meaning before and after a restart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode, Default)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// The last instant that RFC 3339 can express: its years have four digits.
    pub const LAST: Self = Self(253_402_300_799_999);

    /// Returns the instant that is later by `after`, at most [`Self::LAST`].
    #[must_use]
    pub fn plus(self, after: Duration) -> Self {
        let millis = i64::try_from(after.as_millis()).unwrap_or(i64::MAX);
        Self(self.0.saturating_add(millis)).min(Self::LAST)
    }

    /// Returns the instant that is earlier by `before`.
    #[must_use]
    pub fn minus(self, before: Duration) -> Self {
        let millis = i64::try_from(before.as_millis()).unwrap_or(i64::MAX);
        Self(self.0.saturating_sub(millis))
    }

    /// Returns the time from `earlier` to this instant; zero if this instant is not later.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }

    /// Returns the beginning of the hour that contains this instant, in UTC.
    #[must_use]
    pub fn hour(self) -> Self {
        Self(self.0.saturating_sub(self.0.rem_euclid(HOUR)))
    }

    /// Returns the same instant as a type of the crate chrono. Instants after [`Self::LAST`], or before the first
    /// instant of chrono, are replaced by these limits.
    #[must_use]
    pub fn to_utc(self) -> DateTime<Utc> {
        let millis = self.min(Self::LAST).0;
        DateTime::from_timestamp_millis(millis).unwrap_or(DateTime::<Utc>::MIN_UTC)
    }
}

impl From<DateTime<Utc>> for Timestamp {
    fn from(value: DateTime<Utc>) -> Self {
        Self(value.timestamp_millis())
    }
}

/// Writes RFC 3339 with milliseconds, in UTC: `2026-11-20T14:02:11.000Z`.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self
            .to_utc()
            .to_rfc3339_opts(chrono::SecondsFormat::Millis, true);
        f.write_str(&text)
    }
}

impl Serialize for Timestamp {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// Reads RFC 3339.
/// The error of a text that is not an instant (RFC 3339).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("write an instant such as 2026-11-28T01:30:00Z")]
pub struct NotAnInstant;

impl FromStr for Timestamp {
    type Err = NotAnInstant;

    fn from_str(text: &str) -> Result<Self, NotAnInstant> {
        let time = DateTime::parse_from_rfc3339(text).map_err(|_| NotAnInstant)?;
        Ok(time.with_timezone(&Utc).into())
    }
}

/// The OpenAPI schema.
impl PartialSchema for Timestamp {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(SchemaType::Type(Type::String))
            .format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)))
            .into()
    }
}

impl ToSchema for Timestamp {
    fn name() -> Cow<'static, str> {
        Cow::Borrowed("Timestamp")
    }
}

/// Why a text is not a valid duration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    /// The text has neither the form `P[nW][nD][T[nH][nM][nS]]` nor a form such as `1h30m`.
    #[error("`{0}` is not a duration")]
    Syntax(String),
    /// The text uses years or months, which have no fixed length.
    #[error("`{0}` uses years or months, which have no fixed length: use days")]
    Calendar(String),
}

/// The units of a plain duration, and their milliseconds.
const UNITS: [(&str, u64); 6] = [
    ("ms", 1),
    ("s", 1_000),
    ("m", 60_000),
    ("h", 3_600_000),
    ("d", 86_400_000),
    ("w", 604_800_000),
];

/// Parses a plain duration such as `10s`, `0.5s` or `1h30m`, or an ISO 8601 duration such as `PT10S`, `PT1H30M`,
/// `P1D` or `P2W`.
///
/// # Errors
/// [`DurationError`] if the text is not a duration, or uses years or months.
pub fn parse_duration(text: &str) -> Result<Duration, DurationError> {
    let trimmed = text.trim();
    if trimmed.starts_with(|first: char| first.is_ascii_digit()) {
        return plain_duration(trimmed).ok_or_else(|| DurationError::Syntax(text.to_owned()));
    }
    match iso_duration(trimmed) {
        Some(iso8601::Duration::YMDHMS { year, month, .. }) if year != 0 || month != 0 => {
            Err(DurationError::Calendar(text.to_owned()))
        }
        Some(parsed) => Ok(Duration::from(parsed)),
        None => Err(DurationError::Syntax(text.to_owned())),
    }
}

/// Parses an ISO 8601 duration, with 365 days a year and 30 days a month.
pub fn parse_nominal_duration(text: &str) -> Option<Duration> {
    iso_duration(text).map(Duration::from)
}

fn iso_duration(text: &str) -> Option<iso8601::Duration> {
    let (rest, parsed) = iso8601::parsers::parse_duration(text.as_bytes()).ok()?;
    // The parser returns the rest of the text that it does not understand.
    (rest.is_empty() && !text.ends_with('T')).then_some(parsed)
}

/// Parses numbers, each with its unit.
fn plain_duration(text: &str) -> Option<Duration> {
    let mut millis = 0_u64;
    let mut rest = text;
    while !rest.is_empty() {
        let is_number = |c: char| c.is_ascii_digit() || c == '.';
        let (number, after) = rest.split_at_checked(rest.find(|c: char| !is_number(c))?)?;
        let end = after
            .find(|c: char| c.is_ascii_digit())
            .unwrap_or(after.len());
        let (unit, next) = after.split_at_checked(end)?;
        let (_, length) = UNITS.iter().find(|(name, _)| *name == unit)?;
        millis = millis.checked_add(scaled(number, *length)?)?;
        rest = next;
    }
    Some(Duration::from_millis(millis))
}

/// Multiplies a number such as `5` or `1.5` by the length of a unit in milliseconds. Returns `None` if the result is
/// not a whole number of milliseconds.
fn scaled(number: &str, length: u64) -> Option<u64> {
    let (whole, part) = number.split_once('.').unwrap_or((number, "0"));
    let whole: u64 = whole.parse().ok()?;
    let tenths = 10_u64.checked_pow(u32::try_from(part.len()).ok()?)?;
    let part = part.parse::<u64>().ok()?.checked_mul(length)?;
    let millis = (part % tenths == 0).then_some(part / tenths)?;
    whole.checked_mul(length)?.checked_add(millis)
}

/// Formats a duration for people, exact to the millisecond: `450ms`, `3.8s`, `1m30s`, `2h`.
#[must_use]
pub fn human_duration(duration: Duration) -> String {
    match (duration.as_secs(), duration.subsec_millis()) {
        (0, millis @ 1..) => format!("{millis}ms"),
        // The form of ISO 8601, in lower case and without the letters `P` and `T`.
        _ => format_duration(duration)
            .replace(['P', 'T'], "")
            .to_lowercase(),
    }
}

/// Formats a duration that is given as text, authored or stored, for people. Text that is not a duration is returned
/// unchanged.
#[must_use]
pub fn shown_duration(text: &str) -> String {
    parse_duration(text).map_or_else(|_| text.to_owned(), human_duration)
}

/// Formats a duration in ISO 8601: `PT1H30M`, `PT0.5S`, `P1D`.
#[must_use]
pub fn format_duration(duration: Duration) -> String {
    let total = duration.as_secs();
    let (days, hours, minutes, seconds) = (
        total / 86_400,
        total / 3_600 % 24,
        total / 60 % 60,
        total % 60,
    );
    let millis = duration.subsec_millis();
    let mut text = String::from("P");
    if days > 0 {
        text.push_str(&format!("{days}D"));
    }
    let mut clock = String::new();
    if hours > 0 {
        clock.push_str(&format!("{hours}H"));
    }
    if minutes > 0 {
        clock.push_str(&format!("{minutes}M"));
    }
    if millis > 0 {
        let fraction = format!("{millis:03}");
        clock.push_str(&format!("{seconds}.{}S", fraction.trim_end_matches('0')));
    } else if seconds > 0 || (days == 0 && clock.is_empty()) {
        clock.push_str(&format!("{seconds}S"));
    }
    if !clock.is_empty() {
        text.push('T');
        text.push_str(&clock);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{human_duration, parse_duration};
    use std::time::Duration;

    #[test]
    fn plain_durations_have_fractions() {
        let millis = |text: &str| parse_duration(text).map(|it| it.as_millis()).ok();
        assert_eq!(millis("0.2s"), Some(200));
        assert_eq!(millis("1.5m"), Some(90_000));
        assert_eq!(millis("1h0.5s"), Some(3_600_500));
        for wrong in [
            "1.s",
            "0.0005s",
            "1.2.3s",
            "1.5",
            ".5s",
            "0.00000000000000000000001h",
        ] {
            assert_eq!(millis(wrong), None, "{wrong}");
        }
        let shown = human_duration(Duration::from_millis(3_800));
        assert_eq!(millis(&shown), Some(3_800));
    }
}
