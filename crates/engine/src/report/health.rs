//! What `doctor` found in a store, and the result of a repair.

use super::Unreadable;
use serde::Serialize;

/// The result of reading a store completely.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StoreReport {
    /// Number of runs of the store that can be read completely.
    pub runs: u64,
    /// The parts of the store that cannot be read.
    pub unreadable: Vec<Unreadable>,
}

/// The result of a repair: a new store with what could be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RepairReport {
    /// The runs in the new store.
    pub retained: Vec<String>,
    /// The runs that were lost.
    pub lost: Vec<String>,
    /// Whether the runs may have lost their last commits. If true, none of the runs continues automatically.
    pub stand_still: bool,
    /// Path of the damaged store, which remains.
    pub old: String,
    /// The parts of the damaged store that could not be read.
    pub unreadable: Vec<Unreadable>,
}

/// A row of the database: a key and its record, as they are stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RawReport {
    /// The bytes of the key, in hexadecimal digits.
    pub key: String,
    /// What the key refers to.
    pub what: String,
    /// Size of the encoded record, in bytes.
    pub bytes: u64,
    /// The debug output of the decoded record. Its form changes with the engine's types, so it is not stable.
    pub record: Option<String>,
    /// The error, if the record cannot be decoded.
    pub error: Option<String>,
}
