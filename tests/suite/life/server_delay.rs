//! A loop polls again at the time that the server requests, and an exhausted quota is not a refusal.

use crate::life::first_use::Folder;
use crate::support::serve;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::routing::get;
use axum::{Json, Router};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::Instant;

/// A server whose first answer is this one.
#[derive(Clone)]
struct First {
    status: u16,
    headers: Vec<(&'static str, &'static str)>,
    requests: Arc<Mutex<Vec<(String, Instant)>>>,
}

impl First {
    fn new(status: u16, headers: &[(&'static str, &'static str)]) -> Self {
        Self {
            status,
            headers: headers.to_vec(),
            requests: Arc::default(),
        }
    }

    async fn serve(&self) -> String {
        let router = Router::new().route("/{job}", get(answer));
        serve(router.with_state(self.clone())).await
    }

    /// The times between the requests for a job.
    fn gaps(&self, job: &str) -> Vec<Duration> {
        let requests = self.requests.lock().unwrap();
        let times: Vec<Instant> = requests
            .iter()
            .filter(|(of, _)| of == job)
            .map(|(_, at)| *at)
            .collect();
        times.windows(2).map(|pair| pair[1] - pair[0]).collect()
    }
}

async fn answer(
    State(first): State<First>,
    Path(job): Path<String>,
) -> (StatusCode, HeaderMap, Json<Value>) {
    let mut requests = first.requests.lock().unwrap();
    let is_first = requests.iter().all(|(of, _)| *of != job);
    requests.push((job, Instant::now()));
    if !is_first {
        return (
            StatusCode::OK,
            HeaderMap::new(),
            Json(json!({ "status": "done" })),
        );
    }
    let headers = first.headers.iter().map(|(name, value)| {
        let name = HeaderName::from_static(name);
        (name, HeaderValue::from_static(value))
    });
    let status = StatusCode::from_u16(first.status).unwrap();
    (
        status,
        headers.collect(),
        Json(json!({ "status": "running" })),
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_poll_asks_again_when_the_server_says() {
    let folder = Folder::new();
    for (number, headers, least) in [
        (0, &[("retry-after", "1")][..], 1000),
        (1, &[("retry-after-ms", "400")], 400),
        (2, &[("openai-poll-after-ms", "400")], 400),
        (3, &[("x-poll-interval", "1")], 1000),
        (
            4,
            &[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "1")],
            1000,
        ),
        (5, &[("ratelimit", "\"default\";r=0;t=1")], 1000),
        // A time in the past, or no time, leaves the interval of the loop.
        (6, &[("retry-after", "Sat, 31 Jan 2026 08:00:00 GMT")], 200),
        (7, &[], 200),
    ] {
        let first = First::new(200, headers);
        let url = format!("{}/job", first.serve().await);
        let id = format!("poll-{number}");
        let until = "body.status == 'done'";
        let line = [
            "poll", "--url", &url, "--until", until, "--every", "200ms", "--id", &id,
        ];
        folder.run(&line).left(0, &[]);
        let gaps = first.gaps("job");
        assert_eq!(gaps.len(), 1, "{headers:?}");
        assert!(
            gaps[0] >= Duration::from_millis(least),
            "{headers:?}: {gaps:?}"
        );
    }
}

const FILE: &str = "
actions:
  wait:
    type: until
    condition: \"@equals(body('look').status, 'done')\"
    delay: DELAY
    actions:
      look: { type: http, inputs: { uri: \"URL\" } }
";

#[tokio::test(flavor = "multi_thread")]
async fn a_loop_of_a_file_waits_as_the_server_says() {
    let folder = Folder::new();
    for (number, delay, least) in [
        (0, "server", 1000),
        (1, "{ type: server, interval: 10ms }", 1000),
        (2, "{ type: server, interval: 1500ms }", 1500),
        (
            4,
            "{ type: server, interval: \"@concat('PT', 1.5, 'S')\" }",
            1500,
        ),
        (
            3,
            "{ type: Server, interval: 10ms, maxInterval: 50ms }",
            1000,
        ),
    ] {
        let first = First::new(202, &[("retry-after", "1")]);
        let url = format!("{}/job", first.serve().await);
        let file = format!("wait-{number}.yaml");
        folder.file(&file, FILE.replace("DELAY", delay).replace("URL", &url));
        folder.run(&["run", &file]).left(0, &[]);
        let gaps = first.gaps("job");
        assert_eq!(gaps.len(), 1, "{delay}");
        assert!(gaps[0] >= Duration::from_millis(least), "{delay}: {gaps:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_spent_quota_is_waited_for_and_a_refusal_is_not() {
    let folder = Folder::new();
    let file = "
actions:
  look:
    type: http
    inputs: { uri: \"URL\" }
    retry: { count: 3, type: fixed, interval: 300ms }
";
    for (number, headers, least) in [
        (0, &[("retry-after", "1")][..], Some(1000)),
        (
            1,
            &[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "1")],
            Some(1000),
        ),
        // A date in the past never shortens the interval of the loop.
        (
            2,
            &[("retry-after", "Sat, 31 Jan 2026 08:00:00 GMT")],
            Some(300),
        ),
        (3, &[("x-ratelimit-remaining", "4812")], None),
        (4, &[], None),
    ] {
        let first = First::new(403, headers);
        let url = format!("{}/job", first.serve().await);
        let name = format!("quota-{number}.yaml");
        folder.file(&name, file.replace("URL", &url));
        let printed = folder.run(&["run", &name]);
        let gaps = first.gaps("job");
        match least {
            Some(least) => {
                printed.left(0, &[]);
                assert_eq!(gaps.len(), 1, "{headers:?}");
                assert!(
                    gaps[0] >= Duration::from_millis(least),
                    "{headers:?}: {gaps:?}"
                );
            }
            None => {
                printed.left(1, &["403"]);
                assert_eq!(gaps.len(), 0, "{headers:?}");
            }
        }
    }
}
