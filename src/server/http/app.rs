//! What every request finds: the engine, and where the server is in its life.

use super::guard::{Access, Console, Guard, Settings};
use super::listener::Caller;
use super::live::Live;
use super::metrics::Metrics;
use super::tickets::Tickets;
use crate::api::Problem;
use crate::engine::{Engine, EngineError, ErrorCode, Inspector};
use axum::extract::{Request, State};
use axum::http::{HeaderValue, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::sync::Arc;
use tokio::sync::{Semaphore, watch};

/// How many blocking requests are worked on at a time; the others wait. More threads would not read
/// sooner, and each keeps the memory that it once allocated.
static PLACES: Semaphore = Semaphore::const_new(8);

/// Where the server is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::server) enum Phase {
    /// Earlier runs are being recovered.
    Starting,
    /// It takes work.
    Ready,
    /// It refuses new work and answers everything else.
    Stopping,
    /// It takes no more connections, and the last answers go out.
    Draining,
}

/// What every request finds.
pub(in crate::server) struct App {
    pub(super) engine: Arc<Engine>,
    pub(super) phase: watch::Receiver<Phase>,
    pub(super) guard: Guard,
    pub(super) metrics: Metrics,
    pub(super) live: Live,
    pub(super) tickets: Tickets,
    /// Where the console is, if there is one.
    pub(super) console: Option<String>,
    /// Whether the process stays until it is told to stop.
    pub(super) serves: bool,
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
            live: Live::new(),
            tickets: Tickets::default(),
            console: settings
                .url
                .clone()
                .filter(|_| settings.console != Console::Off),
            guard: Guard::new(settings),
            engine,
            phase,
            serves,
        })
    }

    fn phase(&self) -> Phase {
        *self.phase.borrow()
    }

    /// Refuses new work before recovery and once the server stops. For the operator the engine
    /// decides.
    pub(super) fn takes_work(&self, caller: Caller) -> Result<(), Problem> {
        let why = match (caller, self.phase()) {
            (Caller::Operator, _) | (_, Phase::Ready) => return Ok(()),
            (_, Phase::Starting) => "the server is starting",
            (_, Phase::Stopping | Phase::Draining) => "the server is stopping",
        };
        Err(Problem::new(ErrorCode::Unavailable, why))
    }

    /// Refuses a long request that would be cut at once because the server stops.
    pub(super) fn answers_long(&self, caller: Caller) -> Result<(), Problem> {
        match self.phase() {
            Phase::Starting => Ok(()),
            Phase::Ready | Phase::Stopping | Phase::Draining => self.takes_work(caller),
        }
    }

    /// Returns when a long request must end because the server stops. Those of the operator go on
    /// until the engine has stopped.
    pub(super) async fn must_end(mut phase: watch::Receiver<Phase>, caller: Caller) {
        match caller {
            Caller::Remote => drop(phase.wait_for(|phase| *phase >= Phase::Stopping).await),
            Caller::Operator => std::future::pending().await,
        }
    }

    /// Reads the store on a thread that may block.
    pub(super) async fn inspect<T, F>(&self, read: F) -> Result<T, Problem>
    where
        T: Send + 'static,
        F: FnOnce(&Inspector) -> Result<T, EngineError> + Send + 'static,
    {
        let inspector = self.engine.inspector().clone();
        blocking(move || read(&inspector).map_err(Problem::from)).await
    }
}

/// Does work that blocks or computes for long, on a thread that may.
pub(super) async fn blocking<T, F>(work: F) -> Result<T, Problem>
where
    T: Send + 'static,
    F: FnOnce() -> Result<T, Problem> + Send + 'static,
{
    // The semaphore is never closed, so an error cannot come.
    let _place = PLACES.acquire().await;
    match tokio::task::spawn_blocking(work).await {
        Ok(outcome) => outcome,
        Err(error) => Err(Problem::new(ErrorCode::Internal, error.to_string())),
    }
}

/// Lets a request in, or says why not. The control socket itself lets only the operator in.
pub(super) async fn guard(
    State(app): State<Arc<App>>,
    mut request: Request,
    next: Next,
) -> Response {
    let access = match Caller::of(request.extensions()) {
        Caller::Operator => Ok(Access::Full),
        Caller::Remote => app
            .guard
            .check(request.method(), request.uri(), request.headers()),
    };
    let mut response = match access {
        Ok(access) => {
            request.extensions_mut().insert(access);
            next.run(request).await
        }
        Err(problem) => problem.into_response(),
    };
    let headers = response.headers_mut();
    // The files of the console say themselves how long they are kept.
    if !headers.contains_key(header::ETAG) {
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    let nosniff = HeaderValue::from_static("nosniff");
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, nosniff);
    response
}
