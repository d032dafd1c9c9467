//! Reads runs, with or without an engine that advances them.

use super::EngineError;
use super::error::existing;
use super::load::compile_stored;
use super::report::RunDetail;
use super::run_index::{RunIndex, RunIndexCache};
use super::runs::{Extent, RunReader, StoreReader};
use crate::scheduler::ScheduleError;
use std::collections::HashMap;
use std::ops::{Deref, Range};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use windlass_machine::program::{Program, ProgramHash};
use windlass_machine::{HistoryEvent, IterationRow, LoopState};
use windlass_model::model::Name;
use windlass_store::{
    ConsistentRun, Journal, LastStatus, ProgramSource, ReadStore, RunHeader, Store, StoreError,
    StoredRun, open_for_inspection,
};

/// Maximum number of cached compiled programs.
const MANY_PROGRAMS: usize = 256;

/// Maximum number of runs whose list details are cached.
const MANY_DETAILS: usize = 4_096;

/// The version of a detail: the revision of its run, and the version of the run's waits for permits.
pub(super) type DetailVersion = (u64, u64);

/// The cached details of runs, each with its version.
type Details = HashMap<Name, (DetailVersion, Arc<RunDetail>)>;

/// Reads runs. It never changes a run.
///
/// It compiles the programs of runs, because only a program has the names of the actions.
#[derive(Clone)]
pub struct Inspector {
    runs: Arc<dyn RunReader>,
    programs: Arc<Mutex<HashMap<ProgramHash, Arc<Program>>>>,
    index: Arc<RunIndexCache>,
    /// The details: what lists show of a run in addition to its entry in the run index. A cached detail is valid while
    /// the run has the version of the detail.
    details: Arc<Mutex<Details>>,
    /// Whether this inspector is used for a batch of reads. Its reads do not wait for the disk: the batch waits once at
    /// its end.
    in_batch: bool,
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
            in_batch: false,
        }
    }

    /// Opens a store that no process owns.
    ///
    /// # Errors
    /// Returns [`EngineError::NoStore`] (no store is created) or store errors. If another process owns the store, it is
    /// locked: send the request to that process.
    pub fn open(dir: impl AsRef<Path>) -> Result<Self, EngineError> {
        let dir = dir.as_ref();
        existing(dir)?;
        Ok(Self::of_unowned_store(open_for_inspection(dir)?))
    }

    /// Makes an inspector of a store that no engine owns.
    pub(super) fn of_unowned_store(store: Arc<dyn Store>) -> Self {
        Self::new(Arc::new(StoreReader::new(store, None)))
    }

    /// Passes an up-to-date index of all runs to `read`. The first call reads all runs, later calls only those that
    /// changed.
    ///
    /// # Errors
    /// Returns store errors.
    pub fn run_index<T>(&self, read: impl FnOnce(&RunIndex) -> T) -> Result<T, EngineError> {
        self.index.read(self, read)
    }

    /// Returns what a list shows of a run in addition to its entry in the run index.
    ///
    /// `make` is called once for each version of the run, and gets the previous detail. `now` is the current version.
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

    /// Reads several times, and waits once at the end until all that was read is durable.
    pub(super) fn read_batch<T>(
        &self,
        read: impl Fn(&Self) -> Result<T, EngineError>,
    ) -> Result<T, EngineError> {
        if self.in_batch {
            return read(self);
        }
        let store = self.prepare(Extent::Known)?;
        let epoch = store.epoch();
        let batch = Self {
            in_batch: true,
            ..self.clone()
        };
        let found = read(&batch);
        match store.wait_durable(epoch) {
            Ok(()) => found,
            Err(_) => {
                // The store may lose what was read, so it is discarded. Read again, and wait after each read.
                let mut details = self.details.lock().unwrap_or_else(PoisonError::into_inner);
                details.clear();
                drop(details);
                read(self)
            }
        }
    }

    /// Prepares an extent of the runs, then reads from the store.
    pub(super) fn read<T>(
        &self,
        extent: Extent<'_>,
        read: impl Fn(&dyn ReadStore) -> Result<T, StoreError>,
    ) -> Result<T, EngineError> {
        self.read_from(self.prepare(extent)?, read)
    }

    fn read_from<T>(
        &self,
        store: &StoreReader,
        read: impl Fn(&dyn ReadStore) -> Result<T, StoreError>,
    ) -> Result<T, EngineError> {
        match self.in_batch {
            true => store.read_unsynced(read),
            false => store.read_durable(read),
        }
    }

    pub fn header(&self, run: &str) -> Result<RunHeader, EngineError> {
        self.read(Extent::Latest(run), |store| store.header(run))
    }

    /// Returns the headers of some runs as they are at one moment. `None` for a run that does not exist.
    pub(super) fn headers(&self, runs: &[Name]) -> Result<Vec<Option<RunHeader>>, EngineError> {
        self.read(Extent::Known, |store| {
            let header = |run: &Name| match store.header(run) {
                Ok(header) => Ok(Some(header)),
                Err(StoreError::UnknownRun(_)) => Ok(None),
                Err(error) => Err(error),
            };
            runs.iter().map(header).collect()
        })
    }

    /// Returns headers in the order of the runs' ids, after `after`.
    pub fn list(&self, after: Option<&str>, limit: usize) -> Result<Vec<RunHeader>, EngineError> {
        // The read of the first page has made all headers available.
        let extent = after.map_or(Extent::Headers, |_| Extent::Known);
        self.read(extent, |store| store.list(after, limit))
    }

    /// Returns a run's header and state.
    pub fn load(&self, run: &str) -> Result<StoredRun, EngineError> {
        self.read(Extent::Latest(run), |store| store.load(run))
    }

    /// Returns a run as it is at one moment: its header, its state, its loops, and the last `iterations` iterations.
    pub(super) fn whole(&self, run: &str, iterations: usize) -> Result<ConsistentRun, EngineError> {
        self.read(Extent::Latest(run), |store| {
            store.consistent_read(run, iterations)
        })
    }

    /// Returns the current state of every loop of a run.
    pub(super) fn loops(&self, run: &str) -> Result<Vec<LoopState>, EngineError> {
        self.read(Extent::Latest(run), |store| store.loops(run))
    }

    /// Returns the last `limit` iterations of a run, or of one of its loops.
    pub fn iterations(
        &self,
        run: &str,
        path: Option<&str>,
        limit: usize,
    ) -> Result<Vec<IterationRow>, EngineError> {
        if limit == usize::MAX {
            return self.read(Extent::Entire(run), |store| {
                store.iterations(run, path, limit)
            });
        }
        let mut rows = Vec::new();
        self.read_back(run, &mut |store, _| {
            rows = self.read_from(store, |store| store.iterations(run, path, limit))?;
            Ok(rows.len() >= limit)
        })?;
        Ok(rows)
    }

    /// Returns how the iterations with the numbers `wanted` ended. Searches only the last `commits` commits of the run.
    pub(super) fn last_statuses(
        &self,
        run: &str,
        path: &str,
        wanted: Range<u64>,
        commits: u64,
    ) -> Result<Vec<LastStatus>, EngineError> {
        let all = usize::try_from(wanted.end.saturating_sub(wanted.start)).unwrap_or(usize::MAX);
        let mut found = Vec::new();
        self.read_back(run, &mut |store, times| {
            found = self.read_from(store, |store| {
                store.last_statuses(run, path, wanted.clone(), commits)
            })?;
            // Read at most twice, because a list does not have to show iterations that ended long ago.
            Ok(found.len() >= all || times > 1)
        })?;
        Ok(found)
    }

    /// Returns the changes that led to a run's state, as far as they are retained.
    pub(super) fn journal(&self, run: &str) -> Result<Journal, EngineError> {
        self.read(Extent::Entire(run), |store| store.journal(run))
    }

    /// Returns the events of a run's history after a sequence number.
    pub fn history(
        &self,
        run: &str,
        after: u64,
        limit: usize,
    ) -> Result<Vec<(u64, HistoryEvent)>, EngineError> {
        self.read(Extent::Entire(run), |store| {
            store.history(run, after, limit)
        })
    }

    /// Returns the program with this hash. It is compiled if it is not cached.
    pub(super) fn program_of(&self, hash: ProgramHash) -> Option<Arc<Program>> {
        let programs = self.programs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(program) = programs.get(&hash) {
            return Some(Arc::clone(program));
        }
        drop(programs);
        let source = self.source(hash).ok()?;
        self.program(hash, &source).ok()
    }

    /// Returns the program of a run.
    ///
    /// # Errors
    /// Returns store errors, or an error if this version cannot compile the program.
    pub(super) fn program_of_run(&self, header: &RunHeader) -> Result<Arc<Program>, EngineError> {
        let source = self.source(header.program)?;
        let program = self.program(header.program, &source);
        let run = header.id.clone();
        Ok(program.map_err(|reason| ScheduleError::Unloadable { run, reason })?)
    }

    /// Returns the program of a stored source, which is compiled once.
    ///
    /// # Errors
    /// Returns the reason, in words, if this version cannot compile it.
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
