//! `windlass serve` from outside: real processes, real sockets, real kills.

mod api;
mod client;
mod commands;
mod console;
mod editing;
mod events;
mod export;
mod formats;
pub mod fuzz;
mod graph;
mod handled;
mod heavy;
mod iterations;
mod language;
mod life;
mod listener;
mod lists;
mod live;
mod log;
mod memory;
mod metrics;
mod remote;
mod roles;
mod security;
mod soak;
mod socket;
mod stored_iterations;
mod systemd;
mod versions;
mod waits;

use reqwest::{Client, Method, RequestBuilder, Response};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// Everything in these tests takes less time, even on the slowest machine.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A loop of twenty iterations without effects.
pub const COUNT: &str = r#"
name: count
inputs: { to: { type: integer, default: 20 } }
variables: { n: 0 }
actions:
  grow:
    type: until
    condition: "@greaterOrEquals(variables('n'), inputs('to'))"
    limit: { count: 1000, timeout: PT1H }
    actions:
      more: { type: incrementVariable, inputs: { name: n, value: 1 } }
outputs: "@variables('n')"
"#;

/// A run that sleeps for an hour.
pub const SLEEP: &str = r#"
name: sleep
actions:
  nap: { type: wait, interval: { unit: Hour, count: 1 } }
"#;

/// A server process.
pub struct Server {
    pub child: Child,
    pub url: String,
    stderr: Option<std::thread::JoinHandle<String>>,
    lines: std::sync::Mutex<mpsc::Receiver<String>>,
}

/// How a server is started.
pub struct Start<'a> {
    pub state: &'a Path,
    pub args: Vec<String>,
    pub token: Option<&'a str>,
}

impl<'a> Start<'a> {
    pub fn new(state: &'a Path) -> Self {
        Self {
            state,
            args: Vec::new(),
            token: None,
        }
    }

    pub fn args(mut self, args: &[&str]) -> Self {
        self.args.extend(args.iter().map(ToString::to_string));
        self
    }

    /// Accepts tokens of these roles; each is named like its role.
    pub fn roles(self, folder: &Path, tokens: &[(&str, &str)]) -> Self {
        let lines = tokens
            .iter()
            .map(|(role, token)| format!("{role} {role} {token}\n"));
        let file = folder.join("tokens");
        std::fs::write(&file, lines.collect::<String>()).unwrap();
        self.args(&["--token-file", file.to_str().unwrap()])
    }

    pub fn token(mut self, token: &'a str) -> Self {
        self.token = Some(token);
        self
    }

    pub fn command(&self) -> Command {
        let mut command = Command::new(binary());
        command
            .args(["serve", "--state"])
            .arg(self.state)
            .args(&self.args)
            .env("WINDLASS_LISTEN", "127.0.0.1:0")
            // The tests' servers are on this machine.
            .env("WINDLASS_ALLOW_PRIVATE_NETWORK", "true")
            .env_remove("WINDLASS_SERVER")
            .env_remove("WINDLASS_TOKEN")
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        if let Some(token) = self.token {
            command.env("WINDLASS_TOKEN", token);
        }
        command
    }

    /// Starts the server and waits until it prints its address.
    pub fn spawn(self) -> Server {
        self.spawn_with(|_| {})
    }

    pub fn spawn_with(self, change: impl FnOnce(&mut Command)) -> Server {
        let mut command = self.command();
        change(&mut command);
        let mut child = command.spawn().unwrap();
        let stderr = child.stderr.take().unwrap();
        let (sender, ready) = mpsc::channel();
        let (log, lines) = mpsc::channel();
        let reading = std::thread::spawn(move || {
            let mut reader = BufReader::new(stderr);
            let mut all = String::new();
            loop {
                let mut line = String::new();
                if reader.read_line(&mut line).unwrap_or(0) == 0 {
                    return all;
                }
                if let Some((_, url)) = line.trim().split_once("ready at ") {
                    // In a JSON log, the text ends with a quotation mark.
                    let url = url.split('"').next().unwrap();
                    let _ = sender.send(url.to_owned());
                }
                all.push_str(&line);
                let _ = log.send(line);
            }
        });
        match ready.recv_timeout(PATIENCE) {
            Ok(url) => Server {
                child,
                url,
                stderr: Some(reading),
                lines: lines.into(),
            },
            Err(_) => {
                let _ = child.kill();
                let status = child.wait().unwrap();
                panic!("no server: {status}: {}", reading.join().unwrap());
            }
        }
    }
}

impl Server {
    /// The resident memory of the process in KiB.
    pub fn resident_kib(&self) -> u64 {
        let path = format!("/proc/{}/status", self.child.id());
        let status = std::fs::read_to_string(path).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:"));
        let number = line.unwrap().split_whitespace().nth(1);
        number.unwrap().parse().unwrap()
    }

    pub fn start(state: &Path) -> Self {
        Start::new(state).spawn()
    }

    pub fn ask(&self, method: Method, path: &str) -> RequestBuilder {
        client().request(method, format!("{}{path}", self.url))
    }

    pub async fn get(&self, path: &str) -> (u16, Value) {
        answer(self.ask(Method::GET, path)).await
    }

    pub async fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        answer(with(self.ask(Method::POST, path), body)).await
    }

    /// Starts a run of a workflow's text; returns its id.
    pub async fn begin(&self, text: &str, input: Value) -> String {
        let body = json!({ "text": text, "input": input });
        let (status, run) = self.post("/v1/runs", &body).await;
        assert_eq!(status, 201, "{run}");
        run["run"].as_str().unwrap().to_owned()
    }

    /// Waits for a run's end; returns its outcome.
    pub async fn end(&self, run: &str) -> Value {
        let (status, outcome) = self.get(&format!("/v1/runs/{run}/result?wait=60")).await;
        assert_eq!(status, 200, "{outcome}");
        outcome
    }

    /// The next line on standard error that contains a text.
    pub fn log_until(&self, text: &str) -> String {
        let lines = self.lines.lock().unwrap();
        loop {
            let line = lines.recv_timeout(PATIENCE);
            let line = line.unwrap_or_else(|_| panic!("no `{text}` in the log"));
            if line.contains(text) {
                return line;
            }
        }
    }

    pub fn signal(&self, signal: nix::sys::signal::Signal) {
        let pid = i32::try_from(self.child.id()).unwrap();
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), signal).unwrap();
    }

    /// Sends SIGKILL and waits for the end of the process.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Sends SIGTERM; returns its exit status and standard error.
    pub fn stop(self) -> (ExitStatus, String) {
        self.signal(nix::sys::signal::Signal::SIGTERM);
        self.ended()
    }

    /// Its exit status after it has ended on its own, and its standard error.
    pub fn ended(mut self) -> (ExitStatus, String) {
        let status = self.child.wait().unwrap();
        let stderr = self.stderr.take().unwrap().join().unwrap();
        (status, stderr)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The binary of this build, unless another one is to be tested.
fn binary() -> std::ffi::OsString {
    std::env::var_os("WINDLASS_BIN").unwrap_or_else(|| env!("CARGO_BIN_EXE_windlass").into())
}

pub fn client() -> Client {
    Client::builder().timeout(PATIENCE * 2).build().unwrap()
}

/// A request with a body of JSON.
pub fn with(request: RequestBuilder, body: &Value) -> RequestBuilder {
    let request = request.header("content-type", "application/json");
    request.body(body.to_string())
}

pub async fn answer(request: RequestBuilder) -> (u16, Value) {
    parts(request.send().await.unwrap()).await
}

pub async fn parts(response: Response) -> (u16, Value) {
    let status = response.status().as_u16();
    let text = response.text().await.unwrap();
    let value = serde_json::from_str(&text).unwrap_or(Value::String(text));
    (status, value)
}

/// Runs the command line on the state of a server.
pub fn windlass(state: &Path, args: &[&str]) -> std::process::Output {
    Command::new(env!("CARGO_BIN_EXE_windlass"))
        .args(args)
        .arg("--state")
        .arg(state)
        // As for the servers: without a server, the command's flags decide what runs may do.
        .env("WINDLASS_ALLOW_PRIVATE_NETWORK", "true")
        .env_remove("WINDLASS_TOKEN")
        .output()
        .unwrap()
}

/// All of a process's standard error.
pub fn exit_and_stderr(mut child: Child) -> (ExitStatus, String) {
    let mut text = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut text)
        .unwrap();
    (child.wait().unwrap(), text)
}
