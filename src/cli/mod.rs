//! The command line, with one file for each command.
//! Results are written to standard output, everything else to standard error.

mod access;
mod args;
mod audit;
mod backup;
mod bench;
mod compile;
mod complete;
mod control;
mod doctor;
mod dump;
mod eval;
mod exit;
mod export;
mod follow;
mod format;
mod history;
mod id_prefix;
mod inputs;
mod list;
mod log;
mod logs;
mod lsp;
mod man;
#[cfg(feature = "mcp")]
mod mcp;
mod next_commands;
mod oneliner;
mod output;
mod policy;
mod progress;
mod prompt;
mod prune;
#[cfg_attr(not(feature = "temporal"), path = "remote_engine_off.rs")]
mod remote_engine;
mod resume;
mod retry;
mod run;
mod schedule;
mod schema;
mod serve;
mod session;
mod signals;
mod state;
mod status;
mod test;
mod ui;
mod validate;
mod watch;
#[cfg_attr(not(feature = "temporal"), path = "worker_off.rs")]
mod worker;
mod workflow;

use args::{Arguments, Command};
use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use exit::{Exit, Failure};
use follow::target_flag;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use output::{Colour, Screen};
use std::future::Future;
use std::process::ExitCode;
use std::sync::RwLock;
use std::thread;
use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};
use windlass_engine::{Timestamp, now, visible};
use windlass_source::write as yaml;

/// Parses the arguments, runs the command, and returns the exit code.
#[must_use]
pub fn main() -> ExitCode {
    match complete::answer() {
        Ok(false) => {}
        Ok(true) => return Exit::Succeeded.into(),
        Err(error) => return refuse(error),
    }
    let mut arguments = match args::parse() {
        Ok(arguments) => arguments,
        Err(error) => return refuse(error),
    };
    let format = arguments.command.log_format();
    let screen = Screen::new(arguments.global.color, arguments.global.verbose).with_log(format);
    format::begin(arguments.global.local, arguments.global.utc);
    match remote_engine::given(&arguments.global, &arguments.command) {
        Ok(engine) => arguments.global.engine = engine,
        Err(failure) => {
            render(&failure, &arguments, screen);
            return failure.exit().into();
        }
    }
    let serves = arguments.command.serves();
    log::begin(screen, serves, format);
    log::without_the_database(screen);
    let mut done = dispatch(&arguments, screen);
    if done.as_ref().is_err_and(id_prefix::is_unknown) {
        match expand(&mut arguments) {
            Ok(false) => {}
            Ok(true) => done = dispatch(&arguments, screen),
            Err(failure) => done = Err(failure),
        }
    }
    let code = match done {
        Ok(exit) => exit.into(),
        Err(failure) => {
            render(&failure, &arguments, screen);
            failure.exit().into()
        }
    };
    log::flush();
    code
}

/// Prints the error of the arguments, the help or the version.
fn refuse(error: clap::Error) -> ExitCode {
    let error = suggest_url_flag(error);
    let text = error.to_string();
    if visible(&text) == text {
        error.exit();
    }
    // The message quotes an argument with characters that control the terminal, so it is printed without them.
    Screen::new(Colour::Never, 0).say(text.trim_end());
    Exit::Usage.into()
}

/// Suggests `--url` if an argument is a URL and the command accepts a URL only by this flag.
fn suggest_url_flag(mut error: clap::Error) -> clap::Error {
    let argument = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(argument)) => argument.clone(),
        _ => return error,
    };
    let is_url = argument.starts_with("http://") || argument.starts_with("https://");
    let takes_flag = match error.get(ContextKind::Usage) {
        Some(ContextValue::StyledStr(usage)) => usage.to_string().contains("--url"),
        _ => false,
    };
    if error.kind() == ErrorKind::UnknownArgument && is_url && takes_flag {
        let suggestion = StyledStr::from(format!("write `--url {argument}`"));
        error.insert(
            ContextKind::Suggested,
            ContextValue::StyledStrs(vec![suggestion]),
        );
    }
    error
}

/// Replaces a prefix of a run id by the id. Returns false if no run has an id with this prefix.
fn expand(arguments: &mut Arguments) -> Result<bool, Failure> {
    let Some(run) = arguments.command.run() else {
        return Ok(false);
    };
    let whole = on_one_thread(id_prefix::expand(&arguments.global, run))?;
    let found = whole.is_some();
    whole.into_iter().for_each(|whole| *run = whole);
    Ok(found)
}

fn dispatch(arguments: &Arguments, screen: Screen) -> Result<Exit, Failure> {
    let global = &arguments.global;
    check_rlimit(Resource::RLIMIT_NOFILE, FILES, "open files", "ulimit -n")?;
    check_rlimit(Resource::RLIMIT_AS, MEMORY, "bytes of memory", "ulimit -v")?;
    if now() < Timestamp(0) {
        // The store cannot represent times before 1970.
        let message = "the system clock is before 1970: set it";
        return Err(Failure::Machine(std::io::Error::other(message)));
    }
    // Commands that execute runs need a runtime with several threads. Other commands only send a request.
    match &arguments.command {
        Command::Run(args) => on_threads(run::run(global, screen, args)),
        Command::Poll(args) => on_threads(oneliner::poll(global, screen, args)),
        Command::Try(args) => on_threads(oneliner::attempt(global, screen, args)),
        Command::Paginate(args) => on_threads(oneliner::paginate(global, screen, args)),
        Command::Operation(args) => on_threads(oneliner::operation(global, screen, args)),
        Command::Events(args) => on_threads(oneliner::events(global, screen, args)),
        Command::Serve(args) => {
            raise_fd_limit();
            on_threads(serve::serve(global, screen, args))
        }
        Command::Worker(args) => on_threads(worker::worker(global, screen, args)),
        Command::Resume(args) => on_threads(resume::resume(global, screen, args)),
        #[cfg(feature = "mcp")]
        Command::Mcp(args) => on_threads(mcp::mcp(global, screen, args)),
        Command::Ui(args) => on_one_thread(ui::ui(global, screen, args)),
        Command::List(args) => on_one_thread(list::run(global, screen, args)),
        Command::Status(args) => on_one_thread(status::run(global, screen, args)),
        Command::History(args) => on_one_thread(history::run(global, screen, args)),
        Command::Export(args) => on_one_thread(export::run(global, args)),
        Command::Logs(args) => on_one_thread(logs::logs(global, screen, args)),
        Command::Man(args) => man::man(args),
        Command::Dump(args) => on_one_thread(dump::run(global, screen, args)),
        Command::Doctor(args) => on_one_thread(doctor::run(global, screen, args)),
        Command::Audit(args) => on_one_thread(audit::run(global, screen, args)),
        Command::Pause(args) => on_one_thread(control::pause(global, screen, args)),
        Command::Cancel(args) => on_one_thread(control::cancel(global, screen, args)),
        Command::Retry(args) => on_threads(retry::retry(global, screen, args)),
        Command::Signal(args) => on_one_thread(control::signal(global, screen, args)),
        Command::Prune(args) => on_one_thread(prune::prune(global, screen, args)),
        Command::Backup(args) => on_one_thread(backup::backup(global, args)),
        Command::Restore(args) => on_one_thread(backup::restore(global, args)),
        Command::Migrate(args) => on_one_thread(backup::migrate(global, args)),
        Command::Workflow(args) => on_one_thread(workflow::run(global, screen, args)),
        Command::Schedule(args) => on_one_thread(schedule::run(global, screen, args)),
        Command::State(args) => on_one_thread(state::run(global, screen, args)),
        Command::Test(args) => on_one_thread(test::test(global, screen, args)),
        Command::Bench(args) => {
            raise_fd_limit();
            on_threads(bench::bench(global, screen, args))
        }
        Command::Validate(args) => validate::validate(global, screen, args),
        Command::Compile(args) => compile::compile(global, screen, args),
        Command::Eval(args) => eval::eval(screen, args),
        Command::Schema(args) => schema::schema(args),
        Command::Lsp(args) => lsp::lsp(args),
        Command::Completions(args) => complete::script(args),
    }
}

/// The limit of open files must be at least this. A store, a socket and a runtime need this many files. With fewer,
/// the runtime panics.
const FILES: u64 = 32;

/// The limit of memory must be at least this for commands that open a store, in bytes.
/// Each thread may reserve 64 MiB of addresses for its heap, and the database has many threads. With 1 GB, some
/// processes still hung or crashed in the database.
const MEMORY_OF_A_STORE: u64 = 2 << 30;

/// The limit of memory must be at least this for other commands, in bytes.
const MEMORY: u64 = 256 << 20;

fn check_rlimit(resource: Resource, least: u64, what: &str, raise: &str) -> Result<(), Failure> {
    match getrlimit(resource) {
        Ok((limit, _)) if limit < least => {
            let message = format!(
                "the limit of {limit} {what} is too low (need {least}): raise it with `{raise}`"
            );
            Err(Failure::Machine(std::io::Error::other(message)))
        }
        // If the limit cannot be read, nothing is checked. A later call that fails reports the reason.
        _ => Ok(()),
    }
}

/// Raises the limit of open files to its maximum. Each connection of a server needs an open file.
fn raise_fd_limit() {
    if let Ok((_, most)) = getrlimit(Resource::RLIMIT_NOFILE) {
        // The result is ignored: if this fails, the limit stays as it is.
        let _ = setrlimit(Resource::RLIMIT_NOFILE, most, most);
    }
}

/// Number of threads of the runtime, the scheduler, the database and blocking work.
const THREADS: usize = 16;

/// Checks that enough threads can be started.
/// Otherwise, the database would wait for ever, or the runtime would panic.
fn check_thread_limit() -> Result<(), Failure> {
    let gate = RwLock::new(());
    let closed = gate.write();
    let passes = || drop(gate.read());
    let spawned = thread::scope(|scope| {
        let mut threads = (0..THREADS).map(|_| {
            // In a build without optimisation, the allocator needs more than 64 KB of the stack when a thread begins.
            let thread = thread::Builder::new().stack_size(512 << 10);
            thread.spawn_scoped(scope, passes)
        });
        let spawned = threads.try_for_each(|thread| thread.map(drop));
        drop(closed);
        spawned
    });
    spawned.map_err(|error| {
        let message = format!(
            "cannot start {THREADS} threads ({error}): raise `ulimit -u`, or TasksMax of the service"
        );
        Failure::Machine(std::io::Error::other(message))
    })
}

fn on_threads<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    block_on(Builder::new_multi_thread().worker_threads(2), work)
}

fn on_one_thread<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    block_on(&mut Builder::new_current_thread(), work)
}

fn block_on<T>(
    runtime: &mut Builder,
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    check_rlimit(
        Resource::RLIMIT_AS,
        MEMORY_OF_A_STORE,
        "bytes of memory",
        "ulimit -v",
    )?;
    check_thread_limit()?;
    let runtime = runtime.enable_all().build().map_err(Failure::Machine)?;
    // If SIGXFSZ has a handler, a write beyond the limit of a file's size fails. Without a handler, it would end the
    // process.
    let limit = SignalKind::from_raw(nix::sys::signal::Signal::SIGXFSZ as i32);
    let entered = runtime.enter();
    let _caught = signal(limit).map_err(Failure::Machine)?;
    drop(entered);
    let done = runtime.block_on(work);
    // Tasks that are still running were already notified to stop. The process does not wait for them.
    runtime.shutdown_background();
    done
}

fn render(failure: &Failure, arguments: &Arguments, screen: Screen) {
    match failure {
        Failure::Load(windlass_engine::LoadError::Refused {
            diagnostics,
            bundle,
        }) => screen.say(diagnostics.render(bundle, screen.error_colour).trimmed()),
        other => {
            let target = target_flag(&arguments.global);
            let hint = other.hint(&target, arguments.command.executes_runs());
            screen.fail(&other.to_string(), hint.as_deref());
        }
    }
}
