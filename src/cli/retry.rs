//! `windlass retry`: starts a run that ended badly once more, as a new run, and follows it.

use super::args::{Global, RetryArgs};
use super::exit::{Exit, Failure};
use super::follow::{View, go_on};
use super::inputs;
use super::output::Screen;
use super::session::Session;
use super::status::report;
use crate::engine::{FAILED_ITEMS, new_id};

pub async fn retry(global: &Global, screen: Screen, args: &RetryArgs) -> Result<Exit, Failure> {
    let old = report(global, &args.run).await?;
    let id = match &args.id {
        Some(id) => inputs::run_id(id)?,
        None => new_id(&old.workflow),
    };
    let from = match args.failed_items {
        true => Some(FAILED_ITEMS),
        false => args.from.as_deref(),
    };
    let begin = async |session: &mut Session, _: &View| {
        session.retry(&args.run, &id, from).await?;
        let place = from.map(|from| format!(" from {from}")).unwrap_or_default();
        screen.say(format!("run {id}, {} once more{place}", args.run));
        Ok(vec![id.clone()])
    };
    go_on(global, screen, &args.owner, begin).await
}
