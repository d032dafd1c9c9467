//! The names that the templates of a node can read (docs/reference/canvas.md): its inputs, the ids of the nodes
//! upstream, `inputs`, `nodes`, `session_id`, and inside of a loop `iteration_count`.

use super::effect::{EXIT_CODE, SESSION};
use super::tree::{Graph, Node, NodeKind, Text};
use crate::reader::list_known;
use std::collections::BTreeSet;
use windlass_expression::{Binding, Reference, Template};
use windlass_model::model::Name;
use windlass_source::diagnostic::{Diagnostic, Diagnostics, did_you_mean};
use windlass_source::source::Span;

/// The variable with the number of iterations that the enclosing loop has begun.
pub(super) const ITERATION: &str = "iteration_count";
/// The names of the engine, which every template can read.
const ENGINE: [&str; 6] = ["secrets", "workflow", "loop", "loops", "item", "trigger"];

/// A node together with everything that its templates can read.
pub(super) struct Scope<'g> {
    pub graph: &'g Graph,
    pub node: usize,
    /// The node's inputs, converted and checked.
    pub own: &'g [(Name, Template)],
    /// The innermost loop that encloses the node.
    pub looped: Option<&'g Name>,
    /// The ids of the nodes whose exit code is read by a text of the graph.
    pub codes: &'g BTreeSet<String>,
    /// The session that the node continues.
    pub session: Option<Template>,
}

impl Scope<'_> {
    /// Binds the names that a text reads to their values. Reports names that the text must not read.
    pub fn text(&self, text: &Text, diagnostics: &mut Diagnostics) -> Template {
        if text.template.as_constant().is_some() {
            return text.template.clone();
        }
        let mut names: Vec<(Name, Template)> = self.own.to_vec();
        names.push((Name::from("inputs"), object(self.own.iter().cloned())));
        if let Some(session) = &self.session {
            names.push((Name::from(SESSION), session.clone()));
        }
        if let Some(looped) = self.looped {
            names.push((
                Name::from(ITERATION),
                Template::binding(Binding::Iteration(looped.clone())),
            ));
        }
        for mention in &text.mentions {
            let span = mention.span;
            match &mention.reference {
                Reference::Root(_) | Reference::Environment(_) => {
                    let name = mention.reference.root().unwrap_or_default();
                    self.root(name, span, text, &mut names, diagnostics);
                }
                Reference::Input(name) => {
                    if !self.own.iter().any(|(own, _)| **own == **name) {
                        let known = self.own.iter().map(|(own, _)| &**own);
                        let what = format!("`{}` has no input `{name}`", self.id());
                        unknown(what, "unknown-port", name, span, known, diagnostics);
                    }
                }
                Reference::Variable(name)
                | Reference::State(name)
                | Reference::Action(name)
                | Reference::Parameter(name) => {
                    let what =
                        format!("a canvas has no variables, actions or parameters: `{name}`");
                    let hint =
                        "values arrive through edges: {{ name }} of an input, {{ node.output }}";
                    diagnostics.push(Diagnostic::error("unknown-name", span, what).hint(hint));
                }
                Reference::Scope(_)
                | Reference::Loop(_)
                | Reference::LoopMember(_)
                | Reference::ActionMember(_)
                | Reference::Items(_)
                | Reference::Secret(_)
                | Reference::Item
                | Reference::Anything => {}
            }
        }
        Template::binding(Binding::Scoped(names.into(), text.template.clone()))
    }

    pub fn id(&self) -> &str {
        self.graph.nodes.get(self.node).map_or("", |node| &node.id)
    }

    fn root(
        &self,
        name: &str,
        span: Span,
        text: &Text,
        names: &mut Vec<(Name, Template)>,
        diagnostics: &mut Diagnostics,
    ) {
        if names.iter().any(|(known, _)| **known == *name) || ENGINE.contains(&name) {
            return;
        }
        let upstream = self.graph.upstream(self.node);
        let outputs = |index: &usize| {
            let node = self.graph.nodes.get(*index)?;
            Some((
                node.id.clone(),
                Template::binding(Binding::Outputs(node.step.clone())),
            ))
        };
        if name == "nodes" {
            let all = object(upstream.iter().filter_map(outputs));
            names.push((Name::from(name), all));
            return;
        }
        let node_at = |index: &usize| self.graph.nodes.get(*index);
        let named =
            |index: &usize| node_at(index).is_some_and(|node| is_identifier_of(name, &node.id));
        let titled = |index: &usize| {
            let title = node_at(index).and_then(|node| node.title.as_ref());
            title.is_some_and(|title| is_title_of(name, title))
        };
        let by_id = upstream.iter().filter(|index| named(index));
        let mut found: Vec<usize> = by_id.copied().collect();
        if found.is_empty() {
            let by_title = upstream.iter().filter(|index| titled(index));
            found.extend(by_title);
        }
        found.sort_unstable();
        if found.len() > 1 {
            let ids = found.iter().filter_map(node_at);
            let ids: Vec<&str> = ids.map(|node| &*node.id).collect();
            let what = format!("several nodes are called `{name}`: {}", list_known(&ids));
            let id = ids.first().unwrap_or(&name);
            let hint = format!("rename a label, or use the id: nodes['{id}']");
            diagnostics.push(Diagnostic::error("ambiguous-name", span, what).hint(hint));
            return;
        }
        if let Some(index) = found.first() {
            self.outputs_exist(name, *index, span, text, diagnostics);
            if let Some((_, outputs)) = outputs(index) {
                names.push((Name::from(name), outputs));
            }
            return;
        }
        if let Some(index) = (0..self.graph.nodes.len()).find(named) {
            let node = self.graph.nodes.get(index);
            let other = node.map_or("", |node| &*node.id);
            let id = self.id();
            let (what, hint) = if index == self.node {
                let what = format!("`{id}` reads its own outputs, which do not exist yet");
                (
                    what,
                    String::from(
                        "its output of the previous iteration is available through a mapping",
                    ),
                )
            } else {
                let what = format!("`{id}` reads `{other}`, from which no edges lead to it");
                (
                    what,
                    format!("connect them, so that `{id}` waits for `{other}`"),
                )
            };
            diagnostics.push(Diagnostic::error("not-upstream", span, what).hint(hint));
            return;
        }
        let what = format!("`{}` knows nothing called `{name}`", self.id());
        if diagnostics.is_full() {
            return diagnostics.push(Diagnostic::error("unknown-name", span, what));
        }
        let own = names.iter().map(|(name, _)| name.to_string());
        let ids = upstream
            .iter()
            .filter_map(|index| self.graph.nodes.get(*index));
        let known: Vec<String> = own.chain(ids.map(|node| node.id.to_string())).collect();
        let known = known.iter().map(String::as_str);
        unknown(what, "unknown-name", name, span, known, diagnostics);
    }

    fn outputs_exist(
        &self,
        name: &str,
        index: usize,
        span: Span,
        text: &Text,
        diagnostics: &mut Diagnostics,
    ) {
        let Some(node) = self
            .graph
            .nodes
            .get(index)
            .filter(|node| !node.outputs.open)
        else {
            return;
        };
        for member in text.template.members_of(name) {
            if node.outputs.find(&member).is_none() {
                let what = format!("`{}` has no output `{member}`", node.id);
                let known = node.outputs.names();
                unknown(what, "unknown-port", &member, span, known, diagnostics);
            }
        }
    }
}

pub(super) fn object(members: impl Iterator<Item = (Name, Template)>) -> Template {
    let key = |name: Name| Template::constant((&*name).into());
    Template::object(members.map(|(name, value)| (key(name), value)).collect())
}

/// Converts an id to a name that templates can write.
pub(super) fn identifier(id: &str) -> String {
    id.chars().map(letter).collect()
}

/// Returns true if `name` equals [`identifier`] of `id`.
/// It allocates nothing, because it is called for each of many nodes.
fn is_identifier_of(name: &str, id: &str) -> bool {
    id.chars().map(letter).eq(name.chars())
}

/// Returns true if `name` is a title in the form that graph editors write in templates: lower case, words joined with
/// `_`.
fn is_title_of(name: &str, title: &str) -> bool {
    let words: Vec<&str> = title.split_whitespace().collect();
    let joined = words.join("_");
    joined.eq_ignore_ascii_case(name)
        || is_identifier_of(&name.to_lowercase(), &joined.to_lowercase())
}

fn letter(c: char) -> char {
    if c.is_alphanumeric() { c } else { '_' }
}

fn unknown<'a>(
    what: String,
    code: &'static str,
    name: &str,
    span: Span,
    known: impl Iterator<Item = &'a str>,
    diagnostics: &mut Diagnostics,
) {
    let mut known: Vec<&str> = known.collect();
    known.sort_unstable();
    known.dedup();
    let near = did_you_mean(name, known.iter().copied());
    let hint = near.unwrap_or_else(|| match known.is_empty() {
        true => String::from("there is nothing that it could read"),
        false => format!("known are: {}", list_known(&known)),
    });
    diagnostics.push(Diagnostic::error(code, span, what).hint(hint));
}

/// Finds the nodes whose exit code is read by a text of the graph.
pub(super) fn read_codes(graph: &Graph) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for text in graph.nodes.iter().flat_map(Node::texts) {
        for mention in &text.mentions {
            if let Some(name) = mention.reference.root()
                && text
                    .template
                    .members_of(name)
                    .iter()
                    .any(|member| member == EXIT_CODE)
            {
                found.insert(name.to_owned());
            }
        }
    }
    found
}

impl Node {
    /// Returns the texts of the node that are rendered as templates.
    fn texts(&self) -> Vec<&Text> {
        match &self.spec {
            NodeKind::Agent(agent) => {
                let options = agent.options.iter().map(|(_, text)| text);
                options.chain([&agent.prompt]).collect()
            }
            NodeKind::Shell(shell) => [&shell.script].into_iter().chain(&shell.cwd).collect(),
            NodeKind::Http(inputs) => inputs.iter().map(|(_, text)| text).collect(),
            NodeKind::Loop(node) => [&node.count, &node.delay, &node.timeout]
                .into_iter()
                .flatten()
                .collect(),
            NodeKind::Source { .. }
            | NodeKind::Sink
            | NodeKind::Continue
            | NodeKind::Constant(_)
            | NodeKind::Function { .. }
            | NodeKind::Component(_)
            | NodeKind::Unknown => Vec::new(),
        }
    }
}
