//! The flags of `windlass test`.

use super::{HandlerArgs, LoadArgs, Output};
use clap::Args;
use std::path::PathBuf;
use windlass_engine::Timestamp;

/// `windlass test`.
#[derive(Debug, Args)]
pub struct TestArgs {
    /// Workflows, or files of cases. The cases of FILE.yaml are in FILE.test.yaml
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
    /// Simulate one run up to this place: an action (`check`), an iteration (`poll#14`) or an
    /// action in one (`poll#14/check`)
    #[arg(long, value_name = "PLACE")]
    pub at: Option<String>,
    /// Attempt to stop at; earlier attempts fail with a connection error
    #[arg(long, value_name = "N", default_value = "1", requires = "at")]
    pub attempt: u32,
    /// Input: NAME=TEXT, NAME:=JSON, or a JSON object with several. Simulates one run
    #[arg(short = 'i', long = "set", value_name = "NAME=VALUE")]
    pub set: Vec<String>,
    /// JSON or YAML file with the inputs. Simulates one run
    #[arg(long, value_name = "FILE")]
    pub input: Option<PathBuf>,
    /// Start time of the virtual clock
    #[arg(long, value_name = "TIME", default_value = "2026-01-01T00:00:00Z")]
    pub now: Timestamp,
    /// Scheduled time of the run, as `schedule('time')` returns it
    #[arg(long, value_name = "TIME")]
    pub scheduled_time: Option<Timestamp>,
    /// Write the results of the cases to this file as JUnit XML
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
    #[command(flatten)]
    pub load: LoadArgs,
    #[command(flatten)]
    pub handlers: HandlerArgs,
    #[command(flatten)]
    pub output: Output,
}
