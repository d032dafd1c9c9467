//! What `windlass serve` does.
//! The server listens, recovers runs after a crash or a stop, notifies the service manager, and serves until it
//! receives a request to stop. Then it ends within the grace period. The command line handles signals and arguments.

use super::certificate::Certificate;
use super::control::ControlSocket;
use super::http::{
    App, Console, FurtherRoutes, Ownership, Phase, Sessions, Settings, Tokens, serve_tcp,
};
use sd_notify::NotifyState;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use url::Url;
use windlass_engine::{
    AuditLog, Engine, EngineError, PruneFilter, SeenFiles, WatchingWorkflows, is_full, now,
};

/// Interval of the checks whether the disk has enough space.
const ROOM: Duration = Duration::from_secs(1);

/// The last part of the grace period. It is reserved for commits and answers if effects do not end in time.
const FLUSH_TIME: Duration = Duration::from_secs(1);

/// Interval of the checks for new files in the watched folders. A file that did not change between two checks is
/// complete.
const FOLDERS: Duration = Duration::from_secs(1);

/// Maximum interval between two checks of schedules. A check at a computed time alone would be late if the clock is
/// set.
const MAX_SCHEDULE_WAIT: Duration = Duration::from_secs(30);

/// Interval at which the list of runs is updated in memory when no client requests it.
const FOLLOW: Duration = Duration::from_secs(30);

/// Interval of the checks whether the token file or the certificate has changed.
const RELOAD_EVERY: Duration = Duration::from_secs(1);

/// Interval between two prunings.
const PRUNE_EVERY: Duration = Duration::from_secs(600);

/// The options of a server.
#[derive(Clone, Debug)]
pub struct Options {
    /// The address to listen at; port 0 selects a free port.
    pub listen: SocketAddr,
    /// The accepted tokens. Without tokens, every client has all rights.
    pub tokens: Tokens,
    /// The file with these tokens: its path, and its text when it was read. The file is read again when it changes.
    pub token_file: Option<(PathBuf, String)>,
    /// What the console at `/ui/` may do.
    pub console: Console,
    /// The certificate and key for TLS. `None` means plain HTTP.
    pub tls: Option<TlsFiles>,
    /// Whether other machines may reach the server without TLS. This is safe only behind a proxy that handles TLS.
    pub allow_plain: bool,
    /// Host names that are accepted in addition to `localhost` and to IP addresses.
    pub hosts: Vec<String>,
    /// Origins whose pages may send requests, in addition to the server's own.
    pub origins: Vec<String>,
    /// Maximum number of concurrent connections.
    pub connections: usize,
    /// Timeout for receiving the head or the body of a request.
    pub idle_timeout: Duration,
    /// The address under which clients reach the server. `None` means the address at which the server listens.
    pub public_url: Option<String>,
    /// The routes of another protocol (MCP) at the same address.
    pub further: Option<FurtherRoutes>,
    /// Maximum time between a request to stop and the end of the server.
    pub grace: Duration,
    /// Selects the runs that are pruned from time to time. `None` means that no runs are pruned.
    pub prune: Option<PruneFilter>,
}

/// The files of a TLS server, in PEM.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    /// The certificate chain.
    pub cert: PathBuf,
    /// The private key.
    pub key: PathBuf,
}

/// Why a server did not start, or why it ended with an error.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Other machines could reach the server without the necessary protection.
    #[error("{listen} can be reached from other machines: {missing}")]
    Exposed {
        /// The requested address.
        listen: SocketAddr,
        /// The missing protection, and the option for it.
        missing: &'static str,
    },
    /// The public address is not a valid server address.
    #[error("--public-url `{0}` is not an address such as https://loops.example.com")]
    PublicUrl(String),
    /// A certificate or key cannot be used.
    #[error("{} cannot be used: {reason}", path.display())]
    Tls {
        /// The file.
        path: PathBuf,
        /// A description of the problem, without the path.
        reason: String,
    },
    /// The server cannot listen at the address.
    #[error("cannot listen at {listen}: {error}")]
    Listen {
        /// The requested address.
        listen: SocketAddr,
        /// The error of the operating system.
        #[source]
        error: io::Error,
    },
    /// The control socket cannot be created.
    #[error("other commands cannot ask this server: {0}")]
    Control(#[source] io::Error),
    /// The API ended unexpectedly.
    #[error("the API stopped: {0}")]
    Api(String),
    /// An error of the engine or its store.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

/// Serves the store in `state` until the future of `stop` is ready. When `stop` is called again and its future is
/// ready, the grace period ends at once. `ready` is called with the address after earlier runs were recovered.
///
/// # Errors
/// [`ServeError`]. The engine is stopped even if there is an error.
pub async fn serve(
    state: &Path,
    engine: Arc<Engine>,
    options: Options,
    ready: impl FnOnce(&str),
    stop: impl AsyncFnMut(),
) -> Result<(), ServeError> {
    let served = run(state, &engine, options, ready, stop).await;
    engine.stop().await;
    served
}

#[allow(clippy::disallowed_methods, reason = "the server has tasks of its own")]
async fn run(
    state: &Path,
    engine: &Arc<Engine>,
    options: Options,
    ready: impl FnOnce(&str),
    mut stop: impl AsyncFnMut(),
) -> Result<(), ServeError> {
    options.check()?;
    let certificate = options.tls.clone().map(Certificate::open).transpose()?;
    let tls = { certificate.as_ref() }
        .map(Certificate::acceptor)
        .transpose()?;
    let listen_at = options.listen;
    let failed = |error| ServeError::Listen {
        listen: listen_at,
        error,
    };
    let tcp = TcpListener::bind(listen_at).await.map_err(failed)?;
    let scheme = if tls.is_some() { "https" } else { "http" };
    let url = format!("{scheme}://{}", tcp.local_addr().map_err(failed)?);
    // Clients cannot use an unspecified address such as `0.0.0.0`.
    let own_url = (!listen_at.ip().is_unspecified()).then_some(url.as_str());
    if let Some(public_url) = options.public_url.as_deref().or(own_url) {
        engine.callbacks().set_server(public_url);
    }
    let (phase, watched) = watch::channel(Phase::Starting);
    let sessions = (!options.tokens.is_empty())
        .then(|| Sessions::of(state))
        .transpose();
    let settings = Settings {
        sessions: sessions.map_err(failed)?,
        tokens: options.tokens,
        console: options.console,
        url: Some(console_url(
            scheme,
            tcp.local_addr().map_err(failed)?,
            &options.hosts,
        )),
        hosts: options.hosts,
        origins: options.origins,
        tls: tls.is_some(),
    };
    let audit = AuditLog::open(state);
    let app = App::new(
        Arc::clone(engine),
        watched,
        settings,
        audit,
        Ownership::Served,
    );
    let again = Arc::clone(&app);
    let reloading_tokens = { options.token_file }
        // A pipe can be read only once, so its tokens never change.
        .filter(|(path, _)| path.is_file())
        .map(|(path, mut text)| {
            let app = Arc::clone(&app);
            let read = move || {
                let (tokens, read) = Tokens::read(&path)?;
                let is_changed = read != text;
                if is_changed {
                    app.replace_tokens(tokens);
                    text = read;
                }
                Ok(is_changed)
            };
            tokio::spawn(reload("token file", read))
        });
    let reloading_certificate = certificate
        .filter(|one| one.is_in_files())
        .map(|certificate| {
            let read = move || certificate.reload().map_err(|error| error.to_string());
            tokio::spawn(reload("TLS certificate", read))
        });
    let mut socket = match ControlSocket::of(state, app.clone()) {
        Ok(socket) => Some(socket),
        Err(error) if is_full(&error) => {
            tracing::warn!(%error, "other commands cannot ask this server before there is room");
            None
        }
        Err(error) => return Err(ServeError::Control(error)),
    };
    let (connections, idle_timeout) = (options.connections, options.idle_timeout);
    let mut api = tokio::spawn(serve_tcp(
        tcp,
        tls,
        connections,
        idle_timeout,
        app,
        options.further,
    ));
    let watchdog = tokio::spawn(watchdog(Arc::clone(engine)));
    let (mut pruning, mut schedules, mut lists, mut folders) = (None, None, None, None);
    let outcome = async {
        let mut stop = pin!(stop());
        loop {
            tokio::select! {
                recovered = engine.recover(false) => match recovered {
                    Err(error) if error.is_out_of_space() => {
                        tracing::warn!(%error, "the runs wait for room");
                    }
                    recovered => break drop(recovered?),
                },
                () = &mut stop => return Ok(()),
                gone = engine.lost() => return Err(ServeError::Engine(gone)),
            }
            tokio::select! {
                () = tokio::time::sleep(ROOM) => {}
                () = &mut stop => return Ok(()),
            }
        }
        phase.send_replace(Phase::Ready);
        notify(NotifyState::Ready);
        ready(&url);
        schedules = Some(tokio::spawn(fire(Arc::clone(engine))));
        lists = Some(tokio::spawn(follow_runs(Arc::clone(engine))));
        folders = Some(tokio::spawn(watch_folders(Arc::clone(engine))));
        pruning = options.prune.map(|filter| {
            let engine = Arc::clone(engine);
            tokio::spawn(prune(engine, filter))
        });
        loop {
            tokio::select! {
                () = &mut stop => return Ok(()),
                gone = engine.lost() => return Err(ServeError::Engine(gone)),
                ended = &mut api => return Err(ServeError::Api(match ended {
                    Ok(Ok(())) => String::from("it ended"),
                    Ok(Err(error)) => error.to_string(),
                    Err(error) => error.to_string(),
                })),
                () = tokio::time::sleep(ROOM), if socket.is_none() => {
                    socket = ControlSocket::of(state, Arc::clone(&again)).ok();
                }
            }
        }
    }
    .await;
    notify(NotifyState::Stopping);
    phase.send_replace(Phase::Stopping);
    // After an error of the store, no result of an effect can be stored, so the effects need no time to end.
    let grace = match &outcome {
        Err(ServeError::Engine(_)) => FLUSH_TIME.min(options.grace),
        _ => options.grace,
    };
    let effects = grace.saturating_sub(FLUSH_TIME.min(grace / 2));
    let draining = async {
        // Effects that have not ended when this time is over are aborted. Recovery repeats them with the same keys.
        let _ = tokio::time::timeout(effects, engine.drain()).await;
        phase.send_replace(Phase::Draining);
        if !api.is_finished() {
            let _ = (&mut api).await;
        }
    };
    tokio::select! {
        _ = tokio::time::timeout(grace, draining) => {}
        () = stop() => {}
    }
    api.abort();
    watchdog.abort();
    let tasks = pruning
        .iter()
        .chain(&schedules)
        .chain(&lists)
        .chain(&folders)
        .chain(&reloading_tokens)
        .chain(&reloading_certificate);
    tasks.for_each(JoinHandle::abort);
    phase.send_replace(Phase::Draining);
    if let Some(socket) = socket {
        socket.close().await;
    }
    outcome
}

impl Options {
    fn check(&self) -> Result<(), ServeError> {
        if let Some(address) = &self.public_url
            && !Url::parse(address).is_ok_and(|url| matches!(url.scheme(), "http" | "https"))
        {
            return Err(ServeError::PublicUrl(address.clone()));
        }
        let missing = match (self.tokens.is_empty(), &self.tls, self.allow_plain) {
            _ if self.listen.ip().is_loopback() => return Ok(()),
            (true, _, _) => "set a token with --token-file or WINDLASS_TOKEN",
            (false, None, false) => {
                "set a certificate with --tls-cert and --tls-key, or use --allow-plain-http behind \
                 a proxy that terminates TLS"
            }
            (false, _, _) => return Ok(()),
        };
        Err(ServeError::Exposed {
            listen: self.listen,
            missing,
        })
    }
}

/// Returns the console's URL for a browser on this machine.
/// With TLS, the host of the URL must be a name in the certificate.
fn console_url(scheme: &str, mut at: SocketAddr, hosts: &[String]) -> String {
    if let (Some(host), "https") = (hosts.first(), scheme) {
        return format!("{scheme}://{host}:{}/ui/", at.port());
    }
    match at.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => at.set_ip(Ipv4Addr::LOCALHOST.into()),
        IpAddr::V6(ip) if ip.is_unspecified() => at.set_ip(Ipv6Addr::LOCALHOST.into()),
        _ => {}
    }
    format!("{scheme}://{at}/ui/")
}

/// Notifies the service manager, if there is one.
fn notify(state: NotifyState<'_>) {
    if let Err(error) = sd_notify::notify(&[state]) {
        tracing::warn!(%error, "cannot notify the service manager");
    }
}

/// Starts the runs of schedules when they are due.
async fn fire(engine: Arc<Engine>) {
    let (mut changes, mut reopened) = (engine.workflow_changes(), engine.store_reopened());
    loop {
        let next = match engine.fire_schedules(now()).await {
            Ok(next) => next,
            Err(error) => {
                tracing::warn!(%error, "the schedules cannot be read");
                None
            }
        };
        let wait = next.map_or(MAX_SCHEDULE_WAIT, |next| {
            next.since(now()).min(MAX_SCHEDULE_WAIT)
        });
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            // The results are ignored: the senders live as long as the engine, so these cannot fail.
            _ = changes.changed() => {}
            _ = reopened.changed() => {}
        }
    }
}

/// Starts runs for new files in the folders that saved workflows watch.
async fn watch_folders(engine: Arc<Engine>) {
    let mut changes = engine.workflow_changes();
    changes.mark_changed();
    let (mut watching, mut seen) = (WatchingWorkflows::new(), SeenFiles::default());
    loop {
        if changes.has_changed().unwrap_or_default() {
            changes.mark_unchanged();
            let engine = Arc::clone(&engine);
            let read = tokio::task::spawn_blocking(move || engine.watching_workflows());
            match read.await {
                Ok(Ok(read)) => watching = read,
                Ok(Err(error)) => {
                    tracing::warn!(%error, "the folders of workflows cannot be read");
                    changes.mark_changed();
                }
                Err(_) => changes.mark_changed(),
            }
        }
        engine.start_by_files(&watching, &mut seen).await;
        tokio::time::sleep(FOLDERS).await;
    }
}

/// Reads the headers of all runs in the background, and later those of changed runs, so that the first list is fast.
async fn follow_runs(engine: Arc<Engine>) {
    loop {
        let runs = engine.inspector().clone();
        // The error is ignored here: a client that requests the list receives it.
        let _ = tokio::task::spawn_blocking(move || runs.run_index(|_| ())).await;
        tokio::time::sleep(FOLLOW).await;
    }
}

/// Calls `read` again and again. It reads a file, applies its content, and returns whether the file has changed.
/// While a file has mistakes, its former content remains valid. A file that is just being written has mistakes for a
/// moment, so mistakes are logged if two checks find the same.
async fn reload(
    name: &'static str,
    mut read: impl FnMut() -> Result<bool, String> + Send + 'static,
) {
    let (mut found, mut logged) = (None, None);
    loop {
        tokio::time::sleep(RELOAD_EVERY).await;
        let checked = tokio::task::spawn_blocking(move || (read(), read)).await;
        let Ok((result, back)) = checked else {
            return;
        };
        read = back;
        match result {
            Ok(is_changed) => {
                if is_changed {
                    tracing::info!("the {name} was read again");
                }
                (found, logged) = (None, None);
            }
            Err(why) => {
                let why = Some(why);
                if found == why && logged != why {
                    tracing::error!(
                        why,
                        "the {name} is not valid: the former one remains in use"
                    );
                    logged.clone_from(&why);
                }
                found = why;
            }
        }
    }
}

/// Prunes the runs that `filter` selects, now and every [`PRUNE_EVERY`].
async fn prune(engine: Arc<Engine>, filter: PruneFilter) {
    let mut tick = tokio::time::interval(PRUNE_EVERY);
    loop {
        tick.tick().await;
        let (engine, filter) = (Arc::clone(&engine), filter.clone());
        let pruned = tokio::task::spawn_blocking(move || engine.prune(&filter, now())).await;
        match pruned {
            Ok(Ok(pruned)) => tracing::info!(runs = pruned.runs.len(), "deleted old runs"),
            Ok(Err(error)) => tracing::warn!(%error, "cannot delete old runs"),
            Err(error) => tracing::warn!(%error, "cannot delete old runs"),
        }
    }
}

/// Notifies the watchdog of the service manager for as long as the driver answers.
async fn watchdog(engine: Arc<Engine>) {
    let Some(every) = sd_notify::watchdog_enabled() else {
        return;
    };
    let mut tick = tokio::time::interval(every / 3);
    loop {
        tick.tick().await;
        // If the driver hangs, it does not answer here. Then the watchdog is not notified, and the service manager
        // restarts the server.
        engine.in_flight().await;
        notify(NotifyState::Watchdog);
    }
}
