//! Compiles `hir` to a `program`: names become ids, structure becomes states and scopes, and the result is verified.
//! Nothing here reads a file or runs anything.

mod lower;
mod names;
mod number;

use crate::program::{self, Caps, Program, ProgramHash, ScopeKind};
use windlass_model::hir::Workflow;
use windlass_source::diagnostic::Diagnostic;

/// Compiles a workflow. `hash` is the hash of its sources, to which a run is pinned.
///
/// # Errors
/// Mistakes of the author that are found only when names are resolved: duplicate names, edges to unknown nodes, a
/// `break_when` outside of a loop.
pub fn compile(
    workflow: &Workflow,
    hash: ProgramHash,
    caps: Caps,
) -> Result<Program, Vec<Diagnostic>> {
    let names = names::declare(workflow)?;
    let lowered = lower::lower(workflow, &names)?;
    let actions = names.into_actions(&workflow.secure);
    let mut program = Program {
        hash,
        name: workflow.name.clone(),
        format: workflow.dialect.as_str(),
        rules: workflow.rules,
        entry: lowered.entry,
        ending: lowered.ending,
        states: lowered.states,
        scopes: lowered.scopes,
        by_name: Program::sorted_by_name(&actions),
        actions,
        variables: workflow.variables.clone(),
        state_values: workflow.state.clone(),
        last_run: workflow.last_run,
        places: workflow.places.clone(),
        types: workflow.types.clone(),
        parameters: workflow.parameters.clone(),
        trigger: workflow.trigger.clone(),
        schedule: workflow.schedule.clone(),
        event_triggers: workflow.event_triggers.clone(),
        concurrency: workflow.concurrency.clone(),
        rates: workflow.rates.clone(),
        inputs: workflow.inputs.clone(),
        outputs: workflow.outputs.clone(),
        handlers: workflow.handlers.clone(),
        links: workflow.links.clone(),
        environment: environment(workflow, false),
        environment_secrets: environment(workflow, true),
        secure: !workflow.secure.is_empty()
            || workflow
                .parameters
                .iter()
                .any(|(_, value)| value.has_secure()),
        caps,
    };
    for (id, children) in lowered.children {
        let Some(scope) = program.scopes.get_mut(id.index()) else {
            continue;
        };
        // A parallel lists the actions of its branches, but it does not contain them directly: the branches do.
        if !matches!(scope.kind, ScopeKind::Parallel { .. }) {
            for action in &children {
                if let Some(action) = program.actions.get_mut(action.index()) {
                    action.scope = id;
                }
            }
        }
        scope.children = children;
    }
    number::renumber(&mut program);
    match program::verify(&program).as_slice() {
        [] => Ok(program),
        broken => Err(vec![
            Diagnostic::error(
                "compiler-bug",
                workflow.span,
                format!(
                    "this workflow compiles to an unsound program: {}",
                    broken.join("; ")
                ),
            )
            .hint("this is a bug of Windlass, not of the file: please report it with the file"),
        ]),
    }
}

/// Returns the environment variables that are secrets, or, if `secret` is false, the others.
fn environment(workflow: &Workflow, secret: bool) -> Vec<windlass_model::model::Name> {
    let reads = workflow.environment.iter();
    let wanted = reads.filter(|read| read.secret == secret);
    wanted.map(|read| read.name.clone()).collect()
}
