//! Plays a run on virtual time, without tasks, a clock or a store. A simulated world answers effects, and timers fire
//! in the order of their due times. After every transition the laws of docs/architecture.md are asserted. A play can
//! crash at any transition. Then it continues as a driver would: from the journal and from what is outstanding.

use super::laws;
use super::trace::{self, Trace};
use std::cell::Cell;
use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;
use std::time::Duration;
use windlass_expression::Value;
use windlass_machine::compile::compile;
use windlass_machine::program::{Caps, Program, ProgramHash};
use windlass_machine::{
    Change, Effect, EffectId, Event, HistoryEvent, HistoryKind, IterationRow, LoopState, Outcome,
    RunState, RunStatus, Signal, TimerId, Transition, advance,
};
use windlass_model::hir::Workflow;
use windlass_model::model::{Fault, Name, Request};
use windlass_source::source::Bundle;
use windlass_store::{MemoryStore, Receipt, Store};
use windlass_value::time::Timestamp;

/// The start time of every play.
pub const START: Timestamp = Timestamp(1_700_000_000_000);

/// A request, as the simulated world receives it.
pub struct Call<'a> {
    pub name: &'a str,
    /// How many requests of this action came before, from 0. A repetition after a crash has the same number.
    pub n: usize,
    pub inputs: &'a Value,
}

/// The world's answer to a request.
#[derive(Clone, Debug)]
pub enum Answer {
    /// This answer, after this time.
    Is(Duration, Result<Value, Fault>),
    /// No answer.
    Never,
}

pub fn json(text: &str) -> Value {
    Value::from_json(text).unwrap()
}

pub fn ok(text: &str) -> Answer {
    Answer::Is(Duration::ZERO, Ok(json(text)))
}

pub fn fails(kind: &str) -> Answer {
    failure(Fault::new(kind, format!("it was {kind}")).transient())
}

pub fn failure(fault: Fault) -> Answer {
    Answer::Is(Duration::ZERO, Err(fault))
}

impl Answer {
    pub fn after(self, seconds: u64) -> Self {
        match self {
            Self::Is(_, result) => Self::Is(Duration::from_secs(seconds), result),
            Self::Never => Self::Never,
        }
    }
}

/// What comes from outside.
#[derive(Clone, Debug)]
pub enum Outside {
    Pause,
    Resume,
    Cancel,
    Signal(&'static str, Value),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum When {
    At(Timestamp),
    /// Sent before this transition.
    Step(usize),
}

/// Where a play is crashed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crash {
    /// The step was never stored.
    Before,
    /// The step was stored, but none of its effects had started.
    After,
}

/// Decides at each transition whether to crash, by its number and by how often it was tried.
pub type Crashes<'a> = &'a mut dyn FnMut(usize, usize) -> Option<Crash>;

type World = dyn Fn(&Call<'_>) -> Answer;

/// A workflow and its world.
pub struct Case {
    pub program: Program,
    input: Value,
    environment: Value,
    world: Box<World>,
    outside: Vec<(When, Outside)>,
    /// Plays without the assertions after every transition, which take the most time.
    pub quick: bool,
    crash_in_pauses: Cell<bool>,
}

/// One whole transition, for tests that check it.
pub struct Step {
    pub event: Event,
    pub changes: Vec<Change>,
    pub effects: Vec<Effect>,
}

/// A request that was started.
#[derive(Clone, Debug, PartialEq)]
pub struct Started {
    /// Milliseconds since the start of the play.
    pub at_ms: i64,
    pub name: String,
    pub request: Request,
}

/// A play that has come to its end: nothing more happens without an event from outside.
pub struct Played {
    /// The names of the program's actions, by id.
    pub names: Vec<Name>,
    pub state: RunState,
    pub now: Timestamp,
    pub steps: Vec<Step>,
    pub started: Vec<Started>,
    /// The number of starts of each effect: more than one after a crash.
    pub starts: BTreeMap<EffectId, usize>,
    pub history: Vec<HistoryEvent>,
    pub iterations: Vec<IterationRow>,
    /// The last row of every loop, by path.
    pub loops: BTreeMap<String, LoopState>,
    pub crashes: usize,
}

impl Case {
    pub fn hir(workflow: &Workflow) -> Self {
        let caps = Caps {
            count: u64::MAX,
            timeout: Duration::from_secs(u64::from(u32::MAX)),
        };
        let program = compile(workflow, ProgramHash::default(), caps)
            .unwrap_or_else(|mistakes| panic!("{mistakes:?}"));
        Self {
            program,
            input: Value::Null,
            environment: Value::Null,
            world: Box::new(|_| ok("null")),
            outside: Vec::new(),
            quick: false,
            crash_in_pauses: Cell::new(false),
        }
    }

    pub fn yaml(text: &str) -> Self {
        Self::hir(&read(text))
    }

    pub fn input(mut self, text: &str) -> Self {
        self.input = json(text);
        self
    }

    pub fn environment(mut self, text: &str) -> Self {
        self.environment = json(text);
        self
    }

    pub fn world(mut self, world: impl Fn(&Call<'_>) -> Answer + 'static) -> Self {
        self.world = Box::new(world);
        self
    }

    /// Adds something from outside, this number of seconds after the start.
    pub fn at(mut self, seconds: u64, what: Outside) -> Self {
        let at = START.plus(Duration::from_secs(seconds));
        self.outside.push((When::At(at), what));
        self
    }

    /// Plays it, and again with crashes: with one at every transition in a single play, and with one at some
    /// transitions in separate plays. Every play with crashes must come to the same end. Returns the play without
    /// crashes.
    pub fn play(&self) -> Played {
        let calm = self.play_with(&mut |_, _| None);
        if self.quick {
            return calm;
        }
        laws::ended_well(&calm);
        let mut always = |_: usize, tries: usize| match tries {
            0 => Some(Crash::Before),
            1 => Some(Crash::After),
            _ => None,
        };
        laws::same(&calm, &self.play_with(&mut always));
        if calm
            .history
            .iter()
            .any(|event| matches!(event.what, HistoryKind::RunPaused { .. }))
        {
            self.crash_in_pauses.set(true);
            laws::same_end(&calm, &self.play_with(&mut always));
            self.crash_in_pauses.set(false);
        }
        let every = calm.steps.len().div_ceil(5).max(1);
        for at in (0..calm.steps.len()).step_by(every) {
            for crash in [Crash::Before, Crash::After] {
                let mut once =
                    |step: usize, tries: usize| (step == at && tries == 0).then_some(crash);
                laws::same(&calm, &self.play_with(&mut once));
            }
        }
        calm
    }

    /// For each transition, pauses before it and resumes an hour later. The end must be the same, an hour later. Only
    /// for worlds that answer immediately, because what is in flight continues during a pause.
    pub fn play_paused_everywhere(&mut self) {
        let calm = self.play();
        let outside = self.outside.clone();
        for step in 1..calm.steps.len() {
            self.outside = outside.clone();
            self.outside.push((When::Step(step), Outside::Pause));
            let paused = self.play_with(&mut |_, _| None);
            assert_eq!(paused.state.status(), RunStatus::Paused, "paused at {step}");
            let (since, _) = paused.state.paused.clone().unwrap();
            let back = since.plus(HOUR);
            self.outside.push((When::At(back), Outside::Resume));
            let resumed = self.play();
            laws::same_but_later(&calm, &resumed, HOUR);
        }
        self.outside = outside;
    }

    /// For each transition, cancels before it. Nothing may remain then.
    pub fn play_cancelled_everywhere(&mut self) {
        let calm = self.play();
        let outside = self.outside.clone();
        for step in 1..calm.steps.len() {
            self.outside = outside.clone();
            self.outside.push((When::Step(step), Outside::Cancel));
            let cancelled = self.play();
            assert_eq!(
                cancelled.state.status(),
                RunStatus::Cancelled,
                "cancelled at {step}"
            );
            for row in cancelled.loops.values() {
                assert!(
                    row.ended.is_some(),
                    "{} still runs in a cancelled run",
                    row.path
                );
            }
        }
        self.outside = outside;
    }

    pub fn play_with(&self, crashes: Crashes<'_>) -> Played {
        let hash = self.program.hash;
        let state = RunState::new(Name::from("run"), hash);
        let player = Player {
            case: self,
            books: laws::Books::new(state.clone()),
            trace: Trace::default(),
            state: state.clone(),
            now: START,
            step: 0,
            begun: false,
            continues: false,
            effects: BTreeMap::new(),
            timers: BTreeMap::new(),
            plans: HashMap::new(),
            calls: HashMap::new(),
            outside: self.outside.clone(),
            played: Played {
                names: self
                    .program
                    .actions
                    .iter()
                    .map(|action| action.name.clone())
                    .collect(),
                state,
                now: START,
                steps: Vec::new(),
                started: Vec::new(),
                starts: BTreeMap::new(),
                history: Vec::new(),
                iterations: Vec::new(),
                loops: BTreeMap::new(),
                crashes: 0,
            },
        };
        player.play(crashes)
    }
}

/// A store's receipt. Its content makes no difference to a play.
pub fn receipt() -> Receipt {
    static RECEIPT: LazyLock<Receipt> = LazyLock::new(|| {
        let commit = crate::store::contract::commit("run", 0);
        let mut stored = MemoryStore::default().commit(&[commit]).unwrap();
        stored.remove(0).unwrap().receipt
    });
    *RECEIPT
}

const HOUR: Duration = Duration::from_secs(3600);

pub fn read(text: &str) -> Workflow {
    let bundle = Bundle::single("test.yaml", text);
    let caps = windlass_formats::Caps::unlimited();
    let (workflow, diagnostics) = windlass_formats::read(&bundle, None, &caps);
    workflow.unwrap_or_else(|| panic!("{}", diagnostics.render(&bundle, false)))
}

/// What happens next, and its cause.
#[derive(Clone, Debug)]
enum Source {
    Begin,
    Outside(usize),
    Continues,
    Effect(EffectId),
    Timer(TimerId),
}

struct Player<'a> {
    case: &'a Case,
    state: RunState,
    books: laws::Books,
    trace: Trace,
    now: Timestamp,
    /// The number of the next transition.
    step: usize,
    begun: bool,
    /// Whether a `Continue` effect is pending.
    continues: bool,
    /// What a driver holds: effects with the times of their answers, and timers with their due times.
    effects: BTreeMap<EffectId, Option<Timestamp>>,
    timers: BTreeMap<TimerId, Timestamp>,
    /// The world's final answer to an effect.
    plans: HashMap<EffectId, Plan>,
    calls: HashMap<String, usize>,
    outside: Vec<(When, Outside)>,
    played: Played,
}

struct Plan {
    request: Request,
    due: Option<Timestamp>,
    result: Result<Value, Fault>,
}

impl Player<'_> {
    fn play(mut self, crashes: Crashes<'_>) -> Played {
        let mut tries = 0;
        while let Some((due, source)) = self.next() {
            self.now = self.now.max(due);
            let event = self.event(&source);
            let program = &self.case.program;
            let transition = advance(program, &mut self.state, self.now, event.clone()).unwrap();
            if transition.is_empty() {
                self.consume(&source);
                continue;
            }
            let crash = crashes(self.step, tries).filter(|crash| self.may_crash(*crash));
            tries += 1;
            if crash == Some(Crash::Before) {
                self.restart();
                continue;
            }
            self.consume(&source);
            if !self.case.quick {
                laws::means_nothing_again(program, &self.state, self.now, &event);
            }
            let effects = self.commit(event, transition);
            match crash {
                Some(_) => self.restart(),
                None => effects
                    .into_iter()
                    .for_each(|effect| self.carry_out(effect)),
            }
            if !self.case.quick {
                laws::driver_holds_what_is_outstanding(
                    &self.state,
                    &self.effects,
                    &self.timers,
                    self.continues,
                );
            }
            self.step += 1;
            tries = 0;
            assert!(self.step < 50_000 || self.case.quick, "it does not end");
        }
        self.played.state = self.state;
        self.played.now = self.now;
        self.played
    }

    /// A crash during a pause is excluded: what was in flight starts again only at the resume, and is late then.
    fn may_crash(&self, crash: Crash) -> bool {
        let state = match crash {
            Crash::Before => &self.books.folded,
            Crash::After => &self.state,
        };
        state.paused.is_none() || self.case.crash_in_pauses.get()
    }

    /// What happens next, and when.
    fn next(&self) -> Option<(Timestamp, Source)> {
        if self.state.outcome.is_some() {
            return None;
        }
        if !self.begun {
            return Some((self.now, Source::Begin));
        }
        let outside = self.outside.iter().enumerate();
        let outside = outside.map(|(place, (when, _))| (when, place));
        for (when, place) in outside.clone() {
            if *when == When::Step(self.step) {
                return Some((self.now, Source::Outside(place)));
            }
        }
        if self.continues {
            return Some((self.now, Source::Continues));
        }
        let outside = outside.filter_map(|(when, place)| match when {
            When::At(at) => Some((*at, 0, Source::Outside(place))),
            When::Step(_) => None,
        });
        let effects = self.effects.iter();
        let effects = effects.filter_map(|(id, due)| Some(((*due)?, 1, Source::Effect(*id))));
        let timers = self.timers.iter();
        let timers = timers.map(|(id, due)| (*due, 2, Source::Timer(*id)));
        let all = outside.chain(effects).chain(timers);
        let first = all.min_by_key(|(due, kind, _)| (*due, *kind))?;
        Some((first.0, first.2))
    }

    fn event(&self, source: &Source) -> Event {
        match source {
            Source::Begin => Event::Started {
                input: self.case.input.clone(),
                environment: self.case.environment.clone(),
            },
            Source::Continues => Event::Continued,
            Source::Effect(id) => Event::EffectCompleted {
                id: *id,
                result: self.plans[id].result.clone(),
            },
            Source::Timer(id) => Event::TimerFired { id: *id },
            Source::Outside(place) => match &self.outside[*place].1 {
                Outside::Pause => Event::PauseRequested,
                Outside::Resume => Event::Resumed,
                Outside::Cancel => Event::CancelRequested,
                Outside::Signal(name, payload) => {
                    Event::Signalled(Signal::new(Name::from(*name), payload.clone()))
                }
            },
        }
    }

    fn consume(&mut self, source: &Source) {
        match source {
            Source::Begin => self.begun = true,
            Source::Continues => self.continues = false,
            Source::Effect(id) => {
                self.effects.remove(id);
            }
            Source::Timer(id) => {
                self.timers.remove(id);
            }
            Source::Outside(place) => {
                self.outside.remove(*place);
            }
        }
    }

    /// Does what a store does; returns the effects.
    fn commit(&mut self, event: Event, transition: Transition) -> Vec<Effect> {
        if trace::wanted() {
            let step = transition.clone();
            let stored = (step.changes.clone(), step.history.clone());
            let rows = (step.iterations.clone(), step.loops.clone());
            let released = format!("{:?}", step.release(&receipt()));
            self.trace.step((stored, rows, released));
        }
        let played = &mut self.played;
        for row in &transition.loops {
            played.loops.insert(row.path.clone(), row.clone());
        }
        if self.case.quick {
            return transition.release(&receipt());
        }
        self.books.keep(&transition, &self.state);
        played.history.extend(transition.history.iter().cloned());
        played
            .iterations
            .extend(transition.iterations.iter().cloned());
        let changes = transition.changes.clone();
        let effects = transition.release(&receipt());
        played.steps.push(Step {
            event,
            changes,
            effects: effects.clone(),
        });
        effects
    }

    /// A crash, after which a driver starts from what is stored.
    fn restart(&mut self) {
        self.played.crashes += 1;
        self.state = self.books.folded.clone();
        self.effects.clear();
        self.timers.clear();
        self.continues = false;
        let outstanding: Vec<Effect> = self.state.outstanding().collect();
        outstanding
            .into_iter()
            .for_each(|effect| self.carry_out(effect));
    }

    fn carry_out(&mut self, effect: Effect) {
        match effect {
            Effect::Start { id, request } => self.start(id, request),
            Effect::Abort { id } => {
                self.effects.remove(&id);
            }
            Effect::Arm { id, due_at } => {
                self.timers.insert(id, due_at);
            }
            Effect::Disarm { id, .. } => {
                self.timers.remove(&id);
            }
            Effect::Continue => self.continues = true,
            Effect::Finish(_) => {
                self.continues = false;
                assert!(
                    self.effects.is_empty(),
                    "effects are left: {:?}",
                    self.effects
                );
                assert!(self.timers.is_empty(), "timers are left: {:?}", self.timers);
            }
        }
    }

    fn start(&mut self, id: EffectId, request: Request) {
        if self.effects.contains_key(&id) {
            return;
        }
        if !self.plans.contains_key(&id) {
            let calls = self.calls.entry(request.action.to_string()).or_default();
            let n = *calls;
            *calls += 1;
            let answer = (self.case.world)(&Call {
                name: &request.action,
                n,
                inputs: &request.inputs,
            });
            let (due, result) = match answer {
                Answer::Is(after, result) => (Some(self.now.plus(after)), result),
                Answer::Never => (None, Ok(Value::Null)),
            };
            let plan = Plan {
                request: request.clone(),
                due,
                result,
            };
            self.plans.insert(id, plan);
            if !self.case.quick {
                self.played.started.push(Started {
                    at_ms: self.now.0 - START.0,
                    name: request.action.to_string(),
                    request: request.clone(),
                });
            }
        }
        let plan = &self.plans[&id];
        assert_eq!(plan.request, request, "a repetition is the same request");
        self.effects.insert(id, plan.due);
        if self.case.quick {
            // A hundred thousand plans would use most of the memory that the test measures.
            let result = plan.result.clone();
            self.plans.retain(|other, _| *other == id);
            self.plans.get_mut(&id).unwrap().result = result;
        } else {
            *self.played.starts.entry(id).or_default() += 1;
        }
    }
}

impl Played {
    pub fn status(&self) -> RunStatus {
        self.state.status()
    }

    pub fn outcome(&self) -> &Outcome {
        let outcome = self.state.outcome.as_ref();
        outcome.unwrap_or_else(|| panic!("it has not ended: {:#?}", self.state))
    }

    /// The output of a run that succeeded, as JSON.
    pub fn output(&self) -> String {
        let outcome = self.outcome();
        assert_eq!(outcome.error, None);
        outcome.output.to_json()
    }

    /// Why it failed: kind, message, action, iteration, and line.
    pub fn error(&self) -> String {
        let error = self.outcome().error.as_ref();
        let error = error.unwrap_or_else(|| panic!("it did not fail: {:?}", self.outcome()));
        let mut text = format!("{}: {}", error.fault.kind, error.fault.message);
        if let Some(action) = &error.action {
            text += &format!("; action {action}");
        }
        if let Some((path, iteration)) = &error.iteration {
            text += &format!("; iteration {iteration} of {path}");
        }
        if let Some((_, line)) = error.place {
            text += &format!("; line {line}");
        }
        text
    }

    /// How often this action was requested, without repetitions after a crash.
    pub fn calls(&self, name: &str) -> usize {
        self.started.iter().filter(|one| one.name == name).count()
    }

    /// Every request: its time in milliseconds since the start, and its content.
    pub fn requests(&self) -> Vec<String> {
        let one = |one: &Started| format!("{} {} {}", one.at_ms, one.name, one.request.attempt);
        self.started.iter().map(one).collect()
    }

    /// Every idempotency key, in order.
    pub fn keys(&self) -> Vec<&str> {
        self.started.iter().map(|one| &*one.request.key).collect()
    }

    /// Milliseconds from the start to the end.
    pub fn took_ms(&self) -> i64 {
        self.outcome().at.0 - START.0
    }

    /// The rows of ended iterations: path, iteration, status, condition and result.
    pub fn rows(&self) -> Vec<String> {
        let row = |row: &IterationRow| {
            let condition = row
                .condition
                .map_or("-", |value| if value { "true" } else { "false" });
            let (path, result) = (&row.path, row.result.to_json());
            format!(
                "{path}#{} {} {condition} {result}",
                row.iteration,
                row.status.as_str()
            )
        };
        self.iterations.iter().map(row).collect()
    }

    /// The history, one line per event, without times.
    pub fn story(&self) -> Vec<String> {
        let line = |event: &HistoryEvent| {
            let json = serde_json::to_value(event).unwrap();
            let map = json.as_object().unwrap();
            let rest = map
                .iter()
                .filter(|(key, _)| *key != "event" && *key != "at");
            let rest: Vec<String> = rest.map(|(key, value)| format!("{key}={value}")).collect();
            format!("{} {}", map["event"].as_str().unwrap(), rest.join(" "))
        };
        self.history.iter().map(line).collect()
    }
}
