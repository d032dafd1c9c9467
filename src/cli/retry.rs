//! `windlass retry`: starts runs that ended badly once more, as new runs, and follows them.

use super::args::{Global, RetryArgs};
use super::control::{chosen, dry};
use super::exit::{Exit, Failure};
use super::follow::{View, go_on};
use super::inputs;
use super::output::Screen;
use super::session::Session;
use windlass_engine::{FAILED_ITEMS, new_id};
use windlass_server::api::BulkVerb;

pub async fn retry(global: &Global, screen: Screen, args: &RetryArgs) -> Result<Exit, Failure> {
    let runs = match &args.run {
        Some(run) => vec![run.clone()],
        None => chosen(global, BulkVerb::Retry, &args.many).await?,
    };
    if args.many.dry_run || runs.is_empty() {
        return dry(screen, &runs, &args.owner.output);
    }
    let from = match args.failed_items {
        true => Some(FAILED_ITEMS),
        false => args.from.as_deref(),
    };
    let begin = async |session: &mut Session, _: &View| {
        let place = from.map(|from| format!(" from {from}")).unwrap_or_default();
        let mut ids = Vec::new();
        for run in &runs {
            let id = match &args.id {
                Some(id) => inputs::run_id(id)?,
                None => new_id(&session.workflow_of(run).await?),
            };
            session.retry(run, &id, from).await?;
            screen.say(format!("run {id}, {run} once more{place}"));
            ids.push(id);
        }
        Ok(ids)
    };
    go_on(global, screen, &args.owner, begin).await
}
