//! Bugs of the machine: a run that contradicts itself or its program. A bug is not a fault of the run: no try catches
//! it, and its step is never stored.

use windlass_model::model::Fault;

/// Why the machine cannot continue with a run. The run's state in memory is no longer valid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Bug(String);

impl Bug {
    pub(super) fn new(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }
}

/// The result of a function that only a bug can stop.
pub(super) type MachineResult<T = ()> = Result<T, Bug>;

/// What can stop an operation.
#[derive(Debug)]
pub(super) enum StepError {
    /// A fault of the run, raised at the current operation.
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

/// Separates the fault that stopped an operation from a bug.
pub(super) fn split_fault<T>(done: StepResult<T>) -> MachineResult<Result<T, Fault>> {
    match done {
        Ok(value) => Ok(Ok(value)),
        Err(StepError::Fault(fault)) => Ok(Err(fault)),
        Err(StepError::Bug(bug)) => Err(bug),
    }
}
