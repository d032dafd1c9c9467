//! The names of a workflow: its actions, loops, variables, inputs and ports.
//! They are found in the tolerant tree of [`super::sketch`], so the text may have mistakes.

use super::sketch::{Kind, SketchNode};
use std::ops::Range;
use windlass_engine::Dialect;

/// Maximum depth at which actions are searched in other actions.
const MAX_DEPTH: usize = 64;

/// An action or a node.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Action {
    pub name: String,
    /// The type of the action, as the text has it. Empty if it has no type.
    pub kind: String,
    /// The display name of the action.
    pub title: Option<String>,
    /// The range of the action's name in the text.
    pub selection: Range<usize>,
    pub range: Range<usize>,
    /// The index of the enclosing loop or action in [`Names::actions`].
    pub parent: Option<usize>,
    /// The input ports of a canvas node.
    pub inputs: Vec<String>,
    /// The output ports of a canvas node.
    pub outputs: Vec<String>,
}

/// A name that has a value, such as a variable or an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NamedValue {
    pub name: String,
    /// The type of the value, if the text has it.
    pub kind: Option<String>,
    pub description: Option<String>,
}

/// All names in a text, in the order of the text.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    pub actions: Vec<Action>,
    pub variables: Vec<NamedValue>,
    /// The values that the workflow stores between its runs.
    pub state: Vec<NamedValue>,
    pub inputs: Vec<NamedValue>,
    pub parameters: Vec<NamedValue>,
}

impl Action {
    pub fn is_loop(&self) -> bool {
        let loops = [
            "until",
            "while",
            "dountil",
            "retry",
            "loop",
            "while_loop",
            "retry.loop",
            "reflection.loop",
        ];
        loops.contains(&&*self.kind.to_lowercase())
    }

    pub fn is_foreach(&self) -> bool {
        matches!(
            &*self.kind.to_lowercase(),
            "foreach" | "map" | "dynamic_parallel"
        )
    }
}

impl Names {
    pub fn of(root: &SketchNode, text: &str, dialect: Dialect) -> Self {
        let mut finder = NameFinder {
            text,
            names: Self::default(),
        };
        match dialect {
            Dialect::Loom | Dialect::Azure => finder.loom(root),
            Dialect::Tea => finder.tea(root),
            Dialect::Canvas => finder.nodes(root, None, 0),
        }
        finder.names
    }

    /// Returns the actions that enclose a byte of the text, the innermost first.
    pub fn enclosing_actions(&self, at: usize) -> Vec<&Action> {
        let holds = |action: &&Action| action.range.start <= at && at <= action.range.end;
        let mut next = self.actions.iter().rfind(holds);
        let mut found = Vec::new();
        while let Some(action) = next {
            found.push(action);
            next = action.parent.and_then(|parent| self.actions.get(parent));
        }
        found
    }

    /// Returns the path of an action in a run: the names of the enclosing loops, and its own name.
    pub fn path(&self, action: &Action) -> String {
        let mut parts = vec![&*action.name];
        let mut next = action.parent;
        while let Some(parent) = next.and_then(|parent| self.actions.get(parent)) {
            if parent.is_loop() || parent.is_foreach() {
                parts.push(&parent.name);
            }
            next = parent.parent;
        }
        parts.reverse();
        parts.join("/")
    }

    /// Returns the action with this name, ignoring case.
    pub fn action(&self, name: &str) -> Option<&Action> {
        let mut actions = self.actions.iter();
        actions.find(|action| action.name.eq_ignore_ascii_case(name))
    }
}

struct NameFinder<'t> {
    text: &'t str,
    names: Names,
}

impl NameFinder<'_> {
    fn word(&self, part: &SketchNode, key: &str) -> Option<String> {
        let word = part.get_any_case(key)?.text(self.text)?.trim();
        Some(word.to_owned()).filter(|word| !word.is_empty())
    }

    /// Returns the members of a map as names, with their `type` and `description`.
    fn named(&self, part: Option<&SketchNode>) -> Vec<NamedValue> {
        let members = part.map(SketchNode::members).unwrap_or_default().iter();
        let named = members.map(|member| NamedValue {
            name: member.name.clone(),
            kind: self.word(&member.value, "type"),
            description: self.word(&member.value, "description"),
        });
        named.collect()
    }

    fn variable(&mut self, name: String, kind: Option<String>) {
        let known = &mut self.names.variables;
        if !known.iter().any(|one| one.name.eq_ignore_ascii_case(&name)) {
            known.push(NamedValue {
                name,
                kind,
                description: None,
            });
        }
    }

    fn loom(&mut self, root: &SketchNode) {
        let exported = root
            .get("properties")
            .and_then(|inner| inner.get("definition"));
        let root = root.get("definition").or(exported).unwrap_or(root);
        self.names.inputs = self.named(root.get("inputs"));
        self.names.state = self.named(root.get("state"));
        self.names.parameters = self.named(root.get("parameters"));
        let variables = root
            .get("variables")
            .map(SketchNode::members)
            .unwrap_or_default();
        for member in variables {
            self.variable(member.name.clone(), None);
        }
        self.actions(root, None, 0);
        if root.get("actions").is_none() && root.get("type").is_some() {
            // The text is a single action and not a workflow.
            let name = self.word(root, "name").unwrap_or_default();
            self.action(&name, 0..0, root, None, 0);
        }
    }

    /// Finds the actions in a part of the tree, at any depth.
    fn actions(&mut self, part: &SketchNode, parent: Option<usize>, depth: usize) {
        if depth > MAX_DEPTH {
            return;
        }
        match &part.kind {
            Kind::Map(members) => {
                for member in members {
                    let named = member.name.eq_ignore_ascii_case("actions");
                    let inner = member.value.members();
                    if !named || inner.is_empty() {
                        // `branches: { a: {…} }` or `else: {…}`: these are not actions, so search inside of them.
                        if !matches!(&*member.name, "inputs" | "metadata" | "variables" | "state") {
                            self.actions(&member.value, parent, depth + 1);
                        }
                        continue;
                    }
                    for action in inner {
                        let range = action.key.clone();
                        self.action(&action.name, range, &action.value, parent, depth);
                    }
                }
            }
            Kind::List(items) => {
                for item in items {
                    self.actions(item, parent, depth + 1);
                }
            }
            Kind::Nothing | Kind::Text(_) => {}
        }
    }

    fn action(
        &mut self,
        name: &str,
        selection: Range<usize>,
        part: &SketchNode,
        parent: Option<usize>,
        depth: usize,
    ) {
        let kind = self.word(part, "type").unwrap_or_default();
        let inputs = part.get_any_case("inputs");
        if kind.to_lowercase().ends_with("variable") {
            let listed = inputs.and_then(|inputs| inputs.get_any_case("variables"));
            let listed = listed.map(SketchNode::items).unwrap_or_default().iter();
            let places = listed.chain(inputs).chain([part]);
            let named: Vec<_> = places
                .filter_map(|place| Some((self.word(place, "name")?, self.word(place, "type"))))
                .collect();
            for (name, kind) in named {
                let kind = kind.filter(|kind| !kind.to_lowercase().ends_with("variable"));
                self.variable(name, kind);
            }
        }
        let index = self.names.actions.len();
        self.names.actions.push(Action {
            name: name.to_owned(),
            title: self.word(part, "name"),
            kind,
            range: selection.start..part.range.end.max(selection.end),
            selection,
            parent,
            inputs: Vec::new(),
            outputs: Vec::new(),
        });
        self.actions(part, Some(index), depth + 1);
    }

    fn tea(&mut self, root: &SketchNode) {
        self.nodes_of_tea(root.get("nodes"), None, 0);
        for key in ["initial_state", "state_schema"] {
            let named = self.named(root.get(key));
            self.names.inputs.extend(named);
        }
        for key in ["variables", "settings", "data"] {
            let named = self.named(root.get(key));
            self.names.parameters.extend(named);
        }
    }

    fn nodes_of_tea(&mut self, nodes: Option<&SketchNode>, parent: Option<usize>, depth: usize) {
        if depth > MAX_DEPTH {
            return;
        }
        for node in nodes.map(SketchNode::items).unwrap_or_default() {
            let place = node
                .get("name")
                .filter(|name| name.text(self.text).is_some());
            let selection = place.map_or(node.range.start..node.range.start, |name| {
                match &name.kind {
                    Kind::Text(scalar) => scalar.inner.clone(),
                    _ => name.range.clone(),
                }
            });
            let kinds = ["type", "uses", "action"];
            let kind = kinds.iter().find_map(|key| self.word(node, key));
            let output = self.word(node, "output");
            if let Some(output) = &output {
                self.variable(output.clone(), None);
            }
            let index = self.names.actions.len();
            self.names.actions.push(Action {
                name: self.word(node, "name").unwrap_or_default(),
                title: None,
                kind: kind.unwrap_or_else(|| match node.get("run").is_some() {
                    true => String::from("run"),
                    false => String::new(),
                }),
                selection,
                range: node.range.clone(),
                parent,
                inputs: Vec::new(),
                outputs: output.into_iter().collect(),
            });
            self.nodes_of_tea(node.get("body"), Some(index), depth + 1);
        }
    }

    /// Finds the nodes of a canvas, and those of the workflows inside of its nodes.
    fn nodes(&mut self, part: &SketchNode, parent: Option<usize>, depth: usize) {
        if depth > MAX_DEPTH {
            return;
        }
        for node in part.get("nodes").map(SketchNode::items).unwrap_or_default() {
            let Some(name) = self.word(node, "id") else {
                continue;
            };
            let selection = match node.get("id").map(|id| &id.kind) {
                Some(Kind::Text(scalar)) => scalar.inner.clone(),
                _ => node.range.start..node.range.start,
            };
            let nothing = SketchNode {
                range: 0..0,
                kind: Kind::Nothing,
            };
            let data = node.get("data").unwrap_or(&nothing);
            let kind = self.word(node, "type").unwrap_or_default();
            let ports = |key: &str| {
                let ports = data
                    .get(key)
                    .map(SketchNode::items)
                    .unwrap_or_default()
                    .iter();
                let ports = ports.filter_map(|port| self.word(port, "name"));
                ports.collect::<Vec<_>>()
            };
            let mut outputs = ports("outputs");
            let usual: &[&str] = match &*kind {
                "loop" | "map" => &["iteration_count", "status"],
                "agent" if outputs.is_empty() => &["response"],
                "shell" => &["stdout", "stderr", "exitCode"],
                "http" => &["statusCode", "headers", "body"],
                "constant" if outputs.is_empty() => &["value"],
                _ => &[],
            };
            outputs.extend(usual.iter().map(|name| (*name).to_owned()));
            let mapped = data
                .get("outputMappings")
                .map(SketchNode::items)
                .unwrap_or_default();
            outputs.extend(
                mapped
                    .iter()
                    .filter_map(|mapping| self.word(mapping, "target")),
            );
            let index = self.names.actions.len();
            let action = Action {
                name,
                title: self.word(data, "label"),
                kind,
                selection,
                range: node.range.clone(),
                parent,
                inputs: ports("inputs"),
                outputs,
            };
            self.names.actions.push(action);
            for key in ["inlineWorkflow", "workflow"] {
                if let Some(inner) = data.get(key) {
                    self.nodes(inner, Some(index), depth + 1);
                }
            }
        }
        if parent.is_none() {
            self.names.inputs = self.named_list(part.get("inputs"));
        }
    }

    fn named_list(&self, part: Option<&SketchNode>) -> Vec<NamedValue> {
        let items = part.map(SketchNode::items).unwrap_or_default().iter();
        let named = items.filter_map(|item| {
            Some(NamedValue {
                name: self.word(item, "name")?,
                kind: self.word(item, "type"),
                description: self.word(item, "description"),
            })
        });
        named.collect()
    }
}
