//! Where runs live. [`RunBackend`] is all that the use cases, the server and the commands need of it.
//! [`LocalBackend`] keeps runs in this process: a scheduler moves them, a store keeps them. Another engine
//! may keep them elsewhere.

use super::{EngineError, PruneFilter, Pruned, prune};
use crate::scheduler::{Queue, Queued, Scheduler, Start, Watcher};
use futures_util::future::BoxFuture;
use std::sync::{Arc, Mutex, PoisonError};
use windlass_machine::program::ProgramHash;
use windlass_machine::{Event, RunStatus};
use windlass_model::model::Name;
use windlass_store::{MemoryStore, ProgramSource, ReadStore, RunHeader, Store, StoreError, Wake};
use windlass_value::time::Timestamp;

type ReadResult<T> = Result<T, EngineError>;
type EngineFuture<'a, T> = BoxFuture<'a, Result<T, EngineError>>;

/// How much of the runs must have been read when a caller reads from the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent<'a> {
    /// What was read until now.
    Known,
    /// The latest of a run: its state, its loops, its last iterations.
    Latest(&'a str),
    /// All of a run.
    Entire(&'a str),
    /// The headers of all runs.
    Headers,
}

/// Where runs are read. Each method may block. Errors are those of the store, and an unknown run.
/// [`Inspector`](crate::Inspector) has what is read of them.
pub trait RunReader: Send + Sync + 'static {
    /// What was read, as a store, after this much of it was read: of runs in this process it has all.
    fn prepare(&self, extent: Extent<'_>) -> ReadResult<&StoreReader>;

    /// Reads the latest of a run, and more and more of what was before, until `read` has found enough. It gets how much
    /// was read: 1 is the least, [`usize::MAX`] all that there ever is.
    fn read_back(
        &self,
        run: &str,
        read: &mut dyn FnMut(&StoreReader, usize) -> ReadResult<bool>,
    ) -> ReadResult<()> {
        read(self.prepare(Extent::Latest(run))?, usize::MAX).map(drop)
    }

    /// What a program was compiled from. What names it is durable, so it is.
    fn source(&self, program: ProgramHash) -> ReadResult<ProgramSource> {
        let known = self.prepare(Extent::Known)?;
        known.applied(|store| store.program(program))
    }

    /// Where workflows are stored under names.
    fn workflows(&self) -> &StoreReader;

    /// Whether the engine that owns a run executes it, or will when it is due: while none does, it does not continue.
    fn executes(&self, run: &str) -> bool;

    /// Why no steps can be stored, if so: [`StoreError::Failed`], [`StoreError::Gone`].
    fn check_writable(&self) -> ReadResult<()>;

    /// Which calls of a run wait until they may start, as the limits on calls have it.
    fn queued(&self, run: &str) -> Queued;

    /// The runs whose headers changed, or went, since the last call; none when that is not
    /// known. For one asker.
    fn changed_runs(&self) -> Option<Vec<Name>>;

    /// Sets what is called at the first change of a run after each call of [`Self::changed_runs`].
    fn on_change(&self, wake: Wake);
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
        read: impl Fn(&dyn ReadStore) -> Result<T, StoreError>,
    ) -> ReadResult<T> {
        let epoch = self.epoch();
        self.readable(
            epoch,
            |store| {
                let found = read(store)?;
                self.store.wait_durable(epoch)?;
                Ok(found)
            },
            &read,
        )
    }

    /// The same without waiting: a power cut may take back what was read, until [`Self::wait_durable`].
    pub(crate) fn applied<T>(
        &self,
        read: impl Fn(&dyn ReadStore) -> Result<T, StoreError>,
    ) -> ReadResult<T> {
        self.readable(self.epoch(), &read, &read)
    }

    /// How often the store was opened again.
    pub(crate) fn epoch(&self) -> u64 {
        self.store.epoch()
    }

    /// Waits until what was read is durable; `epoch` is from before it was read.
    pub(crate) fn wait_durable(&self, epoch: u64) -> ReadResult<()> {
        Ok(self.store.wait_durable(epoch)?)
    }

    /// Reads from the store, or from the snapshot of one that failed.
    fn readable<T>(
        &self,
        epoch: u64,
        read: impl Fn(&dyn ReadStore) -> Result<T, StoreError>,
        read_snapshot: impl Fn(&dyn ReadStore) -> Result<T, StoreError>,
    ) -> ReadResult<T> {
        match read(&*self.store) {
            Err(error @ StoreError::Failed { .. }) => match self.snapshot(epoch) {
                Some(store) => Ok(read_snapshot(&*store)?),
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
    fn prepare(&self, _extent: Extent<'_>) -> ReadResult<&StoreReader> {
        Ok(self)
    }

    fn workflows(&self) -> &StoreReader {
        self
    }

    fn executes(&self, run: &str) -> bool {
        let queue = self.queue.as_ref();
        queue.is_some_and(|queue| queue.executes(run))
    }

    fn check_writable(&self) -> ReadResult<()> {
        self.store.check_present()?;
        Ok(self.store.check_writable()?)
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
