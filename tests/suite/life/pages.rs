//! The pagination policy of Logic Apps: the pages of one Http action are each requested once, through `kill -9`.

use super::process::Place;
use crate::support::serve;
use axum::Router;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, Method};
use axum::response::Json;
use axum::routing::any;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use tokio::sync::watch;

#[derive(Clone)]
struct Pages {
    /// The query of each request, and its credentials.
    requests: Arc<Mutex<Vec<String>>>,
    count: watch::Sender<usize>,
    /// The page whose answer waits until the test allows it.
    held: watch::Sender<Option<usize>>,
    /// The server of the last page, if it is another one.
    elsewhere: Option<String>,
}

impl Pages {
    fn new(elsewhere: Option<String>) -> Self {
        Self {
            requests: Arc::default(),
            count: watch::Sender::new(0),
            held: watch::Sender::new(None),
            elsewhere,
        }
    }

    async fn serve(&self) -> String {
        let router = Router::new().route("/users", any(page));
        serve(router.with_state(self.clone())).await
    }
}

async fn page(
    State(pages): State<Pages>,
    method: Method,
    query: RawQuery,
    headers: HeaderMap,
) -> Json<Value> {
    let query = query.0.unwrap_or_default();
    let page = query
        .strip_prefix("skip=")
        .map_or(0, |page| page.parse().unwrap());
    let token = headers
        .get("authorization")
        .map(|token| token.to_str().unwrap());
    let request = format!("{method} {query} {}", token.unwrap_or("nobody"));
    pages.requests.lock().unwrap().push(request);
    pages.count.send_modify(|count| *count += 1);
    let mut held = pages.held.subscribe();
    held.wait_for(|held| *held != Some(page)).await.unwrap();
    let mut body = json!({ "context": "users", "value": [page * 2, page * 2 + 1] });
    match (page, &pages.elsewhere) {
        (0 | 1, _) => body["@odata.nextLink"] = format!("?skip={}", page + 1).into(),
        (2, Some(base)) => body["nextLink"] = format!("{base}/users?skip=3").into(),
        _ => {}
    }
    Json(body)
}

fn definition(base: &str, wanted: usize) -> String {
    let get = json!({
        "type": "Http",
        "inputs": {
            "method": "POST",
            "uri": format!("{base}/users"),
            "queries": { "top": "2" },
            "body": { "some": "filter" },
            "authentication": { "type": "Raw", "value": "Bearer mine" },
        },
        "runtimeConfiguration": { "paginationPolicy": { "minimumItemCount": wanted } },
    });
    let schema = "https://schema.management.azure.com/providers/Microsoft.Logic/schemas/2016-06-01/workflowdefinition.json#";
    json!({ "definition": {
        "$schema": schema,
        "triggers": { "manual": { "type": "Request" } },
        "actions": { "Get": get },
        "outputs": { "body": { "type": "object", "value": "@body('Get')" } },
    } })
    .to_string()
}

fn requests_to(pages: &Pages) -> Vec<String> {
    pages.requests.lock().unwrap().clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_are_requested_once_through_a_kill() {
    let elsewhere = Pages::new(None);
    let pages = Pages::new(Some(elsewhere.serve().await));
    let base = pages.serve().await;
    let place = Place::new();
    let file = place.file("d.json", &definition(&base, 1_000));
    pages.held.send_replace(Some(2));
    let run = place.follow(&["run", &file, "--id", "p"]);
    let mut count = pages.count.subscribe();
    count.wait_for(|count| *count == 3).await.unwrap();
    run.kill();
    pages.held.send_replace(None);
    let rows: Vec<usize> = (0..8).collect();
    let all = json!({ "body": { "context": "users", "value": rows } });
    assert_eq!(place.json(&["resume", "p"]), all);
    let mine = [
        "POST top=2 Bearer mine",
        "GET skip=1 Bearer mine",
        "GET skip=2 Bearer mine",
    ];
    // The page that was requested at the kill is requested again.
    assert_eq!(requests_to(&pages), [&mine[..], &mine[2..]].concat());
    // Another server gets no credentials.
    assert_eq!(requests_to(&elsewhere), ["GET skip=3 nobody"]);
}

/// A proxy's page in place of JSON is not a last page.
#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_is_no_json_fails() {
    let proxy = Router::new().route("/users", any(async || "down for maintenance"));
    let pages = Pages::new(Some(serve(proxy).await));
    let mut definition: Value =
        serde_json::from_str(&definition(&pages.serve().await, 100)).unwrap();
    definition["definition"]["actions"]["Get"]["inputs"]["retryPolicy"] = json!({ "type": "none" });
    let place = Place::new();
    let file = place.file("d.json", &definition.to_string());
    let ran = place.run(&["run", &file]);
    assert_eq!(ran.status.code(), Some(1), "{ran:?}");
    let stderr = String::from_utf8(ran.stderr).unwrap();
    assert!(
        stderr.contains("its body is not valid JSON: down for"),
        "{stderr}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn no_more_pages_are_requested_than_needed() {
    let pages = Pages::new(None);
    let base = pages.serve().await;
    let place = Place::new();
    for (wanted, rows) in [(1, 2), (2, 2), (3, 4), (100, 6)] {
        let file = place.file("d.json", &definition(&base, wanted));
        let given = place.json(&["run", &file]);
        let value = given["body"]["value"].as_array().unwrap();
        assert_eq!(value.len(), rows, "{wanted}");
        // A single page is returned unchanged, with its link.
        assert_eq!(given["body"].get("@odata.nextLink").is_some(), rows == 2);
    }
}
