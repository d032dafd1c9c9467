//! The flags of `windlass worker`.

use super::{HandlerArgs, Lasting};
use crate::cli::policy::{EnvArgs, UntrustedArgs};
use clap::Args;

/// `windlass worker`.
#[derive(Debug, Args)]
pub struct WorkerArgs {
    /// The most effects that are carried out at a time
    #[arg(
        long,
        env = "WINDLASS_MAX_EFFECTS",
        value_name = "N",
        default_value = "100"
    )]
    pub max_effects: usize,
    /// The most runs that are kept in memory
    #[arg(
        long,
        env = "WINDLASS_MAX_RUNS",
        value_name = "N",
        default_value = "1000"
    )]
    pub max_runs: usize,
    /// A worker that is not heard of for so long counts as lost, and its effects begin again elsewhere
    #[arg(
        long,
        env = "WINDLASS_HEARTBEAT",
        value_name = "DURATION",
        default_value = "3s"
    )]
    pub heartbeat: Lasting,
    /// A run waits so long for the worker that has it in memory, before another one takes it over
    #[arg(
        long,
        env = "WINDLASS_STICKY",
        value_name = "DURATION",
        default_value = "2s"
    )]
    pub sticky: Lasting,
    /// How long effects in flight may take to end when it is told to stop
    #[arg(
        long,
        env = "WINDLASS_GRACE",
        value_name = "DURATION",
        default_value = "10s"
    )]
    pub grace: Lasting,
    /// The name of a worker deployment: runs stay with the version of Windlass that they began with
    #[arg(long, env = "WINDLASS_DEPLOYMENT", value_name = "NAME")]
    pub deployment: Option<String>,
    #[command(flatten)]
    pub untrusted: UntrustedArgs,
    #[command(flatten)]
    pub env: EnvArgs,
    #[command(flatten)]
    pub handlers: HandlerArgs,
}
