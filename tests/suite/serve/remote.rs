//! The command line with a remote server, over HTTP and TLS; `logs` and `man`.

use super::{COUNT, SLEEP, Server, Start, windlass};
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Output};

/// Runs the command line with a server instead of a store.
fn remote(server: &Server, token: &str, args: &[&str]) -> Output {
    let elsewhere = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_windlass"))
        .args(args)
        .args(["--server", &server.url])
        .env("WINDLASS_TOKEN", token)
        .current_dir(elsewhere.path())
        .output()
        .unwrap();
    // Nothing is stored on the client's side.
    assert_eq!(std::fs::read_dir(elsewhere.path()).unwrap().count(), 0);
    output
}

fn text(output: &Output) -> String {
    let all = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    all
}

fn parsed(output: &Output) -> Value {
    assert!(output.status.success(), "{}", text(output));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn write(dir: &Path, name: &str, content: &str) -> String {
    let path = dir.join(name);
    std::fs::write(&path, content).unwrap();
    path.to_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_command_asks_the_server() {
    let dir = tempfile::tempdir().unwrap();
    let state = dir.path().join("state");
    let server = Start::new(&state).token("secret").spawn();
    let count = write(dir.path(), "count.yaml", COUNT);
    let gate = format!("{SLEEP}  gate: {{ type: waitForSignal, signal: go }}\n");
    let sleep = write(dir.path(), "sleep.yaml", &gate);
    let ask = |args: &[&str]| remote(&server, "secret", args);

    let run = ask(&[
        "run", &count, "--id", "one", "-i", "to:=4", "--events", "jsonl",
    ]);
    let lines: Vec<Value> = String::from_utf8_lossy(&run.stdout)
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines[0]["event"], "RunStarted", "{}", text(&run));
    assert_eq!(lines.last().unwrap(), &json!({ "result": 4 }));
    let again = ask(&["run", &count, "--id", "one"]);
    assert_eq!(again.status.code(), Some(2), "{}", text(&again));
    let detached = ask(&[
        "run", &sleep, "--id", "two", "--detach", "--label", "a=b", "--label", "c=d, e",
    ]);
    assert_eq!(text(&detached), "two\n");

    let list = parsed(&ask(&["list", "-o", "json"]));
    assert_eq!(
        (&list[0]["run"], &list[1]["run"]),
        (&json!("two"), &json!("one"))
    );
    let some = parsed(&ask(&[
        "list", "--label", "a=b", "--label", "c=d, e", "--status", "waiting", "-o", "json",
    ]));
    assert_eq!(some.as_array().unwrap().len(), 1);
    let status = parsed(&ask(&["status", "two", "-o", "json"]));
    assert_eq!(status["status"], "Waiting");
    let screen = text(&ask(&["status", "two"]));
    assert!(screen.contains("windlass pause --server"), "{screen}");
    let history = parsed(&ask(&[
        "history",
        "one",
        "--iterations",
        "2",
        "--events",
        "-o",
        "json",
    ]));
    assert_eq!(history["iterations"].as_array().unwrap().len(), 2);
    let here = parsed(&windlass(
        &state,
        &[
            "history",
            "one",
            "--iterations",
            "2",
            "--events",
            "-o",
            "json",
        ],
    ));
    assert_eq!(
        history, here,
        "the same report over the socket and over HTTP"
    );
    let dump = parsed(&ask(&["dump", "one", "-o", "json"]));
    assert_eq!(dump["runs"][0]["header"]["run"], "one");
    let paused = parsed(&ask(&["pause", "two", "-o", "json"]));
    assert_eq!(paused, json!({ "run": "two", "status": "Paused" }));
    let signal = ask(&["signal", "two", "go", "--payload", "[1]", "-o", "json"]);
    assert_eq!(parsed(&signal)["status"], "Paused");
    let misspelt = ask(&["signal", "two", "goo"]);
    assert_eq!(misspelt.status.code(), Some(2), "{misspelt:?}");
    let stderr = String::from_utf8_lossy(&misspelt.stderr).into_owned();
    let why =
        "error: run two waits for no signal `goo`; its workflow waits for go; did you mean `go`?";
    assert!(stderr.starts_with(why), "{stderr}");
    let resumed = ask(&["cancel", "two", "-o", "json"]);
    assert_eq!(parsed(&resumed)["status"], "Cancelled");
    // `resume` of an ended run returns its result again.
    let ended = ask(&["resume", "one", "-o", "json"]);
    assert_eq!(parsed(&ended), json!(4));

    let unknown = ask(&["status", "nobody"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(
        text(&unknown).contains("unknown run nobody"),
        "{}",
        text(&unknown)
    );
    let list = format!("hint: `windlass list --server {}`", server.url);
    assert!(text(&unknown).contains(&list), "{}", text(&unknown));
    parsed(&ask(&["workflow", "put", "saved", &count, "-o", "json"]));
    let exists = ask(&["workflow", "put", "saved", &count, "--new"]);
    assert_eq!(exists.status.code(), Some(2), "{}", text(&exists));
    let list = format!("hint: `windlass workflow list --server {}`", server.url);
    for part in [
        &*list,
        "nothing was changed: the workflow `saved` has the version ",
    ] {
        assert!(text(&exists).contains(part), "{}", text(&exists));
    }
    let stranger = remote(&server, "other", &["list"]);
    assert_eq!(stranger.status.code(), Some(2), "{}", text(&stranger));
    let url = server.url.clone();
    server.kill();
    let unauthorized = Command::new(env!("CARGO_BIN_EXE_windlass"))
        .args(["list", "--server", &url])
        .output()
        .unwrap();
    assert_eq!(
        unauthorized.status.code(),
        Some(8),
        "{}",
        text(&unauthorized)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn one_who_follows_a_run_survives_the_server() {
    let dir = tempfile::tempdir().unwrap();
    let state = dir.path().join("state");
    let server = Server::start(&state);
    let port = server.url.rsplit(':').next().unwrap().to_owned();
    let slow = COUNT.replace("limit:", "delay: PT0.1S\n    limit:");
    let file = write(dir.path(), "slow.yaml", &slow);
    let mut following = Command::new(env!("CARGO_BIN_EXE_windlass"))
        .args([
            "run", &file, "--id", "slow", "-i", "to:=40", "--events", "jsonl",
        ])
        .args(["--server", &server.url])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut begun = false;
    for _ in 0..1_000 {
        let (_, status) = server.get("/v1/runs/slow").await;
        begun = status["commit"].as_u64().is_some_and(|commit| commit > 5);
        if begun {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    assert!(begun);
    server.kill();
    let stderr = BufReader::new(following.stderr.take().unwrap());
    let lines = stderr.lines().map(Result::unwrap);
    let away = |line: &String| line == "the server does not answer: reconnecting";
    assert_eq!(lines.filter(away).take(1).count(), 1);
    let listen = format!("127.0.0.1:{port}");
    let server = Start::new(&state).args(&["--listen", &listen]).spawn();
    let output = tokio::task::spawn_blocking(|| following.wait_with_output().unwrap());
    let output = output.await.unwrap();
    assert!(output.status.success(), "{}", text(&output));
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(stdout.lines().last().unwrap(), r#"{"result":40}"#);
    // Each event once and in order, as in the store.
    let (_, history) = server
        .get("/v1/runs/slow/history?events=true&limit=10000")
        .await;
    let events = history["events"].as_array().unwrap().len();
    assert_eq!(stdout.lines().count(), events + 1);
}

/// Returns a new self-signed certificate for `localhost` and its key, in PEM.
fn certificate() -> [String; 2] {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let pem = |label: &str, der: &[u8]| {
        let base64 = BASE64.encode(der);
        format!("-----BEGIN {label}-----\n{base64}\n-----END {label}-----\n")
    };
    [
        pem("CERTIFICATE", made.cert.der()),
        pem("PRIVATE KEY", &made.signing_key.serialize_der()),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_with_a_certificate_speaks_tls() {
    let dir = tempfile::tempdir().unwrap();
    let [cert, key] = certificate();
    let cert = write(dir.path(), "cert.pem", &cert);
    let key = write(dir.path(), "key.pem", &key);
    let args = [
        "--tls-cert",
        &cert,
        "--tls-key",
        &key,
        "--listen",
        "0.0.0.0:0",
    ];
    let server = Start::new(&dir.path().join("state"))
        .args(&args)
        .token("secret")
        .spawn();
    assert!(server.url.starts_with("https://0.0.0.0:"));
    let port = server.url.rsplit(':').next().unwrap();
    let url = format!("https://localhost:{port}");
    let list = |trusted: &str| {
        Command::new(env!("CARGO_BIN_EXE_windlass"))
            .args(["list", "-o", "json", "--server", &url])
            .env("WINDLASS_TOKEN", "secret")
            .env("SSL_CERT_FILE", trusted)
            .output()
            .unwrap()
    };
    assert_eq!(text(&list(&cert)), "[]\n");
    let other = write(dir.path(), "other.pem", &certificate()[0]);
    let refused = list(&other);
    assert_eq!(refused.status.code(), Some(8), "{}", text(&refused));
    let why = String::from_utf8_lossy(&refused.stderr);
    assert!(why.contains("hint: SSL_CERT_FILE names"), "{why}");
    // Plain HTTP to the same port gets no usable answer.
    let plain = super::client().get(format!("http://localhost:{port}/healthz"));
    assert!(plain.send().await.is_err());
    let plain = Command::new(env!("CARGO_BIN_EXE_windlass"))
        .args(["list", "--server", &format!("http://localhost:{port}")])
        .output()
        .unwrap();
    let why = String::from_utf8_lossy(&plain.stderr);
    assert!(why.contains("hint: the server seems to use TLS"), "{why}");
    assert!(server.stop().0.success());

    let state = dir.path().join("state");
    let wrong = Start::new(&state).args(&["--tls-cert", &key, "--tls-key", &cert]);
    let (status, stderr) = super::exit_and_stderr(wrong.command().spawn().unwrap());
    assert_eq!(status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("key.pem"), "{stderr}");
}

#[test]
fn a_renewed_certificate_needs_no_restart() {
    let dir = tempfile::tempdir().unwrap();
    let [first, second] = [certificate(), certificate()];
    let cert = write(dir.path(), "cert.pem", &first[0]);
    let key = write(dir.path(), "key.pem", &first[1]);
    let server = Start::new(&dir.path().join("state"))
        .args(&["--tls-cert", &cert, "--tls-key", &key])
        .token("secret")
        .spawn();
    let port = server.url.rsplit(':').next().unwrap().to_owned();
    let is_trusted = |certificate: &str| {
        let trusted = write(dir.path(), "trusted.pem", certificate);
        let url = format!("https://localhost:{port}");
        let mut list = Command::new(env!("CARGO_BIN_EXE_windlass"));
        list.args(["list", "--server", &url]);
        list.env("WINDLASS_TOKEN", "secret")
            .env("SSL_CERT_FILE", trusted);
        list.output().unwrap().status.success()
    };
    assert!(is_trusted(&first[0]));
    // An invalid file is not used, and the former certificate remains in use.
    let broken = |name: &str, content: &str, why: &str| {
        write(dir.path(), name, content);
        let logged = server.log_until("the TLS certificate is not valid");
        assert!(logged.contains(name) && logged.contains(why), "{logged}");
        assert!(is_trusted(&first[0]));
    };
    broken(
        "key.pem",
        &second[1],
        "not the key of the first certificate",
    );
    write(dir.path(), "key.pem", &first[1]);
    let other = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    broken("cert.pem", &format!("{}{other}", first[0]), "certificate 2");
    let [start, _] = first[0]
        .split_once("-----END")
        .map(|(a, b)| [a, b])
        .unwrap();
    broken("cert.pem", start, "-----END CERTIFICATE-----` is missing");
    // The read of a pipe would never end.
    std::fs::remove_file(&key).unwrap();
    nix::unistd::mkfifo(key.as_str(), nix::sys::stat::Mode::S_IRWXU).unwrap();
    server.log_until("not a regular file");
    std::fs::remove_file(&key).unwrap();
    write(dir.path(), "key.pem", &second[1]);
    write(dir.path(), "cert.pem", &second[0]);
    server.log_until("the TLS certificate was read again");
    assert!(is_trusted(&second[0]));
    assert!(!is_trusted(&first[0]));
    assert!(server.stop().0.success());
}

#[test]
fn a_token_does_not_go_out_as_plain_text() {
    let list = |server: &str, args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
        command.args(["list", "--server", server]).args(args);
        command.env("WINDLASS_TOKEN", "secret").output().unwrap()
    };
    let refused = list("http://windlass.invalid:1", &[]);
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused));
    let message = text(&refused);
    assert!(message.contains("--allow-plain-http"), "{message}");
    assert!(message.contains("https://windlass.invalid"), "{message}");
    // To this machine, over TLS, or with the flag, the token is sent; here no server answers.
    for (server, args) in [
        ("http://localhost:1", &[][..]),
        ("http://127.0.0.1:1", &[]),
        ("http://[::1]:1", &[]),
        ("https://windlass.invalid:1", &[]),
        ("http://windlass.invalid:1", &["--allow-plain-http"]),
    ] {
        let tried = list(server, args);
        assert_eq!(tried.status.code(), Some(8), "{server}: {}", text(&tried));
    }
}

#[test]
fn an_empty_token_is_none_that_protects() {
    let dir = tempfile::tempdir().unwrap();
    let file = write(dir.path(), "token", "\n");
    for (token, args) in [
        ("", &["serve", "--listen", "127.0.0.1:0"][..]),
        ("", &["list", "--server", "http://127.0.0.1:1"]),
        (
            "x",
            &["serve", "--listen", "127.0.0.1:0", "--token-file", &file],
        ),
        (
            "x",
            &[
                "list",
                "--server",
                "http://127.0.0.1:1",
                "--token-file",
                &file,
            ],
        ),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
        command
            .args(args)
            .arg("--state")
            .arg(dir.path().join("state"));
        let output = command.env("WINDLASS_TOKEN", token).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?} {}", text(&output));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn logs_are_lines() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path());
    let run = server.begin(COUNT, json!({ "to": 2 })).await;
    server.end(&run).await;
    let logs = windlass(dir.path(), &["logs", &run, "--watch"]);
    let shown = text(&logs);
    assert!(
        shown.lines().next().unwrap().contains("RunStarted"),
        "{shown}"
    );
    assert!(
        shown.lines().last().unwrap().contains("RunFinished"),
        "{shown}"
    );
    let count = shown.lines().count();
    let rest = windlass(dir.path(), &["logs", &run, "--after", "3", "-o", "jsonl"]);
    assert_eq!(text(&rest).lines().count(), count - 3);
    let first: Value = serde_json::from_str(text(&rest).lines().next().unwrap()).unwrap();
    assert_eq!(first["sequence"], 4);
    // The same without a server.
    assert!(server.stop().0.success());
    assert_eq!(text(&windlass(dir.path(), &["logs", &run])), shown);
}

#[test]
fn the_manual_has_a_page_for_each_command() {
    let dir = tempfile::tempdir().unwrap();
    let pages = dir.path().join("man");
    let output = windlass(dir.path(), &["man", "--dir", pages.to_str().unwrap()]);
    assert!(output.status.success(), "{}", text(&output));
    let serve = std::fs::read_to_string(pages.join("windlass-serve.1")).unwrap();
    assert!(serve.contains("\\-\\-tls\\-cert"), "{serve}");
    let page = windlass(dir.path(), &["man"]);
    assert!(text(&page).starts_with(".ie"), "{}", text(&page));
}

/// A command that is sent while no server runs reaches the next server, and no signal is received twice.
#[tokio::test(flavor = "multi_thread")]
async fn signals_reach_a_server_that_is_killed_meanwhile() {
    const SIGNALS: u64 = 10;
    let dir = tempfile::tempdir().unwrap();
    let state = dir.path().join("state");
    let mut server = Start::new(&state).spawn();
    let text = format!(
        "
variables: {{ seen: [] }}
actions:
  each:
    type: foreach
    foreach: \"@range(0, {SIGNALS})\"
    concurrency: 1
    actions:
      next: {{ type: waitForSignal, signal: next }}
      keep: {{ type: appendToArrayVariable, name: seen, value: \"@outputs('next')\" }}
outputs: \"@variables('seen')\"
"
    );
    let run = server.begin(&text, Value::Null).await;
    for number in 0..SIGNALS {
        let url = server.url.clone();
        let listen = url.strip_prefix("http://").unwrap().to_owned();
        let payload = number.to_string();
        let send = || {
            Command::new(env!("CARGO_BIN_EXE_windlass"))
                .args(["signal", &run, "next", "--payload", &payload])
                .args(["--server", &url])
                .spawn()
                .unwrap()
        };
        // The command starts while no server runs, or its server is killed meanwhile.
        let mut sender = if number % 2 == 0 {
            server.kill();
            send()
        } else {
            let sender = send();
            std::thread::sleep(std::time::Duration::from_millis(number * 5));
            server.kill();
            sender
        };
        server = Start::new(&state).args(&["--listen", &listen]).spawn();
        let sent = sender.wait().unwrap();
        assert!(sent.success(), "{number}: {sent}");
    }
    let all: Vec<u64> = (0..SIGNALS).collect();
    assert_eq!(server.end(&run).await["output"], json!(all));
}

#[test]
fn a_signal_that_reaches_no_server_says_how_it_is_sent_again() {
    let dir = tempfile::tempdir().unwrap();
    let server = Start::new(&dir.path().join("state")).spawn();
    let url = server.url.clone();
    server.kill();
    let signal = |args: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_windlass"))
            .args(["signal", "r", "go", "--payload", "1", "--server", &url])
            .args(args)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(8), "{output:?}");
        text(&output)
    };
    let printed = signal(&["--id", "mine"]);
    let again = "it is unknown whether the signal was stored: repeat the command with --id mine";
    assert!(printed.contains(again), "{printed}");
    let printed = signal(&[]);
    assert!(printed.contains("with --id signal-"), "{printed}");
}
