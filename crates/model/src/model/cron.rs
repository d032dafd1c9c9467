//! Cron patterns.

use chrono::{DateTime, TimeZone};
use croner::Cron;
use std::str::FromStr;

/// Returns the mistake in a pattern, if it has one.
#[must_use]
pub fn cron_mistake(pattern: &str) -> Option<String> {
    if let Err(error) = Cron::from_str(pattern) {
        return Some(error.to_string());
    }
    let never = next_of_cron(pattern, &DateTime::UNIX_EPOCH).is_none();
    never.then(|| String::from("it never fires, because no year has such a day"))
}

/// Returns the first time of a pattern after `after`, on the clock of the same zone.
#[must_use]
pub fn next_of_cron<Z: TimeZone>(pattern: &str, after: &DateTime<Z>) -> Option<DateTime<Z>> {
    let cron = Cron::from_str(pattern).ok()?;
    cron.find_next_occurrence(after, false).ok()
}
