//! The flags of `windlass serve`.

use super::{HandlerArgs, Lasting};
use crate::cli::policy::{EnvArgs, UntrustedArgs};
use clap::builder::FalseyValueParser;
use clap::{ArgAction, Args, ValueEnum};
use std::net::SocketAddr;
use std::path::PathBuf;

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
    /// It leaves within this time once it is told to stop: `10s`, `1m`
    #[arg(
        long,
        env = "WINDLASS_GRACE",
        value_name = "DURATION",
        default_value = "10s"
    )]
    pub grace: Lasting,
    /// A file with a second token, which may only look
    #[arg(long, env = "WINDLASS_VIEW_TOKEN_FILE", value_name = "FILE")]
    pub view_token_file: Option<PathBuf>,
    /// What the console at `/ui/` may do
    #[arg(
        long,
        env = "WINDLASS_UI",
        value_name = "WHAT",
        default_value = "full",
        value_enum
    )]
    pub ui: UiArg,
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
    /// The longest timeout a loop may ask for: `12h`, `30d`
    #[arg(long, env = "WINDLASS_MAX_TIMEOUT", value_name = "DURATION")]
    pub max_timeout: Option<Lasting>,
    /// Runs that ended longer ago than this are forgotten: `12h`, `30d`
    #[arg(long, env = "WINDLASS_PRUNE_OLDER_THAN", value_name = "DURATION")]
    pub prune_older_than: Option<Lasting>,
    /// Of the runs that have ended, the newest N of each workflow are not forgotten; without
    /// --prune-older-than all others are
    #[arg(long, env = "WINDLASS_PRUNE_KEEP", value_name = "N")]
    pub prune_keep: Option<usize>,
    #[command(flatten)]
    pub untrusted: UntrustedArgs,
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
    pub untrusted: UntrustedArgs,
    #[command(flatten)]
    pub env: EnvArgs,
    #[command(flatten)]
    pub handlers: HandlerArgs,
}

/// `windlass ui`.
#[derive(Debug, Args)]
pub struct UiArgs {
    /// Only prints where it is
    #[arg(long, env = "WINDLASS_NO_OPEN", value_parser = FalseyValueParser::new(), action = ArgAction::SetTrue)]
    pub no_open: bool,
}

/// What the console may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum UiArg {
    /// There is none
    Off,
    /// It shows, and changes nothing
    Read,
    /// All that its token allows
    Full,
}

/// With nothing at a time, nothing would ever go on.
fn positive(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err(String::from("at least 1")),
        Ok(number) => Ok(number),
        Err(_) => Err(String::from("a whole number from 1")),
    }
}
