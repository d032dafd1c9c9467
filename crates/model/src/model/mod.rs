//! The words that every room uses: names, dialects, statuses, policies, requests and faults.
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
pub use trace::{SpanOf, trace_id, traceparent};

use bincode::{Decode, Encode};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use windlass_expression::{Condition, Template, Value};
use windlass_source::source::Span;

/// A name as its author wrote it; compared without case where the dialect does.
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

/// What starts a run. Its input is what the trigger delivers: `triggerBody()`.
#[derive(Clone, Debug)]
pub struct Trigger {
    pub name: Name,
    /// What `workflow()` returns in addition to the run: an object with `id` and `type`.
    pub workflow: Value,
}

/// Which parts of an action are secure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Secured {
    /// What it is given.
    pub inputs: bool,
    /// What it gives.
    pub outputs: bool,
}

impl Dialect {
    /// Its word in files, flags and the store.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Loom => "loom",
            Self::Azure => "azure",
            Self::Tea => "tea",
            Self::Canvas => "canvas",
        }
    }

    /// The dialect of that word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        let all = [Self::Loom, Self::Azure, Self::Tea, Self::Canvas];
        all.into_iter().find(|dialect| dialect.as_str() == word)
    }
}

/// What an input or a typed variable must be; text from the command line is converted.
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
    /// Whether `value` is of this kind, without conversion. A whole number written as `2.0` is an integer.
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

    /// The kind with its article, for messages.
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
    /// What it must be.
    pub kind: InputKind,
    /// Its value when the caller gives none; without one it is required.
    pub default: Option<Value>,
    /// Where it is declared.
    pub span: Span,
}

/// Where the values of a workflow are written that belong to no action.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamedSpans {
    /// Of each variable.
    pub variables: Vec<NamedSpan>,
    /// Of each output; of one that is not a map, under no name.
    pub outputs: Vec<NamedSpan>,
}

/// Where a named value is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedSpan {
    pub name: Name,
    pub span: Span,
}

/// What a run gives when it succeeds.
#[derive(Clone, Debug, PartialEq)]
pub enum Outputs {
    /// A template's value.
    Template(Template),
    /// Every top-level action's output by name, or the response if there was one.
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
    /// What is answered in its place, where nothing else is registered: one answer after the other.
    Stub(Vec<StubAnswer>),
}

/// What a stub says.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StubAnswer {
    /// What the handler would give.
    Value(Value),
    /// How it would fail.
    Error {
        /// The fault's kind; none: that of handlers.
        kind: Option<String>,
        code: Option<String>,
        /// What happened.
        message: String,
        /// What it gave all the same.
        output: Option<Value>,
    },
}

/// A handler that a file declares for an activity, actor or connector.
#[derive(Clone, Debug)]
pub struct Handler {
    /// The name actions call it by.
    pub name: Name,
    /// How it is reached.
    pub target: HandlerTarget,
    /// Where it is declared.
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
    /// It did not.
    Failed,
    /// Its turn never came.
    Skipped,
    /// A deadline cut it.
    TimedOut,
    Cancelled,
}

impl Status {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Succeeded,
        Self::Failed,
        Self::Skipped,
        Self::TimedOut,
        Self::Cancelled,
    ];

    /// The word in files and outputs.
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

    /// The status named so, without case.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let named = |status: &Self| status.as_str().eq_ignore_ascii_case(text);
        Self::ALL.into_iter().find(named)
    }
}

/// How a value gets into a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AssignOp {
    /// Replaces it; creates it when missing.
    Set,
    /// Adds a number.
    Increment,
    /// Subtracts a number.
    Decrement,
    /// Adds an element at the end.
    AppendToArray,
    /// Adds text at the end.
    AppendToString,
    /// Every member of a map becomes a variable of its own; anything that is not a map is ignored.
    MergeAll,
    /// The members of a map become the only variables; anything that is not a map is ignored.
    ReplaceAll,
    /// The variables named in a list are removed; anything that is not a list is ignored.
    RemoveAll,
}

/// When a loop checks its condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Test {
    /// Before each iteration: the body may never run.
    Before,
    /// After each iteration: the body runs at least once.
    After,
    /// The same, where `loopIndex` is the next iteration already (docs/reference/loom.md).
    AfterAsNext,
}

/// The variable with the failure of the body, for `on_failure` and `on_finish`; null when it did not fail.
pub const FAILURE: &str = "failure";

/// The variable with what a run read last of its workflow's state: by name the value and its version.
pub const STATE_VARIABLE: &str = "$state";

/// The variable of a run with the number of signals that it has received, or stopped to wait for, by name.
pub const RECEIVED_VARIABLE: &str = "_windlass_received";

/// The variable of a run with the ids of the last signals that it received.
pub const SIGNAL_IDS_VARIABLE: &str = "_windlass_signals";

/// The action that writes a value between runs, and the one that reads the newest one.
pub const SET_STATE: &str = "setState";
pub const GET_STATE: &str = "getState";

/// What `on_failure` and `on_finish` leave when they fail: a variable with the error, and a label of the run.
pub const FAILED_ENDINGS: [&str; 2] = ["windlass.on_failure", "windlass.on_finish"];

/// What a cancel of an operation leaves when it fails: a variable of this name and the action's, with the error.
pub const FAILED_CANCEL: &str = "windlass.cancel.";

/// What is expected of an action's output; else the action has failed.
#[derive(Clone, Debug, PartialEq)]
pub enum Expect {
    /// Its body is JSON: an object, a list, a number or a boolean.
    Json,
    /// This holds.
    That(Condition),
    /// This does not hold: it says that a long operation has failed.
    NotFailed(Condition),
}

/// What an item of a foreach that fails does to the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnError {
    /// No further item starts; the foreach fails.
    Stop,
    /// All run; the foreach fails then (Azure).
    Finish,
    /// All run; the foreach succeeds and gives `{results, failed}`.
    Continue,
}

/// What a loop does at a limit; the outcome and the reason are always recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnLimit {
    /// Count: Failed; timeout: TimedOut.
    Fail,
    /// Ends Succeeded, with the reason in its output.
    Continue,
    /// The run pauses; a resume grants the same budget again.
    Pause,
}

/// The effect of a member or an element that the condition of a loop reads and that does not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnMissing {
    /// The condition faults.
    Fail,
    /// The condition is not met yet: the loop continues until a limit.
    Wait,
}

/// What a loop over pages does when it comes to a page that it has been at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnRepeat {
    /// Fails, with a fault of kind `repeat`.
    Fail,
    /// Ends Succeeded, with the reason in its output.
    Stop,
}

/// What distinguishes one page of a loop from another.
#[derive(Clone, Debug, PartialEq)]
pub struct Pages {
    /// What leads to the page that the next iteration reads: a token, a number, an address.
    pub token: Template,
    /// What a page that was read before does.
    pub on_repeat: OnRepeat,
}

/// When a loop makes no progress.
#[derive(Clone, Debug, PartialEq)]
pub struct Unchanged {
    /// Number of consecutive iterations with the same result.
    pub times: u64,
    /// What is compared; none: the iterations' results.
    pub of: Option<Template>,
}

/// The iterations of a loop whose values are available after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Take {
    First,
    Last,
    /// One for every iteration, as an array.
    All,
}

/// What a link carries; see [`Link`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LinkKind {
    /// An output of another step in the same scope.
    Edge,
    /// An input of what is around it.
    Outer,
    /// An output of the iteration before.
    Previous,
    /// An output of the inside, given to the outside.
    Result,
}

/// A named value that goes from one step to another: for diagrams and dumps. What moves the value
/// are the steps' templates.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Link {
    /// The step it comes from; none: the run's inputs.
    pub from: Option<Name>,
    /// Which of its outputs, or of the inputs around it.
    pub output: Name,
    /// The step it goes to.
    pub to: Name,
    /// Which of its inputs; for a result, of its outputs.
    pub input: Name,
    /// What it carries.
    pub kind: LinkKind,
    /// When, in the author's words: `first`, `subsequent`, `all`, `last`.
    pub when: Option<Name>,
}

/// What lies between the iterations of a loop.
#[derive(Clone, Debug, PartialEq)]
pub enum Delay {
    /// A duration, evaluated for each wait.
    Every(Template),
    /// A wait that may grow with each iteration.
    Backoff(Backoff),
    /// Our own wait, or what the last answer asks for if that is longer.
    Server {
        /// Our own wait.
        own: Backoff,
        /// Our own wait that is evaluated for each wait.
        interval: Option<Template>,
        /// A duration, evaluated for each wait.
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
        /// The longest.
        max: Duration,
        /// The shortest.
        min: Duration,
        /// How much of it is random.
        jitter: Jitter,
    },
    /// Retry k is uniform in [max(2^(k-2)·interval, min), min(2^(k-1)·interval, max)] (Azure).
    AzureExponential {
        /// The base.
        interval: Duration,
        /// The longest.
        max: Duration,
        /// The shortest.
        min: Duration,
    },
}

/// A fault that is retried.
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
    /// A fault that its executor calls transient.
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
