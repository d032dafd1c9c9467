//! Inspecting runs, with or without an engine that moves them.

use super::EngineError;
use super::load::compile_stored;
use super::runs::{Inspect, Stored};
use crate::program::{Program, ProgramHash};
use crate::store::{ProgramSource, SledStore, Store, open_for_inspection};
use std::collections::HashMap;
use std::ops::Deref;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// So many compiled programs are remembered.
const MANY_PROGRAMS: usize = 256;

/// Reads runs, and compiles their programs to name what they do. It never changes one.
#[derive(Clone)]
pub struct Inspector {
    runs: Arc<dyn Inspect>,
    programs: Arc<Mutex<HashMap<ProgramHash, Arc<Program>>>>,
}

impl Deref for Inspector {
    type Target = dyn Inspect;

    fn deref(&self) -> &Self::Target {
        &*self.runs
    }
}

impl Inspector {
    pub(super) fn new(runs: Arc<dyn Inspect>) -> Self {
        Self {
            runs,
            programs: Arc::default(),
        }
    }

    /// Opens a store that no process owns.
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

    /// Of a store that no engine owns.
    pub(super) fn unowned(store: Arc<dyn Store>) -> Self {
        Self::new(Arc::new(Stored::new(store, false)))
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
