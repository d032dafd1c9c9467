//! A workflow that was read: its program, its warnings, and the input that it accepts.

use super::error::hint_suffix;
use super::{EngineError, LoadError};
use crate::scheduler::Loaded;
use std::sync::Arc;
use windlass_actions::syntax_mistakes;
use windlass_expression::{MAX_COMPUTED_DEPTH, Object, Value, excerpt};
use windlass_formats::Caps;
use windlass_machine::program::Program;
use windlass_model::hir;
use windlass_model::model::{Dialect, Input, InputKind};
use windlass_source::diagnostic::{Diagnostic, Diagnostics, did_you_mean};
use windlass_source::source::{Bundle, Span};
use windlass_store::ProgramSource;

/// A workflow that can be started.
#[derive(Clone)]
pub struct Workflow {
    pub(super) loaded: Loaded,
    pub(super) source: ProgramSource,
    /// The scripts in the workflow.
    pub(super) scripts: Vec<hir::Script>,
    pub(super) warnings: Diagnostics,
}

impl Workflow {
    /// Returns the compiled workflow.
    #[must_use]
    pub fn program(&self) -> &Program {
        &self.loaded.program
    }

    /// Returns the warnings. They do not prevent a run.
    #[must_use]
    pub fn warnings(&self) -> &Diagnostics {
        &self.warnings
    }

    /// Returns the warnings, and an error for each script with wrong syntax.
    ///
    /// Lua is always checked; Python and Prolog are checked if this machine has the interpreter. No script is run.
    #[must_use]
    pub fn with_scripts(&self) -> Diagnostics {
        let mut found = self.warnings.clone();
        check_syntax(&self.scripts, &mut found);
        found
    }

    /// Returns the same workflow, unless [`Self::with_scripts`] has errors.
    ///
    /// # Errors
    /// Returns [`LoadError::Refused`].
    pub fn refuse_bad_scripts(self) -> Result<Self, LoadError> {
        let diagnostics = self.with_scripts();
        if diagnostics.has_errors() {
            return Err(LoadError::Refused {
                diagnostics,
                bundle: self.source.bundle,
            });
        }
        Ok(self)
    }

    /// Refuses the workflow if it has a warning with this code, such as `denied`: it reads something without permission.
    ///
    /// # Errors
    /// Returns [`LoadError::Refused`].
    pub fn refuse(&self, code: &str) -> Result<(), LoadError> {
        let mut diagnostics = self.warnings.clone();
        if !diagnostics.refuse(code) {
            return Ok(());
        }
        let bundle = self.source.bundle.clone();
        Err(LoadError::Refused {
            diagnostics,
            bundle,
        })
    }

    /// Returns the files that the workflow was read from.
    #[must_use]
    pub fn bundle(&self) -> &Bundle {
        &self.source.bundle
    }

    /// Returns whether the workflow is an agent of The Edge Agent.
    pub fn is_agent(&self) -> bool {
        self.source.dialect == Dialect::Tea
    }

    /// Returns `input` unchanged if a run of this workflow would accept it.
    ///
    /// So a caller can refuse an input before anything starts.
    ///
    /// # Errors
    /// Returns [`EngineError::Input`].
    pub fn check_input(&self, input: Value) -> Result<Value, EngineError> {
        self.accept(input.clone())?;
        Ok(input)
    }

    /// Returns the input with the defaults of missing values. Text is converted if the workflow declares another type.
    pub(super) fn accept(&self, input: Value) -> Result<Value, EngineError> {
        if !input.depth_within(MAX_COMPUTED_DEPTH) {
            let message = format!("the input nests deeper than {MAX_COMPUTED_DEPTH} levels");
            return Err(EngineError::Input(message));
        }
        let declared = &self.loaded.program.inputs;
        if declared.is_empty() {
            return Ok(input);
        }
        let mut given = match input {
            Value::Null => Object::new(),
            Value::Object(map) => Arc::unwrap_or_clone(map),
            other => {
                let message = format!(
                    "the input must be an object of the workflow's inputs, not {}",
                    other.kind()
                );
                return Err(EngineError::Input(message));
            }
        };
        match self.source.dialect {
            Dialect::Loom => refuse_unknown(declared, &given, false)?,
            Dialect::Canvas => refuse_unknown(declared, &given, true)?,
            Dialect::Azure | Dialect::Tea => {}
        }
        for input in declared {
            let place = self.place_of(input);
            let refused = |message: String| EngineError::Input(message + &place);
            let value = match (given.get(&*input.name), &input.default) {
                (Some(Value::Null), Some(default)) if self.source.dialect == Dialect::Canvas => {
                    default.clone()
                }
                (Some(value), _) => converted(input, value).map_err(refused)?,
                (None, Some(default)) => default.clone(),
                (None, None) => {
                    return Err(EngineError::MissingInput(input.name.to_string(), place));
                }
            };
            given.insert(input.name.clone(), value);
        }
        Ok(Value::object(given))
    }

    /// Converts the text of an input to the type that the schema of the trigger declares.
    ///
    /// # Errors
    /// Returns [`EngineError::Input`].
    pub fn input_from_text(&self, name: &str, text: &str) -> Result<Value, EngineError> {
        let trigger = self.loaded.program.trigger.iter();
        let mut declared = trigger.flat_map(|trigger| &trigger.body);
        match declared.find(|input| *input.name == *name) {
            Some(input) => converted(input, &Value::text(text))
                .map_err(|message| EngineError::Input(message + &self.place_of(input))),
            None => self.state_from_text(name, text),
        }
    }

    /// Converts a text to a number or a boolean, if the initial state of an agent has one at this name.
    fn state_from_text(&self, name: &str, text: &str) -> Result<Value, EngineError> {
        let mut initial = self.loaded.program.variables.iter();
        let initial = initial.find(|(variable, _)| self.is_agent() && **variable == *name);
        let kind = match initial.and_then(|(_, value)| value.as_constant()) {
            Some(Value::Int(_) | Value::Float(_)) => InputKind::Number,
            Some(Value::Bool(_)) => InputKind::Boolean,
            _ => return Ok(Value::text(text)),
        };
        let input = Input {
            name: name.into(),
            kind,
            default: None,
            description: None,
            span: Span::default(),
        };
        converted(&input, &Value::text(text)).map_err(EngineError::Input)
    }

    /// Returns the file and line of an input for the end of a message.
    fn place_of(&self, input: &Input) -> String {
        let place = self.source.bundle.file(input.span.file);
        let place = place.map(|file| format!(" ({}:{})", file.path, input.span.line));
        place.filter(|_| input.span.line > 0).unwrap_or_default()
    }
}

/// Refuses inputs that the workflow does not declare.
///
/// With `misspelt`, the workflow may accept any input. Then an unknown name is refused only if it is similar to the
/// name of a missing input.
fn refuse_unknown(declared: &[Input], given: &Object, misspelt: bool) -> Result<(), EngineError> {
    let is_known = |key: &str| declared.iter().any(|input| *input.name == *key);
    for key in given.keys().filter(|key| !is_known(key)) {
        let meant = declared.iter().map(|input| &*input.name);
        let meant = meant.filter(|name| !misspelt || !given.contains_key(*name));
        let hint = did_you_mean(key, meant);
        if misspelt && hint.is_none() {
            continue;
        }
        let hint = hint_suffix(&hint);
        let message = format!("the workflow has no input `{key}`{hint}");
        return Err(EngineError::Input(message));
    }
    Ok(())
}

/// Returns an input converted to its declared type.
///
/// Only text, which the command line passes, is converted. Any other value must already have the type.
fn converted(input: &Input, value: &Value) -> Result<Value, String> {
    // An optional input may also be null.
    let absent = value.is_null() && input.default == Some(Value::Null);
    let fits = absent || input.kind.accepts(value);
    if fits {
        return Ok(value.clone());
    }
    let wanted = input.kind.described();
    let parsed = value.as_str().and_then(|text| Value::from_json(text).ok());
    match parsed {
        Some(parsed) if input.kind != InputKind::String => {
            let same = Input {
                kind: input.kind,
                ..input.clone()
            };
            match parsed {
                Value::String(_) => Err(input_mistake(input, value, wanted)),
                parsed => converted(&same, &parsed),
            }
        }
        _ => Err(input_mistake(input, value, wanted)),
    }
}

fn input_mistake(input: &Input, value: &Value, wanted: &str) -> String {
    format!(
        "input `{}` must be {wanted}, not {}",
        input.name,
        excerpt(value)
    )
}

/// Reports the scripts with wrong syntax in the bundle of a workflow that was refused for other mistakes.
pub fn check_refused_scripts(
    bundle: &Bundle,
    dialect: Option<Dialect>,
    diagnostics: &mut Diagnostics,
) {
    let scripts = windlass_formats::scripts(bundle, dialect, &Caps::default());
    check_syntax(&scripts, diagnostics);
}

fn check_syntax(scripts: &[hir::Script], diagnostics: &mut Diagnostics) {
    for language in ["lua", "python", "prolog"] {
        let scripts = scripts.iter();
        let scripts: Vec<_> = scripts.filter(|one| one.executor == language).collect();
        let codes: Vec<&str> = scripts.iter().map(|one| &*one.code).collect();
        for (index, mistake) in syntax_mistakes(language, &codes) {
            let Some(script) = scripts.get(index) else {
                continue;
            };
            // An interpreter reports an unexpected end of the script at the line after the last one, which does not
            // exist.
            let line = mistake.line.min(script.lines.len());
            let span = script.lines.get(line.saturating_sub(1));
            let span = span.copied().unwrap_or_default();
            let hint = format!("line {line} of this script in {language}");
            diagnostics.push(Diagnostic::error("bad-script", span, mistake.message).hint(hint));
        }
    }
}
