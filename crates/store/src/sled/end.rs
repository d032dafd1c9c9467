//! Refuses a log that has lost its end, before sled opens the log. sled would remove everything after the damage. This
//! file never opens the database.

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

/// Refuses a finished store (one whose creation has ended) without its log or without a readable mark (the number of
/// the last durable group). sled treats damage near the end of the log as the log's end. So this also refuses a log if
/// sled would remove readable groups that were acknowledged.
pub(super) fn check_end(path: &Path) -> Result<(), StoreError> {
    let Some(acknowledged) = of_finished(path)?.filter(|group| *group > 0) else {
        return Ok(());
    };
    let log = Log::open(path).map_err(StoreError::Io)?;
    let Some(end) = log.sled_end().map_err(StoreError::Io)? else {
        return Ok(());
    };
    if log.is_indexed(end) {
        return Err(corrupt("its log cannot be read up to where its index ends"));
    }
    let group = |message: &Message<'_>| {
        let key = [Family::Root.byte()];
        let row = value_in_message(message, &key, RECORD_IS_VALID)?;
        let body = codec::check(&key, &row).ok()?.body;
        let root: Root = codec::decode(row.get(body)?).ok()?;
        Some(root.group)
    };
    let last = log.newest(end, group).map_err(StoreError::Io)?;
    ends_too_early(acknowledged, last.unwrap_or(0)).map_or(Ok(()), Err)
}

/// Reads the last durable group from the mark of a finished store, without opening the store. Returns `None` if the
/// store is missing or unfinished.
///
/// # Errors
/// [`StoreError::Unreadable`] if the log is missing, [`StoreError::Corrupt`] if the mark is missing or damaged.
fn of_finished(path: &Path) -> Result<Option<u64>, StoreError> {
    // Checked first, because another process may finish the store meanwhile. A store without the file `making` is
    // finished, and remains finished.
    if !path.exists() || path.join(CREATING).exists() {
        return Ok(None);
    }
    let log = path.join("db").exists();
    match (log, path.join(MARK).exists()) {
        (false, false) => Ok(None),
        (false, true) => Err(StoreError::Unreadable(NO_LOG)),
        (true, _) => read_watermark(path).map(Some),
    }
}
