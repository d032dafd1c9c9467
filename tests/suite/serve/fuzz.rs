//! Unusual requests to the HTTP API, over TCP and over the control socket: valid requests with changed bytes, replaced
//! values and missing parts. Each is answered; none makes the server panic, hang or fail, and runs continue afterwards.
//! `WINDLASS_FUZZ` sets their number, and `WINDLASS_FUZZ_SEED` the seed.

use super::{COUNT, PATIENCE, SLEEP, Server, Start};
use crate::store::damage::{Dice, from_env};
use crate::support::sized;
use futures_util::StreamExt;
use futures_util::stream;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};

/// How long the sender waits for an answer to an incomplete request before it disconnects.
const A_MOMENT: Duration = Duration::from_millis(300);

/// How many requests are sent concurrently.
const AT_ONCE: usize = 16;

/// The workflow's loop, whose condition is never true, ends by its count.
fn small() -> String {
    COUNT.replace("count: 1000", "count: 30")
}

// ── how requests are changed ────────────────────────────────────────────────────────────────────

/// Changes, doubles, removes, or cuts off some bytes.
fn bytes(dice: &mut Dice, bytes: &mut Vec<u8>) {
    const PIECES: [&[u8]; 16] = [
        b"\r\n",
        b"\r\n\r\n",
        b"\n",
        b"\0",
        b"%",
        b"%00",
        b"/",
        b"?",
        b"&",
        b"\"",
        b"{",
        b"]",
        b"9999999999",
        b"-1",
        b"\xff\xfe",
        b"Content-Length: 5\r\n",
    ];
    for _ in 0..=dice.roll(3) {
        let at = dice.roll(bytes.len() as u64 + 1) as usize;
        let end = (at + dice.roll(20) as usize).min(bytes.len());
        match dice.roll(6) {
            0 => drop(bytes.drain(at..end)),
            1 | 2 => {
                let piece = PIECES[dice.roll(16) as usize];
                bytes.splice(at..at, piece.iter().copied());
            }
            3 => {
                let part = bytes[at..end].to_vec();
                bytes.splice(at..at, part);
            }
            4 if at < bytes.len() => bytes[at] ^= 1 << dice.roll(8),
            _ => bytes.truncate(at),
        }
    }
}

fn extreme(dice: &mut Dice) -> Value {
    match dice.roll(14) {
        0 => Value::Null,
        1 => json!(true),
        2 => json!(-1),
        3 => json!(u64::MAX),
        4 => json!(1e308),
        5 => json!(""),
        6 => json!("\u{0}"),
        7 => json!("../../etc/passwd"),
        8 => json!("x".repeat(100_000)),
        9 => json!([]),
        10 => json!({}),
        11 => json!({ "": { "": null } }),
        12 => (0..100).fold(json!(0), |inner, _| json!([inner])),
        _ => json!("é😀\u{feff}"),
    }
}

/// Replaces, removes or moves some value of a document.
fn value(dice: &mut Dice, document: &mut Value) {
    let inner = match document {
        Value::Array(items) if !items.is_empty() => {
            let at = dice.roll(items.len() as u64) as usize;
            if dice.roll(8) == 0 {
                let again = items[at].clone();
                items.push(again);
            }
            items.get_mut(at)
        }
        Value::Object(members) if !members.is_empty() => {
            let at = dice.roll(members.len() as u64) as usize;
            let name = members.keys().nth(at).cloned().unwrap();
            match dice.roll(8) {
                0 => {
                    let taken = members.remove(&name).unwrap();
                    members.insert(format!("{name}x"), taken);
                    None
                }
                1 => {
                    members.remove(&name);
                    None
                }
                _ => members.get_mut(&name),
            }
        }
        _ => None,
    };
    match inner {
        Some(inner) if dice.roll(3) > 0 => value(dice, inner),
        _ => *document = extreme(dice),
    }
}

// ── HTTP ────────────────────────────────────────────────────────────────────────────────────────

const RUN: &str = "known";

/// A valid request: method, path, body.
type Request = (&'static str, String, Option<Value>);

/// The requests of the API.
pub fn requests() -> Vec<Request> {
    let start = json!({ "text": small(), "file": "a.yaml", "dialect": "loom", "files": [{ "path": "b", "text": "c" }],
        "input": { "to": 3 }, "labels": { "team": "core" } });
    let mut all = vec![
        ("POST", String::from("/v1/runs"), Some(start)),
        (
            "POST",
            String::from("/v1/runs"),
            Some(json!({ "workflow": "kept", "input": null })),
        ),
        (
            "POST",
            String::from("/v1/validate"),
            Some(json!({ "text": SLEEP, "file": "a.yaml" })),
        ),
        (
            "PUT",
            String::from("/v1/workflows/kept"),
            Some(json!({ "text": SLEEP, "files": [] })),
        ),
        (
            "PUT",
            String::from("/v1/workflows/other"),
            Some(json!(SLEEP)),
        ),
        ("GET", String::from("/v1/workflows?limit=3&after=a"), None),
        ("GET", String::from("/v1/workflows/kept"), None),
        ("DELETE", String::from("/v1/workflows/other"), None),
        (
            "GET",
            String::from("/v1/runs?status=failed,waiting&workflow=count&label=a=b&limit=7&after=x"),
            None,
        ),
        (
            "POST",
            format!("/v1/runs/{RUN}/signal"),
            Some(json!({ "name": "go", "payload": { "a": [1] } })),
        ),
        (
            "POST",
            format!("/v1/runs/{RUN}/retry"),
            Some(json!({ "run": "again", "from": null })),
        ),
    ];
    for (method, rest) in [
        ("GET", ""),
        ("GET", "/result?wait=0"),
        (
            "GET",
            "/history?loop=grow&iterations=2&events=true&after=2&limit=3",
        ),
        ("GET", "/dump?iterations=4"),
        ("GET", "/events?after=1&history=true"),
        ("POST", "/pause"),
        ("POST", "/resume"),
        ("POST", "/cancel"),
    ] {
        all.push((method, format!("/v1/runs/{RUN}{rest}"), None));
    }
    for path in ["/healthz", "/readyz", "/metrics", "/openapi.json"] {
        all.push(("GET", path.to_owned(), None));
    }
    all
}

/// One of `all`, changed, and whether it is complete. A complete request must be answered; otherwise the connection may
/// just end.
fn request(dice: &mut Dice, all: &[Request]) -> (Vec<u8>, bool) {
    const ODD: [&str; 12] = [
        "%00",
        "%ff",
        "..%2f..",
        "-1",
        "18446744073709551616",
        "a=b",
        "",
        "%20",
        "x,y",
        "%F0%9F%98%80",
        "1e3",
        "+",
    ];
    let (method, mut path, body) = all[dice.roll(all.len() as u64) as usize].clone();
    let how = dice.roll(4);
    let mut body = body.map(|mut body| {
        if how == 1 {
            value(dice, &mut body);
        }
        body.to_string().into_bytes()
    });
    if how == 2 || body.is_none() && how == 1 {
        // A segment of the path, or the value of a parameter.
        let cuts: Vec<usize> = path
            .match_indices(['/', '='])
            .map(|(at, _)| at + 1)
            .collect();
        let from = cuts[dice.roll(cuts.len() as u64) as usize];
        let end = path[from..]
            .find(['/', '&', '?'])
            .map_or(path.len(), |end| from + end);
        path.replace_range(from..end, ODD[dice.roll(12) as usize]);
    }
    if how == 3
        && let Some(body) = &mut body
    {
        bytes(dice, body);
    }
    let kind = if path.starts_with("/v1/workflows/other") {
        "application/yaml"
    } else {
        "application/json"
    };
    let mut whole = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n")
        .into_bytes();
    if dice.roll(6) == 0 {
        whole.extend(format!("Idempotency-Key: k{}\r\n", dice.roll(9)).bytes());
    }
    if let Some(body) = body {
        let head = format!(
            "Content-Type: {kind}\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        whole.extend(head.bytes());
        whole.extend(body);
    } else {
        whole.extend(b"\r\n");
    }
    if how == 0 {
        bytes(dice, &mut whole);
    }
    (whole, how != 0)
}

/// The status of the answer; none if the connection ended without one.
async fn send(url: &str, request: &[u8], whole: bool) -> Option<u16> {
    let address = url.trim_start_matches("http://");
    exchange(TcpStream::connect(address).await.unwrap(), request, whole).await
}

/// The same over the control socket.
async fn send_to_owner(state: &Path, request: &[u8], whole: bool) -> Option<u16> {
    let socket = state.join("control.sock");
    exchange(UnixStream::connect(socket).await.unwrap(), request, whole).await
}

async fn exchange<S: AsyncRead + AsyncWrite + Unpin>(
    mut stream: S,
    request: &[u8],
    whole: bool,
) -> Option<u16> {
    // A server that answers early may have closed the connection already.
    let _ = stream.write_all(request).await;
    let mut head = [0; 12];
    let mut got = 0;
    let wait = if whole { PATIENCE } else { A_MOMENT };
    let early = tokio::time::timeout(wait, answer(&mut stream, &mut head, &mut got)).await;
    if early.is_err() {
        assert!(!whole, "no answer to {}", String::from_utf8_lossy(request));
        stream.shutdown().await.unwrap();
        let end = tokio::time::timeout(PATIENCE, answer(&mut stream, &mut head, &mut got)).await;
        end.unwrap_or_else(|_| panic!("it hangs: {}", String::from_utf8_lossy(request)));
    }
    let text = std::str::from_utf8(head.get(..got)?).ok()?;
    let status = text
        .strip_prefix("HTTP/1.1 ")
        .or_else(|| text.strip_prefix("HTTP/1.0 "))?;
    let status = status.parse().ok()?;
    if status >= 500 {
        // The text explains the fault: a request must never cause a status of 500 or above.
        let mut rest = vec![0; 2_000];
        if let Ok(Ok(read)) = tokio::time::timeout(A_MOMENT, stream.read(&mut rest)).await {
            println!("{status}: {}", String::from_utf8_lossy(&rest[..read]));
        }
    }
    Some(status)
}

async fn answer(stream: &mut (impl AsyncRead + Unpin), head: &mut [u8], got: &mut usize) {
    while *got < head.len() {
        match stream.read(&mut head[*got..]).await {
            Ok(0) | Err(_) => return,
            Ok(read) => *got += read,
        }
    }
}

/// The server is unaffected: it answers, no run was parked, a run comes to its end, and its log reports no panic.
async fn as_well_as_before(server: Server) {
    assert_eq!(server.get("/readyz").await.0, 200);
    let run = server.begin(COUNT, json!({})).await;
    assert_eq!(server.end(&run).await["output"], 20);
    let (_, all) = server.get("/v1/runs?limit=1000").await;
    let all = all["runs"].as_array().unwrap();
    let parked: Vec<_> = all
        .iter()
        .filter(|run| run.to_string().contains("windlass.parked"))
        .collect();
    assert_eq!(parked, [&Value::Null; 0]);
    let (status, stderr) = server.stop();
    assert!(status.success(), "{stderr}");
    assert!(!stderr.contains("panicked"), "{stderr}");
    assert!(!stderr.contains("ERROR"), "{stderr}");
}

async fn ready(dir: &Path) -> Server {
    let server = Start::new(dir).spawn();
    for (run, text) in [(RUN, SLEEP), ("ended", COUNT)] {
        let body = json!({ "text": text, "run": run });
        assert_eq!(server.post("/v1/runs", &body).await.0, 201);
    }
    let workflow = json!({ "text": SLEEP });
    let request = super::with(
        server.ask(reqwest::Method::PUT, "/v1/workflows/kept"),
        &workflow,
    );
    assert_eq!(super::answer(request).await.0, 201);
    server.end("ended").await;
    server
}

#[tokio::test(flavor = "multi_thread")]
async fn any_request_gets_an_answer() {
    let dir = tempfile::tempdir().unwrap();
    let server = ready(dir.path()).await;
    let mut dice = Dice(from_env("WINDLASS_FUZZ_SEED", 7) + 5);
    let count = from_env("WINDLASS_FUZZ", sized(1_500, 400));
    let all = requests();
    let requests: Vec<_> = (0..count).map(|_| request(&mut dice, &all)).collect();
    let url = server.url.clone();
    let sending = requests.iter().map(|(request, whole)| {
        let url = url.clone();
        async move { (send(&url, request, *whole).await, request, *whole) }
    });
    let answers: Vec<_> = stream::iter(sending)
        .buffer_unordered(AT_ONCE)
        .collect()
        .await;
    let statuses = tally(answers);
    println!("{count} requests: {statuses:?}");
    for status in [200, 201, 400, 404, 409, 422] {
        assert!(
            statuses.contains_key(&status),
            "none was answered with {status}"
        );
    }
    as_well_as_before(server).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_without_measure_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let server = ready(dir.path()).await;
    let head = |rest: &str| {
        format!(
            "POST /v1/runs HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n{rest}"
        )
    };
    let with_body = |body: &str| head(&format!("Content-Length: {}\r\n\r\n{body}", body.len()));
    let deep = 100_000;
    let input = format!("{}{}", "[".repeat(deep), "]".repeat(deep));
    let text = serde_json::to_string(&format!("actions: {input}")).unwrap();
    let all = [
        (
            "a long header",
            head(&format!("X: {}\r\n\r\n", "x".repeat(2 << 20))),
        ),
        ("many headers", head(&("X: x\r\n".repeat(50_000) + "\r\n"))),
        (
            "a long path",
            format!(
                "GET /{} HTTP/1.1\r\nHost: localhost\r\n\r\n",
                "x".repeat(2 << 20)
            ),
        ),
        (
            "a length that is not meant",
            head("Content-Length: 99999999999999999999\r\n\r\n"),
        ),
        (
            "two lengths",
            head("Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}"),
        ),
        (
            "a length and chunks",
            head("Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
        ),
        (
            "chunks of no size",
            head("Transfer-Encoding: chunked\r\n\r\nzz\r\n"),
        ),
        (
            "a huge chunk",
            head("Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n{}"),
        ),
        ("a deep body", with_body(&input)),
        (
            "a deep input",
            with_body(&format!("{{\"text\": \"a\", \"input\": {input}}}")),
        ),
        (
            "a deep workflow",
            with_body(&format!("{{\"text\": {text}}}")),
        ),
        (
            "a body of one byte too much",
            with_body(&" ".repeat((16 << 20) + 1)),
        ),
        (
            "an input of millions of values",
            with_body(&format!(
                "{{\"text\": \"a\", \"input\": [{}1]}}",
                "1,".repeat(8 << 20).split_off(1_000)
            )),
        ),
        (
            "an input of a million objects",
            with_body(&format!(
                "{{\"text\": \"a\", \"input\": [{}1]}}",
                "{\"a\":1},".repeat(1 << 20)
            )),
        ),
        ("no host", String::from("GET /v1/runs HTTP/1.1\r\n\r\n")),
        ("HTTP/2", String::from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")),
        (
            "TLS",
            String::from("\u{16}\u{3}\u{1}\u{2}\u{0}\u{1}\u{0}\u{1}"),
        ),
    ];
    for (name, request) in all {
        let status = send(&server.url, request.as_bytes(), false).await;
        println!("{name}: {status:?}");
        assert!(
            status.is_none_or(|status| (400..500).contains(&status)),
            "{name}: {status:?}"
        );
    }
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.child.id())).unwrap();
    let most = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let most: u64 = most
        .unwrap()
        .trim()
        .trim_end_matches(" kB")
        .parse()
        .unwrap();
    println!("{} MiB at most", most >> 10);
    assert!(most < 150 << 10, "{most} KiB");
    as_well_as_before(server).await;
}

/// How often each status occurred. Each complete request has a status, and none is an error of the server.
fn tally(answers: Vec<(Option<u16>, &Vec<u8>, bool)>) -> BTreeMap<u16, u32> {
    let mut statuses = BTreeMap::new();
    for (status, request, whole) in answers {
        let text = String::from_utf8_lossy(&request[..request.len().min(2_000)]);
        assert!(status.is_some() || !whole, "no answer to {text}");
        assert!(
            status.is_none_or(|status| (200..500).contains(&status)),
            "{status:?}: {text}"
        );
        *statuses.entry(status.unwrap_or(0)).or_insert(0) += 1;
    }
    statuses
}

// ── the control socket ──────────────────────────────────────────────────────────────────────────

/// The requests that only an owner answers.
pub fn local_requests() -> Vec<Request> {
    let start = json!({ "run": "s", "file": "a.yaml", "text": small(), "files": [{ "path": "b", "text": "c" }],
        "dialect": "loom", "input": { "to": 2 }, "labels": { "a": "b" },
        "local": { "max_count": 100, "max_timeout_ms": 60_000, "folder": "/",
            "handlers": [["h", { "stub": [] }], ["u", { "url": "http://127.0.0.1:1" }]] } });
    let prune = json!({ "older_than": "PT0.001S", "dry_run": true });
    vec![
        ("POST", String::from("/v1/runs"), Some(start)),
        ("GET", String::from("/v1/owner"), None),
        ("GET", String::from("/v1/dump?limit=4294967295"), None),
        ("POST", String::from("/v1/prune"), Some(prune)),
        ("POST", String::from("/v1/resume?paused=false"), None),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn any_request_to_an_owner_gets_an_answer() {
    let dir = tempfile::tempdir().unwrap();
    let server = ready(dir.path()).await;
    let mut dice = Dice(from_env("WINDLASS_FUZZ_SEED", 7) + 6);
    let count = from_env("WINDLASS_FUZZ", sized(1_500, 400));
    let all = [local_requests(), local_requests(), requests()].concat();
    let mut requests: Vec<_> = (0..count).map(|_| request(&mut dice, &all)).collect();
    let with_body = |body: &[u8]| {
        let head = format!(
            "POST /v1/runs HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        ([head.as_bytes(), body].concat(), true)
    };
    requests.push(with_body(&b"[".repeat(1 << 20)));
    requests.push(with_body(&b" ".repeat((64 << 20) + 1)));
    let state = dir.path();
    let sending = requests.iter().map(|(request, whole)| async move {
        (send_to_owner(state, request, *whole).await, request, *whole)
    });
    let answers: Vec<_> = stream::iter(sending)
        .buffer_unordered(AT_ONCE)
        .collect()
        .await;
    let statuses = tally(answers);
    println!("{} requests: {statuses:?}", requests.len());
    for status in [200, 201, 400, 404, 409, 413, 422] {
        assert!(
            statuses.contains_key(&status),
            "none was answered with {status}"
        );
    }
    as_well_as_before(server).await;
}
