//! Cron patterns.

use chrono::{DateTime, TimeZone};
use croner::Cron;
use std::str::FromStr;

/// Returns the description of the mistake in a pattern, or `None` if the pattern is valid.
#[must_use]
pub fn cron_mistake(pattern: &str) -> Option<String> {
    if let Err(error) = Cron::from_str(pattern) {
        return Some(error.to_string());
    }
    let never = next_of_cron(pattern, &DateTime::UNIX_EPOCH).is_none();
    never.then(|| String::from("it never fires, because no year has such a day"))
}

/// Returns the first time after `after` that a pattern matches, on the clock of the time zone of `after`.
#[must_use]
pub fn next_of_cron<Z: TimeZone>(pattern: &str, after: &DateTime<Z>) -> Option<DateTime<Z>> {
    let cron = Cron::from_str(pattern).ok()?;
    cron.find_next_occurrence(after, false).ok()
}
