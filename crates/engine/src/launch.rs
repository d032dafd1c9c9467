//! Starts runs: runs of a given workflow, and runs of the workflows that `workflow` actions call.

use super::load::Workflows;
use super::turns::{CONCURRENCY_LABEL, Turns};
use super::workflow::Workflow;
use super::{EngineError, ErrorCode, Inspector, RunBackend, StartOptions, called, new_id};
use crate::scheduler::{
    CallWorkflow, ChildCall, PARENT_LABEL, STUBS_LABEL, ScheduleError, Start, Update, Watcher,
    child_id, watch,
};
use futures_util::future::BoxFuture;
use std::collections::{BTreeMap, HashMap};
use std::future::pending;
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockWriteGuard, Weak};
use std::time::Duration;
use windlass_actions::Registry;
use windlass_expression::Value;
use windlass_machine::program::{Op, Program, ProgramHash};
use windlass_machine::{Event, Outcome, RunStatus};
use windlass_model::model::{Fault, Name, WORKFLOW, fault_kind};
use windlass_store::{ProgramSource, QUARANTINE_LABEL, RunHeader, Store, StoreError};

/// Maximum depth of a run. The depth is the number of runs that wait for the run, directly or indirectly.
pub(super) const MAX_DEPTH: usize = 16;

/// The label of a child run with its depth.
pub(super) const DEPTH_LABEL: &str = "windlass.depth";

/// Wait between two tries to start a child run, while the engine has no room for it or the store refuses writes.
const PAUSE: Duration = Duration::from_secs(1);

/// Maximum number of workflows from files that stay compiled.
const MAX_CALLED: usize = 256;

/// Number of headers that are read at a time.
const PAGE: usize = 1_000;

/// What an engine needs to read, start and change runs on one store.
pub(super) struct Launcher {
    pub inspector: Inspector,
    pub runs: Arc<dyn RunBackend>,
    /// Limits the runs of one concurrency key. `None` if another backend executes the runs.
    pub turns: Option<Arc<Turns>>,
    pub workflows: Arc<Workflows>,
    pub store: Arc<dyn Store>,
    /// Saved workflows that were compiled. Locked while a workflow is put, compiled or removed, so that this cache
    /// never differs from the store.
    pub compiled: RwLock<HashMap<Name, Arc<Workflow>>>,
    /// Compiled workflows that are files of the calling workflow's bundle, by the calling program and their name.
    pub called: Mutex<HashMap<(ProgramHash, String), Arc<Workflow>>>,
}

/// Returns whether runs of a program start runs of other workflows.
pub(super) fn calls_workflows(program: &Program) -> bool {
    let mut states = program.states.iter();
    states.any(|state| matches!(&state.op, Op::Call(call, _) if &*call.executor == WORKFLOW))
}

/// What recovery found in one page of the list of all runs.
struct RunPage {
    last: Option<Name>,
    /// Whether an unfinished run in the page has a concurrency key.
    has_key: bool,
    /// The unfinished child runs in the page that no parent waits for.
    orphans: Vec<Name>,
    /// Number of parked runs in the page.
    parked: usize,
}

impl Launcher {
    pub async fn start(
        &self,
        workflow: &Workflow,
        input: Value,
        options: StartOptions,
        watcher: Option<Watcher>,
    ) -> Result<Name, EngineError> {
        let input = workflow.accept(input)?;
        let id = options
            .id
            .unwrap_or_else(|| new_id(&workflow.loaded.program.name));
        let run = Name::from(id);
        let mut labels = options.labels;
        let permit = match &self.turns {
            Some(turns) => turns.permit(workflow, &input, &labels).await?,
            None => {
                refuse_on_temporal(&workflow.loaded.program)?;
                None
            }
        };
        if let Some(permit) = &permit {
            labels.extend([permit.label.clone()]);
        }
        if workflow.loaded.registry.has_stubs() {
            labels.insert(String::from(STUBS_LABEL), String::from("true"));
        }
        let mut loaded = workflow.loaded.clone();
        // If the workflow was loaded without an engine, it lacks the engine's executors.
        loaded.registry = Registry::in_engine(loaded.registry, &self.workflows.registry);
        let start = Start {
            run: run.clone(),
            loaded,
            source: workflow.source.clone(),
            input,
            from: None,
            environment: self.start_values(workflow, &labels).await?,
            labels,
            watcher,
            saved: self.saved_for(workflow)?,
        };
        self.runs.start(start).await?;
        if let (Some(_), Some(turns)) = (&permit, &self.turns) {
            turns.start_next_runs().await?;
        }
        Ok(run)
    }

    /// Returns the workflow that is stored under a name, compiled. `None` if the name has no workflow. Blocks.
    pub fn workflow(&self, name: &str) -> Result<Option<Arc<Workflow>>, EngineError> {
        let mut compiled = self.compiled();
        if let Some(workflow) = compiled.get(name) {
            return Ok(Some(Arc::clone(workflow)));
        }
        let Some(stored) = self.store.workflow(name)? else {
            return Ok(None);
        };
        let source = &stored.source;
        let bundle = source.bundle.clone();
        let workflow = self.workflows.load_as(source, bundle, Some(source.dialect));
        let workflow = Arc::new(workflow?);
        compiled.insert(stored.name, Arc::clone(&workflow));
        Ok(Some(workflow))
    }

    /// Returns the saved workflows that a run on Temporal needs: those that it calls, directly or indirectly. A call of
    /// a workflow that is not saved is not an error here: the call fails when the run makes it, as it does without
    /// Temporal.
    pub fn saved_for(
        &self,
        workflow: &Workflow,
    ) -> Result<BTreeMap<Name, ProgramSource>, EngineError> {
        let mut found = BTreeMap::new();
        if self.turns.is_some() || !calls_workflows(&workflow.loaded.program) {
            return Ok(found);
        }
        let mut open = called::saved_names(&workflow.source);
        while let Some(name) = open.pop_first() {
            if found.contains_key(&name) {
                continue;
            }
            if let Some(saved) = self.workflow(&name)? {
                open.extend(called::saved_names(&saved.source));
                found.insert(name, saved.source.clone());
            }
        }
        Ok(found)
    }

    pub fn compiled(&self) -> RwLockWriteGuard<'_, HashMap<Name, Arc<Workflow>>> {
        let compiled = self.compiled.write();
        compiled.unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the child runs that a run waits for, including those that have not started.
    pub fn children_of(&self, run: &str) -> Result<Vec<Name>, EngineError> {
        let header = self.inspector.header(run)?;
        let program = self.inspector.program_of(header.program);
        if !program.is_some_and(|program| calls_workflows(&program)) {
            return Ok(Vec::new());
        }
        let stored = self.inspector.load(run)?;
        let calls = stored.state.effects.values().map(|effect| &effect.request);
        let calls = calls.filter(|request| request.calls_workflow());
        Ok(calls.map(|request| child_id(&header.id, request)).collect())
    }

    /// Continues the work of earlier processes: starts waiting runs whose turn it is (`concurrency`), and cancels child
    /// runs whose parents no longer wait for them. The returned future runs in the background, because a store may have
    /// many runs. It does not keep the store open.
    pub fn recover(self: &Arc<Self>) -> impl Future<Output = ()> + use<> {
        let launcher = Arc::downgrade(self);
        async move {
            let (mut after, mut has_keys, mut parked) = (None, false, 0);
            loop {
                let (Some(this), from) = (launcher.upgrade(), after.take()) else {
                    return;
                };
                let looked = tokio::task::spawn_blocking(move || this.page(from.as_deref()));
                let (Ok(Ok(page)), Some(this)) = (looked.await, launcher.upgrade()) else {
                    return;
                };
                for orphan in page.orphans {
                    tracing::info!(run = %orphan, "cancelled: no run waits for it any more");
                    // An error is ignored, because the run may have ended.
                    let _ = this.runs.deliver(&orphan, Event::CancelRequested).await;
                }
                if let Some(turns) = this.turns.as_ref().filter(|_| page.has_key && !has_keys)
                    && let Err(error) = turns.start_next_runs().await
                {
                    tracing::warn!(%error, "runs that wait for their turn are not known");
                }
                has_keys |= page.has_key;
                parked += page.parked;
                if page.last.is_none() {
                    if parked > 0 {
                        tracing::warn!(runs = parked, "parked runs do not continue: resume them");
                    }
                    return;
                }
                after = page.last;
            }
        }
    }

    /// Reads a page of all runs. Returns what recovery has to do for these runs.
    fn page(&self, after: Option<&str>) -> Result<RunPage, EngineError> {
        let page = self.inspector.list(after, PAGE)?;
        let unfinished = || page.iter().filter(|header| !header.status.is_final());
        // Do not cancel a run twice: the second cancel would end the run before its operations are cancelled.
        let is_cancelling = |child: &RunHeader| {
            let stored = self.inspector.load(&child.id);
            stored.is_ok_and(|stored| stored.state.is_cancelling())
        };
        let orphans = unfinished().filter(|child| self.is_orphan(child) && !is_cancelling(child));
        Ok(RunPage {
            last: page.last().map(|header| header.id.clone()),
            has_key: unfinished().any(|header| header.labels.contains_key(CONCURRENCY_LABEL)),
            parked: unfinished()
                .filter(|header| header.labels.contains_key(QUARANTINE_LABEL))
                .count(),
            orphans: orphans.map(|child| child.id.clone()).collect(),
        })
    }

    /// Returns whether a run is a child that no run waits for. False if that cannot be read.
    fn is_orphan(&self, child: &RunHeader) -> bool {
        let Some(parent) = child.labels.get(PARENT_LABEL) else {
            return false;
        };
        match self.inspector.load(parent) {
            Ok(parent) => {
                let mut effects = parent.state.effects.values();
                let run = &parent.header.id;
                !effects.any(|effect| child_id(run, &effect.request) == child.id)
            }
            // Only runs that have ended are removed, so the parent waits for nothing.
            Err(EngineError::Store(StoreError::UnknownRun(_))) => true,
            Err(_) => false,
        }
    }

    /// Starts the run of a call, unless an earlier process or attempt started it.
    async fn start_child(self: &Arc<Self>, call: &ChildCall) -> Result<(), Fault> {
        let failed = |message: String| Fault::new(fault_kind::WORKFLOW, message);
        let name = called::called_name(&call.request);
        loop {
            if let Ok(header) = self.inspector.header(&call.child) {
                let parent = header.labels.get(PARENT_LABEL);
                return match parent.is_some_and(|parent| *parent == *call.parent) {
                    true => Ok(()),
                    false => Err(failed(format!("there is a run {} already", call.child))),
                };
            }
            let (this, called_name) = (Arc::clone(self), name.clone());
            let parent = call.parent.clone();
            let looked =
                tokio::task::spawn_blocking(move || this.load_called(&parent, &called_name));
            let loaded = looked.await.unwrap_or(Err(ScheduleError::Stopped.into()));
            let started = match loaded {
                Ok((workflow, depth)) if depth > MAX_DEPTH => {
                    return Err(called::too_deep(&workflow.program().name));
                }
                Ok((workflow, depth)) => {
                    let options = StartOptions::default()
                        .id(&*call.child)
                        .label(PARENT_LABEL, &*call.parent)
                        .label(DEPTH_LABEL, depth.to_string());
                    let input = called::input(&call.request);
                    self.start(&workflow, input, options, None).await
                }
                Err(error) => Err(error),
            };
            match started {
                Ok(_) => return Ok(()),
                // The engine has no room or is stopping, the store refuses writes, or an earlier start of the run is
                // being stored.
                Err(EngineError::Schedule(
                    ScheduleError::Busy
                    | ScheduleError::Stopped
                    | ScheduleError::Store(_)
                    | ScheduleError::Exists(_),
                )) => tokio::time::sleep(PAUSE).await,
                Err(error) => return Err(failed(format!("`{name}` was not started: {error}"))),
            }
        }
    }

    /// Returns the workflow that a run calls by this name, and the depth of its child run. Blocks.
    fn load_called(
        &self,
        parent: &Name,
        name: &str,
    ) -> Result<(Arc<Workflow>, usize), EngineError> {
        let header = self.inspector.header(parent)?;
        let depth = called::depth_below(&header.labels);
        let key = (header.program, name.to_owned());
        let mut known = self.called.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(workflow) = known.get(&key) {
            return Ok((Arc::clone(workflow), depth));
        }
        let source = self.inspector.source(header.program)?;
        let Some(bundle) = called::bundle_of(&source.bundle, name) else {
            drop(known);
            let saved = self.workflow(name)?;
            let saved = saved.ok_or_else(|| self.inspector.no_workflow(name))?;
            return Ok((saved, depth));
        };
        let workflow = Arc::new(self.workflows.load_as(&source, bundle, None)?);
        if known.len() >= MAX_CALLED {
            known.clear();
        }
        known.insert(key, Arc::clone(&workflow));
        Ok((workflow, depth))
    }
}

impl CallWorkflow for Launcher {
    fn call(self: Arc<Self>, call: ChildCall) -> BoxFuture<'static, Result<Value, Fault>> {
        Box::pin(async move {
            self.start_child(&call).await?;
            let launcher = Arc::downgrade(&self);
            // Drop this reference to the launcher, so that the wait does not keep the engine alive.
            drop(self);
            let outcome = end_of(launcher, &call.child).await?;
            called::result(&call.child, outcome)
        })
    }
}

/// Waits until a child run has ended. Returns its outcome, or a fault if the run was deleted.
async fn end_of(launcher: Weak<Launcher>, run: &Name) -> Result<Outcome, Fault> {
    loop {
        let Some(this) = launcher.upgrade() else {
            // The engine is stopping. Never return: the next process repeats the call.
            return pending().await;
        };
        let (watcher, mut updates) = watch();
        updates.only_end();
        match this.runs.follow(run, watcher).await {
            Ok(header) => {
                let ended = RunStatus::is_final(header.status).then(|| this.inspector.load(run));
                if let Some(Ok(stored)) = ended
                    && let Some(outcome) = stored.state.outcome
                {
                    return Ok(*outcome);
                }
                drop(this);
                while let Some(update) = updates.next().await {
                    if let Update::Finished(outcome) = update {
                        return Ok(outcome);
                    }
                }
            }
            // Do not start the run again: its effects may have been executed.
            Err(error) if error.code() == ErrorCode::UnknownRun => {
                let message = format!("run {run} was deleted before its result was read");
                return Err(Fault::new(fault_kind::WORKFLOW, message));
            }
            Err(_) => {}
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Refuses a program with features that Temporal cannot provide, because they need a store that all runs share.
pub(super) fn refuse_on_temporal(program: &Program) -> Result<(), EngineError> {
    let what = match () {
        () if program.concurrency.is_some() => "`concurrency` is",
        () if !program.state_values.is_empty() || program.last_run => "`state` and `lastRun()` are",
        () => return Ok(()),
    };
    let message =
        format!("{what} not supported for runs on Temporal: its runs have no store in common");
    Err(EngineError::Input(message))
}
