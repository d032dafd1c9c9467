//! The flags of commands that look at runs.

use super::{Lasting, Output, When};
use clap::builder::FalseyValueParser;
use clap::{ArgAction, Args};

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
    #[arg(
        long,
        env = "WINDLASS_WORKFLOW",
        value_name = "NAME",
        value_delimiter = ','
    )]
    pub workflow: Vec<String>,
    /// Only runs with this label: NAME=TEXT
    #[arg(long, env = "WINDLASS_LABEL", value_name = "NAME=TEXT")]
    pub label: Vec<String>,
    /// Only runs with this in their id, workflow or labels, in whatever case
    #[arg(long, value_name = "TEXT")]
    pub text: Option<String>,
    /// Only runs that were started since then: an instant (RFC 3339), or how long ago (`2h`)
    #[arg(long, value_name = "WHEN")]
    pub since: Option<When>,
    /// Only runs that were started before then: an instant (RFC 3339), or how long ago (`2h`)
    #[arg(long, value_name = "WHEN")]
    pub until: Option<When>,
    /// Only runs that should go on, and that nothing has moved for so long: `10m`
    #[arg(long, value_name = "DURATION")]
    pub stuck: Option<Lasting>,
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
    /// The run; without it the newest one
    pub run: Option<String>,
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
    /// Goes on, and shows what happens as it happens
    #[arg(short = 'f', long = "follow", visible_alias = "watch", env = "WINDLASS_WATCH", value_parser = FalseyValueParser::new(), action = ArgAction::SetTrue)]
    pub follow: bool,
    #[command(flatten)]
    pub output: Output,
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

/// Whether a command goes on.
#[derive(Clone, Debug, Args)]
pub struct WatchArgs {
    /// Goes on, and shows it again when it changes
    #[arg(long, env = "WINDLASS_WATCH", value_parser = FalseyValueParser::new(), action = ArgAction::SetTrue)]
    pub watch: bool,
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

/// A list of nothing tells nothing.
fn some(text: &str) -> Result<Amount, String> {
    match text.parse() {
        Ok(Amount::Last(0)) => Err(String::from("a number from 1, or `all`")),
        other => other,
    }
}

/// `windlass export`.
#[derive(Debug, Args)]
pub struct ExportArgs {
    /// The run
    pub run: String,
    /// How it is written
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

/// How a run is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum ExportFormat {
    /// One page without a script, light or dark as the reader's screen is.
    Html,
    /// The same as JSON.
    Json,
}
