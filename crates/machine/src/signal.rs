//! Signals: which ones a run accepts, and what one does.

use super::state::RunState;
use crate::program::Program;
use bincode::{Decode, Encode};
use windlass_expression::Value;
use windlass_model::model::{ANSWERED_BY, Form, Name};

/// A signal as it is delivered. The form of its question accepts the payload ([`Program::form`]).
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub struct Signal {
    pub name: Name,
    /// What it carries.
    pub payload: Value,
    /// Who sent it, if that is known.
    pub by: Option<Name>,
    /// Of one that answers a certain wait: [`RunState::received`] when its sender saw the wait, or when the address of
    /// `callbackUrl` was made. Any other count makes the signal void.
    pub received: Option<u64>,
    /// The sender's id of it: of several signals with the same one, the run receives the first.
    pub id: Option<Name>,
}

impl Signal {
    /// A signal of an unknown sender.
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
}

/// Why a run does not accept a signal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SignalRefusal {
    /// Nothing in its workflow waits for one of this name; something waits for these.
    Unknown(Vec<Name>),
    /// The question that it answers wants something else.
    Answer(String),
    /// The wait that it answers is over: the run has received an answer, or waits for it no more.
    Answered,
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
    if is_repeated(run, signal) {
        return Ok(());
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

/// Whether the run has received a signal with this id.
#[must_use]
pub fn is_repeated(run: &RunState, signal: &Signal) -> bool {
    let is_it = |id: &Name| run.signal_ids().any(|known| *known == **id);
    signal.id.as_ref().is_some_and(is_it)
}

/// Whether the wait that a signal answers is over.
pub(super) fn is_void(run: &RunState, signal: &Signal) -> bool {
    let received = run.received(&signal.name);
    signal.received.is_some_and(|seen| seen != received)
}

/// The answer to a question, with who gave it.
pub(super) fn answer(form: &Form, given: &Value, by: Option<&Name>) -> Result<Value, String> {
    let answer = form.accept(given)?;
    let (Some(by), Value::Object(members)) = (by, &answer) else {
        return Ok(answer);
    };
    let mut members = (**members).clone();
    members.insert(ANSWERED_BY.into(), Value::text(&**by));
    Ok(Value::object(members))
}
