//! `windlass resume`: goes on with one run, or with every unfinished run of the store.

use super::access::remote;
use super::args::{Global, LoadArgs, ResumeArgs};
use super::exit::{Exit, Failure};
use super::follow::{View, follow, handler_flags, place_flag};
use super::inputs;
use super::output::Screen;
use super::session::{Session, Setup};
use super::signals::Signals;

/// The command. A run that has ended already prints its result again.
pub async fn resume(global: &Global, screen: Screen, args: &ResumeArgs) -> Result<Exit, Failure> {
    let load = LoadArgs {
        env: args.env.clone(),
        ..LoadArgs::default()
    };
    let setup = Setup {
        state: global.state.clone(),
        server: remote(global)?,
        create: false,
        options: inputs::options(&load, &args.handlers)?,
        guests: args.guests.clone(),
        screen,
    };
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
    let exit = go_on(&mut session, args.run.as_deref(), &view, &mut signals).await;
    session.leave(&mut signals).await;
    exit
}

async fn go_on(
    session: &mut Session,
    run: Option<&str>,
    view: &View,
    signals: &mut Signals,
) -> Result<Exit, Failure> {
    let runs = match run {
        Some(run) => {
            session.resume(run).await?;
            vec![run.to_owned()]
        }
        None => session.resume_all().await?,
    };
    if runs.is_empty() {
        view.screen.say("nothing to resume: every run has ended");
        return Ok(Exit::Succeeded);
    }
    follow(session, &runs, view, signals).await
}
