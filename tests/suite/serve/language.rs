//! An editor's requests over HTTP.

use super::{COUNT, Server, Start, answer};
use reqwest::Method;
use serde_json::{Value, json};

fn place(text: &str, needle: &str) -> Value {
    let at = text.find(needle).unwrap() + needle.len();
    let line = text[..at].matches('\n').count();
    let character = at - text[..at].rfind('\n').map_or(0, |at| at + 1);
    json!({ "line": line, "character": character })
}

#[tokio::test(flavor = "multi_thread")]
async fn an_editor_gets_diagnostics_completions_and_symbols() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path());
    let wrong = "actions:\n  a: { type: composs, inputs: 1 }\n";
    let (status, checked) = server.post("/v1/validate", &json!({ "text": wrong })).await;
    assert_eq!(status, 200);
    let one = &checked["diagnostics"][0];
    let range =
        json!({ "start": { "line": 1, "character": 13 }, "end": { "line": 1, "character": 20 } });
    assert_eq!(one["range"], range, "{one}");
    let edits = json!([{ "range": range, "new_text": "compose" }]);
    assert_eq!(one["fixes"][0]["edits"], edits, "{one}");
    assert_eq!(one["fixes"][0]["title"], "change `composs` to `compose`");
    let (_, checked) = server.post("/v1/validate", &json!({ "text": COUNT })).await;
    assert_eq!(checked["inputs"][0]["name"], "to", "{checked}");
    assert_eq!(checked["inputs"][0]["default"], 20);

    let at = place(COUNT, "@greaterOrEquals(variables('");
    let (status, found) = server
        .post("/v1/language/complete", &json!({ "text": COUNT, "at": at }))
        .await;
    assert_eq!(status, 200, "{found}");
    assert_eq!(found["items"][0]["label"], "n", "{found}");
    assert_eq!(found["items"][0]["kind"], "variable");
    let (_, hovered) = server
        .post(
            "/v1/language/hover",
            &json!({ "text": COUNT, "at": place(COUNT, "    cond") }),
        )
        .await;
    assert!(
        hovered["text"].as_str().unwrap().starts_with("condition"),
        "{hovered}"
    );
    let nowhere = json!({ "text": COUNT, "at": { "line": 900, "character": 0 } });
    let (_, hovered) = server.post("/v1/language/hover", &nowhere).await;
    assert_eq!(hovered, Value::Null);
    let (_, found) = server
        .post("/v1/language/symbols", &json!({ "text": COUNT }))
        .await;
    let grow = &found["symbols"][0];
    assert_eq!(
        (&grow["name"], &grow["kind"], &grow["path"]),
        (&json!("grow"), &json!("loop"), &json!("grow"))
    );
    assert_eq!(grow["children"][0]["path"], "grow/more", "{grow}");
    let (status, _) = server
        .post("/v1/language/complete", &json!({ "text": COUNT }))
        .await;
    assert_eq!(status, 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hover_gives_the_value_in_a_past_iteration() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path());
    let run = server.begin(COUNT, json!({ "to": 5 })).await;
    server.end(&run).await;
    let mut body = json!({ "text": COUNT, "at": place(COUNT, "@greaterOrEquals(vari"), "run": run, "iteration": "grow#2" });
    let (status, hovered) = server.post("/v1/language/hover", &body).await;
    assert_eq!((status, &hovered["value"]), (200, &json!(3)), "{hovered}");
    body["at"] = place(COUNT, "@greater");
    let (_, hovered) = server.post("/v1/language/hover", &body).await;
    assert_eq!(hovered["value"], false, "{hovered}");
    body["at"] = place(COUNT, "inputs('t");
    let (_, hovered) = server.post("/v1/language/hover", &body).await;
    assert_eq!(hovered["value"], 5, "{hovered}");
    body["iteration"] = json!("grow#77");
    let (status, _) = server.post("/v1/language/hover", &body).await;
    assert_eq!(status, 404);
    body["iteration"] = Value::Null;
    let (status, _) = server.post("/v1/language/hover", &body).await;
    assert_eq!(status, 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_only_look_may_ask_about_texts() {
    let dir = tempfile::tempdir().unwrap();
    let roles = [("view", "looking-only-token-0123456789")];
    let server = Start::new(&dir.path().join("state"))
        .roles(dir.path(), &roles)
        .spawn();
    let body = json!({ "text": COUNT, "at": { "line": 0, "character": 0 } });
    for (path, expected) in [
        ("/v1/language/complete", 200),
        ("/v1/validate", 400),
        ("/v1/runs", 403),
    ] {
        let request = server
            .ask(Method::POST, path)
            .bearer_auth("looking-only-token-0123456789");
        let (status, response) = answer(super::with(request, &body)).await;
        assert_eq!(status, expected, "{path}: {response}");
    }
}
