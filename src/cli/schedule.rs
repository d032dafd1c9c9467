//! `windlass schedule`: shows and controls when stored workflows start automatically.

use super::access::{command, inspect};
use super::args::{
    BackfillArgs, Global, HandlerArgs, NextArgs, Output, PauseScheduleArgs, ScheduleArgs,
    ScheduleCommand,
};
use super::audit::audited;
use super::exit::{Exit, Failure};
use super::follow::{View, follow};
use super::output::{self, Format, Screen, counted};
use super::session::{NewRun, Session, Setup, Source};
use super::signals::Signals;
use super::{format, inputs, workflow};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;
use windlass_engine::report::{ScheduleReport, ScheduledTime};
use windlass_engine::{ErrorCode, RunStatus, Timestamp, Value, now};

pub async fn run(global: &Global, screen: Screen, args: &ScheduleArgs) -> Result<Exit, Failure> {
    match &args.command {
        ScheduleCommand::List(args) => list(global, args).await,
        ScheduleCommand::Next(args) => next(global, screen, args).await,
        ScheduleCommand::Pause(args) => pause(global, args, true).await,
        ScheduleCommand::Resume(args) => pause(global, args, false).await,
        ScheduleCommand::Backfill(args) => backfill(global, screen, args).await,
    }
}

async fn pause(global: &Global, args: &PauseScheduleArgs, pause: bool) -> Result<Exit, Failure> {
    let name = &args.name;
    let changed = command(
        global,
        async |client| match pause {
            true => client.pause_schedule(name).await,
            false => client.resume_schedule(name).await,
        },
        async |engine| match pause {
            true => {
                let pause = async { engine.pause_schedule(name) };
                audited(global, "pause-schedule", Some(name), pause).await
            }
            false => {
                let resume = async { engine.resume_schedule(name) };
                audited(global, "resume-schedule", Some(name), resume).await
            }
        },
    );
    let report = changed.await?;
    output::show(args.output.output, &report, || {
        let how = if pause { "paused" } else { "resumed" };
        format!("{name}  {how}")
    })
}

/// Starts runs for the times in a range that have no run yet, and continues the unfinished runs of the others.
/// The ids of the runs contain the times. So the same command continues where an earlier command stopped.
async fn backfill(global: &Global, screen: Screen, args: &BackfillArgs) -> Result<Exit, Failure> {
    let (name, from, to) = (&args.name, &args.from, args.to.as_deref());
    let times = inspect(
        global,
        async |client| client.scheduled_times(name, from, to).await,
        |store| store.scheduled_times(name, from, to),
    );
    let times = times.await?;
    if args.dry_run {
        let head = ["TIME", "RUN", "STATUS"];
        return output::rows(
            args.owner.output.output,
            &times,
            "no times",
            &head,
            |time| {
                let status = time.status.map_or("", |status| status.as_str());
                vec![format::date(time.time), time.run.clone(), status.to_owned()]
            },
        );
    }
    let has_ended = |time: &ScheduledTime| time.status.is_some_and(RunStatus::is_final);
    let (ended, open): (Vec<_>, Vec<_>) = times.into_iter().partition(has_ended);
    if !ended.is_empty() {
        let count = counted(ended.len() as u64, "time");
        screen.say(format!(
            "{count} skipped whose run has ended: --dry-run lists them"
        ));
    }
    let setup = Setup::existing(global, screen, &args.owner)?;
    let mut session = Session::attach(setup).await?;
    session.warn_ignored_flags(&args.owner.handlers, false);
    let mut signals = Signals::new()?;
    let begun = run_times(&mut session, &mut signals, (global, screen), args, &open).await;
    session.close(&mut signals).await;
    if !matches!(begun, Ok(Exit::Succeeded)) {
        screen.say("the same command continues: it skips the times whose run has ended");
    }
    begun
}

/// Runs the workflow for these times in order, several at a time. Returns the worst exit code.
async fn run_times(
    session: &mut Session,
    signals: &mut Signals,
    (global, screen): (&Global, Screen),
    args: &BackfillArgs,
    times: &[ScheduledTime],
) -> Result<Exit, Failure> {
    let owner = &args.owner;
    let view = View::of_owner(global, screen, owner);
    let (input, labels) = (Value::Null, BTreeMap::new());
    let mut worst = Exit::Succeeded;
    for group in times.chunks(usize::from(args.concurrency)) {
        let mut runs = Vec::new();
        for time in group {
            let new = NewRun {
                id: &time.run,
                source: Source::Stored(&args.name),
                input: &input,
                labels: &labels,
                scheduled_time: Some(time.time),
            };
            let is_new = match time.status {
                Some(_) => false,
                None => match session.start(&new).await {
                    Ok(()) => true,
                    // Another command, or the schedule itself, has already started this run.
                    Err(failure) if failure.code() == Some(ErrorCode::RunExists) => false,
                    Err(failure) => return Err(failure),
                },
            };
            if !is_new {
                match session.status(&time.run).await.map(|report| report.status) {
                    Some(status) if status.is_final() => continue,
                    // A paused run stays paused. Its follower reports how to resume it.
                    Some(RunStatus::Paused) => {}
                    _ => session.resume(&time.run).await?,
                }
            }
            let how = if is_new {
                ""
            } else {
                " is unfinished: following it"
            };
            screen.say(format!("run {}{how}", time.run));
            runs.push(time.run.clone());
        }
        worst = worst.max(follow(session, &runs, &view, signals).await?);
        // A run is paused, or the user has stopped this process. No further runs are started.
        if worst == Exit::Unfinished {
            break;
        }
    }
    Ok(worst)
}

async fn schedule(global: &Global, name: &str) -> Result<ScheduleReport, Failure> {
    inspect(
        global,
        async |client| client.workflow_schedule(name).await,
        |store| store.workflow_schedule(name),
    )
    .await
}

/// A workflow that starts automatically.
#[derive(Serialize)]
struct Scheduled {
    name: String,
    #[serde(flatten)]
    schedule: ScheduleReport,
}

async fn list(global: &Global, args: &Output) -> Result<Exit, Failure> {
    let mut all = Vec::new();
    for stored in workflow::stored_workflows(global).await? {
        let schedule = schedule(global, &stored.name).await?;
        if schedule.schedule.is_some() {
            let name = stored.name;
            all.push(Scheduled { name, schedule });
        }
    }
    let head = [
        "NAME", "SCHEDULE", "TIMEZONE", "NEXT", "OVERLAP", "MISSED", "LAST", "NOTICE",
    ];
    let now = now();
    output::rows(args.output, &all, "no schedules", &head, |one| {
        let schedule = one.schedule.clone();
        let next = schedule.next.first();
        let next = next.map(|at| time_text(*at, now)).unwrap_or_default();
        let notice = notice(&schedule);
        let or_empty = Option::unwrap_or_default;
        vec![
            one.name.clone(),
            or_empty(schedule.schedule),
            or_empty(schedule.timezone),
            next,
            or_empty(schedule.overlap),
            or_empty(schedule.missed),
            or_empty(schedule.last),
            notice,
        ]
    })
}

/// Returns what a user should know about a schedule: why it starts nothing, whether it is paused, and which times have
/// no run.
fn notice(schedule: &ScheduleReport) -> String {
    let paused = schedule.paused_since;
    let paused = paused.map(|since| format!("paused since {}", format::date(since)));
    let missed = schedule.last_missed.map(|last| {
        let last = format::date(last);
        format!("missed {}, last {last}", schedule.missed_times)
    });
    let failing = schedule.cannot_start.as_ref();
    let failing = failing.map(|why| format!("cannot start: {why}"));
    let parts: Vec<String> = failing.into_iter().chain(paused).chain(missed).collect();
    parts.join("; ")
}

async fn next(global: &Global, screen: Screen, args: &NextArgs) -> Result<Exit, Failure> {
    let path = Path::new(&args.which);
    // Names of workflows may have dots.
    let extension = path.extension().and_then(|extension| extension.to_str());
    let names_file = matches!(extension, Some("yaml" | "yml" | "json")) || args.which.contains('/');
    let report = if names_file || path.is_file() {
        let options = inputs::options(global, &args.load, &HandlerArgs::default())?;
        let workflow = windlass_engine::load(path, &options)?;
        // A schedule that cannot start runs has no times.
        workflow.refuse("no-default")?;
        ScheduleReport::new(&workflow, now(), now(), None)
    } else {
        schedule(global, &args.which).await?
    };
    match args.output.output {
        Format::Table => {
            match (&report.schedule, report.paused_since) {
                (None, _) => screen.say(format!("{} has no schedule", args.which)),
                (_, Some(_)) => screen.say(format!(
                    "the schedule of {0} is paused: windlass schedule resume {0}",
                    args.which
                )),
                (Some(schedule), None) if report.next.is_empty() => {
                    let zone = report.timezone.as_deref().unwrap_or("UTC");
                    screen.say(format!(
                        "{} has no further times: {schedule} ({zone})",
                        args.which
                    ));
                }
                (Some(_), None) => {}
            }
            let now = now();
            let times = report.next.iter().map(|at| time_text(*at, now));
            output::print(times.collect::<Vec<_>>().join("\n"))?;
        }
        format => output::document(format, &report)?,
    }
    Ok(Exit::Succeeded)
}

fn time_text(at: Timestamp, now: Timestamp) -> String {
    format!("{}  {}", format::date(at), format::until(at, now))
}
