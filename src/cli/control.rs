//! `windlass pause`, `cancel` and `signal`: a command to one run, or to many. Without an owner a run is
//! changed in the store and does not move.

use super::access::command;
use super::args::{Global, Lasting, ManyArgs, Output, RunArg, SignalArgs};
use super::exit::{Exit, Failure};
use super::follow::target_flag;
use super::inputs;
use super::list::{runs, statuses};
use super::output::{self, Format, Screen, counted};
use super::status::{parked, report};
use serde_json::json;
use windlass_engine::report::ListFilter;
use windlass_engine::report::StatusFilter;
use windlass_engine::{Engine, RunStatus, Value};
use windlass_server::api::{BulkDone, BulkFailed, BulkReport, BulkVerb};

pub async fn pause(global: &Global, screen: Screen, args: &RunArg) -> Result<Exit, Failure> {
    let Some(run) = &args.run else {
        return run_bulk(global, screen, BulkVerb::Pause, args).await;
    };
    let status = command(
        global,
        async |client| client.pause(run).await,
        async |engine| engine.pause(run).await,
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
        async |engine| engine.cancel(run).await,
    );
    let status = status.await?;
    if !status.is_final() {
        let ends = format!("`{run}` ends when what it started elsewhere is cancelled");
        let resume = format!("`windlass resume{} {run}`", target_flag(global));
        // The run may have ended meanwhile, and so may the process that executed it.
        let report = report(global, run).await.ok();
        screen.say(match report.as_ref().and_then(parked) {
            Some(missing) => format!("{ends}, which waits: {missing}. Then {resume}"),
            None => format!("{ends}; if no process owns the store, start one: {resume}"),
        });
    }
    print(run, status, &args.output)
}

/// The ids of the runs that are meant, the newest first; only what the verb can be done to, unless
/// `--status` says which.
pub async fn select_runs(
    global: &Global,
    verb: BulkVerb,
    many: &ManyArgs,
) -> Result<Vec<String>, Failure> {
    let mut status = statuses(&many.status)?;
    if status.is_empty() {
        let fits = |status: &RunStatus| match verb {
            BulkVerb::Pause => status.is_progressing(),
            BulkVerb::Resume | BulkVerb::Cancel => !status.is_final(),
            BulkVerb::Retry => status.is_final() && *status != RunStatus::Succeeded,
        };
        let fitting = RunStatus::ALL.into_iter().filter(fits);
        status.extend(fitting.map(StatusFilter::Is));
    }
    let filter = ListFilter {
        status,
        workflows: many.workflow.clone(),
        labels: inputs::labels(&many.label)?,
        stuck_since: many.stuck.map(Lasting::ago),
        ..ListFilter::default()
    };
    let listed = runs(global, &filter).await?;
    Ok(listed.runs.into_iter().map(|row| row.summary.run).collect())
}

/// Prints the runs that would be meant.
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
    let runs = select_runs(global, verb, &args.many).await?;
    if args.many.dry_run {
        return print_dry_run(screen, &runs, &args.output);
    }
    let report = match runs.is_empty() {
        true => BulkReport::default(),
        false => {
            let done = command(
                global,
                async |client| client.bulk(verb, &runs).await,
                async |engine| Ok(each(engine, verb, &runs).await),
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

/// The same in a store that nobody owns: those runs do not move.
async fn each(engine: &Engine, verb: BulkVerb, runs: &[String]) -> BulkReport {
    let mut report = BulkReport::default();
    for run in runs {
        let outcome = match verb {
            BulkVerb::Pause => engine.pause(run).await,
            _ => engine.cancel_again(run).await,
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

pub async fn signal(global: &Global, args: &SignalArgs) -> Result<Exit, Failure> {
    let payload = match &args.payload {
        None => Value::Null,
        Some(text) => Value::from_json(text)
            .map_err(|error| Failure::Usage(format!("--payload must be JSON: {error}")))?,
    };
    let (run, name) = (&args.run, &args.name);
    let status = command(
        global,
        async |client| client.signal(run, name, payload.clone()).await,
        async |engine| engine.signal(run, name, payload.clone()).await,
    );
    print(run, status.await?, &args.output)
}

fn print(run: &str, status: RunStatus, output: &Output) -> Result<Exit, Failure> {
    match output.output {
        Format::Table => output::print(format!("{run}  {}", status.as_str()))?,
        format => output::document(format, &json!({ "run": run, "status": status }))?,
    }
    Ok(Exit::Succeeded)
}
