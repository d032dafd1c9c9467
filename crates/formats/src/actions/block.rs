//! The actions of a scope and their order: as written, or a DAG by `runAfter` (docs/reference/loom.md).
//! A cycle, an unknown predecessor and a duplicate name are errors of the file.

use super::action_fields::OrderedStep;
use super::read_order::follows;
use super::{ActionReader, Format};
use crate::builder::{nothing, only};
use crate::cycle::cycle;
use std::collections::BTreeMap;
use windlass_expression::Reference;
use windlass_model::hir::{After, Block, DagStep, Step, StepKind};
use windlass_model::model::{Name, Status};
use windlass_source::diagnostic::{did_you_mean, nearest};
use windlass_source::source::{Entry, Kind, Node, Span};

const ACTIONS: &str = "for example actions: { check: { type: http, inputs: { uri: \"…\" } } }";

impl<F: Format> ActionReader<'_, F> {
    /// Reads the actions under a key. At least one is required, unless the format allows empty blocks.
    pub(crate) fn actions(&mut self, entry: &Entry) -> Block {
        if let Kind::Array(_) = entry.value.kind {
            let what = format!("`{}` is a list", entry.key);
            let hint = "actions are a map from names to actions: { name: { type: … } }";
            self.error("wrong-type", entry.value.span, what, hint);
            return nothing();
        }
        let empty = match &entry.value.kind {
            Kind::Null => true,
            Kind::Object(entries) => entries.is_empty() && !F::CONVENTIONS.allows_empty_blocks,
            _ => false,
        };
        if empty {
            let what = format!("`{}` holds no action", entry.key);
            self.error("empty-body", entry.key_span, what, ACTIONS);
            return nothing();
        }
        let placed = self.read_ordered_steps(entry);
        self.order(placed)
    }

    /// Reads the actions of a map, in their written order.
    pub(super) fn read_ordered_steps(&mut self, entry: &Entry) -> Vec<OrderedStep> {
        let entries = self.map(entry, ACTIONS).iter();
        entries
            .map(|entry| {
                let name = Name::from(entry.key.as_str());
                self.declare(&name, entry.key_span);
                self.read_action(&entry.value, name, entry.key_span, false)
            })
            .collect()
    }

    /// Declares the name of an action. A duplicate is an error.
    pub(crate) fn declare(&mut self, name: &Name, span: Span) {
        if name.trim().is_empty() {
            let hint = "write the name of the action before the colon";
            self.error("empty-name", span, "an action without a name", hint);
        }
        let first = self
            .names
            .entry(name.to_lowercase())
            .or_insert_with(|| (name.clone(), span))
            .1;
        if first != span {
            let what = format!("the name `{name}` is taken");
            let hint = format!(
                "names of actions are unique in the whole file, without case; the other one is at \
                 line {}, column {}",
                first.line, first.column
            );
            self.error("duplicate-name", span, what, hint);
        }
    }

    /// Reads one action or `{actions: …}`. Cases, branches, defaults and handlers may have either form. `made` is the
    /// action's default name.
    pub(crate) fn action_or_actions(&mut self, entry: &Entry, made: &str) -> Block {
        if entry.value.get("type").is_none() {
            let what = format!("`{}`", entry.key);
            let hint = "either one action with its `type`, or { actions: { … } }";
            let Some(mut fields) = self.fields(&entry.value, &what, hint) else {
                return nothing();
            };
            let actions = fields.required(self, "actions", entry.key_span, hint);
            fields.finish(self);
            return actions.map_or(nothing(), |entry| self.actions(entry));
        }
        only(self.read_unnamed_action(&entry.value, made, entry.key_span))
    }

    /// Reads an action without a key. The action's name is its own `name`. Without one, it is `made`.
    pub(crate) fn read_unnamed_action(&mut self, node: &Node, made: &str, span: Span) -> Step {
        let own = match super::variable::names_its_variable(node) {
            true => None,
            false => node
                .get("name")
                .and_then(|name| Some((name.as_str()?, name.span))),
        };
        let (name, at) = own.unwrap_or((made, span));
        let name = Name::from(name);
        self.declare(&name, at);
        self.read_action(node, name, at, own.is_none()).step
    }

    /// Reads one action and records which mentions are from this action.
    /// If the action is a loop, its mentions of itself are inside of the loop.
    fn read_action(&mut self, node: &Node, name: Name, span: Span, anonymous: bool) -> OrderedStep {
        let first = self.mentions.len();
        let mut placed = F::read_action(self, node, name, span, anonymous);
        placed.mentions = first..self.mentions.len();
        let headers = self
            .loop_headers
            .extract_if(.., |range| range.start >= first);
        let headers: Vec<_> = headers.collect();
        for (number, mention) in self.mentions.iter_mut().enumerate().skip(first) {
            if headers.iter().any(|header| header.contains(&number)) {
                continue;
            }
            let is_around = match &mention.reference {
                Reference::Loop(name) | Reference::Items(name) => {
                    name.eq_ignore_ascii_case(&placed.step.name)
                }
                Reference::Root(name) if name == "loop" => may_loop(&placed.step),
                other => is_item(other) && has_items(&placed.step.label),
            };
            mention.is_inside |= is_around;
        }
        placed
    }

    pub(super) fn order(&mut self, mut placed: Vec<OrderedStep>) -> Block {
        let written = !F::CONVENTIONS.ordered_by_run_after
            && placed.iter().all(|placed| placed.after.is_none());
        if written {
            self.reads_out_of_order(&placed, |later, earlier| later > earlier);
            return Block::Sequence(placed.into_iter().map(|placed| placed.step).collect());
        }
        self.mixed_order(&placed);
        for placed in &mut placed {
            if let Some(after) = &mut placed.after {
                after.retain(|after| !self.is_before_all(after));
            }
        }
        let own: BTreeMap<String, usize> = placed
            .iter()
            .enumerate()
            .map(|(index, placed)| (placed.step.name.to_lowercase(), index))
            .collect();
        let mut before: Vec<Vec<(usize, Span)>> = Vec::new();
        for placed in &placed {
            let after = placed.after.as_deref().unwrap_or_default();
            let known = after.iter().filter_map(|after| {
                let index = own.get(&after.name.to_lowercase()).copied();
                if index.is_none() {
                    self.unknown_predecessor(after, &own);
                }
                Some((index?, after.span))
            });
            before.push(known.collect());
        }
        if let Some(cycle) = cycle(&before, |(from, _)| from) {
            let round = cycle.iter().chain(cycle.first());
            let names: Vec<&str> = round
                .filter_map(|(index, _)| Some(&*placed.get(*index)?.step.name))
                .collect();
            let what = format!("the order goes in a circle: {}", names.join(" → "));
            let span = cycle.first().map(|(_, span)| *span).unwrap_or_default();
            let hint = "remove one of these runAfter entries";
            self.error("cycle", span, what, hint);
        }
        self.reads_out_of_order(&placed, |later, earlier| follows(&before, later, earlier));
        self.concurrent = true;
        Block::Dag(
            placed
                .into_iter()
                .map(|placed| DagStep {
                    step: placed.step,
                    after: placed.after.unwrap_or_default(),
                })
                .collect(),
        )
    }

    fn is_before_all(&self, after: &After) -> bool {
        !self.names.contains_key(&after.name.to_lowercase()) && F::is_before_all(self, &after.name)
    }

    /// Reports actions without `runAfter` if other actions of the scope have it.
    /// Such an action could run after the action before it, or at once. For the first action, both mean the same, so
    /// it is not reported.
    fn mixed_order(&mut self, placed: &[OrderedStep]) {
        if F::CONVENTIONS.ordered_by_run_after {
            return;
        }
        let names = placed.iter().map(|placed| &placed.step.name);
        for (placed, before) in placed.iter().skip(1).zip(names) {
            if placed.after.is_some() {
                continue;
            }
            let what = format!(
                "`{}` has no `runAfter`, and other actions next to it do",
                placed.step.name
            );
            let hint = format!(
                "in the written order: runAfter: {{ {before}: [Succeeded] }}; at once: \
                 runAfter: {{}}"
            );
            self.error("mixed-order", placed.step.span, what, hint);
        }
    }

    fn unknown_predecessor(&mut self, after: &After, own: &BTreeMap<String, usize>) {
        let name = &after.name;
        let what = format!("unknown action `{name}` in this scope");
        let names = &self.names;
        let hint = || {
            if names.contains_key(&name.to_lowercase()) {
                return String::from(
                    "it is in another scope: runAfter names actions of the same scope only",
                );
            }
            nearest(name, own.keys().map(String::as_str))
                .and_then(|near| names.get(near))
                .map_or_else(
                    || String::from("runAfter names actions of the same scope"),
                    |(near, _)| format!("did you mean `{near}`?"),
                )
        };
        self.reader
            .error_with("unknown-predecessor", after.span, what, hint);
    }

    /// Reads `runAfter: {name: [statuses]}`.
    pub(super) fn run_after(&mut self, entry: &Entry) -> Vec<After> {
        let hint = "for example runAfter: { check: [Succeeded] }";
        let mut after: Vec<After> = Vec::new();
        for entry in self.map(entry, hint) {
            let statuses = match &entry.value.kind {
                Kind::Array(items) => items.iter().filter_map(|item| self.status(item)).collect(),
                Kind::String(_) => self.status(&entry.value).into_iter().collect(),
                _ => {
                    let what = format!("what `{}` must have ended in", entry.key);
                    self.wrong_type(&entry.value, &what, "a list", hint);
                    Vec::new()
                }
            };
            after.push(After {
                name: Name::from(entry.key.as_str()),
                statuses: if statuses.is_empty() {
                    vec![Status::Succeeded]
                } else {
                    statuses
                },
                span: entry.key_span,
            });
        }
        after
    }

    fn status(&mut self, node: &Node) -> Option<Status> {
        let known = ["Succeeded", "Failed", "Skipped", "TimedOut"];
        let text = node.as_str().unwrap_or_default();
        let status = Status::parse(text);
        if status.is_none() {
            let what = if node.as_str().is_some() {
                format!("`{text}` is not a valid status")
            } else {
                format!("a status is text, this is {}", node.kind_name())
            };
            let hint = did_you_mean(text, known).unwrap_or_else(|| known.join(", "));
            self.error("unknown-status", node.span, what, hint);
        }
        status
    }
}

/// Returns true if a reference is to the current item of a list, in either expression language.
pub(super) fn is_item(reference: &Reference) -> bool {
    match reference {
        Reference::Item => true,
        Reference::Root(name) => name == "item",
        _ => false,
    }
}

/// Returns true if a step is a loop, or if it may have been compiled into steps with a loop.
fn may_loop(step: &Step) -> bool {
    match &step.kind {
        StepKind::Loop(_)
        | StepKind::ForEach(_)
        | StepKind::Block(_)
        | StepKind::Parallel { .. }
        | StepKind::Catch { .. } => true,
        StepKind::Call(_)
        | StepKind::Compose(_)
        | StepKind::Assign(_)
        | StepKind::Wait(_)
        | StepKind::AwaitSignal(_)
        | StepKind::If { .. }
        | StepKind::Switch { .. }
        | StepKind::Terminate { .. }
        | StepKind::Respond(_)
        | StepKind::Raise { .. }
        | StepKind::Nothing => step.follow_up.is_some(),
    }
}

/// Returns true if the expressions of an action of this type can read the current item of a list.
fn has_items(label: &str) -> bool {
    let labels = ["foreach", "select", "query", "table"];
    labels.iter().any(|known| label.eq_ignore_ascii_case(known))
}
