//! The format of the store as docs/internals/store-format.md describes it: the hexdump there is that of a real store,
//! byte for byte. A change of the format changes the page and the version.

use crate::store::damage::database;
use std::fmt::Write;
use std::path::Path;
use std::time::Duration;
use windlass_expression::Value;
use windlass_machine::compile::compile;
use windlass_machine::program::{Caps, ProgramHash};
use windlass_machine::{Event, RunState, RunStatus, advance};
use windlass_model::model::{Dialect, Origin};
use windlass_source::source::Bundle;
use windlass_store::{Commit, Placement, ProgramSource, ReadStore, RunHeader, SledStore, Store};
use windlass_value::time::Timestamp;

const WORKFLOW: &str = "\
actions:
  tick:
    type: until
    condition: \"@equals(variables('loopIndex'), 1)\"
    actions: { sleep: { type: wait, interval: PT1M } }
";

const PAGE: &str = include_str!("../../../docs/internals/store-format.md");
const BEGIN: &str = "<!-- hexdump -->\n```text\n";
const END: &str = "```\n<!-- end of hexdump -->";

/// A run with two commits: it starts and sleeps in its loop, and a minute later it ends.
fn write(dir: &Path) {
    let store = SledStore::open(dir).unwrap();
    let bundle = Bundle::single("a.yaml", WORKFLOW);
    let caps = windlass_formats::Caps::unlimited();
    let (workflow, _) = windlass_formats::read(&bundle, None, &caps);
    let caps = Caps {
        count: 5_000,
        timeout: Duration::from_secs(3_600),
    };
    let hash = ProgramHash([0xAB; 32]);
    let program = compile(&workflow.unwrap(), hash, caps).unwrap();
    let mut state = RunState::new("r1".into(), hash);
    let began = Timestamp(1_700_000_000_000);
    let mut commit = |revision: u64, now: Timestamp, event: Event| {
        let step = advance(&program, &mut state, now, event).unwrap();
        let placement = match (state.status(), state.next_due_at()) {
            (RunStatus::Waiting, Some(due)) => Placement::Due(due),
            _ => Placement::Idle,
        };
        let commit = Commit {
            header: RunHeader {
                id: "r1".into(),
                workflow: "a".into(),
                program: hash,
                status: state.status(),
                revision,
                snapshot: 0,
                started_at: began,
                updated_at: now,
                placement,
                labels: [(String::from("team"), String::from("blue"))].into(),
            },
            changes: step.changes.clone(),
            loops: step.loops.clone(),
            iterations: step.iterations.clone(),
            history: step.history.clone(),
            snapshot: None,
            program: (revision == 1).then(|| ProgramSource {
                bundle: bundle.clone(),
                dialect: Dialect::Loom,
                max_count: 5_000,
                max_timeout_ms: 3_600_000,
                origin: Origin::Operator,
                folder: None,
            }),
        };
        for outcome in store.commit(&[commit]).unwrap() {
            outcome.unwrap();
        }
    };
    commit(
        1,
        began,
        Event::Started {
            input: Value::Null,
            environment: Value::Null,
        },
    );
    let due = state_timer(&store);
    let later = began.plus(Duration::from_secs(60));
    commit(2, later, Event::TimerFired { id: due });
}

fn state_timer(store: &SledStore) -> windlass_machine::TimerId {
    let stored = store.load("r1").unwrap();
    let sleeps = stored.state.timers.iter();
    let mut sleeps = sleeps.filter(|(_, timer)| timer.due_at.0 == 1_700_000_060_000);
    *sleeps.next().unwrap().0
}

/// Every row of the database, in the order of its keys.
fn dump(dir: &Path) -> String {
    let db = database(dir);
    let mut out = String::new();
    for row in db.iter() {
        let (key, value) = row.unwrap();
        let _ = writeln!(out, "key   {}", hex(&key));
        for (place, line) in value.chunks(24).enumerate() {
            let _ = writeln!(out, "{:5} {}", place * 24, hex(line));
        }
    }
    let mark = std::fs::read(dir.join("store/mark")).unwrap();
    let _ = writeln!(out, "mark  {}", hex(&mark));
    out
}

/// Bytes in hexadecimal, with their text next to them.
fn hex(bytes: &[u8]) -> String {
    let mut out = String::new();
    for byte in bytes {
        let _ = write!(out, "{byte:02x} ");
    }
    let text: String = bytes
        .iter()
        .map(|byte| match byte {
            b' '..=b'~' => char::from(*byte),
            _ => '.',
        })
        .collect();
    format!("{out:<73}{text}").trim_end().to_owned()
}

#[test]
fn the_page_shows_the_bytes_of_a_real_store() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path());
    let found = dump(dir.path());
    let shown = PAGE
        .split_once(BEGIN)
        .and_then(|(_, rest)| rest.split_once(END));
    let shown = shown.map(|(shown, _)| shown).unwrap_or_default();
    if let (Some(_), Some((before, rest))) =
        (std::env::var_os("WINDLASS_BLESS"), PAGE.split_once(BEGIN))
    {
        let after = rest.split_once(END).unwrap().1;
        let page = format!("{before}{BEGIN}{found}{END}{after}");
        std::fs::write(
            concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/docs/internals/store-format.md"
            ),
            page,
        )
        .unwrap();
        return;
    }
    assert!(
        shown == found,
        "docs/internals/store-format.md shows other bytes (WINDLASS_BLESS=1 writes them):\n{found}"
    );
}
