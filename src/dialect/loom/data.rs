//! The data operations: parseJson, select, query, join, table, and Azure's actions that are one
//! function (`Expression`). Each is a value to compute, so each becomes a `compose`.

use super::Loom;
use super::action::Act;
use crate::diagnostic::did_you_mean;
use crate::dialect::reader::{Fields, constant};
use crate::expression::{TableFormat, Template, Value};
use crate::hir::StepKind;
use crate::source::{Entry, Kind, Span};

impl Loom<'_> {
    /// The operation of this name.
    pub(super) fn data(&mut self, act: &mut Act<'_>, label: &str) -> StepKind {
        let hint = example(label);
        let Some(entry) = act.fields.need(&mut self.reader, "inputs", act.span, hint) else {
            return StepKind::Nothing;
        };
        let what = format!("`inputs` of `{}`", act.name);
        let Some(mut fields) = self.reader.fields(&entry.value, &what, hint) else {
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
        fields.finish(&mut self.reader);
        template.map_or(StepKind::Nothing, |template| self.computed(template))
    }

    /// A computed value as an action's output: Azure shows it as its body.
    fn computed(&self, template: Template) -> StepKind {
        StepKind::Compose(if self.azure() {
            let body = Template::constant(Value::text("body"));
            Template::object(vec![(body, template)])
        } else {
            template
        })
    }

    fn from(&mut self, fields: &mut Fields<'_>, at: Span, hint: &str) -> Option<Template> {
        let entry = fields.need(&mut self.reader, "from", at, hint)?;
        let template = self.reader.template(&entry.value);
        let wrong = match entry.value.kind {
            Kind::Array(_) => false,
            Kind::String(_) => template.as_constant().is_some(),
            _ => true,
        };
        if wrong {
            let wanted = "a list or an expression";
            self.reader.wrong_type(&entry.value, "`from`", wanted, hint);
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
        let other = fields.need(&mut self.reader, key, at, hint)?;
        Some(make(from?, self.reader.template(&other.value)))
    }

    fn query(&mut self, fields: &mut Fields<'_>, at: Span, hint: &str) -> Option<Template> {
        let from = self.from(fields, at, hint);
        let entry = fields.need(&mut self.reader, "where", at, hint)?;
        let when = self.reader.condition(entry)?;
        Some(Template::query(from?, when))
    }

    fn parse_json(&mut self, fields: &mut Fields<'_>, at: Span, hint: &str) -> Option<Template> {
        let content = fields.need(&mut self.reader, "content", at, hint)?;
        let content = self.reader.template(&content.value);
        let schema = fields.get("schema");
        let value = schema.map(|entry| constant(&entry.value));
        match (Template::parse_json(content, value.as_ref()), schema) {
            (Ok(template), _) => Some(template),
            // Azure takes schemas that are none.
            (Err(mistake), Some(schema)) if self.azure() => {
                let hint = "the content is not checked";
                self.reader
                    .warning("bad-schema", schema.value.span, mistake, hint);
                let content = fields.get("content")?;
                let content = self.reader.template(&content.value);
                Template::parse_json(content, None).ok()
            }
            (Err(mistake), Some(schema)) => {
                let hint = "the schema is JSON Schema: { type: object, properties: { … } }";
                self.reader
                    .error("bad-schema", schema.value.span, mistake, hint);
                None
            }
            (Err(_), None) => None,
        }
    }

    fn table(&mut self, fields: &mut Fields<'_>, at: Span, hint: &str) -> Option<Template> {
        let from = self.from(fields, at, hint);
        let format = fields
            .need(&mut self.reader, "format", at, hint)
            .and_then(|entry| {
                let text = self.reader.text(entry, "CSV or HTML")?;
                let format = match text.to_ascii_lowercase().as_str() {
                    "csv" => Some(TableFormat::Csv),
                    "html" => Some(TableFormat::Html),
                    _ => None,
                };
                if format.is_none() {
                    let what = format!("`{text}` is no format of a table");
                    let span = entry.value.span;
                    self.reader
                        .error("unknown-value", span, what, "CSV or HTML");
                }
                format
            });
        let columns = match fields.some(&mut self.reader, "columns") {
            Some(entry) => Some(self.columns(entry)?),
            None => None,
        };
        Some(Template::table(from?, format?, columns))
    }

    fn columns(&mut self, entry: &Entry) -> Option<Vec<(Template, Template)>> {
        let hint = "for example columns: [{ header: Name, value: \"@item().name\" }]";
        let Kind::Array(items) = &entry.value.kind else {
            self.reader
                .wrong_type(&entry.value, "`columns`", "a list", hint);
            return None;
        };
        let mut columns = Vec::new();
        for item in items {
            let mut fields = self.reader.fields(item, "a column", hint)?;
            let header = fields.get("header");
            let value = fields.need(&mut self.reader, "value", item.span, hint);
            fields.finish(&mut self.reader);
            let header = header.map_or(Template::constant(Value::text("")), |entry| {
                self.reader.template(&entry.value)
            });
            columns.push((header, self.reader.template(&value?.value)));
        }
        Some(columns)
    }

    /// Azure's `Expression` actions: one function each, named by `kind`.
    pub(super) fn one_function(&mut self, act: &mut Act<'_>) -> StepKind {
        const KINDS: [(&str, &str, &[&str]); 6] = [
            ("CurrentTime", "utcNow", &[]),
            (
                "AddToTime",
                "addToTime",
                &["baseTime", "interval", "timeUnit"],
            ),
            (
                "SubtractFromTime",
                "subtractFromTime",
                &["baseTime", "interval", "timeUnit"],
            ),
            ("GetFutureTime", "getFutureTime", &["interval", "timeUnit"]),
            ("GetPastTime", "getPastTime", &["interval", "timeUnit"]),
            (
                "ConvertTimeZone",
                "convertTimeZone",
                &[
                    "baseTime",
                    "sourceTimeZone",
                    "destinationTimeZone",
                    "formatString",
                ],
            ),
        ];
        let names = KINDS.map(|(kind, ..)| kind);
        let hint = names.join(", ");
        let Some(kind) = act.fields.need(&mut self.reader, "kind", act.span, &hint) else {
            return StepKind::Nothing;
        };
        let inputs = act.fields.get("inputs");
        let Some(text) = self.reader.text(kind, &hint) else {
            return StepKind::Nothing;
        };
        let found = KINDS
            .iter()
            .find(|(known, ..)| known.eq_ignore_ascii_case(text));
        let Some((_, function, keys)) = found else {
            let what = format!("`{text}` is no kind of expression action");
            let hint = did_you_mean(text, names).unwrap_or(hint);
            self.reader
                .error("unknown-value", kind.value.span, what, hint);
            return StepKind::Nothing;
        };
        let arguments: Vec<Template> = keys
            .iter()
            .filter_map(|key| inputs?.value.get(key))
            .map(|node| self.reader.template(node))
            .collect();
        match Template::call(function, arguments) {
            Ok(template) => self.computed(template),
            Err(error) => {
                let hint = format!("it takes {}", keys.join(", "));
                self.reader
                    .error("missing-key", act.span, error.message, hint);
                StepKind::Nothing
            }
        }
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
