//! Looking at runs as they lie in the store, with or without an engine that moves them.

use super::EngineError;
use super::load::compile_stored;
use crate::machine::{HistoryEvent, IterationRow, LoopState};
use crate::program::{Program, ProgramHash};
use crate::store::{
    ConsistentRun, MemoryStore, ProgramSource, RunHeader, SledStore, Store, StoreError, StoredRun,
    open_for_inspection,
};
use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// So many compiled programs are remembered.
const MANY_PROGRAMS: usize = 256;

/// Reads a store. It never changes one.
#[derive(Clone)]
pub struct Inspector {
    store: Arc<dyn Store>,
    /// Whether this process, or the one that it asks, owns the store.
    owned: bool,
    programs: Arc<Mutex<HashMap<ProgramHash, Arc<Program>>>>,
    rest: Arc<Mutex<Option<Rest>>>,
}

/// What was acknowledged, of a store that takes no writes.
struct Rest {
    /// How often the store was opened again before it was read.
    epoch: u64,
    /// None when that cannot be told from what was not.
    store: Option<Arc<MemoryStore>>,
}

impl Inspector {
    /// Of the engine that owns the store.
    pub(super) fn new(store: Arc<dyn Store>) -> Self {
        Self {
            store,
            owned: true,
            programs: Arc::default(),
            rest: Arc::default(),
        }
    }

    /// Reads what nothing can take back any more: of a store that takes no writes, what was
    /// acknowledged before.
    pub(super) fn settled<T>(
        &self,
        read: impl Fn(&dyn Store) -> Result<T, StoreError>,
    ) -> Result<T, EngineError> {
        let epoch = self.store.epoch();
        let found = read(&*self.store).and_then(|found| {
            self.store.wait_durable(epoch)?;
            Ok(found)
        });
        match found {
            Err(error @ StoreError::Failed { .. }) => match self.at_rest(epoch) {
                Some(store) => Ok(read(&*store)?),
                None => Err(error.into()),
            },
            found => {
                // Nobody needs it any more.
                if let Ok(mut rest) = self.rest.try_lock() {
                    *rest = None;
                }
                Ok(found?)
            }
        }
    }

    /// It is read once for each time that the store was tried to be opened again.
    fn at_rest(&self, epoch: u64) -> Option<Arc<MemoryStore>> {
        let mut known = self.rest.lock().unwrap_or_else(PoisonError::into_inner);
        if known.as_ref().is_none_or(|rest| rest.epoch != epoch) {
            // Before the next one takes as much memory.
            *known = None;
            let store = self.store.durable_snapshot().map(Arc::new);
            *known = Some(Rest { epoch, store });
        }
        known.as_ref().and_then(|rest| rest.store.clone())
    }

    /// Whether the store takes writes: not after one that failed, until it was opened again.
    ///
    /// # Errors
    /// [`StoreError::Failed`], with what failed first.
    pub fn takes_writes(&self) -> Result<(), EngineError> {
        self.store.in_place()?;
        Ok(self.store.usable()?)
    }

    /// Opens a store that no process owns, to look at it.
    ///
    /// # Errors
    /// [`EngineError::NoStore`]: looking makes none. Store errors; one that is owned is locked:
    /// ask its owner.
    pub fn open(dir: impl AsRef<Path>) -> Result<Self, EngineError> {
        let dir = dir.as_ref();
        if !SledStore::exists(dir) {
            return Err(EngineError::NoStore(dir.to_owned()));
        }
        Ok(Self::unowned(open_for_inspection(dir)?))
    }

    /// Of a store that only this looks at.
    pub(super) fn unowned(store: Arc<dyn Store>) -> Self {
        Self {
            owned: false,
            ..Self::new(store)
        }
    }

    /// Whether an engine owns the store: while none does, no run goes on.
    #[must_use]
    pub fn is_owned(&self) -> bool {
        self.owned
    }

    /// A run's head.
    ///
    /// # Errors
    /// Store errors, an unknown run.
    pub fn header(&self, run: &str) -> Result<RunHeader, EngineError> {
        self.settled(|store| store.header(run))
    }

    /// A run's head and whole state.
    ///
    /// # Errors
    /// Store errors, an unknown run.
    pub fn load(&self, run: &str) -> Result<StoredRun, EngineError> {
        self.settled(|store| store.load(run))
    }

    /// A run as it is at one moment, with its loops and its last `iterations`.
    ///
    /// # Errors
    /// Store errors that concern all of it.
    pub fn whole(&self, run: &str, iterations: usize) -> Result<ConsistentRun, EngineError> {
        self.settled(|store| {
            store.usable()?;
            Ok(store.consistent_read(run, iterations))
        })
    }

    /// What a program was compiled from.
    ///
    /// # Errors
    /// Store errors.
    pub fn source(&self, program: ProgramHash) -> Result<ProgramSource, EngineError> {
        self.settled(|store| store.program(program))
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

    /// Heads in the order of their ids, after `after`.
    ///
    /// # Errors
    /// Store errors.
    pub fn list(&self, after: Option<&str>, limit: usize) -> Result<Vec<RunHeader>, EngineError> {
        self.settled(|store| store.list(after, limit))
    }

    /// The current row of every loop of a run.
    ///
    /// # Errors
    /// Store errors.
    pub fn loops(&self, run: &str) -> Result<Vec<LoopState>, EngineError> {
        self.settled(|store| store.loops(run))
    }

    /// The last `limit` iterations of a run, or of one of its loops.
    ///
    /// # Errors
    /// Store errors.
    pub fn iterations(
        &self,
        run: &str,
        path: Option<&str>,
        limit: usize,
    ) -> Result<Vec<IterationRow>, EngineError> {
        self.settled(|store| store.iterations(run, path, limit))
    }

    /// A run's history after a sequence number.
    ///
    /// # Errors
    /// Store errors.
    pub fn history(
        &self,
        run: &str,
        after: u64,
        limit: usize,
    ) -> Result<Vec<(u64, HistoryEvent)>, EngineError> {
        self.settled(|store| store.history(run, after, limit))
    }
}
