//! Tokens with roles, and the audit log.

use super::{COUNT, SLEEP, Server, Start, answer, windlass, with};
use reqwest::Method;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;

const TOKENS: [(&str, &str); 3] = [
    ("view", "looks-token"),
    ("operate", "works-token"),
    ("admin", "rules-token"),
];

/// Each route except `GET`, and the lowest role that it needs. Every `GET` needs `view`, except the last ones.
const ROUTES: &[(&str, &str, &str)] = &[
    ("view", "POST", "/v1/validate"),
    ("view", "POST", "/v1/language/complete"),
    ("view", "POST", "/v1/language/hover"),
    ("view", "POST", "/v1/language/symbols"),
    ("view", "POST", "/v1/language/panel"),
    ("view", "POST", "/v1/language/edit"),
    ("view", "POST", "/v1/language/types"),
    ("view", "POST", "/v1/language/stubs"),
    ("view", "POST", "/v1/language/try"),
    ("view", "POST", "/v1/language/schedule"),
    ("view", "POST", "/v1/runs/{run}/test-condition"),
    ("view", "POST", "/v1/session"),
    ("view", "DELETE", "/v1/session"),
    ("operate", "POST", "/v1/runs"),
    ("operate", "POST", "/v1/runs/bulk"),
    ("operate", "POST", "/v1/runs/{run}/pause"),
    ("operate", "POST", "/v1/runs/{run}/resume"),
    ("operate", "POST", "/v1/runs/{run}/cancel"),
    ("operate", "POST", "/v1/runs/{run}/signal"),
    ("operate", "POST", "/v1/runs/{run}/retry"),
    ("operate", "POST", "/v1/resume"),
    ("admin", "PUT", "/v1/workflows/{name}"),
    ("admin", "DELETE", "/v1/workflows/{name}"),
    ("admin", "POST", "/v1/workflows/{name}/schedule/pause"),
    ("admin", "POST", "/v1/workflows/{name}/schedule/resume"),
    ("admin", "PUT", "/v1/state/{workflow}/{name}"),
    ("admin", "DELETE", "/v1/state/{workflow}/{name}"),
    ("admin", "POST", "/v1/prune"),
    ("admin", "GET", "/v1/audit"),
];

/// The routes that are protected by a signature of the request.
const SIGNED: [(&str, &str); 3] = [
    ("GET", "/v1/callbacks/{run}/{signal}"),
    ("POST", "/v1/callbacks/{run}/{signal}"),
    ("POST", "/v1/hooks/{workflow}"),
];

#[tokio::test(flavor = "multi_thread")]
async fn every_route_has_a_role() {
    let dir = tempfile::tempdir().unwrap();
    let state = dir.path().join("state");
    let server = Start::new(&state).roles(dir.path(), &TOKENS).spawn();
    let call = server.ask(Method::GET, "/openapi.json");
    let (_, description) = answer(call.bearer_auth("looks-token")).await;
    let mut described = BTreeSet::new();
    for (path, item) in description["paths"].as_object().unwrap() {
        for method in item.as_object().unwrap().keys() {
            described.insert((method.to_uppercase(), path.clone()));
        }
    }
    for (method, path) in SIGNED {
        assert!(
            described.remove(&(method.to_owned(), path.to_owned())),
            "{method} {path}"
        );
        let request = server.ask(method.parse().unwrap(), &path.replace(['{', '}'], ""));
        let status = request.send().await.unwrap().status().as_u16();
        assert!(matches!(status, 400 | 404), "{method} {path}: {status}");
    }
    let written: BTreeSet<(String, String)> = ROUTES
        .iter()
        .map(|(_, method, path)| ((*method).to_owned(), (*path).to_owned()))
        .collect();
    let without_role: Vec<_> = described
        .iter()
        .filter(|route| route.0 != "GET" && !written.contains(*route))
        .collect();
    assert!(without_role.is_empty(), "{without_role:?}");
    let gone: Vec<_> = written.difference(&described).collect();
    assert!(gone.is_empty(), "{gone:?}");

    let open = ["/healthz", "/readyz"];
    let read = described.iter().filter(|route| {
        route.0 == "GET" && !written.contains(*route) && !open.contains(&&*route.1)
    });
    let read = read.map(|route| ("view", &*route.0, &*route.1));
    for (role, method, path) in read.chain(ROUTES.iter().copied()) {
        let path = path.replace(['{', '}'], "");
        let method: Method = method.parse().unwrap();
        let mut allowed = false;
        for (own, token) in TOKENS {
            allowed |= own == role;
            // Streams do not end, so only the head of the answer is read.
            let request = server.ask(method.clone(), &path).bearer_auth(token);
            let status = request.send().await.unwrap().status().as_u16();
            assert_eq!(status != 403, allowed, "{own}: {method} {path}: {status}");
        }
        let status = server
            .ask(method.clone(), &path)
            .send()
            .await
            .unwrap()
            .status();
        assert_eq!(status, 401, "{method} {path}");
    }
}

/// Waits until a request with a token is answered with this status.
async fn until(server: &Server, token: &str, wanted: u16) {
    for _ in 0..20_000 {
        let (status, _) = answer(server.ask(Method::GET, "/v1/me").bearer_auth(token)).await;
        if status == wanted {
            return;
        }
    }
    panic!("{token} does not get {wanted}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_file_is_read_again_when_it_changes() {
    let dir = tempfile::tempdir().unwrap();
    let state = dir.path().join("state");
    let server = Start::new(&state).roles(dir.path(), &TOKENS).spawn();
    let file = dir.path().join("tokens");
    let write = |text: &str| {
        let new = dir.path().join("new");
        std::fs::write(&new, text).unwrap();
        std::fs::rename(new, &file).unwrap();
    };
    let session = server.ask(Method::POST, "/v1/session");
    let session = session.bearer_auth("works-token").send().await.unwrap();
    let cookie = session.headers()["set-cookie"].to_str().unwrap();
    let cookie = cookie.split(';').next().unwrap().to_owned();
    let stream = server.ask(Method::GET, "/v1/events");
    let mut stream = stream.bearer_auth("works-token").send().await.unwrap();
    assert_eq!(stream.status(), 200);

    write("alice admin fresh-token\nview view looks-token\n");
    until(&server, "fresh-token", 200).await;
    until(&server, "works-token", 401).await;
    // The token's session and stream end with it.
    let call = server.ask(Method::GET, "/v1/me").header("cookie", cookie);
    assert_eq!(answer(call).await.0, 401);
    while stream.chunk().await.unwrap().is_some() {}
    let (_, me) = answer(server.ask(Method::GET, "/v1/me").bearer_auth("fresh-token")).await;
    assert_eq!(me, json!({ "access": "admin", "name": "alice" }));

    // An invalid file changes nothing. The next file shows that it was read.
    write("alice admin fresh-token\nsecret-token view\n");
    let logged = server.log_until("the token file is not valid");
    assert!(logged.contains("line 2"), "{logged}");
    until(&server, "looks-token", 200).await;
    until(&server, "secret-token", 401).await;
    write("bob view last-token\n");
    until(&server, "last-token", 200).await;
    until(&server, "fresh-token", 401).await;
    let (status, stderr) = server.stop();
    assert!(status.success());
    assert!(!stderr.contains("-token"), "{stderr}");
}

/// The entries of the audit log, the oldest first, as `NAME ACTION TARGET RESULT`.
fn entries(report: &Value) -> Vec<String> {
    let mut lines: Vec<String> = report["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| {
            let of = |name: &str| entry[name].as_str().unwrap_or("-").to_owned();
            [of("name"), of("action"), of("target"), of("result")].join(" ")
        })
        .collect();
    lines.reverse();
    lines
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_changed_is_in_the_audit_log_after_a_kill() {
    let dir = tempfile::tempdir().unwrap();
    let state = dir.path().join("state");
    let start = || Start::new(&state).roles(dir.path(), &TOKENS);
    let server = start().spawn();
    let ask = async |token: &str, method: Method, path: &str, body: Value| {
        let request = server.ask(method, path).bearer_auth(token);
        answer(with(request, &body)).await
    };
    let body = json!({ "text": SLEEP, "run": "one" });
    assert_eq!(
        ask("works-token", Method::POST, "/v1/runs", body).await.0,
        201
    );
    let post = |path: &'static str| ask("works-token", Method::POST, path, json!({}));
    assert_eq!(post("/v1/runs/one/pause").await.0, 200);
    assert_eq!(post("/v1/runs/two/pause").await.0, 404);
    let bulk = json!({ "do": "resume", "runs": ["one", "three"] });
    assert_eq!(
        ask("works-token", Method::POST, "/v1/runs/bulk", bulk)
            .await
            .0,
        200
    );
    // A refused request is in the server's log, and a read is in neither log.
    assert_eq!(
        ask(
            "looks-token",
            Method::POST,
            "/v1/runs/one/cancel",
            json!({})
        )
        .await
        .0,
        403
    );
    assert_eq!(
        ask("looks-token", Method::GET, "/v1/runs", Value::Null)
            .await
            .0,
        200
    );
    let text = json!({ "text": COUNT });
    assert_eq!(
        ask("rules-token", Method::PUT, "/v1/workflows/saved", text)
            .await
            .0,
        201
    );
    let value = json!({ "value": 1 });
    assert_eq!(
        ask("rules-token", Method::PUT, "/v1/state/saved/n", value)
            .await
            .0,
        200
    );
    assert!(windlass(&state, &["cancel", "one"]).status.success());

    let user = std::process::Command::new("id")
        .arg("-un")
        .output()
        .unwrap();
    let user = String::from_utf8(user.stdout).unwrap().trim().to_owned();
    let mut wanted: Vec<String> = [
        "operate start one done",
        "operate pause one done",
        "operate pause two unknown-run",
        "operate resume one done",
        "operate resume three unknown-run",
        "admin put-workflow saved done",
        "admin put-state saved/n done",
    ]
    .map(String::from)
    .into();
    wanted.push(format!("{user} cancel one done"));
    let mut server = server;
    server.child.kill().unwrap();
    server.child.wait().unwrap();

    // Without a server the file is read, including the entry of a command that opened the store.
    let read = || {
        let listed = windlass(&state, &["audit", "-o", "json"]);
        assert!(listed.status.success(), "{listed:?}");
        let list: Value = serde_json::from_slice(&listed.stdout).unwrap();
        json!({ "entries": list })
    };
    assert_eq!(entries(&read()), wanted);
    assert!(
        windlass(&state, &["workflow", "delete", "saved"])
            .status
            .success()
    );
    wanted.push(format!("{user} delete-workflow saved done"));
    let server = start().spawn();
    let call = server
        .ask(Method::GET, "/v1/audit")
        .bearer_auth("rules-token");
    let (status, report) = answer(call).await;
    assert_eq!(status, 200, "{report}");
    assert_eq!(entries(&report), wanted);
    let from: Vec<&str> = report["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["from"].as_str().unwrap())
        .collect();
    assert_eq!(&from[..3], ["command line", "control socket", "127.0.0.1"]);
    let call = server.ask(
        Method::GET,
        "/v1/audit?action=pause&target=one&name=operate&limit=1",
    );
    let (_, report) = answer(call.bearer_auth("rules-token")).await;
    assert_eq!(entries(&report), ["operate pause one done"]);
    let file = std::fs::metadata(state.join("audit.jsonl")).unwrap();
    assert_eq!(file.mode() & 0o777, 0o600);
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_changed_that_the_audit_log_cannot_store() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path());
    let run = server.begin(SLEEP, Value::Null).await;
    // A killed server leaves a command without a result.
    let file = dir.path().join("audit.jsonl");
    let text = std::fs::read_to_string(&file).unwrap();
    let (first, _) = text.split_once('\n').unwrap();
    server.stop();
    std::fs::write(&file, first).unwrap();
    let listed = windlass(dir.path(), &["audit", "-o", "json"]);
    let list: Value = serde_json::from_slice(&listed.stdout).unwrap();
    assert_eq!(list[0]["result"], "unknown", "{list}");

    std::fs::remove_file(&file).unwrap();
    std::fs::create_dir(&file).unwrap();
    let server = Server::start(dir.path());
    let pause = format!("/v1/runs/{run}/pause");
    let (status, problem) = answer(server.ask(Method::POST, &pause)).await;
    assert_eq!(
        (status, &problem["type"]),
        (503, &json!("urn:windlass:store")),
        "{problem}"
    );
    let (_, report) = server.get(&format!("/v1/runs/{run}")).await;
    assert_eq!(report["status"], "Waiting");
    std::fs::remove_dir(&file).unwrap();
    assert_eq!(answer(server.ask(Method::POST, &pause)).await.0, 200);
}
