//! Inspecting runs, with or without an engine that moves them.

use super::EngineError;
use super::error::existing;
use super::load::compile_stored;
use super::report::RunDetail;
use super::run_index::{RunIndex, RunIndexCache};
use super::runs::{RunReader, StoreReader};
use std::collections::HashMap;
use std::ops::Deref;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use windlass_machine::program::{Program, ProgramHash};
use windlass_model::model::Name;
use windlass_store::{ProgramSource, Store, open_for_inspection};

/// Maximum number of cached compiled programs.
const MANY_PROGRAMS: usize = 256;

/// Maximum number of runs of which list details are cached.
const MANY_DETAILS: usize = 4_096;

/// What a detail is made of: the revision of its run, and the number of what waits there.
pub(super) type DetailVersion = (u64, u64);

/// Details of runs, each with what it was made of.
type Details = HashMap<Name, (DetailVersion, Arc<RunDetail>)>;

/// Reads runs, and compiles their programs to name what they do. It never changes one.
#[derive(Clone)]
pub struct Inspector {
    runs: Arc<dyn RunReader>,
    programs: Arc<Mutex<HashMap<ProgramHash, Arc<Program>>>>,
    index: Arc<RunIndexCache>,
    /// What lists show of runs in addition to their index entries; valid for as long as these are the same.
    details: Arc<Mutex<Details>>,
}

impl Deref for Inspector {
    type Target = dyn RunReader;

    fn deref(&self) -> &Self::Target {
        &*self.runs
    }
}

impl Inspector {
    pub(super) fn new(runs: Arc<dyn RunReader>) -> Self {
        Self {
            runs,
            programs: Arc::default(),
            index: Arc::default(),
            details: Arc::default(),
        }
    }

    /// Opens a store that no process owns.
    ///
    /// # Errors
    /// [`EngineError::NoStore`]: looking makes none. Store errors; one that is owned is locked:
    /// ask its owner.
    pub fn open(dir: impl AsRef<Path>) -> Result<Self, EngineError> {
        let dir = dir.as_ref();
        existing(dir)?;
        Ok(Self::of_unowned_store(open_for_inspection(dir)?))
    }

    /// Of a store that no engine owns.
    pub(super) fn of_unowned_store(store: Arc<dyn Store>) -> Self {
        Self::new(Arc::new(StoreReader::new(store, None)))
    }

    /// What is known of all runs, as they are now. The first time they are all read, later on those
    /// that changed.
    ///
    /// # Errors
    /// Store errors.
    pub fn run_index<T>(&self, read: impl FnOnce(&RunIndex) -> T) -> Result<T, EngineError> {
        self.index.read(&*self.runs, read)
    }

    /// What a list shows of a run in addition to its index entry: made once for each state of the run, from
    /// what was made last.
    pub(super) fn detail(
        &self,
        run: &Name,
        now: DetailVersion,
        make: impl FnOnce(Option<&RunDetail>) -> Result<(DetailVersion, RunDetail), EngineError>,
    ) -> Result<Arc<RunDetail>, EngineError> {
        let details = || self.details.lock().unwrap_or_else(PoisonError::into_inner);
        let known = details().get(run).cloned();
        if let Some((of, detail)) = &known
            && *of == now
        {
            return Ok(Arc::clone(detail));
        }
        let (of, detail) = make(known.as_ref().map(|(_, detail)| &**detail))?;
        let detail = Arc::new(detail);
        let mut details = details();
        if details.len() >= MANY_DETAILS {
            details.clear();
        }
        details.insert(run.clone(), (of, Arc::clone(&detail)));
        Ok(detail)
    }

    /// Reads several times, and waits once until all of it is durable.
    pub(super) fn read_batch<T>(
        &self,
        read: impl Fn() -> Result<T, EngineError>,
    ) -> Result<T, EngineError> {
        let mut found = None;
        let waited = self.runs.read_batch(&mut || found = Some(read()));
        match (waited, found) {
            (Ok(()), Some(found)) => found,
            _ => {
                // What was read may be lost. What can still be reported is read one by one.
                let mut details = self.details.lock().unwrap_or_else(PoisonError::into_inner);
                details.clear();
                drop(details);
                read()
            }
        }
    }

    /// A program that was compiled before, or is now.
    pub(super) fn program_of(&self, hash: ProgramHash) -> Option<Arc<Program>> {
        let programs = self.programs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(program) = programs.get(&hash) {
            return Some(Arc::clone(program));
        }
        drop(programs);
        let source = self.source(hash).ok()?;
        self.program(hash, &source).ok()
    }

    /// The program of a stored source; it is compiled once.
    ///
    /// # Errors
    /// Why this version cannot compile it, in words.
    pub fn program(
        &self,
        hash: ProgramHash,
        source: &ProgramSource,
    ) -> Result<Arc<Program>, String> {
        let mut programs = self.programs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(program) = programs.get(&hash) {
            return Ok(Arc::clone(program));
        }
        let program = Arc::new(compile_stored(hash, source)?);
        if programs.len() >= MANY_PROGRAMS {
            programs.clear();
        }
        programs.insert(hash, Arc::clone(&program));
        Ok(program)
    }
}
