//! `http`: faults, and that an aborted attempt leaves no connection open.

use super::{attempt, gist, plain, request, soon};
use crate::support;
use axum::Router;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::routing::get;
use serde_json::{Value as Json, json};
use std::time::{Duration, SystemTime};
use windlass_actions::Registry;
use windlass_expression::Value;
use windlass_model::model::Fault;

async fn fault_of(status: u16, retry_after: Option<String>) -> Fault {
    let status = StatusCode::from_u16(status).unwrap();
    let answer = move || async move {
        let mut headers = HeaderMap::new();
        if let Some(text) = retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_str(&text).unwrap());
        }
        (status, headers, axum::Json(json!({ "error": "no" })))
    };
    let url = support::serve(Router::new().route("/path", get(answer))).await;
    let uri = format!("{url}/path?secret=1");
    attempt("http", json!({ "uri": uri })).await.unwrap_err()
}

#[tokio::test]
async fn a_status_of_400_or_above_fails_and_keeps_the_output() {
    for (status, transient) in [
        (400, false),
        (401, false),
        (404, false),
        (408, true),
        (422, false),
        (429, true),
        (500, true),
        (503, true),
        (599, true),
    ] {
        let fault = fault_of(status, None).await;
        let code = status.to_string();
        assert_eq!(gist(&fault), json!(["http", code, transient, null]));
        let output = plain(fault.output.as_ref().unwrap());
        assert_eq!(output["statusCode"], status);
        assert_eq!(output["body"], json!({ "error": "no" }));
        assert_eq!(output["headers"]["content-type"], "application/json");
    }
    let message = fault_of(404, None).await.message;
    assert!(message.starts_with("GET http://127.0.0.1:"), "{message}");
    assert!(
        message.ends_with(r#"/path answered 404 Not Found: {"error":"no"}"#),
        "{message}"
    );
}

#[tokio::test]
async fn retry_after_is_seconds_or_a_date() {
    let after = |text: &str| fault_of(503, Some(text.to_owned()));
    assert_eq!(after("7").await.retry_after_ms, Some(7_000));
    assert_eq!(after("0").await.retry_after_ms, Some(0));
    assert_eq!(after("soon").await.retry_after_ms, None);
    assert_eq!(after("-1").await.retry_after_ms, None);
    assert_eq!(after("1e300").await.retry_after_ms, None);
    let past = "Sun, 06 Nov 1994 08:49:37 GMT";
    assert_eq!(after(past).await.retry_after_ms, Some(0));
    #[allow(clippy::disallowed_methods)] // The header means the wall clock.
    let in_an_hour = SystemTime::now() + Duration::from_secs(3600);
    let date = httpdate::fmt_http_date(in_an_hour);
    let wait = after(&date).await.retry_after_ms.unwrap();
    assert!((3_500_000..=3_600_000).contains(&wait), "{wait}");
}

#[tokio::test]
async fn a_refused_connection_says_so_and_no_secrets() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let uri = format!("http://user:hunter2@127.0.0.1:{port}/a?sig=hunter2");
    let fault = attempt("http", json!({ "uri": uri })).await.unwrap_err();
    assert_eq!(
        gist(&fault),
        json!(["connection", "not-connected", true, null])
    );
    let expected = format!(
        "cannot reach http://127.0.0.1:{port}/a: tcp connect error: Connection refused (os error 111)"
    );
    assert_eq!(fault.message, expected);
}

#[tokio::test]
async fn an_unknown_host_is_a_connection_fault() {
    let fault = attempt("http", json!({ "uri": "http://nowhere.invalid/" })).await;
    let fault = fault.unwrap_err();
    assert_eq!(
        gist(&fault),
        json!(["connection", "not-connected", true, null])
    );
    assert!(fault.message.contains("dns error"), "{fault:?}");
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_a_connection_fault() {
    for answer in [
        b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nonly this".as_slice(),
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nff\r\nonly this".as_slice(),
        b"this is no HTTP\r\n\r\n".as_slice(),
        b"".as_slice(),
    ] {
        let url = support::serve_and_close(answer, 0).await;
        let fault = attempt("http", json!({ "uri": url })).await.unwrap_err();
        let text = String::from_utf8_lossy(answer);
        assert_eq!(
            gist(&fault),
            json!(["connection", null, true, null]),
            "{text}"
        );
        assert!(fault.message.contains(&url), "{fault:?}");
    }
}

#[tokio::test]
async fn a_timeout_cuts_a_hanging_server() {
    for answer in [
        b"".as_slice(),
        b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nonly this".as_slice(),
    ] {
        let server = support::serve_once(answer).await;
        let mut hanging = request("http", json!({ "uri": server.url }));
        hanging.timeout_ms = Some(200);
        // The registry is stored in a variable, because its end would also close the connection.
        let registry = Registry::new();
        let fault = soon(registry.execute(&hanging)).await.unwrap_err();
        assert_eq!(gist(&fault), json!(["timeout", null, true, null]));
        assert_eq!(fault.message, "the attempt took longer than 200ms");
        soon(server.closed).await.unwrap();
    }
}

#[tokio::test]
async fn a_dropped_attempt_closes_its_connection() {
    let mut server = support::serve_once(b"").await;
    let registry = Registry::new();
    let hanging = request("http", json!({ "uri": server.url }));
    tokio::select! {
        given = registry.execute(&hanging) => panic!("{given:?}"),
        arrived = soon(server.head_arrived) => arrived.unwrap(),
    }
    soon(&mut server.closed).await.unwrap();
}

#[tokio::test]
async fn a_body_beyond_the_limit_is_refused() {
    const LIMIT: usize = 16 << 20;
    let announced = b"HTTP/1.1 200 OK\r\ncontent-length: 16777217\r\n\r\n";
    let server = support::serve_once(announced).await;
    let fault = soon(attempt("http", json!({ "uri": server.url }))).await;
    let refused = json!(["too_large", null, false, null]);
    assert_eq!(gist(&fault.unwrap_err()), refused);

    let head = b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n";
    let url = support::serve_and_close(head, 16).await;
    let fits = request("http", json!({ "uri": url }));
    let output = soon(Registry::new().execute(&fits)).await.unwrap();
    let body = output.get("body").and_then(Value::as_str).unwrap();
    assert_eq!(body.len(), LIMIT);
    let url = support::serve_and_close(head, 17).await;
    let fault = soon(attempt("http", json!({ "uri": url })))
        .await
        .unwrap_err();
    assert_eq!(gist(&fault), refused);
    assert!(
        fault.message.contains("larger than 16 MiB: `saveTo`"),
        "{fault:?}"
    );
    let server = support::serve_once(announced).await;
    let question = json!({ "base_url": server.url, "prompt": "Hi", "model": "m" });
    let fault = soon(attempt("ai", question)).await.unwrap_err();
    assert_eq!(gist(&fault), refused);
    assert!(fault.message.ends_with("larger than 16 MiB"), "{fault:?}");
}

#[tokio::test]
async fn a_result_that_nests_too_deep_is_refused() {
    for (depth, fits) in [(64, true), (65, false), (100, false), (129, false)] {
        let json = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        let answer = move || async move { ([(header::CONTENT_TYPE, "application/json")], json) };
        let url = support::serve(Router::new().route("/", get(answer))).await;
        let given = attempt("http", json!({ "uri": url })).await;
        match given {
            Ok(_) => assert!(fits, "{depth}"),
            Err(fault) => {
                assert!(!fits, "{depth}: {fault:?}");
                assert_eq!(gist(&fault), json!(["too_large", null, false, null]));
            }
        }
    }
}

#[tokio::test]
async fn json_of_many_small_values_is_weighed_before_it_is_read() {
    let heavy = "[{},{}".to_owned() + &",{}".repeat(1 << 20) + "]";
    let heavy: &'static str = heavy.leak();
    let answer = move || async move { ([(header::CONTENT_TYPE, "application/json")], heavy) };
    let text = move || async move { ([(header::CONTENT_TYPE, "text/plain")], heavy) };
    let app = Router::new()
        .route("/json", get(answer).post(answer))
        .route("/text", get(text));
    let url = support::serve(app).await;
    let refused = json!(["too_large", null, false, null]);
    let fault = attempt("http", json!({ "uri": format!("{url}/json") }))
        .await
        .unwrap_err();
    assert_eq!(gist(&fault), refused);
    let why = "the values of the body would need about 640 MiB of memory; the maximum is 256";
    assert_eq!(fault.message, why);
    // The limit applies only to a body that is parsed into values.
    let given = attempt("http", json!({ "uri": format!("{url}/text") })).await;
    assert!(given.unwrap()["body"] == heavy);

    let mut registry = windlass_actions::Registry::new();
    let target = windlass_model::model::HandlerTarget::Url(format!("{url}/json"));
    registry.register_handler("far", target);
    let activity = super::request("activity", json!({ "activityType": "far" }));
    let fault = registry.execute(&activity).await.unwrap_err();
    assert_eq!(gist(&fault), refused, "{fault:?}");
}

#[tokio::test]
async fn inputs_that_cannot_be_used_name_the_key() {
    let cases: [(Json, &str); 17] = [
        (json!("http://x"), "`inputs` must be a map, not string"),
        (json!({}), "`uri` is missing"),
        (
            json!({ "url": "http://x" }),
            "`uri` is missing; it is not called `url`",
        ),
        (json!({ "uri": 5 }), "`uri` must be a string, not integer"),
        (
            json!({ "uri": "/a?key=b" }),
            "`uri` is not a valid URL: relative URL without a base: `/a`",
        ),
        (
            json!({ "uri": "ftp://x" }),
            "`uri` must begin with http:// or https://, not ftp:",
        ),
        (
            json!({ "uri": "http://x", "method": "G T" }),
            "`method` is not a valid HTTP method",
        ),
        (
            json!({ "uri": "http://x", "method": 1 }),
            "`method` must be a string",
        ),
        (
            json!({ "uri": "http://x", "headers": [] }),
            "`headers` must be a map, not array",
        ),
        (
            json!({ "uri": "http://x", "headers": { "a b": 1 } }),
            "`headers.a b` is not a valid name",
        ),
        (
            json!({ "uri": "http://x", "headers": { "a": "x\r\ny: z" } }),
            "`headers.a` is not a valid header",
        ),
        (
            json!({ "uri": "http://x", "headers": { "a": {} } }),
            "`headers.a` must be a single value, not object",
        ),
        (
            json!({ "uri": "http://x", "queries": { "a": {} } }),
            "`queries.a` must be a single value",
        ),
        (
            json!({ "uri": "http://x", "body": { "$content": "!" } }),
            "`body.$content` is not valid base64",
        ),
        (
            json!({ "uri": "http://x", "authentication": { "type": "Basic" } }),
            "`authentication.username` is missing",
        ),
        (
            json!({ "uri": "http://x", "authentication": { "type": "Kerberos" } }),
            "`authentication.type` must be Basic, Bearer, Raw",
        ),
        (
            json!({ "uri": "http://x", "authentication": "x" }),
            "`authentication` must be a map",
        ),
    ];
    for (inputs, expected) in cases {
        let fault = attempt("http", inputs.clone()).await.unwrap_err();
        assert_eq!(
            gist(&fault),
            json!(["input", null, false, null]),
            "{inputs}"
        );
        assert!(
            fault.message.starts_with(expected),
            "{inputs}: {}",
            fault.message
        );
    }
}
