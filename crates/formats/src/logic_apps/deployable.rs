//! Warnings about actions that Windlass runs and that Logic Apps does not accept (its reference of actions,
//! "InitializeVariable" and "Response").
//! This pass reads the tree `hir`, after the whole file was read.

use super::LogicApps;
use crate::actions::ActionReader;
use windlass_model::hir::{Block, Step, StepKind, Workflow};
use windlass_source::source::Span;

/// What encloses a step.
#[derive(Clone, Copy, PartialEq)]
enum Enclosing {
    Nothing,
    Scope,
    Loop,
}

impl ActionReader<'_, LogicApps> {
    pub(super) fn deployable(&mut self, workflow: &Workflow) {
        self.deployable_block(&workflow.body, Enclosing::Nothing);
    }

    fn deployable_block(&mut self, block: &Block, within: Enclosing) {
        for step in block.steps() {
            self.deployable_step(step, within);
            let inner = match step.kind {
                StepKind::Loop(_) | StepKind::ForEach(_) => Enclosing::Loop,
                _ if within == Enclosing::Loop => Enclosing::Loop,
                _ => Enclosing::Scope,
            };
            for block in step.blocks() {
                self.deployable_block(block, inner);
            }
        }
    }

    fn deployable_step(&mut self, step: &Step, within: Enclosing) {
        let makes = step.label.eq_ignore_ascii_case("InitializeVariable");
        if makes && within != Enclosing::Nothing {
            let hint = "to deploy it, initialize the variable at the top level, and set it here";
            self.no_deploy(
                "InitializeVariable inside of another action",
                step.span,
                hint,
            );
        }
        if !matches!(step.kind, StepKind::Respond(_)) {
            return;
        }
        if within == Enclosing::Loop {
            let hint = "to deploy it, store its answer in a variable, and respond after the loop";
            self.no_deploy("Response inside of a loop", step.span, hint);
        }
        if self.format.trigger_awaits_response == Some(false) {
            let hint = "to deploy it, start it with a trigger of the type Request";
            self.no_deploy("Response without a trigger Request", step.span, hint);
        }
    }

    pub(super) fn no_deploy(&mut self, what: &str, span: Span, hint: &str) {
        let what = format!("Logic Apps does not support {what}");
        self.warning("not-deployable", span, what, hint);
    }
}
