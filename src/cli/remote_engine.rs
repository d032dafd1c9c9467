//! `--engine`: runs on Temporal.
//! The commands use an engine in this process. It sends requests about the runs to Temporal.

use super::args::{Command, Global};
use super::exit::Failure;
use std::path::Path;
use windlass_engine::{Engine, EngineBuilder, EngineError, StateKey};
use windlass_temporal::{Target, Wire, connect};

/// Returns the address in `--engine`.
/// Returns `None` if the command does not use an engine.
#[allow(
    clippy::unnecessary_wraps,
    reason = "the same signature as in a build without the feature"
)]
pub fn given(global: &Global, command: &Command) -> Result<Option<String>, Failure> {
    let at = global.engine.clone();
    Ok(at.filter(|_| command.is_for_runs()))
}

/// Returns an engine for the runs on Temporal at an address.
/// Saved workflows are in the store of `state`. Without `state`, there are no saved workflows.
pub fn engine(
    builder: EngineBuilder,
    at: &str,
    key: Option<StateKey>,
    state: Option<&Path>,
) -> Result<Engine, EngineError> {
    let target = Target::parse(at)?;
    let wire = Wire::sealed_with(key);
    builder.elsewhere(state, &move |loader, workflows| {
        Ok(connect(target.clone(), wire.clone(), loader, workflows)?)
    })
}
