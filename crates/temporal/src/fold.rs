//! Reads a run from its history. To do so, it folds the history: it passes the events of the run's executions to the
//! machine, exactly as a worker does. This needs no worker, and never changes the run.

use super::run_execution::{Input, RunExecution, Task};
use super::stuck;
use super::wire::{self, Command, RunStart, StartState, Wire};
use super::worker::{lost, time};
use super::{COMMAND, TemporalError};
use std::collections::HashMap;
use std::sync::Arc;
use temporalio_common::protos::temporal::api::history::v1::HistoryEvent;
use temporalio_common::protos::temporal::api::history::v1::history_event::Attributes;
use windlass_engine::scheduler::{Loader, Step, Update, Watchers};
use windlass_machine::hosted::RunHost;
use windlass_machine::program::Program;
use windlass_machine::{Change, EffectId, HistoryKind, Transition};
use windlass_model::model::Name;
use windlass_store::{Commit, Placement, ProgramSource, RunHeader, Store, StoreError};
use windlass_value::time::Timestamp;

/// Number of steps after which a snapshot is stored in the store in memory. A reader loads a run from its last
/// snapshot.
const SNAPSHOT_AFTER: u32 = 256;

/// Decodes the input of an execution from the first event of its history.
pub fn read_run_start(
    wire: &Wire,
    first: Option<&HistoryEvent>,
) -> Result<RunStart, TemporalError> {
    match first.and_then(|event| event.attributes.as_ref()) {
        Some(Attributes::WorkflowExecutionStartedEventAttributes(started)) => {
            wire.first(started.input.as_ref())
        }
        _ => Err(TemporalError::Payload(String::from(
            "the history does not begin with its beginning",
        ))),
    }
}

/// Returns a run as it is after these events of an execution.
pub fn replay(
    wire: &Wire,
    run: &str,
    program: Arc<Program>,
    run_start: RunStart,
    events: &[HistoryEvent],
) -> Result<RunExecution, TemporalError> {
    let mut execution = RunExecution::new(&Name::from(run), wire.clone(), program, run_start);
    let mut tasks = Tasks::default();
    for event in events {
        if let Some(task) = tasks.event(wire, event)? {
            execution.handle_task(task, &mut |_, _, _| {})?;
        }
    }
    if let Some(task) = tasks.rest() {
        execution.handle_task(task, &mut |_, _, _| {})?;
    }
    Ok(execution)
}

/// Splits a history into workflow tasks.
#[derive(Default)]
struct Tasks {
    /// The inputs of the next task.
    pending: Vec<Input>,
    /// The effects of scheduled activities, by the id of the event that scheduled the activity.
    scheduled: HashMap<i64, EffectId>,
    /// The last task that was started.
    started: Option<Task>,
    /// The last task that was completed. It is returned only after its accepted updates were read, which follow it in
    /// the history.
    completed: Option<Task>,
    /// Why the last task failed, if its worker lacks something.
    failed: Option<String>,
}

impl Tasks {
    /// Reads an event. If it shows that all events of the last completed task were read, returns this task.
    fn event(&mut self, wire: &Wire, event: &HistoryEvent) -> Result<Option<Task>, TemporalError> {
        use Attributes as A;
        let at = event
            .event_time
            .as_ref()
            .map_or(Timestamp(0), |at| time(at.seconds, at.nanos));
        let Some(attributes) = &event.attributes else {
            return Ok(None);
        };
        match attributes {
            A::WorkflowTaskScheduledEventAttributes(_) => return Ok(self.completed.take()),
            A::WorkflowTaskStartedEventAttributes(started) => {
                self.started = Some(Task {
                    now: at,
                    length: u32::try_from(event.event_id).unwrap_or(u32::MAX),
                    suggested: started.suggest_continue_as_new,
                    inputs: Vec::new(),
                });
            }
            A::WorkflowTaskFailedEventAttributes(failed) => {
                self.started = None;
                self.failed = stuck::reason(failed.failure.as_ref()).map(str::to_owned);
            }
            A::WorkflowTaskTimedOutEventAttributes(_) => self.started = None,
            A::WorkflowTaskCompletedEventAttributes(_) => {
                self.failed = None;
                let task = self.started.take().map(|task| Task {
                    inputs: std::mem::take(&mut self.pending),
                    ..task
                });
                return Ok(std::mem::replace(&mut self.completed, task));
            }
            A::WorkflowExecutionUpdateAcceptedEventAttributes(accepted) => {
                let request = accepted.accepted_request.as_ref();
                let input = request.and_then(|request| request.input.as_ref());
                if let (Some(task), Some(input)) = (&mut self.completed, input)
                    && input.name == COMMAND
                {
                    let command: Command = wire.first(input.args.as_ref())?;
                    task.inputs
                        .push(Input::Update(String::new(), command, false));
                }
            }
            A::ActivityTaskScheduledEventAttributes(scheduled) => {
                if let Ok(id) = scheduled.activity_id.parse() {
                    self.scheduled.insert(event.event_id, EffectId(id));
                }
            }
            A::ActivityTaskCompletedEventAttributes(completed) => {
                if let Some(id) = self.scheduled.remove(&completed.scheduled_event_id) {
                    let answer = wire.first(completed.result.as_ref())?;
                    self.pending.push(Input::Done(id, answer));
                }
            }
            A::ActivityTaskFailedEventAttributes(failed) => {
                let why = failed.failure.as_ref().map(|failure| &*failure.message);
                self.on_activity_failed(failed.scheduled_event_id, why);
            }
            A::ActivityTaskTimedOutEventAttributes(timed_out) => {
                let why = timed_out.failure.as_ref().map(|failure| &*failure.message);
                self.on_activity_failed(timed_out.scheduled_event_id, why);
            }
            A::ActivityTaskCanceledEventAttributes(canceled) => {
                self.scheduled.remove(&canceled.scheduled_event_id);
            }
            A::TimerFiredEventAttributes(fired) => {
                if let Ok(number) = fired.timer_id.parse() {
                    self.pending.push(Input::Fired(number));
                }
            }
            A::WorkflowExecutionSignaledEventAttributes(signal) => {
                let payloads = signal.input.as_ref().map(|input| &*input.payloads);
                let payload = wire::signalled(payloads.unwrap_or_default());
                let name = Name::from(signal.signal_name.as_str());
                self.pending.push(Input::Signal(name, payload));
            }
            A::ExternalWorkflowExecutionCancelRequestedEventAttributes(_)
            | A::RequestCancelExternalWorkflowExecutionFailedEventAttributes(_) => {
                self.pending.push(Input::RunCancelled);
            }
            A::WorkflowExecutionCancelRequestedEventAttributes(_) => {
                self.pending.push(Input::Cancel);
            }
            A::WorkflowExecutionTerminatedEventAttributes(_)
            | A::WorkflowExecutionTimedOutEventAttributes(_) => {
                // The execution was ended outside of Windlass, so the run counts as cancelled.
                let before = self.completed.take();
                let ended = Task {
                    now: at,
                    length: 0,
                    suggested: false,
                    // The second cancel skips the actions that run at the end: no process is left to execute them.
                    inputs: vec![Input::Cancel, Input::Cancel],
                };
                self.completed = Some(ended);
                return Ok(before);
            }
            _ => {}
        }
        Ok(None)
    }

    fn on_activity_failed(&mut self, scheduled: i64, why: Option<&str>) {
        if let Some(id) = self.scheduled.remove(&scheduled) {
            let fault = lost(why.unwrap_or_default());
            self.pending.push(Input::Done(id, Err(fault)));
        }
    }

    /// Returns the last completed task, after all known events were read.
    fn rest(&mut self) -> Option<Task> {
        self.completed.take()
    }
}

/// Folds the history of one run into a store in memory.
pub struct FoldState {
    run: Name,
    store: Arc<dyn Store>,
    /// The execution whose events are read.
    execution: Option<Execution>,
    /// The header after the last step. Before the first step, its revision is not set.
    header: Option<RunHeader>,
    source: Option<ProgramSource>,
    since_snapshot: u32,
    /// Whether no worker has completed the first task yet. While true, the state in the store is computed in advance,
    /// and only for display.
    pub provisional: bool,
    /// The id of the next execution, if the run has carried over.
    pub next: Option<String>,
}

struct Execution {
    run: RunExecution,
    tasks: Tasks,
    /// The id of the last event that was read.
    seen: i64,
}

impl FoldState {
    pub fn new(run: &Name, store: Arc<dyn Store>) -> Self {
        Self {
            run: run.clone(),
            store,
            execution: None,
            header: None,
            source: None,
            since_snapshot: 0,
            provisional: false,
            next: None,
        }
    }

    /// Begins the next execution: events that are read from now on belong to it.
    pub fn next_execution(&mut self) {
        self.execution = None;
        self.next = None;
    }

    /// Reads events. Events that were read before are ignored.
    pub fn read_events(
        &mut self,
        wire: &Wire,
        loader: &dyn Loader,
        events: &[HistoryEvent],
        watchers: &mut Watchers,
    ) -> Result<(), TemporalError> {
        for event in events {
            let seen = self.execution.as_ref().map_or(0, |one| one.seen);
            if event.event_id <= seen {
                continue;
            }
            if self.execution.is_none() {
                self.begin(wire, loader, event)?;
            }
            if let Some(Attributes::WorkflowExecutionContinuedAsNewEventAttributes(next)) =
                &event.attributes
            {
                self.next = Some(next.new_execution_run_id.clone());
            }
            let task = match &mut self.execution {
                Some(one) => {
                    one.seen = event.event_id;
                    one.tasks.event(wire, event)?
                }
                None => None,
            };
            self.task(task, watchers)?;
        }
        let rest = self.execution.as_mut().and_then(|one| one.tasks.rest());
        self.task(rest, watchers)?;
        // If no worker has handled the first task yet, show the new run as it will begin.
        let first = events.first().filter(|_| !self.is_stored());
        if let Some(at) = first.and_then(|event| event.event_time.as_ref()) {
            let task = Task {
                now: time(at.seconds, at.nanos),
                length: 0,
                suggested: false,
                inputs: Vec::new(),
            };
            self.task(Some(task), watchers)?;
            self.provisional = true;
        }
        Ok(())
    }

    fn begin(
        &mut self,
        wire: &Wire,
        loader: &dyn Loader,
        first: &HistoryEvent,
    ) -> Result<(), TemporalError> {
        let run_start = read_run_start(wire, Some(first))?;
        let loaded = loader
            .load_to_end(run_start.program, &run_start.source)
            .map_err(TemporalError::Unloadable)?;
        if !self.is_stored() {
            self.source = Some(run_start.source.clone());
            let header = self.first_header(&run_start, &loaded.program);
            self.header = Some(header.clone());
            if let StartState::CarriedOver { state, at } = &run_start.from {
                let mut carried = Transition::default();
                carried.changes.push(Change::Restored(state.clone()));
                carried.loops = state.loops().map(|(_, _, row)| row.row()).collect();
                let header = RunHeader {
                    started_at: state.started_at,
                    updated_at: *at,
                    status: state.status(),
                    ..header
                };
                self.commit(header, &mut carried, None)?;
            }
        }
        self.execution = Some(Execution {
            run: RunExecution::new(&self.run, wire.clone(), loaded.program, run_start),
            tasks: Tasks::default(),
            seen: 0,
        });
        Ok(())
    }

    /// Returns why the last workflow task failed, if its worker lacks something.
    pub fn failed_task(&self) -> Option<&str> {
        self.execution.as_ref()?.tasks.failed.as_deref()
    }

    fn is_stored(&self) -> bool {
        self.header
            .as_ref()
            .is_some_and(|header| header.revision > 0)
    }

    fn first_header(&self, run_start: &RunStart, program: &Program) -> RunHeader {
        RunHeader {
            id: self.run.clone(),
            workflow: program.name.clone(),
            program: run_start.program,
            status: windlass_machine::RunStatus::Running,
            revision: 0,
            snapshot: 0,
            started_at: Timestamp(0),
            updated_at: Timestamp(0),
            placement: Placement::Idle,
            labels: run_start.labels.clone(),
        }
    }

    fn task(&mut self, task: Option<Task>, watchers: &mut Watchers) -> Result<(), TemporalError> {
        let Some(task) = task else {
            return Ok(());
        };
        let Some(mut one) = self.execution.take() else {
            return Ok(());
        };
        let mut committed = Ok(());
        let taken = one.run.handle_task(task, &mut |hosted, step, now| {
            if committed.is_ok() {
                committed = self.commit_step(hosted, step, now, watchers);
            }
        });
        self.execution = Some(one);
        committed?;
        taken.map(drop)
    }

    fn commit_step(
        &mut self,
        hosted: &RunHost,
        step: &mut Transition,
        now: Timestamp,
        watchers: &mut Watchers,
    ) -> Result<(), TemporalError> {
        let Some(mut header) = self.header.clone() else {
            return Ok(());
        };
        if header.revision == 0 {
            header.started_at = now;
        }
        header.status = hosted.status();
        header.updated_at = now;
        header.labels.extend(hosted.state().failed_endings());
        header.count_failed_actions(&step.history);
        self.since_snapshot += 1;
        let (history, loops) = (step.history.clone(), step.loops.clone());
        let pauses = |kind: &HistoryKind| matches!(kind, HistoryKind::RunPaused { .. });
        let paused = history.iter().any(|event| pauses(&event.what));
        let snapshot = self.since_snapshot >= SNAPSHOT_AFTER && !header.status.is_final();
        self.commit(header.clone(), step, snapshot.then_some(hosted))?;
        let retries = history.iter().any(|event| event.is_retry());
        watchers.step(&self.run, retries, || Step {
            history,
            loops,
            header,
        });
        let reason = hosted.state().paused.as_ref().filter(|_| paused);
        if let Some((_, reason)) = reason {
            watchers.notify(&self.run, || Update::Paused(reason.clone()));
        }
        if let Some(outcome) = &hosted.state().outcome {
            watchers.notify(&self.run, || Update::Finished((**outcome).clone()));
            watchers.close(&self.run);
        }
        Ok(())
    }

    fn commit(
        &mut self,
        header: RunHeader,
        step: &mut Transition,
        whole: Option<&RunHost>,
    ) -> Result<(), TemporalError> {
        let revision = header.revision + 1;
        let mut header = RunHeader { revision, ..header };
        let snapshot = whole.map(|hosted| hosted.state().clone());
        if snapshot.is_some() {
            header.snapshot = revision;
            self.since_snapshot = 0;
        }
        let commit = Commit {
            header: header.clone(),
            changes: std::mem::take(&mut step.changes),
            loops: std::mem::take(&mut step.loops),
            iterations: std::mem::take(&mut step.iterations),
            history: std::mem::take(&mut step.history),
            snapshot,
            program: self.source.take(),
        };
        let failed = |error: StoreError| TemporalError::Worker(error.to_string());
        let committed = self.store.commit(&[commit]).map_err(failed)?;
        for one in committed {
            one.map_err(failed)?;
        }
        self.header = Some(header);
        Ok(())
    }
}
