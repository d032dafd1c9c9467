//! Checks the rules that every program must meet, because the machine relies on them. If a program breaks one, this is
//! a bug of the compiler, never a mistake of an author, and the program is not run.

use super::{Op, Program, ScopeId, ScopeKind, State, StateId};

/// Returns a message for each broken rule; returns none if the program meets all rules.
///
/// The rules: every id exists. The state that follows a state is in the same scope. Only a jump (`Branch`, `Switch`,
/// `FollowUp`) may lead to an enclosing scope, and only `Enter` leads into a scope. Except in forks, the body of a scope
/// begins with a state in the scope. The scope's exit is in its enclosing scope. A state that ends a scope is in a scope
/// of the matching kind.
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
        if let Some(next) = program.state(state.next)
            && next.scope != state.scope
        {
            broken.push(format!(
                "{id} is followed by {}, in {}",
                state.next, next.scope
            ));
        }
        for target in targets(state) {
            match program.state(target) {
                None => broken.push(format!("{id} leads to {target}, which does not exist")),
                Some(to) if !is_around(program, state.scope, to.scope) => {
                    broken.push(format!("{id} jumps into {} at {target}", to.scope));
                }
                Some(_) => {}
            }
        }
        let fits = match &state.op {
            Op::Repeat => matches!(scope.kind, ScopeKind::Loop(..)),
            Op::Break => matches!(scope.kind, ScopeKind::Loop(..) | ScopeKind::ForEach { .. }),
            Op::Join => matches!(scope.kind, ScopeKind::Branch),
            Op::Leave => matches!(
                scope.kind,
                ScopeKind::Block
                    | ScopeKind::FollowUp
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
    for index in 0..program.scopes.len() {
        scope_rules(program, ScopeId::from_index(index), &mut broken);
    }
    broken
}

/// Returns the states that may follow a state without entering a scope.
fn targets(state: &State) -> Vec<StateId> {
    let mut targets = vec![state.next];
    match &state.op {
        Op::Branch(arms) => targets.extend(arms.iter().map(|(_, to)| *to)),
        Op::FollowUp { to, .. } => targets.push(*to),
        Op::Switch { cases, .. } => targets.extend(cases.iter().map(|(_, to)| *to)),
        _ => {}
    }
    targets
}

fn scope_rules(program: &Program, id: ScopeId, broken: &mut Vec<String>) {
    let Some(scope) = program.scope(id) else {
        return;
    };
    let scope_of = |state: StateId| program.state(state).map(|state| state.scope);
    let forks = matches!(
        scope.kind,
        ScopeKind::ForEach { .. } | ScopeKind::Parallel { .. } | ScopeKind::Dag { .. }
    );
    if !forks && scope_of(scope.body) != Some(id) {
        broken.push(format!("{id} ({}) begins outside of itself", scope.name));
    }
    // A branch and the root have no exit in an enclosing scope: they end with a last state of their own.
    let leads_to = match scope.kind {
        ScopeKind::Branch | ScopeKind::Root => Some(id),
        _ => scope.parent,
    };
    if scope_of(scope.exit) != leads_to {
        broken.push(format!("{id} ({}) is left to {}", scope.name, scope.exit));
    }
    if let ScopeKind::Try {
        catch: Some((_, to)),
        ..
    } = &scope.kind
        && scope_of(*to) != scope.parent
    {
        broken.push(format!("{id} ({}) catches to {to}", scope.name));
    }
}

fn is_around(program: &Program, inner: ScopeId, outer: ScopeId) -> bool {
    program.ancestry(inner).any(|(id, _)| id == outer)
}
