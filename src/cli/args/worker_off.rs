//! Replaces `worker` in a build without the feature `temporal`.

use clap::Args;

/// `windlass worker`, which fails whatever its arguments are.
#[derive(Debug, Args)]
pub struct WorkerArgs {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub ignored: Vec<String>,
}
