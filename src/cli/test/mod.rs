//! `windlass test`: simulates a workflow on virtual time with stubbed answers.
//! It simulates one run, or one run for each case in a file with expected results.

mod cases;
mod junit;

use super::args::{Global, TestArgs};
use super::exit::{Exit, Failure};
use super::format;
use super::inputs;
use super::output::{self, Format, Screen, counted};
pub(super) use cases::signals;
use cases::{Case, Outcome, suite};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::time::Instant;
use windlass_engine::{
    LoadOptions, SimulatedStep, SimulatedStepKind, SimulationReport, SimulationSpec, TerminalText,
    Workflow, simulate,
};

/// Maximum length of a value on a line, in characters.
const VALUE: usize = 160;

pub async fn test(global: &Global, screen: Screen, args: &TestArgs) -> Result<Exit, Failure> {
    let options = inputs::options(global, &args.load, &args.handlers)?;
    let asks = args.at.is_some()
        || args.handlers.stub.is_some()
        || args.input.is_some()
        || !args.set.is_empty();
    let cases = args.files.iter().map(|file| cases_of(file));
    let cases: Vec<Option<PathBuf>> = cases.collect();
    if !asks && cases.iter().any(Option::is_some) {
        let files: Vec<PathBuf> = cases.into_iter().flatten().collect();
        return all(screen, args, &options, &files).await;
    }
    if args.junit.is_some() {
        let message = "--junit writes the results of cases, and there are none: put them into NAME.test.yaml \
             next to the workflow";
        return Err(Failure::Usage(message.to_owned()));
    }
    let mut exit = Exit::Succeeded;
    for file in &args.files {
        exit = exit.max(once(screen, args, &options, file).await?);
    }
    Ok(exit)
}

/// Returns the path of a workflow's file of cases, if it exists.
/// If `file` is already a file of cases, returns it.
fn cases_of(file: &Path) -> Option<PathBuf> {
    let stem = file.file_stem()?.to_str()?;
    if stem.ends_with(".test") {
        return Some(file.to_owned());
    }
    let candidates =
        ["yaml", "yml", "json"].map(|end| file.with_file_name(format!("{stem}.test.{end}")));
    candidates.into_iter().find(|path| path.is_file())
}

/// Simulates one run of a workflow. Reports what it did and what it would do next.
async fn once(
    screen: Screen,
    args: &TestArgs,
    options: &LoadOptions,
    file: &Path,
) -> Result<Exit, Failure> {
    let workflow = windlass_engine::load(file, options)?;
    unused_stubs(&workflow).for_each(|warning| screen.warn(&warning));
    let stubs = inputs::stubs(&args.handlers)?;
    let given = SimulationSpec {
        input: match stubs.input {
            Some(input) if args.input.is_none() && args.set.is_empty() => input,
            _ => inputs::inputs(args.input.as_deref(), &args.set, Some(&workflow))?,
        },
        awaited: stubs.signals,
        at: args.at.clone(),
        attempt: args.attempt,
        now: args.now,
        scheduled_time: args.scheduled_time,
        ..SimulationSpec::default()
    };
    let report = simulate(&workflow, &given).await?;
    output::show(args.output.output, &report, || text(&report))?;
    let is_success = report.stopped.is_none() && matches!(&*report.status, "Succeeded" | "Stopped");
    Ok(match is_success {
        true => Exit::Succeeded,
        false => Exit::Failed,
    })
}

/// Returns the warnings of stubs that no action uses, and whose names are similar to a name in the workflow.
pub(super) fn unused_stubs(workflow: &Workflow) -> impl Iterator<Item = String> {
    let warnings = workflow.warnings().sorted().into_iter();
    let unused = warnings.filter(|one| one.code == "unused-stub");
    unused.map(|one| one.to_line())
}

/// Returns a line for each step, and a line about how the run ended.
pub(super) fn text(report: &SimulationReport) -> TerminalText {
    let mut out = TerminalText::default();
    for step in &report.steps {
        line(&mut out, "", step);
    }
    for step in &report.next {
        line(&mut out, "next  ", step);
    }
    let took = format::duration(Duration::from_millis(report.took_ms));
    let _ = write!(out, "{} after {took}", report.status.to_lowercase());
    if let Some(why) = &report.stopped {
        let _ = write!(out, ": {why}");
    }
    if let Some(error) = &report.error {
        let _ = write!(
            out,
            ": {}: {}",
            error.kind,
            output::cut(&error.message, 300)
        );
    }
    if let Some(given) = report.output.as_ref().filter(|given| !given.is_null()) {
        let _ = write!(out, "\noutput {}", output::short(given, 2_000));
    }
    out
}

/// Writes the line of a step: `+10s  poll#1/check  http attempt 2  {…} → {…}`.
fn line(out: &mut TerminalText, before: &str, step: &SimulatedStep) {
    let at = format::duration(Duration::from_millis(step.at_ms));
    let _ = write!(out, "{before}+{at:<8} {:<24} ", output::line(&step.place));
    let _ = match &step.what {
        SimulatedStepKind::Call {
            executor,
            attempt,
            inputs,
            gives,
            error,
            title: _,
        } => {
            let again = match attempt {
                1 => String::new(),
                attempt => format!(" attempt {attempt}"),
            };
            let outcome = match (gives, error) {
                (Some(gives), _) => format!(" → {}", output::brief(gives, VALUE)),
                (None, Some(error)) => format!(" fails: {}", output::cut(error, VALUE)),
                (None, None) => String::new(),
            };
            writeln!(
                out,
                "{executor}{again}  {}{outcome}",
                output::short(inputs, VALUE)
            )
        }
        SimulatedStepKind::Wait { why, ms } => {
            let length = format::duration(Duration::from_millis(*ms));
            writeln!(out, "waits {length} ({why})")
        }
        SimulatedStepKind::Check { condition } => writeln!(out, "condition {condition}"),
        SimulatedStepKind::Loop { reason } => writeln!(out, "ends: {}", output::line(reason)),
    };
}

/// Simulates all cases of several files.
async fn all(
    screen: Screen,
    args: &TestArgs,
    options: &LoadOptions,
    files: &[PathBuf],
) -> Result<Exit, Failure> {
    let mut outcomes = Vec::new();
    for file in files {
        let suite = suite(file)?;
        for case in suite.cases {
            let began = Instant::now();
            let failures = play(args, options, &suite.workflow, &case).await?;
            outcomes.push(Outcome {
                file: file.display().to_string(),
                name: case.name,
                failures,
                seconds: began.elapsed().as_secs_f64(),
            });
        }
    }
    let failed = outcomes
        .iter()
        .filter(|one| !one.failures.is_empty())
        .count();
    match args.output.output {
        Format::Table => {
            for one in &outcomes {
                let word = if one.failures.is_empty() {
                    "ok  "
                } else {
                    "FAIL"
                };
                output::print(format!("{word}  {}", output::line(&one.name)))?;
                for failure in &one.failures {
                    output::print(format!("      {}", output::line(failure)))?;
                }
            }
            let cases = counted(outcomes.len() as u64, "case");
            screen.say(format!("{cases}, {failed} failed"));
        }
        format => output::list(format, &outcomes)?,
    }
    if let Some(path) = &args.junit {
        std::fs::write(path, junit::xml(&outcomes))
            .map_err(|error| Failure::Usage(format!("--junit: {}: {error}", path.display())))?;
    }
    Ok(match failed {
        0 => Exit::Succeeded,
        _ => Exit::Failed,
    })
}

/// Simulates a case. Returns descriptions of the results that differ from the expected ones.
async fn play(
    args: &TestArgs,
    options: &LoadOptions,
    file: &Path,
    case: &Case,
) -> Result<Vec<String>, Failure> {
    let mut options = options.clone();
    options.handlers.extend(case.answers.clone());
    let workflow = windlass_engine::load(file, &options)?;
    let own = |message: &str| {
        let mut own = case.answers.iter();
        own.any(|(name, _)| message.contains(&format!("`{name}`")))
    };
    let unknown: Vec<String> = unused_stubs(&workflow)
        .filter(|message| own(message))
        .chain(case.expect.unknown_names(workflow.program()))
        .collect();
    if !unknown.is_empty() {
        return Ok(unknown);
    }
    let given = SimulationSpec {
        now: case.now.unwrap_or(args.now),
        scheduled_time: case.spec.scheduled_time.or(args.scheduled_time),
        ..case.spec.clone()
    };
    let report = match simulate(&workflow, &given).await {
        Ok(report) => report,
        Err(error) => return Ok(vec![error.to_string()]),
    };
    Ok(case.expect.differs(&report))
}
