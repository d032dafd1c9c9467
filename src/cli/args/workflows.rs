//! The flags of commands for saved workflows.

use super::{InputArgs, LoadArgs, Output, OwnerArgs};
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// `windlass workflow`.
#[derive(Debug, Args)]
pub struct WorkflowArgs {
    #[command(subcommand)]
    pub command: WorkflowCommand,
}

#[derive(Debug, Subcommand)]
pub enum WorkflowCommand {
    /// Save a workflow under a name, or update it
    Put(PutArgs),
    /// List saved workflows
    List(Output),
    /// Start a run of a saved workflow and follow it to its end
    Start(StartArgs),
    /// Print the text of a saved workflow
    Show(ShowArgs),
    /// Delete a saved workflow; its runs continue
    Delete(DeleteArgs),
    /// List the versions of a saved workflow and their runs
    History(VersionsArgs),
}

/// `windlass workflow put`.
#[derive(Debug, Args)]
pub struct PutArgs {
    /// Name: letters, digits, `-`, `_` and `.`
    pub name: String,
    /// Workflow file; `-` reads standard input
    pub file: PathBuf,
    /// Replace only this version, as printed by `workflow history`
    #[arg(long, value_name = "VERSION")]
    pub if_version: Option<String>,
    /// Fail if the name is already used
    #[arg(long, conflicts_with = "if_version")]
    pub new: bool,
    #[command(flatten)]
    pub load: LoadArgs,
    #[command(flatten)]
    pub output: Output,
}

/// `windlass workflow start`.
#[derive(Debug, Args)]
pub struct StartArgs {
    /// Name of the saved workflow
    pub name: String,
    #[command(flatten)]
    pub input: InputArgs,
    #[command(flatten)]
    pub owner: OwnerArgs,
}

/// `windlass workflow show`.
#[derive(Debug, Args)]
pub struct ShowArgs {
    /// Name of the saved workflow
    pub name: String,
    /// Version to print: its hash, or at least the first six digits of it (default: the current
    /// one)
    #[arg(long, env = "WINDLASS_WORKFLOW_VERSION", value_name = "VERSION")]
    pub version: Option<String>,
    #[command(flatten)]
    pub output: Output,
}

/// `windlass workflow delete`.
#[derive(Debug, Args)]
pub struct DeleteArgs {
    /// Name of the saved workflow
    pub name: String,
}

/// `windlass workflow history`.
#[derive(Debug, Args)]
pub struct VersionsArgs {
    /// Name of the saved workflow
    pub name: String,
    /// Show the changes of each version
    #[arg(long)]
    pub diff: bool,
    #[command(flatten)]
    pub output: Output,
}

/// `windlass schedule`.
#[derive(Debug, Args)]
pub struct ScheduleArgs {
    #[command(subcommand)]
    pub command: ScheduleCommand,
}

#[derive(Debug, Subcommand)]
pub enum ScheduleCommand {
    /// List the workflows that start automatically, and when
    List(Output),
    /// Print the next five start times of a workflow
    Next(NextArgs),
    /// Start nothing at the scheduled times until `schedule resume`
    Pause(PauseScheduleArgs),
    /// Resume a paused schedule
    Resume(PauseScheduleArgs),
    /// Run the scheduled times of a past range that have no run yet
    Backfill(BackfillArgs),
}

/// `windlass schedule pause`, `windlass schedule resume`.
#[derive(Debug, Args)]
pub struct PauseScheduleArgs {
    /// Name of the saved workflow
    pub name: String,
    #[command(flatten)]
    pub output: Output,
}

/// `windlass schedule backfill`.
#[derive(Debug, Args)]
pub struct BackfillArgs {
    /// Name of the saved workflow
    pub name: String,
    /// First time: a day (2026-11-01, on the clock of the schedule) or an instant (RFC 3339)
    #[arg(long, value_name = "TIME")]
    pub from: String,
    /// End: only times before it (default: now)
    #[arg(long, value_name = "TIME")]
    pub to: Option<String>,
    /// List the times and start nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Maximum number of runs at a time
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u16).range(1..=100))]
    pub concurrency: u16,
    #[command(flatten)]
    pub owner: OwnerArgs,
}

/// `windlass schedule next`.
#[derive(Debug, Args)]
pub struct NextArgs {
    /// Workflow file, or the name of a saved workflow
    #[arg(value_name = "FILE|NAME")]
    pub which: String,
    #[command(flatten)]
    pub load: LoadArgs,
    #[command(flatten)]
    pub output: Output,
}
