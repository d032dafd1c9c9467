//! Scripts: code of a workflow in Python, Lua or Prolog (docs/reference/tea.md). All three languages have the inputs
//! `{code, globals, live, memory_mb}` and the output `{result, returned, state, locals}`. The code is always from the
//! workflow's file, and never from data. What it prints is written to the log, and never to the output.

mod log;
#[cfg_attr(not(feature = "lua"), path = "lua_off.rs")]
mod lua;
mod pool;
mod prolog;
mod python;
mod syntax;

pub(super) use log::line as log_line;
#[cfg(feature = "lua")]
pub(super) use lua::Lua;
pub use lua::lua_worker;
pub(super) use prolog::Prolog;
pub(super) use python::Python;
pub use syntax::syntax_mistakes;

use super::inputs::{Inputs, invalid, mismatch};
use nix::unistd::{AccessFlags, access};
use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use windlass_expression::{Object, Value};
use windlass_model::model::{Fault, Request, fault_kind};

/// The timeout of a script, if the action has none.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

/// Maximum size in bytes of a script's output.
const MAX_OUTPUT: usize = 16 << 20;

/// Checks that the interpreter of a language (`python`, `lua`, `prolog`) is installed.
///
/// # Errors
/// Returns an error if the interpreter is missing. The message says how to install it.
pub fn interpreter(language: &str) -> Result<(), String> {
    let (program, package) = match language {
        "python" => ("python3", "python3"),
        "prolog" => ("swipl", "swi-prolog-nox"),
        "lua" => return lua::program().map(drop),
        _ => return Ok(()),
    };
    if on_path(program).is_some() {
        return Ok(());
    }
    Err(format!(
        "`{program}` is not installed on this machine; install it (Debian: apt-get install \
         {package})"
    ))
}

fn on_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut files = std::env::split_paths(&path).map(|folder| folder.join(program));
    files.find(|file| can_run(file))
}

fn can_run(file: &Path) -> bool {
    file.is_file() && access(file, AccessFlags::X_OK).is_ok()
}

struct Job<'a> {
    code: &'a str,
    /// The variables that the code can use.
    globals: Arc<Object>,
    /// The name of the global variable whose value the code may change in place.
    mutable_global: Option<&'a str>,
    memory: usize,
}

impl<'a> Job<'a> {
    fn read(request: &'a Request, default_memory: usize) -> Result<Self, Fault> {
        let inputs = Inputs::of(request)?;
        let code = inputs.required_text("code")?;
        let globals = match inputs.get("globals") {
            None => Arc::default(),
            Some(Value::Object(map)) => Arc::clone(map),
            Some(other) => return Err(mismatch("globals", "a map", other)),
        };
        let mutable_global = inputs.text("live")?;
        if let Some(name) = mutable_global.filter(|name| !globals.contains_key(*name)) {
            return Err(invalid(format!("`live` names `{name}`, no global")));
        }
        let memory = match inputs.get("memory_mb") {
            None => default_memory,
            Some(value) => value
                .as_int()
                .and_then(|megabytes| usize::try_from(megabytes).ok())
                .filter(|megabytes| (1..=1 << 20).contains(megabytes))
                .map(|megabytes| megabytes << 20)
                .ok_or_else(|| mismatch("memory_mb", "a number of MiB from 1", value))?,
        };
        Ok(Self {
            code,
            globals,
            mutable_global,
            memory,
        })
    }

    /// Returns the original value of the global variable that the code may change.
    fn state(&self) -> Value {
        self.mutable_global
            .and_then(|name| self.globals.get(name))
            .cloned()
            .unwrap_or_default()
    }
}

#[derive(Default)]
struct Outcome {
    result: Value,
    returned: bool,
    state: Value,
    locals: Value,
}

impl Outcome {
    fn into_value(self) -> Value {
        let locals = match self.locals {
            Value::Object(map) => Value::Object(map),
            _ => Value::object(Object::new()),
        };
        Value::from_pairs([
            ("result", self.result),
            ("returned", Value::Bool(self.returned)),
            ("state", self.state),
            ("locals", locals),
        ])
    }
}

/// Makes the fault of a script that failed. As for all actions except http, a retry policy without `on` retries any
/// failure (docs/reference/loom.md).
fn failed(class: &str, message: &str, line: Option<u64>) -> Fault {
    let words = match message.trim() {
        "" => class.to_owned(),
        message => format!("{class}: {message}"),
    };
    let message = match line {
        Some(line) => format!("{words} (line {line})"),
        None => words,
    };
    Fault::new(fault_kind::SCRIPT, message)
        .code(class)
        .transient()
}

/// Makes the fault for a failure of the interpreter itself, and not of the script.
fn broken(message: impl Into<String>) -> Fault {
    Fault::new(fault_kind::SCRIPT, message).transient()
}

/// Limits the time of a script. The wait for a free slot of the interpreter does not count.
async fn bounded<T>(request: &Request, run: impl Future<Output = T>) -> Result<T, Fault> {
    let own = request.timeout_ms.map(Duration::from_millis);
    let limit = own.unwrap_or(DEFAULT_TIMEOUT);
    tokio::time::timeout(limit, run).await.map_err(|_| {
        let message = format!("the attempt took longer than {limit:?}");
        Fault::new(fault_kind::TIMEOUT, message).transient()
    })
}

/// Returns how many scripts of a language run at the same time: one for each core, and two more, because some scripts
/// only wait.
fn slots() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from) + 2
}
