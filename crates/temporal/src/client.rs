//! Starts runs on Temporal, and delivers commands to them, for the use cases of the engine.

use super::connection::{Connection, execution_id, single_payload};
use super::inspect::{Folds, TemporalReader, blocking};
use super::stuck::Stuck;
use super::target::Target;
use super::wire::{self, Command, MAX_PAYLOAD, RunStart, StartState, Wire};
use super::{COMMAND, TemporalError, WORKFLOW};
use futures_util::future::BoxFuture;
use std::sync::Arc;
use std::time::Duration;
use temporalio_client::tonic::Code;
use temporalio_common::protos::temporal::api::common::v1::WorkflowType;
use temporalio_common::protos::temporal::api::enums::v1::{
    UpdateWorkflowExecutionLifecycleStage, WorkflowIdConflictPolicy, WorkflowIdReusePolicy,
};
use temporalio_common::protos::temporal::api::update::v1::{
    Input, Meta, Request, WaitPolicy, outcome,
};
use temporalio_common::protos::temporal::api::workflowservice::v1 as service;
use tokio::runtime::Handle;
use windlass_engine::scheduler::{Loader, ScheduleError, Start, Watcher};
use windlass_engine::{EngineError, PruneFilter, Pruned, RunBackend, RunReader};
use windlass_machine::{Event, RunStatus};
use windlass_model::model::Name;
use windlass_store::RunHeader;
use windlass_value::time::Timestamp;

/// Number of events of a history at which a run carries over: it continues as a new execution with a short history.
/// Temporal ends an execution at 51,200 events. The number is much smaller, because a reader reads only the last
/// execution, whose first event has the run's state.
pub const CARRY_OVER_AT: u32 = 1_000;

/// The environment variable that overrides [`CARRY_OVER_AT`], for tests.
const CARRY_OVER: &str = "WINDLASS_TEMPORAL_CARRY_OVER";

/// Maximum time that a command waits for the answer of a worker.
const PATIENCE: Duration = Duration::from_secs(10);

/// Pause before a command is sent again because the run carries over.
const AGAIN: Duration = Duration::from_millis(50);

type EngineFuture<'a, T> = BoxFuture<'a, Result<T, EngineError>>;

/// Runs on Temporal.
struct Temporal {
    connection: Connection,
    wire: Wire,
    folds: Arc<Folds>,
    /// The runtime for all requests to Temporal.
    tasks: Handle,
}

/// Connects to runs on Temporal. `workflows` has the workflows that are stored under names.
///
/// # Errors
/// Returns an error if Temporal cannot be reached.
pub fn connect(
    target: Target,
    wire: Wire,
    loader: Arc<dyn Loader>,
    workflows: Arc<dyn RunReader>,
) -> Result<Arc<dyn RunBackend>, TemporalError> {
    let tasks = own_runtime()?;
    let connection = blocking(&tasks, Connection::open(target))?;
    let folds = Folds::new(
        connection.clone(),
        wire.clone(),
        loader,
        workflows,
        tasks.clone(),
    );
    Ok(Arc::new(Temporal {
        connection,
        wire,
        folds: Arc::new(folds),
        tasks,
    }))
}

/// Starts a runtime for requests to Temporal.
///
/// A caller that reads runs may block the only thread of its own runtime until the data arrives. So another runtime has
/// to receive the data.
fn own_runtime() -> Result<Handle, TemporalError> {
    let failed = |error: std::io::Error| TemporalError::Worker(error.to_string());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(failed)?;
    let handle = runtime.handle().clone();
    std::thread::Builder::new()
        .name(String::from("windlass-temporal"))
        // The thread ends with the process.
        .spawn(move || runtime.block_on(std::future::pending::<()>()))
        .map_err(failed)?;
    Ok(handle)
}

impl Temporal {
    fn run_start(&self, start: &Start) -> RunStart {
        let from = match &start.from {
            Some(state) => StartState::Restored(state.clone()),
            None => StartState::Start {
                input: start.input.clone(),
                environment: start.environment.clone(),
            },
        };
        let threshold = std::env::var(CARRY_OVER).ok();
        let threshold = threshold.and_then(|number| number.parse().ok());
        RunStart {
            source: start.source.clone(),
            program: start.loaded.program.hash,
            labels: start.labels.clone(),
            carry_over_at: threshold.unwrap_or(CARRY_OVER_AT),
            searchable: self.connection.target.search,
            from,
            saved: start.saved.clone(),
        }
    }

    async fn begin(&self, start: Start) -> Result<(), EngineError> {
        let run_start = self.run_start(&start);
        let workflow = &start.loaded.program.name;
        let request = start_request(&self.wire, &start.run, workflow, &run_start)?;
        let connection = self.connection.clone();
        match self
            .on_own(async move { connection.start(request).await })
            .await
        {
            Err(error) if error.is_taken() => {
                Err(EngineError::from(ScheduleError::Exists(start.run)))
            }
            Err(error) => Err(error.into()),
            Ok(()) => {
                if let Some(watcher) = start.watcher {
                    self.follow(&start.run, watcher).await?;
                }
                Ok(())
            }
        }
    }

    async fn on_own<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, TemporalError>> + Send + 'static,
    ) -> Result<T, TemporalError> {
        let done = self.tasks.spawn(work).await;
        done.unwrap_or_else(|error| Err(TemporalError::Worker(error.to_string())))
    }

    async fn send_command(&self, run: &str, event: Event) -> Result<RunStatus, EngineError> {
        let Some(command) = Command::of(event) else {
            let why = "this event is not delivered to runs on Temporal";
            return Err(EngineError::Elsewhere(why.to_owned()));
        };
        if let Some(stuck) = self.check(run, &command).await? {
            return self.stop_unloadable(run, &command, stuck).await;
        }
        let payload = self.wire.payload(&command)?;
        if payload.data.len() > MAX_PAYLOAD {
            return Err(EngineError::Input(format!(
                "the signal has {} bytes, and Temporal accepts at most {MAX_PAYLOAD}",
                payload.data.len()
            )));
        }
        let request = service::UpdateWorkflowExecutionRequest {
            workflow_execution: Some(execution_id(run, "")),
            wait_policy: Some(WaitPolicy {
                lifecycle_stage: UpdateWorkflowExecutionLifecycleStage::Completed.into(),
            }),
            request: Some(Request {
                meta: Some(Meta {
                    update_id: uuid(),
                    identity: self.connection.inner.identity().to_owned(),
                }),
                input: Some(Input {
                    name: COMMAND.to_owned(),
                    args: Some(single_payload(payload)),
                    ..Default::default()
                }),
                ..Default::default()
            }),
            ..Default::default()
        };
        let (connection, name) = (self.connection.clone(), Name::from(run));
        let delivery = self.on_own(async move {
            let delivered = tokio::time::timeout(PATIENCE, deliver(&connection, &name, request));
            delivered.await.unwrap_or_else(|_| Err(no_worker()))
        });
        match delivery.await {
            // The run may have ended meanwhile, or its workflow tasks may have begun to fail.
            Err(error @ TemporalError::Refused(_)) => match self.check(run, &command).await? {
                Some(stuck) => self.stop_unloadable(run, &command, stuck).await,
                None => Err(error.into()),
            },
            other => Ok(other?),
        }
    }

    /// Cancels a run that no worker can load. Temporal ends it without any further step of the run. Other commands are
    /// refused.
    async fn stop_unloadable(
        &self,
        run: &str,
        command: &Command,
        stuck: Stuck,
    ) -> Result<RunStatus, EngineError> {
        let name = Name::from(run);
        let reason = stuck.reason;
        if *command != Command::Cancel {
            return Err(ScheduleError::Unloadable { run: name, reason }.into());
        }
        let connection = self.connection.clone();
        let terminating = async move { connection.terminate(&name, &reason).await };
        self.on_own(terminating).await?;
        Ok(RunStatus::Cancelled)
    }

    /// Checks whether a command is refused: because the run has ended, or because nothing waits for the signal. If no
    /// worker can load the run, returns why.
    async fn check(&self, run: &str, command: &Command) -> Result<Option<Stuck>, EngineError> {
        let folds = Arc::clone(&self.folds);
        let (name, command) = (run.to_owned(), command.clone());
        let checked = self
            .tasks
            .spawn(async move { folds.check(&name, &command).await });
        let checked = checked.await;
        checked.unwrap_or_else(|error| Err(EngineError::Elsewhere(error.to_string())))
    }
}

/// Makes the request that starts a run.
pub fn start_request(
    wire: &Wire,
    run: &Name,
    workflow: &str,
    run_start: &RunStart,
) -> Result<service::StartWorkflowExecutionRequest, EngineError> {
    let bytes = wire.write(run_start)?;
    if bytes.len() > MAX_PAYLOAD {
        return Err(EngineError::Input(format!(
            "the workflow and its input have {} bytes together, and Temporal accepts at most \
             {MAX_PAYLOAD}: store large inputs in a file, and pass its name",
            bytes.len()
        )));
    }
    let attributes = || wire::run_attributes(workflow, &run_start.labels);
    Ok(service::StartWorkflowExecutionRequest {
        workflow_id: run.to_string(),
        workflow_type: Some(WorkflowType {
            name: WORKFLOW.to_owned(),
        }),
        input: Some(single_payload(wire::of_bytes(bytes))),
        search_attributes: run_start.searchable.then(attributes),
        request_id: uuid(),
        workflow_id_reuse_policy: WorkflowIdReusePolicy::RejectDuplicate.into(),
        workflow_id_conflict_policy: WorkflowIdConflictPolicy::Fail.into(),
        ..Default::default()
    })
}

/// Delivers a command. If the run carries over to a new execution meanwhile, the command is sent again.
async fn deliver(
    connection: &Connection,
    run: &Name,
    request: service::UpdateWorkflowExecutionRequest,
) -> Result<RunStatus, TemporalError> {
    let mut tries = 0;
    loop {
        tries += 1;
        let reply = connection.update(request.clone(), PATIENCE).await;
        let answer = match reply {
            Ok(answer) => answer,
            Err(TemporalError::Refused(status)) => match status.code() {
                Code::DeadlineExceeded | Code::Cancelled => return Err(no_worker()),
                Code::Aborted | Code::FailedPrecondition | Code::ResourceExhausted
                    if tries < 20 =>
                {
                    tokio::time::sleep(AGAIN).await;
                    continue;
                }
                _ => return Err(TemporalError::Refused(status)),
            },
            Err(error) => return Err(error),
        };
        let value = answer.outcome.and_then(|outcome| outcome.value);
        return match value {
            Some(outcome::Value::Success(payloads)) => {
                wire::read_status(&payloads).ok_or_else(|| {
                    TemporalError::Payload(format!("run {run} gave no status for an answer"))
                })
            }
            Some(outcome::Value::Failure(failure)) => Err(TemporalError::Worker(failure.message)),
            None => Err(no_worker()),
        };
    }
}

fn no_worker() -> TemporalError {
    TemporalError::Worker(format!(
        "no worker took it within {} seconds: start `windlass worker` for this queue",
        PATIENCE.as_secs()
    ))
}

fn uuid() -> String {
    ulid::Ulid::generate().to_string()
}

impl RunBackend for Temporal {
    fn inspect(&self) -> Arc<dyn RunReader> {
        Arc::new(TemporalReader(Arc::clone(&self.folds)))
    }

    fn start(&self, start: Start) -> EngineFuture<'_, ()> {
        Box::pin(self.begin(start))
    }

    fn deliver<'a>(&'a self, run: &'a str, event: Event) -> EngineFuture<'a, RunStatus> {
        Box::pin(self.send_command(run, event))
    }

    fn follow<'a>(&'a self, run: &'a str, watcher: Watcher) -> EngineFuture<'a, RunHeader> {
        let (folds, run) = (Arc::clone(&self.folds), Name::from(run));
        let following = self
            .tasks
            .spawn(async move { folds.follow(&run, watcher).await });
        Box::pin(async move {
            let followed = following.await;
            followed.unwrap_or_else(|error| Err(EngineError::Elsewhere(error.to_string())))
        })
    }

    fn prune(&self, filter: &PruneFilter, now: Timestamp) -> Result<Pruned, EngineError> {
        let chosen = self.folds.chosen(filter, now)?;
        let pruned = Pruned {
            runs: chosen.iter().map(ToString::to_string).collect(),
            programs: 0,
            dry_run: filter.dry_run,
        };
        if !filter.dry_run {
            for run in chosen {
                let connection = self.connection.clone();
                let name = run.clone();
                let deleting = async move { connection.delete(&name, "").await };
                blocking(&self.tasks, deleting)?;
                self.folds.forget(&run);
            }
        }
        Ok(pruned)
    }
}
