//! A run in memory: its state, its place in the store, and what waits to be done with it.

use super::tasks::{Of, Tasks, Workshop};
use super::{Loaded, Reply};
use crate::machine::{EffectId, Event, RunState, RunStatus, Transition};
use crate::model::{Name, Request};
use crate::store::{Commit, Placement, ProgramSource, RunHeader, StoredRun, state_size};
use crate::time::Timestamp;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// A run that waits longer than this leaves memory (spec: architecture.md, law 9).
const STAYS_IN_MEMORY: Duration = Duration::from_secs(5);

/// A journal's tail may always grow to this size before a snapshot follows, in bytes.
const MIN_TAIL: u64 = 256 * 1024;

/// A snapshot follows when the journal's tail outweighs the state so many times. A state that grows
/// by large pieces is never much less than its tail: a snapshot would write all of it again, and load
/// little faster.
const OUTWEIGHS: u64 = 3;

pub(super) struct Live {
    pub loaded: Loaded,
    pub state: RunState,
    pub header: RunHeader,
    pub inbox: VecDeque<(Event, Option<Reply<RunStatus>>)>,
    /// Whether it is among the busy runs.
    pub queued: bool,
    pub tasks: Tasks,
    /// The program's source, until the first commit has stored it.
    pub source: Option<ProgramSource>,
    /// How many bytes the commits behind the last snapshot have.
    tail_bytes: u64,
    /// How many of them have come since the state was weighed.
    unweighed: u64,
    /// How large the state was when it was weighed last.
    state_bytes: u64,
    /// Effects with smaller numbers were asked for before it came into memory.
    first_own: EffectId,
}

impl Live {
    pub fn new(
        id: &Name,
        loaded: Loaded,
        source: ProgramSource,
        labels: BTreeMap<String, String>,
        now: Timestamp,
    ) -> Self {
        let hash = loaded.program.hash;
        let header = RunHeader {
            id: id.clone(),
            workflow: loaded.program.name.clone(),
            program: hash,
            status: RunStatus::Running,
            revision: 0,
            snapshot: 0,
            started_at: now,
            updated_at: now,
            placement: Placement::Resting,
            labels,
        };
        Self {
            state: RunState::new(id.clone(), hash),
            header,
            loaded,
            inbox: VecDeque::new(),
            queued: false,
            tasks: Tasks::default(),
            source: Some(source),
            tail_bytes: 0,
            unweighed: 0,
            state_bytes: 0,
            first_own: EffectId(0),
        }
    }

    pub fn stored(stored: StoredRun, loaded: Loaded) -> Self {
        Self {
            first_own: EffectId(stored.state.next_id),
            loaded,
            state: stored.state,
            header: stored.header,
            inbox: VecDeque::new(),
            queued: false,
            tasks: Tasks::default(),
            source: None,
            tail_bytes: stored.tail_bytes,
            unweighed: stored.tail_bytes,
            state_bytes: stored.snapshot_bytes,
        }
    }

    /// The time of an event: never before the run's last step, should the clock go back.
    pub fn time(&self, now: Timestamp) -> Timestamp {
        now.max(self.header.updated_at)
    }

    /// The commit of a transition that was just applied.
    pub fn commit(&mut self, step: &mut Transition, now: Timestamp) -> Commit {
        let placement = self.placement(now);
        self.header.revision += 1;
        self.header.status = self.state.status();
        self.header.updated_at = now;
        self.header.placement = placement;
        // A run that ends has no tail to come, and its last steps are what a retry goes back to.
        let outgrown = self.state.outcome.is_none() && self.needs_snapshot();
        let snapshot = outgrown.then(|| self.state.clone());
        if snapshot.is_some() {
            self.header.snapshot = self.header.revision;
        }
        Commit {
            header: self.header.clone(),
            changes: std::mem::take(&mut step.changes),
            loops: std::mem::take(&mut step.loops),
            iterations: std::mem::take(&mut step.iterations),
            history: std::mem::take(&mut step.history),
            snapshot,
            program: self.source.take(),
        }
    }

    /// Whether the journal's tail has outgrown the state. That is weighed again when as much has
    /// come as it weighed, so that weighing costs little.
    fn needs_snapshot(&mut self) -> bool {
        if self.unweighed <= self.state_bytes.max(MIN_TAIL) {
            return false;
        }
        self.unweighed = 0;
        self.state_bytes = state_size(&self.state).unwrap_or(self.state_bytes);
        self.tail_bytes > self.state_bytes.saturating_mul(OUTWEIGHS)
    }

    /// Carries out a request, unless it is being carried out.
    pub fn start(&mut self, on: &Workshop, id: EffectId, request: Request) {
        let of = Of {
            run: &self.header.id,
            workflow: &self.header.workflow,
            registry: &self.loaded.registry,
            again: id < self.first_own,
        };
        self.tasks.start(on, of, id, request);
    }

    /// How large its state is, when that is more than it may be. It is weighed at the latest when
    /// it has doubled.
    pub fn outgrown(&self, limit: u64) -> Option<u64> {
        (self.state_bytes > limit).then_some(self.state_bytes)
    }

    pub fn committed(&mut self, change_bytes: u64, snapshot_bytes: Option<u64>) {
        match snapshot_bytes {
            Some(bytes) => {
                self.state_bytes = bytes;
                (self.tail_bytes, self.unweighed) = (0, 0);
            }
            None => {
                self.tail_bytes = self.tail_bytes.saturating_add(change_bytes);
                self.unweighed = self.unweighed.saturating_add(change_bytes);
            }
        }
    }

    /// Which index leads here after a restart. A run that sleeps only briefly stays among the
    /// runnable ones: moving it twice an iteration would cost more than loading it.
    pub fn placement(&self, now: Timestamp) -> Placement {
        match (self.state.status(), self.state.next_due_at()) {
            (RunStatus::Running, _) => Placement::Runnable,
            (RunStatus::Waiting, Some(due)) if due > now.plus(STAYS_IN_MEMORY) => {
                Placement::Due(due)
            }
            (RunStatus::Waiting, Some(_)) => Placement::Runnable,
            _ => Placement::Resting,
        }
    }

    /// Whether it may leave memory: nothing in flight, nothing to do, a long wait ahead.
    pub fn may_leave(&self) -> bool {
        self.inbox.is_empty()
            && self.tasks.len() == 0
            && !matches!(self.header.placement, Placement::Runnable)
    }
}
