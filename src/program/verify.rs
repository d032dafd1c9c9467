//! Checks that a program keeps the rules the machine relies on. A violation is a bug of the
//! compiler, never of an author: what fails here is not run.

use super::{Op, Program, ScopeId, ScopeKind, StateId};

/// Every broken rule, in words; empty for a sound program.
///
/// The rules: every id exists; a state leads only to its own scope or one around it (never into
/// a scope, which only `Enter` does); what ends a scope stands in a scope of that kind.
#[must_use]
pub fn verify(program: &Program) -> Vec<String> {
    let mut broken = Vec::new();
    if program.state(program.entry).is_none() {
        broken.push(format!("the entry {} does not exist", program.entry));
    }
    for (index, state) in program.states.iter().enumerate() {
        let id = StateId::from_index(index);
        let Some(scope) = program.scope(state.scope) else {
            broken.push(format!("{id} is in {}, which does not exist", state.scope));
            continue;
        };
        for target in targets(program, id) {
            match program.state(target) {
                None => broken.push(format!("{id} leads to {target}, which does not exist")),
                Some(to) if !is_around(program, state.scope, to.scope) => {
                    broken.push(format!("{id} jumps into {} at {target}", to.scope));
                }
                Some(_) => {}
            }
        }
        let fits = match &state.op {
            Op::Repeat => matches!(scope.kind, ScopeKind::Loop(_)),
            Op::Break => matches!(scope.kind, ScopeKind::Loop(_) | ScopeKind::ForEach { .. }),
            Op::Join => matches!(scope.kind, ScopeKind::Branch),
            Op::Leave => matches!(
                scope.kind,
                ScopeKind::Block
                    | ScopeKind::Graph { .. }
                    | ScopeKind::Try { .. }
                    | ScopeKind::Deadline { .. }
            ),
            Op::Succeed => matches!(scope.kind, ScopeKind::Root),
            Op::Enter(inner) => program
                .scope(*inner)
                .is_some_and(|inner| inner.parent == Some(state.scope)),
            _ => true,
        };
        if !fits {
            broken.push(format!(
                "{id} ({}) does not belong in {}",
                state.name, state.scope
            ));
        }
    }
    broken
}

/// Where control may go from a state without entering a scope.
fn targets(program: &Program, id: StateId) -> Vec<StateId> {
    let Some(state) = program.state(id) else {
        return Vec::new();
    };
    let mut targets = vec![state.next];
    match &state.op {
        Op::Branch(arms) => targets.extend(arms.iter().map(|(_, to)| *to)),
        Op::Switch { cases, .. } => targets.extend(cases.iter().map(|(_, to)| *to)),
        _ => {}
    }
    targets
}

fn is_around(program: &Program, inner: ScopeId, outer: ScopeId) -> bool {
    program.ancestry(inner).any(|(id, _)| id == outer)
}
