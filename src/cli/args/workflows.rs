//! The flags of commands for workflows that are kept under a name.

use super::{InputArgs, LoadArgs, Output, OwnerArgs};
use clap::builder::FalseyValueParser;
use clap::{ArgAction, Args, Subcommand};
use std::path::PathBuf;

/// `windlass workflow`.
#[derive(Debug, Args)]
pub struct WorkflowArgs {
    #[command(subcommand)]
    pub command: WorkflowCommand,
}

#[derive(Debug, Subcommand)]
pub enum WorkflowCommand {
    /// Keeps a workflow under a name, in place of the one that is there
    Put(PutArgs),
    /// Lists the workflows that are kept
    List(Output),
    /// Starts a run of a workflow that is kept, and follows it to its end
    Start(StartArgs),
    /// Prints the text of a workflow that is kept
    Show(ShowArgs),
    /// Forgets a workflow that is kept; its runs go on
    Delete(DeleteArgs),
    /// Lists the versions of a workflow, and who runs which
    History(VersionsArgs),
}

/// `windlass workflow put`.
#[derive(Debug, Args)]
pub struct PutArgs {
    /// The name: letters, digits and -_.
    pub name: String,
    /// The workflow; `-` reads standard input
    pub file: PathBuf,
    /// Only in place of this version, as `workflow history` tells it
    #[arg(long, env = "WINDLASS_IF_VERSION", value_name = "VERSION")]
    pub if_version: Option<String>,
    /// Only when nothing is kept under the name
    #[arg(long, env = "WINDLASS_NEW", value_parser = FalseyValueParser::new(), action = ArgAction::SetTrue, conflicts_with = "if_version")]
    pub new: bool,
    #[command(flatten)]
    pub load: LoadArgs,
    #[command(flatten)]
    pub output: Output,
}

/// `windlass workflow start`.
#[derive(Debug, Args)]
pub struct StartArgs {
    /// The name
    pub name: String,
    #[command(flatten)]
    pub input: InputArgs,
    #[command(flatten)]
    pub owner: OwnerArgs,
}

/// `windlass workflow show`.
#[derive(Debug, Args)]
pub struct ShowArgs {
    /// The name
    pub name: String,
    /// A former version: its hash, or the first six digits of it or more
    #[arg(long, env = "WINDLASS_WORKFLOW_VERSION", value_name = "VERSION")]
    pub version: Option<String>,
    #[command(flatten)]
    pub output: Output,
}

/// `windlass workflow delete`.
#[derive(Debug, Args)]
pub struct DeleteArgs {
    /// The name
    pub name: String,
}

/// `windlass workflow history`.
#[derive(Debug, Args)]
pub struct VersionsArgs {
    /// The name
    pub name: String,
    /// Shows what each version changed
    #[arg(long, env = "WINDLASS_DIFF", value_parser = FalseyValueParser::new(), action = ArgAction::SetTrue)]
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
    /// Lists the workflows that start by themselves, and when
    List(Output),
    /// Tells the next five times of a workflow
    Next(NextArgs),
}

/// `windlass schedule next`.
#[derive(Debug, Args)]
pub struct NextArgs {
    /// A file, or the name of a workflow that is kept
    #[arg(value_name = "FILE|NAME")]
    pub which: String,
    #[command(flatten)]
    pub load: LoadArgs,
    #[command(flatten)]
    pub output: Output,
}
