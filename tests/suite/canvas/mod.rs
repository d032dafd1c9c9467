//! The canvas format, case by case. Each `tests/canvas/NAME` has a `workflow.yaml` (or `.json`) with the files that it
//! names, an `input.json` if it has inputs, and in `expected.json` the expected result:
//!
//! - `output`: the exact output of the run;
//! - `failed`: `{kind, action, message}` of a run that fails; each is a part of the actual text;
//! - `refused`: the diagnostics of a file that is not loaded, each as `code: a part of the message`;
//! - `warnings`: the codes of the warnings of a file that is loaded;
//! - `iterations`: for each iteration, `loop#number status` and its result;
//! - `events`: parts of the history, which must appear in this order.
//!
//! The runners are commands of this machine; `cat` answers with its prompt.

mod cli;

use serde_json::{Value as Json, json};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use windlass_engine::{Engine, LoadError};
use windlass_expression::Value;
use windlass_machine::RunStatus;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/canvas")
}

fn json_of(path: &Path) -> Option<Json> {
    let text = std::fs::read_to_string(path).ok()?;
    Some(serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display())))
}

/// The result of a case, in the form of `expected.json`.
async fn play(case: &Path) -> Json {
    let engine = Engine::builder().in_memory().unwrap();
    let yaml = case.join("workflow.yaml");
    let path = if yaml.is_file() {
        yaml
    } else {
        case.join("workflow.json")
    };
    let workflow = match engine.load_file(&path, None) {
        Ok(workflow) => workflow,
        Err(LoadError::Refused { diagnostics, .. }) => {
            let all = diagnostics.sorted().into_iter();
            let refused: Vec<String> = all
                .map(|one| format!("{}: {}", one.code, one.message))
                .collect();
            return json!({ "refused": refused });
        }
        Err(error) => panic!("{}: {error}", case.display()),
    };
    let warnings = workflow.warnings().sorted().into_iter();
    let warnings: Vec<&str> = warnings.map(|one| one.code).collect();
    let input = json_of(&case.join("input.json")).unwrap_or_default();
    let input = Value::from_json(&input.to_string()).unwrap();
    let run = match engine.start(&workflow, input).await {
        Ok(run) => run,
        Err(error) => return json!({ "not_started": error.to_string() }),
    };
    let id = run.id().to_owned();
    let outcome = run.outcome().await.unwrap();
    let events = engine.inspector().history(&id, 0, usize::MAX).unwrap();
    let events = events.into_iter().map(|(_, event)| {
        let mut event = serde_json::to_value(event.what).unwrap();
        let event = event.as_object_mut().unwrap();
        event.remove("due_at");
        Json::Object(event.clone()).to_string()
    });
    let rows = engine
        .inspector()
        .iterations(&id, None, usize::MAX)
        .unwrap();
    let rows = rows.into_iter().map(|row| {
        let head = format!("{}#{} {}", row.path, row.iteration, row.status.as_str());
        let result: Json = serde_json::from_str(&row.result.to_json()).unwrap();
        json!([head, result])
    });
    let mut rows: Vec<Json> = rows.collect();
    rows.sort_by_key(|row| row[0].to_string());
    let events: Vec<String> = events.collect();
    let mut came = json!({ "warnings": warnings, "events": events, "iterations": rows });
    let header = engine.inspector().header(&id).unwrap();
    match (&outcome.error, header.status) {
        (None, RunStatus::Succeeded) => {
            came["output"] = serde_json::from_str(&outcome.output.to_json()).unwrap();
        }
        (Some(error), status) => {
            came["failed"] = json!({
                "status": status.as_str(),
                "kind": &*error.fault.kind,
                "action": error.action.as_deref(),
                "iteration": error.iteration.as_ref().map(|(path, n)| format!("{path}#{n}")),
                "message": error.fault.message,
            });
        }
        (None, status) => panic!("{}: {status:?}", case.display()),
    }
    engine.stop().await;
    came
}

/// The differences between the result and the expected one.
fn differences(came: &Json, expected: &Json) -> Vec<String> {
    let mut wrong = Vec::new();
    let keys = [
        "output",
        "failed",
        "refused",
        "not_started",
        "warnings",
        "events",
        "iterations",
    ];
    for (key, _) in expected.as_object().unwrap() {
        assert!(keys.contains(&key.as_str()), "expected.json has no `{key}`");
    }
    let ends = ["output", "failed", "refused", "not_started"];
    for key in ends {
        if came.get(key).is_some() != expected.get(key).is_some() {
            wrong.push(format!("came: {came}"));
            return wrong;
        }
    }
    if let Some(rows) = expected
        .get("iterations")
        .filter(|rows| came["iterations"] != **rows)
    {
        wrong.push(format!("iterations: {}, not {rows}", came["iterations"]));
    }
    if came.get("output") != expected.get("output") {
        wrong.push(format!("output: {}", came["output"]));
    }
    let warnings = expected.get("warnings").cloned().unwrap_or(json!([]));
    if came
        .get("warnings")
        .is_some_and(|reported| *reported != warnings)
    {
        wrong.push(format!("warnings: {}", came["warnings"]));
    }
    let part = |whole: &Json, part: &Json| {
        let text = |value: &Json| value.as_str().map_or(value.to_string(), str::to_owned);
        text(whole).contains(&text(part))
    };
    if let Some(failed) = expected.get("failed") {
        for (key, wanted) in failed.as_object().unwrap() {
            if !part(&came["failed"][key], wanted) {
                wrong.push(format!("failed.{key}: {}", came["failed"]));
            }
        }
    }
    if let Some(wanted) = expected.get("not_started")
        && !part(&came["not_started"], wanted)
    {
        wrong.push(format!("not_started: {}", came["not_started"]));
    }
    let none = Vec::new();
    if let Some(wanted) = expected.get("refused").map(|all| all.as_array().unwrap()) {
        let refusals = came["refused"].as_array().unwrap();
        let all = wanted.len() == refusals.len()
            && wanted
                .iter()
                .zip(refusals)
                .all(|(wanted, refusal)| part(refusal, wanted));
        if !all {
            wrong.push(format!("refused: {refusals:#?}"));
        }
    }
    let mut events = came["events"].as_array().unwrap_or(&none).iter();
    for wanted in expected
        .get("events")
        .map_or(&none, |all| all.as_array().unwrap())
    {
        if !events.any(|event| part(event, wanted)) {
            wrong.push(format!("no event {wanted} in {:#}", came["events"]));
            break;
        }
    }
    wrong
}

#[tokio::test(flavor = "multi_thread")]
async fn cases() {
    let mut cases: Vec<PathBuf> = std::fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir())
        .collect();
    cases.sort();
    assert!(cases.len() >= 40, "only {} cases", cases.len());
    let only = std::env::var("CANVAS_CASE").ok();
    let mut wrong = String::new();
    for case in cases {
        let name = case.file_name().unwrap().to_str().unwrap();
        if only.as_ref().is_some_and(|only| !name.contains(only)) {
            continue;
        }
        let expected = json_of(&case.join("expected.json"));
        let expected = expected.unwrap_or_else(|| panic!("{name} expects nothing"));
        let came = play(&case).await;
        for difference in differences(&came, &expected) {
            let _ = writeln!(wrong, "{name}: {difference}");
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

/// The schema for editors accepts every file that is loaded.
#[test]
fn the_schema_takes_the_cases() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let schema = json_of(&root.join("schemas/canvas.json")).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let mut open = vec![folder(), root.join("examples/canvas")];
    let mut count = 0;
    while let Some(path) = open.pop() {
        if path.is_dir() {
            open.extend(
                std::fs::read_dir(&path)
                    .unwrap()
                    .map(|entry| entry.unwrap().path()),
            );
            continue;
        }
        let name = path.file_name().unwrap().to_str().unwrap();
        let workflow = name == "workflow.json" || name.ends_with(".yaml");
        if !workflow {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let document: Json = serde_yaml::from_str(&text).unwrap();
        let errors = validator.iter_errors(&document);
        let errors: Vec<String> = errors.map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{}: {errors:?}", path.display());
        count += 1;
    }
    assert!(count >= 60, "only {count} files");
    // It refuses those that are refused for their shape.
    let bad = root.join("tests/diagnostics");
    for name in ["nodes", "ports", "loop", "component", "effects"] {
        let text = std::fs::read_to_string(bad.join(format!("canvas-{name}.yaml"))).unwrap();
        let document: Json = serde_yaml::from_str(&text).unwrap();
        assert!(!validator.is_valid(&document), "{name}");
    }
}

/// The example of the format's documentation, unchanged, with the runner that is published with it.
#[tokio::test(flavor = "multi_thread")]
async fn the_documents_code_review_loop() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(root.join("examples/canvas/code-review.yaml")).unwrap();
    let runner = root.join("examples/canvas/runner.sh");
    let text = text.replace("examples/canvas/runner.sh", runner.to_str().unwrap());
    let engine = Engine::builder().in_memory().unwrap();
    let workflow = engine.load_text("code-review.yaml", &text).unwrap();
    assert!(workflow.warnings().is_empty());
    let input = r#"{"task": "Write a division.", "guidelines": "Be short."}"#;
    let run = engine
        .start(&workflow, Value::from_json(input).unwrap())
        .await
        .unwrap();
    let id = run.id().to_owned();
    let output = run.result::<Value>().await.unwrap();
    let output: Json = serde_json::from_str(&output.to_json()).unwrap();
    let output = &output["review-loop"];
    assert_eq!(output["approved"], true);
    assert_eq!(output["iterations"], 3);
    assert!(output["final_code"].as_str().unwrap().contains("#[test]"));
    // The outputs of each iteration are stored.
    let rows = engine.inspector().iterations(&id, None, 100).unwrap();
    let rows: Vec<Json> = rows
        .iter()
        .map(|row| serde_json::from_str(&row.result.to_json()).unwrap())
        .collect();
    let feedback: Vec<&Json> = rows.iter().map(|row| &row["review"]["feedback"]).collect();
    assert_eq!(
        feedback,
        ["It divides by zero.", "It needs a test.", "Good."]
    );
    engine.stop().await;
}

/// `http` returns status, headers and body, and the values extracted from them.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_calls_a_server() {
    let base = crate::support::serve(crate::app::router(crate::app::Options::default())).await;
    let text = r#"
nodes:
  - id: call
    type: http
    data:
      method: POST
      url: "{{ base }}/echo?page={{ page }}"
      headers: { x-word: "{{ inputs.word }}" }
      body: { page: "{{ page }}", list: [1, "{{ word }}"] }
      inputs: [{ name: base, type: string }, { name: page, type: number }, { name: word, type: string }]
      outputs:
        - { name: method, type: string }
        - { name: second, type: string, extract: { type: json, path: "$.body.list[1]" } }
        - { name: word, type: string, extract: { type: regex, pattern: '"x-word":"(\w+)"' } }
        - { name: body, type: json }
"#;
    let engine = Engine::builder().in_memory().unwrap();
    let workflow = engine.load_text("http.yaml", text).unwrap();
    let input = json!({ "base": base, "page": 3, "word": "go" }).to_string();
    let run = engine
        .start(&workflow, Value::from_json(&input).unwrap())
        .await
        .unwrap();
    let output: Json =
        serde_json::from_str(&run.result::<Value>().await.unwrap().to_json()).unwrap();
    let call = &output["call"];
    assert_eq!(call["statusCode"], 200);
    assert_eq!(call["method"], "POST");
    assert_eq!(call["second"], "go");
    assert_eq!(call["word"], "go");
    assert_eq!(
        call["body"]["body"],
        json!({ "page": 3, "list": [1, "go"] })
    );
    engine.stop().await;
}

/// An agent without a runner uses an OpenAI-compatible endpoint.
#[tokio::test(flavor = "multi_thread")]
async fn an_agent_asks_an_endpoint() {
    let model =
        crate::action::ai::Model::default().says(r#"{"approved": true, "feedback": "fine"}"#);
    let base = model.serve().await;
    let text = r#"
nodes:
  - id: review
    type: agent
    data:
      runner: openai
      model: m
      system: "You review {{ language }}."
      baseUrl: BASE
      apiKey: sk-of-a-test
      prompt: "Review {{ code }}"
      inputs: [{ name: code, type: string }, { name: language, type: string, default: Rust }]
      outputs: [{ name: approved, type: boolean }, { name: feedback, type: string }]
"#;
    let engine = Engine::builder().in_memory().unwrap();
    let workflow = engine
        .load_text("ai.yaml", &text.replace("BASE", &base))
        .unwrap();
    let input = Value::from_json(r#"{"code": "x = 1"}"#).unwrap();
    let run = engine.start(&workflow, input).await.unwrap();
    let output = run.result::<Value>().await.unwrap().to_json();
    assert_eq!(output, r#"{"review":{"approved":true,"feedback":"fine"}}"#);
    let messages = model.requests()[0].body["messages"].clone();
    assert_eq!(
        messages,
        json!([
            { "role": "system", "content": "You review Rust." },
            { "role": "user", "content": "Review x = 1" },
        ])
    );
    engine.stop().await;
}

/// Lookups for a node do not iterate over all nodes.
#[test]
fn a_large_graph_is_read() {
    use windlass_formats::Caps;
    use windlass_source::source::Bundle;
    let mut nodes = String::from("nodes:\n");
    let mut edges = String::from("edges:\n");
    for n in 0..3000 {
        let _ = writeln!(
            nodes,
            "  - {{ id: n{n}, type: shell, data: {{ inputs: [{{ name: a }}], script: 'echo' }} }}"
        );
        if n > 0 {
            let before = n - 1;
            let _ = writeln!(
                edges,
                "  - {{ source: n{before}, target: n{n}, sourceHandle: 'output:stdout', targetHandle: 'input:a' }}"
            );
        }
    }
    let bundle = Bundle::single("large.yaml", format!("{nodes}{edges}"));
    let (workflow, diagnostics) = windlass_formats::read(&bundle, None, &Caps::default());
    assert!(workflow.is_some(), "{}", diagnostics.render(&bundle, false));
}
