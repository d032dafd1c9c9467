//! `events`: server-sent events, one per iteration, with servers that count connections, break them and end them, and
//! through `kill -9`.

use crate::life::first_use::Folder;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

/// What a server does with one connection.
struct Reply {
    /// All bytes of the answer.
    bytes: Vec<u8>,
    /// Whether the server then closes the connection. Otherwise the client does.
    closes: bool,
}

impl Reply {
    fn stream(body: impl AsRef<[u8]>) -> Self {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n\r\n";
        Self {
            bytes: [head.as_bytes(), body.as_ref()].concat(),
            closes: false,
        }
    }

    fn head(text: &str) -> Self {
        Self {
            bytes: format!("HTTP/1.1 {text}\r\n\r\n").into_bytes(),
            closes: true,
        }
    }

    fn closed(self) -> Self {
        Self {
            closes: true,
            ..self
        }
    }
}

/// The answer to a connection, given its number from 1 and the number of its last event (0 if it named none).
type Answer = dyn Fn(usize, usize) -> Reply + Send + Sync;

#[derive(Clone)]
struct Server {
    answer: Arc<Answer>,
    /// The heads of the requests, in lower case.
    heads: Arc<Mutex<Vec<String>>>,
    /// An answer was sent.
    sent: Arc<Notify>,
}

impl Server {
    fn new(answer: impl Fn(usize, usize) -> Reply + Send + Sync + 'static) -> Self {
        Self {
            answer: Arc::new(answer),
            heads: Arc::default(),
            sent: Arc::default(),
        }
    }

    #[allow(clippy::disallowed_methods)] // A test's server is a task of its own.
    async fn start(&self) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/events", listener.local_addr().unwrap());
        let server = self.clone();
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let server = server.clone();
                tokio::spawn(async move {
                    // The client may have disconnected.
                    let _ = server.serve(stream).await;
                });
            }
        });
        url
    }

    async fn serve(&self, mut stream: TcpStream) -> std::io::Result<()> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await?);
        }
        let head = String::from_utf8(head).unwrap().to_lowercase();
        let last = field(&head, "last-event-id");
        let number = {
            let mut heads = self.heads.lock().unwrap();
            heads.push(head);
            heads.len()
        };
        let last = last.map_or(0, |last| last.parse().unwrap());
        let reply = (self.answer)(number, last);
        stream.write_all(&reply.bytes).await?;
        self.sent.notify_one();
        if !reply.closes {
            // Waits until the client has disconnected.
            let _ = stream.read_u8().await;
        }
        stream.shutdown().await
    }

    /// The last event id that each connection sent.
    fn last_ids(&self) -> Vec<Option<String>> {
        let heads = self.heads.lock().unwrap();
        let heads = heads.iter();
        heads.map(|head| field(head, "last-event-id")).collect()
    }

    fn connections(&self) -> usize {
        self.heads.lock().unwrap().len()
    }
}

fn field(head: &str, name: &str) -> Option<String> {
    let mut lines = head.lines();
    let field = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    field.map(|value| value.trim().to_owned())
}

/// Events with these numbers as their ids and in their data.
fn numbered(numbers: impl IntoIterator<Item = usize>) -> String {
    let event = |number| format!("id: {number}\ndata: {{\"n\": {number}}}\n\n");
    numbers.into_iter().map(event).collect()
}

/// A loop that reads events up to the one with this number, and appends each to a file.
fn workflow(url: &str, last: usize, more: &str) -> String {
    format!(
        "
actions:
  read:
    type: doUntil
    condition: \"@equals(body('next')?.data?.n, {last})\"
    limit: {{ count: 2000 }}
    actions:
      next: {{ type: http, uri: \"{url}\", events: true{more} }}
      keep: {{ type: appendFile, inputs: {{ path: rows.jsonl, row: \"@body('next').data.n\" }} }}
outputs: \"@outputs('next')\"
"
    )
}

fn rows(folder: &Folder) -> Vec<usize> {
    let text = folder.read("rows.jsonl");
    text.lines().map(|line| line.parse().unwrap()).collect()
}

fn output(out: &str) -> Value {
    serde_json::from_str(out).unwrap()
}

fn texts(ids: &[Option<&str>]) -> Vec<Option<String>> {
    ids.iter().map(|id| id.map(str::to_owned)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn one_connection_has_all_events() {
    let folder = Folder::new();
    let server = Server::new(|_, last| Reply::stream(numbered(last + 1..=1000)));
    let url = server.start().await;
    folder.file("read.yaml", workflow(&url, 1000, ""));
    // The next event of an open stream is not a call.
    let host = url.split('/').nth(2).unwrap();
    let rate = format!("{host}=2/1h");
    let args = ["run", "read.yaml", "--strict", "--rate", &rate];
    let ran = folder.run(&args).left(0, &[]);
    let report = output(&ran.out);
    assert_eq!(
        report["body"],
        json!({ "id": "1000", "event": "message", "data": { "n": 1000 } })
    );
    assert_eq!(report["statusCode"], 200);
    assert_eq!(rows(&folder), (1..=1000).collect::<Vec<_>>());
    assert_eq!(server.connections(), 1);
    let head = server.heads.lock().unwrap().concat();
    assert!(head.contains("\naccept: text/event-stream"), "{head}");
}

#[tokio::test(flavor = "multi_thread")]
async fn any_stream_of_the_standard_is_read() {
    let folder = Folder::new();
    let server = Server::new(|_, _| {
        Reply::stream(
            "\u{FEFF}: hello\r\rdata: one\rdata: two\r\r: keep\r\nevent: add\r\nid: 7\r\n\
             data:{\"a\": [1,\r\ndata: 2]}\r\n\r\ndata\n\nid: 8\n\nid: 9\0\ndata: true\n\nid\ndata: end\n\n",
        )
    });
    let url = server.start().await;
    folder.file(
        "read.yaml",
        format!(
            "
variables: {{ seen: [] }}
actions:
  read:
    type: doUntil
    condition: \"@equals(body('next').data, 'end')\"
    limit: {{ count: 20 }}
    actions:
      next: {{ type: http, uri: \"{url}\", events: true, retry: none }}
      keep: {{ type: appendToArrayVariable, inputs: {{ name: seen, value: \"@body('next')\" }} }}
outputs: \"@variables('seen')\"
"
        ),
    );
    let ran = folder.run(&["run", "read.yaml"]).left(0, &[]);
    assert_eq!(
        output(&ran.out),
        json!([
            { "id": null, "event": "message", "data": "one\ntwo" },
            { "id": "7", "event": "add", "data": { "a": [1, 2] } },
            { "id": "7", "event": "message", "data": "" },
            { "id": "8", "event": "message", "data": true },
            { "id": null, "event": "message", "data": "end" },
        ])
    );
    assert_eq!(server.connections(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_at_any_event_reads_none_twice() {
    for killed_at in 0..=5 {
        let folder = Folder::new();
        let server = Server::new(move |number, last| match number {
            1 => Reply::stream(numbered(1..=killed_at)),
            _ => Reply::stream(numbered(last + 1..=6)),
        });
        let url = server.start().await;
        folder.file("read.yaml", workflow(&url, 6, ""));
        let mut run = folder.start(&["run", "read.yaml", "--id", "read"]);
        server.sent.notified().await;
        folder.wait_for(|_| folder.lines("rows.jsonl") == killed_at);
        run.kill().unwrap();
        run.wait().unwrap();
        let ran = folder.run(&["resume", "read"]).left(0, &[]);
        assert_eq!(output(&ran.out)["body"]["id"], "6", "{killed_at}");
        assert_eq!(rows(&folder), [1, 2, 3, 4, 5, 6], "{killed_at}");
        let named = (killed_at > 0).then(|| killed_at.to_string());
        assert_eq!(server.last_ids(), [None, named], "{killed_at}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn half_an_event_comes_again() {
    let folder = Folder::new();
    let server = Server::new(|number, last| match number {
        1 => Reply::stream(numbered(1..=2) + "id: 3\ndata: {\"n\"").closed(),
        2 => Reply::stream("id: 3\ndata: {\"n\": 3}\n").closed(),
        _ => Reply::stream(numbered(last + 1..=4)),
    });
    let url = server.start().await;
    folder.file("read.yaml", workflow(&url, 4, ""));
    folder.run(&["run", "read.yaml"]).left(0, &[]);
    assert_eq!(rows(&folder), [1, 2, 3, 4]);
    assert_eq!(server.last_ids(), texts(&[None, Some("2"), Some("2")]));
    let server = Server::new(|_, _| Reply::stream("data: 1\n").closed());
    let url = server.start().await;
    folder.file("half.yaml", workflow(&url, 1, ", retry: none"));
    folder
        .run(&["run", "half.yaml"])
        .left(1, &["ended within an event"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_ends_is_no_failure() {
    let folder = Folder::new();
    let server = Server::new(|number, _| match number {
        1 => Reply::stream("retry: 100\n\n".to_owned() + &numbered(1..=2)).closed(),
        2 => Reply::stream(": nothing\n").closed(),
        // The id of a block without data is used, too.
        3 => Reply::stream("id: 5\n\n").closed(),
        4 => Reply::stream(numbered(6..=6)).closed(),
        _ => Reply::stream(numbered(7..=7)),
    });
    let url = server.start().await;
    folder.file("read.yaml", workflow(&url, 7, ", retry: none"));
    folder.run(&["run", "read.yaml"]).left(0, &[]);
    assert_eq!(rows(&folder), [1, 2, 6, 7]);
    let named = texts(&[None, Some("2"), Some("2"), Some("5"), Some("6")]);
    assert_eq!(server.last_ids(), named);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_204_is_the_end_and_can_be_read() {
    let folder = Folder::new();
    let server = Server::new(|number, _| match number {
        1 => Reply::stream("retry: 100\n\n".to_owned() + &numbered(1..=1)).closed(),
        _ => Reply::head("204 No Content"),
    });
    let url = server.start().await;
    folder.file(
        "read.yaml",
        format!(
            "
actions:
  read:
    type: doUntil
    condition: \"@equals(outputs('next').statusCode, 204)\"
    actions: {{ next: {{ type: http, uri: \"{url}\", events: true }} }}
outputs: {{ next: \"@outputs('next')\", count: \"@outputs('read').iterations\" }}
"
        ),
    );
    let ran = folder.run(&["run", "read.yaml"]).left(0, &[]);
    let report = output(&ran.out);
    assert_eq!(report["count"], 2);
    assert_eq!(report["next"]["statusCode"], 204);
    assert_eq!(report["next"]["body"], Value::Null);
    assert_eq!(report["next"]["position"], json!({ "uri": url, "id": "1" }));
    assert_eq!(server.last_ids(), texts(&[None, Some("1")]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redirect_to_another_server_names_the_last_event() {
    let folder = Folder::new();
    let server = Server::new(|_, last| {
        let events = numbered(last + 1..=last + 2);
        Reply::stream("retry: 100\n\n".to_owned() + &events).closed()
    });
    let to = server.start().await;
    let home = Server::new(move |_, _| {
        let head = format!("307 Temporary Redirect\r\nLocation: {to}\r\nContent-Length: 0");
        Reply::head(&head)
    });
    let url = home.start().await;
    folder.file("read.yaml", workflow(&url, 3, ""));
    folder.run(&["run", "read.yaml"]).left(0, &[]);
    assert_eq!(rows(&folder), [1, 2, 3]);
    assert_eq!(server.last_ids(), texts(&[None, Some("2")]));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_stream_is_refused() {
    let json = "200 OK\r\nContent-Type: application/json\r\nContent-Length: 2";
    for (head, expected) in [
        (json, "answered 200 OK with `application/json`"),
        (
            "202 Accepted\r\nContent-Type: text/event-stream",
            "answered 202 Accepted with `text/event-stream`",
        ),
        ("200 OK", "answered 200 OK with no content type"),
        (
            "404 Not Found\r\nContent-Length: 0",
            "answered 404 Not Found",
        ),
    ] {
        let folder = Folder::new();
        let server = Server::new(move |_, _| Reply::head(head));
        let url = server.start().await;
        folder.file("read.yaml", workflow(&url, 1, ""));
        folder.run(&["run", "read.yaml"]).left(1, &[expected]);
        assert_eq!(server.connections(), 1, "{head}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_with_effects_is_not_repeated() {
    let folder = Folder::new();
    let server = Server::new(|_, last| Reply::stream(numbered(last + 1..=2)).closed());
    let url = server.start().await;
    folder.file(
        "read.yaml",
        workflow(&url, 3, ", method: POST, body: { a: 1 }"),
    );
    folder
        .run(&["run", "read.yaml"])
        .left(1, &["only a retry policy repeats"]);
    assert_eq!(rows(&folder), [1, 2]);
    assert_eq!(server.connections(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_item_has_a_stream_of_its_own() {
    let folder = Folder::new();
    let server = Server::new(|_, last| Reply::stream(numbered(last + 1..=9)));
    let url = server.start().await;
    folder.file(
        "read.yaml",
        format!(
            "
actions:
  each:
    type: foreach
    foreach: [3, 5]
    concurrency: 2
    actions:
      read:
        type: doUntil
        condition: \"@equals(body('next').data.n, item())\"
        actions: {{ next: {{ type: http, uri: \"{url}\", events: true }} }}
  once: {{ type: http, uri: \"{url}\", events: true }}
outputs: \"@body('once').data.n\"
"
        ),
    );
    let ran = folder.run(&["run", "read.yaml"]).left(0, &[]);
    assert_eq!(output(&ran.out), 1);
    assert_eq!(server.last_ids(), [None, None, None]);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_line_reads_until_the_condition() {
    let folder = Folder::new();
    let server = Server::new(|number, last| match number {
        1 => Reply::stream("data: welcome\n\n".to_owned() + &numbered(1..=2)),
        _ => Reply::stream(numbered(last + 1..=9)),
    });
    let url = server.start().await;
    let until = "body.data.n >= 4 and body.event == 'message'";
    let line = ["events", &url, "--until", until, "--to", "rows.jsonl"];
    let mut run = folder.start(&line);
    folder.wait_for(|_| folder.lines("rows.jsonl") == 3);
    run.kill().unwrap();
    run.wait().unwrap();
    // The same command line continues the run.
    let ran = folder.run(&line).left(0, &["resuming"]);
    assert_eq!(
        output(&ran.out),
        json!({ "id": "4", "event": "message", "data": { "n": 4 } })
    );
    let expected = "\"welcome\"\n{\"n\":1}\n{\"n\":2}\n{\"n\":3}\n{\"n\":4}\n";
    assert_eq!(folder.read("rows.jsonl"), expected);
    assert_eq!(server.last_ids(), texts(&[None, Some("2")]));
}

#[tokio::test(flavor = "multi_thread")]
async fn one_line_reads_a_number_of_events() {
    let folder = Folder::new();
    let server = Server::new(|_, last| Reply::stream(numbered(last + 1..=9)));
    let url = server.start().await;
    let ran = folder.run(&["events", &url, "--times", "3"]).left(0, &[]);
    assert_eq!(output(&ran.out)["id"], "3");
    let ran = folder.run(&["events", &url, "--times", "2", "--to", "-"]);
    assert_eq!(ran.left(0, &[]).out, "{\"n\":1}\n{\"n\":2}\n");
    // Reads for a given time, in which no event arrives.
    let ran = folder.run(&["events", &url, "--to", "all.jsonl", "--for", "1s"]);
    assert_eq!(output(&ran.left(0, &[]).out)["id"], "9");
    assert_eq!(folder.lines("all.jsonl"), 9);
    folder
        .run(&["events", &url])
        .left(2, &["--until", "--times", "--to"]);
    folder
        .run(&["events", &url, "--until", "false", "--times", "3"])
        .left(4, &[]);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_line_ends_with_the_events() {
    let folder = Folder::new();
    let server = Server::new(|_, last| match last {
        0 => Reply::stream("retry: 100\n\n".to_owned() + &numbered(1..=2)).closed(),
        _ => Reply::head("204 No Content"),
    });
    let url = server.start().await;
    folder
        .run(&["events", &url, "--until", "body.data.n == 3"])
        .left(1, &["the server has no more events (204)"]);
    folder
        .run(&["events", &url, "--to", "rows.jsonl"])
        .left(0, &[]);
    assert_eq!(folder.lines("rows.jsonl"), 2);
}
