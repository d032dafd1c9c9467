//! `ai` against a server of the protocol, and against commands.

use super::{attempt, gist, request, soon};
use crate::support;
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use serde_json::{Value as Json, json};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use windlass_actions::Registry;
use windlass_model::model::Fault;

/// Status, headers and body.
type Answer = (StatusCode, Vec<(&'static str, &'static str)>, String);

/// A server that answers from a list and stores the requests.
#[derive(Clone, Default)]
pub struct Model {
    answers: Arc<Mutex<VecDeque<Answer>>>,
    requests: Arc<Mutex<Vec<Received>>>,
}

#[derive(Clone)]
pub struct Received {
    pub path: String,
    pub headers: HeaderMap,
    pub body: Json,
}

impl Model {
    pub fn then(self, status: u16, headers: &[(&'static str, &'static str)], body: &str) -> Self {
        let status = StatusCode::from_u16(status).unwrap();
        let answer = (status, headers.to_vec(), body.to_owned());
        self.answers.lock().unwrap().push_back(answer);
        self
    }

    pub fn says(self, content: &str) -> Self {
        let usage = json!({ "prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5 });
        let message = json!({ "role": "assistant", "content": content });
        let body = json!({ "model": "m", "choices": [{ "index": 0, "message": message }], "usage": usage });
        self.then(
            200,
            &[("content-type", "application/json")],
            &body.to_string(),
        )
    }

    pub async fn serve(&self) -> String {
        support::serve(Router::new().fallback(answer).with_state(self.clone())).await
    }

    pub fn requests(&self) -> Vec<Received> {
        self.requests.lock().unwrap().clone()
    }
}

async fn answer(State(model): State<Model>, uri: Uri, headers: HeaderMap, body: Bytes) -> Response {
    let body = serde_json::from_slice(&body).unwrap_or(Json::Null);
    let path = uri.to_string();
    model.requests.lock().unwrap().push(Received {
        path,
        headers,
        body,
    });
    let next = model.answers.lock().unwrap().pop_front();
    let Some((status, headers, body)) = next else {
        return std::future::pending().await;
    };
    let mut response = (status, Bytes::from(body)).into_response();
    response.headers_mut().clear();
    for (name, value) in headers {
        response.headers_mut().append(name, value.parse().unwrap());
    }
    response
}

async fn ask(url: &str, mut inputs: Json) -> Result<Json, Fault> {
    let known = json!({ "provider": "openai", "base_url": format!("{url}/v1"), "model": "m" });
    for (key, value) in known.as_object().unwrap() {
        inputs
            .as_object_mut()
            .unwrap()
            .entry(key)
            .or_insert(value.clone());
    }
    soon(attempt("ai", inputs)).await
}

#[tokio::test]
async fn a_question_in_openai_s_protocol() {
    let model = Model::default().says("Hello.").says("{}");
    let url = model.serve().await;
    let given = ask(&url, json!({ "prompt": "Hi", "system": "Be brief." })).await;
    let usage = json!({ "prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5 });
    assert_eq!(
        given.unwrap(),
        json!({ "content": "Hello.", "usage": usage })
    );
    let first = &model.requests()[0];
    assert_eq!(first.path, "/v1/chat/completions");
    assert_eq!(first.headers["idempotency-key"], "run-1/loop[3]/an_action");
    assert!(first.headers.get("authorization").is_none());
    assert_eq!(
        first.body,
        json!({
            "model": "m",
            "messages": [
                { "role": "system", "content": "Be brief." },
                { "role": "user", "content": "Hi" },
            ],
            "stream": false,
            "temperature": 0.7,
        })
    );
    let messages =
        json!([{ "role": "user", "content": "a" }, { "role": "assistant", "content": "b" }]);
    let inputs = json!({
        "messages": messages, "temperature": null, "max_tokens": 9,
        "response_format": { "type": "json_object" }, "unknown": 1,
    });
    ask(&url, inputs).await.unwrap();
    assert_eq!(
        model.requests()[1].body,
        json!({
            "model": "m", "messages": messages, "stream": false, "max_tokens": 9,
            "response_format": { "type": "json_object" },
        })
    );
}

#[tokio::test]
async fn ollama_and_azure_have_forms_of_their_own() {
    let ollama = json!({
        "model": "m", "message": { "role": "assistant", "content": "Hm." },
        "done": true, "prompt_eval_count": 4, "eval_count": 1,
    });
    let json_type = [("content-type", "application/json")];
    let model = Model::default()
        .then(200, &json_type, &ollama.to_string())
        .says("Yes.");
    let url = model.serve().await;
    let inputs = json!({
        "provider": "auto", "model": "ollama/m", "base_url": url, "prompt": "Hi", "max_tokens": 5,
    });
    let given = soon(attempt("ai", inputs)).await.unwrap();
    let usage = json!({ "prompt_tokens": 4, "completion_tokens": 1, "total_tokens": 5 });
    assert_eq!(given, json!({ "content": "Hm.", "usage": usage }));
    let inputs = json!({
        "provider": "azure", "model": "dep loy", "api_base": url, "prompt": "Hi", "api_key": "k-e-y",
    });
    assert_eq!(
        soon(attempt("ai", inputs)).await.unwrap()["content"],
        "Yes."
    );
    let requests = model.requests();
    assert_eq!(requests[0].path, "/api/chat");
    assert_eq!(
        requests[0].body,
        json!({
            "model": "m", "messages": [{ "role": "user", "content": "Hi" }], "stream": false,
            "options": { "temperature": 0.7, "num_predict": 5 },
        })
    );
    assert_eq!(
        requests[1].path,
        "/openai/deployments/dep%20loy/chat/completions?api-version=2024-10-21"
    );
    assert_eq!(requests[1].headers["api-key"], "k-e-y");
}

#[tokio::test]
async fn a_busy_server_is_retried_after_its_delay() {
    let model = Model::default()
        .then(429, &[("retry-after", "0")], "{}")
        .then(503, &[("retry-after", "0")], "busy")
        .says("At last.");
    let url = model.serve().await;
    let given = ask(&url, json!({ "prompt": "Hi", "max_retries": 2 })).await;
    assert_eq!(given.unwrap()["content"], "At last.");
    assert_eq!(model.requests().len(), 3);

    // Without retries, and when the server requests a longer wait than an attempt may have, the policy decides.
    let model = Model::default()
        .then(
            429,
            &[("retry-after", "7")],
            r#"{"error": {"message": "slow down"}}"#,
        )
        .then(429, &[("retry-after", "3600")], "{}");
    let url = model.serve().await;
    let fault = ask(&url, json!({ "prompt": "Hi" })).await.unwrap_err();
    assert_eq!(gist(&fault), json!(["http", "429", true, 7000]));
    assert!(fault.message.contains("slow down"), "{}", fault.message);
    let fault = ask(&url, json!({ "prompt": "Hi", "max_retries": 3 })).await;
    assert_eq!(
        gist(&fault.unwrap_err()),
        json!(["http", "429", true, 3_600_000])
    );
    assert_eq!(model.requests().len(), 2);
}

#[tokio::test]
async fn an_error_of_the_question_is_not_repeated() {
    let model = Model::default().then(400, &[], "no such model");
    let url = model.serve().await;
    let fault = ask(&url, json!({ "prompt": "Hi", "max_retries": 3 })).await;
    assert_eq!(
        gist(&fault.unwrap_err()),
        json!(["http", "400", false, null])
    );
    assert_eq!(model.requests().len(), 1);
}

#[tokio::test]
async fn an_answer_that_is_none_is_a_fault() {
    let cases = [
        ("", "the model gave no answer: nothing at all"),
        (
            "<html>hello</html>",
            "the model gave no answer: <html>hello</html>",
        ),
        ("{}", "the model gave no answer: {}"),
        (r#"{"choices": []}"#, "the model gave no answer: "),
        (
            r#"{"choices": [{"message": {}}]}"#,
            "the model gave no text: ",
        ),
        (
            r#"{"choices": [{"message": {"content": 5}}]}"#,
            "the model gave no text: ",
        ),
        (
            r#"{"choices": [{"message": {"content": null, "refusal": "I will not."}}]}"#,
            "the model refused: I will not.",
        ),
        (
            r#"{"choices": [{"finish_reason": "content_filter", "message": {"content": ""}}]}"#,
            "the answer of the model was removed by a content filter: {\"choices\":",
        ),
        (
            r#"{"choices": [{"finish_reason": "content_filter", "message": {"content": "To make"},
                "content_filter_results": {"hate": {"filtered": true, "severity": "high"}}}]}"#,
            "the answer of the model was removed by a content filter: \
             {\"hate\":{\"filtered\":true,\"severity\":\"high\"}}; its text: To make",
        ),
        (
            r#"{"error": {"message": "out of luck"}}"#,
            "the model's server failed: out of luck",
        ),
        (
            "data: {\"choices\": []}\n\ndata: [DONE]\n\n",
            "the model gave no answer: data: ",
        ),
    ];
    for (body, message) in cases {
        let model = Model::default().then(200, &[("content-type", "application/json")], body);
        let url = model.serve().await;
        let fault = ask(&url, json!({ "prompt": "Hi" })).await.unwrap_err();
        assert_eq!(gist(&fault), json!(["ai", null, true, null]), "{body}");
        assert!(
            fault.message.starts_with(message),
            "{body}: {}",
            fault.message
        );
    }
    let model = Model::default().then(529, &[], "");
    let url = model.serve().await;
    let fault = ask(&url, json!({ "prompt": "Hi" })).await.unwrap_err();
    assert!(fault.message.ends_with("answered 529"), "{fault:?}");
    let parts = r#"{"choices": [{"message": {"content": [{"type": "text", "text": "a"}, {"text": "b"}]}}]}"#;
    let tools = r#"{"choices": [{"message": {"content": null, "tool_calls": [{"id": "1"}]}}]}"#;
    let cut = r#"{"choices": [{"finish_reason": "length", "message": {"content": "{\"a\": "}}]}"#;
    let json_type = [("content-type", "application/json")];
    let model = Model::default()
        .then(200, &json_type, parts)
        .then(200, &json_type, tools)
        .then(200, &json_type, cut);
    let url = model.serve().await;
    let given = ask(&url, json!({ "prompt": "Hi" })).await.unwrap();
    assert_eq!(given, json!({ "content": "ab", "usage": {} }));
    let given = ask(&url, json!({ "prompt": "Hi" })).await.unwrap();
    assert_eq!(
        given,
        json!({ "content": "", "usage": {}, "tool_calls": [{ "id": "1" }] })
    );
    let given = ask(&url, json!({ "prompt": "Hi" })).await.unwrap();
    assert_eq!(
        given,
        json!({ "content": "{\"a\": ", "usage": {}, "finish_reason": "length" })
    );
}

#[tokio::test]
async fn a_slow_server_is_cut() {
    let model = Model::default();
    let url = model.serve().await;
    let fault = ask(&url, json!({ "prompt": "Hi", "timeout": 0.1 }))
        .await
        .unwrap_err();
    assert_eq!(gist(&fault), json!(["timeout", null, true, null]));
    assert_eq!(fault.message, "the model took longer than 100ms");
    let fault = ask("http://127.0.0.1:9", json!({ "prompt": "Hi" }))
        .await
        .unwrap_err();
    assert_eq!(
        gist(&fault),
        json!(["connection", "not-connected", true, null])
    );
}

#[tokio::test]
async fn a_key_is_sent_and_never_seen() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("key");
    std::fs::write(&file, "sk-very-secret\n").unwrap();
    let echo = r#"{"error": "bad key sk-very-secret"}"#;
    let json_type = [
        ("content-type", "application/json"),
        ("x-key", "sk-very-secret"),
    ];
    let model = Model::default()
        .then(401, &json_type, echo)
        .then(200, &json_type, echo)
        .says("Your key is sk-very-secret.");
    let url = model.serve().await;
    let inputs = json!({ "prompt": "Hi", "api_key_file": file.to_str() });
    for _ in 0..2 {
        let fault = ask(&url, inputs.clone()).await.unwrap_err();
        let shown = format!("{fault:?}");
        assert!(!shown.contains("sk-very"), "{shown}");
        assert!(fault.message.contains("***"), "{}", fault.message);
    }
    let given = ask(&url, inputs.clone()).await.unwrap();
    assert_eq!(given["content"], "Your key is ***.");
    for request in model.requests() {
        assert_eq!(request.headers["authorization"], "Bearer sk-very-secret");
    }
    std::fs::write(&file, "").unwrap();
    let fault = ask(&url, inputs).await.unwrap_err();
    assert!(fault.message.ends_with("holds no key"), "{}", fault.message);
}

#[tokio::test]
async fn a_command_is_a_model_too() {
    let run = |inputs: Json| async move { soon(attempt("ai", inputs)).await };
    let given = run(json!({
        "provider": "shell", "command": ["cat"], "system": "Be brief.",
        "messages": [{ "role": "user", "content": "a" }, { "role": "assistant", "content": "b" },
                     { "role": "user", "content": "c" }],
    }));
    assert_eq!(
        given.await.unwrap(),
        json!({ "content": "System: Be brief.\n\na\n\nAssistant: b\n\nc", "usage": {} })
    );
    let given = run(json!({ "command": "tr a-z A-Z", "prompt": "loud\n" })).await;
    assert_eq!(given.unwrap()["content"], "LOUD");
    let given = run(json!({
        "provider": "shell", "shell_provider": { "command": "echo", "args": ["-n", "x"] }, "prompt": "p",
    }));
    assert_eq!(given.await.unwrap()["content"], "x");
    let fault = run(json!({ "command": "echo no luck >&2; exit 3", "prompt": "p" })).await;
    let fault = fault.unwrap_err();
    assert_eq!(gist(&fault), json!(["shell", "3", true, null]));
    assert_eq!(
        fault.message,
        "the model's command ended with exit code 3: no luck"
    );
    let mut slow = request(
        "ai",
        json!({ "command": "sleep 1000", "prompt": "p", "timeout": "0.1" }),
    );
    slow.timeout_ms = None;
    let fault = soon(Registry::new().execute(&slow)).await.unwrap_err();
    assert_eq!(&*fault.kind, "timeout");
}

#[tokio::test]
async fn inputs_that_cannot_be_used() {
    let base = "http://127.0.0.1:9";
    let cases = [
        (
            json!({ "base_url": base, "model": "m" }),
            "`prompt` or `messages` is missing",
        ),
        (
            json!({ "base_url": base, "prompt": "p", "provider": "openai", "model": null }),
            "`model` is missing: or set OPENAI_MODEL",
        ),
        (
            json!({ "base_url": base, "model": "m", "messages": "x" }),
            "`messages` must be a list of messages, not string",
        ),
        (
            json!({ "base_url": base, "model": "m", "messages": [{ "role": "user" }] }),
            "`messages[0]` must have `role` and `content`",
        ),
        (
            json!({ "provider": "litellm", "prompt": "p" }),
            "`provider` must be one of auto, openai, azure, ollama, shell, not \"litellm\"",
        ),
        (
            json!({ "base_url": base, "model": "m", "prompt": "p", "max_retries": -1 }),
            "`max_retries` must be a whole number from 0 to 20, not -1",
        ),
        (
            json!({ "base_url": base, "model": "m", "prompt": "p", "temperature": "hot" }),
            "`temperature` must be a number, not string",
        ),
        (
            json!({ "base_url": base, "model": "m", "prompt": "p", "timeout": -1 }),
            "`timeout` is not a number of seconds",
        ),
        (
            json!({ "provider": "shell", "prompt": "p" }),
            "`command` is missing",
        ),
        (
            json!({ "base_url": "no url", "model": "m", "prompt": "p" }),
            "`base_url` is not a valid URL: relative URL without a base: `no url`",
        ),
        (
            json!({ "api_base": "localhost:1/v1", "model": "m", "prompt": "p" }),
            "`api_base` must begin with http:// or https://, not localhost:",
        ),
        (
            json!({ "base_url": base, "model": "m", "messages": [] }),
            "`messages` is empty",
        ),
    ];
    for (inputs, message) in cases {
        let fault = soon(attempt("ai", inputs.clone())).await.unwrap_err();
        assert_eq!(&*fault.kind, "input", "{inputs}: {fault:?}");
        assert_eq!(fault.message, message, "{inputs}");
    }
}

/// The model as the judge of `reflection.evaluate`.
#[tokio::test]
async fn a_model_judges() {
    let model = Model::default()
        .says(r#"{"valid": false, "score": 0.4, "reason": "too short", "suggestions": ["more"]}"#)
        .says("```json\n{\"valid\": true, \"score\": 1}\n```")
        .says(r#"{"pass": false, "score": "7", "feedback": "not yet"}"#)
        .says("It is valid.")
        .says(r#"{"valid": "yes", "score": 1}"#)
        .says(r#"{"valid": true, "score": "high"}"#)
        .says(r#"{"valid": false, "reason": 5}"#);
    let url = model.serve().await;
    let judge = |data: Json| {
        let inputs = json!({
            "evaluator_type": "llm", "data": data, "prompt": "Is it long?", "model": "m",
            "provider": "openai", "base_url": format!("{url}/v1"),
            "examples": [{ "input": "a", "output": { "valid": true } }],
        });
        async move { soon(attempt("reflection.evaluate", inputs)).await }
    };
    assert_eq!(
        judge(json!({ "text": "short" })).await.unwrap(),
        json!({
            "valid": false, "score": 0.4, "errors": [{ "message": "too short" }],
            "suggestions": ["more"],
        })
    );
    let messages = model.requests()[0].body["messages"].clone();
    assert_eq!(messages[0]["role"], "system");
    assert_eq!(messages[1], json!({ "role": "user", "content": "a" }));
    assert_eq!(
        messages[2],
        json!({ "role": "assistant", "content": "{\"valid\":true}" })
    );
    assert_eq!(
        messages[3],
        json!({ "role": "user", "content": "Is it long?" })
    );
    assert_eq!(
        judge(json!("x")).await.unwrap(),
        json!({ "valid": true, "score": 1.0, "errors": [], "suggestions": [] })
    );
    assert_eq!(
        judge(json!("x")).await.unwrap(),
        json!({
            "valid": false, "score": 7.0, "errors": [{ "message": "not yet" }], "suggestions": [],
        })
    );
    for why in [
        "it is not valid JSON",
        "`valid` is not",
        "`score` is no",
        "`reason` is no",
    ] {
        let fault = judge(json!("x")).await.unwrap_err();
        assert_eq!(&*fault.kind, "ai", "{why}");
        assert!(fault.message.contains(why), "{why}: {}", fault.message);
    }
    let registry = Registry::new();
    let unknown = request("reflection.evaluate", json!({ "evaluator_type": "custom" }));
    let fault = registry.execute(&unknown).await.unwrap_err();
    assert_eq!(&*fault.kind, "input");
}
