//! The editor's panel and edits over HTTP, also for those who may only look.

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
    let view = dir.path().join("view");
    std::fs::write(&view, "looks").unwrap();
    let state = dir.path().join("state");
    let server = Start::new(&state)
        .token("secret")
        .args(&["--view-token-file", view.to_str().unwrap()])
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
async fn a_text_tells_its_schedule_and_its_stubs() {
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
