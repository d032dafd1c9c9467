//! The HTTP API, over TCP and over the control socket: JSON under `/v1`, events as server-sent
//! events, health and metrics. What is asked goes to the engine; nothing here knows how a run moves.

mod body;
mod concurrency;
mod events;
mod guard;
mod health;
mod listener;
mod metrics;
mod openapi;
mod problem;
mod runs;
mod schema;
mod store;
mod workflows;

use super::threads;
use crate::api::Problem;
use crate::engine::{Engine, EngineError, ErrorCode, Inspector};
use axum::Router;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::{get, post, put};
use guard::Guard;
use listener::{Caller, ClientListener, ConnectionInfo};
use metrics::Metrics;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

/// Where the server is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    /// Runs of before are being recovered.
    Starting,
    /// It takes work.
    Ready,
    /// It takes no more work, tells so, and can be looked at.
    Stopping,
    /// It takes no more connections: the last answers go out.
    Draining,
}

/// So many connections at a time may come over the control socket.
const CONNECTIONS: usize = 1_024;

/// What comes over the control socket may take so long for a body.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// Who is let in over TCP.
#[derive(Default)]
pub(super) struct Settings {
    pub token: Option<String>,
    pub hosts: Vec<String>,
    pub origins: Vec<String>,
    pub tls: bool,
}

/// What every request finds.
pub(super) struct App {
    engine: Arc<Engine>,
    phase: watch::Receiver<Phase>,
    guard: Guard,
    metrics: Metrics,
    /// Whether the process stays until it is told to stop.
    serves: bool,
}

impl App {
    pub fn new(
        engine: Arc<Engine>,
        phase: watch::Receiver<Phase>,
        settings: Settings,
        serves: bool,
    ) -> Arc<Self> {
        Arc::new(Self {
            metrics: Metrics::new(&engine),
            guard: Guard::new(settings),
            engine,
            phase,
            serves,
        })
    }

    fn phase(&self) -> Phase {
        *self.phase.borrow()
    }

    /// Refuses new work before recovery and once the server stops. Whoever owns the store decides
    /// that for the operator's.
    fn takes_work(&self, caller: Caller) -> Result<(), Problem> {
        let why = match (caller, self.phase()) {
            (Caller::Operator, _) | (_, Phase::Ready) => return Ok(()),
            (_, Phase::Starting) => "the server is starting",
            (_, Phase::Stopping | Phase::Draining) => "the server is stopping",
        };
        Err(Problem::new(ErrorCode::Unavailable, why))
    }

    /// Refuses what would be cut at once, as the server stops.
    fn answers_long(&self, caller: Caller) -> Result<(), Problem> {
        match self.phase() {
            Phase::Starting => Ok(()),
            Phase::Ready | Phase::Stopping | Phase::Draining => self.takes_work(caller),
        }
    }

    /// Returns when a request of long duration must end, as the server stops. The operator's go on
    /// until the engine has stopped.
    async fn must_end(mut phase: watch::Receiver<Phase>, caller: Caller) {
        match caller {
            Caller::Remote => drop(phase.wait_for(|phase| *phase >= Phase::Stopping).await),
            Caller::Operator => std::future::pending().await,
        }
    }

    /// Reads the store on a thread that may block.
    async fn look<T, F>(&self, read: F) -> Result<T, Problem>
    where
        T: Send + 'static,
        F: FnOnce(&Inspector) -> Result<T, EngineError> + Send + 'static,
    {
        let inspector = self.engine.inspector().clone();
        blocking(move || read(&inspector).map_err(Problem::from)).await
    }
}

/// Work that blocks or computes for long, on a thread that may.
async fn blocking<T, F>(work: F) -> Result<T, Problem>
where
    T: Send + 'static,
    F: FnOnce() -> Result<T, Problem> + Send + 'static,
{
    match threads::blocking(work).await {
        Ok(outcome) => outcome,
        Err(error) => Err(Problem::new(ErrorCode::Internal, error.to_string())),
    }
}

/// Serves until the phase says that the server stops and the last answer is out.
pub(super) async fn serve_tcp(
    tcp: TcpListener,
    tls: Option<TlsAcceptor>,
    connections: usize,
    idle_timeout: Duration,
    app: Arc<App>,
) -> io::Result<()> {
    let listener = ClientListener::tcp(tcp, tls, connections, idle_timeout);
    let mut phase = app.phase.clone();
    let service = router(app).into_make_service_with_connect_info::<ConnectionInfo>();
    let draining = async move {
        // An error means that the server is gone.
        let _ = phase.wait_for(|phase| *phase == Phase::Draining).await;
    };
    let serving = axum::serve(listener, service).with_graceful_shutdown(draining);
    serving.await
}

/// Serves until it is aborted.
pub(super) async fn serve_socket(unix: UnixListener, app: Arc<App>) {
    let listener = ClientListener::unix(unix, CONNECTIONS, IDLE_TIMEOUT);
    let service = router(app).into_make_service_with_connect_info::<ConnectionInfo>();
    if let Err(error) = axum::serve(listener, service).await {
        tracing::warn!(%error, "the control socket does not accept");
    }
}

fn router(app: Arc<App>) -> Router {
    let workflow = put(workflows::put)
        .get(workflows::get)
        .delete(workflows::remove);
    let local = Router::new()
        .route("/v1/owner", get(store::owner))
        .route("/v1/backup", post(store::backup))
        .route_layer(from_fn(listener::operator_only));
    Router::new()
        .merge(local)
        .route("/v1/workflows", get(workflows::list))
        .route("/v1/workflows/{name}", workflow)
        .route("/v1/validate", post(workflows::validate))
        .route("/v1/runs", get(runs::list).post(runs::start))
        .route("/v1/runs/{run}", get(runs::status))
        .route("/v1/runs/{run}/result", get(runs::result))
        .route("/v1/runs/{run}/history", get(runs::history))
        .route("/v1/runs/{run}/dump", get(runs::dump))
        .route("/v1/runs/{run}/events", get(events::events))
        .route("/v1/runs/{run}/pause", post(runs::pause))
        .route("/v1/runs/{run}/resume", post(runs::resume))
        .route("/v1/runs/{run}/cancel", post(runs::cancel))
        .route("/v1/runs/{run}/signal", post(runs::signal))
        .route("/v1/runs/{run}/retry", post(runs::retry))
        .route("/v1/resume", post(store::resume))
        .route("/v1/dump", get(store::dump))
        .route("/v1/prune", post(store::prune))
        .route("/openapi.json", get(openapi::openapi))
        .route("/metrics", get(metrics::metrics))
        .route("/healthz", get(health::healthz))
        .route("/readyz", get(health::readyz))
        .fallback(async || {
            Problem::new(
                ErrorCode::NotFound,
                "docs/operations.md lists what there is",
            )
        })
        .method_not_allowed_fallback(async || {
            Problem::new(ErrorCode::MethodNotAllowed, "the header `Allow` lists them")
        })
        .layer(from_fn_with_state(Arc::clone(&app), guard::guard))
        .layer(from_fn(listener::mark_busy))
        .with_state(app)
}
