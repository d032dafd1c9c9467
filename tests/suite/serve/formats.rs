//! One server with runs of all four formats, killed repeatedly with SIGKILL, and another server that counts the
//! requests. No request is missing, no process sends one twice, a repeated request is identical, and the results are
//! those of undisturbed runs. `WINDLASS_KILLS` sets the number of kills, and `WINDLASS_BIN` another binary, such as a
//! release.

use super::{PATIENCE, Server, Start};
use crate::store::damage::from_env;
use crate::support::sized;
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, Uri};
use axum::response::Json;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::pin::Pin;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// The number of runs of each format.
const RUNS: usize = 3;

/// No more kills after this time, because the machine may be slow.
const LONGEST: Duration = Duration::from_secs(90);

// ── the server outside ──────────────────────────────────────────────────────────────────────────

/// The requests under one key.
#[derive(Clone, Default)]
struct Effect {
    request: String,
    /// The number of requests from each process.
    requests: BTreeMap<usize, u32>,
}

#[derive(Default)]
struct Book {
    effects: BTreeMap<String, Effect>,
    /// The current process.
    process: usize,
    wrong: Vec<String>,
}

#[derive(Clone)]
struct Outside {
    book: Arc<Mutex<Book>>,
    arrived: Arc<watch::Sender<usize>>,
    /// The number of open connections.
    open: Arc<watch::Sender<usize>>,
}

impl Outside {
    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap()
    }
}

/// The answer depends only on the request: one more than the value sent.
async fn answer(
    State(outside): State<Outside>,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Json<Value> {
    if uri.path() == "/drained" {
        return Json(Value::Null);
    }
    let key = headers
        .get("idempotency-key")
        .map(|key| key.to_str().unwrap());
    let body = String::from_utf8(body.to_vec()).unwrap();
    let request = format!("{uri} {body}");
    {
        let mut book = outside.book();
        let process = book.process;
        match key {
            None => book.wrong.push(format!("no key: {request}")),
            Some(key) => {
                let known = book.effects.entry(key.to_owned()).or_default();
                if known.request.is_empty() {
                    known.request.clone_from(&request);
                }
                *known.requests.entry(process).or_default() += 1;
                let (same, times) = (known.request == request, known.requests[&process]);
                if !same {
                    book.wrong
                        .push(format!("another request as {key}: {request}"));
                }
                if times > 1 {
                    book.wrong
                        .push(format!("{key}: {times} times by one process"));
                }
            }
        }
    }
    outside.arrived.send_modify(|count| *count += 1);
    let sent: Value = serde_json::from_str(&body).unwrap_or_default();
    let query = uri.query().and_then(|query| query.strip_prefix("n="));
    let of = |value: &Value| {
        value
            .as_i64()
            .or_else(|| value.as_str()?.trim().parse().ok())
    };
    let n = match uri.path() {
        "/v1/chat/completions" => of(&sent["messages"][0]["content"]),
        "/agent" => of(&sent["prompt"]),
        _ => query.map_or_else(|| of(&sent["n"]), |n| n.parse().ok()),
    };
    let n = n.unwrap_or_else(|| panic!("no number in {request}")) + 1;
    if uri.path() != "/v1/chat/completions" {
        let session = sent["session_id"].as_str().unwrap_or("s");
        return Json(json!({ "n": n, "session_id": format!("s{}", session.len()) }));
    }
    let message = json!({ "role": "assistant", "content": json!({ "n": n }).to_string() });
    let choice = json!({ "index": 0, "message": message, "finish_reason": "stop" });
    Json(json!({ "id": "1", "object": "chat.completion", "model": "m", "choices": [choice] }))
}

/// A listener that counts its open connections.
struct Counting {
    listener: TcpListener,
    open: Arc<watch::Sender<usize>>,
}

struct Counted {
    stream: TcpStream,
    open: Arc<watch::Sender<usize>>,
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.open.send_modify(|open| *open -= 1);
    }
}

impl axum::serve::Listener for Counting {
    type Io = Counted;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Counted, SocketAddr) {
        let (stream, from) = self.listener.accept().await.unwrap();
        self.open.send_modify(|open| *open += 1);
        let open = self.open.clone();
        (Counted { stream, open }, from)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

impl AsyncRead for Counted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Counted {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[allow(clippy::disallowed_methods)] // A test's server is a task of its own.
async fn outside() -> (Outside, String) {
    let outside = Outside {
        book: Arc::default(),
        arrived: Arc::new(watch::channel(0).0),
        open: Arc::new(watch::channel(0).0),
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let open = outside.open.clone();
    let router = Router::new().fallback(answer).with_state(outside.clone());
    tokio::spawn(async move { axum::serve(Counting { listener, open }, router).await });
    (outside, url)
}

/// Waits until everything that a killed process sent has been read. Connections are accepted in order, so all earlier
/// ones have been accepted before this one; then it waits for their end.
async fn drained(outside: &Outside, base: &str) {
    let request = super::client().get(format!("{base}/drained"));
    let request = request.header("connection", "close");
    assert_eq!(request.send().await.unwrap().status(), 200);
    let mut open = outside.open.subscribe();
    let ended = tokio::time::timeout(PATIENCE, open.wait_for(|open| *open == 0));
    ended.await.expect("connections that do not end").unwrap();
}

// ── the runs ────────────────────────────────────────────────────────────────────────────────────

/// Every run's request, by the run's id.
fn requests(base: &str, to: u64) -> BTreeMap<String, Value> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kills");
    let formats = ["loom.yaml", "azure.json", "tea.yaml", "canvas.yaml"];
    let mut all = BTreeMap::new();
    for file in formats {
        let text = fs::read_to_string(folder.join(file)).unwrap();
        let text = text.replace("BASE", base);
        let (format, _) = file.split_once('.').unwrap();
        for n in 0..RUNS {
            let run = format!("{format}-{n}");
            let body = json!({
                "text": text, "file": file, "dialect": format, "run": run,
                "input": { "base": base, "to": to },
            });
            all.insert(run, body);
        }
    }
    all
}

fn start(state: &Path) -> Start<'_> {
    Start::new(state)
}

fn server(state: &Path) -> Server {
    start(state).spawn_with(with_key)
}

fn with_key(command: &mut Command) {
    command
        .env("OPENAI_API_KEY", "none")
        .env("NO_PROXY", "127.0.0.1");
}

async fn begin(server: &Server, requests: &BTreeMap<String, Value>) {
    for (run, body) in requests {
        let (status, response) = server.post("/v1/runs", body).await;
        assert_eq!(status, 201, "{run}: {response}");
    }
}

/// How each run ended.
async fn outcomes(server: &Server, requests: &BTreeMap<String, Value>) -> BTreeMap<String, Value> {
    let mut all = BTreeMap::new();
    for run in requests.keys() {
        let mut outcome = server.end(run).await;
        assert_eq!(outcome["status"], "Succeeded", "{run}: {outcome}");
        all.insert(run.clone(), outcome["output"].take());
    }
    all
}

#[tokio::test(flavor = "multi_thread")]
#[allow(clippy::disallowed_methods)] // The test measures real time.
async fn runs_of_all_formats_survive_kills() {
    let kills = from_env("WINDLASS_KILLS", sized(30, 10));
    let longest = LONGEST.max(Duration::from_millis(kills * 500));
    // Many requests may arrive between two kills, so there must be enough of them.
    let to = 10 + kills / 2;
    let (outside, base) = outside().await;
    let requests = requests(&base, to);

    // Without kills: the expected requests and results.
    let dir = tempfile::tempdir().unwrap();
    let calm = server(dir.path());
    begin(&calm, &requests).await;
    let wanted = outcomes(&calm, &requests).await;
    assert!(calm.stop().0.success());
    drained(&outside, &base).await;
    let effects = std::mem::take(&mut outside.book().effects);
    assert_eq!(outside.book().wrong, [""; 0]);

    // With kills: each process is killed after some more requests, or while it starts.
    let began = Instant::now();
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("log");
    let state = dir.path().join("state");
    fs::create_dir(&state).unwrap();
    let first = server(&state);
    begin(&first, &requests).await;
    let mut child = None;
    let mut first = Some(first);
    let mut random = StdRng::seed_from_u64(from_env("WINDLASS_SEED", 20_261_121));
    let mut done = 0;
    let mut arrived = outside.arrived.subscribe();
    while done < kills && began.elapsed() < longest {
        if random.random_range(0..4) == 0 {
            tokio::time::sleep(Duration::from_millis(random.random_range(0..40))).await;
        } else {
            let wanted = *arrived.borrow_and_update() + random.random_range(1..=20);
            let reached = arrived.wait_for(|count| *count >= wanted);
            let reached = tokio::time::timeout(PATIENCE, reached).await;
            reached.expect("the runs stand still, or are over").unwrap();
            tokio::time::sleep(Duration::from_micros(random.random_range(0..5_000))).await;
        }
        match (first.take(), child.take()) {
            (Some(server), _) => server.kill(),
            (None, child) => {
                let mut child: std::process::Child = child.unwrap();
                assert_eq!(child.try_wait().unwrap(), None, "{}", text(&log));
                child.kill().unwrap();
                child.wait().unwrap();
            }
        }
        done += 1;
        drained(&outside, &base).await;
        outside.book().process += 1;
        if done < kills {
            let append = fs::OpenOptions::new().create(true).append(true).open(&log);
            let mut command = start(&state).command();
            with_key(&mut command);
            child = Some(
                command
                    .stderr(Stdio::from(append.unwrap()))
                    .spawn()
                    .unwrap(),
            );
        }
    }
    if let Some(mut child) = child {
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let last = server(&state);
    let got = outcomes(&last, &requests).await;
    let (status, stderr) = last.stop();
    assert!(status.success());
    drained(&outside, &base).await;

    let stderr = stderr + &text(&log);
    assert!(!stderr.contains("panicked"), "{stderr}");
    assert_eq!(got, wanted);
    let book = outside.book();
    assert_eq!(book.wrong, [""; 0]);
    let keys = |of: &BTreeMap<String, Effect>| of.keys().cloned().collect::<BTreeSet<_>>();
    assert_eq!(
        keys(&book.effects),
        keys(&effects),
        "missing, or unrequested"
    );
    for (key, effect) in &book.effects {
        assert_eq!(effect.request, effects[key].request, "{key}");
    }
    let repeated: usize = book
        .effects
        .values()
        .map(|one| one.requests.len() - 1)
        .sum();
    let most = book.effects.values().map(|one| one.requests.len()).max();
    eprintln!(
        "{} runs, {done} kills, {} effects, {repeated} repetitions, {} times at most: {:.1} s",
        requests.len(),
        effects.len(),
        most.unwrap_or(0),
        began.elapsed().as_secs_f64()
    );
    assert!(done == kills || began.elapsed() >= longest);
}

fn text(log: &Path) -> String {
    fs::read_to_string(log).unwrap_or_default()
}
