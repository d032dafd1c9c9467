//! The HTTP API: JSON under `/v1`, events as server-sent events, health and metrics. What is
//! asked goes to the engine; nothing here knows how a run moves.

mod body;
mod crowd;
mod door;
mod events;
mod guard;
mod health;
mod metrics;
mod openapi;
mod problem;
mod runs;
mod schema;
mod store;
mod workflows;

pub use problem::Problem;
pub use runs::{FileText, RetryRun, Signal, StartRun};
pub use store::PruneRuns;

use super::threads;
use crate::engine::{Engine, EngineError, Inspector};
use axum::Router;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::{get, post, put};
use door::{Door, Line};
use guard::Guard;
use metrics::Metrics;
use problem::Kind;
use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
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
    /// Its door is closed: the last answers go out.
    Leaving,
}

/// How the API is served.
pub(super) struct Settings {
    pub token: Option<String>,
    pub hosts: Vec<String>,
    pub origins: Vec<String>,
    pub connections: usize,
    pub patience: Duration,
}

/// What every request finds.
struct App {
    engine: Arc<Engine>,
    phase: watch::Receiver<Phase>,
    guard: Guard,
    metrics: Metrics,
}

impl App {
    fn phase(&self) -> Phase {
        *self.phase.borrow()
    }

    /// Refuses new work before recovery and once it stops.
    fn takes_work(&self) -> Result<(), Problem> {
        match self.phase() {
            Phase::Ready => Ok(()),
            Phase::Starting => Err(Problem::new(Kind::Unavailable, "the server is starting")),
            Phase::Stopping | Phase::Leaving => {
                Err(Problem::new(Kind::Unavailable, "the server is stopping"))
            }
        }
    }

    /// Refuses what would be cut at once, as the server stops.
    fn answers_long(&self) -> Result<(), Problem> {
        match self.phase() {
            Phase::Starting => Ok(()),
            Phase::Ready | Phase::Stopping | Phase::Leaving => self.takes_work(),
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
        Err(error) => Err(Problem::new(Kind::Internal, error.to_string())),
    }
}

/// Serves until `phase` says that the server stops and the last answer is out.
pub(super) fn listen(
    tcp: TcpListener,
    tls: Option<TlsAcceptor>,
    settings: Settings,
    engine: Arc<Engine>,
    phase: watch::Receiver<Phase>,
) -> impl Future<Output = io::Result<()>> + Send {
    let scheme = if tls.is_some() { "https" } else { "http" };
    let door = Door::new(tcp, tls, settings.connections, settings.patience);
    let guard = Guard::new(
        settings.token.as_deref(),
        settings.hosts,
        settings.origins,
        scheme,
    );
    let mut until = phase.clone();
    let app = Arc::new(App {
        metrics: Metrics::new(&engine),
        engine,
        phase,
        guard,
    });
    let service = router(app).into_make_service_with_connect_info::<Line>();
    let leaving = async move {
        // An error means that the server is gone.
        let _ = until.wait_for(|phase| *phase == Phase::Leaving).await;
    };
    let serving = axum::serve(door, service).with_graceful_shutdown(leaving);
    async move { serving.await }
}

fn router(app: Arc<App>) -> Router {
    let workflow = put(workflows::put)
        .get(workflows::get)
        .delete(workflows::remove);
    Router::new()
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
        .fallback(async || Problem::new(Kind::NotFound, "docs/operations.md lists what there is"))
        .method_not_allowed_fallback(async || {
            Problem::new(Kind::MethodNotAllowed, "the header `Allow` lists them")
        })
        .layer(from_fn_with_state(Arc::clone(&app), guard::guard))
        .layer(from_fn(door::mark_busy))
        .with_state(app)
}
