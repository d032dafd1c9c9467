//! `windlass lsp` with a simulated editor: a real process, and messages over its pipes.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

/// An editor.
struct Editor {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    next: i64,
}

impl Editor {
    fn start() -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_windlass"))
            .args(["lsp", "--stdio"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Self {
            input: child.stdin.take(),
            child,
            output,
            next: 0,
        }
    }

    /// Starts the server; also returns its capabilities.
    fn ready() -> (Self, Value) {
        let mut editor = Self::start();
        let hello = json!({ "processId": null, "rootUri": null, "capabilities": {} });
        let able = editor.ask("initialize", hello);
        editor.tell("initialized", json!({}));
        (editor, able["capabilities"].clone())
    }

    fn raw(&mut self, text: &str) {
        let input = self.input.as_mut().unwrap();
        input.write_all(text.as_bytes()).unwrap();
        input.flush().unwrap();
    }

    fn send(&mut self, message: &Value) {
        let body = message.to_string();
        self.raw(&format!("Content-Length: {}\r\n\r\n{body}", body.len()));
    }

    fn tell(&mut self, method: &str, params: Value) {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }

    fn read(&mut self) -> Value {
        let mut length = 0;
        loop {
            let mut line = String::new();
            assert!(
                self.output.read_line(&mut line).unwrap() > 0,
                "the server has ended"
            );
            if let Some(value) = line.strip_prefix("Content-Length: ") {
                length = value.trim().parse().unwrap();
            }
            if line.trim().is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        self.output.read_exact(&mut body).unwrap();
        serde_json::from_slice(&body).unwrap()
    }

    fn request(&mut self, method: &str, params: Value) -> Value {
        self.next += 1;
        let id = self.next;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        loop {
            let message = self.read();
            if message["id"] == id {
                return message;
            }
        }
    }

    #[track_caller]
    fn ask(&mut self, method: &str, params: Value) -> Value {
        let answer = self.request(method, params);
        assert_eq!(answer["error"], Value::Null, "{method}");
        answer["result"].clone()
    }

    /// Waits for the diagnostics of a text.
    fn diagnostics(&mut self, uri: &str) -> Vec<Value> {
        loop {
            let message = self.read();
            let is_published = message["method"] == "textDocument/publishDiagnostics";
            if is_published && message["params"]["uri"] == uri {
                return message["params"]["diagnostics"].as_array().unwrap().clone();
            }
        }
    }

    fn open(&mut self, uri: &str, text: &str) -> Vec<Value> {
        let document = json!({ "uri": uri, "languageId": "yaml", "version": 1, "text": text });
        self.tell("textDocument/didOpen", json!({ "textDocument": document }));
        self.diagnostics(uri)
    }

    fn change(&mut self, uri: &str, changes: Value) -> Vec<Value> {
        let document = json!({ "uri": uri, "version": 2 });
        let params = json!({ "textDocument": document, "contentChanges": changes });
        self.tell("textDocument/didChange", params);
        self.diagnostics(uri)
    }

    fn end(mut self) -> i32 {
        drop(self.input.take());
        let mut rest = Vec::new();
        self.output.read_to_end(&mut rest).unwrap();
        self.child.wait().unwrap().code().unwrap()
    }
}

fn at(uri: &str, line: u32, character: u32) -> Value {
    json!({ "textDocument": { "uri": uri }, "position": { "line": line, "character": character } })
}

const TEXT: &str = "name: ü😀
variables: { status: '' }
actions:
  poll:
    type: untill
    condition: \"@equals(variables('status'), 'done')\"
    actions:
      fetch: { type: setVariable, name: status, value: done }
";

const URI: &str = "file:///nowhere/w.yaml";

#[test]
fn an_editor_gets_mistakes_fixes_completions_hovers_and_symbols() {
    let (mut editor, able) = Editor::ready();
    assert_eq!(able["textDocumentSync"]["change"], 2);
    assert_eq!(able["positionEncoding"], "utf-16");
    let found = editor.open(URI, TEXT);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0]["severity"], 1);
    assert_eq!(
        found[0]["range"]["start"],
        json!({ "line": 4, "character": 10 })
    );
    let range = &found[0]["range"];
    let params =
        json!({ "textDocument": { "uri": URI }, "range": range, "context": { "diagnostics": [] } });
    let actions = editor.ask("textDocument/codeAction", params);
    let edit = &actions[0]["edit"]["changes"][URI][0];
    assert_eq!(edit["newText"], "until", "{actions}");
    // A change as an editor sends it, and then, in the same message, a name after letters of two and four bytes.
    let name =
        json!({ "start": { "line": 0, "character": 7 }, "end": { "line": 0, "character": 9 } });
    let changes = json!([
        { "range": edit["range"], "text": edit["newText"] },
        { "range": name, "text": "x" },
    ]);
    assert_eq!(editor.change(URI, changes), Vec::<Value>::new());
    let found = editor.ask("textDocument/completion", at(URI, 5, 35));
    let first = &found["items"][0];
    assert_eq!(first["label"], "status", "{found}");
    assert_eq!(first["textEdit"]["newText"], "status");
    let hover = editor.ask("textDocument/hover", at(URI, 5, 20));
    assert!(
        hover["contents"]["value"]
            .as_str()
            .unwrap()
            .starts_with("equals(left, right)"),
        "{hover}"
    );
    let symbols = editor.ask("textDocument/documentSymbol", at(URI, 0, 0));
    assert_eq!(symbols[0]["name"], "poll");
    assert_eq!(symbols[0]["children"][0]["name"], "fetch");
    // An incomplete file.
    let whole = json!([{ "text": "actions:\n  a:\n    type: compose\n    inp" }]);
    assert!(!editor.change(URI, whole).is_empty());
    let found = editor.ask("textDocument/completion", at(URI, 3, 7));
    let items = found["items"].as_array().unwrap().iter();
    assert!(
        items.clone().any(|item| item["label"] == "inputs"),
        "{found}"
    );
    editor.tell(
        "textDocument/didClose",
        json!({ "textDocument": { "uri": URI } }),
    );
    assert_eq!(editor.diagnostics(URI), Vec::<Value>::new());
    assert_eq!(editor.ask("shutdown", Value::Null), Value::Null);
    editor.tell("exit", Value::Null);
    assert_eq!(editor.end(), 0);
}

#[test]
fn bad_messages_do_not_end_the_server() {
    let mut editor = Editor::start();
    let early = editor.request("textDocument/hover", at(URI, 0, 0));
    assert_eq!(early["error"]["code"], -32_002);
    editor.ask("initialize", json!({}));
    editor.raw("Content-Length: 3\r\n\r\n{\"a");
    assert_eq!(editor.read()["error"]["code"], -32_700);
    editor.raw("nonsense\r\nContent-Length: x\r\n\r\nContent-Length: 2\r\n\r\n[]");
    assert_eq!(editor.read()["error"]["code"], -32_700);
    editor.raw("Content-Length: 5\r\n\r\n\u{1}\u{2}\u{3}\u{4}\u{5}");
    assert_eq!(editor.read()["error"]["code"], -32_700);
    for (method, params, code) in [
        ("textDocument/rename", json!({}), -32_601),
        ("textDocument/hover", json!([]), -32_602),
        (
            "textDocument/hover",
            at("file:///unknown.yaml", 0, 0),
            -32_602,
        ),
        (
            "textDocument/completion",
            json!({ "textDocument": { "uri": 7 } }),
            -32_602,
        ),
    ] {
        assert_eq!(
            editor.request(method, params)["error"]["code"],
            code,
            "{method}"
        );
    }
    editor.tell("textDocument/didChange", json!({ "textDocument": 1 }));
    editor.tell(
        "workspace/didChangeConfiguration",
        json!({ "settings": {} }),
    );
    editor.tell("$/cancelRequest", json!({ "id": 1 }));
    editor.send(&json!({ "jsonrpc": "2.0", "id": 9, "result": null }));
    // Positions that are outside of the text.
    editor.open(URI, "actions: {");
    let beyond =
        json!({ "start": { "line": 5, "character": 7 }, "end": { "line": 2, "character": 1 } });
    editor.change(URI, json!([{ "range": beyond, "text": "}" }]));
    editor.ask(
        "textDocument/completion",
        at(URI, 4_000_000_000, 4_000_000_000),
    );
    // A text that is not a workflow has no diagnostics.
    assert_eq!(
        editor.open("file:///compose.yaml", "services: { web: {} }"),
        Vec::<Value>::new()
    );
    // The server ends with its input.
    assert_eq!(editor.end(), 0);
    let (mut editor, _) = Editor::ready();
    editor.tell("exit", Value::Null);
    assert_eq!(editor.end(), 1);
}

#[test]
fn files_that_a_text_names_are_read_from_its_folder_or_the_editor() {
    let dir = tempfile::tempdir().unwrap();
    let canvas = "nodes:\n  - { id: part, type: component, data: { workflowRef: inner.yaml } }\n";
    let inner = "nodes: [{ id: one, type: constant, data: { value: 1 } }]\n";
    let uri = |name: &str| format!("file://{}", Path::new(dir.path()).join(name).display());
    let (mut editor, _) = Editor::ready();
    let found = editor.open(&uri("outer.yaml"), canvas);
    assert_eq!(found[0]["code"], "missing-file", "{found:?}");
    std::fs::write(dir.path().join("inner.yaml"), inner).unwrap();
    editor.tell(
        "textDocument/didSave",
        json!({ "textDocument": { "uri": uri("inner.yaml") } }),
    );
    assert_eq!(editor.diagnostics(&uri("outer.yaml")), Vec::<Value>::new());
    // The text is not saved yet, and it is wrong.
    editor.open(
        &uri("inner.yaml"),
        "nodes: [{ id: one, type: constnt, data: { value: 1 } }]\n",
    );
    let found = editor.change(&uri("outer.yaml"), json!([{ "text": canvas }]));
    let message = found[0]["message"].as_str().unwrap();
    assert!(message.starts_with("inner.yaml:1:"), "{message}");
    assert_eq!(editor.end(), 0);
}

#[test]
#[allow(clippy::disallowed_methods, reason = "it measures")]
fn a_long_file_is_quick() {
    let mut text = String::from("variables: { n: 0 }\nactions:\n");
    for number in 0..400 {
        text.push_str(&format!(
            "  step_{number}:\n    type: until\n    condition: \"@equals(variables('n'), {number})\"\n    actions:\n      get_{number}: {{ type: compose, inputs: \"@variables('n')\" }}\n"
        ));
    }
    assert!(text.lines().count() > 2_000);
    let (mut editor, _) = Editor::ready();
    editor.open(URI, &text);
    let began = std::time::Instant::now();
    let found = editor.ask("textDocument/completion", at(URI, 1_994, 34));
    let took = began.elapsed();
    println!("complete in {took:?}");
    assert!(
        found["items"]
            .as_array()
            .is_some_and(|items| !items.is_empty()),
        "{found}"
    );
    assert!(took < Duration::from_secs(10), "{took:?}");
    for (what, method) in [
        ("hover", "textDocument/hover"),
        ("symbols", "textDocument/documentSymbol"),
    ] {
        let began = std::time::Instant::now();
        editor.ask(method, at(URI, 1_994, 20));
        println!("{what} in {:?}", began.elapsed());
    }
    let began = std::time::Instant::now();
    editor.change(URI, json!([{ "text": text }]));
    println!("mistakes in {:?}", began.elapsed());
    assert_eq!(editor.end(), 0);
}
