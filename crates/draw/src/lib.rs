//! Draws a program as a diagram: one box for a step, one frame for a scope, as an author thinks of them.
//! The machine's own states (the end of a body, a visit) are drawn as lines. Lines of a canvas are labelled with the
//! ports that they connect, and the inside of its nodes is drawn only on demand.
//!
//! `tree` makes the boxes and lines, `fold` closes and joins boxes.
//! Mermaid and Graphviz place boxes themselves; `layout` places them for the API and for SVG.
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

/// Maximum number of characters in a label: a diagram is not a listing.
const LABEL: usize = 100;

/// How much of a program is drawn.
#[derive(Clone, Copy, Debug, Default)]
pub struct Detail {
    /// Whether the inside of a canvas's nodes is drawn, too.
    pub expand: bool,
    /// Maximum number of open scopes inside each other; `None`: all.
    pub depth: Option<u32>,
}

/// The content of a scope.
#[derive(Default)]
struct ScopeDrawing {
    boxes: Vec<DrawnBox>,
    lines: Vec<Line>,
}

/// The id of a box: the same for the same part of a program, however much is drawn.
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
    /// A box that is drawn as its content, without a frame.
    Bare(ScopeDrawing),
}

/// The facts that are shown about a box.
#[derive(Default)]
struct Facts {
    kind: &'static str,
    /// Its name in status and history.
    name: Name,
    /// The name of its action, if that is another one.
    action: Option<Name>,
    title: Option<Name>,
    /// Its type as written.
    label: Option<Name>,
    /// Its path in a run, without numbers of iterations.
    path: String,
    line: u32,
    file: u16,
    /// What it does, in one line.
    summary: String,
    /// Its line in diagrams of text, when it is open and when it is closed.
    text: String,
    closed_text: String,
    /// Whether it is drawn closed unless its inside is requested.
    closed: bool,
    condition: Option<String>,
    limits: NodeLimits,
    /// For a canvas's node: the ports that are wired to it, and from it.
    inputs: Vec<Name>,
    outputs: Vec<Name>,
}

/// A line. `from` and `to` are boxes of the same scope; `None`: the start or the end of the scope.
#[derive(Clone)]
struct Line {
    from: Option<BoxId>,
    to: Option<BoxId>,
    label: String,
    kind: LineKind,
    /// What ends with the scope, if the line leads to its end.
    ends: ScopeEnd,
    /// The ports of a canvas that it connects.
    wires: Vec<Wire>,
}

/// What ends with the end of a scope.
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
    /// Out of a choice.
    Branch,
    /// If the step before it did not succeed.
    Failed,
    /// A value from port to port.
    Data,
    /// A value of the iteration before.
    Previous,
}

/// A value from an output to an input.
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
