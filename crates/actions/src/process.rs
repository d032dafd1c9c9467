//! Runs one command to its end, with bounded output and without deadlock between its pipes. No process of the command's
//! process group survives the end of the command, an abort or the end of the engine. This module never interprets the
//! output.

use super::execution_context;
use super::live::{Lines, OutputStream};
use super::reaper::Reaper;
use super::secrets;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use std::collections::VecDeque;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin, Command};
use windlass_expression::Value;
use windlass_model::model::{Fault, Request, fault_kind};
use windlass_value::first_chars;

const MAX_STDOUT: usize = 16 << 20;

/// Maximum number of bytes of standard error that are retained. The last bytes are retained.
const MAX_STDERR: usize = 1 << 20;

/// How long the pipes of a command are still read after its end, while processes that it left in the background hold
/// them open.
const GRACE: Duration = Duration::from_secs(1);

pub(super) struct Spec {
    pub(super) argv: Vec<String>,
    /// Changes to the environment that the command inherits from the engine. `None` removes a variable. The engine's
    /// secrets are always removed.
    pub(super) env: Vec<(String, Option<String>)>,
    /// The working directory. `None`: that of the engine.
    pub(super) cwd: Option<PathBuf>,
    /// The bytes for standard input. `None`: an empty input.
    pub(super) stdin: Option<Vec<u8>>,
    /// Files for the command. Each has the name of the environment variable that gets its path, and its text.
    pub(super) files: Vec<(String, String)>,
}

impl Spec {
    /// Makes a command with the variables that every script gets (docs/reference/actions.md).
    pub(super) fn new(argv: Vec<String>, request: &Request) -> Self {
        let env = [
            ("WINDLASS_IDEMPOTENCY_KEY", request.key.clone()),
            ("WINDLASS_ATTEMPT", request.attempt.to_string()),
        ];
        let span = execution_context::traceparent(request).map(|span| ("TRACEPARENT", span));
        Self {
            argv,
            env: env
                .into_iter()
                .chain(span)
                .map(|(name, value)| (name.to_owned(), Some(value)))
                .collect(),
            cwd: execution_context::folder().map(|folder| folder.to_path_buf()),
            stdin: None,
            files: Vec::new(),
        }
    }
}

pub(super) struct ProcessOutput {
    /// The exit code. If a signal killed the process, this is 128 plus the number of the signal, as a shell reports it.
    pub(super) code: i32,
    signal: Option<i32>,
    /// Standard output. Bytes that are not valid UTF-8 are replaced.
    pub(super) stdout: String,
    /// The last bytes of standard error.
    pub(super) stderr: String,
}

impl ProcessOutput {
    fn new(status: ExitStatus, stdout: &[u8], stderr: VecDeque<u8>) -> Self {
        let signal = status.signal();
        Self {
            code: status
                .code()
                .or(signal.map(|signal| 128 + signal))
                .unwrap_or(-1),
            signal,
            stdout: String::from_utf8_lossy(stdout).into_owned(),
            stderr: String::from_utf8_lossy(&Vec::from(stderr)).into_owned(),
        }
    }

    /// Returns how the process ended, as text for users, with up to ten lines of standard error.
    pub(super) fn describe(&self) -> String {
        let how = match self.signal {
            Some(signal) => format!("was killed by signal {signal}"),
            None => format!("ended with exit code {}", self.code),
        };
        with_error_lines(how, &self.stderr)
    }

    /// Returns the fault of a command that failed. `what` is the beginning of its message.
    pub(super) fn fault(&self, what: &str, kind: &str) -> Fault {
        Fault::new(kind, format!("{what} {}", self.describe()))
            .code(self.code)
            .output(self.output())
            .transient()
    }

    /// Returns `{exitCode, stdout, stderr}`.
    pub(super) fn output(&self) -> Value {
        Value::from_pairs([
            ("exitCode", Value::Int(i64::from(self.code))),
            ("stdout", Value::text(self.stdout.as_str())),
            ("stderr", Value::text(self.stderr.as_str())),
        ])
    }
}

/// Adds up to ten lines of standard error to the text of how a process ended.
pub(super) fn with_error_lines(how: String, stderr: &str) -> String {
    match &*error_lines(stderr) {
        [] => how,
        [line] => format!("{how}: {}", line.trim_start()),
        lines => format!("{how}:\n  {}", lines.join("\n  ")),
    }
}

/// Maximum number of lines of standard error that a message quotes.
const MAX_ERROR_LINES: usize = 10;

/// Maximum length of a quoted line in characters.
const MAX_ERROR_LINE_CHARS: usize = 200;

/// Returns the lines of standard error that a message quotes. Interpreters print the error last, before or after the
/// frames of a stack trace. Compilers print it first, above an excerpt with a caret. So if there are too many lines,
/// stack frames are removed first, and then the lines in the middle.
pub(super) fn error_lines(stderr: &str) -> Vec<String> {
    let all = stderr.lines().map(str::trim_end);
    let mut lines: Vec<&str> = all.filter(|line| !line.is_empty()).collect();
    if lines.len() > MAX_ERROR_LINES {
        lines.retain(|line| !line.starts_with("    at "));
    }
    let mut lines: Vec<String> = lines
        .into_iter()
        .map(|line| first_chars(line, MAX_ERROR_LINE_CHARS).to_owned())
        .collect();
    if lines.len() > MAX_ERROR_LINES {
        let head = MAX_ERROR_LINES / 2;
        let tail = lines.len() - (MAX_ERROR_LINES - head - 1);
        lines.splice(head..tail, ["...".to_owned()]);
    }
    lines
}

#[derive(Debug, thiserror::Error)]
pub(super) enum ProcessError {
    /// The command is not valid.
    #[error("{reason}")]
    Unusable { reason: String },
    #[error("cannot start `{program}`: {reason}")]
    Start { program: String, reason: String },
    #[error("more than {} MiB on standard output", limit >> 20)]
    TooLarge { limit: usize },
    /// Waiting for the end of the process failed.
    #[error("lost sight of the process: {0}")]
    Broken(#[source] io::Error),
}

impl ProcessError {
    /// Returns the fault. `what` is the beginning of its message. It has the kind `kind` if the command could not be run
    /// to its end.
    pub(super) fn fault(self, what: &str, kind: &str) -> Fault {
        let message = format!("{what}{self}");
        match self {
            Self::TooLarge { .. } => Fault::new(fault_kind::TOO_LARGE, message),
            Self::Unusable { .. } => Fault::new(fault_kind::INPUT, message),
            Self::Start { .. } | Self::Broken(_) => Fault::new(kind, message).transient(),
        }
    }
}

/// Runs commands, and ensures that no process of them outlives the engine.
#[derive(Default)]
pub(super) struct Processes {
    reaper: Arc<Reaper>,
}

impl Processes {
    /// Runs a command to its end. Dropping the future kills its process group. When the command ends, the group is
    /// killed, too: it may have processes that the command left in the background.
    pub(super) async fn run(&self, mut spec: Spec) -> Result<ProcessOutput, ProcessError> {
        let _files = given_files(&mut spec)?;
        // The order of the bindings matters: `group` is dropped, and so killed, before `child`. Until `child` is
        // dropped, its process id cannot belong to another process.
        let Running { mut child, group } = self.start(&spec)?;
        let mut stdout = Vec::new();
        let mut stderr = VecDeque::new();
        let (stdin, out, err) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let status = {
            let pipes = async {
                // Too much output is an error here, which ends the command at once.
                tokio::try_join!(
                    feed(stdin, spec.stdin),
                    read_all(out, &mut stdout),
                    read_tail(err, &mut stderr),
                )
            };
            tokio::pin!(pipes);
            tokio::select! {
                read = &mut pipes => {
                    read?;
                    child.wait().await.map_err(ProcessError::Broken)?
                }
                ended = child.wait() => {
                    let status = ended.map_err(ProcessError::Broken)?;
                    match tokio::time::timeout(GRACE, &mut pipes).await {
                        Ok(read) => {
                            read?;
                        }
                        Err(_) => {
                            drop(group);
                            // The group was killed, so only a process that left the group can still hold the pipes.
                            // Wait for it only for a limited time.
                            if let Ok(read) = tokio::time::timeout(GRACE, pipes).await {
                                read?;
                            }
                        }
                    }
                    status
                }
            }
        };
        await_stop(status).await;
        Ok(ProcessOutput::new(status, &stdout, stderr))
    }

    /// Starts a command. It runs until it ends or until the returned value is dropped, which kills its process group.
    /// The caller writes the input of the command and reads its output.
    pub(super) fn start(&self, spec: &Spec) -> Result<Running, ProcessError> {
        let mut command = command(spec)?;
        self.reaper.prepare();
        let child = command.spawn().map_err(|error| start_error(spec, error))?;
        let group = Group::new(child.id(), &self.reaper);
        Ok(Running { group, child })
    }
}

pub(super) struct Running {
    /// Dropped before `child`, because until `child` is dropped, its process id cannot belong to another process.
    group: Group,
    pub(super) child: Child,
}

impl Running {
    /// Waits for the child for at most [`GRACE`], then kills its group. Returns how the child ended. `stderr` is the
    /// end of its standard error.
    pub(super) async fn end(self, stderr: VecDeque<u8>) -> Result<ProcessOutput, ProcessError> {
        let Self { mut child, group } = self;
        let status = match tokio::time::timeout(GRACE, child.wait()).await {
            Ok(status) => status,
            Err(_) => {
                drop(group);
                child.wait().await
            }
        };
        let status = status.map_err(ProcessError::Broken)?;
        await_stop(status).await;
        Ok(ProcessOutput::new(status, &[], stderr))
    }
}

/// Whether this process has received a Unix signal that stops it.
static IS_STOPPING: AtomicBool = AtomicBool::new(false);

/// Notes that this process has received a Unix signal that stops it. From then on, a command that such a signal kills
/// has no result.
pub fn note_stop_signal() {
    IS_STOPPING.store(true, Ordering::Relaxed);
}

/// Does not return if one signal killed the command and stops Windlass.
///
/// A signal to the process group of Windlass (Ctrl-C, `timeout`, a service manager) also reaches a command that has
/// just been started and is not yet in its own group. Such a command has not failed: when Windlass stops, it drops this
/// future, and executes the command again after the restart.
async fn await_stop(status: ExitStatus) {
    /// Windlass may handle the signal later than the command.
    const PATIENCE: Duration = Duration::from_secs(1);
    const INTERVAL: Duration = Duration::from_millis(10);
    let signal = status.signal().map(Signal::try_from);
    if !matches!(
        signal,
        Some(Ok(Signal::SIGHUP | Signal::SIGINT | Signal::SIGTERM))
    ) {
        return;
    }
    let stop = async {
        while !IS_STOPPING.load(Ordering::Relaxed) {
            tokio::time::sleep(INTERVAL).await;
        }
    };
    if tokio::time::timeout(PATIENCE, stop).await.is_ok() {
        std::future::pending().await
    }
}

/// A process group that is killed on drop.
struct Group {
    id: Option<i32>,
    reaper: Arc<Reaper>,
}

impl Group {
    fn new(leader: Option<u32>, reaper: &Arc<Reaper>) -> Self {
        // Refuse the ids 0 and 1: for `killpg`, 0 would mean the engine's own group, and 1 every process.
        let id = leader
            .and_then(|id| i32::try_from(id).ok())
            .filter(|id| *id > 1);
        if let Some(id) = id {
            reaper.watch(id);
        }
        Self {
            id,
            reaper: Arc::clone(reaper),
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            // This fails if the group is empty, which does no harm. It cannot kill another group: the system does not
            // reuse the id of a group while the group has a member, and this one had a member until now.
            let _ = killpg(Pid::from_raw(id), Signal::SIGKILL);
            self.reaper.forget(id);
        }
    }
}

fn command(spec: &Spec) -> Result<Command, ProcessError> {
    let unusable = |reason: &str| ProcessError::Unusable {
        reason: reason.to_owned(),
    };
    let (program, arguments) = spec
        .argv
        .split_first()
        .filter(|(program, _)| !program.is_empty())
        .ok_or_else(|| unusable("the command is empty"))?;
    let mut command = Command::new(program);
    command
        .args(arguments)
        .stdin(match spec.stdin {
            Some(_) => Stdio::piped(),
            None => Stdio::null(),
        })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true);
    for (name, _) in std::env::vars_os() {
        if secrets::is_engine_only(&name) {
            command.env_remove(name);
        }
    }
    for (name, value) in &spec.env {
        if name.is_empty() || name.contains(['=', '\0']) {
            return Err(unusable("the name of a variable in `env` is not usable"));
        }
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    if let Some(cwd) = &spec.cwd {
        command.current_dir(cwd);
    }
    Ok(command)
}

/// Writes the files of a command. Only the user of the engine may read them. They are removed when the result is
/// dropped.
fn given_files(spec: &mut Spec) -> Result<Option<Folder>, ProcessError> {
    if spec.files.is_empty() {
        return Ok(None);
    }
    let unusable = |error: io::Error| ProcessError::Unusable {
        reason: format!("its `files` cannot be written: {error}"),
    };
    let folder = Folder::make().map_err(unusable)?;
    for (index, (name, text)) in std::mem::take(&mut spec.files).into_iter().enumerate() {
        let path = folder.0.join(index.to_string());
        std::fs::write(&path, text).map_err(unusable)?;
        let path = path.to_string_lossy().into_owned();
        spec.env.push((name, Some(path)));
    }
    Ok(Some(folder))
}

/// A folder that is removed on drop.
struct Folder(PathBuf);

impl Folder {
    fn make() -> io::Result<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let name = format!("windlass-{}-{number}", std::process::id());
            let path = std::env::temp_dir().join(name);
            match std::fs::DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Ok(Self(path)),
                // The folder is from a killed engine that had the same process id. Try another name.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn start_error(spec: &Spec, error: io::Error) -> ProcessError {
    let program = spec.argv.first().cloned().unwrap_or_default();
    // The system also reports "not found" if the working directory is missing, which would be misleading.
    let missing = |cwd: &&PathBuf| !Path::new(cwd).is_dir();
    let reason = match spec.cwd.as_ref().filter(missing) {
        Some(cwd) => format!("{} is not a directory", cwd.display()),
        None => error.to_string(),
    };
    if error.kind() == io::ErrorKind::InvalidInput {
        return ProcessError::Unusable { reason };
    }
    ProcessError::Start { program, reason }
}

/// Writes everything and closes the pipe. It is not an error if the command does not read its input.
async fn feed(pipe: Option<ChildStdin>, text: Option<Vec<u8>>) -> Result<(), ProcessError> {
    if let (Some(mut pipe), Some(text)) = (pipe, text) {
        let _ = pipe.write_all(&text).await;
        let _ = pipe.shutdown().await;
    }
    Ok(())
}

async fn read_all(
    pipe: Option<impl AsyncRead + Unpin>,
    into: &mut Vec<u8>,
) -> Result<(), ProcessError> {
    let Some(mut pipe) = pipe else { return Ok(()) };
    let mut lines = Lines::of(OutputStream::Stdout);
    let mut buffer = vec![0; 16 << 10];
    loop {
        let length = pipe.read(&mut buffer).await.map_err(ProcessError::Broken)?;
        let read = buffer.get(..length).unwrap_or_default();
        if read.is_empty() {
            lines.end();
            return Ok(());
        }
        into.extend_from_slice(read);
        if into.len() > MAX_STDOUT {
            return Err(ProcessError::TooLarge { limit: MAX_STDOUT });
        }
        lines.take(read);
    }
}

async fn read_tail(
    pipe: Option<impl AsyncRead + Unpin>,
    into: &mut VecDeque<u8>,
) -> Result<(), ProcessError> {
    let Some(mut pipe) = pipe else { return Ok(()) };
    let mut lines = Lines::of(OutputStream::Stderr);
    let mut buffer = vec![0; 16 << 10];
    // An error of the pipe is ignored: the bytes that were read before are enough.
    while let Ok(length @ 1..) = pipe.read(&mut buffer).await {
        into.extend(buffer.iter().take(length));
        lines.take(buffer.get(..length).unwrap_or_default());
        let excess = into.len().saturating_sub(MAX_STDERR);
        into.drain(..excess);
    }
    lines.end();
    Ok(())
}
