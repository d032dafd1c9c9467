//! Starts and retries of runs over HTTP. A request with a key or an id can be repeated.

use super::app::{App, Lane, blocking, compute};
use super::body::{Optional, PathParam};
use super::listener::Caller;
use super::runs::invalid_parameter;
use super::schema::OrWorkflow;
use super::source::{BodyForm, Envelope, Source, bundle, dialect};
use crate::api::{LocalStart, Problem, RetryRun, StartRun};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use std::sync::Arc;
use std::time::Duration;
use windlass_engine::report::RunSummary;
use windlass_engine::{
    Bundle, EngineError, ErrorCode, KeyedStart, LoadOptions, Origin, RequestId, StartOptions,
    Started, Stubs, Value, Workflow, check_labels, check_run_id, new_id,
};

/// The body of a request that starts a run: a `StartRun`, or only a workflow.
type StartBody = OrWorkflow<StartRun>;

/// The header with the idempotency key that the caller chose.
const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// Maximum length of an idempotency key, in bytes.
const MAX_KEY: usize = 256;

impl Envelope for StartRun {
    const MEMBERS: &'static [&'static str] = &[
        "workflow",
        "text",
        "file",
        "files",
        "dialect",
        "run",
        "input",
        "stubs",
        "labels",
        "scheduled_time",
    ];
    const ACCEPTS_ANY_MEDIA_TYPE: bool = false;

    fn plain_start(text: String) -> Self {
        Self {
            text: Some(text),
            ..Self::default()
        }
    }
}

/// Start a run.
///
/// When the response is sent, the first step of the run is durable. With an `Idempotency-Key`, the request can be
/// repeated: a repetition returns the same run with status 200.
#[utoipa::path(post, path = "/v1/runs", operation_id = "start_run", tag = "runs", request_body(content((StartBody = "application/json"), (String = "application/yaml"), (String = "text/plain"))),
    params(("Idempotency-Key" = Option<String>, Header, description = "Key chosen by the caller, per workflow; a request with the same key returns the same run")),
    responses(
        (status = 201, description = "The run was started", body = RunSummary, headers(("Location" = String, description = "Run id"))),
        (status = 200, description = "The same request started it before", body = RunSummary),
        (status = "4XX", description = "It was not started: 404 unknown workflow, 409 the id is taken, 422 refused workflow or input, 429 the queue is full", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", description = "It may have been started: repeat it with the same key", body = Problem, content_type = "application/problem+json"),
    ))]
pub(super) async fn start(
    State(app): State<Arc<App>>,
    caller: Caller,
    headers: HeaderMap,
    Source(start, form): Source<StartRun>,
) -> Result<Response, Problem> {
    app.check_accepts_work(caller)?;
    let key = key(&headers)?;
    if key.is_some() && start.run.is_some() {
        let detail = "a run's id is a key itself: send either `run` or an Idempotency-Key";
        return Err(Problem::new(ErrorCode::BadRequest, detail));
    }
    check_labels(&start.labels).map_err(invalid_parameter)?;
    check_request_id(start.request_id.as_deref(), start.run.as_deref())?;
    let input = match (&start.input, &start.stubs) {
        (Value::Null, Some(stubs)) => read_stubs(stubs)?.input.unwrap_or_default(),
        (input, _) => input.clone(),
    };
    let saved_as = start.workflow.as_deref();
    let options = StartOptions {
        id: start.run.clone().map(run_id).transpose()?,
        labels: start.labels.clone(),
    };
    let options = match start.scheduled_time {
        Some(time) => options.scheduled(saved_as, time),
        None => options,
    };
    let keyed = |name: &str, key: &str, text: Option<&Bundle>| {
        KeyedStart::new(name, key, &input, options.labels.clone(), text)
    };
    let keyed_saved = key.as_deref().zip(saved_as);
    let keyed_saved = keyed_saved.map(|(key, name)| keyed(name, key, None));
    // Look up the run before the workflow: a repetition is equal even if the workflow was deleted meanwhile.
    if let Some(keyed) = &keyed_saved
        && let Some(earlier) = app.engine.keyed_run(keyed)?
    {
        return answer(&app, &earlier);
    }
    let workflow = workflow(&app, caller, &start, form).await?;
    let started = if let Some(key) = key {
        let name = &workflow.program().name;
        let keyed = keyed_saved.unwrap_or_else(|| keyed(name, &key, Some(workflow.bundle())));
        app.engine.start_once(&workflow, input, &keyed).await?
    } else {
        let id = options.id.clone();
        let id = id.unwrap_or_else(|| new_id(&workflow.program().name));
        let text = saved_as.is_none().then(|| workflow.bundle());
        let request_id = start.request_id.as_deref();
        let request_id =
            request_id.map(|id| RequestId::of_request(id, saved_as, &input, &options.labels, text));
        let options = options.id(id.clone()).request_id(request_id.as_ref());
        let begun = app.engine.launch(&workflow, input, options).await;
        let begun = begun.map(|run| Started { run, fresh: true });
        or_repeated(&app, &id, request_id.as_ref(), begun).await?
    };
    answer(&app, &started)
}

/// Returns the run of a start. If the run exists because this request was sent before, resumes it: its owner may have
/// ended before it could answer.
async fn or_repeated(
    app: &App,
    run: &str,
    request_id: Option<&RequestId>,
    begun: Result<Started, EngineError>,
) -> Result<Started, Problem> {
    match begun {
        Err(error)
            if error.code() == ErrorCode::RunExists
                && app.engine.was_started_by(run, request_id).await? =>
        {
            // A paused run stays paused.
            if app.engine.inspector().header(run)?.status.is_progressing() {
                match app.engine.resume(run).await {
                    Err(error) if error.code() != ErrorCode::RunEnded => return Err(error.into()),
                    _ => {}
                }
            }
            Ok(Started {
                run: run.into(),
                fresh: false,
            })
        }
        other => Ok(other?),
    }
}

fn check_request_id(request_id: Option<&str>, run: Option<&str>) -> Result<(), Problem> {
    let detail = match (request_id, run) {
        (None, _) => return Ok(()),
        (Some(_), None) => {
            String::from("`request_id` needs `run`: without it, use an Idempotency-Key")
        }
        (Some(id), Some(_)) if (1..=MAX_KEY).contains(&id.len()) => return Ok(()),
        (Some(_), Some(_)) => format!("`request_id` has 1 to {MAX_KEY} bytes"),
    };
    Err(Problem::new(ErrorCode::BadRequest, detail))
}

/// Creates the answer to a start.
/// A run that was just started has its header in memory, so reading the header does not block.
fn answer(app: &App, started: &Started) -> Result<Response, Problem> {
    let header = app.engine.inspector().header(&started.run)?;
    let location = format!("/v1/runs/{}", started.run);
    let status = if started.fresh {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    };
    let body = axum::Json(RunSummary::new(&header));
    Ok((status, [(header::LOCATION, location)], body).into_response())
}

fn key(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let Some(value) = headers.get(IDEMPOTENCY_KEY) else {
        return Ok(None);
    };
    let key = value.to_str().unwrap_or_default().trim();
    if key.is_empty() || key.len() > MAX_KEY {
        let detail = format!("an Idempotency-Key has 1 to {MAX_KEY} visible characters");
        return Err(Problem::new(ErrorCode::BadRequest, detail));
    }
    Ok(Some(key.to_owned()))
}

/// Checks a run's id that the caller chose, and returns it.
fn run_id(id: String) -> Result<String, Problem> {
    check_run_id(&id).map_err(invalid_parameter)?;
    Ok(id)
}

fn read_stubs(stubs: &Value) -> Result<Stubs, Problem> {
    let stubs = Stubs::read(stubs, "stubs");
    stubs.map_err(|why| Problem::new(ErrorCode::BadRequest, format!("`stubs`: {why}")))
}

async fn workflow(
    app: &Arc<App>,
    caller: Caller,
    start: &StartRun,
    form: BodyForm,
) -> Result<Arc<Workflow>, Problem> {
    if start.local.is_some() && caller == Caller::Remote {
        let detail =
            "`local` (caps, handlers and a folder of a run's own) is taken over control.sock";
        return Err(Problem::new(ErrorCode::LocalOnly, detail));
    }
    let text = match (&start.workflow, &start.text) {
        (Some(name), None) => {
            let with_text =
                start.file.is_some() || start.dialect.is_some() || start.local.is_some();
            if with_text || !start.files.is_empty() || start.stubs.is_some() {
                let detail = "`file`, `files`, `dialect`, `stubs` and `local` go with `text`";
                return Err(Problem::new(ErrorCode::BadRequest, detail));
            }
            if let Some(found) = app.engine.workflow_at_hand(name) {
                return Ok(found);
            }
            let (engine, requested) = (Arc::clone(&app.engine), name.clone());
            let found = blocking(move || {
                let found = engine.workflow(&requested)?;
                found.ok_or_else(|| engine.inspector().no_workflow(&requested).into())
            });
            return found.await;
        }
        (None, Some(text)) => text.clone(),
        _ => {
            let detail = "a run is started with either `workflow`, a name, or `text`";
            return Err(Problem::new(ErrorCode::BadRequest, detail));
        }
    };
    let LocalStart {
        max_count,
        max_timeout_ms,
        mut handlers,
        folder,
        guest,
    } = start.local.clone().unwrap_or_default();
    let stubs = start.stubs.as_ref().map(read_stubs).transpose()?;
    let stubs = stubs.unwrap_or_default();
    handlers.extend(stubs.handlers);
    let options = LoadOptions {
        siblings: stubs.values,
        dialect: dialect(start.dialect.as_deref())?,
        origin: match guest {
            true => Origin::Guest,
            false => caller.origin(),
        },
        max_count,
        max_timeout: max_timeout_ms.map(Duration::from_millis),
        handlers,
        folder,
        ..LoadOptions::default()
    };
    let file = start.file.clone();
    let file = file.unwrap_or_else(|| form.file("workflow"));
    let bundle = bundle(file, text, &start.files);
    let app = Arc::clone(app);
    let load = move || {
        let loaded = app.engine.load_bundle(bundle, &options)?;
        Ok(Arc::new(loaded.refuse_bad_scripts()?))
    };
    let lane = match caller {
        Caller::Operator => Lane::Operator,
        Caller::Remote => Lane::RemoteOperate,
    };
    compute(lane, move |_| load()).await
}

/// Retry a run that failed, timed out or was cancelled.
///
/// The retry is a new run of the same version, with the label `windlass.retry_of`. It starts at the beginning with the
/// same input, or at `from` with the state at that time. The old run stays unchanged.
#[utoipa::path(post, path = "/v1/runs/{run}/retry", operation_id = "retry_run", tag = "runs", request_body = Option<RetryRun>, params(("run" = String, Path, description = "Run id")),
    responses(
        (status = 201, description = "The new run was started", body = RunSummary, headers(("Location" = String, description = "The new run"))),
        (status = "4XX", description = "404 unknown run, 409 it did not end badly, or was not at the place", body = Problem, content_type = "application/problem+json"),
    ))]
pub(super) async fn retry(
    State(app): State<Arc<App>>,
    caller: Caller,
    PathParam(run): PathParam,
    Optional(retry): Optional<RetryRun>,
) -> Result<Response, Problem> {
    app.check_accepts_work(caller)?;
    check_request_id(retry.request_id.as_deref(), retry.run.as_deref())?;
    let id = retry.run.map(run_id).transpose()?;
    let options = StartOptions {
        id: id.clone(),
        ..StartOptions::default()
    };
    let from = retry.from.as_deref();
    let request_id = retry.request_id.as_deref().map(|id| {
        let retried = Value::from_pairs([
            ("run", Value::from(&*run)),
            ("from", from.map_or(Value::Null, Value::from)),
        ]);
        RequestId::of_request(id, None, &retried, &options.labels, None)
    });
    let options = options.request_id(request_id.as_ref());
    let begun = app.engine.retry(&run, from, options).await;
    let id = id.unwrap_or_default();
    let started = or_repeated(&app, &id, request_id.as_ref(), begun).await?;
    answer(&app, &started)
}
