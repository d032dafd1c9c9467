//! `saveTo` and `bodyFile`: bodies of any size, with servers that break the connection, change their files, or ignore
//! ranges, and through `kill -9`.

use crate::life::first_use::Folder;
use crate::support::{serve, sized};
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{Response, StatusCode, header};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use windlass_model::model::sha256;

const MEBIBYTE: usize = 1 << 20;

/// How a server answers `Range`.
#[derive(Clone, Copy, PartialEq)]
enum Ranges {
    Ignored,
    Honoured,
    /// Answers with a part of the file even if the file has changed.
    WithoutIfRange,
    /// In parts of 1 MiB.
    InParts,
}

/// Where an answer ends too early, after this many bytes of its body.
#[derive(Clone, Copy)]
enum Stop {
    /// The connection is closed.
    Cut(usize),
    /// Nothing more is sent.
    Stall(usize),
}

#[derive(Clone)]
struct Files {
    content: Arc<Mutex<Arc<Vec<u8>>>>,
    /// Further lines of the head.
    validators: Arc<Mutex<String>>,
    ranges: Ranges,
    /// Whether answers announce their length.
    has_length: bool,
    stops: Arc<Mutex<VecDeque<Stop>>>,
    /// The heads of the requests, and how many bytes of bodies were sent.
    seen: Arc<Mutex<(Vec<String>, usize)>>,
    stalls: Arc<Notify>,
}

impl Files {
    fn new(content: Vec<u8>, ranges: Ranges) -> Self {
        Self {
            content: Arc::new(Mutex::new(Arc::new(content))),
            validators: Arc::new(Mutex::new(String::from("ETag: \"one\"\r\n"))),
            ranges,
            has_length: true,
            stops: Arc::default(),
            seen: Arc::default(),
            stalls: Arc::default(),
        }
    }

    fn stop(self, stops: impl IntoIterator<Item = Stop>) -> Self {
        self.stops.lock().unwrap().extend(stops);
        self
    }

    fn validators(self, text: &str) -> Self {
        *self.validators.lock().unwrap() = text.to_owned();
        self
    }

    fn replace(&self, content: Vec<u8>, validators: &str) {
        *self.content.lock().unwrap() = Arc::new(content);
        *self.validators.lock().unwrap() = validators.to_owned();
    }

    #[allow(clippy::disallowed_methods)] // A test's server is a task of its own.
    async fn start(&self) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/file", listener.local_addr().unwrap());
        let files = self.clone();
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let files = files.clone();
                tokio::spawn(async move {
                    // The client may have disconnected.
                    let _ = files.answer(stream).await;
                });
            }
        });
        url
    }

    async fn answer(&self, mut stream: TcpStream) -> std::io::Result<()> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await?);
        }
        let head = String::from_utf8(head).unwrap().to_lowercase();
        self.seen.lock().unwrap().0.push(head.clone());
        let (content, validators) = {
            let content = Arc::clone(&self.content.lock().unwrap());
            (content, self.validators.lock().unwrap().clone())
        };
        let field = |name: &str| {
            let mut lines = head.lines();
            lines.find_map(|line| Some(line.strip_prefix(name)?.trim().to_owned()))
        };
        let start = field("range: bytes=").and_then(|range| {
            let version = field("if-range:").unwrap();
            let known = validators.to_lowercase().contains(&version);
            let honoured = match self.ranges {
                Ranges::Ignored => false,
                Ranges::WithoutIfRange => true,
                Ranges::Honoured | Ranges::InParts => known,
            };
            let start: usize = range.strip_suffix('-').unwrap().parse().unwrap();
            honoured.then_some(start)
        });
        let size = content.len();
        let (line, range) = match start {
            None => ("200 OK", 0..size),
            Some(start) if start >= size => {
                let head = format!(
                    "HTTP/1.1 416 No\r\nContent-Range: bytes */{size}\r\nContent-Length: 0\r\n\r\n"
                );
                return stream.write_all(head.as_bytes()).await;
            }
            Some(start) if self.ranges == Ranges::InParts => {
                ("206 Part", start..size.min(start + MEBIBYTE))
            }
            Some(start) => ("206 Part", start..size),
        };
        let mut head = format!("HTTP/1.1 {line}\r\nConnection: close\r\n{validators}");
        if start.is_some() {
            let (first, last) = (range.start, range.end - 1);
            head += &format!("Content-Range: bytes {first}-{last}/{size}\r\n");
        }
        match self.has_length {
            true => head += &format!("Content-Length: {}\r\n", range.len()),
            false => head += "Transfer-Encoding: chunked\r\n",
        }
        head += "\r\n";
        stream.write_all(head.as_bytes()).await?;
        let stop = self.stops.lock().unwrap().pop_front();
        let end = match stop {
            Some(Stop::Cut(length) | Stop::Stall(length)) => size.min(range.start + length),
            None => range.end,
        };
        for chunk in content[range.start..end].chunks(64 << 10) {
            if !self.has_length {
                let length = format!("{:x}\r\n", chunk.len());
                stream.write_all(length.as_bytes()).await?;
            }
            stream.write_all(chunk).await?;
            self.seen.lock().unwrap().1 += chunk.len();
            if !self.has_length {
                stream.write_all(b"\r\n").await?;
            }
        }
        match stop {
            None if !self.has_length => stream.write_all(b"0\r\n\r\n").await,
            None | Some(Stop::Cut(_)) => Ok(()),
            Some(Stop::Stall(_)) => {
                self.stalls.notify_one();
                // Waits until the client has disconnected.
                stream.read_u8().await.map(|_| ())
            }
        }
    }

    fn requests(&self) -> usize {
        self.seen.lock().unwrap().0.len()
    }

    fn sent(&self) -> usize {
        self.seen.lock().unwrap().1
    }

    /// For each request, whether it requests a part of the file.
    fn is_range_request(&self) -> Vec<bool> {
        let seen = self.seen.lock().unwrap();
        let heads = seen.0.iter();
        heads.map(|head| head.contains("\nrange:")).collect()
    }
}

/// Bytes without repetitions.
fn content(length: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    std::iter::repeat_with(&mut next)
        .flatten()
        .take(length)
        .collect()
}

fn digest(bytes: &[u8]) -> String {
    let digest = sha256(bytes);
    let digits: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    digits
}

fn workflow(url: &str, more: &str) -> String {
    format!(
        "
actions:
  get:
    type: http
    inputs: {{ uri: \"{url}\", saveTo: out.bin{more} }}
    retry: {{ type: fixed, count: 3, interval: 10ms }}
outputs: \"@outputs('get')\"
"
    )
}

/// The partial files that a download left.
fn left(folder: &Folder) -> Vec<PathBuf> {
    let files = std::fs::read_dir(folder.path()).unwrap();
    let files = files.map(|file| file.unwrap().path());
    let is_part = |path: &PathBuf| path.to_string_lossy().contains(".part");
    files.filter(is_part).collect()
}

/// Waits until a partial file has this many bytes.
fn wait_for_bytes(folder: &Folder, length: usize) {
    for _ in 0..12_000 {
        let files = left(folder);
        let lengths = files.iter().filter_map(|path| path.metadata().ok());
        if lengths.map(|found| found.len()).max() >= Some(length as u64) {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("no partial file of {length} bytes within a minute");
}

fn output(out: &str) -> Value {
    serde_json::from_str(out).unwrap()
}

fn saved(folder: &Folder) -> Vec<u8> {
    std::fs::read(folder.path().join("out.bin")).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_download_survives_four_kills_without_a_byte_twice() {
    let folder = Folder::new();
    let part = sized(60, 8) * MEBIBYTE;
    let bytes = content(5 * part, 1);
    let stops = [Stop::Stall(part); 4];
    let files = Files::new(bytes.clone(), Ranges::Honoured).stop(stops);
    let url = files.start().await;
    let more = format!(", digest: \"sha256:{}\"", digest(&bytes));
    folder.file("get.yaml", workflow(&url, &more));
    for kill in 1..=4 {
        let mut run = match kill {
            1 => folder.start(&["run", "get.yaml", "--id", "get"]),
            _ => folder.start(&["resume", "get"]),
        };
        files.stalls.notified().await;
        wait_for_bytes(&folder, kill * part);
        run.kill().unwrap();
        run.wait().unwrap();
        assert!(!folder.path().join("out.bin").exists());
    }
    let ran = folder.run(&["resume", "get"]).left(0, &[]);
    assert!(saved(&folder) == bytes, "other bytes");
    assert_eq!(left(&folder), Vec::<PathBuf>::new());
    assert_eq!(files.requests(), 5);
    assert_eq!(files.sent(), bytes.len());
    let report = output(&ran.out);
    assert_eq!(report["size"], bytes.len());
    assert_eq!(report["sha256"], digest(&bytes));
    assert_eq!(report["file"], "out.bin");
    assert_eq!(report["statusCode"], 206);
    assert_eq!(report.get("body"), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_breaks_is_continued_by_the_next_attempt() {
    let later =
        "Last-Modified: Sat, 31 Jan 2026 07:00:00 GMT\r\nDate: Sat, 31 Jan 2026 08:00:00 GMT\r\n";
    let bytes = content(3 * MEBIBYTE, 2);
    for (ranges, validators, continued) in [
        (Ranges::Honoured, "ETag: \"one\"\r\n", true),
        (Ranges::InParts, "ETag: \"one\"\r\n", true),
        (Ranges::Honoured, later, true),
        // Nothing shows that the rest belongs to the same file.
        (Ranges::Honoured, "ETag: W/\"one\"\r\n", false),
        (Ranges::Honoured, "", false),
        (Ranges::Ignored, "ETag: \"one\"\r\n", true),
    ] {
        let folder = Folder::new();
        let files = Files::new(bytes.clone(), ranges)
            .validators(validators)
            .stop([Stop::Cut(MEBIBYTE)]);
        let url = files.start().await;
        folder.file("get.yaml", workflow(&url, ""));
        let ran = folder.run(&["run", "get.yaml"]).left(0, &[]);
        assert!(saved(&folder) == bytes, "other bytes: {validators}");
        assert_eq!(files.is_range_request()[1], continued, "{validators}");
        let whole = !continued || ranges == Ranges::Ignored;
        let sent = bytes.len() + if whole { MEBIBYTE } else { 0 };
        assert_eq!(files.sent(), sent, "{validators}");
        let status = if whole { 200 } else { 206 };
        assert_eq!(output(&ran.out)["statusCode"], status, "{validators}");
        let requests = if ranges == Ranges::InParts { 3 } else { 2 };
        assert_eq!(files.requests(), requests, "{validators}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_attempt_that_takes_too_long_is_continued_by_the_next_one() {
    let folder = Folder::new();
    let bytes = content(MEBIBYTE, 9);
    // Fewer bytes than one write contains.
    let files = Files::new(bytes.clone(), Ranges::Honoured).stop([Stop::Stall(5000)]);
    let url = files.start().await;
    folder.file("get.yaml", workflow(&url, ", timeout: 4s"));
    folder.run(&["run", "get.yaml"]).left(0, &[]);
    assert!(saved(&folder) == bytes, "other bytes");
    assert_eq!((files.requests(), files.sent()), (2, bytes.len()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_changed_is_downloaded_again() {
    let (old, new) = (content(2 * MEBIBYTE, 3), content(3 * MEBIBYTE, 4));
    for ranges in [Ranges::Honoured, Ranges::WithoutIfRange] {
        let folder = Folder::new();
        let files = Files::new(old.clone(), ranges).stop([Stop::Stall(MEBIBYTE)]);
        let url = files.start().await;
        folder.file("get.yaml", workflow(&url, ""));
        let mut run = folder.start(&["run", "get.yaml", "--id", "get"]);
        files.stalls.notified().await;
        wait_for_bytes(&folder, MEBIBYTE);
        run.kill().unwrap();
        run.wait().unwrap();
        files.replace(new.clone(), "ETag: \"two\"\r\n");
        folder.run(&["resume", "get"]).left(0, &[]);
        assert!(saved(&folder) == new, "other bytes");
        assert_eq!(left(&folder), Vec::<PathBuf>::new());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_after_the_last_byte_costs_no_second_download() {
    let folder = Folder::new();
    let bytes = content(MEBIBYTE, 5);
    let mut files = Files::new(bytes.clone(), Ranges::Honoured).stop([Stop::Stall(MEBIBYTE)]);
    files.has_length = false;
    let url = files.start().await;
    folder.file("get.yaml", workflow(&url, ""));
    let mut run = folder.start(&["run", "get.yaml", "--id", "get"]);
    wait_for_bytes(&folder, MEBIBYTE);
    run.kill().unwrap();
    run.wait().unwrap();
    let ran = folder.run(&["resume", "get"]).left(0, &[]);
    assert!(saved(&folder) == bytes, "other bytes");
    assert_eq!((files.requests(), files.sent()), (2, bytes.len()));
    assert_eq!(output(&ran.out)["statusCode"], 206);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_digest_leaves_neither_the_file_nor_a_part_of_it() {
    let folder = Folder::new();
    folder.file("out.bin", "before");
    let bytes = content(MEBIBYTE, 6);
    let files = Files::new(bytes.clone(), Ranges::Honoured);
    let url = files.start().await;
    let wrong = digest(b"another file");
    folder.file(
        "get.yaml",
        workflow(&url, &format!(", digest: \"sha256:{wrong}\"")),
    );
    let found = format!("has sha256:{}", digest(&bytes));
    let wanted = format!("`digest` is sha256:{wrong}");
    folder
        .run(&["run", "get.yaml"])
        .left(1, &[&found, &wanted, "out.bin is as it was"]);
    assert_eq!(files.requests(), 1);
    // What the server announces is checked. The next answer may be correct.
    let promise =
        "ETag: \"one\"\r\nRepr-Digest: sha-256=:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=:\r\n";
    files.replace(bytes.clone(), promise);
    folder.file("get.yaml", workflow(&url, ""));
    folder
        .run(&["run", "get.yaml"])
        .left(1, &["the server promised sha256:0000"]);
    assert_eq!(files.requests(), 1 + 4);
    assert_eq!(saved(&folder), b"before");
    assert_eq!(left(&folder), Vec::<PathBuf>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_leaves_the_file_as_it_was() {
    async fn missing(request: Request) -> Response<Body> {
        let status = match request.uri().path() {
            "/none" => StatusCode::NO_CONTENT,
            _ => StatusCode::NOT_FOUND,
        };
        let body = match status {
            StatusCode::NO_CONTENT => Body::empty(),
            _ => Body::from("no such file"),
        };
        Response::builder().status(status).body(body).unwrap()
    }
    let folder = Folder::new();
    folder.file("out.bin", "before");
    let url = serve(Router::new().fallback(missing)).await;
    folder.file("get.yaml", workflow(&url, ""));
    folder
        .run(&["run", "get.yaml"])
        .left(1, &["404", "no such file"]);
    folder.file("get.yaml", workflow(&url, ", check: false"));
    let ran = folder.run(&["run", "get.yaml"]).left(0, &[]);
    let report = output(&ran.out);
    assert_eq!(
        (&report["statusCode"], &report["body"]),
        (&json!(404), &json!("no such file"))
    );
    folder.file("get.yaml", workflow(&format!("{url}/none"), ""));
    let ran = folder.run(&["run", "get.yaml"]).left(0, &[]);
    assert_eq!(output(&ran.out)["statusCode"], 204);
    assert_eq!(saved(&folder), b"before");
}

/// The highest memory of a process so far, in KiB.
fn peak_kib(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let number = line.unwrap().split_whitespace().nth(1).unwrap();
    number.parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn memory_does_not_grow_with_the_size_of_a_file() {
    let mut peaks = Vec::new();
    for mebibytes in [1, 100] {
        let folder = Folder::new();
        let files = Files::new(content(mebibytes * MEBIBYTE, 7), Ranges::Honoured);
        let last = Files::new(vec![0], Ranges::Ignored).stop([Stop::Stall(0)]);
        let sink = Sink::default();
        let (url, at_end, to) = (files.start().await, last.start().await, sink.start().await);
        folder.file(
            "get.yaml",
            format!(
                "
actions:
  get: {{ type: http, inputs: {{ uri: \"{url}\", saveTo: out.bin }} }}
  put: {{ type: http, inputs: {{ method: PUT, uri: \"{to}\", bodyFile: out.bin }} }}
  end: {{ type: http, inputs: {{ uri: \"{at_end}\" }} }}
"
            ),
        );
        let mut run = folder.start(&["run", "get.yaml"]);
        last.stalls.notified().await;
        peaks.push(peak_kib(run.id()));
        run.kill().unwrap();
        run.wait().unwrap();
        assert_eq!(saved(&folder).len(), mebibytes * MEBIBYTE);
        let uploads = sink.uploads.lock().unwrap().clone();
        assert_eq!(uploads, [(mebibytes * MEBIBYTE, digest(&saved(&folder)))]);
    }
    println!("peaks in KiB: {peaks:?}");
    assert!(peaks[1] < peaks[0] + (16 << 10), "{peaks:?}");
}

/// A server that accepts files.
#[derive(Clone, Default)]
struct Sink {
    /// The announced lengths, and the digests of the received bodies.
    uploads: Arc<Mutex<Vec<(usize, String)>>>,
}

impl Sink {
    async fn start(&self) -> String {
        let router = Router::new().fallback(accept).with_state(self.clone());
        serve(router).await
    }
}

async fn accept(State(sink): State<Sink>, request: Request) -> Response<Body> {
    let answer = |status: StatusCode| Response::builder().status(status);
    if request.uri().path() == "/moved" {
        // If a server answers before it has read the body, the connection is reset and its answer is lost.
        let body = axum::body::to_bytes(request.into_body(), usize::MAX);
        drop(body.await.unwrap_or_default());
        return answer(StatusCode::TEMPORARY_REDIRECT)
            .header(header::LOCATION, "/here")
            .body(Body::empty())
            .unwrap();
    }
    let length = request.headers().get(header::CONTENT_LENGTH).cloned();
    let bytes: Bytes = axum::body::to_bytes(request.into_body(), usize::MAX)
        .await
        .unwrap_or_default();
    let length = length.map_or(0, |length| length.to_str().unwrap().parse().unwrap());
    let upload = (length, digest(&bytes));
    sink.uploads.lock().unwrap().push(upload);
    answer(StatusCode::CREATED).body(Body::empty()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_is_sent_with_its_length_also_after_a_redirect() {
    let folder = Folder::new();
    let sink = Sink::default();
    let url = sink.start().await;
    let put = |path: &str, file: &str| {
        format!(
            "
actions:
  put: {{ type: http, inputs: {{ method: PUT, uri: \"{url}{path}\", bodyFile: {file} }} }}
outputs: \"@outputs('put').statusCode\"
"
        )
    };
    let bytes = content(3 * MEBIBYTE + 5, 8);
    folder.file("in.bin", &bytes);
    folder.file("empty.bin", "");
    for (path, file) in [("/", "in.bin"), ("/moved", "in.bin"), ("/", "empty.bin")] {
        folder.file("put.yaml", put(path, file));
        let ran = folder.run(&["run", "put.yaml"]).left(0, &[]);
        assert_eq!(output(&ran.out), 201, "{path} {file}");
    }
    let all = (bytes.len(), digest(&bytes));
    let uploads = sink.uploads.lock().unwrap().clone();
    assert_eq!(uploads, [all.clone(), all, (0, digest(b""))]);
    folder.file("put.yaml", put("/", "none.bin"));
    folder
        .run(&["run", "put.yaml"])
        .left(1, &["`bodyFile`: cannot read none.bin: No such file"]);
}

#[test]
fn an_empty_path_says_what_it_is_for() {
    let folder = Folder::new();
    let get = "type: http, inputs: { uri: \"http://127.0.0.1:1/\", saveTo";
    folder.file(
        "w.yaml",
        format!("actions: {{ get: {{ {get}: '' }} }} }}\n"),
    );
    folder
        .run(&["run", "w.yaml"])
        .left(3, &["`saveTo` is empty"]);
    folder.file(
        "w.yaml",
        format!("actions: {{ get: {{ {get}: \"@concat('', '')\" }} }} }}\n"),
    );
    folder
        .run(&["run", "w.yaml"])
        .left(1, &["`saveTo` is empty: it is the path of a file"]);
}
