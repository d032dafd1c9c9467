//! `windlass audit`, and the entries in the audit log for commands that open the store themselves.

use super::access::remote;
use super::args::{AuditArgs, Global};
use super::exit::{Exit, Failure};
use super::format;
use super::output::{self, Screen};
use windlass_engine::{Actor, AuditFilter, AuditLog, EngineError, audit};

/// Prints the audit log, newest first.
pub async fn run(global: &Global, screen: Screen, args: &AuditArgs) -> Result<Exit, Failure> {
    let filter = AuditFilter {
        name: args.name.clone(),
        action: args.action.clone(),
        target: args.target.clone(),
        since: args.since.map(|since| since.0),
        limit: args.limit.limit(),
    };
    // Without a server the files are read directly, because they can be read while another process writes them.
    let report = match remote(global)? {
        Some(client) => client.audit(&filter).await?,
        None if !global.state.is_dir() => {
            return Err(EngineError::NoStore(global.state.clone()).into());
        }
        None => audit(&global.state, &filter)?,
    };
    let (format, entries) = (args.output.output, &report.entries);
    let head = ["AT", "NAME", "FROM", "ACTION", "TARGET", "RESULT"];
    output::rows(format, entries, "no entries", &head, |entry| {
        vec![
            format::date(entry.at),
            entry.actor.name.clone(),
            entry.actor.from.clone(),
            entry.action.clone(),
            entry.target.clone().unwrap_or_default(),
            entry.result.clone(),
        ]
    })?;
    if report.more > 0 {
        screen.say(format!("and {} more: --limit all", report.more));
    }
    Ok(Exit::Succeeded)
}

/// Executes a command on the store of this process. Records its start and its result in the audit log.
pub async fn audited<T>(
    global: &Global,
    action: &str,
    target: Option<&str>,
    work: impl Future<Output = Result<T, EngineError>>,
) -> Result<T, EngineError> {
    // Temporal itself stores the histories of its runs and the identities of its clients, so no entry is written.
    if global.engine.is_some() {
        return work.await;
    }
    let log = AuditLog::open(&global.state);
    let actor = Actor::command_line();
    log.record(actor, action, target, work, EngineError::code)
        .await
}
