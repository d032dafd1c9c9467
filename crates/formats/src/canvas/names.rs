//! Gives every node a name that is unique in the whole workflow.
//! The name is the node's id. If this is in use, the enclosing node's name is put before it, and if necessary a number
//! after it. Names are compared ignoring case.

use super::tree::{Graph, Node, NodeKind};
use std::collections::BTreeSet;
use windlass_model::model::Name;

pub(super) fn name(graph: &mut Graph) {
    let mut taken = BTreeSet::new();
    // The outputs of the run have the ids of the nodes at the top level, so these nodes are named before inner nodes.
    for node in &mut graph.nodes {
        node.step = free(&mut taken, &node.id, None);
    }
    graph
        .nodes
        .iter_mut()
        .for_each(|node| inside(node, &mut taken));
}

fn inside(node: &mut Node, taken: &mut BTreeSet<String>) {
    let around = node.step.clone();
    if let Some(graph) = inner(&mut node.spec) {
        for node in &mut graph.nodes {
            node.step = free(taken, &node.id, Some(&around));
        }
        graph.nodes.iter_mut().for_each(|node| inside(node, taken));
    }
}

fn inner(spec: &mut NodeKind) -> Option<&mut Graph> {
    match spec {
        NodeKind::Component(graph) => Some(graph),
        NodeKind::Loop(node) => Some(&mut node.inner),
        NodeKind::Source { .. }
        | NodeKind::Sink
        | NodeKind::Continue
        | NodeKind::Constant(_)
        | NodeKind::Agent(_)
        | NodeKind::Shell(_)
        | NodeKind::Function { .. }
        | NodeKind::Http(_)
        | NodeKind::Unknown => None,
    }
}

fn free(taken: &mut BTreeSet<String>, id: &Name, around: Option<&Name>) -> Name {
    let qualified = around.map(|around| format!("{around}.{id}"));
    let numbered = (2..).map(|n| match &qualified {
        Some(qualified) => format!("{qualified}~{n}"),
        None => format!("{id}~{n}"),
    });
    let mut candidates = [Some(id.to_string()), qualified.clone()]
        .into_iter()
        .flatten()
        .chain(numbered);
    let found = candidates.find(|name| taken.insert(name.to_lowercase()));
    found.map_or_else(|| id.clone(), Name::from)
}
