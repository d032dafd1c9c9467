//! Ended runs are pruned by age and by number, while another process continues.

use super::process::Place;
use crate::serve::{COUNT, SLEEP, Server, Start};
use crate::store::contract::{commit, noise};
use crate::support::{open_store, sized};
use serde_json::{Value, json};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use windlass_expression::Value as Text;
use windlass_machine::{Change, RunStatus};
use windlass_store::Placement;

fn names(place: &Place) -> Vec<String> {
    let listed = place.json(&["list", "-o", "json", "--limit", "all"]);
    let runs = listed.as_array().unwrap().iter();
    let mut names: Vec<String> = runs
        .map(|run| run["run"].as_str().unwrap().to_owned())
        .collect();
    names.sort();
    names
}

#[tokio::test(flavor = "multi_thread")]
async fn ended_runs_are_pruned_next_to_a_live_server() {
    let place = Place::new();
    let server = Server::start(&place.state());
    let mut ended = Vec::new();
    for _ in 0..4 {
        let run = server.begin(COUNT, json!({ "to": 2 })).await;
        server.end(&run).await;
        ended.push(run);
    }
    let asleep = server.begin(SLEEP, json!({})).await;

    let none = place.json(&["prune", "--older-than", "P1D", "-o", "json"]);
    assert_eq!(none["runs"], json!([]), "{none}");
    let looked = place.json(&["prune", "--keep", "1", "--dry-run", "-o", "json"]);
    assert_eq!(looked["runs"].as_array().unwrap().len(), 3, "{looked}");
    assert_eq!(names(&place).len(), 5);

    let pruned = place.json(&["prune", "--keep", "1", "-o", "json"]);
    let mut gone: Vec<&str> = pruned["runs"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(Value::as_str)
        .collect();
    gone.sort_unstable();
    let mut expected: Vec<&str> = ended[..3].iter().map(String::as_str).collect();
    expected.sort_unstable();
    assert_eq!(gone, expected);
    let mut left = vec![ended[3].clone(), asleep.clone()];
    left.sort();
    assert_eq!(names(&place), left);
    let gone = place.run(&["status", &ended[0]]);
    assert_eq!(gone.status.code(), Some(2), "{gone:?}");

    // A sleeping run continues, also after a restart, and the server prunes automatically.
    server.kill();
    let state = place.state();
    let server = Start::new(&state).args(&["--prune-keep", "0"]).spawn();
    for _ in 0..600 {
        if names(&place).len() == 1 {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    assert_eq!(names(&place), [asleep]);
    drop(server);
    // Prints the count, and the ids on request.
    let shown = |args: &[&str]| {
        let args = [&["prune", "--keep", "0", "--dry-run"], args].concat();
        String::from_utf8(place.run(&args).stdout).unwrap()
    };
    let file = place.file("count.yaml", COUNT);
    let done = place.run(&["run", &file, "--id", "shown"]);
    assert_eq!(done.status.code(), Some(0), "{done:?}");
    assert_eq!(shown(&[]), "1 run would be deleted\n");
    assert_eq!(shown(&["-v"]), "shown\n1 run would be deleted\n");
    for command in [&["prune", "--keep", "0"][..], &["cancel"]] {
        let misspelt = place.run(&[command, &["--workflow", "conut"]].concat());
        let stderr = String::from_utf8_lossy(&misspelt.stderr).into_owned();
        assert!(
            stderr.contains("no run has the workflow `conut`; did you mean `count`?"),
            "{stderr}"
        );
    }
    let usage = place.run(&["prune"]);
    assert_eq!(usage.status.code(), Some(2), "{usage:?}");
}

/// A store with runs that have ended, with 20 KB per commit.
pub fn fill(state: &Path, runs: u64, commits: u64) {
    let store = open_store(state).unwrap();
    for run in 0..runs {
        for revision in 0..commits {
            let mut commit = commit(&format!("run-{run}"), revision);
            let text = noise(run << 8 | revision, 20_000);
            commit.changes = vec![Change::set("text".into(), Text::text(text))];
            commit.header.status = RunStatus::Succeeded;
            commit.header.placement = Placement::Idle;
            store.commit(&[commit]).unwrap()[0].as_ref().unwrap();
        }
    }
}

/// The total size of the files in a folder.
fn room(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).unwrap().map(Result::unwrap);
    let of_one = |entry: std::fs::DirEntry| {
        let about = entry.metadata().unwrap();
        let inside = match about.is_dir() {
            true => room(&entry.path()),
            false => 0,
        };
        about.blocks() * 512 + inside
    };
    entries.map(of_one).sum()
}

/// Deleted rows leave holes in the log. The database reuses them but does not return the space to the disk.
#[test]
fn a_store_that_is_compacted_takes_no_more_room_than_its_runs() {
    let place = Place::new();
    let state = place.state();
    fill(&state, 200, 4);
    let room = || room(&state.join("store"));
    let full = room();
    let pruned = place.run(&["prune", "--keep", "1"]);
    let stdout = String::from_utf8_lossy(&pruned.stdout).into_owned();
    assert_eq!(stdout, "199 runs and 0 programs forgotten\n", "{pruned:?}");
    let left = room();
    let compacted = place.json(&["prune", "--compact", "-o", "json"]);
    let after = room();
    println!("{full} bytes before, {left} after `prune`, {after} compacted: {compacted}");
    assert_eq!(compacted["compacted"]["after"], after);
    assert!(after < full / 4 && after <= left, "{full}, {left}, {after}");
    assert_eq!(names(&place).len(), 1);
    let fine = place.run(&["doctor"]);
    assert_eq!(fine.status.code(), Some(0), "{fine:?}");
    let mut left: Vec<_> = std::fs::read_dir(&state)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    left.sort();
    assert_eq!(left, ["audit.jsonl", "store"]);
}

/// A dump that is made while runs are pruned does not report their remains as unreadable.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_is_forgotten_while_the_store_is_dumped_is_not_in_the_dump() {
    let place = Place::new();
    let server = Server::start(&place.state());
    let mut runs_seen = 0;
    for _ in 0..sized(10, 4) {
        for _ in 0..20 {
            let run = server.begin(COUNT, json!({ "to": 2 })).await;
            server.end(&run).await;
        }
        let forget = json!({ "keep": 0 });
        let (forgotten, first, second, third) = tokio::join!(
            server.post("/v1/prune", &forget),
            server.get("/v1/dump"),
            server.get("/v1/dump"),
            server.get("/v1/dump"),
        );
        assert_eq!(forgotten.1["runs"].as_array().unwrap().len(), 20);
        for (status, dump) in [first, second, third] {
            assert_eq!((status, &dump["unreadable"]), (200, &json!([])), "{dump}");
            runs_seen += dump["runs"].as_array().unwrap().len();
        }
    }
    println!("{runs_seen} runs were still there");
    assert!(runs_seen > 0);
}
