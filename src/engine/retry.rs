//! Starting a run that ended badly once more: a new run of the same program with the same input.
//! The old one stays as it ended.

use super::{Engine, EngineError, REQUEST_LABEL, StartOptions, Started, Workflow, new_id};
use crate::diagnostic::Diagnostics;
use crate::machine::RunStatus;
use crate::scheduler::{Loader, ScheduleError};

/// The label that names the run that was started again.
pub const RETRY_LABEL: &str = "windlass.retry_of";

impl Engine {
    /// Starts a run that failed, timed out or was cancelled once more, from its beginning, under
    /// an id of the caller's or a new one.
    ///
    /// # Errors
    /// [`EngineError::NotRetried`] for one that has not ended or has succeeded; those of
    /// [`Engine::start_with`].
    pub async fn retry(&self, run: &str, id: Option<String>) -> Result<Started, EngineError> {
        let stored = self.inspector().load(run)?;
        let (header, state) = (stored.header, stored.state);
        if !matches!(
            header.status,
            RunStatus::Failed | RunStatus::TimedOut | RunStatus::Cancelled
        ) {
            return Err(EngineError::NotRetried {
                run: header.id,
                status: header.status,
            });
        }
        let source = self.inspector().source(header.program)?;
        let loaded = self.workflows.load(header.program, &source);
        let loaded = loaded.map_err(|reason| ScheduleError::Unloadable {
            run: header.id.clone(),
            reason,
        })?;
        let workflow = Workflow {
            loaded,
            source,
            warnings: Diagnostics::default(),
        };
        let mut labels = header.labels;
        // The key began the other run.
        labels.remove(REQUEST_LABEL);
        labels.insert(RETRY_LABEL.to_owned(), header.id.to_string());
        let id = id.unwrap_or_else(|| new_id(&header.workflow));
        let options = StartOptions {
            id: Some(id),
            labels,
        };
        // What it was started with is what the workflow made of the input: it takes it again.
        let run = self.launch(&workflow, state.input, options).await?;
        Ok(Started { run, fresh: true })
    }
}
