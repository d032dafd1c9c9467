//! The terms that every layer uses: names, dialects, statuses, policies, requests and faults.
//! Plain data; nothing here decides anything.

mod concurrency;
#[cfg_attr(not(feature = "schedule"), path = "cron_off.rs")]
mod cron;
mod digest;
mod display;
mod event_trigger;
mod path_part;
mod policy;
mod question;
mod rate;
mod request;
mod rules;
mod schedule;
mod schema;
mod trace;

pub use concurrency::{Concurrency, ConcurrencyPolicy, TURN_SIGNAL};
pub use cron::{cron_mistake, next_of_cron};
pub use digest::{named_sha256, sha256, sha256_of_parts, short_digest};
pub use event_trigger::{EventTriggers, WatchedFolder, Webhook, WebhookSignature};
pub use path_part::{name_of_part, path_part};
pub use policy::{Origin, Policy};
pub use question::{ANSWERED_BY, AwaitedSignal, CHOICE, CallbackClaim, Form, Question};
pub use rate::{HostRate, Rate, check_rate_name, is_host};
pub use request::{
    ANSWER_ERRORS, ASYNC_PATTERN, BODY_FILE, CONNECTOR_HOST, EVENTS, Fault, HANDLER_NAMES,
    IF_CHANGED, MODEL_OPTIONS, NOT_CONNECTED, OWN_KEYS, RATE, Request, SAVE_TO, WHOLE_STATE,
    WORKFLOW, fault_kind, overrides_method,
};
pub use rules::{Rules, UnrunActionValue};
pub use schedule::{Frequency, Missed, Overlap, Recurrence, Schedule, When};
pub use trace::{SpanSubject, trace_id, traceparent};

use bincode::{Decode, Encode};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use windlass_expression::{Condition, Template, Value};
use windlass_source::source::Span;

/// A name as its author wrote it. If the dialect ignores case, names are compared without case.
pub type Name = Arc<str>;

/// The formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Encode, Decode)]
pub enum Dialect {
    /// The house format.
    Loom,
    /// A Logic Apps definition.
    Azure,
    /// The Edge Agent.
    Tea,
    /// Loop nodes in a graph of ports.
    Canvas,
}

/// What starts a run. The run's input is what the trigger delivers: `triggerBody()`.
#[derive(Clone, Debug)]
pub struct Trigger {
    pub name: Name,
    /// What `workflow()` returns in addition to the run: an object with `id` and `type`.
    pub workflow: Value,
}

/// Which parts of an action are secure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Secured {
    /// Whether its inputs are secure.
    pub inputs: bool,
    /// Whether its outputs are secure.
    pub outputs: bool,
}

impl Dialect {
    /// Returns its word in files, flags and the store.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Loom => "loom",
            Self::Azure => "azure",
            Self::Tea => "tea",
            Self::Canvas => "canvas",
        }
    }

    /// Returns the dialect with that word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        let all = [Self::Loom, Self::Azure, Self::Tea, Self::Canvas];
        all.into_iter().find(|dialect| dialect.as_str() == word)
    }
}

/// The type of an input or of a typed variable; text from the command line is converted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputKind {
    /// Anything.
    Any,
    /// Text.
    String,
    /// A whole number.
    Integer,
    Number,
    /// true or false.
    Boolean,
    /// A list.
    Array,
    /// A map.
    Object,
}

impl InputKind {
    /// Returns true if `value` is of this kind, without conversion. A whole number written as `2.0` is an integer.
    #[must_use]
    pub fn accepts(self, value: &Value) -> bool {
        match (self, value) {
            (Self::Any, _)
            | (Self::String, Value::String(_))
            | (Self::Boolean, Value::Bool(_))
            | (Self::Array, Value::Array(_))
            | (Self::Object, Value::Object(_))
            | (Self::Number, Value::Int(_) | Value::Float(_) | Value::Decimal(_)) => true,
            (Self::Integer, value) => value.as_int().is_some(),
            _ => false,
        }
    }

    /// Returns the kind with its article, for messages.
    #[must_use]
    pub const fn described(self) -> &'static str {
        match self {
            Self::Any => "anything",
            Self::String => "a string",
            Self::Integer => "an integer",
            Self::Number => "a number",
            Self::Boolean => "true or false",
            Self::Array => "an array",
            Self::Object => "an object",
        }
    }
}

/// One declared input.
#[derive(Clone, Debug)]
pub struct Input {
    pub name: Name,
    /// Its type.
    pub kind: InputKind,
    /// Its value if the caller passes none; without a default it is required.
    pub default: Option<Value>,
    /// Position in the file.
    pub span: Span,
}

/// Positions of the values of a workflow that belong to no action.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamedSpans {
    /// Those of the variables.
    pub variables: Vec<NamedSpan>,
    /// Those of the outputs. Outputs that are not a map have one entry without a name.
    pub outputs: Vec<NamedSpan>,
}

/// Position of a named value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedSpan {
    pub name: Name,
    pub span: Span,
}

/// The output of a run that succeeds.
#[derive(Clone, Debug, PartialEq)]
pub enum Outputs {
    /// The value of a template.
    Template(Template),
    /// The outputs of all top-level actions by name, or the response if there was one.
    Actions,
    /// The final variables.
    State,
}

/// How long to sleep.
#[derive(Clone, Debug, PartialEq)]
pub enum Sleep {
    /// A duration: ISO 8601 text, `{count, unit}`, or in TEA and canvas a number of seconds.
    For(Template),
    /// An instant, RFC 3339.
    Until(Template),
}

/// How a handler is reached.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HandlerTarget {
    /// argv; JSON on standard input, JSON on standard output.
    Command(Vec<String>),
    /// POST of JSON.
    Url(String),
    /// Answers in place of the handler, if no other handler is registered: one after the other.
    Stub(Vec<StubAnswer>),
}

/// The answer of a stub.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StubAnswer {
    /// The output of the handler.
    Value(Value),
    /// A fault of the handler.
    Error {
        /// The fault's kind; `None`: the kind of handlers.
        kind: Option<String>,
        code: Option<String>,
        /// What happened.
        message: String,
        /// The output in addition to the fault.
        output: Option<Value>,
    },
}

/// A handler that a file declares for an activity, actor or connector.
#[derive(Clone, Debug)]
pub struct Handler {
    /// The name by which actions call it.
    pub name: Name,
    /// How it is reached.
    pub target: HandlerTarget,
    /// Position in the file.
    pub span: Span,
}

/// How an action ended.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Encode,
    Decode,
    serde::Serialize,
    serde::Deserialize,
)]
pub enum Status {
    /// It did what it should.
    Succeeded,
    /// It failed.
    Failed,
    /// It was not started.
    Skipped,
    /// A deadline cancelled it.
    TimedOut,
    Cancelled,
}

impl Status {
    /// All statuses.
    pub const ALL: [Self; 5] = [
        Self::Succeeded,
        Self::Failed,
        Self::Skipped,
        Self::TimedOut,
        Self::Cancelled,
    ];

    /// Returns the word in files and outputs.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Succeeded => "Succeeded",
            Self::Failed => "Failed",
            Self::Skipped => "Skipped",
            Self::TimedOut => "TimedOut",
            Self::Cancelled => "Cancelled",
        }
    }

    /// Parses the name of a status, without case.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let named = |status: &Self| status.as_str().eq_ignore_ascii_case(text);
        Self::ALL.into_iter().find(named)
    }
}

/// How a value gets into a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AssignOp {
    /// Replaces the value; creates the variable if it is missing.
    Set,
    /// Adds a number.
    Increment,
    /// Subtracts a number.
    Decrement,
    /// Adds an element at the end.
    AppendToArray,
    /// Adds text at the end.
    AppendToString,
    /// Sets a variable for each member of a map; ignores anything that is not a map.
    MergeAll,
    /// Replaces all variables by the members of a map; ignores anything that is not a map.
    ReplaceAll,
    /// Removes the variables that a list names; ignores anything that is not a list.
    RemoveAll,
}

/// When a loop checks its condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Test {
    /// Before each iteration: the body may never run.
    Before,
    /// After each iteration: the body runs at least once.
    After,
    /// Like `After`, but `loopIndex` is already that of the next iteration (docs/reference/loom.md).
    AfterAsNext,
}

/// The variable with the failure of the body, for `on_failure` and `on_finish`; null if the body did not fail.
pub const FAILURE: &str = "failure";

/// The variable with what a run last read of its workflow's state: by name, the value and its version.
pub const STATE_VARIABLE: &str = "$state";

/// The variable with the number of signals, by name, that a run has received or stopped waiting for.
pub const RECEIVED_VARIABLE: &str = "_windlass_received";

/// The variable with the ids of the signals that a run received last.
pub const SIGNAL_IDS_VARIABLE: &str = "_windlass_signals";

/// The action that writes a value between runs, and the action that reads the newest one.
pub const SET_STATE: &str = "setState";
pub const GET_STATE: &str = "getState";

/// For `on_failure` and `on_finish` that fail: the name of a variable with the error, and of a label of the run.
pub const FAILED_ENDINGS: [&str; 2] = ["windlass.on_failure", "windlass.on_finish"];

/// If the cancel of an operation fails, the variable with this prefix and the action's name has the error.
pub const FAILED_CANCEL: &str = "windlass.cancel.";

/// An expectation of an action's output. If it is not met, the action has failed.
#[derive(Clone, Debug, PartialEq)]
pub enum Expect {
    /// Its body is JSON: an object, a list, a number or a boolean.
    Json,
    /// This condition holds.
    That(Condition),
    /// This condition does not hold. If it does, a long operation has failed.
    NotFailed(Condition),
}

/// What a failed item of a foreach does to the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnError {
    /// No further item starts; the foreach fails.
    Stop,
    /// All items run; then the foreach fails (Azure).
    Finish,
    /// All items run; the foreach succeeds with `{results, failed}`.
    Continue,
}

/// What a loop does at a limit; the outcome and the reason are always recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnLimit {
    /// Ends as Failed at the count, as TimedOut at the timeout.
    Fail,
    /// Ends as Succeeded, with the reason in its output.
    Continue,
    /// The run pauses; a resume grants the same budget again.
    Pause,
}

/// The effect of a member or an element that the condition of a loop reads and that does not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnMissing {
    /// The condition raises a fault.
    Fail,
    /// The condition is not met yet: the loop continues until a limit.
    Wait,
}

/// What a loop over pages does when it reaches a page for the second time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnRepeat {
    /// Fails, with a fault of kind `repeat`.
    Fail,
    /// Ends as Succeeded, with the reason in its output.
    Stop,
}

/// What distinguishes one page of a loop from another.
#[derive(Clone, Debug, PartialEq)]
pub struct Pages {
    /// What leads to the page that the next iteration reads: a token, a number, an address.
    pub token: Template,
    /// What happens at a page that was read before.
    pub on_repeat: OnRepeat,
}

/// When a loop makes no progress.
#[derive(Clone, Debug, PartialEq)]
pub struct Unchanged {
    /// Number of consecutive iterations with the same result.
    pub times: u64,
    /// What is compared; `None`: the iterations' results.
    pub of: Option<Template>,
}

/// The iterations of a loop whose values are available after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CollectMode {
    First,
    Last,
    /// The values of all iterations, as an array.
    All,
}

/// What a link carries; see [`Link`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LinkKind {
    /// An output of another step in the same scope.
    Edge,
    /// An input of the enclosing scope.
    Outer,
    /// An output of the iteration before.
    Previous,
    /// An output of the inside, passed to the outside.
    Result,
}

/// A named value that is passed from one step to another, for diagrams and dumps.
/// The templates of the steps pass the value.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Link {
    /// The step that has it as an output; `None`: the run's inputs.
    pub from: Option<Name>,
    /// The name of the output, or of the input of the enclosing scope.
    pub output: Name,
    /// The step that has it as an input.
    pub to: Name,
    /// The name of the input; for a result, of the output.
    pub input: Name,
    /// What it carries.
    pub kind: LinkKind,
    /// When, in the author's words: `first`, `subsequent`, `all`, `last`.
    pub when: Option<Name>,
}

/// The delay between two iterations of a loop.
#[derive(Clone, Debug, PartialEq)]
pub enum Delay {
    /// A duration, evaluated for each wait.
    Every(Template),
    /// A wait that may grow with each iteration.
    Backoff(Backoff),
    /// The longest of our own waits and the wait that the last answer requests.
    Server {
        /// Our own wait, as a backoff.
        own: Backoff,
        /// Our own wait, evaluated for each wait.
        interval: Option<Template>,
        /// The requested duration, evaluated for each wait.
        requested: Template,
    },
}

/// How much of a wait is random.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Jitter {
    /// Nothing.
    #[default]
    None,
    /// Up to a tenth is added.
    Tenth,
    /// Half of it.
    Equal,
    Full,
}

/// How long the waits between attempts are.
#[derive(Clone, Debug, PartialEq)]
pub enum Backoff {
    /// The same each time.
    Fixed {
        /// The wait.
        interval: Duration,
        /// How much of it is random.
        jitter: Jitter,
    },
    /// clamp(interval·2^attempt, min, max), never above the maximum.
    Exponential {
        /// The first wait.
        interval: Duration,
        /// The longest wait.
        max: Duration,
        /// The shortest wait.
        min: Duration,
        /// How much of it is random.
        jitter: Jitter,
    },
    /// Retry k is uniform in [max(2^(k-2)·interval, min), min(2^(k-1)·interval, max)] (Azure).
    AzureExponential {
        /// The base of the waits.
        interval: Duration,
        /// The longest wait.
        max: Duration,
        /// The shortest wait.
        min: Duration,
    },
}

/// Faults that are retried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RetryOn {
    /// A status code: `503`.
    Code(u16),
    /// A class of codes: `5xx` is 5.
    Class(u8),
    /// A kind of fault: `timeout`, `connection`, `handler`, …
    Kind(Name),
    /// The class that a script raised: `TimeoutError`.
    Named(Name),
    /// A fault that its executor marks as transient.
    Transient,
    /// A request that its server has certainly not processed: [`Fault::is_unprocessed`].
    Unprocessed,
}

impl fmt::Display for RetryOn {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(out, "{code}"),
            Self::Class(class) => write!(out, "{class}xx"),
            Self::Kind(name) | Self::Named(name) => out.write_str(name),
            Self::Transient => out.write_str("transient"),
            Self::Unprocessed => out.write_str("unprocessed"),
        }
    }
}
