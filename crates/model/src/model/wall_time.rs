//! Instants of times on the wall clock of a zone.

use chrono::{DateTime, LocalResult, NaiveDateTime, TimeDelta, TimeZone};

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
