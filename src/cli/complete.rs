//! Completion in shells.
//! The script of a shell calls this program with the words of the command line. So commands, options and the ids of
//! runs are up to date.

use super::args::{self, CompletionsArgs, Global};
use super::exit::{Exit, Failure};
use super::list::runs;
use super::{on_one_thread, output};
use clap::{Command, FromArgMatches};
use clap_complete::env::{CompleteEnv, Shells};
use clap_complete::{ArgValueCompleter, CompletionCandidate};
use std::ffi::{OsStr, OsString};
use std::time::Duration;
use windlass_engine::report::ListFilter;

/// The environment variable with the name of the shell. The script of the shell sets it.
const VARIABLE: &str = "_WINDLASS_COMPLETE";

/// Maximum number of run ids that are offered. If there are more, the newest ones are offered.
const MAX_IDS: usize = 200;

/// Maximum time that a shell waits for run ids.
const TIMEOUT: Duration = Duration::from_secs(1);

/// Prints the script of a shell (`windlass completions`).
pub fn script(args: &CompletionsArgs) -> Result<Exit, Failure> {
    let shells = Shells::builtins();
    let mut script = Vec::new();
    if let Some(shell) = shells.completer(&args.shell.to_string()) {
        shell
            .write_registration(VARIABLE, "windlass", "windlass", "windlass", &mut script)
            .map_err(Failure::Output)?;
    }
    output::print_exact(String::from_utf8_lossy(&script))?;
    Ok(Exit::Succeeded)
}

/// Answers a call of a shell's script. Returns false if this process was not called by such a script.
pub fn answer() -> clap::error::Result<bool> {
    let words = std::env::args_os();
    let folder = std::env::current_dir().ok();
    CompleteEnv::with_factory(|| with_runs(args::command()))
        .var(VARIABLE)
        .try_complete(words, folder.as_deref())
}

/// Completes every argument RUN with the run ids of the store.
fn with_runs(command: Command) -> Command {
    command
        .mut_args(|arg| match arg.get_id() == "run" && arg.is_positional() {
            true => arg.add(ArgValueCompleter::new(ids)),
            false => arg,
        })
        .mut_subcommands(with_runs)
}

/// Returns the run ids with this beginning.
/// Returns an empty list if there is no store, or if it cannot be read.
fn ids(begin: &OsStr) -> Vec<CompletionCandidate> {
    let filter = ListFilter {
        prefix: begin.to_str().map(str::to_owned),
        limit: Some(MAX_IDS),
        ..ListFilter::default()
    };
    let Some(global) = global() else {
        return Vec::new();
    };
    let listed = on_one_thread(async {
        let listed = tokio::time::timeout(TIMEOUT, runs(&global, &filter)).await;
        Ok(listed.ok().and_then(Result::ok))
    });
    let rows = listed
        .ok()
        .flatten()
        .map_or(Vec::new(), |listed| listed.runs);
    let rows = rows.into_iter().enumerate();
    rows.map(|(order, row)| {
        let about = format!("{} {}", row.summary.workflow, row.summary.status.as_str());
        CompletionCandidate::new(row.summary.run)
            .help(Some(about.into()))
            .display_order(Some(order))
    })
    .collect()
}

/// Returns the global options on the command line, as far as they are already typed.
fn global() -> Option<Global> {
    let words = std::env::args_os().skip_while(|word| word != "--").skip(1);
    let words: Vec<OsString> = words.collect();
    let parsed = args::command().ignore_errors(true);
    let matches = parsed.try_get_matches_from(words).ok()?;
    Global::from_arg_matches(&matches).ok()
}
