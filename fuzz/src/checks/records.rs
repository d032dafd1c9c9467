//! Each input is a valid record of a store, or is refused. A record that is read is written and read again as the same
//! value, and changes that are applied to any run do not stop a reader. The first byte chooses the kind of record: `c`
//! changes of the journal, `r` a run, `h` history, `i` iterations, `j` a row of the store (the second byte is its
//! family), and anything else a value.

use bincode::config::{Configuration, Limit, LittleEndian, Varint};
use bincode::{Decode, Encode};
use std::fmt::Debug;
use std::sync::LazyLock;
use windlass_expression::Value;
use windlass_machine::{Change, HistoryEvent, IterationRow, RunState};
use windlass_store::raw_record;

/// The store's configuration: a length cannot request more memory than this.
pub const CONFIG: Configuration<LittleEndian, Varint, Limit<{ 64 << 20 }>> =
    bincode::config::standard().with_limit::<{ 64 << 20 }>();

/// A run that has not ended.
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
                // A change that does not fit is refused, and the next ones are still tried.
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

/// Calls what a driver calls for a run that it loads.
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
    // Compared as text, because NaN is not equal to itself.
    assert_eq!(format!("{read:?}"), format!("{same:?}"));
    Some(read)
}
