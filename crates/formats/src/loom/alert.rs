//! `on_failure` and `on_finish` in the form of an alert.
//! An alert is an address alone, or `{webhook, format, text, body, headers}`.

use super::Loom;
use crate::actions::ActionReader;
use crate::actions::alert_retry;
use crate::builder;
use windlass_expression::{Syntax, Template};
use windlass_model::hir::{Block, Step, StepKind};
use windlass_model::model::Name;
use windlass_source::diagnostic::nearest;
use windlass_source::source::{Entry, Kind, Node};

const HINT: &str =
    "for example on_failure: { webhook: https://hooks.example.org/T1, format: slack }";

/// The format of an alert's body: Windlass's own, or that of a chat service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    Json,
    Slack,
    Teams,
}

const SHAPES: [(&str, Shape); 3] = [
    ("json", Shape::Json),
    ("slack", Shape::Slack),
    ("teams", Shape::Teams),
];

/// The text of an alert that does not set `text`.
const TEXT: &str = "@{if(equals(variables('failure'), null), \
    concat('Workflow ', workflow().name, ' succeeded (run ', workflow().run.name, ')'), \
    concat('Workflow ', workflow().name, ' ended as ', variables('failure')?.status, ' (run ', workflow().run.name, '): ', \
    variables('failure')?.message))}";

/// Parses a template that is a constant of this module.
fn fixed(text: &str) -> Template {
    Template::parse(text, Syntax::Loom).unwrap_or_else(|_| builder::text(text))
}

impl ActionReader<'_, Loom> {
    /// Returns true if the value of `on_failure` or `on_finish` is an alert, and false if it has actions.
    pub(super) fn is_alert(node: &Node) -> bool {
        match &node.kind {
            Kind::String(_) => true,
            // A misspelt `webhook` is reported as one.
            Kind::Object(entries) => entries
                .iter()
                .any(|entry| nearest(&entry.key, ["webhook"]).is_some()),
            _ => false,
        }
    }

    /// Reads an alert. It becomes a POST request that reports which run ended, and how.
    pub(super) fn alert(&mut self, entry: &Entry) -> Block {
        let mut inputs = vec![("method", builder::text("POST"))];
        if entry.value.as_str().is_some() {
            self.check_uri(entry);
            inputs.push(("uri", self.template(&entry.value)));
            inputs.push(("body", body(Shape::Json, fixed(TEXT))));
        } else if let Some(mut fields) = self.fields(&entry.value, "an alert", HINT) {
            if let Some(webhook) = fields.required(self, "webhook", entry.key_span, HINT) {
                self.check_uri(webhook);
                inputs.push(("uri", self.template(&webhook.value)));
            }
            let wrong = |text: &str| format!("`{text}` is not a format of alerts");
            let shape = fields.non_null(self, "format");
            let shape = shape.and_then(|entry| self.choice(entry, &SHAPES, wrong));
            let text = fields.non_null(self, "text");
            let own = fields.non_null(self, "body");
            if let (Some(text), Some(_)) = (text, own) {
                let hint = "write the text into `body`";
                self.error(
                    "conflict",
                    text.key_span,
                    "`text` is a part of the body",
                    hint,
                );
            }
            let text = text.map_or_else(|| fixed(TEXT), |entry| self.template(&entry.value));
            let own = own.map(|entry| self.template(&entry.value));
            let body = own.unwrap_or_else(|| body(shape.unwrap_or(Shape::Json), text));
            inputs.push(("body", body));
            if let Some(headers) = fields.non_null(self, "headers") {
                inputs.push(("headers", self.template(&headers.value)));
            }
            fields.finish(self);
        }
        let name = Name::from(entry.key.as_str());
        self.declare(&name, entry.key_span);
        let call = StepKind::Call(builder::call("http", builder::object(inputs)));
        builder::only(Step {
            retry: Some(alert_retry(entry.key_span)),
            ..builder::step(name, "http", call, entry.key_span)
        })
    }
}

fn body(shape: Shape, text: Template) -> Template {
    match shape {
        Shape::Json => builder::object([
            ("workflow", fixed("@workflow().name")),
            ("run", fixed("@workflow().run.name")),
            ("failure", fixed("@variables('failure')")),
            ("text", text),
        ]),
        // https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks
        Shape::Slack => builder::object([("text", text)]),
        // A message with an adaptive card, the format that the webhooks of Teams workflows accept.
        Shape::Teams => {
            let block = builder::object([
                ("type", builder::text("TextBlock")),
                ("text", text),
                ("wrap", Template::constant(true.into())),
            ]);
            let card = builder::object([
                ("type", builder::text("AdaptiveCard")),
                ("version", builder::text("1.4")),
                ("body", Template::array(vec![block])),
            ]);
            let attachment = builder::object([
                (
                    "contentType",
                    builder::text("application/vnd.microsoft.card.adaptive"),
                ),
                ("content", card),
            ]);
            builder::object([
                ("type", builder::text("message")),
                ("attachments", Template::array(vec![attachment])),
            ])
        }
    }
}
