//! `windlass pause`, `cancel` and `signal`: a command to one run, or to many runs.
//! If no process owns the store, a run is changed in the store and not continued.

use super::access::command;
use super::args::{DurationArg, Global, ManyArgs, Output, RunArg, SignalArgs};
use super::audit::audited;
use super::exit::{Exit, Failure};
use super::follow::target_flag;
use super::inputs;
use super::list::{runs, statuses};
use super::next_commands::parked;
use super::output::{self, Format, Screen, counted};
use super::prompt;
use super::status::report;
use super::workflow::explain_no_runs;
use serde_json::json;
use std::collections::HashSet;
use windlass_engine::report::{ListFilter, QuestionReport, StatusFilter};
use windlass_engine::{Actor, CHOICE, Engine, RETRY_LABEL, RunStatus, TURN_SIGNAL, Value, new_id};
use windlass_server::api::{self, BulkDone, BulkFailed, BulkReport, BulkVerb};

pub async fn pause(global: &Global, screen: Screen, args: &RunArg) -> Result<Exit, Failure> {
    let Some(run) = &args.run else {
        return run_bulk(global, screen, BulkVerb::Pause, args).await;
    };
    let status = command(
        global,
        async |client| client.pause(run).await,
        async |engine| audited(global, "pause", Some(run), engine.pause(run)).await,
    );
    print(run, status.await?, &args.output)
}

pub async fn cancel(global: &Global, screen: Screen, args: &RunArg) -> Result<Exit, Failure> {
    let Some(run) = &args.run else {
        return run_bulk(global, screen, BulkVerb::Cancel, args).await;
    };
    let status = command(
        global,
        async |client| client.cancel(run).await,
        async |engine| audited(global, "cancel", Some(run), engine.cancel(run)).await,
    );
    let status = status.await?;
    if !status.is_final() {
        let ends = format!("`{run}` ends when what it started elsewhere is cancelled");
        let resume = format!("`windlass resume{} {run}`", target_flag(global));
        // The error is ignored: the run, or the process that executed it, may have ended meanwhile.
        let report = report(global, run).await.ok();
        screen.say(match report.as_ref().and_then(parked) {
            Some(missing) => format!("{ends}, which waits: {missing}. Then {resume}"),
            None => format!("{ends}; if no process owns the store, start one: {resume}"),
        });
    }
    print(run, status, &args.output)
}

/// Returns the ids of the selected runs, newest first.
/// Only those runs are selected to which the verb can be applied. A run that was retried is not retried again.
pub async fn select_runs(
    global: &Global,
    screen: Screen,
    verb: BulkVerb,
    many: &ManyArgs,
    of_items: bool,
) -> Result<Vec<String>, Failure> {
    let mut status = statuses(&many.status)?;
    let fits = |status: &RunStatus| match verb {
        BulkVerb::Pause => status.is_progressing(),
        BulkVerb::Resume | BulkVerb::Cancel => !status.is_final(),
        BulkVerb::Retry => status.is_final() && *status != RunStatus::Succeeded,
    };
    let fitting = || RunStatus::ALL.into_iter().filter(fits);
    let unfitting = status.iter().find(|status| match status {
        StatusFilter::SucceededWithFailures => !fits(&RunStatus::Succeeded),
        StatusFilter::Is(status) => !fits(status),
    });
    // Failed items of runs that succeeded can be retried.
    if let Some(status) = unfitting.filter(|_| !of_items) {
        let words: Vec<&str> = fitting().map(RunStatus::as_str).collect();
        return Err(Failure::Usage(format!(
            "--status {}: this command changes only runs that are {}",
            status.as_str(),
            words.join(", ")
        )));
    }
    if status.is_empty() {
        status.extend(fitting().map(StatusFilter::Is));
    }
    let filter = ListFilter {
        status,
        workflows: many.workflow.clone(),
        labels: inputs::labels(&many.label)?,
        stuck_since: many.stuck.map(DurationArg::ago),
        ..ListFilter::default()
    };
    let listed = runs(global, &filter).await?;
    if listed.runs.is_empty() {
        explain_no_runs(global, screen, &filter.workflows).await;
    }
    let mut selected: Vec<String> = listed.runs.into_iter().map(|row| row.summary.run).collect();
    if verb == BulkVerb::Retry {
        let retried = retried_runs(global, filter).await?;
        let count = selected.len();
        selected.retain(|run| !retried.contains(run));
        let skipped = count - selected.len();
        if skipped > 0 {
            let runs = counted(skipped as u64, "run");
            screen.say(format!("{runs} left out: retried before"));
        }
    }
    Ok(selected)
}

/// Returns the ids of the runs that were retried. A retry has the workflow and the labels of the retried run.
async fn retried_runs(global: &Global, filter: ListFilter) -> Result<HashSet<String>, Failure> {
    let filter = ListFilter {
        status: Vec::new(),
        stuck_since: None,
        ..filter
    };
    let listed = runs(global, &filter).await?;
    let labels = listed.runs.into_iter().map(|row| row.summary.labels);
    Ok(labels
        .filter_map(|mut labels| labels.remove(RETRY_LABEL))
        .collect())
}

/// Prints which runs the command would change (`--dry-run`).
pub fn print_dry_run(screen: Screen, runs: &[String], output: &Output) -> Result<Exit, Failure> {
    match output.output {
        Format::Table => {
            output::print(runs.join("\n"))?;
            screen.say(format!("{} in all", counted(runs.len() as u64, "run")));
        }
        format => output::list(format, runs)?,
    }
    Ok(Exit::Succeeded)
}

async fn run_bulk(
    global: &Global,
    screen: Screen,
    verb: BulkVerb,
    args: &RunArg,
) -> Result<Exit, Failure> {
    let runs = select_runs(global, screen, verb, &args.many, false).await?;
    if args.many.dry_run {
        return print_dry_run(screen, &runs, &args.output);
    }
    let report = match runs.is_empty() {
        true => BulkReport::default(),
        false => {
            let done = command(
                global,
                async |client| client.bulk(verb, &runs).await,
                async |engine| Ok(each(global, engine, verb, &runs).await),
            );
            done.await?
        }
    };
    match args.output.output {
        Format::Table => {
            for BulkDone { run, status, .. } in &report.done {
                let status = status.map_or("", RunStatus::as_str);
                output::print(format!("{run}  {status}"))?;
            }
            for failed in &report.failed {
                screen.warn(&format!("{}: {}", failed.run, failed.detail));
            }
            screen.say(format!("{} in all", counted(runs.len() as u64, "run")));
        }
        format => output::document(format, &report)?,
    }
    Ok(match report.failed.is_empty() {
        true => Exit::Succeeded,
        false => Exit::Failed,
    })
}

/// Changes runs in a store without an owner. The runs are not continued.
async fn each(global: &Global, engine: &Engine, verb: BulkVerb, runs: &[String]) -> BulkReport {
    let mut report = BulkReport::default();
    for run in runs {
        let outcome = match verb {
            BulkVerb::Pause => audited(global, "pause", Some(run), engine.pause(run)).await,
            _ => audited(global, "cancel", Some(run), engine.cancel_again(run)).await,
        };
        match outcome {
            Ok(status) => report.done.push(BulkDone {
                run: run.clone(),
                status: Some(status),
                new_run: None,
            }),
            Err(error) => report.failed.push(BulkFailed {
                run: run.clone(),
                code: error.code().word().to_owned(),
                detail: error.to_string(),
            }),
        }
    }
    report
}

pub async fn signal(global: &Global, screen: Screen, args: &SignalArgs) -> Result<Exit, Failure> {
    let run = &args.run;
    let payload = match (&args.payload, &args.choice) {
        (Some(text), _) => Some(
            Value::from_json(text)
                .map_err(|error| Failure::Usage(format!("--payload must be JSON: {error}")))?,
        ),
        (None, Some(choice)) => Some(Value::from_pairs([(CHOICE, Value::text(choice))])),
        (None, None) => None,
    };
    let (name, payload, received) = match (&args.name, payload) {
        (Some(name), Some(payload)) => (name.clone(), payload, None),
        (name, payload) => {
            let Awaited {
                name,
                question,
                received,
            } = awaited(global, run, name.as_deref()).await?;
            let payload = match payload {
                Some(payload) => payload,
                None => question.map_or(Ok(Value::Null), |question| prompt::ask(&question))?,
            };
            (name, payload, received)
        }
    };
    // If the answer of an owner is lost, the next owner receives the same request. The id makes the repetition
    // harmless.
    let id = args.id.clone().unwrap_or_else(|| new_id("signal"));
    let signal = api::Signal {
        name,
        payload,
        received,
        id: Some(id.clone()),
    };
    let sent = command(
        global,
        async |client| client.signal(run, &signal).await,
        async |engine| {
            let signal = signal.clone().sent_by(&Actor::command_line().name);
            audited(global, "signal", Some(run), engine.signal(run, signal)).await
        },
    );
    let sent = sent.await;
    if let Err(Failure::Client(error)) = &sent
        && error.code().is_none()
    {
        screen.warn(&format!(
            "it is unknown whether the signal was stored: repeat the command with --id {id}, and the run receives it once"
        ));
    }
    print(run, sent?, &args.output)
}

/// A signal that a run waits for.
#[derive(Clone)]
struct Awaited {
    name: String,
    /// The question that the signal answers. `None` if the run asks no question.
    question: Option<QuestionReport>,
    /// The member `received` of the report. `None` while the run does not wait for the signal.
    received: Option<u64>,
}

/// Returns the signal to send: the one called `name`, or the one that the run waits for.
async fn awaited(global: &Global, run: &str, name: Option<&str>) -> Result<Awaited, Failure> {
    let later = |name: &str| Awaited {
        name: name.to_owned(),
        question: None,
        received: None,
    };
    // A signal may be sent before the run waits for it. So a report that cannot be read is not an error if `name` is
    // known.
    let report = match (report(global, run).await, name) {
        (Ok(report), _) => report,
        (Err(_), Some(name)) => return Ok(later(name)),
        (Err(failure), None) => return Err(failure),
    };
    let waits = report.doing.into_iter().filter_map(|doing| {
        Some(Awaited {
            name: doing.signal.filter(|signal| signal != TURN_SIGNAL)?,
            question: doing.question,
            received: doing.received,
        })
    });
    let mut waits: Vec<_> = waits.collect();
    if let Some(name) = name {
        let wait = waits.into_iter().find(|wait| wait.name == name);
        return Ok(wait.unwrap_or_else(|| later(name)));
    }
    waits.dedup_by(|one, other| one.name == other.name);
    match waits.as_slice() {
        [wait] => Ok(wait.clone()),
        [] => Err(Failure::Usage(format!(
            "run {run} waits for no signal now: name the signal that it will wait for"
        ))),
        several => {
            let names: Vec<&str> = several.iter().map(|wait| wait.name.as_str()).collect();
            Err(Failure::Usage(format!(
                "run {run} waits for several signals: name one of {}",
                names.join(", ")
            )))
        }
    }
}

fn print(run: &str, status: RunStatus, output: &Output) -> Result<Exit, Failure> {
    let report = json!({ "run": run, "status": status });
    output::show(output.output, &report, || {
        format!("{run}  {}", status.as_str())
    })
}
