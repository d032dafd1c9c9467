//! Looking at runs as they lie in the store, with or without an engine that moves them.

use super::EngineError;
use super::load::compile_stored;
use crate::machine::{HistoryEvent, IterationRow, LoopState};
use crate::program::{Program, ProgramHash};
use crate::store::{ProgramSource, RunHeader, SledStore, Store, StoredRun, open_to_look};
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
}

impl Inspector {
    /// Of the engine that owns the store.
    pub(super) fn new(store: Arc<dyn Store>) -> Self {
        Self {
            store,
            owned: true,
            programs: Arc::default(),
        }
    }

    pub(super) fn store(&self) -> &dyn Store {
        &*self.store
    }

    /// Whether the store takes writes: not after one that failed, until it was opened again.
    ///
    /// # Errors
    /// [`StoreError::Failed`](crate::store::StoreError::Failed), with what failed first.
    pub fn takes_writes(&self) -> Result<(), EngineError> {
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
        Ok(Self::unowned(open_to_look(dir)?))
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
        Ok(self.store.header(run)?)
    }

    /// A run's head and whole state.
    ///
    /// # Errors
    /// Store errors, an unknown run.
    pub fn load(&self, run: &str) -> Result<StoredRun, EngineError> {
        Ok(self.store.load(run)?)
    }

    /// What a program was compiled from.
    ///
    /// # Errors
    /// Store errors.
    pub fn source(&self, program: ProgramHash) -> Result<ProgramSource, EngineError> {
        Ok(self.store.program(program)?)
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
        Ok(self.store.list(after, limit)?)
    }

    /// The current row of every loop of a run.
    ///
    /// # Errors
    /// Store errors.
    pub fn loops(&self, run: &str) -> Result<Vec<LoopState>, EngineError> {
        Ok(self.store.loops(run)?)
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
        Ok(self.store.iterations(run, path, limit)?)
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
        Ok(self.store.history(run, after, limit)?)
    }
}
