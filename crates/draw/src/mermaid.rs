//! Mermaid state diagrams.

use super::{BoxShape, Detail, ScopeDrawing, cut, tree};
use std::fmt::Write;
use windlass_machine::program::Program;

/// Draws a program as a Mermaid state diagram.
#[must_use]
pub fn mermaid(program: &Program, detail: Detail) -> String {
    let mut out = String::from("stateDiagram-v2\n");
    let drawing = tree::drawing(program).close(detail);
    mermaid_inside(&drawing, 1, &mut out);
    out
}

fn mermaid_inside(inside: &ScopeDrawing, depth: usize, out: &mut String) {
    let pad = "    ".repeat(depth);
    for drawn in &inside.boxes {
        let id = drawn.id;
        let state = |label: &str| format!("{pad}state \"{}\" as {id}", mermaid_text(&cut(label)));
        let _ = match &drawn.shape {
            BoxShape::Step => writeln!(out, "{}", state(&drawn.facts.text)),
            BoxShape::Closed => writeln!(out, "{}", state(&drawn.facts.closed_text)),
            BoxShape::Choice => writeln!(out, "{pad}state {id} <<choice>>"),
            BoxShape::Bare(_) => Ok(()),
            BoxShape::Frame(inside) => {
                let _ = writeln!(out, "{} {{", state(&drawn.facts.text));
                mermaid_inside(inside, depth + 1, out);
                writeln!(out, "{pad}}}")
            }
        };
    }
    let end = || String::from("[*]");
    for line in &inside.lines {
        let from = line.from.map_or_else(end, |id| id.to_string());
        let to = line.to.map_or_else(end, |id| id.to_string());
        let _ = match line.text().as_str() {
            "" => writeln!(out, "{pad}{from} --> {to}"),
            label => writeln!(out, "{pad}{from} --> {to} : {}", mermaid_text(label)),
        };
    }
}

/// Writes the characters that have a meaning in Mermaid as entity codes.
fn mermaid_text(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '"' | '#' | ';' | '{' | '}' | '<' | '>' | '\\' | '%' => {
                let _ = write!(out, "#{};", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out
}
