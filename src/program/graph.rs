//! A program as a diagram.

use super::Program;

/// A Mermaid state diagram.
#[must_use]
pub fn mermaid(_program: &Program) -> String {
    String::new()
}

/// A Graphviz digraph.
#[must_use]
pub fn dot(_program: &Program) -> String {
    String::new()
}
