//! The flags of commands for values between runs.

use super::Output;
use clap::{Args, Subcommand};

/// `windlass state`.
#[derive(Debug, Args)]
pub struct StateArgs {
    #[command(subcommand)]
    pub command: StateCommand,
}

#[derive(Debug, Subcommand)]
pub enum StateCommand {
    /// List the values that workflows have between their runs
    List(StateListArgs),
    /// Print a value
    Get(StateGetArgs),
    /// Write a value
    Set(StateSetArgs),
    /// Delete a value: the next run begins with the initial value of the file
    Delete(StateDeleteArgs),
}

/// `windlass state list`.
#[derive(Debug, Args)]
pub struct StateListArgs {
    /// Name of the workflow, as `windlass list` shows it (default: all)
    pub workflow: Option<String>,
    #[command(flatten)]
    pub output: Output,
}

/// Which value.
#[derive(Debug, Args)]
pub struct StateName {
    /// Name of the workflow, as `windlass list` shows it
    pub workflow: String,
    /// Name of the value
    pub name: String,
    /// The value of workflows that arrived over TCP, which have values of their own
    #[arg(long)]
    pub guest: bool,
}

/// `windlass state get`.
#[derive(Debug, Args)]
pub struct StateGetArgs {
    #[command(flatten)]
    pub which: StateName,
    #[command(flatten)]
    pub output: Output,
}

/// `windlass state set`.
#[derive(Debug, Args)]
pub struct StateSetArgs {
    #[command(flatten)]
    pub which: StateName,
    /// Value to write, as text
    #[arg(allow_hyphen_values = true)]
    pub value: String,
    /// Read the value, and that of `--expect`, as JSON
    #[arg(long)]
    pub json: bool,
    /// Write only if this version is stored, as printed by `state list`; 0 if none ever was, or
    /// the value was deleted
    #[arg(long, value_name = "VERSION")]
    pub if_version: Option<u64>,
    /// Write only if this value is stored
    #[arg(
        long,
        value_name = "VALUE",
        conflicts_with = "if_version",
        allow_hyphen_values = true
    )]
    pub expect: Option<String>,
    #[command(flatten)]
    pub output: Output,
}

/// `windlass state delete`.
#[derive(Debug, Args)]
pub struct StateDeleteArgs {
    #[command(flatten)]
    pub which: StateName,
    /// Delete only if this version is stored
    #[arg(long, value_name = "VERSION")]
    pub if_version: Option<u64>,
}
