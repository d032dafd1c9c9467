//! `prolog`: one `swipl` process for each script, in the sandbox of SWI-Prolog's library. The script reads `state(Key,
//! Value)` and returns values with `return(Key, Value)`, or one value with `return(Value)` (source of the behaviour:
//! The Edge Agent's Prolog nodes). What a script prints is written only to the log.

use super::{Job, Outcome, bounded, broken, failed, interpreter, log};
use crate::execution_context;
use crate::inputs::invalid;
use crate::json;
use crate::process::{ProcessError, ProcessOutput, Processes, Spec};
use crate::{Attempt, Executor};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use windlass_expression::{Object, Value};
use windlass_model::model::{Fault, Origin, Request, fault_kind};

/// The program that each `swipl` runs.
const WORKER: &str = include_str!("worker.pl");

/// Maximum size in bytes of Prolog's stacks, if the action has no limit.
const DEFAULT_MEMORY: usize = 256 << 20;

/// Size in KiB of the address space in addition to the stacks, for the program, its tables, atoms and clauses.
const MARGIN_KIB: usize = 1 << 20;

/// Limits the address space, which Prolog's own limit does not cover.
const SHELL: &str = r#"ulimit -v "$1" && shift && exec swipl "$@""#;

const GOAL: &str = "current_prolog_flag(argv, Words), last(Words, Text), open_string(Text, Stream), \
                    load_files(windlass, [stream(Stream)]), windlass:main";

/// Returns the command of a `swipl` that only parses scripts. It reads a list of scripts from standard input and writes
/// a list of `[line, message]` or null to standard output.
pub(super) fn reader() -> Vec<String> {
    let goal = GOAL.replace("windlass:main", "windlass:check");
    let words = [
        "-q", "-f", "none", "-g", &goal, "-t", "halt(2)", "--", WORKER,
    ];
    words.map(str::to_owned).to_vec()
}

pub(crate) struct Prolog {
    processes: Arc<Processes>,
    slots: Semaphore,
    /// The slots that guests (workflows from HTTP or MCP) may use: one less than all, so that one is always left for
    /// the operator.
    guests: Semaphore,
}

impl Prolog {
    pub(crate) fn new(processes: Arc<Processes>) -> Self {
        Self {
            processes,
            slots: Semaphore::new(super::slots()),
            guests: Semaphore::new(super::slots() - 1),
        }
    }

    async fn run(&self, request: &Request) -> Result<Value, Fault> {
        let job = Job::read(request, DEFAULT_MEMORY)?;
        interpreter("prolog").map_err(invalid)?;
        let spec = spec(&job, request)?;
        let _share = match execution_context::origin() {
            Origin::Guest => Some(self.guests.acquire().await),
            Origin::Operator => None,
        };
        let _slot = self.slots.acquire().await;
        let finished = bounded(request, self.processes.run(spec)).await?;
        let finished = finished.map_err(not_run)?;
        for line in finished.stderr.lines().take(log::MAX_LINES) {
            log::line(&request.action, line);
        }
        answer(&finished, &job)
    }
}

impl Executor for Prolog {
    fn timeout(&self, _: &Request) -> Option<Duration> {
        None
    }

    fn execute<'a>(&'a self, request: &'a Request) -> Attempt<'a> {
        Box::pin(self.run(request))
    }
}

/// A job in the form that `swipl` reads.
#[derive(Serialize)]
struct Line<'a> {
    code: &'a str,
    state: &'a Object,
}

fn spec(job: &Job<'_>, request: &Request) -> Result<Spec, Fault> {
    let kib = (job.memory >> 10) + MARGIN_KIB;
    let words = [
        "sh",
        "-c",
        SHELL,
        "sh",
        &kib.to_string(),
        "-q",
        "-f",
        "none",
        &format!("--stack-limit={}", job.memory),
        "-g",
        GOAL,
        "-t",
        "halt(2)",
        "--",
        WORKER,
    ];
    let line = Line {
        code: job.code,
        state: &facts(job),
    };
    let line = serde_json::to_vec(&line)
        .map_err(|error| invalid(format!("`globals` cannot be sent to prolog: {error}")))?;
    let mut spec = Spec::new(words.map(str::to_owned).to_vec(), request);
    spec.stdin = Some(line);
    Ok(spec)
}

/// Returns the facts of `state/2`: one for each member of the global `state`, and one for each other global.
fn facts(job: &Job<'_>) -> Object {
    let state = job.globals.get("state").and_then(Value::as_object);
    let mut facts = state.cloned().unwrap_or_default();
    for (name, value) in job.globals.iter() {
        if &**name != "state" || state.is_none() {
            facts.entry(name.clone()).or_insert_with(|| value.clone());
        }
    }
    facts
}

#[derive(Deserialize)]
struct PrologAnswer {
    #[serde(default)]
    fault: Option<Failure>,
    #[serde(default)]
    returned: bool,
    #[serde(default)]
    result: Value,
}

#[derive(Deserialize)]
struct Failure {
    class: String,
    message: String,
    line: Option<u64>,
}

fn answer(finished: &ProcessOutput, job: &Job<'_>) -> Result<Value, Fault> {
    if finished.code != 0 {
        return Err(broken(format!("swipl {}", finished.describe())).code(finished.code));
    }
    json::check_memory(finished.stdout.as_bytes(), "what the script gave")?;
    json::exact(finished.stdout.as_bytes(), "what the script gave")?;
    let answer: PrologAnswer = serde_json::from_str(&finished.stdout)
        .map_err(|error| broken(format!("swipl wrote no answer: {error}")))?;
    if let Some(failure) = answer.fault {
        let line = failure.line.filter(|line| *line > 0);
        return Err(failed(&failure.class, &failure.message, line));
    }
    let outcome = Outcome {
        result: answer.result,
        returned: answer.returned,
        state: job.state(),
        locals: Value::Null,
    };
    Ok(outcome.into_value())
}

fn not_run(error: ProcessError) -> Fault {
    match error {
        ProcessError::TooLarge { .. } => {
            Fault::new(fault_kind::TOO_LARGE, format!("the script gave {error}"))
        }
        other => broken(other.to_string()),
    }
}
