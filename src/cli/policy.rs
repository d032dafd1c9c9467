//! The flags for what workflows may do.

use clap::Args;
use windlass_engine::{EngineBuilder, Policy};

/// Permissions of guest workflows.
#[derive(Clone, Debug, Default, Args)]
pub struct GuestArgs {
    /// Allow workflows received over HTTP or MCP to run commands and read the environment
    #[arg(long)]
    pub allow_shell: bool,
    /// Allow workflows received over HTTP or MCP to run Python and Prolog
    #[arg(long)]
    pub allow_scripts: bool,
    /// Allow workflows received over HTTP or MCP to write local files
    #[arg(long)]
    pub allow_files: bool,
    /// Allow workflows received over HTTP or MCP to connect to private addresses
    #[arg(long)]
    pub allow_private_network: bool,
    /// Secret that workflows received over HTTP or MCP can use; `*` matches any text, e.g. `ci-*`
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub allow_secret: Vec<String>,
}

impl GuestArgs {
    /// Configures the engine with these permissions.
    pub fn apply(&self, builder: EngineBuilder) -> EngineBuilder {
        let mut policy = Policy::GUEST;
        policy.shell = self.allow_shell;
        policy.scripts = self.allow_scripts;
        policy.files = self.allow_files;
        policy.private_network = self.allow_private_network;
        let builder = builder.guest_policy(policy);
        builder.guest_secrets(self.allow_secret.clone())
    }
}

/// Environment variables that expressions can read.
#[derive(Clone, Debug, Default, Args)]
pub struct EnvArgs {
    /// Environment variable that expressions can read; `*` matches any text, e.g. `APP_*`
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub allow_env: Vec<String>,
}
