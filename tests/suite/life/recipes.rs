//! Recipes of `docs/guides/cookbook.md` that need their own server: each runs to its end, and is also killed at a
//! request and resumed.

use crate::life::first_use::Folder;
use crate::life::process::{Following, Place};
use crate::support::{lacking, serve};
use axum::body::to_bytes;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::{Json, Router};
use serde_json::{Value, json};
use std::ffi::OsStr;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use tokio::sync::Notify;
use windlass_engine::now;

/// The text of a recipe.
fn recipe(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/cookbook");
    std::fs::read_to_string(folder.join(format!("{name}.yaml"))).unwrap()
}

/// A request that a server received.
struct Seen {
    /// Its method and its address.
    line: String,
    key: String,
    body: String,
    at_ms: i64,
}

/// How many of the requests begin with `line`.
fn count(seen: &[Seen], line: &str) -> usize {
    seen.iter().filter(|one| one.line.starts_with(line)).count()
}

/// The answer to the last of the requests.
type Answer = fn(&[Seen]) -> Response;

#[derive(Clone)]
struct Server {
    answer: Answer,
    /// The number of the request, from 1, that is not answered; 0 for none.
    silent_at: usize,
    is_silent: Arc<Notify>,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Server {
    fn new(answer: Answer, silent_at: usize) -> Self {
        Self {
            answer,
            silent_at,
            is_silent: Arc::default(),
            seen: Arc::default(),
        }
    }

    async fn start(&self) -> String {
        serve(Router::new().fallback(respond).with_state(self.clone())).await
    }

    /// Runs a workflow. If a request is not answered, kills the process and resumes the run. Returns its outputs.
    async fn run(&self, folder: &Folder, text: &str, inputs: &[&str]) -> Value {
        folder.file("recipe.yaml", text);
        let secrets = tempfile::tempdir().unwrap();
        for name in ["GITHUB_TOKEN", "OPENAI_API_KEY"] {
            std::fs::write(secrets.path().join(name), "a-secret-of-a-test").unwrap();
        }
        let secrets = ["--secrets", secrets.path().to_str().unwrap()];
        let mut args = vec!["run", "recipe.yaml", "--id", "r"];
        for input in inputs {
            args.extend(["-i", *input]);
        }
        args.extend(secrets);
        let ran = match self.silent_at {
            0 => folder.run(&args),
            _ => {
                let mut run = folder.start(&args);
                self.is_silent.notified().await;
                run.kill().unwrap();
                run.wait().unwrap();
                folder.run(&["resume", "r", secrets[0], secrets[1]])
            }
        };
        serde_json::from_str(&ran.left(0, &[]).out).unwrap()
    }
}

async fn respond(State(server): State<Server>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let body = to_bytes(body, 1 << 20).await.unwrap();
    let key = head.headers.get("idempotency-key");
    let one = Seen {
        line: format!("{} {}", head.method, head.uri),
        key: key.map_or_else(String::new, |key| key.to_str().unwrap().to_owned()),
        body: String::from_utf8_lossy(&body).into_owned(),
        at_ms: now().0,
    };
    let reply = {
        let mut seen = server.seen.lock().unwrap();
        seen.push(one);
        let is_silent = seen.len() == server.silent_at;
        (!is_silent).then(|| (server.answer)(&seen))
    };
    match reply {
        Some(reply) => reply,
        None => {
            server.is_silent.notify_one();
            std::future::pending::<Response>().await
        }
    }
}

/// Whether curl is installed.
fn has_curl() -> bool {
    let version = Command::new("curl").arg("--version").output();
    version.is_ok_and(|output| output.status.success())
}

const RESULTS: &str = "{\"custom_id\":\"1\"}\n{\"custom_id\":\"2\"}\n";

/// OpenAI's API of files and batches.
fn batches(seen: &[Seen]) -> Response {
    let batch = |status: &str, file: Option<&str>| {
        json!({
            "id": "batch_7", "object": "batch", "status": status, "errors": null,
            "output_file_id": file, "error_file_id": null,
            "request_counts": { "total": 2, "completed": 2, "failed": 0 },
        })
    };
    match &*seen.last().unwrap().line {
        "POST /files" => Json(json!({ "id": "file-in" })).into_response(),
        "POST /batches" => Json(batch("validating", None)).into_response(),
        "GET /batches/batch_7" => {
            let body = match count(seen, "GET /batches/batch_7") {
                1 => batch("in_progress", None),
                2 => batch("finalizing", None),
                _ => batch("completed", Some("file-out")),
            };
            ([("openai-poll-after-ms", "60")], Json(body)).into_response()
        }
        "GET /files/file-out/content" => {
            ([("content-type", "application/octet-stream")], RESULTS).into_response()
        }
        _ => StatusCode::NOT_FOUND.into_response(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn openai_batch() {
    if !has_curl() {
        return lacking("curl is not installed");
    }
    let text = recipe("openai-batch").replace("interval: 30s", "interval: 10ms");
    // No kill, and kills at the start of the batch, at a poll, and at the results.
    for silent_at in [0, 2, 4, 6] {
        let server = Server::new(batches, silent_at);
        let api = format!("api={}", server.start().await);
        let folder = Folder::new();
        folder.file("requests.jsonl", "{\"custom_id\":\"1\"}\n");
        let outputs = server.run(&folder, &text, &[&*api]).await;
        assert_eq!(
            outputs["requests"]["completed"], 2,
            "{silent_at}: {outputs}"
        );
        assert_eq!(folder.read("results.jsonl"), RESULTS, "{silent_at}");
        let seen = server.seen.lock().unwrap();
        let upload = &seen[0].body;
        assert!(upload.contains("name=\"purpose\""), "{upload}");
        assert!(upload.contains("{\"custom_id\":\"1\"}\n"), "{upload}");
        let starts = seen.iter().filter(|one| one.line == "POST /batches");
        let mut keys: Vec<&str> = starts.map(|one| &*one.key).collect();
        assert_eq!(keys.len(), 1 + usize::from(silent_at == 2), "{silent_at}");
        keys.dedup();
        assert_eq!(keys.len(), 1, "{silent_at}");
        let polls = seen.iter().filter(|one| one.line == "GET /batches/batch_7");
        let polls: Vec<i64> = polls.map(|one| one.at_ms).collect();
        // The server requests 60 ms.
        if silent_at == 0 {
            let is_late = polls.windows(2).all(|pair| pair[1] - pair[0] >= 50);
            assert!(is_late, "{polls:?}");
        }
    }
}

/// Dispatches are answered with 204. Their run appears in the list from the second request on. A repeated command has
/// already waited, so its list contains the run at once.
fn dispatches(seen: &[Seen]) -> Response {
    let line = &*seen.last().unwrap().line;
    if line.starts_with("POST ") {
        return StatusCode::NO_CONTENT.into_response();
    }
    if line.starts_with("GET /runs/") {
        let is_completed = count(seen, "GET /runs/") > 2;
        let (status, conclusion) = match is_completed {
            true => ("completed", json!("success")),
            false => ("in_progress", Value::Null),
        };
        let body = json!({ "id": 101, "status": status, "conclusion": conclusion });
        return Json(body).into_response();
    }
    let mut runs = vec![json!({ "id": 100, "display_title": "nightly of others" })];
    if count(seen, "GET /runs?") > 1 || !line.contains("created=") {
        let start = seen.iter().find(|one| one.line.starts_with("POST "));
        let start: Value = serde_json::from_str(&start.unwrap().body).unwrap();
        let marker = start["inputs"]["marker"].as_str().unwrap();
        runs.insert(
            0,
            json!({ "id": 101, "display_title": format!("nightly {marker}") }),
        );
    }
    Json(json!({ "workflow_runs": runs })).into_response()
}

#[tokio::test(flavor = "multi_thread")]
async fn dispatch() {
    if !has_curl() {
        return lacking("curl is not installed");
    }
    let text = recipe("dispatch");
    // A dispatch, two lists, and three polls.
    for silent_at in 0..=6 {
        let server = Server::new(dispatches, silent_at);
        let api = format!("api={}", server.start().await);
        let folder = Folder::new();
        let inputs = [&*api, "every=10ms", "patience=0.01"];
        let outputs = server.run(&folder, &text, &inputs).await;
        assert_eq!(outputs, json!({ "run": 101 }), "{silent_at}");
        let seen = server.seen.lock().unwrap();
        let starts = count(&seen, "POST /workflows/nightly.yml/dispatches");
        assert_eq!(starts, 1, "{silent_at}");
        folder.wait_for(|names| !names.iter().any(|name| name.starts_with("dispatch-")));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dispatch_that_was_refused_is_sent_again() {
    /// The first dispatch is lost.
    fn lossy(seen: &[Seen]) -> Response {
        let line = &*seen.last().unwrap().line;
        match count(seen, "POST ") {
            1 if line.starts_with("POST ") => StatusCode::BAD_GATEWAY.into_response(),
            1 => Json(json!({ "workflow_runs": [] })).into_response(),
            _ => dispatches(seen),
        }
    }
    if !has_curl() {
        return lacking("curl is not installed");
    }
    let text = recipe("dispatch").replace("interval: 10s", "interval: 10ms");
    let server = Server::new(lossy, 0);
    let api = format!("api={}", server.start().await);
    let inputs = [&*api, "every=10ms", "patience=0.01"];
    let outputs = server.run(&Folder::new(), &text, &inputs).await;
    assert_eq!(outputs, json!({ "run": 101 }));
    assert_eq!(count(&server.seen.lock().unwrap(), "POST "), 2);
}

/// Jobs that are started with a POST and end one after the other. The list also contains a job of another client, and
/// the first list lacks the first job.
fn jobs(seen: &[Seen]) -> Response {
    let mut starts: Vec<&Seen> = Vec::new();
    for one in seen.iter().filter(|one| one.line == "POST /jobs") {
        if starts.iter().all(|start| start.key != one.key) {
            starts.push(one);
        }
    }
    let request = seen.last().unwrap();
    if request.line == "POST /jobs" {
        let id = starts.iter().position(|start| start.key == request.key);
        return (StatusCode::CREATED, Json(json!({ "id": id }))).into_response();
    }
    let lists = count(seen, "GET /jobs");
    let mut jobs = vec![json!({ "id": 99, "status": "failed" })];
    for (id, start) in starts.iter().enumerate().skip(usize::from(lists == 1)) {
        let status = match (lists > id + 1, start.body.contains("customers")) {
            (false, _) => "busy",
            (true, true) => "failed",
            (true, false) => "done",
        };
        jobs.push(json!({ "id": id, "table": start.body, "status": status }));
    }
    Json(json!({ "jobs": jobs })).into_response()
}

#[tokio::test(flavor = "multi_thread")]
async fn many_jobs() {
    let text = recipe("many-jobs");
    // No kill, and kills while the jobs start and at a list.
    for silent_at in [0, 2, 5] {
        let server = Server::new(jobs, silent_at);
        let url = format!("url={}/jobs", server.start().await);
        let folder = Folder::new();
        let outputs = server.run(&folder, &text, &[&*url, "every=10ms"]).await;
        assert_eq!(outputs["jobs"], 3, "{silent_at}: {outputs}");
        let failed = outputs["failed"].as_array().unwrap();
        assert_eq!(failed.len(), 1, "{silent_at}: {outputs}");
        assert_eq!(
            failed[0]["table"], r#"{"table":"customers"}"#,
            "{silent_at}"
        );
        let seen = server.seen.lock().unwrap();
        let mut keys: Vec<&str> = seen
            .iter()
            .filter(|one| one.line == "POST /jobs")
            .map(|one| &*one.key)
            .collect();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), 3, "{silent_at}: {keys:?}");
        // The third job has ended in the fourth list. A list that was not answered is requested again.
        let lists = count(&seen, "GET /jobs");
        assert_eq!(lists, 4, "{silent_at}");
    }
}

/// Whether this second has a row.
fn is_row(second: &u32) -> bool {
    *second < 60 || second.is_multiple_of(20)
}

/// Rows of 16 minutes, most of them in the first one. An answer contains at most 20 rows.
fn rows(seen: &[Seen]) -> Response {
    let line = seen.last().unwrap().line.replace("%3A", ":");
    let second = |name: &str| -> u32 {
        let begin = format!("{name}=2026-01-01T00:");
        let (_, time) = line.split_once(&*begin).unwrap();
        time[..2].parse::<u32>().unwrap() * 60 + time[3..5].parse::<u32>().unwrap()
    };
    let seconds = (second("from")..second("to")).filter(is_row);
    let rows: Vec<Value> = seconds.map(|second| json!({ "id": second })).collect();
    match rows.len() {
        0..=20 => Json(json!({ "rows": rows })).into_response(),
        21..=40 => Json(json!({ "rows": rows[..20], "truncated": true })).into_response(),
        41..=80 => StatusCode::PAYLOAD_TOO_LARGE.into_response(),
        _ => StatusCode::BAD_REQUEST.into_response(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn halved_windows() {
    let text = recipe("halved-windows");
    for silent_at in [0, 4, 9] {
        let server = Server::new(rows, silent_at);
        let url = format!("url={}/rows", server.start().await);
        let folder = Folder::new();
        let inputs = [
            &*url,
            "from=2026-01-01T00:00:00Z",
            "to=2026-01-01T00:16:00Z",
        ];
        let outputs = server.run(&folder, &text, &inputs).await;
        assert_eq!(outputs, json!({ "requests": 17 }), "{silent_at}");
        let ids = (0..960_u32).filter(is_row);
        let file: String = ids.map(|id| format!("{{\"id\":{id}}}\n")).collect();
        assert_eq!(folder.read("rows.jsonl"), file, "{silent_at}");
        let requests = server.seen.lock().unwrap().len();
        assert_eq!(requests, 17 + usize::from(silent_at > 0), "{silent_at}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_with_too_many_rows_fails_the_halved_windows() {
    async fn refuse() -> StatusCode {
        StatusCode::PAYLOAD_TOO_LARGE
    }
    let url = serve(Router::new().fallback(refuse)).await;
    let url = format!("url={url}/rows");
    let folder = Folder::new();
    folder.file("recipe.yaml", recipe("halved-windows"));
    let to = "to=2026-01-01T00:00:05Z";
    let ran = folder.run(&["run", "recipe.yaml", "-i", &url, "-i", to]);
    ran.left(1, &["2026-01-01T00:00:00Z 2026-01-01T00:00:01Z"]);
}

#[test]
fn settled_file() {
    let folder = Folder::new();
    folder.file("recipe.yaml", recipe("settled-file"));
    // The file grows at the first four checks. The third check hangs until the file `go` exists.
    let script = "#!/bin/sh
echo >> checks
checks=$(grep -c '' checks)
[ -e go ] || [ \"$checks\" -lt 3 ] || exec sleep 1000
[ \"$checks\" -gt 4 ] || echo row >> upload.csv
exec /usr/bin/wc \"$@\"
";
    let programs = folder.path().join("bin");
    std::fs::create_dir(&programs).unwrap();
    std::fs::write(programs.join("wc"), script).unwrap();
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(programs.join("wc"), mode).unwrap();
    let path = std::env::var("PATH").unwrap();
    let path = format!("{}:{path}", programs.display());
    let start = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
        command.args(args).current_dir(folder.path());
        command.env("PATH", &path).env_remove("WINDLASS_STATE");
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        Following::of(command)
    };

    let args = ["run", "recipe.yaml", "-i", "every=10ms", "--id", "r"];
    let mut run = start(&args);
    // The file does not exist yet.
    run.until("LoopIteration", "settle");
    folder.file("upload.csv", "");
    folder.wait_for(|_| folder.lines("checks") == 3);
    run.kill();
    folder.file("go", "");
    let outputs = start(&["resume", "r"]).result();
    // The check that hung added no row, and the four checks after the last growth read the same size.
    assert_eq!(outputs, json!({ "lines": 3 }));
    assert_eq!(folder.lines("checks"), 4 + 4 + 1);
}

/// A PostgreSQL server.
struct Postgres {
    dir: tempfile::TempDir,
}

impl Postgres {
    /// Starts a server; none if PostgreSQL is not installed.
    fn start() -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        let server = Self { dir };
        if server.is_root() {
            // PostgreSQL refuses to run as root.
            chown(server.dir.path(), Some(65_534), Some(65_534)).unwrap();
        }
        let create = "initdb -D data -A trust -U windlass --locale=C --no-sync";
        let start = "pg_ctl -D data -l log -w -o \"-F -c listen_addresses= -k $PWD\" start";
        server
            .run(&format!("{create} && {start}"))
            .then_some(server)
    }

    fn is_root(&self) -> bool {
        std::fs::metadata("/proc/self").unwrap().uid() == 0
    }

    /// Runs a shell command with the server's programs in its path; returns whether it succeeded.
    fn run(&self, line: &str) -> bool {
        let path = "PATH=$PATH:$(echo /usr/lib/postgresql/*/bin | tr ' ' :)";
        let line = format!("{path}; {line}");
        let mut command = match self.is_root() {
            true => Command::new("setpriv"),
            false => Command::new("env"),
        };
        if self.is_root() {
            command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]);
        }
        let status = command
            .args(["sh", "-c", &line])
            .current_dir(self.dir.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        status.is_ok_and(|status| status.success())
    }

    /// The environment for its clients.
    fn env(&self) -> [(&'static str, &OsStr); 3] {
        [
            ("PGHOST", self.dir.path().as_os_str()),
            ("PGUSER", OsStr::new("windlass")),
            ("PGDATABASE", OsStr::new("postgres")),
        ]
    }

    fn execute(&self, sql: &str) {
        let mut psql = Command::new("psql");
        let status = psql.args(["-Xqc", sql]).envs(self.env()).status();
        assert!(status.unwrap().success(), "{sql}");
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.run("pg_ctl -D data -m immediate -w stop");
    }
}

#[test]
fn postgres_row() {
    let Some(server) = Postgres::start() else {
        return lacking("PostgreSQL is not installed");
    };
    server.execute("create table jobs (id int primary key, state text)");
    let place = Place::new();
    let file = place.file("recipe.yaml", &recipe("postgres-row"));
    let start = |args: &[&str]| {
        let mut command = place.command(args);
        command.envs(server.env());
        Following::of(command)
    };
    let args = ["run", &file, "-i", "id=7", "-i", "every=10ms", "--id", "r"];
    let mut run = start(&args);
    run.until("LoopIteration", "poll");
    server.execute("insert into jobs values (6, 'done'), (7, 'new')");
    run.until("LoopIteration", "poll");
    run.kill();
    let mut run = start(&["resume", "r"]);
    run.until("LoopIteration", "poll");
    server.execute("update jobs set state = 'failed' where id = 7");
    assert_eq!(run.result(), json!({ "state": "failed" }));
}
