//! `ifChanged`: a loop whose requests name the version of the last answer, with servers that count requests.

use crate::life::first_use::Folder;
use crate::support::serve;
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{Response, StatusCode};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use tokio::sync::Notify;

/// A job that ends at the sixth request. Its answer changes at the fourth and at the sixth.
#[derive(Clone)]
struct Job {
    /// The header with the version, and the header of a request that names it.
    headers: (&'static str, &'static str),
    /// The number of the request, from 1, that is not answered at first.
    silent_at: Option<usize>,
    is_silent: Arc<Notify>,
    seen: Arc<Mutex<Seen>>,
}

#[derive(Default)]
struct Seen {
    /// The statuses of the answered requests.
    statuses: Vec<u16>,
    was_silent: bool,
}

impl Job {
    fn new(headers: (&'static str, &'static str)) -> Self {
        Self {
            headers,
            silent_at: None,
            is_silent: Arc::default(),
            seen: Arc::default(),
        }
    }

    async fn start(&self) -> String {
        serve(Router::new().fallback(answer).with_state(self.clone())).await
    }

    fn statuses(&self) -> Vec<u16> {
        self.seen.lock().unwrap().statuses.clone()
    }
}

const ETAG: (&str, &str) = ("etag", "if-none-match");
const DATE: (&str, &str) = ("last-modified", "if-modified-since");

async fn answer(State(job): State<Job>, request: Request) -> Response<Body> {
    let (is_silent, number) = {
        let mut seen = job.seen.lock().unwrap();
        let number = seen.statuses.len() + 1;
        let is_silent = job.silent_at == Some(number) && !seen.was_silent;
        seen.was_silent |= is_silent;
        (is_silent, number)
    };
    if is_silent {
        job.is_silent.notify_one();
        std::future::pending::<()>().await;
    }
    let (version, state) = match number {
        0..=3 => (1, "queued"),
        4..=5 => (2, "running"),
        _ => (3, "done"),
    };
    let version = match job.headers {
        DATE => format!("Sat, 31 Jan 2026 08:00:0{version} GMT"),
        _ => format!("W/\"{version}\""),
    };
    let known = request.headers().get(job.headers.1);
    let is_known = known.is_some_and(|known| *known == *version);
    let status = match is_known {
        true => StatusCode::NOT_MODIFIED,
        false => StatusCode::OK,
    };
    job.seen.lock().unwrap().statuses.push(status.as_u16());
    let mut response = Response::builder().status(status);
    let body = match is_known {
        true => Body::empty(),
        false => {
            response = response
                .header("content-type", "application/json")
                .header(job.headers.0, version);
            Body::from(json!({ "state": state, "path": request.uri().path() }).to_string())
        }
    };
    response.body(body).unwrap()
}

fn workflow(uri: &str, more: &str) -> String {
    format!(
        "
variables: {{ states: [] }}
actions:
  wait:
    type: until
    condition: \"@equals(body('job').state, 'done')\"
    limit: {{ count: 20 }}
    delay: 5ms
    actions:
      job: {{ type: http, uri: \"{uri}\", ifChanged: true{more} }}
      keep: {{ type: appendToArrayVariable, inputs: {{ name: states, value: \"@concat(body('job').state, ' ', outputs('job').statusCode)\" }} }}
outputs: {{ states: \"@variables('states')\", body: \"@body('job')\" }}
"
    )
}

const STATES: [&str; 6] = [
    "queued 200",
    "queued 304",
    "queued 304",
    "running 200",
    "running 304",
    "done 200",
];

fn output(out: &str) -> Value {
    serde_json::from_str(out).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_without_news_keeps_the_last_body() {
    for headers in [ETAG, DATE] {
        let folder = Folder::new();
        let job = Job::new(headers);
        let url = job.start().await;
        // A request that contains a secret is recognised after a restart, too.
        folder.file("wait.yaml", workflow(&format!("{url}/${{secret:job}}"), ""));
        folder.file("job", "seven-and-eight");
        let ran = folder
            .run(&["run", "wait.yaml", "--secrets", "."])
            .left(0, &[]);
        let report = output(&ran.out);
        assert_eq!(report["states"], json!(STATES), "{headers:?}");
        assert_eq!(report["body"]["path"], "/***", "{headers:?}");
        assert_eq!(
            job.statuses(),
            [200, 304, 304, 200, 304, 200],
            "{headers:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_at_any_request_costs_no_further_answer() {
    for silent_at in 1..=6 {
        let folder = Folder::new();
        let job = Job {
            silent_at: Some(silent_at),
            ..Job::new(ETAG)
        };
        let url = job.start().await;
        folder.file("wait.yaml", workflow(&url, ""));
        let mut run = folder.start(&["run", "wait.yaml", "--id", "wait"]);
        job.is_silent.notified().await;
        run.kill().unwrap();
        run.wait().unwrap();
        let ran = folder.run(&["resume", "wait"]).left(0, &[]);
        assert_eq!(output(&ran.out)["states"], json!(STATES), "{silent_at}");
        assert_eq!(
            job.statuses(),
            [200, 304, 304, 200, 304, 200],
            "{silent_at}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_is_not_sent_to_another_address() {
    let folder = Folder::new();
    let job = Job::new(ETAG);
    let url = job.start().await;
    let text = workflow(&format!("{url}/@{{variables('loopIndex')}}"), "");
    folder.file("wait.yaml", text);
    folder.run(&["run", "wait.yaml"]).left(0, &[]);
    assert_eq!(job.statuses(), [200; 6]);
}

#[test]
fn a_request_without_a_loop_is_warned_of() {
    let folder = Folder::new();
    let job = "type: http, uri: \"http://127.0.0.1:1/\", ifChanged: true";
    folder.file("w.yaml", format!("actions: {{ job: {{ {job} }} }}\n"));
    let warning = "`ifChanged` of `job` has no effect: no loop is around it";
    folder.run(&["validate", "w.yaml"]).left(0, &[warning]);
    folder.file("w.yaml", workflow("http://127.0.0.1:1/", ""));
    let looped = folder.run(&["validate", "w.yaml"]).left(0, &[]);
    assert!(!looped.err.contains("has no effect"), "{looped:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_poll_in_one_line_requests_what_has_changed() {
    let folder = Folder::new();
    let job = Job::new(ETAG);
    let url = job.start().await;
    let line = [
        "poll",
        "--url",
        &url,
        "--until",
        "body.state == 'done'",
        "--every",
        "5ms",
        "--if-changed",
    ];
    let polled = tokio::task::block_in_place(|| folder.run(&line).left(0, &[]));
    assert!(polled.out.contains("done"), "{polled:?}");
    assert_eq!(job.statuses(), [200, 304, 304, 200, 304, 200]);
    let alone = ["poll", "--url", &url, "--if-changed"];
    tokio::task::block_in_place(|| folder.run(&alone).left(2, &["--until"]));
}
