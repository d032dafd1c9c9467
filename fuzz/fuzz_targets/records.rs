//! Any bytes are what a store keeps (the journal's changes, a run, its history, its iterations, a
//! value), or they are refused; what is read is written and read again as the same. The first byte
//! picks what they are taken for.
#![no_main]

use bincode::config::{Configuration, Limit, LittleEndian, Varint};
use bincode::{Decode, Encode};
use libfuzzer_sys::fuzz_target;
use std::fmt::Debug;
use windlass::expression::Value;
use windlass::machine::{Change, HistoryEvent, IterationRow, RunState};

/// As the store reads: with a bound on what a length can ask for.
const CONFIG: Configuration<LittleEndian, Varint, Limit<{ 64 << 20 }>> =
    bincode::config::standard().with_limit::<{ 64 << 20 }>();

fn again<T: Decode<()> + Encode + Debug>(bytes: &[u8]) {
    let Ok((read, _)) = bincode::decode_from_slice::<T, _>(bytes, CONFIG) else {
        return;
    };
    let written = bincode::encode_to_vec(&read, CONFIG).expect("what was read can be written");
    let (same, _) = bincode::decode_from_slice::<T, _>(&written, CONFIG).expect("and be read");
    // As text: NaN is no equal of itself.
    assert_eq!(format!("{read:?}"), format!("{same:?}"));
}

fuzz_target!(|bytes: &[u8]| {
    match bytes {
        [b'c', rest @ ..] => again::<Vec<Change>>(rest),
        [b'r', rest @ ..] => again::<RunState>(rest),
        [b'h', rest @ ..] => again::<Vec<HistoryEvent>>(rest),
        [b'i', rest @ ..] => again::<Vec<IterationRow>>(rest),
        [_, rest @ ..] => again::<Value>(rest),
        [] => {}
    }
});
