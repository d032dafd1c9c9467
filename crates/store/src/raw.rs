//! Decodes the rows of a store (keys with their values) one by one, for a caller that needs to see exactly what is
//! stored. Decoding a row needs no other row, except the further pieces of its value. This file never changes a store.

use super::archive::describe_row;
use super::codec::{self, BadRecord};
use super::header::{Root, StoredHeader};
use super::journal::{CommitReport, RetainedRows, changes};
use super::keys::{self, Family};
use super::kv::{Kv, prefixed};
use super::pack::each;
use super::rows::{Meta, RowReader};
use super::{ProgramSource, StateEntry, StoreError, StoredWorkflow};
use std::fmt::Debug;
use windlass_machine::RunState;
use windlass_value::hex;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawRow {
    /// The bytes of the key, in hexadecimal digits.
    pub key: String,
    /// What the key names: `changes 3 of run r1`.
    pub what: String,
    /// Size of the row's value in bytes, without the value's further pieces, which are rows of their own.
    pub bytes: u64,
    /// The record in Rust's debug format; `None` for the row of a further piece, or if rows of this family have no
    /// value.
    pub record: Option<String>,
    /// Why the record cannot be read.
    pub error: Option<String>,
}

impl<K: Kv> RowReader<K> {
    /// Passes rows to `sink` in the order of their keys: all rows, or the rows of one run. If a record cannot be read,
    /// its row has the reason in `error`.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] if the database cannot read further rows.
    pub(super) fn raw(
        &self,
        run: Option<&str>,
        sink: &mut dyn FnMut(RawRow),
    ) -> Result<(), StoreError> {
        for row in self.rows(prefixed(&[])) {
            let (key, value) = row?;
            let (key, value) = (key.as_ref(), value.as_ref());
            let parsed = keys::parse(key);
            let of_run = parsed.as_ref().and_then(|parsed| parsed.run.as_deref());
            if run.is_some() && of_run != run {
                continue;
            }
            let record = match &parsed {
                Some(parsed) if !parsed.family.has_no_value() && parsed.piece == 0 => {
                    Some(self.describe_record(parsed.family, key, value))
                }
                _ => None,
            };
            let (record, error) = match record {
                None => (None, None),
                Some(Ok(text)) => (Some(text), None),
                Some(Err(error)) => (None, Some(error.to_string())),
            };
            sink(RawRow {
                key: hex(key),
                what: keys::describe(key),
                bytes: value.len() as u64,
                record,
                error,
            });
        }
        Ok(())
    }

    fn describe_record(
        &self,
        family: Family,
        key: &[u8],
        first: &[u8],
    ) -> Result<String, StoreError> {
        if family.has_no_value() {
            return Ok(String::new());
        }
        self.value(key, first, |bytes| record(family, bytes))
    }
}

/// Describes the bytes of a value as [`RawRow::record`] does, for a row whose key begins with the byte `family`.
/// Returns `None` if no row's key begins with this byte, or if such rows have no value.
///
/// # Errors
/// Why the bytes are not a record of this family.
#[must_use]
pub fn raw_record(family: u8, bytes: &[u8]) -> Option<Result<String, String>> {
    let family = Family::of(family).filter(|family| !family.has_no_value())?;
    Some(record(family, bytes).map_err(|error| error.to_string()))
}

fn record(family: Family, bytes: &[u8]) -> Result<String, BadRecord> {
    match family {
        Family::Meta => shown(codec::decode::<Meta>(bytes)),
        Family::Root => shown(codec::decode::<Root>(bytes)),
        Family::Marked => shown(codec::decode::<u64>(bytes)),
        Family::Program | Family::FormerWorkflow => shown(codec::decode::<ProgramSource>(bytes)),
        Family::Workflow => shown(codec::decode::<StoredWorkflow>(bytes)),
        Family::State => shown(codec::decode::<StateEntry>(bytes)),
        Family::Header => shown(codec::decode::<StoredHeader>(bytes)),
        Family::Snapshot => shown(codec::decode::<RunState>(bytes)),
        Family::Changes => {
            let commit = |bytes: &[u8]| Ok((CommitReport::decode(bytes)?, changes(bytes)?.1));
            shown(each(bytes, commit))
        }
        Family::Retained => shown(RetainedRows::decode(bytes)),
        Family::Iterations => describe_row(bytes),
        Family::Due | Family::Runnable | Family::Padding => Ok(String::new()),
    }
}

fn shown<T: Debug>(decoded: Result<T, BadRecord>) -> Result<String, BadRecord> {
    decoded.map(|record| format!("{record:?}"))
}
