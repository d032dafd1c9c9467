//! `windlass worker`: processes workflow tasks and activities from Temporal until it is stopped. Its memory is only a
//! cache: another worker can compute the same state from the history.

use super::connection::Connection;
use super::effect::Effects;
use super::run_execution::{Input, Order, RunExecution, Task};
use super::stuck;
use super::wire::{self, Command, RunStart, Wire};
use super::{COMMAND, EFFECT, TemporalError, WORKFLOW};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use temporalio_common::protos::coresdk::activity_result::activity_resolution::Status as Resolved;
use temporalio_common::protos::coresdk::common::NamespacedWorkflowExecution;
use temporalio_common::protos::coresdk::workflow_activation::workflow_activation_job::Variant as Job;
use temporalio_common::protos::coresdk::workflow_activation::{
    InitializeWorkflow, WorkflowActivation,
};
use temporalio_common::protos::coresdk::workflow_commands as commands;
use temporalio_common::protos::coresdk::workflow_commands::workflow_command::Variant as Ordered;
use temporalio_common::protos::coresdk::workflow_completion::WorkflowActivationCompletion;
use temporalio_common::protos::temporal::api::common::v1::{Payload, RetryPolicy};
use temporalio_common::protos::temporal::api::enums::v1::ContinueAsNewVersioningBehavior;
use temporalio_common::protos::temporal::api::failure::v1::{
    ApplicationFailureInfo, Failure, failure::FailureInfo,
};
use temporalio_common::worker::{
    VersioningBehavior, WorkerDeploymentOptions, WorkerDeploymentVersion, WorkerTaskTypes,
};
use temporalio_sdk_core::{
    CoreRuntime, PollError, RuntimeOptions, WorkerConfig, WorkerValidationError,
    WorkerVersioningStrategy, init_worker,
};
use tokio::task::JoinSet;
use windlass_engine::scheduler::{Loaded, Loader};
use windlass_machine::program::ProgramHash;
use windlass_machine::{EffectId, Outcome};
use windlass_model::model::{Fault, Name, Request, Status, fault_kind};
use windlass_store::ProgramSource;
use windlass_value::time::Timestamp;

/// The version of the machine. If workers are versioned, a run continues only on workers of the version that began its
/// execution. Change the number if the machine would replay an existing history differently.
const MACHINE: &str = "1";

/// The environment variable that overrides [`MACHINE`], for tests.
const MACHINE_OF_TESTS: &str = "WINDLASS_TEMPORAL_MACHINE";

/// Timeout of an effect's activity in Temporal. Temporal requires one, but it never expires, because an action has a
/// timeout of its own.
const LONGEST: Duration = Duration::from_secs(3_650 * 86_400);

/// Delay before a lost effect is started again.
const AGAIN: Duration = Duration::from_millis(100);

/// Maximum number of cached programs that no run in memory needs.
const MANY_PROGRAMS: usize = 256;

/// The reason that Temporal shows for the cancel of a called run.
pub const NO_CALLER: &str = "no run waits for it any more";

/// Maximum size in bytes of an output that is shown in Temporal's own tools.
const SHOWN: usize = 16 << 10;

/// The options of a worker.
#[derive(Clone, Debug)]
pub struct WorkerOptions {
    /// If a worker sends no heartbeat for this time, it counts as lost, and another worker repeats its effects.
    pub heartbeat: Duration,
    /// How long a run waits for the worker that has it in memory before another worker continues it.
    pub sticky: Duration,
    /// Maximum number of concurrent effects.
    pub effects: usize,
    /// Maximum number of runs in memory.
    pub runs: usize,
    /// The name of the deployment, if workers are versioned.
    pub deployment: Option<String>,
    /// How long effects in flight may continue when the worker stops.
    pub grace: Duration,
}

/// State that is shared by the parts of a worker.
pub struct Shared {
    pub connection: Connection,
    pub wire: Wire,
    pub options: WorkerOptions,
    pub loader: Arc<dyn Loader>,
    programs: Mutex<HashMap<ProgramHash, Loaded>>,
    runs: Mutex<HashMap<String, HostedRun>>,
}

/// A run in this worker's memory.
struct HostedRun {
    run: RunExecution,
    /// The effects whose activities are in flight, by the number of the activity in Temporal.
    activities: BTreeMap<u32, EffectId>,
    next: u32,
    /// Number of requests of this run to cancel other runs. It numbers these requests.
    cancelled: u32,
}

impl HostedRun {
    fn effect(&mut self, id: EffectId) -> u32 {
        self.next += 1;
        self.activities.insert(self.next, id);
        self.next
    }

    fn number(&mut self, id: EffectId) -> Option<u32> {
        let number = self.activities.iter().find(|(_, of)| **of == id);
        let number = number.map(|(number, _)| *number)?;
        self.activities.remove(&number);
        Some(number)
    }
}

impl Shared {
    /// Returns a compiled program from the cache. If the cache does not have it, compiles it.
    pub fn load(&self, hash: ProgramHash, source: &ProgramSource) -> Result<Loaded, TemporalError> {
        if let Some(loaded) = self.loaded(hash) {
            return Ok(loaded);
        }
        let loaded = self.loader.load(hash, source);
        let loaded = loaded.map_err(TemporalError::Unloadable)?;
        let mut programs = self.programs.lock().unwrap_or_else(PoisonError::into_inner);
        if programs.len() >= MANY_PROGRAMS {
            programs.clear();
        }
        programs.insert(hash, loaded.clone());
        Ok(loaded)
    }

    /// Returns a compiled program, also if this worker lacks something that its actions need: a run needs them only for
    /// its effects, and its deadlines and commands must work without them. Such a program is not cached, so that each
    /// effect reports what is missing.
    fn load_to_host(
        &self,
        run: &Name,
        hash: ProgramHash,
        source: &ProgramSource,
    ) -> Result<Loaded, TemporalError> {
        let error = match self.load(hash, source) {
            Ok(loaded) => return Ok(loaded),
            Err(error) => error,
        };
        let loaded = self.loader.load_to_end(hash, source);
        let loaded = loaded.map_err(TemporalError::Unloadable)?;
        tracing::warn!(%run, %error, "no effect of this run starts on this worker");
        Ok(loaded)
    }

    /// Returns a compiled program, if the cache has it.
    pub fn loaded(&self, hash: ProgramHash) -> Option<Loaded> {
        let programs = self.programs.lock().unwrap_or_else(PoisonError::into_inner);
        programs.get(&hash).cloned()
    }

    /// Returns the request of an effect, if the run of the effect is in memory.
    pub fn request(&self, execution: &str, id: EffectId) -> Option<Request> {
        let runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        runs.get(execution)?.run.request(id)
    }
}

/// A connected worker.
pub struct Worker {
    shared: Arc<Shared>,
    core: Arc<temporalio_sdk_core::Worker>,
}

impl Worker {
    /// Connects a worker.
    ///
    /// # Errors
    /// Returns an error if Temporal cannot be reached or refuses the worker.
    pub async fn connect(
        target: super::Target,
        loader: Arc<dyn Loader>,
        wire: Wire,
        options: WorkerOptions,
    ) -> Result<Self, TemporalError> {
        let connection = Connection::open(target).await?;
        let failed = |error: String| TemporalError::Worker(error);
        let runtime = RuntimeOptions::builder()
            .heartbeat_interval(None)
            .build()
            .map_err(failed)?;
        let runtime = CoreRuntime::new_assume_tokio(runtime)
            .map_err(|error| TemporalError::Worker(error.to_string()))?;
        let machine = std::env::var(MACHINE_OF_TESTS).unwrap_or_else(|_| MACHINE.to_owned());
        let strategy = match &options.deployment {
            Some(name) => WorkerVersioningStrategy::WorkerDeploymentBased(
                WorkerDeploymentOptions::new(
                    WorkerDeploymentVersion::builder()
                        .deployment_name(name.clone())
                        .build_id(machine)
                        .build(),
                )
                .use_worker_versioning(true)
                .default_versioning_behavior(VersioningBehavior::Pinned)
                .build(),
            ),
            None => WorkerVersioningStrategy::None {
                build_id: format!("windlass-{machine}"),
            },
        };
        let config = WorkerConfig::builder()
            .namespace(connection.target.namespace.clone())
            .task_queue(connection.target.queue.clone())
            .max_cached_workflows(options.runs.max(1))
            .max_outstanding_workflow_tasks(100_usize)
            .max_outstanding_activities(options.effects.max(1))
            .max_outstanding_local_activities(1_usize)
            .task_types(WorkerTaskTypes {
                enable_workflows: true,
                enable_local_activities: false,
                enable_remote_activities: true,
                enable_nexus: false,
            })
            .sticky_queue_schedule_to_start_timeout(options.sticky)
            .graceful_shutdown_period(options.grace)
            .versioning_strategy(strategy)
            .build()
            .map_err(failed)?;
        let core = init_worker(&runtime, config, connection.inner.clone())
            .map_err(|error| TemporalError::Worker(error.to_string()))?;
        core.validate().await.map_err(|error| match error {
            WorkerValidationError::NamespaceDescribeError { source, .. } => {
                TemporalError::from(source)
            }
        })?;
        let shared = Shared {
            connection,
            wire,
            options,
            loader,
            programs: Mutex::default(),
            runs: Mutex::default(),
        };
        Ok(Self {
            shared: Arc::new(shared),
            core: Arc::new(core),
        })
    }

    /// Processes tasks until `stop` is ready. After that, effects in flight may continue for the grace time.
    ///
    /// # Errors
    /// Returns an error if Temporal permanently refuses the worker's requests.
    pub async fn run(self, stop: impl Future<Output = ()>) -> Result<(), TemporalError> {
        let mut halves = JoinSet::new();
        let (shared, core) = (Arc::clone(&self.shared), Arc::clone(&self.core));
        halves.spawn(async move { host(shared, core).await });
        let (shared, core) = (Arc::clone(&self.shared), Arc::clone(&self.core));
        halves.spawn(async move { Effects::new(shared, core).run().await });
        let early = tokio::select! {
            () = stop => None,
            ended = halves.join_next() => ended,
        };
        self.core.initiate_shutdown();
        let mut outcome = early.map_or(Ok(()), flat);
        while let Some(ended) = halves.join_next().await {
            outcome = outcome.and(flat(ended));
        }
        self.core.shutdown().await;
        outcome
    }
}

fn flat(
    ended: Result<Result<(), TemporalError>, tokio::task::JoinError>,
) -> Result<(), TemporalError> {
    ended.unwrap_or_else(|error| Err(TemporalError::Worker(error.to_string())))
}

/// Processes workflow tasks.
async fn host(
    shared: Arc<Shared>,
    core: Arc<temporalio_sdk_core::Worker>,
) -> Result<(), TemporalError> {
    let mut completions = JoinSet::new();
    loop {
        let activation = match core.poll_workflow_activation().await {
            Ok(activation) => activation,
            Err(PollError::ShutDown) => break,
            Err(error) => return Err(TemporalError::Worker(error.to_string())),
        };
        while completions.try_join_next().is_some() {}
        let completion = shared.activate(activation);
        let core = Arc::clone(&core);
        completions.spawn(async move {
            if let Err(error) = core.complete_workflow_activation(completion).await {
                tracing::error!(%error, "a workflow task was not taken");
            }
        });
    }
    completions.join_all().await;
    Ok(())
}

impl Shared {
    fn activate(&self, activation: WorkflowActivation) -> WorkflowActivationCompletion {
        let execution = activation.run_id.clone();
        match self.handle_activation(activation) {
            Ok(orders) => WorkflowActivationCompletion::from_cmds(execution, orders),
            Err(error) => {
                tracing::error!(execution, %error, "a workflow task failed, and is tried again");
                WorkflowActivationCompletion::fail(execution, stuck::failure(&error), None)
            }
        }
    }

    fn handle_activation(
        &self,
        activation: WorkflowActivation,
    ) -> Result<Vec<Ordered>, TemporalError> {
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        let execution = activation.run_id;
        let mut orders = Vec::new();
        let mut task = Task {
            now: activation
                .timestamp
                .map_or(Timestamp(0), |at| time(at.seconds, at.nanos)),
            length: activation.history_length,
            suggested: activation.continue_as_new_suggested,
            inputs: Vec::new(),
        };
        let mut moved = false;
        for job in activation.jobs.into_iter().filter_map(|job| job.variant) {
            let input = match job {
                Job::InitializeWorkflow(begin) => {
                    runs.insert(execution.clone(), self.begin(&begin)?);
                    moved = true;
                    continue;
                }
                Job::RemoveFromCache(_) => {
                    runs.remove(&execution);
                    return Ok(Vec::new());
                }
                Job::QueryWorkflow(query) => {
                    orders.push(no_query(query.query_id));
                    continue;
                }
                Job::FireTimer(fired) => Some(Input::Fired(fired.seq)),
                Job::CancelWorkflow(_) => Some(Input::Cancel),
                // Temporal reports this even if the other run had ended or never began.
                Job::ResolveRequestCancelExternalWorkflow(_) => Some(Input::RunCancelled),
                Job::SignalWorkflow(signal) => Some(Input::Signal(
                    Name::from(signal.signal_name),
                    wire::signalled(&signal.input),
                )),
                Job::ResolveActivity(resolved) => {
                    let hosting = runs.get_mut(&execution);
                    let id = hosting.and_then(|one| one.activities.remove(&resolved.seq));
                    let status = resolved.result.and_then(|result| result.status);
                    match (id, status) {
                        (Some(id), Some(status)) => {
                            self.answer(status)?.map(|answer| Input::Done(id, answer))
                        }
                        // Ignore the answer: the activity was cancelled before.
                        _ => None,
                    }
                }
                Job::DoUpdate(update) if update.name == COMMAND => {
                    let first = update.input.first();
                    let bytes = first.map_or(&[][..], |payload| payload.data.as_slice());
                    match self.wire.read::<Command>(bytes) {
                        Ok(command) => Some(Input::Update(
                            update.protocol_instance_id,
                            command,
                            update.run_validator,
                        )),
                        Err(error) => {
                            orders.push(refuse(update.protocol_instance_id, &error.to_string()));
                            None
                        }
                    }
                }
                Job::DoUpdate(update) => {
                    let why = format!("unknown update `{}`: send {COMMAND}", update.name);
                    orders.push(refuse(update.protocol_instance_id, &why));
                    None
                }
                // Ignore any other job: Windlass sends no command that causes one.
                _ => None,
            };
            task.inputs.extend(input);
        }
        moved |= !task.inputs.is_empty();
        if moved {
            let hosting = runs.get_mut(&execution).ok_or_else(|| {
                TemporalError::Worker(String::from("a run is not in this worker's memory"))
            })?;
            for order in hosting.run.handle_task(task, &mut |_, _, _| {})? {
                orders.extend(self.order(hosting, order));
            }
        }
        Ok(orders)
    }

    fn begin(&self, begin: &InitializeWorkflow) -> Result<HostedRun, TemporalError> {
        let first = begin.arguments.first();
        let bytes = first.map_or(&[][..], |payload| payload.data.as_slice());
        let run_start: RunStart = self.wire.read(bytes)?;
        let id = Name::from(begin.workflow_id.as_str());
        let loaded = self.load_to_host(&id, run_start.program, &run_start.source)?;
        Ok(HostedRun {
            run: RunExecution::new(&id, self.wire.clone(), loaded.program, run_start),
            activities: BTreeMap::new(),
            next: 0,
            cancelled: 0,
        })
    }

    /// Decodes the result of an activity. `None` if the activity was cancelled.
    fn answer(&self, status: Resolved) -> Result<Option<wire::ActivityResult>, TemporalError> {
        Ok(match status {
            Resolved::Completed(success) => {
                let data = success.result.unwrap_or_default().data;
                Some(self.wire.read(&data)?)
            }
            Resolved::Failed(failed) => {
                let why = failed.failure.map(|failure| failure.message);
                Some(Err(lost(&why.unwrap_or_default())))
            }
            Resolved::Cancelled(_) | Resolved::Backoff(_) => None,
        })
    }

    fn order(&self, hosting: &mut HostedRun, order: Order) -> Vec<Ordered> {
        match order {
            Order::Start(id, ask) => {
                let seq = hosting.effect(id);
                vec![self.start(seq, id, ask)]
            }
            Order::Abort(id) => hosting
                .number(id)
                .map(|seq| commands::RequestCancelActivity { seq }.into())
                .into_iter()
                .collect(),
            Order::CancelRun(run) => {
                hosting.cancelled += 1;
                vec![self.cancel_run(hosting.cancelled, &run)]
            }
            Order::Arm(seq, wait) => vec![
                commands::StartTimer {
                    seq,
                    start_to_fire_timeout: wait.try_into().ok(),
                }
                .into(),
            ],
            Order::Disarm(seq) => vec![commands::CancelTimer { seq }.into()],
            Order::Answer(id, status) => vec![
                respond(
                    id.clone(),
                    commands::update_response::Response::Accepted(()),
                ),
                respond(
                    id,
                    commands::update_response::Response::Completed(wire::status(status)),
                ),
            ],
            Order::Refuse(id, why) => vec![refuse(id, &why)],
            Order::SetStatus(status) => vec![
                commands::UpsertWorkflowSearchAttributes {
                    search_attributes: Some(wire::status_update(status)),
                }
                .into(),
            ],
            Order::CarryOver(next) => vec![self.carry_over(next)],
            Order::Finish(outcome) => vec![finish(&outcome)],
        }
    }

    fn start(&self, seq: u32, id: EffectId, ask: Vec<u8>) -> Ordered {
        commands::ScheduleActivity {
            seq,
            activity_id: id.0.to_string(),
            activity_type: EFFECT.to_owned(),
            task_queue: self.connection.target.queue.clone(),
            arguments: vec![wire::of_bytes(ask)],
            start_to_close_timeout: LONGEST.try_into().ok(),
            heartbeat_timeout: self.options.heartbeat.try_into().ok(),
            retry_policy: Some(RetryPolicy {
                initial_interval: AGAIN.try_into().ok(),
                backoff_coefficient: 1.0,
                maximum_interval: AGAIN.try_into().ok(),
                // 0 means an unlimited number of attempts.
                maximum_attempts: 0,
                non_retryable_error_types: Vec::new(),
            }),
            ..Default::default()
        }
        .into()
    }

    fn cancel_run(&self, seq: u32, run: &str) -> Ordered {
        commands::RequestCancelExternalWorkflowExecution {
            seq,
            workflow_execution: Some(NamespacedWorkflowExecution {
                namespace: self.connection.target.namespace.clone(),
                workflow_id: run.to_owned(),
                // An empty id means the last execution.
                run_id: String::new(),
            }),
            reason: NO_CALLER.to_owned(),
        }
        .into()
    }

    fn carry_over(&self, next: Vec<u8>) -> Ordered {
        let versioned = self.options.deployment.is_some();
        let behavior = match versioned {
            // If workers are versioned, a worker with a new version of the machine may run the next execution.
            true => ContinueAsNewVersioningBehavior::AutoUpgrade,
            false => ContinueAsNewVersioningBehavior::Unspecified,
        };
        commands::ContinueAsNewWorkflowExecution {
            workflow_type: WORKFLOW.to_owned(),
            arguments: vec![wire::of_bytes(next)],
            initial_versioning_behavior: behavior.into(),
            ..Default::default()
        }
        .into()
    }
}

/// Makes the fault for an activity that Temporal has given up.
pub fn lost(why: &str) -> Fault {
    Fault {
        kind: Name::from(fault_kind::CONNECTION),
        code: None,
        message: format!("Temporal gave the action up: {why}"),
        output: None,
        retry_after_ms: None,
        transient: true,
    }
}

fn respond(id: String, response: commands::update_response::Response) -> Ordered {
    commands::UpdateResponse {
        protocol_instance_id: id,
        response: Some(response),
    }
    .into()
}

fn refuse(id: String, why: &str) -> Ordered {
    let failure = Failure::application_failure(why.to_owned(), true);
    respond(id, commands::update_response::Response::Rejected(failure))
}

fn no_query(query_id: String) -> Ordered {
    let why = "windlass folds the history instead: `windlass status --engine`";
    let failure = Failure::application_failure(why.to_owned(), true);
    commands::QueryResult {
        query_id,
        variant: Some(commands::query_result::Variant::Failed(failure)),
    }
    .into()
}

/// Makes the command that ends a run. Its status and output are what Temporal's own tools show.
fn finish(outcome: &Outcome) -> Ordered {
    match outcome.status {
        Status::Cancelled => commands::CancelWorkflowExecution { details: None }.into(),
        Status::Failed | Status::TimedOut => {
            let message = outcome
                .error
                .as_ref()
                .map(|error| error.fault.message.clone());
            let failure = Failure {
                message: message.unwrap_or_else(|| outcome.status.as_str().to_owned()),
                failure_info: Some(FailureInfo::ApplicationFailureInfo(
                    ApplicationFailureInfo {
                        r#type: outcome.status.as_str().to_owned(),
                        non_retryable: true,
                        ..Default::default()
                    },
                )),
                ..Default::default()
            };
            let failure = Some(failure);
            commands::FailWorkflowExecution { failure }.into()
        }
        _ => commands::CompleteWorkflowExecution {
            result: shown(outcome),
        }
        .into(),
    }
}

/// Returns a run's output for Temporal's own tools. `None` if the output is long or secure.
fn shown(outcome: &Outcome) -> Option<Payload> {
    let text = match outcome.output.has_secure() {
        true => None,
        false => Some(outcome.output.to_json()),
    };
    let text = text.filter(|text| text.len() <= SHOWN)?;
    Some(wire::shown(&serde_json::from_str(&text).ok()?))
}

/// Converts a time of Temporal.
pub fn time(seconds: i64, nanos: i32) -> Timestamp {
    let millis = i64::from(nanos) / 1_000_000;
    Timestamp(seconds.saturating_mul(1_000).saturating_add(millis))
}
