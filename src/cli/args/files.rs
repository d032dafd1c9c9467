//! The flags of commands that need no store.

use super::{HandlerArgs, LoadArgs, Output};
use clap::builder::FalseyValueParser;
use clap::{ArgAction, Args};
use std::path::PathBuf;

/// `windlass validate`.
#[derive(Debug, Args)]
pub struct ValidateArgs {
    /// The workflows
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
    /// Also refuses what only looks wrong
    #[arg(long, env = "WINDLASS_STRICT", value_parser = FalseyValueParser::new(), action = ArgAction::SetTrue)]
    pub strict: bool,
    /// Writes a file of stubs: an answer for each action that needs one, and a value for each
    /// parameter and app setting that has none. It is to be filled in, and given with --stub
    #[arg(long, env = "WINDLASS_WRITE_STUBS", value_name = "FILE")]
    pub write_stubs: Option<PathBuf>,
    #[command(flatten)]
    pub load: LoadArgs,
    #[command(flatten)]
    pub handlers: HandlerArgs,
    #[command(flatten)]
    pub output: Output,
}

/// `windlass lsp`.
#[derive(Debug, Args)]
pub struct LspArgs {
    /// Speaks over standard input and output, as it does anyway: some editors say it
    #[arg(long, env = "WINDLASS_STDIO", hide = true, value_parser = FalseyValueParser::new(), action = ArgAction::SetTrue)]
    pub stdio: bool,
}

/// `windlass compile`.
#[derive(Debug, Args)]
pub struct CompileArgs {
    /// The workflow; `-` reads standard input
    pub file: PathBuf,
    /// How it is drawn
    #[arg(
        short,
        long,
        env = "WINDLASS_DRAWING",
        value_name = "FORMAT",
        default_value = "table",
        value_enum
    )]
    pub output: Drawing,
    /// Draws what is inside of a canvas's loops, maps and components
    #[arg(long, env = "WINDLASS_EXPAND", value_parser = FalseyValueParser::new(), action = ArgAction::SetTrue)]
    pub expand: bool,
    /// Draws so many scopes within one another, and what lies deeper as one box each
    #[arg(long, env = "WINDLASS_DEPTH", value_name = "N")]
    pub depth: Option<u32>,
    #[command(flatten)]
    pub load: LoadArgs,
    #[command(flatten)]
    pub handlers: HandlerArgs,
}

/// How a state machine is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Drawing {
    /// One line a state.
    Table,
    /// A Mermaid state diagram.
    Mermaid,
    /// A Graphviz digraph.
    Dot,
    /// A picture, light or dark as the reader's screen is.
    Svg,
    /// The states and scopes as JSON.
    Json,
}

/// `windlass eval`.
#[derive(Debug, Args)]
pub struct EvalArgs {
    /// The expression; with --template or --condition also a JSON document
    #[arg(required_unless_present = "batch")]
    pub expression: Option<String>,
    /// A JSON or YAML file with what the expression may read; `-` reads standard input. Its keys:
    /// vars (or variables), params (or parameters), inputs, actions, trigger, item, loops, results,
    /// workflow, current, state, loop, settings, data, env, secrets; now, the time; mode, loom or
    /// azure
    #[arg(long, env = "WINDLASS_CONTEXT", value_name = "FILE")]
    pub context: Option<PathBuf>,
    /// Reads it as JSON whose strings are templates
    #[arg(long, env = "WINDLASS_TEMPLATE", value_parser = FalseyValueParser::new(), action = ArgAction::SetTrue, conflicts_with = "condition")]
    pub template: bool,
    /// Reads it as a condition, in text or in object form
    #[arg(long, env = "WINDLASS_CONDITION", value_parser = FalseyValueParser::new(), action = ArgAction::SetTrue)]
    pub condition: bool,
    /// Reads one JSON object a line from standard input: `expr`, `template` or `cond`, and the
    /// context beside it
    #[arg(long, env = "WINDLASS_BATCH", value_parser = FalseyValueParser::new(), action = ArgAction::SetTrue)]
    pub batch: bool,
    #[command(flatten)]
    pub output: Output,
}

/// `windlass schema`.
#[derive(Debug, Args)]
pub struct SchemaArgs {
    /// The format: loom, tea, canvas. Those of azure name their own schema under `$schema`
    #[arg(env = "WINDLASS_FORMAT", value_name = "FORMAT", default_value = "loom")]
    pub format: String,
}

/// `windlass completions`.
#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// The shell
    #[arg(env = "WINDLASS_SHELL", value_enum)]
    pub shell: clap_complete::Shell,
}

/// `windlass man`.
#[derive(Debug, Args)]
pub struct ManArgs {
    /// Writes a page for each command into this directory
    #[arg(long, env = "WINDLASS_MAN_DIR", value_name = "DIR")]
    pub dir: Option<PathBuf>,
}
