//! The floors: what the disk and the bare database can do with the same bytes in the same groups.

use crate::directory;
use crate::usage::{cpu_us, written};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::time::Instant;
use windlass_store::{RawRow, StoreError};

/// The size of a segment of a store's log. Sled opens a log only with the size that wrote it.
const SEGMENT: usize = 2 << 20;

/// The rows of an average commit of a store, per family of keys.
#[derive(Clone, Debug)]
pub struct Shape {
    rows: Vec<Row>,
    /// The number of groups that the store committed.
    pub groups: u64,
}

#[derive(Clone, Copy, Debug)]
struct Row {
    family: u8,
    key: usize,
    value: usize,
    /// Whether each commit writes a new key in this family.
    new: bool,
}

impl Shape {
    /// Measures the rows of a store. No engine may have the store open.
    pub fn of(state: &Path) -> Self {
        let mut found: BTreeMap<u8, (usize, usize, usize)> = BTreeMap::new();
        let store = loop {
            match windlass_store::open(state, None) {
                Err(StoreError::Locked { .. }) => std::thread::yield_now(),
                opened => break opened.unwrap(),
            }
        };
        let count = |row: RawRow| {
            let family = u8::from_str_radix(&row.key[..2], 16).unwrap();
            let sum = found.entry(family).or_default();
            let value = usize::try_from(row.bytes).unwrap();
            *sum = (sum.0 + 1, sum.1 + row.key.len() / 2, sum.2 + value);
        };
        store.raw(None, &mut { count }).unwrap();
        let rows = [(b'z', true), (b'r', false)];
        let rows = rows
            .into_iter()
            .filter_map(|(family, new)| {
                let (count, keys, values) = found.get(&family).copied()?;
                Some(Row {
                    family,
                    key: keys / count,
                    value: values / count,
                    new,
                })
            })
            .collect();
        let mark = std::fs::read(state.join("store/mark")).unwrap();
        let groups = u64::from_le_bytes(mark[..8].try_into().unwrap());
        Self { rows, groups }
    }

    /// Bytes of one commit.
    pub fn bytes(&self) -> usize {
        self.rows.iter().map(|row| row.key + row.value).sum()
    }

    /// The rows of `group` commits from commit number `first` on. Successive commits belong to successive runs of
    /// `runs` runs.
    fn batch(&self, first: usize, group: usize, runs: usize, fill: u8) -> sled::Batch {
        let mut batch = sled::Batch::default();
        for commit in first..first + group {
            for row in &self.rows {
                let (run, number) = (commit % runs, if row.new { commit } else { 0 });
                let mut key = format!("{}{run:08}", row.family as char).into_bytes();
                key.resize(row.key.saturating_sub(8).max(key.len()), b'-');
                key.extend_from_slice(&(number as u64).to_be_bytes());
                batch.insert(key, vec![fill; row.value]);
            }
        }
        batch.insert(b"g".as_slice(), vec![fill; 24]);
        batch
    }
}

/// What the bare database achieved.
pub struct Floor {
    /// Durable commits per second.
    pub rate: f64,
    /// CPU time of all threads, in microseconds per commit.
    pub cpu: f64,
}

/// Writes commits of `runs` runs, one run after the other, in groups. Each group is a batch, a `flush` and a
/// `sync_data`; `writers` groups are written at the same time.
pub fn store(shape: &Shape, commits: usize, group: usize, runs: usize, writers: usize) -> Floor {
    let at = directory();
    let db = open(at.path());
    let (start, before) = (Instant::now(), cpu_us());
    std::thread::scope(|scope| {
        for writer in 0..writers {
            let (db, path) = (&db, at.path());
            scope.spawn(move || {
                let file = file(path);
                for first in (writer * group..commits).step_by(writers * group) {
                    db.apply_batch(shape.batch(first, group, runs, first as u8))
                        .unwrap();
                    db.flush().unwrap();
                    file.sync_data().unwrap();
                }
            });
        }
    });
    let commits = commits as f64;
    Floor {
        rate: commits / start.elapsed().as_secs_f64(),
        cpu: (cpu_us() - before) / commits,
    }
}

/// The times of the commits of one run, written one by one, after the time of the start; and the number of bytes
/// written.
pub fn growing(shape: &Shape, commits: usize) -> (Vec<Instant>, u64) {
    let at = directory();
    let db = open(at.path());
    let (file, before) = (file(at.path()), written("wchar"));
    let mut times = vec![Instant::now()];
    for commit in 0..commits {
        db.apply_batch(shape.batch(commit, 1, 1, commit as u8))
            .unwrap();
        db.flush().unwrap();
        file.sync_data().unwrap();
        times.push(Instant::now());
    }
    (times, written("wchar") - before)
}

fn file(at: &Path) -> File {
    OpenOptions::new().write(true).open(at.join("db")).unwrap()
}

/// Opens a database. Waits until the threads of its last owner have released its lock.
pub fn open(at: &Path) -> sled::Db {
    let config = sled::Config::new()
        .path(at)
        .cache_capacity(256 << 20)
        .segment_size(SEGMENT)
        .flush_every_ms(None);
    loop {
        match config.open() {
            Err(sled::Error::Io(error)) if error.to_string().contains("WouldBlock") => {
                std::thread::yield_now();
            }
            opened => return opened.unwrap(),
        }
    }
}

/// Durable commits per second when each group is appended to a file with `write` and `fdatasync`.
pub fn raw(shape: &Shape, commits: usize, group: usize) -> f64 {
    let at = directory();
    let mut file = OpenOptions::new()
        .create(true)
        .append(true)
        .open(at.path().join("log"))
        .unwrap();
    let bytes = vec![7; shape.bytes() * group];
    let start = Instant::now();
    for _ in (0..commits).step_by(group) {
        file.write_all(&bytes).unwrap();
        file.sync_data().unwrap();
    }
    commits as f64 / start.elapsed().as_secs_f64()
}
