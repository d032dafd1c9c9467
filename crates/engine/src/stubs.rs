//! Makes and reads a file of stubs: answers for the actions of a workflow. A new file has guessed answers, which the
//! user edits.

use super::files::app_workflows;
use super::load::Workflows;
use super::shape::InferredSchemas;
use super::{LoadError, LoadOptions};
use std::path::Path;
use windlass_expression::{Object, Value};
use windlass_formats::MissingInputs;
use windlass_model::hir;
use windlass_model::model::{Dialect, HandlerTarget, Name, StubAnswer};
use windlass_source::diagnostic::did_you_mean;
use windlass_source::source::{self, Bundle, SourceFile};

/// The member of a file of stubs with values for the parameters of a Logic Apps definition.
const PARAMETERS: &str = "$parameters";
/// The member with values for app settings.
const SETTINGS: &str = "$settings";

/// The parameter that a deployment sets for every definition.
const CONNECTIONS: &str = "$connections";

/// The member with the requests to the addresses of webhook actions, which wait for a request.
const SIGNALS: &str = "$signals";

/// The member that is the input of a run without an input.
const INPUT: &str = "$input";

/// Maximum number of times that a definition is read again because it needed more values after it received the previous
/// ones.
const MAX_ROUNDS: usize = 4;

/// The contents of a file of stubs.
#[derive(Clone, Debug, Default)]
pub struct Stubs {
    /// Answers, by the name of a handler, connector or action.
    pub handlers: Vec<(String, HandlerTarget)>,
    /// The input for a run that is started without an input.
    pub input: Option<Value>,
    /// The body of the request to the address of an action, by action. Only `windlass test` uses this.
    pub signals: Object,
    /// Values for a definition's parameters and app settings.
    pub values: Vec<SourceFile>,
}

impl Stubs {
    /// Reads the contents of a file of stubs. `name` is the name of the file.
    ///
    /// # Errors
    /// Returns what is wrong with the file, in words.
    pub fn read(value: &Value, name: &str) -> Result<Self, String> {
        let Some(map) = value.as_object() else {
            let wanted = "a map from handlers, connectors or actions to what they answer";
            return Err(wanted.to_owned());
        };
        let stub = |(name, value): (&Name, &Value)| {
            let answers: Result<Vec<StubAnswer>, String> = match value {
                Value::Array(list) if list.is_empty() => {
                    Err(String::from("an empty list says nothing"))
                }
                Value::Array(list) => list.iter().map(answer).collect(),
                one => answer(one).map(|answer| vec![answer]),
            };
            let answers = answers.map_err(|message| format!("`{name}`: {message}"))?;
            Ok((name.to_string(), HandlerTarget::Stub(answers)))
        };
        let answers = map.iter();
        let values = [INPUT, PARAMETERS, SETTINGS, SIGNALS];
        let answers = answers.filter(|(name, _)| !values.contains(&&***name));
        // An editor's `$schema` has no effect.
        let answers = answers.filter(|(name, _)| ***name != *"$schema");
        if let Some((name, _)) = answers.clone().find(|(name, _)| name.starts_with('$')) {
            let hint = did_you_mean(name, values)
                .unwrap_or_else(|| format!("expected {}", values.join(", ")));
            return Err(format!("unknown key `{name}` ({hint})"));
        }
        let handlers: Result<Vec<_>, String> = answers.map(stub).collect();
        let parameters = map.get(PARAMETERS).map(with_values);
        let settings = map.get(SETTINGS);
        let settings = settings.map(|values| Value::from_pairs([("Values", values.clone())]));
        let file = |value: Value| SourceFile {
            path: format!("({name})"),
            text: value.to_json(),
        };
        Ok(Self {
            handlers: handlers?,
            input: map.get(INPUT).cloned(),
            signals: match map.get(SIGNALS) {
                None => Object::new(),
                Some(signals) => signals.as_object().cloned().ok_or_else(|| {
                    format!("`{SIGNALS}` must be a map from actions to what a request brings")
                })?,
            },
            values: [parameters, settings]
                .into_iter()
                .flatten()
                .map(file)
                .collect(),
        })
    }
}

/// Reads an answer: `{error: text}` or `{error: {kind, code, message, output}}` is a failure, and any other value is an
/// output.
fn answer(value: &Value) -> Result<StubAnswer, String> {
    let error = match value {
        Value::Object(map) if map.len() == 1 => map.get("error"),
        _ => None,
    };
    let Some(error) = error else {
        return Ok(StubAnswer::Value(value.clone()));
    };
    if let Some(message) = error.as_str() {
        return Ok(StubAnswer::Error {
            kind: None,
            code: None,
            message: message.to_owned(),
            output: None,
        });
    }
    let known = ["kind", "code", "message", "output"];
    let Some(map) = error.as_object() else {
        return Err(String::from("`error` is text, or a map with `message`"));
    };
    if let Some(key) = map.keys().find(|key| !known.contains(&&***key)) {
        return Err(format!(
            "unknown key `{key}` in `error` (expected {})",
            known.join(", ")
        ));
    }
    Ok(StubAnswer::Error {
        kind: map.get("kind").map(Value::to_text),
        code: map.get("code").map(Value::to_text),
        message: map.get("message").map(Value::to_text).unwrap_or_default(),
        output: map.get("output").cloned(),
    })
}

/// Returns the names of the workflows in an app's folder, or in a template with several. Empty for any other file.
///
/// # Errors
/// Returns [`LoadError::Unreadable`].
pub fn workflows_of(path: &Path, options: &LoadOptions) -> Result<Vec<String>, LoadError> {
    if path.is_dir() && options.workflow.is_none() {
        return Ok(app_workflows(path));
    }
    // Do not read a pipe here: it can be read only once.
    if options.workflow.is_some() || !path.is_file() {
        return Ok(Vec::new());
    }
    let workflows = Workflows::without_engine().with(options);
    let (bundle, _) = workflows.collect_from_file(path, options.dialect)?;
    let wanted = windlass_formats::missing_inputs(&bundle, options.dialect, &workflows.caps);
    let several = wanted.workflows.len() > 1;
    Ok(wanted.workflows).map(|names| if several { names } else { Vec::new() })
}

/// Makes stubs for a workflow: an answer for each action, and the values that a definition needs.
///
/// # Errors
/// Returns [`LoadError::Unreadable`].
pub fn stubs(path: &Path, options: &LoadOptions) -> Result<Object, LoadError> {
    let workflows = Workflows::without_engine().with(options);
    let (bundle, _) = workflows.collect_from_file(path, options.dialect)?;
    Ok(stubs_of(bundle, options))
}

/// Makes stubs for a workflow whose files have been read.
#[must_use]
pub fn stubs_of(mut bundle: Bundle, options: &LoadOptions) -> Object {
    let workflows = Workflows::without_engine().with(options);
    let (file, _) = source::parse(&bundle, 0);
    let shapes = file.as_ref().map(InferredSchemas::of).unwrap_or_default();
    let mut all = MissingInputs::default();
    for _ in 0..MAX_ROUNDS {
        let wanted = windlass_formats::missing_inputs(&bundle, options.dialect, &workflows.caps);
        if wanted.parameters.is_empty() && wanted.settings.is_empty() {
            break;
        }
        let filled = wanted.parameters.into_iter().map(|(name, value)| {
            let shape = shapes.parameter(&name, &value);
            (name, shape.unwrap_or(value))
        });
        all.parameters.extend(filled);
        let settings = wanted.settings.into_iter().map(|(name, value)| {
            let shape = shapes.setting(&name);
            (name, shape.unwrap_or(value))
        });
        all.settings.extend(settings);
        let parameters = Value::from_pairs(all.parameters.clone());
        add(&mut bundle, with_values(&parameters));
        let settings = Value::from_pairs(all.settings.clone());
        add(&mut bundle, Value::from_pairs([("Values", settings)]));
    }
    let caps = windlass_formats::Caps::unlimited();
    let (workflow, _) = windlass_formats::read(&bundle, options.dialect, &caps);
    let connections = workflow.iter().flat_map(|workflow| &workflow.parameters);
    for (name, value) in connections.filter(|(name, _)| &**name == CONNECTIONS) {
        // Expressions may read the connections, too, and not only the connectors.
        let shape = shapes.parameter(name, value);
        all.parameters
            .extend(shape.map(|shape| (name.to_string(), shape)));
    }
    let mut stubs = Object::new();
    for (key, values) in [(PARAMETERS, all.parameters), (SETTINGS, all.settings)] {
        if !values.is_empty() {
            stubs.insert(Name::from(key), Value::from_pairs(values));
        }
    }
    let Some(workflow) = workflow.filter(|_| file.is_some()) else {
        return stubs;
    };
    if let Some(body) = shapes
        .input()
        .filter(|_| workflow.dialect == Dialect::Azure)
    {
        stubs.insert(Name::from(INPUT), body);
    }
    if workflow.dialect == Dialect::Azure {
        let signals = callbacks(&workflow, &shapes);
        if !signals.is_empty() {
            stubs.insert(Name::from(SIGNALS), Value::object(signals));
        }
    }
    stubs.extend(answers(&workflow, &shapes));
    stubs
}

fn add(bundle: &mut Bundle, value: Value) {
    bundle.files.push(SourceFile {
        path: String::from("(stubs)"),
        text: value.to_json(),
    });
}

/// Converts `{name: value}` to the form of a file of parameters, `{name: {value}}`.
fn with_values(values: &Value) -> Value {
    let values = values.as_object().into_iter().flatten();
    Value::from_pairs(values.map(|(name, value)| {
        let value = Value::from_pairs([("value", value.clone())]);
        (Name::clone(name), value)
    }))
}

/// Returns a guessed answer for every action that needs an answer, by the action's name.
fn answers(workflow: &hir::Workflow, shapes: &InferredSchemas) -> Object {
    let mut stubs = Object::new();
    for used in workflow.handler_uses() {
        let answer = match used.executor {
            "connector" => Value::object(shapes.answer(&used.step.name)),
            _ => Value::Null,
        };
        stubs.insert(used.step.name.clone(), answer);
    }
    for (step, call) in workflow.calls() {
        if &*call.executor == "http" {
            // An action with pages has a helper `NAME.page` that requests each page. Expressions read the action and
            // not the helper.
            let action = step.name.strip_suffix(".page").unwrap_or(&step.name);
            stubs.insert(step.name.clone(), Value::object(shapes.answer(action)));
        }
    }
    stubs
}

/// Returns the guessed bodies of requests to the addresses of webhook actions.
fn callbacks(workflow: &hir::Workflow, shapes: &InferredSchemas) -> Object {
    let steps = workflow.steps().into_iter();
    let signals = steps.filter_map(|step| match &step.kind {
        hir::StepKind::AwaitSignal(awaited) => Some(&awaited.name),
        _ => None,
    });
    let signals = signals.map(|name| (name.clone(), shapes.callback(name)));
    signals.collect()
}
