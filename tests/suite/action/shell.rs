//! `shell`: real processes, and that no process remains.

use super::{attempt, gist, kill_when_it_waits, plain, request, soon, wait_to_be_killed};
use crate::support;
use serde_json::{Value as Json, json};
use std::path::Path;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::net::unix::pipe;
use windlass_actions::Registry;
use windlass_model::model::Fault;

async fn shell(inputs: Json) -> Result<Json, Fault> {
    soon(attempt("shell", inputs)).await
}

async fn run(text: &str) -> Json {
    shell(json!({ "run": text })).await.unwrap()
}

#[tokio::test]
async fn the_output_has_everything() {
    let output = run("echo out; echo err >&2").await;
    assert_eq!(
        output,
        json!({ "exitCode": 0, "stdout": "out\n", "stderr": "err\n", "body": "out" })
    );
}

#[tokio::test]
async fn the_body_is_json_if_it_is_json() {
    assert_eq!(
        run(r#"echo '{"a": [1]}'"#).await["body"],
        json!({ "a": [1] })
    );
    assert_eq!(run("echo 5").await["body"], 5);
    assert_eq!(run("echo '{\"a\":'").await["body"], "{\"a\":");
    assert_eq!(run("printf 'a\\nb\\n\\n'").await["body"], "a\nb");
    assert_eq!(run("true").await["body"], "");
}

#[tokio::test]
async fn a_command_gets_its_words_as_they_are() {
    let words = json!(["printf", "%s|", "a b", "$HOME", "'", 5, true, ""]);
    let output = shell(json!({ "command": words })).await.unwrap();
    assert_eq!(output["stdout"], "a b|$HOME|'|5|true||");
}

#[tokio::test]
async fn files_exist_while_the_command_runs_and_only_for_its_user() {
    let output = shell(json!({
        "run": "cat \"$A\" \"$B\"; echo; stat -c %a $(dirname \"$A\"); echo $A",
        "files": { "A": "text", "B": { "n": [1] } },
    }));
    let output = output.await.unwrap();
    let lines: Vec<&str> = output["stdout"].as_str().unwrap().lines().collect();
    assert_eq!(lines[..2], [r#"text{"n":[1]}"#, "700"]);
    assert!(!Path::new(lines[2]).exists());
}

#[tokio::test]
async fn environment_directory_and_input() {
    let folder = tempfile::tempdir().unwrap();
    let output = shell(json!({
        "run": "pwd; echo $WINDLASS_IDEMPOTENCY_KEY $WINDLASS_ATTEMPT; echo $TEXT $LIST $HOME-; cat",
        "env": { "TEXT": "a $b", "LIST": [1, { "x": 2 }], "HOME": null },
        "cwd": folder.path().to_str().unwrap(),
        "stdin": { "k": "v" },
    }))
    .await
    .unwrap();
    let expected = format!(
        "{}\nrun-1/loop[3]/an_action 2\na $b [1,{{\"x\":2}}] -\n{{\"k\":\"v\"}}",
        folder.path().canonicalize().unwrap().display()
    );
    assert_eq!(output["stdout"], expected);
}

#[tokio::test]
async fn a_code_other_than_0_fails_and_keeps_the_output() {
    let fault = shell(json!({ "run": "echo '{\"a\":1}'; echo no disk >&2; echo >&2; exit 3" }));
    let fault = fault.await.unwrap_err();
    assert_eq!(gist(&fault), json!(["shell", "3", true, null]));
    assert_eq!(fault.message, "the command ended with exit code 3: no disk");
    let output = plain(fault.output.as_ref().unwrap());
    assert_eq!(output["exitCode"], 3);
    assert_eq!(output["body"], json!({ "a": 1 }));
    assert_eq!(output["stderr"], "no disk\n\n");

    let killed = shell(json!({ "run": "kill -9 $$" })).await.unwrap_err();
    assert_eq!(gist(&killed), json!(["shell", "137", true, null]));
    assert_eq!(killed.message, "the command was killed by signal 9");
}

#[tokio::test]
async fn message_quotes_up_to_ten_lines_of_standard_error() {
    // psql, gcc and rustc draw a caret below the mistake.
    let psql = "ERROR:  syntax error\nLINE 1: select from where\n                    ^";
    // node names the error above its stack.
    let frames: String = (0..12)
        .map(|n| format!("    at f{n} (x.js:1:1)\n"))
        .collect();
    let node = format!(
        "/tmp/x.js:1\nfoo()\n^\n\nReferenceError: foo is not defined\n{frames}\nNode.js v22"
    );
    let many: String = (0..40).map(|n| format!("line {n}\n")).collect();
    for (printed, expected) in [
        (psql.to_owned(), ":\n  ERROR:  syntax error\n  LINE 1: select from where\n                      ^".to_owned()),
        (node, ":\n  /tmp/x.js:1\n  foo()\n  ^\n  ReferenceError: foo is not defined\n  Node.js v22".to_owned()),
        (many, ":\n  line 0\n  line 1\n  line 2\n  line 3\n  line 4\n  ...\n  line 36\n  line 37\n  line 38\n  line 39".to_owned()),
    ] {
        let run = json!({ "run": "printf '%s\n' \"$TEXT\" >&2; exit 1", "env": { "TEXT": printed } });
        let fault = shell(run).await.unwrap_err();
        let message = format!("the command ended with exit code 1{expected}");
        assert_eq!(fault.message, message);
        let output = plain(fault.output.as_ref().unwrap());
        assert_eq!(output["stderr"], format!("{printed}\n"));
    }
}

#[tokio::test]
async fn what_cannot_be_run() {
    let cases = [
        (json!({}), "input", "`run` or `command` is missing"),
        (
            json!({ "run": "a", "command": ["b"] }),
            "input",
            "`run` and `command` exclude each other",
        ),
        (
            json!({ "run": 1 }),
            "input",
            "`run` must be a string, not integer",
        ),
        (
            json!({ "command": "ls" }),
            "input",
            "`command` must be an array, not string",
        ),
        (json!({ "command": [] }), "input", "the command is empty"),
        (json!({ "command": [""] }), "input", "the command is empty"),
        (
            json!({ "command": ["ls", []] }),
            "input",
            "`command` must be a single value, not array",
        ),
        (
            json!({ "command": ["ls", "a\0b"] }),
            "input",
            "nul byte found in provided data",
        ),
        (
            json!({ "run": "ls", "env": [] }),
            "input",
            "`env` must be a map, not array",
        ),
        (
            json!({ "run": "ls", "env": { "A=B": 1 } }),
            "input",
            "the name of a variable in `env` is not usable",
        ),
        (
            json!({ "command": ["no-such-program"] }),
            "shell",
            "cannot start `no-such-program`: No such file or directory (os error 2)",
        ),
        (
            json!({ "run": "ls", "cwd": "/no/such" }),
            "shell",
            "cannot start `sh`: /no/such is not a directory",
        ),
        (
            json!({ "run": "no-such-program" }),
            "shell",
            "the command ended with exit code 127: sh: ",
        ),
    ];
    for (inputs, kind, message) in cases {
        let fault = shell(inputs.clone()).await.unwrap_err();
        assert_eq!(&*fault.kind, kind, "{inputs}");
        assert!(
            fault.message.starts_with(message),
            "{inputs}: {}",
            fault.message
        );
    }
}

#[tokio::test]
async fn large_input_and_output_pass() {
    let text = "0123456789abcdef".repeat(8 << 16);
    let output = shell(json!({ "command": ["cat"], "stdin": text }))
        .await
        .unwrap();
    assert!(output["stdout"] == text.as_str());
    // The command does not have to read its standard input.
    assert_eq!(
        shell(json!({ "run": "echo done", "stdin": text }))
            .await
            .unwrap()["body"],
        "done"
    );
}

#[tokio::test]
async fn output_is_bounded() {
    let fault = shell(json!({ "run": "trap '' PIPE; yes" }))
        .await
        .unwrap_err();
    assert_eq!(gist(&fault), json!(["too_large", null, false, null]));
    assert_eq!(fault.message, "more than 16 MiB on standard output");

    let stderr = "head -c 3000000 /dev/zero | tr '\\0' x >&2; echo end >&2";
    let stored = run(stderr).await["stderr"].as_str().unwrap().to_owned();
    assert_eq!(stored.len(), 1 << 20);
    assert!(stored.ends_with("xend\n"));
}

#[tokio::test]
async fn json_of_many_small_values_is_refused_and_text_is_not() {
    let heavy = "printf '[{}'; yes ',{}' | head -c 2000000 | tr -d '\\n'; printf ']'";
    let fault = shell(json!({ "run": heavy })).await.unwrap_err();
    assert_eq!(gist(&fault), json!(["too_large", null, false, null]));
    let of = "the values of standard output would need about ";
    assert!(fault.message.starts_with(of), "{fault:?}");
    let text = run(&format!("{heavy}; echo .")).await;
    assert!(text["body"].as_str().unwrap().ends_with("{}]."));
}

/// A FIFO that is open for writing while any process of the test runs.
struct Alive {
    fifo: BufReader<pipe::Receiver>,
}

impl Alive {
    fn new(folder: &Path) -> Self {
        let path = folder.join("fifo");
        let made = std::process::Command::new("mkfifo").arg(&path).status();
        assert!(made.unwrap().success());
        let fifo = pipe::OpenOptions::new().open_receiver(&path).unwrap();
        Self {
            fifo: BufReader::new(fifo),
        }
    }

    /// Waits until a process has opened the FIFO and written to it.
    async fn begun(&mut self) {
        let mut line = String::new();
        soon(self.fifo.read_line(&mut line)).await.unwrap();
        assert_eq!(line, "ready\n");
    }

    /// Waits until the last process has ended.
    async fn ended(&mut self) {
        let mut rest = String::new();
        soon(self.fifo.read_to_string(&mut rest)).await.unwrap();
        assert_eq!(rest, "");
    }
}

/// A shell that waits for a grandchild, which sleeps; both hold the FIFO.
const FAMILY: &str = "exec 3>fifo; (trap '' TERM; echo ready >&3; sleep 1000; true) & wait";

fn family(folder: &Path) -> Json {
    json!({ "run": FAMILY, "cwd": folder.to_str().unwrap() })
}

#[tokio::test]
async fn a_dropped_attempt_leaves_no_process() {
    let folder = tempfile::tempdir().unwrap();
    let mut alive = Alive::new(folder.path());
    let registry = Registry::new();
    let request = request("shell", family(folder.path()));
    tokio::select! {
        given = registry.execute(&request) => panic!("{given:?}"),
        () = alive.begun() => {}
    }
    alive.ended().await;
}

#[tokio::test]
async fn a_timeout_leaves_no_process() {
    let folder = tempfile::tempdir().unwrap();
    let mut alive = Alive::new(folder.path());
    let registry = Registry::new();
    let mut request = request("shell", family(folder.path()));
    request.timeout_ms = Some(500);
    let (given, ()) = tokio::join!(soon(registry.execute(&request)), alive.begun());
    assert_eq!(
        gist(&given.unwrap_err()),
        json!(["timeout", null, true, null])
    );
    alive.ended().await;
}

#[tokio::test]
async fn what_a_command_leaves_in_the_background_ends_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut alive = Alive::new(folder.path());
    // The grandchild also holds the pipes of the command open.
    let inputs = json!({
        "run": "exec 3>fifo; echo ready >&3; sleep 1000 & echo done",
        "cwd": folder.path().to_str().unwrap(),
    });
    let registry = Registry::new();
    let request = request("shell", inputs);
    let (given, ()) = tokio::join!(soon(registry.execute(&request)), alive.begun());
    assert_eq!(plain(&given.unwrap())["body"], "done");
    alive.ended().await;
}

const FOLDER: &str = "WINDLASS_TEST_FOLDER";

#[tokio::test]
async fn a_killed_engine_leaves_no_process() {
    let folder = tempfile::tempdir().unwrap();
    let mut alive = Alive::new(folder.path());
    let engine = support::this_test_binary("action::shell::an_engine_to_kill")
        .env(FOLDER, folder.path())
        .spawn()
        .unwrap();
    alive.begun().await;
    // By then the engine knows the process only by its id.
    kill_when_it_waits(engine);
    alive.ended().await;
}

#[tokio::test]
#[ignore = "run by a_killed_engine_leaves_no_process, in a process of its own"]
async fn an_engine_to_kill() {
    let folder = std::env::var_os(FOLDER).unwrap();
    let request = request("shell", family(Path::new(&folder)));
    wait_to_be_killed(&request).await;
}
