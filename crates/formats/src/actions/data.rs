//! The data operations: parseJson, select, query, join, table.
//! Each only computes a value, so each becomes a `compose` step.

use super::action_fields::ActionFields;
use super::{ActionReader, Format};
use crate::TABLES;
use crate::builder::text;
use crate::fields::Fields;
use windlass_expression::{Template, Value};
use windlass_model::hir::StepKind;
use windlass_model::model::Name;
use windlass_source::source::{Entry, Kind, Span};

impl<F: Format> ActionReader<'_, F> {
    pub(super) fn data(&mut self, act: &mut ActionFields<'_>, label: &str) -> StepKind {
        let hint = example(label);
        let Some(entry) = act.fields.required(self, "inputs", act.span, hint) else {
            return StepKind::Nothing;
        };
        let what = format!("`inputs` of `{}`", act.name);
        let Some(mut fields) = self.fields(&entry.value, &what, hint) else {
            return StepKind::Nothing;
        };
        let at = entry.key_span;
        let template = match label {
            "parseJson" => self.parse_json(&mut fields, at, hint),
            "select" => self.list_and(&mut fields, "select", at, hint, Template::select),
            "join" => self.list_and(&mut fields, "joinWith", at, hint, Template::join),
            "query" => self.query(&mut fields, at, hint),
            _ => self.table(&mut fields, at, hint),
        };
        fields.finish(self);
        template.map_or(StepKind::Nothing, Self::computed)
    }

    /// Makes a step whose output is a computed value.
    pub(crate) fn computed(template: Template) -> StepKind {
        StepKind::Compose(match F::CONVENTIONS.result_is_body {
            true => Template::object(vec![(text("body"), template)]),
            false => template,
        })
    }

    fn from(&mut self, fields: &mut Fields<'_>, at: Span, hint: &str) -> Option<Template> {
        let entry = fields.required(self, "from", at, hint)?;
        let first = self.mentions.len();
        let template = self.template(&entry.value);
        self.loop_headers.push(first..self.mentions.len());
        let list = matches!(entry.value.kind, Kind::Array(_));
        if !list && !self.is_computed(&entry.value) {
            let wanted = "a list or an expression";
            self.wrong_type(&entry.value, "`from`", wanted, hint);
        }
        Some(template)
    }

    fn list_and(
        &mut self,
        fields: &mut Fields<'_>,
        key: &'static str,
        at: Span,
        hint: &str,
        make: fn(Template, Template) -> Template,
    ) -> Option<Template> {
        let from = self.from(fields, at, hint);
        let other = fields.required(self, key, at, hint)?;
        Some(make(from?, self.template(&other.value)))
    }

    fn query(&mut self, fields: &mut Fields<'_>, at: Span, hint: &str) -> Option<Template> {
        let from = self.from(fields, at, hint);
        let entry = fields.required(self, "where", at, hint)?;
        let when = self.condition(entry)?;
        Some(Template::query(from?, when))
    }

    fn parse_json(&mut self, fields: &mut Fields<'_>, at: Span, hint: &str) -> Option<Template> {
        let content = fields.required(self, "content", at, hint)?;
        let content = self.template(&content.value);
        let schema = fields.get("schema");
        let value = schema.map(|entry| entry.value.to_value());
        let value = match F::CONVENTIONS.accepts_any_schema {
            true => value.map(|value| unescaped(&value)),
            false => value,
        };
        match (Template::parse_json(content, value.as_ref()), schema) {
            (Ok(template), _) => Some(template),
            (Err(mistake), Some(schema)) if F::CONVENTIONS.accepts_any_schema => {
                let hint = "the content is not checked";
                self.warning("bad-schema", schema.value.span, mistake, hint);
                let content = fields.get("content")?;
                let content = self.template(&content.value);
                Template::parse_json(content, None).ok()
            }
            (Err(mistake), Some(schema)) => {
                let hint = "the schema is JSON Schema: { type: object, properties: { … } }";
                self.error("bad-schema", schema.value.span, mistake, hint);
                None
            }
            (Err(_), None) => None,
        }
    }

    fn table(&mut self, fields: &mut Fields<'_>, at: Span, hint: &str) -> Option<Template> {
        let from = self.from(fields, at, hint);
        let format = fields.required(self, "format", at, hint).and_then(|entry| {
            self.choice(entry, &TABLES, |text| {
                format!("`{text}` is not a valid format of a table")
            })
        });
        let columns = match fields.non_null(self, "columns") {
            Some(entry) => Some(self.columns(entry)?),
            None => None,
        };
        Some(Template::table(from?, format?, columns))
    }

    fn columns(&mut self, entry: &Entry) -> Option<Vec<(Template, Template)>> {
        let hint = "for example columns: [{ header: Name, value: \"@item().name\" }]";
        let mut columns = Vec::new();
        for item in self.list(entry, hint)? {
            let mut fields = self.fields(item, "a column", hint)?;
            let header = fields.get("header");
            let value = fields.required(self, "value", item.span, hint);
            fields.finish(self);
            let header = header.map_or(text(""), |entry| self.template(&entry.value));
            columns.push((header, self.template(&value?.value)));
        }
        Some(columns)
    }
}

/// Resolves the escapes of a schema: `@@` at the start of a key or a text becomes `@`. This rule applies to all texts
/// of a definition.
fn unescaped(value: &Value) -> Value {
    let text = |text: &str| match text.strip_prefix("@@") {
        Some(rest) => format!("@{rest}"),
        None => text.to_owned(),
    };
    match value {
        Value::String(given) => Value::text(text(given)),
        Value::Array(items) => Value::array(items.iter().map(unescaped).collect()),
        Value::Object(map) => Value::from_pairs(
            map.iter()
                .map(|(key, value)| (Name::from(text(key)), unescaped(value))),
        ),
        other => other.clone(),
    }
}

fn example(label: &str) -> &'static str {
    match label {
        "parseJson" => "for example inputs: { content: \"@body('fetch')\", schema: { … } }",
        "select" => {
            "for example inputs: { from: \"@body('fetch').items\", select: \"@item().id\" }"
        }
        "query" => {
            "for example inputs: { from: \"@body('fetch')\", where: \"@greater(item().n, 3)\" }"
        }
        "join" => "for example inputs: { from: \"@body('names')\", joinWith: \", \" }",
        _ => "for example inputs: { from: \"@body('fetch').items\", format: CSV }",
    }
}
