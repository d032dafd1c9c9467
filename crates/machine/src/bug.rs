//! What cannot happen, when it happens all the same: a run that contradicts itself or its program.
//! It is not a fault of the run, nothing catches it, and the step that met it is never stored.

use windlass_model::model::Fault;

/// Why the machine cannot continue with a run. What is in memory of the run is no longer valid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Bug(String);

impl Bug {
    pub(super) fn new(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }
}

/// What nothing but a bug can stop.
pub(super) type MachineResult<T = ()> = Result<T, Bug>;

/// What stops an operation.
#[derive(Debug)]
pub(super) enum StepError {
    /// The run's fault: it is raised at the current operation.
    Fault(Fault),
    Bug(Bug),
}

pub(super) type StepResult<T = ()> = Result<T, StepError>;

impl From<Fault> for StepError {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl From<Bug> for StepError {
    fn from(bug: Bug) -> Self {
        Self::Bug(bug)
    }
}

/// The fault that stopped an operation, if one did.
pub(super) fn split_fault<T>(done: StepResult<T>) -> MachineResult<Result<T, Fault>> {
    match done {
        Ok(value) => Ok(Ok(value)),
        Err(StepError::Fault(fault)) => Ok(Err(fault)),
        Err(StepError::Bug(bug)) => Err(bug),
    }
}
