//! Replaces `cron` in a build without the feature `schedule`.
//! Only a server fires schedules, so other builds neither check nor use patterns.

use chrono::{DateTime, NaiveDateTime, TimeZone};

pub fn cron_mistake(_: &str) -> Option<String> {
    None
}

pub fn next_of_cron<Z: TimeZone>(_: &str, _: &DateTime<Z>) -> Option<DateTime<Z>> {
    None
}

pub fn instant_of<Z: TimeZone>(wall: NaiveDateTime, zone: &Z) -> Option<DateTime<Z>> {
    zone.from_local_datetime(&wall).earliest()
}
