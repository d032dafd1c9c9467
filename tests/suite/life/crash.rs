//! `kill -9` at random moments, with the real binary and a real server that counts requests.

use crate::support::{serve, sized};
use axum::Router;
use axum::extract::{Query, State};
use axum::http::HeaderMap;
use axum::response::Json;
use axum::routing::get;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::watch;

const POLLS: usize = 200;

const WORKFLOW: &str = r#"
name: crash
inputs: { base: { type: string } }
variables: { seen: [] }
actions:
  wait:
    type: until
    condition: "@equals(body('check').status, 'complete')"
    limit: { count: 500, timeout: PT1H }
    # delay
    actions:
      check: { type: http, inputs: { uri: "@{inputs('base')}/poll" } }
      keep: { type: appendToArrayVariable, inputs: { name: seen, value: "@body('check').poll" } }
outputs:
  polls: "@outputs('wait').iterations"
  seen: "@variables('seen')"
"#;

/// The idempotency keys of the polls, in the order of their arrival.
#[derive(Clone)]
struct Polls {
    keys: Arc<Mutex<Vec<String>>>,
    count: watch::Sender<usize>,
}

async fn poll(State(polls): State<Polls>, headers: HeaderMap) -> Json<Value> {
    let key = headers
        .get("idempotency-key")
        .expect("every call bears a key");
    let key = key.to_str().unwrap().to_owned();
    let place = {
        let mut keys = polls.keys.lock().unwrap();
        keys.push(key.clone());
        let mut distinct: Vec<&String> = Vec::new();
        for known in keys.iter() {
            if !distinct.contains(&known) {
                distinct.push(known);
            }
        }
        // A repeated poll gets the same answer.
        distinct.iter().position(|known| **known == key).unwrap() + 1
    };
    polls.count.send_modify(|count| *count += 1);
    let status = if place >= POLLS {
        "complete"
    } else {
        "running"
    };
    Json(json!({ "status": status, "poll": place }))
}

fn windlass(args: &[&str], state: &Path) -> Child {
    Command::new(env!("CARGO_BIN_EXE_windlass"))
        .args(args)
        .arg("--state")
        .arg(state)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_polls_survive_kills() {
    polls_survive(WORKFLOW).await;
}

/// With a delay, the step that requests the poll is stored together with the answer.
#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_polls_with_a_delay_survive_kills() {
    polls_survive(&WORKFLOW.replace("# delay", "delay: 2ms")).await;
}

async fn polls_survive(workflow: &str) {
    let (count, mut counted) = watch::channel(0);
    let polls = Polls {
        keys: Arc::default(),
        count,
    };
    let router = Router::new()
        .route("/poll", get(poll))
        .with_state(polls.clone());
    let base = serve(router).await;

    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("crash.yaml");
    std::fs::write(&file, workflow).unwrap();
    let state = dir.path().join("state");
    let file = file.to_str().unwrap();
    let base = format!("base={base}");
    let run = ["run", file, "--id", "crash-1", "-i", &base, "-o", "json"];
    let resume = ["resume", "crash-1", "-o", "json"];

    let most = sized(50, 20);
    let (output, kills) = disturbed(&run, &resume, &state, &mut counted, most).await;
    assert!(output.status.success(), "{output:?}");

    let keys = polls.keys.lock().unwrap().clone();
    let mut distinct = keys.clone();
    distinct.dedup();
    assert_eq!(kills, most, "the run ended before all kills");
    // No iteration is skipped: the keys name the iterations 0 to 199 in order.
    for (iteration, key) in distinct.iter().enumerate() {
        assert_eq!(*key, format!("crash-1/wait#{iteration}/check"));
    }
    assert_eq!(distinct.len(), POLLS);
    // Each kill repeats at most one poll.
    let repeated = keys.len() - POLLS;
    assert!(
        repeated <= kills,
        "{repeated} repetitions for {kills} kills"
    );

    // The result is that of a run without kills.
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    let seen: Vec<usize> = (1..=POLLS).collect();
    assert_eq!(result, json!({ "polls": POLLS, "seen": seen }));
}

/// Runs a command and kills it at random moments, each time after a few more requests. Returns the output of the last
/// process, and the number of kills.
async fn disturbed(
    run: &[&str],
    resume: &[&str],
    state: &Path,
    counted: &mut watch::Receiver<usize>,
    most: usize,
) -> (Output, usize) {
    let mut random = StdRng::seed_from_u64(20_261_121);
    let mut kills = 0;
    let mut child = windlass(run, state);
    while kills < most {
        // Kills after some more requests and a short random time.
        let wanted = *counted.borrow() + random.random_range(1..=2);
        tokio::select! {
            reached = counted.wait_for(|count| *count >= wanted) => { reached.unwrap(); }
            // The run has ended: no process is left to kill.
            () = ended(&mut child) => break,
        }
        tokio::time::sleep(Duration::from_micros(random.random_range(0..1_500))).await;
        child.kill().unwrap();
        child.wait().unwrap();
        kills += 1;
        child = windlass(resume, state);
    }
    let output = tokio::task::spawn_blocking(move || child.wait_with_output().unwrap());
    (output.await.unwrap(), kills)
}

/// A page of three rows, up to the last of three hundred.
async fn page(
    State(count): State<watch::Sender<usize>>,
    Query(query): Query<HashMap<String, String>>,
) -> Json<Value> {
    count.send_modify(|count| *count += 1);
    let page: u32 = query["pageToken"].parse().unwrap_or(1);
    let rows: Vec<Value> = (0..3)
        .map(|row| json!({ "page": page, "row": row }))
        .collect();
    let next = (page < 300).then(|| (page + 1).to_string());
    Json(json!({ "items": rows, "nextPageToken": next }))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_backfill_leaves_the_file_of_an_undisturbed_one() {
    let (count, mut counted) = watch::channel(0);
    let router = Router::new().route("/data", get(page)).with_state(count);
    let base = format!("base={}", serve(router).await);
    let dir = tempfile::tempdir().unwrap();
    let rows = dir.path().join("rows.jsonl");
    std::fs::write(&rows, "what was there before\n").unwrap();
    let file = format!("file={}", rows.display());
    let example = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/examples/paginated-backfill.yaml"
    );
    let run = [
        "run", example, "--id", "backfill", "-i", &base, "-i", &file, "-o", "json",
    ];
    let resume = ["resume", "backfill", "-o", "json"];
    let state = dir.path().join("state");
    let most = sized(30, 12);
    let (output, kills) = disturbed(&run, &resume, &state, &mut counted, most).await;
    assert!(output.status.success(), "{output:?}");
    assert_eq!(kills, most, "the run ended before all kills");

    let mut undisturbed = String::new();
    for page in 1..=300 {
        for row in 0..3 {
            undisturbed.push_str(&json!({ "page": page, "row": row }).to_string());
            undisturbed.push('\n');
        }
    }
    assert_eq!(std::fs::read_to_string(&rows).unwrap(), undisturbed);
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        result,
        json!({ "pages": 300, "rows": 900, "bytes": undisturbed.len() })
    );
}

/// A page of one row. After the thirtieth page the tenth follows again.
async fn circle(
    State(count): State<watch::Sender<usize>>,
    Query(query): Query<HashMap<String, String>>,
) -> Json<Value> {
    count.send_modify(|count| *count += 1);
    let page: u32 = query["pageToken"].parse().unwrap_or(1);
    let next = if page < 30 { page + 1 } else { 10 };
    Json(json!({ "items": [page], "nextPageToken": next.to_string() }))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_repeats_is_recognised_through_ten_kills() {
    let (count, mut counted) = watch::channel(0);
    let router = Router::new().route("/data", get(circle)).with_state(count);
    let base = format!("base={}", serve(router).await);
    let dir = tempfile::tempdir().unwrap();
    let rows = dir.path().join("rows.jsonl");
    let file = format!("file={}", rows.display());
    let example = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/examples/paginated-backfill.yaml"
    );
    let run = [
        "run", example, "--id", "circle", "-i", &base, "-i", &file, "-o", "json",
    ];
    let resume = ["resume", "circle", "-o", "json"];
    let state = dir.path().join("state");
    let (output, kills) = disturbed(&run, &resume, &state, &mut counted, 10).await;
    assert_eq!(kills, 10, "the run ended before all kills");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(result["error"]["kind"], "repeat", "{result}");
    let message = result["error"]["message"].as_str().unwrap();
    assert!(
        message.contains("is at page \"10\" again: iteration 31 would read what iteration 10"),
        "{message}"
    );
    // Each page was read once, including the repeated ones.
    assert!(!rows.exists(), "it was replaced although the run failed");
    let new = rows.with_extension("jsonl.circle.new");
    let written = std::fs::read_to_string(new).unwrap();
    let pages: Vec<u32> = written.lines().map(|line| line.parse().unwrap()).collect();
    assert_eq!(pages, (1..=30).collect::<Vec<u32>>());
}

/// Waits for the end of the process.
async fn ended(child: &mut Child) {
    while child.try_wait().unwrap().is_none() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

const AGENT: &str = r#"
name: agent
initial_state: { seen: [], tries: 0 }
nodes:
  - name: ask
    type: while_loop
    max_iterations: 40
    condition: "state.get('status') != 'complete'"
    body:
      - name: poll
        uses: http.get
        with: { url: "{{ state.base }}/poll" }
      - name: note
        run: |
          state["seen"].append(state.pop("poll"))
  - name: check
    uses: retry.loop
    with:
      validate: http.get
      validate_args: { url: "{{ state.base }}/valid" }
      correct: fix
      max_retries: 30
    output: { count: "{{ result._retry_count }}", exhausted: "{{ result._retry_exhausted }}", tries: "{{ result.tries }}" }
  - { name: end, goto: __end__ }
  - { name: fix, run: "return {'tries': state['tries'] + 1}" }
"#;

/// A check that always answers that the output is invalid.
async fn invalid(State(polls): State<Polls>, headers: HeaderMap) -> Json<Value> {
    let key = headers["idempotency-key"].to_str().unwrap().to_owned();
    polls.keys.lock().unwrap().push(key);
    polls.count.send_modify(|count| *count += 1);
    Json(json!({ "valid": false, "errors": ["no"] }))
}

#[tokio::test(flavor = "multi_thread")]
async fn budgets_of_an_agent_survive_kills() {
    let (count, mut counted) = watch::channel(0);
    let polls = Polls {
        keys: Arc::default(),
        count: count.clone(),
    };
    let checks = Polls {
        keys: Arc::default(),
        count,
    };
    let router = Router::new()
        .route("/poll", get(poll))
        .with_state(polls.clone())
        .merge(
            Router::new()
                .route("/valid", get(invalid))
                .with_state(checks.clone()),
        );
    let base = format!("base={}", serve(router).await);
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("agent.yaml");
    std::fs::write(&file, AGENT).unwrap();
    let state = dir.path().join("state");
    let file = file.to_str().unwrap();
    let run = ["run", file, "--id", "agent", "-i", &base, "-o", "json"];
    let resume = ["resume", "agent", "-o", "json"];
    let most = sized(20, 10);
    let (output, kills) = disturbed(&run, &resume, &state, &mut counted, most).await;
    assert!(output.status.success(), "{output:?}");
    assert_eq!(kills, most, "the run ended before all kills");

    // Exactly forty iterations, however often the process was killed: the server would have reported `complete` only at
    // the two hundredth poll.
    let request_counts = |polls: &Polls| {
        let mut keys = polls.keys.lock().unwrap().clone();
        let all = keys.len();
        keys.dedup();
        assert!(
            all - keys.len() <= kills,
            "{all} requests for {}",
            keys.len()
        );
        keys
    };
    let wanted: Vec<String> = (0..40).map(|n| format!("agent/ask#{n}/poll")).collect();
    assert_eq!(request_counts(&polls), wanted);
    // Thirty corrections need thirty-one validations.
    let wanted: Vec<String> = (0..31)
        .map(|n| format!("agent/check#{n}/check.validate"))
        .collect();
    assert_eq!(request_counts(&checks), wanted);
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    let seen: Vec<usize> = (1..=40).collect();
    assert_eq!(result["seen"], json!(seen));
    assert_eq!(result["status"], "running");
    assert_eq!(
        (&result["count"], &result["exhausted"], &result["tries"]),
        (&json!(30), &json!(true), &json!(30))
    );
}
