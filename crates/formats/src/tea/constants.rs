//! Replaces `${name}` in the texts of settings, nodes and edges by a constant of the file. This is done before anything is
//! read.
//! If the file has no constant of this name, the text stays unchanged. If it has one of a similar name, or the constant is
//! a list or a map, this is a warning.

use crate::plain_text::between;
use windlass_source::diagnostic::{Diagnostic, Diagnostics, did_you_mean};
use windlass_source::source::{Entry, Kind, MAX_BYTES, Node, Span};

/// Returns the file with its constants inserted. The inserted text has at most the maximum size of a file.
pub(super) fn replaced(workflow: &Node, diagnostics: &mut Diagnostics) -> Node {
    let mut workflow = workflow.clone();
    let variables = workflow.get("variables");
    let span = variables.map_or(workflow.span, |variables| variables.span);
    let of_file = variables.and_then(Node::entries).unwrap_or_default();
    let mut constants = Constants {
        known: of_file
            .iter()
            .filter_map(|entry| Some((format!("${{{}}}", entry.key), word(&entry.value)?)))
            .collect(),
        structures: of_file
            .iter()
            .filter(|entry| word(&entry.value).is_none())
            .map(|entry| entry.key.to_string())
            .collect(),
        left: MAX_BYTES,
        misspelt: Vec::new(),
    };
    if let Kind::Object(entries) = &mut workflow.kind
        && !(constants.known.is_empty() && constants.structures.is_empty())
    {
        let places = entries
            .iter_mut()
            .filter(|entry| matches!(&*entry.key, "nodes" | "edges" | "settings"));
        places.for_each(|Entry { value, .. }| constants.put_in(value, false));
    }
    diagnostics.extend(std::mem::take(&mut constants.misspelt));
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
    /// The names of the constants that are lists or maps. They are not inserted.
    structures: Vec<String>,
    /// Number of bytes that the replacements may still add. At 0, nothing more is replaced.
    left: usize,
    /// Warnings of names that are similar to a constant's name, or that are a list's or a map's.
    misspelt: Vec<Diagnostic>,
}

impl Constants {
    /// Inserts the constants into the texts of a node. Code may have variables of its own in this notation, so their
    /// names are not compared with those of constants.
    fn put_in(&mut self, node: &mut Node, is_code: bool) {
        if !is_code && let Kind::String(text) = &node.kind {
            self.check_names(&text.text, node.span);
        }
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
            Kind::Array(items) => items.iter_mut().for_each(|item| self.put_in(item, is_code)),
            Kind::Object(entries) => entries.iter_mut().for_each(|entry| {
                let is_code = is_code || matches!(&*entry.key, "run" | "code" | "script");
                self.put_in(&mut entry.value, is_code);
            }),
            _ => {}
        }
    }

    /// Warns of names in a text that no constant has, but that are similar to the name of one.
    fn check_names(&mut self, text: &str, span: Span) {
        let known = self.known.iter();
        let known = known.filter_map(|(known, _)| known.strip_prefix("${")?.strip_suffix('}'));
        let structures = self.structures.iter().map(String::as_str);
        for (_, name) in between(text, "${", "}") {
            if structures.clone().any(|known| known == name) {
                let what = format!("`{name}` is a list or a map, so this stays as it is");
                let warning = Diagnostic::warning("wrong-type", span, what);
                let hint = format!("write `{{{{ variables.{name} }}}}`");
                self.misspelt.push(warning.hint(hint));
                continue;
            }
            let is_known = known.clone().any(|known| known == name);
            let all = known.clone().chain(structures.clone());
            if !is_known && let Some(hint) = did_you_mean(name, all) {
                let what = format!("no constant is called `{name}`, so this stays as it is");
                let warning = Diagnostic::warning("unknown-name", span, what);
                self.misspelt.push(warning.hint(hint));
            }
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
