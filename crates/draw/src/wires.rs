//! Draws the lines of a canvas with their ports.
//! They connect nodes of a scope, the enclosing scope, and the previous iteration.

use super::{BoxId, Line, LineKind, ScopeDrawing, Wire};
use std::collections::HashMap;
use windlass_machine::program::{DagNode, Program};
use windlass_model::model::{Link, LinkKind, Name};

impl Wire {
    fn new(link: &Link) -> Self {
        Self {
            output: link.output.clone(),
            input: link.input.clone(),
            when: link.when.clone(),
        }
    }
}

/// For each node, the links that lead to it, and the links that pass its outputs out of the scope.
pub(super) struct Links<'p> {
    to: HashMap<&'p Name, Vec<&'p Link>>,
    results: HashMap<&'p Name, Vec<&'p Link>>,
}

impl<'p> Links<'p> {
    pub fn new(program: &'p Program) -> Self {
        let mut links = Self {
            to: HashMap::new(),
            results: HashMap::new(),
        };
        for link in &program.links {
            match (&link.kind, &link.from) {
                (LinkKind::Result, Some(from)) => links.results.entry(from),
                (LinkKind::Result, None) => continue,
                (LinkKind::Edge | LinkKind::Outer | LinkKind::Previous, _) => {
                    links.to.entry(&link.to)
                }
            }
            .or_default()
            .push(link);
        }
        links
    }

    fn to(&self, node: &Name, kind: LinkKind) -> impl Iterator<Item = &'p Link> {
        let all = self.to.get(node).into_iter().flatten();
        all.filter(move |link| link.kind == kind).copied()
    }
}

/// Draws the lines between nodes. `entry` returns the box at which a line to a node ends.
pub(super) fn wires(
    program: &Program,
    links: &Links<'_>,
    nodes: &[DagNode],
    entry: &dyn Fn(&DagNode) -> Option<BoxId>,
    drawn: &mut ScopeDrawing,
) {
    let named = |node: &DagNode| {
        let action = program.action(node.action);
        action.map(|action| action.name.clone())
    };
    let names: Vec<Option<Name>> = nodes.iter().map(named).collect();
    let pairs = names.iter().zip(nodes);
    let by_name: HashMap<&Name, &DagNode> = pairs
        .filter_map(|(name, node)| Some((name.as_ref()?, node)))
        .collect();
    let mut line = |from, to, kind, wires: Vec<Wire>| {
        let line = Line::new(from, to, "");
        drawn.lines.push(Line {
            kind,
            wires,
            ..line
        });
    };
    for (node, name) in nodes.iter().zip(&names) {
        let Some(name) = name else {
            continue;
        };
        let me = entry(node);
        let outer: Vec<Wire> = links.to(name, LinkKind::Outer).map(Wire::new).collect();
        if node.after.is_empty() || !outer.is_empty() {
            line(None, me, LineKind::Data, outer);
        }
        for (before, _) in &node.after {
            let (Some(from), Some(Some(other))) = (nodes.get(*before), names.get(*before)) else {
                continue;
            };
            let edges = links.to(name, LinkKind::Edge);
            let edges = edges.filter(|link| link.from.as_ref() == Some(other));
            line(
                entry(from),
                me,
                LineKind::Data,
                edges.map(Wire::new).collect(),
            );
        }
        for link in links.to(name, LinkKind::Previous) {
            if let Some(from) = link.from.as_ref().and_then(|from| by_name.get(from)) {
                let wires = vec![Wire::new(link)];
                line(entry(from), me, LineKind::Previous, wires);
            }
        }
        let results = links.results.get(name).into_iter().flatten();
        let results: Vec<Wire> = results.map(|link| Wire::new(link)).collect();
        if !results.is_empty() {
            line(me, None, LineKind::Data, results);
        }
    }
}
