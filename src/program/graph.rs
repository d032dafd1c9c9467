//! A program as a diagram: one box a step, one frame a scope, as an author thinks of them. The
//! machine's own states (the end of a body, a visit) are drawn as the lines they stand for. Of a
//! canvas, lines bear the ports they go between, and what lies in a node is only drawn on demand.

use super::{DagNode, Op, Program, Scope, ScopeId, ScopeKind, State, StateId};
use crate::model::{Link, LinkKind, Name};
use std::fmt::Write;

/// Labels are cut to so many characters: a diagram is no listing.
const LABEL: usize = 100;

/// What is inside a scope.
#[derive(Default)]
struct Inside {
    boxes: Vec<Drawn>,
    lines: Vec<Line>,
}

enum Drawn {
    Step {
        id: String,
        label: String,
    },
    Choice {
        id: String,
    },
    Frame {
        id: String,
        label: String,
        inside: Inside,
    },
    /// Drawn as what is in it, without a frame.
    Bare {
        id: String,
        inside: Inside,
    },
}

impl Drawn {
    fn id(&self) -> &str {
        match self {
            Self::Step { id, .. }
            | Self::Choice { id }
            | Self::Frame { id, .. }
            | Self::Bare { id, .. } => id,
        }
    }
}

/// From and to are ids; none: the start or the end of the scope.
#[derive(Clone)]
struct Line {
    from: Option<String>,
    to: Option<String>,
    label: String,
}

/// How much of a program is drawn.
#[derive(Clone, Copy, Debug, Default)]
pub struct Detail {
    /// Also what is inside of a canvas's nodes.
    pub expand: bool,
    /// How many scopes are open one within the other; none: all.
    pub depth: Option<u32>,
}

/// A Mermaid state diagram.
#[must_use]
pub fn mermaid(program: &Program, detail: Detail) -> String {
    let mut out = String::from("stateDiagram-v2\n");
    mermaid_inside(&drawing(program, detail), 1, &mut out);
    out
}

/// A Graphviz digraph.
#[must_use]
pub fn dot(program: &Program, detail: Detail) -> String {
    let mut out = String::from("digraph windlass {\n");
    out.push_str("  compound=true; rankdir=TB; node [shape=box, fontname=\"sans-serif\"];\n");
    dot_inside("root", &drawing(program, detail), 1, &mut out);
    out.push_str("}\n");
    out
}

// ── the drawing ─────────────────────────────────────────────────────────────────────────────

/// What is drawn, and how much of it.
type Subject<'p> = (&'p Program, Detail);

fn drawing(program: &Program, detail: Detail) -> Inside {
    inside((program, detail), ScopeId(0)).without_bare()
}

/// The subject within a frame.
fn deeper((program, detail): Subject<'_>) -> Subject<'_> {
    let depth = detail.depth.map(|depth| depth.saturating_sub(1));
    (program, Detail { depth, ..detail })
}

fn inside(subject: Subject<'_>, id: ScopeId) -> Inside {
    let program = subject.0;
    let mut drawn = Inside::default();
    let Some(scope) = program.scope(id) else {
        return drawn;
    };
    match &scope.kind {
        ScopeKind::ForEach { branch, .. } => return inside(subject, *branch),
        ScopeKind::Parallel { branches, .. } => {
            for (name, branch) in branches {
                drawn.boxes.push(match subject.1.depth {
                    Some(0) => Drawn::Step {
                        id: branch.to_string(),
                        label: name.to_string(),
                    },
                    _ => Drawn::Frame {
                        id: branch.to_string(),
                        label: name.to_string(),
                        inside: inside(deeper(subject), *branch),
                    },
                });
                drawn.line(None, Some(branch.to_string()), "");
                drawn.line(Some(branch.to_string()), None, "");
            }
            return drawn;
        }
        ScopeKind::Dag { nodes } => {
            let entry = |branch: ScopeId| {
                program
                    .scope(branch)
                    .and_then(|scope| end(program, scope.body))
            };
            for node in nodes {
                let part = inside(subject, node.branch);
                drawn.boxes.extend(part.boxes);
                let through = |line: &Line| line.from.is_some() && line.to.is_some();
                drawn.lines.extend(part.lines.into_iter().filter(through));
                if program.rules.shows_ports {
                    continue;
                }
                if node.after.is_empty() {
                    drawn.line(None, entry(node.branch), "");
                }
                for (before, statuses) in &node.after {
                    let before = nodes.get(*before).and_then(|before| entry(before.branch));
                    let words: Vec<&str> = statuses.iter().map(|status| status.as_str()).collect();
                    drawn.line(before, entry(node.branch), &words.join(", "));
                }
            }
            if program.rules.shows_ports {
                wires(program, nodes, &entry, &mut drawn);
            }
            return drawn;
        }
        _ => {}
    }
    drawn.line(None, end(program, scope.body), "");
    for (index, state) in program.states.iter().enumerate() {
        if state.scope == id {
            draw(subject, StateId::from_index(index), state, &mut drawn);
        }
    }
    drawn
}

/// The lines of a canvas: between nodes, from what is around them, from the iteration before and
/// to what is around them, each with the ports it goes between.
fn wires(
    program: &Program,
    nodes: &[DagNode],
    entry: &dyn Fn(ScopeId) -> Option<String>,
    drawn: &mut Inside,
) {
    let named = |node: &DagNode| {
        program
            .action(node.action)
            .map(|action| action.name.clone())
    };
    let names: Vec<Option<Name>> = nodes.iter().map(named).collect();
    let find = |name: &Name| names.iter().position(|own| own.as_ref() == Some(name));
    let ports = |links: &[&Link]| {
        let one = |link: &&Link| {
            let when = link.when.as_ref().map(|when| format!(" ({when})"));
            format!(
                "{} → {}{}",
                link.output,
                link.input,
                when.unwrap_or_default()
            )
        };
        links.iter().map(one).collect::<Vec<_>>().join(", ")
    };
    let links = |kind: LinkKind, from: Option<&Name>, to: Option<&Name>| -> Vec<&Link> {
        let same = |link: &&Link| {
            let from = from.is_none_or(|from| link.from.as_ref() == Some(from));
            link.kind == kind && from && to.is_none_or(|to| link.to == *to)
        };
        program.links.iter().filter(same).collect()
    };
    for (index, node) in nodes.iter().enumerate() {
        let Some(Some(name)) = names.get(index) else {
            continue;
        };
        let me = entry(node.branch);
        let outer = links(LinkKind::Outer, None, Some(name));
        if node.after.is_empty() || !outer.is_empty() {
            drawn.line(None, me.clone(), &ports(&outer));
        }
        for (before, _) in &node.after {
            let (Some(from), Some(Some(other))) = (nodes.get(*before), names.get(*before)) else {
                continue;
            };
            let edges = links(LinkKind::Edge, Some(other), Some(name));
            drawn.line(entry(from.branch), me.clone(), &ports(&edges));
        }
        for link in links(LinkKind::Previous, None, Some(name)) {
            let from = link.from.as_ref().and_then(find);
            if let Some(from) = from.and_then(|from| nodes.get(from)) {
                let label = format!("previous {}", ports(&[link]));
                drawn.line(entry(from.branch), me.clone(), &label);
            }
        }
        let results = links(LinkKind::Result, Some(name), None);
        if !results.is_empty() {
            drawn.line(me, None, &ports(&results));
        }
    }
}

/// A node of a canvas whose inside is not drawn: its name and what it does.
fn collapsed((program, detail): Subject<'_>, scope: &Scope) -> Option<String> {
    if detail.depth == Some(0) {
        return Some(format!("{}: {}", title(program, scope), scope.title()));
    }
    let action = program.action(scope.action?)?;
    let closed = program.rules.closed_nodes.contains(&&*action.label);
    let own = !matches!(
        scope.kind,
        ScopeKind::Deadline { .. } | ScopeKind::Try { .. }
    );
    if detail.expand || !closed || !own {
        return None;
    }
    let name = action.title.as_ref().unwrap_or(&action.name);
    Some(match &scope.kind {
        ScopeKind::Block => format!("{name}: {}", action.label),
        _ => format!("{name}: {}", scope.title()),
    })
}

fn draw(subject: Subject<'_>, id: StateId, state: &State, drawn: &mut Inside) {
    let program = subject.0;
    let me = id.to_string();
    match &state.op {
        // Drawn as the lines that lead to them.
        Op::Repeat | Op::Break | Op::Leave | Op::Join | Op::Succeed | Op::Visit => {}
        Op::Branch(arms) => {
            drawn.boxes.push(Drawn::Choice { id: me.clone() });
            for (when, to) in arms {
                drawn.lead(program, &me, *to, &when.text());
            }
            drawn.lead(program, &me, state.next, "else");
        }
        Op::Switch { cases, .. } => {
            drawn.boxes.push(Drawn::Choice { id: me.clone() });
            for (case, to) in cases {
                drawn.lead(program, &me, *to, &case.to_json());
            }
            drawn.lead(program, &me, state.next, "default");
        }
        Op::Enter(scope) => {
            let Some(inner) = program.scope(*scope) else {
                return;
            };
            let frame = scope.to_string();
            let is_dag = matches!(&inner.kind, ScopeKind::Dag { nodes } if !nodes.is_empty());
            let bare = is_dag && !program.rules.shows_ports;
            let closed = collapsed(subject, inner).filter(|_| !bare);
            drawn.boxes.push(match closed {
                Some(label) => Drawn::Step {
                    id: frame.clone(),
                    label,
                },
                None if bare => Drawn::Bare {
                    id: frame.clone(),
                    inside: inside(subject, *scope),
                },
                None => Drawn::Frame {
                    id: frame.clone(),
                    label: match &inner.kind {
                        ScopeKind::Dag { .. } => inner.name.to_string(),
                        _ => format!("{}: {}", title(program, inner), inner.title()),
                    },
                    inside: inside(deeper(subject), *scope),
                },
            });
            drawn.lead(program, &frame, state.next, "");
            if let ScopeKind::Try {
                catch: Some((_, to)),
                ..
            } = &inner.kind
            {
                drawn.lead(program, &frame, *to, "failed");
            }
        }
        Op::Raise { .. } | Op::Terminate { .. } => {
            drawn.boxes.push(Drawn::Step {
                id: me,
                label: label(program, state),
            });
        }
        Op::Call(_)
        | Op::Assign { .. }
        | Op::Compose(_)
        | Op::Sleep(_)
        | Op::AwaitSignal(_)
        | Op::Respond(_) => {
            drawn.boxes.push(Drawn::Step {
                id: me.clone(),
                label: label(program, state),
            });
            drawn.lead(program, &me, state.next, "");
        }
    }
}

fn label(program: &Program, state: &State) -> String {
    let action = state.action.and_then(|action| program.action(action));
    match action.filter(|_| program.rules.shows_ports) {
        Some(action) => {
            let name = action.title.as_ref().unwrap_or(&action.name);
            format!("{name}: {}", action.label)
        }
        None => format!("{}: {}", state.name, state.title()),
    }
}

/// The name of a scope for people.
fn title<'p>(program: &'p Program, scope: &'p Scope) -> &'p Name {
    let action = scope.action.and_then(|action| program.action(action));
    action
        .and_then(|action| action.title.as_ref())
        .unwrap_or(&scope.name)
}

/// The box a line to this state ends at; none: the end of the scope.
fn end(program: &Program, to: StateId) -> Option<String> {
    let state = program.state(to)?;
    match &state.op {
        Op::Repeat | Op::Break | Op::Leave | Op::Join | Op::Succeed => None,
        Op::Enter(scope) => Some(scope.to_string()),
        // A visit only counts: the line goes on to the node.
        Op::Visit if state.next != to => end(program, state.next),
        _ => Some(to.to_string()),
    }
}

impl Inside {
    /// The same with what lies in bare boxes in their place: a line to such a box leads to what
    /// begins in it, and a line from it comes from what ends in it.
    fn without_bare(mut self) -> Self {
        let mut boxes = Vec::new();
        let mut lines = std::mem::take(&mut self.lines);
        for drawn in std::mem::take(&mut self.boxes) {
            match drawn {
                Drawn::Bare { id, inside } => {
                    let inside = inside.without_bare();
                    lines = through(&id, &inside, lines);
                    boxes.extend(inside.boxes);
                }
                Drawn::Frame { id, label, inside } => boxes.push(Drawn::Frame {
                    id,
                    label,
                    inside: inside.without_bare(),
                }),
                other => boxes.push(other),
            }
        }
        Self { boxes, lines }
    }

    fn lead(&mut self, program: &Program, from: &str, to: StateId, label: &str) {
        let word = match program.state(to).map(|state| &state.op) {
            Some(Op::Repeat) => "again",
            Some(Op::Break) => "break",
            _ => "",
        };
        let label = match (label, word) {
            ("", word) => word.to_owned(),
            (label, "") => label.to_owned(),
            (label, word) => format!("{label}, {word}"),
        };
        self.line(Some(from.to_owned()), end(program, to), &label);
    }

    fn line(&mut self, from: Option<String>, to: Option<String>, label: &str) {
        self.lines.push(Line {
            from,
            to,
            label: cut(label),
        });
    }
}

/// The lines around a bare box, with those in it.
fn through(id: &str, inside: &Inside, outer: Vec<Line>) -> Vec<Line> {
    let leaves = |of: &&Drawn| {
        let from = |line: &Line| line.from.as_deref() == Some(of.id());
        !inside.lines.iter().any(from)
    };
    let last: Vec<String> = inside
        .boxes
        .iter()
        .filter(leaves)
        .map(|of| of.id().to_owned())
        .collect();
    let first: Vec<&Line> = inside
        .lines
        .iter()
        .filter(|line| line.from.is_none())
        .collect();
    let within = |line: &&Line| line.from.is_some() && line.to.is_some();
    let mut lines: Vec<Line> = inside.lines.iter().filter(within).cloned().collect();
    let joined = |one: &str, other: &str| match (one, other) {
        ("", label) | (label, "") => label.to_owned(),
        (one, other) => format!("{one}, {other}"),
    };
    for line in outer {
        if line.to.as_deref() == Some(id) {
            lines.extend(first.iter().map(|inner| Line {
                from: line.from.clone(),
                to: inner.to.clone(),
                label: joined(&line.label, &inner.label),
            }));
        } else if line.from.as_deref() == Some(id) {
            lines.extend(last.iter().map(|from| Line {
                from: Some(from.clone()),
                ..line.clone()
            }));
        } else {
            lines.push(line);
        }
    }
    lines
}

fn cut(text: &str) -> String {
    let flat: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if flat.chars().count() <= LABEL {
        return flat;
    }
    let head: String = flat.chars().take(LABEL - 1).collect();
    format!("{head}…")
}

// ── Mermaid ─────────────────────────────────────────────────────────────────────────────────

fn mermaid_inside(inside: &Inside, depth: usize, out: &mut String) {
    let pad = "    ".repeat(depth);
    for drawn in &inside.boxes {
        let _ = match drawn {
            Drawn::Step { id, label } => {
                writeln!(out, "{pad}state \"{}\" as {id}", mermaid_text(&cut(label)))
            }
            Drawn::Choice { id } => writeln!(out, "{pad}state {id} <<choice>>"),
            Drawn::Bare { .. } => Ok(()),
            Drawn::Frame { id, label, inside } => {
                let _ = writeln!(
                    out,
                    "{pad}state \"{}\" as {id} {{",
                    mermaid_text(&cut(label))
                );
                mermaid_inside(inside, depth + 1, out);
                writeln!(out, "{pad}}}")
            }
        };
    }
    for line in &inside.lines {
        let from = line.from.as_deref().unwrap_or("[*]");
        let to = line.to.as_deref().unwrap_or("[*]");
        let _ = match line.label.as_str() {
            "" => writeln!(out, "{pad}{from} --> {to}"),
            label => writeln!(out, "{pad}{from} --> {to} : {}", mermaid_text(label)),
        };
    }
}

/// Mermaid reads some characters as its own: they go in as entity codes.
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

// ── Graphviz ────────────────────────────────────────────────────────────────────────────────

fn dot_inside(scope: &str, inside: &Inside, depth: usize, out: &mut String) {
    let pad = "  ".repeat(depth);
    let _ = writeln!(
        out,
        "{pad}{scope}_in [shape=circle, label=\"\", width=0.15, style=filled];"
    );
    let _ = writeln!(
        out,
        "{pad}{scope}_out [shape=doublecircle, label=\"\", width=0.12];"
    );
    for drawn in &inside.boxes {
        let _ = match drawn {
            Drawn::Step { id, label } => {
                writeln!(out, "{pad}{id} [label=\"{}\"];", dot_text(&cut(label)))
            }
            Drawn::Choice { id } => {
                writeln!(out, "{pad}{id} [shape=diamond, label=\"\", width=0.3];")
            }
            Drawn::Bare { .. } => Ok(()),
            Drawn::Frame { id, label, inside } => {
                let _ = writeln!(out, "{pad}subgraph cluster_{id} {{");
                let _ = writeln!(out, "{pad}  label=\"{}\";", dot_text(&cut(label)));
                dot_inside(id, inside, depth + 1, out);
                writeln!(out, "{pad}}}")
            }
        };
    }
    let is_frame = |id: &str| {
        let same = |drawn: &Drawn| matches!(drawn, Drawn::Frame { id: frame, .. } if frame == id);
        inside.boxes.iter().any(same)
    };
    for line in &inside.lines {
        let from = match line.from.as_deref() {
            None => format!("{scope}_in"),
            Some(id) if is_frame(id) => format!("{id}_out"),
            Some(id) => id.to_owned(),
        };
        let to = match line.to.as_deref() {
            None => format!("{scope}_out"),
            Some(id) if is_frame(id) => format!("{id}_in"),
            Some(id) => id.to_owned(),
        };
        let _ = writeln!(
            out,
            "{pad}{from} -> {to} [label=\"{}\"];",
            dot_text(&line.label)
        );
    }
}

fn dot_text(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"")
}
