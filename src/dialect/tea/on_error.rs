//! `on_error` of a node, with `settings.error_handling` behind it: a node that is tried again, or whose
//! failure becomes the key `__error__` of the state, after which the run goes on (docs/tea.md).

use super::builder::{object, set, text, with_result};
use super::{Place, Tea};
use crate::dialect::builder::{expression, only};
use crate::dialect::reader::Fields;
use crate::expression::{Syntax, Template, Value};
use crate::hir::{RetryPolicy, Step};
use crate::model::{Backoff, Jitter, Name, RetryOn, fault_kind};
use crate::source::{Entry, Kind, Node};
use std::time::Duration;

const HINT: &str = "for example on_error: { mode: retry, max_retries: 3, retry_delay: 1.0 }";

/// What TEA retries when nothing is said: the classes of Python.
const RETRIED: [&str; 19] = [
    "TimeoutError",
    "ConnectionError",
    "ConnectionResetError",
    "ConnectionRefusedError",
    "BrokenPipeError",
    "RateLimitError",
    "ServiceUnavailableError",
    "HTTPError",
    "Timeout",
    "ReadTimeout",
    "ConnectTimeout",
    "RequestException",
    "TransientError",
    "TemporaryError",
    "RetryableError",
    "TooManyRequests",
    "ServiceUnavailable",
    "BadGateway",
    "GatewayTimeout",
];

/// The kinds of faults of executors, and the classes that TEA raises there.
const CLASSES: [(&str, &str); 3] = [
    (fault_kind::TIMEOUT, "TimeoutError"),
    (fault_kind::CONNECTION, "ConnectionError"),
    (fault_kind::HTTP, "HTTPError"),
];

/// Other words for classes, without case.
const SHORT: [(&str, &str); 5] = [
    ("timeout", "TimeoutError"),
    ("connection_error", "ConnectionError"),
    ("rate_limit", "RateLimitError"),
    ("service_unavailable", "ServiceUnavailableError"),
    ("http_error", "HTTPError"),
];

/// The wait between two attempts grows to this at most.
const MAX_WAIT: Duration = Duration::from_secs(60);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// The failure ends the run.
    Raise,
    /// It becomes a key of the state.
    Graceful,
    /// The same after further attempts.
    Retry,
}

const MODES: [(&str, Mode); 3] = [
    ("raise", Mode::Raise),
    ("graceful", Mode::Graceful),
    ("retry", Mode::Retry),
];

/// What is done about a failure: of the file, or of one node.
#[derive(Clone, Debug)]
pub(super) struct ErrorHandling {
    mode: Mode,
    /// Attempts beyond the first.
    retries: i64,
    delay: Duration,
    /// The wait doubles each time.
    doubles: bool,
    /// The classes that are retried; none: [`RETRIED`].
    classes: Option<Vec<String>>,
}

impl ErrorHandling {
    /// What a file has that says nothing.
    pub(super) const DEFAULT: Self = Self {
        mode: Mode::Raise,
        retries: 3,
        delay: Duration::from_secs(1),
        doubles: true,
        classes: None,
    };
}

impl<'n> Tea<'_, 'n> {
    /// `settings.error_handling`: what `on_error` of a node leaves out. By itself it does nothing, as in TEA.
    pub(super) fn error_handling(&mut self, entry: &'n Entry) {
        let Some(mut fields) = self.fields(&entry.value, "`error_handling`", HINT) else {
            return;
        };
        fields.allow(&["clear_on_success", "error_responses"]);
        let base = self.on_error.clone();
        self.on_error = self.handling(&mut fields, base);
        fields.finish(self);
    }

    fn handling(&mut self, fields: &mut Fields<'n>, base: ErrorHandling) -> ErrorHandling {
        fields.allow(&["capture_traceback"]);
        let mode = fields.some(self, "mode");
        let mode = mode.and_then(|entry| {
            self.choice(entry, &MODES, |text| {
                format!("`{text}` is no mode of `on_error`")
            })
        });
        let retries = fields.some(self, "max_retries");
        let retries = retries.and_then(|entry| self.between(entry, 0.0, 100.0));
        let delay = fields.some(self, "retry_delay");
        let delay = delay.and_then(|entry| self.between(entry, 0.0, 300.0));
        let factor = fields.some(self, "backoff_multiplier");
        let doubles = factor.and_then(|entry| self.doubles(entry));
        let classes = fields.some(self, "retryable_errors");
        let classes = classes.and_then(|entry| self.classes(entry));
        #[allow(clippy::cast_possible_truncation, reason = "it is 100 at most")]
        let retries = retries.map(|retries| retries as i64);
        ErrorHandling {
            mode: mode.unwrap_or(base.mode),
            retries: retries.unwrap_or(base.retries),
            delay: delay.map_or(base.delay, Duration::from_secs_f64),
            doubles: doubles.unwrap_or(base.doubles),
            classes: classes.or(base.classes),
        }
    }

    /// A number within TEA's bounds.
    fn between(&mut self, entry: &Entry, least: f64, most: f64) -> Option<f64> {
        let whole = entry.key == "max_retries";
        let number = match entry.value.kind {
            Kind::Int(number) => i32::try_from(number).ok().map(f64::from),
            Kind::Float(number) if !whole => Some(number),
            _ => None,
        };
        let number = number.filter(|number| (least..=most).contains(number));
        if number.is_none() {
            let kind = if whole { "a whole number" } else { "a number" };
            let what = format!("`{}` must be {kind} from {least} to {most}", entry.key);
            self.error("out-of-range", entry.value.span, what, HINT);
        }
        number
    }

    fn doubles(&mut self, entry: &Entry) -> Option<bool> {
        let factor = match entry.value.kind {
            Kind::Int(1) => Some(1.0),
            Kind::Int(2) => Some(2.0),
            Kind::Float(factor) => Some(factor),
            _ => None,
        };
        match factor {
            Some(1.0) => Some(false),
            Some(2.0) => Some(true),
            _ => {
                let what = "waits can stay the same or double";
                let hint = "backoff_multiplier: 1 or backoff_multiplier: 2";
                self.error("not-supported", entry.value.span, what, hint);
                None
            }
        }
    }

    fn classes(&mut self, entry: &'n Entry) -> Option<Vec<String>> {
        let hint = "for example retryable_errors: [TimeoutError, ConnectionError]";
        let mut classes = Vec::new();
        for item in self.list(entry, hint)? {
            let Some(word) = item.as_str() else {
                self.wrong_type(item, "a class of errors", "text", hint);
                continue;
            };
            let long = SHORT
                .iter()
                .find(|(short, _)| short.eq_ignore_ascii_case(word));
            classes.push(long.map_or(word, |(_, class)| class).to_owned());
        }
        Some(classes)
    }

    /// The step of a node, with what its `on_error` says.
    pub(super) fn with_on_error(
        &mut self,
        step: Step,
        node: &'n Node,
        on_error: &'n Entry,
        place: &Place,
    ) -> Step {
        let mut fallback = None;
        let mut handling = self.on_error.clone();
        if !matches!(on_error.value.kind, Kind::Null)
            && let Some(mut fields) = self.fields(&on_error.value, "`on_error`", HINT)
        {
            handling = self.handling(&mut fields, handling);
            fallback = fields.some(self, "fallback");
            fields.finish(self);
        }
        if let Some(entry) = fallback {
            let why = "TEA does not go there either: use `goto` with state.__error__";
            self.ignored(entry, why);
        }
        if handling.mode == Mode::Raise {
            return step;
        }
        let retry = (handling.mode == Mode::Retry).then(|| handling.policy(on_error));
        let retries = retry.as_ref().map_or(0, |_| handling.retries);
        let name = step.name.replace('\'', "''");
        let fault = Template::parse(&format!("@actions('{name}').error"), Syntax::Loom);
        let error = fault.map(|fault| error_info(&fault, node, place, retries));
        let Ok(error) = error else { return step };
        let mut state = vec![set("__error__", error, place.span)];
        if let Some(name) = fallback.and_then(|entry| entry.value.as_str()) {
            state.push(set("__fallback_node__", text(name), place.span));
        }
        let caught = self.assigned(place, "on_error", state);
        Step {
            retry,
            catch: Some(only(caught)),
            ..step
        }
    }
}

impl ErrorHandling {
    fn policy(&self, on_error: &Entry) -> RetryPolicy {
        let jitter = Jitter::Tenth;
        let backoff = match self.doubles {
            true => Backoff::Exponential {
                interval: self.delay,
                max: MAX_WAIT.mul_f64(1.1),
                min: Duration::ZERO,
                jitter,
            },
            false => Backoff::Fixed {
                interval: self.delay.min(MAX_WAIT),
                jitter,
            },
        };
        RetryPolicy {
            backoff,
            count: Template::constant(Value::Int(self.retries)),
            on: self.retried(),
            when: None,
            span: on_error.key_span,
        }
    }

    fn retried(&self) -> Vec<RetryOn> {
        let classes: Vec<&str> = match &self.classes {
            Some(classes) => classes.iter().map(String::as_str).collect(),
            None => RETRIED.to_vec(),
        };
        let kinds = CLASSES.iter().filter(|(_, class)| classes.contains(class));
        let kinds = kinds.map(|(kind, _)| RetryOn::Kind(Name::from(*kind)));
        let raised = classes
            .iter()
            .map(|class| RetryOn::Named(Name::from(*class)));
        kinds.chain(raised).collect()
    }
}

/// The value of `__error__`.
fn error_info(fault: &Template, node: &Node, place: &Place, retries: i64) -> Template {
    let seen = |text: &str| with_result(fault, expression(text));
    let kinds = CLASSES
        .map(|(kind, class)| format!("'{kind}': '{class}'"))
        .join(", ");
    let class = format!(
        "(result.code if result.kind == 'script' and result.code \
         else {{{kinds}}}.get(result.kind, 'RuntimeError'))"
    );
    let retried = format!("{class} in {RETRIED:?}");
    let message = "result.message if result.kind != 'script' else \
                   result.message.removeprefix((result.code or '') ~ ': ').rsplit(' (line ', 1)[0]";
    let action = node.get("uses").and_then(Node::as_str);
    let null = || Template::constant(Value::Null);
    object([
        ("type", seen(&class)),
        ("message", seen(message)),
        ("node", text(place.shown())),
        ("action", action.map_or_else(null, text)),
        (
            "timestamp",
            Template::call("utcNow", Vec::new()).unwrap_or_else(|_| null()),
        ),
        (
            "retry_count",
            seen(&format!("{retries} if {retried} else 0")),
        ),
        ("is_retryable", seen(&retried)),
        ("traceback", null()),
        ("details", null()),
    ])
}
