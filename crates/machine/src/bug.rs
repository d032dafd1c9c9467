//! What cannot happen, when it happens all the same: a run that contradicts itself or its program.
//! It is no fault of the run, nothing catches it, and the step that met it is never stored.

use windlass_model::model::Fault;

/// Why the machine cannot go on with a run. What is in memory of the run is of no use any more.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Bug(String);

impl Bug {
    pub(super) fn new(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }
}

/// What nothing but a bug can stop.
pub(super) type Sure<T = ()> = Result<T, Bug>;

/// What stops an operation.
#[derive(Debug)]
pub(super) enum Stop {
    /// The run's fault: it is raised where the operation stands.
    Fault(Fault),
    Bug(Bug),
}

pub(super) type Done<T = ()> = Result<T, Stop>;

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl From<Bug> for Stop {
    fn from(bug: Bug) -> Self {
        Self::Bug(bug)
    }
}

/// The fault that stopped an operation, if one did.
pub(super) fn fault_of<T>(done: Done<T>) -> Sure<Result<T, Fault>> {
    match done {
        Ok(value) => Ok(Ok(value)),
        Err(Stop::Fault(fault)) => Ok(Err(fault)),
        Err(Stop::Bug(bug)) => Err(bug),
    }
}
