//! The flags of `windlass serve`.

use super::times::limit_arg;
use super::{DurationArg, HandlerArgs};
use crate::cli::policy::{EnvArgs, GuestArgs};
use clap::{Args, ValueEnum};
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use url::Url;

/// `windlass serve`.
#[derive(Debug, Args)]
pub struct ServeArgs {
    /// Address to listen on; port 0 selects a free one
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:7465", value_parser = address)]
    pub listen: ListenArg,
    /// Address under which others reach the server, e.g. `https://loops.example.com`, for `callbackUrl`; default: its own
    #[arg(long, value_name = "URL")]
    pub public_url: Option<String>,
    /// Maximum duration of a shutdown, e.g. `1m`
    #[arg(long, value_name = "DURATION", default_value = "10s")]
    pub grace: DurationArg,
    /// Access of the console at `/ui/`
    #[arg(long, value_name = "WHAT", default_value = "full", value_enum)]
    pub ui: ConsoleAccess,
    /// TLS certificate chain (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// Private key of the TLS certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// Additional host name of the server, e.g. `loops.example.com` (`localhost` and IP addresses
    /// are always allowed)
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = host_name)]
    pub allow_host: Vec<String>,
    /// Allowed CORS origin, e.g. `https://board.example`
    #[arg(long, value_name = "ORIGIN", value_delimiter = ',', value_parser = origin)]
    pub allow_origin: Vec<String>,
    /// Format of the log on standard error
    #[arg(long, value_name = "FORMAT", default_value = "text", value_enum)]
    pub log_format: LogFormat,
    /// Maximum concurrent connections
    #[arg(long, value_name = "N", value_parser = positive, default_value = "1024")]
    pub max_connections: usize,
    /// Timeout for reading request headers or a body; twice this for writing a response
    #[arg(long, value_name = "DURATION", value_parser = limit_arg, default_value = "30s")]
    pub client_timeout: DurationArg,
    /// Maximum concurrent effects (HTTP calls, commands, …)
    #[arg(long, value_name = "N", value_parser = positive)]
    pub max_effects: Option<usize>,
    /// Maximum concurrent effects of one workflow
    #[arg(long, value_name = "N", value_parser = positive)]
    pub max_effects_per_workflow: Option<usize>,
    /// Maximum concurrent effects towards one host
    #[arg(long, value_name = "N", value_parser = positive)]
    pub max_effects_per_host: Option<usize>,
    /// Maximum concurrent runs, not counting sleeping ones; further starts are refused
    #[arg(long, value_name = "N", value_parser = positive)]
    pub max_runs: Option<usize>,
    /// Memory for the runs of guest workflows, e.g. `512MB`; further ones wait on disk
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    pub max_guest_memory: Option<u64>,
    /// Maximum iterations that a loop can request, e.g. `100000`
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_count: Option<u64>,
    /// Maximum timeout that a loop can request, e.g. `12h` or `30d`
    #[arg(long, value_name = "DURATION", value_parser = limit_arg)]
    pub max_timeout: Option<DurationArg>,
    /// Delete runs that ended longer ago than this, e.g. `12h` or `30d`
    #[arg(long, value_name = "DURATION")]
    pub prune_older_than: Option<DurationArg>,
    /// Retain the newest N ended runs of each workflow and delete the others; with
    /// --prune-older-than, only those that ended longer ago
    #[arg(long, value_name = "N")]
    pub prune_keep: Option<usize>,
    #[command(flatten)]
    pub guest: GuestArgs,
    #[command(flatten)]
    pub env: EnvArgs,
    #[command(flatten)]
    pub handlers: HandlerArgs,
}

/// `windlass mcp`.
#[cfg(feature = "mcp")]
#[derive(Debug, Args)]
pub struct McpArgs {
    #[command(flatten)]
    pub guest: GuestArgs,
    #[command(flatten)]
    pub env: EnvArgs,
    #[command(flatten)]
    pub handlers: HandlerArgs,
}

/// `windlass ui`.
#[derive(Debug, Args)]
pub struct UiArgs {
    /// Print the address without opening a browser
    #[arg(long)]
    pub no_open: bool,
}

/// The format of a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// Text for people
    #[default]
    Text,
    /// A JSON document per line
    Json,
}

/// The access of the console.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ConsoleAccess {
    /// No console
    Off,
    /// Read-only console
    Read,
    /// Everything that the token allows
    Full,
}

/// Parses a size in bytes, with a decimal unit or none. 0 is an error.
fn bytes(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit = match text.get(digits.len()..).unwrap_or_default() {
        "" | "B" => Some(1),
        "KB" => Some(1_000),
        "MB" => Some(1_000_000),
        "GB" => Some(1_000_000_000),
        _ => None,
    };
    let number = digits.parse::<u64>().ok().filter(|number| *number > 0);
    let size = number
        .zip(unit)
        .and_then(|(number, unit)| number.checked_mul(unit));
    size.ok_or_else(|| String::from("a whole number from 1, with KB, MB or GB, such as `512MB`"))
}

/// Parses a limit. 0 is an error, because it would stop all progress.
fn positive(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err(String::from("at least 1")),
        Ok(number) => Ok(number),
        Err(_) => Err(String::from("a whole number from 1")),
    }
}

/// An address to listen on.
#[derive(Clone, Debug)]
pub struct ListenArg {
    pub address: SocketAddr,
    /// The host as it is written, which clients may name as well.
    pub host: String,
}

/// Parses an address to listen on. Looks the name of a host up.
fn address(text: &str) -> Result<ListenArg, String> {
    let found = text.to_socket_addrs().map_err(|error| {
        format!("{error}: write an IP address or a host name, and a port, e.g. 127.0.0.1:7465")
    });
    let found: Vec<SocketAddr> = found?.collect();
    let ipv4 = found.iter().find(|address| address.is_ipv4());
    let first = ipv4.or(found.first()).copied();
    let (host, _) = text.rsplit_once(':').unwrap_or_default();
    Ok(ListenArg {
        address: first.ok_or_else(|| format!("`{text}` has no address"))?,
        host: host.to_owned(),
    })
}

/// Parses the name of a host as it is compared with the header `Host`.
fn host_name(text: &str) -> Result<String, String> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
    match !text.is_empty() && text.chars().all(is_name) {
        true => Ok(text.to_owned()),
        false => Err(String::from(
            "a host name has no scheme and no port, e.g. loops.example.com",
        )),
    }
}

/// Parses an origin as browsers send it in the header `Origin` (RFC 6454, 6.2).
fn origin(text: &str) -> Result<String, String> {
    let example = "an origin is a scheme, a host and a port, e.g. https://board.example";
    let url = Url::parse(text).map_err(|_| String::from(example))?;
    let origin = url.origin().ascii_serialization();
    match url.scheme() {
        "http" | "https" if origin != text => Err(format!("write {origin}")),
        _ if text.ends_with('/') || !text.contains("://") => Err(String::from(example)),
        _ => Ok(text.to_owned()),
    }
}
