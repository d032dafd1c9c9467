//! The flags of commands that start or control runs.

use super::{DurationArg, HandlerArgs, LoadArgs, Output};
use crate::cli::policy::{EnvArgs, GuestArgs};
use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use std::path::PathBuf;
use windlass_engine::Timestamp;

/// Inputs and labels of a new run.
#[derive(Debug, Args)]
pub struct InputArgs {
    /// Input: NAME=TEXT, NAME:=JSON, or a JSON object with several
    #[arg(short = 'i', long = "set", value_name = "NAME=VALUE")]
    pub set: Vec<String>,
    /// JSON or YAML file with the inputs; `-` reads standard input
    #[arg(long, value_name = "FILE")]
    pub input: Option<PathBuf>,
    /// Run id (default: derived from the workflow's name)
    #[arg(long, value_name = "ID")]
    pub id: Option<String>,
    /// Label of the run: NAME=TEXT, or a JSON object with several
    #[arg(long, value_name = "NAME=TEXT")]
    pub label: Vec<String>,
    /// Scheduled time of the run (RFC 3339), as `schedule('time')` returns it
    #[arg(long, value_name = "TIME")]
    pub scheduled_time: Option<Timestamp>,
    /// Hand the run to the server that owns the store, print its id and exit
    #[arg(long)]
    pub detach: bool,
}

/// `windlass run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// Workflow file; `-` reads standard input
    pub file: PathBuf,
    #[command(flatten)]
    pub start: InputArgs,
    /// Treat warnings as errors
    #[arg(long)]
    pub strict: bool,
    /// Do not wait at the interrupts of a file of The Edge Agent
    #[arg(long)]
    pub auto_continue: bool,
    #[command(flatten)]
    pub load: LoadArgs,
    #[command(flatten)]
    pub handlers: HandlerArgs,
    #[command(flatten)]
    pub events: EventArgs,
    #[command(flatten)]
    pub output: Output,
}

/// Options of commands that continue runs of the store if their process becomes its owner.
#[derive(Clone, Debug, Args)]
pub struct OwnerArgs {
    #[command(flatten)]
    pub guest: GuestArgs,
    #[command(flatten)]
    pub env: EnvArgs,
    #[command(flatten)]
    pub handlers: HandlerArgs,
    #[command(flatten)]
    pub events: EventArgs,
    #[command(flatten)]
    pub output: Output,
}

/// `windlass resume`.
#[derive(Debug, Args)]
pub struct ResumeArgs {
    /// Run id (default: every unfinished run that is not paused)
    pub run: Option<String>,
    /// Resume every unfinished run, including paused ones
    #[arg(long, conflicts_with = "run")]
    pub paused: bool,
    #[command(flatten)]
    pub many: ManyArgs,
    #[command(flatten)]
    pub owner: OwnerArgs,
}

/// `windlass retry`.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("which").args(["run", "label", "status", "workflow", "stuck"]).required(true).multiple(true))]
pub struct RetryArgs {
    /// Run id, or a unique prefix of an id that Windlass generated
    pub run: Option<String>,
    #[command(flatten)]
    pub many: ManyArgs,
    /// Restart from this action or iteration, with its state at that time, e.g. fetch, poll#14,
    /// poll#14/fetch, or `failed` for the action that failed (default: the beginning)
    #[arg(long, value_name = "PLACE")]
    pub from: Option<String>,
    /// Retry only the failed items of a foreach, even if the run succeeded
    #[arg(long, conflicts_with = "from")]
    pub failed_items: bool,
    /// Id of the new run (default: derived from the workflow's name)
    #[arg(long, value_name = "ID", requires = "run")]
    pub id: Option<String>,
    /// Hand the new runs to the server that owns the store, print their ids and exit
    #[arg(long)]
    pub detach: bool,
    #[command(flatten)]
    pub owner: OwnerArgs,
}

/// `windlass signal`.
#[derive(Debug, Args)]
pub struct SignalArgs {
    /// Run id, or a unique prefix of an id that Windlass generated
    pub run: String,
    /// Name of the signal; default: the one that the run waits for
    pub name: Option<String>,
    /// Payload of the signal, as JSON, e.g. `{"approved": true}`; on a terminal, a question without it asks for its fields
    #[arg(long, value_name = "JSON")]
    pub payload: Option<String>,
    /// Choice that answers the question, e.g. `approve`
    #[arg(long, value_name = "TEXT", conflicts_with = "payload")]
    pub choice: Option<String>,
    /// Id of the signal: the run receives a repeated signal once, and refuses another one with this id
    #[arg(long, value_name = "ID")]
    pub id: Option<String>,
    #[command(flatten)]
    pub output: Output,
}

/// A selection of runs. None of these options has an environment variable.
#[derive(Clone, Debug, Default, Args)]
pub struct ManyArgs {
    /// All runs with this label, e.g. `team=data`
    #[arg(long, value_name = "NAME=TEXT", conflicts_with = "run")]
    pub label: Vec<String>,
    /// All runs with this status: Running, Waiting, Paused, Succeeded, SucceededWithFailures, Failed, TimedOut or
    /// Cancelled
    #[arg(
        long,
        value_name = "STATUS",
        value_delimiter = ',',
        conflicts_with = "run"
    )]
    pub status: Vec<String>,
    /// All runs of this workflow
    #[arg(
        long,
        value_name = "NAME",
        value_delimiter = ',',
        value_parser = NonEmptyStringValueParser::new(),
        conflicts_with = "run"
    )]
    pub workflow: Vec<String>,
    /// All runs stuck for at least this long, e.g. `10m`
    #[arg(long, value_name = "DURATION", conflicts_with = "run")]
    pub stuck: Option<DurationArg>,
    /// List the runs without changing them
    #[arg(long, conflicts_with = "run")]
    pub dry_run: bool,
}

impl ManyArgs {
    /// Returns whether any filter is set.
    pub fn is_some(&self) -> bool {
        let named = [&self.label, &self.status, &self.workflow];
        self.stuck.is_some() || named.iter().any(|words| !words.is_empty())
    }
}

/// `windlass pause`, `windlass cancel`.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("which").args(["run", "label", "status", "workflow", "stuck"]).required(true).multiple(true))]
pub struct RunArg {
    /// Run id, or a unique prefix of an id that Windlass generated
    pub run: Option<String>,
    #[command(flatten)]
    pub many: ManyArgs,
    #[command(flatten)]
    pub output: Output,
}

/// Whether events are printed.
#[derive(Clone, Debug, Args)]
pub struct EventArgs {
    /// Print events on standard output as they happen, and the result as the last line
    #[arg(long, value_name = "FORMAT", value_enum)]
    pub events: Option<Events>,
}

/// The format of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Events {
    /// One JSON document per line
    Jsonl,
}
