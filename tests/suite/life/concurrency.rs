//! Many runs at the same time: more than one part of a driver's turn, and handles that are not polled. Also one run
//! alone, whose requests the driver's thread sends.

use crate::life::first_use::Folder;
use crate::support::sized;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::sync::{Arc, mpsc};
use tokio::task::JoinSet;
use windlass_engine::scheduler::Update;
use windlass_engine::{Engine, Signal, Value};

/// Counts to its input, with one iteration per number.
const COUNTS: &str = "
name: counts
inputs: { to: { type: integer } }
variables: { n: 0 }
actions:
  count:
    type: until
    condition: \"@equals(variables('n'), inputs('to'))\"
    limit: { count: 5000, timeout: PT1H }
    actions:
      step: { type: incrementVariable, name: n, value: 1 }
outputs: \"@variables('n')\"
";

fn engine(at: &Path) -> Engine {
    Engine::builder().max_count(5_000).open(at).unwrap()
}

fn to(count: i64) -> Value {
    Value::from_pairs([("to", Value::Int(count))])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_runs_each_ends_with_its_own_result_and_others_get_through() {
    let at = tempfile::tempdir().unwrap();
    let engine = Arc::new(engine(at.path()));
    let workflow = engine.load_text("counts.yaml", COUNTS).unwrap();
    let mut runs = JoinSet::new();
    for n in 0..450 {
        let (engine, workflow) = (engine.clone(), workflow.clone());
        runs.spawn(async move {
            let run = engine.start(&workflow, to(1 + n % 40)).await.unwrap();
            (1 + n % 40, run)
        });
    }
    let runs = runs.join_all().await;
    // Meanwhile one run is started, paused, and resumed.
    let paused = engine.start(&workflow, to(5_000)).await.unwrap();
    let id = paused.id().to_owned();
    engine.pause(&id).await.unwrap();
    assert!(paused.result::<Value>().await.is_err());
    engine.cancel(&id).await.unwrap();
    for (count, run) in runs {
        let id = run.id().to_owned();
        assert_eq!(run.result::<Value>().await.unwrap(), Value::Int(count));
        let rows = engine.inspector().history(&id, 0, usize::MAX).unwrap();
        assert!(rows.len() > usize::try_from(count).unwrap());
    }
    engine.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_does_not_look_misses_steps_but_not_the_end() {
    let at = tempfile::tempdir().unwrap();
    let engine = engine(at.path());
    let workflow = engine.load_text("counts.yaml", COUNTS).unwrap();
    let mut idle = engine.start(&workflow, to(300)).await.unwrap();
    let other = engine.handle(idle.id()).await.unwrap();
    assert_eq!(other.result::<Value>().await.unwrap(), Value::Int(300));
    let mut steps = 0;
    let end = loop {
        match idle.next().await.unwrap() {
            Update::Step(_) => steps += 1,
            end => break end,
        }
    };
    assert!((1..=64).contains(&steps), "{steps}");
    assert!(matches!(end, Update::Finished(_)), "{end:?}");
    engine.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commands_to_busy_runs_wait_for_the_step_that_is_being_stored() {
    let at = tempfile::tempdir().unwrap();
    let engine = Arc::new(engine(at.path()));
    let text = COUNTS.replace(
        "outputs:",
        "  go: { type: waitForSignal, signal: go }\noutputs:",
    );
    let workflow = engine.load_text("counts.yaml", &text).unwrap();
    let mut runs = JoinSet::new();
    for _ in 0..sized(400, 100) {
        let (engine, workflow) = (engine.clone(), workflow.clone());
        runs.spawn(async move {
            let run = engine.start(&workflow, to(5_000)).await.unwrap();
            run.id().to_owned()
        });
    }
    // One command at a time. Without other commands, busy runs continue in one turn of the driver, so the later of two
    // pending steps of a run could be stored first.
    for id in runs.join_all().await.into_iter().take(sized(100, 30)) {
        engine
            .signal(&id, Signal::new("go".into(), Value::Null))
            .await
            .unwrap();
        engine.cancel(&id).await.unwrap();
    }
    engine.stop().await;
}

/// A server that answers one request on each connection and closes the connection without announcing it.
fn closes_after_each(closed: mpsc::Sender<()>) -> std::net::SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut read = Vec::new();
            while !read.ends_with(b"\r\n\r\n{}") {
                let mut byte = [0];
                stream.read_exact(&mut byte).unwrap();
                read.extend(byte);
            }
            let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
            stream.write_all(answer).unwrap();
            drop(stream);
            closed.send(()).unwrap();
        }
    });
    at
}

#[test]
fn a_connection_that_was_closed_between_two_requests_is_not_used_again() {
    let (sender, receiver) = mpsc::channel();
    let at = closes_after_each(sender);
    let folder = Folder::new();
    let file = folder.file(
        "w.yaml",
        format!(
            "actions:
  poll:
    type: until
    condition: \"@equals(iterationIndexes('poll'), 10)\"
    limit: {{ count: 20, timeout: PT1M }}
    delay: PT0.02S
    actions:
      ask: {{ type: http, retry: {{ type: none }}, inputs: {{ method: POST, uri: 'http://{at}/', body: {{}} }} }}
"
        ),
    );
    folder.run(&["run", file.to_str().unwrap()]).left(0, &[]);
    assert_eq!(receiver.try_iter().count(), 10);
}
