//! What goes through Temporal: the bytes of inputs, answers and commands. Each begins with a mark
//! and a version, so that an older worker says what it lacks. Longer ones are deflated. With a key, all
//! of them are sealed.

use super::TemporalError;
use bincode::de::Decoder;
use bincode::error::DecodeError;
use bincode::{Decode, Encode};
use flate2::Compression;
use flate2::read::{DeflateDecoder, DeflateEncoder};
use std::collections::{BTreeMap, HashMap};
use std::io::Read;
use temporalio_common::protos::temporal::api::common::v1::{Payload, Payloads, SearchAttributes};
use windlass_expression::{Sealer, Value};
use windlass_machine::program::ProgramHash;
use windlass_machine::{Event, RunState, RunStatus, Signal};
use windlass_model::model::{Fault, Name, Request};
use windlass_store::{ProgramSource, StateKey};
use windlass_value::time::Timestamp;

/// The version that this Windlass writes, and the only one so far.
const VERSION: u8 = 1;

/// What every payload begins with.
const MARK: u8 = b'W';

/// What the third byte says: the rest is deflated, and is sealed.
const DEFLATED: u8 = 1;
const SEALED: u8 = 2;

/// Payloads of at least this many bytes are deflated.
const DEFLATED_FROM: usize = 512;

/// No payload has more bytes than this once it is inflated.
const MAX_INFLATED: u64 = 64 << 20;

/// Temporal refuses payloads from 2 MiB on. What is around a payload needs some room, too.
pub const MAX_PAYLOAD: usize = (2 << 20) - (64 << 10);

/// What an execution begins with: of a new run, or of one that carries over.
#[derive(Clone, Debug, PartialEq, Encode)]
pub struct RunStart {
    /// What the program was compiled from. It travels along, so that any worker can run it.
    pub source: ProgramSource,
    /// The program's hash, which the state refers to.
    pub program: ProgramHash,
    /// What the caller marked the run with.
    pub labels: BTreeMap<String, String>,
    /// An execution with a history of this many events carries over.
    pub carry_over_at: u32,
    /// Whether the namespace has the search attributes of [`marks`].
    pub searchable: bool,
    /// Where it begins.
    pub from: StartState,
    /// The saved workflows that it calls, and those that these call.
    pub saved: BTreeMap<Name, ProgramSource>,
}

impl<C> Decode<C> for RunStart {
    fn decode<D: Decoder<Context = C>>(decoder: &mut D) -> Result<Self, DecodeError> {
        Ok(Self {
            source: Decode::decode(decoder)?,
            program: Decode::decode(decoder)?,
            labels: Decode::decode(decoder)?,
            carry_over_at: Decode::decode(decoder)?,
            searchable: Decode::decode(decoder)?,
            from: Decode::decode(decoder)?,
            saved: match Decode::decode(decoder) {
                // An earlier build wrote it, whose runs called no workflows.
                Err(DecodeError::UnexpectedEnd { .. }) => BTreeMap::new(),
                read => read?,
            },
        })
    }
}

/// Where an execution begins.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub enum StartState {
    /// At the run's beginning.
    Start {
        /// The run's input.
        input: Value,
        /// What the program reads of the environment.
        environment: Value,
    },
    /// Where another run had come to.
    Restored(Box<RunState>),
    /// Where the execution before it had come to.
    CarriedOver {
        /// The run's state.
        state: Box<RunState>,
        /// The time of its last event.
        at: Timestamp,
    },
}

/// The input of an activity.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub struct ActivityInput {
    /// The program, whose sources the execution's first event has.
    pub program: ProgramHash,
    /// The request; none: it is large, and the run's state has it.
    pub request: Option<Request>,
}

/// What an activity gave. A fault is the run's: for Temporal it is an answer like others.
pub type ActivityResult = Result<Value, Fault>;

/// A command to a run.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub enum Command {
    /// To stand still.
    Pause,
    /// To continue.
    Resume,
    /// To end.
    Cancel,
    /// As earlier builds sent it.
    Signal {
        name: Name,
        /// What it carries.
        payload: Value,
    },
    SendSignal(Signal),
}

impl Command {
    /// The command that delivers an event; none of one that no one sends.
    pub fn of(event: Event) -> Option<Self> {
        match event {
            Event::PauseRequested => Some(Self::Pause),
            Event::Resumed => Some(Self::Resume),
            Event::CancelRequested => Some(Self::Cancel),
            Event::Signalled(signal) => Some(Self::SendSignal(signal)),
            _ => None,
        }
    }

    pub fn event(self) -> Event {
        match self {
            Self::Pause => Event::PauseRequested,
            Self::Resume => Event::Resumed,
            Self::Cancel => Event::CancelRequested,
            Self::Signal { name, payload } => Event::Signalled(Signal::new(name, payload)),
            Self::SendSignal(signal) => Event::Signalled(signal),
        }
    }
}

/// Reads and writes payloads. With a key all of a payload is sealed: what an action answers is known to be
/// secure only to the run that gets it. So a reader without the key can neither continue a run nor add
/// something to it that others can read.
#[derive(Clone, Default)]
pub struct Wire {
    key: Option<StateKey>,
}

impl Wire {
    pub fn sealed_with(key: Option<StateKey>) -> Self {
        Self { key }
    }

    /// The bytes of a value.
    pub fn write(&self, value: &impl Encode) -> Result<Vec<u8>, TemporalError> {
        let mut body = bincode::encode_to_vec(value, bincode::config::standard())
            .map_err(|error| TemporalError::Payload(error.to_string()))?;
        let mut kind = 0;
        if body.len() >= DEFLATED_FROM {
            kind |= DEFLATED;
            let mut deflated = Vec::new();
            DeflateEncoder::new(&*body, Compression::fast())
                .read_to_end(&mut deflated)
                .map_err(|error| TemporalError::Payload(error.to_string()))?;
            body = deflated;
        }
        if let Some(key) = &self.key {
            kind |= SEALED;
            let sealed = key.seal(&body);
            body = sealed
                .ok_or_else(|| TemporalError::Payload(String::from("it cannot be sealed")))?;
        }
        let mut bytes = vec![MARK, VERSION, kind];
        bytes.append(&mut body);
        Ok(bytes)
    }

    pub fn payload(&self, value: &impl Encode) -> Result<Payload, TemporalError> {
        Ok(of_bytes(self.write(value)?))
    }

    /// A value of its bytes.
    pub fn read<T: Decode<()>>(&self, bytes: &[u8]) -> Result<T, TemporalError> {
        let bad = |why: String| TemporalError::Payload(why);
        let (kind, body) = match bytes {
            [MARK, VERSION, kind, body @ ..] => (*kind, body),
            [MARK, version, ..] => {
                return Err(bad(format!(
                    "it has version {version}, and this Windlass knows {VERSION}: update it"
                )));
            }
            _ => return Err(bad(String::from("it was not written by Windlass"))),
        };
        let opened;
        let body = match (kind & SEALED, &self.key) {
            (0, _) => body,
            (_, None) => return Err(TemporalError::Sealed("a key, and none is here")),
            (_, Some(key)) => {
                let other = TemporalError::Sealed("another key than the one here");
                opened = key.open(body).ok_or(other)?;
                &opened
            }
        };
        let mut inflated = Vec::new();
        let plain = match kind & DEFLATED {
            0 => body,
            _ => {
                let mut from = DeflateDecoder::new(body).take(MAX_INFLATED);
                from.read_to_end(&mut inflated)
                    .map_err(|error| bad(error.to_string()))?;
                &inflated
            }
        };
        bincode::decode_from_slice(plain, bincode::config::standard())
            .map(|(value, _)| value)
            .map_err(|error| bad(error.to_string()))
    }

    /// A value of the first of some payloads.
    pub fn first<T: Decode<()>>(&self, payloads: Option<&Payloads>) -> Result<T, TemporalError> {
        let first = payloads.and_then(|payloads| payloads.payloads.first());
        self.read(first.map_or(&[], |payload| payload.data.as_slice()))
    }
}

pub fn of_bytes(data: Vec<u8>) -> Payload {
    let encoding = (String::from("encoding"), b"binary/plain".to_vec());
    Payload {
        metadata: HashMap::from([encoding]),
        data,
        ..Payload::default()
    }
}

/// Text that the tools of Temporal show.
pub fn shown(text: &serde_json::Value) -> Payload {
    let encoding = (String::from("encoding"), b"json/plain".to_vec());
    Payload {
        metadata: HashMap::from([encoding]),
        data: text.to_string().into_bytes(),
        ..Payload::default()
    }
}

/// The search attribute that changes.
fn mark(status: RunStatus) -> (String, Payload) {
    let word = serde_json::Value::from(status.as_str());
    (String::from("WindlassStatus"), shown(&word))
}

/// Search attributes of a run that has come to another status.
pub fn marked(status: RunStatus) -> SearchAttributes {
    SearchAttributes {
        indexed_fields: HashMap::from([mark(status)]),
    }
}

/// Search attributes of a new run: `WindlassStatus`, `WindlassWorkflow`, and `WindlassLabels`, a list of
/// `name=value`.
pub fn marks(workflow: &str, labels: &BTreeMap<String, String>) -> SearchAttributes {
    let workflow = shown(&serde_json::Value::from(workflow));
    let labels = labels.iter().map(|(name, value)| format!("{name}={value}"));
    let labels = shown(&serde_json::Value::from(labels.collect::<Vec<_>>()));
    SearchAttributes {
        indexed_fields: HashMap::from([
            mark(RunStatus::Running),
            (String::from("WindlassWorkflow"), workflow),
            (String::from("WindlassLabels"), labels),
        ]),
    }
}

/// What a command answers: what the run does after it.
pub fn status(status: RunStatus) -> Payload {
    shown(&serde_json::Value::from(status.as_str()))
}

/// What a command answered.
pub fn read_status(payloads: &Payloads) -> Option<RunStatus> {
    let first = payloads.payloads.first()?;
    let word: String = serde_json::from_slice(&first.data).ok()?;
    RunStatus::parse(&word)
}

/// What a signal of Temporal's own tools carries: JSON.
pub fn signalled(payloads: &[Payload]) -> Value {
    let first = payloads
        .first()
        .and_then(|one| std::str::from_utf8(&one.data).ok());
    first
        .and_then(|text| Value::from_json(text).ok())
        .unwrap_or(Value::Null)
}
