//! The mark: the number of the last durable group, in a file of its own next to the database. A group is the writes of
//! several commits together.
//! If a log loses its end, the database does not notice this, but the mark shows it. So if a finished store has no
//! readable mark, the store is damaged. This file never opens the database.
//!
//! The mark is written after its group is durable, so it never names a later group than the last durable one. It is
//! synced only once in several groups, so after a power cut it may name an earlier group. The database stores how early
//! this can be: each group contains the last mark that was synced before the group (`Family::Marked`).

use super::StoreError;
use super::rows::corrupt;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// The name of the mark's file.
pub(super) const MARK: &str = "mark";

/// The mark is synced once in this many groups. If the mark is older than this allows, it does not belong to this
/// database.
const SYNC_EVERY: u64 = 32;

/// An open mark.
pub(super) struct Watermark {
    pub file: File,
    /// The lowest group number that the mark can have after a power cut.
    floor: AtomicU64,
}

impl Watermark {
    /// Creates the mark of a new store, with no group yet. The file is not durable when this returns.
    pub fn fresh(path: &Path) -> io::Result<Self> {
        let file = options()
            .create(true)
            .truncate(true)
            .open(path.join(MARK))?;
        file.write_all_at(&bytes(0), 0)?;
        let floor = AtomicU64::new(0);
        Ok(Self { file, floor })
    }

    /// Opens the mark of a finished store, and makes it durable.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let group = read_watermark(path)?;
        let made_durable = || -> io::Result<File> {
            let file = options().open(path.join(MARK))?;
            // Written again, because an earlier sync may have failed. After a failed sync, the system treats the data
            // as written and would not sync it.
            file.write_all_at(&bytes(group), 0)?;
            file.sync_data()?;
            Ok(file)
        };
        Ok(Self {
            file: made_durable().map_err(StoreError::Io)?,
            floor: AtomicU64::new(group),
        })
    }

    /// Records that groups up to this one are durable.
    pub fn set(&self, group: u64) {
        // A failed write is ignored, because the mark is valid with an earlier group, too.
        let written = self.file.write_all_at(&bytes(group), 0);
        let turn = self.floor().saturating_add(SYNC_EVERY) <= group;
        if turn && written.and_then(|()| self.file.sync_data()).is_ok() {
            self.floor.store(group, Ordering::SeqCst);
        }
    }

    /// Returns the group in the mark; 0 if the mark cannot be read.
    pub fn group(&self) -> u64 {
        let mut found = [0; 12];
        let read = self.file.read_exact_at(&mut found, 0);
        read.ok().and_then(|()| group_of(found)).unwrap_or(0)
    }

    /// Returns the lowest group number that the mark can have after a power cut.
    pub fn floor(&self) -> u64 {
        self.floor.load(Ordering::SeqCst)
    }
}

fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    options
}

/// Reads the group from the mark of a finished store.
pub(super) fn read_watermark(path: &Path) -> Result<u64, StoreError> {
    let mut found = [0; 12];
    let file = match File::open(path.join(MARK)) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Err(corrupt_mark("is missing"));
        }
        file => file.map_err(StoreError::Io)?,
    };
    let length = file.metadata().map_err(StoreError::Io)?.len();
    match file.read_exact_at(&mut found, 0) {
        Err(error) if error.kind() != ErrorKind::UnexpectedEof => Err(StoreError::Io(error)),
        Ok(()) if length == found.len() as u64 => {
            group_of(found).ok_or_else(|| corrupt_mark("is not what was written"))
        }
        Ok(()) | Err(_) => Err(corrupt_mark("is not as long as it was written")),
    }
}

fn corrupt_mark(what: &str) -> StoreError {
    corrupt(&format!(
        "its mark `store/mark`, which names the last acknowledged group, {what}"
    ))
}

fn bytes(group: u64) -> [u8; 12] {
    let number = group.to_le_bytes();
    let crc = crc32fast::hash(&number).to_le_bytes();
    let mut out = [0; 12];
    for (to, from) in out.iter_mut().zip(number.into_iter().chain(crc)) {
        *to = from;
    }
    out
}

fn group_of(bytes: [u8; 12]) -> Option<u64> {
    let (number, crc) = bytes.split_first_chunk()?;
    (crc32fast::hash(number).to_le_bytes() == crc).then_some(u64::from_le_bytes(*number))
}
