//! A run whose server no longer has the secret or the handler that it needs. It is parked and can be inspected. The
//! live server can end it, over HTTP and over the control socket, without starting any of its actions.

use super::process::Place;
use crate::serve::{Server, Start};
use serde_json::{Value, json};
use std::time::Duration;

/// Its next step is due soon, so a server loads it at its start.
const NEEDS: &str = r#"
name: needs
actions:
  nap: { type: wait, interval: { unit: Second, count: 3 } }
  made: { type: activity, inputs: { activityType: mark, input: "@secret('WORD')" } }
"#;

async fn until_parked(server: &Server, run: &str) -> Value {
    for _ in 0..1_200 {
        let (_, response) = server.get(&format!("/v1/runs/{run}")).await;
        if response["labels"]["windlass.parked"].is_string() {
            return response;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("{run} is never parked");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_lacks_something_is_ended_by_the_server_that_lacks_it() {
    let place = Place::new();
    let mark = place.dir.path().join("mark");
    let handler = format!("mark: {{ command: [touch, '{}'] }}", mark.display());
    let handlers = place.file("handlers.yaml", &handler);
    let given = ["--handlers", &handlers, "--allow-secret", "WORD"];
    let server = Start::new(&place.state())
        .args(&given)
        .spawn_with(|command| {
            command.env("WINDLASS_SECRET_WORD", "open");
        });
    let mut all = Vec::new();
    for _ in 0..3 {
        all.push(server.begin(NEEDS, json!({})).await);
    }
    server.kill();

    let server = Start::new(&place.state())
        .args(&["--allow-secret", "WORD"])
        .spawn();
    for run in &all {
        let run_report = until_parked(&server, run).await;
        let why = run_report["labels"]["windlass.parked"].as_str().unwrap();
        assert!(why.contains("the handler `mark`"), "{run_report}");
    }
    let shown = place.run(&["status", &all[0]]);
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.contains("next        windlass resume"), "{shown}");
    let [by_http, by_socket, left] = &all[..] else {
        unreachable!()
    };
    // Continuing it is still refused, with a reason.
    let (status, response) = server
        .post(&format!("/v1/runs/{by_http}/resume"), &json!({}))
        .await;
    assert_eq!(
        (status, &response["type"]),
        (409, &json!("urn:windlass:not-loaded"))
    );
    assert!(
        response.to_string().contains("the handler `mark`"),
        "{response}"
    );

    let (status, response) = server.get(&format!("/v1/runs/{by_http}/dump")).await;
    assert_eq!(status, 200, "{response}");
    let (status, response) = server
        .post(&format!("/v1/runs/{by_http}/cancel"), &json!({}))
        .await;
    assert_eq!(
        (status, &response["status"]),
        (200, &json!("Cancelled")),
        "{response}"
    );
    let cancelled = place.run(&["cancel", by_socket]);
    assert!(cancelled.status.success(), "{cancelled:?}");
    for run in [by_http, by_socket] {
        assert_eq!(server.end(run).await["status"], "Cancelled");
        let report = place.json(&["status", run, "-o", "json"]);
        assert_eq!(report["status"], "Cancelled");
        assert_eq!(report["labels"]["windlass.parked"], Value::Null, "{report}");
        let dumped = place.json(&["dump", run, "-o", "json"]);
        assert_eq!(
            dumped["runs"][0]["header"]["status"], "Cancelled",
            "{dumped}"
        );
    }
    let pruned = place.json(&["prune", "--keep", "0", "-o", "json"]);
    assert_eq!(pruned["runs"].as_array().unwrap().len(), 2, "{pruned}");
    let (status, listed) = server.get("/v1/runs").await;
    assert_eq!(status, 200);
    assert_eq!(listed["runs"].as_array().unwrap().len(), 1, "{listed}");

    // The run is still there after a restart, and a server that has what it needs can end it.
    assert!(server.stop().0.success());
    assert!(
        !mark.exists(),
        "an action of a run that is only ended was started"
    );
    let server = Start::new(&place.state())
        .args(&given)
        .spawn_with(|command| {
            command.env("WINDLASS_SECRET_WORD", "open");
        });
    let (status, response) = server
        .post(&format!("/v1/runs/{left}/resume"), &json!({}))
        .await;
    assert_eq!(status, 200, "{response}");
    assert_eq!(server.end(left).await["status"], "Succeeded");
    assert!(mark.exists());
}

/// Waits until a run has a child run. Returns the child's id.
async fn child_of(server: &Server, run: &str) -> String {
    let path = format!("/v1/runs?label=windlass.parent={run}");
    loop {
        let (_, listed) = server.get(&path).await;
        if let Some(child) = listed["runs"][0]["run"].as_str() {
            return child.to_owned();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_child_that_lacks_something_is_named_by_the_commands_to_its_parent() {
    let place = Place::new();
    let handlers = place.file("handlers.yaml", "mark: { command: [echo, '1'] }");
    let server = Start::new(&place.state())
        .args(&["--handlers", &handlers])
        .spawn();
    let child = "
actions:
  gate: { type: waitForSignal, signal: go }
  made: { type: activity, inputs: { activityType: mark } }
";
    let put = server.ask(reqwest::Method::PUT, "/v1/workflows/child");
    let put = crate::serve::with(put, &json!({ "text": child }));
    assert_eq!(crate::serve::answer(put).await.0, 201);
    let parent = "actions: { call: { type: workflow, workflow: child } }";
    let run = server.begin(parent, json!(null)).await;
    let child = child_of(&server, &run).await;
    server.kill();

    let server = Server::start(&place.state());
    let command = |verb: &str| {
        let path = format!("/v1/runs/{run}/{verb}");
        let server = &server;
        async move { server.post(&path, &json!({})).await }
    };
    // The child is paused although it cannot be loaded.
    let (status, paused) = command("pause").await;
    assert_eq!((status, &paused["status"]), (200, &json!("Paused")));
    let (_, report) = server.get(&format!("/v1/runs/{child}")).await;
    assert_eq!(report["status"], "Paused", "{report}");
    let (status, problem) = command("resume").await;
    assert_eq!(
        (status, &problem["type"]),
        (409, &json!("urn:windlass:not-loaded"))
    );
    assert!(problem.to_string().contains(&child), "{problem}");
    let (_, report) = server.get(&format!("/v1/runs/{run}")).await;
    let awaited = json!({ "run": child, "stopped": "paused" });
    assert_eq!(report["doing"][0]["awaits_run"], awaited, "{report}");
    let shown = place.run(&["status", &run]);
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(
        shown.contains(&format!("waits for run {child}, which is paused")),
        "{shown}"
    );
    assert!(server.stop().0.success());

    let server = Start::new(&place.state())
        .args(&["--handlers", &handlers])
        .spawn();
    server.log_until("parked runs do not continue");
    let resume = format!("/v1/runs/{run}/resume");
    assert_eq!(server.post(&resume, &json!({})).await.0, 200);
    let signal = format!("/v1/runs/{child}/signal");
    let signalled = server.post(&signal, &json!({ "name": "go" })).await;
    assert_eq!(signalled.0, 200, "{signalled:?}");
    assert_eq!(server.end(&run).await["status"], "Succeeded");
}
