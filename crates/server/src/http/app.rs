//! What every request finds: the engine, and where the server is in its life.

use super::callback::is_callback;
use super::guard::{Access, Console, Guard, Settings};
use super::hook::is_hook;
use super::listener::{Caller, ConnectionInfo};
use super::live::Live;
use super::metrics::Metrics;
use super::tickets::Tickets;
use crate::api::Problem;
use axum::extract::{ConnectInfo, FromRequestParts, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderValue, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::{Semaphore, watch};
use windlass_engine::{Engine, EngineError, ErrorCode, Inspector};
use windlass_language::Budget;

/// How many requests read the store at a time; the others wait. More threads would not read
/// sooner, and each keeps the memory that it once allocated.
static READS: Semaphore = Semaphore::const_new(8);

/// How many ask at a time whether the server takes work: nothing else may keep them waiting.
static CHECKS: Semaphore = Semaphore::const_new(2);

/// How many requests compute at a time: those of the operator, those with the token for full access, and those
/// with read access. None of these groups makes another wait.
static OPERATOR: Semaphore = Semaphore::const_new(4);
static FULL: Semaphore = Semaphore::const_new(3);
static VIEW: Semaphore = Semaphore::const_new(2);

/// Whose place a request takes while it computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lane {
    Operator,
    Full,
    View,
}

impl Lane {
    fn places(self) -> &'static Semaphore {
        match self {
            Self::Operator => &OPERATOR,
            Self::Full => &FULL,
            Self::View => &VIEW,
        }
    }
}

impl<S: Sync> FromRequestParts<S> for Lane {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Infallible> {
        let access = parts.extensions.get::<Access>();
        Ok(match (Caller::of(&parts.extensions), access) {
            (Caller::Operator, _) => Self::Operator,
            (Caller::Remote, Some(Access::Full)) => Self::Full,
            (Caller::Remote, _) => Self::View,
        })
    }
}

/// Calls a computation off when its client has left.
struct CancelFlag(Arc<AtomicBool>);

impl Drop for CancelFlag {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Where the server is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
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
pub(crate) struct App {
    pub(super) engine: Arc<Engine>,
    pub(super) phase: watch::Receiver<Phase>,
    pub(super) guard: Guard,
    pub(super) metrics: Metrics,
    pub(super) live: Live,
    pub(super) tickets: Tickets,
    /// Where the console is, if there is one.
    pub(super) console: Option<String>,
    /// Whether the process runs until it receives a request to stop.
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
    pub(super) fn check_accepts_work(&self, caller: Caller) -> Result<(), Problem> {
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
            Phase::Ready | Phase::Stopping | Phase::Draining => self.check_accepts_work(caller),
        }
    }

    /// Returns when a long request must end because the server stops. Those of the operator continue
    /// until the engine has stopped.
    pub(super) async fn must_end(mut phase: watch::Receiver<Phase>, caller: Caller) {
        match caller {
            Caller::Remote => drop(phase.wait_for(|phase| *phase >= Phase::Stopping).await),
            Caller::Operator => std::future::pending().await,
        }
    }

    /// Whether the store takes writes.
    pub(super) async fn ready(&self) -> Result<(), Problem> {
        let inspector = self.engine.inspector().clone();
        on_thread(&CHECKS, move || Ok(inspector.check_writable()?)).await
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

/// Computes for a client, with a budget that ends when the client leaves.
pub(super) async fn compute<T, F>(lane: Lane, work: F) -> Result<T, Problem>
where
    T: Send + 'static,
    F: FnOnce(Budget) -> Result<T, Problem> + Send + 'static,
{
    let flag = Arc::new(AtomicBool::new(false));
    let _client = CancelFlag(Arc::clone(&flag));
    on_thread(lane.places(), move || work(Budget::default().until(flag))).await
}

/// Does work that blocks, on a thread that may.
pub(super) async fn blocking<T, F>(work: F) -> Result<T, Problem>
where
    T: Send + 'static,
    F: FnOnce() -> Result<T, Problem> + Send + 'static,
{
    on_thread(&READS, work).await
}

async fn on_thread<T, F>(places: &'static Semaphore, work: F) -> Result<T, Problem>
where
    T: Send + 'static,
    F: FnOnce() -> Result<T, Problem> + Send + 'static,
{
    // The semaphore is never closed, so an error cannot come.
    let place = places.acquire().await;
    let done = tokio::task::spawn_blocking(move || {
        // The place is taken until the work ends, also when the client has left.
        let _place = place;
        work()
    });
    match done.await {
        Ok(outcome) => outcome,
        Err(error) => Err(Problem::new(ErrorCode::Internal, error.to_string())),
    }
}

/// Admits a request, or says why not. The control socket itself admits only the operator. Handlers find the
/// sender as `Extension<Actor>`.
pub(super) async fn guard(
    State(app): State<Arc<App>>,
    ConnectInfo(info): ConnectInfo<ConnectionInfo>,
    mut request: Request,
    next: Next,
) -> Response {
    let mut actor = info.actor;
    let admitted = match info.caller {
        Caller::Operator => Ok((Access::Full, None)),
        Caller::Remote if is_callback(request.uri().path()) || is_hook(request.uri().path()) => {
            Ok((Access::Nothing, None))
        }
        Caller::Remote => app
            .guard
            .check(request.method(), request.uri(), request.headers()),
    };
    let mut response = match admitted {
        Ok((access, token)) => {
            if let Some(token) = token {
                actor.name = token.to_owned();
            }
            request.extensions_mut().insert(actor);
            request.extensions_mut().insert(access);
            next.run(request).await
        }
        Err(problem) => problem.into_response(),
    };
    let headers = response.headers_mut();
    // The files of the console set their own cache lifetime.
    if !headers.contains_key(header::ETAG) {
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    let nosniff = HeaderValue::from_static("nosniff");
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, nosniff);
    response
}
