//! Shortened ids: the beginning of an id is enough if Windlass made it. The beginning of an id that a user chose is
//! refused, and so is an ambiguous one.

use super::process::Place;
use crate::serve::{SLEEP, Server};

const COUNT: &str = "name: count\nactions: { a: { type: compose, inputs: 1 } }\n";

/// The ids of all runs of a workflow, the oldest first.
fn ids(place: &Place, workflow: &str) -> Vec<String> {
    let list = place.json(&["list", "--workflow", workflow, "-o", "json"]);
    let runs = list.as_array().unwrap().iter().rev();
    runs.map(|run| run["run"].as_str().unwrap().to_owned())
        .collect()
}

/// An id without its last letters.
fn cut(id: &str) -> &str {
    &id[..id.len() - 3]
}

fn refused(place: &Place, args: &[&str]) -> String {
    let output = place.run(args);
    assert_eq!(output.status.code(), Some(2), "{args:?}: {output:?}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn the_beginning_of_a_made_id_will_do() {
    let place = Place::new();
    // An id that a user chose has no prefixes, and the help says so.
    let help = place.run(&["history", "--help"]);
    let help = String::from_utf8(help.stdout).unwrap();
    let words: Vec<&str> = help.split_whitespace().collect();
    let says = "unique prefix of an id that Windlass generated";
    assert!(words.join(" ").contains(says), "{help}");
    let file = place.file("count.yaml", COUNT);
    for _ in 0..2 {
        assert!(place.run(&["run", &file]).status.success());
    }
    assert!(
        place
            .run(&["run", &file, "--id", "backfill-12"])
            .status
            .success()
    );
    let all = ids(&place, "count");
    let [first, second] = &all[..2] else {
        panic!("{all:?}");
    };
    for id in [first, second] {
        let status = place.json(&["status", cut(id), "-o", "json"]);
        assert_eq!(status["run"], **id);
        let history = place.json(&["history", cut(id), "-o", "json"]);
        assert_eq!(history["run"], **id);
        let dump = place.json(&["dump", cut(id), "-o", "json"]);
        assert_eq!(dump["runs"][0]["header"]["run"], **id);
        assert_eq!(place.json(&["resume", cut(id), "-o", "json"])["a"], 1);
        assert!(place.run(&["logs", cut(id)]).status.success());
    }
    // Refused: an ambiguous beginning, a name alone, the beginning of a chosen id, and an unknown id.
    let message = refused(&place, &["status", "count-0"]);
    let named = format!("the ids of 2 runs begin with `count-0`:\n  {second}\n  {first}\n");
    assert!(message.contains(&named), "{message}");
    for none in ["count", "count-", "backfill-1", "count-1"] {
        let message = refused(&place, &["status", none]);
        assert!(
            message.contains(&format!("unknown run {none} ")),
            "{message}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_short_id_works_next_to_a_server_and_remotely() {
    let place = Place::new();
    let server = Server::start(&place.state());
    let run = server.begin(SLEEP, serde_json::json!(null)).await;
    let url = server.url.clone();
    let ask = |args: &[&str]| {
        let output = place.run(args);
        assert!(output.status.success(), "{args:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(ask(&["pause", cut(&run)]), format!("{run}  Paused\n"));
    let elsewhere = ["cancel", cut(&run), "--server", &url];
    assert_eq!(ask(&elsewhere), format!("{run}  Cancelled\n"));
    let mut again = place.follow(&["retry", cut(&run), "--id", "again", "--server", &url]);
    again.until("RunStarted", "");
    again.kill();
}
