//! `windlass status`: prints one screen that explains the current state of a run.

use super::access::inspect;
use super::args::{Global, StatusArgs};
use super::exit::{Exit, Failure};
use super::follow::target_flag;
use super::format;
use super::list::runs;
use super::next_commands::{is_left, next, parked};
use super::oneliner::{is_line, with_line_expressions};
use super::output::{self, Format, Screen};
use super::watch::{Shown, show};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;
use windlass_engine::report::{
    AwaitedRun, CurrentActivity, ForkReport, ListFilter, LoopReport, QuestionReport,
    SUCCEEDED_WITH_FAILURES, StatusReport, status, status_word,
};
use windlass_engine::{RunStatus, TURN_SIGNAL, TerminalText, Timestamp, now, path_part};

/// Maximum number of characters of a value on a line.
const VALUE: usize = 100;

/// If a timer is late by at least this, the delay is shown.
const LATE: Duration = Duration::from_millis(500);

/// The same for a run on Temporal, whose timers fire up to a second late.
const LATE_ON_TEMPORAL: Duration = Duration::from_secs(3);

/// If an action has more branches than this, or a foreach more loops, only the first one is shown.
const MAX_ALIKE: usize = 3;

pub async fn run(global: &Global, screen: Screen, args: &StatusArgs) -> Result<Exit, Failure> {
    let format = args.output.output;
    let place = target_flag(global);
    let run = match &args.run {
        Some(run) => run.clone(),
        None => newest(global).await?,
    };
    show(screen, format, args.watch.watch, async || {
        let report = report(global, &run).await?;
        let key = StatusReport {
            at: Timestamp(0),
            ..report.clone()
        };
        Ok(Shown {
            text: match format {
                Format::Table => text(&report, &place, screen.colour, global.engine.is_some()),
                format => output::text(format, &report),
            },
            key: output::text(Format::Json, &key),
            last: report.status.is_final(),
        })
    })
    .await
}

/// Returns the id of the run that was started last.
async fn newest(global: &Global) -> Result<String, Failure> {
    let filter = ListFilter {
        limit: Some(1),
        ..ListFilter::default()
    };
    let listed = runs(global, &filter).await?;
    let newest = listed.runs.into_iter().next();
    let newest = newest.ok_or_else(|| Failure::Usage(String::from("the store has no runs")))?;
    Ok(newest.summary.run)
}

/// Returns the status of a run.
pub async fn report(global: &Global, run: &str) -> Result<StatusReport, Failure> {
    inspect(
        global,
        async |client| client.status(run).await,
        |store| status(store, run, now()),
    )
    .await
}

/// Returns the screen about a run. `place` is the flag that selects the store, the server or the engine.
pub fn text(report: &StatusReport, place: &str, colour: bool, on_temporal: bool) -> TerminalText {
    let now = report.at;
    let mut out = TerminalText::from(format!("run       {}   ", report.run));
    let word = status_word(report.status, report.failed_actions);
    let (word, tint) = match word {
        SUCCEEDED_WITH_FAILURES => (String::from("succeeded with failures"), "1;33"),
        word => (word.to_lowercase(), tint(report.status)),
    };
    out.push(&TerminalText::tinted(colour, tint, &word));
    let _ = writeln!(
        out,
        "   started {} ({})",
        format::date(report.started_at),
        format::ago(report.started_at, now)
    );
    let file = report.file.as_deref().unwrap_or(&report.workflow);
    let _ = writeln!(
        out,
        "workflow  {file}  {}",
        output::cut(&report.program, 20)
    );
    if !report.labels.is_empty() {
        let _ = writeln!(out, "labels    {}", output::labels(&report.labels));
    }
    if let Some(pause) = &report.pause {
        let since = format::time(pause.since, now);
        let _ = writeln!(out, "paused    since {since}: {}", pause.pause.text());
    }
    if let Some(reason) = parked(report) {
        let _ = writeln!(out, "parked    {reason}");
    }
    if is_left(report) {
        let what = match on_temporal {
            true => format!("no worker is running: start `windlass worker{place}`"),
            false => format!(
                "no process executes it; `windlass resume{place} {}` continues it",
                report.run
            ),
        };
        let _ = writeln!(out, "stopped   {what}");
    }
    if let Some(outage) = &report.outage {
        let _ = writeln!(out, "stopped   no run continues: {outage}");
    }
    let (late, executor) = match on_temporal {
        true => (LATE_ON_TEMPORAL, "worker"),
        false => (LATE, "process"),
    };
    if let Some(behind) = behind(report).filter(|behind| *behind >= late) {
        let _ = writeln!(
            out,
            "behind    by {}: the {executor} that executes it is overloaded",
            format::duration(behind)
        );
    }
    outcome(&mut out, report);
    if report.failed_actions > 0 {
        let failed = output::counted(report.failed_actions, "action");
        let history = format!("`windlass history{place} {}`", report.run);
        let _ = writeln!(
            out,
            "failures  {failed} failed without failing the run: {history}"
        );
    }
    let (loops, more) = first_alike(&report.loops, |one| without_numbers(&one.path));
    for one in loops {
        let inside = |doing: &&CurrentActivity| doing.loop_path.as_ref() == Some(&one.path);
        let doing: Vec<&CurrentActivity> = report.doing.iter().filter(inside).collect();
        a_loop(&mut out, one, &doing, report);
        for doing in doing {
            let _ = writeln!(out, "  doing      {}", doing_text(doing, report, place));
        }
    }
    for (path, more) in more {
        let _ = writeln!(out, "loop      {path}  in {more} more iterations or items");
    }
    let (forks, more) = first_alike(&report.forks, |fork| without_numbers(&place_of(fork)));
    for fork in forks {
        let failed = match fork.failed {
            0 => String::new(),
            failed => format!(" ({failed} failed)"),
        };
        let _ = writeln!(
            out,
            "{:<8}  {}  {} of {} ended{failed}, {} running",
            fork.kind,
            place_of(fork),
            fork.ended,
            fork.total,
            fork.running
        );
    }
    for (path, more) in more {
        let _ = writeln!(out, "forks     {path}  in {more} more iterations or items");
    }
    let elsewhere = report.doing.iter().filter(|doing| {
        !report
            .loops
            .iter()
            .any(|one| doing.loop_path.as_ref() == Some(&one.path))
    });
    let (elsewhere, more) = first_alike(elsewhere, |doing| {
        let signal = doing.signal.as_ref().map(|name| format!(" `{name}`"));
        let signal = signal.unwrap_or_default();
        format!("{}  waits for {}{signal}", doing.action, doing.waits_for)
    });
    for doing in elsewhere {
        let _ = writeln!(out, "doing     {}", doing_text(doing, report, place));
    }
    for (name, more) in more {
        let _ = writeln!(out, "doing     {name}  in {more} more branches");
    }
    if report.starts_runs {
        let list = format!(
            "windlass list{place} --label windlass.parent={}",
            report.run
        );
        let _ = writeln!(out, "started   the runs of `{list}`");
    }
    let _ = writeln!(
        out,
        "checkpoint  {} ({})  commit {}  durable",
        format::time(report.updated_at, now),
        format::ago(report.updated_at, now),
        report.commit
    );
    let _ = writeln!(out, "next        {}", next(report, place));
    out
}

/// Returns the entries to show, and the number of hidden entries of each kind.
/// If there are many entries of a kind, one of them is shown.
fn first_alike<'a, T>(
    all: impl IntoIterator<Item = &'a T>,
    kind: impl Fn(&T) -> String,
) -> (Vec<&'a T>, Vec<(String, usize)>) {
    let all: Vec<(String, &T)> = all.into_iter().map(|one| (kind(one), one)).collect();
    let mut counts: BTreeMap<&String, usize> = BTreeMap::new();
    for (kind, _) in &all {
        *counts.entry(kind).or_default() += 1;
    }
    counts.retain(|_, count| *count > MAX_ALIKE);
    let more = counts
        .iter()
        .map(|(kind, count)| ((*kind).clone(), count - 1));
    let more = more.collect();
    let is_shown = |(kind, _): &&(String, &'a T)| match counts.get_mut(kind) {
        Some(count) => std::mem::take(count) > 0,
        None => true,
    };
    (
        all.iter().filter(is_shown).map(|(_, one)| *one).collect(),
        more,
    )
}

/// Returns a path without the numbers of its iterations: `each#…/poll`.
fn without_numbers(path: &str) -> String {
    let parts = path.split('/').map(|part| match part.split_once('#') {
        Some((name, _)) => format!("{name}#…"),
        None => part.to_owned(),
    });
    parts.collect::<Vec<_>>().join("/")
}

fn outcome(out: &mut TerminalText, report: &StatusReport) {
    let Some(outcome) = &report.outcome else {
        return;
    };
    let at = format::time(outcome.at, report.at);
    match &outcome.error {
        None => {
            let _ = writeln!(
                out,
                "ended     {at}  output {}",
                output::short(&outcome.output, VALUE)
            );
        }
        Some(error) => {
            let code = error
                .code
                .as_ref()
                .map(|code| format!(" {code}"))
                .unwrap_or_default();
            let answered = match outcome.output.is_null() {
                true => String::new(),
                false => format!("  output {}", output::short(&outcome.output, VALUE)),
            };
            let _ = writeln!(out, "ended     {at}{answered}");
            let _ = writeln!(
                out,
                "error     {}{code}: {}",
                error.kind,
                output::cut(
                    &with_line_expressions(is_line(&report.workflow), &error.message),
                    300
                )
            );
            let place = error.place();
            if !place.is_empty() {
                let _ = writeln!(out, "  at         {place}");
            }
            for file in &outcome.unreplaced {
                let _ = writeln!(out, "file      {}", file.text());
            }
        }
    }
    for ending in &outcome.failed_endings {
        let _ = writeln!(out, "alert     {}", output::cut(&ending.text(), 300));
    }
    for cancel in &outcome.failed_cancels {
        let _ = writeln!(out, "cancel    {}", output::cut(&cancel.text(), 300));
    }
    for limit in &outcome.limits {
        let _ = writeln!(out, "limit     {}", limit.text());
    }
    for budget in &outcome.budgets {
        let _ = writeln!(out, "budget    {}", budget.text());
    }
    for items in &outcome.failed_items {
        let _ = writeln!(out, "items     {}", items.message);
    }
}

/// Returns the place of a fork's branches in the run.
/// Forks with the same name differ by the iteration in which they are.
fn place_of(fork: &ForkReport) -> String {
    let of_its_own = |inside: &str| {
        let last = inside.rsplit('/').next().unwrap_or_default();
        last.split('#').next() == Some(&*path_part(&fork.name))
    };
    match (&fork.path, &fork.inside) {
        (Some(path), _) => path.clone(),
        // The scope `inside` is the body of a loop, which has the same name as the loop.
        (None, Some(inside)) if of_its_own(inside) => inside.clone(),
        (None, Some(inside)) => format!("{inside}/{}", path_part(&fork.name)),
        (None, None) => fork.name.clone(),
    }
}

fn a_loop(
    out: &mut TerminalText,
    one: &LoopReport,
    doing: &[&CurrentActivity],
    report: &StatusReport,
) {
    let deadline = one
        .deadline
        .map(|deadline| format!("   deadline {}", due_text(deadline, report)))
        .unwrap_or_default();
    let budgets = one.budgets.iter().map(|budget| budget.text.clone());
    let numbers = [format!(
        "iteration {}/{}",
        one.iteration, one.max_iterations
    )];
    let numbers = numbers.into_iter().chain(budgets).collect::<Vec<_>>();
    let numbers = numbers.join("  ");
    if let Some(title) = &one.title {
        let inside = doing.iter().map(|doing| match &doing.title {
            Some(title) => title.as_str(),
            None => doing.action.as_str(),
        });
        let inside = inside.collect::<Vec<_>>().join(", ");
        let _ = writeln!(out, "loop      {title}  {numbers}  {inside}{deadline}");
        let _ = writeln!(out, "  path       {} ({})", one.path, one.kind);
    } else {
        let (path, kind) = (&one.path, &one.kind);
        let _ = writeln!(out, "loop      {path} ({kind})  {numbers}{deadline}");
    }
    if let Some(condition) = &one.condition {
        let read = |read: &windlass_engine::report::Read| {
            let name = with_line_expressions(is_line(&report.workflow), &read.name);
            format!("{name} = {}", output::short(&read.value, VALUE))
        };
        let reads: Vec<String> = condition.reads.iter().map(read).collect();
        let arrow = match (reads.is_empty(), condition.value) {
            (false, _) => format!("   → {}", reads.join(", ")),
            (true, Some(value)) => format!("   → {value}"),
            (true, None) => String::new(),
        };
        let _ = writeln!(
            out,
            "  condition  {}{arrow}",
            output::cut(
                &with_line_expressions(is_line(&report.workflow), &condition.text),
                200
            )
        );
    }
    if let Some(last) = &one.last {
        let changed: Vec<String> = last
            .changed
            .iter()
            .take(4)
            .map(|one| {
                let (from, to) = (output::short(&one.from, 30), output::short(&one.to, 30));
                format!("{} {from} → {to}", one.path)
            })
            .collect();
        let changed = match (changed.is_empty(), last.unchanged) {
            (true, 0) => String::new(),
            (true, times) => format!("   unchanged {times}×"),
            (false, 0) => format!("   changed: {}", changed.join(", ")),
            (false, times) => format!("   changed: {} (unchanged {times}×)", changed.join(", ")),
        };
        let failed = match last.status.as_str() {
            "Succeeded" => String::new(),
            word => format!("{word} "),
        };
        let result = output::brief(&last.result, VALUE);
        let _ = writeln!(out, "  last       {failed}{result}{changed}");
    }
}

/// Returns when something is due.
/// While a run is paused its clocks stop, so the time then counts from the end of the pause.
fn due_text(due: Timestamp, report: &StatusReport) -> String {
    match &report.pause {
        None => format::until(due, report.at),
        Some(pause) => format!("{} after the pause", format::until(due, pause.since)),
    }
}

/// Formats a question: `“Deploy to production?”  choices approve, reject  fields comment`.
fn question_text(question: &QuestionReport) -> String {
    let title = question.title.as_ref().map(|title| format!("“{title}”"));
    let choices = match question.choices.is_empty() {
        true => None,
        false => Some(format!("choices {}", question.choices.join(", "))),
    };
    let fields: Vec<&str> = question
        .fields
        .iter()
        .map(|field| field.name.as_str())
        .collect();
    let fields = match fields.is_empty() {
        true => None,
        false => Some(format!("fields {}", fields.join(", "))),
    };
    let parts: Vec<String> = title.into_iter().chain(choices).chain(fields).collect();
    parts.join("  ")
}

/// Formats an activity: `fetch (http GET …/batch/15)  attempt 2/5  last error 503 at 17:13:50Z  next attempt in 4s`.
fn doing_text(doing: &CurrentActivity, report: &StatusReport, place: &str) -> String {
    let now = report.at;
    let mut parts = Vec::new();
    let due = doing
        .due_at
        .map_or_else(String::new, |due| match report.pause {
            None => format!("{} ({})", format::until(due, now), format::time(due, now)),
            Some(_) => due_text(due, report),
        });
    let mut name = name(doing);
    if let Some(child) = &doing.child {
        let stopped = doing
            .awaits_run
            .as_ref()
            .and_then(|awaited| awaited.stopped);
        let stopped =
            stopped.map_or_else(String::new, |stopped| format!(", which {}", stopped.text()));
        name = format!("{name}  waits for run {child}{stopped}");
    }
    match doing.waits_for.as_str() {
        "delay" => parts.push(format!("next check {due}")),
        "sleep" => parts.push(format!("{name}  until {due}")),
        "signal" if doing.signal.as_deref() == Some(TURN_SIGNAL) => {
            let awaited = doing.awaits_run.as_ref();
            let turn = awaited.map(|awaited| awaited_text(awaited, place));
            parts.push(turn.unwrap_or_else(|| String::from("waits for its turn")));
        }
        "signal" => {
            let signal = doing.signal.as_deref().unwrap_or_default();
            parts.push(format!("{name}  waits for signal `{signal}`"));
            parts.extend(doing.question.as_ref().map(question_text));
            if let Some(since) = doing.since {
                parts.push(format!("since {}", format::time(since, now)));
            }
            if doing.due_at.is_some() {
                parts.push(format!("deadline {due}"));
            }
        }
        "limit" => parts.push(String::from("waits to be resumed with a new budget")),
        _ => parts.push(name),
    }
    if let (Some(attempt), Some(most)) = (doing.attempt, doing.max_attempts) {
        parts.push(format!("attempt {attempt}/{most}"));
    }
    if let Some(error) = &doing.last_error {
        let what = error.code.as_deref().unwrap_or(&error.kind);
        parts.push(format!(
            "last error {what} at {}",
            format::time(error.at, now)
        ));
    }
    match (doing.waits_for.as_str(), doing.since) {
        _ if doing.waits_for_memory => {
            parts.push(String::from(
                "waits for memory: other guest workflows use it",
            ));
        }
        ("retry", _) => parts.push(format!("next attempt {due}")),
        ("call", None) if let Some(wait) = &doing.rate_limit => {
            let (host, position) = (&wait.host, wait.position);
            let due = format::until(wait.begins_at, now);
            let why = match wait.failures {
                None => format!("waits for the rate limit of {host}"),
                Some(failures) => format!("waits for {host}: {failures} calls failed in a row"),
            };
            parts.push(format!("{why}, number {position} in line, {due}"));
        }
        ("call", None) if doing.queued => {
            parts.push(String::from(
                "queued: the maximum number of calls is running",
            ));
        }
        ("call", Some(since)) => parts.push(format!("for {}", format::duration(now.since(since)))),
        _ => {}
    }
    parts.join("  ")
}

/// Returns one line about an unfinished run.
/// It has the run's last loop, its first activity, and the number of other activities.
pub fn waiting_line(report: &StatusReport, place: &str) -> String {
    let loops = report.loops.last().map(|one| {
        let (path, number, most) = (&one.path, one.iteration, one.max_iterations);
        format!("{path} iteration {number}/{most}")
    });
    let doing = report
        .doing
        .first()
        .map(|doing| doing_text(doing, report, place));
    let more = report.doing.len().saturating_sub(1);
    let more = (more > 0).then(|| format!("and {more} more"));
    let parts = [Some(format!("run {}", report.run)), loops, doing, more];
    parts.into_iter().flatten().collect::<Vec<_>>().join("  ")
}

/// Returns a text about the run that must end before another one may proceed, with the command that resumes it.
pub fn awaited_text(awaited: &AwaitedRun, place: &str) -> String {
    awaited.text(&format!("windlass resume{place} {}", awaited.run))
}

fn name(doing: &CurrentActivity) -> String {
    let mut words: Vec<String> = doing.kind.iter().cloned().collect();
    words.extend(doing.method.clone());
    words.extend(doing.uri.as_ref().map(|uri| output::cut(uri, 80)));
    words.extend(doing.detail.as_ref().map(|text| output::cut(text, 60)));
    if words.is_empty() {
        return doing.action.clone();
    }
    format!("{} ({})", doing.action, words.join(" "))
}

/// Returns how late the run is.
/// Returns `None` if nothing is due, or if something else explains the delay.
fn behind(report: &StatusReport) -> Option<Duration> {
    let is_active = report.owned
        && report.outage.is_none()
        && report.status.is_progressing()
        && parked(report).is_none();
    let due = report.next_due_at.filter(|_| is_active)?;
    Some(report.at.since(due))
}

fn tint(status: RunStatus) -> &'static str {
    match status {
        RunStatus::Running | RunStatus::Waiting => "1;36",
        RunStatus::Paused => "1;33",
        RunStatus::Succeeded => "1;32",
        RunStatus::Failed | RunStatus::TimedOut | RunStatus::Cancelled => "1;31",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::next_commands::tests::report;

    #[test]
    fn a_run_that_comes_late_says_so() {
        let shown =
            |due: &str, owned: bool| text(&report(due, owned), "", false, false).to_string();
        let on_temporal = |due: &str| text(&report(due, true), "", false, true).to_string();
        assert!(!on_temporal("2026-11-23T12:00:08.6Z").contains("behind"));
        assert!(on_temporal("2026-11-23T12:00:01Z").contains("behind    by 9s: the worker"));
        let late = shown("2026-11-23T12:00:08.6Z", true);
        assert!(late.contains("behind    by 1"), "{late}");
        assert!(!shown("2026-11-23T12:00:09.9Z", true).contains("behind"));
        assert!(!shown("2026-11-23T12:00:12Z", true).contains("behind"));
        // If no process executes the run, the screen shows this instead of the delay.
        assert!(!shown("2026-11-23T12:00:01Z", false).contains("behind"));
        let mut parked = report("2026-11-23T12:00:01Z", true);
        let label = (String::from("windlass.parked"), String::from("no secret"));
        parked.labels.extend([label]);
        let shown = text(&parked, "", false, false);
        assert!(!shown.to_string().contains("behind"));
    }
}
