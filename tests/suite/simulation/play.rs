//! One simulation: a few runs, a world, a store, and a driver that dies and is restarted. The time advances when
//! nothing is left to do at this instant.

use super::author::{Author, SIGNALS};
use super::books::{Book, Books, Crash, Dead, Disk, Plan, lock};
use super::medium::Medium;
use super::world::{Door, World};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::runtime::Runtime;
use windlass_actions::Registry;
use windlass_engine::scheduler::{Loaded, Loader, ManualDriver, ReplyReceiver, Start};
use windlass_expression::Value;
use windlass_machine::compile::compile;
use windlass_machine::program::{Caps, Program, ProgramHash};
use windlass_machine::{Event, HistoryKind, LoopEnd, RunStatus, Signal, Wait};
use windlass_model::model::{Dialect, Name, Origin};
use windlass_source::source::Bundle;
use windlass_store::{ProgramSource, Retention, Store, StoreKind};
use windlass_value::time::Timestamp;

pub const START: Timestamp = Timestamp(1_700_000_000_000);

/// The maximum number of events.
const MAX_EVENTS: usize = 4_000;

/// The content of a simulation, independent of crashes.
pub struct Script {
    seed: u64,
    programs: BTreeMap<ProgramHash, Arc<Program>>,
    /// The names that the programs call.
    executors: BTreeSet<Name>,
    outside: Vec<Outside>,
    /// Whether answers that are due at the same time are delivered together.
    together: bool,
    snapshots: u64,
    retention: Retention,
}

/// What comes from outside, and when.
#[derive(Clone, Debug)]
struct Outside {
    at: Timestamp,
    run: Name,
    what: Input,
}

#[derive(Clone, Debug)]
enum Input {
    Start(ProgramHash),
    Deliver(Event),
}

impl Script {
    pub fn new(seed: u64) -> Self {
        let mut random = StdRng::seed_from_u64(seed ^ 0x5EED);
        let mut programs = BTreeMap::new();
        let mut executors = BTreeSet::new();
        let mut outside = Vec::new();
        let runs = [1, 1, 1, 2, 3][random.random_range(0..5)];
        for number in 0..runs {
            let mut workflow = Author::workflow(seed * 8 + number);
            workflow.name = Name::from(format!("w{number}"));
            let hash = ProgramHash([u8::try_from(number).unwrap() + 1; 32]);
            let caps = Caps {
                count: u64::MAX,
                timeout: Duration::from_secs(u64::from(u32::MAX)),
            };
            let calls = workflow.calls().into_iter();
            executors.extend(calls.map(|(_, call)| call.executor.clone()));
            let program = compile(&workflow, hash, caps)
                .unwrap_or_else(|mistakes| panic!("seed {seed}: {mistakes:?}"));
            programs.insert(hash, Arc::new(program));
            let run = Name::from(format!("run{number}"));
            let mut add = |ms: u64, what: Input| {
                outside.push(Outside {
                    at: START.plus(Duration::from_millis(ms)),
                    run: run.clone(),
                    what,
                });
            };
            let begins = number * 1_700;
            add(begins, Input::Start(hash));
            let mut events = Vec::new();
            for _ in 0..random.random_range(0..4) {
                let name = Name::from(SIGNALS[random.random_range(0..2)]);
                let payload = Value::from(random.random_range(0..9_i64));
                events.push((
                    random.random_range(0..40),
                    Event::Signalled(Signal::new(name, payload)),
                ));
            }
            if random.random_range(0..4) == 0 {
                events.push((random.random_range(0..30), Event::PauseRequested));
            }
            if random.random_range(0..10) == 0 {
                events.push((random.random_range(5..60), Event::CancelRequested));
            }
            for resume in 0..8 {
                events.push((
                    30 + resume * 30 + random.random_range(0..20),
                    Event::Resumed,
                ));
            }
            for (seconds, event) in events {
                let ms = begins + seconds * 1_000 + random.random_range(1..1_000);
                add(ms, Input::Deliver(event));
            }
        }
        outside.sort_by_key(|one| one.at);
        let tight = random.random_range(0..3) == 0;
        let retention = Retention {
            iterations: 3,
            events: 10,
            ended_loops: 2,
            compact_every: 3,
        };
        Self {
            seed,
            programs,
            executors,
            outside,
            together: random.random_range(0..2) == 0,
            snapshots: [0, 0, 3, 7][random.random_range(0..4)],
            retention: if tight {
                retention
            } else {
                Retention::default()
            },
        }
    }

    /// Each run's program in printed form, for a seed that failed.
    pub fn describe(&self) -> String {
        let mut out = String::new();
        for program in self.programs.values() {
            out += &format!("{program}\n");
        }
        for one in &self.outside {
            out += &format!("{} {} {:?}\n", one.at.0 - START.0, one.run, one.what);
        }
        out
    }
}

/// Provides the programs, each with the executor of the world.
struct Programs {
    loaded: BTreeMap<ProgramHash, Loaded>,
}

impl Loader for Programs {
    fn load(&self, hash: ProgramHash, _: &ProgramSource) -> Result<Loaded, String> {
        self.loaded
            .get(&hash)
            .cloned()
            .ok_or_else(|| String::from("unknown"))
    }
}

/// The result of a simulation.
pub struct Played {
    pub runs: BTreeMap<Name, Book>,
    pub requests: BTreeMap<Name, Vec<String>>,
    /// Runs that may differ: two events came at the same instant, or the run crashed during a pause.
    pub exempt: BTreeSet<Name>,
    pub now: Timestamp,
    pub groups: usize,
    /// How many calls started before their steps were stored.
    pub early: usize,
    pub crashes: usize,
    /// Whether it was stopped because it did not end.
    pub cut: bool,
}

struct Sim<'a> {
    script: &'a Script,
    runtime: Runtime,
    clock: Arc<AtomicI64>,
    now: Timestamp,
    books: Arc<Mutex<Books>>,
    world: Arc<Mutex<World>>,
    programs: Arc<Programs>,
    outside: Vec<Outside>,
    exempt: BTreeSet<Name>,
    events: usize,
}

/// Why a process ended.
enum End {
    Over,
    Crashed,
    Cut,
}

/// Plays a script on a database or, without a kind, in memory. `plan` decides where the process dies.
pub fn play(script: &Script, kind: Option<StoreKind>, plan: Plan, in_pauses: bool) -> Played {
    let books = Books::new(plan, in_pauses, script.snapshots);
    let books = Arc::new(Mutex::new(books));
    let world = World::new(script.seed, books.clone(), START);
    let world = Arc::new(Mutex::new(world));
    let mut registry = Registry::new();
    for executor in &script.executors {
        registry.register_executor(executor, Door(world.clone()));
    }
    let loaded = script.programs.iter().map(|(hash, program)| {
        let loaded = Loaded {
            program: program.clone(),
            registry: Arc::new(registry.clone()),
        };
        (*hash, loaded)
    });
    let mut sim = Sim {
        script,
        runtime: tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .unwrap(),
        clock: Arc::new(AtomicI64::new(START.0)),
        now: START,
        books,
        world,
        programs: Arc::new(Programs {
            loaded: loaded.collect(),
        }),
        outside: script.outside.clone(),
        exempt: BTreeSet::new(),
        events: 0,
    };
    let mut medium = Medium::new(kind, script.retention);
    let cut = loop {
        let disk = Arc::new(sim.disk(&medium));
        let end = sim.live(&disk);
        sim.died();
        // The tasks of the dead process hold nothing of the store.
        medium = medium.after_death();
        sim.disk(&medium).check();
        match end {
            End::Crashed => {}
            End::Over => {
                sim.nothing_is_left(&*medium.store());
                break false;
            }
            End::Cut => break true,
        }
    };
    sim.into_played(cut)
}

impl Sim<'_> {
    fn disk(&self, medium: &Medium) -> Disk {
        Disk {
            store: medium.store(),
            books: self.books.clone(),
        }
    }

    /// Simulates one process.
    fn live(&mut self, disk: &Arc<Disk>) -> End {
        let clock = self.clock.clone();
        let mut driver = ManualDriver::new(
            disk.clone(),
            self.programs.clone(),
            self.runtime.handle().clone(),
            move || Timestamp(clock.load(Ordering::Relaxed)),
        );
        let mut recovered = driver.recover();
        let end = loop {
            match self.settle(&mut driver) {
                Some(Crash::Refused) => {
                    // A server recovers automatically.
                    recovered = self.recover(&driver);
                    continue;
                }
                Some(_) => break End::Crashed,
                None => {}
            }
            if let Ok(Err(error)) = recovered.try_recv() {
                panic!("a recovery failed: {error}");
            }
            self.events += 1;
            if self.events > MAX_EVENTS {
                break End::Cut;
            }
            match self.next(&mut driver) {
                None => break End::Over,
                Some(Some(Crash::Refused)) => recovered = self.recover(&driver),
                Some(Some(_)) => break End::Crashed,
                Some(None) => {}
            }
        };
        if matches!(end, End::Over) {
            assert_eq!(driver.due_at(), None);
        }
        end
    }

    /// Recovers after the store refused a group: its runs were discarded from memory.
    fn recover(&self, driver: &ManualDriver) -> ReplyReceiver<Vec<Name>> {
        lock(&self.world).refused();
        lock(&self.books).crashes += 1;
        driver.recover()
    }

    fn died(&mut self) {
        lock(&self.world).crashed();
        // Its tasks end when they notify a driver that no longer exists.
        self.poll();
        lock(&self.world).back();
        lock(&self.books).crashes += 1;
    }

    /// Continues until nothing is left to do at this instant; returns how the process died.
    fn settle(&mut self, driver: &mut ManualDriver) -> Option<Crash> {
        for _ in 0..10_000 {
            self.poll();
            let given = lock(&self.world).given;
            let groups = lock(&self.books).groups;
            let crash = self.round(driver);
            if crash.is_some() {
                return crash;
            }
            self.poll();
            let still = given == lock(&self.world).given && groups == lock(&self.books).groups;
            if still && !driver.is_busy() {
                return None;
            }
        }
        panic!("it does not come to rest at {}", self.now.0 - START.0);
    }

    fn poll(&self) {
        self.runtime.block_on(async {
            for _ in 0..4 {
                tokio::task::yield_now().await;
            }
        });
    }

    fn round(&mut self, driver: &mut ManualDriver) -> Option<Crash> {
        let paused = lock(&self.books).paused();
        let outcome = catch_unwind(AssertUnwindSafe(|| driver.round()));
        let crash = lock(&self.books).pending.take();
        match outcome {
            Err(panic) if !panic.is::<Dead>() => resume_unwind(panic),
            _ => {}
        }
        if crash.is_some() {
            self.exempt.extend(paused);
            self.exempt.extend(lock(&self.books).paused());
        }
        if matches!(crash, Some(Crash::Dispatched | Crash::Written)) {
            self.poll();
        }
        crash
    }

    /// Causes the next event; none if nothing more happens without an event from outside.
    fn next(&mut self, driver: &mut ManualDriver) -> Option<Option<Crash>> {
        let outside = self.outside.first().map(|one| one.at);
        let answer = lock(&self.world).due_at();
        let timer = driver.due_at();
        let due = [outside, answer, timer].into_iter().flatten().min()?;
        self.now = self.now.max(due);
        self.clock.store(self.now.0, Ordering::Relaxed);
        lock(&self.world).now = self.now;
        if outside.is_some_and(|at| at <= self.now) {
            return Some(self.deliver(driver));
        }
        if answer.is_some_and(|at| at <= self.now) {
            let whose = lock(&self.world).give(self.script.together);
            self.poll();
            whose.iter().for_each(|run| self.tie(run));
        }
        Some(None)
    }

    /// Records whether a timer of the run is due at this instant.
    fn tie(&mut self, run: &Name) {
        let books = lock(&self.books);
        let timers = books.runs.get(run).map(|book| &book.state.timers);
        let mut timers = timers.into_iter().flat_map(|timers| timers.values());
        if timers.any(|timer| timer.due_at <= self.now) {
            self.exempt.insert(run.clone());
        }
    }

    /// Delivers something from outside. The sender knows whether it was accepted; if the process dies before, it is
    /// sent again.
    fn deliver(&mut self, driver: &mut ManualDriver) -> Option<Crash> {
        let one = self.outside[0].clone();
        self.tie(&one.run);
        let revision = self.revision(&one.run);
        let ended = self.ended(&one.run);
        let mut answer = match one.what {
            Input::Start(hash) => Waiting::Start(driver.start(Start {
                run: one.run.clone(),
                loaded: self.programs.loaded[&hash].clone(),
                source: ProgramSource {
                    bundle: Bundle::single("simulated.yaml", "simulated"),
                    dialect: Dialect::Loom,
                    max_count: 1,
                    max_timeout_ms: 1,
                    origin: Origin::Operator,
                    folder: None,
                },
                input: Value::from_json("{\"given\": 1}").unwrap(),
                from: None,
                environment: Value::Null,
                labels: BTreeMap::new(),
                watcher: None,
                saved: BTreeMap::new(),
            })),
            Input::Deliver(event) => Waiting::Event(driver.deliver(&one.run, event)),
        };
        let crash = self.round(driver);
        self.poll();
        let heard = answer.heard();
        let stored = self.revision(&one.run) > revision;
        if stored || ended || (crash.is_none() && heard) {
            self.outside.remove(0);
        }
        crash
    }

    fn revision(&self, run: &Name) -> u64 {
        lock(&self.books)
            .runs
            .get(run)
            .map_or(0, |book| book.header.revision)
    }

    fn ended(&self, run: &Name) -> bool {
        let books = lock(&self.books);
        books
            .runs
            .get(run)
            .is_some_and(|book| book.state.outcome.is_some())
    }

    // ── oracles ─────────────────────────────────────────────────────────────────────────────

    /// Nothing more happens without an event from outside: every run has ended, or it is known what it waits for.
    fn nothing_is_left(&mut self, store: &dyn Store) {
        let runnable = store.runnable().unwrap();
        let due = store.due(None, Timestamp(i64::MAX), usize::MAX).unwrap();
        assert_eq!(due, [], "a run is due, and is not started");
        let books = lock(&self.books);
        assert_eq!(books.runs.len(), self.script.programs.len());
        for (run, book) in &books.runs {
            let state = &book.state;
            let header = store.header(run).unwrap();
            assert_eq!(header.status, state.status(), "{run}");
            if state.outcome.is_some() {
                assert!(state.effects.is_empty() && state.timers.is_empty(), "{run}");
                assert!(!runnable.contains(run), "{run} has ended");
                for row in book.loops.values() {
                    assert!(row.ended.is_some(), "{run}: loop {} still runs", row.path);
                }
                continue;
            }
            let waits = |wait: &dyn Fn(&Wait) -> bool| {
                state.cursors.values().any(|cursor| wait(&cursor.wait))
            };
            let hangs = state
                .effects
                .values()
                .any(|effect| lock(&self.world).is_never(&books, &effect.request));
            let known = hangs
                || state.status() == RunStatus::Paused
                || waits(&|wait| matches!(wait, Wait::Signal(_)));
            assert!(known, "{run} hangs: {state:#?}");
        }
    }

    fn into_played(self, cut: bool) -> Played {
        let world = lock(&self.world);
        assert!(world.wrong.is_empty(), "{:?}", world.wrong);
        let books = lock(&self.books);
        let mut repetitions = 0;
        for (key, begun) in &world.begun {
            assert!(
                *begun <= 1 + books.crashes,
                "{key:?} was begun {begun} times"
            );
            repetitions += begun - 1;
        }
        let _ = repetitions;
        let mut requests: BTreeMap<Name, Vec<String>> = BTreeMap::new();
        for (call, (at, request)) in &world.requests {
            if books.called_off.contains(call) || !books.knows(call) {
                continue;
            }
            let line = format!("{} {request:?}", at.0 - START.0);
            requests.entry(call.0.clone()).or_default().push(line);
        }
        for (run, book) in &books.runs {
            limits_are_exact(run, book);
        }
        Played {
            runs: books.runs.clone(),
            requests,
            exempt: self.exempt.union(&books.ties).cloned().collect(),
            now: self.now,
            groups: books.groups,
            early: world.early,
            crashes: books.crashes - 1,
            cut,
        }
    }
}

/// The pending answer to something from outside.
enum Waiting {
    Start(ReplyReceiver<()>),
    Event(ReplyReceiver<RunStatus>),
}

impl Waiting {
    /// Whether the answer has arrived: accepted, or refused for ever.
    fn heard(&mut self) -> bool {
        use windlass_engine::scheduler::ScheduleError as E;
        let taken = |error: Option<E>| !matches!(error, Some(E::Store(_)));
        match self {
            Self::Start(answer) => answer.try_recv().is_ok_and(|answer| taken(answer.err())),
            Self::Event(answer) => answer.try_recv().is_ok_and(|answer| taken(answer.err())),
        }
    }
}

/// A loop that ended by its count has run exactly that often. One that ended by its time was notified at its deadline,
/// and not later.
fn limits_are_exact(run: &Name, book: &Book) {
    for row in book.loops.values() {
        assert!(row.iteration <= row.max_iterations, "{run}: {row:?}");
        if row.ended == Some(LoopEnd::Count) {
            assert_eq!(row.iteration, row.max_iterations, "{run}: {row:?}");
        }
    }
    let paused = |event: &windlass_machine::HistoryEvent| {
        matches!(event.what, HistoryKind::RunPaused { .. })
    };
    if book.history.iter().any(paused) {
        return;
    }
    // A loop that is retried as a whole has one row and several ends; the last one counts.
    let mut last = BTreeMap::new();
    for event in &book.history {
        if let HistoryKind::LoopLimit { path, limit, .. } = &event.what {
            last.insert(path, (event.at, *limit));
        }
    }
    for (path, (at, limit)) in last {
        let row = book.loops.get(path);
        let row =
            row.filter(|row| row.ended == Some(LoopEnd::Timeout) && limit == LoopEnd::Timeout);
        if let Some(row) = row {
            assert_eq!(row.deadline, Some(at), "{run}: {row:?}");
        }
    }
}

/// A disturbed simulation has the same result as the undisturbed one.
pub fn same(calm: &Played, disturbed: &Played) -> usize {
    let mut compared = 0;
    for (run, book) in &calm.runs {
        let exempt = calm.exempt.contains(run) || disturbed.exempt.contains(run);
        if exempt || calm.cut || disturbed.cut {
            continue;
        }
        compared += 1;
        let other = &disturbed.runs[run];
        assert_eq!(calm.requests.get(run), disturbed.requests.get(run), "{run}");
        for (at, (one, two)) in book.history.iter().zip(&other.history).enumerate() {
            let before = &book.history[at.saturating_sub(5)..at];
            assert_eq!(
                one, two,
                "{run}, event {at} of the history, after {before:#?}"
            );
        }
        assert_eq!(book.history.len(), other.history.len(), "{run}");
        assert_eq!(book.state, other.state, "{run}");
        assert_eq!(book.iterations, other.iterations, "{run}");
        assert_eq!(book.loops, other.loops, "{run}");
        let mut header = other.header.clone();
        // Groups are split where a crash was, and a driver learns of a snapshot that the test made only when it reads
        // the run again.
        header.revision = book.header.revision;
        header.snapshot = book.header.snapshot;
        assert_eq!(book.header, header, "{run}");
    }
    compared
}
