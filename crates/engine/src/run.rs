//! A handle on a run: its updates, and its result.

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

/// Why a run gave no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunFailure {
    /// It failed, ran out of time or was cancelled.
    #[error("run {run} ended as {}{}", status.as_str(), error_suffix(error.as_ref()))]
    Ended {
        run: Name,
        status: Status,
        error: Option<RunError>,
    },
    /// It succeeded, and its output is not of the requested type.
    #[error("run {run} has an output of another type than requested: {error}")]
    Output {
        run: Name,
        /// How it differs.
        #[source]
        error: serde_json::Error,
    },
    /// It was paused: it can be resumed.
    #[error("run {run} is paused")]
    Paused { run: Name, reason: PauseReason },
    /// The engine cannot continue with it now; it is safe in the store.
    #[error(transparent)]
    Stuck(#[from] ScheduleError),
    /// The store cannot be read.
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

    /// The run's id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The next durable step, pause or end; none when there is nothing more to come.
    pub async fn next(&mut self) -> Option<Update> {
        self.updates.next().await
    }

    /// From now on, sends only pauses and the end.
    pub(super) fn only_end(&self) {
        self.updates.only_end();
    }

    /// How the run ended, once it has.
    ///
    /// # Errors
    /// [`RunFailure::Paused`], [`RunFailure::Stuck`], and store errors; a run that ended badly
    /// is an outcome here.
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
        // It may have ended before it was watched.
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
        // The engine stopped, or this handle did not keep up: the store knows.
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

    /// What the run gives, once it has succeeded, as a type of the caller's.
    ///
    /// # Errors
    /// [`RunFailure`].
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

    /// What an update says of how it ended.
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
