//! The rows of `paginate` and `events` with `--to -`. A run stores them in a file of the state directory, which is
//! printed when the run has succeeded. The same line may run in several processes at once. Each process prints the
//! file, and the last one removes it.

use super::file::literal;
use crate::cli::args::Global;
use crate::cli::exit::Failure;
use crate::cli::output;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use windlass_engine::{ROWS, ROWS_LOCK, run_of_rows};

/// The rows of a line that go to standard output.
pub(super) struct StdoutRows {
    folder: PathBuf,
    lock: File,
}

impl StdoutRows {
    pub fn new(global: &Global) -> Result<Self, Failure> {
        let folder = folder(global)?;
        let opened = fs::create_dir_all(&folder).and_then(|()| {
            let mut options = OpenOptions::new();
            let options = options.create(true).truncate(false).write(true);
            options.open(folder.join(ROWS_LOCK))
        });
        let lock = opened.map_err(Failure::Machine)?;
        lock.lock_shared().map_err(Failure::Machine)?;
        Ok(Self { folder, lock })
    }

    /// Prints the rows of a run, and removes them if no other process can still print them.
    pub fn print(self, run: &str) -> Result<(), Failure> {
        let rows = self.folder.join(run);
        // If no page has rows, the file does not exist.
        let printed = match rows.try_exists().map_err(Failure::Machine)? {
            true => output::print_file(&rows),
            false => Ok(()),
        };
        // Rows that remain are removed by the next line, or with the run.
        let _ = self.remove();
        printed
    }

    /// Removes rows that are printed, unless another process holds the lock. Rows of an unsuccessful run remain.
    fn remove(&self) -> io::Result<()> {
        self.lock.unlock()?;
        if self.lock.try_lock().is_err() {
            return Ok(());
        }
        for entry in fs::read_dir(&self.folder)? {
            let name = entry?.file_name();
            let is_whole = name.to_str().is_some_and(|name| run_of_rows(name) == name);
            if is_whole && name != ROWS_LOCK {
                fs::remove_file(self.folder.join(name))?;
            }
        }
        Ok(())
    }
}

/// Returns the path at which a run stores the rows that are printed at its end.
pub(super) fn path(global: &Global) -> Result<String, Failure> {
    if global.server.is_some() || global.engine.is_some() {
        let what = "`--to -` needs a local store: write to a file";
        return Err(Failure::Usage(what.to_owned()));
    }
    let folder = literal(&folder(global)?.display().to_string());
    Ok(format!("{folder}/@{{workflow().run.name}}"))
}

fn folder(global: &Global) -> Result<PathBuf, Failure> {
    let state: &Path = &global.state;
    let state = std::path::absolute(state).map_err(Failure::Machine)?;
    Ok(state.join(ROWS))
}
