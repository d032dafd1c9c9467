//! What people do every day: polls that slow down.

use crate::life::first_use::Folder;
use serde_json::Value;

/// When each iteration began and ended, in milliseconds.
fn times(history: &Value) -> Vec<(i64, i64)> {
    let rows = history["iterations"].as_array().unwrap().iter();
    let at = |row: &Value, key: &str| {
        let text = row[key].as_str().unwrap();
        chrono::DateTime::parse_from_rfc3339(text)
            .unwrap()
            .timestamp_millis()
    };
    rows.map(|row| (at(row, "started_at"), at(row, "ended_at")))
        .collect()
}

#[test]
fn a_poll_that_backs_off_waits_longer_after_each_iteration() {
    let folder = Folder::new();
    let text = "
actions:
  poll:
    type: doUntil
    condition: variables.n == 5
    delay: { type: exponential, interval: 100ms, maxInterval: 400ms, jitter: none }
    actions: { count: { type: incrementVariable, name: n } }
variables: { n: 0 }
";
    let file = folder.file("w.yaml", text);
    let file = file.to_str().unwrap();
    let validated = folder.run(&["validate", file]).left(0, &[]);
    assert!(
        validated
            .out
            .contains("after PT0.1S, doubling up to PT0.4S")
    );
    folder.run(&["run", file, "--id", "r"]).left(0, &[]);
    let told = folder.run(&["history", "r", "-o", "json"]).left(0, &[]);
    let times = times(&serde_json::from_str(&told.out).unwrap());
    let waits: Vec<i64> = times.windows(2).map(|two| two[1].0 - two[0].1).collect();
    assert_eq!(waits.len(), 4, "{waits:?}");
    for (wait, least) in waits.iter().zip([100, 200, 400, 400]) {
        assert!(*wait >= least, "{waits:?}");
    }
}
