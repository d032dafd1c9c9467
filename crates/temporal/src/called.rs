//! Runs that a run starts and waits for (`type: workflow`). The call is an activity that ends when the called run ends.
//! The id of the called run is made from the call. So if a worker repeats the call, it finds the run that was started
//! before. While the activity waits, it needs no slot of the worker.

use super::TemporalError;
use super::client::start_request;
use super::effect::pack;
use super::fold;
use super::wire::{ActivityResult, RunStart, StartState};
use super::worker::{NO_CALLER, Shared};
use std::sync::Arc;
use temporalio_common::protos::coresdk::activity_task::Start;
use temporalio_common::protos::temporal::api::history::v1::history_event::Attributes;
use windlass_engine::call_result;
use windlass_engine::scheduler::{CallingRun, PARENT_LABEL, child_id};
use windlass_machine::Outcome;
use windlass_model::model::{Fault, Name, Request, fault_kind};

/// A call of a workflow that this worker waits for.
pub struct Call {
    pub shared: Arc<Shared>,
    /// The token of the call's activity.
    pub token: Vec<u8>,
    pub start: Start,
    pub request: Request,
}

impl Call {
    /// Starts the run, waits for its end, and answers the activity. If Temporal receives neither an answer nor a
    /// heartbeat from this worker, it sends the call to another worker, which then waits for the run.
    pub async fn wait(self) {
        let execution = self.start.workflow_execution.clone().unwrap_or_default();
        let (caller, execution) = (Name::from(execution.workflow_id), execution.run_id);
        let child = child_id(&caller, &self.request);
        // This is not interrupted when the call is aborted. If no run waits for the new run any more, it is cancelled
        // below.
        let begun = self.begin(&caller, &execution, &child).await;
        let answer = match begun {
            Ok(Ok(())) => {
                let beats = self.beat();
                tokio::select! {
                    outcome = self.end_of(&child) => outcome.map(|one| call_result(&child, one)),
                    () = beats => return self.leave(&caller, &execution, &child).await,
                }
            }
            Ok(Err(fault)) => Ok(Err(fault)),
            Err(error) => Err(error),
        };
        if let Err(error) = self.answer(answer).await {
            tracing::warn!(%caller, %child, %error, "a call is repeated");
        }
    }

    async fn answer(
        &self,
        answer: Result<ActivityResult, TemporalError>,
    ) -> Result<(), TemporalError> {
        let answer = pack(&self.shared, answer?)?;
        let connection = &self.shared.connection;
        match connection.complete(&self.token, answer).await {
            // If Temporal does not know the activity any more, the calling run has ended meanwhile, or another worker
            // has answered.
            Err(error) if error.is_unknown() => Ok(()),
            other => other,
        }
    }

    /// Sends heartbeats of the activity. Ends when the activity does not belong to this worker any more.
    async fn beat(&self) {
        let mut beats = tokio::time::interval(self.shared.options.heartbeat / 3);
        loop {
            beats.tick().await;
            if let Ok(false) = self.shared.connection.heartbeat(&self.token).await {
                return;
            }
        }
    }

    /// Starts the run of the call, unless it was started before. The inner error is a fault of the call.
    async fn begin(
        &self,
        caller: &Name,
        execution: &str,
        child: &Name,
    ) -> Result<Result<(), Fault>, TemporalError> {
        let shared = &self.shared;
        if let Some(found) = self.find(caller, child).await? {
            return Ok(found);
        }
        let first = shared.connection.first_event(caller, execution).await?;
        let run_start = fold::read_run_start(&shared.wire, first.as_ref())?;
        let calling = CallingRun {
            run: caller,
            labels: &run_start.labels,
            source: &run_start.source,
            saved: &run_start.saved,
        };
        let start = match shared.loader.child(&calling, &self.request) {
            Ok(start) => start,
            Err(fault) => return Ok(Err(fault)),
        };
        let workflow = &start.loaded.program.name;
        let run_start = RunStart {
            source: start.source,
            program: start.loaded.program.hash,
            labels: start.labels,
            from: StartState::Start {
                input: start.input,
                environment: start.environment,
            },
            saved: start.saved,
            ..run_start
        };
        let request = match start_request(&shared.wire, child, workflow, &run_start) {
            Ok(request) => request,
            Err(error) => {
                let message = format!("`{workflow}` was not started: {error}");
                return Ok(Err(Fault::new(fault_kind::WORKFLOW, message)));
            }
        };
        match shared.connection.start(request).await {
            Err(error) if error.is_taken() => {
                let found = self.find(caller, child).await?;
                // If the run is not found, it existed at the time of the start, and Temporal has deleted it meanwhile.
                Ok(found.unwrap_or(Ok(())))
            }
            other => other.map(Ok),
        }
    }

    /// Returns whether the run of the call exists.
    ///
    /// `Some(Ok(()))`: it exists. `Some(Err(…))`: another run has its id. `None`: neither exists.
    async fn find(
        &self,
        caller: &Name,
        child: &Name,
    ) -> Result<Option<Result<(), Fault>>, TemporalError> {
        let first = match self.shared.connection.first_event(child, "").await {
            Err(error) if error.is_unknown() => return Ok(None),
            other => other?,
        };
        let run_start = fold::read_run_start(&self.shared.wire, first.as_ref())?;
        let parent = run_start.labels.get(PARENT_LABEL);
        if parent.is_some_and(|parent| *parent == **caller) {
            return Ok(Some(Ok(())));
        }
        let message = format!("there is a run {child} already");
        Ok(Some(Err(Fault::new(fault_kind::WORKFLOW, message))))
    }

    /// Waits for the end of the run and returns its outcome.
    async fn end_of(&self, child: &Name) -> Result<Outcome, TemporalError> {
        let Shared {
            connection,
            wire,
            loader,
            ..
        } = &*self.shared;
        loop {
            let info = connection.describe(child).await?.info;
            let execution = info.execution.unwrap_or_default().run_id;
            let last = connection.close(child, &execution).await?;
            if let Some(Attributes::WorkflowExecutionContinuedAsNewEventAttributes(_)) =
                last.attributes
            {
                continue;
            }
            let events = connection.whole_history(child, &execution).await?;
            let run_start = fold::read_run_start(wire, events.first())?;
            let loaded = loader.load_to_end(run_start.program, &run_start.source);
            let program = loaded.map_err(TemporalError::Unloadable)?.program;
            let execution = fold::replay(wire, child, program, run_start, &events)?;
            let missing =
                || TemporalError::Payload(format!("run {child} has ended without an outcome"));
            return execution.outcome().cloned().ok_or_else(missing);
        }
    }

    /// Cancels the called run if no run waits for it any more.
    ///
    /// A workflow task of the calling run cancels it, too. But a calling run that was terminated has no further task,
    /// and one that ended before the called run began could not cancel it.
    async fn leave(&self, caller: &Name, execution: &str, child: &Name) {
        let connection = &self.shared.connection;
        let activity = &self.start.activity_id;
        let waits = connection.waits_for(caller, execution, activity).await;
        let left = match waits {
            Ok(true) => return,
            Ok(false) => connection.cancel(child, NO_CALLER).await,
            Err(error) => Err(error),
        };
        match left {
            // If Temporal does not know the run as running, it has ended.
            Err(error) if error.is_unknown() => {}
            Err(error) => {
                tracing::warn!(%child, %error, "a run that no run waits for was not cancelled")
            }
            Ok(()) => tracing::info!(%child, "cancelled: {NO_CALLER}"),
        }
    }
}
