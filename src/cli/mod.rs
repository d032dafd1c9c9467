//! The command line: one file a command. Results go to standard output, everything else to
//! standard error. It uses the engine and the control socket, and nothing behind them.

mod args;
mod compile;
mod control;
mod eval;
mod exit;
mod follow;
#[allow(dead_code, reason = "status shows more than progress does")]
mod human;
mod inputs;
#[allow(dead_code, reason = "tables of status and history")]
mod output;
mod progress;
mod resume;
mod run;
mod session;
mod signals;
mod validate;

use args::{Arguments, Command};
use clap::Parser;
use exit::{Exit, Failure};
use output::Screen;
use std::future::Future;
use std::process::ExitCode;

/// Parses the arguments, does what they ask for, and gives the exit code.
#[must_use]
pub fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let screen = Screen::new(arguments.global.color, arguments.global.verbose);
    match dispatch(&arguments, screen) {
        Ok(exit) => exit.into(),
        Err(failure) => {
            render(&failure, screen);
            failure.exit().into()
        }
    }
}

fn dispatch(arguments: &Arguments, screen: Screen) -> Result<Exit, Failure> {
    let global = &arguments.global;
    match &arguments.command {
        Command::Run(args) => block_on(run::run(global, screen, args)),
        Command::Resume(args) => block_on(resume::resume(global, screen, args)),
        Command::Pause(args) => block_on(control::pause(global, screen, args)),
        Command::Cancel(args) => block_on(control::cancel(global, screen, args)),
        Command::Compile(args) => compile::compile(screen, args),
        Command::Eval(args) => eval::eval(screen, args),
        Command::Validate(args) => validate::validate(screen, args),
    }
}

/// Two workers: one for what a command does, one for the effects of its runs.
fn block_on(work: impl Future<Output = Result<Exit, Failure>>) -> Result<Exit, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(Failure::Machine)?;
    let exit = runtime.block_on(work);
    // Whatever still runs was told to stop: nobody waits for it.
    runtime.shutdown_background();
    exit
}

fn render(failure: &Failure, screen: Screen) {
    match failure {
        Failure::Load(crate::engine::LoadError::Refused {
            diagnostics,
            bundle,
        }) => screen.say(diagnostics.render(bundle, screen.error_colour).trim_end()),
        other => screen.fail(&other.to_string(), other.hint().as_deref()),
    }
}
