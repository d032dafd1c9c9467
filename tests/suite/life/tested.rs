//! `windlass test`: what a workflow would do, on virtual time and with stubs.

use crate::life::first_use::Folder;
use serde_json::{Value, json};

const POLL: &str = r#"
name: poll
inputs: { job: { type: string, default: "7" } }
actions:
  wait:
    type: until
    condition: "@equals(body('check')?.state, 'done')"
    limit: { count: 5, timeout: 1h }
    delay: 10s
    actions:
      check:
        type: http
        inputs: { uri: "https://example.org/@{inputs('job')}?n=@{variables('loopIndex')}" }
        retry: { type: fixed, interval: 2s, count: 3 }
  note: { type: shell, run: ./note.sh, env: { STATE: "@body('check').state" } }
outputs: { state: "@body('check').state", said: "@body('note')" }
"#;

const CASES: &str = r#"
cases:
  - name: done in the third iteration
    answers:
      check: [{ state: new }, { state: busy }, { state: done }]
      note: ok
    expect:
      output: { state: done, said: ok }
      took: 20s
      calls: { check: 3, note: 1 }
      iterations: { wait: 3 }
      waits: [10s, 10s]
      inputs: { note: { env: { STATE: done } } }
  - name: a server that is away is asked again
    at: wait#0/check
    attempt: 3
    answers: { check: { state: done } }
    expect: { calls: { check: 3 }, waits: [2s, 2s] }
  - name: one iteration
    at: wait#1
    answers: { check: { state: new } }
    expect:
      inputs: { check: { uri: "https://example.org/7?n=1" } }
      next: [wait 10s]
  - name: it gives up
    answers: { check: [{ statusCode: 200, body: { state: new } }] }
    expect: { status: Failed, error: "not done after its 5 iterations", took: 40s }
  - name: a bad answer is not retried
    answers: { check: { statusCode: 404 } }
    expect: { status: Failed, error: "http", calls: { check: 1 } }
  - name: what is asked first
    input: { job: "9" }
    expect: { next: [wait#0/check], inputs: { check: { uri: "https://example.org/9?n=0" } } }
"#;

#[test]
fn cases_in_the_folder_of_a_workflow_are_run() {
    let folder = Folder::new();
    folder.file("poll.yaml", POLL);
    folder.file("poll.test.yaml", CASES);
    let ran = folder.run(&["test", "poll.yaml", "--junit", "out.xml"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(
        ran.out
            .lines()
            .filter(|line| line.starts_with("ok  "))
            .count(),
        6,
        "{ran:?}"
    );
    assert!(ran.err.contains("6 cases, 0 failed"), "{ran:?}");
    let xml = folder.read("out.xml");
    assert!(xml.contains(r#"tests="6" failures="0""#), "{xml}");
    // Nothing was run, and no store was created.
    assert!(!folder.path().join("state").exists());
}

#[test]
fn mismatches_are_reported_case_by_case() {
    let folder = Folder::new();
    folder.file("poll.yaml", POLL);
    folder.file(
        "other.test.yaml",
        r#"
workflow: poll.yaml
cases:
  - name: "wrong <output>"
    answers: { check: { state: done }, note: "a & b" }
    expect: { output: { state: done, said: no }, calls: { check: 2 } }
  - name: silent
    answers: { check: { state: done }, note: { exitCode: 3, stderr: bad } }
  - name: not answered
    answers: { check: { state: done } }
"#,
    );
    let ran = folder.run(&[
        "test",
        "other.test.yaml",
        "--junit",
        "out.xml",
        "-o",
        "json",
    ]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let report: Value = serde_json::from_str(&ran.out).unwrap();
    let failures: Vec<String> = report
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["failures"].to_string())
        .collect();
    assert!(
        failures[0].contains("said") && failures[0].contains("called 1 times, not 2"),
        "{failures:?}"
    );
    assert!(
        failures[1].contains("Failed (shell: the command ended with exit code 3"),
        "{failures:?}"
    );
    assert!(
        failures[2].contains("nothing answers `note`"),
        "{failures:?}"
    );
    let xml = folder.read("out.xml");
    assert!(
        xml.contains("name=\"wrong &lt;output&gt;\"") && xml.contains("failures=\"3\""),
        "{xml}"
    );

    folder.file(
        "bad.test.yaml",
        "workflow: poll.yaml\ncases: [{ expects: {} }]\n",
    );
    folder
        .run(&["test", "bad.test.yaml"])
        .left(2, &["case 1: unknown key `expects` in a case"]);
}

#[test]
fn one_iteration_and_one_action_say_what_comes_next() {
    let folder = Folder::new();
    folder.file("poll.yaml", POLL);
    folder.file("stubs.yaml", "check: { state: new }\n");
    let ran = folder.run(&[
        "test",
        "poll.yaml",
        "--stub",
        "stubs.yaml",
        "--at",
        "wait#2",
        "-o",
        "json",
    ]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let report: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(report["steps"][0]["place"], "wait#2");
    let call = &report["steps"][1];
    assert_eq!(call["inputs"]["uri"], "https://example.org/7?n=2");
    assert_eq!(call["gives"]["body"], json!({ "state": "new" }));
    assert_eq!(report["next"][0]["ms"], 10_000, "{report}");
    let text = folder.run(&[
        "test",
        "poll.yaml",
        "--stub",
        "stubs.yaml",
        "--at",
        "check",
        "--attempt",
        "2",
    ]);
    assert!(
        text.out.contains("fails: connection") && text.out.contains("waits 2s (retry)"),
        "{text:?}"
    );
    let never = folder.run(&[
        "test",
        "poll.yaml",
        "--stub",
        "stubs.yaml",
        "--at",
        "wait#9",
    ]);
    assert_eq!(never.code, Some(1), "{never:?}");
    assert!(never.out.contains("it never came to wait#9"), "{never:?}");
    let slip = folder.run(&["test", "poll.yaml", "--at", "wait#0/chek"]);
    assert_eq!(slip.code, Some(1), "{slip:?}");
    let message = "its workflow has no `chek`; did you mean `check`?";
    assert!(slip.out.contains(message), "{slip:?}");
    folder.file("slip.yaml", "chek: { statusCode: 200 }");
    let args = [
        "test",
        "poll.yaml",
        "--stub",
        "slip.yaml",
        "--junit",
        "no.xml",
    ];
    let none = folder.run(&args);
    assert_eq!(none.code, Some(2), "{none:?}");
    assert!(
        none.err.contains("--junit writes the results of cases"),
        "{none:?}"
    );
    let slip = folder.run(&["validate", "poll.yaml", "--stub", "slip.yaml"]);
    let message = "no action uses the stub `chek`";
    assert!(slip.err.contains(message), "{slip:?}");
    let case = "workflow: poll.yaml\ncases: [{ name: slip, answers: { chek: 1 } }]\n";
    folder.file("slip.test.yaml", case);
    let slip = folder.run(&["test", "slip.test.yaml"]);
    assert_eq!(slip.code, Some(1), "{slip:?}");
    assert!(slip.out.contains(message), "{slip:?}");
}

/// A stub for a script contains what the script returns. Its name is that of the node in the file, also if a loop calls
/// the script as its corrector and if a run waits before it.
#[test]
fn scripts_of_tea_are_answered_by_their_names() {
    let folder = Folder::new();
    folder.file(
        "agent.yaml",
        r#"
name: agent
initial_state: { n: 1 }
nodes:
  - { name: first, run: "return {'from': 'python'}" }
  - { name: gate, interrupt: before, run: { type: lua, code: "return {lua = true}" } }
  - name: loop
    uses: retry.loop
    with: { validate: data.validate, validate_args: { data: "{{ state.n }}", schema: { type: string } }, correct: fix }
  - { name: fix, run: "raise ValueError('nobody called this')" }
edges: [{ from: first, to: gate }, { from: gate, to: loop }, { from: loop, to: __end__ }]
"#,
    );
    folder.file(
        "agent.test.yaml",
        r#"
cases:
  - name: all answered
    answers: { first: { from: answer }, gate: { lua: answer }, fix: { n: text } }
    signals: { gate: { ok: true } }
    expect:
      calls: { first: 1, gate: 1, fix: 1, loop.fix: 1 }
      output:
        n: text
        from: answer
        ok: true
        lua: answer
        _retry_count: 1
        _retry_result: { valid: true, errors: [], success: true }
        _retry_errors: []
        _retry_exhausted: false
        valid: true
        errors: []
        success: true
  - name: a script fails
    answers: { first: { error: { message: broken } } }
    expect: { status: Failed, error: "script: broken" }
"#,
    );
    let ran = folder.run(&["test", "agent.yaml"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

#[test]
fn a_stubbed_answer_has_the_shape_of_the_real_one() {
    let folder = Folder::new();
    folder.file(
        "w.yaml",
        r#"
handlers: { work: { command: [no-such-command] } }
actions:
  asked: { type: ai, inputs: { prompt: hello } }
  done: { type: activity, activityType: work, input: 1 }
  command: { type: shell, run: "exit 1", check: false }
  page: { type: http, inputs: { uri: "https://example.org/" } }
outputs: ["@outputs('asked').content", "@outputs('done')", "@outputs('command')", "@outputs('page').statusCode"]
"#,
    );
    folder.file(
        "w.test.yaml",
        r#"
cases:
  - answers:
      asked: hi
      work: [{ a: 1 }]
      shell: { exitCode: 3, stdout: "[1]\n" }
      http: { b: 2 }
    expect: { output: [hi, { a: 1 }, { exitCode: 3, stdout: "[1]\n", stderr: "", body: [1] }, 200] }
  - answers: { asked: hi, work: [1], http: 1, command: '{"a": 1}' }
    expect: { output: [hi, 1, { exitCode: 0, stdout: '{"a": 1}', stderr: "", body: { a: 1 } }, 200] }
"#,
    );
    let ran = folder.run(&["test", "w.yaml"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

#[test]
fn a_status_of_an_answer_may_be_a_number_as_text() {
    let folder = Folder::new();
    folder.file(
        "w.json",
        r#"{"definition": {
  "$schema": "https://schema.management.azure.com/providers/Microsoft.Logic/schemas/2016-06-01/workflowdefinition.json#",
  "contentVersion": "1.0.0.0",
  "triggers": {"manual": {"type": "Request", "kind": "Http"}},
  "actions": {
    "Page": {"type": "Http", "inputs": {"method": "GET", "uri": "https://example.org/"}, "runAfter": {}},
    "Mail": {
      "type": "ApiConnection",
      "inputs": {"host": {"connection": {"name": "@parameters('$connections')['office365']['connectionId']"}}, "method": "post", "path": "/v2/Mail"},
      "runAfter": {"Page": ["Succeeded"]}
    }
  },
  "outputs": {
    "page": {"type": "Integer", "value": "@outputs('Page')['statusCode']"},
    "mail": {"type": "Integer", "value": "@outputs('Mail')['statusCode']"}
  },
  "parameters": {"$connections": {"type": "Object", "defaultValue": {"office365": {"connectionId": "c"}}}}
}}"#,
    );
    let run = |page: Value, mail: Value| {
        let stubs = json!({
            "Page": { "statusCode": page, "body": 1 }, "Mail": { "statusCode": mail, "body": 1 }
        });
        folder.file("stubs.json", stubs.to_string());
        folder.run(&["run", "w.json", "--stub", "stubs.json", "-o", "json"])
    };
    let ran = run(json!("200"), json!("201"));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let output: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(output, json!({ "page": 200, "mail": 201 }));
    for (status, reason) in [
        ("404", "answered 404"),
        ("200.5", "`200.5` is not a valid `statusCode`"),
        ("ok", "`ok` is not a valid `statusCode`"),
    ] {
        for (page, mail) in [(status, "200"), ("200", status)] {
            let ran = run(json!(page), json!(mail));
            assert_eq!(ran.code, Some(1), "{ran:?}");
            assert!(ran.err.contains(reason), "{ran:?}");
        }
    }
}

#[test]
fn a_run_with_stubs_does_not_continue_without_them() {
    let folder = Folder::new();
    folder.file(
        "w.yaml",
        "actions:\n  go: { type: waitForSignal, signal: go }\n  write: { type: shell, run: touch written }\n",
    );
    folder.file("stubs.json", r#"{"write": {"exitCode": 1}}"#);
    let mut owner = folder.start(&["run", "w.yaml", "--id", "w", "--stub", "stubs.json"]);
    while !folder.run(&["status", "w"]).out.contains("signal `go`") {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    owner.kill().unwrap();
    owner.wait().unwrap();
    let refused = folder.run(&["resume", "w"]);
    refused.left(3, &["repeat --stub FILE"]);
    let mut owner = folder.start(&["resume", "w", "--stub", "stubs.json"]);
    // Without an owner, the signal is refused for the same reason.
    while folder.run(&["signal", "w", "go"]).code != Some(0) {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert_eq!(owner.wait().unwrap().code(), Some(1));
    let retried = folder.run(&["retry", "w"]);
    retried.left(3, &["repeat --stub FILE"]);
    assert!(!folder.path().join("written").exists());
}

#[test]
fn a_run_with_stubs_has_no_effect_of_a_stubbed_action() {
    let folder = Folder::new();
    folder.file(
        "tea.yaml",
        r#"
name: stubbed
settings: { llm: { provider: openai, base_url: "http://127.0.0.1:1/v1", api_key: none, model: m } }
nodes:
  - name: each
    type: while_loop
    max_iterations: 2
    condition: "state.get('n', 0) < 1"
    body:
      - { name: ask, uses: llm.call, with: { prompt: hello }, output: answer }
      - { name: write, uses: shell, with: { run: "touch written" }, output: wrote }
      - { name: count, run: "return {'n': 1}" }
"#,
    );
    folder.file(
        "canvas.json",
        r#"{"name": "stubbed", "nodes": [{"id": "ask", "type": "agent", "data": {"runner": "openai", "model": "m",
            "baseUrl": "http://127.0.0.1:1/v1", "apiKey": "none", "prompt": "x", "outputs": [{"name": "text"}]}}], "edges": []}"#,
    );
    folder.file(
        "stubs.json",
        r#"{"ask": "stubbed", "shell": {"stdout": "7"}}"#,
    );
    for (file, expected) in [
        ("tea.yaml", &["\"stubbed\"", "\"body\": 7"][..]),
        ("canvas.json", &["\"text\": \"stubbed\""]),
    ] {
        let ran = folder.run(&["run", file, "--stub", "stubs.json"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        for expected in expected {
            assert!(ran.out.contains(expected), "{ran:?}");
        }
    }
    assert!(!folder.path().join("written").exists());
    folder.file("misspelt.json", r#"{"aks": "stubbed"}"#);
    let tested = folder.run(&["test", "tea.yaml", "--stub", "misspelt.json"]);
    let warning = "no action uses the stub `aks`: did you mean `ask`?";
    assert!(tested.err.contains(warning), "{tested:?}");
}

/// `run` and `test` find the same stub for each call, also for the parts of an action.
#[test]
fn a_stub_answers_in_a_run_as_in_a_test() {
    let folder = Folder::new();
    folder.file(
        "child.yaml",
        "actions: { touch: { type: shell, run: touch written } }\n",
    );
    folder.file(
        "w.yaml",
        r#"
actions:
  called: { type: workflow, workflow: child.yaml }
  failed: { type: workflow, runAfter: { called: [Succeeded] }, workflow: child.yaml }
  export:
    type: operation
    runAfter: { failed: [Failed] }
    inputs: { uri: "http://127.0.0.1:1/exports", headers: { key: "${secret:NONE}" } }
  append: { type: appendFile, runAfter: { export: [Succeeded] }, inputs: { path: written, rows: [1] } }
outputs:
  called: "@outputs('called')"
  kind: "@actions('failed').error.kind"
  export: "@outputs('export')"
  rows: "@outputs('append')?['rows']"
"#,
    );
    folder.file(
        "stubs.yaml",
        "called: { n: 3 }\nfailed: { error: no }\nappend: done\nexport: [{ statusCode: 202, headers: \
         { location: /1 } }, { statusCode: 202 }, { body: { rows: 5 } }]\nnothing: 1\n",
    );
    let tested = folder.run(&["test", "w.yaml", "--stub", "stubs.yaml", "-o", "json"]);
    let tested: serde_json::Value = serde_json::from_str(&tested.out).unwrap();
    let ran = folder.run(&["run", "w.yaml", "--stub", "stubs.yaml", "-o", "json"]);
    // The stub that this workflow does not use may be for its child.
    assert!(!ran.err.contains("unused-stub"), "{ran:?}");
    assert!(!ran.err.contains("missing-secret"), "{ran:?}");
    let outputs: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(outputs, tested["output"], "{ran:?}");
    assert_eq!(outputs["kind"], "workflow", "{ran:?}");
    assert_eq!(outputs["called"]["n"], 3, "{ran:?}");
    assert_eq!(outputs["export"]["body"]["rows"], 5, "{ran:?}");
    assert!(!folder.path().join("written").exists());
    let child = folder.run(&["validate", "child.yaml", "--stub", "stubs.yaml"]);
    assert!(
        child.err.contains("no action uses the stubs `"),
        "{child:?}"
    );
}

#[test]
fn signals_and_long_waits_take_no_time() {
    let folder = Folder::new();
    folder.file(
        "w.yaml",
        r#"
actions:
  nap: { type: wait, inputs: 30d }
  go: { type: waitForSignal, inputs: { signal: approved, timeout: 3d } }
outputs: "@body('go')"
"#,
    );
    folder.file(
        "w.test.yaml",
        r#"
cases:
  - { name: approved, signals: { approved: { by: me } }, expect: { output: { by: me }, took: 30d } }
  - { name: late, expect: { status: TimedOut, took: 33d } }
"#,
    );
    let ran = folder.run(&["test", "w.yaml"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    folder.file(
        "naps.yaml",
        "actions: { each: { type: foreach, foreach: [1], actions: { nap: { type: wait, inputs: 5s } } } }\n",
    );
    let ran = folder.run(&["test", "naps.yaml"]);
    let words: Vec<&str> = ran.out.split_whitespace().take(5).collect();
    assert_eq!(
        words,
        ["+0s", "each#0/nap", "waits", "5s", "(sleep)"],
        "{ran:?}"
    );
    folder.file(
        "twice.yaml",
        "actions:\n  first: { type: waitForSignal, inputs: { signal: go } }\n  \
         second: { type: waitForSignal, inputs: { signal: go } }\n\
         outputs: [\"@body('first')\", \"@body('second')\"]\n",
    );
    let cases = "cases: [{ signals: [{ go: 1 }, { go: [2] }], expect: { output: [1, [2]] } }]\n";
    folder.file("twice.test.yaml", cases);
    let ran = folder.run(&["test", "twice.yaml"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let unknown = "cases: [{ signals: { goo: 1 }, expect: { status: Stopped } }]\n";
    folder.file("twice.test.yaml", unknown);
    let ran = folder.run(&["test", "twice.yaml"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.out.contains("did you mean `go`?"), "{ran:?}");
}

#[test]
fn append_file_is_simulated_without_an_answer() {
    let folder = Folder::new();
    let file = folder.file(
        "w.yaml",
        r#"
variables: { n: 0 }
actions:
  pages:
    type: until
    condition: "@equals(variables('loopIndex'), 2)"
    limit: { count: 5 }
    actions:
      get: { type: http, inputs: { uri: "https://example.org" } }
      save: { type: appendFile, inputs: { path: rows.jsonl, rows: "@body('get')", replace: true } }
  log: { type: appendFile, inputs: { path: log.txt, text: "done\n" } }
outputs: { length: "@outputs('save').length", rows: "@outputs('save').rows", path: "@outputs('log').path" }
"#,
    );
    let stubs = folder.file("stubs.yaml", "get: [[[1, 2]], [[3]]]\n");
    let args = [
        "test",
        file.to_str().unwrap(),
        "--stub",
        stubs.to_str().unwrap(),
        "-o",
        "json",
    ];
    let ran = folder.run(&args).left(0, &[]);
    let report: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(
        report["output"],
        json!({ "length": 10, "rows": 1, "path": "log.txt" })
    );
    // Steps that the engine adds are not shown.
    let places: Vec<&str> = report["steps"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|step| step["does"] == "call")
        .map(|step| step["place"].as_str().unwrap())
        .collect();
    assert_eq!(
        places,
        [
            "pages#0/get",
            "pages#0/save",
            "pages#1/get",
            "pages#1/save",
            "log.append"
        ]
    );
    assert!(!folder.path().join("rows.jsonl").exists() && !folder.path().join("log.txt").exists());
}

#[test]
fn stubs_are_read_from_a_pipe() {
    let folder = Folder::new();
    let file = folder.file("w.yaml", "actions: { a: { type: http, inputs: { uri: 'https://example.org' } } }\noutputs: \"@body('a')\"\n");
    let line = format!(
        "\"$WINDLASS\" test {} --stub <(echo 'a: [7]') -o json",
        file.display()
    );
    let mut command = std::process::Command::new("bash");
    command
        .args(["-c", &line])
        .env("WINDLASS", env!("CARGO_BIN_EXE_windlass"));
    let output = command.current_dir(folder.path()).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    let report: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{stderr}"));
    assert_eq!(report["output"], 7, "{stderr}");
}

#[test]
fn unknown_names_of_an_expectation_are_reported() {
    let folder = Folder::new();
    folder.file(
        "sh.yaml",
        "actions: { save: { type: shell, run: \"echo bad >&2; exit 3\" } }\n",
    );
    let case = |expect: &str| {
        let answers = "answers: { save: { exitCode: 3, stderr: bad } }";
        let text = format!("cases: [{{ name: one, {answers}, expect: {{ {expect} }} }}]\n");
        folder.file("sh.test.yaml", text);
        folder.run(&["test", "sh.yaml"])
    };
    // A stub fails with the message of the real command.
    let passed = case("status: Failed, error: 'exit code 3: bad', calls: { save: 1 }");
    passed.left(0, &["1 case, 0 failed"]);
    for (expect, message) in [
        (
            "status: Failed, calls: { svae: 0 }",
            "`calls`: nothing is called `svae`: did you mean `save`?",
        ),
        (
            "status: Failed, iterations: { poll: 0 }",
            "`iterations`: nothing is called `poll`",
        ),
    ] {
        let failed = case(expect).left(1, &["1 case, 1 failed"]);
        assert!(failed.out.contains(message), "{}", failed.out);
    }
}

/// A stub is used before a registered handler, as in `windlass test`. Other actions of the handler really call it.
#[test]
fn a_stub_is_used_before_a_handler() {
    let folder = Folder::new();
    folder.file(
        "w.yaml",
        "handlers: { mailer: { command: [echo, sent] } }\n\
         actions:\n\
         \x20 m: { type: activity, activityType: mailer, input: 1 }\n\
         \x20 n: { type: activity, activityType: mailer, input: 2 }\n\
         outputs: { m: \"@outputs('m')\", n: \"@outputs('n')\" }\n",
    );
    let outputs = |stubs: &str| {
        folder.file("stubs.yaml", stubs);
        let ran = folder.run(&["run", "w.yaml", "--stub", "stubs.yaml", "-o", "json"]);
        let ran = ran.left(0, &[]);
        assert!(!ran.err.contains("warning"), "{ran:?}");
        ran.out.split_whitespace().collect::<String>()
    };
    assert_eq!(outputs("m: stub\n"), r#"{"m":"stub","n":"sent"}"#);
    assert_eq!(outputs("mailer: stub\n"), r#"{"m":"stub","n":"stub"}"#);
}
