//! Finds the further files that a canvas names: the inner workflows of its nodes, `workflowRef`.
//! Nothing here reports mistakes.

use crate::Found;
use windlass_source::source::{Kind, Node};

/// Collects the files that the workflow names.
pub fn collect_workflows(workflow: &Node, found: &mut Vec<Found>) {
    let components = workflow.get("components").and_then(Node::entries);
    for component in components.unwrap_or_default() {
        collect_workflows(&component.value, found);
    }
    let Some(Kind::Array(nodes)) = workflow.get("nodes").map(|nodes| &nodes.kind) else {
        return;
    };
    for data in nodes.iter().filter_map(|node| node.get("data")) {
        if let Some(inline) = data.get("inlineWorkflow") {
            collect_workflows(inline, found);
        }
        if let Some(named) = data.get("workflowRef").or_else(|| data.get("workflowPath"))
            && let Some(path) = named.as_str()
        {
            found.push(Found::new(path, named.span, collect_workflows));
        }
    }
}
