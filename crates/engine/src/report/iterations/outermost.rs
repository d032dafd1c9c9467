//! Reports what a run did outside of its loops, in the form of one iteration.

use super::action_log::{ActionLog, ActionLogScope, Progress, scopes};
use super::waits::{between_attempts, outermost_sleeps};
use super::whole::most_attempts;
use super::{ActionReport, AttemptReport, IterationReport, StoredDetail, without_own};
use crate::report::view::RunView;
use crate::runs::Extent;
use crate::{EngineError, Inspector};
use windlass_expression::Value;
use windlass_machine::program::Program;
use windlass_machine::{OuterRecord, PendingEffect, innermost_iteration, outer_records};

pub fn outermost(inspector: &Inspector, run: &str) -> Result<IterationReport, EngineError> {
    let view = RunView::load(inspector, run)?;
    let (header, state) = (&view.stored.header, view.state());
    let since = header.started_at;
    let wanted = |event: &_| ActionLogScope::Outermost.includes(event);
    let records = inspector.read(Extent::Entire(run), |store| {
        store.commits_between(run, since, None, &wanted)
    })?;
    let program = view.program.as_deref();
    let mut acted = ActionLog::new(program, ActionLogScope::Outermost);
    acted.read(&records);
    let mut actions = acted.actions;
    let (mut waits, mut result) = (between_attempts(&actions), None);
    if let Some(program) = program {
        let (outer, outputs) = outer_records(program, state);
        result = Some(outputs);
        for one in outer {
            add(&mut actions, program, one);
        }
        for effect in state.effects.values() {
            if innermost_iteration(program, state, effect.cursor).is_none() {
                call(&mut actions, program, effect);
            }
        }
        waits.extend(outermost_sleeps(program, &records));
    }
    actions.sort_by_key(|one| one.started_at.or(one.ended_at));
    waits.sort_by_key(|wait| wait.from);
    let outcome = state.outcome.as_ref();
    let ended_at = outcome.map(|_| header.updated_at);
    Ok(IterationReport {
        run: header.id.to_string(),
        path: String::new(),
        loop_path: String::new(),
        iteration: 0,
        status: outcome.map_or(Progress::Running, |one| Progress::Ended(one.status)),
        condition: None,
        started_at: since,
        ended_at,
        attempts: most_attempts(&actions),
        error: outcome.and_then(|one| Some(one.error.as_ref()?.fault.message.clone())),
        stored: StoredDetail::Whole,
        result,
        variables: Some(without_own(state.variables.clone())),
        waits,
        actions,
    })
}

/// Adds what the record of an action contains to the report of the action.
fn add(actions: &mut Vec<ActionReport>, program: &Program, outer: OuterRecord<'_>) {
    let record = outer.record;
    let index = place(actions, program, outer.name);
    let Some(one) = actions.get_mut(index) else {
        return;
    };
    one.status = Progress::Ended(record.status);
    one.started_at = one.started_at.or(Some(record.started_at));
    one.ended_at = Some(record.ended_at);
    one.inputs = Some(record.inputs.clone()).filter(|inputs| !inputs.is_null());
    one.outputs = Some(outer.output).filter(|output: &Value| !output.is_null());
    one.error = record.error.as_ref().map(|fault| fault.message.clone());
}

/// Adds a call that is in flight to the report of its action.
fn call(actions: &mut Vec<ActionReport>, program: &Program, effect: &PendingEffect) {
    let request = &effect.request;
    let index = place(actions, program, &request.action);
    let Some(one) = actions.get_mut(index) else {
        return;
    };
    one.status = Progress::Running;
    one.started_at = one.started_at.or(Some(effect.requested_at));
    (one.ended_at, one.error, one.outputs) = (None, None, None);
    one.inputs = Some(request.inputs.clone());
    one.key = Some(request.key.clone());
    if one.attempts.is_empty() {
        one.attempts.push(AttemptReport {
            attempt: request.attempt,
            started_at: effect.requested_at,
            ended_at: None,
            error: None,
        });
    }
}

/// Returns the position of an action in the list. Adds the action if the list does not have it.
fn place(actions: &mut Vec<ActionReport>, program: &Program, name: &str) -> usize {
    let known = actions
        .iter()
        .rposition(|one| one.path == name || one.action == name);
    known.unwrap_or_else(|| {
        let scopes = scopes(program, name);
        actions.push(ActionReport::new(name.to_owned(), name, scopes));
        actions.len() - 1
    })
}
