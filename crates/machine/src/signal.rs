//! Signals: which signals a run accepts, and how it handles them.

use super::state::RunState;
use crate::program::Program;
use bincode::{Decode, Encode};
use windlass_expression::Value;
use windlass_model::model::{ANSWERED_BY, Form, Name, sha256_of_parts};
use windlass_value::hex;

/// A signal as it is delivered to a run. If the question that it answers has a form, the payload has been checked with
/// this form ([`Program::form`]).
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub struct Signal {
    pub name: Name,
    /// The value that the signal carries.
    pub payload: Value,
    /// The sender, if known.
    pub by: Option<Name>,
    /// Only for a signal that answers a certain wait: the count [`RunState::received`] at the time when the sender read
    /// about the wait, or when the address of `callbackUrl` was made. If the run's count has changed since then, the
    /// signal is void.
    pub received: Option<u64>,
    /// The sender's id of the signal. The run receives a repeated signal, with the same id, name and payload, once.
    pub id: Option<Name>,
}

impl Signal {
    /// Creates a signal of an unknown sender.
    #[must_use]
    pub fn new(name: Name, payload: Value) -> Self {
        Self {
            name,
            payload,
            by: None,
            received: None,
            id: None,
        }
    }

    /// Returns a text that differs for signals with other names or payloads.
    pub(super) fn digest(&self) -> String {
        let payload = self.payload.to_json();
        hex(&sha256_of_parts(&[
            self.name.as_bytes(),
            payload.as_bytes(),
        ]))
    }
}

/// Whether a run has received a signal before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery<'s> {
    First,
    /// The run has received the same signal.
    Repeated,
    /// The run has received another signal with the same id.
    IdReused(&'s Name),
}

impl<'s> Delivery<'s> {
    /// Compares a signal with the last signals that the run received.
    #[must_use]
    pub fn of(run: &RunState, signal: &'s Signal) -> Self {
        let Some(id) = &signal.id else {
            return Self::First;
        };
        match run.signal_ids().find(|(known, _)| **known == **id) {
            None => Self::First,
            Some((_, digest)) if digest.is_none_or(|digest| digest == signal.digest()) => {
                Self::Repeated
            }
            Some(_) => Self::IdReused(id),
        }
    }
}

/// Why a run does not accept a signal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SignalRefusal {
    /// No step of the workflow waits for a signal with this name. The list has the names for which steps wait.
    Unknown(Vec<Name>),
    /// The form of the question does not accept the payload.
    Answer(String),
    /// The wait that the signal answers is over: the run has received another answer, or no longer waits.
    Answered,
    /// The run has received another signal with this id.
    IdReused(Name),
}

/// Checks a signal before it is delivered.
///
/// # Errors
/// The reason why the run does not accept the signal.
pub fn check_signal(
    program: &Program,
    run: &RunState,
    signal: &Signal,
) -> Result<(), SignalRefusal> {
    let known = program.signals();
    if !known.contains(&signal.name) {
        return Err(SignalRefusal::Unknown(known.into_iter().collect()));
    }
    match Delivery::of(run, signal) {
        Delivery::First => {}
        Delivery::Repeated => return Ok(()),
        Delivery::IdReused(id) => return Err(SignalRefusal::IdReused(id.clone())),
    }
    if is_void(run, signal) {
        return Err(SignalRefusal::Answered);
    }
    match program.form(&signal.name) {
        None => Ok(()),
        Some(form) => form
            .accept(&signal.payload)
            .map(drop)
            .map_err(SignalRefusal::Answer),
    }
}

/// Returns true if the wait that a signal answers is over.
pub(super) fn is_void(run: &RunState, signal: &Signal) -> bool {
    let received = run.received(&signal.name);
    signal.received.is_some_and(|seen| seen != received)
}

/// Returns the answer to a question, with its sender.
pub(super) fn answer(form: &Form, given: &Value, by: Option<&Name>) -> Result<Value, String> {
    let answer = form.accept(given)?;
    let (Some(by), Value::Object(members)) = (by, &answer) else {
        return Ok(answer);
    };
    let mut members = (**members).clone();
    members.insert(ANSWERED_BY.into(), Value::text(&**by));
    Ok(Value::object(members))
}
