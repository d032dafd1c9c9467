//! What every request finds: the engine, and where the server is in its life.

use super::callback::is_callback;
use super::guard::{Admitted, Console, Guard, Settings};
use super::hook::is_hook;
use super::listener::{Caller, ConnectionInfo};
use super::live::Live;
use super::metrics::Metrics;
use super::roles::{Access, Rule};
use super::tickets::Tickets;
use super::token_file::Tokens;
use crate::api::Problem;
use axum::RequestExt;
use axum::extract::{ConnectInfo, FromRequestParts, MatchedPath, RawPathParams, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{Semaphore, watch};
use tokio::time::Instant;
use windlass_engine::{
    AUDIT_DONE, Actor, AuditLog, Engine, EngineError, ErrorCode, Inspector, now,
};
use windlass_language::Budget;

/// How many requests read the store at a time; the others wait. More threads would not read
/// sooner, and each keeps the memory that it once allocated.
static READS: Semaphore = Semaphore::const_new(8);

/// How many ask at a time whether the server takes work: nothing else may keep them waiting.
static CHECKS: Semaphore = Semaphore::const_new(2);

/// How many requests compute at a time: those of the operator, those with a token that may start runs, and those
/// with read access. None of these groups makes another wait.
static OPERATOR: Semaphore = Semaphore::const_new(4);
static OPERATE: Semaphore = Semaphore::const_new(3);
static VIEW: Semaphore = Semaphore::const_new(2);

/// The time between two refused requests in the log.
const REFUSALS_EVERY: Duration = Duration::from_secs(1);

/// Whose place a request takes while it computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lane {
    Operator,
    Operate,
    View,
}

impl Lane {
    fn places(self) -> &'static Semaphore {
        match self {
            Self::Operator => &OPERATOR,
            Self::Operate => &OPERATE,
            Self::View => &VIEW,
        }
    }
}

impl<S: Sync> FromRequestParts<S> for Lane {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Infallible> {
        let admitted = parts.extensions.get::<Admitted>();
        let access = admitted.map(|admitted| admitted.access);
        Ok(match (Caller::of(&parts.extensions), access) {
            (Caller::Operator, _) => Self::Operator,
            (Caller::Remote, Some(Access::Operate | Access::Admin)) => Self::Operate,
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

/// What ends long requests.
#[derive(Clone)]
pub(super) struct EndSignal {
    phase: watch::Receiver<Phase>,
    tokens: watch::Receiver<()>,
}

impl EndSignal {
    /// Returns when a long request must end because the server stops, or because other tokens are accepted. Those of
    /// the operator continue until the last answers go out.
    pub(super) async fn must_end(&self, caller: Caller) {
        let Self {
            mut phase,
            mut tokens,
        } = self.clone();
        match caller {
            Caller::Remote => tokio::select! {
                _ = phase.wait_for(|phase| *phase >= Phase::Stopping) => {}
                Ok(()) = tokens.changed() => {}
            },
            Caller::Operator => {
                let _ = phase.wait_for(|phase| *phase >= Phase::Draining).await;
            }
        }
    }
}

/// What every request finds.
pub(crate) struct App {
    pub(super) engine: Arc<Engine>,
    pub(super) phase: watch::Receiver<Phase>,
    pub(super) guard: Guard,
    pub(super) metrics: Metrics,
    pub(super) live: Live,
    pub(super) tickets: Tickets,
    pub(super) audit: AuditLog,
    /// Marked when other tokens are accepted.
    tokens_changed: watch::Sender<()>,
    pub(super) refusals: Refusals,
    /// Requests that the server cannot check, because it lacks something.
    pub(super) unchecked: Refusals,
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
        audit: AuditLog,
        serves: bool,
    ) -> Arc<Self> {
        Arc::new(Self {
            metrics: Metrics::new(&engine),
            live: Live::new(),
            tickets: Tickets::default(),
            audit,
            tokens_changed: watch::Sender::default(),
            refusals: Refusals::default(),
            unchecked: Refusals::default(),
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

    /// Accepts these tokens from now on.
    pub fn replace_tokens(&self, tokens: Tokens) {
        self.guard.replace_tokens(tokens);
        self.tokens_changed.send_replace(());
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

    /// What ends the long requests that begin now.
    pub(super) fn ends(&self) -> EndSignal {
        EndSignal {
            phase: self.phase.clone(),
            tokens: self.tokens_changed.subscribe(),
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
    let route = request.extensions().get::<MatchedPath>();
    let rule = Rule::of(request.method(), route.map(MatchedPath::as_str));
    let admitted = match info.caller {
        Caller::Operator => Ok(Admitted::operator(actor.name.clone())),
        // The handler checks their signature.
        Caller::Remote if is_callback(request.uri().path()) || is_hook(request.uri().path()) => {
            Ok(Admitted::anonymous(Access::Nothing))
        }
        Caller::Remote => app.guard.check(
            request.method(),
            request.uri(),
            request.headers(),
            rule.access,
        ),
    };
    let mut response = match admitted {
        Ok(admitted) => {
            if let Some(name) = admitted.name() {
                actor.name = name.to_owned();
            }
            request.extensions_mut().insert(admitted);
            request.extensions_mut().insert(actor.clone());
            match rule.action {
                Some(action) => audited(&app, actor, action, request, next).await,
                None => next.run(request).await,
            }
        }
        Err(problem) => {
            let (method, path) = (request.method(), request.uri().path());
            app.refusals.log(&actor.from, method, path, &problem.detail);
            problem.into_response()
        }
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

/// Carries out a request that changes something, between its two lines in the audit log.
async fn audited(
    app: &App,
    actor: Actor,
    action: &str,
    mut request: Request,
    next: Next,
) -> Response {
    let params = request.extract_parts::<RawPathParams>().await;
    let target = params.ok().map(|params| {
        let values: Vec<&str> = params.iter().map(|(_, value)| value).collect();
        values.join("/")
    });
    let target = target.filter(|target| !target.is_empty());
    let begun = app.audit.begin(now(), actor, action, target.as_deref());
    let begun = match begun.await {
        Ok(begun) => begun,
        Err(error) => return Problem::from(error).into_response(),
    };
    let response = next.run(request).await;
    let status = response.status();
    let result = match response.extensions().get::<ErrorCode>() {
        Some(code) => code.word(),
        None if status.is_success() => AUDIT_DONE,
        None => status.as_str(),
    };
    // The id of a run that was started.
    let location = response.headers().get(header::LOCATION);
    let started = location.and_then(|place| place.to_str().ok()?.strip_prefix("/v1/runs/"));
    begun
        .end(result, started.filter(|_| target.is_none()))
        .await;
    response
}

/// Refused requests, of which one a second is logged.
#[derive(Default)]
pub(super) struct Refusals(Mutex<LoggedRefusals>);

#[derive(Default)]
struct LoggedRefusals {
    last: Option<Instant>,
    /// How many were not logged since then.
    more: u64,
}

impl Refusals {
    pub(super) fn log(&self, from: &str, method: &Method, path: &str, why: &str) {
        let mut logged = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if logged.last.is_some_and(|last| now < last + REFUSALS_EVERY) {
            logged.more += 1;
            return;
        }
        let more = std::mem::take(&mut logged.more);
        logged.last = Some(now);
        tracing::warn!(from, %method, path, why, more, "request refused");
    }
}
