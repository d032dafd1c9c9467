//! Replaces `remote_engine` in a build without the feature `temporal`.
//! The flag `--engine` does not exist, and an engine from elsewhere is an error.

use super::args::{Command, Global};
use std::path::Path;
use windlass_engine::{Engine, EngineBuilder, EngineError, StateKey};

pub fn given(_: &Global, _: &Command) -> Option<String> {
    None
}

pub fn engine(
    _: EngineBuilder,
    _: &str,
    _: Option<StateKey>,
    _: Option<&Path>,
) -> Result<Engine, EngineError> {
    Err(EngineError::Elsewhere(String::from(
        "this build only has its own engine: build it with the feature `temporal`",
    )))
}
