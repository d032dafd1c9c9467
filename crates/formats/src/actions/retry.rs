//! Retry policies of actions, and the action `retry` (docs/reference/loom.md).

use super::action_fields::{ActionFields, Body};
use super::loops::SERVER_DELAY;
use super::{ActionReader, Format};
use crate::builder::only;
use crate::fields::Fields;
use std::time::Duration;
use windlass_expression::Template;
use windlass_model::hir::{RetryPolicy, Step, StepKind};
use windlass_model::model::{Backoff, Jitter, Name, RetryOn, fault_kind};
use windlass_source::diagnostic::nearest;
use windlass_source::source::{Entry, Kind, Node, Span};

const EXAMPLE: &str =
    "for example retry: { type: exponential, count: 5, interval: 2s, maxInterval: 1m }";
const TYPES: [&str; 3] = ["none", "fixed", "exponential"];
const KINDS: [&str; 19] = [
    fault_kind::WORKFLOW,
    fault_kind::OPERATION,
    fault_kind::EXPECT,
    fault_kind::TIMEOUT,
    fault_kind::CONNECTION,
    fault_kind::HTTP,
    fault_kind::HANDLER,
    fault_kind::SHELL,
    fault_kind::SCRIPT,
    fault_kind::AI,
    fault_kind::DENIED,
    fault_kind::SECRET,
    fault_kind::TERMINATED,
    fault_kind::EXPRESSION,
    fault_kind::INPUT,
    fault_kind::LIMIT,
    fault_kind::REPEAT,
    fault_kind::TOO_LARGE,
    fault_kind::INEXACT,
];

/// Returns the retry policy of an alert, which ends within an hour: at most ten attempts.
pub(crate) fn alert_retry(span: Span) -> RetryPolicy {
    RetryPolicy {
        backoff: Backoff::Exponential {
            interval: Duration::from_secs(7),
            max: Duration::from_secs(1_800),
            min: Duration::from_secs(1),
            jitter: Jitter::Tenth,
        },
        count: Template::constant(9_i64.into()),
        ..exponential(span)
    }
}

/// Returns the policy of `http` and `ai` actions that set none: three retries after 1, 2 and 4 s.
/// A request that is not `idempotent` is repeated only if the server has certainly not processed it.
pub(crate) fn default_retry(idempotent: bool, span: Span) -> RetryPolicy {
    let seconds = Duration::from_secs;
    RetryPolicy {
        backoff: Backoff::Exponential {
            interval: seconds(1),
            max: seconds(60),
            min: seconds(1),
            jitter: Jitter::Tenth,
        },
        on: match idempotent {
            true => Vec::new(),
            false => vec![RetryOn::Unprocessed],
        },
        is_default: true,
        ..exponential(span)
    }
}

/// Returns the policy of a `retry` action that does not set one.
fn exponential(span: Span) -> RetryPolicy {
    let seconds = Duration::from_secs;
    RetryPolicy {
        backoff: Backoff::Exponential {
            interval: seconds(5),
            max: seconds(60),
            min: seconds(1),
            jitter: Jitter::Tenth,
        },
        count: Template::constant(3_i64.into()),
        on: Vec::new(),
        when: None,
        is_default: false,
        span,
    }
}

impl<F: Format> ActionReader<'_, F> {
    /// Reads `type: retry`, whose policy repeats the action inside.
    /// The result of the inner action is the result of the retry.
    pub(super) fn retry(&mut self, act: &mut ActionFields<'_>) -> Body {
        let hint = "the action to repeat: for example action: { type: http, inputs: { … } }";
        let inner = act.fields.required(self, "action", act.span, hint);
        let policy = match act.fields.non_null(self, "retryPolicy") {
            Some(entry) => self.retry_policy(entry),
            None => Some(exponential(act.span)),
        };
        let timeout = self.step_timeout(act);
        let Some(inner) = inner else {
            return StepKind::Nothing.into();
        };
        for key in ["runAfter", "retry"] {
            if let Some(entry) = inner
                .value
                .entries()
                .and_then(|entries| entries.iter().find(|entry| entry.key == key))
            {
                let what = format!("the action of a `retry` cannot have its own `{key}`");
                let hint = "put it on the retry action, or remove one of the two";
                self.error("conflict", entry.key_span, what, hint);
            }
        }
        let made = format!("{}.action", act.name);
        // The inner action has no default retries, because they would multiply with those of this policy.
        self.has_outer_retry = true;
        let step = self.read_unnamed_action(&inner.value, &made, inner.key_span);
        // The policy repeats the whole inner step, including the step's `break_when` and `timeout`.
        let step = Step {
            anonymous: true,
            ..step
        };
        Body {
            retry: policy,
            timeout,
            ..StepKind::Block(only(step)).into()
        }
    }

    /// Reads a policy. Returns `None` if the policy is `none` or invalid.
    pub(crate) fn retry_policy(&mut self, entry: &Entry) -> Option<RetryPolicy> {
        let entry = &Entry {
            value: self.with_parameters(&entry.value),
            ..entry.clone()
        };
        let word = entry.value.as_str();
        if F::CONVENTIONS.has_extended_policies
            && word.is_some_and(|word| word.trim().eq_ignore_ascii_case("none"))
        {
            return None;
        }
        let kind = entry.value.get_any_case("type").and_then(Node::as_str);
        if let Some(policy) = kind.and_then(|kind| F::named_policy(kind, entry.key_span)) {
            return Some(policy);
        }
        let what = format!("`{}`", entry.key);
        let mut fields = self.fields(&entry.value, &what, EXAMPLE)?;
        let count = self.retry_count(&mut fields);
        let on = fields
            .non_null(self, "on")
            .map(|entry| self.retry_on(entry))
            .unwrap_or_default();
        let when = match F::CONVENTIONS.has_extended_policies {
            true => fields.non_null(self, "when"),
            false => None,
        };
        let when = when.and_then(|entry| self.condition(entry));
        let backoff = self.backoff(&mut fields, entry);
        fields.finish(self);
        Some(RetryPolicy {
            backoff: backoff?,
            count: count.unwrap_or_else(|| Template::constant(F::CONVENTIONS.retries.into())),
            on,
            when,
            is_default: false,
            span: entry.key_span,
        })
    }

    /// Reads the waits of a policy. Returns `None` if the type of the policy is `none` or invalid.
    pub(super) fn backoff(&mut self, fields: &mut Fields<'_>, entry: &Entry) -> Option<Backoff> {
        let kind = fields.non_null(self, "type");
        let interval = self.policy_wait(fields, &["interval"]);
        let max = self.policy_wait(fields, &["maxInterval", "maximumInterval"]);
        let min = self.policy_wait(fields, &["minimumInterval", "minInterval"]);
        let jitter = F::CONVENTIONS
            .has_extended_policies
            .then(|| fields.non_null(self, "jitter"))
            .flatten();
        let jitter = jitter.and_then(|entry| {
            let known = [
                ("none", Jitter::None),
                ("equal", Jitter::Equal),
                ("full", Jitter::Full),
            ];
            self.choice(entry, &known, |word| {
                format!("`{word}` is not a valid kind of jitter")
            })
        });
        let kind = match kind {
            Some(entry) => self.choice(entry, &TYPES.map(|word| (word, word)), |text| {
                format!("`{text}` is not a valid type of retry policy")
            })?,
            None => "exponential",
        };
        let seconds = Duration::from_secs;
        let backoff = match kind {
            "none" => return None,
            "fixed" => Backoff::Fixed {
                interval: interval.unwrap_or(seconds(5)),
                jitter: jitter.unwrap_or(Jitter::None),
            },
            _ => F::exponential(interval, max, min, jitter),
        };
        if let Backoff::Exponential { max, min, .. } | Backoff::AzureExponential { max, min, .. } =
            &backoff
            && min > max
        {
            let what = "the shortest wait of this policy is longer than the longest";
            let hint = "minimumInterval must not be above maxInterval";
            self.error("out-of-range", entry.value.span, what, hint);
        }
        Some(backoff)
    }

    /// Reads a policy's own waits, for a policy that also follows the waits that a server requests. Its own waits grow
    /// if a maximum is set. If the interval is an expression, it is returned separately.
    pub(super) fn server_backoff(
        &mut self,
        fields: &mut Fields<'_>,
    ) -> (Backoff, Option<Template>) {
        let _ = fields.non_null(self, "type");
        let entry = fields.non_null(self, "interval");
        let given = entry.and_then(|entry| self.duration(entry));
        let (interval, computed) = match given {
            None => (SERVER_DELAY, None),
            Some(duration) => match duration.known {
                Some(known) => (known, None),
                None => (Duration::ZERO, Some(duration.template)),
            },
        };
        let most = ["maxInterval", "maximumInterval"];
        if computed.is_some()
            && let Some(most) = most.iter().find_map(|key| fields.non_null(self, key))
        {
            let what = format!(
                "`{}` needs an `interval` that is not an expression",
                most.key
            );
            let hint = "the waits grow from it: for example interval: 5s";
            self.error("conflict", most.key_span, what, hint);
        }
        let backoff = match self.policy_wait(fields, &most) {
            None => Backoff::Fixed {
                interval,
                jitter: Jitter::None,
            },
            Some(max) => Backoff::Exponential {
                interval,
                max,
                min: interval.min(Duration::from_secs(1)),
                jitter: Jitter::Tenth,
            },
        };
        (backoff, computed)
    }

    fn retry_count(&mut self, fields: &mut Fields<'_>) -> Option<Template> {
        let entry = fields.non_null(self, "count")?;
        let hint = "how many retries at most: a whole number from 0, or an expression";
        if let Some(count) = self.whole(&entry.value) {
            if count < 0 {
                let what = format!("{count} retries are not possible");
                self.error("out-of-range", entry.value.span, what, hint);
            }
            return Some(Template::constant(count.into()));
        }
        let template = self.template(&entry.value);
        let computed = template.as_constant().is_none();
        match entry.value.kind {
            Kind::String(_) if computed => {}
            _ => self.wrong_type(&entry.value, "`count`", "a whole number", hint),
        }
        Some(template)
    }

    /// Reads a wait of a policy. It must be a constant.
    fn policy_wait(&mut self, fields: &mut Fields<'_>, keys: &[&'static str]) -> Option<Duration> {
        let mut found = None;
        for key in keys {
            let Some(entry) = fields.non_null(self, key) else {
                continue;
            };
            let Some(duration) = self.duration(entry) else {
                continue;
            };
            if duration.known.is_none() {
                let what = format!("`{key}` of a retry policy cannot be an expression");
                let hint = match F::CONVENTIONS.is_deployed {
                    true => "write a duration such as PT5S, or only `@parameters('NAME')`",
                    false => "write a duration, such as 5s",
                };
                self.error("not-constant", entry.value.span, what, hint);
            }
            found = duration.known;
        }
        found
    }

    fn retry_on(&mut self, entry: &Entry) -> Vec<RetryOn> {
        let hint = "a list such as [timeout, connection, 5xx, 429]";
        match &entry.value.kind {
            Kind::Array(items) => items.iter().filter_map(|item| self.on(item)).collect(),
            Kind::String(_) | Kind::Int(_) => self.on(&entry.value).into_iter().collect(),
            _ => {
                self.wrong_type(&entry.value, "`on`", "a list", hint);
                Vec::new()
            }
        }
    }

    fn code(&mut self, code: i64, node: &Node) -> Option<RetryOn> {
        let known = u16::try_from(code)
            .ok()
            .filter(|code| (100..=599).contains(code));
        if known.is_none() {
            let what = format!("{code} is not a valid status code");
            let hint = "status codes are from 100 to 599";
            self.error("out-of-range", node.span, what, hint);
        }
        known.map(RetryOn::Code)
    }

    fn on(&mut self, node: &Node) -> Option<RetryOn> {
        let hint = "a status code (503), a class (5xx), or a kind of error (timeout, connection)";
        match &node.kind {
            Kind::String(_) => {
                let text = node.as_str().unwrap_or_default().to_ascii_lowercase();
                match &*text {
                    "transient" => return Some(RetryOn::Transient),
                    "unprocessed" => return Some(RetryOn::Unprocessed),
                    _ => {}
                }
                if let Ok(code) = text.parse::<i64>() {
                    return self.code(code, node);
                }
                if let Some(class) = text.strip_suffix("xx") {
                    let known = class
                        .parse::<u8>()
                        .ok()
                        .filter(|class| (1..=5).contains(class));
                    if known.is_none() {
                        let what = format!("`{text}` is not a valid class of status codes");
                        let hint = "classes are 1xx, 2xx, 3xx, 4xx and 5xx";
                        self.error("out-of-range", node.span, what, hint);
                    }
                    return known.map(RetryOn::Class);
                }
                if !KINDS.contains(&text.as_str()) {
                    let what = format!("`{text}` is not a kind of error that the engine raises");
                    match nearest(&text, KINDS) {
                        Some(near) => {
                            let hint = format!("did you mean `{near}`?");
                            self.error("unknown-kind", node.span, what, hint);
                        }
                        // A handler or a stub may report a kind of its own, so an unknown kind is only a warning.
                        None => {
                            let hint = format!("its own are: {}", KINDS.join(", "));
                            self.warning("unknown-kind", node.span, what, hint);
                        }
                    }
                }
                Some(RetryOn::Kind(Name::from(text)))
            }
            Kind::Int(code) => self.code(*code, node),
            _ => {
                self.wrong_type(node, "what to retry on", "text", hint);
                None
            }
        }
    }
}
