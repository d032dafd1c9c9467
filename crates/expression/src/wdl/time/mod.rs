//! Timestamps like .NET's DateTime: a wall clock that is UTC or unspecified. Parses and formats them, with time zones
//! and arithmetic. This module never reads the clock.

pub(crate) mod format;
pub(crate) mod parse;
pub(crate) mod span;
pub(crate) mod zone;

use chrono::{DateTime, Datelike, Months, NaiveDate, NaiveDateTime, NaiveTime, TimeDelta, Utc};

/// Nanoseconds of a tick, the resolution of .NET.
pub(crate) const TICK: i64 = 100;

/// A timestamp. A text with an offset is converted to UTC when it is parsed, as in Logic Apps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub wall: NaiveDateTime,
    /// Whether this is UTC, which is printed with `Z`. Otherwise the zone is unspecified.
    pub utc: bool,
}

/// The units of `addToTime` and related functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Year,
}

impl Unit {
    pub(crate) const NAMES: &'static str = "Second, Minute, Hour, Day, Week, Month or Year";

    pub(crate) fn find(name: &str) -> Option<Self> {
        [
            ("second", Self::Second),
            ("minute", Self::Minute),
            ("hour", Self::Hour),
            ("day", Self::Day),
            ("week", Self::Week),
            ("month", Self::Month),
            ("year", Self::Year),
        ]
        .into_iter()
        .find(|(known, _)| known.eq_ignore_ascii_case(name))
        .map(|(_, unit)| unit)
    }
}

impl Stamp {
    pub(crate) fn utc(time: DateTime<Utc>) -> Self {
        Self {
            wall: time.naive_utc(),
            utc: true,
        }
    }

    /// Returns the timestamp of the same kind at another wall-clock time.
    fn at(self, wall: NaiveDateTime) -> Option<Self> {
        // .NET's years end at 9999.
        let known = (1..=9999).contains(&wall.year());
        known.then_some(Self { wall, ..self })
    }

    /// Adds a number of units, which may be negative. A day that the month does not have becomes the month's last day.
    /// Returns `None` outside of the years 1 to 9999.
    pub(crate) fn plus(self, count: i64, unit: Unit) -> Option<Self> {
        let delta = match unit {
            Unit::Second => TimeDelta::try_seconds(count),
            Unit::Minute => TimeDelta::try_minutes(count),
            Unit::Hour => TimeDelta::try_hours(count),
            Unit::Day => TimeDelta::try_days(count),
            Unit::Week => TimeDelta::try_weeks(count),
            Unit::Month => return self.plus_months(count),
            Unit::Year => return self.plus_months(count.checked_mul(12)?),
        };
        self.at(self.wall.checked_add_signed(delta?)?)
    }

    fn plus_months(self, count: i64) -> Option<Self> {
        let months = Months::new(u32::try_from(count.unsigned_abs()).ok()?);
        let wall = if count < 0 {
            self.wall.checked_sub_months(months)
        } else {
            self.wall.checked_add_months(months)
        };
        self.at(wall?)
    }

    pub(crate) fn start_of_day(self) -> Self {
        Self {
            wall: self.wall.date().and_time(NaiveTime::MIN),
            ..self
        }
    }

    pub(crate) fn start_of_hour(self) -> Self {
        let past = self.wall.time().signed_duration_since(NaiveTime::MIN);
        let hours = TimeDelta::try_hours(past.num_hours()).unwrap_or_default();
        let day = self.start_of_day();
        Self {
            wall: day.wall.checked_add_signed(hours).unwrap_or(day.wall),
            ..self
        }
    }

    pub(crate) fn start_of_month(self) -> Self {
        let day = self.start_of_day();
        Self {
            wall: day.wall.with_day(1).unwrap_or(day.wall),
            ..self
        }
    }

    /// Returns the ticks since the beginning of year 1, like `DateTime.Ticks`.
    pub(crate) fn ticks(self) -> i64 {
        let since = self.wall.signed_duration_since(NaiveDateTime::new(
            NaiveDate::from_ymd_opt(1, 1, 1).unwrap_or_default(),
            NaiveTime::MIN,
        ));
        span::ticks(since)
    }
}
