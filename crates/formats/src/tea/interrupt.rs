//! `interrupt`: a run waits before or after a node for a signal. The signal has the name of the node.
//! The payload of the signal is merged into the state. With `--auto-continue`, runs do not wait.

use super::builder::{anonymous_step, block, jinja, merge, output_of, with_result};
use super::{SourcePosition, Tea, builder};
use std::collections::BTreeSet;
use windlass_model::hir::{Step, StepKind};
use windlass_model::model::{AwaitedSignal, Name};
use windlass_source::source::{Bundle, Entry, Kind, Node, Span};

/// The name of a file in a bundle. A run whose bundle has this file does not wait at interrupts.
/// The file is stored with the run, and data cannot create it.
pub const AUTO_CONTINUE: &str = "--auto-continue";

/// The keys of `config` that name nodes.
pub(super) const INTERRUPTS: [&str; 2] = ["interrupt_before", "interrupt_after"];

/// The nodes that `config` names as interrupts, and the nodes before or after which a run waits.
pub(super) struct Interrupts {
    /// Whether runs do not wait at interrupts.
    skipped: bool,
    before: Vec<(String, Span)>,
    after: Vec<(String, Span)>,
    /// The nodes before or after which a run waits.
    around: BTreeSet<Name>,
}

impl Interrupts {
    /// Makes the interrupts of a bundle, before its workflow is read.
    pub(super) fn of(bundle: &Bundle) -> Self {
        Self {
            skipped: bundle.named(AUTO_CONTINUE).is_some(),
            before: Vec::new(),
            after: Vec::new(),
            around: BTreeSet::new(),
        }
    }
}

impl<'n> Tea<'_, 'n> {
    /// Reads a key of `config` and returns true, if it is one of `INTERRUPTS`.
    pub(super) fn is_interrupts(&mut self, entry: &Entry) -> bool {
        if !INTERRUPTS.contains(&&*entry.key) {
            return false;
        }
        let hint = "for example interrupt_before: [review]";
        let names = self.items(Some(entry), hint).unwrap_or_default();
        let names = names.iter().filter_map(|name| {
            let text = name.as_str().map(str::to_owned);
            text.map(|text| (text, name.span))
        });
        let names: Vec<(String, Span)> = names.collect();
        match entry.key.as_str() {
            "interrupt_before" => self.interrupts.before.extend(names),
            _ => self.interrupts.after.extend(names),
        }
        true
    }

    /// Reports unknown nodes in `config`.
    /// This is an error, because a run would not wait at a node whose name is misspelt.
    pub(super) fn check_interrupts(&mut self) {
        let named = &self.interrupts;
        let names: Vec<_> = named.before.iter().chain(&named.after).cloned().collect();
        for (name, span) in names {
            if !self.nodes.iter().any(|(known, _)| *known == name) {
                let what = format!("unknown node '{name}' to wait at");
                let known = self.node_names();
                self.unknown("interrupt-undefined", what, span, &name, known);
            }
        }
    }

    /// Warns of an interrupt at which a run never waits.
    /// As in TEA, a loop calls its corrector without the interrupt.
    pub(super) fn never_waits(&mut self, step: &Step) {
        if self.interrupts.around.contains(&step.name) && self.correctors.contains(&*step.name) {
            let what = format!(
                "a run never waits at `{}`: a loop calls it as its corrector",
                step.name
            );
            let hint = "put `interrupt` on the node of the loop, or lead an edge to this node";
            self.warning("ignored-key", step.span, what, hint);
        }
    }

    /// Reads a node at the top level, with the waits before and after it.
    pub(super) fn with_interrupts(&mut self, node: &'n Node, place: &SourcePosition) -> Step {
        let named = |names: &[(String, Span)]| names.iter().any(|(name, _)| **name == *place.name);
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
        if self.interrupts.skipped || !before && !after {
            return self.node(node, place);
        }
        self.interrupts.around.insert(place.name.clone());
        let inside = SourcePosition {
            title: Some(place.shown().clone()),
            in_body: false,
            ..self.part(place, "node")
        };
        let inner = self.node(node, &inside);
        let label = inner.label.clone();
        let output = output_of(&inner.name);
        let mut steps = Vec::new();
        if before {
            steps.push(self.waits_for(place, "before"));
        }
        steps.push(inner);
        if after {
            steps.push(self.waits_for(place, "after"));
        }
        Step {
            output: Some(output),
            ..builder::step(place.clone(), &label, block(steps))
        }
    }

    fn waits_for(&mut self, place: &SourcePosition, part: &str) -> Step {
        let signal = anonymous_step(
            self.part(place, part),
            "interrupt",
            StepKind::AwaitSignal(AwaitedSignal::any(place.shown().clone())),
        );
        let brought = output_of(&signal.name);
        let changes = jinja(self, "{{ result if result is mapping else {} }}");
        let changes = merge(with_result(&brought, changes), place.span);
        let changes = self.assigned(place, &format!("{part}_state"), vec![changes]);
        anonymous_step(
            self.part(place, &format!("{part}_wait")),
            "block",
            block(vec![signal, changes]),
        )
    }
}
