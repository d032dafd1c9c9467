//! The flags of `windlass worker`.

use super::{DurationArg, HandlerArgs};
use crate::cli::policy::{EnvArgs, GuestArgs};
use clap::Args;

/// `windlass worker`.
#[derive(Debug, Args)]
pub struct WorkerArgs {
    /// Maximum concurrent effects
    #[arg(long, value_name = "N", default_value = "100")]
    pub max_effects: usize,
    /// Maximum number of runs in memory
    #[arg(long, value_name = "N", default_value = "1000")]
    pub max_runs: usize,
    /// Heartbeat timeout: effects of a silent worker restart on another one
    #[arg(long, value_name = "DURATION", default_value = "3s")]
    pub heartbeat: DurationArg,
    /// Sticky timeout: how long a run waits for the worker that has it in memory
    #[arg(long, value_name = "DURATION", default_value = "2s")]
    pub sticky: DurationArg,
    /// Time for effects in flight to end during a shutdown
    #[arg(long, value_name = "DURATION", default_value = "10s")]
    pub grace: DurationArg,
    /// Name of a worker deployment; runs stay on the Windlass version that started them
    #[arg(long, value_name = "NAME")]
    pub deployment: Option<String>,
    #[command(flatten)]
    pub guest: GuestArgs,
    #[command(flatten)]
    pub env: EnvArgs,
    #[command(flatten)]
    pub handlers: HandlerArgs,
}
