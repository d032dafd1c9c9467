//! How the engine reaches runs. [`RunBackend`] is all that the use cases, the server and the commands need.
//! [`LocalBackend`] has the runs in this process: a scheduler advances them, and a store has their state. Another
//! backend, such as Temporal, may have the runs in another process.

use super::{EngineError, PruneFilter, Pruned, prune};
use crate::scheduler::{Queued, Scheduler, Start, WaitRegistry, Watcher};
use futures_util::future::BoxFuture;
use std::sync::{Arc, Mutex, PoisonError};
use windlass_machine::program::ProgramHash;
use windlass_machine::{Event, RunStatus};
use windlass_model::model::Name;
use windlass_store::{MemoryStore, ProgramSource, ReadStore, RunHeader, Store, StoreError, Wake};
use windlass_value::time::Timestamp;

type ReadResult<T> = Result<T, EngineError>;
type EngineFuture<'a, T> = BoxFuture<'a, Result<T, EngineError>>;

/// Which part of the runs must be in a store before a caller reads the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent<'a> {
    /// What is in the store already: nothing is fetched.
    Known,
    /// The latest state of a run, its loops and its last iterations.
    Latest(&'a str),
    /// All of a run.
    Entire(&'a str),
    /// The headers of all runs.
    Headers,
}

/// Reads runs. Each method may block. Errors are those of the store, including the error for an unknown run.
/// [`Inspector`](crate::Inspector) has the queries.
pub trait RunReader: Send + Sync + 'static {
    /// Makes this extent of the runs available, and returns a store that contains it. For runs in this process, the
    /// store always contains all runs.
    fn prepare(&self, extent: Extent<'_>) -> ReadResult<&StoreReader>;

    /// Reads the latest part of a run, then more and more of its past, until `read` returns true. The number that
    /// `read` receives says how much of the run the store contains: 1 is the least, [`usize::MAX`] is everything.
    fn read_back(
        &self,
        run: &str,
        read: &mut dyn FnMut(&StoreReader, usize) -> ReadResult<bool>,
    ) -> ReadResult<()> {
        read(self.prepare(Extent::Latest(run))?, usize::MAX).map(drop)
    }

    /// Returns the source of a program. The run that names the program is durable, so the source is durable, too.
    fn source(&self, program: ProgramHash) -> ReadResult<ProgramSource> {
        let known = self.prepare(Extent::Known)?;
        known.read_unsynced(|store| store.program(program))
    }

    /// Returns the store of the named workflows.
    fn workflows(&self) -> &StoreReader;

    /// Returns whether the engine that owns a run executes it, or will execute it when it is due. If false, the run
    /// does not continue.
    fn executes(&self, run: &str) -> bool;

    /// Returns an error if no steps can be stored: [`StoreError::Failed`], [`StoreError::Gone`].
    fn check_writable(&self) -> ReadResult<()>;

    /// Returns which calls of a run wait for a permit: concurrency limits and rate limits delay calls.
    fn queued(&self, run: &str) -> Queued;

    /// Returns the runs whose headers changed or were deleted since the last call. `None`: it is not known which runs
    /// changed. Only one caller may use this, because each call resets the list.
    fn changed_runs(&self) -> Option<Vec<Name>>;

    /// Sets a callback. It is called at the first change of a run after each call of [`Self::changed_runs`].
    fn on_change(&self, wake: Wake);
}

/// Executes runs.
pub trait RunBackend: Send + Sync + 'static {
    /// Returns the reader of the runs.
    fn inspect(&self) -> Arc<dyn RunReader>;

    /// Starts a run. When this returns, its first step is durable.
    fn start(&self, start: Start) -> EngineFuture<'_, ()>;

    /// Delivers an event. When this returns, the step that follows from it is durable.
    fn deliver<'a>(&'a self, run: &'a str, event: Event) -> EngineFuture<'a, RunStatus>;

    /// Sends every durable step of a run to a watcher, from now on. Returns the run's header.
    fn follow<'a>(&'a self, run: &'a str, watcher: Watcher) -> EngineFuture<'a, RunHeader>;

    /// Prunes ended runs. Blocks. After an error, runs that were already pruned remain pruned.
    fn prune(&self, filter: &PruneFilter, now: Timestamp) -> ReadResult<Pruned>;
}

/// Reads runs from a store.
pub struct StoreReader {
    store: Arc<dyn Store>,
    /// Which runs the owner of the store executes, and which calls wait for a permit. `None` if no process owns the
    /// store.
    waits: Option<WaitRegistry>,
    snapshot: Mutex<Option<Snapshot>>,
}

/// The acknowledged data of a store that has failed and refuses writes.
struct Snapshot {
    /// The epoch of the store when the data was read. The epoch is the number of times that the store was reopened.
    epoch: u64,
    /// `None` if the store cannot distinguish acknowledged data from other data.
    store: Option<Arc<MemoryStore>>,
}

impl StoreReader {
    pub fn new(store: Arc<dyn Store>, waits: Option<WaitRegistry>) -> Self {
        Self {
            store,
            waits,
            snapshot: Mutex::default(),
        }
    }

    /// Reads only durable data. If the store has failed, reads what it acknowledged before.
    pub(crate) fn read_durable<T>(
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

    /// Reads without waiting for the disk.
    ///
    /// Until [`Self::wait_durable`] returns, a power cut may remove what was read.
    pub(crate) fn read_unsynced<T>(
        &self,
        read: impl Fn(&dyn ReadStore) -> Result<T, StoreError>,
    ) -> ReadResult<T> {
        self.readable(self.epoch(), &read, &read)
    }

    /// Returns how often the store was reopened.
    pub(crate) fn epoch(&self) -> u64 {
        self.store.epoch()
    }

    /// Waits until what was read is durable. `epoch` is the epoch of the store before the read.
    pub(crate) fn wait_durable(&self, epoch: u64) -> ReadResult<()> {
        Ok(self.store.wait_durable(epoch)?)
    }

    /// Reads from the store, or from the snapshot if the store has failed.
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

    /// Returns the snapshot of a failed store. The snapshot is made once for each epoch.
    fn snapshot(&self, epoch: u64) -> Option<Arc<MemoryStore>> {
        let mut known = self.snapshot.lock().unwrap_or_else(PoisonError::into_inner);
        if known.as_ref().is_none_or(|known| known.epoch != epoch) {
            // Free the old snapshot first, so that there are never two in memory.
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
        let waits = self.waits.as_ref();
        waits.is_some_and(|waits| waits.executes(run))
    }

    fn check_writable(&self) -> ReadResult<()> {
        self.store.check_present()?;
        Ok(self.store.check_writable()?)
    }

    fn changed_runs(&self) -> Option<Vec<Name>> {
        let waits = self.waits.as_ref().map(WaitRegistry::changed);
        let mut changed = self.store.changed_runs()?;
        changed.extend(waits.unwrap_or_else(|| Some(Vec::new()))?);
        Some(changed)
    }

    fn queued(&self, run: &str) -> Queued {
        let queued = self.waits.as_ref().map(|waits| waits.of(run));
        queued.unwrap_or_default()
    }

    fn on_change(&self, wake: Wake) {
        if let Some(waits) = &self.waits {
            waits.on_change(Arc::clone(&wake));
        }
        self.store.on_change(wake);
    }
}

/// The runs of this process.
pub(super) struct LocalBackend {
    /// Advances the runs.
    pub scheduler: Scheduler,
    store: Arc<dyn Store>,
    stored: Arc<StoreReader>,
}

impl LocalBackend {
    pub fn new(scheduler: Scheduler, store: Arc<dyn Store>) -> Self {
        let stored = Arc::new(StoreReader::new(
            Arc::clone(&store),
            Some(scheduler.waits().clone()),
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
