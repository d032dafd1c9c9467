//! A file of stubs for what a workflow needs and nothing here answers, to be filled in.

use super::files::app_workflows;
use super::load::Workflows;
use super::shape::Shapes;
use super::{LoadError, LoadOptions};
use crate::dialect::{self, Wanted};
use crate::expression::{Object, Value};
use crate::hir;
use crate::model::{Dialect, Name};
use crate::source::{self, Bundle, SourceFile};
use std::path::Path;

/// The member of a file of stubs that gives values to a definition's parameters.
pub const PARAMETERS: &str = "$parameters";
/// The member that gives app settings.
pub const SETTINGS: &str = "$settings";

/// The member that a run takes as its input when it is given none.
pub const INPUT: &str = "$input";

/// How often a definition may ask for more when it got what it asked for.
const MAX_ROUNDS: usize = 4;

/// The names of the workflows of an app's folder or of a template with several; of any other file
/// none.
///
/// # Errors
/// [`LoadError::Unreadable`].
pub fn workflows_of(path: &Path, options: &LoadOptions) -> Result<Vec<String>, LoadError> {
    if path.is_dir() && options.workflow.is_none() {
        return Ok(app_workflows(path));
    }
    // A pipe can be read only once.
    if options.workflow.is_some() || !path.is_file() {
        return Ok(Vec::new());
    }
    let workflows = Workflows::bare().with(options);
    let (bundle, _) = workflows.gathered_file(path, options.dialect)?;
    let wanted = dialect::wanted(&bundle, options.dialect, &workflows.caps);
    let several = wanted.workflows.len() > 1;
    Ok(wanted.workflows).map(|names| if several { names } else { Vec::new() })
}

/// Stubs for a workflow: by action what answers for it, and the values that a definition needs.
///
/// # Errors
/// [`LoadError::Unreadable`].
pub fn stubs(path: &Path, options: &LoadOptions) -> Result<Object, LoadError> {
    let workflows = Workflows::bare().with(options);
    let (bundle, _) = workflows.gathered_file(path, options.dialect)?;
    Ok(stubs_of(bundle, options))
}

/// The same of a workflow whose files are there.
#[must_use]
pub fn stubs_of(mut bundle: Bundle, options: &LoadOptions) -> Object {
    let workflows = Workflows::bare().with(options);
    let mut all = Wanted::default();
    for _ in 0..MAX_ROUNDS {
        let wanted = dialect::wanted(&bundle, options.dialect, &workflows.caps);
        if wanted.parameters.is_empty() && wanted.settings.is_empty() {
            break;
        }
        all.parameters.extend(wanted.parameters);
        all.settings.extend(wanted.settings);
        let parameters = Value::from_pairs(all.parameters.clone());
        add(&mut bundle, with_values(&parameters));
        let settings = Value::from_pairs(all.settings.clone());
        add(&mut bundle, Value::from_pairs([("Values", settings)]));
    }
    let mut stubs = Object::new();
    for (key, values) in [(PARAMETERS, all.parameters), (SETTINGS, all.settings)] {
        if !values.is_empty() {
            stubs.insert(Name::from(key), Value::from_pairs(values));
        }
    }
    let caps = dialect::Caps::unlimited();
    let (workflow, _) = dialect::read(&bundle, options.dialect, &caps);
    let (Some(workflow), (Some(file), _)) = (workflow, source::parse(&bundle, 0)) else {
        return stubs;
    };
    let shapes = Shapes::of(&file);
    if let Some(body) = shapes
        .input()
        .filter(|_| workflow.dialect == Dialect::Azure)
    {
        stubs.insert(Name::from(INPUT), body);
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

/// `{name: value}` as a file of parameters has it.
#[must_use]
pub fn with_values(values: &Value) -> Value {
    let values = values.as_object().into_iter().flatten();
    Value::from_pairs(values.map(|(name, value)| {
        let value = Value::from_pairs([("value", value.clone())]);
        (Name::clone(name), value)
    }))
}

/// An answer for every action that asks something outside, by the action's name.
fn answers(workflow: &hir::Workflow, shapes: &Shapes) -> Object {
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
            stubs.insert(step.name.clone(), Value::object(shapes.answer(&step.name)));
        }
    }
    stubs
}
