//! What somebody meets who uses the binary for the first time: mistyped flags, keys, inputs and
//! labels, and what is told of them.

use crate::serve::{Server, Start};
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};
use tempfile::TempDir;

/// A folder to work in.
struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.path().join(name);
        fs::write(&path, bytes).unwrap();
        path
    }

    /// Runs the binary there.
    fn run(&self, args: &[&str]) -> Told {
        let output = Command::new(env!("CARGO_BIN_EXE_windlass"))
            .args(args)
            .current_dir(self.0.path())
            .env_remove("WINDLASS_STATE")
            .output();
        Told::new(&output.unwrap())
    }
}

/// What a command said, and with which code it left.
#[derive(Debug)]
struct Told {
    code: Option<i32>,
    out: String,
    err: String,
}

impl Told {
    fn new(output: &Output) -> Self {
        Self {
            code: output.status.code(),
            out: String::from_utf8(output.stdout.clone()).unwrap(),
            err: String::from_utf8(output.stderr.clone()).unwrap(),
        }
    }

    /// It left with this code, and its errors have these parts.
    fn left(self, code: i32, parts: &[&str]) -> Self {
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
    run("text=P1Y").left(1, &["years or months", "give days"]);
    run("text=soon").left(1, &["must be an ISO 8601 duration"]);
    // Above the cap is the code of a limit.
    run("text=P30D").left(4, &["the cap is P1D"]);
    let text = THIRTY.replace("count: 100", "timeout: \"@add(1, 1)\"");
    let file = folder.file("n.yaml", text);
    let bare = folder.run(&["run", file.to_str().unwrap()]);
    bare.left(1, &["number without a unit", "PT30S", "it is 2"]);
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
fn a_store_that_somebody_names_is_there_when_runs_are_listed() {
    let folder = Folder::new();
    assert_eq!(folder.run(&["list"]).left(0, &[]).out, "no runs\n");
    folder
        .run(&["list", "--state", "sate"])
        .left(2, &["there is no store in sate"]);
}

#[test]
fn a_history_says_what_it_leaves_out_and_which_loops_there_are() {
    let folder = Folder::new();
    let file = folder.file("w.yaml", THIRTY);
    let begun = folder.run(&["run", file.to_str().unwrap(), "--id", "r"]);
    begun.left(0, &[]);
    let told = folder
        .run(&["history", "r"])
        .left(0, &["and 10 earlier: --iterations all"]);
    assert_eq!(told.out.lines().count(), 21, "{told:?}");
    let all = folder
        .run(&["history", "r", "--iterations", "all"])
        .left(0, &[]);
    assert_eq!((all.out.lines().count(), all.err.as_str()), (31, ""));
    folder
        .run(&["history", "r", "--loop", "zz"])
        .left(2, &["no loop `zz`", "it has turn"]);
}

#[test]
fn each_file_gets_a_verdict_and_each_mistake_is_told() {
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
    // A file that is not there is a mistake of the command, one that is no workflow is not.
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
    let told = folder.run(&["run", path, "--label", label]);
    told.left(2, &["`windlass.parked`"]);
    let server: Server = Start::new(&folder.0.path().join("state")).spawn();
    let body = json!({ "text": THIRTY, "labels": { "windlass.x": "y" } });
    let (status, told): (_, Value) = server.post("/v1/runs", &body).await;
    assert_eq!(status, 400, "{told}");
    assert!(told.to_string().contains("`windlass.x`"), "{told}");
    folder.file("shell.yaml", "actions: { a: { type: shell, run: id } }");
    let url = server.url.clone();
    let refused = folder.run(&["run", "shell.yaml", "--server", &url]);
    refused.left(3, &["may not use `shell`", "hint: ", "--allow-shell"]);
}
