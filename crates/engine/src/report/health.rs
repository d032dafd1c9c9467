//! What `doctor` found in a store, and what came of a repair.

use super::Unreadable;
use serde::Serialize;

/// A store that was read in full.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StoreReport {
    /// Number of runs that can be read in full.
    pub runs: u64,
    /// What cannot be read.
    pub unreadable: Vec<Unreadable>,
}

/// A store that was made of a damaged one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RepairReport {
    /// The runs in it.
    pub retained: Vec<String>,
    /// The runs that are not in it.
    pub lost: Vec<String>,
    /// The runs may be older than they were when the store was whole: none continues automatically.
    pub stand_still: bool,
    /// Where the damaged store is.
    pub old: String,
    /// What could not be read.
    pub unreadable: Vec<Unreadable>,
}

/// A row as it lies in a store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RawReport {
    /// The bytes of its key, in hexadecimal digits.
    pub key: String,
    /// What the key names.
    pub what: String,
    /// How many bytes its value has.
    pub bytes: u64,
    /// The record, as the engine's own types print; it changes with them.
    pub record: Option<String>,
    /// Why the record cannot be read.
    pub error: Option<String>,
}
