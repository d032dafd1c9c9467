//! Where stores lie in a state directory: how their directories are made, put in the place of another,
//! and removed when they were never finished. It knows no database.

use nix::unistd::Pid;
use rustix::fs::{CWD, RenameFlags, renameat_with};
#[cfg(feature = "fjall")]
use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The directory of the database inside the state directory.
pub(super) const DIRECTORY: &str = "store";

/// Only the user that makes a directory of a store may use it.
const PRIVATE: u32 = 0o700;

/// What the directory of a new store is called before it is put in its place, before the number of
/// the process.
const FRESH: &str = "store.new-";

/// Where this process makes a store that is to be put into a state directory. What is left of one by a
/// process that is gone is removed by the next one that opens the store there.
pub(super) fn fresh_store_path(dir: &Path) -> PathBuf {
    dir.join(format!("{FRESH}{}", Pid::this()))
}

/// Creates the directories that are missing on the way to `path`, for this user alone; gives those it
/// created.
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

/// Gives access to the files of a database to those with access to its directory, and to no one else: the database
/// makes files as the process makes all of them.
pub(super) fn keep_private(path: &Path) -> io::Result<()> {
    let most = fs::metadata(path)?.mode();
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        let mode = entry.metadata()?.mode();
        if mode & !most & 0o777 != 0 {
            fs::set_permissions(entry.path(), Permissions::from_mode(mode & most & 0o777))?;
        }
        if entry.file_type()?.is_dir() {
            keep_private(&entry.path())?;
        }
    }
    Ok(())
}

/// Removes stores that were never finished: this process's, and those of processes that are gone.
pub(super) fn sweep(dir: &Path, own: &Path) {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    for path in entries.map(|entry| entry.path()) {
        let name = path.file_name().and_then(|name| name.to_str());
        let Some(process) = name.and_then(|name| name.strip_prefix(FRESH)) else {
            continue;
        };
        if path == own || !Path::new("/proc").join(process).exists() {
            // What cannot be removed does no harm.
            let _ = fs::remove_dir_all(path);
        }
    }
}

/// Puts each of two directories in the place of the other, in one step.
pub(super) fn swap(one: &Path, other: &Path) -> io::Result<()> {
    renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).map_err(|errno| match errno {
        Errno::INVAL => io::Error::new(
            io::ErrorKind::Unsupported,
            "this file system cannot exchange two directories in one step",
        ),
        errno => errno.into(),
    })
}

/// Refuses a store that is a link: another one cannot be put where it leads to.
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

/// The first path in a directory with this name and a number where nothing is.
pub(super) fn free_numbered_path(dir: &Path, name: &str) -> PathBuf {
    let mut paths = (1_u32..).map(|number| dir.join(format!("{name}-{number}")));
    let free = paths.find(|path| !path.exists());
    free.unwrap_or_else(|| dir.join(name))
}

/// Puts a new store in the place of another, in one step, and that one to `old`, where nothing is. The
/// old one never lies where a later process takes it for a store that was not finished.
pub(super) fn exchange(dir: &Path, path: &Path, fresh: &Path, old: &Path) -> io::Result<()> {
    fs::rename(fresh, old)?;
    if let Err(error) = swap(path, old) {
        // The new one again: it goes with what was made for it.
        let _ = fs::rename(old, fresh);
        return Err(error);
    }
    File::open(dir)?.sync_all()
}

/// A file in a directory, to be read and written.
pub(super) fn file(path: &Path, name: &str) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .open(path.join(name))
}

/// Every file in a directory and in those below it.
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

/// How many bytes of a file may be other than zero: room that was set aside behind them is not read.
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

/// Makes all that lies in a directory durable, with its name there.
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

/// Makes the names durable that lead to a new store: its directory, the one around it, which may be as
/// young from a start that was cut, and those that were `created` for it.
pub(super) fn sync_names(path: &Path, created: &[PathBuf]) -> io::Result<()> {
    let young = path.ancestors().take(2);
    for directory in young.chain(created.iter().map(PathBuf::as_path)) {
        let parent = directory.parent().filter(|parent| *parent != Path::new(""));
        File::open(parent.unwrap_or(Path::new(".")))?.sync_all()?;
    }
    Ok(())
}

/// Makes the system read a file from the disk again. What a failed sync was to write stays in memory as
/// if it were written: it can be read, the next sync succeeds, and it is gone with the next power cut.
pub(super) fn forget_cached(path: &Path) {
    // macOS takes no such advice.
    #[cfg(not(target_vendor = "apple"))]
    if let Ok(file) = File::open(path) {
        // Advice: where it is not taken, there is nothing better to be done.
        let _ = rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed);
    }
    #[cfg(target_vendor = "apple")]
    let _ = path;
}
