//! The files that a workflow's JSON Schemas refer to by `$ref`.
//! They are files next to the workflow, and may refer to each other. Nothing is ever fetched (docs/reference/tea.md).

use super::Tea;
use super::dynamic_parallel::{SUBGRAPH, is_file};
use super::node::DYNAMIC_PARALLEL;
use crate::{Found, references_in};
use std::sync::Arc;
use windlass_expression::{Object, Value};
use windlass_source::diagnostic::{Diagnostic, Diagnostics};
use windlass_source::source::{self, Bundle, Node};

/// Collects the files that a workflow names: in its schemas, and as the workflows that run for each item.
pub(crate) fn collect_files(workflow: &Node, found: &mut Vec<Found>) {
    collect_schemas(workflow, found);
    if let Some(nodes) = workflow.get("nodes") {
        subgraphs(nodes, found);
    }
}

fn subgraphs(node: &Node, found: &mut Vec<Found>) {
    let kind = node.get("type").and_then(Node::as_str);
    if kind == Some(DYNAMIC_PARALLEL)
        && let Some(named) = node.get(SUBGRAPH)
        && let Some(path) = named.as_str().filter(|path| is_file(path))
    {
        found.push(Found::new(path, named.span, crate::collect_from_workflow));
    }
    for (key, child) in node.children() {
        if key.is_none_or(|key| ["body", "steps"].contains(&key)) {
            subgraphs(child, found);
        }
    }
}

/// Collects the files that the schemas of a workflow name.
fn collect_schemas(workflow: &Node, found: &mut Vec<Found>) {
    if let Some(nodes) = workflow.get("nodes") {
        schemas(nodes, found);
    }
}

/// Returns the documents that the schemas refer to, by their path from the workflow's folder.
pub(super) fn documents(bundle: &Bundle, workflow: &Node, diagnostics: &mut Diagnostics) -> Value {
    let mut documents = Object::new();
    let mut found = Vec::new();
    collect_schemas(workflow, &mut found);
    for reference in references_in(bundle, found) {
        let Some(file) = bundle.named_by(reference.span.file, &reference.path) else {
            continue;
        };
        let Some(path) = bundle.file(file).map(|file| Arc::from(file.path.as_str())) else {
            continue;
        };
        if documents.contains_key(&path) {
            continue;
        }
        let (node, mistakes) = source::parse(bundle, file);
        diagnostics.extend(mistakes.into_iter().map(Diagnostic::from));
        if let Some(node) = node {
            documents.insert(path, node.to_value());
        }
    }
    Value::object(documents)
}

/// Collects the references in every schema below a node of the workflow.
fn schemas(node: &Node, found: &mut Vec<Found>) {
    for (key, child) in node.children() {
        match key {
            Some("schema") => collect(child, found),
            _ => schemas(child, found),
        }
    }
}

fn collect(schema: &Node, found: &mut Vec<Found>) {
    for (key, child) in schema.children() {
        match child.as_str() {
            Some(to) if key == Some("$ref") => {
                let path = to.split('#').next().unwrap_or_default();
                if !path.is_empty() && !is_remote(path) {
                    found.push(Found::new(path, child.span, collect));
                }
            }
            _ => collect(child, found),
        }
    }
}

/// Returns true if a reference has a scheme such as `https:`. Such a document would have to be fetched.
fn is_remote(path: &str) -> bool {
    path.contains("://") || path.starts_with("urn:")
}

impl Tea<'_, '_> {
    /// Reports references to documents that are not available.
    pub(super) fn check_schema(&mut self, schema: &Node) {
        for (key, child) in schema.children() {
            match child.as_str() {
                Some(to) if key == Some("$ref") && is_remote(to) => {
                    let what = format!("`{to}` would have to be fetched");
                    let hint = "put the schema into a file next to the workflow";
                    self.error("remote-schema", child.span, what, hint);
                }
                _ => self.check_schema(child),
            }
        }
    }
}
