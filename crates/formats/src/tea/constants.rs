//! Replaces `${name}` in the texts of nodes and edges by a constant of the file. This is done before anything is
//! read.
//! If the file has no constant of this name, the text stays unchanged.

use windlass_source::diagnostic::{Diagnostic, Diagnostics};
use windlass_source::source::{Entry, Kind, MAX_BYTES, Node};

/// Returns the file with its constants inserted. The inserted text has at most the maximum size of a file.
pub(super) fn replaced(workflow: &Node, diagnostics: &mut Diagnostics) -> Node {
    let mut workflow = workflow.clone();
    let variables = workflow.get("variables");
    let span = variables.map_or(workflow.span, |variables| variables.span);
    let mut constants = Constants {
        known: variables
            .and_then(Node::entries)
            .unwrap_or_default()
            .iter()
            .filter_map(|entry| Some((format!("${{{}}}", entry.key), word(&entry.value)?)))
            .collect(),
        left: MAX_BYTES,
    };
    if let Kind::Object(entries) = &mut workflow.kind
        && !constants.known.is_empty()
    {
        let places = entries
            .iter_mut()
            .filter(|entry| matches!(&*entry.key, "nodes" | "edges"));
        places.for_each(|Entry { value, .. }| constants.put_in(value));
    }
    if constants.left == 0 {
        let what = format!("the constants make more than {MAX_BYTES} bytes of this file");
        let hint = "read long ones as `{{ variables.name }}`: that copies nothing";
        diagnostics.push(Diagnostic::error("too-large", span, what).hint(hint));
    }
    workflow
}

struct Constants {
    /// Each `${name}`, and the text that replaces it.
    known: Vec<(String, String)>,
    /// Number of bytes that the replacements may still add. At 0, nothing more is replaced.
    left: usize,
}

impl Constants {
    fn put_in(&mut self, node: &mut Node) {
        match &mut node.kind {
            Kind::String(text) if text.text.contains("${") => {
                for (name, word) in &self.known {
                    let made = text.text.matches(name).count().saturating_mul(word.len());
                    self.left = self.left.saturating_sub(made);
                    if self.left == 0 {
                        return;
                    }
                    if made > 0 || word.is_empty() {
                        text.text = text.text.replace(name, word);
                    }
                }
            }
            Kind::Array(items) => items.iter_mut().for_each(|item| self.put_in(item)),
            Kind::Object(entries) => entries
                .iter_mut()
                .for_each(|entry| self.put_in(&mut entry.value)),
            _ => {}
        }
    }
}

/// Returns the text for a constant, in the notation of Python.
fn word(node: &Node) -> Option<String> {
    match &node.kind {
        Kind::Null => Some(String::from("None")),
        Kind::Bool(true) => Some(String::from("True")),
        Kind::Bool(false) => Some(String::from("False")),
        Kind::Int(number) => Some(number.to_string()),
        Kind::Float(number) => Some(format!("{number:?}")),
        Kind::String(text) => Some(text.text.clone()),
        Kind::Array(_) | Kind::Object(_) => None,
    }
}
