//! `--engine`: runs on Temporal.
//! The commands use an engine in this process. It sends requests about the runs to Temporal.

use super::args::{Command, Global};
use std::path::Path;
use windlass_engine::{Engine, EngineBuilder, EngineError, StateKey};
use windlass_temporal::{Target, Wire, connect};

/// Returns the address in `--engine`.
/// Returns `None` if it is empty, or if the command does not use an engine.
pub fn given(global: &Global, command: &Command) -> Option<String> {
    let is_for_runs = !matches!(
        command,
        Command::Backup(_)
            | Command::Restore(_)
            | Command::Doctor(_)
            | Command::Workflow(_)
            | Command::Schedule(_)
            | Command::State(_)
            | Command::Ui(_)
    );
    let at = global.engine.clone().filter(|at| !at.is_empty());
    at.filter(|_| is_for_runs)
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
