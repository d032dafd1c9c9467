//! What `doctor` found in a store, and the result of a repair.

use super::Unreadable;
use serde::Serialize;

/// The result of reading a store completely.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StoreReport {
    /// Number of runs that can be read completely.
    pub runs: u64,
    /// What cannot be read.
    pub unreadable: Vec<Unreadable>,
}

/// A store that was repaired.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RepairReport {
    /// The runs in the new store.
    pub retained: Vec<String>,
    /// The runs that were lost.
    pub lost: Vec<String>,
    /// Whether the runs may be older than they were before the damage. Then none of them continues automatically.
    pub stand_still: bool,
    /// Path of the damaged store.
    pub old: String,
    /// What could not be read.
    pub unreadable: Vec<Unreadable>,
}

/// A row as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RawReport {
    /// The bytes of its key, in hexadecimal digits.
    pub key: String,
    /// What the key refers to.
    pub what: String,
    /// Number of bytes of its value.
    pub bytes: u64,
    /// The debug output of the record. It changes with the engine's types.
    pub record: Option<String>,
    /// The error, if the record cannot be read.
    pub error: Option<String>,
}
