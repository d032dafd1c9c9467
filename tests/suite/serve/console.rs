//! The console as it is served: its files, their headers, and who is authorised.

use super::{Server, Start, answer, client, with};
use reqwest::header::HeaderMap;
use reqwest::{Client, Method, Response};
use serde_json::json;
use std::path::Path;

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types svelte-trusted-html windlass";

fn file(name: &str) -> Vec<u8> {
    let dist = Path::new(env!("CARGO_MANIFEST_DIR")).join("ui/dist");
    std::fs::read(dist.join(name)).unwrap()
}

/// A client that does not follow redirects.
fn still() -> Client {
    let none = reqwest::redirect::Policy::none();
    Client::builder().redirect(none).build().unwrap()
}

async fn get(server: &Server, path: &str) -> Response {
    let request = server.ask(Method::GET, path);
    let request = request.header("accept-encoding", "identity");
    request.send().await.unwrap()
}

fn text<'h>(headers: &'h HeaderMap, name: &str) -> &'h str {
    headers
        .get(name)
        .map_or("", |value| value.to_str().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn its_files_have_a_strict_policy_and_are_cached_by_version() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path());
    for path in ["/", "/ui"] {
        let url = format!("{}{path}", server.url);
        let sent = still().get(url).send().await.unwrap();
        assert_eq!(sent.status(), 307);
        assert_eq!(text(sent.headers(), "location"), "/ui/");
    }
    let shell = get(&server, "/ui/").await;
    assert_eq!(shell.status(), 200);
    let headers = shell.headers().clone();
    for (name, value) in [
        ("content-security-policy", POLICY),
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "no-referrer"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
        ("cache-control", "no-cache"),
        ("content-type", "text/html; charset=utf-8"),
    ] {
        assert_eq!(text(&headers, name), value, "{name}");
    }
    let page = shell.text().await.unwrap();
    // Every path of the console returns the shell, including that of a run with a dot in its id.
    for place in [
        "/ui/runs/R",
        "/ui/runs/a.b?loop=x%231",
        "/ui/nothing",
        "/ui/index.html",
    ] {
        assert_eq!(get(&server, place).await.text().await.unwrap(), page);
    }
    let kinds = [
        ("app.js", "text/javascript; charset=utf-8"),
        ("run.js", "text/javascript; charset=utf-8"),
        ("edit.js", "text/javascript; charset=utf-8"),
        ("workflows.js", "text/javascript; charset=utf-8"),
        ("editor.js", "text/javascript; charset=utf-8"),
        ("worker.js", "text/javascript; charset=utf-8"),
        ("app.css", "text/css; charset=utf-8"),
        ("favicon.svg", "image/svg+xml"),
    ];
    for (name, kind) in kinds {
        let plain = get(&server, &format!("/ui/{name}")).await;
        assert_eq!(text(plain.headers(), "cache-control"), "no-cache");
        assert_eq!(text(plain.headers(), "content-security-policy"), POLICY);
        assert_eq!(text(plain.headers(), "content-type"), kind);
        let tag = text(plain.headers(), "etag").to_owned();
        assert_eq!(plain.bytes().await.unwrap(), file(name));
        // This client requests it compressed, and decompresses it.
        let packed = server.ask(Method::GET, &format!("/ui/{name}"));
        let packed = packed.send().await.unwrap();
        assert_eq!(text(packed.headers(), "vary"), "accept-encoding");
        assert_eq!(packed.bytes().await.unwrap(), file(name));
        let url = format!("/ui/{name}?v={}", tag.trim_matches('"'));
        let named = match name {
            "run.js" | "edit.js" | "workflows.js" | "editor.js" => String::new(),
            "app.js" => format!("\"/ui/{name}\""),
            _ => format!("\"{url}\""),
        };
        assert!(page.contains(&named), "{page}");
        let cached = get(&server, &url).await;
        let forever = "public, max-age=31536000, immutable";
        assert_eq!(text(cached.headers(), "cache-control"), forever);
        let other = get(&server, &format!("/ui/{name}?v=00")).await;
        assert_eq!(text(other.headers(), "cache-control"), "no-cache");
        let again = server.ask(Method::GET, &url).header("if-none-match", &tag);
        let again = again.header("accept-encoding", "identity");
        let again = again.send().await.unwrap();
        assert_eq!(again.status(), 304);
        assert_eq!(text(again.headers(), "etag"), tag);
        assert!(again.bytes().await.unwrap().is_empty());
    }
    assert_eq!(get(&server, "/ui/editor.map").await.status(), 404);
    assert_eq!(server.post("/ui/", &json!({})).await.0, 405);
    let api = get(&server, "/v1/runs").await;
    assert_eq!(text(api.headers(), "cache-control"), "no-store");
    assert_eq!(text(api.headers(), "x-content-type-options"), "nosniff");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_has_nothing_inline() {
    let page = String::from_utf8(file("index.html")).unwrap();
    for inline in [
        "<style",
        "style=",
        "onload=",
        "onclick=",
        "javascript:",
        "http:",
        "https:",
    ] {
        assert!(!page.contains(inline), "{inline} in {page}");
    }
    for script in page.split("<script").skip(1) {
        let (head, rest) = script.split_once('>').unwrap();
        assert!(head.contains("src=\"/ui/"), "{script}");
        assert!(rest.trim_start().starts_with("</script>"), "{script}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_its_shell_opens_from_another_site() {
    let dir = tempfile::tempdir().unwrap();
    let server = Start::new(dir.path()).token("secret").spawn();
    let navigate = [
        ("sec-fetch-mode", "navigate"),
        ("sec-fetch-dest", "document"),
    ];
    let frame = [("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "iframe")];
    let script = [("sec-fetch-mode", "no-cors"), ("sec-fetch-dest", "script")];
    let table = [
        (Method::GET, "/", navigate, 307),
        (Method::GET, "/ui/", navigate, 200),
        (Method::GET, "/ui/runs/R", navigate, 200),
        (Method::GET, "/ui/", frame, 403),
        (Method::GET, "/ui/", script, 403),
        (Method::GET, "/ui/app.js", navigate, 403),
        (Method::GET, "/ui/app.js", script, 403),
        (Method::POST, "/ui/", navigate, 403),
        (Method::GET, "/v1/runs", navigate, 403),
        (Method::GET, "/openapi.json", navigate, 403),
        (Method::POST, "/v1/runs", navigate, 403),
    ];
    for site in ["cross-site", "same-site"] {
        for (method, path, marks, wanted) in &table {
            let url = format!("{}{path}", server.url);
            let mut request = still().request(method.clone(), url).bearer_auth("secret");
            for (name, value) in marks {
                request = request.header(*name, *value);
            }
            let request = request.header("sec-fetch-site", site);
            let status = request.send().await.unwrap().status();
            assert_eq!(status.as_u16(), *wanted, "{site} {method} {path} {marks:?}");
        }
    }
    // The shell needs no token, but its requests do.
    assert_eq!(get(&server, "/ui/runs/R").await.status(), 200);
    assert_eq!(get(&server, "/ui/app.js").await.status(), 200);
    assert_eq!(server.get("/v1/me").await.0, 401);
    // Other host names are refused here, too.
    let named = server.ask(Method::GET, "/ui/").header("host", "evil.test");
    assert_eq!(named.send().await.unwrap().status(), 403);
}

#[tokio::test(flavor = "multi_thread")]
async fn it_can_be_left_out_or_only_look() {
    let dir = tempfile::tempdir().unwrap();
    let off = Start::new(dir.path()).args(&["--ui", "off"]).spawn();
    for path in ["/", "/ui/", "/ui/app.js"] {
        assert_eq!(get(&off, path).await.status(), 404, "{path}");
    }
    off.stop();

    // Without a token, a browser's requests for a page are read-only; other clients may do everything.
    let read = Start::new(dir.path()).args(&["--ui", "read"]).spawn();
    let page = |method, path: &str| {
        let request = read.ask(method, path);
        request.header("sec-fetch-site", "same-origin")
    };
    let (_, me) = answer(page(Method::GET, "/v1/me")).await;
    assert_eq!(me["access"], "view");
    assert_eq!(read.get("/v1/me").await.1["access"], "admin");
    let body = json!({ "text": super::COUNT });
    assert_eq!(
        answer(with(page(Method::POST, "/v1/runs"), &body)).await.0,
        403
    );
    assert_eq!(read.post("/v1/runs", &body).await.0, 201);
    read.stop();

    // With a token, a session of the console is read-only.
    let start = Start::new(dir.path()).args(&["--ui", "read"]);
    let read = start.token("secret").spawn();
    let url = |path: &str| format!("{}{path}", read.url);
    let session = client().post(url("/v1/session")).bearer_auth("secret");
    let session = session.send().await.unwrap();
    let cookie = text(session.headers(), "set-cookie");
    let cookie = cookie.split(';').next().unwrap().to_owned();
    let with_cookie = |method, path: &str| read.ask(method, path).header("cookie", &cookie);
    let (_, me) = answer(with_cookie(Method::GET, "/v1/me")).await;
    assert_eq!(me["access"], "view");
    let forged = with(with_cookie(Method::POST, "/v1/runs"), &body);
    assert_eq!(answer(forged).await.0, 403);
    let bearing = with(read.ask(Method::POST, "/v1/runs"), &body);
    assert_eq!(answer(bearing.bearer_auth("secret")).await.0, 201);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ticket_authorises_a_browser_once() {
    let dir = tempfile::tempdir().unwrap();
    let printed = super::windlass(dir.path(), &["ui"]);
    assert_eq!(printed.status.code(), Some(8), "no process owns the store");
    let server = Start::new(dir.path()).token("secret").spawn();
    let url = || {
        let printed = super::windlass(dir.path(), &["ui", "--no-open"]);
        assert!(printed.status.success());
        String::from_utf8(printed.stdout).unwrap().trim().to_owned()
    };
    let first = url();
    let (place, ticket) = first.split_once("#ticket=").unwrap();
    assert_eq!(place, format!("{}/ui/", server.url));
    let begin = async |ticket: &str| {
        let request = server.ask(Method::POST, "/v1/session");
        let with_ticket = with(request, &json!({ "ticket": ticket }));
        with_ticket.send().await.unwrap()
    };
    let session = begin(ticket).await;
    assert_eq!(session.status(), 204);
    let cookie = text(session.headers(), "set-cookie");
    let cookie = cookie.split(';').next().unwrap().to_owned();
    let me = server.ask(Method::GET, "/v1/me").header("cookie", cookie);
    assert_eq!(answer(me).await.1["access"], "admin");
    // A ticket is accepted once, and no other value is.
    for no_ticket in [ticket, "", "secret"] {
        let refused = begin(no_ticket).await;
        assert_eq!(refused.status(), 401, "{no_ticket}");
        assert!(refused.headers().get("set-cookie").is_none());
    }
    let other = url();
    let (_, ticket) = other.split_once('=').unwrap();
    let forged = with(
        server.ask(Method::POST, "/v1/session"),
        &json!({ "ticket": ticket }),
    );
    let forged = forged.header("origin", "http://evil.test");
    assert_eq!(answer(forged).await.0, 403);
    assert_eq!(begin(ticket).await.status(), 204);
    // No session starts without a token, and no ticket is created over TCP.
    assert_eq!(server.post("/v1/session", &json!({})).await.0, 401);
    assert_eq!(answer(server.ask(Method::POST, "/v1/session")).await.0, 401);
    let remote = server
        .ask(Method::POST, "/v1/tickets")
        .bearer_auth("secret");
    assert_eq!(answer(remote).await.0, 403);
}
