//! The flags of `windlass bench`.

use super::{Lasting, Output};
use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};
use serde::Serialize;
use std::fmt;
use std::path::PathBuf;

/// `windlass bench`.
#[derive(Debug, Args)]
pub struct BenchArgs {
    /// What is measured; all of it without any
    #[arg(value_name = "SECTION", value_enum)]
    pub sections: Vec<BenchSection>,
    /// A directory on the disk that is measured; the stores in it are removed again
    #[arg(
        long,
        env = "WINDLASS_BENCH_DIR",
        value_name = "DIR",
        default_value = "."
    )]
    pub dir: PathBuf,
    /// How many loops poll once a second, each number in turn
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "1000", value_parser = clap::value_parser!(u32).range(1..))]
    pub loops: Vec<u32>,
    /// How long polls are counted
    #[arg(long, value_name = "DURATION", default_value = "15s")]
    pub seconds: Lasting,
    /// `gaps` goes on to a million iterations, which takes minutes
    #[arg(long)]
    pub long: bool,
    #[command(flatten)]
    pub output: Output,
}

/// What `windlass bench` measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum BenchSection {
    /// From the request to start a run to its first step
    Start,
    /// From a step of one loop to the next
    Gaps,
    /// A thousand short loops at once
    Throughput,
    /// Loops that ask a server once a second
    Polls,
    /// From a SIGKILL to the next step
    Recovery,
}

impl fmt::Display for BenchSection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.to_possible_value();
        f.write_str(value.as_ref().map_or("", PossibleValue::get_name))
    }
}
