//! The editor's panel and edits over HTTP, also with read-only tokens.

use super::{Server, Start};
use serde_json::{Value, json};

const LOOP: &str = "# Waits.\nname: poll\nactions:\n  wait_for:\n    type: until   # the loop\n    condition: \"@equals(body('check'), 'done')\"\n    limit: { count: 5, timeout: 1h }\n    actions:\n      check: { type: compose, inputs: done }\n";

#[tokio::test(flavor = "multi_thread")]
async fn a_panel_is_read_and_its_fields_are_set() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path());
    let (status, panel) = server
        .post(
            "/v1/language/panel",
            &json!({ "text": LOOP, "node": "wait_for" }),
        )
        .await;
    assert_eq!(status, 200, "{panel}");
    assert_eq!(
        (&panel["kind"], &panel["format"]),
        (&json!("until"), &json!("loom"))
    );
    let sections = panel["sections"].as_array().unwrap().iter();
    let fields: Vec<&Value> = sections
        .flat_map(|section| section["fields"].as_array().unwrap())
        .collect();
    let count = fields.iter().find(|field| field["id"] == "count").unwrap();
    assert_eq!(
        (&count["value"], &count["cap"]),
        (&json!(5), &json!(10_000))
    );
    let edits = json!([{ "op": "set", "node": "wait_for", "field": "count", "value": 9 }]);
    let (status, edited) = server
        .post(
            "/v1/language/edit",
            &json!({ "text": LOOP, "edits": edits }),
        )
        .await;
    assert_eq!(status, 200, "{edited}");
    assert_eq!(edited["text"], json!(LOOP.replace("count: 5", "count: 9")));
    let start = json!({ "line": 6, "character": 20 });
    assert_eq!(edited["edits"][0]["range"]["start"], start);
    assert_eq!(edited["edits"][0]["new_text"], "9");
    let edits = json!([{ "op": "set", "node": "wait_for", "field": "timeout", "value": "soon" }]);
    let (status, problem) = server
        .post(
            "/v1/language/edit",
            &json!({ "text": LOOP, "edits": edits }),
        )
        .await;
    assert_eq!(
        (status, &problem["type"]),
        (422, &json!("urn:windlass:refused-edit"))
    );
    let (status, problem) = server
        .post("/v1/language/panel", &json!({ "text": LOOP, "node": "no" }))
        .await;
    assert_eq!(status, 422, "{problem}");
    let (_, types) = server
        .post("/v1/language/types", &json!({ "dialect": "canvas" }))
        .await;
    assert_eq!(types["types"][0]["type"], "loop");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_only_look_may_edit_a_text_and_keep_none() {
    let dir = tempfile::tempdir().unwrap();
    let state = dir.path().join("state");
    let server = Start::new(&state)
        .roles(dir.path(), &[("view", "looks")])
        .spawn();
    let ask = async |method, path: &str, body: Value| {
        let request = super::client().request(method, format!("{}{path}", server.url));
        super::answer(super::with(request.bearer_auth("looks"), &body))
            .await
            .0
    };
    let edit = json!({ "text": LOOP, "edits": [] });
    assert_eq!(
        ask(reqwest::Method::POST, "/v1/language/edit", edit).await,
        200
    );
    let text = json!({ "text": LOOP });
    assert_eq!(
        ask(reqwest::Method::PUT, "/v1/workflows/a", text.clone()).await,
        403
    );
    assert_eq!(
        ask(reqwest::Method::DELETE, "/v1/workflows/a", text).await,
        403
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_text_reports_its_schedule_and_its_stubs() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path());
    let text = "schedule: '30 2 * * *'\nactions:\n  call: { type: http, inputs: { uri: 'https://example.org/' } }\n";
    let (status, schedule) = server
        .post("/v1/language/schedule", &json!({ "text": text }))
        .await;
    assert_eq!(
        (status, schedule["next"].as_array().map(Vec::len)),
        (200, Some(5)),
        "{schedule}"
    );
    let (status, stubs) = server
        .post("/v1/language/stubs", &json!({ "text": text }))
        .await;
    assert_eq!(status, 200, "{stubs}");
    assert!(stubs["stubs"]["call"].is_object(), "{stubs}");
    let text = stubs["text"].as_str().unwrap();
    assert_eq!(serde_json::from_str::<Value>(text).unwrap(), stubs["stubs"]);
}

const COUNT: &str = r#"
name: count
inputs: { base: { type: string, default: "http://127.0.0.1:1" } }
variables: { n: 0 }
actions:
  turn:
    type: doUntil
    condition: "@equals(variables('n'), 20)"
    limit: { count: 100 }
    actions:
      more: { type: incrementVariable, name: n }
      call:
        type: activity
        activityType: send
        input: { n: "@variables('n')", key: "${secret:KEY}" }
"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_text_is_tried_with_stubs_a_condition_and_one_action() {
    let dir = tempfile::tempdir().unwrap();
    let server = Start::new(dir.path())
        .args(&["--allow-secret", "KEY"])
        .spawn();
    // Without a stub for `send` the run cannot begin; with a stub nothing is called.
    let text = COUNT.replace(", key: \"${secret:KEY}\"", "");
    let (_, made) = server
        .post("/v1/language/stubs", &json!({ "text": text }))
        .await;
    assert!(
        made["stubs"].as_object().unwrap().contains_key("call"),
        "{made}"
    );
    let (status, refused) = server
        .post("/v1/runs", &json!({ "text": text, "stubs": 3 }))
        .await;
    assert_eq!(status, 400, "{refused}");
    let start = json!({ "text": text, "stubs": { "call": { "sent": true } }, "run": "r" });
    let (status, started) = server.post("/v1/runs", &start).await;
    assert_eq!(status, 201, "{started}");
    assert_eq!(server.end("r").await["status"], "Succeeded");

    let test = async |condition: Value, more: Value| {
        let mut body = json!({ "loop": "turn", "condition": condition });
        body.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        server.post("/v1/runs/r/test-condition", &body).await
    };
    let (status, tested) = test(json!("@greater(variables('n'), 12)"), json!({})).await;
    assert_eq!(status, 200, "{tested}");
    assert_eq!(
        (&tested["stopped_at"], &tested["ended_at"]),
        (&json!(12), &json!(19))
    );
    assert_eq!(tested["tried"], 13);
    let last = &tested["rows"][12];
    assert_eq!(
        (
            &last["value"],
            last["values"].as_object().unwrap().values().next()
        ),
        (&json!(true), Some(&json!(13)))
    );
    let (_, tested) = test(
        json!("@equals(body('call').sent, true)"),
        json!({ "stops_when": false }),
    )
    .await;
    assert_eq!(
        (&tested["stopped_at"], &tested["tried"]),
        (&json!(null), &json!(20))
    );
    let (status, wrong) = test(json!("@equals(("), json!({})).await;
    assert!((400..500).contains(&status), "{wrong}");
    let (_, failing) = test(json!("@greater(variables('none'), 1)"), json!({})).await;
    assert!(
        failing["error"].as_str().unwrap().contains("none"),
        "{failing}"
    );
    let (status, _) = server
        .post(
            "/v1/runs/nobody/test-condition",
            &json!({ "loop": "turn", "condition": "true" }),
        )
        .await;
    assert_eq!(status, 404);

    let attempt = async |text: &str, more: Value| {
        let mut body = json!({ "text": text, "node": "turn/call" });
        body.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        server.post("/v1/language/try", &body).await
    };
    let (status, tried) = attempt(COUNT, json!({ "variables": { "n": 7 } })).await;
    assert_eq!(status, 200, "{tried}");
    assert!(
        tried.to_string().contains("\"n\":7") && tried.to_string().contains("***"),
        "{tried}"
    );
    let (_, tried) = attempt(COUNT, json!({ "run": "r", "iteration": "turn#4" })).await;
    assert!(tried.to_string().contains("\"n\":5"), "{tried}");
    let (status, refused) = attempt(COUNT, json!({ "node": "nobody" })).await;
    assert_eq!(status, 422, "{refused}");
}
