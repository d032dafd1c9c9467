//! The loops until, while and doUntil (docs/reference/loom.md).
//! Every loop that was read has a maximum count and a timeout, within the caps that the operator sets.

use super::action_fields::{ActionFields, option};
use super::{ActionReader, Format};
use crate::builder::looped;
use crate::fields::Fields;
use std::time::Duration;
use windlass_expression::{Syntax, Template, Value};
use windlass_model::hir::{Loop, StepKind};
use windlass_model::model::{
    Backoff, Delay, Jitter, OnLimit, OnMissing, OnRepeat, Pages, Test, Unchanged,
};
use windlass_source::source::{Entry, Kind, Node};

/// The loop's own wait between iterations if the file only sets `server`.
pub(super) const SERVER_DELAY: Duration = Duration::from_secs(5);

const LIMIT: &str = "for example limit: { count: 100, timeout: PT1H }";

impl<F: Format> ActionReader<'_, F> {
    pub(super) fn a_loop(&mut self, act: &mut ActionFields<'_>, label: &str) -> StepKind {
        self.loops.push(act.name.clone());
        let condition = self.needed_condition(act);
        let (mut count, mut timeout) = (self.count.clone(), self.timeout.clone());
        let (mut unchanged, mut tokens, mut cost) = (None, None, None);
        if let Some(entry) = act.fields.non_null(self, "limit")
            && let Some(mut fields) = self.fields(&entry.value, "`limit`", LIMIT)
        {
            let first = self.mentions.len();
            count = self.limit_count(&mut fields).unwrap_or(count);
            timeout = self.limit_timeout(&mut fields).unwrap_or(timeout);
            self.loop_headers.push(first..self.mentions.len());
            tokens = self.budget(&mut fields, "tokens");
            cost = self.budget(&mut fields, "cost");
            unchanged = self.unchanged(&mut fields);
            fields.finish(self);
        }
        let delay = act
            .fields
            .non_null(self, "delay")
            .and_then(|entry| self.delay(entry, &act.name));
        let on_missing = self.on_missing(act);
        let on_limit = self.on_limit(act);
        let pages = self.pages(act);
        let entry = act.fields.get("actions");
        let feedback = entry.is_some_and(|entry| names_feedback(&entry.value));
        let body = self.body_actions(act);
        let Some((condition, condition_text)) = condition else {
            return StepKind::Nothing;
        };
        let (test, negated) = match label {
            "while" => (Test::Before, true),
            "until" => (F::CONVENTIONS.until_test, false),
            _ => (Test::After, false),
        };
        let stop_when = if negated {
            condition.negated()
        } else {
            condition
        };
        StepKind::Loop(Box::new(Loop {
            test,
            condition_text,
            negated,
            timeout: Some(timeout),
            tokens,
            cost,
            delay,
            on_missing,
            on_limit,
            on_timeout: on_limit,
            survives_failure: F::CONVENTIONS.loops_survive_failures,
            pages,
            unchanged,
            feedback,
            ..looped(stop_when, count, body)
        }))
    }

    /// Reads `delay`: a duration, waits like those of a retry policy, or `server` (the wait that the server
    /// requests).
    pub(super) fn delay(&mut self, entry: &Entry, name: &str) -> Option<Delay> {
        if is_server(&entry.value) {
            return server_delay(name);
        }
        let own = ["type", "maxInterval", "minimumInterval", "jitter"];
        let entries = entry.value.entries().unwrap_or_default();
        if !entries.iter().any(|entry| own.contains(&&*entry.key)) {
            return self
                .duration(entry)
                .map(|delay| Delay::Every(delay.template));
        }
        let hint = "for example delay: { type: exponential, interval: 5s, maxInterval: 1m }";
        let mut fields = self.fields(&entry.value, "`delay`", hint)?;
        let by_server = entries
            .iter()
            .any(|entry| &*entry.key == "type" && is_server(&entry.value));
        let delay = match by_server {
            true => {
                let (own, interval) = self.server_backoff(&mut fields);
                delay_from_server(own, interval, name)
            }
            false => self.backoff(&mut fields, entry).map(Delay::Backoff),
        };
        fields.finish(self);
        delay
    }

    /// Reads `page`, the value that identifies a page of a loop, and `on_repeat`, which is allowed only with `page`.
    fn pages(&mut self, act: &mut ActionFields<'_>) -> Option<Pages> {
        let on_repeat = act.fields.non_null(self, "on_repeat");
        let Some(entry) = act.fields.non_null(self, "page") else {
            if let Some(entry) = on_repeat {
                let what = "`on_repeat` needs `page`: what leads to the next page";
                let hint = "for example page: \"@variables('token')\"";
                self.error("missing-key", entry.key_span, what, hint);
            }
            return None;
        };
        let token = self.template(&entry.value);
        if token.as_constant().is_some() {
            let what = "`page` never changes: it holds no expression";
            let hint = "what leads to the next page, for example page: \"@variables('token')\"";
            self.error("constant-page", entry.value.span, what, hint);
        }
        let known = [("fail", OnRepeat::Fail), ("stop", OnRepeat::Stop)];
        let on_repeat = on_repeat.and_then(|entry| {
            self.choice(entry, &known, |word| {
                format!("`{word}` is nothing a loop can do when a page repeats")
            })
        });
        let on_repeat = on_repeat.unwrap_or(OnRepeat::Fail);
        Some(Pages { token, on_repeat })
    }

    /// Reads `unchanged` and `unchanged_of` in the `limit` of a loop.
    fn unchanged(&mut self, fields: &mut Fields<'_>) -> Option<Unchanged> {
        let of = fields.non_null(self, "unchanged_of");
        let Some(entry) = fields.non_null(self, "unchanged") else {
            if let Some(of) = of {
                let what = "`unchanged_of` needs `unchanged`: how often it may be the same";
                let hint =
                    "for example limit: { unchanged: 3, unchanged_of: \"@body('check').state\" }";
                self.error("missing-key", of.key_span, what, hint);
            }
            return None;
        };
        let of = of.map(|of| (self.template(&of.value), of.value.span));
        if let Some((template, span)) = &of
            && template.as_constant().is_some()
        {
            let what = "`unchanged_of` never changes: it holds no expression";
            let hint = "what has to change, for example unchanged_of: \"@body('check').state\"";
            self.error("constant-unchanged", *span, what, hint);
        }
        let times = self
            .whole(&entry.value)
            .and_then(|times| u64::try_from(times).ok());
        let Some(times) = times.filter(|times| *times > 1) else {
            let hint =
                "number of iterations in a row with the same result, for example unchanged: 3";
            self.wrong_type(&entry.value, "`unchanged`", "a whole number from 2", hint);
            return None;
        };
        let of = of.map(|(template, _)| template);
        Some(Unchanged { times, of })
    }

    /// Reads `{count, timeout}`. The arguments `count` and `timeout` are the defaults.
    pub(crate) fn limit(
        &mut self,
        entry: &Entry,
        count: Template,
        timeout: Template,
    ) -> (Template, Template) {
        let what = format!("`{}`", entry.key);
        let Some(mut fields) = self.fields(&entry.value, &what, LIMIT) else {
            return (count, timeout);
        };
        let count = self.limit_count(&mut fields).unwrap_or(count);
        let timeout = self.limit_timeout(&mut fields).unwrap_or(timeout);
        fields.finish(self);
        (count, timeout)
    }

    fn limit_count(&mut self, fields: &mut Fields<'_>) -> Option<Template> {
        let entry = fields.non_null(self, "count")?;
        let node = &entry.value;
        let hint = "how many iterations at most: a whole number from 1, or an expression";
        match (self.whole(node), &node.kind) {
            (Some(count), _) => {
                let cap = self.max_count;
                self.within_cap(count, cap, node.span);
                Some(Template::constant(count.into()))
            }
            (None, Kind::String(_)) => {
                let template = self.template(node);
                if template.as_constant().is_some() {
                    self.wrong_type(node, "`count`", "a whole number", hint);
                }
                Some(template)
            }
            _ => {
                self.wrong_type(node, "`count`", "a whole number", hint);
                None
            }
        }
    }

    fn limit_timeout(&mut self, fields: &mut Fields<'_>) -> Option<Template> {
        let entry = fields.non_null(self, "timeout")?;
        let timeout = self.duration(entry)?;
        if let Some(known) = timeout.known {
            let cap = self.max_timeout;
            self.within_time(known, cap, entry.value.span);
        }
        Some(timeout.template)
    }

    /// Reads `tokens` or `cost` in the `limit` of a loop: a number or an expression.
    fn budget(&mut self, fields: &mut Fields<'_>, key: &'static str) -> Option<Template> {
        let entry = fields.non_null(self, key)?;
        let node = &entry.value;
        let template = self.template(node);
        let known = match (key, &node.kind) {
            (_, Kind::String(_)) if template.as_constant().is_none() => return Some(template),
            ("tokens", _) => self
                .whole(node)
                .filter(|tokens| *tokens > 0)
                .map(Value::Int),
            (_, Kind::Int(cost)) if *cost > 0 => Some(Value::Int(*cost)),
            (_, Kind::Float(cost)) if *cost > 0.0 => Some(Value::Float(*cost)),
            _ => None,
        };
        if known.is_none() {
            let (wanted, hint) = match key {
                "tokens" => (
                    "a whole number from 1, or an expression",
                    "how many tokens its actions may use, for example tokens: 50000",
                ),
                _ => (
                    "a number above 0, or an expression",
                    "what its actions may cost, for example cost: 2.5",
                ),
            };
            self.wrong_type(node, &format!("`{key}`"), wanted, hint);
        }
        known.map(Template::constant)
    }

    fn on_missing(&mut self, act: &mut ActionFields<'_>) -> OnMissing {
        let known = [("fail", OnMissing::Fail), ("wait", OnMissing::Wait)];
        let entry = act.fields.non_null(self, "on_missing");
        let given = entry.and_then(|entry| {
            self.choice(entry, &known, |word| {
                format!("unknown effect `{word}` of a missing member")
            })
        });
        given.unwrap_or(OnMissing::Fail)
    }

    fn on_limit(&mut self, act: &mut ActionFields<'_>) -> OnLimit {
        let fails = option(act, "FailWhenLimitsReached");
        let default = match fails {
            true => OnLimit::Fail,
            false => F::CONVENTIONS.on_limit,
        };
        let known = [
            ("fail", OnLimit::Fail),
            ("continue", OnLimit::Continue),
            ("pause", OnLimit::Pause),
        ];
        let entry = act.fields.non_null(self, "on_limit");
        let given = entry.and_then(|entry| {
            self.choice(entry, &known, |word| {
                format!("`{word}` is nothing a loop can do at its limit")
            })
        });
        given.unwrap_or(default)
    }
}

/// Returns true if a value is the word `server`, which means: wait as long as the server requests.
fn is_server(node: &Node) -> bool {
    let word = node.as_str();
    word.is_some_and(|word| word.trim().eq_ignore_ascii_case("server"))
}

/// Makes a delay that is the longer of two waits: the loop's own, and the one that the last answer in the loop
/// requests.
fn delay_from_server(own: Backoff, interval: Option<Template>, name: &str) -> Option<Delay> {
    let requested = requested_delay("result", name)?;
    Some(Delay::Server {
        own,
        interval,
        requested,
    })
}

/// Like `delay_from_server`, with [`SERVER_DELAY`] as the loop's own wait.
pub(super) fn server_delay(name: &str) -> Option<Delay> {
    let own = Backoff::Fixed {
        interval: SERVER_DELAY,
        jitter: Jitter::None,
    };
    delay_from_server(own, None, name)
}

/// Makes the template of the wait that an answer requests.
/// `function` is the function that reads this wait from the answer of the action `name`.
pub(super) fn requested_delay(function: &str, name: &str) -> Option<Template> {
    let name = name.replace('\'', "''");
    Template::parse(
        &format!("@serverDelay({function}('{name}'))"),
        Syntax::Azure,
    )
    .ok()
}

/// Returns true if a text in the body names the feedback (what the condition of the last iteration read).
/// The names are `variables('loopFeedback')` and `loop.feedback`. If the text has another meaning, the feedback is
/// stored without need, which costs only a few bytes per iteration.
fn names_feedback(node: &Node) -> bool {
    let text = node.as_str().unwrap_or_default();
    text.to_ascii_lowercase().contains("feedback")
        || node.children().any(|(_, child)| names_feedback(child))
}
