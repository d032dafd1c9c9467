//! Panels of the actions of Loom and of Logic Apps.

use super::schema::object_of;
use super::{Section, View, section};
use crate::edit::fields::Field;
use crate::edit::fields::FieldKind::{Choice, Code, Condition, Duration, Expression, Number};
use crate::schema::root;
use regex::Regex;
use serde_json::{Map, Value};
use windlass_engine::Dialect;

impl View<'_> {
    /// Returns the pointer below which the keys of the action's type are: next to `type`, or under `inputs`.
    fn under(&self) -> &'static str {
        let inputs = self.own.get("inputs").and_then(Value::as_object);
        let known = ["condition", "limit", "actions", "expression"];
        match inputs.is_some_and(|inputs| known.iter().any(|key| inputs.contains_key(*key))) {
            true => "/inputs",
            false => "",
        }
    }

    pub(super) fn loom_loop(&self, kind: &str) -> Vec<Section> {
        let under = self.under();
        let loom = self.document.dialect == Dialect::Loom;
        let own = self.own.pointer(under).unwrap_or(self.own);
        let test = if own.get("expression").is_some() || !loom {
            "expression"
        } else {
            "condition"
        };
        let label = match kind {
            "while" => "Continue while",
            _ => "Until",
        };
        let condition = self.field("condition", label, Condition, &format!("{under}/{test}"));
        let mut first = vec![condition];
        if loom {
            let kind = Field::new("type", "Type", Choice).choices(["until", "while", "doUntil"]);
            first.insert(0, self.at(kind, "/type"));
        }
        let count = Field::new("count", "Max iterations", Number).usual(60);
        let timeout = Field::new("timeout", "Timeout", Duration).usual("PT1H");
        let mut limits = vec![
            self.count(self.at(count, &format!("{under}/limit/count"))),
            self.at(timeout, &format!("{under}/limit/timeout")),
        ];
        let mut further = Vec::new();
        if loom {
            let limit = Field::new("on_limit", "When a limit is reached", Choice)
                .choices(["fail", "continue", "pause"])
                .usual("fail");
            limits.push(self.at(limit, &format!("{under}/on_limit")));
            for (key, label, help) in [
                ("tokens", "Max tokens", "Of language models, over the loop"),
                ("cost", "Max cost", "The sum of what its actions report"),
            ] {
                let budget = Field::new(key, label, Number).help(help);
                limits.push(self.at(budget, &format!("{under}/limit/{key}")));
            }
            let missing = Field::new("on_missing", "When a member is missing", Choice)
                .choices(["fail", "wait"])
                .usual("fail");
            further.push(self.at(missing, &format!("{under}/on_missing")));
            let delay = format!("{under}/delay");
            let is_map = self.own.pointer(&delay).is_some_and(Value::is_object);
            match is_map {
                false => limits.push(
                    self.field("delay", "Delay", Duration, &delay)
                        .help("Between two iterations"),
                ),
                true => {
                    let kind =
                        Field::new("delay_type", "Delay", Choice).choices(["fixed", "exponential"]);
                    limits.push(self.at(kind, &format!("{delay}/type")));
                    for (id, label, key) in [
                        ("delay_interval", "First delay", "interval"),
                        ("delay_max", "Longest delay", "maxInterval"),
                    ] {
                        limits.push(self.field(id, label, Duration, &format!("{delay}/{key}")));
                    }
                }
            }
            further.push(
                self.field("page", "Page", Expression, &format!("{under}/page"))
                    .help("The next page: the loop reads none twice"),
            );
            let repeat = Field::new("on_repeat", "If a page is repeated", Choice)
                .choices(["fail", "stop"])
                .usual("fail");
            further.push(self.at(repeat, &format!("{under}/on_repeat")));
        }
        vec![
            section("Loop", first),
            section("Limits", limits),
            section("Pages", further),
            section("Retry", self.retry()),
        ]
    }

    fn retry(&self) -> Vec<Field> {
        let under = match self.document.dialect {
            Dialect::Loom => "/retry",
            _ => return Vec::new(),
        };
        let kind = Field::new("retry_type", "Retry", Choice)
            .choices(["none", "fixed", "exponential"])
            .usual("none");
        let count = Field::new("retry_count", "Retries", Number).usual(3);
        let interval = Field::new("retry_interval", "First wait", Duration).usual("5s");
        let most = Field::new("retry_max", "Longest wait", Duration).usual("1m");
        vec![
            self.at(kind, &format!("{under}/type")),
            self.at(count, &format!("{under}/count")),
            self.at(interval, &format!("{under}/interval")),
            self.at(most, &format!("{under}/maxInterval")),
            self.field("retry_on", "On", Code, &format!("{under}/on"))
                .help("Faults: timeout, connection, 5xx, 429, …"),
        ]
    }

    pub(super) fn loom_action(&self) -> Vec<Section> {
        let schema = root(self.document.dialect);
        let rules = schema
            .pointer("/$defs/action/allOf")
            .and_then(Value::as_array);
        let mut rules = rules.into_iter().flatten();
        let rule = rules.find(|rule| {
            let pattern = rule
                .pointer("/if/properties/type/pattern")
                .and_then(Value::as_str);
            pattern
                .and_then(|pattern| Regex::new(pattern).ok())
                .is_some_and(|pattern| pattern.is_match(&self.found.kind))
        });
        let rule = rule.and_then(|rule| rule.pointer("/then/properties"));
        let skipped = [
            "inputs",
            "name",
            "metadata",
            "trackedProperties",
            "operationOptions",
            "runtimeConfiguration",
            "retry",
            "runAfter",
            "actions",
            "else",
            "cases",
            "default",
            "branches",
        ];
        let own = self.own.as_object();
        let under = rule.and_then(|rule| rule.get("inputs"));
        let under = under
            .map(|under| object_of(schema, under))
            .and_then(|under| under.get("properties"));
        let inputs = self.own.get("inputs");
        let (direct, nested) = split_keys(own, inputs, rule, under);
        let inputs = match inputs {
            Some(Value::Object(inputs)) => {
                self.by_schema(schema, under, Some(inputs), "/inputs", &direct)
            }
            None if under.is_some() => self.by_schema(schema, under, None, "/inputs", &direct),
            _ => vec![self.field("inputs", "Inputs", Code, "/inputs")],
        };
        let skipped: Vec<&str> = skipped.into_iter().chain(nested).collect();
        let fields = self.by_schema(schema, rule, own, "", &skipped);
        vec![
            section("Inputs", inputs),
            section("Action", fields),
            section("Retry", self.retry()),
        ]
    }
}

/// Returns the keys that an action may have next to `type` and under `inputs`, so that each has one field: those that
/// belong next to `type`, then those that belong under `inputs`. A key belongs to the place where the file has it. If
/// the file does not have it, it belongs to the other keys of the action.
fn split_keys<'r>(
    own: Option<&Map<String, Value>>,
    inputs: Option<&Value>,
    rule: Option<&'r Value>,
    under: Option<&Value>,
) -> (Vec<&'r str>, Vec<&'r str>) {
    let in_own = |key: &str| own.is_some_and(|own| own.contains_key(key));
    let in_inputs = |key: &str| inputs.is_some_and(|inputs| inputs.get(key).is_some());
    let rules = rule.and_then(Value::as_object).into_iter().flatten();
    let keys = rules.map(|(key, _)| key.as_str());
    let both: Vec<&str> = keys
        .filter(|key| under.is_some_and(|under| under.get(key).is_some()))
        .collect();
    let is_direct = both.iter().any(|key| in_own(key));
    both.into_iter()
        .partition(|key| in_own(key) || (is_direct && !in_inputs(key)))
}
