//! The state that all requests share: the engine, and the phase of the server.

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

/// Limits the concurrent requests that read the store; others wait.
/// More threads would not read faster, and each thread retains the memory that it once allocated.
static READS: Semaphore = Semaphore::const_new(8);

/// Limits the concurrent readiness checks. They have a limit of their own, because they must not wait for other
/// requests.
static CHECKS: Semaphore = Semaphore::const_new(2);

/// Limits the concurrent requests that compute. There is a limit for each of three groups of callers: the operator,
/// tokens that may start runs, and tokens with read access. So no group makes another one wait.
static OPERATOR_PERMITS: Semaphore = Semaphore::const_new(4);
static REMOTE_OPERATE_PERMITS: Semaphore = Semaphore::const_new(3);
static REMOTE_VIEW_PERMITS: Semaphore = Semaphore::const_new(2);

/// Minimum time between two refused requests that are logged.
const REFUSALS_EVERY: Duration = Duration::from_secs(1);

/// The group of callers whose limit applies to a request while it computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lane {
    /// The operator: a command on the server's machine.
    Operator,
    /// A remote caller with the role `operate` or `admin`.
    RemoteOperate,
    /// Any other remote caller.
    RemoteView,
}

impl Lane {
    fn permits(self) -> &'static Semaphore {
        match self {
            Self::Operator => &OPERATOR_PERMITS,
            Self::RemoteOperate => &REMOTE_OPERATE_PERMITS,
            Self::RemoteView => &REMOTE_VIEW_PERMITS,
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
            (Caller::Remote, Some(Access::Operate | Access::Admin)) => Self::RemoteOperate,
            (Caller::Remote, _) => Self::RemoteView,
        })
    }
}

/// Aborts a computation when its client has disconnected.
struct CancelFlag(Arc<AtomicBool>);

impl Drop for CancelFlag {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The phase of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// Earlier runs are being recovered.
    Starting,
    /// The server accepts work.
    Ready,
    /// The server refuses new work, and answers all other requests.
    Stopping,
    /// The server accepts no more connections, and sends the last answers.
    Draining,
}

/// The signals that end a long request, such as a stream of events.
#[derive(Clone)]
pub(super) struct EndSignal {
    phase: watch::Receiver<Phase>,
    tokens: watch::Receiver<()>,
}

impl EndSignal {
    /// Waits until a long request must end.
    /// That is when the server stops, or when the accepted tokens change. Requests of the operator continue until the
    /// phase is [`Phase::Draining`].
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

/// The state that all requests share.
pub(crate) struct App {
    pub(super) engine: Arc<Engine>,
    pub(super) phase: watch::Receiver<Phase>,
    pub(super) guard: Guard,
    pub(super) metrics: Metrics,
    pub(super) live: Live,
    pub(super) tickets: Tickets,
    pub(super) audit: AuditLog,
    /// Notified when the accepted tokens change.
    tokens_changed: watch::Sender<()>,
    pub(super) refusals: Refusals,
    /// The log of the requests that the server cannot check, because its configuration is incomplete.
    pub(super) unchecked: Refusals,
    /// The URL of the console, if the server has one.
    pub(super) console: Option<String>,
    pub(super) ownership: Ownership,
}

/// How long the process owns the store.
#[derive(Clone)]
pub(crate) enum Ownership {
    /// Until it receives a request to stop: the process is a server.
    Served,
    /// Until its own runs have ended.
    OwnRuns,
    /// Until a server requests the store. The channel says whether one has.
    UntilRequested(watch::Sender<bool>),
}

impl App {
    pub fn new(
        engine: Arc<Engine>,
        phase: watch::Receiver<Phase>,
        settings: Settings,
        audit: AuditLog,
        ownership: Ownership,
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
            ownership,
        })
    }

    /// Replaces the accepted tokens.
    pub fn replace_tokens(&self, tokens: Tokens) {
        self.guard.replace_tokens(tokens);
        self.tokens_changed.send_replace(());
    }

    fn phase(&self) -> Phase {
        *self.phase.borrow()
    }

    /// Refuses new work before recovery has ended, and while the server stops.
    /// For requests of the operator, the engine decides whether it accepts work.
    pub(super) fn check_accepts_work(&self, caller: Caller) -> Result<(), Problem> {
        let why = match (caller, self.phase()) {
            (Caller::Operator, _) | (_, Phase::Ready) => return Ok(()),
            (_, Phase::Starting) => "the server is starting",
            (_, Phase::Stopping | Phase::Draining) => "the server is stopping",
        };
        Err(Problem::new(ErrorCode::Unavailable, why))
    }

    /// Refuses a long request while the server stops, because the request would end at once.
    pub(super) fn check_accepts_long(&self, caller: Caller) -> Result<(), Problem> {
        match self.phase() {
            Phase::Starting => Ok(()),
            Phase::Ready | Phase::Stopping | Phase::Draining => self.check_accepts_work(caller),
        }
    }

    /// Returns the signals that end a long request. They react only to changes after this call.
    pub(super) fn end_signal(&self) -> EndSignal {
        EndSignal {
            phase: self.phase.clone(),
            tokens: self.tokens_changed.subscribe(),
        }
    }

    /// Checks whether the store accepts writes.
    pub(super) async fn check_writable(&self) -> Result<(), Problem> {
        let inspector = self.engine.inspector().clone();
        on_thread(&CHECKS, move || Ok(inspector.check_writable()?)).await
    }

    /// Reads the store, on a thread where blocking is allowed.
    pub(super) async fn inspect<T, F>(&self, read: F) -> Result<T, Problem>
    where
        T: Send + 'static,
        F: FnOnce(&Inspector) -> Result<T, EngineError> + Send + 'static,
    {
        let inspector = self.engine.inspector().clone();
        blocking(move || read(&inspector).map_err(Problem::from)).await
    }
}

/// Computes for a client. If the client disconnects, the computation is aborted.
pub(super) async fn compute<T, F>(lane: Lane, work: F) -> Result<T, Problem>
where
    T: Send + 'static,
    F: FnOnce(Budget) -> Result<T, Problem> + Send + 'static,
{
    let flag = Arc::new(AtomicBool::new(false));
    let _client = CancelFlag(Arc::clone(&flag));
    on_thread(lane.permits(), move || work(Budget::default().until(flag))).await
}

/// Runs work that blocks, on a thread where blocking is allowed.
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
    // The semaphore is never closed, so this cannot fail.
    let place = places.acquire().await;
    let done = tokio::task::spawn_blocking(move || {
        // The permit is held until the work ends, even if the client has disconnected.
        let _place = place;
        work()
    });
    match done.await {
        Ok(outcome) => outcome,
        Err(error) => Err(Problem::new(ErrorCode::Internal, error.to_string())),
    }
}

/// The routes of the API on which a request that changes something has query parameters.
const CHANGES_WITH_QUERY: [&str; 5] = [
    "/v1/callbacks/{run}/{signal}",
    "/v1/hooks/{workflow}",
    "/v1/resume",
    "/v1/state/{workflow}/{name}",
    "/v1/validate",
];

/// The routes of the API on which a request that reads has query parameters.
const READS_WITH_QUERY: [&str; 20] = [
    "/v1/audit",
    "/v1/callbacks/{run}/{signal}",
    "/v1/dump",
    "/v1/events",
    "/v1/runs",
    "/v1/runs/{run}/difference",
    "/v1/runs/{run}/dump",
    "/v1/runs/{run}/events",
    "/v1/runs/{run}/graph",
    "/v1/runs/{run}/history",
    "/v1/runs/{run}/iteration",
    "/v1/runs/{run}/iterations",
    "/v1/runs/{run}/places",
    "/v1/runs/{run}/result",
    "/v1/runs/{run}/strip",
    "/v1/state",
    "/v1/state/{workflow}/{name}",
    "/v1/workflows",
    "/v1/workflows/{name}",
    "/v1/workflows/{name}/schedule/times",
];

/// Refuses query parameters if the route has none. A misplaced `dry_run` or `limit` would be ignored otherwise. The
/// handlers of the other routes refuse the names that they do not know.
fn unknown_query(request: &Request, route: &str) -> Option<Problem> {
    let query = request.uri().query().filter(|query| !query.is_empty())?;
    let with_query = match *request.method() {
        Method::GET | Method::HEAD => &READS_WITH_QUERY[..],
        _ => &CHANGES_WITH_QUERY[..],
    };
    if !route.starts_with("/v1/") || with_query.contains(&route) {
        return None;
    }
    // A value may be secret, and the detail is logged.
    let names = query.split('&').filter_map(|pair| pair.split('=').next());
    let names: Vec<&str> = names.collect();
    let detail = format!(
        "this request has no query parameter `{}`",
        names.join("`, `")
    );
    Some(Problem::new(ErrorCode::BadRequest, detail))
}

/// Admits a request, or answers why it is refused.
/// The control socket is accessible only to the operator, so its requests are not checked. Handlers receive the
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
        // The handlers of callbacks and webhooks check the signature, so no token is needed here.
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
    let route = route.map(MatchedPath::as_str).unwrap_or_default();
    let unknown = unknown_query(&request, route);
    let admitted = admitted.and_then(|admitted| match unknown {
        None => Ok(admitted),
        Some(problem) => Err(problem),
    });
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
    // The files of the console have an `ETag` and set their own cache lifetime. No other answer may be cached.
    if !headers.contains_key(header::ETAG) {
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    let nosniff = HeaderValue::from_static("nosniff");
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, nosniff);
    response
}

/// Executes a request that changes something. Writes an entry to the audit log before and after the request.
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
    // If the request started a run, the id of the new run.
    let location = response.headers().get(header::LOCATION);
    let started = location.and_then(|place| place.to_str().ok()?.strip_prefix("/v1/runs/"));
    begun
        .end(result, started.filter(|_| target.is_none()))
        .await;
    response
}

/// Logs refused requests, at most one per second.
#[derive(Default)]
pub(super) struct Refusals(Mutex<LoggedRefusals>);

#[derive(Default)]
struct LoggedRefusals {
    last: Option<Instant>,
    /// Number of refused requests since the last logged one.
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
