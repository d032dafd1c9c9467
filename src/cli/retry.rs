//! `windlass retry`: starts a run that ended badly once more, as a new run, and follows it.

use super::args::{Global, LoadArgs, RetryArgs};
use super::exit::{Exit, Failure};
use super::follow::{View, follow, handler_flags, place_flag};
use super::inputs;
use super::output::Screen;
use super::session::{Session, Setup};
use super::signals::Signals;
use super::status::inspect;
use crate::engine::new_id;

/// The command.
pub async fn retry(global: &Global, screen: Screen, args: &RetryArgs) -> Result<Exit, Failure> {
    let old = inspect(global, &args.run).await?;
    let id = match &args.id {
        Some(id) => inputs::run_id(id)?,
        None => new_id(&old.workflow),
    };
    let load = LoadArgs {
        env: args.env.clone(),
        ..LoadArgs::default()
    };
    let options = inputs::options(global, &load, &args.handlers)?;
    let setup = Setup::existing(global, screen, options, &args.guests)?;
    let view = View {
        place: place_flag(global),
        needs: handler_flags(&args.handlers),
        screen,
        format: args.output.output,
        events: args.events.events.is_some(),
    };
    let mut session = Session::attach(setup).await?;
    session.say_unused(&args.handlers, false);
    let mut signals = Signals::new()?;
    let from = args.from.as_deref();
    let place = from.map(|from| format!(" from {from}")).unwrap_or_default();
    let exit = match session.retry(&args.run, &id, from).await {
        Ok(()) => {
            screen.say(format!("run {id}, {} once more{place}", args.run));
            follow(&mut session, &[id], &view, &mut signals).await
        }
        Err(failure) => Err(failure),
    };
    session.leave(&mut signals).await;
    exit
}
