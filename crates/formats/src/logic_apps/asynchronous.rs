//! The asynchronous pattern of Logic Apps definitions (Logic Apps reference, "Asynchronous request-response
//! pattern").
//! A 202 with a `Location` starts a long operation. A loop polls the address until the status of the answer is no
//! longer 202. The author sees one action, whose output is the last answer.

use super::LogicApps;
use crate::actions::ActionReader;
use crate::actions::HttpRequest;
use crate::actions::part_of;
use crate::actions::{ActionFields, option};
use crate::builder::{call, condition_of, looped, only, scoped, step, text};
use windlass_expression::{Binding, Template, Value};
use windlass_model::hir::{Block, Call, FollowUp, Loop, StepKind};
use windlass_model::model::{ASYNC_PATTERN, Expect, Name, OnLimit, Sleep};

/// The timeout of a long operation if its action has no `limit.timeout`.
const TIMEOUT: &str = "P1D";

impl ActionReader<'_, LogicApps> {
    /// Adds the pattern to the request of a step, and returns the steps that follow the request.
    /// Returns `None` if the definition disables the pattern.
    pub(super) fn asynchronous(
        &mut self,
        act: &mut ActionFields<'_>,
        name: &Name,
        request: &mut HttpRequest,
        expect: Option<Expect>,
    ) -> Option<Box<FollowUp>> {
        if option(act, "DisableAsyncPattern") {
            return None;
        }
        let outputs = |of: &Name| Template::binding(Binding::Outputs(of.clone()));
        let [operation, wait, poll] = ["operation", "wait", "poll"].map(|what| part_of(name, what));
        for part in [&operation, &wait, &poll] {
            self.declare(part, act.span);
        }

        let follow = |value: Template| (text(ASYNC_PATTERN), value);
        let mut about = request.members.clone();
        about.push(follow(outputs(&operation).part("address")));
        let start = Template::constant(Value::Bool(true));
        request.members.push(follow(start));

        let runs = "answer is mapping and answer.operation is mapping";
        let runs = condition_of(scoped(self, [("answer", outputs(name))], runs));

        // A failed request replaces the last answer, so each attempt of a request needs a copy of the address.
        let copy = StepKind::Compose(outputs(name).part("operation"));
        let mut copy = step(operation.clone(), "compose", copy, act.span);
        copy.anonymous = true;
        let sleep = StepKind::Wait(Sleep::For(outputs(&operation).part("wait")));
        let mut sleep = step(wait, "wait", sleep, act.span);
        sleep.anonymous = true;
        let ask = StepKind::Call(Call {
            attempt_timeout: request.attempt_timeout.clone(),
            ..call("http", Template::object(about))
        });
        let mut ask = step(name.clone(), "http", ask, act.span);
        ask.is_repeat = true;
        ask.expect = expect;
        ask.retry.clone_from(&request.retry);
        let body = Block::Sequence(vec![copy, sleep, ask]);
        let asks = Loop {
            condition_text: String::from("the operation has ended"),
            timeout: Some(text(TIMEOUT)),
            on_limit: OnLimit::Fail,
            on_timeout: OnLimit::Fail,
            ..looped(runs.clone().negated(), self.max_polls(), body)
        };
        let mut asks = step(poll, "until", StepKind::Loop(Box::new(asks)), act.span);
        asks.anonymous = true;
        let block = only(asks);
        Some(Box::new(FollowUp { when: runs, block }))
    }
}
