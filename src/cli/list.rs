//! `windlass list`: prints the runs of the store.

use super::access::inspect;
use super::args::{DurationArg, Global, ListArgs, STATE};
use super::exit::{Exit, Failure};
use super::follow::target_flag;
use super::output::{self, Format, Screen};
use super::watch::{Shown, show};
use super::workflow::explain_no_runs;
use super::{format, inputs};
use std::cell::Cell;
use std::io::IsTerminal;
use std::path::Path;
use windlass_engine::report::{ListFilter, ListReport, RunRow, StatusFilter, list};
use windlass_engine::{EngineError, RunStatus, TURN_SIGNAL, Timestamp, now};

pub async fn run(global: &Global, screen: Screen, args: &ListArgs) -> Result<Exit, Failure> {
    let filter = ListFilter {
        status: statuses(&args.status)?,
        workflows: args.workflow.clone(),
        labels: inputs::labels(&args.label)?,
        limit: args.limit.limit(),
        text: args.text.clone(),
        since: args.since.map(|since| since.0),
        until: args.until.map(|until| until.0),
        stuck_since: args.stuck.map(DurationArg::ago),
        // With details, the list reads what each run waits for. For all runs of a store, this would take too long.
        detail: matches!(args.output.output, Format::Table) && args.limit.limit().is_some(),
        ..ListFilter::default()
    };
    if let (Some(since), Some(until)) = (filter.since, filter.until)
        && since > until
    {
        let message = "no run can be in the time from --since to --until: --since is later";
        return Err(Failure::Usage(message.to_owned()));
    }
    let format = args.output.output;
    show(screen, format, args.watch.watch, async || {
        let alone = Cell::new(false);
        let read = inspect(
            global,
            async |client| client.list(&filter).await,
            |store| {
                // No worker has polled for tasks of runs on Temporal.
                alone.set(global.engine.is_none() || !store.executes(""));
                list(store, &filter)
            },
        );
        let report = match read.await {
            // The default store may not exist yet, and counts as empty. A store that the user names must exist.
            Err(Failure::Engine(EngineError::NoStore(path))) if path == Path::new(STATE) => {
                ListReport::default()
            }
            other => other?,
        };
        if report.more > 0 && !args.watch.watch {
            screen.say(format!("and {} more: --limit all", report.more));
        }
        if report.runs.is_empty() && !args.watch.watch {
            explain_no_runs(global, screen, &filter.workflows).await;
        }
        let left = report.unfinished;
        if alone.get() && left > 0 && !args.watch.watch {
            let place = target_flag(global);
            screen.say(match global.engine {
                Some(_) => format!(
                    "no worker is running, so none of the {left} unfinished runs moves: start `windlass \
                     worker{place}`"
                ),
                None => format!(
                    "no server is running, so no run moves: `windlass resume{place}` resumes the \
                     unfinished runs, {left} here"
                ),
            });
        }
        Ok(Shown {
            text: match format {
                Format::Table => table(&report, now()).into(),
                format => output::list_text(format, &report.runs),
            },
            key: output::list_text(Format::Json, &report.runs),
            last: false,
        })
    })
    .await
}

/// Returns the runs that a filter selects.
pub async fn runs(global: &Global, filter: &ListFilter) -> Result<ListReport, Failure> {
    inspect(
        global,
        async |client| client.list(filter).await,
        |store| list(store, filter),
    )
    .await
}

pub fn statuses(words: &[String]) -> Result<Vec<StatusFilter<RunStatus>>, Failure> {
    let status = |word: &String| {
        StatusFilter::<RunStatus>::parse(word).ok_or_else(|| {
            let words = StatusFilter::words();
            Failure::Usage(format!("unknown status `{word}` (expected {words})"))
        })
    };
    words.iter().map(status).collect()
}

/// Returns what a run waits for: a signal or a time. A paused run waits only for its resumption.
fn next(row: &RunRow, now: Timestamp) -> String {
    if row.summary.status == RunStatus::Paused {
        return String::new();
    }
    let waits = row.detail.waits_for.as_ref();
    let signal = waits.and_then(|doing| doing.signal.as_deref());
    let due = row.summary.next_due_at.map(|due| format::until(due, now));
    match (signal.filter(|signal| *signal != TURN_SIGNAL), due) {
        (Some(signal), None) => format!("signal {signal}"),
        (Some(signal), Some(due)) => format!("signal {signal}, {due}"),
        (None, due) => due.unwrap_or_default(),
    }
}

fn table(report: &ListReport, now: Timestamp) -> String {
    if report.runs.is_empty() {
        return String::from("no runs");
    }
    let head = [
        "RUN", "WORKFLOW", "STATUS", "STARTED", "UPDATED", "NEXT", "LABELS",
    ];
    // Other programs read the complete text.
    let on_terminal = std::io::stdout().is_terminal();
    let fitted = |text: &str, most| match on_terminal {
        true => output::cut(text, most),
        false => output::line(text),
    };
    let rows = report.runs.iter().map(|row| {
        let run = &row.summary;
        vec![
            run.run.clone(),
            fitted(&run.workflow, 40),
            run.status_word().to_owned(),
            format::date(run.started_at),
            format::ago(run.updated_at, now),
            next(row, now),
            fitted(&output::labels(&run.labels), 60),
        ]
    });
    output::table(&head, rows)
}
