//! Which further files a canvas names: the inner workflows of its nodes, `workflowRef`. It never
//! says what is wrong with them.

use crate::{Reference, references_in};
use windlass_source::source::{Bundle, Kind, Node};

/// Every file that the workflow names, and that the files in the bundle name which it leads to.
pub fn references(bundle: &Bundle, workflow: &Node) -> Vec<Reference> {
    let mut found = Vec::new();
    collect(workflow, &mut found);
    references_in(bundle, found, collect)
}

fn collect(workflow: &Node, found: &mut Vec<Reference>) {
    let components = workflow.get("components").and_then(Node::entries);
    for component in components.unwrap_or_default() {
        collect(&component.value, found);
    }
    let Some(Kind::Array(nodes)) = workflow.get("nodes").map(|nodes| &nodes.kind) else {
        return;
    };
    for data in nodes.iter().filter_map(|node| node.get("data")) {
        if let Some(inline) = data.get("inlineWorkflow") {
            collect(inline, found);
        }
        if let Some(named) = data.get("workflowRef").or_else(|| data.get("workflowPath"))
            && let Some(path) = named.as_str()
        {
            found.push(Reference {
                path: path.to_owned(),
                span: named.span,
            });
        }
    }
}
