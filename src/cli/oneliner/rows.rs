//! The rows (items or events) of `paginate` and `events` with `--to -`.
//! A run stores its rows in a file of the state directory. The file is printed when the run has succeeded. The same
//! command line may be executed by several processes at the same time. Each process prints the file, and the last one
//! removes it. Rows that were not printed remain until the run is pruned.

use super::file::literal;
use crate::cli::args::Global;
use crate::cli::exit::Failure;
use crate::cli::output::{self, Screen};
use crate::cli::signals::while_writing;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use windlass_engine::{PRINTED_ROWS, ROWS, ROWS_LOCK};

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

    /// Prints the rows of a run. Removes them if all were printed, and no other process may still print them.
    pub fn print(self, screen: Screen, run: &str) -> Result<(), Failure> {
        let rows = self.folder.join(run);
        // If none of the pages has rows, the file does not exist.
        if !rows.try_exists().map_err(Failure::Machine)? {
            return Ok(());
        }
        match while_writing(screen, || output::print_file(&rows)) {
            // The result is ignored: rows that remain are removed together with the run.
            Ok(true) => drop(self.remove(run)),
            Ok(false) => screen.say(format!(
                "note: the output was closed before its end; all rows are in {}",
                rows.display()
            )),
            Err(Failure::Output(error)) => return Err(Failure::UnprintedRows { error, rows }),
            Err(failure) => return Err(failure),
        }
        Ok(())
    }

    /// Removes the rows that were printed, unless another process holds the lock. Then the next process removes them.
    fn remove(&self, run: &str) -> io::Result<()> {
        fs::write(self.folder.join(format!("{run}{PRINTED_ROWS}")), "")?;
        self.lock.unlock()?;
        if self.lock.try_lock().is_err() {
            return Ok(());
        }
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            let name = entry.file_name();
            if let Some(run) = name
                .to_str()
                .and_then(|name| name.strip_suffix(PRINTED_ROWS))
            {
                fs::remove_file(self.folder.join(run))?;
                fs::remove_file(entry.path())?;
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
