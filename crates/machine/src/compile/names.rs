//! Assigns an action id to every step, in the order of the file, and finds duplicates. An action's
//! inner actions follow it without a gap, so all actions inside another one are a range of ids.

use crate::program::{Action, ActionId, ScopeId};
use std::collections::HashMap;
use std::ops::Range;
use windlass_model::hir::{Block, Secure, Step, StepKind, Workflow};
use windlass_model::model::Secured;
use windlass_source::diagnostic::Diagnostic;

/// All actions of a workflow, and the range of actions inside each.
pub(super) struct Names {
    actions: Vec<Action>,
    action_ranges: Vec<Range<u32>>,
    ids: HashMap<String, ActionId>,
}

impl Names {
    pub(super) fn id(&self, step: &Step) -> Option<ActionId> {
        self.find(&step.name)
    }

    pub(super) fn find(&self, name: &str) -> Option<ActionId> {
        self.ids.get(&name.to_lowercase()).copied()
    }

    /// Returns the actions inside an action, at any depth.
    pub(super) fn action_range(&self, action: ActionId) -> Range<u32> {
        self.action_ranges
            .get(action.index())
            .cloned()
            .unwrap_or(0..0)
    }

    /// Returns all actions.
    pub(super) fn all(&self) -> Range<u32> {
        0..u32::try_from(self.actions.len()).unwrap_or(u32::MAX)
    }

    /// Returns the actions, with the information which parts of them are secure. An inner action inherits this from its
    /// outer action.
    pub(super) fn into_actions(mut self, secure: &[Secure]) -> Vec<Action> {
        for one in secure {
            let Some(id) = self.find(&one.step) else {
                continue;
            };
            let action_range = self.action_range(id);
            for id in [id.0].into_iter().chain(action_range) {
                if let Some(action) = self.actions.get_mut(ActionId(id).index()) {
                    action.secure.inputs |= one.what.inputs;
                    action.secure.outputs |= one.what.outputs;
                }
            }
        }
        self.actions
    }
}

pub(super) fn declare(workflow: &Workflow) -> Result<Names, Vec<Diagnostic>> {
    let mut names = Names {
        actions: Vec::new(),
        action_ranges: Vec::new(),
        ids: HashMap::new(),
    };
    let mut mistakes = Vec::new();
    for all in workflow.blocks() {
        block(&mut names, &mut mistakes, all);
    }
    if mistakes.is_empty() {
        Ok(names)
    } else {
        Err(mistakes)
    }
}

fn block(names: &mut Names, mistakes: &mut Vec<Diagnostic>, block: &Block) {
    block.steps().for_each(|one| step(names, mistakes, one));
}

fn step(names: &mut Names, mistakes: &mut Vec<Diagnostic>, step: &Step) {
    if step.is_repeat {
        return;
    }
    let id = ActionId::from_index(names.actions.len());
    let before = names.ids.insert(step.name.to_lowercase(), id);
    if let Some(first) = before.and_then(|first| names.actions.get(first.index())) {
        let at = first.span;
        mistakes.push(
            Diagnostic::error(
                "duplicate-name",
                step.span,
                format!(
                    "a step named `{}` exists already, at line {}",
                    step.name, at.line
                ),
            )
            .hint("names are compared without case and are unique in the whole workflow"),
        );
    }
    names.actions.push(Action {
        name: step.name.clone(),
        label: step.label.clone(),
        title: step.title.clone(),
        output: step.output.clone(),
        scope: ScopeId(0),
        anonymous: step.anonymous,
        gives_inputs: match step.kind {
            StepKind::Compose(_) => step.label.eq_ignore_ascii_case("compose"),
            StepKind::Respond(_) => true,
            _ => false,
        },
        secure: Secured::default(),
        span: step.span,
    });
    names.action_ranges.push(0..0);
    step.blocks()
        .into_iter()
        .for_each(|inner| block(names, mistakes, inner));
    let end = u32::try_from(names.actions.len()).unwrap_or(u32::MAX);
    if let Some(range) = names.action_ranges.get_mut(id.index()) {
        *range = id.0 + 1..end;
    }
}
