//! Reads runs on Temporal. When a caller reads a run, the history of the run is folded into a store in memory (see
//! [`crate::fold`]), and the answer is read from this store. No worker is needed.

use super::TemporalError;
use super::connection::{Connection, Description};
use super::fold::FoldState;
use super::stuck::{self, Stuck};
use super::wire::{Command, Wire};
use futures_util::{StreamExt, stream};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use temporalio_common::protos::temporal::api::enums::v1::WorkflowExecutionStatus;
use temporalio_common::protos::temporal::api::history::v1::HistoryEvent as Event;
use temporalio_common::protos::temporal::api::workflow::v1::WorkflowExecutionInfo;
use tokio::runtime::Handle;
use tokio::sync::Mutex as AsyncMutex;
use windlass_engine::scheduler::{
    Loader, Queued, ScheduleError, Update, Watcher, Watchers, check_signal,
};
use windlass_engine::{EngineError, Extent, PruneFilter, RunReader, StoreReader, chosen_to_prune};
use windlass_machine::program::ProgramHash;
use windlass_model::model::Name;
use windlass_store::{
    MemoryStore, Placement, ProgramSource, QUARANTINE_LABEL, ReadStore, RunHeader, Store,
    StoreError, Wake,
};
use windlass_value::time::Timestamp;

type ReadResult<T> = Result<T, EngineError>;

/// The number that means all executions of a run.
const ALL_EXECUTIONS: usize = usize::MAX;

/// Number of histories that are read concurrently.
const AT_A_TIME: usize = 8;

/// Time until a follower checks first whether its run is stuck. It grows with each check, up to [`MAX_CHECK_INTERVAL`].
const FIRST_CHECK_INTERVAL: Duration = Duration::from_millis(500);

/// Maximum time between two checks whether a run is stuck.
const MAX_CHECK_INTERVAL: Duration = Duration::from_secs(8);

/// Folds the histories of runs into a store in memory.
pub struct Folds {
    connection: Connection,
    wire: Wire,
    loader: Arc<dyn Loader>,
    /// The workflows that are stored under names.
    workflows: Arc<dyn RunReader>,
    tasks: Handle,
    store: Arc<MemoryStore>,
    stored: StoreReader,
    known: Mutex<HashMap<Name, Arc<AsyncMutex<FoldedRun>>>>,
    watchers: Arc<Mutex<Watchers>>,
}

/// How far a run's history was folded.
struct FoldedRun {
    folded: FoldState,
    /// The id of the last execution that was read, and the number of its events that were read. `None` before the first
    /// read.
    at: Option<(String, i64)>,
    /// Number of executions that were folded, including the last one.
    executions: usize,
    /// Whether all executions of the run were folded.
    has_all_executions: bool,
    /// Whether a background task folds new events of the run as they arrive.
    followed: bool,
    /// Why no worker continued the run when Temporal last described it.
    stuck: Option<Stuck>,
}

/// Runs a future on the runtime of `tasks`, and blocks until it has ended.
pub fn blocking<T: Send + 'static>(
    tasks: &Handle,
    work: impl Future<Output = Result<T, TemporalError>> + Send + 'static,
) -> Result<T, TemporalError> {
    let (to, from) = std::sync::mpsc::channel();
    tasks.spawn(async move {
        // An error is ignored, because the waiting thread may have ended.
        let _ = to.send(work.await);
    });
    let stopped = |_| TemporalError::Worker(String::from("the connection to Temporal has stopped"));
    from.recv().map_err(stopped)?
}

impl Folds {
    pub fn new(
        connection: Connection,
        wire: Wire,
        loader: Arc<dyn Loader>,
        workflows: Arc<dyn RunReader>,
        tasks: Handle,
    ) -> Self {
        let store = Arc::new(MemoryStore::default());
        Self {
            stored: StoreReader::new(store.clone(), None),
            store,
            connection,
            wire,
            loader,
            workflows,
            tasks,
            known: Mutex::default(),
            watchers: Arc::default(),
        }
    }

    fn known(&self, run: &Name) -> Arc<AsyncMutex<FoldedRun>> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let one = known.entry(run.clone()).or_insert_with(|| {
            Arc::new(AsyncMutex::new(FoldedRun {
                folded: FoldState::new(run, self.store.clone()),
                at: None,
                executions: 0,
                has_all_executions: false,
                followed: false,
                stuck: None,
            }))
        });
        Arc::clone(one)
    }

    pub fn forget(&self, run: &Name) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.remove(run);
        // An error is ignored, because the run may never have been read into the store.
        let _ = self.store.delete(run);
    }

    /// Folds the new events of a run, and its last `executions` executions if they were not folded before. Returns
    /// whether all executions of the run are folded.
    async fn refresh(&self, run: &Name, executions: usize) -> Result<bool, TemporalError> {
        let known = self.known(run);
        let mut known = known.lock().await;
        match self.connection.describe(run).await {
            Ok(description) => {
                self.catch_up_to(&mut known, run, &description, executions)
                    .await?;
                Ok(known.has_all_executions)
            }
            Err(error) => {
                if error.is_unknown() {
                    self.forget(run);
                }
                Err(error)
            }
        }
    }

    /// Folds the new events of a run, and notes whether it is stuck.
    async fn catch_up_to(
        &self,
        known: &mut FoldedRun,
        run: &Name,
        description: &Description,
        executions: usize,
    ) -> Result<(), TemporalError> {
        self.catch_up(known, run, &description.info, executions)
            .await?;
        self.note_stuck(known, run, description)
    }

    /// Notes whether a run is stuck. A run that is stuck has the label of a parked run, with the reason.
    fn note_stuck(
        &self,
        known: &mut FoldedRun,
        run: &Name,
        description: &Description,
    ) -> Result<(), TemporalError> {
        known.stuck = stuck::find(description, known.folded.failed_task());
        let reason = known.stuck.as_ref().map(|stuck| stuck.reason.as_str());
        let noted = || {
            let header = self.store.header(run)?;
            if header.labels.get(QUARANTINE_LABEL).map(String::as_str) == reason {
                return Ok(());
            }
            self.store.set_quarantine(run, Placement::Idle, reason)
        };
        noted().map_err(|error: StoreError| TemporalError::Worker(error.to_string()))
    }

    async fn catch_up(
        &self,
        known: &mut FoldedRun,
        run: &Name,
        info: &WorkflowExecutionInfo,
        executions: usize,
    ) -> Result<(), TemporalError> {
        let execution = info.execution.as_ref();
        let execution = execution.map(|one| one.run_id.clone()).unwrap_or_default();
        let now = (execution.clone(), info.history_length);
        let first = known.at.as_ref().filter(|_| !known.folded.provisional);
        let can_continue =
            first.is_some() && (known.has_all_executions || executions <= known.executions);
        if can_continue && known.at.as_ref() == Some(&now) {
            return Ok(());
        }
        let same = known.at.as_ref().is_some_and(|(at, _)| *at == execution);
        let mut next = match (can_continue, &known.at) {
            (true, Some((at, _))) if same || known.has_all_executions => at.clone(),
            _ => {
                self.reset(known, run);
                let (first, has_all_executions) = self.back(run, info, executions).await?;
                known.has_all_executions = has_all_executions;
                first
            }
        };
        loop {
            let events = self.connection.whole_history(run, &next).await?;
            let last = events.last().map_or(0, |event| event.event_id);
            {
                let mut watchers = self.watchers.lock().unwrap_or_else(PoisonError::into_inner);
                known
                    .folded
                    .read_events(&self.wire, &*self.loader, &events, &mut watchers)?;
            }
            known.at = Some((next, last));
            match &known.folded.next {
                Some(following) => {
                    next = following.clone();
                    known.folded.next_execution();
                    known.executions += 1;
                }
                None => return Ok(()),
            }
        }
    }

    fn reset(&self, known: &mut FoldedRun, run: &Name) {
        // An error is ignored, because the run may never have been read into the store.
        let _ = self.store.delete(run);
        known.folded = FoldState::new(run, self.store.clone());
        known.at = None;
        known.executions = 1;
    }

    /// Returns the first of the last `executions` executions of a run. Also returns whether Temporal has no earlier
    /// execution of the run.
    async fn back(
        &self,
        run: &Name,
        info: &WorkflowExecutionInfo,
        executions: usize,
    ) -> Result<(String, bool), TemporalError> {
        use temporalio_common::protos::temporal::api::history::v1::history_event::Attributes;
        let execution = info.execution.as_ref();
        let mut found = execution.map(|one| one.run_id.clone()).unwrap_or_default();
        if found == info.first_run_id {
            return Ok((found, true));
        }
        if executions == ALL_EXECUTIONS && self.first(run, &info.first_run_id).await?.is_some() {
            return Ok((info.first_run_id.clone(), true));
        }
        for _ in 1..executions {
            let first = self.first(run, &found).await?;
            let before = match first.and_then(|event| event.attributes) {
                Some(Attributes::WorkflowExecutionStartedEventAttributes(started)) => {
                    started.continued_execution_run_id
                }
                _ => String::new(),
            };
            if before.is_empty() || self.first(run, &before).await?.is_none() {
                return Ok((found, true));
            }
            found = before;
        }
        Ok((found, false))
    }

    /// Returns the first event of an execution. `None` if Temporal has deleted the execution.
    async fn first(&self, run: &Name, execution: &str) -> Result<Option<Event>, TemporalError> {
        match self.connection.first_event(run, execution).await {
            Err(error) if error.is_unknown() => Ok(None),
            other => other,
        }
    }

    /// Folds the new events of every run.
    async fn refresh_all(&self) -> Result<(), TemporalError> {
        let executions = self.connection.executions().await?;
        let gone: Vec<Name> = {
            let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            let there = |run: &Name| {
                executions.iter().any(|info| {
                    info.execution
                        .as_ref()
                        .is_some_and(|one| *one.workflow_id == **run)
                })
            };
            known.keys().filter(|run| !there(run)).cloned().collect()
        };
        for run in gone {
            // Refresh known runs that are not in the list: a run that was just started may not be in it yet.
            if let Err(error) = self.refresh(&run, 1).await
                && !error.is_unknown()
            {
                return Err(error);
            }
        }
        let mut refreshed = stream::iter(executions)
            .map(|info| self.refresh_listed(info))
            .buffer_unordered(AT_A_TIME);
        while let Some(one) = refreshed.next().await {
            one?;
        }
        Ok(())
    }

    async fn refresh_listed(&self, info: WorkflowExecutionInfo) -> Result<(), TemporalError> {
        let Some(execution) = &info.execution else {
            return Ok(());
        };
        let run = Name::from(execution.workflow_id.as_str());
        let known = self.known(&run);
        let mut known = known.lock().await;
        // The list of Temporal is slightly out of date, and lacks the history length of open executions. So an open
        // execution has to be described.
        let is_open = info.status() == WorkflowExecutionStatus::Running;
        let refreshed = match is_open {
            false => self.catch_up(&mut known, &run, &info, 1).await,
            true => match self.connection.describe(&run).await {
                Ok(description) => self.catch_up_to(&mut known, &run, &description, 1).await,
                Err(error) => Err(error),
            },
        };
        match refreshed {
            // Skip a run that was deleted meanwhile, or that is not one of this Windlass.
            Err(
                error @ (TemporalError::Refused(_)
                | TemporalError::Payload(_)
                | TemporalError::Sealed(_)
                | TemporalError::Unloadable(_)),
            ) => {
                tracing::warn!(%run, %error, "a run is not listed");
                Ok(())
            }
            other => other,
        }
    }

    /// Sends all further steps of a run to a watcher. Returns the header of the run.
    pub async fn follow(self: Arc<Self>, run: &Name, watcher: Watcher) -> ReadResult<RunHeader> {
        self.refresh(run, 1)
            .await
            .map_err(|error| unknown(run, error))?;
        let header = self.store.header(run)?;
        self.watchers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .add(run, watcher);
        let known = self.known(run);
        let mut locked = known.lock().await;
        if !std::mem::replace(&mut locked.followed, true) {
            let (folds, run) = (Arc::clone(&self), run.clone());
            self.tasks.spawn(async move {
                let stuck = |stuck: Stuck| ScheduleError::Unloadable {
                    run: run.clone(),
                    reason: stuck.reason,
                };
                let broken = |error: TemporalError| ScheduleError::Broken {
                    run: run.clone(),
                    reason: error.to_string(),
                };
                let followed = tokio::select! {
                    followed = folds.follow_on(&run) => match followed {
                        // Closes the watchers. Their owners may follow the run again when Temporal answers.
                        Err(TemporalError::Outage(_)) => Ok(()),
                        other => other.map_err(broken),
                    },
                    reason = folds.until_stuck(&run) => Err(stuck(reason)),
                };
                let known = folds.known(&run);
                known.lock().await.followed = false;
                let mut watchers = folds
                    .watchers
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner);
                if let Err(error) = followed {
                    watchers.notify(&run, || Update::Stuck(error));
                }
                watchers.close(&run);
            });
        }
        Ok(header)
    }

    /// Waits until no worker continues a run.
    async fn until_stuck(&self, run: &Name) -> Stuck {
        let mut interval = FIRST_CHECK_INTERVAL;
        loop {
            tokio::time::sleep(interval).await;
            interval = (interval * 5 / 4).min(MAX_CHECK_INTERVAL);
            // An error is ignored: `follow_on` reports it.
            let Ok(description) = self.connection.describe(run).await else {
                continue;
            };
            let known = self.known(run);
            let mut known = known.lock().await;
            if self.note_stuck(&mut known, run, &description).is_ok()
                && let Some(stuck) = &known.stuck
            {
                return stuck.clone();
            }
        }
    }

    /// Folds the events of a run as they arrive, until it has ended or has no watcher any more.
    async fn follow_on(&self, run: &Name) -> Result<(), TemporalError> {
        let known = self.known(run);
        loop {
            let execution = known.lock().await.at.clone();
            let Some((execution, _)) = execution else {
                return Ok(());
            };
            let mut token = Vec::new();
            loop {
                let page = self
                    .connection
                    .history(run, &execution, token, true)
                    .await?;
                let mut known = known.lock().await;
                if known.at.as_ref().is_none_or(|(at, _)| *at != execution) {
                    // The run has carried over, and another caller has already read the next execution. Continue with
                    // that one.
                    break;
                }
                if known.folded.provisional {
                    self.reset(&mut known, run);
                    let description = self.connection.describe(run).await?;
                    self.catch_up_to(&mut known, run, &description, 1).await?;
                } else {
                    let mut watchers = self.watchers.lock().unwrap_or_else(PoisonError::into_inner);
                    known.folded.read_events(
                        &self.wire,
                        &*self.loader,
                        &page.events,
                        &mut watchers,
                    )?;
                    if let Some(last) = page.events.last() {
                        known.at = Some((execution.clone(), last.event_id));
                    }
                    if !watchers.has(run) {
                        return Ok(());
                    }
                }
                match page.next {
                    Some(next) => token = next,
                    None => break,
                }
            }
            let mut known = known.lock().await;
            if let Some(next) = known.folded.next.clone() {
                known.folded.next_execution();
                known.executions += 1;
                known.at = Some((next, 0));
            } else if known.at.as_ref().is_none_or(|(at, _)| *at == execution) {
                return Ok(());
            }
        }
    }

    /// Checks whether a command is refused: because the run has ended, or because nothing waits for the signal. If no
    /// worker can load the run, returns why.
    pub async fn check(&self, run: &str, command: &Command) -> ReadResult<Option<Stuck>> {
        let name = Name::from(run);
        self.refresh(&name, 1)
            .await
            .map_err(|error| unknown(&name, error))?;
        let header = self.store.header(run)?;
        if header.status.is_final() {
            return Err(EngineError::from(ScheduleError::Ended {
                run: name,
                status: header.status,
            }));
        }
        let stuck = self.known(&name).lock().await.stuck.clone();
        let stuck = stuck.filter(|stuck| stuck.is_unloadable);
        let windlass_machine::Event::Signalled(signal) = command.clone().event() else {
            return Ok(stuck);
        };
        let source = self.store.program(header.program)?;
        let loaded = self.loader.load_to_end(header.program, &source);
        let loaded = loaded.map_err(|why| EngineError::from(TemporalError::Unloadable(why)))?;
        let stored = self.store.load(run)?;
        check_signal(&name, &loaded.program, &stored.state, &signal)?;
        Ok(stuck)
    }

    /// Returns the runs that a filter selects.
    pub fn chosen(self: &Arc<Self>, filter: &PruneFilter, now: Timestamp) -> ReadResult<Vec<Name>> {
        let folds = Arc::clone(self);
        blocking(&self.tasks, async move { folds.refresh_all().await })?;
        chosen_to_prune(&*self.store, filter, now)
    }
}

fn unknown(run: &Name, error: TemporalError) -> EngineError {
    match error.is_unknown() {
        true => EngineError::from(StoreError::UnknownRun(run.clone())),
        false => error.into(),
    }
}

/// Reads runs from the folded histories, for any caller.
pub struct TemporalReader(pub Arc<Folds>);

impl TemporalReader {
    /// Folds the last executions of a run. Returns whether all executions of the run are folded.
    fn read_last(&self, run: &str, executions: usize) -> ReadResult<bool> {
        let (folds, name) = (Arc::clone(&self.0), Name::from(run));
        let refreshing = async move { folds.refresh(&name, executions).await };
        blocking(&self.0.tasks, refreshing).map_err(|error| unknown(&Name::from(run), error))
    }
}

impl RunReader for TemporalReader {
    fn prepare(&self, extent: Extent<'_>) -> ReadResult<&StoreReader> {
        match extent {
            Extent::Known => {}
            Extent::Latest(run) => drop(self.read_last(run, 1)?),
            Extent::Entire(run) => drop(self.read_last(run, ALL_EXECUTIONS)?),
            Extent::Headers => {
                let folds = Arc::clone(&self.0);
                blocking(&self.0.tasks, async move { folds.refresh_all().await })?;
            }
        }
        Ok(&self.0.stored)
    }

    fn read_back(
        &self,
        run: &str,
        read: &mut dyn FnMut(&StoreReader, usize) -> ReadResult<bool>,
    ) -> ReadResult<()> {
        let mut executions = 1;
        loop {
            let all = self.read_last(run, executions)?;
            let enough = read(&self.0.stored, executions)?;
            if all || enough {
                return Ok(());
            }
            executions = executions.saturating_mul(4);
        }
    }

    fn source(&self, program: ProgramHash) -> ReadResult<ProgramSource> {
        let found = self.0.stored.source(program);
        found.or_else(|_| self.0.workflows.source(program))
    }

    fn workflows(&self) -> &StoreReader {
        self.0.workflows.workflows()
    }

    fn executes(&self, _run: &str) -> bool {
        let connection = self.0.connection.clone();
        let answer = blocking(&self.0.tasks, async move { connection.has_workers().await });
        answer.unwrap_or(false)
    }

    fn check_writable(&self) -> ReadResult<()> {
        Ok(())
    }

    fn queued(&self, _run: &str) -> Queued {
        Queued::default()
    }

    fn changed_runs(&self) -> Option<Vec<Name>> {
        self.prepare(Extent::Headers).ok()?.changed_runs()
    }

    fn on_change(&self, wake: Wake) {
        self.0.stored.on_change(wake);
    }
}
