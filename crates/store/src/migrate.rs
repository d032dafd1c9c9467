//! Brings a store of format 1 to the format of this version. It is the only file that knows format 1.
//!
//! The rows of both formats are the same but for the records of commits: their bodies were made
//! smaller in other ways, changes of variables had other numbers, and two events had fewer fields.
//! Headers, indexes and the root stay byte for byte, so the root's checksum holds for both.

use super::codec::{self, BadRecord};
use super::commit::Writer;
use super::copy::replace;
use super::directory::{exchange, numbered};
use super::integrity::IntegrityReport;
use super::journal;
use super::keys::{self, Family};
use super::kv::{Kv, prefixed};
use super::memory::Memory;
use super::rows::{Meta, Retention, Rows, corrupt};
use super::sled::Sled;
use super::{SledStore, StoreError};
use bincode::Decode;
use flate2::{Decompress, FlushDecompress, Status as Inflated};
use std::path::Path;
use windlass_expression::Value;
use windlass_machine::{Change, CursorId, HistoryEvent, IterationRow, LoopState, RunState};
use windlass_model::model::{Name, Status};
use windlass_value::time::Timestamp;

/// The format that this file reads.
const OLD: u32 = 1;
/// Where the store that was migrated stays, beside the new one.
const RETAINED: &str = "store.format-1";
/// A batch with more than this is applied.
const FULL: usize = 1 << 20;

/// Whether a store is of format 1.
pub(super) fn is_due(store: &Rows<impl Kv>) -> Result<bool, StoreError> {
    Ok(store.format()? == Some(OLD))
}

/// Puts a store of this format in the place of one of format 1, which stays beside it. The new one is
/// written elsewhere, read in full and durable before that: whoever is killed leaves one of the two.
///
/// # Errors
/// [`StoreError::Corrupt`] when it cannot be read in full, [`StoreError::Io`] when there is no room for
/// both: the store is as it was then.
pub(super) fn migrate(dir: &Path, old: SledStore) -> Result<(), StoreError> {
    let root = old.checked_root(OLD)?.unwrap_or_default();
    // As when it is opened: what a process that was killed had written is durable by now.
    if old.kv.synced() < root.group {
        old.kv.sync(root.group)?;
    }
    let copy = |old: &SledStore, beside: &Path| {
        old.copy_to(beside, |old, into: &Sled| transcode(old, into, None))
    };
    replace(dir, old, copy, |path, fresh| {
        let retained = dir.join(RETAINED);
        let retained = match retained.exists() {
            true => numbered(dir, RETAINED),
            false => retained,
        };
        exchange(dir, path, fresh, &retained)
    })
}

/// The rows of a store that was read into memory, as this version writes them.
pub(super) fn in_memory(rows: Memory) -> Result<Memory, StoreError> {
    let old = Rows::fresh(rows, Retention::default(), "the store");
    if !is_due(&old)? {
        return Ok(old.kv);
    }
    old.checked_root(OLD)?;
    let new = Memory::default();
    transcode(&old, &new, None)?;
    Ok(new)
}

/// The rows of a damaged store, as this version writes them. What cannot be read is left out and
/// reported. Records of both formats are told apart, for the row that names the format may be lost.
pub(super) fn damaged(rows: Memory, report: &mut IntegrityReport) -> Result<Memory, StoreError> {
    let old = Rows::fresh(rows, Retention::default(), "the damaged store");
    if !matches!(
        old.format(),
        Ok(Some(OLD) | None) | Err(StoreError::Corrupt { .. })
    ) {
        return Ok(old.kv);
    }
    let new = Memory::default();
    transcode(&old, &new, Some(report))?;
    Ok(new)
}

/// Writes all rows into an empty database. Without a report, the first that cannot be read ends it.
fn transcode(
    old: &Rows<impl Kv>,
    into: &impl Kv,
    mut report: Option<&mut IntegrityReport>,
) -> Result<(), StoreError> {
    let group = old.root_of(OLD).ok().flatten().map_or(0, |root| root.group);
    let mut writer = Writer::default();
    let batch = &mut writer.batch;
    for row in old.rows(prefixed(&[])) {
        let (key, value) = row?;
        let (key, value) = (key.as_ref(), value.as_ref());
        let parsed = keys::parse(key);
        match parsed.as_ref().map(|parsed| (parsed.family, parsed.piece)) {
            Some((Family::Changes, 0)) => {
                let record = old.value(key, value, commit).and_then(|record| {
                    let key = |out: &mut Vec<u8>| out.extend_from_slice(key);
                    let put = batch.put(key, |out| {
                        out.extend_from_slice(&record);
                        Ok(())
                    });
                    put.map_err(|error| corrupt(&error.to_string()))
                });
                match (record, &mut report) {
                    (Ok(_), _) => {}
                    (Err(error), None) => return Err(error),
                    (Err(error), Some(report)) => {
                        let run = parsed.and_then(|parsed| parsed.run).map(Name::from);
                        report.note(run.as_ref(), "a row", &error);
                    }
                }
            }
            // Further pieces come with their first; what only gives a database its layout is put anew.
            Some((Family::Changes | Family::Meta, _)) => {}
            Some((Family::RootPadding | Family::JournalPadding | Family::EndPadding, _)) => {}
            _ => batch.copy(key, value),
        }
        if batch.len() > FULL {
            into.apply(batch)?;
            into.flush()?;
            batch.clear();
        }
    }
    writer.put_layout(&Meta::current())?;
    into.apply(&writer.batch)?;
    into.flush()?;
    into.sync(group)?;
    Ok(())
}

/// The record of a commit as this version writes it.
fn commit(bytes: &[u8]) -> Result<Vec<u8>, BadRecord> {
    let (events, used) = codec::decode_first::<u64>(bytes)?;
    let body = match bytes.get(used..).and_then(<[u8]>::split_first) {
        Some((0, body)) => body.to_vec(),
        Some((1, body)) => expand(body)?,
        Some((2, body)) => expand(&inflate(body)?)?,
        // This version writes it so.
        Some((3.., _)) => return Ok(bytes.to_vec()),
        None => return Err(BadRecord::Short),
    };
    let (length, rest) = body.split_first_chunk().ok_or(BadRecord::Short)?;
    let told = u32::from_le_bytes(*length) as usize;
    let (told, mut changes) = rest.split_at_checked(told).ok_or(BadRecord::Short)?;
    let mut at = 0;
    codec::decode_next::<LoopState>(told, &mut at)?;
    codec::decode_next::<IterationRow>(told, &mut at)?;
    let (rows, mut history) = told.split_at_checked(at).ok_or(BadRecord::Short)?;
    let mut told = rows.to_vec();
    list(&mut history, &mut told, event)?;
    let mut new = Vec::new();
    list(&mut changes, &mut new, change)?;
    if !(history.is_empty() && changes.is_empty()) {
        return Err(BadRecord::Trailing(history.len() + changes.len()));
    }
    let mut out = Vec::with_capacity(bytes.len());
    journal::write(&mut out, events, &told, &new)
        .map_err(|error| BadRecord::Value(error.to_string()))?;
    Ok(out)
}

/// A list: how many, and then `one` by one.
fn list(
    bytes: &mut &[u8],
    out: &mut Vec<u8>,
    one: impl Fn(&mut &[u8], &mut Vec<u8>) -> Result<(), BadRecord>,
) -> Result<(), BadRecord> {
    let (count, used) = codec::decode_first::<u64>(bytes)?;
    out.extend_from_slice(take(bytes, used)?);
    (0..count).try_for_each(|_| one(bytes, out))
}

/// A line of the history: two kinds have fields at their end that were not there.
fn event(bytes: &mut &[u8], out: &mut Vec<u8>) -> Result<(), BadRecord> {
    let ((_, kind), used) = codec::decode_first::<(Timestamp, u32)>(bytes)?;
    let rest = bytes.get(used..).unwrap_or_default();
    let (used, new): (usize, &[u8]) = match kind {
        // Started: no path and no iteration are known. Ended: its first attempt.
        4 => (used + length::<(Name, u32, String)>(rest)?, &[0, 0]),
        5 => (
            used + length::<(Name, Status, Option<String>)>(rest)?,
            &[1, 0, 0],
        ),
        _ => (length::<HistoryEvent>(bytes)?, &[]),
    };
    out.extend_from_slice(take(bytes, used)?);
    out.extend_from_slice(new);
    Ok(())
}

/// A change: every change of a variable is one kind now, and two have other numbers. What follows the
/// number is the same.
fn change(bytes: &mut &[u8], out: &mut Vec<u8>) -> Result<(), BadRecord> {
    let (kind, used) = codec::decode_first::<u32>(bytes)?;
    let rest = bytes.get(used..).unwrap_or_default();
    let (length, new): (usize, &[u8]) = match kind {
        1 => (variable(0, rest)?, &[1, 0, 0]),
        2 => (variable(1, rest)?, &[1, 0, 1]),
        3 => (variable(2, rest)?, &[1, 0, 2]),
        37 => (variable(3, rest)?, &[1, 0, 3]),
        39 => {
            let ((_, kind), used) = codec::decode_first::<(CursorId, u32)>(rest)?;
            let length = variable(kind, rest.get(used..).unwrap_or_default())?;
            (used + length, &[1, 1])
        }
        40 => (length::<RunState>(rest)?, &[37]),
        41 => (length::<(CursorId, u32, (u32, u32))>(rest)?, &[3]),
        _ => {
            let length = length::<Change>(bytes)?;
            out.extend_from_slice(take(bytes, length)?);
            return Ok(());
        }
    };
    take(bytes, used)?;
    out.extend_from_slice(new);
    out.extend_from_slice(take(bytes, length)?);
    Ok(())
}

/// How long the change of a variable is: a value, an element, more text, or that it is gone.
fn variable(kind: u32, bytes: &[u8]) -> Result<usize, BadRecord> {
    match kind {
        0 | 1 => length::<(Name, Value)>(bytes),
        2 => length::<(Name, String)>(bytes),
        _ => length::<Name>(bytes),
    }
}

/// How many bytes the value has that these begin with.
fn length<T: Decode<()>>(bytes: &[u8]) -> Result<usize, BadRecord> {
    codec::decode_first::<T>(bytes).map(|(_, used)| used)
}

fn take<'a>(bytes: &mut &'a [u8], count: usize) -> Result<&'a [u8], BadRecord> {
    let (taken, rest) = bytes.split_at_checked(count).ok_or(BadRecord::Short)?;
    *bytes = rest;
    Ok(taken)
}

/// A number, which is in front of what it counts.
fn number(bytes: &mut &[u8]) -> Result<usize, BadRecord> {
    let (number, used) = codec::decode_first::<u64>(bytes)?;
    take(bytes, used)?;
    usize::try_from(number).map_err(|_| BadRecord::Short)
}

/// A body in which what repeats was written once: how long it is, then by turns new bytes, by their
/// number, and a repetition, by its length and how far back it begins.
fn expand(bytes: &[u8]) -> Result<Vec<u8>, BadRecord> {
    /// No repetition was longer.
    const LONGEST: usize = 4_096;
    let mut rest = bytes;
    let whole = number(&mut rest)?;
    let mut out = Vec::with_capacity(whole.min(bytes.len().saturating_mul(16)));
    loop {
        let new = number(&mut rest)?;
        out.extend_from_slice(take(&mut rest, new)?);
        if out.len() >= whole {
            break;
        }
        let (length, back) = (number(&mut rest)?, number(&mut rest)?);
        let from = out.len().checked_sub(back).ok_or(BadRecord::Short)?;
        if back == 0 || length == 0 || length > LONGEST {
            return Err(BadRecord::Short);
        }
        // A repetition may reach into itself.
        let mut missing = length;
        while missing > 0 {
            let some = missing.min(out.len() - from);
            out.extend_from_within(from..from + some);
            missing -= some;
        }
    }
    match out.len() == whole && rest.is_empty() {
        true => Ok(out),
        false => Err(BadRecord::Short),
    }
}

/// A deflated body, behind how long it is.
fn inflate(bytes: &[u8]) -> Result<Vec<u8>, BadRecord> {
    /// No byte that is deflated stands for more.
    const MOST: usize = 1_032;
    let mut rest = bytes;
    let whole = number(&mut rest)?;
    if whole > rest.len().saturating_mul(MOST) {
        return Err(BadRecord::Short);
    }
    let mut out = Vec::with_capacity(whole);
    let done = Decompress::new(false).decompress_vec(rest, &mut out, FlushDecompress::Finish);
    match done.map_err(|error| BadRecord::Value(error.to_string()))? {
        Inflated::StreamEnd if out.len() == whole => Ok(out),
        _ => Err(BadRecord::Short),
    }
}
