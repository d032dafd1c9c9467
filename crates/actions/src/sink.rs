//! Files that actions write: opened so that none of the engine's own store is among them, however it
//! is called, and so that a new one's name outlasts a power cut. It never writes into a file.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use windlass_inode::Inode;

/// Opens a file to write, making it when it is not there and `may_make`; none when it is one of the
/// store in the directory `state`.
pub(super) fn open(path: &Path, state: Option<&Path>, may_make: bool) -> io::Result<Option<File>> {
    let store = state.map(Store::of).unwrap_or_default();
    let fresh = !path.exists();
    let folder = folder_of(path);
    if fresh && store.holds_folder(&std::fs::canonicalize(folder)?) {
        return Ok(None);
    }
    let mut options = OpenOptions::new();
    options.create(may_make).truncate(false);
    options.read(true).write(true);
    let file = options.open(path)?;
    let real = std::fs::canonicalize(path)?;
    if store.holds_folder(folder_of(&real)) || store.holds(&file)? {
        if fresh {
            // Made in there through a link that led to nothing.
            std::fs::remove_file(real)?;
        }
        return Ok(None);
    }
    Ok(Some(file))
}

/// Makes the name of a file durable.
pub(super) fn sync_name(real: &Path) -> io::Result<()> {
    File::open(folder_of(real))?.sync_all()
}

fn folder_of(path: &Path) -> &Path {
    let folder = path.parent().filter(|parent| *parent != Path::new(""));
    folder.unwrap_or(Path::new("."))
}

/// A store and those that repairs left: all of their folders and files, however deep.
#[derive(Default)]
struct Store {
    folders: Vec<Inode>,
    files: Vec<PathBuf>,
}

impl Store {
    fn of(state: &Path) -> Self {
        let mut found = Self::default();
        for entry in std::fs::read_dir(state).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if name == "store" || name.starts_with("store.") {
                found.add(entry.path());
            }
        }
        found
    }

    /// A folder with all that is in it; a link is the file that it leads to.
    fn add(&mut self, top: PathBuf) {
        let mut open = vec![top];
        while let Some(folder) = open.pop() {
            self.folders.extend(Inode::at(&folder));
            for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
                match entry.file_type() {
                    Ok(kind) if kind.is_dir() => open.push(entry.path()),
                    _ => self.files.push(entry.path()),
                }
            }
        }
    }

    /// Whether an open file is one of its files under another name.
    fn holds(&self, file: &File) -> io::Result<bool> {
        let inode = Inode::of(file)?;
        let is_it = |path: &PathBuf| Inode::at(path).is_ok_and(|found| found == inode);
        Ok(self.files.iter().any(is_it))
    }

    /// Whether it is one of its folders, or below one.
    fn holds_folder(&self, real: &Path) -> bool {
        let mut all = real.ancestors().filter_map(|folder| Inode::at(folder).ok());
        all.any(|folder| self.folders.contains(&folder))
    }
}
