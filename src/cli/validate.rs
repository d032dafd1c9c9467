//! `windlass validate`: all diagnostics, and the effective limits of every loop.

use super::args::ValidateArgs;
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
}

/// The command.
pub fn validate(screen: Screen, args: &ValidateArgs) -> Result<Exit, Failure> {
    let options = inputs::options(&args.load, &args.handlers)?;
    let mut checked = Vec::new();
    for path in &args.files {
        let (diagnostics, bundle, loops) = match engine::load(path, &options) {
            Ok(workflow) => (
                workflow.warnings().clone(),
                workflow.bundle().clone(),
                engine::report::loop_limits(workflow.program()),
            ),
            Err(LoadError::Refused {
                diagnostics,
                bundle,
            }) => (diagnostics, bundle, Vec::new()),
            Err(error) => return Err(error.into()),
        };
        if !diagnostics.is_empty() {
            screen.say(&diagnostics.render(&bundle, screen.error_colour));
        }
        let refused = diagnostics.has_errors() || (args.strict && !diagnostics.is_empty());
        checked.push(Checked {
            file: path.display().to_string(),
            valid: !refused,
            diagnostics: engine::report::diagnostics(&diagnostics, &bundle),
            loops,
        });
    }
    let valid = checked.iter().all(|file| file.valid);
    match args.output.output {
        Format::Table => checked
            .iter()
            .try_for_each(|file| output::print(&text(file)))?,
        format => output::list(format, &checked)?,
    }
    Ok(if valid {
        Exit::Succeeded
    } else {
        Exit::Invalid
    })
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
