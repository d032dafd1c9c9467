//! The words that every room uses: names, dialects, statuses, policies, requests and faults.
//! Plain data; nothing here decides anything.

use crate::expression::{Mode, Template, Value};
use crate::source::Span;
use bincode::de::Decoder;
use bincode::enc::Encoder;
use bincode::error::{DecodeError, EncodeError};
use bincode::{Decode, Encode};
use std::sync::Arc;
use std::time::Duration;

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

    /// Which expression rules it uses.
    #[must_use]
    pub fn mode(self) -> Mode {
        match self {
            Self::Azure => Mode::Azure,
            Self::Loom | Self::Tea | Self::Canvas => Mode::Loom,
        }
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
    /// A number.
    Number,
    /// true or false.
    Boolean,
    /// A list.
    Array,
    /// A map.
    Object,
}

impl InputKind {
    /// Whether `value` is of this kind as it stands. A whole number written as `2.0` is an integer.
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
    /// Its name.
    pub name: Name,
    /// What it must be.
    pub kind: InputKind,
    /// Its value when the caller gives none; without one it is required.
    pub default: Option<Value>,
    /// Where it is declared.
    pub span: Span,
}

/// How a handler is reached.
#[derive(Clone, Debug, PartialEq)]
pub enum HandlerTarget {
    /// argv; JSON on standard input, JSON on standard output.
    Command(Vec<String>),
    /// POST of JSON.
    Url(String),
    /// What is said in its place, where nothing else is registered: one answer after the other.
    Stub(Vec<Answer>),
}

/// What a stub says.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// What the handler would give.
    Value(Value),
    /// How it would fail.
    Error {
        /// The fault's kind; none: that of handlers.
        kind: Option<String>,
        /// Its code.
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
    /// It was cancelled.
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
    /// Every member of a map becomes a variable of its own; anything that is no map is ignored.
    MergeAll,
    /// The members of a map become the only variables; anything that is no map is ignored.
    ReplaceAll,
    /// The variables named in a list are no more; anything that is no list is ignored.
    RemoveAll,
}

/// When a loop looks at its condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Test {
    /// Before each iteration: the body may never run.
    Before,
    /// After each iteration: the body runs at least once.
    After,
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

/// What a loop over pages does when it comes to a page that it has been at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnRepeat {
    /// Fails, with a fault of kind `repeat`.
    Fail,
    /// Ends Succeeded, with the reason in its output.
    Stop,
}

/// What tells one page of a loop from another.
#[derive(Clone, Debug, PartialEq)]
pub struct Pages {
    /// What leads to the page that the next iteration reads: a token, a number, an address.
    pub token: Template,
    /// What a page that was read before does.
    pub on_repeat: OnRepeat,
}

/// Which iterations' values of a loop are kept for what comes after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Take {
    /// The first one.
    First,
    /// The last one.
    Last,
    /// One for every iteration, as an array.
    All,
}

/// What a link carries; see [`Link`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkKind {
    /// An output of a step beside it.
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
#[derive(Clone, Debug, PartialEq)]
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

/// How long the waits between attempts are.
#[derive(Clone, Debug, PartialEq)]
pub enum Backoff {
    /// The same each time.
    Fixed {
        /// The wait.
        interval: Duration,
    },
    /// clamp(interval·2^attempt, min, max) plus up to 10 % jitter, never above the maximum.
    Exponential {
        /// The first wait.
        interval: Duration,
        /// The longest.
        max: Duration,
        /// The shortest.
        min: Duration,
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
}

/// What a workflow may do to the machine that it runs on and to the network around that. It is
/// stored with the program, so that a run keeps it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Run commands: `shell`, and handlers of its own with `command`.
    pub shell: bool,
    /// Run scripts in languages that are not confined: Python, Prolog.
    pub scripts: bool,
    /// Write files of the machine.
    pub files: bool,
    /// Reach addresses that are not on the public internet.
    pub private_network: bool,
    /// Name any secret; without this only those that the operator lets guests name.
    pub secrets: bool,
}

/// What is in the last byte of a stored policy beside `private_network`.
const SECRETS_DENIED: u8 = 2;

/// By hand: a byte each, as before there was `secrets`, which is in the last one.
impl Encode for Policy {
    fn encode<E: Encoder>(&self, encoder: &mut E) -> Result<(), EncodeError> {
        let [shell, scripts, files, last] = self.bytes();
        [shell, scripts, files, last].encode(encoder)
    }
}

impl<Context> Decode<Context> for Policy {
    fn decode<D: Decoder<Context = Context>>(decoder: &mut D) -> Result<Self, DecodeError> {
        let [shell, scripts, files, last] = <[u8; 4]>::decode(decoder)?;
        if shell.max(scripts).max(files) > 1 || last > 1 + SECRETS_DENIED {
            return Err(DecodeError::Other("a policy that is none"));
        }
        Ok(Self {
            shell: shell == 1,
            scripts: scripts == 1,
            files: files == 1,
            private_network: last & 1 == 1,
            secrets: last & SECRETS_DENIED == 0,
        })
    }
}
bincode::impl_borrow_decode!(Policy);

impl Policy {
    /// For workflows of the operator.
    pub const TRUSTED: Self = Self {
        shell: true,
        scripts: true,
        files: true,
        private_network: true,
        secrets: true,
    };

    /// For workflows from elsewhere.
    pub const GUEST: Self = Self {
        shell: false,
        scripts: false,
        files: false,
        private_network: false,
        secrets: false,
    };

    /// What it says in four bytes.
    #[must_use]
    pub fn bytes(self) -> [u8; 4] {
        let denied = if self.secrets { 0 } else { SECRETS_DENIED };
        [
            u8::from(self.shell),
            u8::from(self.scripts),
            u8::from(self.files),
            u8::from(self.private_network) | denied,
        ]
    }

    /// Which permission an executor needs and does not have, as the flag that gives it.
    #[must_use]
    pub fn denies(self, executor: &str) -> Option<&'static str> {
        match executor {
            "shell" if !self.shell => Some("--allow-shell"),
            // Its rules are Prolog.
            "python" | "prolog" | "validate.extraction" if !self.scripts => Some("--allow-scripts"),
            "appendFile" if !self.files => Some("--allow-files"),
            _ => None,
        }
    }
}

impl Default for Policy {
    fn default() -> Self {
        Self::TRUSTED
    }
}

/// What the machine asks an executor to do: one attempt of one action, fully rendered.
///
/// It is stored before it starts, so that a repetition after a crash is the same request with the
/// same key.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub struct Request {
    /// The executor: `http`, `shell`, `activity`, …
    pub executor: Name,
    /// The action's name.
    pub action: Name,
    /// Its rendered inputs.
    pub inputs: Value,
    /// The idempotency key: run, loop path, iteration and step, without the attempt.
    pub key: String,
    /// Which attempt this is, from 1.
    pub attempt: u32,
    /// How long the attempt may take, in milliseconds; none: the executor's default.
    pub timeout_ms: Option<u64>,
}

/// Stands for the whole state of a run at `globals.state` in the stored inputs of a script: the
/// state is there already, and would be stored again with every script.
pub const WHOLE_STATE: &str = "(the whole state)";

impl Request {
    /// The request as an executor gets it: with the state where [`WHOLE_STATE`] stands for it.
    ///
    /// The state is that of the moment: a format may use the mark only where nothing else changes
    /// variables while a script runs, so that a repetition after a crash is the same request.
    #[must_use]
    pub fn with_state(&self, state: &Value) -> Self {
        let globals = self.inputs.get("globals").and_then(Value::as_object);
        let Some(globals) = globals.filter(|globals| {
            let marked = globals.get("state").and_then(Value::as_str);
            marked == Some(WHOLE_STATE)
        }) else {
            return self.clone();
        };
        let mut globals = globals.clone();
        globals.insert(Name::from("state"), state.clone());
        let mut inputs = self.inputs.as_object().cloned().unwrap_or_default();
        inputs.insert(Name::from("globals"), Value::object(globals));
        Self {
            inputs: Value::object(inputs),
            ..self.clone()
        }
    }
}

/// Something that went wrong in a run. It belongs to the run, can be caught and retried, and is
/// never the engine's own error.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub struct Fault {
    /// What `on:` of a retry policy and `error.kind` name: see [`fault_kind`].
    pub kind: Name,
    /// A status or exit code, when there is one: `503`.
    pub code: Option<Name>,
    /// What happened, in one line.
    pub message: String,
    /// What the action gave all the same, such as the response of a failed HTTP call.
    pub output: Option<Value>,
    /// How long the other side asked to wait (Retry-After), in milliseconds.
    pub retry_after_ms: Option<u64>,
    /// Whether a policy without `on` retries it.
    pub transient: bool,
}

/// The kinds of [`Fault`].
pub mod fault_kind {
    /// A response of 400 or above.
    pub const HTTP: &str = "http";
    /// No answer, or a connection that broke.
    pub const CONNECTION: &str = "connection";
    /// An attempt, a step or a loop took too long.
    pub const TIMEOUT: &str = "timeout";
    /// A loop's count or another budget is spent.
    pub const LIMIT: &str = "limit";
    /// A loop over pages came to a page that it had been at.
    pub const REPEAT: &str = "repeat";
    /// An expression failed.
    pub const EXPRESSION: &str = "expression";
    /// Inputs that an executor cannot use.
    pub const INPUT: &str = "input";
    /// A command ended with another code than 0, or could not be started.
    pub const SHELL: &str = "shell";
    /// A script failed, or what runs it.
    pub const SCRIPT: &str = "script";
    /// A model's answer that cannot be used.
    pub const AI: &str = "ai";
    /// A handler failed.
    pub const HANDLER: &str = "handler";
    /// `terminate`.
    pub const TERMINATED: &str = "terminated";
    /// Something that the operator does not allow this workflow.
    pub const DENIED: &str = "denied";
    /// A secret that is not there, or that something was to be computed from.
    pub const SECRET: &str = "secret";
    /// Something larger than the engine takes.
    pub const TOO_LARGE: &str = "too_large";
}

impl Fault {
    /// A fault that a policy without `on` does not retry.
    pub fn new(kind: &str, message: impl Into<String>) -> Self {
        Self {
            kind: Name::from(kind),
            code: None,
            message: message.into(),
            output: None,
            retry_after_ms: None,
            transient: false,
        }
    }

    /// The same, retried by a policy without `on`.
    #[must_use]
    pub fn transient(mut self) -> Self {
        self.transient = true;
        self
    }

    /// The same with a code.
    #[must_use]
    pub fn code(mut self, code: impl ToString) -> Self {
        self.code = Some(Name::from(code.to_string()));
        self
    }

    /// The same with what the action gave.
    #[must_use]
    pub fn output(mut self, output: Value) -> Self {
        self.output = Some(output);
        self
    }

    /// The same as records and errors keep it: what the action gave is kept beside it.
    #[must_use]
    pub fn without_output(&self) -> Self {
        Self {
            kind: self.kind.clone(),
            code: self.code.clone(),
            message: self.message.clone(),
            output: None,
            retry_after_ms: self.retry_after_ms,
            transient: self.transient,
        }
    }
}

/// The unit of a [`Recurrence`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frequency {
    /// Seconds.
    Second,
    /// Minutes.
    Minute,
    /// Hours.
    Hour,
    /// Days.
    Day,
    /// Weeks.
    Week,
    /// Calendar months.
    Month,
}

impl Frequency {
    /// The frequency named so, without case.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let all = [
            ("second", Self::Second),
            ("minute", Self::Minute),
            ("hour", Self::Hour),
            ("day", Self::Day),
            ("week", Self::Week),
            ("month", Self::Month),
        ];
        all.into_iter()
            .find(|(name, _)| name.eq_ignore_ascii_case(text))
            .map(|(_, frequency)| frequency)
    }
}

/// When runs of a workflow start by themselves, and what is done about a time that cannot be kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// When.
    pub when: When,
    /// What is done when the run of an earlier time has not ended.
    pub overlap: Overlap,
    /// What is done about times at which no server was there.
    pub missed: Missed,
}

/// The times of a [`Schedule`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum When {
    /// A cron pattern, on the clock of a time zone; UTC without one.
    Cron {
        /// Minute, hour, day of the month, month, day of the week.
        pattern: Name,
        /// A Windows or IANA name.
        zone: Option<Name>,
    },
    /// Every so often.
    Recurrence(Recurrence),
}

/// What a [`Schedule`] does when the run of an earlier time has not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overlap {
    /// Nothing: the time passes.
    Skip,
    /// Starts one all the same.
    Allow,
    /// Starts one when it has ended; one at most waits.
    Queue,
}

/// What a [`Schedule`] does about times at which no server was there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missed {
    /// Nothing.
    Skip,
    /// Starts one run, however many were missed.
    RunOnce,
}

/// When runs start by themselves (Logic Apps reference, "Recurrence trigger").
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recurrence {
    /// The unit.
    pub frequency: Frequency,
    /// Every how many units, from 1.
    pub interval: u32,
    /// The first time, local to the time zone; UTC without one.
    pub start: Option<chrono::NaiveDateTime>,
    /// No time is after this one; as local as the first.
    pub end: Option<chrono::NaiveDateTime>,
    /// A Windows or IANA name.
    pub time_zone: Option<Name>,
    /// For days and weeks: at these hours.
    pub hours: Vec<u32>,
    /// For days and weeks: at these minutes.
    pub minutes: Vec<u32>,
    /// For weeks: on these days, 0 is Monday.
    pub week_days: Vec<u32>,
}
