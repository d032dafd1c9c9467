//! `operation`: a request that starts a long operation, a loop that polls until it has ended, and a request for its
//! result (docs/reference/loom.md). The loop is an ordinary one: `status` shows it, and a crash repeats no start.

use super::Loom;
use super::action_fields::{ActionFields, Body};
use super::effect::HttpRequest;
use super::loops::{requested_delay, server_delay};
use super::retry::default_retry;
use crate::builder::{call, expression, looped, object, only, step, text, when};
use std::sync::Arc;
use windlass_expression::{Binding, Condition, Template};
use windlass_model::hir::{Block, Call, Loop, Step, StepKind};
use windlass_model::model::{Expect, Name, OnLimit, OnMissing, Sleep, Test};
use windlass_source::source::{Entry, Kind};

/// The maximum number of requests about an operation: its timeout ends it before.
const POLLS: u64 = 1_000_000;

/// The member `operation` of the last answer.
const STATE: &str = "((last or start).get('operation') or {})";
/// Where the last answer came from.
const URL: &str = "(last or start).get('url')";
/// Where the result is, if an answer names it.
const RESULT: &str = "((last.get('operation') or {}).get('result') \
                      or (start.get('operation') or {}).get('result') or none) if last else none";

/// The names of the actions that an `operation` consists of.
struct Names {
    start: Name,
    wait: Name,
    poll: Name,
    status: Name,
    fetch: Name,
    result: Name,
}

impl Names {
    fn of(operation: &Name) -> Self {
        let made = |what: &str| Name::from(format!("{operation}.{what}"));
        Self {
            start: made("start"),
            wait: made("wait"),
            poll: made("poll"),
            status: made("status"),
            fetch: made("fetch"),
            result: made("result"),
        }
    }

    fn all(&self) -> [&Name; 6] {
        [
            &self.start,
            &self.wait,
            &self.poll,
            &self.status,
            &self.fetch,
            &self.result,
        ]
    }

    /// The value of an expression that reads the output of the start as `start`, the last answer about the operation as
    /// `last`, and that of the result as `fetched`; null as long as there is none.
    fn read(&self, of: &str) -> Template {
        self.read_with(of, Template::binding(Binding::Outputs(self.status.clone())))
    }

    /// The same in the loop, where the last answer is that of the iteration before.
    fn read_in_loop(&self, of: &str) -> Template {
        let previous = Binding::Previous(self.status.clone(), Some(self.poll.clone()));
        self.read_with(of, Template::binding(previous))
    }

    fn read_with(&self, of: &str, last: Template) -> Template {
        let output = |of: &Name| Template::binding(Binding::Outputs(of.clone()));
        let names = [
            (Name::from("start"), output(&self.start)),
            (Name::from("last"), last),
            (Name::from("fetched"), output(&self.result)),
        ];
        Template::binding(Binding::Scoped(Arc::from(names), expression(of)))
    }
}

impl Loom<'_> {
    pub(super) fn operation(&mut self, act: &mut ActionFields<'_>) -> Body {
        let names = Names::of(&act.name);
        for name in names.all() {
            self.declare(name, act.span);
        }
        let status = act.fields.non_null(self, "status");
        let result = act.fields.non_null(self, "result");
        let done = act.fields.non_null(self, "done");
        let failed = act.fields.non_null(self, "failed");
        let limit = act.fields.non_null(self, "limit");
        let delay = act.fields.non_null(self, "delay");
        let count = i64::try_from(self.max_count.min(POLLS)).unwrap_or(1);
        let (count, timeout) = (Template::constant(count.into()), self.timeout.clone());
        let (count, timeout) = match limit {
            Some(entry) => self.limit(entry, count, timeout),
            None => (count, timeout),
        };
        let delay = match delay {
            Some(entry) => self.delay(entry, &names.poll),
            None => server_delay(&names.poll),
        };
        let HttpRequest {
            members: asked,
            attempt_timeout,
            retry,
        } = self.request(act, "POST");
        // What the author says about the operation, its answers need not say.
        let starts = match status {
            Some(_) => Template::object(asked.clone()),
            None => with_step(Template::object(asked.clone()), "start"),
        };
        let request = |inputs: Template| {
            StepKind::Call(Call {
                attempt_timeout: attempt_timeout.clone(),
                ..call("http", inputs)
            })
        };
        let mut start = step(names.start.clone(), "http", request(starts), act.span);
        start.retry = retry;

        let asks = match status {
            Some(entry) => self.operation_request(entry),
            None => follow(
                &asked,
                names.read_in_loop(&format!("{STATE}.get('address') or {URL}")),
                names.read_in_loop(URL),
            ),
        };
        let mut ask = step(
            names.status.clone(),
            "http",
            request(match done {
                Some(_) => asks,
                None => with_step(asks, "status"),
            }),
            act.span,
        );
        ask.retry = Some(default_retry(true, act.span));
        let failed = failed.and_then(|entry| self.condition(entry));
        ask.expect = failed.map(|failed| Expect::That(failed.negated()));

        let condition_text = match done {
            Some(entry) => entry.value.as_str().unwrap_or_default().to_owned(),
            None => String::from("the operation has ended"),
        };
        let is_done = done.and_then(|entry| self.condition(entry));
        let test = match is_done {
            Some(_) => Test::After,
            None => Test::Before,
        };
        let ended = Condition::from_template(names.read(&format!("{STATE}.get('done') == true")));
        let ended = is_done.or(ended.ok()).unwrap_or_else(Condition::never);
        let poll = Loop {
            test,
            condition_text,
            timeout: Some(timeout),
            delay,
            on_missing: OnMissing::Wait,
            on_limit: OnLimit::Fail,
            on_timeout: OnLimit::Fail,
            ..looped(ended, count, only(ask))
        };

        let mut steps = vec![start];
        if let Some(wait) = requested_delay("outputs", &names.start) {
            let wait = StepKind::Wait(Sleep::For(wait));
            steps.push(step(names.wait.clone(), "wait", wait, act.span));
        }
        steps.push(step(
            names.poll.clone(),
            "until",
            StepKind::Loop(Box::new(poll)),
            act.span,
        ));
        steps.extend(self.operation_result(act, result, &names, &asked, &request));
        let part = |name: &str, of: &str| (text(name), names.read(of));
        let output = vec![
            part("statusCode", "(fetched or last or start).statusCode"),
            part("headers", "(fetched or last or start).headers"),
            part(
                "body",
                &format!(
                    "fetched.body if fetched else {STATE}.get('response') or (last or start).body"
                ),
            ),
        ];
        Body {
            output: Some(Template::object(output)),
            ..StepKind::Block(Block::Sequence(steps)).into()
        }
    }

    /// The inputs of a request about the operation, or its address alone.
    fn operation_request(&mut self, entry: &Entry) -> Template {
        let given = self.template(&entry.value);
        match &entry.value.kind {
            Kind::Object(_) => given,
            _ => object([("uri", given)]),
        }
    }

    /// The request for the result, if there is an address for it.
    fn operation_result(
        &mut self,
        act: &ActionFields<'_>,
        entry: Option<&Entry>,
        names: &Names,
        asked: &[(Template, Template)],
        request: &dyn Fn(Template) -> StepKind,
    ) -> Option<Step> {
        let (inputs, is_there) = match entry {
            Some(entry) if entry.value.as_str() == Some("none") => return None,
            Some(entry) => (self.operation_request(entry), None),
            None => {
                let inputs = follow(asked, names.read(RESULT), names.read(URL));
                let is_there = names.read(&format!("({RESULT}) is not none"));
                (inputs, Some(is_there))
            }
        };
        let mut fetch = step(names.result.clone(), "http", request(inputs), act.span);
        fetch.retry = Some(default_retry(true, act.span));
        Some(match is_there {
            None => fetch,
            Some(is_there) => {
                let condition = Condition::from_template(is_there);
                let condition = condition.unwrap_or_else(|_| Condition::never());
                let kind = when(condition, only(fetch));
                step(names.fetch.clone(), "if", kind, act.span)
            }
        })
    }
}

/// Inputs whose output says how far the operation is.
fn with_step(inputs: Template, step: &str) -> Template {
    inputs.with_members(vec![(text("operation"), text(step))])
}

/// The inputs of a GET of the address that an answer names, with the credentials of the first request if it leads to
/// the same server.
fn follow(asked: &[(Template, Template)], address: Template, base: Template) -> Template {
    let key = |template: &Template| {
        let key = template.as_constant().and_then(|key| key.as_str());
        key.unwrap_or_default().to_owned()
    };
    let kept = ["uri", "headers", "authentication", "tls"];
    let kept = asked.iter().filter(|(name, _)| kept.contains(&&*key(name)));
    let mut members: Vec<(Template, Template)> = kept.cloned().collect();
    members.push((text("method"), text("GET")));
    members.push((text("page"), address));
    members.push((text("page_base"), base));
    Template::object(members)
}
