//! `appendFile`: every row is written once, and lost rows of other programs are reported.

use super::process::Place;
use serde_json::{Value as Json, json};
use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use windlass_actions::Registry;
use windlass_engine::{Engine, Value};
use windlass_model::model::{Fault, Request};

/// A run that appends, waits for `go`, and appends again.
const TWICE: &str = r#"
name: twice
inputs: { file: { type: string } }
actions:
  one: { type: appendFile, path: "@inputs('file')", row: 1 }
  go: { type: waitForSignal, signal: go }
  two: { type: appendFile, path: "@inputs('file')", rows: [1, 2] }
outputs: "@outputs('two').length"
"#;

/// A run that appends a given number of times.
const ONCE: &str = r#"
name: once
inputs: { file: { type: string } }
actions:
  one: { type: appendFile, path: "@inputs('file')", row: 1 }
"#;

fn add(path: &Path, text: &str) {
    let mut file = OpenOptions::new().append(true).open(path).unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

/// The run fails, because another program wrote to the file.
fn refused(place: &Place, args: &[&str]) {
    let output = place.run(args);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(
        stderr.contains("was changed by another program"),
        "{stderr}"
    );
}

#[test]
fn what_others_wrote_meanwhile_stays() {
    let place = Place::new();
    let (twice, once) = (
        place.file("twice.yaml", TWICE),
        place.file("once.yaml", ONCE),
    );
    let path = place.dir.path().join("rows.jsonl");
    let input = format!("file={}", path.display());
    // Another run appends the same rows from another store, once while this run is active, and once after this run was
    // killed.
    for (id, killed) in [("lives", false), ("killed", true)] {
        fs::write(&path, "0\n").unwrap();
        let mut run = place.follow(&["run", &twice, "--id", id, "-i", &input]);
        run.until("ActionEnded", "one.append");
        let elsewhere = Place::new();
        if killed {
            run.kill();
            let once = place.file("other.yaml", &ONCE.replace("row: 1", "row: 9"));
            assert!(place.run(&["run", &once, "-i", &input]).status.success());
            assert!(place.run(&["signal", id, "go"]).status.success());
            refused(&place, &["resume", id]);
        } else {
            let other = elsewhere.run(&["run", &once, "-i", &input]);
            assert!(other.status.success(), "{other:?}");
            assert!(place.run(&["signal", id, "go"]).status.success());
            let lines = std::iter::from_fn(|| run.line());
            let result = lines.last().unwrap()["result"].to_string();
            assert!(
                result.contains("was changed by another program"),
                "{result}"
            );
        }
        let theirs = if killed { 9 } else { 1 };
        let all = format!("0\n1\n{theirs}\n");
        assert_eq!(fs::read_to_string(&path).unwrap(), all);
    }
    // Another program.
    fs::write(&path, "").unwrap();
    let mut run = place.follow(&["run", &twice, "--id", "other", "-i", &input]);
    run.until("ActionEnded", "one.append");
    run.kill();
    add(&path, "theirs\n");
    assert!(place.run(&["signal", "other", "go"]).status.success());
    refused(&place, &["resume", "other"]);
    assert_eq!(fs::read_to_string(&path).unwrap(), "1\ntheirs\n");
}

#[test]
fn a_killed_run_resumes_where_it_was() {
    let place = Place::new();
    let twice = place.file("twice.yaml", TWICE);
    let path = place.dir.path().join("rows.jsonl");
    let input = format!("file={}", path.display());
    fs::write(&path, "0\n").unwrap();
    let mut run = place.follow(&["run", &twice, "--id", "k", "-i", &input]);
    run.until("ActionEnded", "one.append");
    run.kill();
    assert!(place.run(&["signal", "k", "go"]).status.success());
    assert_eq!(place.follow(&["resume", "k"]).result(), json!(8));
    assert_eq!(fs::read_to_string(&path).unwrap(), "0\n1\n1\n2\n");
}

#[test]
fn a_file_is_one_file_however_it_is_called() {
    let place = Place::new();
    let here = place.dir.path().to_owned();
    std::os::unix::fs::symlink(here.join("rows"), here.join("link")).unwrap();
    let shown = |name: &str| here.join(name).display().to_string();
    for replace in [true, false] {
        fs::write(here.join("rows"), "0\n").unwrap();
        let names = [
            "rows".to_owned(),
            shown("./rows"),
            shown("rows"),
            "link".to_owned(),
        ];
        let mut text = String::from("actions:\n");
        for (number, name) in names.iter().chain(&names).enumerate() {
            text += &format!(
                "  a{number}: {{ type: appendFile, path: {name}, row: {number}, replace: {replace} }}\n"
            );
        }
        let file = place.file("called.yaml", &text);
        place.follow_from(&here, &["run", &file]).result();
        let initial = if replace { "" } else { "0\n" };
        let all = format!("{initial}0\n1\n2\n3\n4\n5\n6\n7\n");
        assert_eq!(fs::read_to_string(here.join("rows")).unwrap(), all);
    }
}

/// A symbolic link that is changed to point elsewhere is not followed.
#[test]
fn a_link_that_was_turned_is_a_fault() {
    let place = Place::new();
    let here = place.dir.path().to_owned();
    fs::write(here.join("other"), "theirs\n").unwrap();
    let link = here.join("link");
    std::os::unix::fs::symlink(here.join("rows"), &link).unwrap();
    let text = format!(
        "actions:\n\
         \x20 a: {{ type: appendFile, path: {0}, row: 1 }}\n\
         \x20 turn: {{ type: shell, run: ln -sfn {1} {0} }}\n\
         \x20 b: {{ type: appendFile, path: {0}, row: 2 }}\n",
        link.display(),
        here.join("other").display()
    );
    let file = place.file("turned.yaml", &text);
    let output = place.run(&["run", &file]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("is another file than before"), "{stderr}");
    assert_eq!(fs::read_to_string(here.join("other")).unwrap(), "theirs\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_first_appends_at_once_lose_nothing_without_a_word() {
    let dir = tempfile::tempdir().unwrap();
    let engine = Engine::builder().in_memory().unwrap();
    for (number, replace) in [false, true].into_iter().cycle().take(12).enumerate() {
        let path = dir.path().join(number.to_string());
        let text = format!(
            "actions:\n\
             \x20 both:\n\
             \x20   type: parallel\n\
             \x20   actions:\n\
             \x20     a: {{ type: appendFile, path: {path:?}, row: 1, replace: {replace} }}\n\
             \x20     b: {{ type: appendFile, path: {path:?}, row: 1, replace: {replace} }}\n"
        );
        let workflow = engine.load_text("both.yaml", &text).unwrap();
        let run = engine.start(&workflow, Value::Null).await.unwrap();
        let sibling = format!("{}.{}.new", path.display(), run.id());
        let ended = run.result::<Value>().await;
        let rows = fs::read_to_string(&sibling).or_else(|_| fs::read_to_string(&path));
        let rows = rows.unwrap();
        match ended {
            Ok(_) => assert_eq!(rows, "1\n1\n"),
            Err(failure) => {
                let message = failure.to_string();
                assert!(message.contains("at the same time"), "{message}");
                assert_eq!(rows, "1\n");
            }
        }
    }
}

/// One attempt at an append by a run that knows this length of the file.
async fn attempt(registry: &Registry, path: &Path, known: u64, rows: Json) -> Result<Value, Fault> {
    let real = path.canonicalize().unwrap();
    let request = Request {
        attempt: 1,
        ..crate::action::request(
            "appendFile",
            json!({ "path": path, "rows": rows, "files": { real.to_str().unwrap(): known } }),
        )
    };
    registry.execute(&request).await
}

#[tokio::test]
async fn only_what_a_repeated_append_left_itself_is_cut_off() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("rows");
    for (left, again, fits) in [
        ("", false, true),
        ("", true, true),
        // Another program wrote equal rows before the first attempt.
        ("10\n", false, false),
        // A crash left this.
        ("10\n", true, true),
        ("10\n11", true, true),
        ("10\n11\n", true, true),
        ("1\0\0\0\0", true, true),
        ("\0\0\0\0\0\0", true, true),
        // Another program wrote this.
        ("11\n", true, false),
        ("10\n11\n1", true, false),
        ("10\n\u{1}", true, false),
        ("\0\0\0\0\0\0\0", true, false),
    ] {
        let before = format!("ä\n{left}");
        fs::write(&path, &before).unwrap();
        let registry = Registry::new().with_replayed(again);
        let outcome = attempt(&registry, &path, 3, json!([10, 11])).await;
        let after = fs::read_to_string(&path).unwrap();
        match outcome {
            Ok(_) => assert!(fits && after == "ä\n10\n11\n", "{left:?} {after:?}"),
            Err(fault) => {
                assert!(!fits && after == before, "{left:?} {fault:?} {after:?}");
                let message = "this run left it with 3 bytes, and it has";
                assert!(fault.message.contains(message), "{fault:?}");
                assert_eq!(&*fault.kind, "input");
            }
        }
    }
    // The file lost content.
    fs::write(&path, "").unwrap();
    let fault = attempt(&Registry::new(), &path, 3, json!([10])).await;
    assert!(fault.unwrap_err().message.contains("it has 0"));
    assert_eq!(fs::read_to_string(&path).unwrap(), "");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_another_process_locks_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("rows");
    let file = File::create(&path).unwrap();
    let locked = nix::fcntl::Flock::lock(file, nix::fcntl::FlockArg::LockExclusive).unwrap();
    let fault = attempt(&Registry::new(), &path, 0, json!([1]))
        .await
        .unwrap_err();
    assert!(
        fault.message.contains("is locked by another process"),
        "{fault:?}"
    );
    assert!(fault.transient);
    assert_eq!(fs::read_to_string(&path).unwrap(), "");
    drop(locked);
    attempt(&Registry::new(), &path, 0, json!([1]))
        .await
        .unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "1\n");
}

#[tokio::test]
async fn a_tea_loop_keeps_all_its_rows() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("rows");
    fs::write(&path, "old\n").unwrap();
    let engine = Engine::builder().in_memory().unwrap();
    let text = format!(
        "name: rows\n\
         nodes:\n\
         \x20 - name: count\n\
         \x20   type: while_loop\n\
         \x20   condition: \"state.get('n', 0) < 3\"\n\
         \x20   max_iterations: 5\n\
         \x20   body:\n\
         \x20     - {{ name: next, uses: compose, with: {{ value: \"{{{{ state.get('n', 0) + 1 }}}}\" }}, output: n }}\n\
         \x20     - {{ name: keep, uses: appendFile, with: {{ path: {path:?}, row: \"{{{{ state.n }}}}\" }}, output: kept }}\n\
         edges:\n\
         \x20 - {{ from: __start__, to: count }}\n\
         \x20 - {{ from: count, to: __end__ }}\n"
    );
    let workflow = engine.load_text("rows.yaml", &text).unwrap();
    let run = engine.start(&workflow, Value::Null).await.unwrap();
    let state = run.result::<Value>().await.unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "old\n1\n2\n3\n");
    let rows = state.get("kept").unwrap().to_json();
    assert_eq!(
        rows,
        format!("{{\"path\":{path:?},\"length\":10,\"rows\":1}}")
    );

    let replacing = text.replace("row: \"", "replace: true, row: \"");
    let workflow = engine.load_text("anew.yaml", &replacing).unwrap();
    let run = engine.start(&workflow, Value::Null).await.unwrap();
    run.result::<Value>().await.unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "1\n2\n3\n");
}

#[tokio::test]
async fn tea_appends_after_branches_and_loops_that_appended() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("rows");
    let append = |row: &str| format!("uses: appendFile, with: {{ path: {path:?}, row: {row} }}");
    let text = format!(
        "name: rows\n\
         initial_state: {{ n: 0 }}\n\
         nodes:\n\
         \x20 - {{ name: first, {} }}\n\
         \x20 - {{ name: left, {} }}\n\
         \x20 - {{ name: right, uses: compose, with: {{ value: 1 }}, output: x }}\n\
         \x20 - {{ name: join, fan_in: true, {} }}\n\
         \x20 - {{ name: items, type: dynamic_parallel, items: [1], steps: [ {{ {} }} ], fan_in: joined }}\n\
         \x20 - {{ name: joined, {} }}\n\
         \x20 - name: reflect\n\
         \x20   uses: reflection.loop\n\
         \x20   with:\n\
         \x20     generator: {{ action: appendFile, path: {path:?}, row: generated }}\n\
         \x20     evaluator: {{ type: schema, schema: {{}} }}\n\
         \x20   output: reflected\n\
         \x20 - {{ name: correct, uses: retry.loop, output: corrected, with: {{ validate: data.validate, \
         validate_args: {{ data: \"{{{{ state.n }}}}\", schema: {{ minimum: 1 }} }}, correct: fix }} }}\n\
         \x20 - {{ name: last, {}, goto: __end__ }}\n\
         \x20 - {{ name: fix, steps: [ {{ {} }}, {{ uses: setVariable, with: {{ name: n, value: 1 }} }} ] }}\n\
         edges:\n\
         \x20 - {{ from: first, to: left }}\n\
         \x20 - {{ from: first, to: right }}\n\
         \x20 - {{ from: left, to: join }}\n\
         \x20 - {{ from: right, to: join }}\n",
        append("first"),
        append("left"),
        append("joined"),
        append("item"),
        append("items"),
        append("last"),
        append("fixed"),
    );
    let engine = Engine::builder().in_memory().unwrap();
    let workflow = engine.load_text("rows.yaml", &text).unwrap();
    let run = engine.start(&workflow, Value::Null).await.unwrap();
    run.result::<Value>().await.unwrap();
    let rows = fs::read_to_string(&path).unwrap().replace('"', "");
    let rows: Vec<&str> = rows.lines().collect();
    let expected = "first left joined item items generated fixed last";
    assert_eq!(rows.join(" "), expected);

    let both = text.replace(
        "uses: compose, with: { value: 1 }, output: x",
        &append("right"),
    );
    let workflow = engine.load_text("both.yaml", &both).unwrap();
    let run = engine.start(&workflow, Value::Null).await.unwrap();
    let error = run.result::<Value>().await.unwrap_err().to_string();
    assert!(error.contains("at the same time"), "{error}");
}

/// A backfill that replaces a file: it writes three rows and then runs `then`.
fn backfill(path: &Path, then: &str) -> String {
    format!(
        "name: backfill\n\
         actions:\n\
         \x20 one: {{ type: appendFile, path: {path:?}, rows: [1, 2], replace: true }}\n\
         \x20 two: {{ type: appendFile, path: {path:?}, row: 3, replace: true }}\n\
         \x20 then: {then}\n"
    )
}

const FAILS: &str = "{ type: terminate, runStatus: Failed, runError: { message: page 13 } }";
const ENDS: &str = "{ type: compose, inputs: done }";

#[test]
fn a_backfill_that_fails_leaves_the_good_file_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = Place::new();
    let here = place.dir.path().canonicalize().unwrap();
    let (real, link) = (here.join("real.jsonl"), here.join("link.jsonl"));
    fs::write(&real, "good\n").unwrap();
    fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
    std::os::unix::fs::symlink("real.jsonl", &link).unwrap();
    let file = place.file("fails.yaml", &backfill(&link, FAILS));
    let output = place.run(&["run", &file, "--id", "bad"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let new = format!("{}.bad.new", real.display());
    let message = format!(
        "{} was not touched: the new rows are in {new}",
        real.display()
    );
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(stderr.contains(&message), "{stderr}");
    let status = place.run(&["status", "bad"]);
    let status = String::from_utf8_lossy(&status.stdout).into_owned();
    assert!(status.contains(&new), "{status}");
    assert_eq!(fs::read_to_string(&real).unwrap(), "good\n");
    assert_eq!(fs::read_to_string(&new).unwrap(), "1\n2\n3\n");
    // The run's output is evaluated before the file is replaced.
    let wrong = backfill(&link, ENDS) + "outputs: \"@int('x')\"\n";
    let file = place.file("wrong.yaml", &wrong);
    let output = place.run(&["run", &file, "--id", "wrong"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert_eq!(fs::read_to_string(&real).unwrap(), "good\n");
    // A successful run replaces the file and preserves its link and its mode.
    for (id, then) in [
        ("ends", ENDS),
        ("left", "{ type: terminate, runStatus: Succeeded }"),
    ] {
        fs::write(&real, "good\n").unwrap();
        let file = place.file("ends.yaml", &backfill(&link, then));
        let output = place.run(&["run", &file, "--id", id]);
        assert!(output.status.success(), "{output:?}");
        assert_eq!(fs::read_to_string(&real).unwrap(), "1\n2\n3\n");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        let mode = fs::metadata(&real).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o640);
        assert!(!Path::new(&format!("{}.{id}.new", real.display())).exists());
    }
}

#[test]
fn a_rewritten_file_is_replaced_after_a_kill_and_a_retry() {
    let place = Place::new();
    let path = place.dir.path().canonicalize().unwrap().join("rows");
    fs::write(&path, "good\n").unwrap();
    let waits = backfill(&path, "{ type: waitForSignal, signal: go }");
    let file = place.file("waits.yaml", &waits);
    let mut run = place.follow(&["run", &file, "--id", "k"]);
    run.until("ActionEnded", "two");
    run.kill();
    assert_eq!(fs::read_to_string(&path).unwrap(), "good\n");
    assert!(place.run(&["signal", "k", "go"]).status.success());
    assert!(place.run(&["resume", "k"]).status.success());
    assert_eq!(fs::read_to_string(&path).unwrap(), "1\n2\n3\n");
    // A cancelled run leaves the file unchanged. Another run retries it from its second append.
    fs::write(&path, "good\n").unwrap();
    let mut run = place.follow(&["run", &file, "--id", "c"]);
    run.until("ActionEnded", "two");
    // The owner exits when its run has ended, possibly before it has answered the command.
    place.run(&["cancel", "c"]);
    while run.line().is_some() {}
    let status = place.run(&["status", "c", "-o", "json"]);
    let status: Json = serde_json::from_slice(&status.stdout).unwrap();
    assert_eq!(status["status"], "Cancelled");
    assert_eq!(fs::read_to_string(&path).unwrap(), "good\n");
    assert!(place.run(&["signal", "c", "go"]).status.code() != Some(0));
    fs::remove_file(&path).unwrap();
    let retry = ["retry", "c", "--from", "two", "--id", "again"];
    let mut run = place.follow(&retry);
    run.until("ActionEnded", "two");
    assert!(place.run(&["signal", "again", "go"]).status.success());
    while run.line().is_some() {}
    assert_eq!(fs::read_to_string(&path).unwrap(), "1\n2\n3\n");
    // The earlier run's rows still exist, and everyone who may read them may read the file.
    let before = format!("{}.c.new", path.display());
    assert_eq!(fs::read_to_string(&before).unwrap(), "1\n2\n3\n");
    let permissions = |path: &Path| fs::metadata(path).unwrap().permissions();
    assert_eq!(permissions(&path), permissions(Path::new(&before)));
}

#[test]
fn a_deleted_file_is_not_created_again() {
    let place = Place::new();
    let here = place.dir.path().canonicalize().unwrap();
    let replacing = TWICE
        .replace("row: 1 }", "row: 1, replace: true }")
        .replace("[1, 2] }", "[1, 2], replace: true }");
    for (id, text) in [("plain", TWICE), ("anew", replacing.as_str())] {
        let file = place.file("w.yaml", text);
        let path = here.join(id);
        let mut run = place.follow(&[
            "run",
            &file,
            "--id",
            id,
            "-i",
            &format!("file={}", path.display()),
        ]);
        run.until(
            "ActionEnded",
            if id == "plain" { "one.append" } else { "one" },
        );
        let written = match id {
            "plain" => path.clone(),
            _ => here.join("anew.anew.new"),
        };
        fs::remove_file(&written).unwrap();
        assert!(place.run(&["signal", id, "go"]).status.success());
        let lines = std::iter::from_fn(|| run.line());
        let result = lines.last().unwrap()["result"].to_string();
        assert!(
            result.contains("is gone: this run left it with 2 bytes"),
            "{result}"
        );
        assert!(!written.exists() && !path.exists());
    }
}

#[test]
fn a_file_is_appended_to_or_replaced_but_not_both() {
    let place = Place::new();
    let path = place.dir.path().join("rows");
    fs::write(&path, "good\n").unwrap();
    for (first, second) in [(true, false), (false, true)] {
        let text = format!(
            "actions:\n\
             \x20 a: {{ type: appendFile, path: {path:?}, row: 1, replace: {first} }}\n\
             \x20 b: {{ type: appendFile, path: {path:?}, row: 2, replace: {second} }}\n"
        );
        let file = place.file("both.yaml", &text);
        let output = place.run(&["run", &file]);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(stderr.contains("both appends to"), "{stderr}");
        let content = if first { "good\n" } else { "good\n1\n" };
        assert_eq!(fs::read_to_string(&path).unwrap(), content);
    }
    for (key, message) in [
        ("append: true", "says nothing"),
        ("append: false", "`replace: true` rewrites the file"),
        ("replace: maybe", "must be true or false"),
    ] {
        let text = format!("actions: {{ a: {{ type: appendFile, path: x, row: 1, {key} }} }}");
        let file = place.file("key.yaml", &text);
        let output = place.run(&["validate", &file]);
        let printed = String::from_utf8_lossy(&output.stderr).into_owned()
            + &String::from_utf8_lossy(&output.stdout);
        assert!(printed.contains(message), "{key}: {printed}");
    }
}

#[test]
fn a_misspelt_column_of_a_new_file_is_refused() {
    let place = Place::new();
    let path = place.dir.path().join("rows.csv");
    for (number, (columns, row, written)) in [
        (
            "[id, nmae]",
            "{ id: 1, name: a }",
            Err("did you mean `name`?"),
        ),
        ("[id, nmae]", "{ id: 1, other: a }", Ok("id,nmae\n1,\n")),
        ("[id, nmae]", "{ id: 2, name: a }", Ok("id,nmae\n1,\n2,\n")),
    ]
    .into_iter()
    .enumerate()
    {
        let text = format!(
            "actions: {{ a: {{ type: appendFile, path: {path:?}, format: csv, columns: {columns}, row: {row} }} }}"
        );
        let file = place.file(&format!("columns{number}.yaml"), &text);
        let output = place.run(&["run", &file]);
        let stderr = String::from_utf8_lossy(&output.stderr);
        match written {
            Ok(rows) => assert_eq!(fs::read_to_string(&path).unwrap(), rows, "{stderr}"),
            Err(message) => {
                assert!(stderr.contains(message), "{stderr}");
                assert_eq!(fs::read_to_string(&path).unwrap_or_default(), "");
            }
        }
    }
}

/// The process ends between the rename and the commit that records it.
#[tokio::test]
async fn a_file_is_replaced_once_for_repeated_requests() {
    let dir = tempfile::tempdir().unwrap();
    let target = dir.path().canonicalize().unwrap().join("rows");
    let sibling = format!("{}.r.new", target.display());
    let (name, new) = (target.to_str().unwrap(), sibling.as_str());
    let files = json!({ name: new, new: { "replaces": name, "length": 2 } });
    let request = Request {
        attempt: 1,
        ..crate::action::request("appendFile", json!({ "put": true, "files": files }))
    };
    fs::write(&target, "old").unwrap();
    // What is beyond the committed length was never committed.
    fs::write(&sibling, "1\n2").unwrap();
    let put = |again: bool| {
        let request = request.clone();
        async move { Registry::new().with_replayed(again).execute(&request).await }
    };
    put(false).await.unwrap();
    put(true).await.unwrap();
    assert_eq!(fs::read_to_string(&target).unwrap(), "1\n");
    // If the file was not replaced before, another program wrote it.
    let fault = put(false).await.unwrap_err();
    assert!(fault.message.contains("in the place of"), "{fault:?}");
}
