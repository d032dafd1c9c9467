//! The flags of the one-line commands: `poll`, `try`, `paginate`, `operation`, `events`.

use super::{DurationArg, HandlerArgs, Output};
use clap::{Args, ValueEnum};
use std::path::{Path, PathBuf};

/// The interval between attempts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IntervalArg {
    pub initial: DurationArg,
    /// The interval doubles after each attempt, up to this value.
    pub max: Option<DurationArg>,
}

impl std::str::FromStr for IntervalArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (initial, max) = match text.split_once("..") {
            Some((initial, max)) => (initial, Some(max.parse()?)),
            None => (text, None),
        };
        let initial = initial.parse()?;
        if max.is_some_and(|max: DurationArg| max < initial) {
            return Err(String::from(
                "the longest interval must be last, e.g. 5s..1m",
            ));
        }
        Ok(Self { initial, max })
    }
}

/// Options of all one-line commands.
#[derive(Clone, Debug, Args)]
pub struct QuickArgs {
    /// Print the equivalent workflow file without running it
    #[arg(long)]
    pub print: bool,
    /// Run id (default: derived from the command line)
    #[arg(long, value_name = "ID")]
    pub id: Option<String>,
    #[command(flatten)]
    pub handlers: HandlerArgs,
    #[command(flatten)]
    pub output: Output,
}

/// Parts of a request in addition to its URL.
#[derive(Debug, Args)]
pub struct RequestArgs {
    /// Request header, e.g. `Accept: application/json`
    #[arg(short = 'H', long, value_name = "HEADER", requires = "url")]
    pub header: Vec<String>,
    /// Request body, JSON or any text; the method becomes POST
    #[arg(short = 'd', long, value_name = "DATA", requires = "url")]
    pub data: Option<String>,
}

/// `windlass poll`.
#[derive(Debug, Args)]
#[command(
    group = clap::ArgGroup::new("what").required(true),
    override_usage = "windlass poll [OPTIONS] -- COMMAND\n       windlass poll [OPTIONS] --url URL"
)]
pub struct PollArgs {
    /// Interval between checks; `5s..1m` doubles it each time, up to a minute
    #[arg(long, value_name = "TIME", default_value = "5s")]
    pub every: IntervalArg,
    /// Maximum total duration
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = super::limit_arg)]
    pub timeout: DurationArg,
    /// Maximum number of checks (default: 1000000, or 10000 on a server)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub times: Option<u64>,
    /// Expression that ends the poll when it is true, e.g. `body.status == "done"`. It can read
    /// exitCode, stdout, stderr and body (the output, if that is JSON) of a command, or statusCode,
    /// headers and body of a URL
    #[arg(long, value_name = "EXPRESSION")]
    pub until: Option<String>,
    /// URL to request instead of running a command
    #[arg(long, value_name = "URL", group = "what")]
    pub url: Option<String>,
    /// Request only what has changed since the last check (If-None-Match): such a check does not count against the
    /// rate limits of GitHub and others
    #[arg(long, requires = "url", requires = "until")]
    pub if_changed: bool,
    #[command(flatten)]
    pub request: RequestArgs,
    /// Command to run. Without --until, exit code 0 ends the poll
    #[arg(last = true, group = "what", value_name = "COMMAND")]
    pub command: Vec<String>,
    #[command(flatten)]
    pub quick: QuickArgs,
}

/// `windlass try`.
#[derive(Debug, Args)]
pub struct TryArgs {
    /// Interval between attempts; `1s..1m` doubles it each time, up to a minute
    #[arg(
        long,
        visible_alias = "exponential",
        value_name = "TIME",
        default_value = "1s..1m"
    )]
    pub every: IntervalArg,
    /// Maximum number of attempts
    #[arg(long, value_name = "N", default_value = "10", value_parser = clap::value_parser!(u64).range(1..))]
    pub times: u64,
    /// Timeout of one attempt, e.g. `30s` (default: none)
    #[arg(long, value_name = "TIME", value_parser = super::limit_arg)]
    pub timeout: Option<DurationArg>,
    /// Command to run; exit code 0 means success
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<String>,
    #[command(flatten)]
    pub quick: QuickArgs,
}

/// What the values say that lead to the next page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CursorKind {
    /// An empty one is the end, and one that was there before is an error
    Unique,
    /// Only absence is the end; three equal pages are an error
    Opaque,
}

/// The formats of a file of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RowFormat {
    /// JSON Lines: one JSON document per line
    Ndjson,
    /// One JSON array
    Json,
    /// Comma-separated values with a header
    Csv,
}

impl RowFormat {
    /// Returns the word for this format in workflow files.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ndjson => "ndjson",
            Self::Json => "json",
            Self::Csv => "csv",
        }
    }
}

/// `windlass paginate`.
#[derive(Debug, Args)]
pub struct PaginateArgs {
    /// URL of the first page
    pub url: String,
    /// How to find the next page: `link` (the header Link), `page` or `offset` (a number in the
    /// query), or an expression for its URL, e.g. `body.next`
    #[arg(long, value_name = "WHAT", default_value = "link")]
    pub next: String,
    /// Query parameter that --next sets: the page number, the offset, or a token instead of a URL.
    /// With --data, a member of the body, e.g. `page.after`
    #[arg(long, value_name = "NAME")]
    pub param: Option<String>,
    /// Meaning of the value of --next
    #[arg(long, value_name = "KIND", default_value = "unique")]
    pub cursor: CursorKind,
    /// Expression that is true for the last page, e.g. `body.page == body.pages`. It may end before
    /// the last page; no total is compared then
    #[arg(long, value_name = "EXPRESSION")]
    pub end: Option<String>,
    /// Expression for the rows of a page, e.g. `body.items`
    #[arg(long, value_name = "EXPRESSION", default_value = "body")]
    pub items: String,
    /// Expression for the total number of rows, e.g. `body.found`; `none` skips the check. Default:
    /// the usual members and headers (total, total_count, X-Total-Count)
    #[arg(long, value_name = "EXPRESSION")]
    pub total: Option<String>,
    /// Output file. It is created or replaced after the last page; `-` is standard output
    #[arg(long, value_name = "FILE")]
    pub to: PathBuf,
    /// Format of the rows (default: csv for a FILE.csv, else ndjson)
    #[arg(long, value_name = "FORMAT")]
    pub format: Option<RowFormat>,
    /// Columns of a CSV file, separated by commas (default: the members of the first rows)
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub columns: Vec<String>,
    /// Drop a row if an earlier one has the same key: a member such as `id` or `meta.id`, or an
    /// expression about `item`, e.g. `item.kind ~ item.id`
    #[arg(long, value_name = "EXPRESSION")]
    pub key: Option<String>,
    /// Interval between pages
    #[arg(long, value_name = "TIME", default_value = "0s")]
    pub every: IntervalArg,
    /// Maximum total duration
    #[arg(long, value_name = "TIME", default_value = "1d", value_parser = super::limit_arg)]
    pub timeout: DurationArg,
    /// Maximum number of pages (default: 1000000, or 10000 on a server)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub times: Option<u64>,
    #[command(flatten)]
    pub request: RequestArgs,
    #[command(flatten)]
    pub quick: QuickArgs,
}

/// `windlass operation`.
#[derive(Debug, Args)]
pub struct OperationArgs {
    /// URL that starts the operation
    pub url: String,
    /// Method of the request that starts it
    #[arg(short = 'X', long, value_name = "METHOD", default_value = "POST")]
    pub method: String,
    /// Minimum interval between requests about the operation; the server may ask for a longer one
    #[arg(long, value_name = "TIME", default_value = "5s")]
    pub every: IntervalArg,
    /// Maximum total duration
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = super::limit_arg)]
    pub timeout: DurationArg,
    /// URL of the operation; may contain an expression, e.g.
    /// `https://api.example.com/jobs/@{body('operation.start').id}` (default: the answers name it)
    #[arg(long, value_name = "URL")]
    pub status_url: Option<String>,
    /// Expression that is true when the operation has ended, e.g. `body.phase == "READY"` (default:
    /// the usual members and words)
    #[arg(long, value_name = "EXPRESSION")]
    pub done: Option<String>,
    /// Expression that is true when the operation has failed, e.g. `body.phase == "BROKEN"`
    #[arg(long, value_name = "EXPRESSION")]
    pub failed: Option<String>,
    /// URL of the result, or `none` to print the last answer (default: the answers name it)
    #[arg(long, value_name = "URL")]
    pub result: Option<String>,
    /// URL, at the same server, that cancels the operation with a POST if the run ends before it; may contain an
    /// expression, as `--status-url`
    #[arg(long, value_name = "URL")]
    pub cancel: Option<String>,
    #[command(flatten)]
    pub request: RequestArgs,
    #[command(flatten)]
    pub quick: QuickArgs,
}

/// `windlass events`.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("enough").args(["until", "times", "to"]).required(true).multiple(true))]
pub struct ReadEventsArgs {
    /// URL of the stream (server-sent events)
    pub url: String,
    /// Expression that ends the line when it is true, e.g. `body.data.status == "done"`. It can read
    /// body (id, event and data of an event), statusCode and headers
    #[arg(long, value_name = "EXPRESSION")]
    pub until: Option<String>,
    /// File to which the data of each event is appended as a line of JSON; `-` is standard output,
    /// at the end
    #[arg(long, value_name = "FILE")]
    pub to: Option<PathBuf>,
    /// Number of events to read. With --until the maximum (default: 1000000, or 10000 on a server)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub times: Option<u64>,
    /// Duration to read for. With --until the maximum, after which the line fails
    #[arg(long = "for", value_name = "TIME", default_value = "1d", value_parser = super::limit_arg)]
    pub duration: DurationArg,
    #[command(flatten)]
    pub request: RequestArgs,
    #[command(flatten)]
    pub quick: QuickArgs,
}

/// Returns whether rows go to standard output.
pub fn is_stdout(to: &Path) -> bool {
    to.as_os_str() == "-"
}

impl PaginateArgs {
    /// Returns the format of the rows.
    ///
    /// # Errors
    /// A message about an ending that names a format which is not written.
    pub fn row_format(&self) -> Result<RowFormat, String> {
        let ending = self.to.extension().unwrap_or_default().to_string_lossy();
        match (self.format, ending.to_lowercase().as_str()) {
            (Some(format), _) => Ok(format),
            (None, "csv") => Ok(RowFormat::Csv),
            (None, "json") => Ok(RowFormat::Json),
            (None, "gz" | "zst" | "bz2" | "xz" | "zip" | "tsv" | "parquet" | "xlsx") => {
                Err(format!(
                    "`--to` does not write `.{ending}`: the rows are ndjson, json or csv. Convert the output of \
                     `--to -`, or name the format of the file with --format"
                ))
            }
            (None, _) => Ok(RowFormat::Ndjson),
        }
    }

    /// Returns whether each page names the next one, so that pages are not requested by number.
    pub fn is_led(&self) -> bool {
        !["page", "offset"].contains(&self.next.as_str())
    }
}
