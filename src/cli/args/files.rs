//! The flags of commands that need no store.

use super::{HandlerArgs, LoadArgs, Output};
use clap::Args;
use std::path::PathBuf;

/// `windlass validate`.
#[derive(Debug, Args)]
pub struct ValidateArgs {
    /// Workflow files
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
    /// Treat warnings as errors
    #[arg(long)]
    pub strict: bool,
    /// Write a template of stubs to this file: an answer for each action that needs one, and a
    /// value for each missing parameter and app setting. Fill it in and pass it with --stub
    #[arg(long, value_name = "FILE")]
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
    /// Use standard input and output (always the case; some editors pass this flag)
    #[arg(long, hide = true)]
    pub stdio: bool,
}

/// `windlass compile`.
#[derive(Debug, Args)]
pub struct CompileArgs {
    /// Workflow file; `-` reads standard input
    pub file: PathBuf,
    /// Output format
    #[arg(
        short,
        long,
        env = "WINDLASS_DRAWING",
        value_name = "FORMAT",
        default_value = "table",
        value_enum
    )]
    pub output: Drawing,
    /// Draw the inside of a canvas's loops, maps and components
    #[arg(long)]
    pub expand: bool,
    /// Maximum depth of nested scopes; deeper ones become one box each
    #[arg(long, value_name = "N")]
    pub depth: Option<u32>,
    #[command(flatten)]
    pub load: LoadArgs,
    #[command(flatten)]
    pub handlers: HandlerArgs,
}

/// The format of a drawn state machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Drawing {
    /// One line for each state
    Table,
    /// Mermaid state diagram
    Mermaid,
    /// Graphviz digraph
    Dot,
    /// Image that follows the viewer's light or dark mode
    Svg,
    /// States and scopes as JSON
    Json,
}

/// `windlass eval`.
#[derive(Debug, Args)]
pub struct EvalArgs {
    /// Expression; with --template or --condition also a JSON document
    #[arg(required_unless_present = "batch")]
    pub expression: Option<String>,
    /// JSON or YAML file with the values that the expression can read; `-` reads standard input.
    /// Keys: vars (or variables), params (or parameters), inputs, actions, trigger, item, loops,
    /// results, workflow, current, state, loop, settings, data, env, secrets; now (the time); mode
    /// (loom or azure)
    #[arg(long, value_name = "FILE")]
    pub context: Option<PathBuf>,
    /// Read the expression as JSON whose strings are templates
    #[arg(long, conflicts_with = "condition")]
    pub template: bool,
    /// Read the expression as a condition, in text or object form
    #[arg(long)]
    pub condition: bool,
    /// Read one JSON object per line from standard input: `expr`, `template` or `cond`, and the
    /// keys of the context
    #[arg(long, conflicts_with_all = ["expression", "context", "template", "condition"])]
    pub batch: bool,
    #[command(flatten)]
    pub output: Output,
}

/// `windlass schema`.
#[derive(Debug, Args)]
pub struct SchemaArgs {
    /// Format: loom, azure, tea or canvas
    #[arg(env = "WINDLASS_FORMAT", value_name = "FORMAT", default_value = "loom")]
    pub format: String,
}

/// `windlass completions`.
#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// Shell to generate the script for
    #[arg(env = "WINDLASS_SHELL", value_enum)]
    pub shell: clap_complete::Shell,
}

/// `windlass man`.
#[derive(Debug, Args)]
pub struct ManArgs {
    /// Write one page per command into this directory
    #[arg(long, env = "WINDLASS_MAN_DIR", value_name = "DIR")]
    pub dir: Option<PathBuf>,
}
