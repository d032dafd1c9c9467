//! `--engine`: runs that Temporal keeps. An engine of this process asks for them there.

use super::args::{Command, Global};
use std::path::Path;
use windlass_engine::{Engine, EngineBuilder, EngineError, StateKey};
use windlass_temporal::{Target, Wire, connect};

/// The requested engine; an empty variable counts as none, and so does one that a command has
/// no use for.
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

/// An engine on the runs at an address. The workflows that are stored under names are in the store
/// of `state`, or nowhere.
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
