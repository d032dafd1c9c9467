//! The HTTP API, over TCP and over the control socket.
//! It consists of JSON under `/v1`, events as server-sent events, health and metrics. The engine executes the
//! requests; no code here depends on how a run progresses.

mod app;
mod audit;
mod body;
mod bulk;
mod callback;
mod concurrency;
mod edits;
mod events;
mod graph;
mod guard;
mod health;
mod hook;
mod inner_api;
mod iterations;
mod language;
mod listener;
mod live;
mod metrics;
mod openapi;
mod problem;
mod process_metrics;
mod roles;
mod runs;
mod schema;
mod session;
mod sessions;
mod source;
mod starts;
mod state;
mod store;
mod tickets;
mod token_file;
#[cfg_attr(not(feature = "ui"), path = "ui_off.rs")]
mod ui;
mod workflows;

pub(super) use app::{App, Ownership, Phase};
pub use guard::Console;
pub(super) use guard::Settings;
pub use inner_api::InnerApi;
pub(super) use sessions::Sessions;
pub use token_file::Tokens;

use crate::api::Problem;
use axum::Router;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::{get, post, put};
use listener::{ClientListener, ConnectionInfo};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, UnixListener};
use tokio_rustls::TlsAcceptor;
use windlass_engine::ErrorCode;

/// Maximum number of concurrent connections over the control socket.
const CONNECTIONS: usize = 1_024;

/// Timeout for a body over the control socket.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// Serves over TCP until the phase is [`Phase::Draining`] and the last answer was sent.
pub(super) async fn serve_tcp(
    tcp: TcpListener,
    tls: Option<TlsAcceptor>,
    connections: usize,
    idle_timeout: Duration,
    app: Arc<App>,
    further: Option<FurtherRoutes>,
) -> io::Result<()> {
    let further = further.map(|routes| {
        let inner = router(Arc::clone(&app), Router::new());
        routes(InnerApi::new(inner, app.end_signal())).with_state(())
    });
    let listener = ClientListener::tcp(tcp, tls, connections, idle_timeout);
    serve(
        listener,
        router(Arc::clone(&app), further.unwrap_or_default()),
        &app,
    )
    .await
}

/// Creates the routes of another protocol. The guard that protects the API's routes also protects these.
pub type FurtherRoutes = fn(InnerApi) -> Router;

/// Serves on the control socket.
pub(super) async fn serve_socket(unix: UnixListener, app: Arc<App>) {
    let listener = ClientListener::unix(unix, CONNECTIONS, IDLE_TIMEOUT);
    let router = router(Arc::clone(&app), Router::new());
    if let Err(error) = serve(listener, router, &app).await {
        tracing::warn!(%error, "the control socket does not accept");
    }
}

async fn serve(listener: ClientListener, router: Router, app: &App) -> io::Result<()> {
    let mut phase = app.phase.clone();
    let service = router.into_make_service_with_connect_info::<ConnectionInfo>();
    let draining = async move {
        // The result is ignored: an error means that the server has ended.
        let _ = phase.wait_for(|phase| *phase == Phase::Draining).await;
    };
    let serving = axum::serve(listener, service).with_graceful_shutdown(draining);
    serving.await
}

fn router(app: Arc<App>, further: Router<Arc<App>>) -> Router {
    let workflow = put(workflows::put)
        .get(workflows::get)
        .delete(workflows::remove);
    let local = Router::new()
        .route("/v1/owner", get(store::owner))
        .route("/v1/owner/release", post(store::release))
        .route("/v1/backup", post(store::backup))
        .route("/v1/tickets", post(session::ticket))
        .route_layer(from_fn(listener::operator_only));
    Router::new()
        .merge(local)
        .merge(language::routes())
        .merge(edits::routes())
        .merge(callback::routes())
        .merge(hook::routes())
        .merge(state::routes())
        .merge(further)
        .route("/v1/workflows", get(workflows::list))
        .route("/v1/workflows/{name}", workflow)
        .route("/v1/workflows/{name}/versions", get(workflows::versions))
        .route("/v1/workflows/{name}/schedule", get(workflows::schedule))
        .route("/v1/workflows/{name}/schedule/times", get(workflows::times))
        .route(
            "/v1/workflows/{name}/schedule/pause",
            post(workflows::pause_schedule),
        )
        .route(
            "/v1/workflows/{name}/schedule/resume",
            post(workflows::resume_schedule),
        )
        .route("/v1/validate", post(workflows::validate))
        .route("/v1/runs", get(runs::list).post(starts::start))
        .route("/v1/runs/bulk", post(bulk::bulk))
        .route("/v1/runs/{run}", get(runs::status))
        .route("/v1/runs/{run}/result", get(runs::result))
        .route("/v1/runs/{run}/history", get(runs::history))
        .route("/v1/runs/{run}/export", get(iterations::export))
        .route("/v1/runs/{run}/source", get(runs::source))
        .route("/v1/runs/{run}/places", get(runs::places))
        .route("/v1/runs/{run}/printed", get(runs::printed))
        .route("/v1/runs/{run}/loops", get(iterations::loops))
        .route("/v1/runs/{run}/strip", get(iterations::strip))
        .route("/v1/runs/{run}/iterations", get(iterations::list))
        .route("/v1/runs/{run}/iteration", get(iterations::one))
        .route("/v1/runs/{run}/difference", get(iterations::difference))
        .route("/v1/runs/{run}/dump", get(runs::dump))
        .route("/v1/runs/{run}/graph", get(graph::graph))
        .route("/v1/runs/{run}/events", get(events::events))
        .route("/v1/runs/{run}/pause", post(runs::pause))
        .route("/v1/runs/{run}/resume", post(runs::resume))
        .route("/v1/runs/{run}/cancel", post(runs::cancel))
        .route("/v1/runs/{run}/signal", post(runs::signal))
        .route("/v1/runs/{run}/retry", post(starts::retry))
        .route("/v1/events", get(live::live))
        .route("/v1/audit", get(audit::list))
        .route("/v1/me", get(session::me))
        .route("/v1/session", post(session::begin).delete(session::end))
        .route("/v1/resume", post(store::resume))
        .route("/v1/dump", get(store::dump))
        .route("/v1/prune", post(store::prune))
        .route("/", get(ui::redirect))
        .route("/ui", get(ui::redirect))
        .route("/ui/", get(ui::shell))
        .route("/ui/{*path}", get(ui::file))
        .route("/openapi.json", get(openapi::openapi))
        .route("/metrics", get(health::metrics))
        .route("/healthz", get(health::healthz))
        .route("/readyz", get(health::readyz))
        .fallback(async || {
            Problem::new(
                ErrorCode::NotFound,
                "docs/reference/http-api.md lists what there is",
            )
        })
        .method_not_allowed_fallback(async || {
            Problem::new(ErrorCode::MethodNotAllowed, "the header `Allow` lists them")
        })
        .layer(from_fn_with_state(Arc::clone(&app), app::guard))
        .layer(from_fn(listener::mark_busy))
        .with_state(app)
}
