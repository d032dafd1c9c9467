//! How a workflow handles failures: it catches them, continues without what failed, notifies a person at its end, and
//! retries the items that failed.

use crate::life::first_use::Folder;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::mpsc;

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn a_failure_is_caught_after_the_retries_and_counts_as_handled() {
    let folder = Folder::new();
    let file = folder.file(
        "w.yaml",
        r#"
actions:
  flaky:
    type: shell
    run: "echo try >> tries; echo bad >&2; exit 3"
    retry: { type: fixed, interval: 10ms, count: 2 }
    catch:
      actions:
        note: { type: compose, inputs: "@actions('flaky').error" }
        told: { type: compose, inputs: "@outputs('note').code" }
  slow: { type: scope, timeout: 100ms, continue_on_error: true, actions: { nap: { type: wait, inputs: 1m } } }
  soft: { type: shell, run: "exit 4", continue_on_error: true }
  fine: { type: shell, run: "true", catch: { type: compose, inputs: never } }
outputs:
  told: "@outputs('told')"
  kind: "@outputs('note').kind"
  slow: "@actions('slow').status"
  soft: "@actions('soft').status"
"#,
    );
    let ran = folder.run(&["run", text(&file)]).left(0, &[]);
    let out: Value = serde_json::from_str(&ran.out).unwrap();
    let wanted = json!({ "told": "3", "kind": "shell", "slow": "TimedOut", "soft": "Failed" });
    assert_eq!(out, wanted);
    assert_eq!(folder.lines("tries"), 3);
}

#[test]
fn a_timeout_says_what_had_failed_meanwhile() {
    let folder = Folder::new();
    let until = "{ type: until, condition: \"@equals(1, 2)\", limit: { count: 9, timeout: 500ms }";
    for (action, name) in [
        (until, "loop `w`"),
        ("{ type: scope, timeout: 500ms", "`w`"),
    ] {
        let flaky = r#"{ type: shell, run: "echo no key >&2; exit 3", retry: { type: fixed, interval: 1m, count: 9 } }"#;
        let file = folder.file(
            "w.yaml",
            format!("actions: {{ w: {action}, actions: {{ flaky: {flaky} }} }} }}"),
        );
        let because = format!(
            "{name} was not done within its timeout of 500ms; an attempt had failed: the command ended with exit code 3: no key"
        );
        folder.run(&["run", text(&file)]).left(5, &[&because]);
    }
}

#[test]
fn a_sent_response_remains_although_the_run_fails_later() {
    let folder = Folder::new();
    let definition = json!({ "definition": {
        "$schema": "https://schema.management.azure.com/providers/Microsoft.Logic/schemas/2016-06-01/workflowdefinition.json#",
        "triggers": { "manual": { "type": "Request", "kind": "Http" } },
        "actions": {
            "Job": { "type": "Compose", "inputs": "on it" },
            "Answer": {
                "type": "Response",
                "inputs": { "statusCode": 202, "body": "@actions('Job').inputs" },
                "runAfter": { "Job": ["Succeeded"] }
            },
            "End": {
                "type": "Terminate",
                "inputs": { "runStatus": "Failed", "runError": { "code": "@{actions('Answer').inputs.statusCode}", "message": "broken" } },
                "runAfter": { "Answer": ["Succeeded"] }
            }
        }
    } });
    let file = folder.file("w.json", definition.to_string());
    let ran = folder
        .run(&["run", text(&file), "--id", "w"])
        .left(1, &["broken"]);
    let out: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(out["error"]["code"], "202");
    assert_eq!(out["output"]["body"], "on it");
    let status = folder.run(&["status", "w"]).left(0, &[]);
    assert!(status.out.contains("on it"), "{status:?}");
}

#[test]
fn a_handled_failure_is_a_success_for_what_comes_after_it_also_in_a_graph_and_a_loop() {
    let folder = Folder::new();
    let file = folder.file(
        "w.yaml",
        r#"
variables: { n: 0, caught: 0 }
actions:
  soft: { type: shell, run: "exit 4", continue_on_error: true }
  after: { type: compose, inputs: 1, runAfter: { soft: [Succeeded] } }
  each:
    type: until
    runAfter: { after: [Succeeded] }
    condition: variables.n == 3
    actions:
      next: { type: incrementVariable, name: n }
      bad:
        type: shell
        run: "exit 1"
        break_when: "@equals(1, 1)"
        catch: { type: incrementVariable, name: caught }
outputs: { caught: "@variables('caught')" }
"#,
    );
    let ran = folder.run(&["run", text(&file)]).left(0, &[]);
    let out: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(out, json!({ "caught": 3 }));
    folder
        .run(&["compile", text(&file), "-o", "mermaid"])
        .left(0, &[]);
}

const ENDS: &str = r#"
inputs: { code: { type: integer } }
actions:
  work: { type: shell, run: "exit $CODE", env: { CODE: "@{inputs('code')}" } }
on_failure:
  type: shell
  run: 'echo "$WHY" >> failed; touch telling; while [ -e hold ]; do sleep 0.05; done'
  env: { WHY: "@variables('failure')" }
on_finish: { type: shell, run: "echo done >> finished; exit 9" }
outputs: { code: "@outputs('work').exitCode" }
"#;

#[test]
fn the_end_of_a_run_is_reported_also_through_a_kill_and_does_not_change() {
    let folder = Folder::new();
    let file = folder.file("w.yaml", ENDS);
    let file = text(&file);
    let good = folder.run(&["run", file, "-i", "code=0"]).left(0, &[]);
    assert_eq!(good.out.replace(char::is_whitespace, ""), r#"{"code":0}"#);
    assert_eq!((folder.lines("failed"), folder.lines("finished")), (0, 1));
    folder.file("hold", "");
    let mut child = folder.start(&["run", file, "-i", "code=5", "--id", "bad"]);
    folder.wait_for(|names| names.iter().any(|name| name == "telling"));
    child.kill().unwrap();
    child.wait().unwrap();
    std::fs::remove_file(Path::new(file).with_file_name("hold")).unwrap();
    let bad = folder.run(&["resume", "bad"]).left(1, &["exit code 5"]);
    let out: Value = serde_json::from_str(&bad.out).unwrap();
    assert_eq!(out["error"]["action"], "work");
    assert_eq!(out["error"]["code"], "5");
    assert_eq!(out["error"]["line"], 4);
    assert_eq!((folder.lines("failed"), folder.lines("finished")), (2, 2));
    let lines = folder.read("failed");
    let event: Value = serde_json::from_str(lines.lines().next().unwrap()).unwrap();
    assert_eq!(event["status"], "Failed");
    assert_eq!(event["action"], "work");
}

/// A poll that reached its limit exits with the limit's code, although its alert was sent.
#[test]
fn an_alert_does_not_hide_a_limit() {
    let folder = Folder::new();
    let file = folder.file(
        "w.yaml",
        r#"
actions:
  poll:
    type: until
    condition: "@equals(1, 2)"
    limit: { count: 2 }
    actions: { look: { type: compose, inputs: "@utcNow()" } }
on_failure: { type: shell, run: "echo \"$KIND\" >> alert", env: { KIND: "@{variables('failure').kind}" } }
"#,
    );
    folder.run(&["run", text(&file)]).left(4, &["poll"]);
    assert_eq!(folder.read("alert"), "limit\n");
}

#[test]
fn a_run_that_terminates_itself_reports_its_end() {
    let folder = Folder::new();
    let workflow = |status: &str| {
        format!(
            r#"
actions:
  both:
    type: parallel
    branches:
      long: {{ type: wait, inputs: 1h }}
      ends: {{ type: terminate, inputs: {{ runStatus: {status}, runError: {{ code: "7", message: enough }} }} }}
on_failure: {{ type: shell, run: "echo f >> told" }}
on_finish: {{ type: shell, run: "echo e >> told" }}
outputs: {{ n: 1 }}
"#
        )
    };
    for (status, code, lines) in [("Failed", 1, 2), ("Cancelled", 6, 3), ("Succeeded", 0, 4)] {
        let file = folder.file("w.yaml", workflow(status));
        folder.run(&["run", text(&file)]).left(code, &[]);
        assert_eq!(folder.lines("told"), lines, "{status}");
    }
}

/// A webhook that answers its requests with these statuses, and sends their bodies to the channel.
fn webhook(statuses: &'static [u16]) -> (String, mpsc::Receiver<Value>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (sends, bodies) = mpsc::channel();
    std::thread::spawn(move || {
        for status in statuses {
            let (mut stream, _) = listener.accept().unwrap();
            let mut lines = BufReader::new(stream.try_clone().unwrap());
            let (mut line, mut length) = (String::new(), 0);
            while lines.read_line(&mut line).unwrap() > 2 {
                let lower = line.to_lowercase();
                if let Some(number) = lower.strip_prefix("content-length:") {
                    length = number.trim().parse().unwrap();
                }
                line.clear();
            }
            let mut body = vec![0; length];
            lines.read_exact(&mut body).unwrap();
            let answer = format!("HTTP/1.1 {status} Status\r\nconnection: close\r\n\r\n");
            stream.write_all(answer.as_bytes()).unwrap();
            let body = serde_json::from_slice::<Value>(&body).unwrap();
            if sends.send(body).is_err() {
                return;
            }
        }
    });
    (format!("http://{address}/hook"), bodies)
}

/// A run that fails, with this alert.
fn alerting(folder: &Folder, alert: &str) -> PathBuf {
    let work = "actions: { work: { type: shell, run: 'exit 5' } }";
    folder.file(
        "w.yaml",
        format!("name: nightly\n{work}\non_failure: {alert}\n"),
    )
}

#[test]
fn one_line_notifies_a_webhook() {
    let folder = Folder::new();
    let (hook, bodies) = webhook(&[204]);
    let file = alerting(&folder, &hook);
    folder.run(&["run", text(&file), "--id", "r"]).left(1, &[]);
    let body = bodies.recv().unwrap();
    assert_eq!(
        (&body["workflow"], &body["run"]),
        (&json!("nightly"), &json!("r"))
    );
    assert_eq!(body["failure"]["code"], "5");
}

#[test]
fn alerts_have_the_format_of_a_chat() {
    let folder = Folder::new();
    let says = "Workflow nightly ended as Failed (run r0): ";
    let cases: [(&str, &str); 4] = [
        ("format: slack", "/text"),
        ("format: teams", "/attachments/0/content/body/0/text"),
        (
            "format: slack, text: \"@{variables('failure').code}!\"",
            "/text",
        ),
        ("body: { n: \"@variables('failure').line\" }", "/n"),
    ];
    for (index, (more, pointer)) in cases.into_iter().enumerate() {
        let (hook, bodies) = webhook(&[200]);
        let file = alerting(&folder, &format!("{{ webhook: \"{hook}\", {more} }}"));
        let id = format!("r{index}");
        folder.run(&["run", text(&file), "--id", &id]).left(1, &[]);
        let body = bodies.recv().unwrap();
        let found = body.pointer(pointer).unwrap_or_else(|| panic!("{body}"));
        match index {
            2 => assert_eq!(found, "5!"),
            3 => assert_eq!(found, 2),
            _ => assert!(
                found
                    .as_str()
                    .unwrap()
                    .starts_with(&says.replace("r0", &id)),
                "{body}"
            ),
        }
    }
    for (alert, wrong) in [
        (
            "{ webhook: http://127.0.0.1/x, format: telegram }",
            "not a format of alerts",
        ),
        (
            "{ webhook: http://127.0.0.1/x, text: a, body: b }",
            "part of the body",
        ),
        ("{ webhook: http://127.0.0.1/x, formt: slack }", "formt"),
    ] {
        let file = alerting(&folder, alert);
        folder.run(&["validate", text(&file)]).left(3, &[wrong]);
    }
}

/// An alert that its receiver refused is sent again by the next process.
#[test]
fn an_alert_arrives_after_a_kill() {
    let folder = Folder::new();
    let (hook, bodies) = webhook(&[503, 204]);
    let file = alerting(&folder, &hook);
    let mut child = folder.start(&["run", text(&file), "--id", "r"]);
    let first = bodies.recv().unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    folder.run(&["resume", "r"]).left(1, &["exit code 5"]);
    assert_eq!(bodies.recv().unwrap(), first);
    let lost = folder.run(&[
        "list",
        "--label",
        "windlass.on_failure=failed",
        "-o",
        "json",
    ]);
    assert!(!lost.out.contains("\"r\""), "{lost:?}");
}

const EACH: &str = r#"
actions:
  each:
    type: foreach
    foreach: "@createArray(1, 2, 3, 4, 5)"
    on_error: continue
    concurrency: 2
    actions:
      work:
        type: shell
        run: "echo $N >> ran; test -e mended || [ $N != 2 -a $N != 4 ] || exit $N; echo $N"
        env: { N: "@{item()}" }
  sum: { type: compose, inputs: "@length(outputs('each').failed)" }
outputs:
  failed: "@outputs('each').failed"
  results: "@outputs('each').results"
"#;

#[test]
fn a_foreach_continues_without_failed_items_and_retries_them() {
    let folder = Folder::new();
    let file = folder.file("w.yaml", EACH);
    let ran = folder.run(&["run", text(&file), "--id", "r"]);
    let ran = ran.left(
        0,
        &["2 of 5 items of `each` failed", "retry --failed-items r"],
    );
    let out: Value = serde_json::from_str(&ran.out).unwrap();
    let failed = out["failed"].as_array().unwrap();
    let indexes: Vec<&Value> = failed.iter().map(|one| &one["index"]).collect();
    assert_eq!(indexes, [&json!(1), &json!(3)]);
    assert_eq!(failed[1]["item"], 4);
    assert_eq!(failed[1]["error"]["code"], "4");
    assert_eq!(out["results"][1], Value::Null);
    assert_eq!(out["results"][4]["work"]["body"], 5);
    let status = folder.run(&["status", "r"]).left(0, &[]);
    assert!(
        status.out.contains("2 of 5 items of `each` failed"),
        "{status:?}"
    );
    let next = "next        windlass retry r --failed-items   |";
    assert!(status.out.contains(next), "{status:?}");
    assert!(status.out.contains("succeeded with failures"), "{status:?}");
    let status = folder.run(&["status", "r", "-o", "json"]).left(0, &[]);
    let status: Value = serde_json::from_str(&status.out).unwrap();
    assert_eq!(status["outcome"]["failed_items"][0]["failed"], 2);
    folder.file("mended", "");
    let again = folder.run(&["retry", "r", "--failed-items"]).left(0, &[]);
    let out: Value = serde_json::from_str(&again.out).unwrap();
    assert_eq!(out["failed"], json!([]));
    // The run that retried them had no failures.
    let listed = folder.run(&["list", "--status", "SucceededWithFailures"]);
    let listed = listed.left(0, &[]).out;
    assert_eq!(listed.lines().count(), 2, "{listed}");
    assert!(listed.contains("r    "), "{listed}");
    let bodies = out["results"].as_array().unwrap().iter();
    let bodies: Vec<&Value> = bodies.map(|one| &one["work"]["body"]).collect();
    assert_eq!(
        bodies,
        [&json!(1), &json!(2), &json!(3), &json!(4), &json!(5)]
    );
    let mut lines: Vec<String> = folder.read("ran").lines().map(str::to_owned).collect();
    let mut again = lines.split_off(5);
    again.sort();
    assert_eq!(again, ["2", "4"]);
    let none = folder.run(&["retry", "r", "--failed-items", "--id", "x"]);
    none.left(0, &[]);
    let none = folder.run(&["retry", "x", "--failed-items"]);
    none.left(2, &["no item of a foreach failed"]);
}

/// Failed items of a foreach that continued are also reported if the run fails for another reason.
#[test]
fn failed_items_of_a_run_that_fails_later_are_reported() {
    let folder = Folder::new();
    let end = "{ type: terminate, runStatus: Failed, runError: { message: enough } }";
    let text_of = EACH.replace(
        "{ type: compose, inputs: \"@length(outputs('each').failed)\" }",
        end,
    );
    let file = folder.file("w.yaml", text_of);
    let message = "2 of 5 items of `each` failed";
    folder
        .run(&["run", text(&file), "--id", "r"])
        .left(1, &["enough", message]);
    let status = folder.run(&["status", "r"]).left(0, &[]);
    assert!(status.out.contains(message), "{status:?}");
    // Both commands are useful, and the first one works.
    let next = "windlass retry r --from failed   |   windlass retry r --failed-items   |";
    assert!(status.out.contains(next), "{status:?}");
    let again = folder.run(&["retry", "r", "--from", "failed"]);
    again.left(1, &["enough"]);
}

/// Two foreaches with failed items. One runs inside the items of another foreach.
const SEVERAL: &str = r#"
name: several
actions:
  outer:
    type: foreach
    foreach: "@range(1, 2)"
    concurrency: 1
    actions:
      inner:
        type: foreach
        foreach: "@range(1, 2)"
        on_error: continue
        concurrency: 1
        actions:
          work:
            type: shell
            run: "echo $N >> ran; test -e mended || [ $N != 11 -a $N != 22 ]"
            env: { N: "@{items('outer')}@{item()}" }
  last:
    type: foreach
    foreach: "@range(1, 2)"
    on_error: continue
    concurrency: 1
    actions:
      end: { type: shell, run: "echo last$N >> ran; test -e mended || [ $N != 1 ]", env: { N: "@{item()}" } }
outputs: "@length(outputs('last').failed)"
"#;

#[test]
fn of_several_foreaches_with_failed_items_one_is_chosen() {
    let folder = Folder::new();
    let file = folder.file("w.yaml", SEVERAL);
    let messages = [
        "in the items of `outer` 2 items failed; 1 of 2 items of `inner` failed",
        "1 of 2 items of `last` failed",
    ];
    folder
        .run(&["run", text(&file), "--id", "r"])
        .left(0, &messages);
    folder.file("mended", "");
    let places = [
        "failed-items/outer#0/inner",
        "failed-items/outer#1/inner",
        "failed-items/last",
    ];
    let refused = folder.run(&["retry", "r", "--failed-items"]);
    refused.left(2, &places);
    let ran = |from: &str, id: &str| {
        let before = folder.lines("ran");
        folder
            .run(&["retry", "r", "--from", from, "--id", id])
            .left(0, &[]);
        let ran = folder.read("ran");
        ran.lines().skip(before).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(ran(places[0], "a"), "11 21 22 last1 last2");
    assert_eq!(ran(places[1], "b"), "22 last1 last2");
    assert_eq!(ran("failed-items/last", "c"), "last1");
    let other = folder.run(&["retry", "r", "--from", "failed-items-of"]);
    other.left(2, &["is Succeeded"]);
    // Failures from before its start are reported, and belong to the earlier run.
    let status = folder.run(&["status", "c"]).left(0, &[]);
    assert!(status.out.contains(messages[0]), "{status:?}");
    let again = folder.run(&["retry", "c", "--failed-items"]);
    again.left(2, &["those of an earlier run are retried from that"]);
}

#[test]
fn the_items_that_failed_are_taken_up_again_through_a_kill_and_of_a_run_that_failed() {
    let folder = Folder::new();
    let file = folder.file("w.yaml", EACH.replace("on_error: continue", "on_error: fail").replace(
        "outputs:\n  failed: \"@outputs('each').failed\"\n  results: \"@outputs('each').results\"",
        "outputs: { all: \"@outputs('each')\" }",
    ).replace("@length(outputs('each').failed)", "@length(outputs('each'))"));
    folder.run(&["run", text(&file), "--id", "r"]).left(1, &[]);
    folder.file("mended", "");
    let mut child = folder.start(&["retry", "r", "--failed-items", "--id", "again"]);
    folder.wait_for(|_| folder.lines("ran") >= 5);
    child.kill().unwrap();
    child.wait().unwrap();
    let resumed = folder.run(&["resume", "again"]);
    assert!(matches!(resumed.code, Some(0 | 2)), "{resumed:?}");
    let status = folder.run(&["status", "again", "-o", "json"]).left(0, &[]);
    let status: Value = serde_json::from_str(&status.out).unwrap();
    assert_eq!(
        status["outcome"]["output"]["all"].as_array().unwrap().len(),
        5
    );
}

#[test]
fn mistakes_in_failure_handlers_are_reported() {
    let folder = Folder::new();
    for (workflow, message) in [
        (
            "actions: { a: { type: compose, inputs: 1, catch: { type: compose, inputs: 2 }, continue_on_error: true } }",
            "conflict",
        ),
        (
            "actions: { a: { type: compose, inputs: 1, continue_on_error: 3 } }",
            "true or false",
        ),
        (
            "actions: { a: { type: foreach, foreach: [1], on_error: explode, actions: { b: { type: compose, inputs: 1 } } } }",
            "explode",
        ),
        (
            "variables: { failure: 1 }\nactions: { a: { type: compose, inputs: 1 } }\non_finish: { type: compose, inputs: 2 }",
            "failure",
        ),
        (
            "actions: { a: { type: compose, inputs: 1 } }\non_finish: { type: compose, inputs: \"@outputs('nope')\" }",
            "nope",
        ),
    ] {
        let file = folder.file("w.yaml", workflow);
        let printed = folder.run(&["validate", text(&file)]);
        assert_eq!(printed.code, Some(3), "{printed:?}");
        assert!(
            printed.err.contains(message) || printed.out.contains(message),
            "{printed:?}"
        );
    }
}

/// Answers with these bodies as JSON, in order, and then always with the last.
fn answers(bodies: &'static [&'static str]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for (n, stream) in listener.incoming().enumerate() {
            let mut stream = stream.unwrap();
            let mut lines = BufReader::new(stream.try_clone().unwrap());
            let mut line = String::new();
            while lines.read_line(&mut line).unwrap() > 2 {
                line.clear();
            }
            let body = bodies[n.min(bodies.len() - 1)];
            let answer = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                body.len()
            );
            stream.write_all(answer.as_bytes()).unwrap();
        }
    });
    base
}

#[test]
fn a_bad_200_is_retried() {
    let folder = Folder::new();
    let bodies = &["<html>busy</html>", r#"{"ok": false}"#, r#"{"ok": true}"#];
    let workflow = |uri: &str, expect: &str| {
        format!(
            "actions: {{ a: {{ type: http, uri: '{uri}', {expect}, retry: {{ type: fixed, interval: 10ms, count: 3 }} }} }}\noutputs: \"@body('a').ok\"\n"
        )
    };
    for (expect, given) in [
        ("expect: json", "false"),
        ("expect: \"@contains(string(body('a')), 'true')\"", "true"),
    ] {
        let file = folder.file("w.yaml", workflow(&answers(bodies), expect));
        let ran = folder.run(&["run", text(&file)]);
        assert_eq!(ran.left(0, &[]).out.trim(), given);
    }
    let never = folder.file(
        "w.yaml",
        workflow(&answers(&["<html>busy</html>"]), "expect: json"),
    );
    let ran = folder.run(&["run", text(&never), "--id", "never"]);
    ran.left(
        1,
        &["`a` returned application/json, and its body is not valid JSON: <html>busy</html>"],
    );
    let history = folder.run(&["status", "never", "-o", "json"]).left(0, &[]);
    let status: Value = serde_json::from_str(&history.out).unwrap();
    assert_eq!(status["outcome"]["error"]["kind"], "expect");
}

#[test]
fn the_text_of_a_model_is_json() {
    let folder = Folder::new();
    let ask = |command: &str| {
        let file = format!(
            "actions: {{ a: {{ type: ai, prompt: hi, provider: shell, command: '{command}', expect: json, retry: {{ type: fixed, interval: 10ms, count: 2 }} }} }}\noutputs: \"@outputs('a').content\"\n"
        );
        folder.run(&["run", text(&folder.file("w.yaml", file))])
    };
    let ran = ask(r#"echo x >> tries; [ $(wc -l < tries) -lt 3 ] && echo Sure || echo "[1]""#);
    assert_eq!(ran.left(0, &[]).out.trim(), r#""[1]""#);
    for answer in ["Sure: {}", "5", "{"] {
        let refused = format!("`a` answered no JSON object or list: {answer}");
        ask(&format!("echo \"{answer}\"")).left(1, &[&refused]);
    }
}

#[test]
fn only_a_pending_answer_of_http_may_lack_json() {
    let folder = Folder::new();
    let action = "{ type: activity, activityType: look, input: 1, expect: json, retry: none }";
    let file = folder.file("w.yaml", format!("actions: {{ a: {action} }}\n"));
    folder.file("stub.yaml", "look: { operation: sum, body: <html> }\n");
    let ran = folder.run(&["run", text(&file), "--stub", "stub.yaml"]);
    ran.left(1, &["`a` returned no JSON: <html>"]);
}

#[test]
fn a_condition_says_which_answers_are_waited_for() {
    let folder = Folder::new();
    let file = folder.file(
        "w.yaml",
        r#"
actions:
  a:
    type: shell
    run: "echo x >> tries; cat tries | wc -l"
    expect: "@greater(body('a'), 2)"
    retry: { type: fixed, interval: 10ms, count: 9 }
  b:
    type: shell
    run: "echo x >> codes; exit $(cat codes | wc -l)"
    retry: { type: fixed, interval: 10ms, count: 9, when: "@less(outputs('b').exitCode, 3)" }
    continue_on_error: true
outputs: { a: "@body('a')", b: "@outputs('b').exitCode" }
"#,
    );
    let ran = folder.run(&["run", text(&file)]).left(0, &[]);
    let out: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(out, json!({ "a": 3, "b": 3 }));
    let strict = folder.file(
        "w.yaml",
        "actions: { a: { type: shell, run: 'echo 1', expect: \"@equals(body('a'), 2)\" } }",
    );
    let ran = folder.run(&["run", text(&strict), "--id", "strict"]);
    ran.left(1, &["gave something else than", ": 1"]);
}

/// A server that answers 503 `failures` times, and then 204. Returns its address and the number of calls.
fn alarm(failures: usize) -> (String, std::sync::Arc<std::sync::atomic::AtomicUsize>) {
    use std::sync::atomic::{AtomicUsize, Ordering};
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/hook", listener.local_addr().unwrap());
    let called = std::sync::Arc::new(AtomicUsize::new(0));
    let count = std::sync::Arc::clone(&called);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut lines = BufReader::new(stream.try_clone().unwrap());
            let (mut line, mut length) = (String::new(), 0);
            while lines.read_line(&mut line).unwrap() > 2 {
                if let Some(number) = line.to_lowercase().strip_prefix("content-length:") {
                    length = number.trim().parse().unwrap();
                }
                line.clear();
            }
            lines.read_exact(&mut vec![0; length]).unwrap();
            let status = match count.fetch_add(1, Ordering::SeqCst) < failures {
                true => "503 Service Unavailable",
                false => "204 No Content",
            };
            write!(
                stream,
                "HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
            )
            .unwrap();
        }
    });
    (address, called)
}

#[test]
fn alert_is_sent_again_until_its_server_answers() {
    let folder = Folder::new();
    let (address, called) = alarm(2);
    let text_of =
        format!("actions: {{ work: {{ type: shell, run: 'exit 5' }} }}\non_failure: {address}\n");
    let file = folder.file("w.yaml", text_of);
    let printed = folder.run(&["run", text(&file), "--id", "r"]).left(1, &[]);
    assert!(!printed.err.contains("warning"), "{printed:?}");
    assert_eq!(called.load(std::sync::atomic::Ordering::SeqCst), 3);
}

#[test]
fn failed_alert_is_visible_in_run_status_and_list() {
    let folder = Folder::new();
    let file = folder.file(
        "w.yaml",
        r#"
actions: { work: { type: shell, run: 'exit 5' } }
on_failure: { type: shell, run: 'echo no mail >&2; exit 9' }
"#,
    );
    let run = folder.run(&["run", text(&file), "--id", "r"]);
    run.left(
        1,
        &["`on_failure` failed: the command ended with exit code 9: no mail"],
    );
    let status = folder.run(&["status", "r"]).left(0, &[]);
    assert!(
        status.out.contains("alert     `on_failure` failed: "),
        "{status:?}"
    );
    let only = ["list", "--label", "windlass.on_failure=failed"];
    assert!(
        folder
            .run(&only)
            .left(0, &[])
            .out
            .contains("windlass.on_failure=failed")
    );
    let none = folder
        .run(&["list", "--label", "windlass.on_finish=failed"])
        .left(0, &[]);
    assert!(none.out.contains("no runs"), "{none:?}");
}

#[test]
fn a_setting_that_keeps_a_call_from_its_server_is_named() {
    let folder = Folder::new();
    let missing = folder.path().join("missing.pem");
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let proxy = format!("http://{}", server.local_addr().unwrap());
    drop(server);
    let action =
        "actions: { a: { type: http, inputs: { uri: \"http://example.org/\" }, retry: none } }";
    let file = folder.file("w.yaml", action);
    let ran = folder
        .command(&["run", text(&file)])
        .env("HTTP_PROXY", &proxy)
        .env("SSL_CERT_FILE", &missing)
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&ran.stderr);
    assert!(stderr.contains("(HTTP_PROXY is set)"), "{stderr}");
}

#[test]
fn a_misspelt_proxy_is_refused_and_not_ignored() {
    let folder = Folder::new();
    let (base, requested) = super::paginate::serve(|_| (200, vec![], json!({})));
    let poll = ["poll", "--url", &base, "--times", "1"];
    for (name, value) in [
        ("HTTP_PROXY", "foo://u:hush@p:1"),
        ("ALL_PROXY", "http//p:1"),
    ] {
        let ran = folder.run_with(&[(name, value)], &poll);
        let ran = ran.left(1, &[&format!("{name} is not the address of a proxy")]);
        assert!(!ran.err.contains("hush"), "{ran:?}");
    }
    assert_eq!(requested.lock().unwrap().len(), 0);
    let direct = [("HTTP_PROXY", "foo://p:1"), ("NO_PROXY", "127.0.0.1")];
    folder.run_with(&direct, &poll).left(0, &[]);
}
