//! `windlass resume`: goes on with one run, or with every unfinished run of the store.

use super::args::{Global, ResumeArgs};
use super::exit::{Exit, Failure};
use super::follow::{View, follow};
use super::inputs;
use super::output::Screen;
use super::session::Session;
use crate::engine::Engine;

/// The command.
pub async fn resume(global: &Global, screen: Screen, args: &ResumeArgs) -> Result<Exit, Failure> {
    let mut builder = Engine::builder();
    for (name, target) in inputs::handlers(&args.handlers)? {
        builder = builder.register_handler(&name, target);
    }
    let session = Session::open(&global.state, builder)?;
    let runs = match &args.run {
        Some(run) => {
            session.engine().resume(run).await?;
            vec![run.clone()]
        }
        None => {
            let runs = session.engine().recover(true).await?;
            runs.iter().map(ToString::to_string).collect()
        }
    };
    if runs.is_empty() {
        screen.say("no run of this store is unfinished");
    }
    let view = View {
        state: global.state.clone(),
        screen,
        format: args.output.output,
        events: args.events.events.is_some(),
    };
    let exit = follow(&session, &runs, &view).await;
    session.leave().await;
    exit
}
