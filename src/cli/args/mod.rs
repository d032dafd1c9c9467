//! The commands and their flags. Every flag has an environment variable.

mod bench;
mod files;
mod groups;
mod quick;
mod reports;
mod runs;
mod serve;
mod state;
mod store;
mod test;
mod times;
mod variables;
#[cfg_attr(not(feature = "temporal"), path = "worker_off.rs")]
mod worker;
mod workflows;

pub use bench::*;
pub use files::*;
pub use quick::*;
pub use reports::*;
pub use runs::*;
pub use serve::*;
pub use state::*;
pub use store::*;
pub use test::*;
pub use times::*;
pub use worker::*;
pub use workflows::*;

use super::output::{Colour, Format};
use super::policy::EnvArgs;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{ArgAction, Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use std::path::PathBuf;
use windlass_engine::{HostRate, StoreKind};

/// Run loops written in YAML or JSON as durable state machines.
#[derive(Debug, Parser)]
#[command(name = "windlass", version, arg_required_else_help = true)]
pub struct Arguments {
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    pub command: Command,
}

/// Parses the command line. A variable of the environment that is empty counts as not set, but an empty `--server` or
/// `--engine` is an error: otherwise `--server "$UNSET"` would use the local store.
pub fn parse() -> Result<Arguments, clap::Error> {
    let mut command = command();
    let matches = command.try_get_matches_from_mut(std::env::args_os())?;
    let mut arguments = Arguments::from_arg_matches(&matches)?;
    let Global { server, engine, .. } = &mut arguments.global;
    for (name, value) in [("server", server), ("engine", engine)] {
        if value.take_if(|value| value.is_empty()).is_none() {
            continue;
        }
        if matches.value_source(name) == Some(ValueSource::CommandLine) {
            let message = format!("--{name} has no value: name a URL");
            return Err(command.error(ErrorKind::InvalidValue, message));
        }
    }
    Ok(arguments)
}

/// Returns the command line with all of its commands.
pub fn command() -> clap::Command {
    groups::grouped(variables::named(Arguments::command()))
}

/// Default directory of the store.
pub const STATE: &str = "state";

/// Heading of the global options in the help of a command.
const EVERYWHERE: &str = "Options of every command";

/// Flags of every command.
#[derive(Clone, Debug, Args)]
pub struct Global {
    /// Directory of the store
    #[arg(long, global = true, help_heading = EVERYWHERE, value_name = "DIR", default_value = STATE)]
    pub state: PathBuf,
    /// Database for a new store: sled or fjall (an existing store keeps its own)
    #[arg(long, global = true, help_heading = EVERYWHERE, value_name = "KIND", value_parser = store_kind())]
    pub store: Option<StoreKind>,
    /// URL of a server to use instead of a local store, e.g. `http://127.0.0.1:7465`
    #[arg(long, global = true, help_heading = EVERYWHERE, value_name = "URL")]
    pub server: Option<String>,
    /// Temporal service to use instead of a local store: temporal://HOST:PORT/NAMESPACE?queue=NAME
    #[arg(long, global = true, help_heading = EVERYWHERE, value_name = "URL", hide = cfg!(not(feature = "temporal")))]
    pub engine: Option<String>,
    /// File with the token (of `serve`: lines of `NAME ROLE TOKEN`, or one token); WINDLASS_TOKEN
    /// contains the token itself
    #[arg(long, global = true, help_heading = EVERYWHERE, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// Allow tokens over plain HTTP: to a --server on another machine or, with `serve`, from other
    /// machines behind a proxy that terminates TLS
    #[arg(long, global = true, help_heading = EVERYWHERE)]
    pub allow_plain_http: bool,
    /// File with the key that encrypts secure values in the store: 32 random bytes
    #[arg(long, global = true, help_heading = EVERYWHERE, env = "WINDLASS_STATE_KEY_FILE", value_name = "FILE")]
    pub state_key: Option<PathBuf>,
    /// Print more details on standard error; repeat for more (`-vv`)
    #[arg(short, long, global = true, help_heading = EVERYWHERE, action = ArgAction::Count)]
    pub verbose: u8,
    /// Print times in the local time zone (the default on a terminal)
    #[arg(long, global = true, help_heading = EVERYWHERE)]
    pub local: bool,
    /// Print times in UTC, ending with `Z` (the default elsewhere)
    #[arg(long, global = true, help_heading = EVERYWHERE, conflicts_with = "local")]
    pub utc: bool,
    /// Colour output: auto, always or never
    #[arg(long, global = true, help_heading = EVERYWHERE, value_name = "WHEN", default_value = "auto", value_enum)]
    pub color: Colour,
}

/// Parses the name of a database.
fn store_kind() -> impl TypedValueParser<Value = StoreKind> {
    let kinds = StoreKind::ALL;
    PossibleValuesParser::new(kinds.map(StoreKind::as_str)).try_map(move |word| {
        let named = kinds.into_iter().find(|kind| kind.as_str() == word);
        named.ok_or("unknown database")
    })
}

/// The format of results.
#[derive(Clone, Debug, Args)]
pub struct Output {
    /// Format of the result on standard output
    #[arg(
        short,
        long,
        value_name = "FORMAT",
        default_value = "table",
        value_enum
    )]
    pub output: Format,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a workflow to its end
    Run(RunArgs),
    /// Poll a command or a URL until it is done
    Poll(PollArgs),
    /// Run a command until it succeeds
    Try(TryArgs),
    /// Fetch every page of a URL into a file
    Paginate(PaginateArgs),
    /// Start a long operation over HTTP and wait for its result
    Operation(OperationArgs),
    /// Read the events of a URL (server-sent events)
    Events(ReadEventsArgs),
    /// Serve the HTTP API and execute all unfinished runs of the store
    Serve(ServeArgs),
    /// Execute runs on Temporal until stopped
    #[command(hide = cfg!(not(feature = "temporal")))]
    Worker(WorkerArgs),
    /// Print the console's address and open it in a browser
    Ui(UiArgs),
    /// Serve the Model Context Protocol on standard input and output, for agents
    #[cfg(feature = "mcp")]
    Mcp(McpArgs),
    /// Resume one run, or every unfinished run of the store
    Resume(ResumeArgs),
    /// List runs, newest first
    List(ListArgs),
    /// Explain the current state of a run
    Status(StatusArgs),
    /// Show the iterations and events of a run
    History(HistoryArgs),
    /// Export a run as one HTML file
    Export(ExportArgs),
    /// Print the events of a run, one per line
    Logs(LogsArgs),
    /// Print the checkpoints in the store
    Dump(DumpArgs),
    /// Check the store and its requirements on this machine, or repair it
    Doctor(DoctorArgs),
    /// Print the audit log: changes by clients, newest first
    Audit(AuditArgs),
    /// Pause runs: effects in flight end, nothing new starts
    Pause(RunArg),
    /// Cancel runs: effects in flight are aborted
    Cancel(RunArg),
    /// Send a signal to a run
    Signal(SignalArgs),
    /// Retry runs that failed, timed out or were cancelled, as new runs
    Retry(RetryArgs),
    /// Delete runs that have ended
    Prune(PruneArgs),
    /// Back up the store, even while another process owns it
    Backup(BackupArgs),
    /// Restore a store from a backup
    Restore(RestoreArgs),
    /// Migrate the store to another database
    Migrate(MigrateArgs),
    /// Manage saved workflows and their versions
    Workflow(WorkflowArgs),
    /// Show when saved workflows start automatically
    Schedule(ScheduleArgs),
    /// Read and write the values that workflows have between their runs
    State(StateArgs),
    /// Validate workflows and show the limits of their loops
    Validate(ValidateArgs),
    /// Test workflows on virtual time with stubbed answers
    Test(TestArgs),
    /// Show a workflow's state machine
    Compile(CompileArgs),
    /// Evaluate an expression, a template or a condition
    Eval(EvalArgs),
    /// Print the JSON Schema of a format, for editors
    Schema(SchemaArgs),
    /// Run the language server for editors: diagnostics, completions and hovers
    Lsp(LspArgs),
    /// Benchmark loops on this machine and disk
    Bench(BenchArgs),
    /// Print the completion script of a shell
    Completions(CompletionsArgs),
    /// Print the manual page, or write one per command
    Man(ManArgs),
}

impl Command {
    /// Returns the format of the command's log.
    pub fn log_format(&self) -> LogFormat {
        match self {
            Self::Serve(args) => args.log_format,
            _ => LogFormat::Text,
        }
    }

    /// Returns whether the command runs until it is stopped.
    pub fn serves(&self) -> bool {
        matches!(self, Self::Serve(_) | Self::Worker(_))
    }

    /// Returns whether the command executes runs, which another command can continue after a failure.
    pub fn executes_runs(&self) -> bool {
        #[cfg(feature = "mcp")]
        if matches!(self, Self::Mcp(_)) {
            return true;
        }
        matches!(
            self,
            Self::Run(_)
                | Self::Poll(_)
                | Self::Try(_)
                | Self::Paginate(_)
                | Self::Operation(_)
                | Self::Events(_)
                | Self::Serve(_)
                | Self::Worker(_)
                | Self::Resume(_)
                | Self::Retry(_)
        )
    }

    /// Returns whether the command is about runs, which may be on Temporal.
    pub fn is_for_runs(&self) -> bool {
        !matches!(
            self,
            Self::Backup(_)
                | Self::Restore(_)
                | Self::Migrate(_)
                | Self::Doctor(_)
                | Self::Audit(_)
                | Self::Workflow(_)
                | Self::Schedule(_)
                | Self::State(_)
                | Self::Ui(_)
                | Self::Validate(_)
                | Self::Test(_)
                | Self::Compile(_)
                | Self::Eval(_)
                | Self::Schema(_)
                | Self::Lsp(_)
                | Self::Bench(_)
                | Self::Completions(_)
                | Self::Man(_)
        )
    }
}

/// How to read a workflow.
#[derive(Clone, Debug, Default, Args)]
pub struct LoadArgs {
    /// Format of the file instead of the detected one: loom, azure, tea or canvas
    #[arg(long, value_name = "FORMAT")]
    pub dialect: Option<String>,
    /// Maximum iterations that a loop can request, e.g. `100000`
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_count: Option<u64>,
    /// Maximum timeout that a loop can request, e.g. `12h` or `30d`
    #[arg(long, value_name = "DURATION")]
    pub max_timeout: Option<DurationArg>,
    /// JSON or YAML file with parameter values of a Logic Apps definition: {name: {value}},
    /// optionally inside `parameters`
    #[arg(long, value_name = "FILE")]
    pub parameters: Option<PathBuf>,
    /// JSON or YAML file with app settings of a Logic Apps definition, like `Values` in
    /// local.settings.json
    #[arg(long, value_name = "FILE")]
    pub app_settings: Option<PathBuf>,
    /// Workflow to use, if an app's folder or a template has several
    #[arg(long, value_name = "NAME")]
    pub workflow: Option<String>,
    #[command(flatten)]
    pub env: EnvArgs,
}

/// Handlers in addition to the workflow's own, and the source of secrets.
#[derive(Clone, Debug, Default, Args)]
pub struct HandlerArgs {
    /// YAML or JSON file of handlers for activities and actors: a name with `command` or `url`
    #[arg(long, value_name = "FILE")]
    pub handlers: Option<PathBuf>,
    /// Directory of secrets, one file per secret, named like the secret
    #[arg(long, value_name = "DIR")]
    pub secrets: Option<PathBuf>,
    /// Command line for `sh` that prints a secret; the secret's name is its last word or `$1`
    #[arg(long, env = "WINDLASS_SECRETS_COMMAND", value_name = "LINE")]
    pub secret_command: Option<String>,
    /// JSON or YAML file of stubs for actions and unregistered handlers: a value, {error: …}, or a list
    /// of these, by action, handler, connector/operation, or type such as `shell`
    #[arg(long, value_name = "FILE")]
    pub stub: Option<PathBuf>,
    /// Rate limit of the calls to a host, or of actions with this `rate`, over all runs of the store, e.g.
    /// `api.example.com=100/1s`
    #[arg(long, value_name = "NAME=RATE")]
    pub rate: Vec<HostRate>,
}
