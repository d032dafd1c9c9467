//! Makes changes together with the effects that belong to them.

use super::{
    CallHandler, EndHandler, EventHandler, Next, PauseHandler, TimerHandler, VariableHandler,
};
use crate::bug::MachineResult;
use crate::change::{Change, VariableChange};
use crate::event::{Effect, HistoryKind};
use crate::state::{
    CursorId, EffectId, Outcome, PauseReason, PendingEffect, PendingTimer, RunState, TimerId,
    TimerPurpose, Wait,
};
use windlass_expression::Value;
use windlass_model::model::{Name, RECEIVED_VARIABLE, RUN_VARIABLES, Request, SIGNAL_IDS_VARIABLE};
use windlass_value::time::Timestamp;

/// Maximum number of signal ids that a run stores. A few are enough, because senders repeat only their last signals.
const MAX_SIGNAL_IDS: usize = 16;

impl TimerHandler<'_, '_> {
    pub fn arm(
        &mut self,
        cursor: CursorId,
        due_at: Timestamp,
        purpose: TimerPurpose,
    ) -> MachineResult<TimerId> {
        let id = TimerId(self.read().run.next_id);
        let timer = PendingTimer {
            cursor,
            due_at,
            purpose,
        };
        self.0.emit(Change::TimerArmed(id, timer))?;
        self.0.effect(Effect::Arm { id, due_at });
        Ok(id)
    }

    /// Disarms a timer. A timer that has fired is removed already.
    pub fn disarm(&mut self, id: TimerId) -> MachineResult {
        if let Some(timer) = self.0.run.timers.get(&id) {
            let due_at = timer.due_at;
            self.0.emit(Change::TimerDropped(id))?;
            self.0.effect(Effect::Disarm { id, due_at });
        }
        Ok(())
    }
}

impl VariableHandler<'_, '_> {
    /// Changes a variable that a cursor uses.
    pub fn change(&mut self, cursor: CursorId, change: VariableChange) -> MachineResult {
        let owner = match RUN_VARIABLES.contains(&&**change.name()) {
            true => None,
            false => self.0.run.variable_owner(cursor),
        };
        self.0.emit(Change::VariableChanged { owner, change })
    }

    /// Sets a variable of the machine itself. No file can use its name.
    fn set_own(&mut self, name: &str, value: Value) -> MachineResult {
        self.0.emit(Change::set(Name::from(name), value))
    }

    /// Counts a wait that ended without an answer, so that an answer to it that arrives later is void.
    /// Does not count if the signal has neither a form nor a callback address. Such a signal may arrive at any time, so
    /// a late one is not void.
    pub fn count_unanswered(&mut self, name: &Name) -> MachineResult {
        let program = self.read().program;
        match program.has_callback(name) || program.form(name).is_some() {
            true => self.count_signal(name),
            false => Ok(()),
        }
    }

    pub fn count_signal(&mut self, name: &Name) -> MachineResult {
        let variables = self.read().run.variables.get(RECEIVED_VARIABLE);
        let mut counts = variables
            .and_then(Value::as_object)
            .cloned()
            .unwrap_or_default();
        let count = i64::try_from(self.read().run.received(name) + 1).unwrap_or(i64::MAX);
        counts.insert(name.clone(), Value::Int(count));
        self.set_own(RECEIVED_VARIABLE, Value::object(counts))
    }

    pub fn store_signal_id(&mut self, id: &Name, digest: &str) -> MachineResult {
        let known: Vec<(&str, Option<&str>)> = self.read().run.signal_ids().collect();
        let surplus = (known.len() + 1).saturating_sub(MAX_SIGNAL_IDS);
        let newest = known.into_iter().skip(surplus);
        let ids = newest.chain([(&**id, Some(digest))]);
        let ids = ids.map(|(id, digest)| match digest {
            Some(digest) => Value::array([id, digest].map(Value::text).to_vec()),
            None => Value::text(id),
        });
        let ids = Value::array(ids.collect());
        self.set_own(SIGNAL_IDS_VARIABLE, ids)
    }
}

impl PauseHandler<'_, '_> {
    /// Pauses the run. Effects in flight may still complete, and their results are recorded. Nothing else changes.
    pub fn pause(&mut self, reason: PauseReason) -> MachineResult<Next> {
        if self.read().run.paused.is_some() {
            return Ok(Next::Nothing);
        }
        let text = match &reason {
            PauseReason::Requested => String::from("requested"),
            PauseReason::Limit(path, end) => {
                format!("loop {path} reached its {} limit", end.as_str())
            }
        };
        self.0.report(HistoryKind::RunPaused { reason: text });
        let at = self.0.now;
        self.0.emit(Change::Paused { at, reason })?;
        Ok(Next::Nothing)
    }

    /// Resumes a paused run and moves its due times by the duration of the pause. Returns why the run was paused. The
    /// caller must arm the timers again.
    pub fn resume(&mut self) -> MachineResult<Option<PauseReason>> {
        let Some((since, reason)) = self.0.run.paused.clone() else {
            return Ok(None);
        };
        for (id, timer) in &self.0.run.timers {
            let (id, due_at) = (*id, timer.due_at);
            self.0.out.add_effect(Effect::Disarm { id, due_at });
        }
        let paused_ms = self.0.now.since(since).as_millis();
        let shift_ms = i64::try_from(paused_ms).unwrap_or(i64::MAX);
        self.0.emit(Change::Resumed { shift_ms })?;
        self.0.report(HistoryKind::RunResumed);
        Ok(Some(reason))
    }
}

impl EndHandler<'_, '_> {
    pub fn record_outcome(&mut self, outcome: Outcome) -> MachineResult<Next> {
        let status = outcome.status;
        self.0.emit(Change::Finished(outcome.clone()))?;
        self.0.report(HistoryKind::RunFinished { status });
        self.0.effect(Effect::Finish(outcome));
        Ok(Next::Nothing)
    }
}

impl CallHandler<'_, '_> {
    /// Requests an effect. `pending` has the request as it is stored. `with_state` is the request as it is executed:
    /// with the run's state, if it needs the state.
    pub fn request(&mut self, pending: PendingEffect, with_state: Request) -> MachineResult {
        let (id, cursor) = (EffectId(self.0.run.next_id), pending.cursor);
        let (path, iteration) = self.read().view(cursor).innermost_iteration().unzip();
        let request = &pending.request;
        let node_name = self.read().display_name(pending.action, &request.action);
        self.0.report(HistoryKind::ActionStarted {
            node_name,
            attempt: request.attempt,
            key: request.key.clone(),
            path,
            iteration,
        });
        self.0.emit(Change::EffectRequested(id, pending))?;
        self.0.emit(Change::Waits(cursor, Wait::Effect(id)))?;
        self.0.effect(Effect::Start {
            id,
            request: with_state,
        });
        Ok(())
    }
}

impl EventHandler<'_, '_> {
    /// Begins the run at a point of another run.
    pub fn restore_run(&mut self, state: Box<RunState>) -> MachineResult {
        self.0.emit(Change::Restored(state))?;
        self.0.report(HistoryKind::RunStarted);
        let rows = self.0.run.loops().map(|(_, _, state)| state.row());
        self.0.out.loops.extend(rows);
        Ok(())
    }

    /// Starts all outstanding effects and arms all timers. A driver ignores those that it already executes. Leaves out
    /// [`Effect::Continue`], because ready cursors continue in this transition.
    pub fn start_outstanding(&mut self) {
        for effect in self.0.run.outstanding() {
            if effect != Effect::Continue {
                self.0.out.add_effect(effect);
            }
        }
    }

    /// Arms a timer again. Its event was already on its way when a resume moved the timer's due time.
    pub fn arm_again(&mut self, id: TimerId, due_at: Timestamp) {
        self.0.effect(Effect::Arm { id, due_at });
    }
}
