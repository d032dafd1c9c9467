//! Files that actions write: opened so that none of the engine's own store is among them, however it
//! is called, and so that a new one's name outlasts a power cut. It never writes into a file.

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Opens a file to write, making it when it is not there; none when it is one of the store in the
/// directory `state`.
pub(super) fn open(path: &Path, state: Option<&Path>) -> io::Result<Option<File>> {
    let store = state.map(Store::of).unwrap_or_default();
    let fresh = !path.exists();
    let folder = folder_of(path);
    if fresh && store.holds_folder(&std::fs::canonicalize(folder)?) {
        return Ok(None);
    }
    let mut options = OpenOptions::new();
    options.create(true).read(true).write(true).truncate(false);
    let file = options.open(path)?;
    let real = std::fs::canonicalize(path)?;
    if store.holds_folder(folder_of(&real)) || store.holds(&file.metadata()?) {
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

/// What a file is, however it is called.
type Identity = (u64, u64);

fn identity(of: &Metadata) -> Identity {
    (of.dev(), of.ino())
}

/// The directories of a store: its own, and those that repairs left.
#[derive(Default)]
struct Store {
    folders: Vec<Identity>,
    files: Vec<Identity>,
}

impl Store {
    fn of(state: &Path) -> Self {
        let mut found = Self::default();
        for entry in std::fs::read_dir(state).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if name != "store" && !name.starts_with("store.") {
                continue;
            }
            let path = entry.path();
            let inside = std::fs::read_dir(&path).into_iter().flatten().flatten();
            let files = inside.filter_map(|file| file.metadata().ok());
            found.files.extend(files.map(|file| identity(&file)));
            found
                .folders
                .extend(path.metadata().map(|of| identity(&of)));
        }
        found
    }

    fn holds(&self, file: &Metadata) -> bool {
        self.files.contains(&identity(file))
    }

    /// Whether it is one of its folders, or below one.
    fn holds_folder(&self, real: &Path) -> bool {
        let mut all = real.ancestors().filter_map(|folder| folder.metadata().ok());
        all.any(|folder| self.folders.contains(&identity(&folder)))
    }
}
