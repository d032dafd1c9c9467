//! The flags of commands that make a loop of one line: `poll`, `try`, `paginate`.

use super::{HandlerArgs, Lasting, Output};
use clap::builder::FalseyValueParser;
use clap::{ArgAction, Args};
use std::path::PathBuf;

/// The time between two tries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Every {
    pub first: Lasting,
    /// It doubles up to this.
    pub most: Option<Lasting>,
}

impl std::str::FromStr for Every {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (first, most) = match text.split_once("..") {
            Some((first, most)) => (first, Some(most.parse()?)),
            None => (text, None),
        };
        let first = first.parse()?;
        if most.is_some_and(|most: Lasting| most < first) {
            return Err(String::from("the longest time comes last: 5s..1m"));
        }
        Ok(Self { first, most })
    }
}

/// What the commands of one line share.
#[derive(Clone, Debug, Args)]
pub struct QuickArgs {
    /// Prints the workflow file that the line stands for, and runs nothing
    #[arg(long, env = "WINDLASS_PRINT", value_parser = FalseyValueParser::new(), action = ArgAction::SetTrue)]
    pub print: bool,
    /// The run's id instead of one made from the line
    #[arg(long, env = "WINDLASS_ID", value_name = "ID")]
    pub id: Option<String>,
    #[command(flatten)]
    pub handlers: HandlerArgs,
    #[command(flatten)]
    pub output: Output,
}

/// What a request has beside its address.
#[derive(Debug, Args)]
pub struct RequestArgs {
    /// A header of the request: `Name: value`
    #[arg(
        short = 'H',
        long,
        env = "WINDLASS_HEADER",
        value_name = "HEADER",
        requires = "url"
    )]
    pub header: Vec<String>,
    /// Sends this with POST: JSON, or any text
    #[arg(
        short = 'd',
        long,
        env = "WINDLASS_DATA",
        value_name = "DATA",
        requires = "url"
    )]
    pub data: Option<String>,
}

/// `windlass poll`.
#[derive(Debug, Args)]
#[command(
    group = clap::ArgGroup::new("what").required(true),
    override_usage = "windlass poll [OPTIONS] -- COMMAND\n       windlass poll [OPTIONS] --url URL"
)]
pub struct PollArgs {
    /// The time between two looks; `5s..1m` doubles it each time, up to a minute
    #[arg(
        long,
        env = "WINDLASS_EVERY",
        value_name = "TIME",
        default_value = "5s"
    )]
    pub every: Every,
    /// How long at most
    #[arg(
        long,
        env = "WINDLASS_TIMEOUT",
        value_name = "TIME",
        default_value = "1h"
    )]
    pub timeout: Lasting,
    /// How often at most; 1000000 if it does not say, or 10000 on a server
    #[arg(long, env = "WINDLASS_TIMES", value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub times: Option<u64>,
    /// Ends the poll once it is true: an expression over exitCode, stdout, stderr and body (its
    /// output, if that is JSON), or over statusCode, headers and body of an address
    #[arg(long, env = "WINDLASS_UNTIL", value_name = "EXPRESSION")]
    pub until: Option<String>,
    /// Looks at this address, instead of running a command
    #[arg(long, env = "WINDLASS_URL", value_name = "URL", group = "what")]
    pub url: Option<String>,
    #[command(flatten)]
    pub request: RequestArgs,
    /// The command. Without --until its exit code 0 ends the poll
    #[arg(last = true, group = "what", value_name = "COMMAND")]
    pub command: Vec<String>,
    #[command(flatten)]
    pub quick: QuickArgs,
}

/// `windlass try`.
#[derive(Debug, Args)]
pub struct TryArgs {
    /// The time between two attempts; `1s..1m` doubles it each time, up to a minute
    #[arg(
        long,
        visible_alias = "exponential",
        env = "WINDLASS_EVERY",
        value_name = "TIME",
        default_value = "1s..1m"
    )]
    pub every: Every,
    /// How many attempts at most
    #[arg(long, env = "WINDLASS_TIMES", value_name = "N", default_value = "10", value_parser = clap::value_parser!(u64).range(1..))]
    pub times: u64,
    /// How long one attempt may take
    #[arg(long, env = "WINDLASS_TIMEOUT", value_name = "TIME")]
    pub timeout: Option<Lasting>,
    /// The command. Its exit code 0 is a success
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<String>,
    #[command(flatten)]
    pub quick: QuickArgs,
}

/// `windlass paginate`.
#[derive(Debug, Args)]
pub struct PaginateArgs {
    /// The address of the first page
    pub url: String,
    /// What leads to the next page: `link` (the header Link), `page` or `offset` (a number in the
    /// query), or an expression that gives its address, such as body.next
    #[arg(
        long,
        env = "WINDLASS_NEXT",
        value_name = "WHAT",
        default_value = "link"
    )]
    pub next: String,
    /// The expression gives not an address but a token, for the query under this name; of `page` and
    /// `offset` the name of the number. With --data it is a member of that, such as `page.after`
    #[arg(long, env = "WINDLASS_PARAM", value_name = "NAME")]
    pub param: Option<String>,
    /// The rows of a page
    #[arg(
        long,
        env = "WINDLASS_ITEMS",
        value_name = "EXPRESSION",
        default_value = "body"
    )]
    pub items: String,
    /// The number of all rows, such as body.found; `none` ignores what the answers report. By default
    /// it is read from the usual members and headers (total, total_count, X-Total-Count)
    #[arg(long, env = "WINDLASS_TOTAL", value_name = "EXPRESSION")]
    pub total: Option<String>,
    /// The file for the rows, one JSON document a line. It appears, or is replaced, when all pages
    /// are there
    #[arg(long, env = "WINDLASS_TO", value_name = "FILE")]
    pub to: PathBuf,
    /// The time between two pages
    #[arg(
        long,
        env = "WINDLASS_EVERY",
        value_name = "TIME",
        default_value = "0s"
    )]
    pub every: Every,
    /// How long at most
    #[arg(
        long,
        env = "WINDLASS_TIMEOUT",
        value_name = "TIME",
        default_value = "1d"
    )]
    pub timeout: Lasting,
    /// How many pages at most; 1000000 if it does not say, or 10000 on a server
    #[arg(long, env = "WINDLASS_TIMES", value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub times: Option<u64>,
    #[command(flatten)]
    pub request: RequestArgs,
    #[command(flatten)]
    pub quick: QuickArgs,
}

impl PaginateArgs {
    /// Whether what a page says leads to the next one.
    pub fn is_led(&self) -> bool {
        !["page", "offset"].contains(&self.next.as_str())
    }
}
