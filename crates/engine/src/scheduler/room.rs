//! The memory that the runs of guests may take together. A run that does not fit is on disk only, and is loaded again
//! when there is room for it. The runs of the operator are not counted.

use super::active::ActiveRun;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use windlass_machine::hosted::{MAX_GROWTH, state_memory};
use windlass_machine::{Event, RunState};
use windlass_model::model::Name;
use windlass_value::time::Timestamp;

/// Number of waiting runs of which one may fit.
const CANDIDATES: usize = 64;

/// A run that cannot leave memory fails when it has more than this part of what is already in use twice.
const LARGE: u64 = 64;

/// The room, and the runs that wait for it.
pub(super) struct Room {
    limit: u64,
    used: Arc<AtomicU64>,
    waiting: BTreeSet<(Timestamp, Name)>,
    /// When each of them is due, and how much it needs; 0 as long as that is not known.
    needs: HashMap<Name, (Timestamp, u64)>,
}

/// What one run takes of it.
pub(super) struct Share {
    used: Arc<AtomicU64>,
    /// As it was weighed last.
    weighed: u64,
    /// How many bytes were recorded since then.
    recorded: u64,
}

impl Room {
    pub fn new(limit: u64) -> Self {
        Self {
            limit,
            used: Arc::default(),
            waiting: BTreeSet::new(),
            needs: HashMap::new(),
        }
    }

    /// The share of a run that is in memory from now on, with this many bytes in the store.
    pub fn share(&self, recorded: u64) -> Share {
        let mut share = Share {
            used: Arc::clone(&self.used),
            weighed: 0,
            recorded: 0,
        };
        share.record(recorded);
        share
    }

    /// Whether more than half is in use, so that shares have to be exact.
    pub fn is_tight(&self) -> bool {
        self.used.load(Ordering::Relaxed) > self.limit / 2
    }

    /// Whether the runs in memory have more than there is.
    pub fn is_exceeded(&self) -> bool {
        self.used.load(Ordering::Relaxed) > self.limit
    }

    /// What may be in use when no more messages are gathered: each may load a run.
    pub fn most_to_gather(&self) -> u64 {
        let used = self.used.load(Ordering::Relaxed);
        used.saturating_add(self.limit / 2)
    }

    /// Whether more than this is in use.
    pub fn has_more_than(&self, bytes: u64) -> bool {
        self.used.load(Ordering::Relaxed) > bytes
    }

    /// What ends a run that cannot leave memory and has too much of it.
    pub fn too_large_event(&self, active: &ActiveRun) -> Option<Event> {
        let bytes = active.share.as_ref()?.bytes();
        let is_large = bytes > self.limit / LARGE;
        let ends = is_large && self.has_more_than(self.limit.saturating_mul(2));
        let ends = ends && !active.can_wait_on_disk() && !active.hosted.status().is_final();
        let limit = self.limit;
        ends.then_some(Event::StateTooLarge { bytes, limit })
    }

    /// Whether a run with this need has to wait. One that needs more than all fits when no other is in memory.
    pub fn is_full_for(&self, bytes: u64) -> bool {
        let used = self.used.load(Ordering::Relaxed);
        used > 0 && used.saturating_add(bytes) >= self.limit
    }

    /// A run leaves memory, and waits for room from `due_at` on.
    pub fn wait(&mut self, run: &Name, due_at: Timestamp, bytes: u64) {
        self.forget(run);
        self.waiting.insert((due_at, run.clone()));
        self.needs.insert(run.clone(), (due_at, bytes));
    }

    /// A run waits no longer: it is in memory.
    pub fn forget(&mut self, run: &Name) {
        if let Some((due_at, _)) = self.needs.remove(run) {
            self.waiting.remove(&(due_at, run.clone()));
        }
    }

    /// How many runs wait.
    pub fn len(&self) -> usize {
        self.needs.len()
    }

    pub fn waits(&self, run: &Name) -> bool {
        self.needs.contains_key(run)
    }

    /// The first run that is due and fits.
    pub fn next(&self, now: Timestamp) -> Option<Name> {
        let (due_at, run) = self.first_that_fits()?;
        (*due_at <= now).then(|| run.clone())
    }

    /// When the first run that fits is due.
    pub fn first(&self) -> Option<Timestamp> {
        self.first_that_fits().map(|(due_at, _)| *due_at)
    }

    fn first_that_fits(&self) -> Option<&(Timestamp, Name)> {
        let mut candidates = self.waiting.iter().take(CANDIDATES);
        candidates.find(|(_, run)| {
            let need = self.needs.get(run).map_or(0, |(_, bytes)| *bytes);
            !self.is_full_for(need)
        })
    }
}

impl Share {
    /// As far as it is known, in bytes.
    pub fn bytes(&self) -> u64 {
        let since = self.recorded.saturating_mul(MAX_GROWTH);
        self.weighed.saturating_add(since)
    }

    /// Counts bytes that were recorded for its steps.
    pub fn record(&mut self, bytes: u64) {
        self.change(|share| share.recorded = share.recorded.saturating_add(bytes));
    }

    /// Weighs the state, unless little was recorded since the last time.
    pub fn weigh(&mut self, state: &RunState) {
        if self.recorded.saturating_mul(MAX_GROWTH) > self.weighed / 4 {
            let weighed = state_memory(state);
            self.change(|share| (share.weighed, share.recorded) = (weighed, 0));
        }
    }

    fn change(&mut self, change: impl FnOnce(&mut Self)) {
        let before = self.bytes();
        change(self);
        self.used.fetch_add(self.bytes(), Ordering::Relaxed);
        self.used.fetch_sub(before, Ordering::Relaxed);
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.used.fetch_sub(self.bytes(), Ordering::Relaxed);
    }
}
