//! The API as a client sees it.

use super::{COUNT, SLEEP, Server, Start, answer, windlass, with};
use reqwest::Method;
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_started_and_gives_its_result() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path());
    assert_eq!(server.get("/healthz").await.0, 200);
    assert_eq!(server.get("/readyz").await.0, 200);
    let body = json!({ "text": COUNT, "input": { "to": 7 }, "labels": { "team": "core" } });
    let started = with(server.ask(Method::POST, "/v1/runs"), &body);
    let started = started.send().await.unwrap();
    assert_eq!(started.status(), 201);
    let place = started.headers()["location"].to_str().unwrap().to_owned();
    let outcome = server.get(&format!("{place}/result?wait=60")).await.1;
    assert_eq!(outcome["status"], "Succeeded");
    assert_eq!(outcome["output"], 7);

    let (_, status) = server.get(&place).await;
    assert_eq!(status["status"], "Succeeded");
    assert_eq!(status["labels"], json!({ "team": "core" }));
    let (_, history) = server
        .get(&format!(
            "{place}/history?iterations=3&events=true&after=2&limit=2"
        ))
        .await;
    let iterations = history["iterations"].as_array().unwrap();
    assert_eq!(iterations.len(), 3);
    assert_eq!(iterations[2]["iteration"], 6);
    let events = history["events"].as_array().unwrap();
    assert_eq!(events.len(), 2);
    assert_eq!(events[0]["sequence"], 3);
    let (_, dump) = server.get(&format!("{place}/dump")).await;
    assert_eq!(dump["runs"][0]["header"]["status"], "Succeeded", "{dump}");
    // Every command on this machine uses the same server.
    let run = place.rsplit('/').next().unwrap();
    let shown = windlass(dir.path(), &["status", run, "-o", "json"]);
    let shown: serde_json::Value = serde_json::from_slice(&shown.stdout).unwrap();
    assert_eq!(shown["run"], run);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_key_is_the_same_run() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path());
    let keyed = |server: &Server, key: &str, body: serde_json::Value| {
        let request = server.ask(Method::POST, "/v1/runs");
        answer(with(request.header("Idempotency-Key", key), &body))
    };
    let body = json!({ "text": COUNT, "input": { "to": 3 } });
    // Sent concurrently, before the first of them is durable.
    let all = (0..8).map(|_| keyed(&server, "order-1", body.clone()));
    let all = futures_util::future::join_all(all).await;
    let run = all[0].1["run"].clone();
    let mut statuses: Vec<u16> = all.iter().map(|(status, _)| *status).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 200, 200, 200, 200, 200, 200, 201]);
    assert!(all.iter().all(|(_, one)| one["run"] == run), "{all:?}");
    server.end(run.as_str().unwrap()).await;

    // The same after the run's end and after a crash.
    server.kill();
    let server = Server::start(dir.path());
    let (status, again) = keyed(&server, "order-1", body.clone()).await;
    assert_eq!((status, &again["run"]), (200, &run));
    assert_eq!(again["status"], "Succeeded");
    let (status, other) = keyed(&server, "order-2", body.clone()).await;
    assert_eq!(status, 201);
    assert_ne!(other["run"], run);
    let (status, problem) = keyed(&server, "order-1", json!({ "text": COUNT })).await;
    assert_eq!(status, 422);
    assert_eq!(problem["type"], "urn:windlass:key-reused");
    // A text is a part of the request; the text of a saved workflow is not.
    let other = json!({ "text": COUNT.replace("1000", "999"), "input": { "to": 3 } });
    assert_eq!(keyed(&server, "order-1", other).await.0, 422);
    let (_, list) = server.get("/v1/runs").await;
    assert_eq!(list["runs"].as_array().unwrap().len(), 2);
    for count in ["1000", "999"] {
        let text = json!({ "text": COUNT.replace("1000", count).replace("count\n", "kept\n") });
        let put = with(server.ask(Method::PUT, "/v1/workflows/kept"), &text);
        assert!(answer(put).await.0 < 300);
        let (status, started) = keyed(&server, "order-1", json!({ "workflow": "kept" })).await;
        assert_eq!(status, if count == "999" { 200 } else { 201 }, "{started}");
    }
    // Each saved workflow has its own keys, also if the `name` in the files is the same.
    let text = json!({ "text": COUNT.replace("count\n", "kept\n") });
    let put = with(server.ask(Method::PUT, "/v1/workflows/other"), &text);
    assert_eq!(answer(put).await.0, 201);
    let ask = json!({ "workflow": "other" });
    let (status, first) = keyed(&server, "order-1", ask.clone()).await;
    assert_eq!(status, 201, "{first}");
    // The key is known for as long as its run is stored.
    let gone = server.ask(Method::DELETE, "/v1/workflows/other");
    assert_eq!(answer(gone).await.0, 204);
    let (status, again) = keyed(&server, "order-1", ask).await;
    assert_eq!((status, &again["run"]), (200, &first["run"]), "{again}");
    let later = json!({ "workflow": "other", "scheduled_time": "2026-11-01T06:00:00Z" });
    let (status, problem) = keyed(&server, "order-1", later).await;
    assert_eq!(status, 422, "{problem}");
    let detail = problem["detail"].as_str().unwrap();
    assert!(detail.contains("another scheduled time"), "{detail}");
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_are_listed_in_pages_that_stand_still() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path());
    for n in 0..7 {
        let body = json!({ "text": COUNT, "run": format!("r{n}"), "input": { "to": 1 },
            "labels": { "odd": format!("{}", n % 2) } });
        assert_eq!(server.post("/v1/runs", &body).await.0, 201);
        server.end(&format!("r{n}")).await;
    }
    let mut seen = Vec::new();
    let mut path = String::from("/v1/runs?limit=3");
    for page in 0..3 {
        let (status, list) = server.get(&path).await;
        assert_eq!(status, 200, "{list}");
        for run in list["runs"].as_array().unwrap() {
            seen.push(run["run"].as_str().unwrap().to_owned());
        }
        if page == 0 {
            // A run that starts meanwhile does not shift the pages.
            let body = json!({ "text": SLEEP, "run": "late" });
            assert_eq!(server.post("/v1/runs", &body).await.0, 201);
        }
        match list["next"].as_str() {
            Some(next) => path = format!("/v1/runs?limit=3&after={next}"),
            None => assert_eq!(page, 2),
        }
    }
    assert_eq!(seen, ["r6", "r5", "r4", "r3", "r2", "r1", "r0"]);
    let (_, odd) = server
        .get("/v1/runs?label=odd=1&status=succeeded,failed")
        .await;
    assert_eq!(odd["runs"].as_array().unwrap().len(), 3);
    let (_, none) = server.get("/v1/runs?workflow=other").await;
    assert_eq!(
        none,
        json!({ "runs": [], "more": 0, "total": 0, "unfinished": 0, "next": null })
    );
    assert_eq!(server.get("/v1/runs?status=asleep").await.0, 400);
    assert_eq!(server.get("/v1/runs?colour=red").await.0, 400);
    for (list, most) in [("runs", 1_000), ("workflows", 1_000), ("dump", 200)] {
        // A higher limit is refused, and not silently reduced.
        for limit in [0, most + 1] {
            let (status, problem) = server.get(&format!("/v1/{list}?limit={limit}")).await;
            assert_eq!(status, 400, "{list}: {problem}");
            let detail = format!("`limit` must be a number from 1 to {most}");
            assert_eq!(problem["detail"], detail);
        }
    }
    for after in ["", "r3"] {
        let (status, problem) = server.get(&format!("/v1/runs?after={after}")).await;
        assert_eq!(
            (status, &problem["type"]),
            (400, &json!("urn:windlass:bad-request"))
        );
    }
    let none = windlass(dir.path(), &["list", "--limit", "0"]);
    assert_eq!(none.status.code(), Some(2), "{none:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_to_a_run() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path());
    let signalled = format!("{SLEEP}  gate: {{ type: waitForSignal, signal: go }}\n");
    let run = server.begin(&signalled, json!(null)).await;
    let command = |verb: &str| {
        let path = format!("/v1/runs/{run}/{verb}");
        answer(server.ask(Method::POST, &path))
    };
    let paused = command("pause").await;
    assert_eq!(paused, (200, json!({ "run": run, "status": "Paused" })));
    assert_eq!(command("resume").await.1["status"], "Waiting");
    let (status, state) = server.get(&format!("/v1/runs/{run}/result")).await;
    assert_eq!((status, &state["status"]), (202, &json!("Waiting")));
    let signal = json!({ "name": "go", "payload": { "a": 1 } });
    let path = format!("/v1/runs/{run}/signal");
    let misspelt = json!({ "name": "goo", "payload": 1 });
    let (status, problem) = server.post(&path, &misspelt).await;
    assert_eq!(status, 409, "{problem}");
    assert_eq!(problem["type"], "urn:windlass:no-signal");
    let detail = problem["detail"].as_str().unwrap();
    assert!(
        detail.ends_with("waits for go; did you mean `go`?"),
        "{detail}"
    );
    assert_eq!(server.post(&path, &signal).await.0, 200);
    let (_, dump) = server.get(&format!("/v1/runs/{run}/dump")).await;
    assert!(dump.to_string().contains(r#"["go",{"a":1}]"#), "{dump}");
    assert_eq!(command("cancel").await.1["status"], "Cancelled");
    // The body of the request may be omitted.
    let (status, again) = command("retry").await;
    assert_eq!(status, 201, "{again}");
    assert_eq!(again["labels"]["windlass.retry_of"], json!(run));
    let path = format!("/v1/runs/{run}/retry");
    assert_eq!(server.post(&path, &json!(null)).await.0, 201);
    let (status, problem) = command("resume").await;
    assert_eq!(
        (status, &problem["type"]),
        (409, &json!("urn:windlass:run-ended"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_script_that_does_not_compile_is_refused_wherever_it_comes() {
    let dir = tempfile::tempdir().unwrap();
    let server = Start::new(dir.path()).args(&["--allow-scripts"]).spawn();
    let lua = "name: agent\nnodes:\n  - name: a\n    language: lua\n    \
               run: \"return {n = 1\"\nedges:\n  - { from: __start__, to: a }\n  - { from: a, to: __end__ }\n";
    let python = lua.replace("lua", "python").replace("{n = 1", "{'n': 1");
    for text in [lua.to_owned(), python] {
        let body = json!({ "text": text });
        let response = answer(with(server.ask(Method::PUT, "/v1/workflows/a"), &body)).await;
        let started = server.post("/v1/runs", &body).await;
        for (status, problem) in [response, started] {
            assert_eq!(status, 422, "{text}: {problem}");
            let found = &problem["diagnostics"][0];
            assert_eq!(found["code"], "bad-script", "{problem}");
            assert_eq!(found["line"], 5, "{problem}");
        }
    }
    let (_, runs) = server.get("/v1/runs").await;
    assert_eq!(runs["runs"], json!([]));
}

/// How a Logic App is called: with headers, a query and parts of the path in addition to the body.
#[tokio::test(flavor = "multi_thread")]
async fn an_input_may_be_a_request() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path());
    let read = "@concat(triggerBody(), triggerOutputs()['headers']['X-Who'], \
                triggerOutputs()?['queries']?['page'], \
                triggerOutputs()['relativePathParameters']['id'])";
    let definition = json!({
        "$schema": "https://schema.management.azure.com/providers/Microsoft.Logic/schemas/2016-06-01/workflowdefinition.json#",
        "triggers": { "manual": { "type": "Request", "kind": "Http" } },
        "actions": { "a": { "type": "Compose", "inputs": read, "runAfter": {} } },
    });
    let input = json!({ "body": "b-", "headers": { "x-who": "me-" }, "queries": { "page": "2-" },
        "relativePathParameters": { "id": "7" } });
    let start = json!({ "text": definition.to_string(), "input": input });
    let (status, started) = server.post("/v1/runs", &start).await;
    assert_eq!(status, 201, "{started}");
    let outcome = server.end(started["run"].as_str().unwrap()).await;
    assert_eq!(outcome["output"], json!({ "a": "b-me-2-7" }), "{outcome}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_workflow_is_taken_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path());
    let send = |method: Method, path: &str, kind: &str, body: &str| {
        let request = server.ask(method, path).header("content-type", kind);
        answer(request.body(body.to_owned()))
    };
    let put = |name: &str, kind: &str, body: &str| {
        send(Method::PUT, &format!("/v1/workflows/{name}"), kind, body)
    };
    let definition = json!({ "definition": {
        "$schema": "https://schema.management.azure.com/providers/Microsoft.Logic/schemas/2016-06-01/workflowdefinition.json#",
        "contentVersion": "1.0.0.0",
        "triggers": {},
        "actions": { "a": { "type": "Compose", "inputs": 3, "runAfter": {} } },
    }});
    let canvas = json!({ "dialect": "canvas",
        "nodes": [{ "id": "s", "type": "constant", "data": { "value": 1 } }], "edges": [] });
    let loom = json!({ "inputs": { "n": { "type": "integer", "default": 2 } },
        "actions": { "a": { "type": "compose", "inputs": "@inputs('n')" } } });
    for (name, kind, body) in [
        ("logic.app", "application/json", definition.to_string()),
        (
            "drawn",
            "application/json; charset=utf-8",
            canvas.to_string(),
        ),
        ("plain", "application/json", loom.to_string()),
        ("yaml", "application/yaml", COUNT.to_owned()),
        ("text", "text/plain", COUNT.to_owned()),
        // As curl sends it with --data-binary.
        (
            "curl",
            "application/x-www-form-urlencoded",
            loom.to_string(),
        ),
        (
            "envelope",
            "application/json",
            json!({ "text": COUNT }).to_string(),
        ),
    ] {
        let (status, stored) = put(name, kind, &body).await;
        assert_eq!(status, 201, "{name}: {stored}");
        let started = server.post("/v1/runs", &json!({ "workflow": name })).await;
        assert_eq!(started.0, 201, "{name}: {}", started.1);
        let outcome = server.end(started.1["run"].as_str().unwrap()).await;
        assert_eq!(outcome["status"], "Succeeded", "{name}: {outcome}");
    }
    // A workflow without a name has the name under which it is saved.
    let (_, runs) = server.get("/v1/runs?workflow=logic.app").await;
    assert_eq!(runs["runs"].as_array().unwrap().len(), 1, "{runs}");

    for (kind, body) in [
        ("application/json", loom.to_string()),
        ("application/yaml", COUNT.to_owned()),
        ("text/plain", COUNT.to_owned()),
    ] {
        let (status, checked) = send(Method::POST, "/v1/validate", kind, &body).await;
        assert_eq!(
            (status, &checked["valid"]),
            (200, &json!(true)),
            "{checked}"
        );
        let (status, run) = send(Method::POST, "/v1/runs", kind, &body).await;
        assert_eq!(status, 201, "{run}");
        let outcome = server.end(run["run"].as_str().unwrap()).await;
        assert_eq!(outcome["status"], "Succeeded", "{outcome}");
    }
    // A page of another site can send a form without a preflight request: it starts nothing.
    let form = "application/x-www-form-urlencoded";
    assert_eq!(send(Method::POST, "/v1/runs", form, COUNT).await.0, 415);

    // The message refers to the intended format.
    let slip = r#"{ "actions": { "a": { "type": "compos" } } }"#;
    let (status, refused) = put("slip", "application/json", slip).await;
    assert_eq!(status, 422, "{refused}");
    assert_eq!(refused["diagnostics"][0]["file"], "slip.json", "{refused}");
    for (body, message) in [
        (r#"{ "text": "x", "dialct": "tea" }"#, "dialct"),
        (r#"{ "dialect": "tea" }"#, "missing field `text`"),
        ("[1]", "neither a workflow nor an object of `text`"),
        (
            r#"{ "txt": "x" }"#,
            "neither a workflow nor an object of `text`",
        ),
        (r#"{ "text": "#, "EOF"),
    ] {
        let (status, refused) = put("slip", "application/json", body).await;
        assert_eq!(status, 400, "{body}: {refused}");
        let detail = refused["detail"].as_str().unwrap();
        assert!(detail.contains(message), "{body}: {detail}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_is_a_problem() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path());
    let kind = |answer: (u16, serde_json::Value)| {
        let word = answer.1["type"].as_str().unwrap_or("none").to_owned();
        (answer.0, word.replace("urn:windlass:", ""))
    };
    let is = |status: u16, word: &str| (status, word.to_owned());

    let broken = "name: broken\nactions:\n  a: { type: untill }\n  b: { type: wait2 }\n";
    let body = json!({ "text": broken, "file": "broken.yaml" });
    let response = with(server.ask(Method::POST, "/v1/runs"), &body);
    let response = response.send().await.unwrap();
    assert_eq!(
        response.headers()["content-type"],
        "application/problem+json"
    );
    let (status, problem) = super::parts(response).await;
    assert_eq!(status, 422);
    let all = problem["diagnostics"].as_array().unwrap();
    assert_eq!(all.len(), 2, "{problem}");
    assert_eq!((&all[0]["line"], &all[1]["line"]), (&json!(3), &json!(4)));
    assert_eq!(all[0]["file"], "broken.yaml");
    assert!(all[0]["column"].as_u64().unwrap() > 1);

    let input = json!({ "text": COUNT, "input": { "too": 3 } });
    assert_eq!(
        kind(server.post("/v1/runs", &input).await),
        is(422, "refused-input")
    );
    assert_eq!(
        kind(server.post("/v1/runs", &json!({})).await),
        is(400, "bad-request")
    );
    let misspelt = json!({ "txt": COUNT });
    assert_eq!(
        kind(server.post("/v1/runs", &misspelt).await),
        is(400, "bad-request")
    );
    let plain = server.ask(Method::POST, "/v1/runs").body("{}");
    assert_eq!(kind(answer(plain).await), is(415, "media-type"));
    let huge = server.ask(Method::POST, "/v1/runs");
    let huge = huge.header("content-type", "application/json");
    let huge = huge.body(vec![b' '; (16 << 20) + 1]);
    assert_eq!(kind(answer(huge).await), is(413, "too-large"));
    assert_eq!(
        kind(server.get("/v1/runs/nobody").await),
        is(404, "unknown-run")
    );
    assert_eq!(kind(server.get("/v2").await), is(404, "not-found"));
    let wrong = server.ask(Method::DELETE, "/v1/runs");
    assert_eq!(kind(answer(wrong).await), is(405, "method-not-allowed"));
    let body = json!({ "text": SLEEP, "run": "twice" });
    assert_eq!(server.post("/v1/runs", &body).await.0, 201);
    assert_eq!(
        kind(server.post("/v1/runs", &body).await),
        is(409, "run-exists")
    );
    let many: serde_json::Map<_, _> = (0..101).map(|n| (format!("l{n}"), json!("x"))).collect();
    for more in [
        json!({ "run": "../etc" }),
        // A URL would lose these segments.
        json!({ "run": "." }),
        json!({ "run": ".." }),
        json!({ "labels": many }),
        json!({ "labels": { "a": "x".repeat(4097) } }),
        json!({ "labels": { "": "x" } }),
    ] {
        let mut body = json!({ "text": SLEEP });
        body.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        assert_eq!(
            kind(server.post("/v1/runs", &body).await),
            is(400, "bad-request"),
            "{more}"
        );
    }
    // An array with the members in order, instead of an object.
    for (path, body) in [
        ("/v1/runs/twice/signal", json!(["go", 1])),
        ("/v1/runs/twice/retry", json!([])),
        ("/v1/runs/bulk", json!(["pause", ["twice"]])),
    ] {
        assert_eq!(
            kind(server.post(path, &body).await),
            is(400, "bad-request"),
            "{path}"
        );
    }
    // A refused value is not returned in full.
    let body = json!({ "text": COUNT, "input": { "to": "x".repeat(100_000) } });
    let (status, problem) = server.post("/v1/runs", &body).await;
    assert_eq!(status, 422);
    assert!(problem.to_string().len() < 1_000, "{problem}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_handed_only_to_a_server() {
    let dir = tempfile::tempdir().unwrap();
    let state = dir.path().join("state");
    let file = dir.path().join("count.yaml");
    std::fs::write(&file, COUNT).unwrap();
    let file = file.to_str().unwrap();
    let args = ["run", file, "--detach", "--id", "handed"];
    let alone = windlass(&state, &args);
    assert_eq!(alone.status.code(), Some(8));
    let server = Start::new(&state).spawn();
    let handed = windlass(&state, &args);
    assert!(handed.status.success(), "{handed:?}");
    assert_eq!(String::from_utf8_lossy(&handed.stdout), "handed\n");
    assert_eq!(server.end("handed").await["output"], 20);
    // A second server cannot open the store.
    let second = Start::new(&state).command().spawn().unwrap();
    let (status, text) = super::exit_and_stderr(second);
    assert_eq!(status.code(), Some(8));
    assert!(
        text.contains(&format!("process {}", server.child.id())),
        "{text}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn workflows_are_saved_under_their_names() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path());
    let put = |server: &Server, name: &str, text: &str| {
        let request = server.ask(Method::PUT, &format!("/v1/workflows/{name}"));
        let request = request.header("content-type", "application/yaml");
        answer(request.body(text.to_owned()))
    };
    let (status, report) = put(&server, "counting", COUNT).await;
    assert_eq!(status, 201, "{report}");
    assert_eq!(
        (&report["name"], &report["title"]),
        (&json!("counting"), &json!("count"))
    );
    assert_eq!(report["inputs"][0]["default"], 20);
    assert_eq!(report["loops"][0]["name"], "grow");
    assert_eq!(put(&server, "nap", SLEEP).await.0, 201);
    assert_eq!(put(&server, "a b", SLEEP).await.0, 422);
    let (status, problem) = put(&server, "broken", "actions: { a: { type: nix } }").await;
    assert_eq!(
        (status, problem["diagnostics"].as_array().map(Vec::len)),
        (422, Some(1))
    );

    // The new version survives a kill, and has replaced the earlier one.
    server.kill();
    let server = Server::start(dir.path());
    let start = json!({ "workflow": "counting", "input": { "to": 3 } });
    let (status, run) = server.post("/v1/runs", &start).await;
    assert_eq!(status, 201, "{run}");
    assert_eq!(server.end(run["run"].as_str().unwrap()).await["output"], 3);
    let other = COUNT.replace("value: 1", "value: 5");
    let body = json!({ "text": other, "file": "five.yaml" });
    let replaced = with(server.ask(Method::PUT, "/v1/workflows/counting"), &body);
    assert_eq!(answer(replaced).await.0, 200);
    let (_, run) = server.post("/v1/runs", &start).await;
    assert_eq!(server.end(run["run"].as_str().unwrap()).await["output"], 5);

    let (_, list) = server.get("/v1/workflows?limit=1").await;
    assert_eq!(list["workflows"][0]["file"], "five.yaml");
    assert_eq!(list["next"], "counting");
    let (_, list) = server.get("/v1/workflows?limit=1&after=counting").await;
    assert_eq!(list["workflows"][0]["name"], "nap");
    let (_, one) = server.get("/v1/workflows/nap").await;
    assert_eq!(one["files"][0]["text"], SLEEP);
    let (_, misspelt) = server.post("/v1/runs", &json!({ "workflow": "npa" })).await;
    let detail = "unknown workflow `npa`; did you mean `nap`?";
    assert_eq!(misspelt["detail"], detail);
    let remove = server.ask(Method::DELETE, "/v1/workflows/nap");
    assert_eq!(answer(remove).await.0, 204);
    assert_eq!(server.get("/v1/workflows/nap").await.0, 404);
    let (status, problem) = server.post("/v1/runs", &json!({ "workflow": "nap" })).await;
    assert_eq!(
        (status, &problem["type"]),
        (404, &json!("urn:windlass:unknown-workflow"))
    );
    assert!(server.stop().0.success());
    let server = Server::start(dir.path());
    assert_eq!(server.get("/v1/workflows/nap").await.0, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_workflow_is_checked_without_being_saved() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path());
    let check = |text: &str| {
        let request = server.ask(Method::POST, "/v1/validate");
        answer(request.body(text.to_owned()))
    };
    let (status, good) = check(COUNT).await;
    assert_eq!((status, &good["valid"]), (200, &json!(true)));
    assert_eq!(good["dialect"], "loom");
    assert_eq!(good["loops"][0]["count"], "1000");
    let (status, bad) = check("actions:\n  a: { type: nix }\n").await;
    assert_eq!((status, &bad["valid"]), (200, &json!(false)));
    assert_eq!(bad["diagnostics"][0]["line"], 2);
    let (_, azure) = check("definition: { actions: { a: { type: Nix } } }").await;
    assert_eq!(
        (&azure["valid"], &azure["dialect"]),
        (&json!(false), &json!("azure"))
    );
    let (_, list) = server.get("/v1/workflows").await;
    assert_eq!(list, json!({ "workflows": [], "next": null }));
}

/// A run that continues while it is read is shown at one moment.
#[tokio::test(flavor = "multi_thread")]
async fn a_status_knows_of_no_iteration_behind_the_one_it_shows() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path());
    let mut looks = 0;
    while looks < 100 {
        let run = server.begin(COUNT, json!({ "to": 1000 })).await;
        loop {
            let (code, status) = server.get(&format!("/v1/runs/{run}")).await;
            assert_eq!(code, 200);
            let Some(row) = status["loops"].get(0) else {
                break;
            };
            let last = row["last"]["iteration"].as_u64().unwrap_or(0);
            assert_eq!(Some(last), row["iterations_completed"].as_u64(), "{status}");
            looks += 1;
        }
        server.end(&run).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_gives_its_source_and_the_places_to_retry_it_from() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path());
    let text = "actions:
  each:
    type: foreach
    foreach: [a, b]
    actions:
      inner:
        type: until
        condition: \"@equals(variables('loopIndex'), 1)\"
        limit: { count: 3 }
        actions:
          note: { type: compose, inputs: 1 }
  stop: { type: terminate, runStatus: Failed }
";
    let run = server.begin(text, json!(null)).await;
    server.get(&format!("/v1/runs/{run}/result?wait=30")).await;
    let (status, source) = server.get(&format!("/v1/runs/{run}/source")).await;
    assert_eq!(status, 200, "{source}");
    assert_eq!(source["files"][0]["text"], text);
    assert_eq!(source["dialect"], "loom");
    let (status, places) = server.get(&format!("/v1/runs/{run}/places?limit=4")).await;
    assert_eq!((status, &places["cut"]), (200, &json!(true)), "{places}");
    let (_, places) = server.get(&format!("/v1/runs/{run}/places")).await;
    assert_eq!(places["cut"], false, "{places}");
    let places = places["places"].as_array().unwrap();
    assert_eq!(places[0], json!({ "path": "stop", "type": "action" }));
    let second = json!({ "path": "each#1/inner#0", "type": "iteration" });
    assert!(places.contains(&second), "{places:?}");
    // A retry accepts each of these places.
    for place in places {
        let path = format!("/v1/runs/{run}/retry");
        let (status, again) = server.post(&path, &json!({ "from": place["path"] })).await;
        assert_eq!(status, 201, "{place} {again}");
    }
    let (status, _) = server.get("/v1/runs/nobody/source").await;
    assert_eq!(status, 404);
    let (status, _) = server.get("/v1/runs/nobody/places").await;
    assert_eq!(status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_are_found_by_text_and_time_and_counted_by_kind() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path());
    for (name, run, team) in [
        ("count", "one", "Blue"),
        ("count", "two", "red"),
        ("other", "three", "red"),
    ] {
        let text = COUNT.replace("name: count", &format!("name: {name}"));
        let body = json!({ "text": text, "run": run, "labels": { "team": team } });
        assert_eq!(server.post("/v1/runs", &body).await.0, 201);
        server.end(run).await;
    }
    let ids = async |query: &str| {
        let (status, list) = server.get(&format!("/v1/runs?{query}")).await;
        assert_eq!(status, 200, "{query}: {list}");
        let runs = list["runs"].as_array().unwrap().iter();
        let ids: Vec<_> = runs
            .map(|run| run["run"].as_str().unwrap().to_owned())
            .collect();
        (ids.join(" "), list)
    };
    assert_eq!(ids("text=BLUE").await.0, "one");
    assert_eq!(ids("text=tw").await.0, "two");
    assert_eq!(ids("text=team%3DBlue%20").await.0, "one");
    assert_eq!(ids("text=othe").await.0, "three");
    let (_, list) = ids("").await;
    assert!(list.get("facets").is_none());
    let middle = list["runs"][1]["started_at"].as_str().unwrap().to_owned();
    assert_eq!(ids(&format!("since={middle}")).await.0, "three two");
    assert_eq!(ids(&format!("until={middle}")).await.0, "one");
    // A chosen value of a facet does not hide the counts of its other values.
    let (found, list) = ids("facets=true&workflow=count&status=Failed").await;
    assert_eq!(found, "");
    assert_eq!(list["facets"]["status"], json!({ "Succeeded": 2 }));
    assert_eq!(list["facets"]["workflow"], json!({}));
    let (_, list) = ids("facets=true&text=red&workflow=count").await;
    assert_eq!(list["facets"]["status"], json!({ "Succeeded": 1 }));
    assert_eq!(
        list["facets"]["workflow"],
        json!({ "count": 1, "other": 1 })
    );
    // A chosen hour does not hide the runs of other hours, but a text, a status and a workflow do.
    let by_hour = |list: &serde_json::Value| {
        let hours = list["facets"]["hour"].as_object().unwrap().clone();
        assert!(hours.keys().all(|hour| hour.ends_with(":00:00.000Z")));
        let runs = hours.values().map(|hour| hour["Succeeded"].as_u64());
        runs.map(Option::unwrap).sum::<u64>()
    };
    let (_, list) = ids("facets=true&until=2000-01-01T00:00:00Z").await;
    assert_eq!(list["facets"]["status"], json!({}));
    assert_eq!(by_hour(&list), 3);
    assert_eq!(by_hour(&ids("facets=true&text=red").await.1), 2);
    assert_eq!(by_hour(&ids("facets=true&workflow=other").await.1), 1);
    assert_eq!(by_hour(&ids("facets=true&status=Failed").await.1), 0);
    assert_eq!(server.get("/v1/runs?since=yesterday").await.0, 400);

    let listed = |args: &[&str]| {
        let command = [&["list", "-o", "json"], args].concat();
        let seen = windlass(dir.path(), &command);
        String::from_utf8(seen.stdout)
            .unwrap()
            .matches("\"run\"")
            .count()
    };
    assert_eq!(listed(&["--text", "RED"]), 2);
    assert_eq!(listed(&["--since", "1h"]), 3);
    assert_eq!(listed(&["--until", "1h"]), 0);
    assert_eq!(listed(&["--since", &middle, "--text", "red"]), 2);
    let wrong = windlass(dir.path(), &["list", "--since", "yesterday"]);
    assert_eq!(wrong.status.code(), Some(2));
}

#[tokio::test(flavor = "multi_thread")]
async fn no_request_ignores_a_query_parameter() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path());
    let run = server.begin(COUNT, json!({})).await;
    server.end(&run).await;
    let (_, description) = server.get("/openapi.json").await;
    let paths = description["paths"].as_object().unwrap();
    let mut checked = 0;
    for (path, operations) in paths.iter().filter(|(path, _)| path.starts_with("/v1/")) {
        // The senders of these requests choose the query.
        if path.starts_with("/v1/hooks/") || path.starts_with("/v1/callbacks/") {
            continue;
        }
        let address = path.replace("{run}", &run).replace(['{', '}'], "");
        for (method, operation) in operations.as_object().unwrap() {
            let method = Method::from_bytes(method.to_uppercase().as_bytes()).unwrap();
            let call = server.ask(method.clone(), &format!("{address}?zz=1"));
            let (status, problem) = answer(call).await;
            assert_eq!(status, 400, "{method} {path}: {problem}");
            let parameters = operation["parameters"].as_array();
            let mut parameters = parameters.into_iter().flatten();
            let takes_some = parameters.any(|one| one["in"] == "query");
            let detail = problem["detail"].as_str().unwrap();
            let takes_none = detail == "this request has no query parameter `zz`";
            assert_ne!(takes_some, takes_none, "{method} {path}: {detail}");
            checked += 1;
        }
    }
    assert!(checked > 40, "{checked}");
    for text in [
        r#"{"text": "x", "input": {"a": {"version": "1", "version": "2"}}}"#,
        r#"{"text": "x", "labels": {"a": "1", "a": "2"}}"#,
    ] {
        let request = server.ask(Method::POST, "/v1/runs");
        let request = request.header("content-type", "application/json");
        let (status, problem) = answer(request.body(text)).await;
        assert_eq!(status, 400, "{problem}");
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.starts_with("duplicate member `"), "{detail}");
    }
    for (query, detail) in [
        ("limit=x", "limit: expected a whole number"),
        ("limit=1&limit=2", "repeated parameter `limit`"),
    ] {
        let (_, problem) = server.get(&format!("/v1/runs?{query}")).await;
        assert_eq!(problem["detail"], detail);
    }
}
