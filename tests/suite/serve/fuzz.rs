//! Requests that nobody would send, to the HTTP API and to the control socket: real ones with
//! bytes changed, values replaced and parts left out. Each gets an answer, none makes the server
//! panic, hang or fail, and a run is as well afterwards as before. `WINDLASS_FUZZ` sends more,
//! `WINDLASS_FUZZ_SEED` others.

use super::{COUNT, PATIENCE, SLEEP, Server, Start};
use crate::store::damage::{Dice, from_env};
use futures_util::StreamExt;
use futures_util::stream;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpStream, UnixStream};

/// What a request that is not whole is waited for before the sender hangs up.
const A_MOMENT: Duration = Duration::from_millis(300);

/// So many at a time.
const AT_ONCE: usize = 16;

/// Below a loop whose condition is never true ends by its count.
fn small() -> String {
    COUNT.replace("count: 1000", "count: 30")
}

// ── how requests are changed ────────────────────────────────────────────────────────────────────

/// Bytes changed, doubled, taken out, or cut.
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

/// Some value of a document replaced, taken out or put elsewhere.
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

/// Requests as they should be: method, path, body.
pub fn requests() -> Vec<(&'static str, String, Option<Value>)> {
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

/// A request, and whether it is whole: then it gets an answer, else the connection may just end.
fn request(dice: &mut Dice) -> (Vec<u8>, bool) {
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
    let all = requests();
    let (method, mut path, body) = all[dice.roll(all.len() as u64) as usize].clone();
    let how = dice.roll(4);
    let mut body = body.map(|mut body| {
        if how == 1 {
            value(dice, &mut body);
        }
        body.to_string().into_bytes()
    });
    if how == 2 || body.is_none() && how == 1 {
        // A segment of the path or the value of a parameter.
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

/// The status of the answer; none when the connection ended without one.
async fn send(url: &str, request: &[u8], whole: bool) -> Option<u16> {
    let mut stream = TcpStream::connect(url.trim_start_matches("http://"))
        .await
        .unwrap();
    // One that answers early may have closed already.
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
        // Why: no request is to blame for that.
        let mut rest = vec![0; 2_000];
        if let Ok(Ok(read)) = tokio::time::timeout(A_MOMENT, stream.read(&mut rest)).await {
            println!("{status}: {}", String::from_utf8_lossy(&rest[..read]));
        }
    }
    Some(status)
}

async fn answer(stream: &mut TcpStream, head: &mut [u8], got: &mut usize) {
    while *got < head.len() {
        match stream.read(&mut head[*got..]).await {
            Ok(0) | Err(_) => return,
            Ok(read) => *got += read,
        }
    }
}

/// The server is as it was: it answers, nothing was parked, a run comes to its end, and its log
/// tells of no panic.
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
    let (status, said) = server.stop();
    assert!(status.success(), "{said}");
    assert!(!said.contains("panicked"), "{said}");
    assert!(!said.contains("ERROR"), "{said}");
}

async fn ready(dir: &Path) -> Server {
    let server = Start::new(dir).spawn();
    for (run, text) in [(RUN, SLEEP), ("ended", COUNT)] {
        let body = json!({ "text": text, "run": run });
        assert_eq!(server.post("/v1/runs", &body).await.0, 201);
    }
    let kept = json!({ "text": SLEEP });
    let request = super::with(
        server.ask(reqwest::Method::PUT, "/v1/workflows/kept"),
        &kept,
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
    let count = from_env("WINDLASS_FUZZ", 1_500);
    let requests: Vec<_> = (0..count).map(|_| request(&mut dice)).collect();
    let url = server.url.clone();
    let sending = requests.iter().map(|(request, whole)| {
        let url = url.clone();
        async move { (send(&url, request, *whole).await, request, *whole) }
    });
    let answers: Vec<_> = stream::iter(sending)
        .buffer_unordered(AT_ONCE)
        .collect()
        .await;
    let mut statuses = BTreeMap::new();
    for (status, request, whole) in answers {
        let text = String::from_utf8_lossy(request);
        assert!(status.is_some() || !whole, "no answer to {text}");
        assert!(
            status.is_none_or(|status| (200..500).contains(&status)),
            "{status:?}: {text}"
        );
        *statuses.entry(status.unwrap_or(0)).or_insert(0) += 1;
    }
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

// ── the control socket ──────────────────────────────────────────────────────────────────────────

/// Frames as they should be.
pub fn frames() -> Vec<Value> {
    let start = json!({ "request": "start", "run": "s", "path": "a.yaml", "text": small(), "files": [{ "path": "b", "text": "c" }],
        "dialect": "loom", "max_count": 100, "max_timeout_ms": 60_000, "handlers": [["h", { "stub": [] }], ["u", { "url": "http://127.0.0.1:1" }]],
        "input": { "to": 2 }, "labels": { "a": "b" } });
    let mut all = vec![
        start,
        json!({ "request": "ping" }),
        json!({ "request": "list", "filter": { "status": ["Failed"], "limit": 3 } }),
        json!({ "request": "list" }),
        json!({ "request": "history", "run": "ended", "filter": { "loop": "grow", "iterations": 3, "events": true } }),
        json!({ "request": "dump", "filter": { "run": "ended", "iterations": 3 } }),
        json!({ "request": "dump" }),
        json!({ "request": "prune", "filter": { "older_than_ms": 1, "dry_run": true } }),
        json!({ "request": "recover" }),
        json!({ "request": "signal", "run": RUN, "name": "go", "payload": [1, { "a": null }] }),
        json!({ "request": "retry", "run": "ended", "id": "again" }),
        json!({ "request": "follow", "run": RUN, "events": 1 }),
    ];
    for verb in ["status", "pause", "resume", "cancel"] {
        all.push(json!({ "request": verb, "run": RUN }));
    }
    all
}

/// The reply to a frame: `done` or `refused`.
async fn told(state: &Path, frame: &[u8]) -> String {
    let stream = UnixStream::connect(state.join("control.sock"))
        .await
        .unwrap();
    let (reader, mut writer) = stream.into_split();
    let _ = writer.write_all(frame).await;
    let mut line = String::new();
    let mut reader = BufReader::new(reader);
    let read = tokio::time::timeout(PATIENCE, reader.read_line(&mut line)).await;
    let shown = || String::from_utf8_lossy(&frame[..frame.len().min(2_000)]).into_owned();
    read.unwrap_or_else(|_| panic!("no answer to {}", shown()))
        .unwrap();
    let reply: Value = serde_json::from_str(&line)
        .unwrap_or_else(|error| panic!("{error}: {line:?} to {}", shown()));
    let word = reply["reply"].as_str().unwrap_or_default().to_owned();
    let kind = reply["kind"].as_str().unwrap_or_default();
    assert!(
        matches!(word.as_str(), "done" | "refused"),
        "{reply} to {}",
        shown()
    );
    assert!(
        !matches!(kind, "internal" | "store"),
        "{reply} to {}",
        shown()
    );
    format!("{word} {kind}")
}

#[tokio::test(flavor = "multi_thread")]
async fn any_frame_gets_a_reply() {
    let dir = tempfile::tempdir().unwrap();
    let server = ready(dir.path()).await;
    let mut dice = Dice(from_env("WINDLASS_FUZZ_SEED", 7) + 6);
    let count = from_env("WINDLASS_FUZZ", 1_500);
    let all = frames();
    let mut sent = Vec::new();
    for _ in 0..count {
        let mut frame = all[dice.roll(all.len() as u64) as usize].clone();
        let how = dice.roll(3);
        if how == 0 {
            value(&mut dice, &mut frame);
        }
        let mut line = frame.to_string().into_bytes();
        if how == 1 {
            bytes(&mut dice, &mut line);
        }
        line.push(b'\n');
        sent.push(line);
    }
    sent.push([b"[".repeat(1 << 20), b"\n".to_vec()].concat());
    sent.push(vec![b' '; (64 << 20) + 1]);
    let telling = sent.iter().map(|frame| told(dir.path(), frame));
    let replies: Vec<String> = stream::iter(telling)
        .buffer_unordered(AT_ONCE)
        .collect()
        .await;
    let mut words = BTreeMap::new();
    for reply in replies {
        *words.entry(reply).or_insert(0) += 1;
    }
    println!("{} frames: {words:?}", sent.len());
    for word in [
        "done ",
        "refused bad_request",
        "refused unknown_run",
        "refused workflow",
    ] {
        assert!(words.contains_key(word), "none was answered with {word}");
    }
    as_well_as_before(server).await;
}
