//! Secrets of a call that is redirected: they are sent only to the server for which they are meant.

use super::process::Place;
use crate::support::serve;
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, Uri};
use axum::response::Redirect;
use axum::routing::any;
use serde_json::json;
use std::sync::{Arc, Mutex};

const CANARY: &str = "cAnAry-redirect-4711";

type Seen = Arc<Mutex<Vec<String>>>;

/// Records the whole request.
async fn note(State(seen): State<Seen>, uri: Uri, headers: HeaderMap, body: Bytes) -> &'static str {
    let body = String::from_utf8_lossy(&body).into_owned();
    seen.lock()
        .unwrap()
        .push(format!("{uri} {headers:?} {body}"));
    "there"
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_does_not_follow_to_another_server() {
    let seen = Seen::default();
    let elsewhere = Router::new().route("/", any(note)).with_state(seen.clone());
    let elsewhere = serve(elsewhere).await;
    let (to, leak) = (
        format!("{elsewhere}/"),
        format!("{elsewhere}/?key={CANARY}"),
    );
    let home = Router::new()
        .route(
            "/away",
            any(move || async move { Redirect::temporary(&to) }),
        )
        .route("/leak", any(move || async move { Redirect::to(&leak) }))
        .route("/near", any(|| async { Redirect::temporary("/") }))
        .route("/", any(note).with_state(seen.clone()));
    let home = serve(home).await;
    let place = Place::new();
    let call = |inputs: serde_json::Value| {
        let text = json!({
            "actions": { "call": { "type": "http", "inputs": inputs } },
            "outputs": "@body('call')",
        });
        let file = place.file("call.json", &text.to_string());
        let mut command = place.command(&["run", &file, "-o", "json"]);
        let output = command
            .env("WINDLASS_SECRET_TOKEN", CANARY)
            .output()
            .unwrap();
        let noted = std::mem::take(&mut *seen.lock().unwrap());
        (output, noted)
    };
    let with = |path: &str| {
        json!({
            "uri": format!("{home}{path}"),
            "headers": { "x-api-key": "${secret:TOKEN}", "accept": "text/plain" },
            "queries": { "key": "${secret:TOKEN}" },
            "authentication": { "type": "Bearer", "token": "${secret:TOKEN}" },
        })
    };
    // Everything is sent again to the same server.
    let (output, noted) = call(with("/near"));
    assert!(output.status.success(), "{output:?}");
    let [near] = &noted[..] else {
        panic!("{noted:?}")
    };
    assert_eq!(near.matches(CANARY).count(), 2, "{near}");
    // Another server gets only the headers that describe how to read an answer.
    let (output, noted) = call(with("/away"));
    assert!(output.status.success(), "{output:?}");
    let [away] = &noted[..] else {
        panic!("{noted:?}")
    };
    assert!(!away.contains("cAnAry"), "{away}");
    assert!(away.contains("text/plain"), "{away}");
    // A body or an address that contains a secret is not sent to another server.
    let body = json!({ "method": "POST", "uri": format!("{home}/away"), "body": { "k": "${secret:TOKEN}" } });
    for inputs in [body, with("/leak")] {
        let (output, noted) = call(inputs);
        assert_eq!(noted, Vec::<String>::new());
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{stderr}");
        assert!(stderr.contains("a secret would go along"), "{stderr}");
        assert!(!stderr.contains("cAnAry"), "{stderr}");
    }
}
