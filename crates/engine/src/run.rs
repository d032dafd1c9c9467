//! A handle on a run, with its updates and its result.

use super::{EngineError, Inspector};
use crate::scheduler::{ScheduleError, Update, Updates};
use serde::de::DeserializeOwned;
use windlass_machine::{Outcome, PauseReason, RunError, RunStatus};
use windlass_model::model::{Name, Status};

/// A run that was started or is watched.
pub struct Run {
    id: Name,
    updates: Updates,
    inspector: Inspector,
}

/// Why a run has no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunFailure {
    /// The run failed, timed out or was cancelled.
    #[error("run {run} ended as {}{}", status.as_str(), error_suffix(error.as_ref()))]
    Ended {
        run: Name,
        status: Status,
        error: Option<RunError>,
    },
    /// The run succeeded, but its output cannot be decoded to the type that the caller requested.
    #[error("run {run} has an output of another type than requested: {error}")]
    Output {
        run: Name,
        /// Why the output cannot be decoded.
        #[source]
        error: serde_json::Error,
    },
    /// The run was paused. It can be resumed.
    #[error("run {run} is paused")]
    Paused { run: Name, reason: PauseReason },
    /// The engine cannot continue the run now. The stored state of the run is intact.
    #[error(transparent)]
    Stuck(#[from] ScheduleError),
    #[error(transparent)]
    Engine(#[from] EngineError),
}

fn error_suffix(error: Option<&RunError>) -> String {
    error
        .map(|error| format!(": {}", error.fault.message))
        .unwrap_or_default()
}

impl Run {
    pub(super) fn new(id: Name, updates: Updates, inspector: Inspector) -> Self {
        Self {
            id,
            updates,
            inspector,
        }
    }

    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Waits for the next durable step, pause or end. Returns `None` after the last update.
    pub async fn next(&mut self) -> Option<Update> {
        self.updates.next().await
    }

    /// From now on, receives only pauses, failed attempts and the end.
    pub(super) fn only_end(&self) {
        self.updates.only_end();
    }

    /// Waits for the end of the run. Returns the outcome of the run.
    ///
    /// # Errors
    /// Returns [`RunFailure::Paused`], [`RunFailure::Stuck`], or store errors. A run that failed or was cancelled also
    /// has an outcome, so it is not an error here.
    pub async fn outcome(mut self) -> Result<Outcome, RunFailure> {
        self.only_end();
        let mut failure = None;
        while let Some(update) = self.updates.try_next() {
            match self.end(update) {
                Some(Ok(outcome)) => return Ok(outcome),
                Some(other) => failure = Some(other),
                None => {}
            }
        }
        // The run may have ended before this handle received updates. Then no update reports the end.
        if let Some(outcome) = self.ended()? {
            return Ok(outcome);
        }
        if let Some(failure) = failure {
            return failure;
        }
        while let Some(update) = self.updates.next().await {
            if let Some(end) = self.end(update) {
                return end;
            }
        }
        // The updates ended: the engine stopped, or this handle was too slow and the driver dropped it. So read the
        // store.
        let state = self
            .inspector
            .load(&self.id)
            .map_err(RunFailure::from)?
            .state;
        match (state.outcome, state.paused) {
            (Some(outcome), _) => Ok(*outcome),
            (None, Some((_, reason))) => Err(RunFailure::Paused {
                run: self.id,
                reason,
            }),
            (None, None) => Err(RunFailure::Stuck(ScheduleError::Stopped)),
        }
    }

    /// Waits for the end of the run. Decodes the output to a type that the caller chooses.
    ///
    /// # Errors
    /// Returns [`RunFailure`].
    pub async fn result<T: DeserializeOwned + 'static>(self) -> Result<T, RunFailure> {
        let run = self.id.clone();
        let outcome = self.outcome().await?;
        match outcome.status {
            Status::Succeeded => {
                let decoded = outcome.output.decode();
                decoded.map_err(|error| RunFailure::Output { run, error })
            }
            status => Err(RunFailure::Ended {
                run,
                status,
                error: outcome.error,
            }),
        }
    }

    /// Returns the result of the wait if this update ends the wait.
    fn end(&self, update: Update) -> Option<Result<Outcome, RunFailure>> {
        match update {
            Update::Step(_) => None,
            Update::Finished(outcome) => Some(Ok(outcome)),
            Update::Paused(reason) => Some(Err(RunFailure::Paused {
                run: self.id.clone(),
                reason,
            })),
            Update::Stuck(error) => Some(Err(error.into())),
        }
    }

    fn ended(&self) -> Result<Option<Outcome>, EngineError> {
        let header = self.inspector.header(&self.id)?;
        if !RunStatus::is_final(header.status) {
            return Ok(None);
        }
        let outcome = self.inspector.load(&self.id)?.state.outcome;
        Ok(outcome.map(|outcome| *outcome))
    }
}
