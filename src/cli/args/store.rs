//! The flags of commands for a store as a whole.

use super::{DurationArg, Output};
use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use std::path::PathBuf;
use windlass_engine::StoreKind;

/// `windlass prune`.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("which").required(true).multiple(true))]
pub struct PruneArgs {
    /// Runs that ended longer ago than this, e.g. `12h` or `30d`
    #[arg(long, value_name = "DURATION", group = "which")]
    pub older_than: Option<DurationArg>,
    /// All but the newest N runs of each workflow
    #[arg(long, value_name = "N", group = "which")]
    pub keep: Option<usize>,
    /// Only runs of this workflow
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = NonEmptyStringValueParser::new())]
    pub workflow: Vec<String>,
    /// Only runs with this label, e.g. `team=data`
    #[arg(long, value_name = "NAME=TEXT", group = "which")]
    pub label: Vec<String>,
    /// Only runs with this status: Succeeded, SucceededWithFailures, Failed, TimedOut or Cancelled
    #[arg(long, value_name = "STATUS", value_delimiter = ',', group = "which")]
    pub status: Vec<String>,
    /// List what would be deleted, without deleting it
    #[arg(long)]
    pub dry_run: bool,
    /// Rewrite the store to free disk space; no process may own it
    #[arg(long, group = "which")]
    pub compact: bool,
    #[command(flatten)]
    pub output: Output,
}

/// `windlass backup`.
#[derive(Debug, Args)]
pub struct BackupArgs {
    /// Directory for the backup; it must not contain a store
    #[arg(value_name = "DEST")]
    pub dest: PathBuf,
    #[command(flatten)]
    pub output: Output,
}

/// `windlass restore`.
#[derive(Debug, Args)]
pub struct RestoreArgs {
    /// Directory of the backup
    #[arg(value_name = "SRC")]
    pub source: PathBuf,
    /// Replace the existing store; the old one is renamed, not deleted
    #[arg(long)]
    pub replace: bool,
    #[command(flatten)]
    pub output: Output,
}

/// `windlass migrate`.
#[derive(Debug, Args)]
pub struct MigrateArgs {
    /// Target database: sled or fjall
    #[arg(long, value_name = "KIND", value_parser = super::store_kind())]
    pub to: StoreKind,
    #[command(flatten)]
    pub output: Output,
}

/// `windlass doctor`.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// Build a new store from all readable data; the damaged one is renamed, not deleted
    #[arg(long)]
    pub repair: bool,
    #[command(flatten)]
    pub output: Output,
}
