//! Logs the starts, pauses, resumes and ends of runs, and failed attempts.

use windlass_machine::{HistoryKind, RunState};
use windlass_model::model::Name;
use windlass_store::Commit;
use windlass_value::shortened;

/// The log target of these events. `WINDLASS_LOG=run=info` selects it.
const TARGET: &str = "run";

/// Maximum length of an error in the log, in characters.
const MAX_ERROR: usize = 500;

/// Logs these events of a durable step.
pub(super) fn log_step(commit: &Commit, run: &RunState, workflow: &Name) {
    let id = &run.id;
    for event in &commit.history {
        match &event.what {
            HistoryKind::RunStarted => {
                tracing::info!(target: TARGET, run = %id, %workflow, "run started");
            }
            HistoryKind::RunFinished { status } => {
                let seconds = event.at.since(run.started_at).as_secs_f64();
                let outcome = run.outcome.as_ref();
                let error = outcome.and_then(|outcome| outcome.error.as_ref());
                let action = error.and_then(|error| error.action.as_deref());
                let error = error.map(|error| shortened(&error.fault.message, MAX_ERROR));
                let status_word = status.as_str();
                if status.is_failure() {
                    tracing::warn!(
                        target: TARGET, run = %id, %workflow, status = status_word, seconds, action, error, "run ended"
                    );
                } else {
                    tracing::info!(
                        target: TARGET, run = %id, %workflow, status = status_word, seconds, "run ended"
                    );
                }
            }
            HistoryKind::RunPaused { reason } => {
                tracing::info!(target: TARGET, run = %id, %workflow, reason, "run paused");
            }
            HistoryKind::RunResumed => {
                tracing::info!(target: TARGET, run = %id, %workflow, "run resumed");
            }
            HistoryKind::RetryScheduled {
                node_name,
                attempt,
                error,
                ..
            } => {
                let error = shortened(error, MAX_ERROR);
                tracing::debug!(
                    target: TARGET, run = %id, %workflow, action = %node_name, attempt, error, "attempt failed"
                );
            }
            HistoryKind::ActionStarted { .. }
            | HistoryKind::ActionEnded { .. }
            | HistoryKind::LoopStart { .. }
            | HistoryKind::LoopIteration { .. }
            | HistoryKind::LoopLimit { .. }
            | HistoryKind::LoopEnd { .. }
            | HistoryKind::TimerSet { .. }
            | HistoryKind::Signalled { .. }
            | HistoryKind::Answered { .. } => {}
        }
    }
}
