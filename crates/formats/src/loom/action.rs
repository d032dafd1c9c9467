//! One action: what all types share, and which reader its type has.

use super::Loom;
use super::action_fields::{ActionFields, Body, OrderedStep, member};
use super::nested::as_nested;
use super::state::names_its_value;
use crate::builder::{nothing, step};
use crate::fields::Fields;
use crate::synonyms::action_type;
use crate::vocabulary::loom as vocabulary;
use std::borrow::Cow;
use windlass_expression::{Condition, Template, Value};
use windlass_model::hir::{Block, Secure, StepKind};
use windlass_model::model::{Expect, GET_STATE, Name, SET_STATE, Secured, WORKFLOW};
use windlass_source::diagnostic::{did_you_mean, nearest};
use windlass_source::source::{Entry, Node, Span};
use windlass_value::words;

/// The types that only Azure definitions have, besides the connectors.
const AZURE_TYPES: [&str; 3] = ["Response", "Expression", "HttpWebhook"];

/// The types that Azure has no word for.
const LOOM_ONLY: [&str; 14] = words! {
    operation workflow while doUntil retry parallel waitForSignal ai activity actor shell appendFile
    setState getState
};

/// What `operationOptions` may name.
const OPTIONS: [&str; 11] = words! {
    Asynchronous DisableAsyncPattern DisableAutomaticDecompression EnableSchemaValidation
    FailWhenLimitsReached IncludeAuthorizationHeadersInOutputs OptimizedForHighThroughput Sequential
    SingleInstance SuppressWorkflowHeaders SuppressWorkflowHeadersOnResponse
};
const SECURE: &str = "for example secure: [inputs, outputs]";
const SECURE_DATA: &str = "for example secureData: { properties: [inputs, outputs] }";

impl Loom<'_> {
    /// Reads one action. What cannot be read becomes a step that does nothing, and is reported.
    pub(super) fn action(
        &mut self,
        node: &Node,
        name: Name,
        span: Span,
        anonymous: bool,
    ) -> OrderedStep {
        if let Some(flat) = self.flat(node) {
            let mut placed = self.action(&flat, name, span, anonymous);
            as_nested(self, &mut placed.step);
            return placed;
        }
        let mut step = step(name.clone(), "nothing", StepKind::Nothing, span);
        step.anonymous = anonymous;
        let mut placed = OrderedStep {
            step,
            after: None,
            mentions: 0..0,
        };
        let hint = "an action is a map with a `type`, such as { type: http, inputs: { … } }";
        let what = format!("the action `{name}`");
        let has_outer_retry = std::mem::take(&mut self.has_outer_retry);
        let Some(mut fields) = self.fields(node, &what, hint) else {
            return placed;
        };
        let types = self.known_types();
        let kind = fields.required(self, "type", span, &types);
        let kind =
            kind.and_then(|entry| Some((self.text(entry, "for example type: http")?, entry)));
        if let Some(after) = fields.non_null(self, "runAfter") {
            placed.after = Some(self.run_after(after));
        }
        let Some((text, entry)) = kind else {
            fields.finish_without(self, "type");
            return placed;
        };
        let Some(label) = self.label(text, entry, node) else {
            return placed;
        };
        let label = label.as_ref();
        placed.step.label = Name::from(label);
        if let Some(entry) = fields.non_null(self, "break_when") {
            placed.step.break_when = self.condition(entry);
        }
        if let Some(entry) = fields.non_null(self, "continue_when") {
            placed.step.continue_when = self.condition(entry);
        }
        let retry = fields.non_null(self, "retry");
        placed.step.retry = retry.and_then(|entry| self.retry_policy(entry));
        fields.allow(&[
            "description",
            "metadata",
            "trackedProperties",
            "operationOptions",
            "runtimeConfiguration",
        ]);
        if self.azure() {
            fields.allow(&["kind", "correlation", "conversion"]);
            let configuration = fields.get("runtimeConfiguration");
            self.known_configuration(configuration);
            self.known_options(fields.get("operationOptions"));
            self.secure_data(configuration, &name);
            if label != "http" {
                self.pagination(configuration);
            }
        } else {
            if let Some(entry) = fields.non_null(self, "secure") {
                self.secures(entry, &name);
            }
            placed.step.catch = self.catch(&mut fields, &name);
            let expect = fields.non_null(self, "expect");
            placed.step.expect = expect.and_then(|entry| self.expect(entry));
        }
        let wants_json = matches!(placed.step.expect, Some(Expect::Json));
        let mut act = ActionFields {
            fields,
            name,
            span,
            wants_json,
            has_retry: has_outer_retry || retry.is_some(),
        };
        let body = self.body(&mut act, label);
        self.common(&mut act, label);
        act.fields.finish(self);
        placed.step.kind = body.kind;
        placed.step.timeout = body.timeout;
        placed.step.output = body.output;
        placed.step.follow_up = body.follow_up;
        placed.step.retry = placed.step.retry.or(body.retry);
        placed
    }

    /// The type as it is shown. In a definition, one that is not known here is a handler's. Elsewhere
    /// it is reported; when it is nearly right and has actions in it, it is read as what was meant,
    /// so that their mistakes are reported too.
    fn label<'t>(&mut self, text: &'t str, entry: &Entry, node: &Node) -> Option<Cow<'t, str>> {
        let mut known: Vec<&str> = vocabulary::types().collect();
        if self.azure() {
            // A connector has this type there.
            known.retain(|known| *known != WORKFLOW);
            known.extend(AZURE_TYPES.iter().chain(&super::connector::TYPES));
        }
        let exact = known.iter().find(|known| known.eq_ignore_ascii_case(text));
        if let Some(label) = exact {
            return Some(Cow::Borrowed(*label));
        }
        let near = nearest(text, known.iter().copied());
        if self.azure() && node.get_any_case("actions").is_none() {
            if let Some(near) = near {
                let what = format!("`{text}` is not a known type of action: a handler executes it");
                let hint = format!("did you mean `{near}`?");
                self.warning("unknown-type", entry.value.span, what, hint);
            }
            return Some(Cow::Borrowed(text));
        }
        let other = action_type(text).filter(|_| !self.azure());
        let hint = other
            .or_else(|| near.map(|near| format!("did you mean `{near}`?")))
            .unwrap_or_else(|| format!("types are {}", self.known_types()));
        let what = format!("`{text}` is not a valid type of action");
        self.error("unknown-type", entry.value.span, what, hint);
        let near = near.filter(|_| node.get_any_case("actions").is_some());
        near.map(Cow::Borrowed)
    }

    /// The types in the words of the format.
    fn known_types(&self) -> String {
        if !self.azure() {
            return vocabulary::types().collect::<Vec<_>>().join(", ");
        }
        let shared = vocabulary::types().filter(|word| !LOOM_ONLY.contains(word));
        let of_azure = AZURE_TYPES.iter().chain(&super::connector::TYPES).copied();
        let words: Vec<String> = shared.chain(of_azure).map(pascal).collect();
        words.join(", ")
    }

    /// A misspelt key would change how the action runs without a word.
    fn known_configuration(&mut self, configuration: Option<&Entry>) {
        let Some(entry) = configuration else { return };
        let known = [
            "concurrency",
            "contentTransfer",
            "paginationPolicy",
            "secureData",
            "staticResult",
        ];
        let data = member(entry, "secureData").map(|data| (data, &["properties"][..]));
        for (part, known) in [(entry, &known[..])].into_iter().chain(data) {
            let what = format!("`{}`", part.key);
            if part.value.entries().is_some()
                && let Some(mut fields) = self.fields(&part.value, &what, SECURE_DATA)
            {
                fields.allow(known);
                fields.finish(self);
            }
        }
    }

    pub(super) fn known_options(&mut self, options: Option<&Entry>) {
        let Some(entry) = options else { return };
        let given = entry.value.as_str().unwrap_or_default().split(',');
        for word in given.map(str::trim).filter(|word| !word.is_empty()) {
            if !OPTIONS.iter().any(|known| known.eq_ignore_ascii_case(word)) {
                let what = format!("unknown operation option `{word}`");
                let hint = did_you_mean(word, OPTIONS)
                    .unwrap_or_else(|| format!("it is ignored; known are: {}", OPTIONS.join(", ")));
                self.warning("unknown-value", entry.value.span, what, hint);
            }
        }
    }

    /// `runtimeConfiguration.secureData`: `{properties: [inputs, outputs]}`.
    fn secure_data(&mut self, configuration: Option<&Entry>, name: &Name) {
        let Some(data) = configuration.and_then(|entry| member(entry, "secureData")) else {
            return;
        };
        match member(data, "properties") {
            Some(properties) => self.secures(properties, name),
            None => {
                let what = "`secureData` does not say what is secure";
                self.error("missing-key", data.key_span, what, SECURE_DATA);
            }
        }
    }

    /// Which parts of an action are secure: a list of `inputs` and `outputs`.
    fn secures(&mut self, entry: &Entry, name: &Name) {
        let hint = if self.azure() { SECURE_DATA } else { SECURE };
        let Some(items) = self.list(entry, hint) else {
            return;
        };
        let mut secured = Secured::default();
        for item in items {
            match item.as_str().map(str::to_ascii_lowercase).as_deref() {
                Some("inputs") => secured.inputs = true,
                Some("outputs") => secured.outputs = true,
                _ => {
                    let near = item
                        .as_str()
                        .and_then(|word| did_you_mean(word, ["inputs", "outputs"]));
                    let what = format!(
                        "`{}` has `inputs` and `outputs`, and nothing else",
                        entry.key
                    );
                    let hint = near.unwrap_or_else(|| hint.to_owned());
                    self.error("wrong-value", item.span, what, hint);
                }
            }
        }
        self.secure.push(Secure {
            step: name.clone(),
            what: secured,
            span: entry.key_span,
        });
    }

    /// Azure reads the further pages of a connector automatically; here they would be missing without a
    /// message.
    fn pagination(&mut self, configuration: Option<&Entry>) {
        if let Some(policy) = configuration.and_then(|entry| member(entry, "paginationPolicy")) {
            let what = "`paginationPolicy` is not supported here: the handler returns all rows, or one \
                 page";
            let hint = "let its handler follow the links, or put it into an Until that does";
            self.warning("not-supported", policy.key_span, what, hint);
        }
    }

    /// What is done about a failure: `catch`, or nothing with `continue_on_error`.
    fn catch(&mut self, fields: &mut Fields<'_>, name: &Name) -> Option<Block> {
        let continue_on_error = fields.non_null(self, "continue_on_error");
        if let Some(entry) = fields.non_null(self, "catch") {
            if let Some(continue_on_error) = continue_on_error {
                let what = "with `catch` the failure is handled, so the run continues anyway";
                let hint = "remove `continue_on_error`, or `catch`";
                self.error("conflict", continue_on_error.key_span, what, hint);
            }
            return Some(self.action_or_actions(entry, &format!("{name}.catch")));
        }
        let entry = continue_on_error?;
        match entry.value.to_value() {
            Value::Bool(true) => Some(nothing()),
            Value::Bool(false) => None,
            _ => {
                let hint = "for example continue_on_error: true";
                self.wrong_type(&entry.value, "`continue_on_error`", "true or false", hint);
                None
            }
        }
    }

    /// `json`, or a condition.
    fn expect(&mut self, entry: &Entry) -> Option<Expect> {
        match entry.value.as_str() {
            Some("json") => Some(Expect::Json),
            _ => self.condition(entry).map(Expect::That),
        }
    }

    /// `name` next to a key: it may repeat the key and nothing else.
    fn common(&mut self, act: &mut ActionFields<'_>, label: &str) {
        if label.ends_with("Variable") || names_its_value(label) {
            return;
        }
        if let Some(entry) = act.fields.get("name")
            && let Some(text) = self.text(entry, "the action's name")
            && !text.eq_ignore_ascii_case(&act.name)
        {
            let what = format!("this action is called `{}`, not `{text}`", act.name);
            let hint = "expressions use the key; rename it, or remove `name`";
            self.warning("name-differs", entry.value.span, what, hint);
        }
    }

    fn body(&mut self, act: &mut ActionFields<'_>, label: &str) -> Body {
        match label {
            "until" | "while" | "doUntil" => self.a_loop(act, label).into(),
            "retry" => self.retry(act),
            "foreach" => self.foreach(act),
            "parallel" => self.parallel(act),
            "if" => self.branch(act),
            "switch" => self.switch(act),
            "scope" => self.scope(act),
            "http" => self.http(act),
            "operation" => self.operation(act),
            WORKFLOW => self.call_workflow(act),
            "shell" => self.shell(act),
            "activity" | "actor" => self.handler(act, label),
            "ai" => self.ai(act),
            "wait" => self.wait(act).into(),
            "waitForSignal" => self.wait_for_signal(act),
            "compose" => self.compose(act).into(),
            "terminate" => self.terminate(act).into(),
            "parseJson" | "select" | "query" | "join" | "table" => self.data(act, label).into(),
            "appendFile" => self.append_file(act),
            SET_STATE | GET_STATE => self.state_action(act, label),
            "Response" => self.response(act).into(),
            "Expression" => self.one_function(act).into(),
            "HttpWebhook" => self.http_webhook(act),
            _ if label.ends_with("Variable") => self.variable(act, label).into(),
            _ => self.connector(act, label),
        }
    }

    /// `timeout` next to the type: for the whole step, all its attempts included.
    pub(super) fn step_timeout(&mut self, act: &mut ActionFields<'_>) -> Option<Template> {
        let entry = act.fields.non_null(self, "timeout")?;
        Some(self.duration(entry)?.template)
    }

    /// The condition of an action, as a condition and as its author wrote it.
    pub(super) fn needed_condition(
        &mut self,
        act: &mut ActionFields<'_>,
    ) -> Option<(Condition, String)> {
        let azure = act.fields.get("expression");
        let key = if self.azure() || azure.is_some() {
            "expression"
        } else {
            "condition"
        };
        let hint = "for example condition: \"@equals(variables('status'), 'done')\"";
        let entry = act.fields.required(self, key, act.span, hint)?;
        self.conditions.insert(act.name.clone(), entry.value.span);
        let condition = self.condition(entry)?;
        let text = entry
            .value
            .as_str()
            .map_or_else(|| entry.value.to_value().to_json(), str::to_owned);
        Some((condition, text))
    }
}

/// A type as Azure writes it: `setVariable` is `SetVariable` there.
fn pascal(word: &str) -> String {
    let mut letters = word.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}
