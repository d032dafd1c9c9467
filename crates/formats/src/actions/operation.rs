//! `operation`: a request that starts a long operation on a server, a loop that polls until the operation has ended,
//! and a request for the result (docs/reference/loom.md).
//! `status` shows the loop like any other. A crash does not make the run start the operation again.

use super::action_fields::{ActionFields, Body};
use super::loops::{requested_delay, server_delay};
use super::request::HttpRequest;
use super::retry::default_retry;
use super::{ActionReader, Format};
use crate::builder::{call, condition_of, looped, nothing, object, only, scoped, step, text, when};
use crate::reader::Reader;
use windlass_expression::{Binding, Condition, Template};
use windlass_model::hir::{Block, Call, Loop, RetryPolicy, Step, StepKind, Workflow};
use windlass_model::model::{Expect, Name, OnLimit, OnMissing, RATE, RetryOn, Sleep, Test};
use windlass_source::source::{Entry, Kind};

/// Maximum number of requests about an operation. The timeout of the operation should end the loop earlier.
const POLLS: u64 = 1_000_000;

/// Number of the first requests about an operation for which a 404 can mean that the server does not know the
/// operation yet.
const EARLY_CHECKS: u32 = 3;

/// The expression for the member `operation` of the last answer.
const STATE: &str = "((last or start).get('operation') or {})";
/// The expression for the URL of the last answer.
const URL: &str = "(last or start).get('url')";
/// The expression for the address of the result. It is null if no answer names the address.
const RESULT: &str = "((last.get('operation') or {}).get('result') \
                      or (start.get('operation') or {}).get('result') or none) if last else none";

/// The expression for whether an operation was started and has not ended.
/// It has not ended if it did not succeed and no answer reported that it failed.
const RUNS: &str = "start and start.status == 'Succeeded' and not (poll and poll.status == 'Succeeded') \
                    and not (status and status.error and status.error.kind == 'operation')";

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
        let made = |what: &str| part_of(operation, what);
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

    /// Makes the template of an expression about the operation.
    /// The expression can read the output of the start as `start`, the last answer about the operation as `last`, and
    /// the output of the request for the result as `fetched`. Each is null until it exists.
    fn read(&self, reader: &Reader<'_>, of: &str) -> Template {
        let last = Binding::Outputs(self.status.clone());
        self.read_with(reader, of, last)
    }

    /// Like `read`, for expressions inside of the loop, where `last` is the answer in the previous iteration.
    fn read_in_loop(&self, reader: &Reader<'_>, of: &str) -> Template {
        let previous = Binding::Previous(self.status.clone(), Some(self.poll.clone()));
        self.read_with(reader, of, previous)
    }

    /// Makes the condition under which a failed request about the operation is repeated.
    /// Some servers return the address of an operation a little before they answer requests to it. Later, a 404 means
    /// that the operation no longer exists.
    fn repeat_condition(&self, reader: &Reader<'_>) -> Option<Condition> {
        let status = Template::binding(Binding::Record(self.status.clone()));
        let check = Template::binding(Binding::Iteration(self.poll.clone()));
        let again = format!("status.error.code != '404' or check <= {EARLY_CHECKS}");
        let again = scoped(reader, [("status", status), ("check", check)], &again);
        Condition::from_template(again).ok()
    }

    fn read_with(&self, reader: &Reader<'_>, of: &str, last: Binding) -> Template {
        let output = |of: &Name| Template::binding(Binding::Outputs(of.clone()));
        let names = [
            ("start", output(&self.start)),
            ("last", Template::binding(last)),
            ("fetched", output(&self.result)),
        ];
        scoped(reader, names, of)
    }
}

/// Returns the name of an action that is a part of the action that the author wrote.
pub(crate) fn part_of(action: &Name, what: &str) -> Name {
    Name::from(format!("{action}.{what}"))
}

impl<F: Format> ActionReader<'_, F> {
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
        let cancel = act.fields.non_null(self, "cancel");
        let (count, timeout) = (self.max_polls(), self.timeout.clone());
        let (count, timeout) = match limit {
            Some(entry) => self.limit(entry, count, timeout),
            None => (count, timeout),
        };
        let delay = match delay {
            Some(entry) => self.delay(entry, &names.poll),
            None => server_delay(&names.poll),
        };
        let HttpRequest {
            members: first_inputs,
            attempt_timeout,
            retry,
            output: _,
        } = self.request(act, "POST");
        // If the file has the address of the operation in `status`, the answer to the start does not have to contain
        // it.
        let starts = match status {
            Some(_) => "begin",
            None => "start",
        };
        let starts = with_step(Template::object(first_inputs.clone()), text(starts));
        let request = |inputs: Template| {
            StepKind::Call(Call {
                attempt_timeout: attempt_timeout.clone(),
                ..call("http", inputs)
            })
        };
        let mut start = step(names.start.clone(), "http", request(starts), act.span);
        start.retry = retry;

        if let Some(entry) = cancel {
            let cancel = self.cancel_request(entry, &names, &first_inputs);
            let steps = [&names.poll, &names.status];
            self.cancel_at_end(act, &names.start, steps, request(cancel));
            self.cancels.push((act.name.clone(), act.span));
        }
        let status_inputs = match status {
            Some(entry) => self.operation_request(entry, &first_inputs),
            None => follow_up_inputs(
                &first_inputs,
                get(),
                names.read_in_loop(self, &format!("{STATE}.get('address') or {URL}")),
                names.read_in_loop(self, URL),
            ),
        };
        let mut status_request = step(
            names.status.clone(),
            "http",
            request(match done {
                Some(_) => with_step(status_inputs, text("check")),
                // It contains whether an answer had a state. Such an operation does not end with an answer without one.
                None => {
                    let step =
                        names.read_in_loop(self, &format!("{STATE}.get('step') or 'status'"));
                    with_step(status_inputs, step)
                }
            }),
            act.span,
        );
        status_request.retry = Some(RetryPolicy {
            on: vec![RetryOn::Transient, RetryOn::Code(404)],
            when: names.repeat_condition(self),
            ..default_retry(true, act.span)
        });
        let failed = failed.and_then(|entry| self.condition(entry));
        status_request.expect = failed.map(Expect::NotFailed);

        let condition_text = match done {
            Some(entry) => entry.value.as_str().unwrap_or_default().to_owned(),
            None => String::from("the operation has ended"),
        };
        let is_done = done.and_then(|entry| self.condition(entry));
        let test = match is_done {
            Some(_) => Test::After,
            None => Test::Before,
        };
        let ended = is_done.unwrap_or_else(|| {
            condition_of(names.read(self, &format!("{STATE}.get('done') == true")))
        });
        let poll = Loop {
            test,
            condition_text,
            timeout: Some(timeout.clone()),
            delay,
            on_missing: OnMissing::Wait,
            on_limit: OnLimit::Fail,
            on_timeout: OnLimit::Fail,
            ..looped(ended, count, only(status_request))
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
        steps.extend(self.operation_result(act, result, &names, &first_inputs, &request));
        let part = |name: &str, of: &str| (text(name), names.read(self, of));
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
            // The loop has the same timeout, but does not contain the start and the request for the result.
            timeout: Some(timeout),
            ..StepKind::Block(Block::Sequence(steps)).into()
        }
    }

    /// Returns the maximum number of requests about an operation, within the caps that the operator sets.
    pub(crate) fn max_polls(&self) -> Template {
        let count = i64::try_from(self.max_count.min(POLLS)).unwrap_or(1);
        Template::constant(count.into())
    }

    /// Reads a request about the operation: its inputs, or only its address.
    /// The action's rate limits this request, unless the request names another rate.
    fn operation_request(
        &mut self,
        entry: &Entry,
        first_inputs: &[(Template, Template)],
    ) -> Template {
        let address = match entry.value.entries() {
            Some(inputs) => inputs.iter().find(|input| input.key == "uri"),
            None => Some(entry),
        };
        if let Some(address) = address.filter(|address| address.value.as_str().is_some()) {
            self.check_uri(address);
        }
        let given = self.template(&entry.value);
        let inputs = match &entry.value.kind {
            Kind::Object(_) => given,
            _ => object([("uri", given)]),
        };
        if let Some(own) = entry.value.get(RATE) {
            let _ = self.rate_name(own);
            return inputs;
        }
        let rate = first_inputs.iter().filter(|(key, _)| is_key(key, RATE));
        inputs.with_members(rate.cloned().collect())
    }

    /// Reads the request that cancels the operation.
    /// If it is only an address, the address may be relative to the URL of the start.
    fn cancel_request(
        &mut self,
        entry: &Entry,
        names: &Names,
        first_inputs: &[(Template, Template)],
    ) -> Template {
        let post = (text("method"), text("POST"));
        match &entry.value.kind {
            Kind::Object(_) => {
                let inputs = self.operation_request(entry, first_inputs);
                match entry.value.get("method") {
                    Some(_) => inputs,
                    None => inputs.with_members(vec![post]),
                }
            }
            // If the cancel request is only an address, authors read the address from the answer of the start.
            _ => {
                let base = names.read(self, "start.get('url')");
                follow_up_inputs(first_inputs, post, self.template(&entry.value), base)
            }
        }
    }

    /// Adds a request that is sent at the end of the run if the operation still runs.
    /// It still runs if `start` succeeded, `poll` (the loop that waits for the end) did not succeed, and no answer of
    /// `status` reported a failure of the operation.
    pub(crate) fn cancel_at_end(
        &mut self,
        act: &ActionFields<'_>,
        start: &Name,
        [poll, status]: [&Name; 2],
        request: StepKind,
    ) {
        let [cancel, cancels] = ["cancel", "cleanup"].map(|what| part_of(&act.name, what));
        for name in [&cancel, &cancels] {
            self.declare(name, act.span);
        }
        let record = |of: &Name| Template::binding(Binding::Record(of.clone()));
        let records = [
            ("start", record(start)),
            ("poll", record(poll)),
            ("status", record(status)),
        ];
        let runs = condition_of(scoped(self, records, RUNS));
        let mut send = step(cancel, "http", request, act.span);
        send.retry = Some(default_retry(true, act.span));
        // If the request fails, its record shows the failure, and the end of the run does not change.
        send.catch = Some(nothing());
        let kind = when(runs, only(send));
        self.cleanup.push(step(cancels, "if", kind, act.span));
    }

    /// Refuses `cancel` where several operations may be started, because the end of the run knows only one of them.
    pub(super) fn check_cancels(&mut self, workflow: &Workflow) {
        let cancels = std::mem::take(&mut self.cancels);
        let [body, endings @ ..] = workflow.blocks();
        let mut found = Vec::new();
        find_repeated(body, None, &mut found);
        for ending in endings {
            find_repeated(ending, Some("`on_failure` and `on_finish`"), &mut found);
        }
        for (name, span) in cancels {
            let place = found.iter().find(|(step, _)| **step == name);
            let Some((_, place)) = place else { continue };
            let what = format!("`cancel` of `{name}` does not work in {place}");
            let hint = "it is sent at the end of the run, which knows one start of the operation: \
                        put the operation outside, or in a workflow of its own";
            self.error("not-supported", span, what, hint);
        }
    }

    /// Makes the request for the result.
    /// Without `result` in the file, the request is sent only if an answer contains the address of the result.
    fn operation_result(
        &mut self,
        act: &ActionFields<'_>,
        entry: Option<&Entry>,
        names: &Names,
        first_inputs: &[(Template, Template)],
        request: &dyn Fn(Template) -> StepKind,
    ) -> Option<Step> {
        let (inputs, is_there) = match entry {
            Some(entry) if entry.value.as_str() == Some("none") => return None,
            Some(entry) => (self.operation_request(entry, first_inputs), None),
            None => {
                let inputs = follow_up_inputs(
                    first_inputs,
                    get(),
                    names.read(self, RESULT),
                    names.read(self, URL),
                );
                let is_there = names.read(self, &format!("({RESULT}) is not none"));
                (inputs, Some(is_there))
            }
        };
        let inputs = with_step(inputs, text("result"));
        let mut fetch = step(names.result.clone(), "http", request(inputs), act.span);
        fetch.retry = Some(default_retry(true, act.span));
        Some(match is_there {
            None => fetch,
            Some(is_there) => {
                let kind = when(condition_of(is_there), only(fetch));
                step(names.fetch.clone(), "if", kind, act.span)
            }
        })
    }
}

/// Adds the input `operation`, with which the output of the request contains the state of the operation.
fn with_step(inputs: Template, step: Template) -> Template {
    inputs.with_members(vec![(text("operation"), step)])
}

/// Returns true if the name of a member in a template is the constant `key`.
fn is_key(name: &Template, key: &str) -> bool {
    name.as_constant().and_then(|name| name.as_str()) == Some(key)
}

fn get() -> (Template, Template) {
    (text("method"), text("GET"))
}

/// Finds the steps in a block that can run more than once or in isolation.
/// Each is returned with the reason, such as `a loop`.
pub(crate) fn find_repeated<'w>(
    block: &'w Block,
    place: Option<&'static str>,
    found: &mut Vec<(&'w Name, &'static str)>,
) {
    for step in block.steps() {
        let retried = step.retry.as_ref().map(|_| "a retry");
        let around = match &step.kind {
            StepKind::Loop(_) => Some("a loop"),
            StepKind::ForEach(_) => Some("a foreach"),
            StepKind::Parallel { isolated: true, .. } => Some("a branch with its own variables"),
            _ => None,
        };
        let own = place.or(retried);
        found.extend(own.map(|place| (&step.name, place)));
        for inner in step.blocks() {
            find_repeated(inner, own.or(around), found);
        }
    }
}

/// Makes the inputs of a later request to an address.
/// If the address is on the same server, the request has the credentials of the first request.
fn follow_up_inputs(
    first_inputs: &[(Template, Template)],
    method: (Template, Template),
    address: Template,
    base: Template,
) -> Template {
    let copied = ["uri", "headers", "authentication", "tls", RATE];
    let is_copied = |name: &Template| copied.iter().any(|key| is_key(name, key));
    let copied = first_inputs.iter().filter(|(name, _)| is_copied(name));
    let mut members: Vec<(Template, Template)> = copied.cloned().collect();
    members.push(method);
    members.push((text("page"), address));
    members.push((text("page_base"), base));
    Template::object(members)
}
