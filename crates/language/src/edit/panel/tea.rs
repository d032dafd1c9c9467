//! Panels of the nodes of The Edge Agent.

use super::{Section, View, section};
use crate::edit::fields::FieldKind::{self, Code, Expression, Number, Text};
use crate::edit::fields::{Choice, Field};
use crate::schema::root;
use serde_json::Value;
use windlass_engine::Dialect;

impl View<'_> {
    pub(super) fn while_loop(&self) -> Vec<Section> {
        let most = self.field(
            "max_iterations",
            "Max iterations",
            Number,
            "/max_iterations",
        );
        vec![section(
            "Loop",
            vec![
                self.field("condition", "Continue while", Expression, "/condition"),
                self.count(most),
            ],
        )]
    }

    pub(super) fn retry_loop(&self) -> Vec<Section> {
        let correct = self.field(
            "correct",
            "Correct with",
            FieldKind::Choice,
            "/with/correct",
        );
        let nodes = self.document.nodes();
        let others = nodes.iter().filter(|node| node.name != self.found.name);
        let choices = others.map(|node| Choice::of(node.name.clone())).collect();
        let retries = Field::new("max_retries", "Max corrections", Number).usual(1);
        vec![section(
            "Retry loop",
            vec![
                self.field("validate", "Validate with", Text, "/with/validate"),
                self.field("validate_args", "Arguments", Code, "/with/validate_args"),
                Field { choices, ..correct },
                self.count(self.at(retries, "/with/max_retries")),
                self.field(
                    "retry_delay",
                    "Delay in seconds",
                    Number,
                    "/with/retry_delay",
                ),
                self.field("output", "Output key", Text, "/output"),
            ],
        )]
    }

    pub(super) fn reflection_loop(&self) -> Vec<Section> {
        let rounds = Field::new("max_iterations", "Max rounds", Number).usual(3);
        let failed = Field::new("on_failure", "When none is valid", FieldKind::Choice)
            .choices(["return_best", "return_last", "raise"])
            .usual("return_best");
        let judge = Field::new("evaluator_type", "Evaluator", FieldKind::Choice)
            .choices(["schema", "llm", "custom"]);
        vec![
            section(
                "Reflection loop",
                vec![
                    self.count(self.at(rounds, "/with/max_iterations")),
                    self.at(failed, "/with/on_failure"),
                ],
            ),
            section(
                "Parts",
                vec![
                    self.field("generator", "Generator", Code, "/with/generator"),
                    self.at(judge, "/with/evaluator/type"),
                    self.field("evaluator", "Evaluator's settings", Code, "/with/evaluator"),
                    self.field("corrector", "Corrector", Code, "/with/corrector"),
                ],
            ),
        ]
    }

    pub(super) fn tea_node(&self) -> Vec<Section> {
        let schema = root(Dialect::Tea);
        let rule = schema.pointer("/$defs/node/properties");
        let own = self.own.as_object();
        let own_fields = self.by_schema(schema, rule, own, "", &["name", "with", "body", "steps"]);
        let with = self.own.get("with").and_then(Value::as_object);
        let with = self.by_schema(schema, None, with, "/with", &[]);
        vec![section("Node", own_fields), section("With", with)]
    }
}
