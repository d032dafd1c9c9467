//! `windlass resume`: goes on with one run, or with every unfinished run of the store.

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
    let exit = go_on(&mut session, args, &view, &mut signals).await;
    session.leave(&mut signals).await;
    exit
}

async fn go_on(
    session: &mut Session,
    args: &ResumeArgs,
    view: &View,
    signals: &mut Signals,
) -> Result<Exit, Failure> {
    let runs = match args.run.as_deref() {
        Some(run) => {
            session.resume(run).await?;
            vec![run.to_owned()]
        }
        None => session.resume_all(args.paused).await?,
    };
    if runs.is_empty() {
        let told = match session.paused().await? {
            0 => String::from("nothing to resume: every run has ended"),
            paused => format!(
                "nothing to resume: what has not ended is paused ({paused}), and \
                 `windlass resume{} --paused` goes on with that",
                view.place
            ),
        };
        view.screen.say(&told);
        return Ok(Exit::Succeeded);
    }
    follow(session, &runs, view, signals).await
}
