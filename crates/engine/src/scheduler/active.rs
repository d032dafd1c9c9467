//! A run in memory: its state, its header in the store, and its pending work.

use super::effects::{EffectContext, EffectRuntime, Tasks};
use super::traces::Attempts;
use super::{Loaded, Reply};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use windlass_actions::Registry;
use windlass_machine::hosted::RunHost;
use windlass_machine::{Effect, EffectId, Event, RunStatus, Transition};
use windlass_model::model::{Name, Origin, Request};
use windlass_store::{Commit, Placement, ProgramSource, RunHeader, StoredRun};
use windlass_value::time::Timestamp;

/// A run that sleeps longer than this leaves memory (docs/architecture.md, law 9).
const MIN_EVICTED_WAIT: Duration = Duration::from_secs(5);

/// A snapshot is written when the journal's tail (the commits after the last snapshot) is larger than the state by this
/// factor. If each commit adds much data to the state, the tail is never much larger than the state. Then a snapshot
/// would write the whole state again, and hardly speed up loading.
const SNAPSHOT_RATIO: u64 = 3;

/// A commit with more bytes than this is slow to encode, so it has its own thread.
pub(super) const LARGE_COMMIT: u64 = 256 << 10;

/// A step that is held: not stored yet, although its effects have started. Its only effects are requests without side
/// effects.
pub(super) struct HeldStep {
    pub step: Transition,
    pub attempts: Attempts,
    /// The step is stored at this time at the latest.
    pub until: Timestamp,
}

/// A step that is being computed, from one or more events.
pub(super) struct Advance {
    pub step: Transition,
    pub attempts: Attempts,
    pub replies: Vec<Reply<RunStatus>>,
    pub now: Timestamp,
    /// Whether the step may be held. If so, all events that led to it are redelivered after a crash.
    pub may_wait: bool,
    /// Whether no event that led to the step had side effects.
    pub is_side_effect_free: bool,
}

/// A step with an event that another thread handles.
pub(super) struct PendingComputation {
    /// The step so far, without this event.
    pub advance: Advance,
    /// Set to abort the computation and cancel the run.
    pub is_aborted: Arc<AtomicBool>,
    /// Replies to the callers that requested the cancel.
    pub cancels: Vec<Reply<RunStatus>>,
}

pub(super) struct ActiveRun {
    pub hosted: RunHost,
    pub header: RunHeader,
    /// The executors of the run's actions.
    registry: Arc<Registry>,
    /// The events to handle. They are boxed, because each run has such a queue and its capacity stays allocated.
    pub inbox: VecDeque<Box<(Event, Option<Reply<RunStatus>>)>>,
    /// Whether the run is in the queue of busy runs.
    pub queued: bool,
    /// Whether a step of the run is being computed elsewhere or written to the store. Meanwhile the next step waits.
    /// Otherwise the later of two commits of a run could be written first.
    pub is_step_in_flight: bool,
    pub tasks: Tasks,
    /// The step that another thread computes.
    pub computing: Option<Box<PendingComputation>>,
    /// The step that another thread has computed. It is stored next.
    pub computed: Option<Box<Advance>>,
    /// Whether the last step took long. If true, another thread computes the next step, and this thread does not try
    /// first.
    pub heavy: bool,
    /// Whether the last commit of the run was large, or the next one is. If true, the thread for large batches writes
    /// the next commit.
    pub is_large: bool,
    /// What this process lacks to carry out a cancel of the run. If a cancel arrives, it is stored, and the run is
    /// parked with this reason.
    pub missing: Option<String>,
    /// Effects that did not start when the run was loaded, because memory was short. They start after the run's next
    /// step.
    pub withheld: Vec<Effect>,
    /// The held step. It is stored with the next step, at the latest at [`HeldStep::until`].
    pub held: Option<Box<HeldStep>>,
    /// The program's source, which the first commit stores. `None` after that.
    source: Option<Box<ProgramSource>>,
    /// Number of bytes of the commits after the last snapshot.
    tail_bytes: u64,
}

impl ActiveRun {
    pub fn new(
        id: &Name,
        loaded: Loaded,
        source: ProgramSource,
        labels: BTreeMap<String, String>,
        now: Timestamp,
    ) -> Self {
        let header = RunHeader {
            id: id.clone(),
            workflow: loaded.program.name.clone(),
            program: loaded.program.hash,
            status: RunStatus::Running,
            revision: 0,
            snapshot: 0,
            started_at: now,
            updated_at: now,
            placement: Placement::Idle,
            labels,
        };
        let hosted = RunHost::new(id.clone(), loaded.program);
        Self::with(hosted, header, loaded.registry, Some(Box::new(source)))
    }

    pub fn from_stored(stored: StoredRun, loaded: Loaded) -> Self {
        let at = stored.header.updated_at;
        let mut tasks = Tasks::default();
        for (id, effect) in &stored.state.effects {
            tasks.note_child(&stored.header.id, *id, &effect.request);
        }
        let mut hosted = RunHost::restored(loaded.program, stored.state, at, stored.snapshot_bytes);
        hosted.add_recorded_bytes(stored.tail_bytes);
        let run = Self::with(hosted, stored.header, loaded.registry, None);
        Self {
            tail_bytes: stored.tail_bytes,
            tasks,
            ..run
        }
    }

    fn with(
        hosted: RunHost,
        header: RunHeader,
        registry: Arc<Registry>,
        source: Option<Box<ProgramSource>>,
    ) -> Self {
        Self {
            hosted,
            header,
            registry,
            inbox: VecDeque::new(),
            queued: false,
            is_step_in_flight: false,
            tasks: Tasks::default(),
            computing: None,
            computed: None,
            heavy: false,
            is_large: false,
            missing: None,
            withheld: Vec::new(),
            held: None,
            source,
            tail_bytes: 0,
        }
    }

    /// Makes the commit of a transition that was just applied.
    pub fn commit(&mut self, step: &mut Transition, now: Timestamp) -> Commit {
        let placement = self.placement(now);
        self.header.revision += 1;
        self.header.status = self.hosted.status();
        self.header.updated_at = now;
        self.header.placement = placement;
        self.header
            .labels
            .extend(self.hosted.state().failed_endings());
        self.header.count_failed_actions(&step.history);
        // Write no snapshot when a run ends. Its journal does not grow further, and a retry needs the last steps, which
        // a snapshot would replace.
        let snapshot = !self.header.status.is_final() && self.needs_snapshot();
        let snapshot = snapshot.then(|| self.hosted.state().clone());
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
            program: self.source.take().map(|source| *source),
        }
    }

    /// Returns whether the journal's tail is so large, compared with the state, that a snapshot is due.
    fn needs_snapshot(&mut self) -> bool {
        let weighed = self.hosted.weigh();
        let needed = weighed.filter(|bytes| self.tail_bytes > bytes.saturating_mul(SNAPSHOT_RATIO));
        self.is_large |= needed.is_some_and(|bytes| bytes > LARGE_COMMIT);
        needed.is_some()
    }

    /// Starts the effect that carries out a request. `runs` is the number of runs in memory.
    pub fn start(&mut self, on: &EffectRuntime, runs: usize, id: EffectId, request: Request) {
        let of = EffectContext {
            run: &self.header.id,
            workflow: &self.header.workflow,
            registry: &self.registry,
            runs,
            replayed: self.hosted.is_replayed(id),
        };
        self.tasks.start(on, of, id, request);
    }

    /// Returns the origin of the run's workflow: the operator or a guest (from HTTP or MCP).
    pub fn origin(&self) -> Origin {
        self.registry.origin()
    }

    /// Aborts the computation of the run's step, if another thread computes one.
    pub fn cancel_computation(&self) {
        if let Some(computing) = &self.computing {
            computing.is_aborted.store(true, Ordering::Relaxed);
        }
    }

    pub fn on_committed(&mut self, change_bytes: u64, snapshot_bytes: Option<u64>) {
        let bytes = change_bytes.max(snapshot_bytes.unwrap_or(0));
        self.is_large = bytes > LARGE_COMMIT;
        match snapshot_bytes {
            Some(bytes) => {
                self.hosted.set_snapshot_bytes(bytes);
                self.tail_bytes = 0;
            }
            None => {
                self.hosted.add_recorded_bytes(change_bytes);
                self.tail_bytes = self.tail_bytes.saturating_add(change_bytes);
            }
        }
    }

    /// Returns which index of the store has to list the run. A run that sleeps only briefly stays in the index of
    /// runnable runs. Moving it between the indexes twice in each iteration would cost more than loading it after a
    /// restart.
    pub fn placement(&self, now: Timestamp) -> Placement {
        match (self.hosted.status(), self.hosted.state().next_due_at()) {
            (RunStatus::Running, _) => Placement::Runnable,
            (RunStatus::Waiting, Some(due)) if due > now.plus(MIN_EVICTED_WAIT) => {
                Placement::Due(due)
            }
            (RunStatus::Waiting, Some(_)) => Placement::Runnable,
            _ => Placement::Idle,
        }
    }

    pub fn has_withheld_effects(&self) -> bool {
        !self.withheld.is_empty()
    }

    /// Returns the effects to start now: first the withheld effects that are still needed, then the effects of `step`.
    /// While the run is paused, the withheld effects remain withheld.
    pub fn take_withheld(&mut self, step: Vec<Effect>) -> Vec<Effect> {
        let state = self.hosted.state();
        if self.withheld.is_empty() || state.paused.is_some() {
            return step;
        }
        let mut effects = std::mem::take(&mut self.withheld);
        effects.retain(|effect| match effect {
            _ if state.outcome.is_some() => false,
            Effect::Start { id, .. } => state.effects.contains_key(id),
            Effect::Arm { id, due_at } => {
                let timer = state.timers.get(id);
                timer.is_some_and(|timer| timer.due_at == *due_at)
            }
            // If `step` has effects, these already include a `Continue` where one is necessary.
            Effect::Continue => step.is_empty(),
            Effect::Abort { .. } | Effect::Disarm { .. } | Effect::Finish(_) => true,
        });
        effects.extend(step);
        effects
    }

    /// Returns whether the run would continue in the same way if it left memory and was loaded again. False for a run
    /// that has ended or that the store does not list as runnable. Effects in flight are not considered.
    pub fn is_between_steps(&self) -> bool {
        self.inbox.is_empty()
            && self.missing.is_none()
            && !self.header.status.is_final()
            && self.header.placement == Placement::Runnable
    }

    /// Returns whether the run may leave memory: it has no event to handle and no effect in flight, and it is idle or
    /// sleeps for long.
    pub fn can_evict(&self) -> bool {
        self.inbox.is_empty()
            && self.tasks.is_empty()
            && !matches!(self.header.placement, Placement::Runnable)
    }
}
