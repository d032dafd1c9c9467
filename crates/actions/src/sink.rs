//! Opens files that actions write. A file of the engine's own store is refused, whichever path leads to it. The name of
//! a new file can be made durable. This module never writes to the content of a file.

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::time::Duration;
use windlass_inode::Inode;
use windlass_model::model::{Fault, fault_kind};

/// Maximum number of symbolic links that are followed to a file that does not exist yet.
const MAX_LINKS: usize = 40;

/// Maximum number of tries to lock a file.
const TRIES: u32 = 100;

const PAUSE: Duration = Duration::from_millis(50);

/// Opens a file for writing. If the file does not exist, creates it if `may_make` is true. Returns `None` if the file
/// is in the store of the state directory `state`.
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
            // The path was a link to a missing file in the store, so the file was just created there. Remove it.
            std::fs::remove_file(real)?;
        }
        return Ok(None);
    }
    Ok(Some(file))
}

/// Makes the fault of an action whose file [`open`] refuses.
pub(super) fn in_store(shown: &str) -> Fault {
    let message = format!("{shown} is in the engine's own store: nothing was written");
    Fault::new(fault_kind::DENIED, message)
}

/// Removes a file, if it is there.
pub(super) fn remove_if_there(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Makes the name of a file durable, by a sync of its folder.
pub(super) fn sync_name(real: &Path) -> io::Result<()> {
    File::open(folder_of(real))?.sync_all()
}

/// Returns the path of the file that a path leads to, through all links. The file need not exist.
pub(super) fn target(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
        match std::fs::canonicalize(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Ok(found) if !found.is_file() => {
                let what = "it is not a file that can be replaced";
                return Err(io::Error::new(ErrorKind::InvalidInput, what));
            }
            known => return known,
        }
        let folder = path.parent().unwrap_or(Path::new("/")).canonicalize()?;
        match std::fs::read_link(&path) {
            Ok(link) => path = folder.join(link),
            Err(_) => {
                let name = path.file_name().ok_or(ErrorKind::InvalidInput)?;
                return Ok(folder.join(name));
            }
        }
    }
    Err(io::Error::other("too many symbolic links"))
}

fn folder_of(path: &Path) -> &Path {
    let folder = path.parent().filter(|parent| *parent != Path::new(""));
    folder.unwrap_or(Path::new("."))
}

/// An open file. It is locked if the file system supports locks.
pub(super) enum Locked {
    Alone(Flock<File>),
    Open(File),
}

impl Locked {
    /// Waits until no other process has the file locked. Blocks for up to 5 s.
    ///
    /// # Errors
    /// Returns a transient fault if another process has the file locked for longer.
    pub(super) fn new(file: File, shown: &str) -> Result<Self, Fault> {
        let mut file = file;
        for _ in 0..TRIES {
            match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
                Ok(locked) => return Ok(Self::Alone(locked)),
                Err((open, Errno::EWOULDBLOCK | Errno::EINTR)) => {
                    file = open;
                    std::thread::sleep(PAUSE);
                }
                // The file system does not support locks, so continue without one.
                Err((open, _)) => return Ok(Self::Open(open)),
            }
        }
        let message = format!("{shown} is locked by another process");
        Err(Fault::new(fault_kind::INPUT, message).transient())
    }
}

impl Deref for Locked {
    type Target = File;

    fn deref(&self) -> &File {
        match self {
            Self::Alone(file) => file,
            Self::Open(file) => file,
        }
    }
}

impl DerefMut for Locked {
    fn deref_mut(&mut self) -> &mut File {
        match self {
            Self::Alone(file) => file,
            Self::Open(file) => file,
        }
    }
}

/// The folders and files of a store, and of the old stores that repairs left. Folders are compared by inode.
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

    /// Adds a folder with everything in it. For a link, adds the file that the link leads to.
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

    /// Returns true if an open file is a file of the store under any name.
    fn holds(&self, file: &File) -> io::Result<bool> {
        let inode = Inode::of(file)?;
        let is_it = |path: &PathBuf| Inode::at(path).is_ok_and(|found| found == inode);
        Ok(self.files.iter().any(is_it))
    }

    /// Returns true if the path is a folder of the store, or below one.
    fn holds_folder(&self, real: &Path) -> bool {
        let mut all = real.ancestors().filter_map(|folder| Inode::at(folder).ok());
        all.any(|folder| self.folders.contains(&folder))
    }
}
