//! The times of schedules, and what is decided about them.

use super::*;

const UNDER_WAY: PreviousRun = PreviousRun::UnderWay { is_late: false };

fn since(anchor: Timestamp) -> Past<'static> {
    Past {
        anchor,
        until: anchor,
        pauses: &[],
        process_start: Timestamp(0),
    }
}

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
fn only_a_star_keeps_the_real_time_when_the_clock_changes() {
    for (pattern, spring, autumn) in [
        ("30 2 * * *", &["01:00"][..], &["00:30"][..]),
        ("0,30 2 * * *", &["01:00"], &["00:00", "00:30"]),
        ("15 1,2 * * *", &["00:15", "01:00"], &["23:15", "00:15"]),
        ("0 2,3 * * *", &["01:00"], &["00:00", "02:00"]),
        (
            "0 1-3 * * *",
            &["00:00", "01:00"],
            &["23:00", "00:00", "02:00"],
        ),
        ("0-30/15 2 * * *", &["01:00"], &["00:00", "00:15", "00:30"]),
        ("0 0,30 2 * * *", &["01:00"], &["00:00", "00:30"]),
        ("*/30 2 * * *", &[], &["00:00", "00:30", "01:00", "01:30"]),
        (
            "0 1-3,*/6 * * *",
            &["23:00", "00:00", "01:00"],
            &["22:00", "23:00", "00:00", "01:00", "02:00"],
        ),
    ] {
        let schedule = cron(pattern, Some("Europe/Berlin"));
        let of_night = |from: &str, to: &str| {
            let (times, _) = range(&schedule, Timestamp(0), at(from), at(to));
            let clock = |time: &Timestamp| time.to_string().get(11..16).map(str::to_owned);
            times.iter().filter_map(clock).collect::<Vec<_>>()
        };
        let found = of_night("2026-03-28T22:30:00Z", "2026-03-29T04:00:00Z");
        assert_eq!(found, spring, "{pattern}");
        let found = of_night("2026-10-24T22:00:00Z", "2026-10-25T04:00:00Z");
        assert_eq!(found, autumn, "{pattern}");
    }
    // A day that a zone skipped.
    let schedule = cron("0 9 30 * *", Some("Pacific/Apia"));
    let next = next_after(&schedule, Timestamp(0), at("2011-12-01T00:00:00Z"));
    assert_eq!(next, Some(at("2011-12-30T10:00:00Z")));
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
    // The last time was missed, but a run is still started for it. The recurrence has ended, so there is no next time.
    let now = at("2026-12-01T00:00:00Z");
    let late = decide(&schedule, since(anchor), now, PreviousRun::None);
    assert_eq!((late.start, late.next), (Some(last), None));
}

#[test]
fn what_overlaps_and_what_was_missed() {
    let anchor = at("2026-11-21T00:30:00Z");
    let decided =
        |schedule: &Schedule, now: &str, earlier| decide(schedule, since(anchor), at(now), earlier);
    let skip = hourly(Overlap::Skip, Missed::Skip);
    let one = at("2026-11-21T01:00:00Z");
    let fresh = decided(&skip, "2026-11-21T01:00:01Z", PreviousRun::None);
    assert_eq!((fresh.start, fresh.until), (Some(one), Some(one)));
    assert_eq!(fresh.next, Some(at("2026-11-21T02:00:00Z")));
    let busy = decided(&skip, "2026-11-21T01:00:01Z", UNDER_WAY);
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
    assert_eq!((missed.missed, missed.last_missed), (5, Some(five)));
    let once = hourly(Overlap::Skip, Missed::RunOnce);
    let made_up = decided(&once, "2026-11-21T05:30:00Z", PreviousRun::None);
    assert_eq!((made_up.start, made_up.until), (Some(five), Some(five)));
    assert_eq!(made_up.missed, 0);

    // The process of the previous run died, and no process was running at three of the times.
    let restarted = |schedule: &Schedule, earlier| {
        let past = Past {
            process_start: at("2026-11-21T03:30:00Z"),
            ..since(anchor)
        };
        decide(schedule, past, at("2026-11-21T05:30:00Z"), earlier)
    };
    let waits = restarted(&once, UNDER_WAY);
    assert_eq!((waits.start, waits.until), (None, None));
    let reported = restarted(&skip, UNDER_WAY);
    assert_eq!((reported.start, reported.until), (None, Some(five)));
    let third = at("2026-11-21T03:00:00Z");
    assert_eq!((reported.missed, reported.last_missed), (3, Some(third)));

    let queue = hourly(Overlap::Queue, Missed::Skip);
    let waits = decided(&queue, "2026-11-21T01:00:01Z", UNDER_WAY);
    assert_eq!((waits.start, waits.until), (None, None));
    // Times that waited for the previous run were not missed, however long they waited. Later times were missed.
    let ended = PreviousRun::Ended {
        at: at("2026-11-21T05:20:00Z"),
    };
    let freed = decided(&queue, "2026-11-21T05:20:01Z", ended);
    assert_eq!((freed.start, freed.until), (Some(five), Some(five)));
    assert_eq!(freed.missed, 0);
    let away = decided(&queue, "2026-11-21T09:30:00Z", ended);
    assert_eq!(
        (away.start, away.until),
        (None, Some(at("2026-11-21T09:00:00Z")))
    );
    assert_eq!(away.missed, 4);
    let allow = hourly(Overlap::Allow, Missed::Skip);
    assert_eq!(
        decided(&allow, "2026-11-21T01:00:01Z", UNDER_WAY).start,
        Some(one)
    );
}

/// The next times, without the seconds.
fn next_times(schedule: &Schedule, after: &str, count: usize) -> Vec<String> {
    let mut after = at(after);
    let times = std::iter::from_fn(|| {
        after = next_after(schedule, after, after)?;
        Some(after.to_utc().format("%m-%d %H:%M").to_string())
    });
    times.take(count).collect()
}

#[test]
fn a_fixed_time_runs_once_a_day_also_when_the_clock_is_changed() {
    // 02:00 to 03:00 does not exist on 29 March, and exists twice on 25 October.
    let berlin = cron("30 2 * * *", Some("Europe/Berlin"));
    assert_eq!(
        next_times(&berlin, "2026-03-27T12:00:00Z", 3),
        ["03-28 01:30", "03-29 01:00", "03-30 00:30"]
    );
    assert_eq!(
        next_times(&berlin, "2026-10-23T12:00:00Z", 3),
        ["10-24 00:30", "10-25 00:30", "10-26 01:30"]
    );
    // 00:00 to 01:00 does not exist on 6 September; 23:00 to 24:00 exists twice on 4 April.
    let santiago = cron("30 0 * * *", Some("America/Santiago"));
    assert_eq!(
        next_times(&santiago, "2026-09-04T12:00:00Z", 3),
        ["09-05 04:30", "09-06 04:00", "09-07 03:30"]
    );
    let santiago = cron("30 23 * * *", Some("America/Santiago"));
    assert_eq!(
        next_times(&santiago, "2026-04-03T12:00:00Z", 3),
        ["04-04 02:30", "04-05 02:30", "04-06 03:30"]
    );
}

#[test]
fn every_quarter_of_an_hour_stays_one_when_the_clock_is_changed() {
    let changes = [
        (
            "Europe/Berlin",
            "2026-03-29T00:30:00Z",
            "03-29",
            "00:45 01:00 01:15 01:30",
        ),
        (
            "Europe/Berlin",
            "2026-10-25T00:30:00Z",
            "10-25",
            "00:45 01:00 01:15 01:30 01:45 02:00",
        ),
        (
            "America/Santiago",
            "2026-09-06T03:30:00Z",
            "09-06",
            "03:45 04:00 04:15 04:30",
        ),
        (
            "America/Santiago",
            "2026-04-05T02:30:00Z",
            "04-05",
            "02:45 03:00 03:15 03:30 03:45 04:00 04:15",
        ),
    ];
    for (zone, after, day, expected) in changes {
        let schedule = cron("*/15 * * * *", Some(zone));
        let expected: Vec<String> = expected
            .split(' ')
            .map(|time| format!("{day} {time}"))
            .collect();
        assert_eq!(
            next_times(&schedule, after, expected.len()),
            expected,
            "{zone}"
        );
    }
}

fn hourly(overlap: Overlap, missed: Missed) -> Schedule {
    Schedule {
        overlap,
        missed,
        ..cron("0 * * * *", None)
    }
}

#[test]
fn each_missed_time_is_decided_in_order() {
    let anchor = at("2026-11-21T00:30:00Z");
    let now = at("2026-11-21T05:30:00Z");
    let one = at("2026-11-21T01:00:00Z");
    let late = PreviousRun::UnderWay { is_late: true };
    for overlap in [
        Overlap::Skip,
        Overlap::Queue,
        Overlap::Replace,
        Overlap::Allow,
    ] {
        let all = hourly(overlap, Missed::RunAll);
        let first = decide(&all, since(anchor), now, PreviousRun::None);
        assert_eq!((first.start, first.until), (Some(one), Some(one)));
        assert_eq!((first.next, first.missed), (Some(now), 0));
        // The next missed time waits for the end of the late run, except with `Allow`.
        let second = decide(&all, since(one), now, late);
        let expected = (overlap == Overlap::Allow).then(|| at("2026-11-21T02:00:00Z"));
        assert_eq!((second.start, second.until), (expected, expected));
    }
    // If the run is not late, the overlap policy decides again.
    let past = since(at("2026-11-21T05:00:00Z"));
    let (now, six) = (at("2026-11-21T06:00:01Z"), Some(at("2026-11-21T06:00:00Z")));
    let decided = |overlap, earlier| {
        let decision = decide(&hourly(overlap, Missed::RunAll), past, now, earlier);
        (decision.start, decision.until)
    };
    assert_eq!(decided(Overlap::Skip, UNDER_WAY), (None, six));
    assert_eq!(decided(Overlap::Replace, UNDER_WAY), (six, six));
    assert_eq!(decided(Overlap::Queue, UNDER_WAY), (None, None));
    assert_eq!(decided(Overlap::Skip, late), (None, None));
}

#[test]
fn times_that_waited_in_the_queue_are_one_and_missed_ones_are_each() {
    let all = hourly(Overlap::Queue, Missed::RunAll);
    let ended = PreviousRun::Ended {
        at: at("2026-11-21T05:20:00Z"),
    };
    let past = since(at("2026-11-21T01:00:00Z"));
    let now = at("2026-11-21T05:20:01Z");
    let waited = decide(&all, past, now, ended).start;
    assert_eq!(waited, Some(at("2026-11-21T05:00:00Z")));
    // The first times were due while no process was running.
    let restarted = Past {
        process_start: at("2026-11-21T03:30:00Z"),
        ..past
    };
    let decision = decide(&all, restarted, now, ended);
    assert_eq!(decision.start, Some(at("2026-11-21T02:00:00Z")));
}

/// Runs of 2.2 seconds, for a schedule of every second. `until` is decided when the process starts at `start`. Returns
/// the times with a run, with the delay of each start in milliseconds.
fn runs_of_two_seconds(overlap: Overlap, until: &str, start: &str) -> Vec<(Timestamp, u64)> {
    let schedule = Schedule {
        overlap,
        missed: Missed::RunAll,
        ..cron("* * * * * *", None)
    };
    let process_start = at(start);
    let mut past = Past {
        process_start,
        ..since(at(until))
    };
    let (mut now, mut runs) = (process_start, Vec::<(Timestamp, u64)>::new());
    while now < process_start.plus(Duration::from_secs(60)) {
        let earlier = runs.last().map_or(PreviousRun::None, |(time, delay)| {
            let end = time.plus(Duration::from_millis(delay + 2_200));
            match end <= now {
                true => PreviousRun::Ended { at: end },
                false => PreviousRun::UnderWay {
                    is_late: *delay > 10_000,
                },
            }
        });
        let decision = decide(&schedule, past, now, earlier);
        past.until = decision.until.unwrap_or(past.until);
        if let Some(time) = decision.start {
            let delay = now.since(time).as_millis();
            runs.push((time, u64::try_from(delay).unwrap()));
        }
        // A decision takes a few milliseconds.
        now = decision
            .next
            .unwrap()
            .max(now)
            .plus(Duration::from_millis(5));
    }
    runs
}

#[test]
fn a_schedule_that_makes_up_for_missed_times_catches_up() {
    let begin = "2026-11-21T05:00:00Z";
    for overlap in [Overlap::Queue, Overlap::Skip, Overlap::Replace] {
        for until in ["2026-11-21T05:00:00Z", "2026-11-21T04:59:50Z"] {
            let runs = runs_of_two_seconds(overlap, until, begin);
            let (_, delay) = *runs.last().unwrap();
            assert!(delay < 3_000, "{overlap:?} {until} {delay}");
            // Each of the missed times has a run.
            let missed = runs.iter().filter(|(time, _)| *time < at(begin)).count() as i64;
            assert_eq!(
                missed,
                (at(begin).0 - at(until).0 - 1).max(0) / 1_000,
                "{overlap:?}"
            );
        }
    }
}

#[test]
fn what_is_too_much_to_make_up_for_is_counted() {
    let every_second = |missed| Schedule {
        missed,
        ..cron("* * * * * *", None)
    };
    let past = since(at("2026-11-21T00:00:00Z"));
    let now = at("2026-11-21T01:00:00Z");
    let all = decide(&every_second(Missed::RunAll), past, now, PreviousRun::None);
    assert_eq!(all.start, Some(at("2026-11-21T00:43:21Z")));
    assert_eq!(
        (all.missed, all.last_missed),
        (2_600, Some(at("2026-11-21T00:43:20Z")))
    );
    let none = decide(&every_second(Missed::Skip), past, now, PreviousRun::None);
    assert_eq!((none.start, none.missed), (Some(now), 3_599));
    // Many scheduled times close together, long ago.
    let mut burst = every_second(Missed::RunAll);
    burst.when = When::Cron {
        pattern: "* * 0 1 1 *".into(),
        zone: None,
    };
    let past = since(at("2025-12-01T00:00:00Z"));
    let decision = decide(&burst, past, now, PreviousRun::None);
    let start = decision.start.unwrap();
    assert!(
        (at("2026-01-01T00:30:00Z")..at("2026-01-01T01:00:00Z")).contains(&start),
        "{start}"
    );
    assert!(decision.missed > 2_000, "{decision:?}");
}

#[test]
fn the_times_of_a_pause_are_none() {
    let schedule = hourly(Overlap::Skip, Missed::RunAll);
    let pauses = [SchedulePause {
        from: at("2026-11-21T01:30:00Z"),
        to: Some(at("2026-11-21T04:30:00Z")),
    }];
    let anchor = at("2026-11-21T00:30:00Z");
    let decided = |until: &str| {
        let past = Past {
            anchor,
            until: at(until),
            pauses: &pauses,
            process_start: anchor,
        };
        decide(
            &schedule,
            past,
            at("2026-11-21T05:30:00Z"),
            PreviousRun::None,
        )
    };
    // The time just before the pause still gets its run.
    assert_eq!(
        decided("2026-11-21T00:30:00Z").start,
        Some(at("2026-11-21T01:00:00Z"))
    );
    let after = decided("2026-11-21T01:00:00Z");
    assert_eq!(
        (after.start, after.missed),
        (Some(at("2026-11-21T05:00:00Z")), 0)
    );
}

#[test]
fn a_scheduled_time_knows_its_neighbours() {
    let schedule = cron("0 3 * * 1-5", Some("Europe/Berlin"));
    let (before, after) = neighbours(&schedule, at("2026-11-23T02:00:00Z"));
    assert_eq!(before, Some(at("2026-11-20T02:00:00Z")));
    assert_eq!(after, Some(at("2026-11-24T02:00:00Z")));
}

#[test]
fn a_day_begins_at_its_first_midnight() {
    for (zone, day, begins) in [
        ("America/Havana", "2026-11-01", "2026-11-01T04:00:00Z"),
        ("America/Havana", "2026-03-08", "2026-03-08T05:00:00Z"),
        ("Europe/Berlin", "2026-10-25", "2026-10-24T22:00:00Z"),
    ] {
        let schedule = cron("0 0 * * *", Some(zone));
        let found = start_of_day(&schedule, day.parse().unwrap());
        assert_eq!(found, Some(at(begins)), "{zone} {day}");
    }
}
