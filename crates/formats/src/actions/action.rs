//! One action: the keys that all types share, and the reader of each type.

use super::action_fields::{ActionFields, Body, OrderedStep};
use super::state::names_its_value;
use super::{ActionReader, Format};
use crate::builder::step;
use windlass_expression::{Condition, Template};
use windlass_model::hir::{Secure, StepKind};
use windlass_model::model::{Expect, GET_STATE, Name, SET_STATE, Secured, WORKFLOW};
use windlass_source::diagnostic::did_you_mean;
use windlass_source::source::{Entry, Node, Span};

impl<F: Format> ActionReader<'_, F> {
    /// Reads one action.
    /// If an action cannot be read, this is reported, and the action becomes a step that does nothing.
    pub(crate) fn action(
        &mut self,
        node: &Node,
        name: Name,
        span: Span,
        anonymous: bool,
    ) -> OrderedStep {
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
        let types = F::known_types();
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
        let Some(label) = F::label(self, text, entry, node) else {
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
        F::common_keys(self, &mut fields, &mut placed.step);
        let wants_json = matches!(placed.step.expect, Some(Expect::Json));
        let mut act = ActionFields {
            fields,
            name,
            span,
            wants_json,
            has_retry: has_outer_retry || retry.is_some(),
        };
        if wants_json && label == "ai" {
            placed.step.expect = Some(Expect::JsonContent);
        }
        let body = self.body(&mut act, label);
        self.check_name(&mut act, label);
        F::check_keys(self, &act.fields);
        act.fields.finish(self);
        placed.step.kind = body.kind;
        placed.step.timeout = body.timeout;
        placed.step.output = body.output;
        placed.step.follow_up = body.follow_up;
        placed.step.retry = placed.step.retry.or(body.retry);
        placed
    }

    /// Reports an action type that the format does not have.
    pub(crate) fn unknown_type(
        &mut self,
        text: &str,
        entry: &Entry,
        hint: Option<String>,
        near: Option<&str>,
    ) {
        let hint = hint
            .or_else(|| near.map(|near| format!("did you mean `{near}`?")))
            .unwrap_or_else(|| format!("types are {}", F::known_types()));
        let what = format!("`{text}` is not a valid type of action");
        self.error("unknown-type", entry.value.span, what, hint);
    }

    /// Reads which parts of an action are secure: a list of `inputs` and `outputs`.
    pub(crate) fn read_secure(&mut self, entry: &Entry, name: &Name, hint: &str) {
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

    /// Warns if the action has a `name` that differs from its key.
    fn check_name(&mut self, act: &mut ActionFields<'_>, label: &str) {
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
            _ if label.ends_with("Variable") => self.variable(act, label).into(),
            _ => F::own_action(self, act, label),
        }
    }

    /// Reads the `timeout` that is next to the type.
    /// It is the timeout of the whole step with all its attempts.
    pub(super) fn step_timeout(&mut self, act: &mut ActionFields<'_>) -> Option<Template> {
        let entry = act.fields.non_null(self, "timeout")?;
        Some(self.duration(entry)?.template)
    }

    /// Reads the required condition of an action.
    /// Returns the parsed condition, and the text as its author wrote it.
    pub(super) fn needed_condition(
        &mut self,
        act: &mut ActionFields<'_>,
    ) -> Option<(Condition, String)> {
        let key = match act.fields.get("expression") {
            Some(_) => "expression",
            None => F::CONVENTIONS.condition_key,
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
