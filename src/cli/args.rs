//! The commands and their flags. Every flag has an environment variable.

use super::output::{Colour, Format};
use clap::builder::FalseyValueParser;
use clap::{ArgAction, Args, Parser, Subcommand};
use std::path::PathBuf;

/// Runs loops written in YAML or JSON as durable state machines.
#[derive(Debug, Parser)]
#[command(name = "windlass", version, arg_required_else_help = true)]
pub struct Arguments {
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    pub command: Command,
}

/// Flags of every command.
#[derive(Clone, Debug, Args)]
pub struct Global {
    /// The directory of the store
    #[arg(
        long,
        global = true,
        env = "WINDLASS_STATE",
        value_name = "DIR",
        default_value = "state"
    )]
    pub state: PathBuf,
    /// Tells more on standard error
    #[arg(short, long, global = true, env = "WINDLASS_VERBOSE", action = ArgAction::Count)]
    pub verbose: u8,
    /// When there is colour
    #[arg(
        long,
        global = true,
        env = "WINDLASS_COLOR",
        value_name = "WHEN",
        default_value = "auto",
        value_enum
    )]
    pub color: Colour,
}

/// The format of results.
#[derive(Clone, Debug, Args)]
pub struct Output {
    /// The format of what is printed on standard output
    #[arg(
        short,
        long,
        env = "WINDLASS_OUTPUT",
        value_name = "FORMAT",
        default_value = "table",
        value_enum
    )]
    pub output: Format,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Runs a workflow to its end
    Run(RunArgs),
    /// Goes on with one run, or with every unfinished run of the store
    Resume(ResumeArgs),
    /// Lets a run stand still until it is resumed
    Pause(RunName),
    /// Ends a run
    Cancel(RunName),
    /// Checks workflows and shows the limits of their loops
    Validate(ValidateArgs),
    /// Shows a workflow's state machine
    Compile(CompileArgs),
    /// Tries an expression
    Eval(EvalArgs),
}

/// A run.
#[derive(Debug, Args)]
pub struct RunName {
    /// The run's id
    pub run: String,
}

/// `windlass resume`.
#[derive(Debug, Args)]
pub struct ResumeArgs {
    /// The run's id; without it, every unfinished run
    pub run: Option<String>,
    #[command(flatten)]
    pub handlers: HandlerArgs,
    #[command(flatten)]
    pub events: EventArgs,
    #[command(flatten)]
    pub output: Output,
}

/// `windlass compile`.
#[derive(Debug, Args)]
pub struct CompileArgs {
    /// The workflow; `-` reads standard input
    pub file: PathBuf,
    /// How it is drawn
    #[arg(
        short,
        long,
        env = "WINDLASS_DRAWING",
        value_name = "FORMAT",
        default_value = "table",
        value_enum
    )]
    pub output: Drawing,
    #[command(flatten)]
    pub load: LoadArgs,
    #[command(flatten)]
    pub handlers: HandlerArgs,
}

/// How a state machine is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Drawing {
    /// One line a state.
    Table,
    /// A Mermaid state diagram.
    Mermaid,
    /// A Graphviz digraph.
    Dot,
    /// The states and scopes as JSON.
    Json,
}

/// `windlass eval`.
#[derive(Debug, Args)]
pub struct EvalArgs {
    /// The expression
    pub expression: Option<String>,
    /// A JSON or YAML file with what the expression sees
    #[arg(long, env = "WINDLASS_CONTEXT", value_name = "FILE")]
    pub context: Option<PathBuf>,
    /// The expression is a JSON array or object whose strings are templates, or one template
    #[arg(long, env = "WINDLASS_TEMPLATE", value_parser = FalseyValueParser::new(), action = ArgAction::SetTrue)]
    pub template: bool,
    /// The expression is a condition
    #[arg(long, env = "WINDLASS_CONDITION", conflicts_with = "template", value_parser = FalseyValueParser::new(), action = ArgAction::SetTrue)]
    pub condition: bool,
    /// Reads one JSON object a line from standard input: `expr`, `template` or `cond`, and a context
    #[arg(long, env = "WINDLASS_BATCH", value_parser = FalseyValueParser::new(), action = ArgAction::SetTrue)]
    pub batch: bool,
}

/// How a workflow is read.
#[derive(Clone, Debug, Args)]
pub struct LoadArgs {
    /// Reads the file as this format, whatever it looks like: loom, azure, tea, canvas
    #[arg(long, env = "WINDLASS_DIALECT", value_name = "FORMAT")]
    pub dialect: Option<String>,
    /// The most iterations a loop may ask for
    #[arg(long, env = "WINDLASS_MAX_COUNT", value_name = "N")]
    pub max_count: Option<u64>,
    /// The longest timeout a loop may ask for, as an ISO 8601 duration
    #[arg(long, env = "WINDLASS_MAX_TIMEOUT", value_name = "DURATION")]
    pub max_timeout: Option<String>,
}

/// Which handlers there are besides the workflow's own.
#[derive(Clone, Debug, Args)]
pub struct HandlerArgs {
    /// A YAML or JSON file of handlers for activities and actors: a name with `command` or `url`
    #[arg(long, env = "WINDLASS_HANDLERS", value_name = "FILE")]
    pub handlers: Option<PathBuf>,
}

/// `windlass run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// The workflow; `-` reads standard input
    pub file: PathBuf,
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
    #[command(flatten)]
    pub load: LoadArgs,
    #[command(flatten)]
    pub handlers: HandlerArgs,
    #[command(flatten)]
    pub events: EventArgs,
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

/// `windlass validate`.
#[derive(Debug, Args)]
pub struct ValidateArgs {
    /// The workflows
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
    /// Also refuses what only looks wrong
    #[arg(long, env = "WINDLASS_STRICT", value_parser = FalseyValueParser::new(), action = ArgAction::SetTrue)]
    pub strict: bool,
    #[command(flatten)]
    pub load: LoadArgs,
    #[command(flatten)]
    pub output: Output,
}
