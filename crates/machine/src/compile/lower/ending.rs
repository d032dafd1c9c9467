//! Lowers the steps at the end of a workflow, and the steps that handle the failure of an action.

use super::Lowerer;
use crate::program::{Ending, Op, ScopeId, ScopeKind, StateId};
use windlass_expression::{Binding, Condition, Template, Value};
use windlass_model::hir::{Block, Step, Workflow};
use windlass_model::model::{FAILED_ENDINGS, FAILURE, Name, Status, fault_kind};

impl Lowerer<'_> {
    /// Lowers the body, and the call that the workflow makes before it succeeds.
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

    /// Lowers the body in a scope of its own. If the body fails, the workflow's ending follows.
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
        let cleanup = self.lower_cleanup(root, [failed, ended, end]);
        let [failed, ended] = cleanup.map_or([failed, ended], |cleanup| [cleanup; 2]);
        let kind = ScopeKind::Try {
            retry: None,
            catch: Some((Name::from(FAILURE), failed)),
        };
        let body = self.scope(name, Some(root), kind);
        let leave = self.state(name, body, Op::Leave, *span);
        // The run's outputs are computed at its end. Also compute them here, at the end of the body, so that a fault of
        // an output leads to the handling of failures.
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
            cancelled: cleanup,
        };
        (self.set_next(enter, ended), Some(ending))
    }

    /// Lowers the cleanup, which is the first part of the ending. After a run was cancelled, only the cleanup is
    /// executed.
    fn lower_cleanup(
        &mut self,
        root: ScopeId,
        [failed, ended, end]: [StateId; 3],
    ) -> Option<StateId> {
        let Workflow {
            cleanup,
            name,
            span,
            ..
        } = self.workflow;
        let first = cleanup.steps().next()?;
        let failure = Template::binding(Binding::Root(Name::from("variables"))).part(FAILURE);
        let is = |key: &str, value: &str| {
            let value = Template::constant(Value::text(value));
            Template::call("equals", vec![failure.clone().part(key), value])
        };
        // Compares the status and the kind of the fault, because an action may fail with any kind.
        let was_cancelled = || {
            let both = vec![
                is("status", Status::Cancelled.as_str())?,
                is("kind", fault_kind::CANCELLED)?,
            ];
            Template::call("and", both)
        };
        let arms = [
            (was_cancelled(), end),
            (is("status", Status::Failed.as_str()), failed),
            (is("status", Status::TimedOut.as_str()), failed),
        ];
        let arms = arms.into_iter().filter_map(|(is, to)| {
            let is = is.and_then(Condition::from_template);
            Some((is.ok()?, to))
        });
        let op = Op::Branch(arms.collect());
        let choice = self.state(name, root, op, *span);
        self.set_next(choice, ended);
        self.in_cleanup = true;
        let entry = self.lower_handler(cleanup, first, root, choice, ScopeKind::Block);
        self.in_cleanup = false;
        Some(entry)
    }

    /// Lowers steps whose failure has only one effect: a variable is set to the error.
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

    /// Lowers steps in a scope that does not belong to an action.
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
