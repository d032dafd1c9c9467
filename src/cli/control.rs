//! `windlass pause` and `windlass cancel`: of a run of a store that nobody moves.

use super::args::{Global, RunName};
use super::exit::{Exit, Failure};
use super::output::Screen;
use super::session::Session;
use crate::engine::Engine;

/// `windlass pause`.
pub async fn pause(global: &Global, screen: Screen, args: &RunName) -> Result<Exit, Failure> {
    let session = Session::open(&global.state, Engine::builder())?;
    session.pause(&args.run).await?;
    screen.say(&format!("paused {}", args.run));
    session.engine().stop().await;
    Ok(Exit::Succeeded)
}

/// `windlass cancel`.
pub async fn cancel(global: &Global, screen: Screen, args: &RunName) -> Result<Exit, Failure> {
    let session = Session::open(&global.state, Engine::builder())?;
    session.engine().cancel(&args.run).await?;
    screen.say(&format!("cancelled {}", args.run));
    session.engine().stop().await;
    Ok(Exit::Succeeded)
}
