//! `on_error` of a node, with its defaults in `settings.error_handling` (docs/reference/tea.md).
//! In the mode `retry`, the node is retried. In the modes `retry` and `graceful`, the final failure is stored under the
//! key `__error__` of the state, and the run continues.

use super::builder::{anonymous_step, block, object, output_of, replace, set, text, with_result};
use super::{SourcePosition, Tea, builder};
use crate::builder::{expression, only};
use crate::fields::Fields;
use crate::reader::Reader;
use std::time::Duration;
use windlass_expression::{Binding, Syntax, Template, Value};
use windlass_model::hir::{Assignment, RetryPolicy, Step, StepKind};
use windlass_model::model::{Backoff, Jitter, Name, RetryOn, fault_kind};
use windlass_source::source::{Entry, Kind, Node};
use windlass_value::words;

const HINT: &str = "for example on_error: { mode: retry, max_retries: 3, retry_delay: 1.0 }";

/// The exception classes of Python that TEA retries by default.
const RETRIED: [&str; 19] = words! {
    TimeoutError ConnectionError ConnectionResetError ConnectionRefusedError BrokenPipeError
    RateLimitError ServiceUnavailableError HTTPError Timeout ReadTimeout ConnectTimeout
    RequestException TransientError TemporaryError RetryableError TooManyRequests ServiceUnavailable
    BadGateway GatewayTimeout
};

/// Kinds of faults, each with the exception class that TEA raises for it.
const CLASSES: [(&str, &str); 5] = [
    (fault_kind::TIMEOUT, "TimeoutError"),
    (fault_kind::CONNECTION, "ConnectionError"),
    (fault_kind::HTTP, "HTTPError"),
    (fault_kind::EXPRESSION, "ValueError"),
    ("reflection", "ReflectionFailedError"),
];

/// The exception class that TEA raises for the faults of the kinds in [`RUNTIME_ERROR_KINDS`]. A fault of a script has
/// a class of its own.
const RUNTIME_ERROR: &str = "RuntimeError";
const RUNTIME_ERROR_KINDS: [&str; 10] = [
    fault_kind::INPUT,
    fault_kind::SHELL,
    fault_kind::AI,
    fault_kind::HANDLER,
    fault_kind::LIMIT,
    fault_kind::DENIED,
    fault_kind::SECRET,
    fault_kind::TOO_LARGE,
    fault_kind::INEXACT,
    "edge",
];

/// Short words for exception classes, in upper or lower case.
const SHORT: [(&str, &str); 5] = [
    ("timeout", "TimeoutError"),
    ("connection_error", "ConnectionError"),
    ("rate_limit", "RateLimitError"),
    ("service_unavailable", "ServiceUnavailableError"),
    ("http_error", "HTTPError"),
];

/// Maximum wait between two attempts, without jitter.
const MAX_WAIT: Duration = Duration::from_secs(60);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// The failure ends the run.
    Raise,
    /// The failure is stored under a key of the state, and the run continues.
    Graceful,
    /// Like `Graceful`, but after further attempts.
    Retry,
}

const MODES: [(&str, Mode); 3] = [
    ("raise", Mode::Raise),
    ("graceful", Mode::Graceful),
    ("retry", Mode::Retry),
];

/// How failures are handled, in the whole file or in one node.
#[derive(Clone, Debug)]
pub(super) struct ErrorHandling {
    mode: Mode,
    /// Maximum number of attempts after the first.
    retries: i64,
    delay: Duration,
    /// Whether the wait doubles each time.
    doubles: bool,
    /// The exception classes that are retried. `None` means [`RETRIED`].
    classes: Option<Vec<String>>,
}

impl ErrorHandling {
    /// The values of a file without `settings.error_handling`.
    pub(super) const DEFAULT: Self = Self {
        mode: Mode::Raise,
        retries: 3,
        delay: Duration::from_secs(1),
        doubles: true,
        classes: None,
    };
}

impl<'n> Tea<'_, 'n> {
    /// Reads `settings.error_handling`, the defaults for `on_error` of nodes.
    /// As in TEA, they have no effect on a node without `on_error`.
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
        let mode = fields.non_null(self, "mode");
        let mode = mode.and_then(|entry| {
            self.choice(entry, &MODES, |text| {
                format!("`{text}` is not a valid mode of `on_error`")
            })
        });
        let retries = fields.non_null(self, "max_retries");
        let retries = retries.and_then(|entry| self.between(entry, 0.0, 100.0));
        let delay = fields.non_null(self, "retry_delay");
        let delay = delay.and_then(|entry| self.between(entry, 0.0, 300.0));
        let factor = fields.non_null(self, "backoff_multiplier");
        let doubles = factor.and_then(|entry| self.doubles(entry));
        let classes = fields.non_null(self, "retryable_errors");
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

    /// Reads a number within TEA's bounds.
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

    /// Adds the retries and the handler of `on_error` to the step of a node.
    pub(super) fn with_on_error(
        &mut self,
        step: Step,
        node: &'n Node,
        on_error: &'n Entry,
        place: &SourcePosition,
    ) -> Step {
        let mut fallback = None;
        let mut handling = self.on_error.clone();
        if !matches!(on_error.value.kind, Kind::Null)
            && let Some(mut fields) = self.fields(&on_error.value, "`on_error`", HINT)
        {
            handling = self.handling(&mut fields, handling);
            fallback = fields.non_null(self, "fallback");
            fields.finish(self);
        }
        if let Some(entry) = fallback {
            let why = "TEA does not go there either: use `goto` with state.__error__";
            self.ignored(entry, why);
        }
        if handling.mode == Mode::Raise {
            return step;
        }
        let retry = match handling.mode {
            Mode::Retry => handling.policy(on_error),
            Mode::Raise | Mode::Graceful => None,
        };
        let caught = CaughtNode {
            retry,
            node,
            fallback,
        };
        // A call that failed has not changed the state. But if a node has several steps, those before the failed one
        // have changed it.
        match step.kind {
            StepKind::Call(_) => self.caught_call(step, caught, place),
            _ => self.caught_steps(step, caught, place),
        }
    }

    fn caught_call(&mut self, step: Step, caught: CaughtNode<'_>, place: &SourcePosition) -> Step {
        let attempts = Template::binding(Binding::Attempts(step.name.clone()));
        let failed = caught.state(self, &step.name, &attempts, place);
        let handler = self.assigned(place, "on_error", failed);
        Step {
            retry: caught.retry,
            catch: Some(only(handler)),
            ..step
        }
    }

    /// Makes steps in which each attempt begins with the saved state, and in which a failure restores this state.
    fn caught_steps(&mut self, step: Step, caught: CaughtNode<'_>, place: &SourcePosition) -> Step {
        let saved = StepKind::Compose(builder::state());
        let saved = anonymous_step(self.part(place, "before"), "compose", saved);
        let as_before = || replace(output_of(&saved.name), place.span);
        let number = Template::binding(Binding::Attempt);
        let reset = builder::assign(vec![as_before()], Some(number));
        let reset = anonymous_step(self.part(place, "reset"), "assign", reset);
        let attempt = self.part(place, "attempt");
        let mut failed = vec![as_before()];
        let attempts = output_of(&reset.name);
        failed.extend(caught.state(self, &attempt.name, &attempts, place));
        let handler = self.assigned(place, "on_error", failed);
        let inside = self.part(place, "once");
        let label = step.label.clone();
        let once = Step {
            name: inside.name,
            title: Some(place.shown().clone()),
            anonymous: true,
            ..step
        };
        let output = output_of(&once.name);
        let attempt = Step {
            retry: caught.retry,
            catch: Some(only(handler)),
            ..anonymous_step(attempt, "attempt", block(vec![reset, once]))
        };
        Step {
            output: Some(output),
            ..builder::step(place.clone(), &label, block(vec![saved, attempt]))
        }
    }
}

impl ErrorHandling {
    /// Makes the retry policy. Returns `None` if nothing is retried.
    fn policy(&self, on_error: &Entry) -> Option<RetryPolicy> {
        let on = self.retried();
        if on.is_empty() {
            return None;
        }
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
        Some(RetryPolicy {
            backoff,
            count: Template::constant(Value::Int(self.retries)),
            on,
            when: None,
            is_default: false,
            span: on_error.key_span,
        })
    }

    fn retried(&self) -> Vec<RetryOn> {
        let classes: Vec<&str> = match &self.classes {
            Some(classes) => classes.iter().map(String::as_str).collect(),
            None => RETRIED.to_vec(),
        };
        let kinds = CLASSES.iter().filter(|(_, class)| classes.contains(class));
        let kinds = kinds.map(|(kind, _)| *kind);
        let others = RUNTIME_ERROR_KINDS
            .into_iter()
            .filter(|_| classes.contains(&RUNTIME_ERROR));
        let kinds = kinds
            .chain(others)
            .map(|kind| RetryOn::Kind(Name::from(kind)));
        let raised = classes
            .iter()
            .map(|class| RetryOn::Named(Name::from(*class)));
        kinds.chain(raised).collect()
    }
}

/// A node whose failure is caught.
struct CaughtNode<'n> {
    retry: Option<RetryPolicy>,
    node: &'n Node,
    fallback: Option<&'n Entry>,
}

impl CaughtNode<'_> {
    /// Makes the assignments after a failure of `action`. `attempts` is the number of the action's attempts.
    fn state(
        &self,
        reader: &Reader<'_>,
        action: &Name,
        attempts: &Template,
        place: &SourcePosition,
    ) -> Vec<Assignment> {
        let error = error_info(reader, action, self.node, attempts, place);
        let mut state = vec![set("__error__", error, place.span)];
        if let Some(name) = self.fallback.and_then(|entry| entry.value.as_str()) {
            state.push(set("__fallback_node__", text(name), place.span));
        }
        state
    }
}

/// Makes the value of `__error__`.
fn error_info(
    reader: &Reader<'_>,
    failed: &Name,
    node: &Node,
    attempts: &Template,
    place: &SourcePosition,
) -> Template {
    let failed = failed.replace('\'', "''");
    let fault = Template::parse(&format!("@actions('{failed}').error"), Syntax::Loom);
    let fault = fault.unwrap_or_else(|_| Template::constant(Value::Null));
    let seen = |text: &str| with_result(&fault, expression(reader, text));
    let kinds = CLASSES.map(|(kind, class)| format!("'{kind}': '{class}'"));
    let kinds = kinds.join(", ");
    // A fault that was caught and raised again has no code, so its class is only at the beginning of its message.
    let class = format!(
        "((result.code or result.message.split(':')[0]) if result.kind == 'script' \
         else {{{kinds}}}.get(result.kind, '{RUNTIME_ERROR}'))"
    );
    let message = "result.message if result.kind != 'script' else result.message\
                   .removeprefix((result.code or result.message.split(':')[0]) ~ ': ').rsplit(' (line ', 1)[0]";
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
            with_result(attempts, expression(reader, "result - 1")),
        ),
        ("is_retryable", seen(&format!("{class} in {RETRIED:?}"))),
        ("traceback", null()),
        ("details", null()),
    ])
}
