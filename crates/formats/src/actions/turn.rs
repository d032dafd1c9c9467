//! The step in which a run waits for its turn, if only some runs of a workflow may proceed at the same time.

use super::{ActionReader, Format};
use crate::builder::step;
use windlass_model::hir::{Block, Step, StepKind, Workflow};
use windlass_model::model::{AwaitedSignal, Concurrency, ConcurrencyPolicy, Name, TURN_SIGNAL};
use windlass_source::source::Span;

impl<F: Format> ActionReader<'_, F> {
    /// With the policy `queue`, adds a step before the first action that waits until the run may proceed.
    pub(crate) fn await_turn(&mut self, workflow: &mut Workflow, span: Span) {
        let waits = |of: &Concurrency| of.policy == ConcurrencyPolicy::Queue;
        if !workflow.concurrency.as_ref().is_some_and(waits) {
            return;
        }
        let name = Name::from(TURN_SIGNAL);
        self.declare(&name, span);
        let signal = AwaitedSignal::any(name.clone());
        let wait = hidden(name, StepKind::AwaitSignal(signal), span);
        let body = std::mem::replace(&mut workflow.body, Block::Sequence(Vec::new()));
        let mut steps = vec![wait];
        match body {
            Block::Sequence(rest) => steps.extend(rest),
            other => {
                let name = Name::from("windlass.body");
                self.declare(&name, span);
                steps.push(hidden(name, StepKind::Block(other), span));
            }
        }
        workflow.body = Block::Sequence(steps);
    }
}

fn hidden(name: Name, kind: StepKind, span: Span) -> Step {
    Step {
        anonymous: true,
        ..step(name, "waitForSignal", kind, span)
    }
}
