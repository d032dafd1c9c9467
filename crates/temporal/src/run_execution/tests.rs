//! A simulated Temporal server. It accepts the orders of a run and answers in any order. After each task it replays the
//! whole execution from its beginning, as a worker does that does not have the run in memory.

use super::super::client::CARRY_OVER_AT;
use super::*;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use windlass_engine::scheduler::Loader;
use windlass_engine::{Bundle, Engine, SourceFile};
use windlass_machine::RunState;
use windlass_machine::program::ProgramHash;
use windlass_model::model::{Dialect, Origin, Status};
use windlass_store::ProgramSource;

/// A workflow with parallel branches, loops, delays, a retry and a signal.
const WORKFLOW: &str = r#"
name: fake
variables: { n: 0, seen: [] }
actions:
  side:
    type: foreach
    foreach: [1, 2, 3]
    concurrency: 3
    actions:
      ask: { type: shell, inputs: { run: ask }, retry: { count: 30, interval: PT1S } }
      keep: { type: appendToArrayVariable, inputs: { name: seen, value: "@outputs('ask')" } }
  poll:
    type: until
    runAfter: { side: [Succeeded] }
    condition: "@equals(variables('n'), 12)"
    limit: { count: 100, timeout: PT10H }
    delay: PT1S
    actions:
      look: { type: shell, inputs: { run: look }, retry: { count: 30, interval: PT1S } }
      next: { type: incrementVariable, name: n }
  wait: { type: waitForSignal, runAfter: { poll: [Succeeded] }, signal: go }
"#;

/// Returns a workflow with a loop of this number of effects.
fn effects(iterations: u32) -> String {
    format!(
        r#"
name: fake
variables: {{ n: 0 }}
actions:
  poll:
    type: until
    condition: "@equals(variables('n'), {iterations})"
    limit: {{ count: 10000000, timeout: P10000D }}
    actions:
      look: {{ type: shell, inputs: {{ run: look }}, retry: {{ count: 30, interval: PT1S }} }}
      next: {{ type: incrementVariable, name: n }}
"#
    )
}

/// Returns a workflow with a loop of this number of iterations, which need no external input.
fn pure(iterations: u32) -> String {
    effects(iterations).replace(
        "type: shell, inputs: { run: look }",
        "type: compose, inputs: 1",
    )
}

struct Fake {
    random: StdRng,
    /// Whether the execution is replayed after each task. If false, it is replayed only at its end.
    replays_each: bool,
    loader: Arc<dyn Loader>,
    run_start: RunStart,
    run: RunExecution,
    /// The time, the history length and the inputs of each task of this execution.
    tasks: Vec<(Timestamp, u32, Vec<Input>)>,
    now: i64,
    events: u32,
    running: Vec<EffectId>,
    timers: BTreeMap<u32, Timestamp>,
    /// The effect that was started last.
    last: EffectId,
    executions: u32,
    /// The maximum input of an execution, in bytes, and the maximum number of events of an execution.
    largest: usize,
    longest: u32,
    answered: u32,
}

fn source(text: &str) -> ProgramSource {
    let file = SourceFile {
        path: String::from("fake.yaml"),
        text: text.to_owned(),
    };
    ProgramSource {
        bundle: Bundle { files: vec![file] },
        dialect: Dialect::Loom,
        max_count: 10_000_000,
        max_timeout_ms: 1_000_000_000_000,
        origin: Origin::Operator,
        folder: None,
    }
}

fn new_execution(loader: &Arc<dyn Loader>, run_start: &RunStart) -> RunExecution {
    let loaded = loader.load(run_start.program, &run_start.source).unwrap();
    let id = Name::from("fake");
    RunExecution::new(&id, Wire::default(), loaded.program, run_start.clone())
}

impl Fake {
    fn new(seed: u64, carry_over_at: u32) -> Self {
        Self::of(WORKFLOW, seed, carry_over_at)
    }

    fn of(workflow: &str, seed: u64, carry_over_at: u32) -> Self {
        let run_start = RunStart {
            source: source(workflow),
            program: ProgramHash([7; 32]),
            labels: BTreeMap::new(),
            carry_over_at,
            searchable: true,
            from: StartState::Start {
                input: Value::Null,
                environment: Value::Null,
            },
            saved: BTreeMap::new(),
        };
        let loader = Engine::builder().loader();
        Self {
            random: StdRng::seed_from_u64(seed),
            replays_each: true,
            run: new_execution(&loader, &run_start),
            loader,
            run_start,
            tasks: Vec::new(),
            now: 1_000_000,
            events: 0,
            running: Vec::new(),
            timers: BTreeMap::new(),
            last: EffectId(0),
            executions: 1,
            largest: 0,
            longest: 0,
            answered: 0,
        }
    }

    /// Makes the inputs since the last task: some answers in any order, the next timer, and sometimes a pause.
    fn inputs(&mut self) -> Vec<Input> {
        let mut inputs = Vec::new();
        while !self.running.is_empty() && (inputs.is_empty() || self.random.random_bool(0.5)) {
            let at = self.random.random_range(0..self.running.len());
            let id = self.running.remove(at);
            let fault = super::super::worker::lost("a test");
            let result = match self.random.random_bool(0.1) {
                true => Err(fault),
                false => Ok(Value::from(i64::try_from(id.0).unwrap_or_default())),
            };
            inputs.push(Input::Done(id, result));
        }
        let first = self
            .timers
            .iter()
            .min_by_key(|(number, due)| (**due, **number));
        let first = first.map(|(number, due)| (*number, *due));
        // Do not fire the loop's deadline, which is hours away.
        let first = first.filter(|(_, due)| due.0 < self.now + 600_000);
        if let Some((number, due)) = first
            && (inputs.is_empty() || self.random.random_bool(0.3))
        {
            self.now = self.now.max(due.0);
            self.timers.remove(&number);
            inputs.push(Input::Fired(number));
        }
        self.answered += 1;
        let command = match self.answered % 7 {
            3 => Some(Command::Pause),
            4 => Some(Command::Resume),
            _ if inputs.is_empty() && self.random.random_bool(0.5) => Some(Command::Resume),
            _ if inputs.is_empty() => Some(Command::Signal(Signal::new("go".into(), Value::Null))),
            _ => None,
        };
        inputs.extend(command.map(|one| Input::Update(String::from("u"), one, true)));
        inputs
    }

    /// Does one workflow task. Returns the outcome if the run has ended.
    fn task(&mut self, inputs: Vec<Input>) -> Option<Outcome> {
        self.now += 7;
        self.events += 6 + u32::try_from(inputs.len()).unwrap();
        self.tasks.push((Timestamp(self.now), self.events, inputs));
        let (now, length, inputs) = self.tasks.last().cloned().unwrap();
        let orders = handle_task(&mut self.run, now, length, inputs);
        let leaves = |order: &Order| matches!(order, Order::CarryOver(_) | Order::Finish(_));
        if self.replays_each || orders.iter().any(leaves) {
            self.replay(&orders);
        }
        let mut outcome = None;
        for order in orders {
            match order {
                Order::Start(YIELD, _) => self.running.push(YIELD),
                Order::Start(id, _) => {
                    assert!(id > self.last, "{id:?} is started again");
                    self.last = id;
                    self.running.push(id);
                }
                Order::Abort(id) => self.running.retain(|one| *one != id),
                Order::Arm(number, after) => {
                    let due = Timestamp(self.now).plus(after);
                    assert!(self.timers.insert(number, due).is_none());
                }
                Order::Disarm(number) => assert!(self.timers.remove(&number).is_some()),
                Order::Answer(..) | Order::Refuse(..) | Order::SetStatus(_) => {}
                Order::CancelRun(run) => panic!("{run} is cancelled"),
                Order::CarryOver(bytes) => self.carry_over(&bytes),
                Order::Finish(ended) => outcome = Some(ended),
            }
        }
        outcome
    }

    /// Checks that a worker without the run in memory computes the same state and the same orders.
    fn replay(&self, orders: &[Order]) {
        let mut again = new_execution(&self.loader, &self.run_start);
        let mut last = Vec::new();
        for (now, length, inputs) in &self.tasks {
            // The order of the inputs in the history must not matter.
            let inputs = inputs.iter().rev().cloned().collect();
            last = handle_task(&mut again, *now, *length, inputs);
        }
        assert_eq!(again.hosted.state(), self.run.hosted.state());
        assert_eq!(format!("{last:?}"), format!("{orders:?}"));
    }

    fn carry_over(&mut self, bytes: &[u8]) {
        assert!(self.running.is_empty(), "what is in flight may end first");
        self.run_start = Wire::default().read(bytes).unwrap();
        self.run = new_execution(&self.loader, &self.run_start);
        self.largest = self.largest.max(bytes.len());
        self.longest = self.longest.max(self.events);
        self.tasks.clear();
        self.timers.clear();
        self.events = 0;
        self.executions += 1;
    }

    fn play(&mut self) -> (Outcome, RunState) {
        self.play_for(2_000)
    }

    fn play_for(&mut self, tasks: u32) -> (Outcome, RunState) {
        let mut outcome = self.task(Vec::new());
        for _ in 0..tasks {
            if let Some(outcome) = outcome {
                return (outcome, self.run.hosted.state().clone());
            }
            let inputs = match self.tasks.is_empty() {
                true => Vec::new(),
                false => self.inputs(),
            };
            outcome = self.task(inputs);
        }
        panic!("it does not end: {:?}", self.run.hosted.state());
    }
}

fn handle_task(
    execution: &mut RunExecution,
    now: Timestamp,
    length: u32,
    inputs: Vec<Input>,
) -> Vec<Order> {
    let task = Task {
        now,
        length,
        suggested: false,
        inputs,
    };
    execution.handle_task(task, &mut |_, _, _| {}).unwrap()
}

#[test]
fn a_replay_comes_to_the_same_after_every_task() {
    for seed in 0..50 {
        let (outcome, state) = Fake::new(seed, u32::MAX).play();
        assert_eq!(outcome.status, Status::Succeeded, "{seed}: {state:?}");
        assert!(state.effects.is_empty() && state.timers.is_empty());
    }
}

#[test]
fn a_run_that_carries_over_starts_no_effect_twice() {
    for seed in 0..50 {
        let mut fake = Fake::new(seed, 40);
        let (outcome, _) = fake.play();
        assert_eq!(outcome.status, Status::Succeeded, "{seed}");
        assert!(fake.executions > 2, "{} executions", fake.executions);
    }
}

/// Returns the number of iterations of long loops. `WINDLASS_ITERATIONS=1000000` sets another number.
fn many() -> u32 {
    let asked = std::env::var("WINDLASS_ITERATIONS").ok();
    asked.map_or(20_000, |number| number.parse().unwrap())
}

/// Uses the limit for carrying over of production. The input and the history of each execution must remain small.
#[test]
fn a_long_loop_of_effects_stays_small() {
    let iterations = many();
    let mut fake = Fake::of(&effects(iterations), 1, CARRY_OVER_AT);
    fake.replays_each = false;
    let (outcome, _) = fake.play_for(iterations * 3);
    assert_eq!(outcome.status, Status::Succeeded);
    let Fake {
        executions,
        largest,
        longest,
        ..
    } = fake;
    println!("{executions} executions, at most {longest} events, begun with {largest} bytes");
    assert!(executions > iterations * 6 / CARRY_OVER_AT);
    assert!(longest < CARRY_OVER_AT + 100, "{longest} events");
    assert!(largest < 2_000, "{largest} bytes");
}

/// The executions of this loop are limited by the number of steps, because it causes few events.
#[test]
fn a_long_loop_without_effects_carries_over() {
    let iterations = 3 * many();
    let mut fake = Fake::of(&pure(iterations), 1, CARRY_OVER_AT);
    fake.replays_each = false;
    let (outcome, _) = fake.play_for(iterations);
    assert_eq!(outcome.status, Status::Succeeded);
    println!("{} executions", fake.executions);
    assert!(fake.executions >= iterations / CARRY_OVER_STEPS);
    assert!(fake.longest < 200, "{} events", fake.longest);
    assert!(fake.largest < 2_000, "{} bytes", fake.largest);
}

/// A timer that Temporal fires before its time is armed again.
#[test]
fn a_timer_that_is_early_is_armed_again() {
    let mut fake = Fake::new(1, u32::MAX);
    fake.task(Vec::new());
    while fake.timers.is_empty() {
        let inputs = fake.inputs();
        fake.task(inputs);
    }
    let (number, due) = fake.timers.pop_first().unwrap();
    assert!(due.0 > fake.now + 7);
    fake.task(vec![Input::Fired(number)]);
    let (again, due_again) = fake.timers.pop_first().unwrap();
    assert_ne!(again, number);
    assert_eq!(due_again, due);
}

#[test]
fn a_command_that_comes_too_late_is_refused() {
    let mut fake = Fake::new(1, u32::MAX);
    fake.task(Vec::new());
    let cancel = || Input::Update(String::from("u"), Command::Cancel, true);
    assert!(fake.task(vec![cancel()]).is_some());
    assert!(fake.run.refusal(&Command::Pause).is_some());
}

/// A run that called another run has it cancelled, and ends only when Temporal has recorded this in its history.
/// Commands of the task in which a run ends may be lost with the run.
#[test]
fn a_run_that_ends_has_what_it_called_cancelled_first() {
    let text = "name: fake\nactions: { a: { type: workflow, workflow: other } }\n";
    let mut fake = Fake::of(text, 1, u32::MAX);
    let started = handle_task(&mut fake.run, Timestamp(1), 3, Vec::new());
    assert!(matches!(started[..], [Order::Start(..)]), "{started:?}");
    let cancel = || Input::Update(String::from("u"), Command::Cancel, true);
    let cancelled = handle_task(&mut fake.run, Timestamp(2), 9, vec![cancel()]);
    match &cancelled[..] {
        [
            Order::CancelRun(run),
            Order::Answer(..),
            Order::SetStatus(_),
        ] => {
            assert!(run.starts_with("fake.a-"), "{run}");
        }
        other => panic!("{other:?}"),
    }
    let late = handle_task(&mut fake.run, Timestamp(3), 12, vec![cancel()]);
    assert!(matches!(late[..], [Order::Refuse(..)]), "{late:?}");
    let ended = handle_task(&mut fake.run, Timestamp(4), 15, vec![Input::RunCancelled]);
    assert!(matches!(ended[..], [Order::Finish(_)]), "{ended:?}");
}
