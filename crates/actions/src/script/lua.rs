//! `lua`: Lua 5.4 without access to anything outside of the script. Each script runs in a worker process. Only the end
//! of a process aborts all work of a script, such as a pattern search, a library function or the garbage collector. The
//! worker is this program itself, if it can be a worker (see [`lua_worker`]), or else the `windlass` command.

use super::pool::Pool;
use super::{Job, Outcome};
use crate::process::Processes;
use crate::{Attempt, Executor};
use mlua::StdLib;
use mlua::chunk::ChunkMode;
use mlua::prelude::{LuaError, LuaOptions};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use windlass_model::model::Request;

mod convert;
mod work;

/// Maximum size in bytes of a script's memory, if the action has no limit.
const DEFAULT_MEMORY: usize = 64 << 20;

/// The first argument of a worker.
const WORD: &str = "__lua";
/// The second argument of a worker: both processes must have the same version.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Whether this program called [`lua_worker`], so that it can also be a worker.
static IS_WORKER_TOO: AtomicBool = AtomicBool::new(false);

/// Enables Lua scripts in this program. A program that uses the library must call this function first in `main`. If the
/// function returns a code, the program must exit with it:
///
/// ```
/// # extern crate windlass_actions as windlass;
/// use std::process::ExitCode;
///
/// fn main() -> ExitCode {
///     if let Some(code) = windlass::lua_worker() {
///         return code;
///     }
///     // What the program does.
///     ExitCode::SUCCESS
/// }
/// ```
///
/// A script runs in another process: this program with arguments that only this function knows. A program that does not
/// call this function needs the `windlass` command of the same version in its folder, in the folder above, or on the
/// `PATH`. Without that command, files with Lua are refused.
#[must_use]
pub fn lua_worker() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_none_or(|word| word != WORD) {
        IS_WORKER_TOO.store(true, Ordering::Relaxed);
        return None;
    }
    Some(match arguments.next() {
        Some(version) if version == VERSION => work::work(),
        _ => {
            eprintln!("this is windlass {VERSION}, and a script of another version was to be run");
            ExitCode::from(2)
        }
    })
}

/// Returns the path of the program that runs scripts.
///
/// # Errors
/// Returns an error if no such program was found. The message says what to do.
pub(super) fn program() -> Result<PathBuf, String> {
    // Use this path, because it works even if the program's file was replaced after the start.
    let own = Path::new("/proc/self/exe");
    let this = std::env::current_exe().ok();
    if IS_WORKER_TOO.load(Ordering::Relaxed) {
        let found = own.exists().then(|| own.to_owned()).or(this);
        return found.ok_or_else(|| String::from("where this program is cannot be found out"));
    }
    let folders = this
        .iter()
        .flat_map(|this| this.ancestors().skip(1).take(2));
    let mut candidates = folders.map(|folder| folder.join("windlass"));
    let sibling = candidates.find(|file| super::can_run(file));
    sibling
        .or_else(|| super::on_path("windlass"))
        .ok_or_else(|| {
            String::from(
                "a Lua script runs in a separate process, and no program for it was found: call \
                 `windlass::lua_worker` first in `main`, or put the `windlass` command on the PATH",
            )
        })
}

fn command() -> Result<Vec<String>, String> {
    let program = program()?.to_string_lossy().into_owned();
    Ok(vec![program, WORD.to_owned(), VERSION.to_owned()])
}

/// Returns the line and the message of a syntax error. The script is compiled and never run.
pub(super) fn mistake(code: &str) -> Option<(usize, String)> {
    let lua = mlua::Lua::new_with(StdLib::NONE, LuaOptions::default()).ok()?;
    let chunk = lua.load(code).set_name("=script").set_mode(ChunkMode::Text);
    let Err(LuaError::SyntaxError { message, .. }) = chunk.into_function() else {
        return None;
    };
    let (line, message) = message.strip_prefix("script:")?.split_once(": ")?;
    Some((line.parse().ok()?, message.to_owned()))
}

pub(crate) struct Lua {
    pool: Pool,
}

impl Lua {
    pub(crate) fn new(processes: Arc<Processes>) -> Self {
        Self {
            pool: Pool::new("lua", command, processes),
        }
    }
}

impl Executor for Lua {
    fn timeout(&self, _: &Request) -> Option<Duration> {
        None
    }

    fn execute<'a>(&'a self, request: &'a Request) -> Attempt<'a> {
        Box::pin(async {
            let job = Job::read(request, DEFAULT_MEMORY)?;
            let outcome = self.pool.run(&job, request).await?;
            // Return the original state, because the script changed only a copy of it.
            let state = job.state();
            Ok(Outcome { state, ..outcome }.into_value())
        })
    }
}
