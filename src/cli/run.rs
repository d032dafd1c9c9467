//! `windlass run`: validates, starts and follows a run.

use super::args::{Global, RunArgs};
use super::exit::{Exit, Failure};
use super::follow::{View, follow};
use super::inputs;
use super::output::Screen;
use super::session::Session;
use crate::engine::{self, Engine, StartOptions, new_id};

/// The command.
pub async fn run(global: &Global, screen: Screen, args: &RunArgs) -> Result<Exit, Failure> {
    let options = inputs::options(&args.load, &args.handlers)?;
    let file = engine::read_file(&args.file)?;
    let workflow = engine::load(&file, &options)?;
    let warnings = workflow.warnings();
    if !warnings.is_empty() {
        screen.say(&warnings.render(workflow.bundle(), screen.error_colour));
    }
    let input = workflow.check_input(inputs::inputs(args.input.as_deref(), &args.set)?)?;
    let labels = inputs::labels(&args.label)?;
    let id = match &args.id {
        Some(id) => id.clone(),
        None => new_id(&workflow.program().name),
    };
    let mut builder = Engine::builder();
    for (name, target) in &options.handlers {
        builder = builder.register_handler(name, target.clone());
    }
    let session = Session::open(&global.state, builder)?;
    session.engine().recover(false).await?;
    let start = StartOptions {
        id: Some(id.clone()),
        labels,
    };
    session.engine().start_with(&workflow, input, start).await?;
    if screen.live || screen.verbose > 0 {
        screen.say(&format!("run {id}"));
    }
    let view = View {
        state: global.state.clone(),
        screen,
        format: args.output.output,
        events: args.events.events.is_some(),
    };
    let exit = follow(&session, &[id], &view).await;
    session.leave().await;
    exit
}
