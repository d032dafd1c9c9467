//! Shells complete the commands, the options and the ids of the store's runs.

use super::process::Place;
use std::path::Path;
use std::process::Command;

/// Calls the completion that the script registers, as bash does for the last word.
const COMPLETE: &str = r#"
source <(windlass completions bash)
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_TYPE=9
function=$(complete -p windlass | sed 's/.*-F \([^ ]*\) .*/\1/')
$function windlass "${COMP_WORDS[COMP_CWORD]}" ""
printf '%s\n' "${COMPREPLY[@]}"
"#;

fn completed(folder: &Path, words: &[&str]) -> Vec<String> {
    let program = Path::new(env!("CARGO_BIN_EXE_windlass"));
    let path = std::env::var("PATH").unwrap_or_default();
    let output = Command::new("bash")
        .args(["-c", COMPLETE, "bash", "windlass"])
        .args(words)
        .current_dir(folder)
        .env(
            "PATH",
            format!("{}:{path}", program.parent().unwrap().display()),
        )
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| line.trim().to_owned()).collect()
}

#[test]
fn bash_completes_the_ids_of_runs() {
    let place = Place::new();
    let file = place.file("w.yaml", "actions: { a: { type: compose, inputs: 1 } }");
    for id in ["sync-1", "sync-2", "other"] {
        let ran = place.run(&["run", &file, "--id", id]);
        assert!(ran.status.success(), "{ran:?}");
    }
    let state = place.state().display().to_string();
    let folder = place.dir.path();
    for command in ["status", "retry", "signal", "cancel"] {
        let mut ids = completed(folder, &[command, "--state", &state, "sync"]);
        ids.sort();
        assert_eq!(ids, ["sync-1", "sync-2"], "{command}");
    }
    let all = completed(folder, &["logs", "--state", &state, ""]);
    assert!(all.contains(&"other".to_owned()), "{all:?}");
    // Without a store there are no ids, and no message.
    assert_eq!(
        completed(folder, &["status", "--state", "none", "sync"]),
        [""]
    );
    assert_eq!(completed(folder, &["statu"]), ["status"]);
    let flags = completed(folder, &["retry", "--failed"]);
    assert_eq!(flags, ["--failed-items"]);
}
