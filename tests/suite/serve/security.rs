//! Authentication: which requests are accepted.

use super::{Server, Start, answer};
use reqwest::Method;
use std::io::Read;
use std::process::Stdio;

#[test]
fn a_name_or_an_origin_that_could_never_match_is_refused() {
    for (flag, value, hint) in [
        (
            "--allow-origin",
            "https://board.example/",
            "write https://board.example",
        ),
        ("--allow-origin", "board", "e.g. https://board.example"),
        ("--allow-host", "lo.example:7488", "no scheme and no port"),
        ("--listen", "localhost", "and a port, e.g. 127.0.0.1:7465"),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_windlass"));
        command.args(["serve", flag, value, "--state"]);
        let output = command.arg(dir.path()).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        assert!(stderr.contains(hint), "{stderr}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_wanted_for_everything_but_health() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("token");
    std::fs::write(&file, "  a-long-secret\n").unwrap();
    let state = dir.path().join("state");
    let args = ["--token-file", file.to_str().unwrap()];
    let server = Start::new(&state).args(&args).spawn();
    assert_eq!(server.get("/healthz").await.0, 200);
    assert_eq!(server.get("/readyz").await.0, 200);
    for path in ["/v1/runs", "/v1/runs/x/events", "/metrics", "/nothing"] {
        let (status, problem) = server.get(path).await;
        assert_eq!(status, 401, "{path}");
        assert_eq!(problem["type"], "urn:windlass:unauthorized");
    }
    let bearing = |token: &str| answer(server.ask(Method::GET, "/v1/runs").bearer_auth(token));
    assert_eq!(bearing("a-long-secre").await.0, 401);
    assert_eq!(bearing("a-long-secret").await.0, 200);
    let with = |value| {
        let request = server.ask(Method::GET, "/v1/runs");
        answer(request.header("authorization", value))
    };
    assert_eq!(with("bearer a-long-secret").await.0, 200);
    for value in ["Bearer a-long-secrets", "Bearer", "Basic a-long-secret", ""] {
        assert_eq!(with(value).await.0, 401, "{value}");
    }
    let (status, stderr) = server.stop();
    assert!(status.success());
    assert!(!stderr.contains("a-long-secret"));

    // The same with a token from the environment.
    let server = Start::new(&state).token("other").spawn();
    assert_eq!(server.get("/v1/runs").await.0, 401);
    let call = server.ask(Method::GET, "/v1/runs").bearer_auth("other");
    assert_eq!(answer(call).await.0, 200);
}

/// The `name=value` of a cookie that an answer sets, and the whole line.
fn cookie(response: &reqwest::Response) -> (String, String) {
    let line = response.headers()["set-cookie"].to_str().unwrap();
    let pair = line.split(';').next().unwrap();
    (pair.to_owned(), line.to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_view_token_reads_and_a_cookie_replaces_a_token() {
    let dir = tempfile::tempdir().unwrap();
    let state = dir.path().join("state");
    let roles = [("admin", "all-of-it"), ("view", "look-only")];
    let start = |state| Start::new(state).roles(dir.path(), &roles);
    let server = start(&state).spawn();
    let mut cookies = Vec::new();
    for (token, access, may) in [("all-of-it", "admin", 404), ("look-only", "view", 403)] {
        let bearing = |method, path: &str| server.ask(method, path).bearer_auth(token);
        let (_, me) = answer(bearing(Method::GET, "/v1/me")).await;
        assert_eq!(me["access"], access);
        assert_eq!(answer(bearing(Method::GET, "/v1/runs")).await.0, 200);
        let (status, _) = answer(bearing(Method::POST, "/v1/runs/x/pause")).await;
        assert_eq!(status, may, "{token}");
        let path = "/v1/workflows/x/schedule/pause";
        let (status, _) = answer(bearing(Method::POST, path)).await;
        assert_eq!(status, may, "{token}");
        let response = bearing(Method::POST, "/v1/session").send().await.unwrap();
        assert_eq!(response.status(), 204);
        let (pair, line) = cookie(&response);
        assert!(line.contains("; HttpOnly; SameSite=Strict"), "{line}");
        assert!(!line.contains(token), "{line}");
        cookies.push((pair, access, may));
    }
    type Cookies = Vec<(String, &'static str, u16)>;
    let check = async |server: &Server, cookies: &Cookies, wanted: Option<u16>| {
        for (pair, access, may) in cookies {
            let with = |method, path: &str| server.ask(method, path).header("cookie", pair);
            let (status, me) = answer(with(Method::GET, "/v1/me")).await;
            let (posted, _) = answer(with(Method::POST, "/v1/runs/x/pause")).await;
            match wanted {
                Some(refused) => assert_eq!((status, posted), (refused, refused)),
                None => {
                    assert_eq!((status, posted), (200, *may), "{me}");
                    assert_eq!(me["access"], *access);
                }
            }
        }
    };
    check(&server, &cookies, None).await;
    // Another site's page cannot send the cookie, and its request would be refused anyway.
    let forged = server.ask(Method::POST, "/v1/runs/x/pause");
    let forged = forged.header("cookie", &cookies[0].0);
    let (status, _) = answer(forged.header("origin", "http://evil.test")).await;
    assert_eq!(status, 403);
    let (name, value) = cookies[0].0.split_once('=').unwrap();
    // The first letters of the value are the random id and the start time.
    let forged = |at: usize| {
        let new = if &value[at..=at] == "A" { "B" } else { "A" };
        format!("{name}={}{new}{}", &value[..at], &value[at + 1..])
    };
    let wrong = [
        forged(0),
        forged(27),
        String::from("windlass="),
        format!("{name}="),
        format!("{name}=AAAA"),
        format!(
            "{name}={}",
            value.replace(|c: char| c.is_ascii_digit(), "a")
        ),
        format!("windlass={value}"),
        String::from("other=1"),
    ];
    for wrong in wrong {
        let request = server.ask(Method::GET, "/v1/me").header("cookie", &wrong);
        assert_eq!(answer(request).await.0, 401, "{wrong}");
    }
    // A server with the same token and another store does not accept the cookie, although browsers send it there.
    let other_state = dir.path().join("other");
    let other = start(&other_state).spawn();
    check(&other, &cookies, Some(401)).await;
    other.stop();
    // A logout does not end other sessions, and an ended session authorises nothing.
    let ended = server.ask(Method::DELETE, "/v1/session");
    let ended = ended.header("cookie", &cookies[1].0).send().await.unwrap();
    assert!(cookie(&ended).1.contains("Max-Age=0"));
    let left: Cookies = vec![cookies.remove(1)];
    check(&server, &left, Some(401)).await;
    check(&server, &cookies, None).await;
    // Both survive a restart of the server; a session ends with its token.
    server.stop();
    let server = start(&state).spawn();
    check(&server, &left, Some(401)).await;
    check(&server, &cookies, None).await;
    server.stop();
    let roles = [("admin", "another"), ("view", "look-at-another")];
    let server = Start::new(&state).roles(dir.path(), &roles).spawn();
    check(&server, &cookies, Some(401)).await;
    server.stop();

    let refused = |args: &[&str]| {
        let command = [&["serve", "--listen", "127.0.0.1:0"], args].concat();
        let refused = super::windlass(&state, &command);
        assert_eq!(refused.status.code(), Some(2));
        String::from_utf8_lossy(&refused.stderr).into_owned()
    };
    let file = dir.path().join("wrong");
    // A message about a file of tokens contains no token.
    for (text, line) in [
        ("", ""),
        ("# none\n", ""),
        ("secret more\n", "line 1"),
        ("alice secret admin\n", "line 1"),
        ("al/ice view secret\n", "line 1"),
        ("alice view sécret\n", "line 1"),
        ("alice admin one\nbob secret view\n", "line 2"),
        ("alice view secret\nbob view secret\n", "line 2"),
        ("alice view secret\nalice view other\n", "line 2"),
        ("alice view secret\nother\n", "line 2"),
    ] {
        std::fs::write(&file, text).unwrap();
        let message = refused(&["--token-file", file.to_str().unwrap()]);
        assert!(
            message.contains(line) && !message.contains("secret") && !message.contains("other"),
            "{text}: {message}"
        );
    }
    std::fs::write(&file, " only\n").unwrap();
    let server = Start::new(&state).args(&["--token-file", file.to_str().unwrap()]);
    let server = server.spawn();
    let me = server.ask(Method::GET, "/v1/me").bearer_auth("only");
    assert_eq!(answer(me).await.1["name"], "admin");
}

#[tokio::test(flavor = "multi_thread")]
async fn other_names_and_other_pages_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let args = [
        "--allow-host",
        "windlass.test",
        "--allow-origin",
        "https://board.test",
    ];
    let server = Start::new(dir.path()).args(&args).spawn();
    let attempt = |name: &'static str, value: &str| {
        let request = server.ask(Method::GET, "/v1/runs").header(name, value);
        answer(request)
    };
    assert_eq!(attempt("host", "evil.test").await.0, 403);
    assert_eq!(attempt("host", "windlass.test").await.0, 200);
    assert_eq!(attempt("origin", "http://evil.test").await.0, 403);
    assert_eq!(attempt("origin", "null").await.0, 403);
    assert_eq!(attempt("origin", "https://board.test").await.0, 200);
    assert_eq!(attempt("origin", &server.url).await.0, 200);
    let port = server.url.rsplit(':').next().unwrap();
    for origin in [
        format!("https://127.0.0.1:{port}"),
        "http://127.0.0.1:80".to_owned(),
    ] {
        assert_eq!(attempt("origin", &origin).await.0, 403, "{origin}");
    }
    assert_eq!(attempt("sec-fetch-site", "cross-site").await.0, 403);
    assert_eq!(attempt("sec-fetch-site", "same-site").await.0, 403);
    assert_eq!(attempt("sec-fetch-site", "none").await.0, 200);
}

#[test]
fn a_server_that_others_reach_has_a_token_and_tls() {
    let dir = tempfile::tempdir().unwrap();
    let refused = |token: Option<&'static str>, more: &[&str]| {
        let mut start = Start::new(dir.path()).args(&["--listen", "0.0.0.0:0"]);
        start.token = token;
        let mut command = start.args(more).command();
        command.stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut text = String::new();
        child
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut text)
            .unwrap();
        (child.wait().unwrap().code(), text)
    };
    let (code, text) = refused(None, &[]);
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("--token-file"), "{text}");
    let local = Start::new(dir.path())
        .args(&["--listen", "localhost:0"])
        .spawn();
    assert!(local.url.starts_with("http://127.0.0.1:"), "{}", local.url);
    drop(local);
    let (code, text) = refused(Some("secret"), &[]);
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("--tls-cert"), "{text}");
    let server = Start::new(dir.path())
        .args(&["--listen", "0.0.0.0:0", "--allow-plain-http"])
        .token("secret")
        .spawn();
    assert!(server.url.starts_with("http://0.0.0.0:"), "{}", server.url);
    let (status, _) = Server::stop(server);
    assert!(status.success());
}
