//! Signals: which ones a run accepts, and what one does.

use super::advance::Stepper;
use super::bug::{Bug, MachineResult};
use super::change::{Change, VariableChange};
use super::event::HistoryKind;
use super::state::{RunState, Wait};
use crate::program::{Op, Program, State};
use bincode::{Decode, Encode};
use windlass_expression::Value;
use windlass_model::model::{ANSWERED_BY, Form, Name, RECEIVED_VARIABLE};

/// A signal as it is delivered. The form of its question accepts the payload ([`Program::form`]).
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub struct Signal {
    pub name: Name,
    /// What it carries.
    pub payload: Value,
    /// Who sent it, if that is known.
    pub by: Option<Name>,
    /// Of one that uses the address of `callbackUrl`: [`RunState::received`] when the address was made. Any other
    /// count makes the signal void.
    pub callback: Option<u64>,
}

impl Signal {
    /// A signal of an unknown sender.
    #[must_use]
    pub fn new(name: Name, payload: Value) -> Self {
        Self {
            name,
            payload,
            by: None,
            callback: None,
        }
    }
}

/// Why a run does not accept a signal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SignalRefusal {
    /// Nothing in its workflow waits for one of this name; something waits for these.
    Unknown(Vec<Name>),
    /// The question that it answers wants something else.
    Answer(String),
    /// The run has received it already, or waits for it no more: the address of the callback is void.
    Received,
}

/// Checks a signal before it is delivered.
///
/// # Errors
/// Why the run does not accept it.
pub fn check_signal(
    program: &Program,
    run: &RunState,
    signal: &Signal,
) -> Result<(), SignalRefusal> {
    let known = program.signals();
    if !known.contains(&signal.name) {
        return Err(SignalRefusal::Unknown(known.into_iter().collect()));
    }
    let received = run.received(&signal.name);
    if signal.callback.is_some_and(|made_at| made_at != received) {
        return Err(SignalRefusal::Received);
    }
    match program.form(&signal.name) {
        None => Ok(()),
        Some(form) => form
            .accept(&signal.payload)
            .map(drop)
            .map_err(SignalRefusal::Answer),
    }
}

impl Stepper<'_> {
    pub fn handle_signal(&mut self, signal: Signal) -> MachineResult {
        let name = signal.name;
        let received = self.run.received(&name);
        if signal.callback.is_some_and(|made_at| made_at != received) {
            return Ok(());
        }
        self.void_addresses(&name)?;
        let by = signal.by.as_ref();
        self.report(by.map_or_else(
            || HistoryKind::Signalled { name: name.clone() },
            |by| HistoryKind::Answered {
                name: name.clone(),
                by: by.clone(),
            },
        ));
        let payload = match self.program.form(&name) {
            None => signal.payload,
            Some(form) => answer(form, &signal.payload, by)
                .map_err(|why| Bug::new(format!("an answer to {name} was not checked: {why}")))?,
        };
        let hides = |state: &State| {
            matches!(&state.op, Op::AwaitSignal(awaited) if awaited.name == name)
                && self.secured_parts(state.action).outputs
        };
        let payload = match self.program.states.iter().any(hides) {
            true => payload.secure(),
            false => payload,
        };
        let waiting = self.run.cursors.iter().find_map(|(id, cursor)| {
            let since = match &cursor.wait {
                Wait::Signal(awaited) if *awaited == name => self.now,
                Wait::Question(asked) if asked.signal == name => asked.since,
                _ => return None,
            };
            Some((*id, since))
        });
        match waiting {
            Some((cursor, since)) => self.complete_wait(cursor, payload, since),
            None => self.emit(Change::SignalKept(name, payload)),
        }
    }

    /// Counts an answer, or a wait that ends without one: the earlier addresses of the signal's callback are void.
    pub fn void_addresses(&mut self, name: &Name) -> MachineResult {
        if !self.program.has_callback(name) {
            return Ok(());
        }
        let variables = self.run.variables.get(RECEIVED_VARIABLE);
        let mut counts = variables
            .and_then(Value::as_object)
            .cloned()
            .unwrap_or_default();
        let count = i64::try_from(self.run.received(name) + 1).unwrap_or(i64::MAX);
        counts.insert(name.clone(), Value::Int(count));
        let change = VariableChange::Set(Name::from(RECEIVED_VARIABLE), Value::object(counts));
        self.emit(Change::VariableChanged {
            owner: None,
            change,
        })
    }
}

/// The answer to a question, with who gave it.
fn answer(form: &Form, given: &Value, by: Option<&Name>) -> Result<Value, String> {
    let answer = form.accept(given)?;
    let (Some(by), Value::Object(members)) = (by, &answer) else {
        return Ok(answer);
    };
    let mut members = (**members).clone();
    members.insert(ANSWERED_BY.into(), Value::text(&**by));
    Ok(Value::object(members))
}
