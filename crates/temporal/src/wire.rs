//! Encodes and decodes what is sent to Temporal: inputs, answers and commands. Each payload (the encoded data) begins
//! with the byte [`MARK`] and a version, so that a worker of an earlier version can report which version it cannot
//! read. Large payloads are deflated (compressed). With a key, all payloads are sealed (encrypted).

use super::TemporalError;
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

/// The version of the encoding that this Windlass writes. There are no other versions so far.
const VERSION: u8 = 1;

/// The first byte of every payload. It shows that Windlass wrote the payload.
const MARK: u8 = b'W';

/// Bits of the third byte: whether the rest is deflated, and whether the rest is sealed.
const DEFLATED: u8 = 1;
const SEALED: u8 = 2;

/// Payloads of at least this many bytes are deflated.
const DEFLATED_FROM: usize = 512;

/// Maximum size of an inflated payload in bytes.
const MAX_INFLATED: u64 = 64 << 20;

/// Maximum size of a payload in bytes. Temporal refuses messages of 2 MiB. The difference is room for the message
/// around the payload.
pub const MAX_PAYLOAD: usize = (2 << 20) - (64 << 10);

/// The input of an execution, either of a new run or of a run that carries over.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub struct RunStart {
    /// The sources of the program. They are sent with each execution, so that any worker can continue the run.
    pub source: ProgramSource,
    /// The program's hash, which the state refers to.
    pub program: ProgramHash,
    /// The caller's labels of the run.
    pub labels: BTreeMap<String, String>,
    /// Number of events of a history at which the execution carries over: the run continues as a new execution.
    pub carry_over_at: u32,
    /// Whether the namespace has the search attributes that [`run_attributes`] returns.
    pub searchable: bool,
    /// The state in which the execution begins.
    pub from: StartState,
    /// The stored workflows that the run calls, directly or through other workflows.
    pub saved: BTreeMap<Name, ProgramSource>,
}

/// The state in which an execution begins.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub enum StartState {
    /// At the beginning of the run.
    Start {
        /// The run's input.
        input: Value,
        /// The environment variables that the program reads, with their values.
        environment: Value,
    },
    /// With the state of another run, which this run retries.
    Restored(Box<RunState>),
    /// With the state at the end of the previous execution.
    CarriedOver {
        /// The run's state.
        state: Box<RunState>,
        /// The time of the last event in the state.
        at: Timestamp,
    },
}

/// The input of an activity.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub struct ActivityInput {
    /// The hash of the program. Its sources are in the execution's first event.
    pub program: ProgramHash,
    /// The request. `None` if it is large: then the activity reads it from the run's state.
    pub request: Option<Request>,
}

/// The result of an activity. A fault is a result, too: it belongs to the run, and for Temporal the activity has
/// completed.
pub type ActivityResult = Result<Value, Fault>;

/// A command to a run.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub enum Command {
    /// Pause the run.
    Pause,
    /// Resume the run.
    Resume,
    /// Cancel the run.
    Cancel,
    /// Deliver a signal.
    Signal(Signal),
}

impl Command {
    /// Returns the command that delivers an event. `None` if no command can cause the event.
    pub fn of(event: Event) -> Option<Self> {
        match event {
            Event::PauseRequested => Some(Self::Pause),
            Event::Resumed => Some(Self::Resume),
            Event::CancelRequested => Some(Self::Cancel),
            Event::Signalled(signal) => Some(Self::Signal(signal)),
            _ => None,
        }
    }

    pub fn event(self) -> Event {
        match self {
            Self::Pause => Event::PauseRequested,
            Self::Resume => Event::Resumed,
            Self::Cancel => Event::CancelRequested,
            Self::Signal(signal) => Event::Signalled(signal),
        }
    }
}

/// Reads and writes payloads. With a key, whole payloads are sealed and not only their secure parts: an activity does
/// not know which parts of its answer are secure, only the run does. So a process without the key can neither continue
/// a run nor add data to it that others could read.
#[derive(Clone, Default)]
pub struct Wire {
    key: Option<StateKey>,
}

impl Wire {
    pub fn sealed_with(key: Option<StateKey>) -> Self {
        Self { key }
    }

    /// Encodes a value.
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

    /// Decodes a value.
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

    /// Decodes a value from the first payload.
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

/// Makes a payload of plain JSON, which Temporal's own tools can show.
pub fn shown(text: &serde_json::Value) -> Payload {
    let encoding = (String::from("encoding"), b"json/plain".to_vec());
    Payload {
        metadata: HashMap::from([encoding]),
        data: text.to_string().into_bytes(),
        ..Payload::default()
    }
}

/// Creates the search attribute for a run's status.
fn status_attribute(status: RunStatus) -> (String, Payload) {
    let word = serde_json::Value::from(status.as_str());
    (String::from("WindlassStatus"), shown(&word))
}

/// Returns the search attributes to update when a run's status has changed.
pub fn status_update(status: RunStatus) -> SearchAttributes {
    SearchAttributes {
        indexed_fields: HashMap::from([status_attribute(status)]),
    }
}

/// Returns the search attributes of a new run: `WindlassStatus`, `WindlassWorkflow`, and `WindlassLabels`, a list of
/// `name=value`.
pub fn run_attributes(workflow: &str, labels: &BTreeMap<String, String>) -> SearchAttributes {
    let workflow = shown(&serde_json::Value::from(workflow));
    let labels = labels.iter().map(|(name, value)| format!("{name}={value}"));
    let labels = shown(&serde_json::Value::from(labels.collect::<Vec<_>>()));
    SearchAttributes {
        indexed_fields: HashMap::from([
            status_attribute(RunStatus::Running),
            (String::from("WindlassWorkflow"), workflow),
            (String::from("WindlassLabels"), labels),
        ]),
    }
}

/// Encodes the answer to a command: the run's status after the command.
pub fn status(status: RunStatus) -> Payload {
    shown(&serde_json::Value::from(status.as_str()))
}

/// Decodes the answer to a command.
pub fn read_status(payloads: &Payloads) -> Option<RunStatus> {
    let first = payloads.payloads.first()?;
    let word: String = serde_json::from_slice(&first.data).ok()?;
    RunStatus::parse(&word)
}

/// Decodes the JSON data of a signal that was sent with Temporal's own tools.
pub fn signalled(payloads: &[Payload]) -> Value {
    let first = payloads
        .first()
        .and_then(|one| std::str::from_utf8(&one.data).ok());
    first
        .and_then(|text| Value::from_json(text).ok())
        .unwrap_or(Value::Null)
}
