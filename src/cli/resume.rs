//! `windlass resume`: resumes one run, or every unfinished run of the store.

use super::args::{Global, ResumeArgs};
use super::control::{print_dry_run, select_runs};
use super::exit::{Exit, Failure};
use super::follow::{View, follow_existing, say_awaited};
use super::oneliner::exit_of_poll;
use super::output::{Screen, counted};
use super::session::Session;
use windlass_engine::report::{ListFilter, StatusFilter};
use windlass_engine::{QUARANTINE_LABEL, RunStatus};
use windlass_server::api::BulkVerb;

/// Maximum number of parked runs that a message names.
const MAX_NAMED: usize = 3;

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
            screen.say(why_none(session, &view.target).await?);
        }
        Ok(runs)
    };
    let exit = follow_existing(global, screen, &args.owner, begin).await?;
    match &args.run {
        Some(run) => exit_of_poll(global, screen, run, exit).await,
        None => Ok(exit),
    }
}

/// Returns why no run was resumed. `target` has the flags that name the store.
async fn why_none(session: &mut Session, target: &str) -> Result<String, Failure> {
    let all = ListFilter {
        limit: Some(0),
        facets: true,
        ..ListFilter::default()
    };
    let all = session.list(&all).await?;
    let statuses = all.facets.unwrap_or_default().status;
    let paused = statuses.get(RunStatus::Paused.as_str()).copied();
    let parked = ListFilter {
        status: vec![
            StatusFilter::Is(RunStatus::Running),
            StatusFilter::Is(RunStatus::Waiting),
        ],
        text: Some(format!("{QUARANTINE_LABEL}=")),
        limit: Some(MAX_NAMED),
        ..ListFilter::default()
    };
    let parked = session.list(&parked).await?;
    let mut reasons = Vec::new();
    if all.unfinished > 0 {
        let runs = counted(all.unfinished as u64, "unfinished run");
        reasons.push(match session.is_joined() {
            true if session.is_remote() => format!("the server executes {runs}"),
            true => format!("the process that owns the store executes {runs}"),
            false => format!("{runs} can continue only after an event, such as a signal"),
        });
    }
    if let Some(paused) = paused.filter(|paused| *paused > 0) {
        let runs = counted(paused, "paused run");
        reasons.push(format!(
            "{runs}: `windlass resume{target} --paused` resumes paused runs, too"
        ));
    }
    if parked.total > 0 {
        let runs = counted(parked.total as u64, "parked run");
        let mut named: Vec<&str> = parked.runs.iter().map(|row| &*row.summary.run).collect();
        named.extend((parked.more > 0).then_some("…"));
        let named = named.join(", ");
        reasons.push(format!(
            "{runs} ({named}): `windlass resume{target} RUN` resumes one of them"
        ));
    }
    Ok(match reasons.is_empty() {
        true => String::from("nothing to resume: every run has ended"),
        false => format!("nothing to resume: {}", reasons.join("; ")),
    })
}
