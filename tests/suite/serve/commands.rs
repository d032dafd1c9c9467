//! Every command with a server, reached in both ways: over the control socket on the same machine, and over HTTP.

use super::{COUNT, PATIENCE, SLEEP, Server, Start};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;

const TOKEN: &str = "secret";

/// How a server is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Socket,
    Http,
}

struct Client {
    way: Way,
    state: PathBuf,
    url: String,
    elsewhere: tempfile::TempDir,
}

impl Client {
    fn new(way: Way, state: &Path, server: &Server) -> Self {
        Self {
            way,
            state: state.to_owned(),
            url: server.url.clone(),
            elsewhere: tempfile::tempdir().unwrap(),
        }
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
        command.args(args).current_dir(self.elsewhere.path());
        match self.way {
            Way::Socket => command.arg("--state").arg(&self.state),
            Way::Http => command
                .args(["--server", &self.url])
                .env("WINDLASS_TOKEN", TOKEN),
        };
        command
    }

    fn ask(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    /// The output of a command that succeeds, as JSON.
    fn json(&self, args: &[&str]) -> Value {
        let output = self.command(args).args(["-o", "json"]).output().unwrap();
        assert!(
            output.status.success(),
            "{:?} {args:?} {output:?}",
            self.way
        );
        serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{:?} {args:?} {error}: {output:?}", self.way))
    }
}

fn write(dir: &Path, name: &str, content: &str) -> String {
    let path = dir.join(name);
    std::fs::write(&path, content).unwrap();
    path.to_str().unwrap().to_owned()
}

const GATE: &str = "
name: gate
actions: { wait: { type: waitForSignal, signal: go } }
outputs: \"@body('wait')\"
";

const BAD: &str =
    "name: bad\nactions: { fall: { type: terminate, inputs: { runStatus: Failed } } }";

#[tokio::test(flavor = "multi_thread")]
async fn every_command_works_in_both_ways() {
    let dir = tempfile::tempdir().unwrap();
    let state = dir.path().join("state");
    let server = Start::new(&state).token(TOKEN).spawn();
    let count = write(dir.path(), "count.yaml", COUNT);
    let sleep = write(dir.path(), "sleep.yaml", SLEEP);
    let gate = write(dir.path(), "gate.yaml", GATE);
    let bad = write(dir.path(), "bad.yaml", BAD);
    for way in [Way::Socket, Way::Http] {
        let client = Client::new(way, &state, &server);
        let json = |args: &[&str]| client.json(args);

        let four = json(&["run", &count, "--id", "count", "-i", "to:=4"]);
        assert_eq!(four, json!(4), "{way:?}");
        for (file, id) in [(&sleep, "sleep"), (&gate, "gate")] {
            let detached = client.ask(&["run", file, "--id", id, "--detach"]);
            assert_eq!(
                detached.stdout,
                format!("{id}\n").into_bytes(),
                "{detached:?}"
            );
        }
        let failed = client.ask(&["run", &bad, "--id", "bad"]);
        assert_eq!(failed.status.code(), Some(1), "{way:?} {failed:?}");

        let ids = |list: &Value, key: &str| -> Vec<String> {
            let found = list.as_array().unwrap().iter();
            found
                .map(|one| one.pointer(key).unwrap().as_str().unwrap().to_owned())
                .collect()
        };
        let listed = ids(&json(&["list"]), "/run");
        assert_eq!(listed, ["bad", "gate", "sleep", "count"], "{way:?}");
        assert_eq!(json(&["status", "sleep"])["status"], "Waiting", "{way:?}");
        let history = json(&["history", "count", "--events"]);
        assert_eq!(
            history["iterations"].as_array().unwrap().len(),
            4,
            "{way:?}"
        );
        let logs = client.ask(&["logs", "count", "-o", "jsonl"]);
        let lines = logs.stdout.split(|byte| *byte == b'\n').count() - 1;
        assert_eq!(
            lines,
            history["events"].as_array().unwrap().len(),
            "{way:?}"
        );
        let one = json(&["dump", "count"]);
        assert_eq!(one["runs"][0]["header"]["run"], "count", "{way:?}");
        // More rows than a page over HTTP has.
        for n in 0..25 {
            let id = format!("more-{n:02}");
            let run = client.ask(&["run", &sleep, "--id", &id, "--detach"]);
            assert!(run.status.success(), "{way:?} {run:?}");
        }
        let all = json(&["dump"]);
        let dumped = ids(&all["runs"], "/header/run");
        assert_eq!(dumped.len(), 29, "{way:?} {dumped:?}");
        assert!(dumped.is_sorted(), "{dumped:?}");
        for n in 0..25 {
            json(&["cancel", &format!("more-{n:02}")]);
        }

        let paused = json(&["pause", "gate"]);
        assert_eq!(
            paused,
            json!({ "run": "gate", "status": "Paused" }),
            "{way:?}"
        );
        json(&["signal", "gate", "go", "--payload", "[7]"]);
        assert_eq!(json(&["cancel", "sleep"])["status"], "Cancelled", "{way:?}");
        // Without ids it resumes all runs that have not ended except the paused one and those that the server
        // executes, so none.
        let open = client.ask(&["run", &gate, "--id", "open", "--detach"]);
        assert!(open.status.success(), "{way:?} {open:?}");
        let left = client.ask(&["resume"]);
        assert!(left.status.success(), "{way:?} {left:?}");
        let stderr = String::from_utf8_lossy(&left.stderr).into_owned();
        assert!(
            stderr.contains("executes 1 unfinished run; 1 paused run: `"),
            "{way:?} {stderr}"
        );
        json(&["cancel", "open"]);
        assert_eq!(json(&["status", "gate"])["status"], "Paused", "{way:?}");
        assert_eq!(json(&["resume", "--paused"]), json!([7]), "{way:?}");
        assert_eq!(json(&["resume", "gate"]), json!([7]), "{way:?}");
        let retried = client.ask(&["retry", "bad", "--id", "worse", "--from", "failed"]);
        assert_eq!(retried.status.code(), Some(1), "{way:?} {retried:?}");
        assert_eq!(
            json(&["status", "worse"])["labels"]["windlass.retry_of"],
            "bad",
            "{way:?}"
        );
        let doctor = json(&["doctor"]);
        assert_eq!(doctor["checks"][0]["health"], "good", "{way:?} {doctor}");

        let would = json(&[
            "prune",
            "--older-than",
            "PT0.001S",
            "--keep",
            "1",
            "--dry-run",
        ]);
        // The newer one of `bad` and `worse`, of `gate` and `open`, and the newest of the 26 that slept.
        assert_eq!(
            would["runs"].as_array().unwrap().len(),
            27,
            "{way:?} {would}"
        );
        let pruned = json(&["prune", "--keep", "0"]);
        assert_eq!(
            pruned["runs"].as_array().unwrap().len(),
            31,
            "{way:?} {pruned}"
        );
        assert_eq!(json(&["list"]), json!([]), "{way:?}");
        // No command stores anything on the client's side.
        let left = std::fs::read_dir(client.elsewhere.path()).unwrap().count();
        assert_eq!(left, 0, "{way:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn prune_over_http_wants_to_know_what() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path());
    for body in [
        json!({}),
        json!({ "workflow": "a" }),
        json!({ "older_than": "yesterday" }),
        json!({ "older": "P1D" }),
    ] {
        let (status, response) = server.post("/v1/prune", &body).await;
        assert_eq!(status, 400, "{body}: {response}");
    }
    assert_eq!(server.get("/v1/dump?limit=many").await.0, 400);
}

/// A variable that is not set in a script must not select every run.
#[tokio::test(flavor = "multi_thread")]
async fn an_empty_selector_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path());
    for name in ["workflow", "status", "runs", "label"] {
        let (status, problem) = server.get(&format!("/v1/runs?{name}=")).await;
        assert_eq!(status, 400, "{name}: {problem}");
        assert!(
            problem["detail"].as_str().unwrap().contains('`'),
            "{problem}"
        );
    }
    for command in ["list", "cancel", "pause", "prune"] {
        for empty in ["", ",", "a,"] {
            let output = Command::new(env!("CARGO_BIN_EXE_windlass"))
                .args([command, "--workflow", empty, "--server", &server.url])
                .output()
                .unwrap();
            assert_eq!(
                output.status.code(),
                Some(2),
                "{command} {empty}: {output:?}"
            );
        }
    }
    // Nothing is older than the oldest time.
    let listed = Command::new(env!("CARGO_BIN_EXE_windlass"))
        .args([
            "list",
            "--since",
            "1000000d",
            "--stuck",
            "99999999d",
            "--server",
            &server.url,
        ])
        .output()
        .unwrap();
    assert!(listed.status.success(), "{listed:?}");
}

// ── --watch ─────────────────────────────────────────────────────────────────────────────────────

/// A command that prints continuously.
struct Watching {
    child: Child,
    lines: mpsc::Receiver<String>,
}

impl Watching {
    fn begin(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in output.lines() {
                if sender.send(line.unwrap()).is_err() {
                    return;
                }
            }
        });
        Self { child, lines }
    }

    /// Reads up to a line that contains this text.
    fn until(&mut self, text: &str) -> String {
        loop {
            match self.lines.recv_timeout(PATIENCE) {
                Ok(line) if line.contains(text) => return line,
                Ok(_) => {}
                Err(error) => {
                    let _ = self.child.kill();
                    panic!("no line with {text}: {error}");
                }
            }
        }
    }
}

/// Two iterations, each after a signal.
const STEPS: &str = r#"
name: steps
variables: { n: 0 }
actions:
  poll:
    type: until
    condition: "@equals(variables('n'), 2)"
    limit: { count: 7, timeout: PT1H }
    actions:
      wait: { type: waitForSignal, signal: go }
      next: { type: incrementVariable, name: n, value: 1 }
"#;

#[tokio::test(flavor = "multi_thread")]
async fn status_watches_a_run_of_a_live_server_to_its_end() {
    let dir = tempfile::tempdir().unwrap();
    let server = Start::new(dir.path()).token(TOKEN).spawn();
    for way in [Way::Socket, Way::Http] {
        let client = Client::new(way, dir.path(), &server);
        let steps = write(client.elsewhere.path(), "steps.yaml", STEPS);
        let id = format!("{way:?}");
        let begun = client.ask(&["run", &steps, "--id", &id, "--detach"]);
        assert!(begun.status.success(), "{begun:?}");
        let args = ["status", &id, "--watch", "-o", "jsonl"];
        let mut watching = Watching::begin(client.command(&args));
        let mut table = Watching::begin(client.command(&["status", &id, "--watch"]));
        let first: Value = serde_json::from_str(&watching.until("\"run\"")).unwrap();
        assert_eq!(first["status"], "Waiting", "{first}");
        assert_eq!(first["loops"][0]["iteration"], 1, "{first}");
        table.until("iteration 1/7");
        client.json(&["signal", &id, "go"]);
        let second: Value = serde_json::from_str(&watching.until("\"run\"")).unwrap();
        assert_eq!(second["loops"][0]["iteration"], 2, "{second}");
        table.until("iteration 2/7");
        client.json(&["signal", &id, "go"]);
        let last: Value = serde_json::from_str(&watching.until("Succeeded")).unwrap();
        assert_eq!(last["status"], "Succeeded", "{last}");
        table.until("Succeeded");
        // Nothing more can change, so the commands end.
        for mut one in [watching, table] {
            assert!(one.child.wait().unwrap().success());
        }
    }
}
