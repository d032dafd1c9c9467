//! Follows runs until they end or pause, or until a Unix signal arrives.
//! Progress and errors are written to standard error, events and results to standard output. A Unix signal stops the
//! process, not a run.

use super::access::reconnecting;
use super::args::{EventArgs, Global, HandlerArgs, Output, OwnerArgs};
use super::exit::{Exit, Failure};
use super::format;
use super::oneliner::{is_line, with_line_expressions};
use super::output::{self, Format, Screen};
use super::progress::Progress;
use super::session::{Feed, FeedItem, FollowMode, Session, Setup};
use super::signals::{Signals, while_writing};
use super::status::{awaited_text, waiting_line};
use serde_json::json;
use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::io::IsTerminal;
use std::pin::pin;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::Instant;
use windlass_engine::report::{OutcomeReport, PauseReport};
use windlass_engine::{Notice, Retry, RunStatus, TerminalText, Timestamp, Value, now};
use windlass_value::one_line;

/// Interval at which the lines of a terminal are redrawn.
const TICK: Duration = Duration::from_millis(500);

/// Interval of the checks that the directory of the store still exists.
const STORE_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Maximum number of runs for which the log lists what they wait for. Further runs are only counted.
const MAX_WAITING: usize = 20;

/// How many times in a row the connection of a run may be lost because its owner has ended.
const MAX_LOST: u32 = 20;

/// The same maximum for a server (`--server`), which may need two minutes until it is available again.
const MAX_LOST_REMOTE: u32 = 240;

/// Number of lost connections in a row after which this is reported to the user.
const REPORT_AFTER_LOSSES: u32 = 2;

/// Time after which a failed attempt is reported again, if it is the same as before.
const AGAIN: Duration = Duration::from_secs(60);

/// Interval of the lines that say what a run waits for.
const WAITING: Duration = Duration::from_secs(60);

/// Time until a command says that a run waits for a rate limit or a signal. For a rate limit, it says so only if the wait
/// is at least this long.
const RATE_LIMIT: Duration = Duration::from_secs(2);

/// Maximum number of printed lines of commands that are remembered.
const SHOWN: usize = 1_000;

/// How long to wait for the notice that a run has ended, if its end is already durable.
const END_NOTICE_TIMEOUT: Duration = Duration::from_secs(5);

/// What is shown of the followed runs.
pub struct View {
    /// The flag that selects the store or the server. It is a part of the commands that are suggested to the user.
    pub target: String,
    /// Flags such as ` --handlers FILE`, as far as the user set them. They are a part of the commands that are
    /// suggested to the user.
    needs: String,
    /// Whether the runs are on Temporal.
    on_temporal: bool,
    pub screen: Screen,
    /// The format of results.
    pub format: Format,
    /// Whether events are printed.
    events: bool,
    /// Whether the runs are of a one-line command such as `poll`. Then a result that is text is printed as plain
    /// text.
    plain: bool,
    /// Whether results are printed.
    results: bool,
}

impl View {
    /// Returns the view that the flags describe.
    pub fn new(
        global: &Global,
        screen: Screen,
        handlers: &HandlerArgs,
        events: &EventArgs,
        output: &Output,
    ) -> Self {
        Self {
            target: target_flag(global),
            needs: handler_flags(handlers),
            on_temporal: global.engine.is_some(),
            screen,
            format: output.output,
            events: events.events.is_some(),
            plain: false,
            results: true,
        }
    }

    /// Returns the view of a command that may own the store.
    pub fn of_owner(global: &Global, screen: Screen, owner: &OwnerArgs) -> Self {
        Self::new(
            global,
            screen,
            &owner.handlers,
            &owner.events,
            &owner.output,
        )
    }

    /// Returns this view, with results that are not printed.
    pub fn without_result(self) -> Self {
        Self {
            results: false,
            ..self
        }
    }

    /// Returns this view for the run of a one-line command such as `poll`.
    pub fn plain(self) -> Self {
        Self {
            plain: true,
            ..self
        }
    }
}

/// Follows existing runs of the store.
/// `begin` resumes or starts the runs and returns their ids.
pub async fn follow_existing(
    global: &Global,
    screen: Screen,
    args: &OwnerArgs,
    begin: impl AsyncFnOnce(&mut Session, &View) -> Result<Vec<String>, Failure>,
) -> Result<Exit, Failure> {
    let view = View::of_owner(global, screen, args);
    let setup = Setup::existing(global, screen, args)?;
    in_session(setup, &args.handlers, async |session, signals| {
        let runs = begin(session, &view).await?;
        follow(session, &runs, &view, signals).await
    })
    .await
}

/// Works with existing runs in a session with the store, and closes the session.
pub async fn in_session<T>(
    setup: Setup,
    handlers: &HandlerArgs,
    work: impl AsyncFnOnce(&mut Session, &mut Signals) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let mut session = Session::attach(setup).await?;
    session.warn_ignored_flags(handlers, false);
    let mut signals = Signals::new()?;
    let done = work(&mut session, &mut signals).await;
    session.close(&mut signals).await;
    done
}

/// If a run waits because its workflow limits the number of concurrent runs, prints which run must end first.
pub async fn say_awaited(session: &Session, view: &View, run: &str) {
    if let Some(awaited) = session.awaited_run(run).await {
        let turn = awaited_text(&awaited, &view.target);
        view.screen.say(format!("run {run} {turn}"));
    }
}

/// Follows runs that were started or resumed; returns the worst exit code.
pub async fn follow(
    session: &mut Session,
    runs: &[String],
    view: &View,
    signals: &mut Signals,
) -> Result<Exit, Failure> {
    let (feed, mut items) = mpsc::channel(256);
    let mut following = Following {
        view,
        unfinished: BTreeMap::new(),
        progress: Progress::new(view.screen, runs.len() > 1),
        worst: Exit::Succeeded,
        shown: VecDeque::new(),
        last_attempt: None,
    };
    for run in runs {
        session
            .watch(run, following.follow_mode(0), feed.clone())
            .await?;
        following
            .unfinished
            .insert(run.clone(), UnfinishedRun::default());
    }
    let mut tick = tokio::time::interval(TICK);
    let first = match view.screen.verbose {
        0 => WAITING,
        _ => RATE_LIMIT,
    };
    let mut waiting = tokio::time::interval_at(Instant::now() + first, WAITING);
    let mut rate_limits = tokio::time::interval_at(Instant::now() + RATE_LIMIT, WAITING);
    let is_log = !view.screen.live && !view.plain;
    let mut store_check = tokio::time::interval(STORE_CHECK_INTERVAL);
    let live = following.progress.is_live();
    while !following.unfinished.is_empty() {
        tokio::select! {
            next = items.recv() => match next {
                Some((run, FeedItem::Lost)) => following.reattach(&run, session, &feed).await?,
                Some((run, item)) => {
                    // If the store is gone, `resume` cannot continue the run, so its hint is another one.
                    if matches!(item, FeedItem::Notice(Notice::Stuck { store: true, .. })) {
                        session.check_present().await?;
                    }
                    following.show_item(&run, item)?;
                }
                None => break,
            },
            () = signals.next() => {
                following.handle_signal(session, &mut items, signals).await?;
                break;
            }
            () = session.drain_for_server() => session.release().await,
            _ = store_check.tick() => session.check_present().await?,
            _ = tick.tick(), if live => following.progress.draw(now()),
            _ = waiting.tick(), if is_log => following.say_waiting(session).await,
            _ = rate_limits.tick(), if !is_log => following.say_waits(session).await,
        }
    }
    following.progress.clear();
    Ok(following.worst)
}

/// A run that has not ended.
#[derive(Default)]
struct UnfinishedRun {
    /// The number of the last event that was printed.
    event: u64,
    /// Number of lost connections since the last notice about the run.
    lost: u32,
}

struct Following<'a> {
    view: &'a View,
    /// The runs that have not ended, by id.
    unfinished: BTreeMap<String, UnfinishedRun>,
    progress: Progress,
    worst: Exit,
    /// The last lines of commands that were shown, at most [`SHOWN`].
    shown: VecDeque<String>,
    /// The failed attempt that was reported last, and the time of the report.
    last_attempt: Option<(String, Timestamp)>,
}

impl Following<'_> {
    /// Returns how to follow a run. The events up to number `event` were already printed.
    fn follow_mode(&self, event: u64) -> FollowMode {
        match self.view.events {
            true => FollowMode::Events(event),
            false if self.progress.shows_steps() => FollowMode::Steps,
            false => FollowMode::End,
        }
    }

    fn show_item(&mut self, run: &str, item: FeedItem) -> Result<(), Failure> {
        let Some(unfinished) = self.unfinished.get_mut(run) else {
            return Ok(());
        };
        unfinished.lost = 0;
        match item {
            FeedItem::Notice(Notice::Step {
                loops,
                began,
                retry,
                ..
            }) => {
                self.progress.update(run, loops, began, now());
                let screen = self.view.screen;
                let shown = self.view.plain || screen.verbose > 0 || !screen.live;
                if let Some(retry) = retry.filter(|_| shown) {
                    self.failed_attempt(run, retry);
                }
                Ok(())
            }
            FeedItem::Notice(Notice::Event { sequence, event }) => {
                unfinished.event = sequence;
                let text = output::json(&event);
                while_writing(self.view.screen, || output::print_exact(text))
            }
            FeedItem::Notice(Notice::Printed { action, text, .. }) => {
                self.printed(&action, text);
                Ok(())
            }
            FeedItem::Notice(Notice::Finished { outcome }) => self.finished(run, &outcome),
            FeedItem::Notice(Notice::Paused { pause }) => {
                self.ended(run, Exit::Unfinished);
                self.report_paused(run, &pause)
            }
            FeedItem::Notice(Notice::Stuck { store, message }) => {
                let exit = if store { Exit::Store } else { Exit::Invalid };
                self.ended(run, exit);
                let hint = match self.view.on_temporal {
                    true => format!(
                        "the run continues on a worker that has what it needs: {}",
                        self.command("status", run)
                    ),
                    false => {
                        let resume = self.resume(run);
                        format!("the run continues from the state in the store: {resume}")
                    }
                };
                self.progress.clear();
                self.view.screen.fail(&message, Some(&hint));
                Ok(())
            }
            FeedItem::Lost => Ok(()),
            FeedItem::Failed(failure) => Err(failure),
        }
    }

    /// Shows a line that a command of a run printed.
    /// For a one-line command it is shown unchanged. For other runs it is shown only with `-v`.
    fn printed(&mut self, action: &str, text: String) {
        if self.view.plain {
            self.progress.say(text.clone());
            self.shown.push_back(text);
            if self.shown.len() > SHOWN {
                self.shown.pop_front();
            }
        } else if self.view.screen.verbose > 0 {
            self.progress.say(format!("{action} | {text}"));
        }
    }

    /// Reports that an attempt failed and that another one follows.
    /// A log has every failure. Otherwise, the same failure is reported once a minute.
    fn failed_attempt(&mut self, run: &str, retry: Retry) {
        let Retry {
            action,
            error,
            next_at,
        } = retry;
        let now = now();
        let error = with_line_expressions(self.is_of_a_line(run), &error);
        let what = match self.view.plain {
            true => format!("an attempt failed: {error}"),
            false => format!("an attempt of `{action}` failed: {error}"),
        };
        let is_log = !self.view.screen.live && !self.view.plain;
        let what = if is_log { one_line(&what) } else { what };
        let previous = self.last_attempt.as_ref().filter(|_| !is_log);
        if previous.is_some_and(|(last, at)| *last == what && now < at.plus(AGAIN)) {
            return;
        }
        let next = format!("next attempt {}", format::until(next_at, now));
        let gap = if what.contains('\n') { "\n" } else { "; " };
        self.progress.say(format!("{what}{gap}{next}"));
        self.last_attempt = Some((what, now));
    }

    /// Writes to the log what each run waits for.
    async fn say_waiting(&self, session: &Session) {
        for run in self.unfinished.keys().take(MAX_WAITING) {
            if let Some(report) = session.status(run).await {
                self.progress.say(waiting_line(&report, &self.view.target));
            }
        }
        let more = self.unfinished.len().saturating_sub(MAX_WAITING);
        if more > 0 {
            self.progress.say(format!("and {more} more runs"));
        }
    }

    /// Says which runs wait for a rate limit or a signal, because they do nothing meanwhile.
    async fn say_waits(&self, session: &Session) {
        for run in self.unfinished.keys().take(MAX_WAITING) {
            let Some(report) = session.status(run).await else {
                continue;
            };
            let waits = report.doing.iter().any(|doing| {
                let wait = doing.rate_limit.as_ref();
                let wait = wait.map(|wait| wait.begins_at.since(now()));
                doing.signal.is_some() || wait.is_some_and(|wait| wait >= RATE_LIMIT)
            });
            if waits {
                self.progress.say(waiting_line(&report, &self.view.target));
            }
        }
    }

    /// Returns whether the run belongs to a one-line command, even if the user chose the run's id.
    fn is_of_a_line(&self, run: &str) -> bool {
        self.view.plain || is_line(run)
    }

    /// Returns whether the result is the same as the last lines that were already shown on this terminal.
    fn was_shown(&self, result: &str) -> bool {
        let lines: Vec<&str> = result.lines().collect();
        let all = self.shown.iter().map(String::as_str);
        std::io::stdout().is_terminal()
            && all
                .skip(self.shown.len().saturating_sub(lines.len()))
                .eq(lines)
    }

    /// Follows the run again after its owner has ended.
    /// This is done at the next owner, or in this process if it becomes the owner.
    async fn reattach(
        &mut self,
        run: &str,
        session: &mut Session,
        feed: &Feed,
    ) -> Result<(), Failure> {
        let Some(unfinished) = self.unfinished.get_mut(run) else {
            return Ok(());
        };
        unfinished.lost += 1;
        let on_temporal = self.view.on_temporal;
        let remote = on_temporal || session.is_remote();
        let name = match on_temporal {
            true => "Temporal",
            false => "the server",
        };
        if remote && unfinished.lost == REPORT_AFTER_LOSSES {
            self.view.screen.say(reconnecting(name));
        }
        if remote && unfinished.lost > MAX_LOST_REMOTE {
            let message = format!("{name} is still unavailable; run {run} continues on it");
            return Err(Failure::Taken(message));
        }
        if !remote && unfinished.lost > MAX_LOST {
            let message = format!("run {run} stopped without an end");
            return Err(Failure::Machine(std::io::Error::other(message)));
        }
        let event = unfinished.event;
        let runs: Vec<String> = self.unfinished.keys().cloned().collect();
        session.renew(&runs).await?;
        session.resume_elsewhere(run).await;
        say_awaited(session, self.view, run).await;
        session
            .watch(run, self.follow_mode(event), feed.clone())
            .await
    }

    fn ended(&mut self, run: &str, exit: Exit) {
        self.unfinished.remove(run);
        self.progress.forget(run, now());
        self.worst = self.worst.max(exit);
    }

    fn finished(&mut self, run: &str, outcome: &OutcomeReport) -> Result<(), Failure> {
        self.ended(run, Exit::of_outcome(outcome));
        self.progress.clear();
        let screen = self.view.screen;
        if let Some(error) = &outcome.error {
            let place = error.place();
            let gap = if place.is_empty() { "" } else { "\n  at " };
            let head = screen.tint("1;31", outcome.status.as_str());
            let message = with_line_expressions(self.is_of_a_line(run), &error.message);
            screen.say(head.and(format!(": {message}{gap}{place}")));
            let mut line = TerminalText::from("  ");
            let look = format!(" {}", self.command("status", run));
            line.push(&screen.tint("34", "see").and(look));
            screen.say(line);
        }
        for file in &outcome.unreplaced {
            screen.say(format!("  {}", file.text()));
        }
        for limit in &outcome.limits {
            screen.warn(&limit.text());
        }
        for ending in &outcome.failed_endings {
            screen.warn(&ending.text());
        }
        for cancel in &outcome.failed_cancels {
            screen.warn(&cancel.text());
        }
        for items in &outcome.failed_items {
            screen.warn(&items.message);
            screen.say(format!(
                "  see {}",
                self.command("retry --failed-items", run)
            ));
        }
        if outcome.error.is_none() && screen.verbose > 0 {
            screen.say(screen.tint("1;32", "Succeeded").and(format!(" {run}")));
        }
        let mut outcome = outcome.clone();
        if let Some(error) = &mut outcome.error {
            error.message = with_line_expressions(self.is_of_a_line(run), &error.message);
        }
        while_writing(screen, || self.print(run, &outcome))
    }

    /// Prints the result of a run on standard output.
    fn print(&self, run: &str, outcome: &OutcomeReport) -> Result<(), Failure> {
        let document = outcome.document();
        if self.view.events {
            return output::print_exact(output::json(&json!({ "result": document })));
        }
        match self.view.format {
            Format::Jsonl => {
                let (key, value) = match &outcome.error {
                    None => ("result", document),
                    Some(error) => ("error", error.to_value()),
                };
                let envelope = Value::from_pairs([
                    ("run", Value::from(run)),
                    ("status", Value::from(outcome.status.as_str())),
                    (key, value),
                ]);
                output::document(Format::Jsonl, &envelope)
            }
            _ if !self.view.results => Ok(()),
            Format::Table if self.view.plain && outcome.error.is_some() => Ok(()),
            Format::Table if self.view.plain && document.as_str().is_some() => {
                let text = document.as_str().unwrap_or_default();
                match self.was_shown(text) {
                    true => Ok(()),
                    false => {
                        if text.contains(char::REPLACEMENT_CHARACTER) {
                            let warning = "the output is not all UTF-8: bytes that are not are �";
                            self.view.screen.warn(warning);
                        }
                        output::print_plain(text)
                    }
                }
            }
            format => output::document(format, &document),
        }
    }

    /// Prints that a run is paused, and how to resume it.
    fn report_paused(&mut self, run: &str, pause: &PauseReport) -> Result<(), Failure> {
        let screen = self.view.screen;
        let why = match &*pause.reason {
            "requested" => String::new(),
            _ => format!(": {}", pause.text()),
        };
        let head = screen.tint("1;33", "paused");
        self.progress.say(head.and(format!(" {run}{why}")));
        self.progress.say(format!("resume: {}", self.resume(run)));
        match self.view.format {
            Format::Table => Ok(()),
            _ if self.view.events => Ok(()),
            format => {
                let status = RunStatus::Paused;
                let document = json!({ "run": run, "status": status, "pause": pause });
                output::document(format, &document)
            }
        }
    }

    /// Returns what resumes a run. Only the same command line also prints rows.
    fn resume(&self, run: &str) -> String {
        match self.view.results {
            true => self.command("resume", run) + &self.view.needs,
            false => String::from("enter the same command line again, which prints the rows"),
        }
    }

    fn command(&self, verb: &str, run: &str) -> String {
        format!("windlass {verb}{} {run}", self.view.target)
    }

    /// Handles a Unix signal: the process exits, and the runs stay unfinished.
    /// Runs that another process executes continue there. Runs of this process are left as after a crash, except that
    /// effects in flight have some time to end.
    async fn handle_signal(
        &mut self,
        session: &mut Session,
        items: &mut mpsc::Receiver<(String, FeedItem)>,
        signals: &mut Signals,
    ) -> Result<(), Failure> {
        let on_temporal = self.view.on_temporal;
        if on_temporal || session.is_joined() {
            let left: Vec<String> = self.unfinished.keys().cloned().collect();
            for run in left {
                self.ended(&run, Exit::Unfinished);
                let place = match (on_temporal, session.is_remote()) {
                    (true, _) => "on Temporal",
                    (false, true) => "on the server",
                    (false, false) => "in the process that owns the store",
                };
                let look = self.command("status", &run);
                self.progress
                    .say(format!("run {run} continues {place}: {look}"));
            }
            return Ok(());
        }
        self.progress.say("stopping… (again to leave at once)");
        {
            let mut draining = pin!(session.drain(signals));
            loop {
                tokio::select! {
                    () = &mut draining => break,
                    Some((run, item)) = items.recv() => self.show_item(&run, item)?,
                }
            }
        }
        // If a run has ended while the effects ended, its end is still reported.
        while self.unfinished.keys().any(|run| session.has_ended(run)) {
            match tokio::time::timeout(END_NOTICE_TIMEOUT, items.recv()).await {
                Ok(Some((run, item))) => self.show_item(&run, item)?,
                _ => break,
            }
        }
        let left: Vec<String> = self.unfinished.keys().cloned().collect();
        for run in left {
            self.ended(&run, Exit::Unfinished);
            let head = self.view.screen.tint("1;33", "stopped");
            let resume = self.resume(&run);
            let what = format!(": run {run} is unfinished, and its deadlines keep running");
            self.progress.say(head.and(what));
            self.progress.say(format!("resume it: {resume}"));
        }
        Ok(())
    }
}

/// Returns ` --state DIR`, ` --server URL` or ` --engine URL`, quoted for a shell. Returns an empty text for the default
/// store.
pub fn target_flag(global: &Global) -> String {
    match (&global.server, &global.engine) {
        (Some(url), _) => flag("--server", url),
        (None, Some(url)) => flag("--engine", url),
        _ if global.state.as_os_str() == "state" => String::new(),
        _ => flag("--state", &global.state.display().to_string()),
    }
}

/// Returns the flags with the handlers, secrets and stubs that a run needs to continue, quoted for a shell.
fn handler_flags(args: &HandlerArgs) -> String {
    let given = [
        ("--handlers", &args.handlers),
        ("--secrets", &args.secrets),
        ("--stub", &args.stub),
    ];
    let given = given
        .into_iter()
        .filter_map(|(name, path)| Some(flag(name, &path.as_ref()?.display().to_string())));
    let command = args.secret_command.as_ref();
    let command = command.map(|line| flag("--secret-command", line));
    given.chain(command).collect()
}

fn flag(flag: &str, shown: &str) -> String {
    format!(" {flag} {}", quoted(shown))
}

/// Quotes an argument for a shell if this is necessary.
pub fn quoted(shown: &str) -> Cow<'_, str> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+@:,".contains(c);
    match !shown.is_empty() && shown.chars().all(plain) {
        true => Cow::Borrowed(shown),
        false => Cow::Owned(format!("'{}'", shown.replace('\'', "'\\''"))),
    }
}
