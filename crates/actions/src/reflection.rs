//! `reflection.evaluate`: rates an output by a JSON Schema or by a model (docs/reference/tea.md). The output is
//! `{valid, score, errors, suggestions}`. If the model's answer has another form, that is a fault, never a silent pass.

use super::compute::compute;
use super::inputs::{Inputs, invalid, mismatch};
use super::json;
use super::llm::Ai;
use super::schema::{Schema, coerced};
use super::{Attempt, Executor};
use std::sync::Arc;
use url::Url;
use windlass_expression::{Budget, Object, Value};
use windlass_model::model::{Fault, Request, fault_kind};
use windlass_value::{first_chars, words};

const INSTRUCTIONS: &str = "You judge the output of another program. Answer with nothing but one \
JSON object of this form: {\"valid\": true or false, \"score\": a number from 0.0 to 1.0, \
\"reason\": \"why, in a sentence\", \"suggestions\": [\"how to make it better\"]}";

const PROMPT: &str = "Is this output valid and correct?";

/// Inputs of this action that are not passed to the model.
const OWN: [&str; 12] = words! {
    data output evaluator_type type schema schemas coerce prompt system examples messages errors
};

pub(super) struct Evaluate {
    ai: Arc<Ai>,
}

impl Evaluate {
    pub(super) fn new(ai: Arc<Ai>) -> Self {
        Self { ai }
    }

    async fn run(&self, request: &Request) -> Result<Value, Fault> {
        let inputs = Inputs::of(request)?;
        let data = inputs.get("data").or(inputs.get("output"));
        let data = data.unwrap_or(&Value::Null);
        let kind = inputs.text("evaluator_type")?.or(inputs.text("type")?);
        match kind.unwrap_or("schema") {
            "schema" => {
                let request = request.clone();
                let judged = compute(move |budget| {
                    let inputs = Inputs::of(&request)?;
                    let data = inputs.get("data").or(inputs.get("output"));
                    by_schema(inputs, data.unwrap_or(&Value::Null), budget)
                });
                judged.await
            }
            "llm" => self.by_model(inputs, data, request).await,
            other => Err(invalid(format!(
                "`evaluator_type` must be schema or llm, not {other:?}"
            ))),
        }
    }

    async fn by_model(
        &self,
        inputs: Inputs<'_>,
        data: &Value,
        request: &Request,
    ) -> Result<Value, Fault> {
        let settings = inputs.all().filter(|(key, _)| !OWN.contains(key));
        let mut question: Object = settings
            .map(|(key, value)| (key.into(), value.clone()))
            .collect();
        question.insert("messages".into(), messages(inputs, data)?);
        let given = self.ai.ask(&Value::object(question), request).await?;
        let text = given.get("content").and_then(Value::as_str);
        judgement(text.unwrap_or_default())
    }
}

impl Executor for Evaluate {
    fn execute<'a>(&'a self, request: &'a Request) -> Attempt<'a> {
        Box::pin(self.run(request))
    }

    fn destination(&self, request: &Request) -> Option<Url> {
        self.ai.destination(request)
    }
}

fn evaluation(valid: bool, score: f64, errors: Vec<Value>, suggestions: Vec<Value>) -> Value {
    Value::from_pairs([
        ("valid", Value::Bool(valid)),
        ("score", Value::Float(score)),
        ("errors", Value::array(errors)),
        ("suggestions", Value::array(suggestions)),
    ])
}

/// Checks the data against the schema. The score is 1 if the data is valid, or 0. With `coerce`, values are converted
/// only for the check, and not in the output.
fn by_schema(inputs: Inputs<'_>, data: &Value, budget: &Budget) -> Result<Value, Fault> {
    let schema = Schema::of(inputs)?;
    let is_coerced = inputs.get("coerce") != Some(&Value::Bool(false));
    let errors = match inputs.get("schema") {
        Some(written) if is_coerced => {
            let documents = inputs.get("schemas").and_then(Value::as_object);
            schema.errors(&coerced(data, written, documents), budget)?
        }
        _ => schema.errors(data, budget)?,
    };
    let suggestions = errors.iter().filter_map(suggestion).collect();
    let valid = errors.is_empty();
    let score = if valid { 1.0 } else { 0.0 };
    Ok(evaluation(valid, score, errors, suggestions))
}

/// Returns the suggestion for an error, with the exact words of The Edge Agent.
fn suggestion(error: &Value) -> Option<Value> {
    let message = error.get("message")?.as_str()?.to_lowercase();
    let path = match error.get("path")?.as_str()? {
        "" => "root",
        path => path,
    };
    if message.contains("required") {
        return Some(Value::text(format!(
            "Add missing required field at path: {path}"
        )));
    }
    message
        .contains("type")
        .then(|| Value::text(format!("Fix type at path: {path}")))
}

/// Builds the messages for the model: the instructions, the examples as a conversation, and the question.
fn messages(inputs: Inputs<'_>, data: &Value) -> Result<Value, Fault> {
    let message = |role: &str, content: String| {
        Value::from_pairs([
            ("role", Value::text(role)),
            ("content", Value::text(content)),
        ])
    };
    let system = match inputs.text("system")? {
        Some(system) => format!("{system}\n\n{INSTRUCTIONS}"),
        None => INSTRUCTIONS.to_owned(),
    };
    let mut all = vec![message("system", system)];
    let examples = match inputs.get("examples") {
        None => &[],
        Some(Value::Array(examples)) => examples.as_slice(),
        Some(other) => return Err(mismatch("examples", "a list", other)),
    };
    for (index, example) in examples.iter().enumerate() {
        let (Some(input), Some(output)) = (example.get("input"), example.get("output")) else {
            return Err(invalid(format!(
                "`examples[{index}]` must have `input` and `output`"
            )));
        };
        all.push(message("user", input.to_text()));
        all.push(message("assistant", output.to_text()));
    }
    let prompt = match inputs.get("prompt") {
        Some(prompt) => prompt.to_text(),
        None => format!("{PROMPT}\n\nThe output:\n{}", data.to_text()),
    };
    all.push(message("user", prompt));
    Ok(Value::array(all))
}

fn judgement(answer: &str) -> Result<Value, Fault> {
    let refused = |why: &str| {
        let short = first_chars(answer, 200);
        let message = format!("the model's evaluation cannot be used: {why}: {short}");
        Fault::new(fault_kind::AI, message)
            .output(Value::from_pairs([("content", Value::text(answer))]))
            .transient()
    };
    let mut judged = None;
    for text in [Some(answer.trim()), fenced(answer), in_braces(answer)] {
        let found = text.map(|text| json::parsed(text, "the model's evaluation"));
        let Some(found) = found.transpose()?.flatten() else {
            continue;
        };
        let is_map = found.as_object().is_some();
        if is_map || judged.is_none() {
            judged = Some(found);
        }
        if is_map {
            break;
        }
    }
    let judged = judged.ok_or_else(|| refused("it is not valid JSON"))?;
    // A prompt that the author wrote may use the name `pass`, so accept that, too.
    let valid = ["valid", "pass", "passed"].iter();
    let valid = valid.filter_map(|key| judged.get(key)).next();
    let Some(Value::Bool(valid)) = valid else {
        return Err(refused("`valid` is not true or false"));
    };
    let score = match judged.get("score") {
        None | Some(Value::Null) => f64::from(u8::from(*valid)),
        // Accept any number: the author's prompt may require a score from 1 to 10. Also accept a number in quotes,
        // which some models return.
        Some(score) => match score.to_json().trim_matches('"').parse() {
            Ok(score) if f64::is_finite(score) => score,
            _ => return Err(refused("`score` is not a number")),
        },
    };
    let suggestions = match judged.get("suggestions") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(all)) => all.as_ref().clone(),
        Some(_) => return Err(refused("`suggestions` is not a list")),
    };
    let reasons = judged.get("reason").or_else(|| judged.get("feedback"));
    let errors = match reasons {
        _ if *valid => Vec::new(),
        None | Some(Value::Null) => vec![reason("the model gave no reason")],
        Some(Value::String(words)) => vec![reason(words)],
        Some(_) => return Err(refused("`reason` is not text")),
    };
    Ok(evaluation(*valid, score, errors, suggestions))
}

fn reason(words: &str) -> Value {
    Value::from_pairs([("message", Value::text(words))])
}

/// Returns the text in the first Markdown code fence. Models often put JSON into one.
fn fenced(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once("```")?;
    let (_, rest) = rest.split_once('\n')?;
    rest.split_once("```").map(|(inner, _)| inner.trim())
}

/// Returns the text from the first brace to the last.
fn in_braces(text: &str) -> Option<&str> {
    let (start, end) = (text.find('{')?, text.rfind('}')?);
    text.get(start..=end)
}
