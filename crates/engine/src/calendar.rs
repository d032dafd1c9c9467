//! Calculates the times of a schedule, on the calendar of its time zone. The code reads no clock and no store: the
//! caller passes all data.

use chrono::{
    DateTime, Datelike, Days, Months, NaiveDate, NaiveDateTime, TimeDelta, Timelike, Utc,
};
use std::time::Duration;
use windlass_expression::{Zone, time_zone, zone_to_utc};
use windlass_model::model::{
    Frequency, Missed, Overlap, Recurrence, Schedule, When, instant_of, next_of_cron,
};
use windlass_store::SchedulePause;
use windlass_value::time::Timestamp;

/// A scheduled time that passed longer ago than this was missed, because no process was running at that time.
const LATE_AFTER: Duration = Duration::from_secs(60);

/// Time until the next check whether the previous run has ended, while a scheduled time waits for its end.
const QUEUED_AFTER: Duration = Duration::from_secs(2);

/// Time until the next check while missed times are caught up.
const BEHIND_AFTER: Duration = Duration::from_millis(500);

/// Maximum number of candidates (such as days) that are checked to find one scheduled time. As days, these are about
/// eight years.
const CANDIDATES: u32 = 3_000;

/// Maximum number of missed times that are caught up with one run each. If there are more, the newest ones are caught
/// up.
pub(super) const MAX_DUE: usize = 1_000;

/// Older missed times than those of [`MAX_DUE`] are only counted, up to this number.
const MAX_COUNTED: u64 = 10_000;

/// What to do for a schedule now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Decision {
    /// The scheduled time to start a run for. `None`: start no run.
    pub start: Option<Timestamp>,
    /// All scheduled times up to this one are now decided. `None`: nothing changes.
    pub until: Option<Timestamp>,
    /// Time of the next decision. `None`: the schedule has no further times.
    pub next: Option<Timestamp>,
    /// Number of missed times: past times that have no run and get none.
    pub missed: u64,
    /// The last of the missed times.
    pub last_missed: Option<Timestamp>,
}

/// The run that the schedule started before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PreviousRun {
    /// No run was started, or it is no longer known.
    None,
    /// The run has not ended.
    UnderWay {
        /// Whether the run was started long after its scheduled time.
        is_late: bool,
    },
    /// The run has ended.
    Ended { at: Timestamp },
}

impl PreviousRun {
    pub(super) fn is_under_way(self) -> bool {
        matches!(self, Self::UnderWay { .. })
    }

    /// Returns whether a scheduled time was due before this run ended.
    fn delayed(self, time: Timestamp) -> bool {
        match self {
            Self::None => false,
            Self::UnderWay { .. } => true,
            Self::Ended { at } => at >= time,
        }
    }
}

/// The state of a schedule: what was decided so far.
#[derive(Clone, Copy, Debug)]
pub(super) struct Past<'a> {
    /// When the schedule began. Recurrences count from this time.
    pub anchor: Timestamp,
    /// Scheduled times up to this one are decided.
    pub until: Timestamp,
    pub pauses: &'a [SchedulePause],
    /// When this process began. A scheduled time before it may have been due while no process was running.
    pub process_start: Timestamp,
}

/// The past times of a schedule that are not decided.
#[derive(Default)]
struct Due {
    /// The newest of these times, in order. At most [`MAX_DUE`].
    times: Vec<Timestamp>,
    /// Number of the times that are not in `times` because they are earlier, up to [`MAX_COUNTED`].
    dropped: u64,
}

/// Decides what to do for a schedule now.
pub(super) fn decide(
    schedule: &Schedule,
    past: Past<'_>,
    now: Timestamp,
    earlier: PreviousRun,
) -> Decision {
    let next = next_unpaused(schedule, past, now);
    let due = due(schedule, past, now);
    let (Some(first), Some(last)) = (due.times.first(), due.times.last()) else {
        return Decision {
            next,
            ..Decision::default()
        };
    };
    if schedule.missed == Missed::RunAll {
        let before = (due.dropped > 0).then(|| Timestamp(first.0.saturating_sub(1)));
        let dropped = Decision {
            start: None,
            until: before,
            next,
            missed: due.dropped,
            last_missed: before.and_then(|before| last_between(schedule, past, before)),
        };
        return decide_each(schedule, past, &due.times, now, earlier, dropped);
    }
    let queues = schedule.overlap == Overlap::Queue;
    let overlaps = schedule.overlap == Overlap::Skip && earlier.is_under_way();
    let in_outage = |time: &&Timestamp| **time < past.process_start;
    // A time that waited for the end of the previous run was not missed, however long it waited.
    let waited = |time: &Timestamp| queues && earlier.delayed(*time);
    let missed = now.since(*last) > LATE_AFTER && !waited(last);
    let catches_up = overlaps && schedule.missed == Missed::RunOnce && in_outage(&first);
    if catches_up || (queues && earlier.is_under_way()) {
        return Decision {
            next: Some(now.plus(QUEUED_AFTER)),
            ..Decision::default()
        };
    }
    let start = match schedule.missed {
        _ if overlaps => None,
        Missed::Skip if missed => None,
        _ => Some(*last),
    };
    let decided = Decision {
        start,
        until: Some(*last),
        next,
        ..Decision::default()
    };
    if schedule.missed == Missed::RunOnce {
        return decided;
    }
    let is_missed = |time: &&Timestamp| match overlaps {
        true => in_outage(time),
        false => Some(**time) != start && !waited(time),
    };
    let known = due.times.iter().filter(is_missed).count() as u64;
    let dropped = match is_missed(&first) {
        true => due.dropped,
        false => 0,
    };
    Decision {
        missed: known + dropped,
        last_missed: due.times.iter().rev().find(is_missed).copied(),
        ..decided
    }
}

/// Decides the first of several times, for a schedule that starts a run for each missed time. `dropped` is the decision
/// on the times that are only counted.
fn decide_each(
    schedule: &Schedule,
    past: Past<'_>,
    times: &[Timestamp],
    now: Timestamp,
    earlier: PreviousRun,
    dropped: Decision,
) -> Decision {
    let Some(first) = times.first().copied() else {
        return dropped;
    };
    let until_then = |time: Timestamp, start: bool| Decision {
        start: start.then_some(time),
        until: Some(time),
        next: match times.last() == Some(&time) {
            true => dropped.next,
            false => Some(now),
        },
        ..dropped
    };
    // The overlap policy applies to times that came due in this process, so that the schedule does not fall further and
    // further behind. If the process could not start runs for a minute, as in an outage, the times count as missed.
    let was_missed = first < past.process_start;
    // One time also waits for the end of a late run, because that run is the one that is late.
    let is_late = matches!(earlier, PreviousRun::UnderWay { is_late: true });
    let waits = was_missed || now.since(first) > LATE_AFTER || (is_late && times.len() == 1);
    match (earlier, schedule.overlap) {
        (PreviousRun::UnderWay { .. }, Overlap::Allow) => until_then(first, true),
        (PreviousRun::UnderWay { .. }, overlap) if waits || overlap == Overlap::Queue => Decision {
            next: Some(now.plus(BEHIND_AFTER)),
            ..dropped
        },
        (PreviousRun::UnderWay { .. }, Overlap::Skip) => until_then(first, false),
        (PreviousRun::UnderWay { .. }, Overlap::Replace) => {
            until_then(times.last().copied().unwrap_or(first), true)
        }
        // Times that were due while this process was running, and before the previous run ended, were not missed. One
        // run is started for all of them.
        (PreviousRun::Ended { at }, Overlap::Queue) if !was_missed => {
            let waited = times.iter().rev().find(|time| **time <= at);
            until_then(waited.copied().unwrap_or(first), true)
        }
        _ => until_then(first, true),
    }
}

/// Returns the times up to `to` that are not decided.
fn due(schedule: &Schedule, past: Past<'_>, to: Timestamp) -> Due {
    let (times, all) = between(schedule, past, to, MAX_DUE);
    if all {
        return Due { times, dropped: 0 };
    }
    let times = newest(schedule, past, to);
    let mut dropped = 0;
    let (mut at, first) = (past.until, times.first().copied().unwrap_or(to));
    while dropped < MAX_COUNTED
        && let Some(next) = next_unpaused(schedule, past, at).filter(|next| *next < first)
    {
        dropped += 1;
        at = next;
    }
    Due { times, dropped }
}

/// Returns the newest times before `to`. To find them, searches for a span of time that contains about [`MAX_DUE`]
/// times.
fn newest(schedule: &Schedule, past: Past<'_>, to: Timestamp) -> Vec<Timestamp> {
    let (mut few, mut many, mut span) = (0_i64, None::<i64>, 60_000_i64);
    let mut newest = Vec::new();
    // Stop when the span with too few times and the span with too many differ by at most a second.
    while many.is_none_or(|many| many - few > 1_000) {
        let until = Timestamp(to.0.saturating_sub(span)).max(past.until);
        let (times, all) = between(schedule, Past { until, ..past }, to, 2 * MAX_DUE);
        if all {
            few = span;
            newest = times;
            if newest.len() >= MAX_DUE || until == past.until {
                break;
            }
        } else {
            many = Some(span);
        }
        span = many.map_or(span.saturating_mul(2), |many| few + (many - few) / 2);
    }
    newest.split_off(newest.len().saturating_sub(MAX_DUE))
}

/// Returns the first times up to `to` that are not decided, at most `max`. Also returns whether these are all of them.
fn between(
    schedule: &Schedule,
    past: Past<'_>,
    to: Timestamp,
    max: usize,
) -> (Vec<Timestamp>, bool) {
    let (mut times, mut at) = (Vec::new(), past.until);
    while let Some(next) = next_unpaused(schedule, past, at).filter(|next| *next <= to) {
        if times.len() == max {
            return (times, false);
        }
        times.push(next);
        at = next;
    }
    (times, true)
}

/// Returns the last time up to `to` that is not decided.
fn last_between(schedule: &Schedule, past: Past<'_>, to: Timestamp) -> Option<Timestamp> {
    // Search the nearest past first, because the times of a schedule that fires every second are too many for a full
    // search.
    let spans = [60_u64, 3_600, 86_400, 40 * 86_400, 4_000 * 86_400];
    spans.into_iter().find_map(|seconds| {
        let back = i64::try_from(seconds * 1_000).unwrap_or(i64::MAX);
        let mut at = Timestamp(to.0.saturating_sub(back)).max(past.until);
        let mut last = None;
        for _ in 0..CANDIDATES * 2 {
            match next_unpaused(schedule, past, at) {
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

/// Returns the first time of the schedule after `after` that is not in a pause.
fn next_unpaused(schedule: &Schedule, past: Past<'_>, mut after: Timestamp) -> Option<Timestamp> {
    loop {
        let next = next_after(schedule, past.anchor, after)?;
        let mut pauses = past.pauses.iter();
        let pause = pauses.find(|pause| pause.from < next && pause.to.is_none_or(|to| next <= to));
        match pause {
            None => return Some(next),
            Some(pause) => after = pause.to?,
        }
    }
}

/// Returns the times of a cron pattern before and after `time`. Returns none for a recurrence, whose times depend on
/// when it begins.
pub(super) fn neighbours(
    schedule: &Schedule,
    time: Timestamp,
) -> (Option<Timestamp>, Option<Timestamp>) {
    if matches!(schedule.when, When::Recurrence(_)) {
        return (None, None);
    }
    let past = Past {
        anchor: time,
        until: Timestamp(0),
        pauses: &[],
        process_start: Timestamp(0),
    };
    let before = last_between(schedule, past, Timestamp(time.0.saturating_sub(1)));
    (before, next_after(schedule, time, time))
}

/// Returns the times from `from` to before `to`, at most [`MAX_DUE`]. Also returns whether these are all of them.
pub(super) fn range(
    schedule: &Schedule,
    anchor: Timestamp,
    from: Timestamp,
    to: Timestamp,
) -> (Vec<Timestamp>, bool) {
    let past = Past {
        anchor,
        until: Timestamp(from.0.saturating_sub(1)),
        pauses: &[],
        process_start: Timestamp(0),
    };
    between(schedule, past, Timestamp(to.0.saturating_sub(1)), MAX_DUE)
}

/// Returns the first time after `after`. `None` if the schedule has no further times.
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

/// Returns when a day begins in the time zone of a schedule.
pub(super) fn start_of_day(schedule: &Schedule, day: NaiveDate) -> Option<Timestamp> {
    let zone = match &schedule.when {
        When::Cron { zone, .. } => zone,
        When::Recurrence(recurrence) => &recurrence.time_zone,
    };
    let midnight = instant_of(day.and_hms_opt(0, 0, 0)?, &zone_of(zone.as_deref()))?;
    Some(instant(midnight.naive_utc()))
}

/// Returns whether a time is after the end of the recurrence.
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

/// Returns the first time after `after` of a daily or weekly recurrence, which has hours and minutes of the day.
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

/// Converts a time of the wall clock to an instant. A time that the clock skips (at the start of daylight saving time)
/// becomes one hour later.
fn on_the_clock(wall: NaiveDateTime, zone: &Zone) -> Option<Timestamp> {
    zone_to_utc(wall, zone)
        .or_else(|| zone_to_utc(wall.checked_add_signed(TimeDelta::hours(1))?, zone))
        .map(instant)
}

#[cfg(test)]
mod tests;
