//! Guests' Lua scripts that do not end, and the resources that the server then uses.

use super::process::Place;
use crate::serve::Start;
use serde_json::json;
use std::fs;
use std::time::Duration;

/// A pattern that would run practically forever.
const STUCK: &str = r#"
name: stuck
nodes:
  - name: search
    run: { type: lua, timeout: 1, code: "return string.find(('a'):rep(60), ('a?'):rep(60) .. ('a'):rep(60))" }
edges: [{ from: __start__, to: search }, { from: search, to: __end__ }]
"#;

const QUICK: &str = r#"
name: quick
nodes:
  - name: add
    run: { type: lua, code: "return { sum = state.a + 1 }" }
edges: [{ from: __start__, to: add }, { from: add, to: __end__ }]
"#;

/// The parent of a process, and its ticks of CPU time.
fn stat(pid: &str) -> Option<(u32, u64)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
    Some((fields[1].parse().unwrap(), ticks))
}

/// The CPU time of the process and its children, in ticks of 10 ms.
fn spent(server: u32) -> u64 {
    let own = stat(&server.to_string()).unwrap().1;
    let all = fs::read_dir("/proc").unwrap();
    let children = all.filter_map(|entry| {
        let (parent, ticks) = stat(entry.ok()?.file_name().to_str()?)?;
        (parent == server).then_some(ticks)
    });
    own + children.sum::<u64>()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pattern_without_end_is_cut_and_costs_nothing_more() {
    let place = Place::new();
    let server = Start::new(&place.state()).spawn();
    let mut stuck = Vec::new();
    for _ in 0..8 {
        stuck.push(server.begin(STUCK, json!({})).await);
    }
    for run in &stuck {
        let outcome = server.end(run).await;
        assert_eq!(outcome["error"]["kind"], "timeout", "{outcome}");
    }
    // Every slot is free.
    for _ in 0..8 {
        let run = server.begin(QUICK, json!({ "a": 1 })).await;
        let outcome = server.end(&run).await;
        assert_eq!(outcome["output"]["sum"], 2, "{outcome}");
    }
    // The CPU is idle too: the server uses almost none for half a second.
    let pid = server.child.id();
    for _ in 0..60 {
        let before = spent(pid);
        tokio::time::sleep(Duration::from_millis(500)).await;
        if spent(pid) <= before + 10 {
            return;
        }
    }
    panic!("something still computes");
}
