//! The store that runs go on in: this process owns it, or has joined the one that does. When the
//! owner goes away, a process that joined it takes its place, so that its runs go on.

use super::access::{PATIENCE, PAUSE, Reach, is_gone, reach};
use super::args::HandlerArgs;
use super::exit::Failure;
use super::output::Screen;
use super::permits::GuestArgs;
use super::signals::Signals;
use crate::engine::report::{ListFilter, ListReport, list};
use crate::engine::{
    Engine, EngineBuilder, EngineError, LoadOptions, Notice, RunStatus, ScheduleError,
    SecretSources, StartOptions, Value, Workflow,
};
use crate::server::control::{
    Client, ControlError, ControlSocket, FileEntry, HandlerEntry, RefusalKind, Request,
    StartRequest,
};
use crate::server::{Peer, Remote};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Semaphore, mpsc};
use tokio::time::Instant;

/// How long effects in flight may take to end when the process leaves.
const GRACE: Duration = Duration::from_secs(3);

/// A server elsewhere that is away is looked for again after this time.
const AWAY: Duration = Duration::from_millis(500);

/// So many runs of another process are followed at a time.
const MAX_FOLLOWED: usize = 64;

/// What one who follows runs hears.
pub enum Told {
    /// Of a run.
    Notice(Notice),
    /// Nothing more comes from there, though the run has not ended.
    Lost,
    /// The run cannot be followed.
    Failed(Failure),
}

/// Where notices of several runs come together: the run, and what is told of it.
pub type Feed = mpsc::Sender<(String, Told)>;

/// How a store is opened, should this process come to own it.
pub struct Setup {
    /// The directory.
    pub state: PathBuf,
    /// The server that is asked instead.
    pub server: Option<Remote>,
    /// Whether one is made when there is none.
    pub create: bool,
    /// Handlers and caps.
    pub options: LoadOptions,
    /// What guests may do.
    pub guests: GuestArgs,
    /// Where warnings go.
    pub screen: Screen,
}

impl Setup {
    fn open(&self, create: bool) -> Result<Engine, EngineError> {
        let mut builder: EngineBuilder = self.guests.on(Engine::builder());
        builder = builder.allow_env(&self.options.allow_env);
        for (name, target) in &self.options.handlers {
            builder = builder.register_handler(name, target.clone());
        }
        if let Some(directory) = &self.options.secrets {
            builder = builder.secrets(SecretSources::default().with_directory(directory));
        }
        if let Some(key) = &self.options.state_key {
            builder = builder.state_key(key.clone());
        }
        if create {
            builder.open(&self.state)
        } else {
            builder.open_existing(&self.state)
        }
    }
}

/// A store that runs go on in.
pub struct Session {
    setup: Setup,
    place: Place,
    /// Whether what was in flight has had its time to end.
    drained: bool,
}

enum Place {
    Owned {
        engine: Arc<Engine>,
        socket: Option<ControlSocket>,
    },
    Joined {
        /// Each run that is followed has a connection.
        connections: Arc<Semaphore>,
    },
}

/// A run to be started.
pub struct NewRun<'a> {
    /// Its id.
    pub id: &'a str,
    /// Its workflow, loaded here.
    pub workflow: &'a Workflow,
    /// Its input.
    pub input: &'a Value,
    /// Its labels.
    pub labels: &'a BTreeMap<String, String>,
}

impl Session {
    /// Joins the owner of the store, or becomes it.
    pub async fn attach(setup: Setup) -> Result<Self, Failure> {
        let place = Self::place(&setup, setup.create).await?;
        Ok(Self {
            setup,
            place,
            drained: false,
        })
    }

    async fn place(setup: &Setup, create: bool) -> Result<Place, Failure> {
        if setup.server.is_some() {
            let connections = Arc::new(Semaphore::new(MAX_FOLLOWED));
            return Ok(Place::Joined { connections });
        }
        let engine = match reach(&setup.state, || setup.open(create)).await? {
            Reach::Owner(_) => {
                let connections = Arc::new(Semaphore::new(MAX_FOLLOWED));
                return Ok(Place::Joined { connections });
            }
            Reach::Here(engine) => Arc::new(engine),
        };
        // Before anything else, so that other commands need not wait.
        let socket = ControlSocket::open(&setup.state, Arc::clone(&engine), false);
        let socket = socket
            .inspect_err(|error| {
                let message = format!("other commands cannot ask this process: {error}");
                setup.screen.warn(&message);
            })
            .ok();
        Ok(Place::Owned { engine, socket })
    }

    /// Says what was given to this process and does not reach the one that does the work.
    pub fn say_unused(&self, args: &HandlerArgs, start: bool) {
        if !self.is_joined() {
            return;
        }
        let given = [
            ("--handlers", !start && args.handlers.is_some()),
            ("--stub", !start && args.stub.is_some()),
            ("--secrets", args.secrets.is_some()),
        ];
        for (flag, _) in given.iter().filter(|(_, given)| *given) {
            self.setup.screen.warn(&format!(
                "{flag} is not used: another process owns the store and does the work \
                 with what it was started with"
            ));
        }
    }

    /// Whether another process owns the store.
    pub fn is_joined(&self) -> bool {
        matches!(self.place, Place::Joined { .. })
    }

    /// Whether the store that this process owns is still where it was opened.
    pub async fn in_place(&self) -> Result<(), Failure> {
        match &self.place {
            Place::Owned { engine, .. } => Ok(engine.in_place().await?),
            Place::Joined { .. } => Ok(()),
        }
    }

    /// Whether a server elsewhere is asked.
    pub fn is_remote(&self) -> bool {
        self.setup.server.is_some()
    }

    /// The owner has gone: joins the next one, or becomes it. `runs` go on in any case.
    pub async fn renew(&mut self, runs: &[String]) -> Result<(), Failure> {
        if !self.is_joined() {
            return Ok(());
        }
        // The store that it owned is not to be made anew.
        self.place = Self::place(&self.setup, false)
            .await
            .map_err(|failure| match failure {
                Failure::Engine(EngineError::NoStore(path)) => Failure::Taken(format!(
                    "the store in {} is gone, and so is the process that owned it",
                    path.display()
                )),
                other => other,
            })?;
        let Place::Owned { engine, .. } = &self.place else {
            return Ok(());
        };
        for run in runs {
            let status = engine.inspector().header(run)?.status;
            // What someone paused stays so.
            if status.goes_on() {
                engine.resume(run).await?;
            }
        }
        Ok(())
    }

    /// Asks the owner; should it be gone, whoever owns the store then.
    async fn ask<T: serde::de::DeserializeOwned>(
        &mut self,
        request: &Request,
    ) -> Result<Asked<T>, Failure> {
        let mut lost = false;
        let patience = Instant::now() + PATIENCE;
        while self.is_joined() {
            let answer = match peer(&self.setup.state, self.setup.server.as_ref()).await {
                Ok(mut peer) => peer.ask(request).await.map_err(Failure::from),
                Err(error) => Err(error),
            };
            match answer {
                Err(Failure::Control(error))
                    if is_gone(&error)
                        && (self.setup.server.is_none() || Instant::now() < patience) =>
                {
                    lost = true;
                    tokio::time::sleep(PAUSE).await;
                    self.renew(&[]).await?;
                }
                Err(Failure::Control(ControlError::Refused(refusal)))
                    if lost && refusal.kind == RefusalKind::Exists =>
                {
                    // The owner that went away had started it.
                    return Ok(Asked::Repeated);
                }
                other => return Ok(Asked::Answered(other?)),
            }
        }
        Ok(Asked::Owned)
    }

    /// Starts a run. When this returns, its first step is durable.
    pub async fn start(&mut self, new: &NewRun<'_>) -> Result<(), Failure> {
        let request = Request::Start(Box::new(self.start_request(new)));
        match self.ask::<String>(&request).await? {
            Asked::Answered(_) | Asked::Repeated => return Ok(()),
            Asked::Owned => {}
        }
        let Place::Owned { engine, .. } = &self.place else {
            return Ok(());
        };
        let options = StartOptions {
            id: Some(new.id.to_owned()),
            labels: new.labels.clone(),
        };
        engine
            .start_with(new.workflow, new.input.clone(), options)
            .await?;
        Ok(())
    }

    fn start_request(&self, new: &NewRun<'_>) -> StartRequest {
        let options = &self.setup.options;
        let mut files = new.workflow.bundle().files.iter();
        let file = files.next();
        let further = files.map(|file| FileEntry {
            path: file.path.clone(),
            text: file.text.clone(),
        });
        let handlers = options.handlers.iter().map(|(name, target)| {
            let entry = match target {
                crate::engine::HandlerTarget::Command(argv) => HandlerEntry::Command(argv.clone()),
                crate::engine::HandlerTarget::Url(url) => HandlerEntry::Url(url.clone()),
                crate::engine::HandlerTarget::Stub(answers) => HandlerEntry::Stub(answers.clone()),
            };
            (name.clone(), entry)
        });
        StartRequest {
            run: new.id.to_owned(),
            path: file.map(|file| file.path.clone()).unwrap_or_default(),
            text: file.map(|file| file.text.clone()).unwrap_or_default(),
            files: further.collect(),
            dialect: options.dialect.map(|dialect| dialect.as_str().to_owned()),
            max_count: options.max_count,
            max_timeout_ms: options
                .max_timeout
                .map(|timeout| u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX)),
            handlers: handlers.collect(),
            folder: options.folder.clone(),
            input: new.input.clone(),
            labels: new.labels.clone(),
        }
    }

    /// Starts a run that ended badly once more, as the run `id`.
    pub async fn retry(&mut self, run: &str, id: &str, from: Option<&str>) -> Result<(), Failure> {
        let request = Request::Retry {
            run: run.to_owned(),
            id: id.to_owned(),
            from: from.map(str::to_owned),
        };
        if let Asked::Owned = self.ask::<String>(&request).await?
            && let Place::Owned { engine, .. } = &self.place
        {
            engine.retry(run, from, Some(id.to_owned())).await?;
        }
        Ok(())
    }

    /// Goes on with one run; one that has ended is left as it is.
    pub async fn resume(&mut self, run: &str) -> Result<(), Failure> {
        let request = Request::Resume {
            run: run.to_owned(),
        };
        let outcome = match self.ask::<RunStatus>(&request).await {
            Ok(Asked::Owned) => match &self.place {
                Place::Owned { engine, .. } => match engine.resume(run).await {
                    Err(EngineError::Schedule(ScheduleError::Ended { .. })) => Ok(()),
                    other => other.map(|_| ()).map_err(Failure::from),
                },
                Place::Joined { .. } => Ok(()),
            },
            Ok(_) => Ok(()),
            Err(error) => Err(error),
        };
        match outcome {
            Err(Failure::Control(ControlError::Refused(refusal)))
                if refusal.kind == RefusalKind::Ended =>
            {
                Ok(())
            }
            other => other,
        }
    }

    /// Goes on with every unfinished run, with `paused` also with those that are paused; gives
    /// their ids.
    pub async fn resume_all(&mut self, paused: bool) -> Result<Vec<String>, Failure> {
        match self
            .ask::<Vec<String>>(&Request::Recover { paused })
            .await?
        {
            Asked::Answered(runs) => return Ok(runs),
            Asked::Repeated => return Ok(Vec::new()),
            Asked::Owned => {}
        }
        match &self.place {
            Place::Owned { engine, .. } => {
                let runs = engine.recover(paused).await?;
                Ok(runs.iter().map(ToString::to_string).collect())
            }
            Place::Joined { .. } => Ok(Vec::new()),
        }
    }

    /// How many runs are paused.
    pub async fn paused(&mut self) -> Result<usize, Failure> {
        let filter = ListFilter {
            status: vec![RunStatus::Paused],
            limit: Some(0),
            ..ListFilter::default()
        };
        let request = Request::List {
            filter: filter.clone(),
        };
        let report: ListReport = match (self.ask(&request).await?, &self.place) {
            (Asked::Answered(report), _) => report,
            (_, Place::Owned { engine, .. }) => list(engine.inspector(), &filter)?,
            (_, Place::Joined { .. }) => return Ok(0),
        };
        Ok(report.runs.len() + report.more)
    }

    /// Whether a run of this process has ended.
    pub fn has_ended(&self, run: &str) -> bool {
        match &self.place {
            Place::Owned { engine, .. } => engine
                .inspector()
                .header(run)
                .is_ok_and(|header| header.status.is_final()),
            Place::Joined { .. } => false,
        }
    }

    /// Sends what happens to a run; with `events`, also its history after that number.
    #[allow(
        clippy::disallowed_methods,
        reason = "a run that is followed has a task of its own"
    )]
    pub async fn watch(&self, run: &str, events: Option<u64>, feed: Feed) -> Result<(), Failure> {
        match &self.place {
            Place::Owned { engine, .. } => {
                let mut follower = engine.follow(run, events).await?;
                tokio::spawn(async move {
                    let run = follower.id().to_owned();
                    loop {
                        let told = match follower.next().await {
                            Ok(Some(notice)) => Told::Notice(notice),
                            Ok(None) => Told::Lost,
                            Err(error) => Told::Failed(error.into()),
                        };
                        let last = !matches!(told, Told::Notice(_));
                        if feed.send((run.clone(), told)).await.is_err() || last {
                            return;
                        }
                    }
                });
            }
            Place::Joined { connections } => {
                let (run, state) = (run.to_owned(), self.setup.state.clone());
                let (server, connections) = (self.setup.server.clone(), Arc::clone(connections));
                tokio::spawn(async move {
                    let permit = connections.acquire_owned().await;
                    let following = follow_owner(&state, server.as_ref(), &run, events, &feed);
                    let told = match following.await {
                        Err(Failure::Control(error))
                            if is_gone(&error) || matches!(error, ControlError::Unreachable(_)) =>
                        {
                            Told::Lost
                        }
                        Err(failure) => Told::Failed(failure),
                        Ok(()) => Told::Lost,
                    };
                    if server.is_some() && matches!(told, Told::Lost) {
                        // It may be about to leave, or on its way back.
                        tokio::time::sleep(AWAY).await;
                    }
                    drop(permit);
                    // Whoever followed may have left.
                    let _ = feed.send((run, told)).await;
                });
            }
        }
        Ok(())
    }

    /// Starts nothing new, and lets effects in flight end for a while, or until a signal comes.
    pub async fn drain(&mut self, signals: &mut Signals) {
        if let Place::Owned { engine, .. } = &self.place
            && !std::mem::replace(&mut self.drained, true)
        {
            // Without a store nothing that ends can be kept.
            let grace = engine.in_place().await.map_or(Duration::ZERO, |()| GRACE);
            tokio::select! {
                _ = tokio::time::timeout(grace, engine.drain()) => {}
                () = signals.next() => {}
            }
        }
    }

    /// Lets effects in flight end, as far as they have not had their time, and releases the store.
    pub async fn leave(mut self, signals: &mut Signals) {
        self.drain(signals).await;
        let Place::Owned { engine, socket } = self.place else {
            return;
        };
        if let Some(socket) = socket {
            socket.close();
        }
        engine.stop().await;
    }
}

/// What came of asking the owner.
enum Asked<T> {
    /// It answered.
    Answered(T),
    /// An owner that went away had done it.
    Repeated,
    /// This process is the owner.
    Owned,
}

/// Who is asked instead of this process.
async fn peer(state: &Path, server: Option<&Remote>) -> Result<Peer, Failure> {
    if let Some(remote) = server {
        return Ok(Peer::Server(remote.clone(), None));
    }
    let client = Client::connect(state).await?;
    let client = client.ok_or(Failure::Control(ControlError::Lost))?;
    Ok(Peer::Owner(client))
}

async fn follow_owner(
    state: &Path,
    server: Option<&Remote>,
    run: &str,
    events: Option<u64>,
    feed: &Feed,
) -> Result<(), Failure> {
    let mut peer = peer(state, server).await?;
    peer.follow(run, events).await?;
    while let Some(notice) = peer.notice().await? {
        if feed
            .send((run.to_owned(), Told::Notice(notice)))
            .await
            .is_err()
        {
            break;
        }
    }
    Ok(())
}
