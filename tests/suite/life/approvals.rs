//! Questions to people: what `waitForSignal` asks, which answers it accepts, who answered, and the URLs of
//! `callbackUrl`.

use super::process::Place;
use crate::serve::{Server, Start, answer, client};
use reqwest::Method;
use serde_json::{Value, json};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

const RELEASE: &str = r#"
name: release
inputs: { version: { default: "1.4" } }
actions:
  ask:
    type: waitForSignal
    title: "Deploy @{inputs('version')} to production?"
    choices: [approve, reject]
    schema:
      properties:
        ticket: { type: integer, title: Ticket }
        comment: { type: string }
      required: [ticket]
    timeout: PT1H
  after: { type: shell, run: "true" }
outputs: "@outputs('ask')"
"#;

/// Writes the URL that answers the question to a file.
const LINKED: &str = r#"
name: linked
inputs: { valid: { default: P1D } }
actions:
  send:
    type: shell
    run: 'printf %s "$URL" > DIR/link; echo sent to "$URL" "${URL##*=}"'
    env: { URL: "@{callbackUrl('ask', inputs('valid'))}" }
  ask:
    type: waitForSignal
    title: "<b>Pay</b> 20 & more?"
    choices: [pay, refuse]
    schema: { properties: { amount: { type: number, default: 20 } }, required: [amount] }
outputs: { answer: "@outputs('ask')", sent: "@body('send')" }
"#;

fn user() -> String {
    let id = Command::new("id").arg("-un").output().unwrap();
    String::from_utf8(id.stdout).unwrap().trim().to_owned()
}

/// The text with `DIR` as the folder of the test.
fn in_folder(place: &Place, text: &str) -> String {
    text.replace("DIR", place.dir.path().to_str().unwrap())
}

fn stderr_of(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Kills a process whose run waits for an answer.
fn kill_at_question(place: &Place) {
    let file = place.file("release.yaml", RELEASE);
    let mut run = place.follow(&["run", &file, "--id", "r"]);
    run.until("RunStarted", "");
    loop {
        let status = place.json(&["status", "r", "-o", "json"]);
        if !status["doing"][0]["question"].is_null() {
            break;
        }
    }
    run.kill();
}

#[test]
fn a_question_is_shown_and_accepts_what_it_asks_for() {
    let place = Place::new();
    kill_at_question(&place);
    let status = place.json(&["status", "r", "-o", "json"]);
    let doing = &status["doing"][0];
    assert_eq!(doing["signal"], "ask", "{status}");
    let question = &doing["question"];
    assert_eq!(question["title"], "Deploy 1.4 to production?");
    assert_eq!(question["choices"], json!(["approve", "reject"]));
    let field = json!({ "name": "ticket", "label": "Ticket", "type": "integer", "required": true });
    assert_eq!(question["fields"][0], field);
    assert!(
        doing["since"].is_string() && doing["due_at"].is_string(),
        "{doing}"
    );
    let text = String::from_utf8(place.run(&["status", "r"]).stdout).unwrap();
    for part in [
        "Deploy 1.4 to production?",
        "approve, reject",
        "deadline",
        "since",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    // The name of the signal is the action's name, and may be omitted.
    for (args, says) in [
        (&["--payload", "[1]"][..], "not an object"),
        (
            &["--payload", r#"{"ticket": 7}"#],
            "has no `choice`: the choices are approve, reject",
        ),
        (&["--choice", "maybe"], "\"maybe\" is not a choice"),
        (
            &["--choice", "approve"],
            "\"ticket\" is a required property",
        ),
        (
            &["--payload", r#"{"choice": "approve", "ticket": "x"}"#],
            "\"integer\"",
        ),
        (&[], "has no `choice`"),
    ] {
        let refused = place.run(&[&["signal", "r"], args].concat());
        assert_eq!(refused.status.code(), Some(2), "{args:?}: {refused:?}");
        assert!(
            stderr_of(&refused).contains(says),
            "{says}: {}",
            stderr_of(&refused)
        );
    }
    let given = r#"{"choice": "approve", "ticket": 7, "answeredBy": "mallory"}"#;
    let sent = place.run(&["signal", "r", "ask", "--payload", given]);
    assert!(sent.status.success(), "{sent:?}");
    let outputs = place.follow(&["resume", "r"]).result();
    assert_eq!(
        outputs,
        json!({ "choice": "approve", "ticket": 7, "answeredBy": user() })
    );
    let history = place
        .json(&["history", "r", "--events", "-o", "json"])
        .to_string();
    assert!(
        history.contains(&format!(r#""by":"{}""#, user())),
        "{history}"
    );
}

#[test]
fn a_terminal_asks_for_the_fields() {
    let place = Place::new();
    kill_at_question(&place);
    let line = format!(
        "{} signal r --state {}",
        env!("CARGO_BIN_EXE_windlass"),
        place.state().display()
    );
    let mut script = Command::new("script")
        .args(["-qec", &line, "/dev/null"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut keys = script.stdin.take().unwrap();
    // The first ticket is not a number, and the first choice does not exist.
    std::io::Write::write_all(&mut keys, b"seven\n7\nlooks good\n3\n1\n").unwrap();
    let shown = script.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.status.success(), "{text}");
    for part in [
        "Deploy 1.4 to production?",
        "Ticket (whole number)",
        "needs a whole number",
        "1  approve",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let outputs = place.follow(&["resume", "r"]).result();
    let by = user();
    assert_eq!(
        outputs,
        json!({ "choice": "approve", "ticket": 7, "comment": "looks good", "answeredBy": by })
    );
}

#[test]
fn the_files_of_questions_are_checked() {
    let place = Place::new();
    let wait = |more: &str| format!("actions:\n  a: {{ type: waitForSignal, {more} }}\n");
    for (text, says) in [
        (wait("title: hi, choices: [yes, 1]"), "a choice"),
        (wait("title: hi, choices: [a, a]"), "listed twice"),
        (
            wait("title: hi, schema: { type: string }"),
            "describes an object",
        ),
        (
            wait("title: hi, schema: { properties: { x: { type: nonsense } } }"),
            "nonsense",
        ),
        (
            wait("title: hi, choices: [a], schema: { properties: { choice: {} } }"),
            "`choice` is the member",
        ),
        (
            wait("signal: s, choices: [a]")
                + "  b: { type: waitForSignal, signal: s, choices: [b] }\n",
            "other choices",
        ),
        (
            wait("signal: s") + "  b: { type: shell, run: \"@{callbackUrl('t')}\" }\n",
            "unknown signal `t`",
        ),
        (
            wait("signal: s") + "  b: { type: compose, inputs: \"@callbackUrl('s')\" }\n",
            "reads the address of a callback, and would be stored",
        ),
    ] {
        let file = place.file("bad.yaml", &text);
        let checked = place.run(&["validate", &file]);
        assert_eq!(checked.status.code(), Some(3), "{text}: {checked:?}");
        let all = String::from_utf8_lossy(&checked.stdout).into_owned() + &stderr_of(&checked);
        assert!(all.contains(says), "{says}: {all}");
    }
}

/// Starts a run with a server, and reads the URL that it wrote.
fn linked(place: &Place, id: &str, inputs: &[&str]) -> String {
    let file = place.file("linked.yaml", &in_folder(place, LINKED));
    let link = place.dir.path().join("link");
    let _ = std::fs::remove_file(&link);
    let mut args = vec!["run", &file, "--id", id, "--detach"];
    for input in inputs {
        args.extend(["-i", input]);
    }
    let started = place.run(&args);
    assert!(started.status.success(), "{started:?}");
    loop {
        let status = place.json(&["status", id, "-o", "json"]);
        if status["doing"][0]["signal"] == "ask" {
            return std::fs::read_to_string(&link).unwrap();
        }
        assert_ne!(status["status"], "Failed", "{status}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The URL without the server's address.
fn path_of(link: &str) -> String {
    link[link.find("/v1/").unwrap()..].to_owned()
}

async fn page(server: &Server, path: &str) -> (u16, String) {
    let request = server
        .ask(Method::GET, path)
        .header("accept", "text/html,*/*");
    let shown = request.send().await.unwrap();
    let policy = shown.headers()["content-security-policy"].to_str().unwrap();
    assert!(policy.contains("default-src 'none'"), "{policy}");
    (shown.status().as_u16(), shown.text().await.unwrap())
}

async fn send(server: &Server, path: &str, body: &str) -> (u16, Value) {
    let request = server.ask(Method::POST, path);
    answer(
        request
            .header("content-type", "application/json")
            .body(body.to_owned()),
    )
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_answers_once_without_a_token_also_after_a_kill() {
    let place = Place::new();
    let state = place.state();
    let public = ["--public-url", "https://loops.example.com/"];
    let server = Start::new(&state).args(&public).token("secret").spawn();
    let link = linked(&place, "one", &[]);
    assert!(
        link.starts_with("https://loops.example.com/v1/callbacks/one/ask?"),
        "{link}"
    );
    let path = path_of(&link);
    let (status, text) = page(&server, &path).await;
    assert_eq!(status, 200, "{text}");
    for part in [
        "&lt;b&gt;Pay&lt;&#x2f;b&gt; 20 &amp; more?",
        "value=\"pay\"",
        "value=\"20\"",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    // Opening the page does not answer the question. Everything else still needs the token.
    assert_eq!(server.get("/v1/runs/one").await.0, 401);
    server.kill();
    let server = Start::new(&state).args(&public).token("secret").spawn();
    for (wrong, expected) in [
        (path.replace("received=0", "received=1"), 403),
        (path.replace("/one/", "/two/"), 403),
        (format!("{path}A"), 403),
        (path.split("&signature").next().unwrap().to_owned(), 400),
    ] {
        assert_eq!(send(&server, &wrong, "null").await.0, expected, "{wrong}");
    }
    let (status, problem) = send(&server, &path, r#"{"choice": "pay"}"#).await;
    assert_eq!(
        (status, problem["type"].as_str()),
        (422, Some("urn:windlass:refused-answer"))
    );
    // Sends the form of the page.
    let form = client()
        .post(format!("{}{path}", server.url))
        .header("content-type", "application/x-www-form-urlencoded")
        .header("accept", "text/html")
        .body("field.amount=12.5&choice=pay");
    let thanks = form.send().await.unwrap();
    assert_eq!(thanks.status(), 200);
    assert!(thanks.text().await.unwrap().contains("Thank you"));
    let (status, problem) = send(&server, &path, r#"{"choice": "refuse", "amount": 1}"#).await;
    assert!(status == 409, "{problem}");
    assert_eq!(page(&server, &path).await.0, 409);
    server.kill();
    // A used URL cannot fill the audit log.
    let audit = place.json(&["audit", "--action", "answer", "-o", "json"]);
    let results: Vec<&Value> = audit
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| &entry["result"])
        .collect();
    assert_eq!(results, ["done", "refused-answer"], "{audit}");
    let report = place.json(&["status", "one", "-o", "json"]);
    let outputs = &report["outcome"]["output"];
    let expected = json!({ "choice": "pay", "amount": 12.5, "answeredBy": "link (127.0.0.1)" });
    assert_eq!(outputs["answer"], expected, "{outputs}");
    // The URL is a secret.
    assert_eq!(outputs["sent"], "sent to *** ***");
    let dump = place.run(&["dump", "one", "-o", "json"]);
    let signature = link.split("signature=").nth(1).unwrap();
    assert!(!String::from_utf8_lossy(&dump.stdout).contains(signature));
}

/// The form is complete before the run waits, a refused form still contains what was entered, and programs that read
/// mails may add parameters to the URL.
#[tokio::test(flavor = "multi_thread")]
async fn the_page_shows_its_form_early_and_again_after_a_refusal() {
    let place = Place::new();
    let state = place.state();
    let server = Start::new(&state).spawn();
    let early = LINKED.replace(
        "  ask:\n",
        "  go: { type: waitForSignal, signal: go }\n  ask:\n",
    );
    let file = place.file("linked.yaml", &in_folder(&place, &early));
    let started = place.run(&["run", &file, "--id", "early", "--detach"]);
    assert!(started.status.success(), "{started:?}");
    let link = place.dir.path().join("link");
    while place.json(&["status", "early", "-o", "json"])["doing"][0]["signal"] != "go" {
        std::thread::sleep(Duration::from_millis(10));
    }
    let path = path_of(&std::fs::read_to_string(link).unwrap()) + "&utm_source=mail";
    let (status, text) = page(&server, &path).await;
    assert_eq!(status, 200, "{text}");
    for part in ["name=\"field.amount\"", "value=\"refuse\""] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let form = client()
        .post(format!("{}{path}", server.url))
        .header("content-type", "application/x-www-form-urlencoded")
        .header("accept", "text/html")
        .body("field.amount=twelve&choice=pay");
    let refused = form.send().await.unwrap();
    assert_eq!(refused.status(), 422);
    let text = refused.text().await.unwrap();
    for part in ["value=\"twelve\"", "`amount` needs a number"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let (status, sent) = send(&server, &path, r#"{"choice": "pay", "amount": 12}"#).await;
    assert_eq!(status, 200, "{sent}");
    server.stop();
}

/// A URL belongs to one wait. After that wait has ended without an answer, the URL does not answer the next one.
#[tokio::test(flavor = "multi_thread")]
async fn an_address_ends_with_its_wait() {
    let place = Place::new();
    let state = place.state();
    let server = Start::new(&state).spawn();
    let text = LINKED.replace(
        "  ask:\n",
        "  first: { type: waitForSignal, signal: ask, title: First, choices: [pay, refuse], timeout: PT0.1S,
    schema: { properties: { amount: { type: number, default: 20 } }, required: [amount] }, continue_on_error: true }
  ask:\n",
    );
    let file = place.file("linked.yaml", &in_folder(&place, &text));
    let started = place.run(&["run", &file, "--id", "late", "--detach"]);
    assert!(started.status.success(), "{started:?}");
    loop {
        let status = place.json(&["status", "late", "-o", "json"]);
        let title = status["doing"][0]["question"]["title"].as_str();
        if title.is_some_and(|title| title.contains("Pay")) {
            break;
        }
    }
    let link = std::fs::read_to_string(place.dir.path().join("link")).unwrap();
    let (status, problem) = send(
        &server,
        &path_of(&link),
        r#"{"choice": "pay", "amount": 1}"#,
    )
    .await;
    assert_eq!(
        (status, problem["type"].as_str()),
        (409, Some("urn:windlass:answered"))
    );
    server.stop();
}

#[test]
fn mistakes_in_a_question_are_found_before_the_run() {
    let place = Place::new();
    for (question, says) in [
        ("title: \"@{secret('A')}\"", "reads the secret `A`"),
        (
            "schema: { properties: { answeredBy: { type: string } } }",
            "`answeredBy` is the member of an answer with who gave it",
        ),
        (
            "schema: { required: [answeredBy] }",
            "`answeredBy` is the member of an answer with who gave it",
        ),
    ] {
        let text =
            format!("actions: {{ ask: {{ type: waitForSignal, signal: ask, {question} }} }}\n");
        let file = place.file("bad.yaml", &text);
        let checked = place.run(&["validate", &file]);
        assert_eq!(checked.status.code(), Some(3), "{text}: {checked:?}");
        assert!(
            stderr_of(&checked).contains(says),
            "{says}: {}",
            stderr_of(&checked)
        );
    }
    let text = LINKED.replace("callbackUrl('ask'", "callbackUrl('ASK'");
    let file = place.file("case.yaml", &text);
    let checked = place.run(&["validate", &file]);
    assert_eq!(checked.status.code(), Some(3), "{checked:?}");
    assert!(
        stderr_of(&checked).contains("unknown signal `ASK`"),
        "{checked:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_answers_at_once_one_is_accepted() {
    let place = Place::new();
    let state = place.state();
    let server = Start::new(&state).spawn();
    for round in 0..10 {
        let path = path_of(&linked(&place, &format!("r{round}"), &[]));
        let answers =
            ["pay", "refuse"].map(|choice| json!({ "choice": choice, "amount": 1 }).to_string());
        let (one, two) = tokio::join!(
            send(&server, &path, &answers[0]),
            send(&server, &path, &answers[1])
        );
        let mut codes = [one.0, two.0];
        codes.sort_unstable();
        assert_eq!(codes, [200, 409], "{one:?} {two:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_expires() {
    let place = Place::new();
    let state = place.state();
    let server = Start::new(&state).spawn();
    let path = path_of(&linked(&place, "short", &["valid=PT0S"]));
    let (status, problem) = send(&server, &path, r#"{"choice": "pay", "amount": 1}"#).await;
    assert_eq!(
        (status, problem["type"].as_str()),
        (410, Some("urn:windlass:expired"))
    );
    let sent = place.run(&[
        "signal",
        "short",
        "--payload",
        r#"{"choice": "pay", "amount": 1}"#,
    ]);
    assert!(sent.status.success(), "{sent:?}");
    assert_eq!(server.end("short").await["status"], "Succeeded");
}

#[test]
fn without_a_server_an_address_is_a_fault() {
    let place = Place::new();
    let file = place.file("linked.yaml", &in_folder(&place, LINKED));
    let failed = place.run(&["run", &file]);
    assert_eq!(failed.status.code(), Some(1), "{failed:?}");
    assert!(
        stderr_of(&failed).contains("windlass serve"),
        "{}",
        stderr_of(&failed)
    );
}

/// Each reminder is a separate action: the wait ends in time, and the loop waits again.
#[tokio::test(flavor = "multi_thread")]
async fn reminders_are_sent_until_the_answer() {
    let place = Place::new();
    let file = place.file(
        "reminded.yaml",
        &in_folder(
            &place,
            r#"
name: reminded
actions:
  until_answered:
    type: until
    condition: "@equals(actions('ask').status, 'Succeeded')"
    limit: { count: 100, timeout: P14D }
    actions:
      remind: { type: shell, run: "echo asked >> DIR/reminders" }
      ask:
        type: waitForSignal
        title: Still there?
        choices: [yes]
        timeout: PT0.2S
        continue_on_error: true
  after: { type: shell, run: "true" }
outputs: "@outputs('ask').choice"
"#,
        ),
    );
    let mut run = place.follow(&["run", &file, "--id", "m"]);
    let reminders = place.dir.path().join("reminders");
    for _ in 0..3 {
        run.until("ActionStarted", "remind");
    }
    run.kill();
    let sent = place.run(&["signal", "m", "ask", "--choice", "yes"]);
    assert!(sent.status.success(), "{sent:?}");
    assert_eq!(place.follow(&["resume", "m"]).result(), json!("yes"));
    let count = std::fs::read_to_string(&reminders).unwrap().lines().count();
    assert!(count >= 2, "{count}");
}

/// A workflow of a guest has URLs for its own run.
#[tokio::test(flavor = "multi_thread")]
async fn a_guest_sends_an_address() {
    let place = Place::new();
    let state = place.state();
    let server = Start::new(&state)
        .args(&["--public-url", "http://127.0.0.1:1"])
        .spawn();
    let text = format!(
        "actions:\n  send: {{ type: http, method: POST, uri: \"{}/v1/validate\", body: \"@callbackUrl('ask')\", \
         continue_on_error: true }}\n  ask: {{ type: waitForSignal, title: Go on?, choices: [yes] }}\n\
         outputs: \"@outputs('ask').choice\"\n",
        server.url
    );
    let run = server.begin(&text, Value::Null).await;
    let path = format!("/v1/runs/{run}/signal");
    let given = json!({ "name": "ask", "payload": "yes" });
    let (status, problem) = server.post(&path, &given).await;
    assert_eq!(status, 200, "{problem}");
    let outcome = server.end(&run).await;
    assert_eq!(outcome["output"], "yes", "{outcome}");
}

/// An expression can build the mark from which a URL is made. The result is a URL of its own run, or an error.
#[tokio::test(flavor = "multi_thread")]
async fn an_expression_makes_no_address_of_another_run() {
    let place = Place::new();
    let state = place.state();
    let server = Start::new(&state).spawn();
    linked(&place, "victim", &[]);
    for (id, claim) in [("a", "0/9999999999999/victim"), ("b", "0/9999999999999")] {
        let mark = format!("concat('\u{e0f0}secret:callback:ask\u{e0f2}', '{claim}', '\u{e0f1}')");
        let forged = LINKED.replace(
            "@{callbackUrl('ask', inputs('valid'))}",
            &format!("@{{if(empty(callbackUrl('ask')), '', {mark})}}"),
        );
        let file = place.file("forged.yaml", &in_folder(&place, &forged));
        let link = place.dir.path().join("link");
        std::fs::remove_file(&link).unwrap_or_default();
        let started = place.run(&["run", &file, "--id", id, "--detach"]);
        assert!(started.status.success(), "{started:?}");
        loop {
            let status = place.json(&["status", id, "-o", "json"]);
            if status["status"] == "Failed" || status["doing"][0]["signal"] == "ask" {
                break;
            }
        }
        let link = std::fs::read_to_string(&link).unwrap_or_default();
        assert!(!link.contains("/victim/"), "{link}");
    }
    server.kill();
}
