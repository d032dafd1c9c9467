//! The floors: what the disk and the bare database can do with the same bytes in the same groups.

use crate::directory;
use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::time::Instant;

/// The segments of the store's log: sled opens a log only with its own.
const SEGMENT: usize = 2 << 20;

/// The rows of an average commit of a store, by the family of their keys.
#[derive(Clone, Debug)]
pub struct Shape {
    rows: Vec<Row>,
    /// How many groups were committed in all.
    pub groups: u64,
}

#[derive(Clone, Copy, Debug)]
struct Row {
    family: u8,
    key: usize,
    value: usize,
    /// Whether each commit writes a key of its own.
    new: bool,
}

impl Shape {
    /// Reads it off a store that no engine has open any more.
    pub fn of(state: &Path) -> Self {
        let db = open(&state.join("store"));
        let mut found: BTreeMap<u8, (usize, usize, usize)> = BTreeMap::new();
        for row in db.iter() {
            let (key, value) = row.unwrap();
            let sum = found.entry(key[0]).or_default();
            *sum = (sum.0 + 1, sum.1 + key.len(), sum.2 + value.len());
        }
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

    fn batch(&self, first: usize, group: usize, writers: usize, fill: u8) -> sled::Batch {
        let mut batch = sled::Batch::default();
        for commit in first..first + group {
            for row in &self.rows {
                let (run, number) = (commit % writers, if row.new { commit } else { 0 });
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

/// Durable commits a second of the bare database: batches, `flush`, `sync_data`.
pub fn store(shape: &Shape, commits: usize, group: usize) -> f64 {
    let at = directory();
    let db = open(at.path());
    let file = OpenOptions::new()
        .write(true)
        .open(at.path().join("db"))
        .unwrap();
    let start = Instant::now();
    for first in (0..commits).step_by(group) {
        db.apply_batch(shape.batch(first, group, group, first as u8))
            .unwrap();
        db.flush().unwrap();
        file.sync_data().unwrap();
    }
    commits as f64 / start.elapsed().as_secs_f64()
}

/// The same with two groups on their way at a time.
pub fn store_overlapping(shape: &Shape, commits: usize, group: usize) -> f64 {
    let at = directory();
    let db = open(at.path());
    let start = Instant::now();
    std::thread::scope(|scope| {
        for half in 0..2 {
            let (db, path) = (&db, at.path());
            scope.spawn(move || {
                let file = OpenOptions::new()
                    .write(true)
                    .open(path.join("db"))
                    .unwrap();
                for first in (half * group..commits).step_by(2 * group) {
                    db.apply_batch(shape.batch(first, group, 2 * group, first as u8))
                        .unwrap();
                    db.flush().unwrap();
                    file.sync_data().unwrap();
                }
            });
        }
    });
    commits as f64 / start.elapsed().as_secs_f64()
}

fn open(at: &Path) -> sled::Db {
    sled::Config::new()
        .path(at)
        .cache_capacity(256 << 20)
        .segment_size(SEGMENT)
        .flush_every_ms(None)
        .open()
        .unwrap()
}

/// Durable commits a second of a file that is appended to: `write`, `fdatasync`.
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
