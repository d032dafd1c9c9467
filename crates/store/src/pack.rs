//! Packs the records of a run's last commits into one row of the store. These records are similar, so they compress
//! much better together. A reader gets the same records from a packed row.

use super::StoreError;
use super::codec::{self, BadRecord};
use super::commit::Entry;
use super::compress;
use super::journal::{CommitReport, last_event};
use super::journal_walk::Order;
use super::keys::{self, Family};
use super::kv::Kv;
use super::rows::RowReader;
use bincode::error::EncodeError;
use std::ops::ControlFlow;

/// The interval, in commits of a run, at which earlier records are packed.
pub const EVERY: u64 = 64;

/// A record with more bytes than this, without compression, is not packed. A shorter record fits into one row even
/// without compression.
const LONG: usize = codec::MAX_SINGLE - 16;

/// The byte after the sequence number of the last event in a packed row. In a row with a single record, this byte says
/// how the record's body is compressed, and never has this value.
const PACKED: u8 = 5;

/// Appends the packed records of consecutive commits. Each has its revision.
fn encode(out: &mut Vec<u8>, records: &[(u64, Vec<u8>)]) -> Result<(), EncodeError> {
    let unreadable = EncodeError::Other("a record that is packed cannot be read");
    let last = records.last().map(|(_, record)| last_event(record));
    codec::encode(out, &last.and_then(Result::ok).ok_or(unreadable)?)?;
    out.push(PACKED);
    let mut whole = Vec::new();
    for (_, record) in records {
        codec::encode(&mut whole, &(record.len() as u64))?;
        whole.extend_from_slice(record);
    }
    compress::write(out, &whole)
}

/// Decodes each record in a row, packed or single.
pub(super) fn each<T>(
    bytes: &[u8],
    decode: impl Fn(&[u8]) -> Result<T, BadRecord>,
) -> Result<Vec<T>, BadRecord> {
    let (_, used) = codec::decode_first::<u64>(bytes)?;
    let Some((&PACKED, packed)) = bytes.get(used..).and_then(<[u8]>::split_first) else {
        return Ok(vec![decode(bytes)?]);
    };
    let whole = compress::read(packed)?;
    let (mut rest, mut records) = (whole.as_slice(), Vec::new());
    while !rest.is_empty() {
        let (length, used) = codec::decode_first::<u64>(rest)?;
        let behind = rest.get(used..).unwrap_or_default();
        let length = usize::try_from(length).map_err(|_| BadRecord::Short)?;
        let (record, behind) = behind.split_at_checked(length).ok_or(BadRecord::Short)?;
        records.push(decode(record)?);
        rest = behind;
    }
    Ok(records)
}

/// Returns a commit's record without compression, because such records compress better together. Returns `None` for a
/// record that is too long to be packed.
fn plain(bytes: &[u8]) -> Result<Option<Vec<u8>>, BadRecord> {
    // A record that is long with compression is not shorter without it.
    if bytes.len() > LONG {
        return Ok(None);
    }
    let (_, used) = codec::decode_first::<u64>(bytes)?;
    let (events, body) = bytes.split_at_checked(used).ok_or(BadRecord::Short)?;
    let mut out = events.to_vec();
    compress::write_plain(&mut out, &compress::read(body)?);
    Ok(Some(out).filter(|out| out.len() <= LONG))
}

impl<K: Kv> RowReader<K> {
    /// Packs the records of earlier commits that are not packed yet.
    pub(super) fn pack_journal(&self, entry: &mut Entry<'_>) -> Result<(), StoreError> {
        // The record of the current commit is not in the store yet, so it is not packed.
        let (run, last) = (entry.run, entry.header.revision);
        let all = (entry.header.bounds.first, last);
        let (mut records, mut rows) = (Vec::new(), 0);
        self.walk_rows(run, all, Order::NewestFirst, plain, |_, mut row| {
            rows += 1;
            match (row.pop(), row.is_empty()) {
                (Some((revision, Some(record))), true) => records.push((revision, record)),
                (Some((_, None)), true) => {}
                // This row is packed, and so are all earlier rows.
                _ => return ControlFlow::Break(()),
            }
            match rows < EVERY {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            }
        })?;
        records.reverse();
        for records in records.chunk_by(|(one, _), (next, _)| one + 1 == *next) {
            let [(first, _), .., (last, _)] = records else {
                continue;
            };
            let key = |key: &mut Vec<u8>, revision| {
                keys::numbered_row(key, Family::Changes, run, revision);
            };
            for revision in *first..*last {
                entry.batch.remove(|out| key(out, revision));
            }
            entry.put(|out| key(out, *last), |out| encode(out, records))?;
        }
        Ok(())
    }

    /// Returns the records of a row, with their revisions. `last` is the revision of the row's last record. Returns an
    /// empty list if the row cannot be read.
    pub(super) fn unpack(&self, key: &[u8], first: &[u8], last: u64) -> Vec<(u64, Vec<u8>)> {
        let whole = |record: &[u8]| CommitReport::decode(record).map(|_| record.to_vec());
        let records = self.value(key, first, |bytes| each(bytes, whole));
        let records = records.unwrap_or_default().into_iter().rev();
        (0..=last).rev().zip(records).collect()
    }
}
