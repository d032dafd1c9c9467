//! The rows (items or events) of `paginate` and `events` with `--to -`.
//! A run stores its rows in a file of the state directory. The file is printed when the run has succeeded. The same
//! command line may be executed by several processes at the same time. Each process prints the file, and the last one
//! removes it.

use super::file::literal;
use crate::cli::args::Global;
use crate::cli::exit::Failure;
use crate::cli::output;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use windlass_engine::{ROWS, ROWS_LOCK, run_of_rows};

/// The file with the rows of a command line, which are printed to standard output.
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

    /// Prints the rows of a run. Removes them if no other process may still print them.
    pub fn print(self, run: &str) -> Result<(), Failure> {
        let rows = self.folder.join(run);
        // If none of the pages has rows, the file does not exist.
        let printed = match rows.try_exists().map_err(Failure::Machine)? {
            true => output::print_file(&rows),
            false => Ok(()),
        };
        // The result is ignored: rows that remain are removed by the next command, or together with the run.
        let _ = self.remove();
        printed
    }

    /// Removes the rows that were printed, unless another process holds the lock.
    /// The rows of a run that did not succeed are retained.
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

/// Returns the path of the file for the rows that are printed at the end of a run.
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
