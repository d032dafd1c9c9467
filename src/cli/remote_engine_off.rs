//! Replaces `remote_engine` in a build without the feature `temporal`.
//! The flag `--engine` is hidden, and an engine from elsewhere is an error.

use super::args::{Command, Global};
use super::exit::Failure;
use std::path::Path;
use windlass_engine::{Engine, EngineBuilder, EngineError, StateKey};

const MISSING: &str = "this build of Windlass has no runs on Temporal: feature `temporal` (cargo install … --features \
                       temporal)";

/// Returns the failure of a command that needs the feature.
pub fn missing() -> Failure {
    Failure::Usage(String::from(MISSING))
}

pub fn given(global: &Global, command: &Command) -> Result<Option<String>, Failure> {
    match global.engine.is_some() && command.is_for_runs() {
        true => Err(missing()),
        false => Ok(None),
    }
}

pub fn engine(
    _: EngineBuilder,
    _: &str,
    _: Option<StateKey>,
    _: Option<&Path>,
) -> Result<Engine, EngineError> {
    Err(EngineError::Elsewhere(String::from(MISSING)))
}
