//! When runs of a workflow start automatically. Plain data: the times are computed by the engine's
//! calendar.

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
    /// The frequency named so, without case.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let all = [
            ("second", Self::Second),
            ("minute", Self::Minute),
            ("hour", Self::Hour),
            ("day", Self::Day),
            ("week", Self::Week),
            ("month", Self::Month),
        ];
        all.into_iter()
            .find(|(name, _)| name.eq_ignore_ascii_case(text))
            .map(|(_, frequency)| frequency)
    }
}

/// When runs of a workflow start automatically, and what is done about a time that was missed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    pub when: When,
    /// What is done when the run of an earlier time has not ended.
    pub overlap: Overlap,
    /// What is done about times at which no server was there.
    pub missed: Missed,
}

/// The times of a [`Schedule`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum When {
    /// A cron pattern, on the clock of a time zone; UTC without one.
    Cron {
        /// Minute, hour, day of the month, month, day of the week.
        pattern: Name,
        /// A Windows or IANA name.
        zone: Option<Name>,
    },
    /// Every so often.
    Recurrence(Recurrence),
}

impl Overlap {
    /// Each with its word.
    pub const WORDS: [(&str, Self); 4] = [
        ("skip", Self::Skip),
        ("allow", Self::Allow),
        ("queue", Self::Queue),
        ("replace", Self::Replace),
    ];
}

impl Missed {
    /// Each with its word.
    pub const WORDS: [(&str, Self); 3] = [
        ("skip", Self::Skip),
        ("run_once", Self::RunOnce),
        ("run_all", Self::RunAll),
    ];
}

/// What a [`Schedule`] does when the run of an earlier time has not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overlap {
    /// Nothing: the time passes.
    Skip,
    /// Starts one all the same.
    Allow,
    /// Starts one when it has ended; one at most waits.
    Queue,
    /// Cancels the run that has not ended, and starts one.
    Replace,
}

/// What a [`Schedule`] does about times at which no server was there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missed {
    /// Nothing.
    Skip,
    /// Starts one run, however many were missed.
    RunOnce,
    /// Starts a run for each of them, in order.
    RunAll,
}

/// When runs start automatically (Logic Apps reference, "Recurrence trigger").
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recurrence {
    /// The unit.
    pub frequency: Frequency,
    /// Every how many units, from 1.
    pub interval: u32,
    /// The first time, local to the time zone; UTC without one.
    pub start: Option<chrono::NaiveDateTime>,
    /// No time is after this one; as local as the first.
    pub end: Option<chrono::NaiveDateTime>,
    /// A Windows or IANA name.
    pub time_zone: Option<Name>,
    /// For days and weeks: at these hours.
    pub hours: Vec<u32>,
    /// For days and weeks: at these minutes.
    pub minutes: Vec<u32>,
    /// For weeks: on these days, 0 is Monday.
    pub week_days: Vec<u32>,
}
