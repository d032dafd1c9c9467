//! A program as a diagram: one box a step, one frame a scope, as an author thinks of them. The
//! machine's own states (the end of a body, a visit) are drawn as lines. Of a
//! canvas, lines are labelled with the ports they connect, and what lies in a node is only drawn on demand.
//!
//! `tree` makes the boxes and lines, `fold` closes and joins boxes. Mermaid and Graphviz place them
//! themselves; `layout` places them for the API and for SVG.
//!
//! It knows programs only: no run, no file and no server.
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
    /// Also what is inside of a canvas's nodes.
    pub expand: bool,
    /// How many scopes are open one within the other; none: all.
    pub depth: Option<u32>,
}

/// What is inside a scope.
#[derive(Default)]
struct ScopeDrawing {
    boxes: Vec<DrawnBox>,
    lines: Vec<Line>,
}

/// A box: the same id for the same part of a program, however much is drawn.
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
    /// Has an inside, which is not drawn.
    Closed,
    Frame(ScopeDrawing),
    /// Drawn as what is in it, without a frame.
    Bare(ScopeDrawing),
}

/// The facts that are shown about a box.
#[derive(Default)]
struct Facts {
    kind: &'static str,
    /// What a status and a history call it.
    name: Name,
    /// The action that it is, where that has another name.
    action: Option<Name>,
    title: Option<Name>,
    /// Its type as written.
    label: Option<Name>,
    /// Where it is in a run, without numbers of iterations.
    path: String,
    line: u32,
    file: u16,
    /// What it does, in one line.
    summary: String,
    /// Its line in diagrams of text, open and closed.
    text: String,
    closed_text: String,
    /// Whether it is drawn closed unless its inside is requested.
    closed: bool,
    condition: Option<String>,
    limits: NodeLimits,
    /// Of a canvas's node: what is wired to it, and from it.
    inputs: Vec<Name>,
    outputs: Vec<Name>,
}

/// `from` and `to` are boxes of the same scope; none: the start or the end of the scope.
#[derive(Clone)]
struct Line {
    from: Option<BoxId>,
    to: Option<BoxId>,
    label: String,
    kind: LineKind,
    /// What becomes of the scope, where the line leads to its end.
    ends: Endpoints,
    /// The ports of a canvas that it goes between.
    wires: Vec<Wire>,
}

/// Which way the end of a scope is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Endpoints {
    Scope,
    Iteration,
    Loop,
}

impl Endpoints {
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
    /// When what comes before it did not succeed.
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
    /// The label of the line.
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

/// On one line, and not too long.
fn cut(text: &str) -> String {
    fitted(&one_line(text), LABEL)
}
