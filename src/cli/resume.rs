//! `windlass resume`: resumes one run, or every unfinished run of the store.

use super::args::{Global, ResumeArgs};
use super::control::{print_dry_run, select_runs};
use super::exit::{Exit, Failure};
use super::follow::{View, follow_existing, say_awaited};
use super::oneliner::exit_of_poll;
use super::output::Screen;
use super::session::Session;
use windlass_server::api::BulkVerb;

/// Runs the command. If the run has already ended, its result is printed again.
pub async fn resume(global: &Global, screen: Screen, args: &ResumeArgs) -> Result<Exit, Failure> {
    if args.many.is_some() {
        let runs = select_runs(global, screen, BulkVerb::Resume, &args.many, false).await?;
        if args.many.dry_run || runs.is_empty() {
            return print_dry_run(screen, &runs, &args.owner.output);
        }
        let begin = async |session: &mut Session, _: &View| {
            for run in &runs {
                session.resume(run).await?;
            }
            Ok(runs.clone())
        };
        return follow_existing(global, screen, &args.owner, begin).await;
    }
    if global.engine.is_some() && args.run.is_none() {
        return Err(Failure::Usage(String::from(
            "workers resume every run automatically: name a paused run",
        )));
    }
    let begin = async |session: &mut Session, view: &View| {
        if let Some(run) = args.run.as_deref() {
            session.resume(run).await?;
            say_awaited(session, view, run).await;
            return Ok(vec![run.to_owned()]);
        }
        let runs = session.resume_all(args.paused).await?;
        if runs.is_empty() {
            screen.say(match session.count_paused().await? {
                0 => String::from("nothing to resume: every run has ended"),
                paused => format!(
                    "nothing to resume: the unfinished runs are paused ({paused}); `windlass \
                     resume{} --paused` resumes them, too",
                    view.target
                ),
            });
        }
        Ok(runs)
    };
    let exit = follow_existing(global, screen, &args.owner, begin).await?;
    match &args.run {
        Some(run) => exit_of_poll(global, screen, run, exit).await,
        None => Ok(exit),
    }
}
