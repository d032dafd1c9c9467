//! Files that actions write: opened so that none of the engine's own store is among them, however it
//! is called, and so that a new one's name outlasts a power cut. It never writes into a file.

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::time::Duration;
use windlass_inode::Inode;
use windlass_model::model::{Fault, fault_kind};

/// Maximum number of links followed to a file that is not there yet.
const MAX_LINKS: usize = 40;

/// So often a file that another process writes to is tried again.
const TRIES: u32 = 100;

const PAUSE: Duration = Duration::from_millis(50);

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

/// The fault of an action whose file [`open`] refuses.
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

/// Makes the name of a file durable.
pub(super) fn sync_name(real: &Path) -> io::Result<()> {
    File::open(folder_of(real))?.sync_all()
}

/// The file that a path leads to, through all links, whether it is there or not.
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

/// An open file, locked where that is possible.
pub(super) enum Locked {
    Alone(Flock<File>),
    Open(File),
}

impl Locked {
    /// The file, once no other process writes to it. Blocks for up to 5 s.
    ///
    /// # Errors
    /// Transient, if another process has it locked for longer.
    pub(super) fn new(file: File, shown: &str) -> Result<Self, Fault> {
        let mut file = file;
        for _ in 0..TRIES {
            match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
                Ok(locked) => return Ok(Self::Alone(locked)),
                Err((open, Errno::EWOULDBLOCK | Errno::EINTR)) => {
                    file = open;
                    std::thread::sleep(PAUSE);
                }
                // A file system without locks.
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
