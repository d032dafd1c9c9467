//! Numbers the states in reading order and drops unreachable states.

use crate::program::{Op, Program, ScopeId, ScopeKind, State, StateId};
use std::collections::HashMap;

pub(super) fn renumber(program: &mut Program) {
    let order = reading_order(program);
    let places: HashMap<StateId, StateId> = order
        .iter()
        .enumerate()
        .map(|(at, old)| (*old, StateId::from_index(at)))
        .collect();
    // The exit of a scope may be unreachable, because every step of the scope jumps away. Then the exit is set to the
    // program's entry, but no cursor ever continues there.
    let new = |old: StateId| places.get(&old).copied().unwrap_or(StateId(0));
    let states = order.iter().filter_map(|old| program.state(*old).cloned());
    let states: Vec<State> = states.map(|state| renamed(state, &new)).collect();
    program.states = states;
    program.entry = new(program.entry);
    if let Some(ending) = &mut program.ending {
        ending.failed = new(ending.failed);
        ending.ended = new(ending.ended);
        ending.cancelled = ending.cancelled.map(new);
    }
    for scope in &mut program.scopes {
        scope.body = new(scope.body);
        scope.exit = new(scope.exit);
        if let ScopeKind::Try {
            catch: Some((_, to)),
            ..
        } = &mut scope.kind
        {
            *to = new(*to);
        }
    }
}

fn renamed(mut state: State, new: &impl Fn(StateId) -> StateId) -> State {
    state.next = new(state.next);
    match &mut state.op {
        Op::Branch(arms) => arms.iter_mut().for_each(|(_, to)| *to = new(*to)),
        Op::FollowUp { to, .. } => *to = new(*to),
        Op::Switch { cases, .. } => cases.iter_mut().for_each(|(_, to)| *to = new(*to)),
        _ => {}
    }
    state
}

/// Returns the reachable states, depth first from the entry. The states inside a scope are before the states that
/// follow the scope.
fn reading_order(program: &Program) -> Vec<StateId> {
    let mut seen = vec![false; program.states.len()];
    let mut order = Vec::with_capacity(program.states.len());
    let mut open = vec![program.entry];
    while let Some(id) = open.pop() {
        let Some(flag) = seen.get_mut(id.index()) else {
            continue;
        };
        if std::mem::replace(flag, true) {
            continue;
        }
        order.push(id);
        let Some(state) = program.state(id) else {
            continue;
        };
        // `open` is a stack, so the state that is pushed last is read first.
        open.push(state.next);
        match &state.op {
            Op::Branch(arms) => open.extend(arms.iter().rev().map(|(_, to)| *to)),
            Op::FollowUp { to, .. } => open.push(*to),
            Op::Switch { cases, .. } => open.extend(cases.iter().rev().map(|(_, to)| *to)),
            Op::Enter(scope) => inside(program, *scope, &mut open),
            _ => {}
        }
    }
    order
}

fn inside(program: &Program, scope: ScopeId, open: &mut Vec<StateId>) {
    let Some(inner) = program.scope(scope) else {
        return;
    };
    open.push(inner.exit);
    let mut branches: Vec<ScopeId> = match &inner.kind {
        ScopeKind::ForEach { branch, .. } => vec![*branch],
        ScopeKind::Parallel { branches, .. } => branches.iter().map(|(_, scope)| *scope).collect(),
        ScopeKind::Dag { nodes } => nodes.iter().map(|node| node.branch).collect(),
        ScopeKind::Try {
            catch: Some((_, to)),
            ..
        } => {
            open.push(*to);
            Vec::new()
        }
        _ => Vec::new(),
    };
    branches.reverse();
    for branch in branches {
        if let Some(branch) = program.scope(branch) {
            open.push(branch.exit);
            open.push(branch.body);
        }
    }
    open.push(inner.body);
}
