//! Nodes and edges, which determine the order of the nodes.
//! A graph without branches and cycles becomes a sequence.

use super::fan_out::{FanOutEdges, StepWithEdges};
use super::{SourcePosition, Tea, builder};
use crate::builder::nothing;
use crate::fields::Fields;
use std::collections::{BTreeMap, BTreeSet};
use windlass_expression::Condition;
use windlass_model::hir::{Block, Edge, Graph, Node as GraphNode, Step, StepKind};
use windlass_model::model::Name;
use windlass_source::source::{Entry, Kind, Node, Span};

pub(super) const START: &str = "__start__";
const END: &str = "__end__";
const CONDITION: &str = "for example when: { type: expression, value: \"state.count < 3\" }";
const EDGE: &str = "for example { from: __start__, to: work }";
const GOTO: &str = "a node's name, or a list of { if: \"state.done\", to: name }";

/// The edges of the file by the node where they start, in the order of the file.
type Edges = BTreeMap<String, Vec<Edge>>;

impl<'n> Tea<'_, 'n> {
    pub(super) fn nodes(
        &mut self,
        nodes: &'n Entry,
        edges: Option<&'n Entry>,
        owner: &Name,
        max_steps: u32,
    ) -> Block {
        let hint = "for example nodes: [{ name: step, run: \"return {'done': True}\" }]";
        let Some(list) = self.list(nodes, hint) else {
            return nothing();
        };
        let places = self.declare(list, owner);
        self.ignores_actions = self.ignores_actions();
        let mut wishes = BTreeMap::new();
        let edges = self.edges(edges, &mut wishes);
        let fan_outs = self.fan_outs(&edges, &wishes);
        let first = places.iter().flatten().next();
        let first = first.map(|place| place.name.clone());
        let mut steps = self.steps_and_edges(list, &places, edges.clone());
        self.fold_all(fan_outs, &mut steps, max_steps);
        let Some(entry) = self.entry(&mut steps, first, &edges, owner) else {
            return nothing();
        };
        let overtaken = overtaken(&steps);
        let (steps, lost) = reachable(steps, &entry);
        for (step, _) in lost {
            self.never_waits(&step);
            if !self.correctors.contains(&*step.name) {
                let what = format!("nothing leads to the node `{}`", step.name);
                let hint = match overtaken.get(&step.name) {
                    None => String::from("it never runs; an edge or `goto` to it is missing"),
                    Some((from, to)) => format!(
                        "it never runs: the edge from `{from}` to `{to}` before it is always taken; \
                         a node with `fan_in: true` would make branches of them"
                    ),
                };
                self.warning("unreachable-node", step.span, what, hint);
            }
        }
        in_order(steps, &entry, max_steps)
    }

    /// Declares the names of the nodes at the top level, before anything refers to them.
    /// Returns the position of each node, or `None` for a node that is not valid.
    fn declare(&mut self, list: &'n [Node], owner: &Name) -> Vec<Option<SourcePosition>> {
        list.iter()
            .map(|node| {
                let hint = "a node is a map with a name: { name: step, run: \"…\" }";
                let Some(named) = node.get("name") else {
                    let what = "a node needs `name`";
                    self.error("missing-key", node.span, what, hint);
                    return None;
                };
                let Some(name) = named.as_str() else {
                    self.wrong_type(named, "`name`", "text", hint);
                    return None;
                };
                let lower = name.to_lowercase();
                if self.used.contains(&lower) {
                    let what = format!("there is a node named '{name}' already");
                    let hint = "names are compared without case; rename this one";
                    self.error("duplicate-node", named.span, what, hint);
                    return None;
                }
                if name == START || name == END {
                    let what = format!("'{name}' is not a valid name for a node");
                    self.error(
                        "bad-name",
                        named.span,
                        what,
                        "it is where edges begin or end",
                    );
                    return None;
                }
                self.nodes.push((name, node));
                Some(self.place(name, owner, named.span, false))
            })
            .collect()
    }

    fn steps_and_edges(
        &mut self,
        list: &'n [Node],
        places: &[Option<SourcePosition>],
        mut written: Edges,
    ) -> Vec<StepWithEdges> {
        self.check_interrupts();
        let named = |place: &Option<SourcePosition>| place.as_ref().map(|place| place.name.clone());
        let mut steps = Vec::with_capacity(list.len());
        for (index, node) in list.iter().enumerate() {
            let Some(place) = places.get(index).and_then(Option::as_ref) else {
                continue;
            };
            self.current_join = self.joins.get(&*place.name).cloned();
            let step = self.with_interrupts(node, place);
            self.current_join = None;
            let mut edges = self.goto(node);
            edges.extend(written.remove(&*place.name).unwrap_or_default());
            if edges.is_empty() {
                let after = places.iter().skip(index + 1).find_map(named);
                edges.push(Edge {
                    when: None,
                    to: after,
                    span: place.span,
                });
            }
            steps.push((step, edges));
        }
        steps
    }

    fn edges(
        &mut self,
        entry: Option<&'n Entry>,
        wishes: &mut BTreeMap<String, FanOutEdges>,
    ) -> Edges {
        let mut edges = Edges::new();
        let list = self.items(entry, EDGE).unwrap_or_default();
        for edge in list {
            if let Some((from, edge)) = self.edge(edge, wishes) {
                edges.entry(from.to_owned()).or_default().push(edge);
            }
        }
        edges
    }

    fn edge(
        &mut self,
        node: &'n Node,
        wishes: &mut BTreeMap<String, FanOutEdges>,
    ) -> Option<(&'n str, Edge)> {
        let mut fields = self.fields(node, "an edge", EDGE)?;
        let from = fields.required(self, "from", node.span, EDGE);
        let to = fields.required(self, "to", node.span, EDGE);
        let condition = fields.non_null(self, "condition");
        let when = fields.non_null(self, "when");
        for key in ["if", "cond", "unless"] {
            if let Some(entry) = fields.get(key) {
                let what = format!("unknown key `{key}` in an edge");
                self.error("unknown-key", entry.key_span, what, "did you mean `when`?");
            }
        }
        fields.allow(&["description", "metadata", "label"]);
        let kind = fields.non_null(self, "type");
        let fan_in = fields.non_null(self, "fan_in");
        if let Some(kind) = kind {
            let known = ["simple", "conditional", "parallel"];
            let hint = "simple, conditional or parallel";
            let word = self.text(kind, hint).unwrap_or("simple");
            if !known.contains(&word) {
                let what = format!("`{word}` is not a valid type of edge");
                self.unknown("unknown-type", what, kind.value.span, word, known);
            }
        }
        let parallel = kind.and_then(|kind| kind.value.as_str()) == Some("parallel");
        if let Some(from) = from.and_then(|from| from.value.as_str())
            && (parallel || fan_in.is_some())
        {
            let wish = wishes.entry(from.to_owned()).or_insert(FanOutEdges {
                fan_in: None,
                span: node.span,
            });
            let named = fan_in.and_then(|entry| entry.value.as_str());
            wish.fan_in = named.map(str::to_owned).or(wish.fan_in.take());
        }
        fields.finish(self);
        let when = self.edge_condition(condition, when);
        let from = from.and_then(|from| self.from(from));
        let to = to.and_then(|to| {
            let name = self.text(to, "a node's name, or __end__")?;
            self.target("edge-to-undefined", name, to.value.span)
        });
        let edge = Edge {
            when,
            to: to?,
            span: node.span,
        };
        Some((from?, edge))
    }

    fn from(&mut self, entry: &'n Entry) -> Option<&'n str> {
        let name = self.text(entry, "a node's name, or __start__")?;
        if name == START || self.nodes.iter().any(|(known, _)| *known == name) {
            return Some(name);
        }
        let message = format!("unknown node '{name}' as the source of this edge");
        let known = self.node_names();
        self.unknown(
            "edge-from-undefined",
            message,
            entry.value.span,
            name,
            known,
        );
        None
    }

    /// Finds the node to which an edge leads. Reports an unknown node.
    /// The outer `None` means an unknown node, and the inner `None` the end of the graph.
    fn target(&mut self, code: &'static str, name: &str, span: Span) -> Option<Option<Name>> {
        if name == END {
            return Some(None);
        }
        if self.nodes.iter().any(|(known, _)| *known == name) {
            return Some(Some(Name::from(name)));
        }
        let message = format!("unknown node '{name}' as the target of this edge");
        let known = self.node_names().into_iter().chain([END]);
        self.unknown(code, message, span, name, known);
        None
    }

    /// Reads `condition` or `when`.
    /// With `when: false`, the edge is followed if its condition does not hold.
    fn edge_condition(
        &mut self,
        condition: Option<&Entry>,
        when: Option<&Entry>,
    ) -> Option<Condition> {
        let Some(condition) = condition else {
            return Some(self.written_condition(when?));
        };
        let flipped = match when.map(|when| &when.value.kind) {
            None => false,
            Some(Kind::Bool(when)) => !when,
            Some(_) => {
                let span = when.map_or(condition.key_span, |when| when.key_span);
                let what = "an edge has either `condition` or `when`";
                let hint = "next to `condition`, `when` must be true or false";
                self.error("conflict", span, what, hint);
                false
            }
        };
        let condition = self.written_condition(condition);
        Some(if flipped {
            condition.negated()
        } else {
            condition
        })
    }

    /// Reads a condition, or `{type: expression, value: condition}`. An invalid condition is never true: its edge is
    /// not one without a condition.
    fn written_condition(&mut self, entry: &Entry) -> Condition {
        let condition = match entry.value.kind {
            Kind::Object(_) => self.typed_condition(entry),
            _ => self.condition(entry),
        };
        condition.unwrap_or_else(Condition::never)
    }

    fn typed_condition(&mut self, entry: &Entry) -> Option<Condition> {
        let mut fields = self.fields(&entry.value, "a condition", CONDITION)?;
        let kind = fields.required(self, "type", entry.value.span, CONDITION);
        let value = fields.required(self, "value", entry.value.span, CONDITION);
        fields.finish(self);
        let wrong = |word: &str| format!("`{word}` is not a valid type of condition");
        self.choice(kind?, &[("expression", ())], wrong)?;
        self.condition(value?)
    }

    /// Reads `goto`. Returns the edges that it becomes.
    fn goto(&mut self, node: &'n Node) -> Vec<Edge> {
        let entries = node.entries().unwrap_or_default();
        let Some(entry) = entries.iter().find(|entry| entry.key == "goto") else {
            return Vec::new();
        };
        let target = |tea: &mut Self, name: &Node, when| {
            let text = name.as_str()?;
            let to = tea.target("goto-undefined", text, name.span)?;
            let span = name.span;
            Some(Edge { when, to, span })
        };
        match &entry.value.kind {
            Kind::String(_) => target(self, &entry.value, None).into_iter().collect(),
            Kind::Array(rules) => {
                let mut edges = Vec::new();
                for rule in rules {
                    let Some(mut fields) = self.fields(rule, "a rule of `goto`", GOTO) else {
                        continue;
                    };
                    let when = fields.non_null(self, "if");
                    let when = when.or_else(|| self.misnamed_condition(&mut fields));
                    let to = fields.required(self, "to", rule.span, GOTO);
                    fields.finish(self);
                    let when = when.and_then(|when| self.goto_condition(when));
                    let to = to.filter(|to| self.text(to, GOTO).is_some());
                    edges.extend(to.and_then(|to| target(self, &to.value, when)));
                }
                edges
            }
            _ => {
                self.wrong_type(&entry.value, "`goto`", "a name or a list", GOTO);
                Vec::new()
            }
        }
    }

    /// Reports a rule of `goto` whose condition has the name of an edge's condition. Without its condition, the rule
    /// would always match.
    fn misnamed_condition(&mut self, fields: &mut Fields<'n>) -> Option<&'n Entry> {
        let names = ["when", "condition"];
        let entry = names.iter().find_map(|name| fields.non_null_quiet(name))?;
        let what = format!("unknown key `{}` in a rule of `goto`", entry.key);
        self.error("unknown-key", entry.key_span, what, "did you mean `if`?");
        Some(entry)
    }

    /// Reads the condition of a rule in `goto`. An empty text and the words false, 0, no and none are false.
    fn goto_condition(&mut self, entry: &Entry) -> Option<Condition> {
        let condition = self.condition(entry);
        let condition = condition.unwrap_or_else(Condition::never);
        Some(condition.truth_by_words())
    }

    fn entry(
        &mut self,
        steps: &mut Vec<StepWithEdges>,
        first: Option<Name>,
        edges: &Edges,
        owner: &Name,
    ) -> Option<Name> {
        match edges.get(START).map(Vec::as_slice).unwrap_or_default() {
            [] => first,
            [only] if only.when.is_none() => only.to.clone(),
            several => {
                // There are several first edges, so the state decides which node is the first.
                let span = several.first().map_or_else(Span::default, |edge| edge.span);
                let place = self.place(START, owner, span, false);
                let name = place.name.clone();
                let choice = builder::anonymous_step(place, "start", StepKind::Nothing);
                steps.insert(0, (choice, several.to_vec()));
                Some(name)
            }
        }
    }
}

/// Finds edges that are never followed, because an earlier edge of the same node has no condition. Returns each node to
/// which such an edge leads, with two other nodes: where the edge starts, and where the edge without a condition leads.
fn overtaken(steps: &[StepWithEdges]) -> BTreeMap<Name, (Name, Name)> {
    let mut overtaken = BTreeMap::new();
    for (step, edges) in steps {
        let mut edges = edges.iter();
        let always = edges.find(|edge| edge.when.is_none());
        let to = always.and_then(|edge| edge.to.clone());
        for later in edges.filter_map(|edge| edge.to.clone()) {
            let to = to.clone().unwrap_or_else(|| Name::from(END));
            overtaken.insert(later, (step.name.clone(), to));
        }
    }
    overtaken
}

/// Splits the steps into those that can be reached over edges, and the others.
fn reachable(steps: Vec<StepWithEdges>, entry: &Name) -> (Vec<StepWithEdges>, Vec<StepWithEdges>) {
    let mut seen = BTreeSet::new();
    let mut open = vec![entry.clone()];
    while let Some(name) = open.pop() {
        if !seen.insert(name.clone()) {
            continue;
        }
        let found = steps.iter().find(|(step, _)| step.name == name);
        let edges = found.map(|(_, edges)| edges.as_slice()).unwrap_or_default();
        // Edges after an unconditional edge are never checked.
        let always = edges.iter().position(|edge| edge.when.is_none());
        let taken = edges
            .iter()
            .take(always.map_or(edges.len(), |index| index + 1));
        open.extend(taken.filter_map(|edge| edge.to.clone()));
    }
    steps
        .into_iter()
        .partition(|(step, _)| seen.contains(&step.name))
}

/// Makes a block of steps: a sequence if each step leads only to the next, else a graph.
pub(super) fn in_order(steps: Vec<StepWithEdges>, entry: &Name, max_steps: u32) -> Block {
    match line(&steps, entry) {
        Some(order) => {
            let mut steps: Vec<Option<Step>> =
                steps.into_iter().map(|(step, _)| Some(step)).collect();
            let in_order = order.into_iter();
            let taken = in_order.filter_map(|index| steps.get_mut(index)?.take());
            Block::Sequence(taken.collect())
        }
        None => Block::Graph(Graph {
            entry: Some(entry.clone()),
            nodes: steps
                .into_iter()
                .map(|(step, edges)| GraphNode { step, edges })
                .collect(),
            max_steps,
        }),
    }
}

/// Returns the order of the steps if each leads to one other step and none is repeated.
/// Returns `None` otherwise, because the steps are then a graph.
fn line(steps: &[StepWithEdges], entry: &Name) -> Option<Vec<usize>> {
    let index_of = |name: &Name| steps.iter().position(|(step, _)| step.name == *name);
    let mut order = Vec::with_capacity(steps.len());
    let mut next = Some(entry.clone());
    while let Some(name) = next {
        let index = index_of(&name)?;
        if order.contains(&index) {
            return None;
        }
        order.push(index);
        let (_, edges) = steps.get(index)?;
        // Edges after an unconditional edge are never checked.
        next = match edges.first() {
            Some(edge) if edge.when.is_none() => edge.to.clone(),
            _ => return None,
        };
    }
    Some(order)
}
