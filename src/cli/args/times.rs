//! Durations and instants on a command line.

use std::time::Duration;
use windlass_engine::{Timestamp, format_duration, now, parse_duration};

/// A duration on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DurationArg(pub Duration);

impl DurationArg {
    /// Returns the instant that is this long before now, but not before 1970: nothing can be older.
    pub fn ago(self) -> Timestamp {
        let millis = i64::try_from(self.0.as_millis()).unwrap_or(i64::MAX);
        Timestamp(now().0.saturating_sub(millis).max(0))
    }

    pub fn millis(self) -> u64 {
        u64::try_from(self.0.as_millis()).unwrap_or(u64::MAX)
    }
}

impl std::str::FromStr for DurationArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let duration = parse_duration(text).map_err(|error| {
            format!("{error}: it looks like 500ms, 5s, 30m or 1h30m, or as ISO 8601 has it")
        })?;
        // A workflow file has the duration in the form of ISO 8601, which limits its numbers.
        match parse_duration(&format_duration(duration)) {
            Ok(_) => Ok(Self(duration)),
            Err(_) => Err(String::from("the duration is too large")),
        }
    }
}

/// Parses the duration of a limit, which is above zero.
pub fn limit_arg(text: &str) -> Result<DurationArg, String> {
    let parsed: DurationArg = text.parse()?;
    match parsed.0.is_zero() {
        true => Err(String::from("a limit must be above zero, e.g. 30s")),
        false => Ok(parsed),
    }
}

/// An instant: RFC 3339, or a duration that is subtracted from now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InstantArg(pub Timestamp);

impl std::str::FromStr for InstantArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(at) = text.parse() {
            return Ok(Self(at));
        }
        let Ok(ago) = text.parse::<DurationArg>() else {
            let known = "an instant such as 2026-11-20T14:00:00Z, or how long ago: 30m, 2h, 7d";
            return Err(String::from(known));
        };
        Ok(Self(ago.ago()))
    }
}
