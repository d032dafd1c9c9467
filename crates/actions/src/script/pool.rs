//! A pool of worker processes. Each worker runs one script after the other. A worker is dropped if its attempt is
//! aborted, or if it dies, sends invalid output or uses too much memory. This affects only one action, and everything
//! that its script started ends with the worker. What a script prints is only logged.

use super::log::Log;
use super::{Job, MAX_OUTPUT, Outcome, bounded, broken, failed, interpreter, slots};
use crate::execution_context;
use crate::inputs::invalid;
use crate::json;
use crate::process::{ProcessError, Processes, Running, Spec};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::Semaphore;
use windlass_expression::{Object, Value};
use windlass_model::model::{Fault, Origin, Request, fault_kind};

/// Maximum size in bytes of an answer without the script's result.
const MARGIN: u64 = 4 << 10;

/// Returns the command of a worker of a language.
type Command = fn() -> Result<Vec<String>, String>;

pub(super) struct Pool {
    language: &'static str,
    command: Command,
    processes: Arc<Processes>,
    /// Idle workers. The worker that became idle last is used next.
    idle: Mutex<Vec<Worker>>,
    slots: Semaphore,
    /// The slots that guests (workflows from HTTP or MCP) may use: one less than all, so that one is always left for
    /// the operator.
    guests: Semaphore,
    next_id: AtomicU64,
}

impl Pool {
    pub(super) fn new(language: &'static str, command: Command, processes: Arc<Processes>) -> Self {
        Self {
            language,
            command,
            processes,
            idle: Mutex::default(),
            slots: Semaphore::new(slots()),
            guests: Semaphore::new(slots() - 1),
            next_id: AtomicU64::new(1),
        }
    }

    /// Runs a script. Dropping the future kills its worker.
    pub(super) async fn run(&self, job: &Job<'_>, request: &Request) -> Result<Outcome, Fault> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let line = self.line(id, job, request)?;
        let _share = match execution_context::origin() {
            Origin::Guest => Some(self.guests.acquire().await),
            Origin::Operator => None,
        };
        let _slot = self.slots.acquire().await;
        // If any step below fails, the worker is dropped, which kills it.
        let mut worker = self.worker()?;
        let reply = bounded(request, worker.ask(&line, &request.action)).await?;
        let Some(bytes) = reply.map_err(|error| broken(format!("lost the worker: {error}")))?
        else {
            return Err(worker.post_mortem(self.language).await);
        };
        let answer: WorkerReply = self.read(&bytes)?;
        if answer.id != id {
            let message = format!("the {} worker sent an unexpected answer", self.language);
            return Err(broken(message));
        }
        if !answer.spent && worker.is_quiet() {
            self.idle().push(worker);
        }
        answer.into_outcome()
    }

    /// Returns an idle worker that is alive, or starts one.
    fn worker(&self) -> Result<Worker, Fault> {
        // Each iteration pops one worker, so that the lock is not held while a dead worker is dropped.
        while let Some(mut worker) = { self.idle().pop() } {
            if worker.is_alive() {
                return Ok(worker);
            }
        }
        let argv = (self.command)().map_err(invalid)?;
        let started = Worker::start(&self.processes, argv);
        started.map_err(|error| match interpreter(self.language) {
            Err(missing) => invalid(missing),
            Ok(()) => broken(error.to_string()),
        })
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Worker>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn line(&self, id: u64, job: &Job<'_>, request: &Request) -> Result<Vec<u8>, Fault> {
        let attempt = request.attempt.to_string();
        let line = Line {
            id,
            code: job.code,
            globals: &job.globals,
            live: job.mutable_global,
            env: BTreeMap::from([
                ("WINDLASS_IDEMPOTENCY_KEY", request.key.as_str()),
                ("WINDLASS_ATTEMPT", attempt.as_str()),
            ]),
            folder: execution_context::folder().map(|folder| folder.to_path_buf()),
            memory: job.memory,
        };
        let mut bytes = serde_json::to_vec(&line).map_err(|error| {
            let language = self.language;
            invalid(format!("`globals` cannot be sent to {language}: {error}"))
        })?;
        bytes.push(b'\n');
        Ok(bytes)
    }

    fn read(&self, bytes: &[u8]) -> Result<WorkerReply, Fault> {
        if bytes.len() > MAX_OUTPUT {
            let message = format!("the script gave more than {} MiB", MAX_OUTPUT >> 20);
            return Err(Fault::new(fault_kind::TOO_LARGE, message));
        }
        json::check_memory(bytes, "what the script gave")?;
        json::exact(bytes, "what the script gave")?;
        serde_json::from_slice(bytes).map_err(|error| {
            let language = self.language;
            broken(format!("the {language} worker wrote no answer: {error}"))
        })
    }
}

/// A job in the form that a worker reads.
#[derive(Serialize)]
struct Line<'a> {
    id: u64,
    code: &'a str,
    globals: &'a Object,
    live: Option<&'a str>,
    env: BTreeMap<&'a str, &'a str>,
    /// The working directory. `None`: that of the worker.
    folder: Option<PathBuf>,
    memory: usize,
}

#[derive(Deserialize)]
struct WorkerReply {
    id: u64,
    /// Whether the worker must not be used again.
    spent: bool,
    #[serde(default)]
    fault: Option<Failure>,
    #[serde(default)]
    result: Value,
    #[serde(default)]
    returned: bool,
    #[serde(default)]
    state: Value,
    #[serde(default)]
    locals: Value,
}

#[derive(Serialize, Deserialize)]
pub(super) struct Failure {
    pub(super) failed: Failed,
    #[serde(rename = "type")]
    pub(super) class: String,
    pub(super) message: String,
    pub(super) line: Option<u64>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Failed {
    Raised,
    TooLarge,
}

impl WorkerReply {
    fn into_outcome(self) -> Result<Outcome, Fault> {
        let Some(failure) = self.fault else {
            return Ok(Outcome {
                result: self.result,
                returned: self.returned,
                state: self.state,
                locals: self.locals,
            });
        };
        Err(match failure.failed {
            Failed::Raised => failed(&failure.class, &failure.message, failure.line),
            Failed::TooLarge => Fault::new(fault_kind::TOO_LARGE, failure.message),
        })
    }
}

/// A process that runs jobs.
struct Worker {
    running: Running,
    jobs: ChildStdin,
    answers: BufReader<ChildStdout>,
    log: Log,
}

impl Worker {
    fn start(processes: &Processes, argv: Vec<String>) -> Result<Self, ProcessError> {
        let spec = Spec {
            argv,
            env: Vec::new(),
            cwd: None,
            stdin: Some(Vec::new()),
            files: Vec::new(),
        };
        let mut running = processes.start(&spec)?;
        let child = &mut running.child;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(jobs), Some(answers), Some(stderr)) = pipes else {
            let error = std::io::Error::other("it was started without its pipes");
            return Err(ProcessError::Broken(error));
        };
        Ok(Self {
            running,
            jobs,
            answers: BufReader::new(answers),
            log: Log::new(stderr),
        })
    }

    /// Returns true if the process has not ended.
    fn is_alive(&mut self) -> bool {
        matches!(self.running.child.try_wait(), Ok(None))
    }

    /// Returns true if the worker has written nothing after its answer. Otherwise it must not be used again.
    fn is_quiet(&self) -> bool {
        self.answers.buffer().is_empty()
    }

    /// Sends a job and returns the line that answers it, or `None` if the worker ended before the line was complete.
    async fn ask(&mut self, job: &[u8], action: &str) -> std::io::Result<Option<Vec<u8>>> {
        let mut answer = Vec::new();
        self.log.begin(action);
        {
            let talk = async {
                // An error is ignored: if the worker is dead, the read of its answer reports that.
                let _ = self.jobs.write_all(job).await;
                let limit = MAX_OUTPUT as u64 + MARGIN;
                let mut answers = (&mut self.answers).take(limit);
                answers.read_until(b'\n', &mut answer).await
            };
            tokio::pin!(talk);
            loop {
                tokio::select! {
                    biased;
                    read = &mut talk => {
                        read?;
                        break;
                    }
                    () = self.log.read() => {}
                }
            }
        }
        self.log.drain();
        let whole = answer.ends_with(b"\n") || answer.len() > MAX_OUTPUT;
        Ok(whole.then_some(answer))
    }

    async fn post_mortem(mut self, language: &str) -> Fault {
        self.log.drain();
        let last_words = self.log.last_words();
        match self.running.end(last_words).await {
            Ok(finished) => {
                let how = finished.describe();
                broken(format!("the {language} worker {how}")).code(finished.code)
            }
            Err(error) => broken(format!("the {language} worker is gone: {error}")),
        }
    }
}
