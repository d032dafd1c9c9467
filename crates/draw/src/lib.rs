//! Draws a program as a diagram: one box for a step and one frame for a scope, as an author thinks of them.
//! Some states exist only for the machine (the end of a body, a visit) and are drawn as lines. Lines of a canvas are
//! labelled with the ports that they connect. The inside of a canvas node is drawn only on demand.
//!
//! `tree` makes the boxes and lines. `fold` closes and joins boxes.
//! Mermaid and Graphviz compute the positions of boxes themselves. `layout` computes them for the API and for SVG.
//!
//! The crate knows only programs: no run, no file and no server.
//!
//! The most important types: [`Graph`], [`Node`], [`Edge`], [`View`], [`Detail`].
//!
//! Test it alone with `cargo test -p windlass-draw`.

mod dot;
mod fold;
mod layout;
mod mermaid;
mod picture;
mod svg;
mod tree;
mod wires;

pub use dot::dot;
pub use mermaid::mermaid;
pub use picture::{Edge, Graph, NoNode, Node, NodeLimits, Open, Port, View, graph};
pub use svg::{picture, svg};

use std::fmt;
use windlass_machine::program::{ScopeId, StateId};
use windlass_model::model::Name;
use windlass_value::{fitted, one_line};

/// Maximum number of characters in a label. It is small, because a diagram does not replace the text of the workflow.
const LABEL: usize = 100;

/// How much of a program is drawn.
#[derive(Clone, Copy, Debug, Default)]
pub struct Detail {
    /// Whether the inside of canvas nodes is drawn, too.
    pub expand: bool,
    /// Maximum depth of open scopes. `None` means that all scopes are open.
    pub depth: Option<u32>,
}

/// The content of a scope.
#[derive(Default)]
struct ScopeDrawing {
    boxes: Vec<DrawnBox>,
    lines: Vec<Line>,
}

/// The id of a box.
/// The same part of a program has the same id, whatever else is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum BoxId {
    Scope(ScopeId),
    State(StateId),
}

impl fmt::Display for BoxId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scope(id) => id.fmt(f),
            Self::State(id) => id.fmt(f),
        }
    }
}

struct DrawnBox {
    id: BoxId,
    facts: Facts,
    shape: BoxShape,
}

enum BoxShape {
    Step,
    Choice,
    /// A box whose inside is not drawn.
    Closed,
    Frame(ScopeDrawing),
    /// A box of which only the content is drawn, without a frame.
    Bare(ScopeDrawing),
}

/// The facts about a box that are shown or returned.
#[derive(Default)]
struct Facts {
    kind: &'static str,
    /// The name of the box's step in status and history.
    name: Name,
    /// The name of the action, if it differs from `name`.
    action: Option<Name>,
    title: Option<Name>,
    /// The type, as the file has it.
    label: Option<Name>,
    /// The path in a run, without the numbers of iterations.
    path: String,
    line: u32,
    file: u16,
    /// What the step does, in one line.
    summary: String,
    /// The text of the box in Mermaid and Graphviz if it is open.
    text: String,
    /// The text of the box in Mermaid and Graphviz if it is closed.
    closed_text: String,
    /// Whether the box is closed unless its inside is requested.
    closed: bool,
    condition: Option<String>,
    limits: NodeLimits,
    /// For a canvas node, the input ports that are connected.
    inputs: Vec<Name>,
    /// For a canvas node, the output ports that are connected.
    outputs: Vec<Name>,
}

/// A line. `from` and `to` are boxes of the same scope. `None` means the start or the end of the scope.
#[derive(Clone)]
struct Line {
    from: Option<BoxId>,
    to: Option<BoxId>,
    label: String,
    kind: LineKind,
    /// If the line leads to the end of the scope, what ends there.
    ends: ScopeEnd,
    /// The pairs of ports in a canvas that the line connects.
    wires: Vec<Wire>,
}

/// What ends at the end of a scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ScopeEnd {
    Scope,
    Iteration,
    Loop,
}

impl ScopeEnd {
    fn word(self) -> &'static str {
        match self {
            Self::Scope => "",
            Self::Iteration => "again",
            Self::Loop => "break",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LineKind {
    Next,
    /// A line out of a choice.
    Branch,
    /// A line that is followed if the step before it did not succeed.
    Failed,
    /// A value that is passed from port to port.
    Data,
    /// A value from the previous iteration that is passed from port to port.
    Previous,
}

/// A connection from an output port to an input port.
#[derive(Clone)]
struct Wire {
    output: Name,
    input: Name,
    when: Option<Name>,
}

impl fmt::Display for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} → {}", self.output, self.input)?;
        match &self.when {
            Some(when) => write!(f, " ({when})"),
            None => Ok(()),
        }
    }
}

impl Line {
    /// Returns the label of the line.
    fn text(&self) -> String {
        let wires: Vec<String> = self.wires.iter().map(Wire::to_string).collect();
        let previous = match self.kind {
            LineKind::Previous => format!("previous {}", wires.join(", ")),
            _ => wires.join(", "),
        };
        let parts = [&*self.label, &*previous, self.ends.word()];
        let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        cut(&parts.join(", "))
    }
}

/// Puts a text on one line and limits its length.
fn cut(text: &str) -> String {
    fitted(&one_line(text), LABEL)
}
