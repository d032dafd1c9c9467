//! The real binary with a state directory, and its events while it runs.

use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

/// A process without output for this time hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// A directory for workflow files and a state.
pub struct Place {
    pub dir: tempfile::TempDir,
}

impl Place {
    pub fn new() -> Self {
        Self {
            dir: tempfile::tempdir().unwrap(),
        }
    }

    pub fn state(&self) -> PathBuf {
        self.dir.path().join("state")
    }

    /// Writes a workflow; returns its path.
    pub fn file(&self, name: &str, text: &str) -> String {
        let path = self.dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// The binary with arguments and with this state.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
        command
            .args(args)
            .arg("--state")
            .arg(self.state())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// The output of a command that has ended.
    pub fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    /// The same as JSON; the command must succeed.
    pub fn json(&self, args: &[&str]) -> Value {
        let output = self.run(args);
        assert!(output.status.success(), "{args:?}: {output:?}");
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// Starts a process whose events are read as they arrive.
    pub fn follow(&self, args: &[&str]) -> Following {
        self.follow_from(Path::new("."), args)
    }

    /// The same, started in a folder.
    pub fn follow_from(&self, folder: &Path, args: &[&str]) -> Following {
        let mut command = self.command(args);
        command.current_dir(folder);
        Following::of(command)
    }
}

impl Following {
    /// Its standard error up to its end.
    pub fn stderr_text(&mut self) -> String {
        let mut text = String::new();
        let mut stderr = self.child.stderr.take().unwrap();
        stderr.read_to_string(&mut text).unwrap();
        text
    }

    /// Starts a command that is followed.
    pub fn of(mut command: Command) -> Self {
        let mut child = command.args(["--events", "jsonl"]).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in output.lines() {
                let Ok(line) = line else { return };
                if sender.send(serde_json::from_str(&line).unwrap()).is_err() {
                    return;
                }
            }
        });
        Following { child, lines }
    }
}

/// The content of all files in a directory, joined.
pub fn bytes_of(dir: &Path) -> Vec<u8> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(bytes_of(&path));
        } else if path.is_file() {
            found.extend(std::fs::read(&path).unwrap());
        }
    }
    found
}

/// A process that prints events.
pub struct Following {
    pub child: Child,
    lines: Receiver<Value>,
}

impl Following {
    /// The next line of its output; none after its end.
    pub fn line(&mut self) -> Option<Value> {
        match self.lines.recv_timeout(PATIENCE) {
            Ok(line) => Some(line),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => {
                self.child.kill().unwrap();
                panic!("it says nothing any more");
            }
        }
    }

    /// Reads up to an event of this kind, about this node if one is named.
    pub fn until(&mut self, event: &str, node: &str) -> Value {
        while let Some(line) = self.line() {
            let named = |key: &str| line[key].as_str().unwrap_or_default().to_owned();
            if named("event") == event && (node.is_empty() || named("node_name") == node) {
                return line;
            }
        }
        let (errors, status) = (self.stderr_text(), self.child.wait());
        panic!("it ended without {event} of {node}, with {status:?}: {errors}");
    }

    /// Its last line, the result, after its end.
    pub fn result(mut self) -> Value {
        let mut last = Value::Null;
        while let Some(line) = self.line() {
            last = line;
        }
        let mut errors = String::new();
        let from = self.child.stderr.as_mut().unwrap();
        from.read_to_string(&mut errors).unwrap();
        self.child.wait().unwrap();
        assert!(last.get("result").is_some(), "{last} {errors}");
        last["result"].clone()
    }

    /// Kills it with SIGKILL.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}
