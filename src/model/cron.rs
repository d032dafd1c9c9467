//! Cron patterns.

use chrono::{DateTime, TimeZone};
use croner::Cron;
use std::str::FromStr;

/// What is wrong with a pattern.
#[must_use]
pub fn cron_mistake(pattern: &str) -> Option<String> {
    let read = Cron::from_str(pattern);
    read.err().map(|error| error.to_string())
}

/// The first time of a pattern after `after`, on the clock of its zone.
#[must_use]
pub fn next_of_cron<Z: TimeZone>(pattern: &str, after: &DateTime<Z>) -> Option<DateTime<Z>> {
    let cron = Cron::from_str(pattern).ok()?;
    cron.find_next_occurrence(after, false).ok()
}
