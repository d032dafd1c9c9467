//! Enters and leaves scopes.

use super::bug::{MachineResult, StepResult};
use super::evaluate::millis;
use super::record::Output;
use super::state::{CursorId, DeadlineState, FrameKind, GraphState, TimerPurpose, TryState};
use super::transition::{Next, ScopeHandler};
use crate::program::{ActionId, RetryPolicy, Scope, ScopeId, ScopeKind, State};
use windlass_model::model::{Fault, Status, fault_kind};

impl ScopeHandler<'_, '_> {
    pub fn enter(&mut self, cursor: CursorId, id: ScopeId) -> StepResult<Next> {
        let scope = self.read().scope(id)?;
        self.clear_records(cursor, scope)?;
        let kind = match &scope.kind {
            ScopeKind::Root | ScopeKind::Branch | ScopeKind::Block | ScopeKind::FollowUp => {
                FrameKind::Plain
            }
            ScopeKind::Graph { .. } => FrameKind::Graph(GraphState::default()),
            ScopeKind::Try { retry, .. } => FrameKind::Try(TryState {
                attempt: 1,
                max_attempts: self.max_attempts(cursor, retry.as_ref())?,
                last_fault: None,
                next_due_at: None,
            }),
            ScopeKind::Deadline { after } => {
                let after = self.read().eval_duration(cursor, after, "a timeout")?;
                let due_at = self.read().now.plus(after);
                let mut timers = self.timers();
                FrameKind::Deadline(DeadlineState {
                    timer: timers.arm(cursor, due_at, TimerPurpose::Deadline(id))?,
                    after_ms: millis(after),
                })
            }
            ScopeKind::Loop(label, spec) => {
                return self.loops().enter(cursor, id, scope, (label, spec));
            }
            ScopeKind::ForEach { .. } | ScopeKind::Parallel { .. } | ScopeKind::Dag { .. } => {
                return self.forks().enter(cursor, id, scope);
            }
        };
        let mut movement = self.movement();
        movement.enter(cursor, id, kind)?;
        Ok(movement.move_to(cursor, scope.body)?)
    }

    /// Removes the records of an earlier visit to this scope.
    fn clear_records(&mut self, cursor: CursorId, scope: &Scope) -> MachineResult {
        let run = self.read().run;
        let action_range = ActionId(scope.action_range.start)..ActionId(scope.action_range.end);
        if action_range.is_empty() || run.records_of(cursor)?.range(action_range).next().is_none() {
            return Ok(());
        }
        let owner = run.record_owner(cursor);
        self.remove_records(owner, (scope.action_range.start, scope.action_range.end))
    }

    fn max_attempts(&self, cursor: CursorId, retry: Option<&RetryPolicy>) -> Result<u32, Fault> {
        let Some(retry) = retry else { return Ok(1) };
        let count = self.read().eval(cursor, &retry.count)?;
        let count = count.revealed().as_whole();
        let count = count.and_then(|count| u32::try_from(count).ok());
        count.map(|count| count.saturating_add(1)).ok_or_else(|| {
            let message = "the count of a retry must be a whole number of at least 0";
            Fault::new(fault_kind::EXPRESSION, message)
        })
    }

    pub fn leave(&mut self, cursor: CursorId) -> StepResult<Next> {
        let read = self.read();
        let (depth, frame) = read.top_frame(cursor)?;
        let (scope, entered_at) = (read.scope(frame.scope)?, frame.entered_at);
        if let (ScopeKind::Block, Some(action)) = (&scope.kind, scope.action) {
            let output = Output::Actions(scope.children.clone());
            let output = read.map_step_output(cursor, action, output)?;
            let mut records = self.records();
            records.record(
                cursor,
                scope.action,
                Status::Succeeded,
                output,
                None,
                entered_at,
            )?;
        }
        let mut movement = self.movement();
        movement.pop(cursor, depth)?;
        Ok(movement.move_to(cursor, scope.exit)?)
    }

    pub fn visit(&mut self, cursor: CursorId, state: &State) -> StepResult<Next> {
        let read = self.read();
        let (_, frame) = read.top_frame(cursor)?;
        let scope = read.scope(frame.scope)?;
        if let (FrameKind::Graph(graph), ScopeKind::Graph { max_steps }) =
            (&frame.kind, &scope.kind)
            && graph.steps >= *max_steps
        {
            let name = &state.name;
            let place = match graph.visits.contains_key(&read.run.cursor(cursor)?.at) {
                true => format!("it is in a cycle through `{name}`"),
                false => format!("the next is `{name}`"),
            };
            let message = format!(
                "the graph took {max_steps} steps without reaching its end, the maximum \
                 (`max_steps`); {place}"
            );
            return Err(Fault::new(fault_kind::LIMIT, message).into());
        }
        let node = read.run.cursor(cursor)?.at;
        self.count_visit(cursor, node)?;
        Ok(self.movement().move_to(cursor, state.next)?)
    }
}
