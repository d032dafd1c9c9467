//! `validate.extraction`: checks entities and relationships against a schema, rules in Prolog and questions to a model,
//! in this order. Each of these three layers is checked only if the layer before found no error. The checked data is
//! unchanged.

use super::compute::compute;
use super::inputs::{Inputs, invalid, mismatch};
use super::llm::Ai;
use super::schema::repr_of;
use super::script::Prolog;
use super::{Attempt, Executor};
use regex::Regex;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::SystemTime;
use url::Url;
use windlass_expression::{Budget, Object, Value};
use windlass_model::model::{Fault, Request, fault_kind};
use windlass_value::{first_chars, words};

/// Inputs of this action that are not passed to the model.
const OWN: [&str; 12] = words! {
    entities relationships source_text schema schemas constraints probes logging agent_name messages
    prompt system
};

const REQUIRED: &str = "missing_required_field";
const FACT_CHECKER: &str = "You are a fact-checker. Answer with ONLY 'yes' or 'no'.";

pub(super) struct Extraction {
    prolog: Arc<Prolog>,
    ai: Arc<Ai>,
}

struct ExtractionResult<'a> {
    entities: &'a [Value],
    relationships: &'a [Value],
    source_text: &'a Value,
}

impl Extraction {
    pub(super) fn new(prolog: Arc<Prolog>, ai: Arc<Ai>) -> Self {
        Self { prolog, ai }
    }

    async fn run(&self, request: &Request) -> Result<Value, Fault> {
        let inputs = Inputs::of(request)?;
        let extracted = ExtractionResult {
            entities: list(inputs, "entities")?,
            relationships: list(inputs, "relationships")?,
            source_text: inputs.get("source_text").unwrap_or(&Value::Null),
        };
        let schema = inputs.get("schema");
        let owned = request.clone();
        let found = compute(move |budget| {
            let inputs = Inputs::of(&owned)?;
            let extracted = ExtractionResult {
                entities: list(inputs, "entities")?,
                relationships: list(inputs, "relationships")?,
                source_text: &Value::Null,
            };
            let schema = inputs.get("schema");
            schema.map_or(Ok(Vec::new()), |schema| {
                structure(&extracted, schema, budget)
            })
        });
        let mut errors = found.await?;
        if errors.is_empty()
            && let Some(constraints) = inputs.get("constraints")
        {
            let tracked = schema.and_then(|schema| schema.get("confidence_tracking"));
            let tracked = tracked == Some(&Value::Bool(true));
            errors = self
                .rules(&extracted, constraints, tracked, request)
                .await?;
        }
        let probes = list(inputs, "probes")?;
        if errors.is_empty() && !probes.is_empty() {
            errors = self.probes(&extracted, probes, inputs, request).await?;
        }
        Ok(Value::from_pairs([
            ("valid", Value::Bool(errors.is_empty())),
            ("errors", Value::array(errors)),
            ("validated_at", Value::text(now())),
        ]))
    }

    /// Runs the author's rules in Prolog. They define `validation_error(Type, Context)` from facts such as `entity/2`
    /// and `relationship/3`.
    async fn rules(
        &self,
        extracted: &ExtractionResult<'_>,
        constraints: &Value,
        tracked: bool,
        request: &Request,
    ) -> Result<Vec<Value>, Fault> {
        let constraints = Inputs::from_value("constraints", constraints)?;
        let language = constraints.text("language")?.unwrap_or("prolog");
        if language != "prolog" {
            return Err(invalid(format!(
                "validation_constraints language must be 'prolog', got '{language}'"
            )));
        }
        let rules = constraints.text("rules")?.unwrap_or_default();
        if rules.trim().is_empty() {
            return Ok(Vec::new());
        }
        let code = program(extracted, rules, tracked);
        let prolog_request = Request {
            executor: "prolog".into(),
            inputs: Value::from_pairs([("code", Value::text(code))]),
            ..request.clone()
        };
        let answer = match self.prolog.execute(&prolog_request).await {
            Ok(answer) => answer,
            Err(fault) if &*fault.kind == fault_kind::SCRIPT => {
                return Ok(vec![error_of("prolog_error", &fault.message)]);
            }
            Err(fault) => return Err(fault),
        };
        let found = answer.get("result").and_then(|result| result.get("errors"));
        let found = found
            .and_then(Value::as_array)
            .map_or(&[][..], Vec::as_slice);
        Ok(found.iter().map(violation).collect())
    }

    /// Asks the model one question for every pair of a probe (a question with a condition) and an item that it applies
    /// to.
    async fn probes(
        &self,
        extracted: &ExtractionResult<'_>,
        probes: &[Value],
        inputs: Inputs<'_>,
        request: &Request,
    ) -> Result<Vec<Value>, Fault> {
        let mut errors = Vec::new();
        for probe in probes {
            let fields = Inputs::from_value("probes", probe)?;
            let items = match fields.text("for_each")?.unwrap_or_default() {
                "entity" => extracted.entities,
                "relationship" => extracted.relationships,
                other => {
                    let message = format!("Invalid for_each value: {other}");
                    errors.push(error_of("invalid_probe_config", &message));
                    continue;
                }
            };
            let written = fields.required_text("probe")?;
            let rejects = fields.text("on_fail")?.unwrap_or("reject") == "reject";
            for item in items {
                if !applies(fields.text("where")?, item)? {
                    continue;
                }
                let question = filled(written, item, extracted.source_text)?;
                let answer = self.ask_model(&question, inputs, request).await?;
                if is_yes(&answer)? {
                    continue;
                }
                errors.push(Value::from_pairs([
                    ("type", Value::text("semantic_probe_failed")),
                    ("probe", Value::text(written)),
                    ("question", Value::text(question.as_str())),
                    ("response", Value::text(answer)),
                    ("item", item.clone()),
                    (
                        "message",
                        Value::text(format!("LLM probe failed: {question}")),
                    ),
                ]));
                if rejects {
                    return Ok(errors);
                }
            }
        }
        Ok(errors)
    }

    async fn ask_model(
        &self,
        question: &str,
        inputs: Inputs<'_>,
        request: &Request,
    ) -> Result<String, Fault> {
        let settings = inputs.all().filter(|(key, _)| !OWN.contains(key));
        let mut ai_inputs: Object = settings
            .map(|(key, value)| (key.into(), value.clone()))
            .collect();
        ai_inputs.insert("system".into(), Value::text(FACT_CHECKER));
        ai_inputs.insert("prompt".into(), Value::text(question));
        ai_inputs.insert("max_tokens".into(), Value::Int(10));
        let given = self.ai.ask(&Value::object(ai_inputs), request).await?;
        let text = given.get("content").and_then(Value::as_str);
        Ok(text.unwrap_or_default().to_owned())
    }
}

impl Executor for Extraction {
    fn execute<'a>(&'a self, request: &'a Request) -> Attempt<'a> {
        Box::pin(self.run(request))
    }

    fn destination(&self, request: &Request) -> Option<Url> {
        self.ai.destination(request)
    }
}

/// Reads a list; a missing list is empty.
fn list<'a>(inputs: Inputs<'a>, key: &str) -> Result<&'a [Value], Fault> {
    match inputs.get(key) {
        None => Ok(&[]),
        Some(Value::Array(items)) => Ok(items),
        Some(other) => Err(mismatch(key, "a list", other)),
    }
}

/// Returns the current time as Python writes it.
fn now() -> String {
    // The clock may be read here: the time is part of an effect's output, which is recorded.
    #[allow(clippy::disallowed_methods)]
    let now = SystemTime::now();
    let now: chrono::DateTime<chrono::Utc> = now.into();
    now.format("%Y-%m-%dT%H:%M:%S%.6f+00:00").to_string()
}

fn error_of(kind: &str, message: &str) -> Value {
    Value::from_pairs([
        ("type", Value::text(kind)),
        ("message", Value::text(message)),
    ])
}

/// Returns the names in a list of the schema.
fn names<'s>(schema: Option<&'s Value>, key: &str) -> Vec<&'s str> {
    let names = schema.and_then(|schema| schema.get(key)?.as_array());
    let names = names.into_iter().flatten();
    names.filter_map(Value::as_str).collect()
}

fn is_missing_field(item: &Value, field: &str) -> bool {
    item.get(field).is_none_or(Value::is_null)
}

/// Returns the fields in a list of the schema that an item does not have.
fn lacking<'s>(
    item: &Value,
    schema: Option<&'s Value>,
    key: &str,
) -> impl Iterator<Item = &'s str> {
    let fields = names(schema, key).into_iter();
    fields.filter(|field| is_missing_field(item, field))
}

fn missing(
    kind: &str,
    what: &str,
    item: &Value,
    path: String,
    field: &str,
    message: String,
) -> Value {
    Value::from_pairs([
        ("type", Value::text(kind)),
        ("path", Value::text(path)),
        (what, item.clone()),
        ("expected", Value::text(field)),
        ("actual", Value::Null),
        ("message", Value::text(message)),
    ])
}

/// Returns text as it is, and other values as Python writes them.
fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| repr_of(value), str::to_owned)
}

/// Checks the first layer: required fields and known types.
fn structure(
    extracted: &ExtractionResult<'_>,
    schema: &Value,
    budget: &Budget,
) -> Result<Vec<Value>, Fault> {
    // Limit the work: it is proportional to the number of items and of names in the schema, and each missing field is
    // reported.
    let names_of = schema.nodes();
    let items = extracted.entities.len() + extracted.relationships.len();
    let looks = items.saturating_mul(names_of).saturating_mul(4);
    let charged = budget.charge(looks);
    charged.map_err(|exceeded| Fault::new(fault_kind::TOO_LARGE, exceeded.to_string()))?;
    let schema = Inputs::from_value("schema", schema)?;
    let (entities, relationships) = (schema.get("entities"), schema.get("relationships"));
    let mut errors = Vec::new();
    for (index, item) in extracted.entities.iter().enumerate() {
        let place = format!("entities[{index}]");
        for field in lacking(item, entities, "required_fields") {
            let message = format!("Entity missing required field '{field}'");
            let path = format!("{place}.{field}");
            errors.push(missing(REQUIRED, "entity", item, path, field, message));
        }
    }
    let types = names(relationships, "types");
    let requirements = relationships.and_then(|schema| schema.get("type_requirements"));
    for (index, item) in extracted.relationships.iter().enumerate() {
        let place = format!("relationships[{index}]");
        for field in lacking(item, relationships, "required_fields") {
            let message = format!("Relationship missing required field '{field}'");
            let path = format!("{place}.{field}");
            errors.push(missing(
                REQUIRED,
                "relationship",
                item,
                path,
                field,
                message,
            ));
        }
        let kind = item.get("type").unwrap_or(&Value::Null);
        if !types.is_empty() && !types.iter().any(|known| kind.as_str() == Some(known)) {
            let expected = types.iter().map(|name| Value::text(*name)).collect();
            let expected = Value::array(expected);
            let message = format!(
                "Invalid relationship type '{}', expected one of {}",
                shown(kind),
                repr_of(&expected)
            );
            errors.push(Value::from_pairs([
                ("type", Value::text("invalid_relationship_type")),
                ("path", Value::text(format!("{place}.type"))),
                ("relationship", item.clone()),
                ("expected", expected),
                ("actual", kind.clone()),
                ("message", Value::text(message)),
            ]));
        }
        let kind = kind.as_str().unwrap_or_default();
        for field in lacking(item, requirements, kind) {
            let message = format!("Relationship type '{kind}' requires field '{field}'");
            let (kind, path) = ("missing_type_specific_field", format!("{place}.{field}"));
            errors.push(missing(kind, "relationship", item, path, field, message));
        }
    }
    Ok(errors)
}

/// Builds the Prolog program: facts, the author's rules, and a query for the errors.
fn program(extracted: &ExtractionResult<'_>, rules: &str, tracked: bool) -> String {
    let mut code = String::from(
        ":- dynamic([entity/2, entity/3, relationship/3, relationship/4, relationship/5, \
         relationship/6, validation_error/2]).\n",
    );
    let confidence = |item: &Value| {
        let given = item.get("confidence").filter(|_| tracked)?;
        given
            .to_json()
            .parse::<f64>()
            .ok()
            .map(|number| format!(", {number:?}"))
    };
    for entity in extracted.entities {
        let (name, kind) = (atom(entity, "name"), atom(entity, "type"));
        let confidence = confidence(entity).unwrap_or_default();
        let _ = writeln!(code, "entity({name}, {kind}{confidence}).");
    }
    for item in extracted.relationships {
        let parts = ["type", "subject", "object"]
            .map(|key| atom(item, key))
            .join(", ");
        let dates = match is_missing_field(item, "start_date") || is_missing_field(item, "end_date")
        {
            true => String::new(),
            false => format!(", {}, {}", atom(item, "start_date"), atom(item, "end_date")),
        };
        let confidence = confidence(item).unwrap_or_default();
        let _ = writeln!(code, "relationship({parts}{dates}{confidence}).");
    }
    let _ = writeln!(code, "{rules}");
    code.push_str(
        "findall([Type, Context], validation_error(Type, Context), All), return(errors, All).\n",
    );
    code
}

/// Writes a member as a quoted atom.
fn atom(item: &Value, key: &str) -> String {
    let text = match item.get(key) {
        None => String::from("unknown"),
        Some(Value::String(text)) => text.as_str().to_owned(),
        Some(other) => repr_of(other),
    };
    let mut quoted = String::from("'");
    for char in text.chars() {
        match char {
            '\'' => quoted.push_str("\\'"),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            char if char.is_control() => {
                let _ = write!(quoted, "\\x{:x}\\", u32::from(char));
            }
            char => quoted.push(char),
        }
    }
    quoted.push('\'');
    quoted
}

fn violation(found: &Value) -> Value {
    let part = |index: usize| found.as_array().and_then(|parts| parts.get(index)).cloned();
    let kind = part(0).unwrap_or_else(|| found.clone());
    let context = part(1).unwrap_or_default();
    let message = format!(
        "Constraint violation: {}({})",
        shown(&kind),
        shown(&context)
    );
    Value::from_pairs([
        ("type", Value::text("prolog_constraint_violation")),
        ("error_type", kind),
        ("context", context),
        ("message", Value::text(message)),
    ])
}

/// Evaluates `field == 'value'` or `field != 'value'`. Without a condition, returns true.
fn applies(condition: Option<&str>, item: &Value) -> Result<bool, Fault> {
    let Some(condition) = condition.filter(|text| !text.trim().is_empty()) else {
        return Ok(true);
    };
    let is_equal = !condition.contains("!=");
    let parts = condition.split_once(if is_equal { "==" } else { "!=" });
    let parsed = parts.and_then(|(field, value)| {
        let value = value.trim();
        let quote = value
            .chars()
            .next()
            .filter(|quote| ['\'', '"'].contains(quote))?;
        let value = value.strip_prefix(quote)?.strip_suffix(quote)?;
        Some((field.trim(), value))
    });
    let (field, value) = parsed.ok_or_else(|| {
        invalid(format!(
            "`where` of a probe must be like type == 'mother', not {condition:?}"
        ))
    })?;
    let is = item.get(field).is_some_and(|is| match is {
        Value::String(text) => text.as_str() == value,
        other => repr_of(other) == value,
    });
    Ok(is == is_equal)
}

/// Replaces the placeholders of a question with the item's fields. Placeholders inside the data are not replaced.
fn filled(written: &str, item: &Value, source_text: &Value) -> Result<String, Fault> {
    let names = Regex::new(r"\{\{\s*(\w+)\s*\}\}").map_err(|error| invalid(error.to_string()))?;
    let question = names.replace_all(written, |found: &regex::Captures<'_>| {
        let name = found.get(1).map_or("", |name| name.as_str());
        match (item.get(name), name) {
            (Some(value), _) => shown(value),
            (None, "text") => shown(source_text),
            (None, _) => String::new(),
        }
    });
    Ok(question.into_owned())
}

/// Returns true if the model answered yes. An answer that is neither yes nor no is a fault, never a pass.
fn is_yes(answer: &str) -> Result<bool, Fault> {
    let lower = answer.to_lowercase();
    let mut words = lower.split(|char: char| !char.is_alphanumeric());
    let verdict = words.find_map(|word| match word {
        "no" | "not" | "false" | "incorrect" | "negative" => Some(false),
        "yes" | "true" | "correct" | "affirmative" | "indeed" => Some(true),
        _ => None,
    });
    verdict.ok_or_else(|| {
        let short = first_chars(answer, 200);
        let message = format!("the model's answer to a probe is neither yes nor no: {short}");
        Fault::new(fault_kind::AI, message).transient()
    })
}
