//! What a workflow does at its end, and what an action does about its failure.

use super::Lowerer;
use crate::program::{Ending, Op, ScopeId, ScopeKind, StateId};
use windlass_expression::Template;
use windlass_model::hir::{Block, Step, Workflow};
use windlass_model::model::{FAILED_ENDINGS, FAILURE, Name};

impl Lowerer<'_> {
    /// The body, and what is done before it has succeeded.
    pub(super) fn lower_body(
        &mut self,
        scope: ScopeId,
        end: StateId,
        outputs: Vec<Template>,
    ) -> StateId {
        let Workflow {
            body, name, span, ..
        } = self.workflow;
        let last = self.at_success(scope, end, outputs, *span);
        self.block(body, name, *span, scope, last)
    }

    /// The body in a scope of its own, whose failure leads to what is done at the end.
    pub(super) fn ending(
        &mut self,
        root: ScopeId,
        end: StateId,
        outputs: Vec<Template>,
    ) -> (StateId, Option<Ending>) {
        let Workflow { name, span, .. } = self.workflow;
        let [on_failure, on_finish] = FAILED_ENDINGS;
        let ended = self.lower_guarded(&self.workflow.on_finish, on_finish, root, end);
        let failed = self.lower_guarded(&self.workflow.on_failure, on_failure, root, ended);
        let kind = ScopeKind::Try {
            retry: None,
            catch: Some((Name::from(FAILURE), failed)),
        };
        let body = self.scope(name, Some(root), kind);
        let leave = self.state(name, body, Op::Leave, *span);
        // What the run gives is computed at its end; that it can be is seen while it may still fail.
        let checked = outputs.iter().cloned().map(Op::Compose);
        let last = checked.fold(leave, |next, op| {
            let check = self.state(name, body, op, *span);
            self.set_next(check, next)
        });
        let entry = self.lower_body(body, last, outputs);
        self.begin(body, entry, ended);
        let enter = self.state(name, root, Op::Enter(body), *span);
        let ending = Ending {
            body,
            failed,
            ended,
        };
        (self.set_next(enter, ended), Some(ending))
    }

    /// Steps whose failure changes nothing but a variable, which has the error then.
    fn lower_guarded(
        &mut self,
        block: &Block,
        error: &str,
        scope: ScopeId,
        next: StateId,
    ) -> StateId {
        let Some(first) = block.steps().next() else {
            return next;
        };
        let kind = ScopeKind::Try {
            retry: None,
            catch: Some((Name::from(error), next)),
        };
        self.lower_handler(block, first, scope, next, kind)
    }

    /// Steps in a scope that no action has.
    pub(super) fn lower_handler(
        &mut self,
        block: &Block,
        step: &Step,
        scope: ScopeId,
        next: StateId,
        kind: ScopeKind,
    ) -> StateId {
        let mut own = scope;
        let entry = self.wrap_in_scope(step, scope, next, kind, |to, inside, leave| {
            own = inside;
            to.block(block, &step.name, step.span, inside, leave)
        });
        self.set_children(own, &[block]);
        entry
    }
}
