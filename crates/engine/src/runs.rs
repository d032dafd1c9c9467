//! Where runs live. [`RunBackend`] is all that the use cases, the server and the commands need of it.
//! [`LocalBackend`] keeps runs in this process: a scheduler moves them, a store keeps them. Another engine
//! may keep them elsewhere.

use super::{EngineError, PruneFilter, Pruned, prune};
use crate::scheduler::{Queue, Queued, Scheduler, Start, Watcher};
use futures_util::future::BoxFuture;
use std::cell::Cell;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use windlass_machine::program::ProgramHash;
use windlass_machine::{Event, HistoryEvent, IterationRow, LoopState, RunStatus};
use windlass_model::model::Name;
use windlass_store::{
    ConsistentRun, Journal, LastStatus, MemoryStore, ProgramSource, RunHeader, Store, StoreError,
    StoredRun, Wake,
};
use windlass_value::time::Timestamp;

type ReadResult<T> = Result<T, EngineError>;
type EngineFuture<'a, T> = BoxFuture<'a, Result<T, EngineError>>;

/// Reads runs. Each method may block, and gives only what is durable. Errors are those of the store,
/// and an unknown run.
pub trait RunReader: Send + Sync + 'static {
    /// What was read until now, as a store: of runs in this process all of it.
    fn known(&self) -> &StoreReader;

    /// The same, after the latest of a run was read: its state, its loops, its last iterations.
    fn last(&self, _run: &str) -> ReadResult<&StoreReader> {
        Ok(self.known())
    }

    /// The same, after all of a run was read.
    fn entire(&self, _run: &str) -> ReadResult<&StoreReader> {
        Ok(self.known())
    }

    /// The same, after the headers of all runs were read: once for all pages of a list.
    fn refreshed(&self, _after: Option<&str>) -> ReadResult<&StoreReader> {
        Ok(self.known())
    }

    /// Where workflows are stored under names.
    fn workflows(&self) -> &StoreReader {
        self.known()
    }

    /// Whether an engine owns them: while none does, no run continues.
    fn is_owned(&self) -> bool;

    /// Whether the engine that owns them executes this one, or will when it is due.
    fn executes(&self, _run: &str) -> bool {
        self.is_owned()
    }

    /// Why no steps can be stored, if so: [`StoreError::Failed`], [`StoreError::Gone`].
    fn check_writable(&self) -> ReadResult<()>;

    /// A run's header.
    fn header(&self, run: &str) -> ReadResult<RunHeader> {
        self.last(run)?.durable(|store| store.header(run))
    }

    /// A run's header and state.
    fn load(&self, run: &str) -> ReadResult<StoredRun> {
        self.last(run)?.durable(|store| store.load(run))
    }

    /// A run at one moment: header, state, loops and its last `iterations`.
    fn whole(&self, run: &str, iterations: usize) -> ReadResult<ConsistentRun> {
        self.last(run)?.durable(|store| {
            store.check_writable()?;
            Ok(store.consistent_read(run, iterations))
        })
    }

    /// The changes that led to a run's state, as far as they are retained.
    fn journal(&self, run: &str) -> ReadResult<Journal> {
        self.entire(run)?.durable(|store| store.journal(run))
    }

    /// What a program was compiled from.
    fn source(&self, program: ProgramHash) -> ReadResult<ProgramSource> {
        self.known().durable(|store| store.program(program))
    }

    /// Runs several reads on this thread, and waits once until what they read is durable.
    fn read_batch(&self, read: &mut dyn FnMut()) -> ReadResult<()>;

    /// The headers of some runs as they are at one moment; none of one that is not there.
    fn headers(&self, runs: &[Name]) -> ReadResult<Vec<Option<RunHeader>>> {
        self.known().durable(|store| {
            let header = |run: &Name| match store.header(run) {
                Ok(header) => Ok(Some(header)),
                Err(StoreError::UnknownRun(_)) => Ok(None),
                Err(error) => Err(error),
            };
            runs.iter().map(header).collect()
        })
    }

    /// The runs whose headers changed, or went, since this was asked last; none when that is not
    /// known. For one asker.
    fn changed_runs(&self) -> Option<Vec<Name>>;

    /// Which calls of a run wait until they may start, as the limits on calls have it.
    fn queued(&self, run: &str) -> Queued;

    /// From now on this is called when the first run changes after it was asked.
    fn on_change(&self, wake: Wake);

    /// Headers in the order of the runs' ids, after `after`.
    fn list(&self, after: Option<&str>, limit: usize) -> ReadResult<Vec<RunHeader>> {
        self.refreshed(after)?
            .durable(|store| store.list(after, limit))
    }

    /// The current row of every loop of a run.
    fn loops(&self, run: &str) -> ReadResult<Vec<LoopState>> {
        self.last(run)?.durable(|store| store.loops(run))
    }

    /// The last `limit` iterations of a run, or of one of its loops.
    fn iterations(
        &self,
        run: &str,
        path: Option<&str>,
        limit: usize,
    ) -> ReadResult<Vec<IterationRow>> {
        self.last(run)?
            .durable(|store| store.iterations(run, path, limit))
    }

    /// How the iterations of a loop with these numbers ended, as far as the last `commits` tell it.
    fn last_statuses(
        &self,
        run: &str,
        path: &str,
        wanted: Range<u64>,
        commits: u64,
    ) -> ReadResult<Vec<LastStatus>> {
        self.last(run)?
            .durable(|store| store.last_statuses(run, path, wanted.clone(), commits))
    }

    /// A run's history after a sequence number.
    fn history(&self, run: &str, after: u64, limit: usize) -> ReadResult<Vec<(u64, HistoryEvent)>> {
        self.entire(run)?
            .durable(|store| store.history(run, after, limit))
    }
}

/// Runs that continue.
pub trait RunBackend: Send + Sync + 'static {
    /// Reads them.
    fn inspect(&self) -> Arc<dyn RunReader>;

    /// Starts a run. When this returns, its first step is durable.
    fn start(&self, start: Start) -> EngineFuture<'_, ()>;

    /// Delivers an event. When this returns, the step that follows from it is durable.
    fn deliver<'a>(&'a self, run: &'a str, event: Event) -> EngineFuture<'a, RunStatus>;

    /// Sends every durable step of a run to a watcher, from now on; returns its header.
    fn follow<'a>(&'a self, run: &'a str, watcher: Watcher) -> EngineFuture<'a, RunHeader>;

    /// Forgets runs that have ended. Blocks. After an error, those forgotten before stay so.
    fn prune(&self, filter: &PruneFilter, now: Timestamp) -> ReadResult<Pruned>;
}

thread_local! {
    /// Whether what this thread reads is waited for later.
    static BATCH_DEPTH: Cell<bool> = const { Cell::new(false) };
}

/// Sets it back to what it was, also after a panic.
struct BatchGuard(bool);

impl Drop for BatchGuard {
    fn drop(&mut self) {
        BATCH_DEPTH.set(self.0);
    }
}

/// Runs as they lie in a store.
pub struct StoreReader {
    store: Arc<dyn Store>,
    /// What the owner of the store executes, and what it has not started yet; none: no process owns it.
    queue: Option<Queue>,
    snapshot: Mutex<Option<Snapshot>>,
}

/// What was acknowledged, of a store that takes no writes.
struct Snapshot {
    /// How often the store was opened again before it was read.
    epoch: u64,
    /// None when what was acknowledged cannot be distinguished from what was not.
    store: Option<Arc<MemoryStore>>,
}

impl StoreReader {
    pub fn new(store: Arc<dyn Store>, queue: Option<Queue>) -> Self {
        Self {
            store,
            queue,
            snapshot: Mutex::default(),
        }
    }

    /// Reads what nothing can take back any more: of a store that takes no writes, what was
    /// acknowledged before.
    pub(crate) fn durable<T>(
        &self,
        read: impl Fn(&dyn Store) -> Result<T, StoreError>,
    ) -> ReadResult<T> {
        let epoch = self.store.epoch();
        let found = read(&*self.store).and_then(|found| {
            if !BATCH_DEPTH.get() {
                self.store.wait_durable(epoch)?;
            }
            Ok(found)
        });
        match found {
            Err(error @ StoreError::Failed { .. }) => match self.snapshot(epoch) {
                Some(store) => Ok(read(&*store)?),
                None => Err(error.into()),
            },
            found => {
                // The store accepts writes: the snapshot is not needed any more.
                if let Ok(mut snapshot) = self.snapshot.try_lock() {
                    *snapshot = None;
                }
                Ok(found?)
            }
        }
    }

    /// Read once for each time that the store was opened again.
    fn snapshot(&self, epoch: u64) -> Option<Arc<MemoryStore>> {
        let mut known = self.snapshot.lock().unwrap_or_else(PoisonError::into_inner);
        if known.as_ref().is_none_or(|known| known.epoch != epoch) {
            // Free the old one before the next one takes as much memory.
            *known = None;
            let store = self.store.durable_snapshot().map(Arc::new);
            *known = Some(Snapshot { epoch, store });
        }
        known.as_ref().and_then(|known| known.store.clone())
    }
}

impl RunReader for StoreReader {
    fn known(&self) -> &StoreReader {
        self
    }

    fn is_owned(&self) -> bool {
        self.queue.is_some()
    }

    fn executes(&self, run: &str) -> bool {
        let queue = self.queue.as_ref();
        queue.is_some_and(|queue| queue.executes(run))
    }

    fn check_writable(&self) -> ReadResult<()> {
        self.store.check_present()?;
        Ok(self.store.check_writable()?)
    }

    fn read_batch(&self, read: &mut dyn FnMut()) -> ReadResult<()> {
        let epoch = self.store.epoch();
        let outer = BatchGuard(BATCH_DEPTH.replace(true));
        read();
        match outer.0 {
            true => Ok(()),
            false => Ok(self.store.wait_durable(epoch)?),
        }
    }

    fn changed_runs(&self) -> Option<Vec<Name>> {
        let queue = self.queue.as_ref().map(Queue::changed);
        let mut changed = self.store.changed_runs()?;
        changed.extend(queue.unwrap_or_else(|| Some(Vec::new()))?);
        Some(changed)
    }

    fn queued(&self, run: &str) -> Queued {
        let queued = self.queue.as_ref().map(|queue| queue.of(run));
        queued.unwrap_or_default()
    }

    fn on_change(&self, wake: Wake) {
        if let Some(queue) = &self.queue {
            queue.on_change(Arc::clone(&wake));
        }
        self.store.on_change(wake);
    }
}

/// Runs in this process.
pub(super) struct LocalBackend {
    /// Moves them.
    pub scheduler: Scheduler,
    store: Arc<dyn Store>,
    stored: Arc<StoreReader>,
}

impl LocalBackend {
    pub fn new(scheduler: Scheduler, store: Arc<dyn Store>) -> Self {
        let stored = Arc::new(StoreReader::new(
            Arc::clone(&store),
            Some(scheduler.queue().clone()),
        ));
        Self {
            scheduler,
            store,
            stored,
        }
    }
}

impl RunBackend for LocalBackend {
    fn inspect(&self) -> Arc<dyn RunReader> {
        self.stored.clone()
    }

    fn start(&self, start: Start) -> EngineFuture<'_, ()> {
        Box::pin(async move { Ok(self.scheduler.start(start).await?) })
    }

    fn deliver<'a>(&'a self, run: &'a str, event: Event) -> EngineFuture<'a, RunStatus> {
        Box::pin(async move { Ok(self.scheduler.deliver(run, event).await?) })
    }

    fn follow<'a>(&'a self, run: &'a str, watcher: Watcher) -> EngineFuture<'a, RunHeader> {
        Box::pin(async move { Ok(self.scheduler.watch(run, watcher).await?) })
    }

    fn prune(&self, filter: &PruneFilter, now: Timestamp) -> ReadResult<Pruned> {
        prune::prune(&*self.store, filter, now)
    }
}
