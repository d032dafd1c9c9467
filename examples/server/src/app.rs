//! The web application that the examples and the tests talk to: jobs to poll, pages to walk, a queue to drain, an
//! endpoint that fails and one that hangs. It keeps its data in memory and uses nothing of Windlass.

#[path = "model.rs"]
mod model;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, Query, Request, State};
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Json, Response};
use axum::routing::{any, get, post};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Items on a page of `/items`, `/data` and `/pages`.
const PAGE_SIZE: u32 = 3;

/// What the application answers if the request does not specify it.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// How many polls of a job say `running` before one says `complete`.
    pub polls: u32,
    /// How many pages there are.
    pub pages: u32,
    /// How many messages a queue has at the start.
    pub queue: u32,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            polls: 5,
            pages: 4,
            queue: 5,
        }
    }
}

/// All endpoints:
///
/// | endpoint | answer |
/// |---|---|
/// | `POST /jobs` | `{id}` |
/// | `GET /jobs/{id}` (`?polls=N`) | `{id, status, polls}`: `running` N times, then `complete` with a `url`. A poll repeated under one `Idempotency-Key` counts once. An unknown id starts a job |
/// | `GET /jobs/{id}/result` | `{id, rows}` |
/// | `GET /items?page=N` | `{page, items, hasMore}` |
/// | `GET /data?pageToken=T` | `{items, nextPageToken}`; the token is null at the end |
/// | `GET /pages/{n}` | `{page, items, nextPageUrl}` and a `Link` header; the URL is null at the end |
/// | `GET /flaky?fails=N&key=K` (`&after=S`) | 503 with `Retry-After: S` N times for each K, then 200 |
/// | `GET /queue` (`?name=Q&size=N`) | `{length, next}`; `next` is null when it is empty |
/// | `POST /process` (`?name=Q`) | removes the message with the body's `id` from the queue: `{processed, remaining, total}` |
/// | any `/echo` | `{method, query, headers, body}` |
/// | `POST /v1/chat/completions` | the answer of a model, see `model.rs` |
/// | `GET /hang` | no answer, ever |
/// | `GET /log` | `{total, requests: [{method, path, key, count}]}`: every other request so far; equal requests are counted together |
pub fn router(options: Options) -> Router {
    let app = App {
        options,
        memory: Arc::default(),
    };
    Router::new()
        .route("/jobs", post(create_job))
        .route("/jobs/{id}", get(poll_job))
        .route("/jobs/{id}/result", get(job_result))
        .route("/items", get(items))
        .route("/data", get(data))
        .route("/pages/{page}", get(pages))
        .route("/flaky", get(flaky))
        .route("/queue", get(queue))
        .route("/process", post(process))
        .route("/token", post(token))
        .route("/echo", any(echo))
        .route("/v1/chat/completions", post(model::chat))
        .route("/hang", any(std::future::pending::<()>))
        .layer(from_fn_with_state(app.clone(), record))
        .route("/log", get(log))
        .with_state(app)
}

#[derive(Clone)]
struct App {
    options: Options,
    memory: Arc<Mutex<Memory>>,
}

#[derive(Default)]
struct Memory {
    requests: Vec<Logged>,
    jobs: BTreeMap<String, Job>,
    flaky: HashMap<String, u32>,
    queues: HashMap<String, VecDeque<u32>>,
    processed: u32,
}

#[derive(Default)]
struct Job {
    polls: u32,
    answered: HashMap<String, u32>,
}

#[derive(PartialEq)]
struct Logged {
    method: String,
    path: String,
    key: Option<String>,
    count: u32,
}

type Queries = Query<HashMap<String, String>>;

impl App {
    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Memory {
    fn queue(&mut self, name: &str, size: u32) -> &mut VecDeque<u32> {
        self.queues
            .entry(name.to_owned())
            .or_insert_with(|| (1..=size).collect())
    }
}

async fn record(State(app): State<App>, request: Request, next: Next) -> Response {
    let method = request.method().to_string();
    let path = request.uri().to_string();
    let key = idempotency_key(request.headers());
    {
        let mut memory = app.memory();
        let seen = memory
            .requests
            .iter_mut()
            .find(|seen| seen.method == method && seen.path == path && seen.key == key);
        match seen {
            Some(seen) => seen.count += 1,
            None => memory.requests.push(Logged {
                method,
                path,
                key,
                count: 1,
            }),
        }
    }
    next.run(request).await
}

async fn log(State(app): State<App>) -> Json<Value> {
    let memory = app.memory();
    let requests: Vec<Value> = memory
        .requests
        .iter()
        .map(|seen| {
            json!({
                "method": seen.method, "path": seen.path, "key": seen.key, "count": seen.count,
            })
        })
        .collect();
    let total: u32 = memory.requests.iter().map(|seen| seen.count).sum();
    Json(json!({ "total": total, "requests": requests }))
}

async fn create_job(State(app): State<App>) -> impl IntoResponse {
    let mut memory = app.memory();
    let id = (1..)
        .map(|number: u32| format!("job-{number}"))
        .find(|id| !memory.jobs.contains_key(id))
        .unwrap_or_default();
    memory.jobs.insert(id.clone(), Job::default());
    (StatusCode::CREATED, Json(json!({ "id": id })))
}

/// A token of OAuth 2.0.
async fn token() -> Json<Value> {
    Json(json!({ "access_token": "an-example", "token_type": "Bearer", "expires_in": 3600 }))
}

async fn poll_job(
    State(app): State<App>,
    Path(id): Path<String>,
    Query(query): Queries,
    headers: HeaderMap,
) -> Json<Value> {
    let running = number(&query, "polls", app.options.polls);
    let mut memory = app.memory();
    let job = memory.jobs.entry(id.clone()).or_default();
    let poll = match idempotency_key(&headers) {
        // The same poll repeated after a crash of the client gets the same answer.
        Some(key) => *job.answered.entry(key).or_insert_with(|| {
            job.polls += 1;
            job.polls
        }),
        None => {
            job.polls += 1;
            job.polls
        }
    };
    Json(if poll > running {
        let url = format!("{}/jobs/{id}/result", base(&headers));
        json!({ "id": id, "status": "complete", "polls": poll, "url": url })
    } else {
        json!({ "id": id, "status": "running", "polls": poll })
    })
}

async fn job_result(Path(id): Path<String>) -> Json<Value> {
    Json(json!({ "id": id, "rows": 42 }))
}

async fn items(State(app): State<App>, Query(query): Queries) -> Json<Value> {
    let page = number(&query, "page", 1);
    Json(json!({
        "page": page,
        "items": page_items(&app, page),
        "hasMore": page < app.options.pages,
    }))
}

async fn data(State(app): State<App>, Query(query): Queries) -> Response {
    let token = query.get("pageToken").map_or("", String::as_str);
    let page = match token {
        "" => Some(1),
        token => token
            .strip_prefix("page-")
            .and_then(|page| page.parse().ok()),
    };
    let Some(page) = page else {
        let message = format!("no page has the token {token:?}");
        return (StatusCode::BAD_REQUEST, Json(json!({ "error": message }))).into_response();
    };
    let next = (page < app.options.pages).then(|| format!("page-{}", page + 1));
    Json(json!({ "items": page_items(&app, page), "nextPageToken": next })).into_response()
}

async fn pages(State(app): State<App>, Path(page): Path<u32>, headers: HeaderMap) -> Response {
    let next = (page < app.options.pages).then(|| format!("{}/pages/{}", base(&headers), page + 1));
    let link = next.as_ref().map(|next| format!("<{next}>; rel=\"next\""));
    let body = Json(json!({
        "page": page,
        "items": page_items(&app, page),
        "nextPageUrl": next,
    }));
    match link {
        Some(link) => ([(header::LINK, link)], body).into_response(),
        None => body.into_response(),
    }
}

async fn flaky(State(app): State<App>, Query(query): Queries) -> Response {
    let key = query.get("key").cloned().unwrap_or_default();
    let mut memory = app.memory();
    let calls = memory.flaky.entry(key).or_default();
    *calls += 1;
    if *calls <= number(&query, "fails", 2) {
        let after = number(&query, "after", 1).to_string();
        let body = Json(json!({ "error": "not yet", "calls": *calls }));
        let status = StatusCode::SERVICE_UNAVAILABLE;
        return (status, [(header::RETRY_AFTER, after)], body).into_response();
    }
    Json(json!({ "status": "ok", "calls": *calls })).into_response()
}

async fn queue(State(app): State<App>, Query(query): Queries) -> Json<Value> {
    let size = number(&query, "size", app.options.queue);
    let mut memory = app.memory();
    let queue = memory.queue(queue_name(&query), size);
    let next = queue.front().map(|id| item(*id));
    Json(json!({ "length": queue.len(), "next": next }))
}

async fn process(
    State(app): State<App>,
    Query(query): Queries,
    Json(message): Json<Value>,
) -> Json<Value> {
    let mut memory = app.memory();
    memory.processed += 1;
    let total = memory.processed;
    let queue = memory.queue(queue_name(&query), app.options.queue);
    // Removes by id, so that processing a message twice removes only one message.
    queue.retain(|id| message.get("id") != Some(&json!(id)));
    Json(json!({ "processed": message, "remaining": queue.len(), "total": total }))
}

async fn echo(
    method: Method,
    uri: Uri,
    Query(query): Queries,
    headers: HeaderMap,
    body: Bytes,
) -> Json<Value> {
    let text = String::from_utf8_lossy(&body);
    let headers: BTreeMap<&str, String> = headers
        .iter()
        .map(|(name, value)| {
            let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
            (name.as_str(), value)
        })
        .collect();
    Json(json!({
        "method": method.as_str(),
        "path": uri.to_string(),
        "query": query,
        "headers": headers,
        "body": serde_json::from_str(&text).unwrap_or_else(|_| json!(text)),
    }))
}

fn item(id: u32) -> Value {
    json!({ "id": id, "name": format!("item {id}") })
}

fn page_items(app: &App, page: u32) -> Vec<Value> {
    if page == 0 || page > app.options.pages {
        return Vec::new();
    }
    let first = (page - 1) * PAGE_SIZE + 1;
    (first..first + PAGE_SIZE).map(item).collect()
}

fn queue_name(query: &HashMap<String, String>) -> &str {
    query.get("name").map_or("queue", String::as_str)
}

fn number(query: &HashMap<String, String>, key: &str, default: u32) -> u32 {
    query
        .get(key)
        .and_then(|text| text.parse().ok())
        .unwrap_or(default)
}

fn idempotency_key(headers: &HeaderMap) -> Option<String> {
    let key = headers.get("idempotency-key")?;
    Some(String::from_utf8_lossy(key.as_bytes()).into_owned())
}

/// The server's own address, as the caller wrote it.
fn base(headers: &HeaderMap) -> String {
    let host = headers
        .get(header::HOST)
        .and_then(|host| host.to_str().ok())
        .unwrap_or("127.0.0.1");
    format!("http://{host}")
}
