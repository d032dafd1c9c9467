//! Durations and instants as people write them on a command line.

use crate::engine::{Timestamp, now, parse_duration};
use std::time::Duration;

/// A duration as people write it on a command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lasting(pub Duration);

impl std::str::FromStr for Lasting {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.starts_with(['P', 'p']) {
            let parsed = parse_duration(text).map_err(|error| error.to_string())?;
            return Ok(Self(parsed));
        }
        let units = [
            ("ms", 1),
            ("s", 1_000),
            ("m", 60_000),
            ("h", 3_600_000),
            ("d", 86_400_000),
        ];
        let found = units.into_iter().find_map(|(unit, millis)| {
            let number: u64 = text.strip_suffix(unit)?.trim().parse().ok()?;
            Some(Duration::from_millis(number.checked_mul(millis)?))
        });
        found
            .map(Self)
            .ok_or_else(|| String::from("a number with ms, s, m, h or d, or an ISO 8601 duration"))
    }
}

/// An instant: as RFC 3339 has it, or how long ago.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct When(pub Timestamp);

impl std::str::FromStr for When {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(at) = text.parse() {
            return Ok(Self(at));
        }
        let Ok(Lasting(ago)) = text.parse() else {
            let known = "an instant such as 2026-11-20T14:00:00Z, or how long ago: 30m, 2h, 7d";
            return Err(String::from(known));
        };
        let ago = i64::try_from(ago.as_millis()).unwrap_or(i64::MAX);
        Ok(Self(Timestamp(now().0.saturating_sub(ago))))
    }
}
