//! Warnings about probable mistakes in a valid workflow.
//! These are conditions that nothing can change, unreachable actions, and polls without a pause. This pass reads the
//! tree `hir`, after the whole file was read.

use super::{ActionReader, Format};
use std::collections::{BTreeMap, BTreeSet};
use windlass_expression::{Reference, Template};
use windlass_model::hir::{Block, DagStep, Loop, Step, StepKind, Workflow};
use windlass_model::model::IF_CHANGED;

/// The functions whose value changes although no action changes it.
const RESTLESS: [&str; 5] = [
    "utcnow(",
    "rand(",
    "guid(",
    "getfuturetime(",
    "getpasttime(",
];

impl<F: Format> ActionReader<'_, F> {
    pub(super) fn lint(&mut self, workflow: &Workflow) {
        let mut everywhere = BTreeMap::new();
        for block in workflow.blocks() {
            assigned(block, &mut everywhere);
        }
        for block in workflow.blocks() {
            self.lint_block(block, &everywhere);
            self.outside_of_loops(block);
        }
    }

    /// Warns of inputs that read an earlier iteration, in actions outside of loops.
    fn outside_of_loops(&mut self, block: &Block) {
        for step in block.steps() {
            if let StepKind::Call(call) = &step.kind
                && &*call.executor == "http"
                && call.inputs.part_of(IF_CHANGED).is_some()
            {
                let what = format!(
                    "`{IF_CHANGED}` of `{}` has no effect: no loop is around it",
                    step.name
                );
                let hint = "it names the version of the answer in the iteration before: put the \
                            action into `until` or `while`";
                self.warning("no-loop", step.span, what, hint);
            }
            if !matches!(step.kind, StepKind::Loop(_)) {
                let inner = step.blocks().into_iter();
                inner.for_each(|inner| self.outside_of_loops(inner));
            }
        }
    }

    fn lint_block(&mut self, block: &Block, everywhere: &BTreeMap<String, usize>) {
        match block {
            Block::Sequence(steps) => self.after_the_end(steps),
            Block::Dag(steps) => self.downstream_of_the_end(steps),
            Block::Graph(_) => {}
        }
        for step in block.steps() {
            if let StepKind::Loop(spec) = &step.kind {
                self.lint_loop(step, spec, everywhere);
            }
            for inner in step.blocks() {
                self.lint_block(inner, everywhere);
            }
        }
    }

    fn after_the_end(&mut self, steps: &[Step]) {
        let ends = |step: &Step| matches!(step.kind, StepKind::Terminate { .. });
        let mut rest = steps.iter().skip_while(|step| !ends(step));
        if let (Some(end), Some(next)) = (rest.next(), rest.next()) {
            self.unreachable(next, end);
        }
    }

    fn downstream_of_the_end(&mut self, steps: &[DagStep]) {
        for end in steps {
            if !matches!(end.step.kind, StepKind::Terminate { .. }) {
                continue;
            }
            let follows = |step: &&DagStep| {
                let mut after = step.after.iter();
                after.any(|after| after.name.eq_ignore_ascii_case(&end.step.name))
            };
            for next in steps.iter().filter(follows) {
                self.unreachable(&next.step, &end.step);
            }
        }
    }

    fn unreachable(&mut self, step: &Step, end: &Step) {
        let what = format!("`{}` never runs: `{}` ends the run", step.name, end.name);
        let hint = "remove it, or put the terminate action behind a condition";
        self.warning("unreachable", step.span, what, hint);
    }

    fn lint_loop(&mut self, step: &Step, spec: &Loop, everywhere: &BTreeMap<String, usize>) {
        let span = self
            .conditions
            .get(&step.name)
            .copied()
            .unwrap_or(step.span);
        let mut inside = BTreeMap::new();
        assigned(&spec.body, &mut inside);
        let mut names = BTreeSet::new();
        step_names(&spec.body, &mut |name| {
            names.insert(name);
        });
        let text = spec.condition_text.to_ascii_lowercase();
        let restless = RESTLESS.iter().any(|function| text.contains(function));
        let reads = spec.stop_when.references();
        let changes = |reference: &Reference| match reference {
            // An action of this run or of another run may write the state.
            Reference::State(_) if !self.state.is_empty() => true,
            Reference::Variable(name) | Reference::State(name) => {
                let name = name.to_lowercase();
                let outside = everywhere.get(&name).copied().unwrap_or(0)
                    > inside.get(&name).copied().unwrap_or(0);
                inside.contains_key(&name)
                    || is_loop_variable(&name)
                    // An action that runs at the same time may set the variable, also outside of the loop.
                    || (outside && self.concurrent)
            }
            Reference::Action(name) | Reference::Scope(name) => {
                names.contains(&name.to_lowercase())
            }
            Reference::Loop(_)
            | Reference::LoopMember(_)
            | Reference::Items(_)
            | Reference::Item
            | Reference::Root(_)
            | Reference::Anything => true,
            Reference::Input(_)
            | Reference::ActionMember(_)
            | Reference::Parameter(_)
            | Reference::Secret(_)
            | Reference::Environment(_) => false,
        };
        // A variable that nothing sets has another diagnostic, so the condition is not reported here.
        let unset = |reference: &Reference| {
            variable_name(reference).is_some_and(|name| !self.has_variable(name))
        };
        let unset = reads.iter().any(unset);
        if !restless && !unset && !reads.iter().any(changes) && !breaks(&spec.body) {
            let what = format!(
                "nothing in the body of `{}` changes its condition",
                step.name
            );
            let hint = match reads.iter().find_map(variable_name) {
                Some(name) => format!("set the variable `{name}` in the body with setVariable"),
                None => {
                    String::from("let it read a variable that the body sets, or an action's output")
                }
            };
            self.reader.warning("frozen-condition", span, what, hint);
        }
        if let Some(pages) = &spec.pages {
            let reads = pages.token.references();
            if !reads.iter().any(changes) && !reads.is_empty() {
                let what = format!("nothing in the body of `{}` changes its `page`", step.name);
                let hint = "its second iteration would be a repetition: let `page` read what leads \
                            to the next page";
                self.reader.warning("frozen-page", step.span, what, hint);
            }
        }
        self.lint_poll(step, spec, &reads, &inside, &names);
    }

    /// Warns of a loop that repeats the same GET request without a pause.
    fn lint_poll(
        &mut self,
        step: &Step,
        spec: &Loop,
        reads: &[Reference],
        inside: &BTreeMap<String, usize>,
        names: &BTreeSet<String>,
    ) {
        if spec.delay.is_some() || waits(&spec.body) {
            return;
        }
        let same_each_time = |inputs: &Template| {
            inputs.references().iter().all(|reference| match reference {
                Reference::State(_) if !self.state.is_empty() => false,
                Reference::Variable(name) | Reference::State(name) => {
                    let name = name.to_lowercase();
                    !inside.contains_key(&name) && !is_loop_variable(&name)
                }
                Reference::Action(name) | Reference::Scope(name) => {
                    !names.contains(&name.to_lowercase())
                }
                Reference::Input(_)
                | Reference::ActionMember(_)
                | Reference::Parameter(_)
                | Reference::Secret(_)
                | Reference::Environment(_) => true,
                Reference::Loop(_)
                | Reference::LoopMember(_)
                | Reference::Items(_)
                | Reference::Item
                | Reference::Root(_)
                | Reference::Anything => false,
            })
        };
        let polls = |polled: &&Step| match &polled.kind {
            StepKind::Call(call) => {
                let read = |reference: &Reference| matches!(reference, Reference::Action(name) if name.eq_ignore_ascii_case(&polled.name));
                &*call.executor == "http"
                    && call
                        .inputs
                        .member("method")
                        .is_none_or(|method| method.eq_ignore_ascii_case("GET"))
                    && reads.iter().any(read)
                    && same_each_time(&call.inputs)
            }
            _ => false,
        };
        if let Some(polled) = spec.body.steps().find(polls) {
            let what = format!("`{}` polls `{}` without a pause", step.name, polled.name);
            let hint = format!("set a delay for `{}`: for example delay: 10s", step.name);
            self.warning("poll-without-delay", polled.span, what, hint);
        }
    }
}

fn variable_name(reference: &Reference) -> Option<&str> {
    match reference {
        Reference::Variable(name) | Reference::State(name) => Some(name),
        _ => None,
    }
}

fn is_loop_variable(name: &str) -> bool {
    super::names::LOOP_VARIABLES
        .iter()
        .any(|known| name.ends_with(&known.to_lowercase()))
}

/// Counts the assignments of each variable in a block, at any depth.
fn assigned(block: &Block, found: &mut BTreeMap<String, usize>) {
    for step in block.steps() {
        let assignments = match &step.kind {
            StepKind::Assign(assign) => assign.assignments.as_slice(),
            StepKind::Call(call) => call.then.as_slice(),
            _ => &[],
        };
        for assignment in assignments {
            *found.entry(assignment.variable.to_lowercase()).or_default() += 1;
        }
        for inner in step.blocks() {
            assigned(inner, found);
        }
    }
}

/// Calls `found` with the lower-case name of each step in a block, at any depth.
fn step_names(block: &Block, found: &mut dyn FnMut(String)) {
    for step in block.steps() {
        found(step.name.to_lowercase());
        for inner in step.blocks() {
            step_names(inner, found);
        }
    }
}

/// Returns true if a step in the body of a loop can end the loop or the run.
fn breaks(block: &Block) -> bool {
    block.steps().any(|step| {
        let ends = matches!(step.kind, StepKind::Terminate { .. });
        ends || step.break_when.is_some() || step.blocks().into_iter().any(breaks)
    })
}

fn waits(block: &Block) -> bool {
    block.steps().any(|step| {
        let wait = matches!(step.kind, StepKind::Wait(_) | StepKind::AwaitSignal(_));
        wait || step.blocks().into_iter().any(waits)
    })
}
