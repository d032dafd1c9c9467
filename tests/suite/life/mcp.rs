//! `windlass mcp` as an agent uses it: a real process, with messages on its standard input and output.

use crate::life::first_use::Folder;
use crate::serve::{Server, Start};
use crate::support::{self, sized};
use axum::Router;
use axum::routing::get;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// An agent with its own process.
struct Agent {
    process: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    last_id: u64,
    /// The notifications that it received.
    notifications: Vec<Value>,
}

impl Agent {
    fn new(folder: &Folder, args: &[&str]) -> Self {
        Self::with(folder, args, &json!({}))
    }

    /// An agent whose client supports tasks.
    fn with_tasks(folder: &Folder, args: &[&str]) -> Self {
        let capabilities = json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
        Self::with(folder, args, &capabilities)
    }

    fn with(folder: &Folder, args: &[&str], capabilities: &Value) -> Self {
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
            last_id: 0,
            notifications: Vec::new(),
        };
        let hello = json!({
            "protocolVersion": "2025-06-18",
            "capabilities": capabilities,
            "clientInfo": { "name": "a test", "version": "1" },
        });
        let response = agent.ask("initialize", &hello);
        assert_eq!(response["serverInfo"]["name"], "windlass", "{response}");
        agent.say(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        agent
    }

    fn say(&mut self, message: &Value) {
        writeln!(self.input.as_mut().unwrap(), "{message}").unwrap();
    }

    /// A request and its result.
    fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.last_id += 1;
        let id = self.last_id;
        self.say(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        loop {
            let message = self.read();
            if message["id"] == id {
                assert!(message["error"].is_null(), "{message}");
                return message["result"].clone();
            }
            self.notifications.push(message);
        }
    }

    fn read(&mut self) -> Value {
        let mut line = String::new();
        assert!(self.output.read_line(&mut line).unwrap() > 0, "it left");
        serde_json::from_str(&line).unwrap()
    }

    /// Calls a tool. Returns whether it failed, and its text.
    fn call(&mut self, tool: &str, arguments: Value) -> (bool, String) {
        let response = self.ask(
            "tools/call",
            &json!({ "name": tool, "arguments": arguments }),
        );
        let text = response["content"][0]["text"].as_str().unwrap().to_owned();
        (response["isError"] == true, text)
    }

    /// The result of a tool that succeeds.
    fn get(&mut self, tool: &str, arguments: Value) -> Value {
        let (failed, message) = self.call(tool, arguments);
        assert!(!failed, "{message}");
        serde_json::from_str(&message).unwrap()
    }

    /// Waits for the notification that a task has a status.
    fn notified(&mut self, task: &str, status: &str) {
        let is_it = |message: &Value| {
            let params = &message["params"];
            message["method"] == "notifications/tasks"
                && params["taskId"] == task
                && params["status"] == status
        };
        while !self.notifications.iter().any(is_it) {
            let message = self.read();
            self.notifications.push(message);
        }
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

/// A server whose job is done after this number of checks.
async fn job(checks: usize) -> String {
    let seen = Arc::new(AtomicUsize::new(0));
    let answer = move || {
        let number = seen.fetch_add(1, Ordering::SeqCst) + 1;
        let state = if number < checks { "running" } else { "done" };
        async move { axum::Json(json!({ "state": state, "checks": number })) }
    };
    support::serve(Router::new().route("/job", get(answer))).await
}

/// Starts a call as a task; returns the task's id.
fn task(agent: &mut Agent, tool: &str, arguments: &Value) -> String {
    let response = agent.ask(
        "tools/call",
        &json!({ "name": tool, "arguments": arguments }),
    );
    assert_eq!(response["resultType"], "task", "{response}");
    response["taskId"].as_str().unwrap().to_owned()
}

/// Polls a task until it has this status.
fn until(agent: &mut Agent, task: &str, status: &str) -> Value {
    loop {
        let response = agent.ask("tasks/get", &json!({ "taskId": task }));
        if response["status"] == status {
            return response;
        }
        assert!(
            ["working", "input_required"].contains(&response["status"].as_str().unwrap()),
            "{response}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_survives_its_client_and_its_server() {
    let url = format!("{}/job", job(30).await);
    let poll = json!({ "url": url, "until": "body.state == 'done'", "every": "20ms" });
    tokio::task::block_in_place(|| {
        let folder = Folder::new();
        let allow = ["--allow-private-network"];
        let mut agent = Agent::with_tasks(&folder, &allow);
        let id = task(&mut agent, "poll", &poll);
        let response = agent.ask("tasks/get", &json!({ "taskId": id }));
        assert!(
            response["statusMessage"].as_str().unwrap().contains(&id),
            "{response}"
        );
        assert!(
            response["pollIntervalMs"].as_u64().unwrap() >= 1000,
            "{response}"
        );
        // A repeated call joins the same wait.
        assert_eq!(task(&mut agent, "poll", &poll), id);
        agent.kill();
        let mut agent = Agent::with_tasks(&folder, &allow);
        let response = until(&mut agent, &id, "completed");
        let text = response["result"]["content"][0]["text"].as_str().unwrap();
        let result: Value = serde_json::from_str(text).unwrap();
        assert_eq!(result["status"], "Succeeded", "{result}");
        assert_eq!(result["output"]["checks"], 30, "{result}");
        // A wait that never ends is cancelled.
        let never = json!({ "url": url, "until": "body.state == 'never'", "every": "20ms" });
        let id = task(&mut agent, "poll", &never);
        agent.ask("tasks/cancel", &json!({ "taskId": id }));
        until(&mut agent, &id, "cancelled");
        agent.ask("tasks/cancel", &json!({ "taskId": id }));
        agent.leave();
    });
}

/// The process of the agent is killed at any moment: while it starts, answers, or executes runs.
#[test]
fn many_kills_lose_no_task() {
    let folder = Folder::new();
    let mut accepted = Vec::new();
    for round in 0..sized(100, 30_u64) {
        let mut agent = Agent::with_tasks(&folder, &[]);
        let id = format!("r{round}");
        let arguments = json!({ "text": COUNT, "inputs": { "to": 5 }, "id": id });
        assert_eq!(task(&mut agent, "start_run", &arguments), id);
        accepted.push(id);
        std::thread::sleep(Duration::from_millis(round * 7 % 50));
        agent.kill();
    }
    let mut agent = Agent::with_tasks(&folder, &[]);
    for id in accepted {
        let response = until(&mut agent, &id, "completed");
        let text = response["result"]["content"][0]["text"].as_str().unwrap();
        let result: Value = serde_json::from_str(text).unwrap();
        assert_eq!(result["output"]["n"], 5, "{result}");
        // The result stays, so a client that did not receive it can request it again.
        assert_eq!(
            until(&mut agent, &id, "completed")["result"],
            response["result"]
        );
    }
    agent.leave();
}

#[test]
fn a_task_asks_people_and_continues_with_their_answer() {
    let folder = Folder::new();
    let mut agent = Agent::with_tasks(&folder, &[]);
    let text = "
actions:
  ask:
    type: waitForSignal
    title: Deploy?
    choices: [yes, no]
    schema: { properties: { ticket: { type: integer } }, required: [ticket] }
outputs: \"@outputs('ask')\"
";
    let id = task(&mut agent, "start_run", &json!({ "text": text }));
    let response = until(&mut agent, &id, "input_required");
    let requests = response["inputRequests"].as_object().unwrap();
    let (key, request) = requests.iter().next().unwrap();
    assert_eq!(request["method"], "elicitation/create", "{response}");
    assert_eq!(request["params"]["message"], "Deploy?", "{response}");
    let schema = &request["params"]["requestedSchema"];
    assert_eq!(
        schema["properties"]["choice"]["enum"],
        json!(["yes", "no"]),
        "{response}"
    );
    assert_eq!(
        schema["properties"]["ticket"]["type"], "integer",
        "{response}"
    );
    // A person may decline, and the run continues to wait.
    let key = key.clone();
    let decline = json!({ &key: { "action": "decline" } });
    agent.ask(
        "tasks/update",
        &json!({ "taskId": id, "inputResponses": decline }),
    );
    until(&mut agent, &id, "input_required");
    let accept =
        json!({ &key: { "action": "accept", "content": { "choice": "yes", "ticket": 7 } } });
    let update = json!({ "taskId": id, "inputResponses": accept });
    agent.ask("tasks/update", &update);
    let response = until(&mut agent, &id, "completed");
    let text = response["result"]["content"][0]["text"].as_str().unwrap();
    let result: Value = serde_json::from_str(text).unwrap();
    assert_eq!(result["output"]["ticket"], 7, "{result}");
    // A repeated answer has no open question.
    agent.ask("tasks/update", &update);
    agent.leave();
}

/// A loop at its limit is neither a success nor a failure if its file says so: a person decides.
#[test]
fn a_task_at_a_limit_asks_whether_it_continues() {
    let folder = Folder::new();
    let mut agent = Agent::with_tasks(&folder, &[]);
    let text = "
actions:
  work:
    type: until
    condition: \"@equals(1, 2)\"
    limit: { count: 2 }
    on_limit: pause
    actions: { step: { type: compose, inputs: 1 } }
";
    let id = task(&mut agent, "start_run", &json!({ "text": text }));
    let mut keys = Vec::new();
    for choice in ["continue", "cancel"] {
        let response = until(&mut agent, &id, "input_required");
        let (key, request) = response["inputRequests"]
            .as_object()
            .unwrap()
            .iter()
            .next()
            .unwrap();
        let message = request["params"]["message"].as_str().unwrap();
        assert!(
            message.contains("limit") || message.contains("count"),
            "{message}"
        );
        let answers = json!({ key: { "action": "accept", "content": { "choice": choice } } });
        let update = json!({ "taskId": id, "inputResponses": answers });
        keys.push(key.clone());
        agent.ask("tasks/update", &update);
        if choice == "continue" {
            // Until the run is paused again for the next answer.
            while until(&mut agent, &id, "input_required")["inputRequests"]
                .get(&keys[0])
                .is_some()
            {}
        }
    }
    until(&mut agent, &id, "cancelled");
    agent.leave();
}

/// The task methods of the protocol version 2025-11-25, and the notifications of both versions.
#[test]
fn a_client_lists_its_tasks_waits_for_a_result_and_is_notified() {
    let folder = Folder::new();
    let mut agent = Agent::with_tasks(&folder, &[]);
    let text =
        "actions: { ask: { type: waitForSignal, signal: go } }\noutputs: \"@outputs('ask')\"";
    let id = task(
        &mut agent,
        "start_run",
        &json!({ "text": text, "id": "asking" }),
    );
    agent.notified(&id, "input_required");
    let listed = agent.ask("tasks/list", &json!({}));
    assert_eq!(listed["tasks"][0]["taskId"], id, "{listed}");
    assert_eq!(listed["tasks"][0]["status"], "input_required", "{listed}");
    let report = agent.get("get_run", json!({ "run": id }));
    let received = &report["doing"][0]["received"];
    let mut signal = json!({ "run": id, "name": "go", "payload": 7, "id": "once" });
    signal["received"] = received.clone();
    agent.get("signal_run", signal.clone());
    // A repeated signal is reported as received.
    agent.get("signal_run", signal.clone());
    signal["id"] = json!("late");
    let (failed, refused) = agent.call("signal_run", signal);
    assert!(failed && refused.contains("asking"), "{refused}");
    let result = agent.ask("tasks/result", &json!({ "taskId": id }));
    let text = result["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("\"output\":7"), "{result}");
    agent.notified(&id, "completed");
    for _ in 0..30 {
        let count = json!({ "text": COUNT, "inputs": { "to": 1 } });
        task(&mut agent, "start_run", &count);
    }
    let first = agent.ask("tasks/list", &json!({}));
    let next = json!({ "cursor": first["nextCursor"] });
    let second = agent.ask("tasks/list", &next);
    let tasks = |page: &Value| page["tasks"].as_array().unwrap().len();
    assert_eq!((tasks(&first), tasks(&second)), (20, 11), "{second}");
    assert_eq!(second["tasks"][10]["taskId"], id, "{second}");
    agent.leave();
}

/// An agent whose client uses HTTP.
struct HttpAgent {
    server: Server,
    token: &'static str,
    session: Option<String>,
    last_id: u64,
}

impl HttpAgent {
    async fn new(server: Server, token: &'static str) -> Self {
        let mut agent = Self {
            server,
            token,
            session: None,
            last_id: 0,
        };
        let hello = json!({
            "protocolVersion": "2025-06-18",
            "capabilities": { "extensions": { "io.modelcontextprotocol/tasks": {} } },
            "clientInfo": { "name": "a test", "version": "1" },
        });
        let response = agent.ask("initialize", &hello).await;
        assert_eq!(
            response["result"]["serverInfo"]["name"], "windlass",
            "{response}"
        );
        let done = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        assert_eq!(agent.send(&done).await.status(), 202);
        agent
    }

    async fn send(&self, message: &Value) -> reqwest::Response {
        self.send_text(message.to_string()).await
    }

    async fn send_text(&self, message: String) -> reqwest::Response {
        let mut request = self
            .server
            .ask(reqwest::Method::POST, "/mcp")
            .bearer_auth(self.token)
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream");
        if let Some(session) = &self.session {
            request = request.header("mcp-session-id", session);
        }
        request.body(message).send().await.unwrap()
    }

    /// Sends a request; returns its answer, which is the last event.
    async fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.last_id += 1;
        let message =
            json!({ "jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params });
        let answer = self.send(&message).await;
        assert_eq!(answer.status(), 200);
        if let Some(session) = answer.headers().get("mcp-session-id") {
            self.session = Some(session.to_str().unwrap().to_owned());
        }
        let text = answer.text().await.unwrap();
        let messages = text.lines().filter_map(|line| line.strip_prefix("data: "));
        let mut messages = messages.filter_map(|one| serde_json::from_str(one).ok());
        messages.next_back().unwrap_or_else(|| panic!("{text}"))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_speaks_to_agents_with_the_rights_of_their_tokens() {
    let folder = Folder::new();
    let state = folder.path().join("state");
    let tokens = [("view", "looks-token"), ("operate", "works-token")];
    let start = || {
        let start = Start::new(&state).roles(folder.path(), &tokens);
        start.spawn()
    };
    let url = format!("{}/job", job(30).await);
    let poll = json!({ "url": url, "until": "body.state == 'done'", "every": "20ms" });
    let call = json!({ "name": "poll", "arguments": poll });
    let refused = start().ask(reqwest::Method::POST, "/mcp").send().await;
    assert_eq!(refused.unwrap().status(), 401);
    let mut agent = HttpAgent::new(start(), "looks-token").await;
    let old = json!({
        "protocolVersion": "2025-03-26", "capabilities": {},
        "clientInfo": { "name": "a test", "version": "1" },
    });
    let answer = agent.ask("initialize", &old).await;
    // The requested version requires batches, and such clients have only the version before it.
    let version = &answer["result"]["protocolVersion"];
    assert_eq!(version, "2024-11-05", "{answer}");
    for (unreadable, code) in [("[]", -32600), ("", -32700), (" \n", -32700)] {
        let unreadable = agent.send_text(unreadable.to_owned()).await;
        assert_eq!(unreadable.status(), 400);
        let answer = unreadable.text().await.unwrap();
        let answer: Value = serde_json::from_str(&answer).unwrap();
        assert_eq!(answer["error"]["code"], code, "{answer}");
    }
    let response = agent.ask("tools/call", &call).await;
    assert_eq!(response["result"]["isError"], true, "{response}");
    let text = response["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("operate"), "{text}");
    drop(agent);
    let mut agent = HttpAgent::new(start(), "works-token").await;
    let response = agent.ask("tools/call", &call).await;
    assert_eq!(response["result"]["resultType"], "task", "{response}");
    let id = response["result"]["taskId"].as_str().unwrap().to_owned();
    agent.server.kill();
    let mut agent = HttpAgent::new(start(), "works-token").await;
    loop {
        let response = agent.ask("tasks/get", &json!({ "taskId": id })).await;
        if response["result"]["status"] == "completed" {
            break;
        }
        assert_eq!(response["result"]["status"], "working", "{response}");
    }
    let ended = agent
        .server
        .ask(reqwest::Method::DELETE, "/mcp")
        .bearer_auth("works-token")
        .header("mcp-session-id", agent.session.clone().unwrap());
    assert_eq!(ended.send().await.unwrap().status(), 204);
    agent.server.stop();
    let audit = Command::new(env!("CARGO_BIN_EXE_windlass"))
        .args(["audit", "--state"])
        .arg(&state)
        .output()
        .unwrap();
    let stdout = String::from_utf8(audit.stdout).unwrap();
    // The start is recorded with the name of the token.
    assert!(
        stdout.contains("operate") && stdout.contains(&id),
        "{stdout}"
    );
}

/// A session's stream contains the notifications of its tasks, and ends with the server.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_over_http_is_notified_of_its_tasks() {
    let folder = Folder::new();
    let state = folder.path().join("state");
    let start = Start::new(&state).roles(folder.path(), &[("operate", "t")]);
    let mut agent = HttpAgent::new(start.args(&["--grace", "1h"]).spawn(), "t").await;
    let listen = |session: Option<String>| {
        let request = agent.server.ask(reqwest::Method::GET, "/mcp");
        let request = request
            .bearer_auth("t")
            .header("accept", "text/event-stream");
        request
            .header("mcp-session-id", session.unwrap_or_default())
            .send()
    };
    let unknown = listen(Some(String::from("unknown"))).await.unwrap();
    assert_eq!(unknown.status(), 404);
    let mut stream = listen(agent.session.clone()).await.unwrap();
    assert_eq!(stream.status(), 200);
    let text = "actions: { ask: { type: waitForSignal, signal: go } }";
    let call = json!({ "name": "start_run", "arguments": { "text": text, "id": "asking" } });
    agent.ask("tools/call", &call).await;
    let mut events = String::new();
    for status in ["input_required", "completed"] {
        let is_it = |line: &str| {
            let message = line.strip_prefix("data: ").unwrap_or_default();
            let message: Value = serde_json::from_str(message).unwrap_or_default();
            let params = &message["params"];
            message["method"] == "notifications/tasks"
                && params["taskId"] == "asking"
                && params["status"] == status
        };
        while !events.lines().any(is_it) {
            let chunk = stream.chunk().await.unwrap();
            events += std::str::from_utf8(&chunk.expect("the stream ended")).unwrap();
        }
        let go = json!({ "name": "signal_run", "arguments": { "run": "asking", "name": "go" } });
        agent.ask("tools/call", &go).await;
    }
    // If the stream stayed open, the server would wait for the whole grace period.
    agent.server.stop();
    while stream.chunk().await.unwrap().is_some() {}
}

/// The server of the agents is killed at any moment. Each next server has all tasks.
#[tokio::test(flavor = "multi_thread")]
async fn kills_of_a_server_lose_no_task() {
    let folder = Folder::new();
    let state = folder.path().join("state");
    let tokens = [("operate", "works-token")];
    let start = || Start::new(&state).roles(folder.path(), &tokens).spawn();
    let mut accepted = Vec::new();
    for round in 0..25_u64 {
        let mut agent = HttpAgent::new(start(), "works-token").await;
        let id = format!("r{round}");
        let arguments = json!({ "text": COUNT, "inputs": { "to": 5 }, "id": id });
        let call = json!({ "name": "start_run", "arguments": arguments });
        let response = agent.ask("tools/call", &call).await;
        assert_eq!(response["result"]["taskId"], id, "{response}");
        accepted.push(id);
        std::thread::sleep(Duration::from_millis(round * 7 % 50));
        agent.server.kill();
    }
    let mut agent = HttpAgent::new(start(), "works-token").await;
    for id in accepted {
        let result = loop {
            let response = agent.ask("tasks/get", &json!({ "taskId": id })).await;
            match response["result"]["status"].as_str() {
                Some("completed") => break response["result"]["result"].clone(),
                status => assert_eq!(status, Some("working"), "{response}"),
            }
        };
        let text = result["content"][0]["text"].as_str().unwrap();
        let result: Value = serde_json::from_str(text).unwrap();
        assert_eq!(result["output"]["n"], 5, "{result}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_has_so_many_sessions_of_agents_and_no_more() {
    let folder = Folder::new();
    let state = folder.path().join("state");
    let start = Start::new(&state).roles(folder.path(), &[("operate", "t")]);
    let mut agent = HttpAgent::new(start.spawn(), "t").await;
    let session = agent.session.take();
    let hello = json!({
        "protocolVersion": "2025-06-18", "capabilities": {},
        "clientInfo": { "name": "many", "version": "1" },
    });
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello });
    let client = crate::serve::client();
    let url = format!("{}/mcp", agent.server.url);
    let mut begun = 1;
    let last = loop {
        let request = client.post(&url).bearer_auth("t").body(hello.to_string());
        let request = request
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream");
        let answer = request.send().await.unwrap();
        if answer.status() != 200 {
            break answer;
        }
        answer.bytes().await.unwrap();
        begun += 1;
    };
    // On a slow machine the first sessions have expired by now.
    assert!(last.status() == 503 && begun >= 1_000, "{begun}: {last:?}");
    agent.session = session;
    let response = agent.ask("tools/list", &json!({})).await;
    assert!(response["result"]["tools"].is_array(), "{response}");
}

/// A client that may start runs may choose their ids, including the id that the next call of a command line would use.
#[test]
fn a_line_joins_no_run_of_another_workflow() {
    let folder = Folder::new();
    let mut agent = Agent::with_tasks(&folder, &[]);
    let wait = json!({ "time": "2099-01-01T00:00:00Z" });
    let first = task(&mut agent, "wait_for", &wait);
    assert_eq!(task(&mut agent, "wait_for", &wait), first);
    agent.get("cancel_run", json!({ "run": first }));
    until(&mut agent, &first, "cancelled");
    let next = format!("{}2", first.strip_suffix('1').unwrap());
    let other = "actions: { go: { type: waitForSignal, signal: go } }";
    task(
        &mut agent,
        "start_run",
        &json!({ "text": other, "id": next }),
    );
    let (failed, message) = agent.call("wait_for", wait);
    assert!(failed && message.contains("another workflow"), "{message}");
    agent.leave();
}

#[test]
fn a_line_of_an_agent_has_the_maximum_that_it_names() {
    let folder = Folder::new();
    let mut agent = Agent::new(&folder, &["--allow-shell"]);
    let line = json!({ "command": ["false"], "times": 2, "every": "10ms" });
    let started = agent.get("poll", line);
    let run = started["run"].as_str().unwrap();
    let waited = json!({ "run": run, "seconds": 600 });
    agent.call("wait_for_run", waited);
    let history = folder.run(&["history", run, "-o", "json"]).left(0, &[]);
    let history: Value = serde_json::from_str(&history.out).unwrap();
    let iterations = history["iterations"].as_array().map(Vec::len);
    assert_eq!(iterations, Some(2), "{history}");
    agent.leave();
}

#[test]
fn an_agent_reads_references_and_schemas() {
    let folder = Folder::new();
    let mut agent = Agent::new(&folder, &[]);
    let tools = agent.ask("tools/list", &json!({})).to_string();
    let flag = tools.find(" --").and_then(|at| tools.get(at..at + 60));
    assert_eq!(flag, None, "a flag that an agent does not have");
    assert!(!tools.contains("standard output"), "{tools}");
    let listed = agent.ask("resources/list", &json!({}));
    let listed = listed["resources"].as_array().unwrap();
    assert_eq!(listed.len(), 21, "{listed:?}");
    for resource in listed {
        let response = agent.ask("resources/read", &json!({ "uri": resource["uri"] }));
        let text = response["contents"][0]["text"].as_str().unwrap();
        let about = resource["uri"].as_str().unwrap();
        match about.starts_with("windlass://schema/") {
            true => assert!(text.contains("json-schema.org"), "{about}: {text}"),
            false => assert!(text.starts_with("# "), "{about}: {text}"),
        }
        let media_type = &response["contents"][0]["mimeType"];
        assert_eq!(*media_type, resource["mimeType"], "{about}");
    }
    agent.leave();
}

#[test]
fn an_agent_tries_a_workflow_before_it_starts_it() {
    let folder = Folder::new();
    let mut agent = Agent::new(&folder, &[]);
    let text = "
actions:
  check:
    type: doUntil
    condition: \"@equals(body('ask').state, 'done')\"
    limit: { count: 10 }
    delay: 10s
    actions: { ask: { type: http, uri: \"https://example.org/job\" } }
outputs: \"@body('ask')\"
";
    let stubs = json!({ "ask": [{ "state": "busy" }, { "state": "done" }] });
    let (failed, message) = agent.call("test_workflow", json!({ "text": text, "stubs": stubs }));
    assert!(
        !failed && message.contains("succeeded after 10s"),
        "{message}"
    );
    let misspelt = json!({ "text": text, "stubs": { "aks": 1 } });
    let (failed, message) = agent.call("test_workflow", misspelt);
    assert!(!failed && message.contains("stopped"), "{message}");
    assert!(message.contains("did you mean `ask`?"), "{message}");
    let nowhere = json!({ "text": text, "stubs": stubs, "at": "aks" });
    let (failed, message) = agent.call("test_workflow", nowhere);
    assert!(failed && message.contains("has no `aks`"), "{message}");
    let wrong = text.replace("doUntil", "doUntill");
    let (failed, message) = agent.call("test_workflow", json!({ "text": wrong }));
    assert!(failed && message.contains("doUntill"), "{message}");
    let asks = "
state: { since: 1 }
actions:
  ask: { type: waitForSignal, choices: [yes, no], timeout: PT1H }
  note: { type: http, uri: \"https://example.org/@{state('since')}/@{outputs('ask').choice}\", inputs: { check: false } }
outputs: \"@outputs('note').statusCode\"
";
    let arguments = json!({
        "text": asks, "signals": { "ask": { "choice": "no" } }, "state": { "since": 4 },
        "stubs": { "note": { "statusCode": 500 } },
    });
    let (failed, message) = agent.call("test_workflow", arguments);
    assert!(
        !failed && message.contains("https://example.org/4/no"),
        "{message}"
    );
    assert!(message.contains("output 500"), "{message}");
    let misspelt = json!({ "text": asks, "signals": { "aks": { "choice": "no" } } });
    let (failed, message) = agent.call("test_workflow", misspelt);
    assert!(
        failed && message.contains("did you mean `ask`?"),
        "{message}"
    );
    // The end of a long result is not cut.
    let long = text
        .replace("count: 10", "count: 2000")
        .replace("10s", "1s");
    let stubs = json!({ "ask": { "state": "busy" } });
    let (failed, message) = agent.call("test_workflow", json!({ "text": long, "stubs": stubs }));
    assert!(
        !failed && message.contains("(cut here: ") && message.len() < 70_000,
        "{message}"
    );
    let last = message.trim_end().lines().last().unwrap();
    assert!(!last.contains("https://"), "{last}");
    // A stub answers as a server would, including for a long operation and for relative addresses.
    let export = "actions: { export: { type: operation, uri: \"https://example.org/exports\" } }
outputs: \"@body('export')\"
";
    let stubs = json!({
        "export.start": { "statusCode": 202, "headers": { "Location": "/exports/7" } },
        "export.status": [{ "body": { "status": "running" } }, { "body": { "status": "succeeded", "rows": 4 } }],
    });
    let (failed, message) = agent.call("test_workflow", json!({ "text": export, "stubs": stubs }));
    assert!(
        !failed && message.contains("https://example.org/exports/7"),
        "{message}"
    );
    assert!(
        message.contains("\"rows\":4") && message.contains("succeeded after"),
        "{message}"
    );
    // A relative address in the answer to the start is resolved against the start's URL. The same applies to the
    // cancel.
    let ends = "
actions:
  export:
    type: operation
    uri: \"https://example.org/exports\"
    limit: { timeout: 1m }
    cancel: \"@{outputs('export.start').headers.location}/cancel\"
";
    let stubs = json!({
        "export.start": { "statusCode": 202, "headers": { "Location": "exports/7" } },
        "export.status": { "body": { "status": "running" } },
        "export.cancel": { "statusCode": 200 },
    });
    let (_, message) = agent.call("test_workflow", json!({ "text": ends, "stubs": stubs }));
    assert!(
        message.contains(
            "\"page\":\"exports/7/cancel\",\"page_base\":\"https://example.org/exports\""
        ),
        "{message}"
    );
    let definition = json!({ "definition": {
        "$schema": "https://schema.management.azure.com/providers/Microsoft.Logic/schemas/2016-06-01/workflowdefinition.json#",
        "triggers": { "manual": { "type": "Request", "kind": "Http" } },
        "actions": { "Say": { "type": "Compose", "inputs": "@concat('a', 'b')", "runAfter": {} } },
        "outputs": { "said": { "type": "String", "value": "@outputs('Say')" } }
    } });
    let (failed, message) = agent.call("test_workflow", json!({ "text": definition.to_string() }));
    assert!(!failed && message.contains("\"said\":\"ab\""), "{message}");
    let context = json!({ "vars": { "n": 2 }, "actions": { "a": { "outputs": { "body": 5 } } } });
    let read = json!({ "expression": "@body('a')", "context": context });
    assert_eq!(agent.call("evaluate", read), (false, String::from("5")));
    let context = json!({ "variables": { "n": 2 } });
    let evaluated = json!({ "expression": "@add(variables('n'), 1)", "context": context });
    assert_eq!(
        agent.call("evaluate", evaluated),
        (false, String::from("3"))
    );
    let (failed, message) = agent.call("evaluate", json!({ "expression": "@ad(1, 2)" }));
    assert!(failed && message.contains("ad"), "{message}");
    let long = format!("{{{{ nope_{} }}}}", "x".repeat(300_000));
    let (failed, message) = agent.call("evaluate", json!({ "expression": long }));
    assert!(failed && message.len() < 70_000, "{}", message.len());
    agent.leave();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_without_tasks_waits_with_one_call() {
    let url = format!("{}/job", job(30).await);
    tokio::task::block_in_place(|| {
        let folder = Folder::new();
        let mut agent = Agent::new(&folder, &["--allow-private-network"]);
        let poll = json!({ "url": url, "until": "body.state == 'done'", "every": "20ms" });
        let started = agent.get("poll", poll);
        assert!(started["output"].is_null(), "{started}");
        let run = &started["run"];
        let ended = agent.get("wait_for_run", json!({ "run": run, "seconds": 600 }));
        assert_eq!(ended["output"]["state"], "done", "{ended}");
        let slept = agent.get("wait_for", json!({ "time": "20ms" }));
        let ended = agent.get("wait_for_run", json!({ "run": slept["run"] }));
        assert_eq!(ended["status"], "Succeeded", "{ended}");
        let found = agent.get("wait_for", json!({ "url": url }));
        let ended = agent.get("wait_for_run", json!({ "run": found["run"] }));
        assert_eq!(ended["status"], "Succeeded", "{ended}");
        for (tool, arguments, says) in [
            ("poll", json!({}), "missing: "),
            ("poll", json!({ "url": url, "every": "x" }), "every"),
            ("wait_for", json!({ "time": "soon" }), "neither a duration"),
            ("wait_for", json!({ "process": 0 }), "id of a process"),
            (
                "poll",
                json!({ "url": url, "until": "true", "if_changed": "false" }),
                "true or false",
            ),
            ("wait_for", json!({ "file": "x" }), "absolute path"),
            (
                "get_run",
                json!({ "run": "x".repeat(100_000) }),
                "unknown run",
            ),
            ("wait_for", json!({}), "one of these is needed: url, "),
            (
                "wait_for",
                json!({ "url": url, "time": "1s" }),
                "are two waits",
            ),
            ("wait_for", json!({ "github_run": "here" }), "OWNER/REPO/ID"),
            (
                "wait_for",
                json!({ "file": "/tmp/x" }),
                "may not use `shell`",
            ),
            (
                "paginate",
                json!({ "url": url, "to": "rows.jsonl" }),
                "absolute path",
            ),
        ] {
            let (failed, mut message) = agent.call(tool, arguments.clone());
            if !failed {
                let started: Value = serde_json::from_str(&message).unwrap();
                message = agent
                    .call("wait_for_run", json!({ "run": started["run"] }))
                    .1;
            }
            assert!(message.contains(says), "{arguments} {says}: {message}");
        }
        agent.leave();
    });
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
    // Each listed tool exists, and reports its parameters.
    for name in &names {
        let (_, message) = agent.call(name, json!({ "no-such": 1 }));
        assert!(
            message.starts_with("unknown argument `no-such` (expected one of: "),
            "{name}: {message}"
        );
    }
    assert_eq!(names.len(), 22, "{names:?}");
    let (failed, page) = agent.call("workflow_reference", json!({}));
    assert!(!failed && page.contains("# The Loom format"), "{page}");

    let checked = agent.get(
        "validate_workflow",
        json!({ "text": "actions: { a: { type: htp } }" }),
    );
    assert_eq!(checked["valid"], false, "{checked}");
    let (failed, message) = agent.call(
        "start_run",
        json!({ "text": "actions: { a: { type: htp } }" }),
    );
    assert!(failed && message.contains("htp"), "{message}");

    let started = agent.get(
        "start_run",
        json!({ "text": COUNT, "inputs": { "to": 5 }, "id": "five", "labels": { "by": "agent" } }),
    );
    assert_eq!(started["run"], "five", "{started}");
    let (failed, message) = agent.call(
        "start_run",
        json!({ "text": COUNT, "inputs": { "to": 5 }, "id": "five" }),
    );
    assert!(failed && message.contains("five"), "{message}");
    let ended = agent.get("wait_for_run", json!({ "run": "five" }));
    assert_eq!(ended["output"]["n"], 5, "{ended}");
    let rows = agent.get(
        "list_iterations",
        json!({ "run": "five", "loop": "turn", "from": 3 }),
    );
    assert_eq!(rows["iterations"].as_array().unwrap().len(), 2, "{rows}");
    let history = |agent: &mut Agent, after: u64| {
        let arguments = json!({ "run": "five", "limit": 2, "after": after });
        let report = agent.get("get_history", arguments);
        assert_eq!(report["iterations"].as_array().unwrap().len(), 2);
        let events = report["events"].as_array().unwrap().iter();
        let numbers = events.map(|event| event["sequence"].as_u64().unwrap());
        numbers.collect::<Vec<_>>()
    };
    assert_eq!(history(&mut agent, 0), [1, 2]);
    assert_eq!(history(&mut agent, 2), [3, 4]);
    let one = agent.get("get_iteration", json!({ "run": "five", "path": "turn#4" }));
    assert_eq!(one["condition"], true, "{one}");
    let listed = agent.get("list_runs", json!({ "label": "by=agent" }));
    assert_eq!(listed["runs"][0]["run"], "five", "{listed}");

    let nested = "actions: { outer: { type: foreach, foreach: [1, 2], actions: \
                  { inner: { type: foreach, foreach: [1], actions: { a: { type: compose, inputs: 1 } } } } } }";
    agent.get("start_run", json!({ "text": nested, "id": "nested" }));
    agent.get("wait_for_run", json!({ "run": "nested" }));
    for (path, is_there) in [
        ("outer#1/inner", true),
        ("inner", false),
        ("outer/inner", false),
        ("outer#2/inner", false),
    ] {
        let arguments = json!({ "run": "nested", "loop": path });
        let (failed, message) = agent.call("list_iterations", arguments);
        assert_eq!(failed, !is_there, "{path}: {message}");
        assert!(message.contains("outer#0/inner") || is_there, "{message}");
    }
    // The whole time is waited.
    let brief = "actions: { w: { type: wait, inputs: PT0.3S } }";
    agent.get("start_run", json!({ "text": brief, "id": "brief" }));
    let ended = agent.get("wait_for_run", json!({ "run": "brief", "seconds": 1 }));
    assert_eq!(ended["status"], "Succeeded", "{ended}");

    agent.get("start_run", json!({ "text": ASK, "id": "asking" }));
    agent.get(
        "signal_run",
        json!({ "run": "asking", "name": "answer", "payload": { "yes": true } }),
    );
    let ended = agent.get("wait_for_run", json!({ "run": "asking" }));
    assert_eq!(ended["output"]["yes"], true, "{ended}");
    let (failed, message) = agent.call("get_run", json!({ "run": "nobody" }));
    assert!(failed && message.contains("nobody"), "{message}");
    agent.leave();
}

#[test]
fn a_run_resumes_with_the_next_agent_after_a_kill() {
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
    // A second agent joins the first one, and takes over when the first is killed.
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
    let message = checked["diagnostics"][0]["message"].as_str().unwrap();
    assert!(message.contains("may not use `shell`"), "{checked}");
    let (failed, text) = agent.call("start_run", json!({ "text": shell, "id": "s" }));
    let text = match failed {
        true => text,
        false => agent.call("wait_for_run", json!({ "run": "s" })).1,
    };
    assert!(text.contains("may not use `shell`"), "{text}");
    assert!(!folder.path().join("made").exists());
    agent.leave();
}

#[test]
fn an_agent_starts_saved_workflows_with_their_own_rights() {
    let folder = Folder::new();
    // The operator saved this workflow, and may permit commands.
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
    let (failed, message) = agent.call("start_run", json!({ "workflow": "nix" }));
    assert!(failed && message.contains("nix"), "{message}");
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
            let (failed, message) = agent.call(tool, json!({ "run": id }));
            assert!(
                failed && message.contains("the id of a run"),
                "{tool} {id}: {message}"
            );
        }
        for verb in [
            "resume", "cancel", "pause", "status", "history", "dump", "logs",
        ] {
            let output = Command::new(env!("CARGO_BIN_EXE_windlass"))
                .args([verb, id])
                .current_dir(folder.path())
                .env_remove("WINDLASS_STATE")
                .output()
                .unwrap();
            assert_eq!(output.status.code(), Some(2), "{verb} {id}: {output:?}");
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
    for _ in 0..2 {
        let answer = agent.read();
        assert!(answer["error"]["code"].is_i64(), "{answer}");
    }
    let deep = format!("{}1{}", "[".repeat(200), "]".repeat(200));
    let long = format!("\"{}\"", "x".repeat(17 << 20));
    for (context, code, expected) in [
        (r#""cut \ud83d""#, -32600, "half of a character"),
        ("1e999", -32600, "1e999"),
        (
            "123456789012345678901234567890",
            -32600,
            "does not fit 64 bits",
        ),
        ("18446744073709551615", -32600, "does not fit 64 bits"),
        (&deep, -32600, "recursion limit"),
        (&long, -32600, "larger than 16 MiB"),
        ("1}", -32700, "trailing"),
        ("1\n", -32700, "EOF"),
    ] {
        let arguments = format!(r#"{{"expression":"1","context":{{"inputs":{{"a":{context}}}}}}}"#);
        let params = format!(r#"{{"name":"evaluate","arguments":{arguments}}}"#);
        let request =
            format!(r#"{{"jsonrpc":"2.0","id":34,"method":"tools/call","params":{params}}}"#);
        let shown: String = context.chars().take(40).collect();
        let line = request.split('\n').next().unwrap();
        writeln!(agent.input.as_mut().unwrap(), "{line}").unwrap();
        let answer = agent.read();
        assert_eq!(answer["id"], 34, "{shown}: {answer}");
        assert_eq!(answer["error"]["code"], code, "{shown}: {answer}");
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.contains(expected), "{shown}: {message}");
    }
    let input = agent.input.as_mut().unwrap();
    input.write_all(b"{\"id\":\"\xff\"}\n").unwrap();
    assert_eq!(agent.read()["error"]["code"], -32600);
    // The id of an answer is not one that the client waits for.
    for answer in [
        r#""result":{"x":"\ud83d"}"#,
        r#""error":{"code":1e999}"#,
        r#""result":1]"#,
    ] {
        let input = agent.input.as_mut().unwrap();
        writeln!(input, r#"{{"jsonrpc":"2.0","id":5,{answer}}}"#).unwrap();
        let answer = agent.read();
        assert!(
            answer["error"]["code"].is_i64() && answer["id"].is_null(),
            "{answer}"
        );
    }
    // A notification is never answered.
    agent.say(&json!({ "jsonrpc": "2.0", "method": "notifications/nix", "params": 1 }));
    for method in ["prompts/list", "nix"] {
        agent.say(&json!({ "jsonrpc": "2.0", "id": 35, "method": method, "params": {} }));
        let answer = agent.read();
        let expected = format!("unknown method `{method}`");
        assert_eq!(answer["error"]["message"], expected, "{answer}");
    }
    let (failed, message) = agent.call("get_run", json!({ "run": 7 }));
    assert!(
        failed && message.contains("`run` has to be a text"),
        "{message}"
    );
    for (tool, arguments, expected) in [
        (
            "list_runs",
            json!({ "limit": 0 }),
            "`limit` has to be a whole number from 1 to 1000",
        ),
        (
            "list_runs",
            json!({ "limit": 5000 }),
            "`limit` has to be a whole number from 1 to 1000",
        ),
        (
            "wait_for_run",
            json!({ "run": "r", "seconds": 4000 }),
            "`seconds` has to be a whole number from 0 to 3600",
        ),
        (
            "evaluate",
            json!({ "expression": " " }),
            "`expression` is empty",
        ),
        (
            "start_run",
            json!({ "text": COUNT, "labels": { "a": 1 } }),
            "`labels` has to have texts",
        ),
    ] {
        let (failed, message) = agent.call(tool, arguments);
        assert!(failed && message.contains(expected), "{message}");
    }
    for (params, expected) in [
        (
            json!({ "name": "get_run", "arguments": "{}" }),
            "`arguments`",
        ),
        (json!({ "arguments": {} }), "`name`"),
    ] {
        let request =
            json!({ "jsonrpc": "2.0", "id": 99, "method": "tools/call", "params": params });
        agent.say(&request);
        let mut message = agent.read();
        while message["id"] != 99 {
            message = agent.read();
        }
        assert_eq!(message["error"]["code"], -32602, "{message}");
        let text = message["error"]["message"].as_str().unwrap();
        assert!(text.contains(expected), "{text}");
    }
    let (failed, message) = agent.call("no_such_tool", json!({}));
    assert!(
        failed && message.contains("unknown tool `no_such_tool`"),
        "{message}"
    );
    agent.leave();
}

/// A script may send its message without a line break at the end.
#[test]
fn the_last_message_needs_no_line_break() {
    let folder = Folder::new();
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": { "name": "script", "version": "1" },
    } });
    let path = folder.file("message.json", message.to_string());
    let mut command = folder.command(&["mcp"]);
    command.stdin(std::fs::File::open(path).unwrap());
    let output = command.output().unwrap();
    let answer = String::from_utf8(output.stdout).unwrap();
    assert!(
        answer.contains("\"protocolVersion\":\"2025-11-25\""),
        "{answer}"
    );
}
