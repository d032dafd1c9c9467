//! `HttpWebhook` of a Logic Apps definition, with a service that calls back.

use super::process::Place;
use crate::serve::{Server, Start};
use axum::extract::State;
use axum::{Json, Router, routing::post};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

const DEFINITION: &str = r#"{
  "definition": {
    "$schema": "https://schema.management.azure.com/providers/Microsoft.Logic/schemas/2016-06-01/workflowdefinition.json#",
    "contentVersion": "1.0.0.0",
    "triggers": { "manual": { "type": "Request", "kind": "Http", "inputs": {} } },
    "actions": {
      "Order": {
        "type": "HttpWebhook",
        "runAfter": {},
        "inputs": {
          "subscribe": {
            "method": "POST", "uri": "BASE/begin",
            "body": { "order": 7, "to": "@{ListCallbackUrl()}" }
          },
          "unsubscribe": { "method": "POST", "uri": "BASE/end", "body": { "order": 7 } }
        }
      },
      "Reply": {
        "type": "Compose", "runAfter": { "Order": ["Succeeded"] },
        "inputs": "@concat(body('Order')?['state'], ' ', outputs('Order')?['body']?['count'])"
      }
    },
    "outputs": { "said": { "type": "String", "value": "@outputs('Reply')" } }
  }
}"#;

/// The service's address, and the requests to it in order.
#[allow(clippy::disallowed_methods)] // A test's server is a task of its own.
async fn service() -> (String, UnboundedReceiver<(&'static str, Value)>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let (sender, received) = unbounded_channel();
    type RequestSender = UnboundedSender<(&'static str, Value)>;
    let begin = async |State(sender): State<RequestSender>, Json(body): Json<Value>| {
        sender.send(("begin", body)).unwrap();
        "subscribed"
    };
    let end = async |State(sender): State<RequestSender>, Json(body): Json<Value>| {
        sender.send(("end", body)).unwrap();
        "unsubscribed"
    };
    let router = Router::new()
        .route("/begin", post(begin))
        .route("/end", post(end))
        .with_state(sender);
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    (base, received)
}

fn start(place: &Place) -> Server {
    let state = place.state();
    let start = Start::new(&state).args(&["--public-url", "https://loops.example.com/"]);
    start.token("secret").spawn()
}

/// Starts a run; returns the path of its callback URL once the service has received it.
async fn begun(
    place: &Place,
    id: &str,
    base: &str,
    requests: &mut UnboundedReceiver<(&'static str, Value)>,
) -> String {
    let file = place.file("order.json", &DEFINITION.replace("BASE", base));
    let run = ["run", &file, "--id", id, "--detach"];
    let run = place.run(&run);
    assert!(run.status.success(), "{run:?}");
    let body = loop {
        // A request of an earlier run may arrive late.
        if let ("begin", body) = requests.recv().await.unwrap() {
            break body;
        }
    };
    assert_eq!(body["order"], 7);
    let to = body["to"].as_str().unwrap();
    let path = to.strip_prefix("https://loops.example.com").unwrap();
    assert!(
        path.starts_with(&format!("/v1/callbacks/{id}/Order?")),
        "{to}"
    );
    // Until the service's answer is stored, the run does not know whether the service subscribed.
    while place.json(&["status", id, "-o", "json"])["doing"][0]["signal"] != "Order" {}
    path.to_owned()
}

async fn call_back(server: &Server, path: &str, body: &Value) -> u16 {
    let request = server.ask(reqwest::Method::POST, path);
    let request = crate::serve::with(request, body);
    request.send().await.unwrap().status().as_u16()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_waits_for_a_request_to_its_address_also_after_a_kill() {
    let (base, mut requests) = service().await;
    let place = Place::new();
    let server = start(&place);
    let path = begun(&place, "one", &base, &mut requests).await;
    server.kill();
    let server = start(&place);
    let body = json!({ "state": "paid", "count": 3 });
    assert_eq!(call_back(&server, &path, &body).await, 200);
    let run = place.run(&["resume", "one"]);
    assert!(
        run.status.success() || run.status.code() == Some(2),
        "{run:?}"
    );
    let report = place.json(&["status", "one", "-o", "json"]);
    assert_eq!(report["outcome"]["output"]["said"], "paid 3", "{report}");
    assert_eq!(call_back(&server, &path, &body).await, 409);
    server.stop();
    // It was called back, so it does not unsubscribe.
    assert_eq!(requests.try_recv().ok(), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_that_is_cancelled_unsubscribes() {
    let (base, mut requests) = service().await;
    let place = Place::new();
    let server = start(&place);
    let path = begun(&place, "two", &base, &mut requests).await;
    let cancelled = place.run(&["cancel", "two"]);
    assert!(cancelled.status.success(), "{cancelled:?}");
    assert_eq!(
        requests.recv().await.unwrap(),
        ("end", json!({ "order": 7 }))
    );
    assert_eq!(call_back(&server, &path, &json!({})).await, 409);
    server.stop();
}

#[test]
fn webhooks_at_the_same_time_are_refused() {
    let place = Place::new();
    let each = r#""Each": { "type": "Foreach", "foreach": "@createArray(1, 2)", "runAfter": {}, CONFIG "actions": { "Order""#;
    let inner = DEFINITION.replacen("\"Order\"", each, 1);
    // The foreach ends where the webhook does.
    let inner = inner.replacen(
        "\n      },\n      \"Reply\": {",
        "\n      } } },\n      \"Reply\": {",
        1,
    );
    let inner = inner.replace(
        "{ \"Order\": [\"Succeeded\"] }",
        "{ \"Each\": [\"Succeeded\"] }",
    );
    let at_once = inner.replace("CONFIG", "");
    let file = place.file("each.json", &at_once.replace("BASE", "https://example.com"));
    let checked = place.run(&["validate", &file]);
    let stderr = String::from_utf8(checked.stderr).unwrap();
    assert!(
        stderr.contains("`Order` is in a foreach that runs several items"),
        "{stderr}"
    );
    let one = r#""runtimeConfiguration": { "concurrency": { "repetitions": 1 } },"#;
    let in_turn = inner.replace("CONFIG", one);
    let file = place.file("turn.json", &in_turn.replace("BASE", "https://example.com"));
    let checked = place.run(&["validate", &file]);
    let stderr = String::from_utf8(checked.stderr).unwrap();
    assert!(!stderr.contains("several items"), "{stderr}");
    assert!(
        stderr.contains("`unsubscribe` of `Order` may not be sent in a foreach"),
        "{stderr}"
    );
    // A webhook without `unsubscribe` needs no warning.
    let at = in_turn.find(r#""unsubscribe""#).unwrap();
    let end = at + in_turn[at..].find('\n').unwrap();
    let before = in_turn[..at].trim_end().trim_end_matches(',');
    let without = format!("{before}{}", &in_turn[end..]);
    let file = place.file("one.json", &without.replace("BASE", "https://example.com"));
    let checked = place.run(&["validate", &file]);
    assert!(checked.status.success(), "{checked:?}");
    let stderr = String::from_utf8(checked.stderr).unwrap();
    assert!(!stderr.contains("unsubscribe"), "{stderr}");
}

/// Each sender learns the result: an answer is stored or refused.
#[tokio::test(flavor = "multi_thread")]
async fn a_cancel_and_an_answer_at_once_agree() {
    let (base, mut requests) = service().await;
    let place = Place::new();
    let server = start(&place);
    for round in 0..40 {
        let id = format!("r{round}");
        let path = begun(&place, &id, &base, &mut requests).await;
        let body = json!({ "state": "paid", "count": round });
        let cancel = server
            .ask(reqwest::Method::POST, &format!("/v1/runs/{id}/cancel"))
            .bearer_auth("secret");
        let (called, _) = tokio::join!(call_back(&server, &path, &body), cancel.send());
        let history = place.run(&["history", &id, "--events"]);
        let answered = String::from_utf8_lossy(&history.stdout).contains("Answered");
        assert_eq!(called == 200, answered, "{id}: {called}");
        while requests.try_recv().is_ok() {}
    }
    server.stop();
}
