//! When runs of a workflow start automatically.
//! This module has only plain data: the engine's calendar computes the times.

use super::Name;

/// The unit of a [`Recurrence`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frequency {
    Second,
    Minute,
    Hour,
    Day,
    Week,
    /// Calendar months.
    Month,
}

impl Frequency {
    /// All variants, each with its word in Logic Apps.
    pub const WORDS: [(&str, Self); 6] = [
        ("Second", Self::Second),
        ("Minute", Self::Minute),
        ("Hour", Self::Hour),
        ("Day", Self::Day),
        ("Week", Self::Week),
        ("Month", Self::Month),
    ];
}

/// When runs of a workflow start automatically, and what happens to missed times (times at which no server ran).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    pub when: When,
    /// What happens if the run of an earlier time has not ended.
    pub overlap: Overlap,
    /// What happens to times at which no server ran.
    pub missed: Missed,
}

/// The times of a [`Schedule`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum When {
    /// A cron pattern, on the clock of a time zone; without a zone, in UTC.
    Cron {
        /// Minute, hour, day of the month, month, day of the week.
        pattern: Name,
        /// The Windows or IANA name of the time zone.
        zone: Option<Name>,
    },
    /// At regular intervals.
    Recurrence(Recurrence),
}

impl Overlap {
    /// All variants, each with its word in workflow files.
    pub const WORDS: [(&str, Self); 4] = [
        ("skip", Self::Skip),
        ("allow", Self::Allow),
        ("queue", Self::Queue),
        ("replace", Self::Replace),
    ];
}

impl Missed {
    /// All variants, each with its word in workflow files.
    pub const WORDS: [(&str, Self); 3] = [
        ("skip", Self::Skip),
        ("run_once", Self::RunOnce),
        ("run_all", Self::RunAll),
    ];
}

/// What a [`Schedule`] does if the run of an earlier time has not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overlap {
    /// Starts no run at this time.
    Skip,
    /// Starts a run although the earlier one has not ended.
    Allow,
    /// Starts a run when the earlier one has ended. At most one run waits in this way.
    Queue,
    /// Cancels the run that has not ended, and starts a new run.
    Replace,
}

/// What a [`Schedule`] does about times at which no server ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missed {
    /// Starts no run.
    Skip,
    /// Starts one run for all missed times.
    RunOnce,
    /// Starts a run for each missed time, in order.
    RunAll,
}

/// When runs start automatically (Logic Apps reference, "Recurrence trigger").
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recurrence {
    /// The unit.
    pub frequency: Frequency,
    /// Number of units from one time to the next, at least 1.
    pub interval: u32,
    /// The first time, on the clock of the time zone; without a zone, in UTC.
    pub start: Option<chrono::NaiveDateTime>,
    /// The last possible time, on the same clock as `start`.
    pub end: Option<chrono::NaiveDateTime>,
    /// The Windows or IANA name of the time zone.
    pub time_zone: Option<Name>,
    /// For days and weeks: the hours of the day.
    pub hours: Vec<u32>,
    /// For days and weeks: the minutes of the hour.
    pub minutes: Vec<u32>,
    /// For weeks: the days of the week; 0 is Monday.
    pub week_days: Vec<u32>,
}
