//! `windlass prune`: deletes runs that have ended, also while a process owns the store.
//! It can also free their disk space.

use super::access::{command, is_owned};
use super::args::{DurationArg, Global, PruneArgs};
use super::audit::audited;
use super::exit::{Exit, Failure};
use super::inputs;
use super::list::statuses;
use super::output::{self, Format, Screen, counted};
use super::workflow::explain_no_runs;
use serde::Serialize;
use windlass_engine::report::StatusFilter;
use windlass_engine::{Compacted, PruneFilter, Pruned, RunStatus, compact, now};

#[derive(Debug, Serialize)]
struct Report {
    #[serde(flatten)]
    pruned: Pruned,
    #[serde(skip_serializing_if = "Option::is_none")]
    compacted: Option<Compacted>,
}

pub async fn prune(global: &Global, screen: Screen, args: &PruneArgs) -> Result<Exit, Failure> {
    let older_than_ms = args.older_than.map(DurationArg::millis);
    let filter = PruneFilter {
        older_than_ms,
        keep: args.keep,
        workflows: args.workflow.clone(),
        labels: inputs::labels(&args.label)?,
        status: final_statuses(&args.status)?,
        dry_run: args.dry_run,
    };
    if args.compact {
        unowned(global, &filter).await?;
    }
    let chosen = !filter.labels.is_empty() || !filter.status.is_empty();
    let forgets = older_than_ms.is_some() || args.keep.is_some() || chosen;
    let pruned = if forgets {
        let pruned = command(
            global,
            async |client| client.prune(&filter).await,
            async |engine| {
                let prune = async { engine.prune(&filter, now()) };
                audited(global, "prune", None, prune).await
            },
        );
        pruned.await?
    } else {
        Pruned::default()
    };
    if pruned.runs.is_empty() {
        explain_no_runs(global, screen, &filter.workflows).await;
    }
    let compacted = match args.compact {
        true => Some(compact(&global.state)?),
        false => None,
    };
    let report = Report { pruned, compacted };
    match args.output.output {
        Format::Table => {
            output::print(table(&report, forgets, screen.verbose > 0))?;
            let forgotten = !report.pruned.runs.is_empty() && !args.dry_run;
            if forgotten && !args.compact && global.server.is_none() {
                screen.say(
                    "new runs reuse the freed space; `windlass prune --compact` returns it to the \
                     disk while no process owns the store",
                );
            }
        }
        format => output::document(format, &report)?,
    }
    Ok(Exit::Succeeded)
}

fn final_statuses(words: &[String]) -> Result<Vec<StatusFilter<RunStatus>>, Failure> {
    let statuses = statuses(words)?;
    let unended = statuses.iter().find_map(|status| match status {
        StatusFilter::Is(status) if !status.is_final() => Some(status),
        _ => None,
    });
    match unended {
        Some(status) => Err(Failure::Usage(format!(
            "--status {}: only runs that have ended can be deleted",
            status.as_str()
        ))),
        None => Ok(statuses),
    }
}

/// Checks that `--compact` is possible. No process may own the store, and `--dry-run` must not be set.
async fn unowned(global: &Global, filter: &PruneFilter) -> Result<(), Failure> {
    if filter.dry_run {
        let message =
            "--compact rewrites the store and --dry-run changes nothing: use only one of them";
        return Err(Failure::Usage(message.to_owned()));
    }
    if is_owned(global).await? {
        return Err(Failure::Taken(String::from(
            "a process owns the store: stop it before --compact, or run `prune` without --compact",
        )));
    }
    Ok(())
}

fn table(report: &Report, forgets: bool, ids: bool) -> String {
    let mut lines = Vec::new();
    let pruned = &report.pruned;
    if ids {
        lines.extend(pruned.runs.iter().cloned());
    }
    if forgets {
        let (runs, programs) = (pruned.runs.len() as u64, pruned.programs);
        let (runs, programs) = (counted(runs, "run"), counted(programs, "program"));
        lines.push(match pruned.dry_run {
            true => format!("{runs} would be deleted"),
            false => format!("{runs} and {programs} forgotten"),
        });
    }
    if let Some(Compacted { before, after }) = report.compacted {
        let [before, after] = [before, after].map(|bytes| bytes as f64 / f64::from(1 << 20));
        lines.push(format!(
            "the store has {after:.1} MiB on the disk, and had {before:.1}"
        ));
    }
    lines.join("\n")
}
