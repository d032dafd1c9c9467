//! Runs that have ended are forgotten, by age and by number, beside a process that goes on.

use super::process::Place;
use crate::serve::{COUNT, SLEEP, Server, Start};
use serde_json::{Value, json};

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
async fn ended_runs_are_forgotten_beside_a_live_server() {
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

    // What sleeps goes on, also through a restart, and the server forgets by itself.
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
    let usage = place.run(&["prune"]);
    assert_eq!(usage.status.code(), Some(2), "{usage:?}");
}

/// Whoever dumps a store while runs are forgotten is not told that their remains cannot be read.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_is_forgotten_while_the_store_is_dumped_is_not_in_the_dump() {
    let place = Place::new();
    let server = Server::start(&place.state());
    let mut runs_seen = 0;
    for _ in 0..10 {
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
    println!("{runs_seen} of 600 runs were there still");
    assert!(runs_seen > 0);
}
