//! Cron patterns.

use chrono::{DateTime, LocalResult, NaiveDateTime, TimeDelta, TimeZone};
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

/// Returns the instant of a wall time. A time that exists twice is the first of the two instants. A time that the clock
/// skips is the end of the gap.
pub fn instant_of<Z: TimeZone>(wall: NaiveDateTime, zone: &Z) -> Option<DateTime<Z>> {
    match zone.from_local_datetime(&wall) {
        LocalResult::Single(at) | LocalResult::Ambiguous(at, _) => return Some(at),
        LocalResult::None => {}
    }
    // No offset from UTC is larger than this, so the gap ends between `before` and `end`.
    let most = TimeDelta::hours(26);
    let instant = |utc: NaiveDateTime| zone.from_utc_datetime(&utc);
    let mut before = wall.checked_sub_signed(most)?;
    let mut end = wall.checked_add_signed(most)?;
    while end - before > TimeDelta::seconds(1) {
        let middle = before + TimeDelta::seconds((end - before).num_seconds() / 2);
        match instant(middle).naive_local() > wall {
            true => end = middle,
            false => before = middle,
        }
    }
    Some(instant(end))
}
