//! The rows of a store as they lie there, decoded one by one: for a caller that needs to know what is
//! really written. It takes nothing from one row to understand another, and
//! never changes a store.

use super::archive::describe_row;
use super::codec::{self, BadRecord};
use super::header::{Root, StoredHeader};
use super::journal::{Line, RetainedRows, changes};
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
    /// The bytes of its key, in hexadecimal digits.
    pub key: String,
    /// What the key names: `changes 3 of run r1`.
    pub what: String,
    /// How many bytes its value has, that of further pieces not counted.
    pub bytes: u64,
    /// The record, as the engine's own types print; none: it has none, or is a further piece.
    pub record: Option<String>,
    /// Why the record cannot be read.
    pub error: Option<String>,
}

impl<K: Kv> RowReader<K> {
    /// Reports the rows in the order of their keys: all, or those of a run.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] when the database gives no further rows; a record that cannot be
    /// read is in its row.
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

/// What the bytes of a row's value say, as [`RawRow::record`] has it, taken for those of a row whose key
/// begins with the byte `family`; none where no row does, or such rows have no value.
///
/// # Errors
/// Why they are no such record.
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
            let commit = |bytes: &[u8]| Ok((Line::decode(bytes)?, changes(bytes)?.1));
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
