//! A run as one file: its content, and that no text of a run is interpreted as markup.

use super::{Server, windlass};
use serde_json::{Value, json};

/// Fails in its fourth iteration. Its names and data contain markup.
const HOSTILE: &str = r#"
name: "<img src=x onerror=alert(1)>"
variables: { n: 0, text: "</pre><script>alert(2)</script>\u202e\u001b[31m" }
actions:
  before: { type: compose, inputs: "javascript:alert(3)" }
  poll:
    type: until
    condition: "@greaterOrEquals(variables('n'), 50)"
    limit: { count: 100, timeout: PT1H }
    runAfter: { before: [Succeeded] }
    actions:
      more: { type: incrementVariable, inputs: { name: n, value: 1 } }
      check:
        type: if
        condition: "@equals(variables('n'), 44)"
        actions:
          stop: { type: terminate, inputs: { runStatus: Failed, runError: { code: no, message: "<b>44</b> is no good" } } }
"#;

fn page(dir: &std::path::Path, run: &str) -> String {
    let shown = windlass(dir, &["export", run]);
    let error = String::from_utf8_lossy(&shown.stderr).into_owned();
    assert!(shown.status.success(), "{error}");
    String::from_utf8(shown.stdout).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_one_page_in_which_nothing_is_markup() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path());
    let run = server.begin(HOSTILE, json!(null)).await;
    server.end(&run).await;
    let live = page(dir.path(), &run);
    for part in [
        "<!doctype html>",
        "default-src 'none'; style-src 'sha256-",
        "<svg xmlns",
        "Outside of loops",
        "until poll",
        "44 iterations of 100",
        "<td>44</td>",
        "&lt;b&gt;44&lt;/b&gt; is no good",
        "&lt;script&gt;alert(2)",
        "\\u202e",
    ] {
        assert!(live.contains(part), "{part}: {live}");
    }
    for wrong in [
        "<script", "<img", "<b>", "href=", "url(", "\u{202e}", "\u{1b}", "<link",
    ] {
        assert!(!live.contains(wrong), "{wrong}");
    }
    // The policy names each style sheet, and there are no other styles.
    assert_eq!(
        live.matches("<style>").count(),
        live.matches("'sha256-").count()
    );
    assert!(!live.contains(" style="));
    let (status, report) = server.get(&format!("/v1/runs/{run}/export")).await;
    assert_eq!(status, 200);
    assert_eq!(report["loops"][0]["iterations"][0]["result"], Value::Null);
    assert_eq!(report["loops"][0]["strip"]["iterations"], 44);
    assert_eq!(
        report["outermost"]["actions"][0]["outputs"],
        "javascript:alert(3)"
    );
    assert_eq!(server.get("/v1/runs/nobody/export").await.0, 404);
    // Without a server the file is the same.
    server.stop();
    let alone = page(dir.path(), &run);
    let body = |page: &str| page.split_once("<h2>Workflow").unwrap().1.to_owned();
    let cut = |text: &str| {
        text.split_once("<p class=\"soft\">As it was")
            .unwrap()
            .0
            .to_owned()
    };
    assert_eq!(cut(&body(&alone)), cut(&body(&live)));
    let shown = windlass(dir.path(), &["export", &run, "-o", "json"]);
    let json: Value = serde_json::from_slice(&shown.stdout).unwrap();
    assert_eq!(json["status"]["run"], run);
}
