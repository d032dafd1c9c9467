//! The commands and their flags. Every flag has an environment variable.

use super::output::{Colour, Format};
use super::permits::{EnvArgs, GuestArgs};
use crate::engine::parse_duration;
use clap::builder::FalseyValueParser;
use clap::{ArgAction, Args, Parser, Subcommand};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

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
    /// Asks the server at this URL instead of the store
    #[arg(long, global = true, help_heading = EVERYWHERE, env = "WINDLASS_SERVER", value_name = "URL")]
    pub server: Option<String>,
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

/// With nothing at a time, nothing would ever go on.
fn positive(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err(String::from("at least 1")),
        Ok(number) => Ok(number),
        Err(_) => Err(String::from("a whole number from 1")),
    }
}

/// A list of nothing tells nothing.
fn some(text: &str) -> Result<Amount, String> {
    match text.parse() {
        Ok(Amount::Last(0)) => Err(String::from("a number from 1, or `all`")),
        other => other,
    }
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Runs a workflow to its end
    Run(RunArgs),
    /// Runs until it is stopped: every unfinished run of the store, and new ones over HTTP
    Serve(ServeArgs),
    /// Goes on with one run, or with every unfinished run of the store
    Resume(ResumeArgs),
    /// Lists runs, newest first
    List(ListArgs),
    /// Tells why a run is where it is
    Status(StatusArgs),
    /// Shows the iterations and events of a run
    History(HistoryArgs),
    /// Tells what happened to a run, a line each
    Logs(LogsArgs),
    /// Shows the checkpoints as they lie in the store
    Dump(DumpArgs),
    /// Checks the store and what it needs of the machine, and repairs it
    Doctor(DoctorArgs),
    /// Pauses a run: what is in flight may end, nothing new starts
    Pause(RunArg),
    /// Ends a run as cancelled: what is in flight is cut
    Cancel(RunArg),
    /// Sends a signal to a run
    Signal(SignalArgs),
    /// Starts a run that ended badly once more, as a new run
    Retry(RetryArgs),
    /// Forgets runs that have ended
    Prune(PruneArgs),
    /// Copies the store, also beside the process that owns it
    Backup(BackupArgs),
    /// Makes a store of a copy
    Restore(RestoreArgs),
    /// Checks workflows and shows the limits of their loops
    Validate(ValidateArgs),
    /// Shows a workflow's state machine
    Compile(CompileArgs),
    /// Evaluates an expression, a template or a condition
    Eval(EvalArgs),
    /// Prints the JSON Schema of a format, for editors
    Schema(SchemaArgs),
    /// Prints the completion script of a shell
    Completions(CompletionsArgs),
    /// Prints the manual page, or writes one for each command
    Man(ManArgs),
}

/// `windlass prune`.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("which").required(true).multiple(true))]
pub struct PruneArgs {
    /// Those that ended longer ago than this, as an ISO 8601 duration
    #[arg(
        long,
        env = "WINDLASS_OLDER_THAN",
        value_name = "DURATION",
        group = "which"
    )]
    pub older_than: Option<String>,
    /// All but the newest N of each workflow
    #[arg(long, env = "WINDLASS_KEEP", value_name = "N", group = "which")]
    pub keep: Option<usize>,
    /// Only runs of this workflow
    #[arg(long, env = "WINDLASS_WORKFLOW", value_name = "NAME")]
    pub workflow: Option<String>,
    /// Forgets nothing, and tells what would be
    #[arg(long, env = "WINDLASS_DRY_RUN", value_parser = FalseyValueParser::new(), action = ArgAction::SetTrue)]
    pub dry_run: bool,
    /// Gives back the room on the disk, by writing the store anew; no process may own it
    #[arg(long, env = "WINDLASS_COMPACT", value_parser = FalseyValueParser::new(), action = ArgAction::SetTrue, group = "which")]
    pub compact: bool,
    #[command(flatten)]
    pub output: Output,
}

/// `windlass backup`.
#[derive(Debug, Args)]
pub struct BackupArgs {
    /// The directory that the copy is put in; it has no store yet
    #[arg(value_name = "DEST")]
    pub dest: PathBuf,
    #[command(flatten)]
    pub output: Output,
}

/// `windlass restore`.
#[derive(Debug, Args)]
pub struct RestoreArgs {
    /// The directory of a copy
    #[arg(value_name = "SRC")]
    pub source: PathBuf,
    /// Replaces the store that is there, and keeps it beside
    #[arg(long, env = "WINDLASS_REPLACE", value_parser = FalseyValueParser::new(), action = ArgAction::SetTrue)]
    pub replace: bool,
    #[command(flatten)]
    pub output: Output,
}

/// How many of something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// All there are.
    All,
    /// The last so many.
    Last(usize),
}

impl Amount {
    /// None: no limit.
    pub fn limit(self) -> Option<usize> {
        match self {
            Self::All => None,
            Self::Last(count) => Some(count),
        }
    }
}

impl std::str::FromStr for Amount {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "all" {
            return Ok(Self::All);
        }
        text.parse()
            .map(Self::Last)
            .map_err(|_| String::from("a number or `all`"))
    }
}

/// `windlass serve`.
#[derive(Debug, Args)]
pub struct ServeArgs {
    /// Where HTTP is served; port 0 takes a free one
    #[arg(
        long,
        env = "WINDLASS_LISTEN",
        value_name = "ADDRESS:PORT",
        default_value = "127.0.0.1:7465"
    )]
    pub listen: SocketAddr,
    /// It leaves within this time once it is told to stop: `10s`, `1m`, or an ISO 8601 duration
    #[arg(
        long,
        env = "WINDLASS_GRACE",
        value_name = "DURATION",
        default_value = "10s"
    )]
    pub grace: Lasting,
    /// The certificate for TLS, with those that vouch for it, in PEM
    #[arg(
        long,
        env = "WINDLASS_TLS_CERT",
        value_name = "FILE",
        requires = "tls_key"
    )]
    pub tls_cert: Option<PathBuf>,
    /// The certificate's private key, in PEM
    #[arg(
        long,
        env = "WINDLASS_TLS_KEY",
        value_name = "FILE",
        requires = "tls_cert"
    )]
    pub tls_key: Option<PathBuf>,
    /// A host name the server has, besides `localhost` and addresses
    #[arg(
        long,
        env = "WINDLASS_ALLOW_HOST",
        value_name = "NAME",
        value_delimiter = ','
    )]
    pub allow_host: Vec<String>,
    /// An origin whose pages may ask: `https://board.example`
    #[arg(
        long,
        env = "WINDLASS_ALLOW_ORIGIN",
        value_name = "ORIGIN",
        value_delimiter = ','
    )]
    pub allow_origin: Vec<String>,
    /// So many connections at a time
    #[arg(
        long,
        env = "WINDLASS_MAX_CONNECTIONS",
        value_name = "N",
        value_parser = positive,
        default_value = "1024"
    )]
    pub max_connections: usize,
    /// A client may take so long for a head or a body, and twice as long to take any of an answer
    #[arg(
        long,
        env = "WINDLASS_CLIENT_TIMEOUT",
        value_name = "DURATION",
        default_value = "30s"
    )]
    pub client_timeout: Lasting,
    /// So many effects at a time: calls, commands and the like
    #[arg(long, env = "WINDLASS_MAX_EFFECTS", value_name = "N", value_parser = positive)]
    pub max_effects: Option<usize>,
    /// Of them, so many of one workflow
    #[arg(long, env = "WINDLASS_MAX_EFFECTS_PER_WORKFLOW", value_name = "N", value_parser = positive)]
    pub max_effects_per_workflow: Option<usize>,
    /// Of them, so many towards one host
    #[arg(long, env = "WINDLASS_MAX_EFFECTS_PER_HOST", value_name = "N", value_parser = positive)]
    pub max_effects_per_host: Option<usize>,
    /// So many runs under way at a time, without those that sleep; beyond that no run is started
    #[arg(long, env = "WINDLASS_MAX_RUNS", value_name = "N", value_parser = positive)]
    pub max_runs: Option<usize>,
    /// The most iterations a loop may ask for
    #[arg(long, env = "WINDLASS_MAX_COUNT", value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_count: Option<u64>,
    /// The longest timeout a loop may ask for, as an ISO 8601 duration
    #[arg(long, env = "WINDLASS_MAX_TIMEOUT", value_name = "DURATION")]
    pub max_timeout: Option<String>,
    /// Runs that ended longer ago than this are forgotten, as an ISO 8601 duration
    #[arg(long, env = "WINDLASS_PRUNE_OLDER_THAN", value_name = "DURATION")]
    pub prune_older_than: Option<String>,
    /// Of the runs that have ended, the newest N of each workflow are not forgotten; without
    /// --prune-older-than all others are
    #[arg(long, env = "WINDLASS_PRUNE_KEEP", value_name = "N")]
    pub prune_keep: Option<usize>,
    #[command(flatten)]
    pub guests: GuestArgs,
    #[command(flatten)]
    pub env: EnvArgs,
    #[command(flatten)]
    pub handlers: HandlerArgs,
}

/// A duration as people write it on a command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lasting(pub Duration);

impl std::str::FromStr for Lasting {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.starts_with(['P', 'p']) {
            let parsed = parse_duration(text).map_err(|error| error.to_string())?;
            return Ok(Self(parsed));
        }
        let units = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000)];
        let found = units.into_iter().find_map(|(unit, millis)| {
            let number: u64 = text.strip_suffix(unit)?.trim().parse().ok()?;
            Some(Duration::from_millis(number.checked_mul(millis)?))
        });
        found
            .map(Self)
            .ok_or_else(|| String::from("a number with ms, s, m or h, or an ISO 8601 duration"))
    }
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
    pub guests: GuestArgs,
    #[command(flatten)]
    pub env: EnvArgs,
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
    /// Draws what is inside of a canvas's loops, maps and components
    #[arg(long, env = "WINDLASS_EXPAND", value_parser = FalseyValueParser::new(), action = ArgAction::SetTrue)]
    pub expand: bool,
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

/// Whether a command goes on.
#[derive(Clone, Debug, Args)]
pub struct WatchArgs {
    /// Goes on, and shows it again when it changes
    #[arg(long, env = "WINDLASS_WATCH", value_parser = FalseyValueParser::new(), action = ArgAction::SetTrue)]
    pub watch: bool,
}

/// `windlass list`.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// Only runs that do this: Running, Waiting, Paused, Succeeded, Failed, TimedOut, Cancelled
    #[arg(
        long,
        env = "WINDLASS_STATUS",
        value_name = "STATUS",
        value_delimiter = ','
    )]
    pub status: Vec<String>,
    /// Only runs of this workflow
    #[arg(long, env = "WINDLASS_WORKFLOW", value_name = "NAME")]
    pub workflow: Option<String>,
    /// Only runs with this label: NAME=TEXT
    #[arg(long, env = "WINDLASS_LABEL", value_name = "NAME=TEXT")]
    pub label: Vec<String>,
    /// How many at most: a number or `all`
    #[arg(long, env = "WINDLASS_LIMIT", value_name = "N", default_value = "50", value_parser = some)]
    pub limit: Amount,
    #[command(flatten)]
    pub watch: WatchArgs,
    #[command(flatten)]
    pub output: Output,
}

/// `windlass status`.
#[derive(Debug, Args)]
pub struct StatusArgs {
    /// The run
    pub run: String,
    #[command(flatten)]
    pub watch: WatchArgs,
    #[command(flatten)]
    pub output: Output,
}

/// `windlass history`.
#[derive(Debug, Args)]
pub struct HistoryArgs {
    /// The run
    pub run: String,
    /// Only the loop with this path, such as `outer#2/inner`, or all loops of this name
    #[arg(long = "loop", env = "WINDLASS_LOOP", value_name = "PATH")]
    pub loop_path: Option<String>,
    /// The last so many iterations: a number or `all`
    #[arg(
        long,
        env = "WINDLASS_ITERATIONS",
        value_name = "K",
        default_value = "20"
    )]
    pub iterations: Amount,
    /// Shows the events too
    #[arg(long = "events", env = "WINDLASS_WITH_EVENTS", value_parser = FalseyValueParser::new(), action = ArgAction::SetTrue)]
    pub events: bool,
    #[command(flatten)]
    pub watch: WatchArgs,
    #[command(flatten)]
    pub output: Output,
}

/// `windlass logs`.
#[derive(Debug, Args)]
pub struct LogsArgs {
    /// The run
    pub run: String,
    /// Only what happened after the event of this number
    #[arg(
        long,
        env = "WINDLASS_AFTER",
        value_name = "NUMBER",
        default_value = "0"
    )]
    pub after: u64,
    #[command(flatten)]
    pub watch: WatchArgs,
    #[command(flatten)]
    pub output: Output,
}

/// `windlass man`.
#[derive(Debug, Args)]
pub struct ManArgs {
    /// Writes a page for each command into this directory
    #[arg(long, env = "WINDLASS_MAN_DIR", value_name = "DIR")]
    pub dir: Option<PathBuf>,
}

/// `windlass dump`.
#[derive(Debug, Args)]
pub struct DumpArgs {
    /// The run; without it every run
    pub run: Option<String>,
    /// The last so many iterations of each run: a number or `all`
    #[arg(
        long,
        env = "WINDLASS_ITERATIONS",
        value_name = "K",
        default_value = "5"
    )]
    pub iterations: Amount,
    /// The rows as they are written instead: keys and decoded records. Of a store that no process
    /// owns
    #[arg(long, env = "WINDLASS_RAW", value_parser = FalseyValueParser::new(), action = ArgAction::SetTrue)]
    pub raw: bool,
    #[command(flatten)]
    pub output: Output,
}

/// `windlass doctor`.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// Makes a new store of what can be read; the damaged one is kept beside it
    #[arg(long, env = "WINDLASS_REPAIR", value_parser = FalseyValueParser::new(), action = ArgAction::SetTrue)]
    pub repair: bool,
    #[command(flatten)]
    pub output: Output,
}

/// `windlass pause`, `windlass cancel`.
#[derive(Debug, Args)]
pub struct RunArg {
    /// The run
    pub run: String,
    #[command(flatten)]
    pub output: Output,
}

/// `windlass retry`.
#[derive(Debug, Args)]
pub struct RetryArgs {
    /// The run
    pub run: String,
    /// From an action or iteration, with the state of then: fetch, poll#14, poll#14/fetch, or
    /// failed, the action that it failed at; without this from its beginning
    #[arg(long, env = "WINDLASS_FROM", value_name = "PLACE")]
    pub from: Option<String>,
    /// The new run's id instead of one made from the workflow's name
    #[arg(long, env = "WINDLASS_ID", value_name = "ID")]
    pub id: Option<String>,
    #[command(flatten)]
    pub guests: GuestArgs,
    #[command(flatten)]
    pub env: EnvArgs,
    #[command(flatten)]
    pub handlers: HandlerArgs,
    #[command(flatten)]
    pub events: EventArgs,
    #[command(flatten)]
    pub output: Output,
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

/// `windlass eval`.
#[derive(Debug, Args)]
pub struct EvalArgs {
    /// The expression; with --template or --condition also a JSON document
    #[arg(required_unless_present = "batch")]
    pub expression: Option<String>,
    /// A JSON or YAML file with what the expression may read; `-` reads standard input. Its keys:
    /// vars (or variables), params (or parameters), inputs, actions, trigger, item, loops, results,
    /// workflow, current, state, loop, settings, data, env, secrets; now, the time; mode, loom or
    /// azure
    #[arg(long, env = "WINDLASS_CONTEXT", value_name = "FILE")]
    pub context: Option<PathBuf>,
    /// Reads it as JSON whose strings are templates
    #[arg(long, env = "WINDLASS_TEMPLATE", value_parser = FalseyValueParser::new(), action = ArgAction::SetTrue, conflicts_with = "condition")]
    pub template: bool,
    /// Reads it as a condition, in text or in object form
    #[arg(long, env = "WINDLASS_CONDITION", value_parser = FalseyValueParser::new(), action = ArgAction::SetTrue)]
    pub condition: bool,
    /// Reads one JSON object a line from standard input: `expr`, `template` or `cond`, and the
    /// context beside it
    #[arg(long, env = "WINDLASS_BATCH", value_parser = FalseyValueParser::new(), action = ArgAction::SetTrue)]
    pub batch: bool,
    #[command(flatten)]
    pub output: Output,
}

/// `windlass schema`.
#[derive(Debug, Args)]
pub struct SchemaArgs {
    /// The format: loom, tea, canvas. Those of azure name their own schema under `$schema`
    #[arg(env = "WINDLASS_FORMAT", value_name = "FORMAT", default_value = "loom")]
    pub format: String,
}

/// `windlass completions`.
#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// The shell
    #[arg(env = "WINDLASS_SHELL", value_enum)]
    pub shell: clap_complete::Shell,
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
    /// The longest timeout a loop may ask for, as an ISO 8601 duration
    #[arg(long, env = "WINDLASS_MAX_TIMEOUT", value_name = "DURATION")]
    pub max_timeout: Option<String>,
    /// A JSON or YAML file with the values of a Logic Apps definition's parameters:
    /// {name: {value}}, also inside of `parameters`
    #[arg(long, env = "WINDLASS_PARAMETERS", value_name = "FILE")]
    pub parameters: Option<PathBuf>,
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
    /// A JSON or YAML file that answers for handlers and connectors that nobody has registered: by
    /// handler, connector/operation or action a value, {error: …}, or a list of those
    #[arg(long, env = "WINDLASS_STUB", value_name = "FILE")]
    pub stub: Option<PathBuf>,
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
    /// Hands the run to the server that owns the store, prints its id and leaves
    #[arg(long, env = "WINDLASS_DETACH", value_parser = FalseyValueParser::new(), action = ArgAction::SetTrue)]
    pub detach: bool,
    /// Also refuses what only looks wrong
    #[arg(long, env = "WINDLASS_STRICT", value_parser = FalseyValueParser::new(), action = ArgAction::SetTrue)]
    pub strict: bool,
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
    pub handlers: HandlerArgs,
    #[command(flatten)]
    pub output: Output,
}
