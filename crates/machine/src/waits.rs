//! Sleeps and signals: the waits that need no executor.

use super::bug::{Bug, MachineResult, StepResult};
use super::evaluate::text;
use super::record::Output;
use super::signal::{Delivery, Signal, answer, is_void};
use super::state::{CursorId, PendingQuestion, TimerPurpose, Wait};
use super::transition::{Next, WaitHandler};
use crate::program::{Op, Sleep, State};
use chrono::DateTime;
use windlass_expression::Value;
use windlass_model::model::{AwaitedSignal, Fault, fault_kind};
use windlass_value::time::Timestamp;

impl WaitHandler<'_, '_> {
    pub fn sleep(&mut self, cursor: CursorId, state: &State, sleep: &Sleep) -> StepResult<Next> {
        let (due_at, since) = (self.wake_at(cursor, sleep)?, self.read().now);
        let mut timers = self.timers();
        let id = timers.arm(cursor, due_at, TimerPurpose::SleepSince(since))?;
        let name = self.read().display_name(state.action, &state.name);
        self.report_timer(name, due_at);
        Ok(self.movement().wait(cursor, Wait::Timer(id))?)
    }

    fn wake_at(&self, cursor: CursorId, sleep: &Sleep) -> Result<Timestamp, Fault> {
        let read = self.read();
        match sleep {
            Sleep::For(duration) => {
                let duration = read.eval_duration(cursor, duration, "a wait")?;
                Ok(read.now.plus(duration))
            }
            Sleep::Until(instant) => {
                let value = read.eval(cursor, instant)?;
                let plain = value.revealed();
                let parsed = plain.as_str().map(DateTime::parse_from_rfc3339);
                match parsed {
                    Some(Ok(instant)) => Ok(Timestamp(instant.timestamp_millis())),
                    Some(Err(_)) | None => Err(Fault::new(
                        fault_kind::EXPRESSION,
                        format!(
                            "`until` must be a timestamp such as 2026-01-31T08:00:00Z; it is {}",
                            value.to_json()
                        ),
                    )),
                }
            }
        }
    }

    /// Consumes a stored signal. If no such signal is stored, waits for one.
    pub fn await_signal(
        &mut self,
        cursor: CursorId,
        state: &State,
        awaited: &AwaitedSignal,
    ) -> StepResult<Next> {
        let read = self.read();
        let (name, now) = (&awaited.name, read.now);
        let stored = read.run.signals.iter().find(|(stored, _)| stored == name);
        if let Some((_, payload)) = stored {
            let output = Output::Value(payload.clone());
            self.take_signal(name.clone())?;
            return self.movement().complete_step(cursor, state, output, now);
        }
        let wait = match &awaited.question {
            None => Wait::Signal(name.clone()),
            Some(question) => {
                let title = question.title.as_ref();
                let title = title.map(|title| read.eval(cursor, title)).transpose()?;
                Wait::Question(Box::new(PendingQuestion {
                    signal: name.clone(),
                    title: title.as_ref().map(text),
                    since: now,
                }))
            }
        };
        Ok(self.movement().wait(cursor, wait)?)
    }

    /// Handles a received signal. If a cursor waits for the signal, returns the cursor, the value for it, and when the
    /// wait began. If not, stores the signal.
    pub fn receive_signal(
        &mut self,
        signal: Signal,
    ) -> MachineResult<Option<(CursorId, Value, Timestamp)>> {
        let run = self.read().run;
        if Delivery::of(run, &signal) != Delivery::First || is_void(run, &signal) {
            return Ok(None);
        }
        let mut variables = self.variables();
        variables.count_signal(&signal.name)?;
        if let Some(id) = &signal.id {
            variables.store_signal_id(id, &signal.digest())?;
        }
        let name = signal.name;
        match &signal.by {
            None => self.report_signal(name.clone()),
            Some(by) => self.report_answer(name.clone(), by.clone()),
        }
        let read = self.read();
        let payload = match read.program.form(&name) {
            None => signal.payload,
            Some(form) => answer(form, &signal.payload, signal.by.as_ref())
                .map_err(|why| Bug::new(format!("an answer to {name} was not checked: {why}")))?,
        };
        let hides = |state: &State| {
            matches!(&state.op, Op::AwaitSignal(awaited) if awaited.name == name)
                && read.secured_parts(state.action).outputs
        };
        let payload = match read.program.states.iter().any(hides) {
            true => payload.secure(),
            false => payload,
        };
        let waiting = read.run.cursors.iter().find_map(|(id, cursor)| {
            let since = match &cursor.wait {
                Wait::Signal(awaited) if *awaited == name => read.now,
                Wait::Question(question) if question.signal == name => question.since,
                _ => return None,
            };
            Some((*id, since))
        });
        match waiting {
            Some((cursor, since)) => Ok(Some((cursor, payload, since))),
            None => {
                self.store_signal(name, payload)?;
                Ok(None)
            }
        }
    }
}
