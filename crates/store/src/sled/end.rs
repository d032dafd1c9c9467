//! Refuses a log that lost its end before sled opens it: sled would remove all that lies behind the damage.
//! This file never opens the database.

use super::log_pages::{RECORD_IS_VALID, value_in_message};
use super::log_reader::{Log, Message};
use crate::StoreError;
use crate::codec;
use crate::creation_lock::{CREATING, NO_LOG};
use crate::header::Root;
use crate::keys::Family;
use crate::rows::{corrupt, ends_too_early};
use crate::watermark::{MARK, read_watermark};
use std::path::Path;

/// Refuses a finished store without its log or without a mark that can be read. Refuses also a log of
/// which the database would cut off groups that were acknowledged and can be read: it takes damage near
/// the end for the end.
pub(super) fn check_end(path: &Path) -> Result<(), StoreError> {
    let Some(acknowledged) = of_finished(path)?.filter(|group| *group > 0) else {
        return Ok(());
    };
    let log = Log::open(path).map_err(StoreError::Io)?;
    let Some(cut) = log.cut().map_err(StoreError::Io)? else {
        return Ok(());
    };
    if log.is_indexed(cut) {
        return Err(corrupt("its log cannot be read up to where its index ends"));
    }
    let group = |message: &Message<'_>| {
        let key = [Family::Root.byte()];
        let row = value_in_message(message, &key, RECORD_IS_VALID)?;
        let body = codec::check(&key, &row).ok()?.body;
        let root: Root = codec::decode(row.get(body)?).ok()?;
        Some(root.group)
    };
    let last = log.newest(cut, group).map_err(StoreError::Io)?;
    ends_too_early(acknowledged, last.unwrap_or(0)).map_or(Ok(()), Err)
}

/// The last group that a finished store remembers as durable, without opening it; none when there is no
/// finished store.
///
/// # Errors
/// [`StoreError::Corrupt`] when the mark or the log is missing, or the mark is not what was written.
fn of_finished(path: &Path) -> Result<Option<u64>, StoreError> {
    // In this order: what is there without `making` is finished, and stays so.
    if !path.exists() || path.join(CREATING).exists() {
        return Ok(None);
    }
    let log = path.join("db").exists();
    match (log, path.join(MARK).exists()) {
        (false, false) => Ok(None),
        (false, true) => Err(corrupt(NO_LOG)),
        (true, _) => read_watermark(path).map(Some),
    }
}
