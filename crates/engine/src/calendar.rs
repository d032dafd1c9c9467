//! When a schedule's next time is: pure, on the calendar of its time zone.

use chrono::{
    DateTime, Datelike, Days, Months, NaiveDate, NaiveDateTime, TimeDelta, Timelike, Utc,
};
use std::time::Duration;
use windlass_expression::{Zone, time_zone, zone_to_utc};
use windlass_model::model::{Frequency, Missed, Overlap, Recurrence, Schedule, When, next_of_cron};
use windlass_value::time::Timestamp;

/// A time that passed longer ago than this was missed: no process was running.
const LATE_AFTER: Duration = Duration::from_secs(60);

/// How soon it is looked again whether a run that is in the way has ended.
const QUEUED_AFTER: Duration = Duration::from_secs(2);

/// Maximum number of candidates checked for one time: enough for every weekday of some years.
const CANDIDATES: u32 = 3_000;

/// What is to be done about a schedule now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Decision {
    /// Start a run for this time.
    pub start: Option<Timestamp>,
    /// All times up to this one are decided.
    pub until: Option<Timestamp>,
    /// Look again then.
    pub next: Option<Timestamp>,
}

/// The run of an earlier time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PreviousRun {
    /// There is none, or it is not known any more.
    None,
    /// It has not ended.
    UnderWay,
    /// It ended then.
    Ended(Timestamp),
}

/// What is to be done: `anchor` is when the schedule began, `until` up to when its times are
/// decided.
pub(super) fn decide(
    schedule: &Schedule,
    anchor: Timestamp,
    until: Timestamp,
    now: Timestamp,
    earlier: PreviousRun,
) -> Decision {
    let next = next_after(schedule, anchor, now);
    let Some(last) = last_between(schedule, anchor, until, now) else {
        return Decision {
            next,
            ..Decision::default()
        };
    };
    let decided = Decision {
        start: None,
        until: Some(last),
        next,
    };
    // A time that waited for a run was not missed, however long that took.
    let waited = match earlier {
        PreviousRun::UnderWay => true,
        PreviousRun::Ended(at) => at >= last,
        PreviousRun::None => false,
    };
    let busy = earlier == PreviousRun::UnderWay;
    let missed = now.since(last) > LATE_AFTER && !(waited && schedule.overlap == Overlap::Queue);
    match (schedule.overlap, busy) {
        (Overlap::Queue, true) => Decision {
            start: None,
            until: None,
            next: Some(now.plus(QUEUED_AFTER)),
        },
        (Overlap::Skip, true) => decided,
        _ if missed && schedule.missed == Missed::Skip => decided,
        _ => Decision {
            start: Some(last),
            ..decided
        },
    }
}

/// The last time after `from`, up to `to`.
fn last_between(
    schedule: &Schedule,
    anchor: Timestamp,
    from: Timestamp,
    to: Timestamp,
) -> Option<Timestamp> {
    // The nearest past first: of a schedule that fires every second, not all are walked through.
    let spans = [60_u64, 3_600, 86_400, 40 * 86_400, 4_000 * 86_400];
    spans.into_iter().find_map(|seconds| {
        let back = i64::try_from(seconds * 1_000).unwrap_or(i64::MAX);
        let mut at = Timestamp(to.0.saturating_sub(back)).max(from);
        let mut last = None;
        for _ in 0..CANDIDATES * 2 {
            match next_after(schedule, anchor, at) {
                Some(next) if next <= to => {
                    last = Some(next);
                    at = next;
                }
                _ => break,
            }
        }
        last
    })
}

/// The first time after `after`; none when there are no more.
pub(super) fn next_after(
    schedule: &Schedule,
    anchor: Timestamp,
    after: Timestamp,
) -> Option<Timestamp> {
    match &schedule.when {
        When::Cron { pattern, zone } => {
            let after = after.to_utc().with_timezone(&zone_of(zone.as_deref()));
            let next = next_of_cron(pattern, &after)?;
            Some(Timestamp(next.timestamp_millis()))
        }
        When::Recurrence(recurrence) => {
            recurring(recurrence, anchor, after).filter(|at| !is_over(recurrence, *at))
        }
    }
}

/// Whether the time is behind the recurrence's end.
fn is_over(recurrence: &Recurrence, at: Timestamp) -> bool {
    let zone = zone_of(recurrence.time_zone.as_deref());
    let end = recurrence.end.and_then(|wall| on_the_clock(wall, &zone));
    end.is_some_and(|end| at > end)
}

fn zone_of(name: Option<&str>) -> Zone {
    name.and_then(time_zone).unwrap_or(Zone::UTC)
}

fn instant(utc: NaiveDateTime) -> Timestamp {
    Timestamp(utc.and_utc().timestamp_millis())
}

fn recurring(recurrence: &Recurrence, anchor: Timestamp, after: Timestamp) -> Option<Timestamp> {
    let zone = zone_of(recurrence.time_zone.as_deref());
    let begun: DateTime<Utc> = anchor.to_utc();
    let start = recurrence.start.unwrap_or_else(|| {
        let local = begun.with_timezone(&zone).naive_local();
        local.with_nanosecond(0).unwrap_or(local)
    });
    let every = recurrence.interval.max(1);
    let seconds = match recurrence.frequency {
        Frequency::Second => 1,
        Frequency::Minute => 60,
        Frequency::Hour => 3_600,
        Frequency::Day | Frequency::Week => return by_day(recurrence, start, &zone, after),
        Frequency::Month => {
            return (0..CANDIDATES)
                .filter_map(|n| start.checked_add_months(Months::new(n.checked_mul(every)?)))
                .filter_map(|wall| on_the_clock(wall, &zone))
                .find(|at| *at > after);
        }
    };
    let first = on_the_clock(start, &zone)?;
    let step = i64::from(every) * seconds * 1_000;
    if first > after {
        return Some(first);
    }
    let passed = after.0.saturating_sub(first.0) / step;
    Some(Timestamp(
        first.0.checked_add((passed + 1).checked_mul(step)?)?,
    ))
}

/// Days and weeks, at the hours and minutes that are asked for.
fn by_day(
    recurrence: &Recurrence,
    start: NaiveDateTime,
    zone: &Zone,
    after: Timestamp,
) -> Option<Timestamp> {
    let weekly = recurrence.frequency == Frequency::Week;
    let mut hours = recurrence.hours.clone();
    let mut minutes = recurrence.minutes.clone();
    if hours.is_empty() {
        hours.push(start.hour());
    }
    if minutes.is_empty() {
        let own = recurrence.hours.is_empty() || recurrence.start.is_some();
        minutes.push(if own { start.minute() } else { 0 });
    }
    hours.sort_unstable();
    minutes.sort_unstable();
    let every = i64::from(recurrence.interval.max(1));
    let meant = |day: NaiveDate| {
        if !weekly {
            return day.signed_duration_since(start.date()).num_days() % every == 0;
        }
        let own = [start.weekday().num_days_from_monday()];
        let days: &[u32] = match recurrence.week_days.as_slice() {
            [] => &own,
            days => days,
        };
        let monday =
            |day: NaiveDate| day - TimeDelta::days(i64::from(day.weekday().num_days_from_monday()));
        let weeks = (monday(day) - monday(start.date())).num_weeks();
        weeks % every == 0 && days.contains(&day.weekday().num_days_from_monday())
    };
    let local = after.to_utc().with_timezone(zone).date_naive();
    let mut day = local.checked_sub_days(Days::new(1))?.max(start.date());
    for _ in 0..CANDIDATES {
        if meant(day) {
            for hour in &hours {
                for minute in &minutes {
                    let wall = day.and_hms_opt(*hour, *minute, start.second())?;
                    let at = on_the_clock(wall, zone).filter(|at| *at > after && wall >= start);
                    if at.is_some() {
                        return at;
                    }
                }
            }
        }
        day = day.succ_opt()?;
    }
    None
}

/// A wall clock's time; one that the clock skips is an hour later.
fn on_the_clock(wall: NaiveDateTime, zone: &Zone) -> Option<Timestamp> {
    zone_to_utc(wall, zone)
        .or_else(|| zone_to_utc(wall.checked_add_signed(TimeDelta::hours(1))?, zone))
        .map(instant)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        DateTime::parse_from_rfc3339(text).unwrap().to_utc().into()
    }

    fn cron(pattern: &str, zone: Option<&str>) -> Schedule {
        Schedule {
            when: When::Cron {
                pattern: pattern.into(),
                zone: zone.map(Into::into),
            },
            overlap: Overlap::Skip,
            missed: Missed::Skip,
        }
    }

    fn every(frequency: Frequency, interval: u32) -> Recurrence {
        Recurrence {
            frequency,
            interval,
            start: None,
            end: None,
            time_zone: None,
            hours: Vec::new(),
            minutes: Vec::new(),
            week_days: Vec::new(),
        }
    }

    fn times(recurrence: Recurrence, anchor: &str, count: usize) -> Vec<String> {
        let schedule = Schedule {
            when: When::Recurrence(recurrence),
            overlap: Overlap::Skip,
            missed: Missed::Skip,
        };
        let mut after = at(anchor);
        (0..count)
            .map(|_| {
                after = next_after(&schedule, at(anchor), after).unwrap();
                after.to_string()
            })
            .collect()
    }

    #[test]
    fn cron_follows_the_clock_of_its_zone() {
        let schedule = cron("30 2 * * *", Some("Europe/Berlin"));
        let next = |text: &str| next_after(&schedule, Timestamp(0), at(text)).unwrap();
        assert_eq!(next("2026-11-21T12:00:00Z"), at("2026-11-22T01:30:00Z"));
        assert_eq!(next("2026-07-01T12:00:00Z"), at("2026-07-02T00:30:00Z"));
    }

    #[test]
    fn recurrences_count_from_their_start() {
        assert_eq!(
            times(every(Frequency::Minute, 15), "2026-11-21T12:07:30Z", 2),
            ["2026-11-21T12:22:30.000Z", "2026-11-21T12:37:30.000Z"]
        );
        let mut weekly = every(Frequency::Week, 2);
        weekly.week_days = vec![0, 4];
        weekly.hours = vec![9];
        // A Saturday; the weeks are counted from its Monday.
        assert_eq!(
            times(weekly, "2026-11-21T12:00:00Z", 3),
            [
                "2026-11-30T09:00:00.000Z",
                "2026-12-04T09:00:00.000Z",
                "2026-12-14T09:00:00.000Z"
            ]
        );
        let mut monthly = every(Frequency::Month, 1);
        monthly.start = "2026-01-31T08:00:00".parse().ok();
        assert_eq!(
            times(monthly, "2026-02-01T00:00:00Z", 2),
            ["2026-02-28T08:00:00.000Z", "2026-03-31T08:00:00.000Z"]
        );
    }

    #[test]
    fn a_recurrence_ends_at_its_end() {
        let mut hourly = every(Frequency::Hour, 1);
        hourly.start = "2026-11-21T08:00:00".parse().ok();
        hourly.end = "2026-11-21T10:00:00".parse().ok();
        hourly.time_zone = Some("Europe/Berlin".into());
        let schedule = Schedule {
            when: When::Recurrence(hourly),
            overlap: Overlap::Skip,
            missed: Missed::RunOnce,
        };
        let anchor = at("2026-11-20T00:00:00Z");
        let next = |text: &str| next_after(&schedule, anchor, at(text));
        let last = at("2026-11-21T09:00:00Z");
        assert_eq!(next("2026-11-21T08:00:00Z"), Some(last));
        assert_eq!(next("2026-11-21T09:00:00Z"), None);
        // Missed, it is still found; behind it there is nothing to wait for.
        let late = decide(
            &schedule,
            anchor,
            anchor,
            at("2026-12-01T00:00:00Z"),
            PreviousRun::None,
        );
        assert_eq!((late.start, late.next), (Some(last), None));
    }

    #[test]
    fn what_overlaps_and_what_was_missed() {
        let hourly = |overlap, missed| Schedule {
            overlap,
            missed,
            ..cron("0 * * * *", None)
        };
        let anchor = at("2026-11-21T00:30:00Z");
        let decided = |schedule: &Schedule, now: &str, earlier| {
            decide(schedule, anchor, anchor, at(now), earlier)
        };
        let skip = hourly(Overlap::Skip, Missed::Skip);
        let one = at("2026-11-21T01:00:00Z");
        let fresh = decided(&skip, "2026-11-21T01:00:01Z", PreviousRun::None);
        assert_eq!((fresh.start, fresh.until), (Some(one), Some(one)));
        assert_eq!(fresh.next, Some(at("2026-11-21T02:00:00Z")));
        let busy = decided(&skip, "2026-11-21T01:00:01Z", PreviousRun::UnderWay);
        assert_eq!((busy.start, busy.until), (None, Some(one)));
        let early = decided(&skip, "2026-11-21T00:59:59Z", PreviousRun::None);
        assert_eq!(
            (early.start, early.until, early.next),
            (None, None, Some(one))
        );

        // No process was running at five times.
        let five = at("2026-11-21T05:00:00Z");
        let missed = decided(&skip, "2026-11-21T05:30:00Z", PreviousRun::None);
        assert_eq!((missed.start, missed.until), (None, Some(five)));
        let once = hourly(Overlap::Skip, Missed::RunOnce);
        let made_up = decided(&once, "2026-11-21T05:30:00Z", PreviousRun::None);
        assert_eq!((made_up.start, made_up.until), (Some(five), Some(five)));

        let queue = hourly(Overlap::Queue, Missed::Skip);
        let waits = decided(&queue, "2026-11-21T01:00:01Z", PreviousRun::UnderWay);
        assert_eq!((waits.start, waits.until), (None, None));
        // However long it waited, it was not missed; what came after that end was.
        let ended = PreviousRun::Ended(at("2026-11-21T05:20:00Z"));
        let freed = decided(&queue, "2026-11-21T05:20:01Z", ended);
        assert_eq!((freed.start, freed.until), (Some(five), Some(five)));
        let away = decided(&queue, "2026-11-21T09:30:00Z", ended);
        assert_eq!(
            (away.start, away.until),
            (None, Some(at("2026-11-21T09:00:00Z")))
        );
        let allow = hourly(Overlap::Allow, Missed::Skip);
        assert_eq!(
            decided(&allow, "2026-11-21T01:00:01Z", PreviousRun::UnderWay).start,
            Some(one)
        );
    }
}
