//! `HttpWebhook` of Logic Apps (Workflow Definition Language reference, "HTTP Webhook action").
//! One request subscribes with a callback address. Then the action waits for a request to that address. If no request
//! arrives in time, another request unsubscribes. `callbackUrl` makes the address, and the wait is a `waitForSignal`.

use super::LogicApps;
use crate::actions::ActionReader;
use crate::actions::HttpRequest;
use crate::actions::{ActionFields, Body};
use crate::actions::{find_repeated, part_of};
use crate::builder::{object, step};
use windlass_expression::{Binding, Template};
use windlass_model::hir::{Block, Call, StepKind, Workflow};
use windlass_model::model::{AwaitedSignal, Name};
use windlass_source::source::{Entry, Kind, Node};

/// How long a callback address is valid: the maximum duration of a run in Azure.
const VALID: &str = "P90D";

/// The call in expressions that returns the callback address, in lower case.
const FUNCTION: &str = "listcallbackurl()";

const HINT: &str =
    "for example inputs: { subscribe: { uri: …, body: { to: \"@{listCallbackUrl()}\" } } }";

impl ActionReader<'_, LogicApps> {
    pub(super) fn http_webhook(&mut self, act: &mut ActionFields<'_>) -> Body {
        let timeout = self.limit_timeout_of(act);
        let mut inputs = self.inputs(act, HINT);
        let subscribe = inputs.get(act, self, "subscribe");
        let unsubscribe = inputs.get(act, self, "unsubscribe");
        // Only the designer uses `schema`, so it is accepted and ignored.
        let _ = inputs.get(act, self, "schema");
        inputs.finish(self);
        let Some(subscribe) = subscribe else {
            self.missing_input(act, "subscribe", HINT);
            return StepKind::Nothing.into();
        };
        let [begins, waits] = ["subscribe", "callback"].map(|what| part_of(&act.name, what));
        for name in [&begins, &waits] {
            self.declare(name, act.span);
        }
        self.note_signal(&act.name, None, act.span);
        let request = |loom: &mut Self, name: &Name, entry: &Entry| {
            let given = Entry {
                key: String::from("inputs"),
                key_span: entry.key_span,
                value: with_callback(&as_request(&entry.value), &act.name),
            };
            let node = Node {
                span: entry.value.span,
                kind: Kind::Object(vec![given]),
            };
            let fields = loom.fields(&node, "the request", HINT)?;
            let mut part = ActionFields {
                fields,
                name: name.clone(),
                span: act.span,
                wants_json: false,
                has_retry: act.has_retry,
            };
            let HttpRequest {
                members,
                attempt_timeout,
                retry,
                output: _,
            } = loom.request(&mut part, "POST");
            let kind = StepKind::Call(Call {
                attempt_timeout,
                ..crate::builder::call("http", Template::object(members))
            });
            Some((kind, retry))
        };
        let Some((kind, retry)) = request(self, &begins, subscribe) else {
            return StepKind::Nothing.into();
        };
        let mut first = step(begins.clone(), "http", kind, act.span);
        first.retry = retry;
        // Without an address in `unsubscribe`, no request to unsubscribe is sent.
        let unsubscribe = unsubscribe.filter(|entry| {
            entry.value.as_str().is_some() || entry.value.get_any_case("uri").is_some()
        });
        let last =
            unsubscribe.and_then(|entry| request(self, &part_of(&act.name, "cancel"), entry));
        self.format
            .webhooks
            .push((act.name.clone(), act.span, last.is_some()));
        if let Some((kind, _)) = last {
            self.cancel_at_end(act, &begins, [&waits, &waits], kind);
        }
        let wait = StepKind::AwaitSignal(AwaitedSignal {
            name: act.name.clone(),
            question: None,
        });
        let wait = step(waits.clone(), "waitForSignal", wait, act.span);
        let output = object([
            ("headers", object([])),
            ("body", Template::binding(Binding::Outputs(waits))),
        ]);
        Body {
            timeout,
            output: Some(output),
            ..StepKind::Block(Block::Sequence(vec![first, wait])).into()
        }
    }

    /// Refuses webhooks in concurrent items of a foreach, and warns of `unsubscribe` in steps that can run more than
    /// once.
    /// In concurrent items, all webhooks would have the same address, so a request could not be matched to its item.
    pub(super) fn check_webhooks(&mut self, workflow: &Workflow) {
        let webhooks = std::mem::take(&mut self.format.webhooks);
        if webhooks.is_empty() {
            return;
        }
        let mut found = Vec::new();
        for block in workflow.blocks() {
            find_concurrent(block, false, &mut found);
        }
        let mut repeated = Vec::new();
        find_repeated(&workflow.body, None, &mut repeated);
        for (name, span, unsubscribes) in webhooks {
            let place = repeated.iter().find(|(step, _)| **step == name);
            if let Some((_, place)) = place.filter(|_| unsubscribes) {
                let what = format!("`unsubscribe` of `{name}` may not be sent in {place}");
                let hint = "it is sent at the end of the run, which knows one subscription: put the \
                            action outside, or in a workflow of its own";
                self.warning("not-supported", span, what, hint);
            }
            if found.contains(&&name) {
                let what = format!("`{name}` is in a foreach that runs several items at a time");
                let hint = "all of them would have one address: set \
                            runtimeConfiguration.concurrency.repetitions of the foreach to 1";
                self.error("not-supported", span, what, hint);
            }
        }
    }
}

/// Finds the steps that several items of a foreach can execute at the same time. `at_once` is true inside of such a
/// foreach.
fn find_concurrent<'w>(block: &'w Block, at_once: bool, found: &mut Vec<&'w Name>) {
    for step in block.steps() {
        if at_once {
            found.push(&step.name);
        }
        let several = matches!(&step.kind, StepKind::ForEach(each) if each.concurrency != 1);
        for inner in step.blocks() {
            find_concurrent(inner, at_once || several, found);
        }
    }
}

/// Converts a text, which is an address, to a request to this address.
fn as_request(node: &Node) -> Node {
    if node.as_str().is_none() {
        return node.clone();
    }
    let uri = Entry {
        key: String::from("uri"),
        key_span: node.span,
        value: node.clone(),
    };
    Node {
        span: node.span,
        kind: Kind::Object(vec![uri]),
    }
}

/// Replaces `listCallbackUrl()` in the texts of a value by the callback address of a signal.
fn with_callback(node: &Node, signal: &Name) -> Node {
    let quoted = signal.replace('\'', "''");
    let callback = format!("callbackUrl('{quoted}', '{VALID}')");
    node.map_texts(&mut |text, span| {
        let mut text = text.clone();
        // Replace from the end, so that the earlier offsets stay valid.
        let lower = text.text.to_ascii_lowercase();
        for (at, found) in lower.rmatch_indices(FUNCTION) {
            text.text.replace_range(at..at + found.len(), &callback);
        }
        let kind = Kind::String(text);
        Some(Node { span, kind })
    })
}
