//! What was committed, recorded by a layer between the driver and the store: the journal applied again, all rows, and
//! the point where the process dies.

use crate::machine::trace::{self, Trace};
use crate::support::alone;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::panic::resume_unwind;
use std::sync::{Arc, Mutex, MutexGuard};
use windlass_expression::Sealer;
use windlass_machine::program::ProgramHash;
use windlass_machine::{Change, HistoryEvent, IterationRow, LoopState, PendingEffect, RunState};
use windlass_model::model::{Name, Request};
use windlass_store::{
    Commit, CommitRecord, Committed, ConsistentRun, DueRun, IntegrityReport, Journal,
    LoopIterations, MemoryStore, Placement, ProgramSource, RawRow, ReadStore, RowLocation,
    RunHeader, StateEntry, StateOutcome, StateOwner, StateWrite, Store, StoreError, StoredRun,
    StoredWorkflow, WorkflowVersion,
};
use windlass_value::time::Timestamp;

/// How a process dies, or what its store does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crash {
    /// Dies before the group is stored.
    Before,
    /// The system has the group, and the effects that may start then have started. The power fails before the group is
    /// on the disk.
    Written,
    /// Dies after the group is stored, before any of its effects has started.
    After,
    /// Dies after the effects of the group have started.
    Dispatched,
    /// No crash: the store refuses the group, and the state in memory is discarded.
    Refused,
}

/// The payload of the panic that simulates the death of the process.
pub struct Dead;

/// What was committed of one run.
#[derive(Clone, Debug)]
pub struct Book {
    pub state: RunState,
    pub header: RunHeader,
    pub iterations: Vec<IterationRow>,
    pub history: Vec<HistoryEvent>,
    pub loops: BTreeMap<String, LoopState>,
}

/// Decides at each group whether to crash, by its number and by how often it was tried.
pub type Plan = Box<dyn FnMut(usize, usize) -> Option<Crash> + Send>;

pub struct Books {
    pub runs: BTreeMap<Name, Book>,
    pub groups: usize,
    tries: usize,
    plan: Plan,
    /// The crash that was requested and has not happened yet.
    pub pending: Option<Crash>,
    pub crashes: usize,
    /// Whether to crash during pauses, too.
    pub in_pauses: bool,
    /// Effects that were aborted at the instant at which they were requested. Whether they started in between depends
    /// on the order of tasks.
    pub called_off: BTreeSet<Call>,
    /// How often stored steps requested each attempt.
    requested: BTreeMap<(Name, String), usize>,
    /// Runs for which the order of tasks decides: a timer was due at the same instant as other work. Also runs that
    /// lost a step which waited for an answer, because that step is repeated later.
    pub ties: BTreeSet<Name>,
    /// After how many revisions of a run a snapshot is stored.
    snapshots: u64,
    trace: Trace,
}

impl Books {
    pub fn new(plan: Plan, in_pauses: bool, snapshots: u64) -> Self {
        Self {
            runs: BTreeMap::new(),
            groups: 0,
            tries: 0,
            plan,
            pending: None,
            crashes: 0,
            in_pauses,
            called_off: BTreeSet::new(),
            requested: BTreeMap::new(),
            ties: BTreeSet::new(),
            snapshots,
            trace: Trace::default(),
        }
    }

    /// The paused runs.
    pub fn paused(&self) -> Vec<Name> {
        let paused = self.runs.iter();
        let paused = paused.filter(|(_, book)| book.state.paused.is_some());
        paused.map(|(run, _)| run.clone()).collect()
    }

    /// The call of the last stored step that made such a request.
    pub fn last(&self, request: &Request) -> Option<Call> {
        let (run, attempt) = attempt_of(request);
        let count = self.requested.get(&(run.clone(), attempt.clone()))?;
        Some((run, attempt, *count))
    }

    /// The call of a step with this request after it is stored.
    pub fn next(&self, request: &Request) -> Call {
        let (run, attempt) = attempt_of(request);
        let count = self.requested.get(&(run.clone(), attempt.clone()));
        (run, attempt, count.map_or(1, |count| count + 1))
    }

    /// Whether a stored step requested this call.
    pub fn knows(&self, (run, attempt, number): &Call) -> bool {
        let count = self.requested.get(&(run.clone(), attempt.clone()));
        count.is_some_and(|count| number <= count)
    }

    /// Whether a stored step requested it and its answer is not stored yet.
    pub fn is_pending(&self, request: &Request) -> bool {
        let (run, _) = attempt_of(request);
        let Some(book) = self.runs.get(&run) else {
            return false;
        };
        let state = &book.state;
        let is_same = |effect: &PendingEffect| {
            let variables = state.variables_of(effect.cursor);
            effect.request.with_state(variables) == *request
        };
        let those = state.effects.values().filter(|effect| is_same(effect));
        let count = those.count();
        assert!(
            count < 2,
            "two effects in flight are one request: {request:?}"
        );
        count == 1
    }

    fn keep(&mut self, commit: &Commit) {
        let run = &commit.header.id;
        if trace::wanted() {
            let rows = (&commit.iterations, &commit.loops);
            self.trace
                .step((&**run, &commit.changes, &commit.history, rows));
        }
        let book = self.runs.entry(run.clone()).or_insert_with(|| Book {
            state: RunState::new(run.clone(), commit.header.program),
            header: commit.header.clone(),
            iterations: Vec::new(),
            history: Vec::new(),
            loops: BTreeMap::new(),
        });
        let mut last_id = book.state.next_id;
        for change in &commit.changes {
            if let Some(id) = new_id(change) {
                assert!(id >= last_id, "id {id} of {run} was used before (law 4)");
                last_id = id + 1;
            }
            if let Change::EffectDropped(id) = change
                && let Some(effect) = book.state.effects.get(id)
                && effect.requested_at == commit.header.updated_at
            {
                let (run, attempt) = attempt_of(&effect.request);
                let number = self.requested[&(run.clone(), attempt.clone())];
                self.called_off.insert((run, attempt, number));
            }
            if let Change::EffectRequested(_, effect) = change {
                *self
                    .requested
                    .entry(attempt_of(&effect.request))
                    .or_default() += 1;
            }
            book.state.apply(change).unwrap();
        }
        let mut timers = book.state.timers.values();
        if !book.state.ready.is_empty() && timers.any(|one| one.due_at <= commit.header.updated_at)
        {
            self.ties.insert(run.clone());
        }
        book.header = commit.header.clone();
        book.iterations.extend(commit.iterations.iter().cloned());
        book.history.extend(commit.history.iter().cloned());
        for row in &commit.loops {
            book.loops.insert(row.path.clone(), row.clone());
        }
    }
}

/// A call: its run, its key with the attempt, and how often it was requested. A retry of a block counts its attempts
/// again from the start.
pub type Call = (Name, String, usize);

fn attempt_of(request: &Request) -> (Name, String) {
    let run = request.key.split('/').next().unwrap_or_default();
    let attempt = format!("{}, attempt {}", request.key, request.attempt);
    (Name::from(run), attempt)
}

fn new_id(change: &Change) -> Option<u64> {
    match change {
        Change::CursorSpawned(id, _) => Some(id.0),
        Change::EffectRequested(id, _) => Some(id.0),
        Change::TimerArmed(id, _) => Some(id.0),
        _ => None,
    }
}

/// The store as the driver sees it.
pub struct Disk {
    pub store: Arc<dyn Store>,
    pub books: Arc<Mutex<Books>>,
}

pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

impl Disk {
    /// What exists after a crash is what was acknowledged, or what was stored before it could be acknowledged.
    pub fn check(&self) {
        let books = lock(&self.books);
        for (run, book) in &books.runs {
            let stored = self.store.load(run).unwrap();
            assert_eq!(stored.header.revision, book.header.revision, "{run}");
            assert_eq!(
                stored.state, book.state,
                "the journal of {run} is its state (law 7)"
            );
        }
        assert_eq!(
            self.store.list(None, usize::MAX).unwrap().len(),
            books.runs.len()
        );
    }
}

impl windlass_store::sealed::Store for Disk {}

impl Store for Disk {
    fn check_writable(&self) -> Result<(), StoreError> {
        self.store.check_writable()
    }

    fn epoch(&self) -> u64 {
        self.store.epoch()
    }

    fn wait_durable(&self, epoch: u64) -> Result<(), StoreError> {
        self.store.wait_durable(epoch)
    }

    fn reopen(&self) -> Result<(), StoreError> {
        alone(|| self.store.reopen())
    }

    fn seal_with(&self, key: Arc<dyn Sealer>) {
        self.store.seal_with(key);
    }

    fn commit_with_callback(
        &self,
        group: &[Commit],
        written: &mut dyn FnMut(),
    ) -> Result<Vec<Result<Committed, StoreError>>, StoreError> {
        let mut books = lock(&self.books);
        let (number, tries) = (books.groups, books.tries);
        let allowed = books.in_pauses || books.paused().is_empty();
        let crash = (books.plan)(number, tries).filter(|_| allowed);
        books.tries += 1;
        match crash {
            Some(Crash::Before) => {
                books.pending = crash;
                drop(books);
                resume_unwind(Box::new(Dead));
            }
            Some(Crash::Written) => {
                books.pending = crash;
                drop(books);
                written();
                resume_unwind(Box::new(Dead));
            }
            Some(Crash::Refused) => {
                books.pending = crash;
                written();
                let full = std::io::Error::from(std::io::ErrorKind::StorageFull);
                return Err(StoreError::Io(full));
            }
            _ => {}
        }
        let mut group = group.to_vec();
        for commit in &mut group {
            books.keep(commit);
            let book = &books.runs[&commit.header.id];
            if let Some(state) = &commit.snapshot {
                assert_eq!(*state, book.state, "the journal is the state (law 7)");
            }
            if books.snapshots > 0 && commit.header.revision.is_multiple_of(books.snapshots) {
                commit.snapshot = Some(book.state.clone());
                commit.header.snapshot = commit.header.revision;
            }
        }
        let outcome = self.store.commit_with_callback(&group, written)?;
        assert!(outcome.iter().all(Result::is_ok), "{outcome:?}");
        books.groups += 1;
        books.tries = 0;
        // This group itself may contain the pause.
        let crash = crash.filter(|_| books.in_pauses || books.paused().is_empty());
        books.pending = crash;
        if crash == Some(Crash::After) {
            drop(books);
            resume_unwind(Box::new(Dead));
        }
        Ok(outcome)
    }

    fn set_quarantine(
        &self,
        run: &str,
        placement: Placement,
        reason: Option<&str>,
    ) -> Result<(), StoreError> {
        self.store.set_quarantine(run, placement, reason)
    }

    fn delete(&self, run: &str) -> Result<(), StoreError> {
        self.store.delete(run)
    }

    fn replace_workflow(
        &self,
        workflow: &StoredWorkflow,
        former: Option<(&WorkflowVersion, &ProgramSource)>,
        gone: &[WorkflowVersion],
    ) -> Result<bool, StoreError> {
        self.store.replace_workflow(workflow, former, gone)
    }

    fn remove_workflow(&self, name: &str) -> Result<bool, StoreError> {
        self.store.remove_workflow(name)
    }

    fn write_state(&self, write: &StateWrite) -> Result<StateOutcome, StoreError> {
        self.store.write_state(write)
    }

    fn durable_snapshot(&self) -> Option<MemoryStore> {
        self.store.durable_snapshot()
    }

    fn backup(&self, dir: &std::path::Path) -> Result<IntegrityReport, StoreError> {
        self.store.backup(dir)
    }

    fn check(&self) -> Result<IntegrityReport, StoreError> {
        self.store.check()
    }

    fn raw(&self, run: Option<&str>, sink: &mut dyn FnMut(RawRow)) -> Result<(), StoreError> {
        self.store.raw(run, sink)
    }

    fn sweep(&self) -> Result<u64, StoreError> {
        self.store.sweep()
    }
}

impl ReadStore for Disk {
    fn header(&self, run: &str) -> Result<RunHeader, StoreError> {
        self.store.header(run)
    }

    fn load(&self, run: &str) -> Result<StoredRun, StoreError> {
        self.store.load(run)
    }

    fn consistent_read(&self, run: &str, iterations: usize) -> Result<ConsistentRun, StoreError> {
        self.store.consistent_read(run, iterations)
    }

    fn program(&self, hash: ProgramHash) -> Result<ProgramSource, StoreError> {
        self.store.program(hash)
    }

    fn list(&self, after: Option<&str>, limit: usize) -> Result<Vec<RunHeader>, StoreError> {
        self.store.list(after, limit)
    }

    fn runnable(&self) -> Result<Vec<Name>, StoreError> {
        self.store.runnable()
    }

    fn due(
        &self,
        after: Option<&DueRun>,
        until: Timestamp,
        limit: usize,
    ) -> Result<Vec<DueRun>, StoreError> {
        self.store.due(after, until, limit)
    }

    fn journal(&self, run: &str) -> Result<Journal, StoreError> {
        self.store.journal(run)
    }

    fn history(
        &self,
        run: &str,
        after: u64,
        limit: usize,
    ) -> Result<Vec<(u64, HistoryEvent)>, StoreError> {
        self.store.history(run, after, limit)
    }

    fn commits_between(
        &self,
        run: &str,
        since: Timestamp,
        last: Option<u64>,
        wanted: &dyn Fn(&HistoryEvent) -> bool,
    ) -> Result<Vec<CommitRecord>, StoreError> {
        self.store.commits_between(run, since, last, wanted)
    }

    fn changes_back(
        &self,
        run: &str,
        last: u64,
        limit: usize,
    ) -> Result<Vec<(u64, Vec<Change>)>, StoreError> {
        self.store.changes_back(run, last, limit)
    }

    fn last_statuses(
        &self,
        run: &str,
        path: &str,
        wanted: Range<u64>,
        commits: u64,
    ) -> Result<Vec<windlass_store::LastStatus>, StoreError> {
        self.store.last_statuses(run, path, wanted, commits)
    }

    fn loops(&self, run: &str) -> Result<Vec<LoopState>, StoreError> {
        self.store.loops(run)
    }

    fn iterations(
        &self,
        run: &str,
        path: Option<&str>,
        limit: usize,
    ) -> Result<Vec<IterationRow>, StoreError> {
        self.store.iterations(run, path, limit)
    }

    fn iterations_of(&self, run: &str, path: &str) -> Result<LoopIterations, StoreError> {
        self.store.iterations_of(run, path)
    }

    fn whole_rows(
        &self,
        run: &str,
        path: &str,
        wanted: &[(u64, RowLocation)],
    ) -> Result<Vec<IterationRow>, StoreError> {
        self.store.whole_rows(run, path, wanted)
    }

    fn workflow(&self, name: &str) -> Result<Option<StoredWorkflow>, StoreError> {
        self.store.workflow(name)
    }

    fn workflows(
        &self,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<StoredWorkflow>, StoreError> {
        self.store.workflows(after, limit)
    }

    fn former_workflows(&self, name: &str) -> Result<Vec<WorkflowVersion>, StoreError> {
        self.store.former_workflows(name)
    }

    fn former_workflow(
        &self,
        name: &str,
        version: &WorkflowVersion,
    ) -> Result<Option<ProgramSource>, StoreError> {
        self.store.former_workflow(name, version)
    }

    fn state(&self, of: Option<&StateOwner>) -> Result<Vec<StateEntry>, StoreError> {
        self.store.state(of)
    }
}
