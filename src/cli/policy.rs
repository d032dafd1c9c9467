//! The flags that say what workflows may do, and what they do to an engine.

use clap::builder::FalseyValueParser;
use clap::{ArgAction, Args};
use windlass_engine::{EngineBuilder, Policy};

/// What workflows that come over HTTP may do.
#[derive(Clone, Debug, Default, Args)]
pub struct UntrustedArgs {
    /// Workflows that come over HTTP may run commands and read the environment
    #[arg(long, env = "WINDLASS_ALLOW_SHELL", value_parser = FalseyValueParser::new(), action = ArgAction::SetTrue)]
    pub allow_shell: bool,
    /// Workflows that come over HTTP may run Python and Prolog
    #[arg(long, env = "WINDLASS_ALLOW_SCRIPTS", value_parser = FalseyValueParser::new(), action = ArgAction::SetTrue)]
    pub allow_scripts: bool,
    /// Workflows that come over HTTP may write files of this machine
    #[arg(long, env = "WINDLASS_ALLOW_FILES", value_parser = FalseyValueParser::new(), action = ArgAction::SetTrue)]
    pub allow_files: bool,
    /// Workflows that come over HTTP may reach addresses that are not on the public internet
    #[arg(long, env = "WINDLASS_ALLOW_PRIVATE_NETWORK", value_parser = FalseyValueParser::new(), action = ArgAction::SetTrue)]
    pub allow_private_network: bool,
    /// A secret that workflows that come over HTTP may name; a * stands for any text
    #[arg(
        long,
        env = "WINDLASS_ALLOW_SECRET",
        value_name = "NAME",
        value_delimiter = ','
    )]
    pub allow_secret: Vec<String>,
}

impl UntrustedArgs {
    /// An engine that lets them do so much.
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

/// What expressions may read of the environment.
#[derive(Clone, Debug, Default, Args)]
pub struct EnvArgs {
    /// A variable of the environment that expressions may read; a * stands for any text
    #[arg(
        long,
        env = "WINDLASS_ALLOW_ENV",
        value_name = "NAME",
        value_delimiter = ','
    )]
    pub allow_env: Vec<String>,
}
