//! Signals: which ones a run accepts, and what one does.

use super::advance::Stepper;
use super::bug::{Bug, MachineResult};
use super::change::{Change, VariableChange};
use super::event::HistoryKind;
use super::state::{RunState, Wait};
use crate::program::{Op, Program, State};
use bincode::{Decode, Encode};
use windlass_expression::Value;
use windlass_model::model::{ANSWERED_BY, Form, Name, RECEIVED_VARIABLE, SIGNAL_IDS_VARIABLE};

/// Maximum number of ids of signals that a run knows: senders repeat the last ones only.
const MAX_SIGNAL_IDS: usize = 16;

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
fn is_void(run: &RunState, signal: &Signal) -> bool {
    let received = run.received(&signal.name);
    signal.received.is_some_and(|seen| seen != received)
}

impl Stepper<'_> {
    pub fn handle_signal(&mut self, signal: Signal) -> MachineResult {
        if is_repeated(self.run, &signal) || is_void(self.run, &signal) {
            return Ok(());
        }
        let name = signal.name;
        self.count_signal(&name)?;
        if let Some(id) = &signal.id {
            self.store_signal_id(id)?;
        }
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

    /// Counts a wait that ends without an answer: later ones are void. A signal without a form and an address may be
    /// sent before anything waits for it, so it may also be late.
    pub fn count_unanswered(&mut self, name: &Name) -> MachineResult {
        match self.program.has_callback(name) || self.program.form(name).is_some() {
            true => self.count_signal(name),
            false => Ok(()),
        }
    }

    fn count_signal(&mut self, name: &Name) -> MachineResult {
        let variables = self.run.variables.get(RECEIVED_VARIABLE);
        let mut counts = variables
            .and_then(Value::as_object)
            .cloned()
            .unwrap_or_default();
        let count = i64::try_from(self.run.received(name) + 1).unwrap_or(i64::MAX);
        counts.insert(name.clone(), Value::Int(count));
        self.set_own_variable(RECEIVED_VARIABLE, Value::object(counts))
    }

    fn store_signal_id(&mut self, id: &Name) -> MachineResult {
        let known: Vec<Value> = self.run.signal_ids().map(Value::text).collect();
        let surplus = (known.len() + 1).saturating_sub(MAX_SIGNAL_IDS);
        let newest = known.into_iter().skip(surplus);
        let ids = newest.chain([Value::text(&**id)]).collect();
        self.set_own_variable(SIGNAL_IDS_VARIABLE, Value::array(ids))
    }

    /// Sets a variable that no file can name.
    fn set_own_variable(&mut self, name: &str, value: Value) -> MachineResult {
        self.emit(Change::VariableChanged {
            owner: None,
            change: VariableChange::Set(Name::from(name), value),
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
