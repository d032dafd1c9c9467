//! Checks where a workflow of any format names secrets.
//! Only the inputs of actions may name secrets, because everything else is stored. The check only reports, and never
//! changes anything.

use std::ops::Range;
use windlass_expression::{Condition, Reference, Template, is_secret_name, of_callback};
use windlass_model::hir::{
    Assignment, Block, Call, ForEach, Graph, Loop, Outputs, Step, StepKind, Wait, Workflow,
};
use windlass_model::model::{Delay, Expect, WORKFLOW};
use windlass_source::diagnostic::{Diagnostic, Diagnostics};
use windlass_source::source::Span;

/// Reports secrets in all parts of a workflow that are stored.
pub(super) fn check(workflow: &Workflow, diagnostics: &mut Diagnostics) {
    let mut check = Check {
        workflow,
        diagnostics,
    };
    for (name, template) in &workflow.variables {
        let what = format!("the variable `{name}`");
        check.check_stored(template, workflow.span, &what);
    }
    if let Outputs::Template(template) = &workflow.outputs {
        check.check_stored(template, workflow.span, "the outputs of the workflow");
    }
    let blocks = workflow.blocks().into_iter();
    blocks.for_each(|block| check.block(block));
}

struct Check<'a> {
    workflow: &'a Workflow,
    diagnostics: &'a mut Diagnostics,
}

impl Check<'_> {
    fn block(&mut self, block: &Block) {
        if let Block::Graph(Graph { nodes, .. }) = block {
            for edge in nodes.iter().flat_map(|node| &node.edges) {
                self.tested(edge.when.as_ref(), edge.span);
            }
        }
        block.steps().for_each(|step| self.step(step));
    }

    fn step(&mut self, step: &Step) {
        let span = step.span;
        self.maybe(step.output.as_ref(), span);
        self.maybe(step.timeout.as_ref(), span);
        self.tested(step.break_when.as_ref(), span);
        self.tested(step.continue_when.as_ref(), span);
        if let Some(Expect::That(tested) | Expect::NotFailed(tested)) = &step.expect {
            self.tested(Some(tested), span);
        }
        if let Some(retry) = &step.retry {
            self.tested(retry.when.as_ref(), retry.span);
            self.check_stored(&retry.count, retry.span, "the count of retries");
        }
        match &step.kind {
            StepKind::Call(call) => self.call(call, span),
            StepKind::Compose(template) | StepKind::Respond(template) => {
                self.check_stored(template, span, &format!("`{}`", step.name));
            }
            StepKind::Assign(assign) => {
                self.assignments(&assign.assignments);
                let assigned = assign.assignments.iter();
                let assigned: Vec<_> = assigned.flat_map(|one| one.value.references()).collect();
                // What an assignment reads is reported once.
                let output = assign.output.as_ref().filter(|output| {
                    let mut reads = output.references().into_iter();
                    !reads.all(|read| assigned.contains(&read))
                });
                self.maybe(output, span);
            }
            StepKind::Wait(Wait::For(template) | Wait::Until(template)) => {
                self.check_stored(template, span, "a wait");
            }
            StepKind::If { arms, .. } => arms
                .iter()
                .for_each(|(condition, _)| self.tested(Some(condition), span)),
            StepKind::Switch { on, .. } => self.check_stored(on, span, "a switch"),
            StepKind::Loop(spec) => self.a_loop(spec, span),
            StepKind::ForEach(spec) => {
                let ForEach { items, count, .. } = &**spec;
                self.check_stored(items, span, "the items of a foreach");
                self.maybe(count.as_ref(), span);
            }
            StepKind::Terminate { error, .. } => self.maybe(error.as_ref(), span),
            StepKind::Raise { message, .. } => self.check_stored(message, span, "a message"),
            StepKind::AwaitSignal(awaited) => {
                let question = awaited.question.as_deref();
                self.maybe(question.and_then(|question| question.title.as_ref()), span);
            }
            StepKind::Block(_)
            | StepKind::Parallel { .. }
            | StepKind::Catch { .. }
            | StepKind::Nothing => {}
        }
        let inner = step.blocks();
        inner.into_iter().for_each(|block| self.block(block));
    }

    /// Checks a call.
    /// Its inputs may name secrets, but the name of each secret must be known before the run.
    fn call(&mut self, call: &Call, span: Span) {
        self.maybe(call.attempt_timeout.as_ref(), span);
        self.assignments(&call.then);
        if &*call.executor == WORKFLOW {
            // The inputs of this call are stored with the run that it starts, so they must not name secrets.
            self.check_stored(&call.inputs, span, "the inputs of a workflow");
            return;
        }
        for reference in call.inputs.references() {
            // A secret of the environment is not checked here, because the name of a variable is not the name of a
            // secret.
            let Reference::Secret(name) = reference else {
                continue;
            };
            let callback = of_callback(&name);
            if is_secret_name(&name) || callback.is_some_and(|signal| !signal.is_empty()) {
                continue;
            }
            let (what, hint) = if callback.is_some() {
                (
                    String::from("which signal this is, is known only when it runs"),
                    "write its name itself: callbackUrl('approved')",
                )
            } else if name.is_empty() {
                (
                    String::from("which secret this is, is known only when it runs"),
                    "write its name itself: secret('TOKEN')",
                )
            } else {
                (
                    format!("`{name}` cannot be the name of a secret"),
                    "a name has letters, digits, `_`, `-` and `.`",
                )
            };
            let mistake = Diagnostic::error("secret-name", span, what);
            self.diagnostics.push(mistake.hint(hint));
        }
    }

    fn a_loop(&mut self, spec: &Loop, span: Span) {
        self.tested(Some(&spec.stop_when), span);
        self.check_stored(&spec.count, span, "the count of a loop");
        self.maybe(spec.timeout.as_ref(), span);
        self.maybe(spec.tokens.as_ref(), span);
        self.maybe(spec.cost.as_ref(), span);
        match &spec.delay {
            Some(Delay::Every(delay)) => self.maybe(Some(delay), span),
            Some(Delay::Server {
                interval,
                requested,
                ..
            }) => {
                self.maybe(Some(requested), span);
                self.maybe(interval.as_ref(), span);
            }
            Some(Delay::Backoff(_)) | None => {}
        }
        let unchanged = spec.unchanged.as_ref();
        self.maybe(unchanged.and_then(|limit| limit.of.as_ref()), span);
        for keep in &spec.keep {
            self.check_stored(&keep.value, span, "the collected values of a loop");
        }
    }

    fn assignments(&mut self, assignments: &[Assignment]) {
        for assignment in assignments {
            // An assignment of many variables has no name.
            let what = match &*assignment.variable {
                "" => String::from("an assignment"),
                name => format!("the variable `{name}`"),
            };
            self.check_stored(&assignment.value, assignment.span, &what);
        }
    }

    fn maybe(&mut self, template: Option<&Template>, span: Span) {
        if let Some(template) = template {
            self.check_stored(template, span, "this");
        }
    }

    fn check_stored(&mut self, template: &Template, span: Span, what: &str) {
        self.report(template.references(), span, what);
    }

    fn tested(&mut self, condition: Option<&Condition>, span: Span) {
        if let Some(condition) = condition {
            self.report(condition.references(), span, "a condition");
        }
    }

    fn report(&mut self, references: Vec<Reference>, span: Span, what: &str) {
        for reference in references {
            let (message, hint) = match reference {
                Reference::Secret(name) if of_callback(&name).is_some() => (
                    format!("{what} reads the address of a callback, and would be stored"),
                    "only what an action is given can hold such an address: use it in the `inputs` of \
                     http, shell, activity, …",
                ),
                Reference::Secret(name) => (read_outside(what, &name), OUTSIDE_HINT),
                Reference::Environment(name) if self.workflow.is_secret(&name) => (
                    format!("{what} reads `env.{name}`, which is a key, and would be stored"),
                    "what is called a key, or is used as one anywhere in the file, can only be \
                     given to an action: write it into its `with`",
                ),
                _ => continue,
            };
            self.diagnostics
                .push(Diagnostic::error("secret-outside", span, message).hint(hint));
        }
    }
}

const OUTSIDE_HINT: &str = "only what an action is given can hold a secret: use it in the `inputs` of http, shell, activity, …";

fn read_outside(what: &str, name: &str) -> String {
    format!("{what} reads the secret `{name}`, and would be stored")
}

/// Returns the mistake of a condition with `${secret:NAME}`, and the range of this part. It would be compared as it is
/// written.
pub(super) fn secret_in_condition(text: &str) -> Option<(Range<usize>, String, &'static str)> {
    const START: &str = "${secret:";
    let start = text.find(START)?;
    let (name, _) = text.get(start + START.len()..)?.split_once('}')?;
    let end = start + START.len() + name.len() + 1;
    Some((start..end, read_outside("a condition", name), OUTSIDE_HINT))
}
