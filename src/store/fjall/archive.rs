//! Refuses a file of tables that asks for more memory than it can fill, before fjall reads it: what cannot be
//! reserved ends the process. The format is that of the crate `sfa`: sections, their list, and a trailer.

use crate::store::StoreError;
use crate::store::directory::files;
use crate::store::rows::corrupt;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// The magic, the version, the kind of checksum, the checksum, and where the list begins and ends.
const TRAILER: usize = 4 + 1 + 1 + 16 + 8 + 8;

/// An entry of the list has at least so many bytes: where a section begins, its length, that of its name.
const ENTRY: u64 = 8 + 8 + 2;

/// Checks the list of every file of a database that has one.
pub(super) fn check_archives(folder: &Path) -> Result<(), StoreError> {
    for file in files(folder).map_err(StoreError::Io)? {
        let fits = File::open(&file).and_then(|file| fits(&file));
        if !fits.map_err(StoreError::Io)? {
            let name = file.strip_prefix(folder).unwrap_or(&file);
            let what = format!("`{}` is not what was written", name.display());
            return Err(corrupt(&what));
        }
    }
    Ok(())
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
