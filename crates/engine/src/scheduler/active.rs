//! A run in memory: its state, its header in the store, and what waits to be done with it.

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

/// A run that waits longer than this leaves memory (docs/architecture.md, law 9).
const MIN_EVICTED_WAIT: Duration = Duration::from_secs(5);

/// A snapshot is written when the journal's tail is this many times as large as the state. A state that grows
/// by large pieces is never much less than its tail: a snapshot would write all of it again, and load
/// little faster.
const SNAPSHOT_RATIO: u64 = 3;

/// A commit with more bytes takes long to encode.
pub(super) const LARGE_COMMIT: u64 = 256 << 10;

/// A step whose only effects are safe requests, which have left.
pub(super) struct HeldStep {
    pub step: Transition,
    pub attempts: Attempts,
    /// It is stored now at the latest.
    pub until: Timestamp,
}

/// A step that is being made.
pub(super) struct Advance {
    pub step: Transition,
    pub attempts: Attempts,
    pub replies: Vec<Reply<RunStatus>>,
    pub now: Timestamp,
    /// Whether it may be held: only what comes again led to it.
    pub may_wait: bool,
    /// Whether nothing was changed anywhere by what led to it.
    pub harmless: bool,
}

/// A step whose event is carried out by a thread of its own.
pub(super) struct PendingComputation {
    /// The step until then.
    pub advance: Advance,
    /// Set to cancel the run instead.
    pub called_off: Arc<AtomicBool>,
    /// Replies for the callers that requested the cancellation.
    pub cancels: Vec<Reply<RunStatus>>,
}

pub(super) struct ActiveRun {
    pub hosted: RunHost,
    pub header: RunHeader,
    /// What carries out its calls.
    registry: Arc<Registry>,
    /// Boxed: there are as many of these as runs, and they keep their room.
    pub inbox: VecDeque<Box<(Event, Option<Reply<RunStatus>>)>>,
    /// Whether it is among the busy runs.
    pub queued: bool,
    /// Whether a step of it is on its way to the store. The next one waits: of two commits of a run the later
    /// could be written first.
    pub under_way: bool,
    pub tasks: Tasks,
    /// A step of it that is computed elsewhere.
    pub computing: Option<Box<PendingComputation>>,
    /// The step that was computed elsewhere, to be stored.
    pub computed: Option<Box<Advance>>,
    /// Its last step took long: the next one is computed elsewhere from the start.
    pub heavy: bool,
    /// Its last commit was large, or its next one is: a thread of its own writes it.
    pub is_large: bool,
    /// What this process lacks of what the run does when it is cancelled: the cancel is stored, and waits for that.
    pub missing: Option<String>,
    /// What it had to do when it was loaded for a command while memory was short: that begins after its next step.
    pub withheld: Vec<Effect>,
    /// A step that is stored with the next one, or soon.
    pub held: Option<Box<HeldStep>>,
    /// The program's source, until the first commit has stored it.
    source: Option<Box<ProgramSource>>,
    /// How many bytes the commits behind the last snapshot have.
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
            under_way: false,
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

    /// The commit of a transition that was just applied.
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
        // A run that ends has no tail to come, and its last steps are what a retry goes back to.
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

    /// Whether the journal's tail has outgrown the state.
    fn needs_snapshot(&mut self) -> bool {
        let weighed = self.hosted.weigh();
        let needed = weighed.filter(|bytes| self.tail_bytes > bytes.saturating_mul(SNAPSHOT_RATIO));
        self.is_large |= needed.is_some_and(|bytes| bytes > LARGE_COMMIT);
        needed.is_some()
    }

    /// Carries out a request. `runs` is the number of runs in memory.
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

    /// Whose workflow it runs.
    pub fn origin(&self) -> Origin {
        self.registry.origin()
    }

    /// Ends what is computed of it.
    pub fn cancel_computation(&self) {
        if let Some(computing) = &self.computing {
            computing.called_off.store(true, Ordering::Relaxed);
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

    /// Which index leads here after a restart. A run that sleeps only briefly stays among the
    /// runnable ones: moving it twice an iteration would cost more than loading it.
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

    pub fn is_withheld(&self) -> bool {
        !self.withheld.is_empty()
    }

    /// What it has to do now: what a step asks for, and before it what was withheld and is still to be done. While the run
    /// is paused nothing begins.
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
            // A step asks for its own.
            Effect::Continue => step.is_empty(),
            Effect::Abort { .. } | Effect::Disarm { .. } | Effect::Finish(_) => true,
        });
        effects.extend(step);
        effects
    }

    /// Whether it would continue in the same way after it was loaded again, except for what is in flight.
    pub fn is_between_steps(&self) -> bool {
        self.inbox.is_empty()
            && self.missing.is_none()
            && !self.header.status.is_final()
            && self.header.placement == Placement::Runnable
    }

    /// Whether it may leave memory: nothing in flight, nothing to do, a long wait ahead.
    pub fn can_evict(&self) -> bool {
        self.inbox.is_empty()
            && self.tasks.is_empty()
            && !matches!(self.header.placement, Placement::Runnable)
    }
}
