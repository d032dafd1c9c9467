//! A client that knows only the description of the API. It finds operations by their id, builds requests from their
//! parameters and schemas, and compares every answer with the description. All operations are called with it.

use super::{COUNT, Server, client};
use reqwest::Method;
use serde_json::{Map, Value, json};
use std::cell::RefCell;
use std::collections::BTreeSet;

/// An API with its description.
struct Api {
    base: String,
    document: Value,
    called: RefCell<BTreeSet<String>>,
}

/// An operation of the API.
struct Operation<'a> {
    method: Method,
    path: &'a str,
    described: &'a Value,
}

impl Api {
    async fn of(server: &Server) -> Self {
        let (status, document) = server.get("/openapi.json").await;
        assert_eq!(status, 200);
        Self {
            base: server.url.clone(),
            document,
            called: RefCell::default(),
        }
    }

    fn operations(&self) -> Vec<(String, Operation<'_>)> {
        let mut found = Vec::new();
        for (path, methods) in self.document["paths"].as_object().unwrap() {
            for (method, described) in methods.as_object().unwrap() {
                let id = described["operationId"].as_str().unwrap().to_owned();
                let method = method.to_uppercase().parse().unwrap();
                found.push((
                    id,
                    Operation {
                        method,
                        path,
                        described,
                    },
                ));
            }
        }
        found
    }

    /// Checks that a value matches a schema of the document.
    fn check(&self, schema: &Value, value: &Value, what: &str) {
        let mut whole = schema.as_object().unwrap().clone();
        whole.insert("components".into(), self.document["components"].clone());
        let validator = jsonschema::validator_for(&Value::Object(whole)).unwrap();
        let wrong: Vec<String> = validator
            .iter_errors(value)
            .map(|error| format!("{} at {}", error, error.instance_path()))
            .collect();
        assert!(wrong.is_empty(), "{what}: {wrong:?}\n{value}");
    }

    /// Calls an operation with parameters by name; `body` is the request's body.
    async fn call(&self, id: &str, parameters: Value) -> (u16, Value) {
        let operations = self.operations();
        let (_, operation) = operations
            .iter()
            .find(|(found, _)| found == id)
            .unwrap_or_else(|| panic!("unknown operation {id}"));
        self.called.borrow_mut().insert(id.to_owned());
        let mut given: Map<String, Value> = parameters.as_object().unwrap().clone();
        let (mut path, mut query, mut headers) =
            (operation.path.to_owned(), Vec::new(), Vec::new());
        let described = operation.described["parameters"].as_array();
        for parameter in described.into_iter().flatten() {
            let name = parameter["name"].as_str().unwrap();
            let Some(value) = given.remove(name) else {
                assert_ne!(parameter["required"], true, "{id}: {name} is required");
                continue;
            };
            self.check(&parameter["schema"], &value, &format!("{id}: {name}"));
            let text = value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned);
            match parameter["in"].as_str().unwrap() {
                "path" => path = path.replace(&format!("{{{name}}}"), &text),
                "query" => query.push((name.to_owned(), text)),
                "header" => headers.push((name.to_owned(), text)),
                other => panic!("{id}: a parameter in {other}"),
            }
        }
        let url = format!("{}{path}", self.base);
        let mut request = client()
            .request(operation.method.clone(), url)
            .query(&query);
        for (name, text) in &headers {
            request = request.header(name, text);
        }
        if let Some(body) = given.remove("body") {
            let content = &operation.described["requestBody"]["content"];
            let schema = &content["application/json"]["schema"];
            assert!(schema.is_object(), "{id} takes no body of JSON");
            self.check(schema, &body, &format!("{id}: its body"));
            request = request
                .header("content-type", "application/json")
                .body(body.to_string());
        }
        assert!(given.is_empty(), "{id} has no {given:?}");
        self.answer(id, operation, request).await
    }

    /// Sends a request, and compares the answer with the description.
    async fn answer(
        &self,
        id: &str,
        operation: &Operation<'_>,
        request: reqwest::RequestBuilder,
    ) -> (u16, Value) {
        let response = request.send().await.unwrap();
        let status = response.status().as_u16();
        let class = format!("{}XX", status / 100);
        let responses = &operation.described["responses"];
        let described = [status.to_string(), class]
            .iter()
            .find_map(|key| responses.get(key))
            .unwrap_or_else(|| panic!("{id} does not say that it answers {status}"))
            .clone();
        for name in described["headers"]
            .as_object()
            .into_iter()
            .flat_map(Map::keys)
        {
            assert!(response.headers().contains_key(name), "{id}: no {name}");
        }
        let Some(content) = described["content"].as_object() else {
            assert_eq!(response.text().await.unwrap(), "", "{id}: {status}");
            return (status, Value::Null);
        };
        let kind = response.headers()["content-type"].to_str().unwrap();
        let kind = kind.split(';').next().unwrap().to_owned();
        let Some(media) = content.get(&kind) else {
            panic!("{id}: {status} has the type {kind}, which is not in {content:?}");
        };
        if kind == "text/event-stream" {
            // The stream continues for as long as the run does.
            return (status, Value::Null);
        }
        let text = response.text().await.unwrap();
        let value = match kind.ends_with("json") {
            true => serde_json::from_str(&text).unwrap(),
            false => Value::String(text),
        };
        self.check(&media["schema"], &value, &format!("{id}: {status}"));
        (status, value)
    }

    async fn good(&self, id: &str, parameters: Value) -> Value {
        let (status, value) = self.call(id, parameters).await;
        assert!((200..300).contains(&status), "{id}: {status} {value}");
        value
    }
}

const GATE: &str = "
name: gate
variables: { n: 0 }
actions:
  loop:
    type: until
    condition: \"@equals(variables('n'), 1)\"
    limit: { count: 3, timeout: PT1H }
    actions:
      wait: { type: waitForSignal, signal: go }
      next: { type: incrementVariable, name: n, value: 1 }
  both:
    type: foreach
    foreach: [1, 2]
    actions: { each: { type: compose, inputs: \"@item()\" } }
";

const BAD: &str = "actions: { fall: { type: terminate, inputs: { runStatus: Failed } } }";

#[tokio::test(flavor = "multi_thread")]
async fn a_client_made_from_the_description_drives_everything() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path());
    let api = Api::of(&server).await;
    let good = |id: &'static str, parameters: Value| api.good(id, parameters);

    good("get_health", json!({})).await;
    good("get_readiness", json!({})).await;
    good("get_metrics", json!({})).await;
    let checked = good("validate_workflow", json!({ "body": { "text": COUNT } })).await;
    assert_eq!(checked["valid"], true);
    let wrong = json!({ "body": { "actions": { "a": { "type": "waitt" } } } });
    let checked = good("validate_workflow", wrong.clone()).await;
    assert_eq!(checked["valid"], false);
    let put_parameters =
        json!({ "name": "count", "body": { "text": COUNT, "file": "count.yaml" } });
    good("put_workflow", put_parameters.clone()).await;
    good("put_workflow", put_parameters).await;
    let bare = json!({ "name": "bare", "body": { "actions": { "a": { "type": "compose", "inputs": 1 } } } });
    good("put_workflow", bare).await;
    good("get_workflow", json!({ "name": "count" })).await;
    let versions = good("get_workflow_versions", json!({ "name": "count" })).await;
    let version = &versions["versions"][0]["version"];
    good(
        "get_workflow",
        json!({ "name": "count", "version": version }),
    )
    .await;
    good("get_workflow_schedule", json!({ "name": "count" })).await;
    let scheduled = json!({
        "schedule": "0 2 1 1 *",
        "actions": { "a": { "type": "compose", "inputs": 1 } },
    });
    good(
        "put_workflow",
        json!({ "name": "yearly", "body": scheduled }),
    )
    .await;
    let yearly = json!({ "name": "yearly" });
    let paused = good("pause_schedule", yearly.clone()).await;
    assert!(paused["paused_since"].is_string(), "{paused}");
    good("resume_schedule", yearly).await;
    let since = json!({ "name": "yearly", "from": "2026-01-01", "to": "2026-02-01" });
    let times = good("list_scheduled_times", since).await;
    assert_eq!(times["times"][0]["time"], "2026-01-01T02:00:00.000Z");

    let value = json!({ "workflow": "count", "name": "since" });
    let with_body = |body: Value| {
        let mut value = value.clone();
        value["body"] = body;
        value
    };
    good("put_state", with_body(json!({ "value": 7 }))).await;
    let stored = good("get_state", value.clone()).await;
    assert_eq!(stored["value"], 7);
    good("list_state", json!({ "workflow": "count" })).await;
    good("remove_state", value).await;
    let page = good("list_workflows", json!({ "limit": 1 })).await;
    good(
        "list_workflows",
        json!({ "limit": 1, "after": page["next"] }),
    )
    .await;

    let keyed =
        json!({ "Idempotency-Key": "k", "body": { "workflow": "count", "input": { "to": 3 } } });
    let run = good("start_run", keyed.clone()).await["run"].clone();
    assert_eq!(good("start_run", keyed).await["run"], run);
    let ended = good("get_result", json!({ "run": run, "wait": 60 })).await;
    assert_eq!(ended["output"], 3);
    let strip = good(
        "get_strip",
        json!({ "run": run, "loop": "grow", "buckets": 2 }),
    )
    .await;
    assert_eq!(strip["totals"]["succeeded"], 3, "{strip}");
    let page = json!({ "run": run, "loop": "grow", "limit": 2, "order": "desc" });
    let page = good("list_iterations", page).await;
    assert_eq!(page["iterations"].as_array().unwrap().len(), 2, "{page}");
    let one = good("get_iteration", json!({ "run": run, "path": "grow#1" })).await;
    assert_eq!(one["iteration"], 1, "{one}");
    let two = json!({ "run": run, "from": "grow#0", "to": "grow#2" });
    good("get_difference", two).await;
    let loops = good("get_loops", json!({ "run": run })).await;
    assert_eq!(loops["loops"][0]["path"], "grow", "{loops}");
    let graph = good("get_graph", json!({ "run": run, "open": "none" })).await;
    assert!(graph["nodes"].as_array().unwrap().len() > 1, "{graph}");
    let at = json!({ "line": 8, "character": 20 });
    let place = json!({ "body": { "text": COUNT, "at": at } });
    good("complete", place.clone()).await;
    let mut past = place.clone();
    past["body"]["run"] = run.clone();
    past["body"]["iteration"] = json!("grow#1");
    good("hover", past).await;
    good("hover", place).await;
    let found = good("symbols", json!({ "body": { "text": COUNT } })).await;
    assert_eq!(found["symbols"][0]["path"], "grow", "{found}");
    let gate = json!({ "body": { "text": GATE, "run": "gate", "labels": { "a": "b" } } });
    good("start_run", gate.clone()).await;
    let (status, _) = api.call("get_result", json!({ "run": "gate" })).await;
    assert_eq!(status, 202);
    for run in [&run, &json!("gate")] {
        good("get_run", json!({ "run": run })).await;
        let whole = json!({ "run": run, "events": true, "iterations": 5, "after": 1, "limit": 3 });
        good("get_history", whole).await;
        good("get_dump", json!({ "run": run, "iterations": 1 })).await;
        good("get_events", json!({ "run": run, "history": true })).await;
    }
    let some = json!({ "status": "waiting", "label": "a=b", "workflow": "gate", "limit": 1 });
    assert_eq!(good("list_runs", some).await["runs"][0]["run"], "gate");
    let whole = json!({ "detail": true, "facets": true, "offset": 1, "limit": 5 });
    good("list_runs", whole).await;
    let bulk = json!({ "body": { "do": "pause", "runs": ["gate", "nobody"] } });
    good("bulk_runs", bulk).await;
    good("resume_run", json!({ "run": "gate" })).await;
    good("get_live", json!({ "runs": "gate", "max_hz": 5 })).await;
    good(
        "dump_all",
        json!({ "limit": 1, "after": "a", "iterations": 2 }),
    )
    .await;
    good("pause_run", json!({ "run": "gate" })).await;
    good("get_run", json!({ "run": "gate" })).await;
    good("resume_run", json!({ "run": "gate" })).await;
    good("pause_run", json!({ "run": "gate" })).await;
    assert_eq!(good("resume_all", json!({})).await["runs"], json!([]));
    let all = good("resume_all", json!({ "paused": true })).await;
    assert_eq!(all["runs"], json!(["gate"]));
    let signal = json!({ "run": "gate", "body": { "name": "go", "payload": [1] } });
    good("signal_run", signal).await;
    good("get_result", json!({ "run": "gate", "wait": 60 })).await;
    good("get_run", json!({ "run": "gate" })).await;
    good("get_history", json!({ "run": "gate", "loop": "loop" })).await;
    let (status, _) = api.call("cancel_run", json!({ "run": "gate" })).await;
    assert_eq!(status, 409);
    good(
        "start_run",
        json!({ "body": { "text": BAD, "run": "bad" } }),
    )
    .await;
    good("get_result", json!({ "run": "bad", "wait": 60 })).await;
    good("get_run", json!({ "run": "bad" })).await;
    good(
        "retry_run",
        json!({ "run": "bad", "body": { "from": "failed", "run": "worse" } }),
    )
    .await;
    good(
        "start_run",
        json!({ "body": { "text": GATE, "run": "last" } }),
    )
    .await;
    good("cancel_run", json!({ "run": "last" })).await;
    good(
        "prune_runs",
        json!({ "body": { "keep": 1, "older_than": "PT1S", "dry_run": true } }),
    )
    .await;
    good(
        "prune_runs",
        json!({ "body": { "keep": 0, "workflow": "count" } }),
    )
    .await;
    good("remove_workflow", json!({ "name": "bare" })).await;

    // The requests of an editor.
    let text = json!({ "text": COUNT });
    good(
        "get_panel",
        json!({ "body": { "text": COUNT, "node": "grow" } }),
    )
    .await;
    let edits = json!([{ "op": "set", "node": "grow", "field": "count", "value": 5 }]);
    good(
        "edit_text",
        json!({ "body": { "text": COUNT, "edits": edits } }),
    )
    .await;
    let one = json!({ "text": COUNT, "node": "grow" });
    let (status, _) = api.call("try_action", json!({ "body": one })).await;
    assert!(status == 200 || status == 422, "{status}");
    good("get_types", json!({ "body": { "dialect": "loom" } })).await;
    good("get_stubs", json!({ "body": text })).await;
    good("get_schedule", json!({ "body": text })).await;
    for id in ["get_me", "list_audit", "begin_session", "end_session"] {
        good(id, json!({})).await;
    }

    // `life::approvals` tests the URLs that a run made.
    let forged =
        json!({ "run": "gate", "signal": "go", "received": 0, "expires": 1, "signature": "x" });
    // Errors are described too.
    for (id, parameters, expected) in [
        (
            "put_workflow",
            json!({ "name": "w", "body": wrong["body"] }),
            422,
        ),
        ("get_workflow", json!({ "name": "bare" }), 404),
        ("remove_workflow", json!({ "name": "bare" }), 404),
        ("start_run", json!({ "body": { "workflow": "bare" } }), 404),
        ("start_run", gate, 409),
        ("list_runs", json!({ "status": "asleep" }), 400),
        ("retry_run", json!({ "run": "gate", "body": {} }), 409),
        ("prune_runs", json!({ "body": {} }), 400),
        ("get_callback", forged.clone(), 403),
        ("answer_callback", forged, 403),
        // `life::triggers` tests deliveries that start runs.
        ("start_by_webhook", json!({ "workflow": "bare" }), 404),
    ] {
        let (status, problem) = api.call(id, parameters).await;
        assert_eq!(status, expected, "{id}: {problem}");
    }
    let described = api.operations();
    for (id, operation) in &described {
        if !operation.path.contains("{run}") || operation.path.starts_with("/v1/callbacks") {
            continue;
        }
        let mut parameters = json!({ "run": "nobody" });
        match id.as_str() {
            "signal_run" => parameters["body"] = json!({ "name": "go" }),
            "retry_run" => parameters["body"] = json!({}),
            "test_condition" => {
                parameters["body"] = json!({ "loop": "grow", "condition": "true" });
            }
            "get_strip" | "list_iterations" => parameters["loop"] = json!("grow"),
            "get_iteration" => parameters["path"] = json!("grow#1"),
            "get_difference" => {
                parameters["from"] = json!("grow#1");
                parameters["to"] = json!("grow#2");
            }
            _ => {}
        }
        let (status, problem) = api.call(id, parameters).await;
        assert_eq!(status, 404, "{id}: {problem}");
        assert_eq!(problem["type"], "urn:windlass:unknown-run", "{id}");
    }
    let all: BTreeSet<String> = described.into_iter().map(|(id, _)| id).collect();
    assert_eq!(*api.called.borrow(), all, "every operation is driven");
}
