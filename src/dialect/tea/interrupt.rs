//! `interrupt`: a run waits before or after a node for the signal with the node's name. What the
//! signal brings is merged into the state. With `--auto-continue` it does not wait.

use super::builder::{block, hidden, jinja, merge, only, output_of, with_result};
use super::{Place, Tea, builder};
use crate::dialect::builder::expression;
use crate::expression::Condition;
use crate::hir::{Step, StepKind};
use crate::model::AUTO_CONTINUE;
use crate::source::{Entry, Kind, Node};

/// The nodes that `config` names.
#[derive(Default)]
pub(super) struct Interrupts {
    before: Vec<String>,
    after: Vec<String>,
}

impl<'n> Tea<'_, 'n> {
    /// Reads a key of `config` if it is one of these.
    pub(super) fn is_interrupts(&mut self, entry: &Entry) -> bool {
        if !matches!(&*entry.key, "interrupt_before" | "interrupt_after") {
            return false;
        }
        let hint = "for example interrupt_before: [review]";
        let names = self.items(Some(entry), hint).unwrap_or_default();
        let names = names.iter().filter_map(|name| name.as_str());
        let names: Vec<String> = names.map(str::to_owned).collect();
        match entry.key.as_str() {
            "interrupt_before" => self.interrupts.before.extend(names),
            _ => self.interrupts.after.extend(names),
        }
        true
    }

    /// A node at the top, with the waits around it.
    pub(super) fn with_interrupts(&mut self, node: &'n Node, place: &Place) -> Step {
        let named = |names: &[String]| names.iter().any(|name| **name == *place.name);
        let (mut before, mut after) = (
            named(&self.interrupts.before),
            named(&self.interrupts.after),
        );
        let entries = node.entries().unwrap_or_default();
        if let Some(entry) = entries.iter().find(|entry| entry.key == "interrupt") {
            match entry.value.as_str() {
                Some("before") => before = true,
                Some("after") => after = true,
                _ if matches!(entry.value.kind, Kind::Null | Kind::Bool(false)) => {}
                _ => {
                    let hint = "interrupt: before, or interrupt: after";
                    self.wrong_type(&entry.value, "`interrupt`", "before or after", hint);
                }
            }
        }
        if !before && !after {
            return self.node(node, place);
        }
        let inside = Place {
            title: Some(place.shown().clone()),
            in_body: false,
            ..self.part(place, "node")
        };
        let inner = self.node(node, &inside);
        let label = inner.label.clone();
        let output = output_of(&inner.name);
        let mut steps = Vec::new();
        if before {
            steps.extend(self.waits_for(place, "before"));
        }
        steps.push(inner);
        if after {
            steps.extend(self.waits_for(place, "after"));
        }
        Step {
            output: Some(output),
            ..builder::step(place.clone(), &label, block(steps))
        }
    }

    fn waits_for(&mut self, place: &Place, part: &str) -> Option<Step> {
        let signal = hidden(
            self.part(place, part),
            "interrupt",
            StepKind::AwaitSignal(place.shown().clone()),
        );
        let brought = output_of(&signal.name);
        let changes = jinja("{{ result if result is mapping else {} }}");
        let changes = merge(with_result(&brought, changes), place.span);
        let changes = self.assigned(place, &format!("{part}_state"), vec![changes]);
        let waits = format!("not state.get('{AUTO_CONTINUE}', false)");
        let waits = Condition::from_template(expression(&waits)).ok()?;
        let waiting = hidden(
            self.part(place, &format!("{part}_wait")),
            "block",
            block(vec![signal, changes]),
        );
        let wait = builder::when(waits, only(waiting));
        Some(hidden(
            self.part(place, &format!("interrupt_{part}")),
            "if",
            wait,
        ))
    }
}
