//! The directories of stores inside a state directory: creates them, exchanges them, and removes unfinished ones. This
//! file does not depend on a database.

use nix::unistd::{Pid, Uid};
use rustix::fs::{CWD, Dir, Mode, OFlags, RenameFlags, openat, renameat_with};
#[cfg(feature = "fjall")]
use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

/// The directory of the database inside the state directory.
pub(super) const DIRECTORY: &str = "store";

/// The mode of a store's directories: only the user that created them has access.
const PRIVATE: u32 = 0o700;

/// Prefix of the name of a new store's directory until it is moved to its final path. The process id follows the
/// prefix.
const FRESH: &str = "store.new-";

/// Returns the temporary path where this process creates a store in a state directory. If this process ends before the
/// store is finished, the next process that opens the store removes the directory at this path.
pub(super) fn fresh_store_path(dir: &Path) -> PathBuf {
    dir.join(format!("{FRESH}{}", Pid::this()))
}

/// Creates the missing directories of `path`, for this user only. Returns the directories that it created.
pub(super) fn create_directories(path: &Path) -> io::Result<Vec<PathBuf>> {
    let missing: Vec<PathBuf> = path
        .ancestors()
        .take_while(|directory| *directory != Path::new("") && !directory.exists())
        .map(Path::to_path_buf)
        .collect();
    let mut builder = DirBuilder::new();
    builder.recursive(true).mode(PRIVATE).create(path)?;
    Ok(missing)
}

/// Restricts the modes of a database's files to those users that may access the database's directory. Otherwise the
/// files have the default mode of the process, with which the database creates them.
pub(super) fn restrict_modes(path: &Path) -> io::Result<()> {
    let most = fs::metadata(path)?.mode();
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        let mode = match entry.metadata() {
            // The database removes its old files in the background.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            found => found?.mode(),
        };
        if mode & !most & 0o777 != 0 {
            fs::set_permissions(entry.path(), Permissions::from_mode(mode & most & 0o777))?;
        }
        if entry.file_type()?.is_dir() {
            restrict_modes(&entry.path())?;
        }
    }
    Ok(())
}

/// Gives the store in a state directory to the owner of the directory, if root has created files of it.
pub(super) fn give_to_owner(dir: &Path) {
    give_entry_to_owner(dir, DIRECTORY.as_ref());
}

/// Gives an entry of a directory, and everything in it, to the owner of the directory, if root has created it. Otherwise
/// the owner could not open it.
pub fn give_entry_to_owner(dir: &Path, entry: &OsStr) {
    if !Uid::effective().is_root() {
        return;
    }
    // A file that stays root's is reported when the store is opened.
    let _ = File::open(dir).and_then(|folder| {
        let about = folder.metadata()?;
        match about.uid() {
            0 => Ok(()),
            _ => give(&folder, entry, &about),
        }
    });
}

/// Changes the owner of an entry of a folder, and of everything in it. Follows no link: the folder's owner could have
/// made it, to own files of root.
fn give(folder: &File, name: &OsStr, owner: &Metadata) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let entry = File::from(openat(folder, name, flags, Mode::empty())?);
    let about = entry.metadata()?;
    if about.is_dir() {
        for inside in Dir::read_from(&entry)? {
            let inside = inside?;
            let name = OsStr::from_bytes(inside.file_name().to_bytes());
            if name != "." && name != ".." {
                give(&entry, name, owner)?;
            }
        }
    }
    match about.uid() == owner.uid() || about.is_file() && about.nlink() > 1 {
        true => Ok(()),
        false => fchown(&entry, Some(owner.uid()), Some(owner.gid())),
    }
}

/// The state directory of an open store. When this is dropped, the store belongs to the owner of the directory.
pub(super) struct OwnedDirectory(pub PathBuf);

impl Drop for OwnedDirectory {
    fn drop(&mut self) {
        give_to_owner(&self.0);
    }
}

/// Removes unfinished stores of this process and of processes that have ended.
pub(super) fn remove_unfinished_stores(dir: &Path, own: &Path) {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    for path in entries.map(|entry| entry.path()) {
        let name = path.file_name().and_then(|name| name.to_str());
        let Some(process) = name.and_then(|name| name.strip_prefix(FRESH)) else {
            continue;
        };
        if path == own || !Path::new("/proc").join(process).exists() {
            // If the removal fails, the directory that remains does no harm.
            let _ = fs::remove_dir_all(path);
        }
    }
}

/// Exchanges two directories in one step.
pub(super) fn swap(one: &Path, other: &Path) -> io::Result<()> {
    renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).map_err(|errno| match errno {
        Errno::INVAL => io::Error::new(
            io::ErrorKind::Unsupported,
            "this file system cannot exchange two directories in one step",
        ),
        errno => errno.into(),
    })
}

/// Refuses a store that is a symbolic link, because a link's target cannot be exchanged with another directory.
pub(super) fn check_not_symlink(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path)?.is_symlink() {
        false => Ok(()),
        true => Err(io::Error::new(
            io::ErrorKind::Unsupported,
            format!(
                "`{}` is a link: put the folder there that it leads to",
                path.display()
            ),
        )),
    }
}

/// Returns a path in the directory at which nothing exists: `name` with the lowest free number, from 1.
pub(super) fn free_numbered_path(dir: &Path, name: &str) -> PathBuf {
    let mut paths = (1_u32..).map(|number| dir.join(format!("{name}-{number}")));
    let free = paths.find(|path| !path.exists());
    free.unwrap_or_else(|| dir.join(name))
}

/// Moves a new store to `path` and the old store to `old`, in one step. Nothing must be at `old`. The old store is
/// never at a path where a later process would remove it as an unfinished store.
pub(super) fn exchange(dir: &Path, path: &Path, fresh: &Path, old: &Path) -> io::Result<()> {
    fs::rename(fresh, old)?;
    if let Err(error) = swap(path, old) {
        // Move the new store back to its temporary path, which is removed later.
        let _ = fs::rename(old, fresh);
        return Err(error);
    }
    File::open(dir)?.sync_all()
}

/// Opens a file in a directory for reading and writing.
pub(super) fn file(path: &Path, name: &str) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .open(path.join(name))
}

/// Lists all files in a directory and its subdirectories.
#[cfg(feature = "fjall")]
pub(super) fn files(path: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        match entry.file_type()?.is_dir() {
            true => found.extend(files(&entry.path())?),
            false => found.push(entry.path()),
        }
    }
    Ok(found)
}

/// Returns the length of a file in bytes, without the space at its end that was reserved and not written.
#[cfg(feature = "fjall")]
pub(super) fn written_bytes(file: &File) -> io::Result<u64> {
    let mut end = 0;
    loop {
        let data = match seek(file, SeekFrom::Data(end)) {
            Err(Errno::NXIO) => return Ok(end),
            data => data?,
        };
        end = seek(file, SeekFrom::Hole(data))?;
    }
}

/// Makes all files in a directory and their names durable.
pub(super) fn sync_files(path: &Path) -> io::Result<()> {
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        match entry.file_type()?.is_dir() {
            true => sync_files(&entry.path())?,
            false => File::open(entry.path())?.sync_all()?,
        }
    }
    File::open(path)?.sync_all()
}

/// Makes the names that lead to a new store durable: those of its directory, of the parent directory, and of the
/// `created` directories. The parent may have been created by an earlier start that was interrupted.
pub(super) fn sync_names(path: &Path, created: &[PathBuf]) -> io::Result<()> {
    let young = path.ancestors().take(2);
    for directory in young.chain(created.iter().map(PathBuf::as_path)) {
        let parent = directory.parent().filter(|parent| *parent != Path::new(""));
        File::open(parent.unwrap_or(Path::new(".")))?.sync_all()?;
    }
    Ok(())
}

/// Makes the system read a file from the disk again. After a failed sync, the system holds the unwritten data in memory
/// as if it were written. It can be read, and the next sync succeeds, but a power cut loses it.
pub(super) fn forget_cached(path: &Path) {
    // macOS does not have `fadvise`.
    #[cfg(not(target_vendor = "apple"))]
    if let Ok(file) = File::open(path) {
        // This is only advice to the system. If the system ignores it, nothing else can be done.
        let _ = rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed);
    }
    #[cfg(target_vendor = "apple")]
    let _ = path;
}
