//! A canvas with the real binary. It is killed between the nodes of an iteration and between iterations, and resumes
//! with the same previous outputs and sessions. Also what the commands show of it meanwhile.

use crate::support::serve;
use axum::Router;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Json;
use axum::routing::post;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::watch;

const WORKFLOW: &str = r#"
name: review
runners: { scripted: { url: "BASE/ask" } }
nodes:
  - id: review-loop
    type: loop
    data:
      label: Code Review Loop
      workflowRef: parts/inner.yaml
      continueWhile: { output: review.approved, operator: "==", value: false }
      maxIterations: 5
      inputs: [{ name: task, type: string, required: true }]
      inputMappings:
        - { source: { type: outer, name: task }, target: { node: coder, input: task } }
        - { source: { type: previous, node: review, output: feedback }, target: { node: coder, input: context }, iterations: subsequent }
      outputMappings:
        - { source: { node: coder, output: code }, target: code }
        - { source: { node: review, output: feedback }, target: feedback, take: all }
        - { source: { node: coder, output: session_id }, target: session }
"#;

const INNER: &str = r#"
nodes:
  - id: coder
    type: agent
    data:
      label: Coder
      runner: scripted
      session: true
      prompt: "Task: {{ task }}. Feedback: {{ context }}. Round {{ iteration_count }}."
      inputs: [{ name: task, type: string }, { name: context, type: string }]
      outputs: [{ name: code, type: string }]
  - id: review
    type: agent
    data:
      label: Reviewer
      runner: scripted
      prompt: "Review {{ coder.code }}"
      inputs: [{ name: code, type: string }]
      outputs: [{ name: approved, type: boolean }, { name: feedback, type: string }]
edges:
  - { source: coder, target: review, sourceHandle: "output:code", targetHandle: "input:code" }
"#;

/// The requests by key, and the keys whose first request gets no answer.
#[derive(Clone)]
struct Requests {
    all: Arc<Mutex<Vec<(String, Value)>>>,
    held: Arc<BTreeSet<&'static str>>,
    /// The last key that got no answer.
    hanging: watch::Sender<String>,
}

async fn ask(
    State(requests): State<Requests>,
    headers: HeaderMap,
    Json(body): Json<Value>,
) -> Json<Value> {
    let key = headers["idempotency-key"].to_str().unwrap().to_owned();
    let first = {
        let mut all = requests.all.lock().unwrap();
        let first = !all.iter().any(|(known, _)| *known == key);
        all.push((key.clone(), body.clone()));
        first
    };
    if first && requests.held.contains(key.as_str()) {
        requests.hanging.send_replace(key);
        std::future::pending::<()>().await;
    }
    let prompt = body["prompt"].as_str().unwrap();
    if let Some(code) = prompt.strip_prefix("Review ") {
        let approved = code.contains("third");
        let feedback = format!("about <{code}>");
        return Json(json!({ "approved": approved, "feedback": feedback }));
    }
    let code = match prompt.matches("about").count() {
        0 => "first",
        1 if prompt.contains("<first>") => "second",
        _ => "third",
    };
    let session = body["session_id"].as_str().unwrap_or("s");
    Json(json!({ "code": code, "session_id": format!("{session}+") }))
}

fn windlass(args: &[&str], state: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
    command.args(args).arg("--state").arg(state);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// What a command prints.
fn printed(args: &[&str], state: &Path) -> String {
    let output = windlass(args, state).output().unwrap();
    assert!(output.status.success(), "{args:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Starts a process, waits until the request with this key gets no answer, runs the checks, and kills the process.
async fn killed_at(
    key: &str,
    mut command: Command,
    hanging: &mut watch::Receiver<String>,
    look: impl FnOnce(),
) {
    let mut child: Child = command.spawn().unwrap();
    let hangs = hanging.wait_for(|at| at == key);
    let hangs = tokio::time::timeout(Duration::from_secs(60), hangs).await;
    if hangs.is_err() {
        child.kill().unwrap();
        panic!("{key}: {:?}", child.wait_with_output().unwrap());
    }
    drop(hangs);
    look();
    child.kill().unwrap();
    child.wait().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_anywhere_it_resumes_with_the_same_previous_outputs_and_session() {
    let held = [
        "run-1/review-loop#0/review",
        "run-1/review-loop#1/coder",
        "run-1/review-loop#1/review",
        "run-1/review-loop#2/coder",
        "run-1/review-loop#2/review",
    ];
    let (hanging, mut hangs) = watch::channel(String::new());
    let requests = Requests {
        all: Arc::default(),
        held: Arc::new(BTreeSet::from(held)),
        hanging,
    };
    let router = Router::new()
        .route("/ask", post(ask))
        .with_state(requests.clone());
    let base = serve(router).await;

    let dir = tempfile::tempdir().unwrap();
    let (file, state) = (dir.path().join("review.yaml"), dir.path().join("state"));
    std::fs::create_dir(dir.path().join("parts")).unwrap();
    std::fs::write(dir.path().join("parts/inner.yaml"), INNER).unwrap();
    std::fs::write(&file, WORKFLOW.replace("BASE", &base)).unwrap();
    let run = [
        "run",
        file.to_str().unwrap(),
        "--id",
        "run-1",
        "-i",
        "task=divide",
    ];
    let run = windlass(&run, &state);
    let resume = || windlass(&["resume", "run-1"], &state);
    let started = || joins_its_owner(&state);
    killed_at(held[0], run, &mut hangs, started).await;
    // The run uses the workflow that it was started with.
    std::fs::remove_file(&file).unwrap();
    std::fs::remove_dir_all(dir.path().join("parts")).unwrap();
    killed_at(held[1], resume(), &mut hangs, || {}).await;
    killed_at(held[2], resume(), &mut hangs, || shown(&state)).await;
    killed_at(held[3], resume(), &mut hangs, || {}).await;
    // `resume` shows the names of the nodes, not their ids.
    let mut resumed = windlass(&["resume", "run-1", "-v"], &state);
    let mut resumed = resumed.spawn().unwrap();
    let lines = BufReader::new(resumed.stderr.take().unwrap()).lines();
    let reading = tokio::task::spawn_blocking(move || {
        let mut lines_read = Vec::new();
        for line in lines {
            lines_read.push(line.unwrap());
            if lines_read[lines_read.len() - 1]
                .starts_with("Code Review Loop  iteration 3/5  Reviewer")
            {
                return Ok(());
            }
        }
        Err(lines_read)
    });
    let held_again = hangs.wait_for(|at| at == held[4]);
    let both = async { (reading.await, held_again.await.is_ok()) };
    let waited = tokio::time::timeout(Duration::from_secs(60), both).await;
    resumed.kill().unwrap();
    resumed.wait().unwrap();
    let (read, held_again) = waited.expect("the reviewer is never reported");
    assert_eq!((read.unwrap(), held_again), (Ok(()), true));
    let output: Output = windlass(&["resume", "run-1", "-o", "json"], &state)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let output: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        output["review-loop"],
        json!({
            "code": "third",
            "feedback": ["about <first>", "about <second>", "about <third>"],
            "session": "s+++",
            "iteration_count": 3,
            "status": "done",
        })
    );

    // Every call was made. The five calls that were interrupted were repeated with an identical request.
    let all = requests.all.lock().unwrap().clone();
    let calls = |key: &str| -> Vec<Value> {
        let of_key = all.iter().filter(|(known, _)| known == key);
        of_key.map(|(_, body)| body.clone()).collect()
    };
    for iteration in 0..3 {
        for node in ["coder", "review"] {
            let key = format!("run-1/review-loop#{iteration}/{node}");
            let made = calls(&key);
            let twice = held.contains(&key.as_str());
            assert_eq!(made.len(), if twice { 2 } else { 1 }, "{key}");
            assert_eq!(made.first(), made.last(), "{key}");
        }
    }
    let first = &calls("run-1/review-loop#0/coder")[0];
    assert_eq!(first["prompt"], "Task: divide. Feedback: null. Round 1.");
    assert_eq!(first["session_id"], Value::Null);
    let third = &calls("run-1/review-loop#2/coder")[0];
    assert_eq!(
        third["prompt"],
        "Task: divide. Feedback: about <second>. Round 3."
    );
    assert_eq!(third["session_id"], "s++");
}

/// A second process passes its workflow, with the files that it names, to the process that owns the store.
fn joins_its_owner(state: &Path) {
    let case = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/canvas/component-by-file/workflow.yaml"
    );
    let output = printed(&["run", case, "-o", "json"], state);
    let output: Value = serde_json::from_str(&output).unwrap();
    assert_eq!(output["second"]["sum"], 21);
}

/// What the commands show in the second iteration, while the reviewer's request is pending.
fn shown(state: &Path) {
    let status = printed(&["status", "run-1"], state);
    assert!(
        status.contains("loop      Code Review Loop  iteration 2/5  Reviewer\n"),
        "{status}"
    );
    assert!(
        status.contains("condition  review.approved == false"),
        "{status}"
    );
    assert!(status.contains("→ review.approved = false"), "{status}");

    let history = printed(&["history", "run-1", "--loop", "review-loop"], state);
    let mut lines = history.lines();
    assert_eq!(lines.next(), Some("review-loop"));
    let head = lines.next().unwrap();
    for column in [
        "coder.code",
        "coder.session_id",
        "review.approved",
        "review.feedback",
    ] {
        assert!(head.contains(column), "{history}");
    }
    assert!(lines.next().unwrap().contains("about <first>"), "{history}");
    let history = printed(
        &["history", "run-1", "--loop", "review-loop", "-o", "json"],
        state,
    );
    let history: Value = serde_json::from_str(&history).unwrap();
    assert_eq!(
        history["iterations"][0]["result"],
        json!({
            "coder": { "code": "first", "session_id": "s+" },
            "review": { "approved": false, "feedback": "about <first>" },
        })
    );

    let dump = printed(&["dump", "run-1", "-o", "json"], state);
    let dump: Value = serde_json::from_str(&dump).unwrap();
    let run = &dump["runs"][0];
    let cursors = run["state"]["cursors"].as_object().unwrap().values();
    let frames = cursors.flat_map(|cursor| cursor["frames"].as_array().unwrap());
    let mut loops = frames.filter_map(|frame| frame["kind"].get("loop"));
    let looped = loops.next().unwrap();
    let (coder, review) = (&looped["last"]["coder"], &looped["last"]["review"]);
    assert_eq!(coder["status"], "Succeeded");
    assert_eq!(review["output"]["value"]["feedback"], "about <first>");
    assert_eq!(looped["collected"]["feedback"], json!(["about <first>"]));
    let link = json!({
        "from": "review", "output": "feedback", "to": "coder", "input": "context",
        "kind": "previous", "when": "subsequent",
    });
    assert!(
        run["links"].as_array().unwrap().contains(&link),
        "{}",
        run["links"]
    );
    let text = printed(&["dump", "run-1"], state);
    assert!(
        text.contains("review.feedback → coder.context  (previous, subsequent)"),
        "{text}"
    );
    assert!(text.contains(" last\n"), "{text}");
    assert!(text.contains(" review\n"), "{text}");
}

/// The runner's path is relative to the folder in which tests run.
#[test]
fn a_run_reports_its_current_node() {
    let file = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/examples/canvas/code-review.yaml"
    );
    let dir = tempfile::tempdir().unwrap();
    let mut run = windlass(&["run", file, "-v", "-i", "task=divide"], dir.path());
    let output = run
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let stderr = String::from_utf8(output.stderr).unwrap();
    let loop_lines: Vec<&str> = stderr
        .lines()
        .filter(|line| line.contains("Loop"))
        .collect();
    assert_eq!(
        loop_lines[loop_lines.len() - 3],
        "Code Review Loop  iteration 3/5  Coder"
    );
    assert_eq!(
        loop_lines[loop_lines.len() - 2],
        "Code Review Loop  iteration 3/5  Reviewer"
    );
}

/// A stub with the agent's name answers when its runner does not exist. Without a stub the fault names the runner.
#[test]
fn a_stub_answers_for_an_agent() {
    let dir = tempfile::tempdir().unwrap();
    let text = WORKFLOW.replace("runners: { scripted: { url: \"BASE/ask\" } }\n", "");
    std::fs::create_dir(dir.path().join("parts")).unwrap();
    std::fs::write(dir.path().join("parts/inner.yaml"), INNER).unwrap();
    let file = dir.path().join("review.yaml");
    std::fs::write(&file, text).unwrap();
    let stubs = dir.path().join("stubs.json");
    let answers = json!({
        "coder": { "code": "x", "session_id": "s" },
        "review": [{ "approved": false, "feedback": "no" }, { "approved": true, "feedback": "good" }],
    });
    std::fs::write(&stubs, answers.to_string()).unwrap();
    let (file, stubs) = (file.to_str().unwrap(), stubs.to_str().unwrap());
    let run = ["run", file, "-i", "task=t"];
    let stub_result = printed(&[&run[..], &["--stub", stubs]].concat(), dir.path());
    let result: Value = serde_json::from_str(&stub_result).unwrap();
    assert_eq!(result["review-loop"]["feedback"], json!(["no", "good"]));
    let output = windlass(&run, dir.path()).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(stderr.contains("unknown runner `scripted`"), "{stderr}");
}

#[test]
fn drawings_show_ports_and_what_is_inside_on_demand() {
    let file = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/examples/canvas/code-review.yaml"
    );
    let dir = tempfile::tempdir().unwrap();
    let drawn = |format: &str, expand: bool| {
        let mut args = vec!["compile", file, "-o", format];
        args.extend(expand.then_some("--expand"));
        printed(&args, dir.path())
    };
    let closed = drawn("mermaid", false);
    assert!(
        closed.contains("Code Review Loop: loop review.approved == false, at most 5 times"),
        "{closed}"
    );
    assert!(
        closed.contains("task → task, guidelines → guidelines"),
        "{closed}"
    );
    assert!(!closed.contains("Coder"), "{closed}");
    let open = drawn("mermaid", true);
    for part in [
        "Coder: agent",
        "Reviewer: agent",
        "code → code",
        "previous feedback → context (subsequent)",
        "approved → approved (last)",
        "guidelines → context (first)",
    ] {
        let escaped = part.replace('>', "#62;");
        assert!(
            open.contains(part) || open.contains(&escaped),
            "{part}\n{open}"
        );
    }
    let (closed, open) = (drawn("dot", false), drawn("dot", true));
    assert!(
        !closed.contains("Coder") && open.contains("Coder: agent"),
        "{open}"
    );
    assert!(open.contains("label=\"code → code\""), "{open}");
}
