//! Server-sent events: from the beginning, from where a client stopped, and through a restart of the server.

use super::{COUNT, PATIENCE, SLEEP, Server, Start, answer};
use crate::support::sized;
use reqwest::{Method, Response};
use serde_json::{Value, json};
use std::collections::VecDeque;

/// A loop of forty iterations that take a tenth of a second each.
const SLOW: &str = r#"
name: slow
variables: { n: 0 }
actions:
  grow:
    type: until
    condition: "@greaterOrEquals(variables('n'), 40)"
    limit: { count: 100, timeout: PT1H }
    delay: PT0.1S
    actions:
      more: { type: incrementVariable, inputs: { name: n, value: 1 } }
"#;

#[derive(Clone, Debug)]
pub struct Event {
    pub name: String,
    pub id: Option<String>,
    pub data: Value,
}

/// A stream that is read event by event.
pub struct Events {
    response: Response,
    text: String,
    ready: VecDeque<Event>,
}

impl Events {
    async fn of(server: &Server, run: &str, last: Option<&str>) -> Self {
        Self::at(server, &format!("/v1/runs/{run}/events"), last).await
    }

    pub async fn at(server: &Server, path: &str, last: Option<&str>) -> Self {
        // The wait for each event has its own time limit.
        let mut request = server.ask(Method::GET, path).timeout(PATIENCE * 60);
        if let Some(last) = last {
            request = request.header("Last-Event-ID", last);
        }
        Self::from(request.send().await.unwrap())
    }

    pub fn from(response: Response) -> Self {
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Self {
            response,
            text: String::new(),
            ready: VecDeque::new(),
        }
    }

    /// The next event; none at the end of the stream, also after an error.
    pub async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            let chunk = tokio::time::timeout(PATIENCE, self.response.chunk()).await;
            let chunk = chunk.expect("nothing comes").ok()??;
            self.text.push_str(&String::from_utf8_lossy(&chunk));
            while let Some(end) = self.text.find("\n\n") {
                let block: String = self.text.drain(..end + 2).collect();
                self.ready.extend(parse(&block));
            }
        }
    }

    async fn all(&mut self) -> Vec<Event> {
        let mut all = Vec::new();
        while let Some(event) = self.next().await {
            all.push(event);
        }
        all
    }
}

fn parse(block: &str) -> Option<Event> {
    let field = |name: &str| {
        let prefix = format!("{name}: ");
        let mut lines = block.lines();
        lines.find_map(|line| Some(line.strip_prefix(&prefix)?.to_owned()))
    };
    Some(Event {
        name: field("event")?,
        id: field("id"),
        data: serde_json::from_str(&field("data")?).unwrap(),
    })
}

fn numbers(events: &[Event]) -> Vec<u64> {
    let history = events.iter().filter(|event| event.name == "history");
    history
        .map(|event| event.id.as_ref().unwrap().parse().unwrap())
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_finished_run_sends_its_history_once() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path());
    let run = server.begin(COUNT, json!({ "to": 3 })).await;
    server.end(&run).await;
    let all = Events::of(&server, &run, None).await.all().await;
    let (last, before) = all.split_last().unwrap();
    assert_eq!(last.name, "finished");
    assert_eq!(last.data["output"], 3);
    let sent = numbers(before);
    assert_eq!(sent, (1..=sent.len() as u64).collect::<Vec<_>>());
    assert_eq!(before[0].data["event"], "RunStarted");

    let middle = Events::of(&server, &run, Some("4")).await.all().await;
    assert_eq!(numbers(&middle)[0], 5);
    let id = last.id.as_deref().unwrap();
    let request = server.ask(Method::GET, &format!("/v1/runs/{run}/events"));
    assert_eq!(answer(request.header("Last-Event-ID", id)).await.0, 204);
    let request = server.ask(Method::GET, &format!("/v1/runs/{run}/events"));
    assert_eq!(answer(request.header("Last-Event-ID", "x")).await.0, 400);
    assert_eq!(server.get("/v1/runs/nobody/events").await.0, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_is_taken_up_again_after_the_server_was_killed() {
    let dir = tempfile::tempdir().unwrap();
    let mut server = Server::start(dir.path());
    let run = server.begin(SLOW, json!(null)).await;
    let mut received: Vec<Event> = Vec::new();
    for kill in 0..3 {
        let last = received.iter().rev().find_map(|event| event.id.clone());
        let mut events = Events::of(&server, &run, last.as_deref()).await;
        let before = numbers(&received).len();
        while numbers(&received).len() < before + 8 {
            let event = events.next().await.expect("the run goes on");
            assert_ne!(event.name, "finished", "after {kill} kills");
            received.push(event);
        }
        server.kill();
        // Events that were already sent are read, too.
        received.extend(events.all().await);
        server = Server::start(dir.path());
    }
    let last = received.iter().rev().find_map(|event| event.id.clone());
    received.extend(Events::of(&server, &run, last.as_deref()).await.all().await);
    assert_eq!(received.last().unwrap().name, "finished");
    let seen = numbers(&received);
    assert_eq!(seen, (1..=seen.len() as u64).collect::<Vec<_>>());
    let (_, history) = server
        .get(&format!("/v1/runs/{run}/history?events=true&limit=10000"))
        .await;
    assert_eq!(history["events"].as_array().unwrap().len(), seen.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_continues_after_a_pause_and_ends_with_the_server() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path());
    let run = server.begin(SLEEP, json!(null)).await;
    let mut events = Events::of(&server, &run, None).await;
    let command = |verb: &str| {
        let path = format!("/v1/runs/{run}/{verb}");
        answer(server.ask(Method::POST, &path))
    };
    command("pause").await;
    let mut seen = Vec::new();
    while !seen.contains(&String::from("paused")) {
        seen.push(events.next().await.unwrap().name);
    }
    command("resume").await;
    let mut resumed = false;
    while !resumed {
        let event = events.next().await.unwrap();
        resumed = event.data["event"] == "RunResumed";
    }
    server.signal(nix::sys::signal::Signal::SIGTERM);
    let rest = events.all().await;
    assert!(
        rest.iter().all(|event| event.name != "finished"),
        "{rest:?}"
    );
    assert!(server.stop().0.success());
}

/// Unsent events of a stream are in the store and not in memory, however many clients do not read.
#[tokio::test(flavor = "multi_thread")]
async fn unread_streams_hold_little_memory() {
    let count = sized(100, 40);
    let dir = tempfile::tempdir().unwrap();
    // Opening the streams may take longer than the time after which an idle client is disconnected.
    let server = Start::new(dir.path())
        .args(&["--client-timeout", "1h"])
        .spawn();
    // Each iteration has some events of at least 200 bytes.
    let start =
        json!({ "text": COUNT.replace("1000", "9000"), "input": { "to": sized(6_000, 3_000) } });
    let (_, run) = server.post("/v1/runs", &start).await;
    let run = run["run"].as_str().unwrap().to_owned();
    let (status, _) = server.get(&format!("/v1/runs/{run}/result?wait=60")).await;
    assert_eq!(status, 200);
    let before = server.resident_kib();
    let mut streams = Vec::new();
    for _ in 0..count {
        streams.push(Events::of(&server, &run, None).await);
    }
    for stream in &mut streams {
        assert_eq!(stream.next().await.unwrap().name, "history");
    }
    let grown = server.resident_kib().saturating_sub(before) / 1024;
    println!("{count} streams: {grown} MiB");
    // All events of all streams would need more than twice as much.
    let limit = sized(60, 24);
    assert!(grown < limit, "{count} streams take {grown} MiB");
    // A client that continues to read receives everything.
    let all = streams.remove(0).all().await;
    assert_eq!(all.last().unwrap().name, "finished");
}
