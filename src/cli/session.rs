//! A session with the store whose runs this command continues.
//! Either this process owns the store, or it has joined the owner (another process) and sends requests to it. If the
//! owner ends, a process that has joined it becomes the owner, so that the runs continue.

mod start;

pub use start::{NewRun, Source};

use super::access::{OwnerOrStore, RETRY_EVERY, RETRY_TIME, owner_or, remote};
use super::args::{Global, HandlerArgs, LoadArgs, OwnerArgs};
use super::exit::Failure;
use super::inputs;
use super::output::Screen;
use super::policy::GuestArgs;
use super::remote_engine;
use super::signals::Signals;
use std::collections::HashMap;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::time::Instant;
use windlass_engine::report::{AwaitedRun, ListFilter, ListReport, StatusReport, list, status};
use windlass_engine::{
    CONCURRENCY_LABEL, Engine, EngineError, ErrorCode, Follower, LoadOptions, Notice, Run,
    RunStatus, StoreKind, Workflow, now,
};
use windlass_server::ControlSocket;
use windlass_server::client::{Client, ClientError};

/// Maximum time for effects in flight to end when this process exits.
const GRACE: Duration = Duration::from_secs(3);

/// Maximum time for effects in flight to end when a server requests the store. No run makes progress in this time.
const RELEASE_TIME: Duration = Duration::from_secs(10);

/// Time after which a server that does not answer is tried again.
const RECONNECT_DELAY: Duration = Duration::from_millis(500);

/// Maximum number of runs of another process that are followed at the same time.
const MAX_FOLLOWED: usize = 64;

/// How much is reported about a followed run.
#[derive(Clone, Copy)]
pub enum FollowMode {
    /// Pauses, the end of the run, and what its commands print.
    End,
    /// The pauses, the end, what commands print, and the steps.
    Steps,
    /// Everything in `Steps`, and the events of the history after the event of this number.
    Events(u64),
}

/// An item about a followed run.
pub enum FeedItem {
    /// Something happened to the run.
    Notice(Notice),
    /// The connection ended before the run has ended.
    Lost,
    /// The run cannot be followed.
    Failed(Failure),
}

/// The channel for the items of all followed runs, each with the run's id.
pub type Feed = mpsc::Sender<(String, FeedItem)>;

/// How to open the store if this process becomes its owner. It also has the server or engine that is used instead of a
/// store.
#[derive(Clone)]
pub struct Setup {
    pub state: PathBuf,
    /// The database that `--store` names, if it names one.
    pub store: Option<StoreKind>,
    /// The server that is used instead of a local store (`--server`).
    pub server: Option<Client>,
    /// The address of the engine that has the runs (`--engine`), instead of a local store.
    pub engine: Option<String>,
    /// Whether the store is created if it does not exist.
    pub create: bool,
    /// The handlers, secrets and limits with which workflows are loaded.
    pub options: LoadOptions,
    /// What guests (workflows that are not from the operator) may do.
    pub guest: GuestArgs,
    /// Where warnings are printed.
    pub screen: Screen,
}

impl Setup {
    /// Returns the setup of a command with no permissions for guests. `server` is used instead of a store.
    pub fn new(
        global: &Global,
        screen: Screen,
        server: Option<Client>,
        options: LoadOptions,
        create: bool,
    ) -> Self {
        Self {
            state: global.state.clone(),
            store: global.store,
            server,
            engine: global.engine.clone(),
            create,
            options,
            guest: GuestArgs::default(),
            screen,
        }
    }

    /// Returns the setup for a command about existing runs.
    pub fn existing(global: &Global, screen: Screen, args: &OwnerArgs) -> Result<Self, Failure> {
        let load = LoadArgs {
            env: args.env.clone(),
            ..LoadArgs::default()
        };
        let server = remote(global)?;
        let options = inputs::options(global, &load, &args.handlers)?;
        Ok(Self {
            guest: args.guest.clone(),
            ..Self::new(global, screen, server, options, false)
        })
    }

    fn open(&self, create: bool) -> Result<Engine, EngineError> {
        let builder = inputs::engine(&self.options, &self.guest);
        let builder = inputs::with_store_kind(builder, self.store);
        match create {
            true => builder.open(&self.state),
            false => builder.open_existing(&self.state),
        }
    }

    /// Returns the client of the server. Without a server, returns that of the store's owner, over its control
    /// socket.
    /// The owner may be this process.
    pub async fn client(&self) -> Result<Client, ClientError> {
        match &self.server {
            Some(server) => Ok(server.clone()),
            None => Client::for_state_dir(&self.state)
                .await?
                .ok_or(ClientError::Lost),
        }
    }
}

/// A store whose runs this command continues. This process owns the store, or has joined its owner.
pub struct Session {
    setup: Setup,
    role: Role,
    /// Whether [`Session::drain`] was already called, and has waited for effects in flight.
    drained: bool,
    /// Whether a server has requested the store that this process took over from another owner.
    requested: watch::Sender<bool>,
    /// The runs that were started in this process and are not followed yet. Their followers receive everything from
    /// the first step.
    started: Mutex<HashMap<String, Run>>,
}

enum Role {
    Owned {
        engine: Arc<Engine>,
        socket: Option<ControlSocket>,
    },
    Joined {
        /// Limits the number of connections, because each followed run of another process uses one.
        connections: Arc<Semaphore>,
    },
}

impl Session {
    /// Joins the owner of the store. If the store has no owner, this process becomes the owner.
    pub async fn attach(setup: Setup) -> Result<Self, Failure> {
        let role = Self::take_role(&setup, setup.create, None).await?;
        Ok(Self {
            setup,
            role,
            drained: false,
            requested: watch::Sender::new(false),
            started: Mutex::default(),
        })
    }

    /// Joins the owner of the store, or becomes the owner. If a server may have the store before the end,
    /// `requested` says whether one has requested it.
    async fn take_role(
        setup: &Setup,
        create: bool,
        requested: Option<watch::Sender<bool>>,
    ) -> Result<Role, Failure> {
        if setup.server.is_some() {
            let connections = Arc::new(Semaphore::new(MAX_FOLLOWED));
            return Ok(Role::Joined { connections });
        }
        if let Some(at) = &setup.engine {
            let builder = inputs::engine(&setup.options, &setup.guest);
            let key = setup.options.state_key.clone();
            let engine = Arc::new(remote_engine::engine(builder, at, key, None)?);
            let socket = None;
            return Ok(Role::Owned { engine, socket });
        }
        let engine = match owner_or(&setup.state, || setup.open(create)).await? {
            OwnerOrStore::Owner(_) => {
                let connections = Arc::new(Semaphore::new(MAX_FOLLOWED));
                return Ok(Role::Joined { connections });
            }
            OwnerOrStore::Here(engine) => Arc::new(engine),
        };
        // The socket is opened before anything else, so that other commands do not have to wait for it.
        let socket = ControlSocket::open(&setup.state, Arc::clone(&engine), requested);
        let socket = socket
            .inspect_err(|error| {
                let message = format!("other commands cannot ask this process: {error}");
                setup.screen.warn(&message);
            })
            .ok();
        Ok(Role::Owned { engine, socket })
    }

    /// Warns of flags that have no effect, because another process executes the runs.
    pub fn warn_ignored_flags(&self, args: &HandlerArgs, start: bool) {
        if !self.is_joined() {
            return;
        }
        let env = &self.setup.options.allow_env;
        let given = [
            ("--allow-env", start && !env.is_empty()),
            ("--handlers", !start && args.handlers.is_some()),
            ("--stub", !start && args.stub.is_some()),
            ("--secrets", args.secrets.is_some()),
            ("--secret-command", args.secret_command.is_some()),
            ("--rate", !args.rate.is_empty()),
        ];
        for (flag, _) in given.iter().filter(|(_, given)| *given) {
            self.setup.screen.warn(&format!(
                "{flag} is ignored: another process owns the store and uses its own options"
            ));
        }
    }

    /// Says that the environment and the secrets are those of another process, if one executes the runs of this
    /// workflow here. Requests read the proxy and the certificates from the environment.
    pub fn note_environment(&self, workflow: &Workflow) {
        let mut actions = workflow.program().actions.iter();
        let reads = |label: &str| {
            ["http", "shell"]
                .iter()
                .any(|it| label.eq_ignore_ascii_case(it))
        };
        let has_environment = actions.any(|action| reads(&action.label));
        let text = workflow.bundle().file(0).map_or("", |file| &file.text);
        if (has_environment || text.contains("secret")) && self.is_joined() && !self.is_remote() {
            self.setup.screen.say(
                "note: another process owns the store and executes the run, with its own environment and secrets",
            );
        }
    }

    /// Returns whether another process executes the runs. It is the owner of the store, or a server.
    pub fn is_joined(&self) -> bool {
        matches!(self.role, Role::Joined { .. })
    }

    /// Returns a failure if the store that this process owns is no longer at the path where it was opened.
    pub async fn check_present(&self) -> Result<(), Failure> {
        match &self.role {
            Role::Owned { engine, .. } => Ok(engine.in_place().await?),
            Role::Joined { .. } => Ok(()),
        }
    }

    /// Returns whether the session uses a server (`--server`) instead of a local store.
    pub fn is_remote(&self) -> bool {
        self.setup.server.is_some()
    }

    /// Finds a new owner after the owner has ended.
    /// It joins the next owner, or becomes the owner. If it becomes the owner, it resumes those of `runs` that are
    /// not paused.
    pub async fn renew(&mut self, runs: &[String]) -> Result<(), Failure> {
        if !self.is_joined() {
            return Ok(());
        }
        // The store is not created here, because a store that was removed must stay removed.
        // The runs were started for another owner, with its environment. So a server that starts again gets them back.
        self.requested = watch::Sender::new(false);
        let requested = Some(self.requested.clone());
        self.role = Self::take_role(&self.setup, false, requested)
            .await
            .map_err(|failure| match failure {
                Failure::Engine(EngineError::NoStore(path)) => Failure::Taken(format!(
                    "the store in {} is gone, and so is the process that owned it",
                    path.display()
                )),
                other => other,
            })?;
        let Role::Owned { engine, .. } = &self.role else {
            return Ok(());
        };
        if !runs.is_empty() {
            self.setup.screen.say(
                "note: the process that owned the store has ended; this process owns it now and executes the run",
            );
        }
        for run in runs {
            let status = engine.inspector().header(run)?.status;
            // A paused run stays paused.
            if status.is_progressing() {
                engine.resume(run).await?;
            }
        }
        Ok(())
    }

    /// Resumes a run at the next owner, after an owner has ended.
    /// Does nothing if the run is paused or a server is used.
    pub async fn resume_elsewhere(&self, run: &str) {
        if !self.is_joined() || self.is_remote() {
            return;
        }
        // If the next owner has ended as well, the follower of the run reports it.
        let Ok(client) = self.setup.client().await else {
            return;
        };
        let status = client.status(run).await.map(|report| report.status);
        // A paused run stays paused.
        if status.is_ok_and(RunStatus::is_progressing) {
            let _ = client.resume(run).await;
        }
    }

    /// Returns the status of a run.
    /// Returns `None` after an error, which the follower of the run reports.
    pub async fn status(&self, run: &str) -> Option<StatusReport> {
        match &self.role {
            Role::Owned { engine, .. } => status(engine.inspector(), run, now()).ok(),
            Role::Joined { .. } => self.setup.client().await.ok()?.status(run).await.ok(),
        }
    }

    /// Returns the run that must end before `run` may proceed, if `run` waits for its turn.
    /// Errors are ignored, because the follower of the run reports them.
    pub async fn awaited_run(&self, run: &str) -> Option<AwaitedRun> {
        let report = self.status(run).await?;
        let mut doing = report.doing.into_iter();
        doing.find_map(|doing| doing.awaits_run)
    }

    /// Sends a request to the owner.
    /// If the owner has ended, sends it to the next owner. If no other process is the owner, this process becomes it.
    async fn send_request<T>(
        &mut self,
        send: impl AsyncFn(&Client) -> Result<T, ClientError>,
    ) -> Result<OwnerReply<T>, Failure> {
        let patience = Instant::now() + RETRY_TIME;
        loop {
            if let Role::Owned { engine, .. } = &self.role {
                let engine = Arc::clone(engine);
                return Ok(OwnerReply::Owned { engine });
            }
            let answer = match self.setup.client().await {
                Ok(client) => send(&client).await,
                Err(error) => Err(error),
            };
            match answer {
                Err(error)
                    if error.is_gone()
                        && (self.setup.server.is_none() || Instant::now() < patience) =>
                {
                    tokio::time::sleep(RETRY_EVERY).await;
                    self.renew(&[]).await?;
                }
                other => return Ok(OwnerReply::Answered(other?)),
            }
        }
    }

    /// Returns the name of a run's workflow.
    pub async fn workflow_of(&mut self, run: &str) -> Result<String, Failure> {
        match self
            .send_request(async |client| client.status(run).await)
            .await?
        {
            OwnerReply::Answered(report) => Ok(report.workflow),
            OwnerReply::Owned { engine } => {
                Ok(engine.inspector().header(run)?.workflow.to_string())
            }
        }
    }

    /// Returns whether a run has this program (a hash of the workflow) and has not ended.
    pub async fn is_unfinished(&mut self, run: &str, program: &str) -> Result<bool, Failure> {
        let reply = self
            .send_request(async |client| client.status(run).await)
            .await?;
        let (own, status) = match reply {
            OwnerReply::Answered(report) => (report.program, report.status),
            OwnerReply::Owned { engine } => {
                let header = engine.inspector().header(run)?;
                (header.program.to_string(), header.status)
            }
        };
        Ok(own == program && !status.is_final())
    }

    /// Resumes a run. Does nothing if the run has ended.
    pub async fn resume(&mut self, run: &str) -> Result<(), Failure> {
        let resumed = match self
            .send_request(async |client| client.resume(run).await)
            .await
        {
            Ok(OwnerReply::Owned { engine }) => {
                engine.resume(run).await.map(drop).map_err(Failure::from)
            }
            other => other.map(drop),
        };
        match resumed {
            Err(failure) if failure.code() == Some(ErrorCode::RunEnded) => Ok(()),
            other => other,
        }
    }

    /// Resumes every unfinished run, and returns their ids. Paused runs are included if `paused` is true.
    pub async fn resume_all(&mut self, paused: bool) -> Result<Vec<String>, Failure> {
        match self
            .send_request(async |client| client.recover(paused).await)
            .await?
        {
            OwnerReply::Answered(runs) => Ok(runs),
            OwnerReply::Owned { engine } => {
                // Runs that wait for a time or for their turn continue only while a process owns the store.
                let mut runs: Vec<String> = engine.inspector().run_index(|index| {
                    let waiting = index.all().filter(|run| {
                        run.status.is_progressing()
                            && !run.is_parked()
                            && (run.due_at().is_some()
                                || run.labels().contains_key(CONCURRENCY_LABEL))
                    });
                    waiting.map(|run| run.id.to_string()).collect()
                })?;
                let continued = engine.recover(paused).await?;
                runs.extend(continued.iter().map(ToString::to_string));
                runs.sort();
                runs.dedup();
                Ok(runs)
            }
        }
    }

    /// Returns the runs that a filter selects.
    pub async fn list(&mut self, filter: &ListFilter) -> Result<ListReport, Failure> {
        match self
            .send_request(async |client| client.list(filter).await)
            .await?
        {
            OwnerReply::Answered(report) => Ok(report),
            OwnerReply::Owned { engine } => Ok(list(engine.inspector(), filter)?),
        }
    }

    /// Returns whether the run has ended.
    /// Always false if this process does not own the store.
    pub fn has_ended(&self, run: &str) -> bool {
        match &self.role {
            Role::Owned { engine, .. } => engine
                .inspector()
                .header(run)
                .is_ok_and(|header| header.status.is_final()),
            Role::Joined { .. } => false,
        }
    }

    /// Sends the notices of a run to `feed`. `wanted` determines which notices are included.
    #[allow(
        clippy::disallowed_methods,
        reason = "a run that is followed has a task of its own"
    )]
    pub async fn watch(&self, run: &str, wanted: FollowMode, feed: Feed) -> Result<(), Failure> {
        let events = match wanted {
            FollowMode::Events(after) => Some(after),
            FollowMode::End | FollowMode::Steps => None,
        };
        match &self.role {
            Role::Owned { engine, .. } => {
                let started = || {
                    let mut started = self.started.lock().unwrap_or_else(PoisonError::into_inner);
                    started.remove(run)
                };
                let follower = match started() {
                    Some(run) => Ok(engine.follow_from_start(run, events)),
                    None => engine.follow(run, events).await,
                };
                let mut follower = match follower {
                    Err(EngineError::Outage(_)) => None,
                    other => Some(other?),
                };
                if matches!(wanted, FollowMode::End) {
                    follower = follower.map(Follower::without_steps);
                }
                let (run, on_temporal) = (run.to_owned(), self.setup.engine.is_some());
                tokio::spawn(async move {
                    loop {
                        let next = match &mut follower {
                            Some(follower) => follower.next().await,
                            None => Ok(None),
                        };
                        let item = match next {
                            Ok(Some(notice)) => FeedItem::Notice(notice),
                            Ok(None) | Err(EngineError::Outage(_)) => FeedItem::Lost,
                            Err(error) => FeedItem::Failed(error.into()),
                        };
                        let last = !matches!(item, FeedItem::Notice(_));
                        if on_temporal && matches!(item, FeedItem::Lost) {
                            tokio::time::sleep(RECONNECT_DELAY).await;
                        }
                        if feed.send((run.clone(), item)).await.is_err() || last {
                            return;
                        }
                    }
                });
            }
            Role::Joined { connections } => {
                let (run, setup) = (run.to_owned(), self.setup.clone());
                let connections = Arc::clone(connections);
                tokio::spawn(async move {
                    let permit = connections.acquire_owned().await;
                    let item = match follow_owner(&setup, &run, events, &feed).await {
                        Err(error) if !error.is_outage() => FeedItem::Failed(error.into()),
                        _ => FeedItem::Lost,
                    };
                    if setup.server.is_some() && matches!(item, FeedItem::Lost) {
                        // The server may be about to stop, or about to be available again. So the next attempt is
                        // delayed.
                        tokio::time::sleep(RECONNECT_DELAY).await;
                    }
                    drop(permit);
                    // The result is ignored: the receiver may have been dropped.
                    let _ = feed.send((run, item)).await;
                });
            }
        }
        Ok(())
    }

    /// Waits until a server requests the store, and until the effects in flight have ended, at most for
    /// [`RELEASE_TIME`]. Starts no more effects meanwhile. Then [`Session::release`] must be called.
    pub async fn drain_for_server(&self) {
        // The result is ignored: the session has the sender, so the channel is open.
        let _ = self.requested.subscribe().wait_for(|is| *is).await;
        if let Role::Owned { engine, .. } = &self.role {
            // The result is ignored: the server repeats the effects that have not ended, with the same keys.
            let _ = tokio::time::timeout(RELEASE_TIME, engine.drain()).await;
        }
    }

    /// Releases the store to the server that requested it. [`Session::renew`] then joins the server, or takes the store
    /// over again if the server has ended.
    pub async fn release(&mut self) {
        self.requested = watch::Sender::new(false);
        let connections = Arc::new(Semaphore::new(MAX_FOLLOWED));
        let role = std::mem::replace(&mut self.role, Role::Joined { connections });
        release(role).await;
        let deadline = Instant::now() + RETRY_TIME;
        while Instant::now() < deadline {
            let owner = self.setup.client().await;
            if owner.is_ok_and(|client| client.owner().is_some_and(|owner| owner.serves)) {
                let note = "note: a server has taken the store over, and executes the runs";
                self.setup.screen.say(note);
                return;
            }
            tokio::time::sleep(RETRY_EVERY).await;
        }
    }

    /// Starts no more effects, and waits for those in flight, at most for [`GRACE`] or until a Unix signal arrives. A
    /// second call does nothing.
    pub async fn drain(&mut self, signals: &mut Signals) {
        self.end_effects(EffectsEnd::InGrace, signals).await;
    }

    /// Waits for the effects in flight, unless this was already done, and releases the store.
    /// Effects of other commands may be in flight. They would be repeated if this process aborted them, so it waits
    /// until they end or a Unix signal arrives.
    pub async fn close(mut self, signals: &mut Signals) {
        self.end_effects(EffectsEnd::Whenever, signals).await;
        release(self.role).await;
    }

    async fn end_effects(&mut self, end: EffectsEnd, signals: &mut Signals) {
        let Role::Owned { engine, .. } = &self.role else {
            return;
        };
        if std::mem::replace(&mut self.drained, true) {
            return;
        }
        let mut drained = pin!(engine.drain());
        let mut is_announced = false;
        loop {
            // If the store is gone, no result of an effect can be stored. So the effects have no time to end.
            let grace = engine.in_place().await.map_or(Duration::ZERO, |()| GRACE);
            tokio::select! {
                () = &mut drained => return,
                () = signals.next() => return,
                () = tokio::time::sleep(grace) => {}
            }
            let waits = matches!(end, EffectsEnd::Whenever) && !grace.is_zero();
            if !waits || engine.in_flight().await == 0 {
                return;
            }
            if !std::mem::replace(&mut is_announced, true) {
                self.setup.screen.say(
                    "this process still executes an action for another command, and ends after it (Ctrl-C aborts the \
                     action, which then runs again)",
                );
            }
        }
    }
}

/// Releases the store if this process owns it.
async fn release(role: Role) {
    let Role::Owned { engine, socket } = role else {
        return;
    };
    if let Some(socket) = socket {
        socket.close().await;
    }
    engine.stop().await;
}

/// When the wait for effects in flight ends, at the latest.
#[derive(Clone, Copy)]
enum EffectsEnd {
    /// After [`GRACE`].
    InGrace,
    /// When all effects have ended.
    Whenever,
}

/// How a request to the owner ended.
enum OwnerReply<T> {
    Answered(T),
    /// This process is the owner.
    Owned {
        engine: Arc<Engine>,
    },
}

/// Forwards the notices of a run of another process to `feed`, until the run has ended or is paused.
async fn follow_owner(
    setup: &Setup,
    run: &str,
    events: Option<u64>,
    feed: &Feed,
) -> Result<(), ClientError> {
    let mut notices = setup.client().await?.follow(run, events).await?;
    while let Some(notice) = notices.next().await? {
        let is_progress = matches!(
            notice,
            Notice::Step { .. } | Notice::Event { .. } | Notice::Printed { .. }
        );
        let sent = feed.send((run.to_owned(), FeedItem::Notice(notice))).await;
        if !is_progress || sent.is_err() {
            break;
        }
    }
    Ok(())
}
