//! What JSON can express and no value can hold is never changed silently: it is refused by name, and its text can be
//! stored.

use super::process::Place;
use crate::serve::Server;
use crate::support::serve;
use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::routing::get;
use serde_json::json;

const BAD: [(&str, &str); 4] = [
    (r#"{"id": 18446744073709551616}"#, "18446744073709551616"),
    (r#"[9223372036854775808]"#, "9223372036854775808"),
    (r#"{"n": 1e999}"#, "1e999"),
    (r#"{"t": "x\ud800"}"#, "\\ud800"),
];

fn refused(place: &Place, args: &[&str], code: i32, number: &str) -> String {
    let output = place.run(args);
    assert_eq!(output.status.code(), Some(code), "{args:?}: {output:?}");
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains(number), "{args:?}: {stderr}");
    stderr
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_fails_the_action_and_is_stored_as_text() {
    for (body, number) in BAD {
        let router = Router::new().route(
            "/",
            get(move || async move { ([(CONTENT_TYPE, "application/json")], body) }),
        );
        let url = serve(router).await;
        let place = Place::new();
        let file = place.file(
            "get.yaml",
            &format!("actions: {{ a: {{ type: http, uri: '{url}' }} }}\n"),
        );
        refused(&place, &["run", &file, "--id", "r"], 1, number);
        let status = place.json(&["status", "r", "-o", "json"]);
        assert_eq!(status["outcome"]["error"]["kind"], "inexact", "{status}");
        let caught = place.file(
            "caught.yaml",
            &format!(
                "actions:\n  a: {{ type: http, uri: '{url}' }}\n  \
                 b: {{ type: compose, inputs: \"@body('a')\", runAfter: {{ a: [Failed] }} }}\n\
                 outputs: \"@outputs('b')\"\n"
            ),
        );
        let output = place.run(&["run", &caught, "-o", "json"]);
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(report, json!(body), "{output:?}");
    }
}

#[test]
fn a_command_and_a_handler_fail_and_lone_numbers_are_text() {
    let place = Place::new();
    for (text, number) in BAD {
        let answer = place.file("answer", text);
        let shell = format!("actions: {{ a: {{ type: shell, run: 'cat {answer}' }} }}\n");
        let file = place.file("shell.yaml", &shell);
        refused(&place, &["run", &file], 1, number);
        let handlers = format!("greet: {{ command: [cat, '{answer}'] }}\n");
        let handlers = place.file("handlers.yaml", &handlers);
        let text = "actions: { a: { type: activity, inputs: { activityType: greet } } }\n";
        let file = place.file("handler.yaml", text);
        refused(&place, &["run", &file, "--handlers", &handlers], 1, number);
    }
    let text = "actions: { a: { type: shell, run: 'echo 18446744073709551616' } }\n\
                outputs: \"@body('a')\"\n";
    let file = place.file("lone.yaml", text);
    let report = place.json(&["run", &file, "-o", "json"]);
    assert_eq!(report, json!("18446744073709551616"));
    let text = "nodes:\n  - { name: a, run: 'return {\"n\": 2 ** 70}' }\n";
    let file = place.file("script.yaml", text);
    refused(&place, &["run", &file], 1, "64 bits");
}

#[test]
fn inputs_are_refused() {
    let place = Place::new();
    let text = "inputs: { v: { type: any } }\n\
                actions: { a: { type: compose, inputs: \"@inputs('v')\" } }\n";
    let file = place.file("take.yaml", text);
    for (value, number) in BAD {
        let input = place.file("input.json", &format!("{{\"v\": {value}}}"));
        refused(&place, &["run", &file, "--input", &input], 2, number);
        let flag = format!("v:={value}");
        refused(&place, &["run", &file, "-i", &flag], 2, number);
    }
    let input = place.file("input.yaml", "v: 18446744073709551616\n");
    let number = "18446744073709551616";
    refused(&place, &["run", &file, "--input", &input], 2, number);
    let text = format!("actions: {{ a: {{ type: compose, inputs: {number} }} }}\n");
    let file = place.file("literal.yaml", &text);
    refused(&place, &["run", &file], 3, number);
    let text =
        format!("{{\"actions\": {{\"a\": {{\"type\": \"compose\", \"inputs\": {number}}}}}}}");
    let file = place.file("literal.json", &text);
    refused(&place, &["run", &file], 3, number);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path());
    for (value, number) in BAD {
        let body = format!(
            "{{\"text\": \"actions: {{ a: {{ type: compose, inputs: 1 }} }}\", \
             \"input\": {value}}}"
        );
        let request = server.ask(reqwest::Method::POST, "/v1/runs");
        let request = request.header("content-type", "application/json");
        let (status, problem) = crate::serve::answer(request.body(body)).await;
        assert_eq!(status, 400, "{problem}");
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains(number), "{problem}");
    }
}
