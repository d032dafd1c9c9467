//! `type: while_loop`: repeats steps while a condition holds.

use super::node::{LoweredNode, WHILE_LOOP};
use super::{SourcePosition, Tea};
use crate::builder::looped;
use crate::fields::Fields;
use windlass_expression::{Condition, Template, Value};
use windlass_model::hir::{Block, Loop, Step, StepKind};
use windlass_model::model::Test;
use windlass_source::source::{Entry, Kind, Node, Span};

/// The largest value of `max_iterations` (TEA-PY-003, AC-9).
const MAX_ITERATIONS: i64 = 1000;

impl<'n> Tea<'_, 'n> {
    /// Reads a while_loop. The error messages have the same text as in TEA.
    pub(super) fn while_loop(
        &mut self,
        fields: &mut Fields<'n>,
        place: &SourcePosition,
    ) -> LoweredNode {
        let condition = fields.get("condition");
        let count = fields.get("max_iterations");
        let body = fields.get("body");
        for key in ["output", "output_key", "with"] {
            if let Some(entry) = fields.get(key) {
                self.ignored(entry, "a while_loop returns the state as its body left it");
            }
        }
        let condition = self.loop_condition(condition, place);
        let count = self.max_iterations(count, place);
        let body = self.loop_body(body, place);
        let (Some((condition, text)), Some(count)) = (condition, count) else {
            return LoweredNode::new(WHILE_LOOP, StepKind::Nothing);
        };
        let count = Template::constant(Value::Int(count));
        let spec = Loop {
            test: Test::Before,
            condition_text: text,
            negated: true,
            test_when_spent: false,
            ..looped(condition.negated(), count, Block::Sequence(body))
        };
        LoweredNode::new(WHILE_LOOP, StepKind::Loop(Box::new(spec)))
    }

    fn require(&mut self, place: &SourcePosition, span: Span, what: &str, hint: &str) {
        let message = format!("while_loop node '{}' requires {what}", place.shown());
        self.error("missing-key", span, message, hint);
    }

    fn loop_condition(
        &mut self,
        entry: Option<&Entry>,
        place: &SourcePosition,
    ) -> Option<(Condition, String)> {
        let hint = "for example condition: \"state.count < 3\"";
        let text = match entry.map(|entry| &entry.value.kind) {
            // A value that is false in Python does not count as a condition.
            None | Some(Kind::Null | Kind::Bool(false) | Kind::Int(0)) => None,
            Some(Kind::String(text)) if text.text.trim().is_empty() => None,
            Some(Kind::String(text)) => Some(text.text.clone()),
            Some(Kind::Int(number)) => Some(number.to_string()),
            Some(_) => Some(String::from("true")),
        };
        let (Some(entry), Some(text)) = (entry, text) else {
            let span = entry.map_or(place.span, |entry| entry.value.span);
            self.require(place, span, "'condition'", hint);
            return None;
        };
        Some((self.condition(entry)?, text))
    }

    fn max_iterations(&mut self, entry: Option<&Entry>, place: &SourcePosition) -> Option<i64> {
        let hint = "for example max_iterations: 10";
        let Some(entry) = entry.filter(|entry| !matches!(entry.value.kind, Kind::Null)) else {
            self.require(place, place.span, "'max_iterations'", hint);
            return None;
        };
        let count = match entry.value.kind {
            Kind::Int(count) if (1..=MAX_ITERATIONS).contains(&count) => count,
            _ => {
                let got = entry.value.to_value().to_json();
                let message = format!(
                    "while_loop node '{}': max_iterations must be integer between \
                     1-{MAX_ITERATIONS}, got {got}",
                    place.shown()
                );
                self.error("out-of-range", entry.value.span, message, hint);
                return None;
            }
        };
        let cap = self.max_count;
        self.within_cap(count, cap, entry.value.span);
        Some(count)
    }

    fn loop_body(&mut self, entry: Option<&'n Entry>, place: &SourcePosition) -> Vec<Step> {
        let hint = "for example body: [{ name: work, run: \"return {'n': 1}\" }]";
        let nodes = match entry.map(|entry| &entry.value.kind) {
            Some(Kind::Array(nodes)) if !nodes.is_empty() => nodes,
            Some(Kind::Array(_) | Kind::Null) | None => {
                let span = entry.map_or(place.span, |entry| entry.key_span);
                self.require(place, span, "'body' with at least one node", hint);
                return Vec::new();
            }
            Some(_) => {
                if let Some(entry) = entry {
                    self.wrong_type(&entry.value, "`body`", "a list of nodes", hint);
                }
                return Vec::new();
            }
        };
        self.refuse_nested(nodes, place);
        self.inner(nodes, place, "body")
    }

    /// Refuses a while_loop in a while_loop, at any depth (TEA-PY-003, AC-11).
    fn refuse_nested(&mut self, nodes: &[Node], place: &SourcePosition) {
        for (index, node) in nodes.iter().enumerate() {
            if node.get("type").and_then(Node::as_str) == Some(WHILE_LOOP) {
                let name = match node.get("name").and_then(Node::as_str) {
                    Some(name) => name.to_owned(),
                    None => format!("body_{index}"),
                };
                let message = format!(
                    "Nested while-loops not supported: '{}' contains nested while_loop '{name}'",
                    place.shown()
                );
                let hint = "make one loop of the two, or put the inner one into a node of its own";
                self.error("nested-loop", node.span, message, hint);
            }
            if let Some(Kind::Array(steps)) = node.get("steps").map(|steps| &steps.kind) {
                self.refuse_nested(steps, place);
            }
        }
    }
}
