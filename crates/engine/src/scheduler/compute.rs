//! Computes long steps on a few threads. Meanwhile the driver continues with all other runs. A run waits for its long
//! step as for an effect. Guests (workflows from HTTP or MCP) and the operator take turns, and so do the workflows of
//! each.

use super::{Message, ScheduleError};
use std::any::Any;
use std::collections::{HashSet, VecDeque};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{JoinHandle, available_parallelism};
use tokio::sync::mpsc::UnboundedSender;
use windlass_expression::MAX_WORK;
use windlass_machine::hosted::RunHost;
use windlass_machine::program::Program;
use windlass_machine::{Budget, Change, Event, RunState, Transition};
use windlass_model::model::{Name, Origin};
use windlass_store::Store;
use windlass_value::time::Timestamp;

/// Maximum number of compute threads. With fewer than 8 processors, there is one thread for each two processors.
const MAX_THREADS: usize = 4;

/// Size of a thread's stack in bytes: schemas and templates may nest deep.
const STACK: usize = 8 << 20;

/// An event of a run that a compute thread handles.
pub(super) struct Job {
    pub run: Name,
    pub workflow: Name,
    pub origin: Origin,
    pub program: Arc<Program>,
    /// The state before the event. `None`: the thread rebuilds it from the store and `changes`.
    pub state: Option<Box<RunState>>,
    /// The store, if the run is stored. `None` if nothing of the run is stored yet.
    pub store: Option<Arc<dyn Store>>,
    /// Changes since the last commit.
    pub changes: Vec<Change>,
    pub event: Event,
    pub now: Timestamp,
    /// If this is set, the thread does not compute the step, but cancels the run.
    pub is_aborted: Arc<AtomicBool>,
}

pub(super) struct ComputedStep {
    pub run: Name,
    /// The flag of the job. It also identifies the job.
    pub is_aborted: Arc<AtomicBool>,
    pub outcome: Result<AdvanceResult, ScheduleError>,
}

/// The new state of a run, and the step that led to it.
pub(super) struct AdvanceResult {
    pub state: RunState,
    pub step: Transition,
    pub spent: u64,
    /// Whether the run was cancelled and its step not computed.
    pub cancelled: bool,
}

impl Job {
    fn carry_out(mut self) -> ComputedStep {
        let outcome = catch_unwind(AssertUnwindSafe(|| self.advance()));
        let outcome = outcome.unwrap_or_else(|panic| Err(self.stuck_error(panic_message(&*panic))));
        ComputedStep {
            run: self.run,
            is_aborted: self.is_aborted,
            outcome,
        }
    }

    fn advance(&mut self) -> Result<AdvanceResult, ScheduleError> {
        let state = match self.state.take() {
            Some(state) => *state,
            None => self.load_stored_state()?,
        };
        let budget = Budget::of(MAX_WORK).until(Arc::clone(&self.is_aborted));
        let event = self.event.clone();
        let done = self.handle_event(state, event, &budget);
        if !self.is_aborted.load(Ordering::Relaxed) {
            let (state, step) = done?;
            return Ok(AdvanceResult {
                state,
                step,
                spent: budget.spent(),
                cancelled: false,
            });
        }
        let state = self.load_stored_state()?;
        let (state, step) = self.handle_event(state, Event::CancelRequested, &Budget::default())?;
        Ok(AdvanceResult {
            state,
            step,
            spent: budget.spent(),
            cancelled: true,
        })
    }

    fn handle_event(
        &self,
        state: RunState,
        event: Event,
        budget: &Budget,
    ) -> Result<(RunState, Transition), ScheduleError> {
        let mut hosted = RunHost::restored(Arc::clone(&self.program), state, self.now, 0);
        let step = hosted.handle_event_within(Vec::new(), event, self.now, budget);
        let step = step.map_err(|bug| self.stuck_error(bug.to_string()))?;
        Ok((hosted.into_state(), step))
    }

    /// Rebuilds the state before the event from the stored state and the changes since the last commit.
    fn load_stored_state(&self) -> Result<RunState, ScheduleError> {
        let mut state = match &self.store {
            Some(store) => store.load(&self.run)?.state,
            None => RunState::new(self.run.clone(), self.program.hash),
        };
        for change in &self.changes {
            let applied = state.apply(change);
            applied.map_err(|bug| self.stuck_error(bug.to_string()))?;
        }
        Ok(state)
    }

    fn stuck_error(&self, reason: String) -> ScheduleError {
        ScheduleError::Broken {
            run: self.run.clone(),
            reason,
        }
    }
}

pub(super) fn panic_message(panic: &(dyn Any + Send)) -> String {
    let message = panic.downcast_ref::<String>().map(String::as_str);
    let message = message.or_else(|| panic.downcast_ref::<&str>().copied());
    message.unwrap_or("it does not say why").to_owned()
}

/// The waiting jobs of one workflow, each with its run.
type WorkflowJobs<T> = (Name, VecDeque<(Name, T)>);

/// Waiting jobs, by origin (guest or operator) and then by workflow. The first job of the first workflow of the first
/// origin is next.
struct JobQueue<T>(VecDeque<(Origin, VecDeque<WorkflowJobs<T>>)>);

impl<T> Default for JobQueue<T> {
    fn default() -> Self {
        Self(VecDeque::new())
    }
}

impl<T> JobQueue<T> {
    fn add(&mut self, origin: Origin, workflow: &Name, run: &Name, job: T) {
        let lane = match self.0.iter().position(|(known, _)| *known == origin) {
            Some(at) => at,
            None => {
                self.0.push_back((origin, VecDeque::new()));
                self.0.len() - 1
            }
        };
        let Some((_, workflows)) = self.0.get_mut(lane) else {
            return;
        };
        let job = (run.clone(), job);
        match workflows.iter_mut().find(|(known, _)| known == workflow) {
            Some((_, jobs)) => jobs.push_back(job),
            None => workflows.push_back((workflow.clone(), VecDeque::from([job]))),
        }
    }

    /// Removes the job of a run, wherever the job is in the queue.
    fn take(&mut self, run: &Name) -> Option<T> {
        let mut taken = None;
        for (_, workflows) in &mut self.0 {
            for (_, jobs) in workflows.iter_mut() {
                if let Some(at) = jobs.iter().position(|(known, _)| known == run) {
                    taken = jobs.remove(at);
                }
            }
            // Remove entries without jobs. Otherwise the queue would have empty turns.
            workflows.retain(|(_, jobs)| !jobs.is_empty());
        }
        self.0.retain(|(_, workflows)| !workflows.is_empty());
        taken.map(|(_, job)| job)
    }

    /// Removes the next job and returns it. If `guests` is false, only jobs of the operator's workflows are considered.
    fn next(&mut self, guests: bool) -> Option<T> {
        let may_be_next = |origin: Origin| guests || origin == Origin::Operator;
        let at = self.0.iter().position(|(origin, _)| may_be_next(*origin))?;
        let (origin, mut workflows) = self.0.remove(at)?;
        let (workflow, mut jobs) = workflows.pop_front()?;
        let job = jobs.pop_front();
        if !jobs.is_empty() {
            workflows.push_back((workflow, jobs));
        }
        if !workflows.is_empty() {
            self.0.push_back((origin, workflows));
        }
        job.map(|(_, job)| job)
    }
}

#[derive(Default)]
struct State {
    waiting: JobQueue<Job>,
    /// Runs that are to be cancelled. Their jobs have precedence over all others.
    hurried: Vec<Name>,
    /// Guests' runs with a step that is being computed, or that is computed and not stored yet. Their number is
    /// limited, because each such step may use much memory.
    open: HashSet<Name>,
    /// Number of threads that wait for a job.
    idle: usize,
    ended: bool,
}

impl State {
    fn next(&mut self, max_open: usize) -> Option<Job> {
        let hurried =
            std::iter::from_fn(|| self.hurried.pop()).find_map(|run| self.waiting.take(&run));
        let job = hurried.or_else(|| self.waiting.next(self.open.len() < max_open))?;
        if job.origin == Origin::Guest {
            self.open.insert(job.run.clone());
        }
        Some(job)
    }
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    /// Maximum number of runs in `State::open`. While it is reached, guests' jobs wait.
    max_open: usize,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a job. Returns `None` if the pool was dropped.
    fn next(&self) -> Option<Job> {
        let mut state = self.state();
        loop {
            if state.ended {
                return None;
            }
            if let Some(job) = state.next(self.max_open) {
                return Some(job);
            }
            state.idle += 1;
            let woken = self.changed.wait(state);
            state = woken.unwrap_or_else(PoisonError::into_inner);
            state.idle -= 1;
        }
    }
}

/// The threads that compute. They start when there are jobs, and end when the pool is dropped.
pub(super) struct Pool {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    most: usize,
    messages: UnboundedSender<Message>,
}

impl Pool {
    pub fn new(messages: UnboundedSender<Message>) -> Self {
        let processors = available_parallelism().map_or(1, usize::from);
        let most = (processors / 2).clamp(1, MAX_THREADS);
        let shared = Shared {
            state: Mutex::default(),
            changed: Condvar::new(),
            max_open: most + 1,
        };
        Self {
            shared: Arc::new(shared),
            threads: Vec::new(),
            most,
            messages,
        }
    }

    /// Adds a job to the queue. Its result is sent as a message.
    pub fn add(&mut self, job: Job) {
        let mut state = self.shared.state();
        let more = state.idle == 0 && self.threads.len() < self.most;
        let (workflow, run) = (job.workflow.clone(), job.run.clone());
        state.waiting.add(job.origin, &workflow, &run, job);
        drop(state);
        self.shared.changed.notify_one();
        if !more {
            return;
        }
        match self.thread() {
            Ok(thread) => self.threads.push(thread),
            // If any compute thread is running, it does the job later. If not, this thread does the job now.
            Err(error) => {
                tracing::warn!(%error, "no further compute thread");
                let alone = self.threads.is_empty();
                let job = if alone {
                    self.shared.state().next(usize::MAX)
                } else {
                    None
                };
                if let Some(job) = job {
                    send(&self.messages, job);
                }
            }
        }
    }

    /// Records that the step of a run is stored or discarded.
    pub fn close(&self, run: &Name) {
        if self.shared.state().open.remove(run) {
            self.shared.changed.notify_one();
        }
    }

    /// Makes the job of a run that is to be cancelled the next one.
    pub fn prioritize(&self, run: &Name) {
        self.shared.state().hurried.push(run.clone());
        self.shared.changed.notify_one();
    }

    fn thread(&self) -> io::Result<JoinHandle<()>> {
        let (shared, messages) = (Arc::clone(&self.shared), self.messages.clone());
        std::thread::Builder::new()
            .name(String::from("windlass-compute"))
            .stack_size(STACK)
            .spawn(move || {
                while let Some(job) = shared.next() {
                    send(&messages, job);
                }
            })
    }
}

fn send(messages: &UnboundedSender<Message>, job: Job) {
    let done = job.carry_out();
    // Sending fails if the engine is stopping. Then the next process handles the event again.
    let _ = messages.send(Message::Computed(Box::new(done)));
}

impl Drop for Pool {
    fn drop(&mut self) {
        let mut state = self.shared.state();
        state.ended = true;
        state.waiting = JobQueue::default();
        drop(state);
        self.shared.changed.notify_all();
        for thread in self.threads.drain(..) {
            // A panic is not reported here: panics of jobs were caught and became outcomes.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(jobs: &[(Origin, &str, &str)], hurried: Option<&str>) -> Vec<String> {
        let mut waiting = JobQueue::default();
        for (origin, workflow, run) in jobs {
            let (workflow, run) = (Name::from(*workflow), Name::from(*run));
            waiting.add(*origin, &workflow, &run, run.to_string());
        }
        let first = hurried.and_then(|run| waiting.take(&Name::from(run)));
        let rest = std::iter::from_fn(|| waiting.next(true));
        first.into_iter().chain(rest).collect()
    }

    #[test]
    fn origins_take_turns_and_so_do_their_workflows() {
        use Origin::{Guest, Operator};
        let jobs = [
            (Guest, "a", "a1"),
            (Guest, "a", "a2"),
            (Guest, "a", "a3"),
            (Guest, "b", "b1"),
            (Operator, "o", "o1"),
            (Operator, "o", "o2"),
        ];
        let all = order(&jobs, None);
        assert_eq!(all, ["a1", "o1", "b1", "o2", "a2", "a3"]);
        let hurried = order(&jobs, Some("b1"));
        assert_eq!(hurried, ["b1", "a1", "o1", "a2", "o2", "a3"]);
    }
}
