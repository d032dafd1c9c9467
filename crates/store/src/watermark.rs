//! The mark: the number of the last durable group, in a file of its own next to the database. A log
//! that lost its end looks whole to the database; the mark knows better, so a finished store without
//! a readable one is damaged. This file never opens the database.
//!
//! The mark is written after a group is durable, so it never names a later one. It is synced only
//! once in a while, so a power cut may leave an older one; how old it may be, the store itself
//! remembers: the last mark that was synced before a group is in that group (`Family::Marked`).

use super::StoreError;
use super::rows::corrupt;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// Its file.
pub(super) const MARK: &str = "mark";

/// The mark is synced once in this many groups: one that is older than that is of another time.
const SYNC_EVERY: u64 = 32;

/// An open mark.
pub(super) struct Watermark {
    pub file: File,
    /// What it says also after a power cut, at least.
    durable: AtomicU64,
}

impl Watermark {
    /// That of a new store, which names no group yet. Not durable.
    pub fn fresh(path: &Path) -> io::Result<Self> {
        let file = options()
            .create(true)
            .truncate(true)
            .open(path.join(MARK))?;
        file.write_all_at(&bytes(0), 0)?;
        let durable = AtomicU64::new(0);
        Ok(Self { file, durable })
    }

    /// That of a finished store, made durable as it is.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let group = read_watermark(path)?;
        let made_durable = || -> io::Result<File> {
            let file = options().open(path.join(MARK))?;
            // Written again: what an earlier sync failed for, the system takes for written.
            file.write_all_at(&bytes(group), 0)?;
            file.sync_data()?;
            Ok(file)
        };
        Ok(Self {
            file: made_durable().map_err(StoreError::Io)?,
            durable: AtomicU64::new(group),
        })
    }

    /// Remembers that groups up to this one are durable.
    pub fn set(&self, group: u64) {
        // An older mark only says less.
        let written = self.file.write_all_at(&bytes(group), 0);
        let turn = self.durable().saturating_add(SYNC_EVERY) <= group;
        if turn && written.and_then(|()| self.file.sync_data()).is_ok() {
            self.durable.store(group, Ordering::SeqCst);
        }
    }

    /// The last group that it names; 0 when it cannot be read.
    pub fn group(&self) -> u64 {
        let mut found = [0; 12];
        let read = self.file.read_exact_at(&mut found, 0);
        read.ok().and_then(|()| group_of(found)).unwrap_or(0)
    }

    /// What it names at least, also after a power cut.
    pub fn durable(&self) -> u64 {
        self.durable.load(Ordering::SeqCst)
    }
}

fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    options
}

/// What the mark of a finished store says.
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
