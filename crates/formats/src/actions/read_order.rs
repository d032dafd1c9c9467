//! Reports actions that read another action too early.
//! If the other action runs later, it never has a value when it is read. If it runs at the same time, it may not have
//! a value.

use super::action_fields::OrderedStep;
use super::{ActionReader, Format};
use std::collections::BTreeMap;
use windlass_expression::Reference;
use windlass_model::hir::{Block, Step, StepKind};
use windlass_source::source::Span;

impl<F: Format> ActionReader<'_, F> {
    /// Reports early reads between the actions of one scope.
    /// `follows` returns true if its first action runs after its second. If the format does not refuse early reads,
    /// they are only warnings, because a template may check first whether the value exists.
    pub(super) fn reads_out_of_order(
        &mut self,
        placed: &[OrderedStep],
        follows: impl Fn(usize, usize) -> bool,
    ) {
        let mut inside = BTreeMap::new();
        for (index, placed) in placed.iter().enumerate() {
            each_step(&placed.step, 0, &mut |name, foreaches| {
                inside.insert(name, (index, foreaches));
            });
        }
        let mut made: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (index, placed) in placed.iter().enumerate() {
            if F::CONVENTIONS.declares_variables
                && placed.step.label.eq_ignore_ascii_case("InitializeVariable")
            {
                let StepKind::Assign(assign) = &placed.step.kind else {
                    continue;
                };
                for assignment in &assign.assignments {
                    let makers = made.entry(assignment.variable.to_lowercase());
                    makers.or_default().push(index);
                }
            }
        }
        let mut found = Vec::new();
        let mut selves = Vec::new();
        let mut nested = Vec::new();
        for (index, own) in placed.iter().enumerate() {
            for mention in self.mentions.get(own.mentions.clone()).unwrap_or_default() {
                let (name, makers): (&String, &[usize]) = match &mention.reference {
                    Reference::Action(name) | Reference::Scope(name) => {
                        let read = inside.get(&name.to_lowercase());
                        let most = u32::from(matches!(mention.reference, Reference::Action(_)));
                        if let Some((at, _)) =
                            read.filter(|(at, foreaches)| *at != index && *foreaches > most)
                        {
                            nested.push((mention.span, name.clone(), *at));
                        }
                        let read = read.map(|(at, _)| std::slice::from_ref(at));
                        (name, read.unwrap_or_default())
                    }
                    Reference::Variable(name) | Reference::State(name) => {
                        let makers = made.get(&name.to_lowercase());
                        (name, makers.map(Vec::as_slice).unwrap_or_default())
                    }
                    _ => continue,
                };
                // Only an action without inner actions is checked: the actions inside of a container may read the
                // container.
                let is_whole = own.step.blocks().is_empty();
                if F::CONVENTIONS.refuses_early_reads
                    && is_whole
                    && matches!(mention.reference, Reference::Action(_))
                    && name.eq_ignore_ascii_case(&own.step.name)
                {
                    selves.push((mention.span, own.step.name.clone()));
                }
                let ran = |read: &usize| *read == index || follows(index, *read);
                if let Some(read) = makers.first()
                    && !makers.iter().any(ran)
                {
                    let (own, later) = (&own.step.name, follows(*read, index));
                    let before = placed.get(*read).map_or("", |read| &*read.step.name);
                    found.push((mention.span, later, name.clone(), own.clone(), before));
                }
            }
        }
        for (span, name) in selves {
            let what = format!("`{name}` reads itself, and has no outputs by then");
            let hint = "read an action that runs before it";
            self.error("self-reference", span, what, hint);
        }
        // After a foreach, an expression can read the list of an inner action's outputs, but no lists of lists.
        for (span, name, around) in nested {
            if F::CONVENTIONS.refuses_early_reads {
                let around = placed.get(around).map_or("", |around| &*around.step.name);
                let what = format!("`{name}` is too deep in `{around}` to be read here");
                let hint = format!("read it inside of its loop, or read outputs('{around}')");
                self.error("outside-loop", span, what, hint);
            }
        }
        for (span, later, name, own, before) in found {
            let (code, what, hint) = match later {
                true => (
                    "runs-later",
                    format!("`{name}` runs after `{own}`, which reads it"),
                    String::from("let the one that reads run later, or read another action"),
                ),
                false => (
                    "not-ordered",
                    format!("`{own}` reads `{name}`, which may not have run by then"),
                    format!("for example runAfter: {{ {before}: [Succeeded] }}"),
                ),
            };
            match F::CONVENTIONS.refuses_early_reads {
                true => self.error(code, span, what, hint),
                false => self.warning(code, span, what, hint),
            }
        }
    }
}

/// Calls `found` with the lower-case name of a step and of each step inside of it, at any depth, and with the number of
/// foreaches that enclose the step.
fn each_step(step: &Step, foreaches: u32, found: &mut dyn FnMut(String, u32)) {
    found(step.name.to_lowercase(), foreaches);
    let inner = foreaches + u32::from(matches!(step.kind, StepKind::ForEach(_)));
    for step in step.blocks().into_iter().flat_map(Block::steps) {
        each_step(step, inner, found);
    }
}

/// Returns true if the action `later` of a DAG runs after the action `earlier`.
/// `before` has the predecessors of each action.
pub(super) fn follows(before: &[Vec<(usize, Span)>], later: usize, earlier: usize) -> bool {
    let mut seen = vec![false; before.len()];
    let mut open = vec![later];
    while let Some(at) = open.pop() {
        for (next, _) in before.get(at).into_iter().flatten() {
            if *next == earlier {
                return true;
            }
            if let Some(seen) = seen.get_mut(*next)
                && !std::mem::replace(seen, true)
            {
                open.push(*next);
            }
        }
    }
    false
}
