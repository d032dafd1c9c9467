//! The format of The Edge Agent, case by case: each folder of `tests/tea` is a case. It contains `workflow.yaml` and
//! what the case needs of these:
//!
//! - `input.json`: the input of the run,
//! - `expected.json`: the exact state at the end, including the types of numbers,
//! - `error.txt`: the run fails, and its error contains each of these lines,
//! - `load.txt`: the file is refused, and its diagnostics contain each of these lines,
//! - `warnings.txt`: the file is accepted, and its warnings contain each of these lines; without this file there are
//!   none,
//! - `events.json`: the events of the kinds that it names, in order, with the members that it names,
//! - `llm.json`: the answers of a model's server, in order: text, or `{status, headers, body}`; its URL is the input
//!   `llm`,
//! - `requests.json`: for each request to the model's server, texts that it contains.

mod absent;
mod branches;
mod env;
mod interrupts;

use crate::support::serve;
use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::routing::post;
use serde_json::{Value as Json, json};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use windlass_engine::{Engine, EngineError, LoadError, Workflow, report};
use windlass_expression::Value;

/// A model's server with prepared answers.
#[derive(Clone, Default)]
struct Model {
    answers: Arc<Mutex<Vec<Json>>>,
    requests: Arc<Mutex<Vec<String>>>,
}

async fn chat(State(model): State<Model>, body: String) -> (StatusCode, HeaderMap, String) {
    model.requests.lock().unwrap().push(body);
    let mut answers = model.answers.lock().unwrap();
    if answers.is_empty() {
        let text = String::from("no answer is left");
        return (StatusCode::GONE, HeaderMap::new(), text);
    }
    let answer = answers.remove(0);
    let mut headers = HeaderMap::new();
    if let Some(content) = answer.as_str() {
        let json = HeaderValue::from_static("application/json");
        headers.insert("content-type", json);
        let body = json!({
            "choices": [{ "message": { "role": "assistant", "content": content } }],
            "usage": { "prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2 },
        });
        return (StatusCode::OK, headers, body.to_string());
    }
    for (name, value) in answer["headers"].as_object().into_iter().flatten() {
        let name = HeaderName::try_from(name.as_str()).unwrap();
        let value = HeaderValue::from_str(value.as_str().unwrap()).unwrap();
        headers.insert(name, value);
    }
    let status = u16::try_from(answer["status"].as_u64().unwrap_or(200)).unwrap();
    let status = StatusCode::from_u16(status).unwrap();
    (
        status,
        headers,
        answer["body"].as_str().unwrap_or_default().to_owned(),
    )
}

struct Case {
    folder: PathBuf,
    engine: Engine,
    wrong: String,
}

impl Case {
    fn text(&self, file: &str) -> Option<String> {
        std::fs::read_to_string(self.folder.join(file)).ok()
    }

    fn json(&self, file: &str) -> Option<Json> {
        let text = self.text(file)?;
        Some(serde_json::from_str(&text).unwrap_or_else(|error| panic!("{file}: {error}")))
    }

    fn complain(&mut self, what: impl std::fmt::Display) {
        let _ = writeln!(self.wrong, "  {what}");
    }

    /// Checks that a text contains every line of a file.
    fn must_hold(&mut self, file: &str, text: &str) {
        let Some(lines) = self.text(file) else { return };
        for line in lines.lines().filter(|line| !line.trim().is_empty()) {
            if !text.contains(line.trim()) {
                self.complain(format!("{file}: `{}` is not in:\n{text}", line.trim()));
            }
        }
    }

    async fn play(&mut self) {
        let path = self.folder.join("workflow.yaml");
        let loaded = self.engine.load_file(&path, None);
        let workflow = match loaded {
            Ok(workflow) => workflow,
            Err(LoadError::Refused {
                diagnostics,
                bundle,
            }) => {
                let text = diagnostics.render(&bundle, false);
                if self.text("load.txt").is_none() {
                    self.complain(format!("refused:\n{text}"));
                }
                return self.must_hold("load.txt", &text);
            }
            Err(error) => return self.complain(error),
        };
        if self.text("load.txt").is_some() {
            return self.complain("it was not refused");
        }
        let warnings = workflow.warnings().render(workflow.bundle(), false);
        if self.text("warnings.txt").is_none() && !warnings.is_empty() {
            self.complain(format!("warnings:\n{warnings}"));
        }
        self.must_hold("warnings.txt", &warnings);
        if let Err(error) = self.run(&workflow).await {
            self.complain(error);
        }
    }

    async fn run(&mut self, workflow: &Workflow) -> Result<(), EngineError> {
        let model = Model::default();
        let mut input = self.json("input.json").unwrap_or_else(|| json!({}));
        if let Some(answers) = self.json("llm.json") {
            *model.answers.lock().unwrap() = answers.as_array().unwrap().clone();
            let router = Router::new()
                .route("/v1/chat/completions", post(chat))
                .with_state(model.clone());
            input["llm"] = json!(format!("{}/v1", serve(router).await));
        }
        let input = Value::from_json(&input.to_string()).unwrap();
        let run = self.engine.start(workflow, input).await?;
        let id = run.id().to_owned();
        let outcome = run.outcome().await;
        match &outcome {
            Ok(outcome) if outcome.error.is_none() => {
                let mut state: Json = serde_json::from_str(&outcome.output.to_json()).unwrap();
                state.as_object_mut().unwrap().remove("llm");
                match self.json("expected.json") {
                    Some(expected) if expected == state => {}
                    Some(expected) => {
                        self.complain(format!("expected {expected}\n  but got  {state}"));
                    }
                    None if self.text("error.txt").is_some() => {
                        self.complain(format!("it did not fail: {state}"));
                    }
                    None => {}
                }
            }
            other => {
                let text = format!("{other:?}");
                match self.text("error.txt") {
                    Some(_) => self.must_hold("error.txt", &text),
                    None => self.complain(format!("it failed: {text}")),
                }
            }
        }
        self.check_events(&id)?;
        self.check_requests(&model);
        Ok(())
    }

    fn check_events(&mut self, run: &str) -> Result<(), EngineError> {
        let Some(expected) = self.json("events.json") else {
            return Ok(());
        };
        let filter = report::HistoryFilter {
            events: true,
            ..report::HistoryFilter::default()
        };
        let history = report::history(self.engine.inspector(), run, &filter)?;
        let history = serde_json::to_value(history.events.unwrap()).unwrap();
        let expected = expected.as_array().unwrap();
        let kinds: BTreeSet<&str> = expected
            .iter()
            .map(|event| event["event"].as_str().unwrap())
            .collect();
        let seen: Vec<&Json> = history
            .as_array()
            .unwrap()
            .iter()
            .filter(|event| kinds.contains(event["event"].as_str().unwrap()))
            .collect();
        let same = expected.len() == seen.len()
            && expected.iter().zip(&seen).all(|(wanted, event)| {
                let members = wanted.as_object().unwrap();
                members.iter().all(|(key, value)| event[key] == *value)
            });
        if !same {
            let seen = serde_json::to_string_pretty(&seen).unwrap();
            self.complain(format!("events: {seen}"));
        }
        Ok(())
    }

    fn check_requests(&mut self, model: &Model) {
        let Some(expected) = self.json("requests.json") else {
            return;
        };
        let requests = model.requests.lock().unwrap().clone();
        let expected = expected.as_array().unwrap();
        if expected.len() != requests.len() {
            self.complain(format!("{} requests: {requests:?}", requests.len()));
        }
        for (texts, request) in expected.iter().zip(&requests) {
            for text in texts.as_array().unwrap() {
                let text = text.as_str().unwrap();
                if !request.contains(text) {
                    self.complain(format!("`{text}` is not in {request}"));
                }
            }
        }
    }
}

fn cases() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tea");
    let mut cases: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.join("workflow.yaml").is_file())
        .collect();
    cases.sort();
    cases
}

/// The cases in a table, which are written `while-basic`, or `while-load-max-{zero,text}` for several.
fn listed(readme: &str) -> BTreeSet<String> {
    let rows = readme.lines().filter(|line| line.starts_with('|'));
    let cells = rows.filter_map(|row| row.trim_end_matches('|').rsplit('|').next());
    let words = cells.flat_map(|cell| cell.split(", "));
    let mut names = BTreeSet::new();
    for word in words.map(str::trim) {
        let name = word.split(' ').next().unwrap_or_default();
        match name.split_once('{') {
            Some((begin, ends)) => {
                let ends = ends.trim_end_matches('}').split(',');
                names.extend(ends.map(|end| format!("{begin}{end}")));
            }
            None => {
                names.insert(name.to_owned());
            }
        }
    }
    names
}

#[test]
fn every_case_shows_a_requested_feature() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tea");
    let listed = listed(&std::fs::read_to_string(folder.join("README.md")).unwrap());
    for case in cases() {
        let name = case.file_name().unwrap().to_str().unwrap();
        assert!(listed.contains(name), "tests/tea/README.md lacks {name}");
    }
    for name in listed.iter().filter(|name| name.contains('-')) {
        let is_name = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit();
        let is_prose = !name.chars().all(|letter| letter == '-' || is_name(letter))
            || !name.starts_with(is_name);
        let known = folder.join(name).join("workflow.yaml").is_file();
        assert!(known || is_prose, "unknown case {name}");
    }
}

/// `WINDLASS_TEA=retry` plays only the cases whose names begin with `retry`.
#[tokio::test(flavor = "multi_thread")]
async fn every_case_comes_to_what_it_should() {
    let only = std::env::var("WINDLASS_TEA").unwrap_or_default();
    let mut wrong = String::new();
    let mut count = 0;
    for folder in cases() {
        let name = folder.file_name().unwrap().to_str().unwrap().to_owned();
        if !name.starts_with(&only) {
            continue;
        }
        let engine = Engine::builder().in_memory().unwrap();
        let mut case = Case {
            folder,
            engine,
            wrong: String::new(),
        };
        case.play().await;
        case.engine.stop().await;
        if !case.wrong.is_empty() {
            let _ = writeln!(wrong, "{name}:\n{}", case.wrong);
        }
        count += 1;
    }
    assert!(wrong.is_empty(), "\n{wrong}");
    assert!(!only.is_empty() || count >= 100, "only {count} cases");
}

// ── the same loop in two formats ────────────────────────────────────────────────────────────

const IN_TEA: &str = r#"
nodes:
  - name: counted
    type: while_loop
    max_iterations: 5
    condition: "{{ state.n < 3 }}"
    body:
      - {name: more, uses: incrementVariable, with: {name: n}}
      - {name: note, uses: appendToArrayVariable, with: {name: seen, value: "{{ state.n }}"}}
      - {name: rest, uses: wait, with: {interval: PT1S}}
  - {name: last, uses: setVariable, with: {name: done, value: true}}
"#;

const IN_LOOM: &str = r#"
actions:
  zaehle:
    type: while
    condition: "{{ state.n < 3 }}"
    limit: {count: 5, timeout: PT1H}
    on_limit: continue
    actions:

      mehr: {type: incrementVariable, inputs: {name: n}}
      merke: {type: appendToArrayVariable, inputs: {name: seen, value: "{{ state.n }}"}}
      ruhe: {type: wait, inputs: {interval: PT1S}}
  zuletzt: {type: setVariable, inputs: {name: done, value: true}}
"#;

/// States and scopes without names and places, and without the differences of the formats' loops: one format has no
/// deadline, and does not check its condition after the last iteration.
fn shape(text: &str) -> String {
    use windlass_machine::program::{Call, Op, ScopeKind};
    use windlass_model::model::Name;
    use windlass_source::source::{Bundle, Span};
    let bundle = Bundle::single("workflow.yaml", text);
    let caps = windlass_formats::Caps::default();
    let (workflow, diagnostics) = windlass_formats::read(&bundle, None, &caps);
    let workflow = workflow.unwrap_or_else(|| panic!("{}", diagnostics.render(&bundle, false)));
    let caps = windlass_machine::program::Caps {
        count: 1000,
        timeout: std::time::Duration::from_secs(86_400),
    };
    let program = windlass_machine::compile::compile(&workflow, Default::default(), caps).unwrap();
    let unnamed = Name::from("");
    let mut states = program.states.clone();
    for state in &mut states {
        state.name = unnamed.clone();
        state.span = Span::default();
        if let Op::Assign { assignments, .. }
        | Op::Call(
            Call {
                then: assignments, ..
            },
            _,
        ) = &mut state.op
        {
            for one in assignments {
                one.span = Span::default();
            }
        }
    }
    let mut scopes = program.scopes.clone();
    for scope in &mut scopes {
        scope.name = unnamed.clone();
        match &mut scope.kind {
            ScopeKind::Loop(label, spec) => {
                *label = unnamed.clone();
                spec.name = None;
                spec.timeout = None;
                spec.test_when_spent = true;
            }
            ScopeKind::Try {
                retry: Some(retry), ..
            } => retry.span = Span::default(),
            _ => {}
        }
    }
    let actions = program.actions.iter();
    let actions: Vec<_> = actions
        .map(|action| (action.anonymous, &action.output, action.scope))
        .collect();
    let shape = format!(
        "{:?}\n{states:#?}\n{scopes:#?}\n{actions:#?}",
        program.entry
    );
    // The formats also differ in how a condition treats a comparison of different types.
    let mut parts = shape.split("reading: Truth(");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |all, part| {
        all + part.split_once("},").map_or(part, |(_, rest)| rest)
    })
}

#[test]
fn equal_loops_are_equal_programs() {
    let (tea, loom) = (shape(IN_TEA), shape(IN_LOOM));
    assert!(tea.contains("Repeat") && tea.contains("state.n < 3"));
    assert_eq!(tea, loom);
    // Different loops do differ.
    assert_ne!(tea, shape(&IN_LOOM.replace("count: 5", "count: 6")));
    assert_ne!(tea, shape(&IN_LOOM.replace("name: done", "name: gone")));
}

#[test]
fn the_schema_for_editors_takes_what_is_taken() {
    let schema = windlass_formats::json_schema(windlass_model::model::Dialect::Tea).unwrap();
    let schema: Json = serde_json::from_str(schema).unwrap();
    let schema = jsonschema::validator_for(&schema).unwrap();
    let (mut taken, mut refused) = (0, 0);
    for folder in cases() {
        let text = std::fs::read_to_string(folder.join("workflow.yaml")).unwrap();
        let Ok(file) = serde_yaml::from_str::<Json>(&text) else {
            continue;
        };
        let errors: Vec<String> = schema
            .iter_errors(&file)
            .map(|error| format!("{error} at {}", error.instance_path()))
            .collect();
        if folder.join("load.txt").exists() {
            refused += usize::from(!errors.is_empty());
        } else {
            assert!(errors.is_empty(), "{}: {errors:?}", folder.display());
            taken += 1;
        }
    }
    assert!(taken >= 40 && refused >= 15, "{taken} and {refused}");
}

// ── through the binary ──────────────────────────────────────────────────────────────────────

fn windlass(args: &[&str]) -> String {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_windlass"))
        .args(args)
        .output()
        .unwrap();
    assert!(output.status.success(), "{args:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn text_inputs_have_the_types_of_the_initial_state() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let (file, state) = (path("typed.yaml"), path("state"));
    let text = "initial_state: {count: 3, on: false, text: a}\nnodes: [{name: a}]\n";
    std::fs::write(&file, text).unwrap();
    let run = |inputs: &[&str]| {
        let inputs = inputs.iter().flat_map(|input| ["-i", input]);
        let command = std::process::Command::new(env!("CARGO_BIN_EXE_windlass"))
            .args(["run", &file, "--state", &state, "-o", "json"])
            .args(inputs)
            .output();
        let output = command.unwrap();
        let shown = |bytes| String::from_utf8(bytes).unwrap();
        (shown(output.stdout), shown(output.stderr))
    };
    let (end, _) = run(&["count=7", "on=true", "text=5", "more=1"]);
    let end: Json = serde_json::from_str(&end).unwrap();
    let expected = json!({ "count": 7, "on": true, "text": "5", "more": "1" });
    assert_eq!(end, expected);
    let (_, refused) = run(&["count=many"]);
    let message = "input `count` must be a number, not \"many\"";
    assert!(refused.contains(message), "{refused}");
    let (_, warned) = run(&["cuont=3"]);
    let message = "`initial_state` has no `cuont`; did you mean `count`?";
    assert!(warned.contains(message), "{warned}");
}

#[test]
fn the_commands_know_the_format() {
    let dir = tempfile::tempdir().unwrap();
    let state = dir.path().join("state");
    let state = state.to_str().unwrap();
    let file = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/tea/while-body-events/workflow.yaml"
    );
    assert!(windlass(&["validate", file]).contains("while_loop"));
    assert!(windlass(&["compile", file]).contains("(tea)"));
    let run = [
        "run", file, "--id", "r", "--events", "jsonl", "--state", state,
    ];
    let lines: Vec<Json> = windlass(&run)
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let loops: Vec<Json> = lines
        .iter()
        .filter(|line| {
            line["event"]
                .as_str()
                .is_some_and(|name| name.starts_with("Loop"))
        })
        .cloned()
        .collect();
    let start = json!({ "event": "LoopStart", "node_name": "twice", "max_iterations": 2 });
    let end = json!({
        "event": "LoopEnd", "node_name": "twice", "iterations_completed": 2,
        "exit_reason": "max_iterations_reached",
    });
    for (wanted, event) in [(start, &loops[0]), (end, loops.last().unwrap())] {
        for (key, value) in wanted.as_object().unwrap() {
            assert_eq!(&event[key], value, "{event}");
        }
    }
    assert_eq!(lines.last().unwrap()["result"], json!({ "count": 2 }));
    let history = windlass(&["history", "r", "--events", "--state", state, "-o", "json"]);
    let history: Json = serde_json::from_str(&history).unwrap();
    let event_count = history["events"].as_array().unwrap().len();
    assert_eq!(
        event_count + 1,
        lines.len(),
        "what was streamed is in the history"
    );
    assert!(windlass(&["status", "r", "--state", state]).contains("succeeded"));
    assert!(windlass(&["dump", "r", "--state", state]).contains("while_loop"));
}
