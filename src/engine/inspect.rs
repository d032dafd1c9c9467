//! Looking at runs as they lie in the store, with or without an engine that moves them.

use super::EngineError;
use crate::machine::{HistoryEvent, IterationRow, LoopState};
use crate::program::ProgramHash;
use crate::store::{ProgramSource, RunHeader, SledStore, Store, StoredRun};
use std::path::Path;
use std::sync::Arc;

/// Reads a store. It never changes one.
#[derive(Clone)]
pub struct Inspector {
    store: Arc<dyn Store>,
}

impl Inspector {
    pub(super) fn new(store: Arc<dyn Store>) -> Self {
        Self { store }
    }

    /// Opens a store that no process owns, to look at it.
    ///
    /// # Errors
    /// Store errors; one that is owned is locked: ask its owner.
    pub fn open(dir: impl AsRef<Path>) -> Result<Self, EngineError> {
        Ok(Self::new(Arc::new(SledStore::open(dir.as_ref())?)))
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
