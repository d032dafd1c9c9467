//! The memory that runs of guests take together. Beyond a bound, a run with more than its share leaves memory: after a
//! step that is durable, before anything that follows from it has begun. It waits until there is room, and continues
//! as after a restart. A run that another one waits for may use more than that one, so they never wait for each other.
//!
//! ```text
//!            usual        a run with more than its share    nobody but one advances
//!   0 ──────────────── bound ─────────────────────────── + a quarter ──▶ bytes
//!                              leaves after its step
//! ```

use super::ScheduleError;
use super::active::ActiveRun;
use super::driver::Driver;
use super::queue::MemoryWait;
use crate::called::depth;
use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::time::Duration;
use windlass_machine::{EffectId, Event};
use windlass_model::model::{Name, Origin};
use windlass_store::{Placement, RunHeader};
use windlass_value::time::Timestamp;

/// While others wait, a run with more than its share leaves after so long.
const TURN: Duration = Duration::from_secs(10);

/// The runs of guests in memory, and those that wait for room.
pub(super) struct GuestMemory {
    /// Bytes of runs that nobody waits for.
    bound: u64,
    used: u64,
    in_memory: HashMap<Name, MemoryUse>,
    /// Those with a step that is computed or stored.
    stepping: HashSet<Name>,
    /// In the order in which they left.
    waiting: VecDeque<WaitingRun>,
    known: HashSet<Name>,
    /// Busy runs that do not advance until others have left.
    pub postponed: Vec<Name>,
    /// Whether something happened since they were postponed that may let them advance.
    pub changed: bool,
}

struct MemoryUse {
    bytes: u64,
    since: Timestamp,
}

/// A run on disk.
struct WaitingRun {
    run: Name,
    depth: usize,
    bytes: u64,
    /// The effects from here on have not begun; none: nothing is known of them.
    first_own: Option<EffectId>,
    /// Reports show that it waits.
    _report: MemoryWait,
}

impl GuestMemory {
    pub fn new(bound: u64) -> Self {
        Self {
            bound,
            used: 0,
            in_memory: HashMap::new(),
            stepping: HashSet::new(),
            waiting: VecDeque::new(),
            known: HashSet::new(),
            postponed: Vec::new(),
            changed: false,
        }
    }

    /// How many bytes are in memory, and how many runs wait.
    pub fn totals(&self) -> (u64, usize) {
        (self.used, self.waiting.len())
    }

    /// A run that has `depth` others waiting for it takes part in this many bytes.
    fn limit(&self, depth: usize) -> u64 {
        let further = (self.bound / 2).saturating_mul(depth as u64);
        self.bound.saturating_add(further)
    }

    /// A run in memory takes this many bytes.
    fn set(&mut self, run: &Name, bytes: u64, now: Timestamp) {
        let new = || MemoryUse {
            bytes: 0,
            since: now,
        };
        let one = self.in_memory.entry(run.clone()).or_insert_with(new);
        let before = std::mem::replace(&mut one.bytes, bytes);
        self.used = self.used.saturating_sub(before).saturating_add(bytes);
    }

    /// A run is no longer in memory.
    pub fn remove(&mut self, run: &Name) {
        self.stepping.remove(run);
        self.postponed.retain(|postponed| postponed != run);
        self.changed = true;
        if let Some(one) = self.in_memory.remove(run) {
            self.used = self.used.saturating_sub(one.bytes);
        }
    }

    /// Whether a run that would take this many bytes may be loaded. A large one needs half of the bound.
    pub fn has_room(&self, bytes: u64, depth: usize) -> bool {
        let needed = bytes.min(self.bound / 2);
        self.used.saturating_add(needed) <= self.limit(depth)
    }

    /// Whether a run takes more than its share of what is short.
    fn must_leave(&self, run: &Name, depth: usize, now: Timestamp) -> bool {
        let Some(own) = self.in_memory.get(run) else {
            return false;
        };
        let limit = self.limit(depth);
        let exceeds_share = |sharers: usize| own.bytes.saturating_mul(sharers as u64) > limit;
        let runs = self.in_memory.len();
        if self.used > limit {
            return exceeds_share(runs);
        }
        let had_turn = now.since(own.since) > TURN;
        had_turn && !self.waiting.is_empty() && exceeds_share(runs + self.waiting.len())
    }

    /// Whether only one run may advance at a time.
    fn is_full(&self, depth: usize) -> bool {
        self.used > self.limit(depth).saturating_add(self.bound / 4)
    }

    pub fn is_waiting(&self, run: &Name) -> bool {
        self.known.contains(run)
    }

    fn wait(&mut self, waiting: WaitingRun) {
        self.remove(&waiting.run);
        if self.known.insert(waiting.run.clone()) {
            self.waiting.push_back(waiting);
        }
    }

    /// A run that waits is loaded. Returns since which effect nothing of it has begun, if that is known.
    pub fn stop_waiting(&mut self, run: &Name) -> Option<EffectId> {
        if !self.known.remove(run) {
            return None;
        }
        let at = self
            .waiting
            .iter()
            .position(|waiting| waiting.run == *run)?;
        self.waiting.remove(at)?.first_own
    }

    /// The first run that there is room for. One does not pass another with as many runs waiting for it.
    fn next_admitted(&self) -> Option<(Name, u64)> {
        let mut blocked = BTreeSet::new();
        let mut waiting = self.waiting.iter();
        let admitted = waiting.find(|one| {
            let fits = !blocked.contains(&one.depth) && self.has_room(one.bytes, one.depth);
            if !fits {
                blocked.insert(one.depth);
            }
            fits
        });
        admitted.map(|one| (one.run.clone(), one.bytes))
    }

    /// From now on a step of the run is computed or stored.
    pub fn begin_step(&mut self, run: &Name) {
        self.stepping.insert(run.clone());
    }

    pub fn end_step(&mut self, run: &Name) {
        self.changed |= self.stepping.remove(run);
    }
}

impl Driver {
    /// Has a guest's run wait on disk if it takes more memory than it may. Its step is durable, and what follows from it
    /// has not begun.
    pub(super) fn leave_when_full(&mut self, run: &Name) -> bool {
        let now = self.clock.now();
        let Some(active) = self.runs.get_mut(run) else {
            return false;
        };
        if active.origin() != Origin::Guest {
            return false;
        }
        self.guests.set(run, active.hosted.memory(), now);
        let stays = self.commands_only || self.stopping.is_some() || !active.is_between_steps();
        if stays
            || !self
                .guests
                .must_leave(run, depth(&active.header.labels), now)
        {
            return false;
        }
        self.leave(run);
        true
    }

    fn leave(&mut self, run: &Name) {
        let Some(active) = self.runs.remove(run) else {
            return;
        };
        let mut active = *active;
        self.timers.disarm_all(run, active.hosted.state());
        let waiting = WaitingRun {
            run: run.clone(),
            depth: depth(&active.header.labels),
            _report: self.runtime.queue.wait_for_memory(run),
            first_own: Some(active.hosted.first_own()),
            bytes: active.hosted.memory(),
        };
        self.guests.wait(waiting);
    }

    /// Whether a run that was just loaded takes more memory than it may: nothing of it begins before its next step.
    pub(super) fn is_withheld(&mut self, active: &mut ActiveRun) -> bool {
        if active.origin() != Origin::Guest || self.commands_only {
            return false;
        }
        let (run, now) = (&active.header.id, self.clock.now());
        self.guests.set(run, active.hosted.memory(), now);
        self.guests
            .must_leave(run, depth(&active.header.labels), now)
    }

    /// Loads a run that nobody asked for, when there is room for it.
    ///
    /// # Errors
    /// As [`Driver::load_run`].
    pub(super) fn load_if_room(&mut self, run: &Name) -> Result<(), ScheduleError> {
        if self.guests.is_waiting(run) {
            return Ok(());
        }
        if !self.guests.has_room(0, 0) && !self.runs.contains_key(run) {
            let header = self.store.header(run)?;
            let origin = self.program(run, header.program)?.registry.origin();
            let depth = depth(&header.labels);
            if origin == Origin::Guest && !self.guests.has_room(0, depth) {
                return self.wait_unloaded(run, &header, depth);
            }
        }
        self.load_run(run)?;
        if self.runs.get(run).is_some_and(|active| active.withheld) {
            self.leave(run);
        }
        Ok(())
    }

    fn wait_unloaded(
        &mut self,
        run: &Name,
        header: &RunHeader,
        depth: usize,
    ) -> Result<(), ScheduleError> {
        if header.placement != Placement::Runnable {
            // Else it would be found among the due ones again and again.
            self.store.set_quarantine(run, Placement::Runnable, None)?;
        }
        self.guests.wait(WaitingRun {
            run: run.clone(),
            depth,
            bytes: 0,
            first_own: None,
            _report: self.runtime.queue.wait_for_memory(run),
        });
        Ok(())
    }

    /// Loads the runs of guests that there is room for now.
    pub(super) fn admit_waiting(&mut self) {
        while self.outage.is_none()
            && !self.commands_only
            && let Some((run, bytes)) = self.guests.next_admitted()
        {
            if let Err(error) = self.load_run(&run) {
                self.on_run_failed(&run, error);
                continue;
            }
            let withheld = |active: &Box<ActiveRun>| active.withheld;
            if !self.runs.get(&run).is_some_and(withheld) {
                continue;
            }
            match bytes {
                // It was not known how large it is.
                0 => self.leave(&run),
                _ => self.release_withheld(&run),
            }
        }
    }

    /// Begins what a run that was loaded without room has to do.
    pub(super) fn release_withheld(&mut self, run: &Name) {
        if let Some(active) = self.runs.get_mut(run)
            && std::mem::take(&mut active.withheld)
        {
            let outstanding = active.hosted.outstanding();
            self.release(run, outstanding);
        }
    }

    /// Whether a busy run does not advance now, because the memory of guests is full. It advances when a step of another
    /// one is stored, or when others have left.
    pub(super) fn postpone_when_full(&mut self, run: &Name) -> bool {
        // Each step asks.
        if !self.guests.is_full(0) {
            return false;
        }
        let Some(active) = self.runs.get(run) else {
            return false;
        };
        let is_cancel = |event: &Event| matches!(event, Event::CancelRequested);
        let alone = self.guests.stepping.is_empty() && active.tasks.is_empty();
        let advances = active.origin() != Origin::Guest
            || !self.guests.is_full(depth(&active.header.labels))
            || alone
            || active.computed.is_some()
            || active.inbox.iter().any(|next| is_cancel(&next.0));
        if !advances {
            self.guests.postponed.push(run.clone());
        }
        !advances
    }

    /// Makes the runs busy again that were postponed.
    pub(super) fn queue_postponed(&mut self) {
        if std::mem::take(&mut self.guests.changed) {
            self.busy.extend(self.guests.postponed.drain(..));
        }
    }
}
