//! Graphviz digraphs.

use super::{BoxId, BoxShape, Detail, ScopeDrawing, cut, tree};
use std::collections::HashSet;
use std::fmt::Write;
use windlass_machine::program::Program;

/// Draws a program as a Graphviz digraph.
#[must_use]
pub fn dot(program: &Program, detail: Detail) -> String {
    let mut out = String::from("digraph windlass {\n");
    out.push_str("  compound=true; rankdir=TB; node [shape=box, fontname=\"sans-serif\"];\n");
    let drawing = tree::drawing(program).close(detail);
    dot_inside("root", &drawing, 1, &mut out);
    out.push_str("}\n");
    out
}

fn dot_inside(scope: &str, inside: &ScopeDrawing, depth: usize, out: &mut String) {
    let pad = "  ".repeat(depth);
    let _ = writeln!(
        out,
        "{pad}{scope}_in [shape=circle, label=\"\", width=0.15, style=filled];"
    );
    let _ = writeln!(
        out,
        "{pad}{scope}_out [shape=doublecircle, label=\"\", width=0.12];"
    );
    let mut frames: HashSet<BoxId> = HashSet::new();
    for drawn in &inside.boxes {
        let id = drawn.id;
        let node = |label: &str| format!("{pad}{id} [label=\"{}\"];", dot_text(&cut(label)));
        let _ = match &drawn.shape {
            BoxShape::Step => writeln!(out, "{}", node(&drawn.facts.text)),
            BoxShape::Closed => writeln!(out, "{}", node(&drawn.facts.closed_text)),
            BoxShape::Choice => {
                writeln!(out, "{pad}{id} [shape=diamond, label=\"\", width=0.3];")
            }
            BoxShape::Bare(_) => Ok(()),
            BoxShape::Frame(inside) => {
                frames.insert(id);
                let label = dot_text(&cut(&drawn.facts.text));
                let _ = writeln!(out, "{pad}subgraph cluster_{id} {{");
                let _ = writeln!(out, "{pad}  label=\"{label}\";");
                dot_inside(&id.to_string(), inside, depth + 1, out);
                writeln!(out, "{pad}}}")
            }
        };
    }
    for line in &inside.lines {
        let end = |id: Option<BoxId>, side: &str, own: &str| match id {
            None => format!("{scope}_{own}"),
            Some(id) if frames.contains(&id) => format!("{id}_{side}"),
            Some(id) => id.to_string(),
        };
        let (from, to) = (end(line.from, "out", "in"), end(line.to, "in", "out"));
        let label = dot_text(&line.text());
        let _ = writeln!(out, "{pad}{from} -> {to} [label=\"{label}\"];");
    }
}

fn dot_text(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"")
}
