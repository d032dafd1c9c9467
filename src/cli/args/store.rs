//! The flags of commands for a store as a whole.

use super::{Lasting, Output};
use clap::builder::FalseyValueParser;
use clap::{ArgAction, Args};
use std::path::PathBuf;
use windlass_engine::StoreKind;

/// `windlass prune`.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("which").required(true).multiple(true))]
pub struct PruneArgs {
    /// Those that ended longer ago than this: `12h`, `30d`
    #[arg(
        long,
        env = "WINDLASS_OLDER_THAN",
        value_name = "DURATION",
        group = "which"
    )]
    pub older_than: Option<Lasting>,
    /// All but the newest N of each workflow
    #[arg(long, env = "WINDLASS_KEEP", value_name = "N", group = "which")]
    pub keep: Option<usize>,
    /// Only runs of this workflow
    #[arg(long, env = "WINDLASS_WORKFLOW", value_name = "NAME")]
    pub workflow: Option<String>,
    /// Only runs with this label: NAME=TEXT
    #[arg(long, value_name = "NAME=TEXT", group = "which")]
    pub label: Vec<String>,
    /// Only runs that ended so: Succeeded, Failed, TimedOut, Cancelled
    #[arg(long, value_name = "STATUS", value_delimiter = ',', group = "which")]
    pub status: Vec<String>,
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

/// `windlass migrate`.
#[derive(Debug, Args)]
pub struct MigrateArgs {
    /// The database that keeps it from now on
    #[arg(long, env = "WINDLASS_TO", value_name = "KIND", value_parser = super::store_kind())]
    pub to: StoreKind,
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
