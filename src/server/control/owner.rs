//! The owner's side: takes requests and answers them with the engine. What a client sends can
//! make it refuse, never stop.

use super::address::{Directory, NAME};
use super::{
    FileEntry, HandlerEntry, MAX_REQUEST, Pong, Refusal, RefusalKind, Reply, Request, StartRequest,
};
use crate::engine::report::{dump, history, list, status};
use crate::engine::{
    Bundle, Dialect, Engine, EngineError, HandlerTarget, Inspector, LoadOptions, ScheduleError,
    SourceFile, StartOptions, StoreError, now,
};
use crate::server::threads::blocking;
use serde::Serialize;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixListener as StdListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::task::AbortHandle;

/// So many clients at a time.
const MAX_CLIENTS: usize = 256;

/// A client that sends nothing for so long is left.
const IDLE: Duration = Duration::from_secs(60);

/// The listening socket of a store's owner.
pub struct ControlSocket {
    path: PathBuf,
    /// The socket as a file: another one in its place is another owner's.
    inode: u64,
    accepting: AbortHandle,
}

impl ControlSocket {
    /// Listens in a state directory. Only for the process that has the store open: what lies at
    /// the socket's path was left by a crash, and is replaced. One that `serves` stays until it is
    /// told to stop.
    ///
    /// # Errors
    /// When the directory takes no socket, or none of its length.
    #[allow(clippy::disallowed_methods, reason = "the server has tasks of its own")]
    pub fn open(state: &Path, engine: Arc<Engine>, serves: bool) -> io::Result<Self> {
        let directory = Directory::open(state)?;
        let listener = bind(&directory)?;
        listener.set_nonblocking(true)?;
        let listener = UnixListener::from_std(listener)?;
        let accepting = tokio::spawn(accept(listener, engine, serves)).abort_handle();
        let path = directory.file(NAME);
        Ok(Self {
            inode: fs::symlink_metadata(&path)?.ino(),
            path,
            accepting,
        })
    }

    /// Takes no more clients. Call it before the store is released: afterwards the path may be
    /// another owner's.
    pub fn close(self) {
        self.accepting.abort();
        let own = fs::symlink_metadata(&self.path).is_ok_and(|there| there.ino() == self.inode);
        if own {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// A listener at its final place, that nobody else could reach before it had its mode.
fn bind(directory: &Directory) -> io::Result<StdListener> {
    let private = directory.file("control.new");
    let _ = fs::remove_dir_all(&private);
    fs::DirBuilder::new().mode(0o700).create(&private)?;
    let listener = StdListener::bind(directory.socket("control.new/s")?)?;
    let made = directory.file("control.new/s");
    fs::set_permissions(&made, Permissions::from_mode(0o600))?;
    fs::rename(&made, directory.file(NAME))?;
    fs::remove_dir(&private)?;
    Ok(listener)
}

#[allow(clippy::disallowed_methods, reason = "a client has a task of its own")]
async fn accept(listener: UnixListener, engine: Arc<Engine>, serves: bool) {
    let clients = Arc::new(Semaphore::new(MAX_CLIENTS));
    loop {
        let Ok(permit) = Arc::clone(&clients).acquire_owned().await else {
            return;
        };
        match listener.accept().await {
            Ok((stream, _)) => {
                let engine = Arc::clone(&engine);
                tokio::spawn(async move {
                    // A client that goes away is no matter of the owner.
                    let _ = Connection::new(stream, engine, serves).serve().await;
                    drop(permit);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "the control socket does not accept");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

struct Connection {
    reader: BufReader<OwnedReadHalf>,
    writer: OwnedWriteHalf,
    engine: Arc<Engine>,
    serves: bool,
}

impl Connection {
    fn new(stream: UnixStream, engine: Arc<Engine>, serves: bool) -> Self {
        let (reader, writer) = stream.into_split();
        Self {
            reader: BufReader::new(reader),
            writer,
            engine,
            serves,
        }
    }

    async fn serve(mut self) -> io::Result<()> {
        loop {
            let line = match tokio::time::timeout(IDLE, self.line()).await {
                Ok(line) => line?,
                Err(_) => return Ok(()),
            };
            let request = match line {
                Line::End => return Ok(()),
                Line::TooLong => {
                    let message = format!("a request has {MAX_REQUEST} bytes at most");
                    // What follows is no request: the connection ends here.
                    return self.refuse(RefusalKind::BadRequest, message).await;
                }
                Line::Text(text) => match serde_json::from_slice::<Request>(&text) {
                    Ok(request) => request,
                    Err(error) => {
                        self.refuse(RefusalKind::BadRequest, error.to_string())
                            .await?;
                        continue;
                    }
                },
            };
            match request {
                Request::Follow { run, events } => {
                    if !self.follow(&run, events).await? {
                        return Ok(());
                    }
                }
                Request::Ping => {
                    let pong = Pong {
                        version: env!("CARGO_PKG_VERSION").to_owned(),
                        pid: std::process::id(),
                        serves: self.serves,
                    };
                    let reply = match json(&pong) {
                        Ok(result) => Reply::Done { result },
                        Err(refusal) => Reply::Refused(refusal),
                    };
                    self.send(&reply).await?;
                }
                other => {
                    let reply = match answer(&self.engine, other).await {
                        Ok(result) => Reply::Done { result },
                        Err(refusal) => Reply::Refused(refusal),
                    };
                    self.send(&reply).await?;
                }
            }
        }
    }

    async fn line(&mut self) -> io::Result<Line> {
        let mut text = Vec::new();
        let limit = MAX_REQUEST as u64 + 1;
        let mut bounded = (&mut self.reader).take(limit);
        bounded.read_until(b'\n', &mut text).await?;
        Ok(match text.last() {
            None => Line::End,
            Some(b'\n') => Line::Text(text),
            Some(_) if text.len() > MAX_REQUEST => Line::TooLong,
            // The client has gone in the middle of a line.
            Some(_) => Line::End,
        })
    }

    async fn send(&mut self, reply: &Reply) -> io::Result<()> {
        let mut line = serde_json::to_vec(reply)?;
        line.push(b'\n');
        self.writer.write_all(&line).await
    }

    async fn refuse(&mut self, kind: RefusalKind, message: String) -> io::Result<()> {
        self.send(&Reply::Refused(Refusal { kind, message })).await
    }

    /// Sends notices until nothing more comes; false when the client has gone meanwhile.
    async fn follow(&mut self, run: &str, events: Option<u64>) -> io::Result<bool> {
        let mut follower = match self.engine.follow(run, events).await {
            Ok(follower) => follower,
            Err(error) => {
                self.send(&Reply::Refused(refusal(&error))).await?;
                return Ok(true);
            }
        };
        let result = serde_json::Value::Null;
        self.send(&Reply::Done { result }).await?;
        loop {
            let reply = tokio::select! {
                next = follower.next() => match next {
                    Ok(Some(notice)) => Reply::Notice(notice),
                    Ok(None) => Reply::End,
                    Err(error) => Reply::Refused(refusal(&error)),
                },
                // A client says nothing while it follows: whatever comes is its end.
                _ = self.reader.fill_buf() => return Ok(false),
            };
            self.send(&reply).await?;
            if !matches!(reply, Reply::Notice(_)) {
                return Ok(true);
            }
        }
    }
}

enum Line {
    Text(Vec<u8>),
    TooLong,
    End,
}

type Answer = Result<serde_json::Value, Refusal>;

async fn answer(engine: &Arc<Engine>, request: Request) -> Answer {
    match request {
        Request::List { filter } => look(engine, move |store| list(store, &filter)).await,
        Request::Status { run } => look(engine, move |store| status(store, &run, now())).await,
        Request::History { run, filter } => {
            look(engine, move |store| history(store, &run, &filter)).await
        }
        Request::Dump { filter } => look(engine, move |store| dump(store, &filter, now())).await,
        Request::Pause { run } => told(engine.pause(&run).await),
        Request::Resume { run } => told(engine.resume(&run).await),
        Request::Cancel { run } => told(engine.cancel(&run).await),
        Request::Signal { run, name, payload } => told(engine.signal(&run, &name, payload).await),
        Request::Prune { filter } => {
            let engine = Arc::clone(engine);
            let prune = move || engine.prune(&filter, now());
            told(blocking(prune).await.map_err(internal)?)
        }
        Request::Backup { dir } => {
            let engine = Arc::clone(engine);
            let backup = move || engine.backup(Path::new(&dir));
            told(blocking(backup).await.map_err(internal)?)
        }
        Request::Recover { paused } => {
            let runs = engine
                .recover(paused)
                .await
                .map_err(|error| refusal(&error))?;
            json(&runs)
        }
        Request::Retry { run, id, from } => {
            let retried = engine.retry(&run, from.as_deref(), Some(id)).await;
            json(&retried.map_err(|error| refusal(&error))?.run)
        }
        Request::Start(start) => begin(engine, *start).await,
        Request::Ping | Request::Follow { .. } => Err(Refusal {
            kind: RefusalKind::Internal,
            message: String::from("that is not answered here"),
        }),
    }
}

/// Reads the store on a thread that may block.
async fn look<T, F>(engine: &Arc<Engine>, read: F) -> Answer
where
    T: Serialize + Send + 'static,
    F: FnOnce(&Inspector) -> Result<T, EngineError> + Send + 'static,
{
    let inspector = engine.inspector().clone();
    let read = blocking(move || read(&inspector)).await;
    match read {
        Ok(report) => json(&report.map_err(|error| refusal(&error))?),
        Err(error) => Err(Refusal {
            kind: RefusalKind::Internal,
            message: error.to_string(),
        }),
    }
}

async fn begin(engine: &Engine, start: StartRequest) -> Answer {
    let dialect = match start.dialect.as_deref() {
        None => None,
        Some(word) => Some(Dialect::parse(word).ok_or_else(|| Refusal {
            kind: RefusalKind::BadRequest,
            message: format!("`{word}` is no dialect"),
        })?),
    };
    let options = LoadOptions {
        dialect,
        max_count: start.max_count,
        max_timeout: start.max_timeout_ms.map(Duration::from_millis),
        handlers: start
            .handlers
            .into_iter()
            .map(|(name, entry)| (name, target(entry)))
            .collect(),
        folder: start.folder,
        ..LoadOptions::default()
    };
    let mut bundle = Bundle::single(start.path, start.text);
    let further = start.files.into_iter();
    bundle
        .files
        .extend(further.map(|FileEntry { path, text }| SourceFile { path, text }));
    let loaded = engine.load_bundle(bundle, &options);
    let workflow = loaded.map_err(|error| refusal(&error.into()))?;
    let chosen = StartOptions {
        id: Some(start.run),
        labels: start.labels,
    };
    let begun = engine.launch(&workflow, start.input, chosen).await;
    json(&begun.map_err(|error| refusal(&error))?)
}

fn target(entry: HandlerEntry) -> HandlerTarget {
    match entry {
        HandlerEntry::Command(argv) => HandlerTarget::Command(argv),
        HandlerEntry::Url(url) => HandlerTarget::Url(url),
        HandlerEntry::Stub(answers) => HandlerTarget::Stub(answers),
    }
}

fn told<T: Serialize>(outcome: Result<T, EngineError>) -> Answer {
    json(&outcome.map_err(|error| refusal(&error))?)
}

fn internal(error: impl std::fmt::Display) -> Refusal {
    Refusal {
        kind: RefusalKind::Internal,
        message: error.to_string(),
    }
}

fn json(value: &impl Serialize) -> Answer {
    serde_json::to_value(value).map_err(|error| Refusal {
        kind: RefusalKind::Internal,
        message: error.to_string(),
    })
}

fn refusal(error: &EngineError) -> Refusal {
    Refusal {
        kind: kind(error),
        message: error.to_string(),
    }
}

fn kind(error: &EngineError) -> RefusalKind {
    match error {
        EngineError::Store(error) => of_store(error),
        EngineError::Schedule(ScheduleError::Store(error)) => of_store(error),
        EngineError::Schedule(ScheduleError::Ended { .. }) => RefusalKind::Ended,
        EngineError::Schedule(ScheduleError::Exists(_)) => RefusalKind::Exists,
        EngineError::Schedule(ScheduleError::Stopped) => RefusalKind::Stopping,
        EngineError::Schedule(ScheduleError::NoSignal { .. }) => RefusalKind::BadRequest,
        EngineError::Schedule(ScheduleError::Busy) => RefusalKind::Busy,
        EngineError::Schedule(ScheduleError::Sealed(_)) => RefusalKind::Store,
        EngineError::Schedule(ScheduleError::Broken { .. }) => RefusalKind::Internal,
        EngineError::Schedule(ScheduleError::Unloadable { .. }) | EngineError::Load(_) => {
            RefusalKind::Workflow
        }
        EngineError::Input(_) | EngineError::KeyReused(_) => RefusalKind::Input,
        EngineError::NotRetried { .. }
        | EngineError::NoPlace { .. }
        | EngineError::NoLoop { .. }
        | EngineError::NoPage(_)
        | EngineError::StoreExists(_)
        | EngineError::NoSignal { .. } => RefusalKind::BadRequest,
        EngineError::NoStore(_) | EngineError::Thread(_) | EngineError::NoRuntime => {
            RefusalKind::Internal
        }
    }
}

fn of_store(error: &StoreError) -> RefusalKind {
    match error {
        StoreError::UnknownRun(_) => RefusalKind::UnknownRun,
        _ => RefusalKind::Store,
    }
}
