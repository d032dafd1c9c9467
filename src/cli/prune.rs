//! `windlass prune`: forgets runs that have ended, also beside a process that owns the store.

use super::access::command;
use super::args::{Global, PruneArgs};
use super::exit::{Exit, Failure};
use super::output::{self, Format};
use crate::engine::{PruneFilter, Pruned, now, parse_duration};
use crate::server::control::Request;

/// The command.
pub async fn prune(global: &Global, args: &PruneArgs) -> Result<Exit, Failure> {
    let older_than_ms = match &args.older_than {
        None => None,
        Some(text) => {
            let age = parse_duration(text)
                .map_err(|error| Failure::Usage(format!("--older-than: {error}")))?;
            Some(u64::try_from(age.as_millis()).unwrap_or(u64::MAX))
        }
    };
    let filter = PruneFilter {
        older_than_ms,
        keep: args.keep,
        workflow: args.workflow.clone(),
        dry_run: args.dry_run,
    };
    let request = Request::Prune {
        filter: filter.clone(),
    };
    let pruned: Pruned = command(global, &request, async |engine| {
        engine.prune(&filter, now())
    })
    .await?;
    match args.output.output {
        Format::Table => output::print(&table(&pruned))?,
        format => output::document(format, &pruned)?,
    }
    Ok(Exit::Succeeded)
}

fn table(pruned: &Pruned) -> String {
    let mut text = String::new();
    for run in &pruned.runs {
        text.push_str(run);
        text.push('\n');
    }
    let what = if pruned.dry_run { "would be" } else { "were" };
    let (runs, programs) = (pruned.runs.len(), pruned.programs);
    text.push_str(&format!(
        "{runs} runs {what} forgotten, {programs} programs"
    ));
    text
}
