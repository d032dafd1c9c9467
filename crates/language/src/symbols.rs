//! The actions and nodes of a text, as a tree.

use super::names::{Action, Names};
use super::sketch::read;
use super::{Lines, TextRange, dialect};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use utoipa::ToSchema;
use windlass_engine::{Bundle, Dialect, Graph};

/// An action or node of a text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Symbol {
    /// Name of the action or node.
    pub name: String,
    /// Kind of its node in a graph: `action`, `loop`, `foreach`, `if`, …
    pub kind: String,
    /// Type, as the text has it.
    #[serde(rename = "type")]
    pub type_name: String,
    /// Path of its node in a graph.
    pub path: String,
    /// Range of the whole action or node.
    pub range: TextRange,
    /// Range of its name.
    pub selection: TextRange,
    /// Actions and nodes inside of it.
    #[schema(no_recursion)]
    pub children: Vec<Symbol>,
}

/// Returns the actions and nodes of the first file as a tree.
/// For a valid text, `graph` provides their kinds and paths.
#[must_use]
pub fn symbols(bundle: &Bundle, explicit: Option<Dialect>, graph: Option<&Graph>) -> Vec<Symbol> {
    let Some(file) = bundle.file(0) else {
        return Vec::new();
    };
    let text = file.content();
    let root = read(text);
    let names = Names::of(&root, text, dialect(bundle, explicit, &root, text));
    let lines = Lines::new(text);
    let nodes = graph.map(|graph| &graph.nodes).into_iter().flatten();
    // A diamond (choice) has the same name as the node to which it belongs, so it is left out.
    let nodes = nodes.filter(|node| node.kind != "choice" && node.file.is_none());
    let drawn: HashMap<(&str, u32), (&str, &str)> = nodes
        .filter_map(|node| Some(((&*node.name, node.line?), (&*node.kind, &*node.path))))
        .collect();
    let mut children: HashMap<Option<usize>, Vec<usize>> = HashMap::new();
    for (index, action) in names.actions.iter().enumerate() {
        children.entry(action.parent).or_default().push(index);
    }
    let found = SymbolTree {
        names: &names,
        lines: &lines,
        drawn,
        children,
    };
    found.inside(None)
}

struct SymbolTree<'a> {
    names: &'a Names,
    lines: &'a Lines<'a>,
    /// The kind and the path of a drawn node, by its name and line.
    drawn: HashMap<(&'a str, u32), (&'a str, &'a str)>,
    children: HashMap<Option<usize>, Vec<usize>>,
}

impl SymbolTree<'_> {
    fn inside(&self, parent: Option<usize>) -> Vec<Symbol> {
        let inside = self.children.get(&parent).into_iter().flatten();
        let actions = inside.filter_map(|index| Some((*index, self.names.actions.get(*index)?)));
        let symbols = actions.map(|(index, action)| {
            let selection = self.lines.range(action.selection.clone());
            let line = selection.start.line.saturating_add(1);
            let drawn = self.drawn.get(&(&*action.name, line));
            let (kind, path) = match drawn {
                Some((kind, path)) => ((*kind).to_owned(), (*path).to_owned()),
                None => (kind_of(action).to_owned(), self.names.path(action)),
            };
            Symbol {
                name: action.name.clone(),
                kind,
                type_name: action.kind.clone(),
                path,
                range: self.lines.range(action.range.clone()),
                selection,
                children: self.inside(Some(index)),
            }
        });
        symbols.collect()
    }
}

/// Returns the kind of graph node as which an action of this type is drawn.
fn kind_of(action: &Action) -> &'static str {
    if action.is_foreach() {
        return "foreach";
    }
    if action.is_loop() {
        return "loop";
    }
    match &*action.kind.to_lowercase() {
        "parallel" => "parallel",
        "if" => "if",
        "switch" => "switch",
        "scope" | "component" => "block",
        "wait" => "wait",
        "waitforsignal" => "signal",
        "response" => "respond",
        "terminate" => "terminate",
        kind if kind.ends_with("variable") => "set",
        "compose" | "select" | "query" | "join" | "table" | "parsejson" | "constant" => "compute",
        _ => "action",
    }
}
