//! Scripts and models through the real binary: what is refused when a file is loaded, what is printed on standard
//! error, and that a key is not stored or printed anywhere.

use super::ai::Model;
use super::soon;
use serde_json::{Value as Json, json};
use std::path::Path;
use std::process::Output;
use tokio::process::Command;

/// Runs the binary in a folder. The environment contains only the given variables of Windlass.
async fn windlass(folder: &Path, args: &[&str], env: &[(&str, &str)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
    command.current_dir(folder).args(args).kill_on_drop(true);
    for name in ["OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_MODEL"] {
        command.env_remove(name);
    }
    command.envs(env.iter().copied());
    soon(command.output()).await.unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Everything below a folder.
fn bytes_below(folder: &Path) -> Vec<u8> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(bytes_below(&path));
        } else {
            all.extend(std::fs::read(&path).unwrap());
        }
    }
    all
}

const SCRIPTS: &str = r#"
name: scripts
nodes:
  - name: python
    run: |
      print("printed by python")
      return {"n": 1}
  - name: lua
    language: lua
    run: "return {m = state.n + 1}"
  - name: prolog
    language: prolog
    run: "state(m, M), N is M + 1, return(k, N)."
"#;

#[tokio::test]
async fn three_languages_over_one_state() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("flow.yaml"), SCRIPTS).unwrap();
    let run = ["run", "flow.yaml", "--state", "store", "-v"];
    let output = windlass(folder.path(), &run, &[]).await;
    let state: Json = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(state, json!({ "n": 1, "m": 2, "k": 3 }));
    let stderr = text(&output.stderr);
    assert!(stderr.contains("printed by python"), "{stderr}");
    let quiet = ["run", "flow.yaml", "--state", "store"];
    let output = windlass(folder.path(), &quiet, &[]).await;
    assert!(output.status.success());
    assert!(!text(&output.stderr).contains("printed"));
}

#[tokio::test]
async fn a_missing_interpreter_is_reported_when_the_file_is_loaded() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("flow.yaml"), SCRIPTS).unwrap();
    let empty = folder.path().join("bin");
    std::fs::create_dir(&empty).unwrap();
    let path = [("PATH", empty.to_str().unwrap())];
    let run = ["run", "flow.yaml", "--state", "store"];
    let output = windlass(folder.path(), &run, &path).await;
    assert!(!output.status.success());
    let stderr = text(&output.stderr);
    for words in [
        "error[missing-interpreter]: `python` is a script in python",
        "flow.yaml:4:11",
        "`python3` is not installed on this machine; install it (Debian: apt-get install python3)",
        "`prolog` is a script in prolog",
        "`swipl` is not installed on this machine; install it (Debian: apt-get install \
         swi-prolog-nox)",
    ] {
        assert!(stderr.contains(words), "{words}\n{stderr}");
    }
    assert_eq!(stderr.matches("missing-interpreter").count(), 2, "{stderr}");
}

const QUESTION: &str = r#"
name: question
actions:
  ask:
    type: ai
    inputs: { prompt: "Who are you?", model: m }
    retry: { type: fixed, count: 3, interval: PT0S }
outputs: { said: "@body('ask').content" }
"#;

#[tokio::test]
async fn a_model_is_called_and_its_key_is_stored_nowhere() {
    const KEY: &str = "sk-in-the-environment";
    let model = Model::default()
        .then(
            429,
            &[("retry-after", "0")],
            "slow down, sk-in-the-environment",
        )
        .then(200, &[], "not json sk-in-the-environment")
        .says("I know sk-in-the-environment.")
        .then(401, &[], "wrong key: sk-in-the-environment");
    let url = model.serve().await;
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("flow.yaml"), QUESTION).unwrap();
    let env = [("OPENAI_API_KEY", KEY), ("OPENAI_BASE_URL", url.as_str())];
    let run = ["run", "flow.yaml", "--state", "store", "-vv"];
    let fine = windlass(folder.path(), &run, &env).await;
    let report: Json = serde_json::from_slice(&fine.stdout).unwrap();
    assert_eq!(
        report,
        json!({ "said": "I know ***." }),
        "{}",
        text(&fine.stderr)
    );
    let failed = windlass(folder.path(), &run, &env).await;
    assert!(!failed.status.success());
    assert!(
        text(&failed.stderr).contains("wrong key: ***"),
        "{}",
        text(&failed.stderr)
    );
    assert_eq!(model.requests().len(), 4);
    for request in model.requests() {
        assert_eq!(request.path, "/chat/completions");
        assert_eq!(request.headers["authorization"], format!("Bearer {KEY}"));
    }
    let printed = [fine.stdout, fine.stderr, failed.stdout, failed.stderr];
    for bytes in printed
        .into_iter()
        .chain([bytes_below(&folder.path().join("store"))])
    {
        assert!(!text(&bytes).contains("sk-in"), "{}", text(&bytes));
    }
}
