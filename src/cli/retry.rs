//! `windlass retry`: starts unsuccessful runs again, as new runs, and follows them.

use super::args::{Global, RetryArgs};
use super::control::{print_dry_run, select_runs};
use super::exit::{Exit, Failure};
use super::follow::{View, follow, in_session};
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
    let place = from.map(|from| format!(" from {from}")).unwrap_or_default();
    let owner = &args.owner;
    let view = View::of_owner(global, screen, owner);
    let setup = Setup::existing(global, screen, owner)?;
    if args.detach {
        require_server(&setup).await?;
    }
    let work = async |session: &mut Session, signals: &mut Signals| {
        let mut begun = Vec::new();
        for run in &runs {
            let id = match &args.id {
                Some(id) => inputs::run_id(id)?,
                None => new_id(&session.workflow_of(run).await?),
            };
            session.retry(run, &id, from).await?;
            screen.say(format!("run {id}, {run} once more{place}"));
            begun.push(id);
        }
        let exit = match args.detach {
            true => Exit::Succeeded,
            false => follow(session, &begun, &view, signals).await?,
        };
        Ok((begun, exit))
    };
    let (begun, exit) = in_session(setup, &owner.handlers, work).await?;
    match (&*begun, owner.output.output) {
        (_, Format::Table) if args.detach => output::print(begun.join("\n"))?,
        (_, format) if args.detach => output::list(format, &begun)?,
        ([run], _) => return exit_of_poll(global, screen, run, exit).await,
        _ => {}
    }
    Ok(exit)
}
