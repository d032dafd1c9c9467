//! Limits the memory of guests' runs (workflows from HTTP or MCP) to a bound. A run's share is the bound divided by the
//! number of guests' runs in memory. While the bound is not exceeded, guests' runs that wait on disk count, too. If the
//! runs in memory together use more than the bound, a run with more than its share leaves memory: after its step is
//! durable, and before the effects of this step start. The run waits on disk until there is room. Then it continues as
//! after a restart.
//!
//! ```text
//!            usual        a run with more than its share       leaves even if its calls
//!   0 ──────────────── bound ──────────────────────── + a quarter ──▶ bytes
//!                        leaves if no call is in flight       have to be repeated
//! ```
//!
//! A child run never waits for memory that its waiting parents use: see [`GuestMemory::next_admitted`].

use super::ScheduleError;
use super::active::ActiveRun;
use super::driver::Driver;
use super::wait_registry::MemoryWait;
use crate::called::depth;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::Duration;
use windlass_machine::{Effect, EffectId};
use windlass_model::model::{Name, Origin};
use windlass_value::time::Timestamp;

/// If other runs wait for room, a run with more than its share has to leave after this time in memory.
const MIN_TIME_IN_MEMORY: Duration = Duration::from_secs(10);

/// A run that has waited on disk this long is loaded even without room, so that it makes at least one step.
const MAX_WAIT: Duration = Duration::from_secs(60);

/// Number of waiting runs of each depth that are checked for room. A later small run may be loaded before an earlier
/// large one.
const LOOK_AHEAD: usize = 16;

/// The runs of guests: those in memory, and those that wait on disk for room.
pub(super) struct GuestMemory {
    bound: u64,
    used: u64,
    in_memory: HashMap<Name, MemoryUse>,
    /// Number of runs in memory by depth. The depth of a run is the number of runs that wait for it: parent,
    /// grandparent, …
    depths: BTreeMap<usize, usize>,
    /// Waiting runs by depth, in the order in which they began to wait.
    waiting: BTreeMap<usize, VecDeque<WaitingRun>>,
    /// Depth of each waiting run.
    waiting_depths: HashMap<Name, usize>,
}

struct MemoryUse {
    bytes: u64,
    depth: usize,
    since: Timestamp,
}

/// A run that waits on disk for room. `bytes` is 0 if its size is not known.
struct WaitingRun {
    run: Name,
    bytes: u64,
    since: Timestamp,
    /// No effect with this id or a higher one has begun. `None`: any effect may have begun.
    first_not_begun: Option<EffectId>,
    /// While this exists, reports show that the run waits for memory.
    _report: MemoryWait,
}

impl GuestMemory {
    pub fn new(bound: u64) -> Self {
        Self {
            bound,
            used: 0,
            in_memory: HashMap::new(),
            depths: BTreeMap::new(),
            waiting: BTreeMap::new(),
            waiting_depths: HashMap::new(),
        }
    }

    /// Returns how many bytes the runs in memory use, and how many runs wait.
    pub fn totals(&self) -> (u64, usize) {
        (self.used, self.waiting_depths.len())
    }

    /// Sets how many bytes a run in memory uses. Adds the run if it is not known yet.
    fn set(&mut self, run: &Name, depth: usize, bytes: u64, now: Timestamp) {
        let depths = &mut self.depths;
        let one = self.in_memory.entry(run.clone()).or_insert_with(|| {
            *depths.entry(depth).or_default() += 1;
            MemoryUse {
                bytes: 0,
                depth,
                since: now,
            }
        });
        let before = std::mem::replace(&mut one.bytes, bytes);
        self.used = self.used.saturating_sub(before).saturating_add(bytes);
    }

    /// Removes a run that has left memory.
    pub fn remove(&mut self, run: &Name) {
        let Some(one) = self.in_memory.remove(run) else {
            return;
        };
        self.used = self.used.saturating_sub(one.bytes);
        if let Some(count) = self.depths.get_mut(&one.depth) {
            *count -= 1;
            if *count == 0 {
                self.depths.remove(&one.depth);
            }
        }
    }

    /// Returns whether a run of this size may be loaded. A run that is larger than half of the bound counts as half of
    /// it.
    pub fn has_room(&self, bytes: u64) -> bool {
        self.fits_with(self.used, bytes)
    }

    /// Returns whether a run of this size may be loaded while other runs use `used` bytes.
    fn fits_with(&self, used: u64, bytes: u64) -> bool {
        used.saturating_add(bytes.min(self.bound / 2)) <= self.bound
    }

    /// Returns whether a run has to leave memory.
    ///
    /// Only a run with more than its share has to leave, in two cases:
    ///
    /// - Other runs wait, and the run was in memory for longer than [`MIN_TIME_IN_MEMORY`].
    /// - The bound is exceeded, and the run could not be loaded again at once.
    fn must_leave(&self, run: &Name, now: Timestamp) -> bool {
        let Some(own) = self.in_memory.get(run) else {
            return false;
        };
        let exceeds_share = |runs: usize| own.bytes.saturating_mul(runs as u64) > self.bound;
        let (runs, waiting) = (self.in_memory.len(), self.waiting_depths.len());
        let had_turn = waiting > 0 && now.since(own.since) > MIN_TIME_IN_MEMORY;
        match self.used > self.bound {
            true => exceeds_share(runs) && (had_turn || !self.would_return(own)),
            false => had_turn && exceeds_share(runs + waiting),
        }
    }

    /// Returns whether a run could be loaded again at once if it left now.
    fn would_return(&self, own: &MemoryUse) -> bool {
        let is_other = |(depth, runs): &(&usize, &usize)| **depth != own.depth || **runs > 1;
        let deepest = self.depths.iter().rev().find(is_other);
        let others = self.used.saturating_sub(own.bytes);
        deepest.is_none_or(|(depth, _)| *depth < own.depth) || self.fits_with(others, own.bytes)
    }

    /// Returns whether so much memory is used that even runs with calls in flight have to leave.
    fn is_exceeded(&self) -> bool {
        self.used > self.bound.saturating_add(self.bound / 4)
    }

    pub fn is_waiting(&self, run: &Name) -> bool {
        self.waiting_depths.contains_key(run)
    }

    fn add_waiting(&mut self, depth: usize, waiting: WaitingRun) {
        self.remove(&waiting.run);
        if self
            .waiting_depths
            .insert(waiting.run.clone(), depth)
            .is_none()
        {
            self.waiting.entry(depth).or_default().push_back(waiting);
        }
    }

    /// Ends the wait of a run. Returns the first of its effects that has not begun, if that is known.
    pub fn stop_waiting(&mut self, run: &Name) -> Option<EffectId> {
        let depth = self.waiting_depths.remove(run)?;
        let waiting = self.waiting.get_mut(&depth)?;
        let at = waiting.iter().position(|waiting| waiting.run == *run)?;
        let first_not_begun = waiting.remove(at)?.first_not_begun;
        if waiting.is_empty() {
            self.waiting.remove(&depth);
        }
        first_not_begun
    }

    /// Returns a waiting run that can be loaded now. Two kinds of runs need no room. One is a run that is deeper than
    /// all runs in memory, because these may wait for it. The other is a run that has waited longer than [`MAX_WAIT`].
    fn next_admitted(&self, now: Timestamp) -> Option<&WaitingRun> {
        let is_overdue = |one: &&WaitingRun| now.since(one.since) > MAX_WAIT;
        let mut fronts = self.waiting.values().filter_map(VecDeque::front);
        if let Some(overdue) = fronts.find(is_overdue) {
            return Some(overdue);
        }
        let deepest = self.depths.keys().next_back().copied();
        self.waiting.iter().find_map(|(depth, waiting)| {
            let is_needed = deepest.is_none_or(|deepest| deepest < *depth);
            let fits = |one: &&WaitingRun| is_needed || self.has_room(one.bytes);
            waiting.iter().take(LOOK_AHEAD).find(fits)
        })
    }
}

impl Driver {
    /// Moves a guest's run from memory to disk if it uses too much memory. Returns whether the run left.
    ///
    /// Call this when the run's last step is durable. If the run leaves, only the aborts and disarms among the
    /// `effects` of this step are carried out; the other effects start after the next load.
    pub(super) fn leave_when_full(&mut self, run: &Name, effects: &mut Vec<Effect>) -> bool {
        if !self.must_leave(run) {
            return false;
        }
        effects.retain(|effect| matches!(effect, Effect::Abort { .. } | Effect::Disarm { .. }));
        let ends = std::mem::take(effects);
        self.carry_out(run, ends);
        self.leave(run);
        true
    }

    fn must_leave(&mut self, run: &Name) -> bool {
        let now = self.clock.now();
        let Some(active) = self.runs.get_mut(run) else {
            return false;
        };
        if active.origin() != Origin::Guest {
            return false;
        }
        let depth = depth(&active.header.labels);
        self.guests.set(run, depth, active.hosted.memory(), now);
        let stays = self.commands_only
            || self.stopping.is_some()
            || !active.is_between_steps()
            || !active.tasks.is_empty() && !self.guests.is_exceeded();
        if stays || !self.guests.must_leave(run, now) {
            return false;
        }
        // The size so far is an upper estimate. Measure the real size before the run has to leave.
        let measured = active.hosted.measure_memory();
        self.guests.set(run, depth, measured, now);
        self.guests.must_leave(run, now)
    }

    fn leave(&mut self, run: &Name) {
        let Some(active) = self.runs.remove(run) else {
            return;
        };
        let mut active = *active;
        self.timers.disarm_all(run, active.hosted.state());
        let first_not_begun = active.tasks.is_empty().then(|| active.hosted.first_own());
        // Aborted calls are repeated later with the same idempotency keys. Child runs that this run waits for continue.
        active.tasks.abort_all();
        let waiting = WaitingRun {
            run: run.clone(),
            first_not_begun,
            bytes: active.hosted.memory(),
            since: self.clock.now(),
            _report: self.runtime.waits.mark_waiting_for_memory(run),
        };
        self.guests
            .add_waiting(depth(&active.header.labels), waiting);
    }

    /// Returns whether a run that was just loaded uses too much memory. If true, the caller withholds the run's effects
    /// until its next step, or until [`Driver::admit_waiting`] starts them.
    pub(super) fn lacks_room(&mut self, active: &mut ActiveRun) -> bool {
        if active.origin() != Origin::Guest || self.commands_only {
            return false;
        }
        let (run, now) = (&active.header.id, self.clock.now());
        let depth = depth(&active.header.labels);
        self.guests.set(run, depth, active.hosted.memory(), now);
        self.guests.must_leave(run, now)
    }

    /// Loads a run that no command needs. If there is no room, a guest's run waits on disk instead.
    ///
    /// # Errors
    /// Returns the errors of [`Driver::load_run`].
    pub(super) fn load_if_room(&mut self, run: &Name) -> Result<(), ScheduleError> {
        if self.runs.contains_key(run) || self.guests.is_waiting(run) {
            return Ok(());
        }
        if !self.guests.has_room(0) {
            let header = self.store.header(run)?;
            let origin = self.program(run, header.program)?.registry.origin();
            if origin == Origin::Guest {
                let waiting = WaitingRun {
                    run: run.clone(),
                    bytes: 0,
                    since: self.clock.now(),
                    first_not_begun: None,
                    _report: self.runtime.waits.mark_waiting_for_memory(run),
                };
                self.guests.add_waiting(depth(&header.labels), waiting);
                return Ok(());
            }
        }
        self.load_run(run)?;
        if self
            .runs
            .get(run)
            .is_some_and(|active| active.has_withheld_effects())
        {
            self.leave(run);
        }
        Ok(())
    }

    /// Loads waiting runs as long as there is room. Also loads, without room, at most one run that has waited longer
    /// than [`MAX_WAIT`].
    pub(super) fn admit_waiting(&mut self) {
        let mut overdue = false;
        while !overdue
            && self.outage.is_none()
            && !self.commands_only
            && self.stopping.is_none()
            && let now = self.clock.now()
            && let Some(waiting) = self.guests.next_admitted(now)
        {
            let (run, bytes) = (waiting.run.clone(), waiting.bytes);
            overdue = now.since(waiting.since) > MAX_WAIT;
            if let Err(error) = self.load_run(&run) {
                self.guests.stop_waiting(&run);
                self.on_run_failed(&run, error);
                continue;
            }
            let active = self.runs.get(&run);
            match active.is_some_and(|active| active.has_withheld_effects()) {
                // The size of the run was not known before the load, and the run does not fit.
                true if bytes == 0 && !overdue => self.leave(&run),
                true => self.release_withheld(&run),
                false => {}
            }
        }
    }

    /// Starts the effects that were withheld because a run was loaded without room.
    pub(super) fn release_withheld(&mut self, run: &Name) {
        if let Some(active) = self.runs.get_mut(run) {
            let effects = active.take_withheld(Vec::new());
            self.carry_out(run, effects);
        }
    }
}
