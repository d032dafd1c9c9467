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
mod wall_time;

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
    IF_CHANGED, MODEL_OPTIONS, MODEL_PROVIDERS, MODEL_RETRIES, NOT_CONNECTED, OWN_KEYS, RATE,
    Request, SAVE_TO, WHOLE_STATE, WORKFLOW, fault_kind, overrides_method,
};
pub use rules::{Rules, UnrunActionValue};
pub use schedule::{Frequency, Missed, Overlap, Recurrence, Schedule, When};
pub use trace::{SpanSubject, trace_id, traceparent};
pub use wall_time::instant_of;

use bincode::{Decode, Encode};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use windlass_expression::{Condition, Template, Value};
use windlass_source::source::Span;

/// A name as its author wrote it. If the dialect ignores case, names are compared ignoring case.
pub type Name = Arc<str>;

/// The formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Encode, Decode)]
pub enum Dialect {
    /// Windlass's own format.
    Loom,
    /// A Logic Apps definition.
    Azure,
    /// The Edge Agent.
    Tea,
    /// Canvas: loop nodes in a graph of nodes with ports.
    Canvas,
}

/// What starts a run. The run's input is what the trigger delivers: `triggerBody()`.
#[derive(Clone, Debug)]
pub struct Trigger {
    pub name: Name,
    /// The result of the function `workflow()`, to which `run` is added at evaluation. An object with `id` and
    /// `type`.
    pub workflow: Value,
    /// The members of the body that are numbers or booleans by the schema of the trigger.
    pub body: Vec<Input>,
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

/// The type of an input or of a typed variable. Text from the command line is converted to this type.
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

    /// Returns the value of a variable of this kind that was declared without one.
    #[must_use]
    pub fn empty_value(self) -> Value {
        match self {
            Self::Any | Self::Object => Value::Null,
            Self::String => Value::text(""),
            Self::Integer => Value::Int(0),
            Self::Number => Value::Float(0.0),
            Self::Boolean => Value::Bool(false),
            Self::Array => Value::array(Vec::new()),
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
    pub kind: InputKind,
    /// The input's value if the caller passes none. An input without a default is required.
    pub default: Option<Value>,
    /// What the input is for, for people.
    pub description: Option<String>,
    pub span: Span,
}

/// Positions of the values of a workflow that belong to no action.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamedSpans {
    /// Positions of the variables.
    pub variables: Vec<NamedSpan>,
    /// Positions of the outputs. If the outputs are not a map, there is one entry, without a name.
    pub outputs: Vec<NamedSpan>,
    /// Position of the schedule. Only Loom has it.
    pub schedule: Option<Span>,
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
    /// The response, if the run recorded one. Otherwise, the outputs of all top-level actions by name.
    Actions,
    /// The final variables.
    State,
}

/// How long to sleep.
#[derive(Clone, Debug, PartialEq)]
pub enum Sleep {
    /// A duration: ISO 8601 text or `{count, unit}`. In TEA and canvas it may also be a number of seconds.
    For(Template),
    /// An instant, RFC 3339.
    Until(Template),
}

/// How a handler is reached.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HandlerTarget {
    /// A command with its arguments. It reads JSON on standard input and writes JSON to standard output.
    Command(Vec<String>),
    /// A URL to which JSON is sent with POST.
    Url(String),
    /// Answers that are used one after the other if no other handler is registered under the name.
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
        /// The fault's kind. `None` means [`fault_kind::HANDLER`].
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
    /// The action did what it should.
    Succeeded,
    /// The action failed.
    Failed,
    /// The action was not started.
    Skipped,
    /// A deadline cancelled the action.
    TimedOut,
    Cancelled,
}

impl Status {
    pub const ALL: [Self; 5] = [
        Self::Succeeded,
        Self::Failed,
        Self::Skipped,
        Self::TimedOut,
        Self::Cancelled,
    ];

    /// Returns true for `Failed` and `TimedOut`.
    #[must_use]
    pub fn is_failure(self) -> bool {
        matches!(self, Self::Failed | Self::TimedOut)
    }

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
    /// Before each iteration, so the body may never run.
    Before,
    /// After each iteration, so the body runs at least once.
    After,
    /// Like `After`, but `loopIndex` has already the value of the next iteration (docs/reference/loom.md).
    AfterAsNext,
}

/// The variable with the failure of the body, for `on_failure` and `on_finish`. It is null if the body did not fail.
pub const FAILURE: &str = "failure";

/// The variable with the values and versions, by name, that the run last read of its workflow's state.
pub const STATE_VARIABLE: &str = "$state";

/// The variable that has, for each name of a signal, the number of such signals that the run has received or stopped
/// waiting for.
pub const RECEIVED_VARIABLE: &str = "_windlass_received";

/// The variable with the ids of the signals that a run received most recently.
pub const SIGNAL_IDS_VARIABLE: &str = "_windlass_signals";

/// The variable with the values that `memory.store` of The Edge Agent has stored.
pub const MEMORY_VARIABLE: &str = "_windlass_memory";

/// The variable with the lengths of the files that a workflow of The Edge Agent appended to.
pub const FILES_VARIABLE: &str = "_files";

/// Variables that belong to the run: isolated branches share them, and no operation on all variables changes them.
/// Those with the prefix [`OWN_KEYS`] are not part of the state that expressions and scripts read.
pub const RUN_VARIABLES: [&str; 4] = [
    RECEIVED_VARIABLE,
    SIGNAL_IDS_VARIABLE,
    MEMORY_VARIABLE,
    FILES_VARIABLE,
];

/// The action that writes a value of the workflow's state.
pub const SET_STATE: &str = "setState";
/// The action that reads a value of the workflow's state.
pub const GET_STATE: &str = "getState";

/// For an `on_failure` or `on_finish` that fails: the name of the variable with its error, and of a label of the run.
pub const FAILED_ENDINGS: [&str; 2] = ["windlass.on_failure", "windlass.on_finish"];

/// The prefix of a variable with the error of a failed cancel of an operation. The rest is the name of the action.
pub const FAILED_CANCEL: &str = "windlass.cancel.";

/// An expectation of an action's output. If it is not met, the action has failed.
#[derive(Clone, Debug, PartialEq)]
pub enum Expect {
    /// The body of the output is JSON: an object, a list, a number or a boolean.
    Json,
    /// The text in `content` of a model's answer is JSON: an object or a list.
    JsonContent,
    /// This condition holds.
    That(Condition),
    /// This condition does not hold. It holds if a long operation has failed.
    NotFailed(Condition),
}

/// What the failure of one item of a foreach does to its other items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnError {
    /// No further item starts; the foreach fails.
    Stop,
    /// All items run; then the foreach fails (as in Logic Apps).
    Finish,
    /// All items run; the foreach succeeds with `{results, failed}`.
    Continue,
}

/// What a loop does at a limit; the outcome and the reason are always recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnLimit {
    /// The loop ends as Failed if the limit is a count, and as TimedOut if it is the timeout.
    Fail,
    /// The loop ends as Succeeded, with the reason in its output.
    Continue,
    /// The run pauses. If it is resumed, the loop has the same budget again.
    Pause,
}

/// What happens if the condition of a loop reads a member or an element that does not exist.
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
    /// The loop fails, with a fault of kind `repeat`.
    Fail,
    /// The loop ends as Succeeded, with the reason in its output.
    Stop,
}

/// What distinguishes one page of a loop from another.
#[derive(Clone, Debug, PartialEq)]
pub struct Pages {
    /// The value that identifies the page that the next iteration reads: a token, a number, an address.
    pub token: Template,
    /// What happens when a page is reached that was read before.
    pub on_repeat: OnRepeat,
}

/// When a loop makes no progress.
#[derive(Clone, Debug, PartialEq)]
pub struct Unchanged {
    /// Number of consecutive iterations with the same result.
    pub times: u64,
    /// The value that is compared. `None` means the iterations' results.
    pub of: Option<Template>,
}

/// The iterations of a loop whose values are available after the loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CollectMode {
    First,
    Last,
    /// The values of all iterations, as an array.
    All,
}

/// What kind of value a link passes; see [`Link`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LinkKind {
    /// An output of another step in the same scope.
    Edge,
    /// An input of the enclosing scope.
    Outer,
    /// An output of the iteration before.
    Previous,
    /// An output of a step inside a scope that becomes an output of the scope.
    Result,
}

/// A named value that is passed from one step to another, for diagrams and dumps.
/// A link only describes this. The templates of the steps pass the value.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Link {
    /// The step that has the value as an output. `None` means the run's inputs.
    pub from: Option<Name>,
    /// The name of the output. If the value is an input of the enclosing scope, the name of this input.
    pub output: Name,
    /// The step that has the value as an input.
    pub to: Name,
    /// The name of the input. For a link of the kind `Result`, the name of the scope's output.
    pub input: Name,
    /// What kind of value the link passes.
    pub kind: LinkKind,
    /// The iterations in which the link passes the value, in the author's words: `first`, `subsequent`, `all`,
    /// `last`.
    pub when: Option<Name>,
}

/// The delay between two iterations of a loop.
#[derive(Clone, Debug, PartialEq)]
pub enum Delay {
    /// A duration, evaluated for each wait.
    Every(Template),
    /// A wait that may grow with each iteration.
    Backoff(Backoff),
    /// The longer of the loop's own wait and the wait that the last answer requests.
    Server {
        /// The loop's own wait, as a backoff.
        own: Backoff,
        /// The loop's own wait, as a template that is evaluated for each wait.
        interval: Option<Template>,
        /// The duration that the answer requests, evaluated for each wait.
        requested: Template,
    },
}

/// How much of a wait is random.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Jitter {
    /// The wait has no random part.
    #[default]
    None,
    /// A random time is added: up to a tenth of the wait.
    Tenth,
    /// Half of the wait is random.
    Equal,
    Full,
}

/// How long the waits between attempts are.
#[derive(Clone, Debug, PartialEq)]
pub enum Backoff {
    /// The same wait each time.
    Fixed {
        /// The wait.
        interval: Duration,
        /// How much of it is random.
        jitter: Jitter,
    },
    /// The wait is interval·2^attempt, but at least `min` and at most `max`. The random part never exceeds `max`.
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
    /// The wait before retry k is uniform in [max(2^(k-2)·interval, min), min(2^(k-1)·interval, max)], as in Logic
    /// Apps.
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
    /// A class of status codes: 5 is `5xx`.
    Class(u8),
    /// A kind of fault: `timeout`, `connection`, `handler`, …
    Kind(Name),
    /// The name of the exception class that a script raised: `TimeoutError`.
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
