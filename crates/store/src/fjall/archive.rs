//! Refuses files that would make fjall end the process. On a damaged list of tables, fjall panics in two cases. (The
//! list's checksum is in the file `current`, but fjall does not verify it.) If the list of sections in a table claims
//! more memory than the machine has, the process ends as well. Both kinds of file have the format of the crate `sfa`:
//! sections, a list of the sections, and a trailer.

use crate::StoreError;
use crate::directory::files;
use crate::rows::corrupt;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::xxh3_128;

/// The content of the file `version`.
const VERSION: &[u8] = b"FJL\x03";

/// The folders of fjall's own keyspace and of the store's.
const KEYSPACES: [&str; 2] = ["0", "1"];

/// The file that names the newest list of tables.
pub(super) const LIST: &str = "current";

/// Size of the trailer in bytes. Its parts: magic, version, kind of checksum, checksum, offset and length of the list.
const TRAILER: usize = 4 + 1 + 1 + 16 + 8 + 8;

/// Minimum size of an entry in the list of sections, in bytes: offset of the section, its length, and the length of its
/// name.
const ENTRY: u64 = 8 + 8 + 2;

/// Refuses a folder in which fjall would make a new database, remove files, or end the process. The causes are missing
/// files, unexpected files, and damaged lists of tables or sections.
pub(super) fn check_archives(folder: &Path) -> Result<(), StoreError> {
    let missing = |name: &str| corrupt(&format!("`{name}` is missing"));
    match fs::read(folder.join("version")).map_err(StoreError::Io) {
        Ok(version) if version == VERSION => {}
        Ok(_) => return Err(corrupt("`version` is not what was written")),
        Err(_) => return Err(missing("version")),
    }
    let keyspaces = folder.join("keyspaces");
    for entry in fs::read_dir(&keyspaces).map_err(|_| missing("keyspaces"))? {
        let entry = entry.map_err(StoreError::Io)?;
        let (name, is_file) = (
            entry.file_name(),
            entry.file_type().map_err(StoreError::Io)?.is_file(),
        );
        if !is_file && !KEYSPACES.iter().any(|own| name == *own) {
            let name = name.display();
            let what = format!(
                "`keyspaces/{name}` is not of this store, and would be removed: move it elsewhere"
            );
            return Err(corrupt(&what));
        }
    }
    for own in KEYSPACES {
        let list = keyspaces.join(own).join(LIST);
        if !list.is_file() {
            return Err(missing(&format!("keyspaces/{own}/{LIST}")));
        }
        let tables = fs::read_dir(keyspaces.join(own).join("tables"));
        for table in tables.into_iter().flatten() {
            check_plain(folder, &table.map_err(StoreError::Io)?.path())?;
        }
    }
    for file in files(folder).map_err(StoreError::Io)? {
        check_plain(folder, &file)?;
        let fits = match file.file_name().is_some_and(|name| name == LIST) {
            true => newest_list(&file).map(|list| list.is_some()),
            false => fits(&file),
        };
        if !fits.map_err(StoreError::Io)? {
            let name = file.strip_prefix(folder).unwrap_or(&file);
            let what = format!("`{}` is not what was written", name.display());
            return Err(corrupt(&what));
        }
    }
    Ok(())
}

/// Refuses an entry that is neither a file nor a folder, such as a link: it would make fjall end the process.
pub(super) fn check_plain(folder: &Path, file: &Path) -> Result<(), StoreError> {
    let about = fs::symlink_metadata(file).map_err(StoreError::Io)?;
    let name = file.strip_prefix(folder).unwrap_or(file);
    match about.is_file() {
        true => Ok(()),
        false => Err(corrupt(&format!(
            "`{}` is not a regular file",
            name.display()
        ))),
    }
}

/// Returns the newest list of tables if its checksum is the one in the file `current`.
pub(super) fn newest_list(file: &Path) -> io::Result<Option<PathBuf>> {
    let current = fs::read(file)?;
    let Some((number, rest)) = current.split_first_chunk() else {
        return Ok(None);
    };
    let Some((checksum, [0])) = rest.split_first_chunk() else {
        return Ok(None);
    };
    let list = file.with_file_name(format!("v{}", u64::from_le_bytes(*number)));
    match fs::read(&list) {
        Ok(read) => Ok((xxh3_128(&read) == u128::from_le_bytes(*checksum)).then_some(list)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns true if the file is large enough for the number of list entries that it claims. Also returns true if it has
/// no trailer.
pub(super) fn fits(file: &Path) -> io::Result<bool> {
    let file = File::open(file)?;
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
