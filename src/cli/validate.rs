//! `windlass validate`: prints all diagnostics, and the effective limits of every loop.

use super::args::{Global, HandlerArgs, ValidateArgs};
use super::exit::{Exit, Failure};
use super::inputs;
use super::output::{self, Format, Screen};
use serde::Serialize;
use std::io::{ErrorKind, Write};
use std::path::Path;
use windlass_engine::report::{ActionRetry, LoopLimits, action_retries, loop_limits};
use windlass_engine::{
    LoadError, LoadOptions, Object, Value, Workflow, check_refused_scripts, shown_duration,
};

/// The result for one workflow of a file.
#[derive(Serialize)]
struct FileResult {
    file: String,
    /// The name of the workflow, if the file contains several workflows.
    #[serde(skip_serializing_if = "Option::is_none")]
    workflow: Option<String>,
    valid: bool,
    diagnostics: Vec<windlass_engine::report::DiagnosticReport>,
    loops: Vec<LoopLimits>,
    retries: Vec<ActionRetry>,
    /// Why the file could not be checked.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

pub fn validate(global: &Global, screen: Screen, args: &ValidateArgs) -> Result<Exit, Failure> {
    let options = inputs::options(global, &args.load, &args.handlers)?;
    if let Some(to) = &args.write_stubs {
        write_stubs(to, args, &options)?;
        let handlers = HandlerArgs {
            stub: Some(to.clone()),
            ..args.handlers.clone()
        };
        let options = inputs::options(global, &args.load, &handlers)?;
        return check_all(screen, args, &options);
    }
    check_all(screen, args, &options)
}

/// Writes one file with the stubs that the workflows of all files need.
fn write_stubs(to: &Path, args: &ValidateArgs, options: &LoadOptions) -> Result<(), Failure> {
    let mut all = Object::new();
    for path in &args.files {
        for options in each_workflow(path, options)? {
            for (name, stub) in windlass_engine::stubs(path, &options)? {
                let merged = match (all.get(&name), &stub) {
                    (Some(Value::Object(known)), Value::Object(more)) if name.starts_with('$') => {
                        let mut merged = Object::clone(more);
                        merged.extend(
                            known
                                .iter()
                                .map(|(key, value)| (key.clone(), value.clone())),
                        );
                        Value::object(merged)
                    }
                    (Some(known), _) => known.clone(),
                    (None, _) => stub,
                };
                all.insert(name, merged);
            }
        }
    }
    let text = format!("{}\n", Value::object(all).to_json_pretty());
    // An existing file is not replaced. It may be a workflow, or have answers that a user has filled in.
    let made = std::fs::File::create_new(to);
    made.and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists => Failure::Usage(format!(
                "--write-stubs: {} already exists: choose another file, or remove it first",
                to.display()
            )),
            _ => Failure::Usage(format!("--write-stubs: {}: {error}", to.display())),
        })
}

/// Returns the options to load each of the workflows that a file contains.
fn each_workflow(path: &Path, options: &LoadOptions) -> Result<Vec<LoadOptions>, Failure> {
    let names = windlass_engine::workflows_of(path, options)?;
    if names.is_empty() {
        return Ok(vec![options.clone()]);
    }
    let one = |name: String| {
        let mut options = options.clone();
        options.workflow = Some(name);
        options
    };
    Ok(names.into_iter().map(one).collect())
}

fn check_all(screen: Screen, args: &ValidateArgs, options: &LoadOptions) -> Result<Exit, Failure> {
    let mut checked = Vec::new();
    let mut exit = Exit::Succeeded;
    for path in &args.files {
        let loaded = windlass_engine::load(path, options);
        let several = match holds_several(path, &loaded) {
            true => each_workflow(path, options),
            false => {
                let (one, code) = check(screen, args, path, None, options, loaded);
                exit = exit.max(code);
                checked.push(one);
                continue;
            }
        };
        drop(loaded);
        let several = match several {
            Ok(several) => several,
            Err(failure) => {
                screen.fail(&failure.to_string(), None);
                exit = exit.max(failure.exit());
                checked.push(FileResult::unread(path, &failure));
                continue;
            }
        };
        for options in several {
            let name = options.workflow.clone();
            let loaded = windlass_engine::load(path, &options);
            let (one, code) = check(screen, args, path, name, &options, loaded);
            exit = exit.max(code);
            checked.push(one);
        }
    }
    match args.output.output {
        Format::Table => checked
            .iter()
            .try_for_each(|file| output::print(text(file)))?,
        format => output::list(format, &checked)?,
    }
    Ok(exit)
}

/// Returns whether a file was refused only because it contains several workflows and none was selected.
fn holds_several(path: &Path, loaded: &Result<Workflow, LoadError>) -> bool {
    match loaded {
        Err(LoadError::Refused { diagnostics, .. }) => {
            let found = diagnostics.sorted();
            found.iter().any(|one| one.code == "several-workflows")
        }
        Err(_) => path.is_dir(),
        Ok(_) => false,
    }
}

impl FileResult {
    fn unread(path: &Path, failure: &Failure) -> Self {
        Self {
            file: path.display().to_string(),
            workflow: None,
            valid: false,
            diagnostics: Vec::new(),
            loops: Vec::new(),
            retries: Vec::new(),
            error: Some(failure.to_string()),
        }
    }
}

fn check(
    screen: Screen,
    args: &ValidateArgs,
    path: &Path,
    workflow: Option<String>,
    options: &LoadOptions,
    loaded: Result<Workflow, LoadError>,
) -> (FileResult, Exit) {
    let (diagnostics, bundle, loops, retries) = match loaded {
        Ok(workflow) => (
            workflow.with_scripts(),
            workflow.bundle().clone(),
            loop_limits(workflow.program()),
            action_retries(workflow.program()),
        ),
        Err(LoadError::Refused {
            mut diagnostics,
            bundle,
        }) => {
            check_refused_scripts(&bundle, options.dialect, &mut diagnostics);
            (diagnostics, bundle, Vec::new(), Vec::new())
        }
        Err(error) => {
            let failure = Failure::from(error);
            screen.fail(&failure.to_string(), None);
            return (FileResult::unread(path, &failure), failure.exit());
        }
    };
    let diagnostics = match args.strict {
        true => diagnostics.strict(),
        false => diagnostics,
    };
    if !diagnostics.is_empty() {
        screen.say(diagnostics.render(&bundle, screen.error_colour));
    }
    let refused = diagnostics.has_errors();
    let checked = FileResult {
        file: path.display().to_string(),
        workflow,
        valid: !refused,
        diagnostics: windlass_engine::report::diagnostics(&diagnostics, &bundle),
        loops,
        retries,
        error: None,
    };
    let exit = if refused {
        Exit::Invalid
    } else {
        Exit::Succeeded
    };
    (checked, exit)
}

fn text(file: &FileResult) -> String {
    let word = if file.valid { "valid" } else { "invalid" };
    let which = file.workflow.as_ref();
    let which = which.map(|name| format!(" ({name})")).unwrap_or_default();
    let mut text = format!("{}{which}: {word}", file.file);
    if !file.loops.is_empty() {
        text.push('\n');
        text.push_str(&loop_table(&file.loops));
    }
    if !file.retries.is_empty() {
        text.push('\n');
        text.push_str(&retry_table(&file.retries));
    }
    text
}

fn retry_table(retries: &[ActionRetry]) -> String {
    let rows = retries.iter().map(|row| {
        let default = if row.is_default { " (default)" } else { "" };
        vec![
            format!("  {}", row.name),
            row.line.to_string(),
            row.count.clone(),
            format!("{}{default}", row.wait),
            row.on.join(", "),
        ]
    });
    output::table(&["  RETRY", "LINE", "COUNT", "WAIT", "ON"], rows)
}

/// Returns a text with all limits of a loop except its timeout.
fn count_text(row: &LoopLimits) -> String {
    let tokens = row.tokens.as_ref().map(|most| format!("{most} tokens"));
    let cost = row.cost.as_ref().map(|most| format!("cost {most}"));
    let others = [tokens, cost, row.unchanged.clone()];
    let limits = [Some(row.count.clone())].into_iter().chain(others);
    limits.flatten().collect::<Vec<_>>().join(", ")
}

fn loop_table(loops: &[LoopLimits]) -> String {
    let duration = |text: &Option<String>| match text {
        Some(text) => shown_duration(text),
        None => String::from("-"),
    };
    let rows = loops.iter().map(|row| {
        vec![
            format!("  {}", row.name),
            row.kind.clone(),
            row.line.to_string(),
            count_text(row),
            duration(&row.timeout),
            duration(&row.delay),
            row.on_limit.clone(),
            output::cut(&row.condition, 60),
        ]
    });
    let head = [
        "  LOOP",
        "TYPE",
        "LINE",
        "COUNT",
        "TIMEOUT",
        "DELAY",
        "ON LIMIT",
        "CONDITION",
    ];
    output::table(&head, rows)
}
