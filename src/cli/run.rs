//! `windlass run`: validates, starts and follows a run.

use super::args::{Global, RunArgs};
use super::exit::{Exit, Failure};
use super::follow::{View, follow};
use super::inputs;
use super::output::Screen;
use super::session::{NewRun, Session, Setup};
use super::signals::Signals;
use crate::engine::{self, new_id};

/// The command.
pub async fn run(global: &Global, screen: Screen, args: &RunArgs) -> Result<Exit, Failure> {
    let options = inputs::options(&args.load, &args.handlers)?;
    let workflow = engine::load(&args.file, &options)?;
    let warnings = workflow.warnings();
    if !warnings.is_empty() {
        screen.say(&warnings.render(workflow.bundle(), screen.error_colour));
    }
    let input = workflow.check_input(inputs::inputs(args.input.as_deref(), &args.set)?)?;
    let labels = inputs::labels(&args.label)?;
    let id = match &args.id {
        Some(id) => inputs::run_id(id)?,
        None => new_id(&workflow.program().name),
    };
    let setup = Setup {
        state: global.state.clone(),
        create: true,
        recover: true,
        options,
        screen,
    };
    let mut session = Session::attach(setup).await?;
    let new = NewRun {
        id: &id,
        workflow: &workflow,
        input: &input,
        labels: &labels,
    };
    if screen.live || screen.verbose > 0 {
        let how = if session.is_joined() {
            ", in the process that owns the store"
        } else {
            ""
        };
        screen.say(&format!("run {id}{how}"));
    }
    let view = View {
        state: global.state.clone(),
        screen,
        format: args.output.output,
        events: args.events.events.is_some(),
    };
    let mut signals = Signals::new()?;
    let exit = match session.start(&new).await {
        Ok(()) => follow(&mut session, &[id], &view, &mut signals).await,
        Err(failure) => Err(failure),
    };
    session.leave(&mut signals).await;
    exit
}
