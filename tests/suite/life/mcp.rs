//! `windlass mcp`, as an agent meets it: a real process, messages on its standard input and output.

use crate::life::first_use::Folder;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// An agent with a process of its own.
struct Agent {
    process: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    asked: u64,
}

impl Agent {
    fn new(folder: &Folder, args: &[&str]) -> Self {
        let mut process = Command::new(env!("CARGO_BIN_EXE_windlass"))
            .arg("mcp")
            .args(args)
            .current_dir(folder.path())
            .env_remove("WINDLASS_STATE")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let input = process.stdin.take();
        let output = BufReader::new(process.stdout.take().unwrap());
        let mut agent = Self {
            process,
            input,
            output,
            asked: 0,
        };
        let hello = json!({
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": { "name": "a test", "version": "1" },
        });
        let told = agent.ask("initialize", &hello);
        assert_eq!(told["serverInfo"]["name"], "windlass", "{told}");
        agent.say(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        agent
    }

    fn say(&mut self, message: &Value) {
        writeln!(self.input.as_mut().unwrap(), "{message}").unwrap();
    }

    /// A request and its result.
    fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.asked += 1;
        let id = self.asked;
        self.say(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        loop {
            let mut line = String::new();
            assert!(self.output.read_line(&mut line).unwrap() > 0, "it left");
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["id"] == id {
                assert!(message["error"].is_null(), "{message}");
                return message["result"].clone();
            }
        }
    }

    /// Calls a tool: whether it failed, and its text.
    fn call(&mut self, tool: &str, arguments: Value) -> (bool, String) {
        let told = self.ask(
            "tools/call",
            &json!({ "name": tool, "arguments": arguments }),
        );
        let text = told["content"][0]["text"].as_str().unwrap().to_owned();
        (told["isError"] == true, text)
    }

    /// What a tool gives.
    fn get(&mut self, tool: &str, arguments: Value) -> Value {
        let (failed, text) = self.call(tool, arguments);
        assert!(!failed, "{text}");
        serde_json::from_str(&text).unwrap()
    }

    /// Ends its input, and waits for the process.
    fn leave(mut self) {
        drop(self.input.take());
        assert!(self.process.wait().unwrap().success());
    }

    fn kill(mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

const COUNT: &str = "
name: count
inputs: { to: { type: integer } }
variables: { n: 0 }
actions:
  turn:
    type: doUntil
    condition: \"@equals(variables('n'), inputs('to'))\"
    limit: { count: 1000 }
    delay: 20ms
    actions: { more: { type: incrementVariable, name: n } }
outputs: { n: \"@variables('n')\" }
";

const ASK: &str = "
name: ask
actions:
  answer: { type: waitForSignal, inputs: { signal: answer } }
outputs: \"@outputs('answer')\"
";

#[test]
fn an_agent_starts_watches_and_signals_loops() {
    let folder = Folder::new();
    let mut agent = Agent::new(&folder, &[]);
    let tools = agent.ask("tools/list", &json!({}));
    let names: Vec<&str> = tools["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|t| t["name"].as_str().unwrap())
        .collect();
    // Each tool that is told of is there, and says what it wants.
    for name in &names {
        let (_, told) = agent.call(name, json!({ "no-such": 1 }));
        assert!(
            told.starts_with("unknown argument `no-such` (expected one of: "),
            "{name}: {told}"
        );
    }
    assert_eq!(names.len(), 15, "{names:?}");
    let (failed, page) = agent.call("workflow_reference", json!({}));
    assert!(!failed && page.contains("# The Loom format"), "{page}");

    let checked = agent.get(
        "validate_workflow",
        json!({ "text": "actions: { a: { type: htp } }" }),
    );
    assert_eq!(checked["valid"], false, "{checked}");
    let (failed, told) = agent.call(
        "start_run",
        json!({ "text": "actions: { a: { type: htp } }" }),
    );
    assert!(failed && told.contains("htp"), "{told}");

    let started = agent.get(
        "start_run",
        json!({ "text": COUNT, "inputs": { "to": 5 }, "id": "five", "labels": { "by": "agent" } }),
    );
    assert_eq!(started["run"], "five", "{started}");
    let (failed, told) = agent.call(
        "start_run",
        json!({ "text": COUNT, "inputs": { "to": 5 }, "id": "five" }),
    );
    assert!(failed && told.contains("five"), "{told}");
    let ended = agent.get("wait_for_run", json!({ "run": "five" }));
    assert_eq!(ended["output"]["n"], 5, "{ended}");
    let rows = agent.get(
        "list_iterations",
        json!({ "run": "five", "loop": "turn", "from": 3 }),
    );
    assert_eq!(rows["iterations"].as_array().unwrap().len(), 2, "{rows}");
    let one = agent.get("get_iteration", json!({ "run": "five", "path": "turn#4" }));
    assert_eq!(one["condition"], true, "{one}");
    let listed = agent.get("list_runs", json!({ "label": "by=agent" }));
    assert_eq!(listed["runs"][0]["run"], "five", "{listed}");

    agent.get("start_run", json!({ "text": ASK, "id": "asking" }));
    agent.get(
        "signal_run",
        json!({ "run": "asking", "name": "answer", "payload": { "yes": true } }),
    );
    let ended = agent.get("wait_for_run", json!({ "run": "asking" }));
    assert_eq!(ended["output"]["yes"], true, "{ended}");
    let (failed, told) = agent.call("get_run", json!({ "run": "nobody" }));
    assert!(failed && told.contains("nobody"), "{told}");
    agent.leave();
}

#[test]
fn a_run_goes_on_with_the_next_agent_after_a_kill() {
    let folder = Folder::new();
    let mut agent = Agent::new(&folder, &[]);
    agent.get(
        "start_run",
        json!({ "text": COUNT, "inputs": { "to": 100 }, "id": "long" }),
    );
    loop {
        let loops = agent.get("list_loops", json!({ "run": "long" }));
        if loops["loops"][0]["iterations"].as_u64().unwrap_or_default() > 3 {
            break;
        }
    }
    agent.kill();
    let mut agent = Agent::new(&folder, &[]);
    // A second agent joins the first one, and takes over when that is killed.
    let mut second = Agent::new(&folder, &[]);
    let status = second.get("get_run", json!({ "run": "long" }));
    assert!(
        status["loops"][0]["iterations_completed"].as_u64().unwrap() > 3,
        "{status}"
    );
    assert_eq!(
        agent.get("get_run", json!({ "run": "long" }))["run"],
        "long"
    );
    agent.kill();
    let ended = second.get("wait_for_run", json!({ "run": "long", "seconds": 60 }));
    assert_eq!(ended["output"]["n"], 100, "{ended}");
    second.leave();
}

#[test]
fn the_workflow_of_an_agent_is_a_guests() {
    let folder = Folder::new();
    let shell = "name: sh\nactions: { a: { type: shell, inputs: { run: touch made } } }\n";
    let mut agent = Agent::new(&folder, &[]);
    let checked = agent.get("validate_workflow", json!({ "text": shell }));
    assert_eq!(checked["valid"], false, "{checked}");
    let said = checked["diagnostics"][0]["message"].as_str().unwrap();
    assert!(said.contains("may not use `shell`"), "{checked}");
    let (failed, told) = agent.call("start_run", json!({ "text": shell, "id": "s" }));
    let told = match failed {
        true => told,
        false => agent.call("wait_for_run", json!({ "run": "s" })).1,
    };
    assert!(told.contains("may not use `shell`"), "{told}");
    assert!(!folder.path().join("made").exists());
    agent.leave();
}

#[test]
fn an_agent_starts_what_is_kept_and_that_has_its_own_rights() {
    let folder = Folder::new();
    // Kept by the operator, who may let it call commands.
    let shell = "name: sh\nactions: { a: { type: shell, inputs: { run: touch made } } }\n";
    std::fs::write(folder.path().join("sh.yaml"), shell).unwrap();
    let put = Command::new(env!("CARGO_BIN_EXE_windlass"))
        .args(["workflow", "put", "sh", "sh.yaml"])
        .current_dir(folder.path())
        .env_remove("WINDLASS_STATE")
        .output()
        .unwrap();
    assert!(put.status.success(), "{put:?}");
    let mut agent = Agent::new(&folder, &[]);
    agent.get("start_run", json!({ "workflow": "sh", "id": "kept" }));
    let ended = agent.get("wait_for_run", json!({ "run": "kept" }));
    assert_eq!(ended["status"], "Succeeded", "{ended}");
    let (failed, told) = agent.call("start_run", json!({ "workflow": "nix" }));
    assert!(failed && told.contains("nix"), "{told}");
    agent.leave();
}

#[test]
fn no_id_leads_to_all_runs() {
    let folder = Folder::new();
    let mut agent = Agent::new(&folder, &[]);
    agent.get("start_run", json!({ "text": ASK, "id": "asking" }));
    agent.get("pause_run", json!({ "run": "asking" }));
    for id in ["..", ".", ""] {
        for tool in ["get_run", "resume_run", "cancel_run", "list_loops"] {
            let (failed, told) = agent.call(tool, json!({ "run": id }));
            assert!(
                failed && told.contains("the id of a run"),
                "{tool} {id}: {told}"
            );
        }
        for verb in [
            "resume", "cancel", "pause", "status", "history", "dump", "logs",
        ] {
            let told = Command::new(env!("CARGO_BIN_EXE_windlass"))
                .args([verb, id])
                .current_dir(folder.path())
                .env_remove("WINDLASS_STATE")
                .output()
                .unwrap();
            assert_eq!(told.status.code(), Some(2), "{verb} {id}: {told:?}");
        }
    }
    let status = agent.get("get_run", json!({ "run": "asking" }));
    assert_eq!(status["status"], "Paused", "{status}");
    agent.leave();
}

#[test]
fn what_is_no_message_ends_nothing() {
    let folder = Folder::new();
    let mut agent = Agent::new(&folder, &[]);
    agent.say(&json!("nothing"));
    writeln!(agent.input.as_mut().unwrap(), "{{ this is not valid JSON").unwrap();
    let (failed, told) = agent.call("get_run", json!({ "run": 7 }));
    assert!(failed && told.contains("`run` has to be a text"), "{told}");
    let (failed, told) = agent.call("no_such_tool", json!({}));
    assert!(
        failed && told.contains("unknown tool `no_such_tool`"),
        "{told}"
    );
    agent.leave();
}
