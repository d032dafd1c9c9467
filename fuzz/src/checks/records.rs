//! Any bytes are what a store keeps, or they are refused; what is read is written and read again as the
//! same, and changes may arrive for any run without stopping a reader. The first byte picks what they
//! are taken for: `c` the journal's changes, `r` a run, `h` history, `i` iterations, `j` a row of the store,
//! whose family the second byte is, anything else a value.

use bincode::config::{Configuration, Limit, LittleEndian, Varint};
use bincode::{Decode, Encode};
use std::fmt::Debug;
use std::sync::LazyLock;
use windlass_expression::Value;
use windlass_machine::{Change, HistoryEvent, IterationRow, RunState};
use windlass_store::raw_record;

/// As the store reads: with a bound on what a length can ask for.
pub const CONFIG: Configuration<LittleEndian, Varint, Limit<{ 64 << 20 }>> =
    bincode::config::standard().with_limit::<{ 64 << 20 }>();

/// A run in the middle of something.
static RUN: LazyLock<RunState> = LazyLock::new(|| {
    let bytes = &include_bytes!("../../run.bin")[..];
    bincode::decode_from_slice(bytes, CONFIG)
        .expect("tests/suite/fuzz/intake.rs writes it")
        .0
});

pub fn check(bytes: &[u8]) -> bool {
    match bytes {
        [b'c', rest @ ..] => {
            let changes = again::<Vec<Change>>(rest);
            if let Some(changes) = &changes {
                let mut run = RUN.clone();
                // What does not fit is refused, and what comes after it is tried all the same.
                changes.iter().for_each(|change| drop(run.apply(change)));
                look_at(&run);
            }
            changes.is_some()
        }
        [b'r', rest @ ..] => again::<RunState>(rest).inspect(look_at).is_some(),
        [b'h', rest @ ..] => again::<Vec<HistoryEvent>>(rest).is_some(),
        [b'i', rest @ ..] => again::<Vec<IterationRow>>(rest).is_some(),
        [b'j', family, rest @ ..] => matches!(raw_record(*family, rest), Some(Ok(_))),
        [_, rest @ ..] => again::<Value>(rest).is_some(),
        [] => false,
    }
}

/// What a driver asks of a run that it loads.
fn look_at(run: &RunState) {
    let _ = run.status();
    let _ = run.next_due_at();
    let _ = run.outstanding().count();
    let _ = run.loops().count();
    for id in run.cursors.keys() {
        let _ = run.record_owner(*id);
        let _ = run.variables_of(*id);
    }
}

fn again<T: Decode<()> + Encode + Debug>(bytes: &[u8]) -> Option<T> {
    let (read, _) = bincode::decode_from_slice::<T, _>(bytes, CONFIG).ok()?;
    let written = bincode::encode_to_vec(&read, CONFIG).expect("what was read can be written");
    let (same, _) = bincode::decode_from_slice::<T, _>(&written, CONFIG).expect("and be read");
    // As text: NaN is no equal of itself.
    assert_eq!(format!("{read:?}"), format!("{same:?}"));
    Some(read)
}
