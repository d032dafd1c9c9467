//! The commands and their flags. Every flag has an environment variable.

mod bench;
mod files;
mod quick;
mod reports;
mod runs;
mod serve;
mod store;
mod test;
mod times;
#[cfg(feature = "temporal")]
mod worker;
mod workflows;

pub use bench::*;
pub use files::*;
pub use quick::*;
pub use reports::*;
pub use runs::*;
pub use serve::*;
pub use store::*;
pub use test::*;
pub use times::*;
#[cfg(feature = "temporal")]
pub use worker::*;
pub use workflows::*;

use super::output::{Colour, Format};
use super::policy::EnvArgs;
use clap::builder::FalseyValueParser;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{ArgAction, Args, Parser, Subcommand};
use std::path::PathBuf;
use windlass_engine::StoreKind;

/// Runs loops written in YAML or JSON as durable state machines.
#[derive(Debug, Parser)]
#[command(name = "windlass", version, arg_required_else_help = true)]
pub struct Arguments {
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    pub command: Command,
}

/// Where the store is when nobody says.
pub const STATE: &str = "state";

/// Under this the help of a command has them.
const EVERYWHERE: &str = "Options of every command";

/// Flags of every command.
#[derive(Clone, Debug, Args)]
pub struct Global {
    /// The directory of the store
    #[arg(
        long,
        global = true, help_heading = EVERYWHERE,
        env = "WINDLASS_STATE",
        value_name = "DIR",
        default_value = STATE
    )]
    pub state: PathBuf,
    /// The database that keeps a store that is made; one that is there says itself what keeps it
    #[arg(long, global = true, help_heading = EVERYWHERE, env = "WINDLASS_STORE", value_name = "KIND", value_parser = store_kind())]
    pub store: Option<StoreKind>,
    /// Asks the server at this URL instead of the store
    #[arg(long, global = true, help_heading = EVERYWHERE, env = "WINDLASS_SERVER", value_name = "URL")]
    pub server: Option<String>,
    /// The engine that has the runs instead of a store: temporal://HOST:PORT/NAMESPACE?queue=NAME
    #[cfg(feature = "temporal")]
    #[arg(long, global = true, help_heading = EVERYWHERE, env = "WINDLASS_ENGINE", value_name = "URL")]
    pub engine: Option<String>,
    #[cfg(not(feature = "temporal"))]
    #[arg(skip)]
    pub engine: Option<String>,
    /// A file with the token of the server; WINDLASS_TOKEN has the token itself
    #[arg(long, global = true, help_heading = EVERYWHERE, env = "WINDLASS_TOKEN_FILE", value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// A token may go over plain http: to the server of --server on another machine, or, with
    /// `serve`, from there, because a proxy in front speaks TLS
    #[arg(long, global = true, help_heading = EVERYWHERE, env = "WINDLASS_ALLOW_PLAIN_HTTP", value_parser = FalseyValueParser::new(), action = ArgAction::SetTrue)]
    pub allow_plain_http: bool,
    /// A file with the key that secure values are sealed with in the store: 32 random bytes
    #[arg(long, global = true, help_heading = EVERYWHERE, env = "WINDLASS_STATE_KEY_FILE", value_name = "FILE")]
    pub state_key: Option<PathBuf>,
    /// Tells more on standard error
    #[arg(short, long, global = true, help_heading = EVERYWHERE, env = "WINDLASS_VERBOSE", action = ArgAction::Count)]
    pub verbose: u8,
    /// Times are those of this machine's time zone, as they are on a terminal; UTC ends with `Z`
    #[arg(long, global = true, help_heading = EVERYWHERE, env = "WINDLASS_LOCAL", value_parser = FalseyValueParser::new(), action = ArgAction::SetTrue)]
    pub local: bool,
    /// Times are UTC, also on a terminal
    #[arg(long, global = true, help_heading = EVERYWHERE, env = "WINDLASS_UTC", value_parser = FalseyValueParser::new(), action = ArgAction::SetTrue, conflicts_with = "local")]
    pub utc: bool,
    /// When there is colour
    #[arg(
        long,
        global = true, help_heading = EVERYWHERE,
        env = "WINDLASS_COLOR",
        value_name = "WHEN",
        default_value = "auto",
        value_enum
    )]
    pub color: Colour,
}

/// Reads the name of a database.
fn store_kind() -> impl TypedValueParser<Value = StoreKind> {
    let kinds = StoreKind::ALL;
    PossibleValuesParser::new(kinds.map(StoreKind::as_str)).try_map(move |word| {
        let named = kinds.into_iter().find(|kind| kind.as_str() == word);
        named.ok_or("there is no such database")
    })
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
    /// Polls a command or an address until it is done, in one line
    Poll(PollArgs),
    /// Runs a command until it succeeds, in one line
    Try(TryArgs),
    /// Reads every page of an address into a file, in one line
    Paginate(PaginateArgs),
    /// Runs until it is stopped: every unfinished run of the store, and new ones over HTTP
    Serve(ServeArgs),
    /// Carries out runs on Temporal until it is stopped
    #[cfg(feature = "temporal")]
    Worker(WorkerArgs),
    /// Shows where the console is, and opens it in a browser
    Ui(UiArgs),
    /// Lets an agent start, watch and signal runs: the Model Context Protocol on standard input and output
    #[cfg(feature = "mcp")]
    Mcp(McpArgs),
    /// Goes on with one run, or with every unfinished run of the store
    Resume(ResumeArgs),
    /// Lists runs, newest first
    List(ListArgs),
    /// Tells why a run is where it is
    Status(StatusArgs),
    /// Shows the iterations and events of a run
    History(HistoryArgs),
    /// Writes a run as one HTML file, to be kept or sent on
    Export(ExportArgs),
    /// Tells what happened to a run, a line each
    Logs(LogsArgs),
    /// Shows the checkpoints as they lie in the store
    Dump(DumpArgs),
    /// Checks the store and what it needs of the machine, and repairs it
    Doctor(DoctorArgs),
    /// Pauses a run, or many: what is in flight may end, nothing new starts
    Pause(RunArg),
    /// Ends a run, or many, as cancelled: what is in flight is cut
    Cancel(RunArg),
    /// Sends a signal to a run
    Signal(SignalArgs),
    /// Starts a run that ended badly, or many, once more, as a new run
    Retry(RetryArgs),
    /// Forgets runs that have ended
    Prune(PruneArgs),
    /// Copies the store, also beside the process that owns it
    Backup(BackupArgs),
    /// Makes a store of a copy
    Restore(RestoreArgs),
    /// Lets another database keep the store
    Migrate(MigrateArgs),
    /// Keeps workflows under names, lists and shows them, and tells their versions
    Workflow(WorkflowArgs),
    /// Tells when kept workflows start by themselves
    Schedule(ScheduleArgs),
    /// Checks workflows and shows the limits of their loops
    Validate(ValidateArgs),
    /// Plays workflows on virtual time with answers given, and checks cases
    Test(TestArgs),
    /// Shows a workflow's state machine
    Compile(CompileArgs),
    /// Evaluates an expression, a template or a condition
    Eval(EvalArgs),
    /// Prints the JSON Schema of a format, for editors
    Schema(SchemaArgs),
    /// The language server: mistakes, completions and hovers in an editor
    Lsp(LspArgs),
    /// Measures how fast this machine and its disk let loops be
    Bench(BenchArgs),
    /// Prints the completion script of a shell
    Completions(CompletionsArgs),
    /// Prints the manual page, or writes one for each command
    Man(ManArgs),
}

impl Command {
    /// Whether it runs until it is stopped.
    pub fn serves(&self) -> bool {
        match self {
            Self::Serve(_) => true,
            #[cfg(feature = "temporal")]
            Self::Worker(_) => true,
            _ => false,
        }
    }
}

/// How a workflow is read.
#[derive(Clone, Debug, Default, Args)]
pub struct LoadArgs {
    /// Reads the file as this format, whatever it looks like: loom, azure, tea, canvas
    #[arg(long, env = "WINDLASS_DIALECT", value_name = "FORMAT")]
    pub dialect: Option<String>,
    /// The most iterations a loop may ask for
    #[arg(long, env = "WINDLASS_MAX_COUNT", value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_count: Option<u64>,
    /// The longest timeout a loop may ask for: `12h`, `30d`
    #[arg(long, env = "WINDLASS_MAX_TIMEOUT", value_name = "DURATION")]
    pub max_timeout: Option<Lasting>,
    /// A JSON or YAML file with the values of a Logic Apps definition's parameters:
    /// {name: {value}}, also inside of `parameters`
    #[arg(long, env = "WINDLASS_PARAMETERS", value_name = "FILE")]
    pub parameters: Option<PathBuf>,
    /// A JSON or YAML file with the app settings of a Logic Apps definition, as local.settings.json
    /// has them under `Values`
    #[arg(long, env = "WINDLASS_APP_SETTINGS", value_name = "FILE")]
    pub app_settings: Option<PathBuf>,
    /// Which workflow, of an app's folder or a template with several
    #[arg(long, env = "WINDLASS_WORKFLOW", value_name = "NAME")]
    pub workflow: Option<String>,
    #[command(flatten)]
    pub env: EnvArgs,
}

/// Which handlers there are besides the workflow's own, and where secrets are.
#[derive(Clone, Debug, Default, Args)]
pub struct HandlerArgs {
    /// A YAML or JSON file of handlers for activities and actors: a name with `command` or `url`
    #[arg(long, env = "WINDLASS_HANDLERS", value_name = "FILE")]
    pub handlers: Option<PathBuf>,
    /// A directory of secrets: files named like them
    #[arg(long, env = "WINDLASS_SECRETS", value_name = "DIR")]
    pub secrets: Option<PathBuf>,
    /// A line for `sh` that prints a secret, whose name is its last word or `$1`
    #[arg(long, env = "WINDLASS_SECRETS_COMMAND", value_name = "LINE")]
    pub secret_command: Option<String>,
    /// A JSON or YAML file that answers for handlers and connectors that nobody has registered: by
    /// handler, connector/operation or action a value, {error: …}, or a list of those
    #[arg(long, env = "WINDLASS_STUB", value_name = "FILE")]
    pub stub: Option<PathBuf>,
}
