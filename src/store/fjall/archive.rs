//! Refuses files that fjall would not survive reading. A list of tables that is not what was written makes it
//! panic twice, which ends the process; fjall keeps a checksum of it in `current` and does not look at that.
//! A table whose list of sections asks for more memory than there is ends the process, too. The format of both
//! is that of the crate `sfa`: sections, their list, and a trailer.

use super::TABLES;
use crate::store::StoreError;
use crate::store::directory::files;
use crate::store::rows::corrupt;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use xxhash_rust::xxh3::xxh3_128;

/// The magic, the version, the kind of checksum, the checksum, and where the list begins and ends.
const TRAILER: usize = 4 + 1 + 1 + 16 + 8 + 8;

/// An entry of the list has at least so many bytes: where a section begins, its length, that of its name.
const ENTRY: u64 = 8 + 8 + 2;

/// Checks the lists of tables, and of sections, of a database.
pub(super) fn check_archives(folder: &Path) -> Result<(), StoreError> {
    let tables = fs::read_dir(folder.join(TABLES)).into_iter().flatten();
    for table in tables {
        check_plain(folder, &table.map_err(StoreError::Io)?.path())?;
    }
    for file in files(folder).map_err(StoreError::Io)? {
        check_plain(folder, &file)?;
        let fits = match file.file_name().is_some_and(|name| name == "current") {
            true => is_current(&file),
            false => File::open(&file).and_then(|file| fits(&file)),
        };
        if !fits.map_err(StoreError::Io)? {
            let name = file.strip_prefix(folder).unwrap_or(&file);
            let what = format!("`{}` is not what was written", name.display());
            return Err(corrupt(&what));
        }
    }
    Ok(())
}

/// Refuses what is neither a file nor a folder, such as a link: fjall ends the process.
pub(super) fn check_plain(folder: &Path, file: &Path) -> Result<(), StoreError> {
    let about = fs::symlink_metadata(file).map_err(StoreError::Io)?;
    let name = file.strip_prefix(folder).unwrap_or(file);
    match about.is_file() {
        true => Ok(()),
        false => Err(corrupt(&format!("`{}` is no plain file", name.display()))),
    }
}

/// Whether the newest list of tables is the one of which `current` has the checksum.
fn is_current(file: &Path) -> io::Result<bool> {
    let current = fs::read(file)?;
    let Some((number, rest)) = current.split_first_chunk() else {
        return Ok(false);
    };
    let Some((checksum, [0])) = rest.split_first_chunk() else {
        return Ok(false);
    };
    let list = file.with_file_name(format!("v{}", u64::from_le_bytes(*number)));
    match fs::read(list) {
        Ok(list) => Ok(xxh3_128(&list) == u128::from_le_bytes(*checksum)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Whether the list has room for as many entries as it says. What has no trailer is no such file.
fn fits(file: &File) -> io::Result<bool> {
    let mut trailer = [0; TRAILER];
    let Some(at) = file.metadata()?.len().checked_sub(TRAILER as u64) else {
        return Ok(true);
    };
    file.read_exact_at(&mut trailer, at)?;
    let [b'S', b'F', b'A', b'!', ..] = trailer else {
        return Ok(true);
    };
    let [.., a, b, c, d, e, f, g, h, _, _, _, _, _, _, _, _] = trailer;
    let list = u64::from_le_bytes([a, b, c, d, e, f, g, h]);
    let Some(room) = at.checked_sub(list).filter(|room| *room >= 8) else {
        return Ok(false);
    };
    let mut head = [0; 8];
    file.read_exact_at(&mut head, list)?;
    let [.., a, b, c, d] = head;
    Ok(u64::from(u32::from_le_bytes([a, b, c, d])) * ENTRY <= room)
}
