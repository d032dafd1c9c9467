//! The flags of `windlass bench`.

use super::{DurationArg, Output};
use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};
use serde::Serialize;
use std::fmt;
use std::path::PathBuf;

/// `windlass bench`.
#[derive(Debug, Args)]
pub struct BenchArgs {
    /// What to measure (default: everything)
    #[arg(value_name = "SECTION", value_enum)]
    pub sections: Vec<BenchSection>,
    /// Directory on the disk to measure; temporary stores in it are removed afterwards
    #[arg(
        long,
        env = "WINDLASS_BENCH_DIR",
        value_name = "DIR",
        default_value = "."
    )]
    pub dir: PathBuf,
    /// Numbers of loops of `polls` and `waiting`, measured one after the other, e.g. `1000,5000`
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "1000", value_parser = clap::value_parser!(u32).range(1..))]
    pub loops: Vec<u32>,
    /// How long to count polls
    #[arg(long, value_name = "DURATION", default_value = "15s")]
    pub seconds: DurationArg,
    /// Let `gaps` continue to a million iterations, which needs minutes
    #[arg(long)]
    pub long: bool,
    #[command(flatten)]
    pub output: Output,
}

/// What `windlass bench` measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum BenchSection {
    /// Time from the request to start a run to its first step
    Start,
    /// Time from one step of a loop to the next
    Gaps,
    /// A thousand short loops at the same time
    Throughput,
    /// Loops that poll a server once a second
    Polls,
    /// Loops that wait for an hour: memory, disk, the list, a backup, a restart
    Waiting,
    /// Time from a SIGKILL to the next step
    Recovery,
}

impl fmt::Display for BenchSection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.to_possible_value();
        f.write_str(value.as_ref().map_or("", PossibleValue::get_name))
    }
}
