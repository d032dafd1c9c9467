//! `windlass schedule`: when kept workflows start by themselves.

use super::access::inspect;
use super::args::{Global, HandlerArgs, NextArgs, Output, ScheduleArgs, ScheduleCommand};
use super::exit::{Exit, Failure};
use super::output::{self, Format, Screen};
use super::{format, inputs, workflow};
use serde::Serialize;
use std::path::Path;
use windlass_engine::report::ScheduleReport;
use windlass_engine::{Timestamp, now};

pub async fn run(global: &Global, screen: Screen, args: &ScheduleArgs) -> Result<Exit, Failure> {
    match &args.command {
        ScheduleCommand::List(args) => list(global, args).await,
        ScheduleCommand::Next(args) => next(global, screen, args).await,
    }
}

async fn schedule(global: &Global, name: &str) -> Result<ScheduleReport, Failure> {
    inspect(
        global,
        async |client| client.workflow_schedule(name).await,
        |store| store.workflow_schedule(name),
    )
    .await
}

/// A workflow that starts by itself.
#[derive(Serialize)]
struct Scheduled {
    name: String,
    #[serde(flatten)]
    schedule: ScheduleReport,
}

async fn list(global: &Global, args: &Output) -> Result<Exit, Failure> {
    let mut all = Vec::new();
    for kept in workflow::stored_workflows(global).await? {
        let schedule = schedule(global, &kept.name).await?;
        if schedule.schedule.is_some() {
            let name = kept.name;
            all.push(Scheduled { name, schedule });
        }
    }
    match args.output {
        Format::Table if all.is_empty() => output::print("no schedules")?,
        Format::Table => {
            let head = [
                "NAME", "SCHEDULE", "TIMEZONE", "NEXT", "OVERLAP", "MISSED", "LAST",
            ];
            let now = now();
            let rows = all.iter().map(|one| {
                let schedule = one.schedule.clone();
                let next = schedule.next.first();
                let next = next.map(|at| time_text(*at, now)).unwrap_or_default();
                let said = Option::unwrap_or_default;
                vec![
                    one.name.clone(),
                    said(schedule.schedule),
                    said(schedule.timezone),
                    next,
                    said(schedule.overlap),
                    said(schedule.missed),
                    said(schedule.last),
                ]
            });
            output::print(output::table(&head, rows))?;
        }
        format => output::list(format, &all)?,
    }
    Ok(Exit::Succeeded)
}

async fn next(global: &Global, screen: Screen, args: &NextArgs) -> Result<Exit, Failure> {
    let path = Path::new(&args.which);
    let report = if path.is_file() {
        let options = inputs::options(global, &args.load, &HandlerArgs::default())?;
        let workflow = windlass_engine::load(path, &options)?;
        ScheduleReport::new(&workflow, now(), now(), None)
    } else {
        schedule(global, &args.which).await?
    };
    match args.output.output {
        Format::Table => {
            if report.schedule.is_none() {
                screen.say(format!("{} has no schedule", args.which));
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
