//! The flags of commands that start runs or tell them what to do.

use super::{HandlerArgs, Lasting, LoadArgs, Output};
use crate::cli::policy::{EnvArgs, UntrustedArgs};
use clap::builder::FalseyValueParser;
use clap::{ArgAction, Args};
use std::path::PathBuf;

/// What a new run is given.
#[derive(Debug, Args)]
pub struct InputArgs {
    /// An input: NAME=TEXT, NAME:=JSON, or a JSON object of several
    #[arg(
        short = 'i',
        long = "set",
        env = "WINDLASS_SET",
        value_name = "NAME=VALUE"
    )]
    pub set: Vec<String>,
    /// A JSON or YAML file with the inputs; `-` reads standard input
    #[arg(long, env = "WINDLASS_INPUT", value_name = "FILE")]
    pub input: Option<PathBuf>,
    /// The run's id instead of one made from the workflow's name
    #[arg(long, env = "WINDLASS_ID", value_name = "ID")]
    pub id: Option<String>,
    /// Marks the run: NAME=TEXT, or a JSON object of several
    #[arg(long, env = "WINDLASS_LABEL", value_name = "NAME=TEXT")]
    pub label: Vec<String>,
    /// Hands the run to the server that owns the store, prints its id and leaves
    #[arg(long, env = "WINDLASS_DETACH", value_parser = FalseyValueParser::new(), action = ArgAction::SetTrue)]
    pub detach: bool,
}

/// `windlass run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// The workflow; `-` reads standard input
    pub file: PathBuf,
    #[command(flatten)]
    pub start: InputArgs,
    /// Also refuses what only looks wrong
    #[arg(long, env = "WINDLASS_STRICT", value_parser = FalseyValueParser::new(), action = ArgAction::SetTrue)]
    pub strict: bool,
    /// Does not wait at the interrupts of a file of The Edge Agent
    #[arg(long, env = "WINDLASS_AUTO_CONTINUE", value_parser = FalseyValueParser::new(), action = ArgAction::SetTrue)]
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

/// What a command is told that goes on with runs of the store, should its process come to own it.
#[derive(Clone, Debug, Args)]
pub struct OwnerArgs {
    #[command(flatten)]
    pub untrusted: UntrustedArgs,
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
    /// The run; without it every unfinished run that is not paused
    pub run: Option<String>,
    /// Goes on with every unfinished run, paused ones too
    #[arg(long, conflicts_with = "run", env = "WINDLASS_PAUSED")]
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
    /// The run
    pub run: Option<String>,
    #[command(flatten)]
    pub many: ManyArgs,
    /// From an action or iteration, with the state of then: fetch, poll#14, poll#14/fetch, or
    /// failed, the action that it failed at; without this from its beginning
    #[arg(long, env = "WINDLASS_FROM", value_name = "PLACE")]
    pub from: Option<String>,
    /// Goes on with the items that failed of its last foreach that had such, also of a run that
    /// succeeded
    #[arg(long, conflicts_with = "from", env = "WINDLASS_FAILED_ITEMS")]
    pub failed_items: bool,
    /// The new run's id instead of one made from the workflow's name
    #[arg(long, env = "WINDLASS_ID", value_name = "ID", requires = "run")]
    pub id: Option<String>,
    #[command(flatten)]
    pub owner: OwnerArgs,
}

/// `windlass signal`.
#[derive(Debug, Args)]
pub struct SignalArgs {
    /// The run
    pub run: String,
    /// The signal's name
    pub name: String,
    /// What the signal carries, as JSON
    #[arg(long, env = "WINDLASS_PAYLOAD", value_name = "JSON")]
    pub payload: Option<String>,
    #[command(flatten)]
    pub output: Output,
}

/// Many runs, by what they have in common. None of it comes from the environment.
#[derive(Clone, Debug, Default, Args)]
pub struct ManyArgs {
    /// All runs with this label: NAME=TEXT
    #[arg(long, value_name = "NAME=TEXT", conflicts_with = "run")]
    pub label: Vec<String>,
    /// All runs that do this: Running, Waiting, Paused, Succeeded, Failed, TimedOut, Cancelled
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
        conflicts_with = "run"
    )]
    pub workflow: Vec<String>,
    /// All runs that should go on, and that nothing has moved for so long: `10m`
    #[arg(long, value_name = "DURATION", conflicts_with = "run")]
    pub stuck: Option<Lasting>,
    /// Changes nothing, and lists the runs
    #[arg(long, conflicts_with = "run")]
    pub dry_run: bool,
}

impl ManyArgs {
    /// Whether it says which.
    pub fn is_some(&self) -> bool {
        let named = [&self.label, &self.status, &self.workflow];
        self.stuck.is_some() || named.iter().any(|words| !words.is_empty())
    }
}

/// `windlass pause`, `windlass cancel`.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("which").args(["run", "label", "status", "workflow", "stuck"]).required(true).multiple(true))]
pub struct RunArg {
    /// The run
    pub run: Option<String>,
    #[command(flatten)]
    pub many: ManyArgs,
    #[command(flatten)]
    pub output: Output,
}

/// Whether events are printed.
#[derive(Clone, Debug, Args)]
pub struct EventArgs {
    /// Prints every event on standard output while it happens, and the result as the last line
    #[arg(long, env = "WINDLASS_EVENTS", value_name = "FORMAT", value_enum)]
    pub events: Option<Events>,
}

/// The format of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Events {
    /// One JSON document a line.
    Jsonl,
}
