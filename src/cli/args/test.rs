//! The flags of `windlass test`.

use super::{HandlerArgs, LoadArgs, Output};
use clap::Args;
use std::path::PathBuf;
use windlass_engine::Timestamp;

/// `windlass test`.
#[derive(Debug, Args)]
pub struct TestArgs {
    /// Workflows, or files of cases. Beside FILE.yaml the cases are in FILE.test.yaml
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
    /// Plays the workflow once instead, as far as this: an action (`check`), an iteration (`poll#14`) or
    /// an action of one (`poll#14/check`)
    #[arg(long, value_name = "PLACE")]
    pub at: Option<String>,
    /// The attempt of --at: those before it fail as a lost connection does
    #[arg(long, value_name = "N", default_value = "1", requires = "at")]
    pub attempt: u32,
    /// An input: NAME=TEXT, NAME:=JSON, or a JSON object of several. Plays the workflow once
    #[arg(short = 'i', long = "set", value_name = "NAME=VALUE")]
    pub set: Vec<String>,
    /// A JSON or YAML file with the inputs. Plays the workflow once
    #[arg(long, value_name = "FILE")]
    pub input: Option<PathBuf>,
    /// When the virtual clock begins
    #[arg(long, value_name = "TIME", default_value = "2026-01-01T00:00:00Z")]
    pub now: Timestamp,
    /// Writes the results of the cases as JUnit XML
    #[arg(long, env = "WINDLASS_JUNIT", value_name = "FILE")]
    pub junit: Option<PathBuf>,
    #[command(flatten)]
    pub load: LoadArgs,
    #[command(flatten)]
    pub handlers: HandlerArgs,
    #[command(flatten)]
    pub output: Output,
}
