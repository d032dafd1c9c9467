//! What a new user meets: mistyped flags, keys, inputs and labels, and how they are reported.

use crate::serve::{Server, Start, answer, with};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// A folder for a test.
pub struct Folder(TempDir);

impl Folder {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    pub fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.path().join(name);
        fs::write(&path, bytes).unwrap();
        path
    }

    /// A file's text.
    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.0.path().join(name)).unwrap()
    }

    /// How many lines a file has; 0 if it does not exist.
    pub fn lines(&self, name: &str) -> usize {
        let text = fs::read_to_string(self.0.path().join(name));
        text.map_or(0, |text| text.lines().count())
    }

    /// Waits until `done` accepts the names of the files.
    pub fn wait_for(&self, done: impl Fn(&[String]) -> bool) {
        for _ in 0..12_000 {
            let files = fs::read_dir(self.0.path()).unwrap();
            let name = |file: fs::DirEntry| file.file_name().to_string_lossy().into_owned();
            let names: Vec<String> = files.map(|file| name(file.unwrap())).collect();
            if done(&names) {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        panic!("it did not come to that within a minute");
    }

    /// Starts the binary in the folder.
    pub fn start(&self, args: &[&str]) -> Child {
        let mut command = self.command(args);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().unwrap()
    }

    /// The binary in the folder, which is not started yet.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
        command.args(args).current_dir(self.0.path());
        command.env_remove("WINDLASS_STATE");
        command
    }

    /// Runs the binary in the folder.
    pub fn run(&self, args: &[&str]) -> Printed {
        Printed::new(&self.command(args).output().unwrap())
    }

    /// Runs the binary in the folder, with these environment variables.
    pub fn run_with(&self, variables: &[(&str, &str)], args: &[&str]) -> Printed {
        let mut command = self.command(args);
        command.envs(variables.iter().copied());
        Printed::new(&command.output().unwrap())
    }
}

/// What a command printed, and its exit code.
#[derive(Debug)]
pub struct Printed {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Printed {
    fn new(output: &Output) -> Self {
        Self {
            code: output.status.code(),
            out: String::from_utf8(output.stdout.clone()).unwrap(),
            err: String::from_utf8(output.stderr.clone()).unwrap(),
        }
    }

    /// Checks the exit code, and that its errors contain these parts.
    pub fn left(self, code: i32, parts: &[&str]) -> Self {
        assert_eq!(self.code, Some(code), "{self:?}");
        for part in parts {
            assert!(self.err.contains(part), "no `{part}` in {self:?}");
        }
        self
    }
}

const THIRTY: &str = "
name: thirty
inputs: { text: { type: string, default: '' } }
actions:
  turn:
    type: until
    condition: \"@equals(variables('loopIndex'), 30)\"
    limit: { count: 100 }
    actions: { c: { type: compose, inputs: 1 } }
";

#[test]
fn a_condition_that_is_a_text_is_refused_everywhere() {
    let folder = Folder::new();
    let hint = "a condition has no braces: variables.n > 5";
    let text = "{{ variables.n }} > 5";
    folder.run(&["eval", "--condition", text]).left(3, &[hint]);
    let poll = ["poll", "--until", "{{ body.n }} > 5", "--", "echo", "1"];
    folder
        .run(&poll)
        .left(2, &["--until:1:1", "no braces: body.n > 5"]);
}

#[test]
fn a_context_takes_its_keys_under_either_name_and_no_others() {
    let folder = Folder::new();
    let eval = |context: &str| {
        folder.file("c.json", context);
        folder.run(&["eval", "@variables('n')", "--context", "c.json"])
    };
    assert_eq!(eval(r#"{"vars": {"n": 7}}"#).left(0, &[]).out, "7\n");
    assert_eq!(eval(r#"{"variables": {"n": 7}}"#).left(0, &[]).out, "7\n");
    eval(r#"{"varz": {"n": 7}}"#).left(2, &["`varz`", "did you mean `vars`?", "results"]);
    eval(r#"{"vars": {}, "variables": {}}"#).left(2, &["twice"]);
    let none = folder.run(&["eval", ""]);
    assert_eq!(none.code, Some(2), "{none:?}");
    let help = folder.run(&["eval", "--help"]).out;
    assert!(help.contains("workflow, current, state"), "{help}");
}

#[test]
fn a_script_may_hold_what_begins_a_comment_of_jinja() {
    let folder = Folder::new();
    let eval = |text: &str| folder.run(&["eval", "--template", text]);
    assert_eq!(
        eval("n=${#X} # {# x").left(0, &[]).out,
        "\"n=${#X} # {# x\"\n"
    );
    eval("n=${#X} {{ 1 }}").left(3, &["comment", "{{ '{#' }}"]);
}

#[test]
fn a_number_without_a_unit_is_no_duration_and_months_say_why() {
    let folder = Folder::new();
    let text = THIRTY.replace("count: 100", "timeout: \"@inputs('text')\"");
    let file = folder.file("t.yaml", text);
    let run = |given: &str| folder.run(&["run", file.to_str().unwrap(), "-i", given]);
    run("text=PT30S").left(0, &[]);
    run("text=1h30m").left(0, &[]);
    run("text=30d1ms").left(4, &["the cap is 30d"]);
    for wrong in ["1h30", "h", "5 s", "1.5.5h", "99999999999999999999s", "1hm"] {
        run(&format!("text={wrong}")).left(1, &["must be a duration"]);
    }
    run("text=P1Y").left(1, &["years or months", "use days"]);
    run("text=soon").left(1, &["must be a duration such as 30s"]);
    // A value above the maximum is refused with the code of a limit.
    run("text=P31D").left(4, &["the cap is 30d"]);
    let text = THIRTY.replace("count: 100", "timeout: \"@add(1, 1)\"");
    let file = folder.file("n.yaml", text);
    let bare = folder.run(&["run", file.to_str().unwrap()]);
    bare.left(1, &["number without a unit", "30s", "it is 2"]);
}

#[test]
fn inputs_keep_the_type_that_they_are_given_with() {
    let folder = Folder::new();
    let file = folder.file("w.yaml", THIRTY);
    let run = |given: &str| folder.run(&["run", file.to_str().unwrap(), "-i", given]);
    run("text:=1").left(2, &["`text` must be a string"]);
    run("text:=null").left(2, &["`text` must be a string"]);
    run("text:=hello").left(2, &["-i text", "JSON", "-i text=hello"]);
    run("text=1").left(0, &[]);
}

#[test]
fn a_named_store_must_exist_when_runs_are_listed() {
    let folder = Folder::new();
    assert_eq!(folder.run(&["list"]).left(0, &[]).out, "no runs\n");
    folder
        .run(&["list", "--state", "sate"])
        .left(2, &["no store in sate"]);
}

#[test]
fn a_history_says_what_it_leaves_out_and_which_loops_there_are() {
    let folder = Folder::new();
    let file = folder.file("w.yaml", THIRTY);
    let begun = folder.run(&["run", file.to_str().unwrap(), "--id", "r"]);
    begun.left(0, &[]);
    let printed = folder
        .run(&["history", "r"])
        .left(0, &["and 10 earlier: --iterations all"]);
    assert_eq!(printed.out.lines().count(), 21, "{printed:?}");
    let all = folder
        .run(&["history", "r", "--iterations", "all"])
        .left(0, &[]);
    assert_eq!((all.out.lines().count(), all.err.as_str()), (31, ""));
    let dump = |args: &[&str]| folder.run(&[&["dump", "r"], args].concat()).out;
    assert!(dump(&[]).contains("the last 5: --iterations all"));
    assert!(!dump(&["--iterations", "all"]).contains("the last"));
    folder
        .run(&["history", "r", "--loop", "zz"])
        .left(2, &["no loop `zz`", "it has turn"]);
}

#[test]
fn each_file_gets_a_verdict_and_each_mistake_is_reported() {
    let folder = Folder::new();
    folder.file("good.yaml", THIRTY);
    folder.file("bytes.yaml", b"name: \xff\xfe\n");
    folder.file("large.yaml", vec![b'a'; (16 << 20) + 1]);
    folder.file(
        "bad.yaml",
        THIRTY
            .replace("until", "untill")
            .replace("type: compose", "type: composed"),
    );
    folder.file(
        "flow.yaml",
        "actions: {\n  a: {type: compose, inputs: @foo(1, 'b}')} }\n",
    );
    let checked = folder.run(&[
        "validate",
        "bytes.yaml",
        "none.yaml",
        "bad.yaml",
        "flow.yaml",
        "good.yaml",
    ]);
    let checked = checked.left(
        3,
        &["`untill`", "`composed`", "quote it: \"@foo(1, 'b}')\"\n"],
    );
    let verdicts: Vec<&str> = checked.out.lines().take(5).collect();
    let wanted = [
        "bytes.yaml: invalid",
        "none.yaml: invalid",
        "bad.yaml: invalid",
        "flow.yaml: invalid",
        "good.yaml: valid",
    ];
    assert_eq!(verdicts, wanted);
    // A missing file is a mistake in the command line (code 2). A file that is not a workflow is not.
    folder.run(&["validate", "none.yaml"]).left(2, &[]);
    folder.run(&["run", "bytes.yaml"]).left(3, &["UTF-8"]);
    folder.run(&["run", "large.yaml"]).left(3, &["larger"]);
}

#[test]
fn a_run_that_ended_well_is_not_announced_once_more() {
    let folder = Folder::new();
    let file = folder.file("w.yaml", THIRTY);
    let begin = || folder.run(&["run", file.to_str().unwrap(), "--id", "r"]);
    begin().left(0, &[]);
    begin().left(2, &["there is a run r already", "another --id"]);
    let again = folder.run(&["retry", "r"]).left(2, &["is Succeeded"]);
    assert!(again.err.starts_with("error:"), "{again:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_refuses_labels_of_its_own_and_says_what_allows_a_command() {
    let folder = Folder::new();
    let file = folder.file("w.yaml", THIRTY);
    let path = file.to_str().unwrap();
    let label = "windlass.parked=x";
    let printed = folder.run(&["run", path, "--label", label]);
    printed.left(2, &["`windlass.parked`"]);
    let server: Server = Start::new(&folder.0.path().join("state")).spawn();
    let body = json!({ "text": THIRTY, "labels": { "windlass.x": "y" } });
    let (status, response): (_, Value) = server.post("/v1/runs", &body).await;
    assert_eq!(status, 400, "{response}");
    assert!(response.to_string().contains("`windlass.x`"), "{response}");
    folder.file("shell.yaml", "actions: { a: { type: shell, run: id } }");
    let url = server.url.clone();
    let refused = folder.run(&["run", "shell.yaml", "--server", &url]);
    refused.left(3, &["may not use `shell`", "hint: ", "--allow-shell"]);
    // A workflow whose script does not compile is not saved.
    let text = "name: s\nnodes: [{ name: a, language: lua, run: \"local x = return x\" }]";
    let (status, response) = server.post("/v1/validate", &json!({ "text": text })).await;
    assert_eq!(status, 200, "{response}");
    let verdict = (&response["valid"], &response["diagnostics"][0]["code"]);
    assert_eq!(verdict, (&json!(false), &json!("bad-script")));
    let put = server.ask(reqwest::Method::PUT, "/v1/workflows/s");
    let (status, response) = answer(with(put, &json!({ "text": text }))).await;
    assert_eq!(status, 422, "{response}");
    assert_eq!(
        response["diagnostics"][0]["code"], "bad-script",
        "{response}"
    );
}

#[test]
fn a_limit_that_is_not_a_failure_is_still_reported() {
    let folder = Folder::new();
    let text = THIRTY.replace("count: 100", "count: 3").replace(
        "    type: until\n",
        "    type: until\n    on_limit: continue\n",
    ) + "outputs: { done: true }\n";
    let file = folder.file("w.yaml", text);
    let printed = folder.run(&["run", file.to_str().unwrap(), "--id", "r"]);
    let what = "loop `turn` ended at its count limit, after 3 iterations";
    let printed = printed.left(0, &["warning: ", what]);
    assert_eq!(printed.out, "{\n  \"done\": true\n}\n");
    let status = folder.run(&["status", "r"]).left(0, &[]).out;
    assert!(status.contains(&format!("limit     {what}\n")), "{status}");
    let status = folder.run(&["status", "r", "-o", "json"]).out;
    let status: Value = serde_json::from_str(&status).unwrap();
    let limit = json!({ "loop": "turn", "title": null, "type": "until", "limit": "count",
                        "iterations": 3, "times": 1 });
    assert_eq!(status["outcome"]["limits"], json!([limit]), "{status}");
    // A run that failed has reported the limit, and a run that finished has nothing to report.
    let file = folder.file("f.yaml", THIRTY.replace("count: 100", "count: 3"));
    let failed = folder.run(&["run", file.to_str().unwrap()]);
    assert!(!failed.left(4, &[]).err.contains("warning"));
    let file = folder.file("d.yaml", THIRTY);
    let done = folder.run(&["run", file.to_str().unwrap()]);
    assert_eq!(done.left(0, &[]).err, "");
    // A loop of TEA always ends at its count. That is reported only if its condition is still true then.
    for (count, warns) in [(2, true), (3, false)] {
        let body = "[{ name: add, run: \"return { n = state.n + 1 }\", language: lua }]";
        let text = format!(
            "initial_state: {{ n: 0 }}\nnodes: [{{ name: more, type: while_loop, condition: \"state.n < 3\", \
             max_iterations: {count}, body: {body} }}]\n"
        );
        let file = folder.file("t.yaml", text);
        let done = folder.run(&["run", file.to_str().unwrap()]).left(0, &[]);
        let what = "loop `more` ended at its count limit";
        assert_eq!(done.err.contains(what), warns, "{}", done.err);
    }
}

/// A run that waits, in another process, after its first step.
fn waiting(folder: &Folder, text: &str) -> Child {
    let file = folder.file("waits.yaml", text);
    let mut run = Command::new(env!("CARGO_BIN_EXE_windlass"));
    run.args([
        "run",
        file.to_str().unwrap(),
        "--id",
        "r",
        "--events",
        "jsonl",
    ])
    .current_dir(folder.0.path())
    .env_remove("WINDLASS_STATE")
    .stdout(Stdio::piped());
    let mut run = run.spawn().unwrap();
    let mut first = String::new();
    let mut lines = BufReader::new(run.stdout.take().unwrap());
    lines.read_line(&mut first).unwrap();
    run
}

#[test]
fn a_run_without_an_owner_says_so_and_what_to_do() {
    let folder = Folder::new();
    let text = "actions: { hold: { type: waitForSignal, inputs: { signal: go } } }";
    let mut run = waiting(&folder, text);
    let status_text = folder.run(&["status", "r"]).left(0, &[]).out;
    assert!(!status_text.contains("stopped"), "{status_text}");
    assert!(
        status_text.contains("next        windlass signal r go --payload …   |"),
        "{status_text}"
    );
    assert_eq!(folder.run(&["list"]).err, "");
    run.kill().unwrap();
    run.wait().unwrap();
    let alone = folder.run(&["status", "r"]).left(0, &[]).out;
    assert!(
        alone.contains("stopped   no process executes it; `windlass resume r` continues it"),
        "{alone}"
    );
    assert!(alone.contains("next        windlass resume r"), "{alone}");
    folder
        .run(&["list"])
        .left(0, &["no run moves", "`windlass resume`", "1 here"]);
    // A run that has ended needs no owner.
    folder.run(&["cancel", "r"]).left(0, &[]);
    let ended = folder.run(&["status", "r"]).left(0, &[]).out;
    assert!(!ended.contains("stopped"), "{ended}");
    assert_eq!(folder.run(&["list"]).err, "");
}

#[test]
fn branches_of_one_name_are_distinguished() {
    let folder = Folder::new();
    let text = "
actions:
  each:
    type: foreach
    foreach: \"@createArray(1, 2)\"
    concurrency: 2
    actions:
      hold: { type: waitForSignal, inputs: { signal: go }, runAfter: {} }
      inner:
        type: scope
        runAfter: {}
        actions:
          a: { type: waitForSignal, inputs: { signal: a }, runAfter: {} }
          b: { type: waitForSignal, inputs: { signal: b }, runAfter: {} }
";
    let mut run = waiting(&folder, text);
    let seen = folder.run(&["status", "r"]).left(0, &[]).out;
    run.kill().unwrap();
    run.wait().unwrap();
    for place in [
        "each  0 of 2",
        "each#0  0 of 2",
        "each#1  0 of 2",
        "each#1/inner  0 of 2",
    ] {
        assert!(
            seen.contains(&format!("  {place} ended")),
            "{place}: {seen}"
        );
    }
}

/// The files of a folder with their content.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else if path.file_name().is_some_and(|name| name != "control.sock") {
            found.insert(path.clone(), std::fs::read(&path).unwrap());
        }
    }
    found
}

#[test]
fn who_only_looks_writes_nothing() {
    let folder = Folder::new();
    let text = "actions: { hold: { type: waitForSignal, inputs: { signal: go } } }";
    let mut run = waiting(&folder, text);
    run.kill().unwrap();
    run.wait().unwrap();
    let state = folder.0.path().join("state");
    let before = files(&state);
    assert!(before.len() > 2, "{:?}", before.keys());
    for look in [
        &["status", "r"][..],
        &["list"],
        &["history", "r"],
        &["logs", "r"],
        &["dump", "r"],
        &["dump", "-o", "json"],
    ] {
        folder.run(look).left(0, &[]);
        assert!(files(&state) == before, "{look:?} has changed the store");
    }
}

#[test]
fn a_place_where_no_store_can_be_is_named() {
    let folder = Folder::new();
    let file = folder.file("w.yaml", THIRTY);
    let file = file.to_str().unwrap();
    for place in [file, "w.yaml/deeper", "/proc/nowhere"] {
        let printed = folder.run(&["run", file, "--state", place]);
        let printed = printed.left(8, &[&format!("the store in {place} cannot be opened")]);
        assert!(printed.err.contains("hint: --state"), "{printed:?}");
        assert!(!printed.err.contains("free disk space"), "{printed:?}");
    }
}

#[test]
fn flags_that_lead_to_nothing_are_refused() {
    let folder = Folder::new();
    let file = folder.file("w.yaml", THIRTY);
    let file = file.to_str().unwrap();
    folder
        .run(&["run", file, "--secrets", "nowhere"])
        .left(2, &["--secrets: nowhere is not a directory"]);
    folder
        .run(&["run", "-", "--input", "-"])
        .left(2, &["standard input can be read only once"]);
    for flag in [
        "--max-effects",
        "--max-effects-per-host",
        "--max-effects-per-workflow",
        "--max-runs",
        "--max-connections",
    ] {
        folder
            .run(&["serve", flag, "0"])
            .left(2, &[flag, "at least 1"]);
    }
    for flag in ["--client-timeout", "--max-timeout"] {
        folder
            .run(&["serve", flag, "0s"])
            .left(2, &[flag, "above zero"]);
    }
    folder.run(&["run", file, "--max-count", "0"]).left(2, &[]);
    folder.file("wide.yaml", b"\xff\xfen\0a");
    folder
        .run(&["run", "wide.yaml"])
        .left(3, &["UTF-16", "save it as UTF-8"]);
}

#[test]
fn scripts_that_do_not_compile_are_reported_before_anything_runs() {
    let folder = Folder::new();
    let text = r#"
name: s
nodes:
  - name: fine
    run: |
      if state.get("n"):
          return {"n": 1}
  - name: indented
    run: |2
          x = 1
          y = 2
  - name: typo
    run: |
      n = 1
      retrun {"n": n}
  - name: lua
    language: lua
    run: |
      local x =
      return { x = 1 }
  - name: rendered
    run: |
      {# gone #}
      n = {{ state.n
        | default(1) }}
      nonsense here {{ state.n }}
  - name: operators
    language: prolog
    run: |
      :- op(700, xfx, ===>).
      a ===> b.
      X #= 3 + 2, return(x, X)
  - name: logic
    language: prolog
    run: |
      p(1).
      p(2)
      q(3).
"#;
    folder.file("s.yaml", text);
    for command in [&["validate", "s.yaml"][..], &["run", "s.yaml"]] {
        let printed = folder.run(command).left(
            3,
            &[
                "error[bad-script]: SyntaxError",
                "--> s.yaml:15:7",
                "line 2 of this script in python",
                "unexpected symbol near 'return'",
                "--> s.yaml:20:7",
                "line 2 of this script in lua",
                "syntax_error: operator_expected",
                "--> s.yaml:37:7",
                "line 2 of this script in prolog",
                "warning[jinja-comment]",
                "--> s.yaml:23:7",
            ],
        );
        assert_eq!(printed.err.matches("error[").count(), 3, "{printed:?}");
    }
    // Another mistake does not hide them.
    folder.file(
        "t.yaml",
        text.replace("language: prolog", "language: prologue"),
    );
    let printed = folder.run(&["validate", "t.yaml"]);
    assert_eq!(
        printed.err.matches("error[bad-script]").count(),
        2,
        "{printed:?}"
    );
    assert!(printed.err.contains("prologue"), "{printed:?}");
    let text = r#"
dialect: canvas
nodes:
  - id: sum
    type: function
    data:
      code: |
        local a = inputs.a
        return { sum = a +
  - id: shout
    type: function
    data: { language: python, code: "return {'text': inputs['t'].upper(" }
edges: []
"#;
    folder.file("c.yaml", text);
    for command in [&["validate", "c.yaml"][..], &["run", "c.yaml"]] {
        let printed = folder.run(command).left(
            3,
            &[
                "--> c.yaml:9:9",
                "line 2 of this script in lua",
                "--> c.yaml:12:",
                "line 1 of this script in python",
            ],
        );
        assert_eq!(printed.err.matches("error[").count(), 2, "{printed:?}");
    }
    assert!(!folder.0.path().join("state").exists());
}

#[test]
fn differences_of_a_definition_from_azure_are_reported() {
    let folder = Folder::new();
    let schema = "https://schema.management.azure.com/providers/Microsoft.Logic/schemas/2016-06-01/workflowdefinition.json#";
    let definition = json!({ "definition": {
        "$schema": schema,
        "parameters": { "key": { "type": "String" } },
        "triggers": { "items": { "type": "Request", "kind": "Http", "splitOn": "@triggerBody()",
            "operationOptions": "EnableSchemaValidation" } },
        "actions": { "Get": {
            "type": "Http",
            "inputs": { "method": "GET", "uri": "https://example.org/@{parameters('key')}" },
        } },
    } });
    folder.file("d.json", definition.to_string());
    let printed = folder.run(&["validate", "d.json"]).left(
        3,
        &[
            "the parameter `key` has no value",
            "one run gets the whole body, and no others are started",
            "`EnableSchemaValidation` does nothing here",
        ],
    );
    // One mistake is reported once.
    assert_eq!(printed.err.matches("error[").count(), 1, "{printed:?}");
}

#[test]
fn the_body_of_an_answer_is_shown_before_its_headers() {
    let folder = Folder::new();
    let answer = "{ statusCode: 200, headers: { server: some, date: today }, body: { n: 1 } }";
    let text = THIRTY.replace("inputs: 1 }", &format!("inputs: {answer} }}"));
    let file = folder.file("w.yaml", text);
    let begun = folder.run(&["run", file.to_str().unwrap(), "--id", "r"]);
    begun.left(0, &[]);
    let printed = folder.run(&["history", "r", "--iterations", "1"]).out;
    let brief = r#"{"c":{"statusCode":200,"body":{"n":1}}}"#;
    assert!(printed.contains(brief), "{printed}");
    // The output for programs is complete.
    let printed = folder.run(&["history", "r", "-o", "json"]).out;
    assert!(printed.contains(r#""server":"some""#), "{printed}");
}

#[test]
fn a_variable_that_is_set_to_nothing_says_nothing() {
    let folder = Folder::new();
    let file = folder.file("w.yaml", THIRTY);
    let output = Command::new(env!("CARGO_BIN_EXE_windlass"))
        .args(["run", file.to_str().unwrap()])
        .current_dir(folder.0.path())
        .env_remove("WINDLASS_STATE")
        .env("WINDLASS_SERVER", "")
        .output();
    Printed::new(&output.unwrap()).left(0, &[]);
}

/// An engine that is named is never replaced by the local store.
#[test]
fn an_engine_is_used_or_refused() {
    let folder = Folder::new();
    let file = folder.file("w.yaml", THIRTY);
    let file = file.to_str().unwrap();
    folder
        .run(&["run", file, "--engine", ""])
        .left(2, &["--engine has no value"]);
    folder
        .run(&["run", file, "--server", ""])
        .left(2, &["--server has no value"]);
    let (code, says) = match cfg!(feature = "temporal") {
        true => (8, "127.0.0.1:1"),
        false => (2, "feature `temporal`"),
    };
    let url = "temporal://127.0.0.1:1/default";
    for command in [&["run", file][..], &["list"], &["worker"]] {
        let flag = [command, &["--engine", url]].concat();
        folder.run(&flag).left(code, &[says]);
        let mut by_variable = Command::new(env!("CARGO_BIN_EXE_windlass"));
        by_variable.args(command).current_dir(folder.0.path());
        let output = by_variable.env("WINDLASS_ENGINE", url).output();
        Printed::new(&output.unwrap()).left(code, &[says]);
    }
    assert!(!folder.0.path().join("state").exists());
    // A command that uses no runs does not need the engine.
    let mut validate = Command::new(env!("CARGO_BIN_EXE_windlass"));
    let output = validate
        .args(["validate", file])
        .env("WINDLASS_ENGINE", url)
        .output();
    Printed::new(&output.unwrap()).left(0, &[]);
}

#[test]
fn a_wait_without_measure_is_one_that_everybody_can_read() {
    let folder = Folder::new();
    let text = "actions: { hold: { type: wait, inputs: P999999999D } }";
    let mut run = waiting(&folder, text);
    folder.run(&["list"]).left(0, &[]);
    let status = folder.run(&["status", "r", "-o", "json"]).left(0, &[]).out;
    run.kill().unwrap();
    run.wait().unwrap();
    let status: Value = serde_json::from_str(&status).unwrap();
    assert_eq!(status["next_due_at"], "9999-12-31T23:59:59.999Z");
}

#[test]
fn strict_refuses_what_only_looks_wrong() {
    let folder = Folder::new();
    let text = "actions: { a: { type: compose, inputs: \"variables('nobody')\" } }";
    let file = folder.file("w.yaml", text);
    let file = file.to_str().unwrap();
    folder
        .run(&["validate", file])
        .left(0, &["warning[plain-text]"]);
    for command in ["validate", "run"] {
        folder
            .run(&[command, file, "--strict"])
            .left(3, &["error[plain-text]", "w.yaml:1:"]);
    }
    let by_environment = Command::new(env!("CARGO_BIN_EXE_windlass"))
        .args(["run", file])
        .current_dir(folder.0.path())
        .env("WINDLASS_STRICT", "1")
        .output();
    Printed::new(&by_environment.unwrap()).left(3, &["error[plain-text]"]);
    assert!(
        !folder.0.path().join("state").exists(),
        "nothing was started"
    );
    let good = folder.file("g.yaml", THIRTY);
    folder
        .run(&["run", good.to_str().unwrap(), "--strict"])
        .left(0, &[]);
}

#[test]
fn an_unknown_key_is_an_error_and_in_a_definition_a_warning() {
    let folder = Folder::new();
    let run = |name: &str, text: &str| {
        let file = folder.file(name, text);
        folder.run(&["run", file.to_str().unwrap()])
    };
    run(
        "a.yaml",
        "actions: { a: { type: compose, inputs: 1, wherever: 2 } }",
    )
    .left(3, &["error[unknown-key]", "`wherever`", "known are"]);
    run(
        "b.yaml",
        "actions: { a: { type: compose, inputs: 1, brake_when: \"@true\" } }",
    )
    .left(3, &["error[unknown-key]", "did you mean `break_when`?"]);
    run(
        "c.yaml",
        "actions: { a: { type: compose, inputs: 1, x-why: mine } }",
    )
    .left(0, &[]);
    let azure = r#"{ "definition": { "actions": { "a":
        { "type": "Compose", "inputs": 1, "runAfter": {}, "wherever": 2 } } } }"#;
    run("d.json", azure).left(0, &["warning[unknown-key]", "it is ignored"]);
}

/// The operator's workflow may use a higher count than a guest's.
#[tokio::test(flavor = "multi_thread")]
async fn a_guest_may_ask_for_fewer_iterations_than_the_owner() {
    let folder = Folder::new();
    let asking = |limit: &str| THIRTY.replace("{ count: 100 }", limit);
    let most = asking("{ count: 1000000, timeout: P30D }");
    let file = folder.file("most.yaml", &most);
    let (file, state) = (file.to_str().unwrap(), folder.0.path().join("served"));
    folder.run(&["run", file]).left(0, &[]);
    for (more, message) in [
        ("{ count: 1000001 }", "cap of 1000000"),
        ("{ timeout: P31D }", "cap of 30d"),
    ] {
        let file = folder.file("more.yaml", asking(more));
        folder
            .run(&["run", file.to_str().unwrap()])
            .left(3, &["error[over-cap]", message]);
    }
    let valid = async |server: &Server, text: &str| {
        let (status, checked) = server.post("/v1/validate", &json!({ "text": text })).await;
        assert_eq!(status, 200, "{checked}");
        checked
    };
    let server = Start::new(&state).spawn();
    let whole = valid(&server, &asking("{ count: 10000, timeout: P1D }")).await;
    assert_eq!(whole["valid"], true, "{whole}");
    for (more, message) in [
        ("{ count: 10001 }", "cap of 10000"),
        ("{ timeout: P2D }", "cap of 1d"),
    ] {
        let refused = valid(&server, &asking(more)).await;
        assert_eq!(refused["valid"], false, "{refused}");
        assert!(refused.to_string().contains(message), "{refused}");
    }
    server.stop();
    let server = Start::new(&state).args(&["--max-count", "20000"]).spawn();
    let raised = valid(&server, &asking("{ count: 20000 }")).await;
    assert_eq!(raised["valid"], true, "{raised}");
}

#[test]
fn a_fault_outside_of_actions_is_reported_by_its_own_name_and_place() {
    let folder = Folder::new();
    let run = |text: &str, args: &[&str]| {
        let file = folder.file("w.yaml", text);
        folder.run(&[&["run", file.to_str().unwrap(), "-o", "json"], args].concat())
    };
    let actions = "actions:\n  fetch: { type: compose, inputs: 1 }\n";
    let error =
        |printed: &Printed| serde_json::from_str::<Value>(&printed.out).unwrap()["error"].clone();
    let printed = run(
        &format!("{actions}outputs:\n  a: 1\n  b: \"@div(1, 0)\"\n"),
        &[],
    );
    let outputs = error(&printed);
    assert_eq!(
        (&outputs["action"], &outputs["line"]),
        (&Value::Null, &json!(5))
    );
    let message = outputs["message"].as_str().unwrap();
    assert!(message.starts_with("output `b`: "), "{message}");
    let text = format!("{actions}variables:\n  a: 1\n  b: \"@div(1, 0)\"\n");
    let variables = error(&run(&text, &[]));
    assert_eq!(
        (&variables["action"], &variables["line"]),
        (&Value::Null, &json!(5))
    );
    let message = variables["message"].as_str().unwrap();
    assert!(message.starts_with("variable `b`: "), "{message}");
    let text = format!("{actions}inputs:\n  n: {{ type: integer }}\n");
    run(&text, &["-i", "n=x"]).left(2, &["input `n` must be", "w.yaml:4"]);
    run(&text, &[]).left(2, &["input `n` has no default", "w.yaml:4"]);
}

#[test]
fn what_shows_nothing_or_is_not_used_is_reported() {
    let folder = Folder::new();
    let file = folder.file("w.yaml", THIRTY);
    let file = file.to_str().unwrap();
    folder.run(&["run", file, "--id", "r"]).left(0, &[]);
    let none = folder.run(&["history", "r", "--iterations", "0"]);
    none.left(2, &["shows nothing without --events"]);
    let events = folder.run(&["history", "r", "--iterations", "0", "--events"]);
    assert!(events.left(0, &[]).out.contains("RunFinished"));
    // A copy needs an empty destination, and no other command is recommended.
    folder.run(&["backup", "copy"]).left(0, &[]);
    let printed = folder
        .run(&["backup", "copy"])
        .left(2, &["choose another directory"]);
    assert!(!printed.err.contains("restore"), "{printed:?}");
    let item = "actions: { a: { type: compose, inputs: \"@item()\" } }\n";
    let item = folder.file("item.yaml", item);
    let printed = folder.run(&["validate", item.to_str().unwrap()]);
    printed.left(3, &["`item` is known only inside of a foreach"]);
}

#[test]
fn retries_are_reported_without_a_terminal() {
    let folder = Folder::new();
    let file = folder.file(
        "w.yaml",
        r#"
actions:
  work:
    type: shell
    run: "echo no disk >&2; test -e ran || { touch ran; exit 3; }"
    retry: { type: fixed, interval: 10ms, count: 3 }
"#,
    );
    let args = ["run", file.to_str().unwrap(), "-vv"];
    let part = "an attempt of `work` failed: the command ended with exit code 3: no disk";
    folder.run(&args).left(0, &[part, "next attempt"]);
}

#[test]
fn paused_run_has_no_countdown() {
    let folder = Folder::new();
    let file = folder.file("w.yaml", "actions: { nap: { type: wait, inputs: 1h } }\n");
    let mut child = folder.start(&["run", file.to_str().unwrap(), "--id", "r"]);
    let waits = || folder.run(&["status", "r"]).out.contains("until in");
    while !waits() {}
    folder.run(&["pause", "r"]).left(0, &[]);
    let status = folder.run(&["status", "r"]).left(0, &[]).out;
    assert!(status.contains("after the pause"), "{status}");
    child.kill().unwrap();
    child.wait().unwrap();
}
