//! Simulates a workflow on virtual time, with stubs for the effects of its actions. The machine is the same as for
//! every run. No request leaves the process, and nothing is stored on disk.

use super::report::{ErrorReport, masked};
use super::retry::did_you_mean_place;
use super::{EngineError, StartOptions, Workflow, state};
use crate::scheduler::{ScheduleError, check_signal};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use windlass_actions::{Stubs, is_append_bookkeeping, simulate_append};
use windlass_expression::{Object, Value};
use windlass_machine::hosted::RunHost;
use windlass_machine::{
    Bug, Effect, EffectId, Event, HistoryEvent, HistoryKind, RunStatus, Signal, TimerId,
    TimerPurpose, Transition, innermost_iteration,
};
use windlass_model::model::{
    Fault, GET_STATE, Name, Request, SET_STATE, fault_kind, name_of_part, path_part,
};
use windlass_store::{Commit, MemoryStore, Placement, Receipt, RunHeader, Store};
use windlass_value::time::Timestamp;

/// The id of every simulated run.
const RUN: &str = "test";

/// Maximum number of steps of a simulated run. At this number the simulation stops.
const MAX_STEPS: usize = 100_000;

/// Executors that only compute. If there is no stub answer for such an action, the executor really runs.
const COMPUTE: [&str; 7] = [
    "data.merge",
    "data.validate",
    "json.parse",
    "notify",
    "validate.schema",
    "lua",
    "prolog",
];

#[derive(Clone, Debug, Default)]
pub struct SimulationSpec {
    pub input: Value,
    /// The signals that arrive at the beginning, before anything waits for them.
    pub signals: Vec<(Name, Value)>,
    /// The signals that arrive whenever something waits for them.
    pub awaited: Object,
    /// Values between runs before this run, by name. A value that is missing here has its initial value.
    pub state: Object,
    /// The value of `lastRun()`.
    pub last_run: Value,
    /// Reports only this action or iteration: `check`, `poll#14`, `poll#14/check`. The simulation stops when it has
    /// ended.
    pub at: Option<String>,
    /// The number of the attempt of `at` to simulate. Earlier attempts fail as if the connection was lost.
    pub attempt: u32,
    /// Maximum number of steps. 100,000 is the default and the upper limit.
    pub max_steps: Option<usize>,
    pub now: Timestamp,
    /// The scheduled time of the run.
    pub scheduled_time: Option<Timestamp>,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct SimulationReport {
    /// The status of the run at the end, or `Stopped`.
    pub status: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
    /// Why the run did not succeed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorReport>,
    /// Duration of the run, in virtual milliseconds.
    pub took_ms: u64,
    /// The steps of the run, in order.
    pub steps: Vec<SimulatedStep>,
    /// Why the simulation stopped before the run ended. `None` if the run has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped: Option<String>,
    /// The steps that the run would do next, if the simulation stopped.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub next: Vec<SimulatedStep>,
    /// Number of ended iterations, by loop.
    pub iterations: BTreeMap<String, u64>,
    /// The values between runs, as the run last read or wrote them.
    #[serde(skip_serializing_if = "Object::is_empty")]
    pub state: Object,
}

/// A step that the run did, or would do next.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SimulatedStep {
    /// Time in virtual milliseconds since the run began.
    pub at_ms: u64,
    /// The action, such as `poll#3/check`; for a loop or a wait between iterations, `poll#3`.
    pub place: String,
    #[serde(flatten)]
    pub what: SimulatedStepKind,
}

/// The kind of a step.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "does", rename_all = "snake_case")]
pub enum SimulatedStepKind {
    /// The run called an executor.
    Call {
        /// The executor: `http`, `shell`, …
        executor: String,
        /// The action's title in its file, if it has one.
        #[serde(skip_serializing_if = "Option::is_none")]
        title: Option<String>,
        attempt: u32,
        /// The inputs of the call.
        inputs: Value,
        /// The output of the call.
        #[serde(skip_serializing_if = "Option::is_none")]
        gives: Option<Value>,
        /// The error, if the call failed.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
    /// The run waited.
    Wait {
        /// The purpose: `delay`, `retry` or `sleep`.
        why: &'static str,
        /// The duration in milliseconds.
        ms: u64,
    },
    /// The run checked the condition of a loop.
    Check {
        /// The value of the condition.
        condition: bool,
    },
    /// A loop ended or reached a limit.
    Loop {
        /// Why the loop ended.
        reason: String,
    },
}

/// Simulates a run of a workflow.
///
/// # Errors
/// Returns an error if the workflow does not accept the input, or if the simulated run could not continue because of a
/// bug.
pub async fn simulate(
    workflow: &Workflow,
    given: &SimulationSpec,
) -> Result<SimulationReport, EngineError> {
    let input = workflow.accept(given.input.clone())?;
    let labels = given
        .scheduled_time
        .map(|at| StartOptions::default().scheduled(None, at).labels);
    let mut play = Simulation::new(workflow, given);
    let environment =
        state::simulated_start(&play.store, workflow, given, &labels.unwrap_or_default())?;
    play.events.push_back(Event::Started { input, environment });
    let program = workflow.program();
    for (name, payload) in &given.signals {
        let signal = Signal::new(name.clone(), payload.clone());
        check_signal(&program.name, program, play.hosted.state(), &signal)?;
        play.events.push_back(Event::Signalled(signal));
    }
    let max_steps = given.max_steps.unwrap_or(MAX_STEPS).min(MAX_STEPS);
    while let Some(event) = play.next_event() {
        if play.count >= max_steps {
            play.stopped = Some(format!("it has taken {max_steps} steps"));
            break;
        }
        if play.handle_event(event).await? {
            break;
        }
    }
    Ok(play.into_report())
}

struct Simulation<'a> {
    workflow: &'a Workflow,
    given: &'a SimulationSpec,
    stubs: Stubs,
    store: MemoryStore,
    hosted: RunHost,
    now: Timestamp,
    count: usize,
    revision: u64,
    events: VecDeque<Event>,
    timers: BTreeSet<(Timestamp, TimerId)>,
    steps: Vec<SimulatedStep>,
    /// Calls that have no answer yet.
    open: BTreeMap<EffectId, SimulatedStep>,
    iterations: BTreeMap<String, u64>,
    /// Index of the first step that belongs to `at`.
    from: Option<usize>,
    stopped: Option<String>,
    reached: bool,
}

impl<'a> Simulation<'a> {
    fn new(workflow: &'a Workflow, given: &'a SimulationSpec) -> Self {
        let program = Arc::clone(&workflow.loaded.program);
        Self {
            workflow,
            given,
            stubs: workflow.loaded.registry.stubs().restarted(),
            store: MemoryStore::default(),
            hosted: RunHost::new(Name::from(RUN), program),
            now: given.now,
            count: 0,
            revision: 0,
            events: VecDeque::new(),
            timers: BTreeSet::new(),
            steps: Vec::new(),
            open: BTreeMap::new(),
            iterations: BTreeMap::new(),
            from: None,
            stopped: None,
            reached: false,
        }
    }

    fn at_ms(&self) -> u64 {
        let since = self.now.since(self.given.now).as_millis();
        u64::try_from(since).unwrap_or(u64::MAX)
    }

    /// Returns the next event. The virtual clock moves to the next timer only when there is nothing else to do.
    fn next_event(&mut self) -> Option<Event> {
        if let Some(event) = self.events.pop_front() {
            return Some(event);
        }
        if !self.open.is_empty() || self.hosted.status() == RunStatus::Paused {
            return None;
        }
        if let Some(signal) = self.awaited_signal() {
            return Some(Event::Signalled(signal));
        }
        let (due_at, id) = self.timers.pop_first()?;
        self.now = self.now.max(due_at);
        Some(Event::TimerFired { id })
    }

    /// Returns a signal that the run waits for, if the specification (`given`) has one of this name.
    fn awaited_signal(&self) -> Option<Signal> {
        let waits = self.hosted.state().cursors.values();
        let mut names = waits.filter_map(|one| one.wait.signal());
        names.find_map(|name| {
            let mut given = self.given.awaited.iter();
            let (_, payload) = given.find(|(known, _)| known.eq_ignore_ascii_case(name))?;
            Some(Signal::new(Name::from(&**name), payload.clone()))
        })
    }

    /// Handles an event: does one step. Returns whether this was the last step, because the run or the requested action
    /// has ended.
    async fn handle_event(&mut self, event: Event) -> Result<bool, EngineError> {
        let broken = |bug: Bug| ScheduleError::Broken {
            run: Name::from(RUN),
            reason: bug.to_string(),
        };
        let step = self.hosted.handle_event(Vec::new(), event, self.now);
        let step = step.map_err(broken)?;
        self.count += 1;
        if step.is_empty() && step.history.is_empty() {
            return Ok(false);
        }
        let history = step.history.clone();
        let ends = self.ends_target(&step);
        for entry in &history {
            self.add_history_event(entry);
        }
        for row in &step.iterations {
            self.iterations.insert(row.path.clone(), row.iteration + 1);
        }
        let receipt = self.commit_step(&step)?;
        for effect in self.hosted.release(step, &receipt) {
            match effect {
                Effect::Start { id, request } if ends => {
                    let call = self.call(&request, None);
                    self.open.insert(id, call);
                }
                Effect::Start { id, request } => self.answer_request(id, &request).await,
                Effect::Abort { id } => {
                    self.open.remove(&id);
                    self.events.retain(
                        |event| !matches!(event, Event::EffectCompleted { id: other, .. } if *other == id),
                    );
                }
                Effect::Arm { id, due_at } => self.arm(id, due_at),
                Effect::Disarm { id, .. } => self.timers.retain(|(_, other)| *other != id),
                Effect::Continue => self.events.push_back(Event::Continued),
                Effect::Finish(_) => return Ok(true),
            }
        }
        self.reached |= ends;
        Ok(ends)
    }

    /// Stores a step in the store in memory. The receipt of the store is necessary to release the effects of the step.
    fn commit_step(&mut self, step: &Transition) -> Result<Receipt, EngineError> {
        self.revision += 1;
        let program = &self.workflow.loaded.program;
        let header = RunHeader {
            id: Name::from(RUN),
            workflow: program.name.clone(),
            program: program.hash,
            status: self.hosted.status(),
            revision: self.revision,
            snapshot: 0,
            started_at: self.given.now,
            updated_at: self.now,
            placement: Placement::Idle,
            labels: BTreeMap::new(),
        };
        let first = header.revision == 1;
        let commit = Commit {
            header,
            changes: step.changes.clone(),
            loops: Vec::new(),
            iterations: Vec::new(),
            history: Vec::new(),
            snapshot: None,
            program: first.then(|| self.workflow.source.clone()),
        };
        let mut committed = self.store.commit(&[commit])?;
        Ok(committed.remove(0)?.receipt)
    }

    fn call(&self, request: &Request, outcome: Option<&Result<Value, Fault>>) -> SimulatedStep {
        SimulatedStep {
            at_ms: self.at_ms(),
            place: place_of(request),
            what: SimulatedStepKind::Call {
                executor: request.executor.to_string(),
                title: self.title(request).map(str::to_owned),
                attempt: request.attempt,
                inputs: masked(&request.inputs),
                gives: outcome.and_then(|outcome| outcome.as_ref().ok().map(masked)),
                error: outcome.and_then(|outcome| {
                    let fault = outcome.as_ref().err()?;
                    Some(format!("{}: {}", fault.kind, fault.message))
                }),
            },
        }
    }

    /// Returns the title of a call's action, if it has one.
    fn title(&self, request: &Request) -> Option<&'a str> {
        let actions = &self.workflow.program().actions;
        let action = actions
            .iter()
            .find(|action| action.name == request.action)?;
        action.title.as_deref()
    }

    async fn answer_request(&mut self, id: EffectId, request: &Request) {
        let place = place_of(request);
        let lost = request.attempt < self.given.attempt && self.is_target(&place);
        let outcome = if lost {
            let fault = Fault::new(fault_kind::CONNECTION, "the connection was lost");
            Some(Err(fault.transient()))
        } else if let Some(result) = self.stubs.answer(request) {
            Some(result)
        } else if request.appends() {
            Some(simulate_append(request))
        } else if matches!(&*request.executor, SET_STATE | GET_STATE) {
            let origin = self.workflow.source.origin;
            Some(state::execute(&self.store, origin, request, self.now))
        } else if COMPUTE.contains(&&*request.executor) {
            Some(self.workflow.loaded.registry.execute(request).await)
        } else {
            None
        };
        let call = self.call(request, outcome.as_ref());
        let Some(result) = outcome else {
            self.open.insert(id, call);
            return;
        };
        if !is_append_bookkeeping(request) {
            self.add(call);
        }
        self.events.push_back(Event::EffectCompleted { id, result });
    }

    fn arm(&mut self, id: TimerId, due_at: Timestamp) {
        self.timers.insert((due_at, id));
        let Some(timer) = self.hosted.state().timers.get(&id) else {
            return;
        };
        if matches!(timer.purpose, TimerPurpose::Deadline(_)) {
            return;
        }
        let (why, cursor) = (timer.purpose, timer.cursor);
        let (program, run) = (self.hosted.program(), self.hosted.state());
        let around = innermost_iteration(program, run, cursor);
        let mut place = around.map_or_else(String::new, |(path, index)| format!("{path}#{index}"));
        if let TimerPurpose::Sleep | TimerPurpose::SleepSince(_) = why
            && let Some(at) = run.cursors.get(&cursor).map(|cursor| cursor.at)
            && let Some(state) = program.state(at)
        {
            let separator = if place.is_empty() { "" } else { "/" };
            place = format!("{place}{separator}{}", path_part(&state.name));
        }
        let ms = u64::try_from(due_at.since(self.now).as_millis()).unwrap_or(u64::MAX);
        self.add(SimulatedStep {
            at_ms: self.at_ms(),
            place,
            what: SimulatedStepKind::Wait {
                why: why.as_str(),
                ms,
            },
        });
    }

    fn add_history_event(&mut self, event: &HistoryEvent) {
        let (place, what) = match &event.what {
            HistoryKind::LoopIteration {
                path,
                iteration,
                condition_result: Some(condition),
                ..
            } => {
                let condition = *condition;
                (
                    format!("{path}#{iteration}"),
                    SimulatedStepKind::Check { condition },
                )
            }
            HistoryKind::LoopEnd {
                path, exit_reason, ..
            } => {
                let reason = exit_reason.to_string();
                (path.clone(), SimulatedStepKind::Loop { reason })
            }
            _ => return,
        };
        let at_ms = self.at_ms();
        self.add(SimulatedStep { at_ms, place, what });
    }

    fn add(&mut self, step: SimulatedStep) {
        // Do not begin the requested part with a wait: it is reported before the iteration that follows it.
        let waits = matches!(step.what, SimulatedStepKind::Wait { .. });
        if self.from.is_none() && !waits && self.is_target(&step.place) {
            self.from = Some(self.steps.len());
        }
        self.steps.push(step);
    }

    /// Returns whether a place is the requested one (`at`), or is inside of it. If no place was requested, returns true
    /// for every place.
    fn is_target(&self, place: &str) -> bool {
        let Some(at) = &self.given.at else {
            return true;
        };
        let inside = place.strip_prefix(at.as_str());
        let inside = inside.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        let named = !at.contains(['/', '#'])
            && name_of_part(place.rsplit('/').next().unwrap_or_default()) == **at;
        inside || named
    }

    /// Returns whether the requested action or iteration ends with this step.
    fn ends_target(&self, step: &Transition) -> bool {
        if self.given.at.is_none() {
            return false;
        }
        let rows = step.iterations.iter();
        let mut rows = rows.map(|row| format!("{}#{}", row.path, row.iteration));
        let again = |name: &Name| {
            let mut events = step.history.iter();
            events.any(|event| matches!(&event.what, HistoryKind::RetryScheduled { node_name, .. } if node_name == name))
        };
        let ended = step.history.iter().filter_map(|event| match &event.what {
            HistoryKind::ActionEnded {
                node_name,
                path,
                iteration,
                ..
            } if !again(node_name) => Some(match (path, iteration) {
                (Some(path), Some(iteration)) => {
                    format!("{path}#{iteration}/{}", path_part(node_name))
                }
                _ => path_part(node_name).into_owned(),
            }),
            _ => None,
        });
        let exactly = |place: &String| {
            let at = self.given.at.as_deref().unwrap_or_default();
            let last = place.rsplit('/').next().unwrap_or_default();
            place == at || (!at.contains(['/', '#']) && name_of_part(last) == at)
        };
        rows.any(|place| exactly(&place)) || ended.into_iter().any(|place| exactly(&place))
    }

    fn into_report(mut self) -> SimulationReport {
        let at_ms = self.at_ms();
        let state = self.hosted.state();
        let outcome = state.outcome.as_ref();
        let between_runs = state::last_values(&state.variables);
        let paused = state.paused.as_ref();
        let waits = state.cursors.values();
        let mut signals = waits.filter_map(|one| one.wait.signal().map(ToString::to_string));
        let unanswered = self.open.values().next();
        let nowhere = self.given.at.as_deref().filter(|_| self.from.is_none());
        let misspelt = nowhere.and_then(|at| did_you_mean_place(self.hosted.program(), at));
        let why = match (self.stopped.clone().or(misspelt), &self.given.at) {
            (Some(why), _) => Some(why),
            (None, Some(at)) if outcome.is_some() && self.from.is_none() => {
                Some(format!("it never came to {at}"))
            }
            _ if outcome.is_some() || self.reached => None,
            _ => match (unanswered, paused, signals.next()) {
                (Some(call), ..) => Some(format!("nothing answers `{}`", call.place)),
                (None, Some(_), _) => Some(String::from("it is paused")),
                (None, None, Some(name)) => Some(format!("it waits for the signal `{name}`")),
                (None, None, None) => Some(String::from("nothing moves it")),
            },
        };
        let ended = outcome.filter(|_| !self.reached || self.given.at.is_none());
        let from = match &self.given.at {
            Some(_) => self.from.unwrap_or(self.steps.len()),
            None => 0,
        };
        let mut next: Vec<SimulatedStep> = self.open.into_values().collect();
        if self.reached {
            let waits = self.steps.iter().rposition(|step| {
                !matches!(&step.what, SimulatedStepKind::Wait { .. }) || step.at_ms < at_ms
            });
            let waits = waits.map_or(0, |last| last + 1).max(from);
            next.splice(0..0, self.steps.split_off(waits.min(self.steps.len())));
        }
        SimulationReport {
            status: match ended {
                Some(_) => self.hosted.status().as_str().to_owned(),
                None => String::from("Stopped"),
            },
            output: ended.map(|outcome| masked(&outcome.output)),
            error: ended.and_then(|outcome| ErrorReport::of(outcome, Some(self.workflow.bundle()))),
            took_ms: at_ms,
            steps: self.steps.split_off(from.min(self.steps.len())),
            stopped: why,
            next,
            iterations: self.iterations,
            state: between_runs,
        }
    }
}

/// Returns the place of a request: its idempotency key without the run's id, such as `poll#3/check`.
fn place_of(request: &Request) -> String {
    let place = request.key.split_once('/').map(|(_, place)| place);
    place.unwrap_or(&request.key).to_owned()
}
