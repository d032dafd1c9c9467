//! `windlass retry`: starts unsuccessful runs again, as new runs, and follows them.

use super::args::{Global, OwnerArgs, RetryArgs};
use super::control::{print_dry_run, select_runs};
use super::exit::{Exit, Failure};
use super::follow::{View, follow_existing};
use super::inputs;
use super::oneliner::exit_of_poll;
use super::output::{self, Format, Screen};
use super::run::require_server;
use super::session::{Session, Setup};
use super::signals::Signals;
use windlass_engine::{FAILED_ITEMS, new_id};
use windlass_server::api::BulkVerb;

pub async fn retry(global: &Global, screen: Screen, args: &RetryArgs) -> Result<Exit, Failure> {
    let runs = match &args.run {
        Some(run) => vec![run.clone()],
        None => {
            let from = args.from.as_deref().unwrap_or_default();
            let of_items = args.failed_items || from.starts_with(FAILED_ITEMS);
            let verb = BulkVerb::Retry;
            select_runs(global, screen, verb, &args.many, of_items).await?
        }
    };
    if args.many.dry_run || runs.is_empty() {
        return print_dry_run(screen, &runs, &args.owner.output);
    }
    let from = match args.failed_items {
        true => Some(FAILED_ITEMS),
        false => args.from.as_deref(),
    };
    let mut begun = Vec::new();
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
        begun.clone_from(&ids);
        Ok(ids)
    };
    if args.detach {
        return leave(global, screen, &args.owner, begin).await;
    }
    let exit = follow_existing(global, screen, &args.owner, begin).await?;
    match &*begun {
        [run] => exit_of_poll(global, screen, run, exit).await,
        _ => Ok(exit),
    }
}

/// Starts runs in the server that owns the store, prints their ids, and does not follow them.
async fn leave(
    global: &Global,
    screen: Screen,
    args: &OwnerArgs,
    begin: impl AsyncFnOnce(&mut Session, &View) -> Result<Vec<String>, Failure>,
) -> Result<Exit, Failure> {
    let view = View::new(global, screen, &args.handlers, &args.events, &args.output);
    let setup = Setup::existing(global, screen, args)?;
    require_server(&setup).await?;
    let mut session = Session::attach(setup).await?;
    session.warn_ignored_flags(&args.handlers, false);
    let begun = begin(&mut session, &view).await;
    session.close(&mut Signals::new()?).await;
    let runs = begun?;
    match args.output.output {
        Format::Table => output::print(runs.join("\n"))?,
        format => output::list(format, &runs)?,
    }
    Ok(Exit::Succeeded)
}
