//! Runs that no worker continues, although workers have received their tasks: each worker lacks something, such as a
//! secret. Temporal tries the tasks again, so the run continues when a worker has everything.
//!
//! A worker fails a task with a failure of the type [`STUCK`]. A reader finds it in Temporal's description of the run,
//! or in the history.

use super::connection::Description;
use super::{EFFECT, TemporalError};
use std::time::Duration;
use temporalio_common::protos::temporal::api::enums::v1::WorkflowExecutionStatus;
use temporalio_common::protos::temporal::api::failure::v1::{
    ApplicationFailureInfo, Failure, failure::FailureInfo,
};
use temporalio_common::protos::temporal::api::workflow::v1::PendingActivityInfo;

/// The type of the failures of a worker that lacks something.
const STUCK: &str = "windlass.stuck";

/// Number of failed attempts of an effect after which its run counts as stuck. With fewer, the others of several
/// workers may not have received the effect yet.
const MAX_EFFECT_ATTEMPTS: i32 = 3;

/// The same number for a workflow task. It is less, because each further attempt begins ten seconds later.
const MAX_TASK_ATTEMPTS: i32 = 2;

/// Delay after the first failed attempt of an effect. It doubles with each further one, up to [`MAX_DELAY`].
const FIRST_DELAY: Duration = Duration::from_millis(100);

/// Maximum delay between two attempts of an effect.
const MAX_DELAY: Duration = Duration::from_secs(10);

/// Why no worker continues a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Stuck {
    pub reason: String,
    /// Whether no worker can load the run. Then the run accepts no commands either.
    pub is_unloadable: bool,
}

impl TemporalError {
    /// Returns whether the cause is this worker, so that another worker may succeed.
    fn is_of_worker(&self) -> bool {
        match self {
            Self::Payload(_) | Self::Sealed(_) | Self::Unloadable(_) | Self::Bug(_) => true,
            Self::Target(_)
            | Self::Unreachable { .. }
            | Self::Refused(_)
            | Self::Outage(_)
            | Self::Worker(_) => false,
        }
    }
}

/// Makes the failure of a task.
pub fn failure(error: &TemporalError) -> Failure {
    let kind = if error.is_of_worker() { STUCK } else { "" };
    let message = match error {
        TemporalError::Unloadable(reason) => reason.clone(),
        other => other.to_string(),
    };
    Failure {
        message,
        failure_info: Some(FailureInfo::ApplicationFailureInfo(
            ApplicationFailureInfo {
                r#type: kind.to_owned(),
                ..Default::default()
            },
        )),
        ..Default::default()
    }
}

/// Makes the failure of an attempt of an effect. If this worker lacks something, the next attempt is delayed.
pub fn effect_failure(error: &TemporalError, attempt: u32) -> Failure {
    let mut failure = failure(error);
    if error.is_of_worker()
        && let Some(FailureInfo::ApplicationFailureInfo(info)) = &mut failure.failure_info
    {
        let doubled = FIRST_DELAY.saturating_mul(2_u32.saturating_pow(attempt.saturating_sub(1)));
        info.next_retry_delay = doubled.min(MAX_DELAY).try_into().ok();
    }
    failure
}

/// Returns the message of a failure of a worker that lacks something.
pub fn reason(failure: Option<&Failure>) -> Option<&str> {
    let failure = failure?;
    match &failure.failure_info {
        Some(FailureInfo::ApplicationFailureInfo(info)) if info.r#type == STUCK => {
            Some(&failure.message)
        }
        _ => None,
    }
}

/// Returns why no worker continues a run, from Temporal's description of the run. `failed` is why the last workflow
/// task in its history failed.
pub fn find(description: &Description, failed: Option<&str>) -> Option<Stuck> {
    let Description { info, tasks } = description;
    if info.status() != WorkflowExecutionStatus::Running {
        return None;
    }
    let task = tasks.pending_workflow_task.as_ref();
    if let Some(reason) =
        failed.filter(|_| task.is_some_and(|task| task.attempt > MAX_TASK_ATTEMPTS))
    {
        return Some(Stuck {
            reason: reason.to_owned(),
            is_unloadable: true,
        });
    }
    let of_activity = |one: &PendingActivityInfo| {
        let is_effect = one
            .activity_type
            .as_ref()
            .is_some_and(|kind| kind.name == EFFECT);
        let reason = reason(one.last_failure.as_ref())?;
        (is_effect && one.attempt > MAX_EFFECT_ATTEMPTS).then(|| Stuck {
            reason: format!("{reason} (on the worker {})", one.last_worker_identity),
            is_unloadable: false,
        })
    };
    tasks.pending_activities.iter().find_map(of_activity)
}
