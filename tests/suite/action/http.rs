//! `http`: the request that is sent, and the result.

use super::{attempt, plain, request};
use crate::{app, support};
use axum::Router;
use axum::http::StatusCode;
use axum::http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use axum::response::{AppendHeaders, IntoResponse, Redirect};
use axum::routing::{any, get};
use serde_json::{Value as Json, json};
use windlass_actions::Registry;

async fn echo(mut inputs: Json) -> Json {
    let url = support::serve(app::router(app::Options::default())).await;
    let path = inputs["uri"].as_str().unwrap_or("/echo").to_owned();
    inputs["uri"] = json!(format!("{url}{path}"));
    attempt("http", inputs).await.unwrap()["body"].clone()
}

async fn body_of(content_type: Option<&'static str>, bytes: &'static [u8]) -> Json {
    let answer = move || async move {
        let mut response = bytes.into_response();
        response.headers_mut().remove(CONTENT_TYPE);
        if let Some(kind) = content_type {
            let kind = kind.parse().unwrap();
            response.headers_mut().insert(CONTENT_TYPE, kind);
        }
        response
    };
    let url = support::serve(Router::new().route("/", get(answer))).await;
    attempt("http", json!({ "uri": url })).await.unwrap()["body"].clone()
}

#[tokio::test]
async fn a_body_is_read_by_its_content_type() {
    let cases: [(Option<&str>, &[u8], Json); 15] = [
        (
            Some("application/json"),
            br#"{"a":[1,2.5,null]}"#,
            json!({"a": [1, 2.5, null]}),
        ),
        (
            Some("Application/JSON; charset=utf-8"),
            b"\xEF\xBB\xBF3",
            json!(3),
        ),
        (
            Some("application/problem+json"),
            br#"{"a":1}"#,
            json!({"a": 1}),
        ),
        (Some("application/json"), b"not json", json!("not json")),
        (Some("application/json"), b"", Json::Null),
        (
            Some("text/plain; charset=utf-8"),
            "grün".as_bytes(),
            json!("grün"),
        ),
        (
            Some("text/plain; charset=\"ISO-8859-1\""),
            b"gr\xFCn",
            json!("grün"),
        ),
        (Some("text/plain"), b"", json!("")),
        (Some("text/plain"), b"17", json!("17")),
        (Some("application/xml"), b"<a/>", json!("<a/>")),
        (None, b"{}", json!("{}")),
        (None, b"", Json::Null),
        (
            Some("application/octet-stream"),
            b"abc",
            json!({"$content-type": "application/octet-stream", "$content": "YWJj"}),
        ),
        (
            Some("image/png"),
            b"\x89PNG",
            json!({"$content-type": "image/png", "$content": "iVBORw=="}),
        ),
        (
            Some("text/plain"),
            b"\xFF\xFE",
            json!({"$content-type": "text/plain", "$content": "//4="}),
        ),
    ];
    for (kind, bytes, expected) in cases {
        assert_eq!(body_of(kind, bytes).await, expected, "{kind:?} {bytes:?}");
    }
}

#[tokio::test]
async fn a_compressed_body_is_unpacked() {
    const PACKED: [u8; 27] = [
        31, 139, 8, 0, 0, 0, 0, 0, 2, 3, 171, 86, 74, 84, 178, 50, 172, 5, 0, 175, 172, 27, 86, 7,
        0, 0, 0,
    ];
    let headers = [
        (CONTENT_TYPE, "application/json"),
        (CONTENT_ENCODING, "gzip"),
    ];
    let answer = move || async move { (headers, PACKED) };
    let url = support::serve(Router::new().route("/", get(answer))).await;
    let output = attempt("http", json!({ "uri": url })).await.unwrap();
    assert_eq!(output["body"], json!({"a": 1}));
}

#[tokio::test]
async fn the_output_has_status_headers_and_links() {
    let answer = || async {
        (
            StatusCode::CREATED,
            AppendHeaders([("X-Many", "a"), ("X-Many", "b"), ("Link", "</2>; rel=next")]),
        )
    };
    let url = support::serve(Router::new().route("/", get(answer))).await;
    let output = attempt("http", json!({ "uri": url })).await.unwrap();
    assert_eq!(output["statusCode"], 201);
    assert_eq!(output["headers"]["x-many"], "a, b");
    assert_eq!(output["links"], json!({ "next": format!("{url}/2") }));

    let url = support::serve(app::router(app::Options::default())).await;
    let last = attempt("http", json!({ "uri": format!("{url}/pages/4") }))
        .await
        .unwrap();
    assert_eq!(last["statusCode"], 200);
    assert_eq!(last.get("links"), None, "{last}");
}

#[tokio::test]
async fn what_the_author_asks_for_is_sent() {
    let seen = echo(json!({
        "uri": "/echo?a=1",
        "queries": { "b": "x y&z", "n": 5, "none": null },
        "cookie": "sid=1; theme=dark",
        "headers": { "X-Number": 1.5, "X-Flag": true, "x-none": null, "Content-Length": "3" },
        "body": { "deep": [1, { "x": null }] },
        "method": "patch",
    }))
    .await;
    assert_eq!(seen["method"], "PATCH");
    assert_eq!(seen["query"], json!({ "a": "1", "b": "x y&z", "n": "5" }));
    assert_eq!(seen["path"], "/echo?a=1&b=x%20y%26z&n=5");
    assert_eq!(seen["body"], json!({ "deep": [1, { "x": null }] }));
    let headers = &seen["headers"];
    assert_eq!(headers["x-number"], "1.5");
    assert_eq!(headers["x-flag"], "true");
    assert_eq!(headers["cookie"], "sid=1; theme=dark");
    assert_eq!(headers.get("x-none"), None);
    assert_eq!(headers["content-type"], "application/json");
    assert_eq!(headers["idempotency-key"], "run-1/loop[3]/an_action");
    assert_eq!(
        headers["user-agent"],
        concat!("windlass/", env!("CARGO_PKG_VERSION"))
    );
}

#[tokio::test]
async fn lists_repeat_queries() {
    let seen = echo(json!({ "queries": { "tag": ["a", "b"] } })).await;
    assert_eq!(seen["path"], "/echo?tag=a&tag=b");
    assert_eq!(seen["method"], "GET");
    assert_eq!(seen["headers"].get("content-type"), None);
}

#[tokio::test]
async fn a_body_is_sent_as_what_it_is() {
    let form = json!({ "Content-Type": "application/x-www-form-urlencoded" });
    let binary = json!({ "$content-type": "image/x", "$content": "aGk=" });
    let cases = [
        (
            json!({ "body": "some text" }),
            "text/plain; charset=utf-8",
            json!("some text"),
        ),
        (
            json!({ "body": "[1]", "headers": { "content-type": "application/json" } }),
            "application/json",
            json!([1]),
        ),
        (json!({ "body": [1, 2] }), "application/json", json!([1, 2])),
        (json!({ "body": false }), "application/json", json!(false)),
        (json!({ "body": binary.clone() }), "image/x", json!("hi")),
        (
            json!({ "body": { "$content-type": "multipart/form-data; boundary=cut", "$multipart": [
                { "headers": { "Content-Disposition": "form-data; name=\"a\"" }, "body": "x" },
                { "body": { "b": 1 } },
                { "body": binary },
            ] } }),
            "multipart/form-data; boundary=cut",
            json!(
                "--cut\r\ncontent-disposition: form-data; name=\"a\"\r\n\r\nx\r\n\
                 --cut\r\ncontent-type: application/json\r\n\r\n{\"b\":1}\r\n\
                 --cut\r\ncontent-type: image/x\r\n\r\nhi\r\n--cut--\r\n"
            ),
        ),
        (
            json!({ "body": { "a": "x y", "b": [1, 2] }, "headers": form }),
            "application/x-www-form-urlencoded",
            json!("a=x+y&b=1&b=2"),
        ),
        (
            json!({
                "body": { "a": ["x", 1], "rows.csv": { "$content-type": "text/csv", "$content": "aGk=" } },
                "headers": { "content-type": "multipart/form-data; boundary=cut" },
            }),
            "multipart/form-data; boundary=cut",
            json!(
                "--cut\r\ncontent-disposition: form-data; name=\"a\"\r\n\r\nx\r\n\
                 --cut\r\ncontent-disposition: form-data; name=\"a\"\r\n\r\n1\r\n\
                 --cut\r\ncontent-disposition: form-data; name=\"rows.csv\"; filename=\"rows.csv\"\r\n\
                 content-type: text/csv\r\n\r\nhi\r\n--cut--\r\n"
            ),
        ),
    ];
    for (mut inputs, content_type, body) in cases {
        inputs["method"] = json!("POST");
        let seen = echo(inputs.clone()).await;
        assert_eq!(seen["headers"]["content-type"], content_type, "{inputs}");
        assert_eq!(seen["body"], body, "{inputs}");
    }
}

#[tokio::test]
async fn the_author_may_choose_the_key() {
    let seen = echo(json!({ "headers": { "Idempotency-Key": "mine" } })).await;
    assert_eq!(seen["headers"]["idempotency-key"], "mine");
}

#[tokio::test]
async fn authentication_becomes_a_header() {
    let cases = [
        (
            json!({ "type": "Basic", "username": "user", "password": "pass" }),
            "Basic dXNlcjpwYXNz",
        ),
        (json!({ "type": "raw", "value": "Token x" }), "Token x"),
        (json!({ "type": "Bearer", "token": "t" }), "Bearer t"),
        (json!({ "type": "Bearer", "value": "t" }), "Bearer t"),
    ];
    for (authentication, expected) in cases {
        let seen = echo(json!({ "authentication": authentication })).await;
        assert_eq!(seen["headers"]["authorization"], expected);
    }
}

#[tokio::test]
async fn redirects_are_followed() {
    let router = app::router(app::Options::default())
        .route(
            "/moved",
            any(|| async { Redirect::temporary("/echo?from=moved") }),
        )
        .route("/other", any(|| async { Redirect::to("/echo") }))
        .route("/around", any(|| async { Redirect::to("/around") }));
    let url = support::serve(router).await;
    let call = |path: &str| json!({ "method": "POST", "uri": format!("{url}{path}"), "body": "b" });

    let response = attempt("http", call("/moved")).await.unwrap()["body"].clone();
    assert_eq!(
        (&response["method"], &response["body"]),
        (&json!("POST"), &json!("b"))
    );
    assert_eq!(response["query"], json!({ "from": "moved" }));
    let seen_other = attempt("http", call("/other")).await.unwrap();
    assert_eq!(seen_other["body"]["method"], "GET");

    let fault = attempt("http", call("/around")).await.unwrap_err();
    assert_eq!(super::gist(&fault), json!(["http", null, false, null]));
    assert!(fault.message.contains("redirects too often"), "{fault:?}");
}

#[tokio::test]
async fn a_status_below_400_that_leads_nowhere_is_an_answer() {
    let answer = || async { StatusCode::NOT_MODIFIED };
    let url = support::serve(Router::new().route("/", get(answer))).await;
    let output = attempt("http", json!({ "uri": url })).await.unwrap();
    assert_eq!(output["statusCode"], 304);
    assert_eq!(output["body"], Json::Null);
}

#[tokio::test]
async fn a_large_body_arrives_whole() {
    let answer = || async { "x".repeat(5 << 20) };
    let url = support::serve(Router::new().route("/", get(answer))).await;
    let output = attempt("http", json!({ "uri": url })).await.unwrap();
    assert_eq!(output["body"].as_str().unwrap().len(), 5 << 20);
}

#[tokio::test]
async fn attempts_of_one_action_bear_one_key() {
    let url = support::serve(app::router(app::Options::default())).await;
    let uri = format!("{url}/flaky?fails=2&key=k&after=7");
    let registry = Registry::new();
    let mut flaky = request("http", json!({ "uri": uri }));
    for tries in 1..=2 {
        flaky.attempt = tries;
        let fault = registry.execute(&flaky).await.unwrap_err();
        assert_eq!(super::gist(&fault), json!(["http", "503", true, 7000]));
    }
    flaky.attempt = 3;
    let output = plain(&registry.execute(&flaky).await.unwrap());
    assert_eq!(output["body"], json!({ "status": "ok", "calls": 3 }));
    let log = attempt("http", json!({ "uri": format!("{url}/log") }))
        .await
        .unwrap();
    assert_eq!(
        log["body"]["requests"],
        json!([{ "method": "GET", "path": "/flaky?fails=2&key=k&after=7", "key": "run-1/loop[3]/an_action", "count": 3 }])
    );
}
