//! The flags of commands that read runs.

use super::{DurationArg, InstantArg, Output};
use clap::Args;
use clap::builder::NonEmptyStringValueParser;

/// `windlass list`.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// Only runs with this status: Running, Waiting, Paused, Succeeded, SucceededWithFailures, Failed, TimedOut or
    /// Cancelled
    #[arg(long, value_name = "STATUS", value_delimiter = ',')]
    pub status: Vec<String>,
    /// Only runs of this workflow
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = NonEmptyStringValueParser::new())]
    pub workflow: Vec<String>,
    /// Only runs with this label, e.g. `team=data`
    #[arg(long, value_name = "NAME=TEXT")]
    pub label: Vec<String>,
    /// Only runs with this text in their id, workflow or labels (case-insensitive)
    #[arg(long, value_name = "TEXT")]
    pub text: Option<String>,
    /// Only runs started at or after this time: RFC 3339, or a duration ago, e.g. `2h`
    #[arg(long, value_name = "WHEN")]
    pub since: Option<InstantArg>,
    /// Only runs started before this time: RFC 3339, or a duration ago, e.g. `2h`
    #[arg(long, value_name = "WHEN")]
    pub until: Option<InstantArg>,
    /// Only runs stuck for at least this long, e.g. `10m`
    #[arg(long, value_name = "DURATION")]
    pub stuck: Option<DurationArg>,
    /// Maximum number of runs, or `all`
    #[arg(long, value_name = "N", default_value = "50", value_parser = some)]
    pub limit: Amount,
    #[command(flatten)]
    pub watch: WatchArgs,
    #[command(flatten)]
    pub output: Output,
}

/// `windlass status`.
#[derive(Debug, Args)]
pub struct StatusArgs {
    /// Run id (default: the newest run)
    pub run: Option<String>,
    #[command(flatten)]
    pub watch: WatchArgs,
    #[command(flatten)]
    pub output: Output,
}

/// `windlass history`.
#[derive(Debug, Args)]
pub struct HistoryArgs {
    /// Run id, or a unique prefix of an id that Windlass generated
    pub run: String,
    /// Only the loop with this path, e.g. `outer#2/inner`, or all loops with this name
    #[arg(long = "loop", value_name = "PATH")]
    pub loop_path: Option<String>,
    /// Number of latest iterations to show, or `all`
    #[arg(long, value_name = "K", default_value = "20")]
    pub iterations: Amount,
    /// Show events, too
    #[arg(long = "events", env = "WINDLASS_WITH_EVENTS")]
    pub events: bool,
    #[command(flatten)]
    pub watch: WatchArgs,
    #[command(flatten)]
    pub output: Output,
}

/// `windlass logs`.
#[derive(Debug, Args)]
pub struct LogsArgs {
    /// Run id, or a unique prefix of an id that Windlass generated
    pub run: String,
    /// Only events after the one with this number
    #[arg(long, value_name = "NUMBER", default_value = "0")]
    pub after: u64,
    /// Follow: print new events as they happen
    #[arg(
        short = 'f',
        long = "follow",
        visible_alias = "watch",
        env = "WINDLASS_WATCH"
    )]
    pub follow: bool,
    #[command(flatten)]
    pub output: Output,
}

/// `windlass dump`.
#[derive(Debug, Args)]
pub struct DumpArgs {
    /// Run id (default: every run)
    pub run: Option<String>,
    /// Number of latest iterations of each run to show, or `all`
    #[arg(long, value_name = "K", default_value = "5")]
    pub iterations: Amount,
    /// Print the raw rows: keys and decoded records. No process may own the store
    #[arg(long)]
    pub raw: bool,
    #[command(flatten)]
    pub output: Output,
}

/// Whether a command watches for changes.
#[derive(Clone, Debug, Args)]
pub struct WatchArgs {
    /// Watch: print again after each change
    #[arg(long)]
    pub watch: bool,
}

/// A limit on the number of results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// No limit.
    All,
    /// The last N.
    Last(usize),
}

impl Amount {
    /// Returns the maximum number of results; none for no limit.
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

/// Parses a limit of a list. 0 is an error, because an empty list is useless.
fn some(text: &str) -> Result<Amount, String> {
    match text.parse() {
        Ok(Amount::Last(0)) => Err(String::from("a number from 1, or `all`")),
        other => other,
    }
}

/// `windlass export`.
#[derive(Debug, Args)]
pub struct ExportArgs {
    /// Run id, or a unique prefix of an id that Windlass generated
    pub run: String,
    /// Output format
    #[arg(
        short,
        long,
        env = "WINDLASS_EXPORT",
        value_name = "FORMAT",
        default_value = "html",
        value_enum
    )]
    pub output: ExportFormat,
}

/// The format of an exported run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum ExportFormat {
    /// One page without scripts, in the viewer's light or dark mode
    Html,
    /// The same data as JSON
    Json,
}

/// `windlass audit`.
#[derive(Debug, Args)]
pub struct AuditArgs {
    /// Only commands of this token or Unix user
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Only this command: start, pause, resume, cancel, signal, retry, put-workflow, …
    #[arg(long, value_name = "WORD")]
    pub action: Option<String>,
    /// Only commands to this run, workflow, or WORKFLOW/NAME of a value
    #[arg(long, value_name = "NAME")]
    pub target: Option<String>,
    /// Only commands at or after this time: RFC 3339, or a duration ago, e.g. `2h`
    #[arg(long, value_name = "WHEN")]
    pub since: Option<InstantArg>,
    /// Maximum number of entries, or `all`
    #[arg(long, value_name = "N", default_value = "50", value_parser = some)]
    pub limit: Amount,
    #[command(flatten)]
    pub output: Output,
}
