//! `windlass validate`: all diagnostics, and the effective limits of every loop.

use super::args::{Global, ValidateArgs};
use super::exit::{Exit, Failure};
use super::inputs;
use super::output::{self, Format, Screen};
use crate::engine::report::LoopLimits;
use crate::engine::{self, LoadError};
use serde::Serialize;

/// What is said of one file.
#[derive(Serialize)]
struct Checked {
    file: String,
    valid: bool,
    diagnostics: Vec<engine::report::DiagnosticReport>,
    loops: Vec<LoopLimits>,
    /// Why nothing is known of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

pub fn validate(global: &Global, screen: Screen, args: &ValidateArgs) -> Result<Exit, Failure> {
    let options = inputs::options(global, &args.load, &args.handlers)?;
    let mut checked = Vec::new();
    let mut exit = Exit::Succeeded;
    for path in &args.files {
        let (diagnostics, bundle, loops) = match engine::load(path, &options) {
            Ok(workflow) => (
                workflow.with_scripts(),
                workflow.bundle().clone(),
                engine::report::loop_limits(workflow.program()),
            ),
            Err(LoadError::Refused {
                diagnostics,
                bundle,
            }) => (diagnostics, bundle, Vec::new()),
            Err(error) => {
                let failure = Failure::from(error);
                screen.fail(&failure.to_string(), None);
                exit = exit.max(failure.exit());
                checked.push(Checked {
                    file: path.display().to_string(),
                    valid: false,
                    diagnostics: Vec::new(),
                    loops: Vec::new(),
                    error: Some(failure.to_string()),
                });
                continue;
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
        if refused {
            exit = exit.max(Exit::Invalid);
        }
        checked.push(Checked {
            file: path.display().to_string(),
            valid: !refused,
            diagnostics: engine::report::diagnostics(&diagnostics, &bundle),
            loops,
            error: None,
        });
    }
    match args.output.output {
        Format::Table => checked
            .iter()
            .try_for_each(|file| output::print(text(file)))?,
        format => output::list(format, &checked)?,
    }
    Ok(exit)
}

fn text(file: &Checked) -> String {
    let word = if file.valid { "valid" } else { "invalid" };
    let mut text = format!("{}: {word}", file.file);
    if file.loops.is_empty() {
        return text;
    }
    let or_dash = |text: &Option<String>| text.clone().unwrap_or_else(|| String::from("-"));
    let rows = file.loops.iter().map(|row| {
        vec![
            format!("  {}", row.name),
            row.kind.clone(),
            row.line.to_string(),
            row.count.clone(),
            or_dash(&row.timeout),
            or_dash(&row.delay),
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
    text.push('\n');
    text.push_str(&output::table(&head, rows));
    text
}
