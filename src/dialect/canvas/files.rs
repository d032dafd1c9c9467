//! Which further files a canvas names: the inner workflows of its nodes, `workflowRef`. It never
//! says what is wrong with them.

use crate::dialect::Reference;
use crate::source::{self, Bundle, Kind, Node};
use std::collections::BTreeSet;

/// Every file that the workflow names, and that the files in the bundle name which it leads to.
pub fn references(bundle: &Bundle, workflow: &Node) -> Vec<Reference> {
    let mut found = Vec::new();
    collect(workflow, &mut found);
    let mut read = BTreeSet::from([0]);
    let mut next = 0;
    while let Some(Reference { path, span }) = found.get(next) {
        let path = bundle.beside(span.file, path);
        let file = path.and_then(|path| bundle.named(&path));
        if let Some(file) = file.filter(|file| read.insert(*file))
            && let (Some(inner), _) = source::parse(bundle, file)
        {
            collect(&inner, &mut found);
        }
        next += 1;
    }
    found
}

fn collect(workflow: &Node, found: &mut Vec<Reference>) {
    let Some(Kind::Array(nodes)) = workflow.get("nodes").map(|nodes| &nodes.kind) else {
        return;
    };
    for data in nodes.iter().filter_map(|node| node.get("data")) {
        if let Some(inline) = data.get("inlineWorkflow") {
            collect(inline, found);
        }
        if let Some(named) = data.get("workflowRef")
            && let Some(path) = named.as_str()
        {
            found.push(Reference {
                path: path.to_owned(),
                span: named.span,
            });
        }
    }
}
