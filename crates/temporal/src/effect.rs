//! Carries out effects. On Temporal, each effect is an activity, which the executors of a worker carry out. With
//! heartbeats the worker reports that it still works on the activity. If a worker is lost, another one repeats its
//! effects with the same idempotency keys.

use super::TemporalError;
use super::called::Call;
use super::connection::execution_id;
use super::fold;
use super::run_execution::YIELD;
use super::stuck;
use super::wire::{self, ActivityInput, ActivityResult, MAX_PAYLOAD};
use super::worker::{Shared, time};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use temporalio_common::protos::coresdk::activity_result::ActivityExecutionResult;
use temporalio_common::protos::coresdk::activity_task::activity_task::Variant;
use temporalio_common::protos::coresdk::activity_task::{ActivityTask, Start};
use temporalio_common::protos::coresdk::{ActivityHeartbeat, ActivityTaskCompletion};
use temporalio_common::protos::temporal::api::common::v1::Payload;
use temporalio_sdk_core::PollError;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use windlass_engine::scheduler::{Loaded, now};
use windlass_expression::Value;
use windlass_machine::EffectId;
use windlass_machine::program::ProgramHash;
use windlass_model::model::{Fault, Name, Request, fault_kind};
use windlass_value::time::Timestamp;

/// Senders that abort effects, by the token of the effect's activity task.
type Running = HashMap<Vec<u8>, oneshot::Sender<()>>;

/// The effects that a worker runs.
pub struct Effects {
    shared: Arc<Shared>,
    core: Arc<temporalio_sdk_core::Worker>,
    running: Arc<Mutex<Running>>,
    /// Calls of workflows that this worker waits for. A waiting call does not count for the limit of concurrent
    /// effects, because the called run may need an effect itself. When this worker stops, another worker waits for the
    /// called run.
    waits: Arc<Mutex<JoinSet<()>>>,
}

impl Effects {
    pub fn new(shared: Arc<Shared>, core: Arc<temporalio_sdk_core::Worker>) -> Self {
        Self {
            shared,
            core,
            running: Arc::default(),
            waits: Arc::default(),
        }
    }

    /// Runs activities until the worker stops.
    pub async fn run(self) -> Result<(), TemporalError> {
        let mut tasks = JoinSet::new();
        loop {
            let task = match self.core.poll_activity_task().await {
                Ok(task) => task,
                Err(PollError::ShutDown) => break,
                Err(error) => return Err(TemporalError::Worker(error.to_string())),
            };
            while tasks.try_join_next().is_some() {}
            let ActivityTask {
                task_token,
                variant,
            } = task;
            match variant {
                Some(Variant::Start(start)) => {
                    let (cut, is_cut) = oneshot::channel();
                    lock(&self.running).insert(task_token.clone(), cut);
                    let (shared, core) = (Arc::clone(&self.shared), Arc::clone(&self.core));
                    let running = Arc::clone(&self.running);
                    let waits = Arc::clone(&self.waits);
                    tasks.spawn(async move {
                        let (result, called) = tokio::select! {
                            done = carry_out(&shared, &core, &task_token, &start) => done,
                            _ = is_cut => (cancelled(), None),
                        };
                        lock(&running).remove(&task_token);
                        let call = called.map(|request| Call {
                            shared,
                            token: task_token.clone(),
                            start,
                            request,
                        });
                        let completion = ActivityTaskCompletion {
                            task_token,
                            result: Some(result),
                        };
                        if let Err(error) = core.complete_activity_task(completion).await {
                            tracing::error!(%error, "an effect's answer was not taken");
                        }
                        let mut waits = lock(&waits);
                        while waits.try_join_next().is_some() {}
                        if let Some(call) = call {
                            waits.spawn(call.wait());
                        }
                    });
                }
                Some(Variant::Cancel(_)) => {
                    let cut = lock(&self.running).remove(&task_token);
                    // An error is ignored, because the effect may have ended by now.
                    let _ = cut.map(|cut| cut.send(()));
                }
                None => {}
            }
        }
        tasks.join_all().await;
        Ok(())
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the execution of an effect resulted in.
enum Executed {
    Answer(ActivityResult),
    /// The effect calls a workflow and has to wait for its run.
    Calls(Request),
}

fn cancelled() -> ActivityExecutionResult {
    ActivityExecutionResult::cancel_from_details(None)
}

/// Executes an effect and sends heartbeats meanwhile. If the effect calls a workflow, also returns its request: then
/// the caller has to start the run, wait for it and answer the activity.
async fn carry_out(
    shared: &Shared,
    core: &temporalio_sdk_core::Worker,
    token: &[u8],
    start: &Start,
) -> (ActivityExecutionResult, Option<Request>) {
    if is_late(shared, start) && !matches!(shared.connection.heartbeat(token).await, Ok(true)) {
        // This worker was suspended, and Temporal has given the effect to another worker meanwhile.
        return (cancelled(), None);
    }
    let mut beats = tokio::time::interval(shared.options.heartbeat / 3);
    // The first tick is immediate, and no heartbeat is needed yet.
    beats.tick().await;
    let work = execute(shared, start);
    tokio::pin!(work);
    let done = loop {
        tokio::select! {
            done = &mut work => break done,
            _ = beats.tick() => core.record_activity_heartbeat(ActivityHeartbeat {
                task_token: token.to_vec(),
                details: Vec::new(),
            }),
        }
    };
    let answer = match done {
        Ok(Executed::Calls(request)) => {
            return (
                ActivityExecutionResult::will_complete_async(),
                Some(request),
            );
        }
        Ok(Executed::Answer(answer)) => pack(shared, answer),
        Err(error) => Err(error),
    };
    let result = match answer {
        Ok(payload) => ActivityExecutionResult::ok(payload),
        Err(error) => {
            // This worker lacks something that the effect needs. Temporal tries the activity again, possibly with
            // another worker.
            tracing::error!(%error, "an effect cannot be carried out here");
            ActivityExecutionResult::fail(stuck::effect_failure(&error, start.attempt))
        }
    };
    (result, None)
}

/// Returns whether this worker received the effect so long ago that Temporal may consider the effect lost. The result
/// can be wrong if the clocks of Temporal and this machine differ. That does no harm: the caller then asks Temporal.
fn is_late(shared: &Shared, start: &Start) -> bool {
    let given = start.started_time.as_ref();
    let given = given.map_or(Timestamp(0), |at| time(at.seconds, at.nanos));
    now().since(given) > shared.options.heartbeat / 2
}

/// Encodes an answer for Temporal.
pub fn pack(shared: &Shared, answer: ActivityResult) -> Result<Payload, TemporalError> {
    let bytes = shared.wire.write(&answer)?;
    if bytes.len() <= MAX_PAYLOAD {
        return Ok(wire::of_bytes(bytes));
    }
    let message = format!(
        "the action returned {} bytes, and Temporal accepts at most {MAX_PAYLOAD}: store the data \
         in a file, and return its name",
        bytes.len()
    );
    let too_large: ActivityResult = Err(Fault {
        kind: Name::from(fault_kind::TOO_LARGE),
        code: None,
        message,
        output: None,
        retry_after_ms: None,
        transient: false,
    });
    shared.wire.payload(&too_large)
}

async fn execute(shared: &Shared, start: &Start) -> Result<Executed, TemporalError> {
    let id = start.activity_id.parse().map(EffectId);
    let id = id.map_err(|_| TemporalError::Payload(String::from("an effect has no number")))?;
    if id == YIELD {
        return Ok(Executed::Answer(Ok(Value::Null)));
    }
    let bytes = start.input.first();
    let ask: ActivityInput = shared
        .wire
        .read(bytes.map_or(&[][..], |payload| payload.data.as_slice()))?;
    let execution = start.workflow_execution.clone().unwrap_or_default();
    let (run, execution) = (&*execution.workflow_id, &*execution.run_id);
    let program = ask.program;
    let request = match ask.request {
        Some(request) => request,
        None => large(shared, run, execution, id).await?,
    };
    if request.calls_workflow() {
        return Ok(Executed::Calls(request));
    }
    let loaded = load(shared, run, execution, program).await?;
    let registry = (*loaded.registry).clone().with_replayed(start.attempt > 1);
    Ok(Executed::Answer(registry.execute(&request).await))
}

/// Loads the executors of a run's program. If the program is not cached, its sources are read from the first event of
/// the execution.
async fn load(
    shared: &Shared,
    run: &str,
    execution: &str,
    program: ProgramHash,
) -> Result<Loaded, TemporalError> {
    if let Some(loaded) = shared.loaded(program) {
        return Ok(loaded);
    }
    let first = shared.connection.first_event(run, execution).await?;
    let run_start = fold::read_run_start(&shared.wire, first.as_ref())?;
    shared.load(run_start.program, &run_start.source)
}

/// Returns a request that was too large to be sent with the activity. It is read from the run's state in memory, or
/// from the history.
async fn large(
    shared: &Shared,
    run: &str,
    execution: &str,
    id: EffectId,
) -> Result<Request, TemporalError> {
    if let Some(request) = shared.request(execution, id) {
        return Ok(request);
    }
    let events = shared.connection.whole_history(run, execution).await?;
    let run_start = fold::read_run_start(&shared.wire, events.first())?;
    let loaded = shared.load(run_start.program, &run_start.source)?;
    let workflow = execution_id(run, execution);
    let execution = fold::replay(
        &shared.wire,
        &workflow.workflow_id,
        loaded.program,
        run_start,
        &events,
    )?;
    let missing = || TemporalError::Payload(format!("the run does not ask for {}", id.0));
    execution.request(id).ok_or_else(missing)
}
