//! Repairs a store on disk: finds a way to open a copy of the damaged database, lets `salvage`
//! make a new store of it, and puts that in its place. The damaged one is kept beside it, as it was
//! found; nothing is ever written to it.

use super::memory::Memory;
use super::salvage::{Salvaged, read_all, rebuild};
use super::sled::{DIRECTORY, Sled};
use super::{Checkup, StoreError};
use nix::fcntl::{AT_FDCWD, Flock, FlockArg, RenameFlags, renameat2};
use nix::unistd::Pid;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// What a repair came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Repaired {
    /// What is in the new store, and what is not.
    pub salvaged: Salvaged,
    /// Where the damaged one is.
    pub old: PathBuf,
}

/// How a copy is made ready to be opened.
#[derive(Clone, Copy, Debug)]
enum Try {
    /// As it is.
    Plain,
    /// Without the index of the log and with a new configuration: both are made anew.
    WithoutIndex,
    /// Without the last so many segments of the log too.
    Shorter(usize),
}

const TRIES: [Try; 9] = [
    Try::Plain,
    Try::WithoutIndex,
    Try::Shorter(1),
    Try::Shorter(2),
    Try::Shorter(3),
    Try::Shorter(4),
    Try::Shorter(6),
    Try::Shorter(10),
    Try::Shorter(20),
];

/// Makes a new store of what can be read of the one in a state directory.
///
/// # Errors
/// [`StoreError::Locked`] when a process has it, [`StoreError::Corrupt`] when nothing of it can be
/// read, [`StoreError::Io`] when there is no room for a copy: the store is as it was.
pub fn repair(dir: &Path) -> Result<Repaired, StoreError> {
    let path = dir.join(DIRECTORY);
    let log = File::open(path.join("db")).map_err(StoreError::Io)?;
    // The lock that the database takes: held until the new store is in place.
    let _alone =
        Flock::lock(log, FlockArg::LockExclusiveNonblock).map_err(|_| StoreError::Locked {
            path: dir.display().to_string(),
        })?;
    let number = Pid::this();
    let work = dir.join(format!("store.repair-{number}"));
    let fresh = dir.join(format!("store.repaired-{number}"));
    let repaired = try_all(&path, &work, &fresh).and_then(|salvaged| {
        let old = exchange(dir, &path, &fresh).map_err(StoreError::Io)?;
        Ok(Repaired { salvaged, old })
    });
    // What cannot be removed is in nobody's way.
    let _ = fs::remove_dir_all(&work);
    let _ = fs::remove_dir_all(&fresh);
    repaired
}

/// Opens copies until one gives all there can be, and writes the best into a new database.
fn try_all(path: &Path, work: &Path, fresh: &Path) -> Result<Salvaged, StoreError> {
    let acknowledged = Sled::acknowledged(path);
    let conf = configuration(work)?;
    let mut best: Option<(usize, Memory, Checkup)> = None;
    let mut reason = String::from("nothing of it can be read");
    for how in TRIES {
        let some = best.as_ref().is_some_and(|(kept, ..)| *kept > 0);
        if some && matches!(how, Try::Shorter(_)) {
            break;
        }
        prepare(path, work, how, &conf).map_err(StoreError::Io)?;
        let mut told = Checkup::default();
        let rows = match Sled::raw(work) {
            Ok(db) => read_all(&db, &mut told),
            Err(error) => {
                reason = error.to_string();
                continue;
            }
        };
        let trial = rebuild(rows.clone(), acknowledged, &Memory::default(), told.clone())?;
        let (kept, perfect) = (trial.kept.len(), !trial.older && trial.lost.is_empty());
        if best.as_ref().is_none_or(|(most, ..)| kept > *most) {
            best = Some((kept, rows, told));
        }
        if perfect {
            break;
        }
    }
    let Some((_, rows, told)) = best else {
        return Err(StoreError::Corrupt { what: reason });
    };
    let _ = fs::remove_dir_all(fresh);
    let db = Sled::raw(fresh)?;
    let salvaged = rebuild(rows, acknowledged, &db, told)?;
    db.finish(fresh).map_err(StoreError::Io)?;
    Ok(salvaged)
}

/// Copies a database.
fn prepare(path: &Path, work: &Path, how: Try, conf: &[u8]) -> io::Result<()> {
    let _ = fs::remove_dir_all(work);
    copy(path, work)?;
    let segments = match how {
        Try::Plain => return Ok(()),
        Try::WithoutIndex => 0,
        Try::Shorter(segments) => segments,
    };
    for entry in fs::read_dir(work)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        if name.is_some_and(|name| name.starts_with("snap.")) {
            fs::remove_file(path)?;
        }
    }
    fs::write(work.join("conf"), conf)?;
    shorten(&work.join("db"), segments)
}

/// The configuration of a database that was just made.
fn configuration(place: &Path) -> Result<Vec<u8>, StoreError> {
    drop(Sled::raw(place)?);
    fs::read(place.join("conf")).map_err(StoreError::Io)
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let to = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &to)?;
        } else {
            fs::copy(entry.path(), to)?;
        }
    }
    Ok(())
}

/// Takes the last segments out of a log. Each begins with a checksum, its place in the log, and
/// how far the log was whole when it was begun.
fn shorten(log: &Path, count: usize) -> io::Result<()> {
    const HEADER: usize = 20;
    let file = OpenOptions::new().read(true).write(true).open(log)?;
    let length = file.metadata()?.len();
    let mut found: Vec<(u64, u64)> = Vec::new();
    let step = Sled::SEGMENT as u64;
    let mut at = 0;
    while at + HEADER as u64 <= length {
        let mut header = [0; HEADER];
        file.read_exact_at(&mut header, at)?;
        if let Some((crc, rest)) = header.split_first_chunk::<4>()
            && crc32fast::hash(rest) == u32::from_le_bytes(*crc) ^ u32::MAX
            && let Some((place, _)) = rest.split_first_chunk::<8>()
        {
            found.push((u64::from_le_bytes(*place) ^ (u64::MAX >> 1), at));
        }
        at += step;
    }
    found.sort_unstable();
    for (_, at) in found.into_iter().rev().take(count) {
        file.write_all_at(&[0; HEADER], at)?;
    }
    Ok(())
}

/// Puts the new store in its place, in one step; gives where the old one is.
fn exchange(dir: &Path, path: &Path, fresh: &Path) -> io::Result<PathBuf> {
    let mut number = 1_u32;
    let old = loop {
        let old = dir.join(format!("store.damaged-{number}"));
        if !old.exists() {
            break old;
        }
        number += 1;
    };
    renameat2(
        AT_FDCWD,
        path,
        AT_FDCWD,
        fresh,
        RenameFlags::RENAME_EXCHANGE,
    )?;
    fs::rename(fresh, &old)?;
    File::open(dir)?.sync_all()?;
    Ok(old)
}
