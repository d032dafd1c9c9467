//! The requests of an editor about a workflow's text.
//! They are pure functions of the text, and also work for a text with mistakes. Positions are those of the Language
//! Server Protocol.
//!
//! `sketch` reads any text into a tree. `names` finds the names that expressions can use. `schema` finds the keys and
//! values that are allowed at a position. `cursor` finds what is being typed in an expression.
//!
//! This crate stores and starts nothing, and does not depend on a server.
//!
//! The most important types: [`Format`], [`Completion`], [`Hover`], [`Symbol`], [`Edit`], [`Panel`].
//!
//! Test it alone with `cargo test -p windlass-language`.

mod complete;
mod cursor;
mod dry_run;
mod edit;
mod hover;
mod iteration_context;
#[cfg(test)]
mod known_keys;
mod names;
mod schema;
mod sketch;
mod symbols;

pub use complete::{Completion, CompletionItem, CompletionKind, complete};
pub use dry_run::{DryRunInput, DryRunResult, try_action};
pub use edit::{
    Choice, Column, Edit, Edited, Field, FieldKind, NodeType, Panel, Parts, PortOf, Section, Where,
    edit, panel, types,
};
pub use hover::{Hover, hover};
pub use iteration_context::{
    ConditionTest, IterationContext, TestedIteration, load_iteration_context, test_condition,
};
pub use symbols::{Symbol, symbols};
pub use windlass_expression::Budget;
pub use windlass_source::source::{Lines, Position, TextEdit, TextRange, edited};

use serde_json::Value;
use sketch::{Kind, SketchNode};
use windlass_engine::{Bundle, Dialect, dialect_of};

/// What completion and hover need to know about the format of a text.
#[derive(Clone, Copy, Debug)]
pub struct Format {
    /// The dialect that determines names and expressions.
    pub dialect: Dialect,
    /// The JSON Schema that determines keys.
    pub schema: Option<&'static Value>,
}

impl From<Dialect> for Format {
    fn from(dialect: Dialect) -> Self {
        let schema = Some(schema::root(dialect));
        Self { dialect, schema }
    }
}

/// A character that is inserted where something is being typed, to mark the position. No file contains this
/// character.
const MARK: char = '\u{e000}';

/// Returns the format of a text, even if the text has mistakes.
fn dialect(bundle: &Bundle, explicit: Option<Dialect>, root: &SketchNode, text: &str) -> Dialect {
    if let Some(found) = explicit.or_else(|| {
        let named = root.member_text("dialect", text)?;
        Dialect::parse(named)
    }) {
        return found;
    }
    if let Some(found) = dialect_of(bundle, None) {
        return found;
    }
    let azure = ["definition", "triggers", "resources"];
    if let Some(nodes) = root.get("nodes") {
        let data = |node: &SketchNode| node.get("id").is_some() || node.get("data").is_some();
        return match nodes.kind {
            Kind::List(ref nodes) if nodes.iter().any(data) => Dialect::Canvas,
            _ => Dialect::Tea,
        };
    }
    match azure.iter().any(|key| root.get(key).is_some()) {
        true => Dialect::Azure,
        false => Dialect::Loom,
    }
}
