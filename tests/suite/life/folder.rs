//! Relative paths of a run are relative to the folder in which it was started, wherever it is resumed.

use super::process::Place;
use serde_json::json;
use std::fs;
use std::path::PathBuf;

const WORKFLOW: &str = r#"
name: placed
handlers:
  told: { command: [sh, ./told.sh] }
actions:
  before: { type: appendFile, path: rows.jsonl, row: 1 }
  go: { type: waitForSignal, signal: go }
  row: { type: appendFile, path: rows.jsonl, row: 2 }
  shell: { type: shell, run: cat note.txt }
  below: { type: shell, run: cat note.txt, cwd: below }
  told: { type: activity, activityType: told }
outputs: "@createArray(body('shell'), body('below'), outputs('told'))"
"#;

const SCRIPTS: &str = "
name: scripts
nodes:
  - name: read
    run: |
      return {'note': open('note.txt').read()}
edges:
  - { from: __start__, to: read }
  - { from: read, to: __end__ }
";

/// A folder with the files that the workflows read, and one without.
fn folders(place: &Place) -> (PathBuf, PathBuf) {
    let (here, elsewhere) = (place.dir.path().join("here"), place.dir.path().join("else"));
    fs::create_dir_all(here.join("below")).unwrap();
    fs::create_dir(&elsewhere).unwrap();
    fs::write(here.join("note.txt"), "here").unwrap();
    fs::write(here.join("below/note.txt"), "below").unwrap();
    fs::write(here.join("told.sh"), "echo '\"told\"'").unwrap();
    (here, elsewhere)
}

#[test]
fn a_run_resumes_in_its_own_folder() {
    let place = Place::new();
    let (here, elsewhere) = folders(&place);
    let file = place.file("placed.yaml", WORKFLOW);
    let mut run = place.follow_from(&here, &["run", &file, "--id", "p"]);
    run.until("ActionEnded", "before.append");
    run.kill();
    assert!(place.run(&["signal", "p", "go"]).status.success());
    let resumed = place.follow_from(&elsewhere, &["resume", "p"]);
    assert_eq!(resumed.result(), json!(["here", "below", "told"]));
    assert_eq!(
        fs::read_to_string(here.join("rows.jsonl")).unwrap(),
        "1\n2\n"
    );
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
}

#[test]
fn an_owner_elsewhere_works_in_the_folder_of_the_client() {
    let place = Place::new();
    let (here, elsewhere) = folders(&place);
    let waits = place.file("waits.yaml", "type: waitForSignal\nsignal: end");
    let mut owner = place.follow_from(&elsewhere, &["run", &waits, "--id", "owner"]);
    owner.until("RunStarted", "");
    let scripts = place.file("scripts.yaml", SCRIPTS);
    let joined = place.follow_from(&here, &["run", &scripts]);
    assert_eq!(joined.result()["note"], "here");
    assert!(place.run(&["signal", "owner", "end"]).status.success());
    owner.result();
}
