//! Cron patterns.

use super::wall_time::instant_of;
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
    let fields = &cron.pattern;
    let mut times = [&fields.seconds, &fields.minutes, &fields.hours].into_iter();
    if times.any(|field| field.from_wildcard) {
        return cron.find_next_occurrence(after, false).ok();
    }
    // A pattern with fixed times: each time of the wall clock is one instant.
    let mut wall = after.naive_local();
    loop {
        wall = cron
            .find_next_occurrence(&wall.and_utc(), false)
            .ok()?
            .naive_utc();
        let at = instant_of(wall, &after.timezone())?;
        // If the clock was set back before `after`, some of the next wall times have already passed.
        if at > *after {
            return Some(at);
        }
    }
}
