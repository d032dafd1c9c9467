//! Workflows generated from a seed, as trees: every kind of step and scope of the machine, nested in each other,
//! whether or not a format can express it.

use crate::machine::build::{condition, node, step, template};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::time::Duration;
use windlass_expression::{Template, Value};
use windlass_model::hir::{
    After, Assign, Assignment, Block, Call, DagStep, ForEach, Graph, Keep, Loop, Outputs,
    RetryPolicy, Step, StepKind, Wait, Workflow,
};
use windlass_model::model::{
    AssignOp, AwaitedSignal, Backoff, CollectMode, Delay, Dialect, Jitter, Name, OnError, OnLimit,
    OnMissing, OnRepeat, Pages, Status, Test, Unchanged,
};
use windlass_source::source::Span;

/// The signals that workflows wait for and that are sent from outside.
pub const SIGNALS: [&str; 2] = ["go", "stop"];

/// The maximum nesting of steps.
const DEPTH: usize = 4;

pub struct Author {
    random: StdRng,
    names: usize,
    /// How many more steps are to be written.
    left: usize,
}

/// Where a step is written.
#[derive(Clone, Copy)]
struct Place {
    depth: usize,
    /// Whether it is inside a loop.
    looped: bool,
}

impl Place {
    fn inner(self) -> Self {
        Self {
            depth: self.depth + 1,
            ..self
        }
    }

    fn loop_body(self) -> Self {
        Self {
            depth: self.depth + 1,
            looped: true,
        }
    }
}

impl Author {
    /// Every third workflow is written as a file.
    pub fn workflow(seed: u64) -> Workflow {
        if seed % 3 == 2 {
            return super::written::workflow(seed);
        }
        let mut author = Self {
            random: StdRng::seed_from_u64(seed),
            names: 0,
            left: 14,
        };
        let place = Place {
            depth: 0,
            looped: false,
        };
        let dialect = author.one_of(&[
            Dialect::Loom,
            Dialect::Loom,
            Dialect::Azure,
            Dialect::Tea,
            Dialect::Canvas,
        ]);
        let body = author.block(place);
        let outputs = match author.random.random_range(0..3) {
            0 => Outputs::Template(template("@variables('n')")),
            1 => Outputs::Actions,
            _ => Outputs::State,
        };
        let variables = [("n", "0"), ("seen", "[]"), ("text", "\"\"")];
        Workflow {
            outputs,
            ..crate::machine::build::workflow(dialect, &variables, body)
        }
    }

    fn chance(&mut self, of: u32) -> bool {
        self.random.random_range(0..of) == 0
    }

    fn one_of<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.random.random_range(0..from.len())]
    }

    fn name(&mut self) -> String {
        self.names += 1;
        format!("s{}", self.names)
    }

    // ── blocks ──────────────────────────────────────────────────────────────────────────────

    fn block(&mut self, place: Place) -> Block {
        let most = if place.depth == 0 { 4 } else { 3 };
        let count = self.random.random_range(1..=most);
        let steps: Vec<Step> = (0..count).map(|_| self.step(place)).collect();
        match self.random.random_range(0..6) {
            0 => self.dag(steps),
            1 => self.graph(steps),
            _ => Block::Sequence(steps),
        }
    }

    fn dag(&mut self, steps: Vec<Step>) -> Block {
        const AFTER: [&[Status]; 3] = [
            &[Status::Succeeded],
            &[Status::Failed, Status::TimedOut],
            &[
                Status::Succeeded,
                Status::Failed,
                Status::Skipped,
                Status::TimedOut,
            ],
        ];
        let mut before: Vec<Name> = Vec::new();
        let mut out = Vec::new();
        for step in steps {
            let mut after = Vec::new();
            if let Some(name) = before.last()
                && self.chance(2)
            {
                after.push(After {
                    name: name.clone(),
                    statuses: self.one_of(&AFTER).to_vec(),
                    span: Span::default(),
                });
            }
            before.push(step.name.clone());
            out.push(DagStep { step, after });
        }
        Block::Dag(out)
    }

    /// Edges forward, some back, and the last one to the end.
    fn graph(&mut self, steps: Vec<Step>) -> Block {
        let names: Vec<Name> = steps.iter().map(|step| step.name.clone()).collect();
        let mut nodes = Vec::new();
        for (at, step) in steps.into_iter().enumerate() {
            let jump = self.condition(false);
            let to = names[self.random.random_range(0..names.len())].clone();
            let next = names.get(at + 1).map_or("", |name| &**name);
            let mut edges = Vec::new();
            if self.chance(2) {
                edges.push((jump.as_str(), &*to));
            }
            edges.push(("", next));
            nodes.push(node(step, &edges));
        }
        Block::Graph(Graph {
            entry: names.first().cloned(),
            nodes,
            max_steps: self.random.random_range(3..9),
        })
    }

    // ── steps ───────────────────────────────────────────────────────────────────────────────

    fn step(&mut self, place: Place) -> Step {
        let name = self.name();
        self.left = self.left.saturating_sub(1);
        let simple = place.depth >= DEPTH || self.left == 0;
        let kind = match self.random.random_range(0..if simple { 9 } else { 22 }) {
            0..=2 => self.call(),
            3 => StepKind::Compose(template("@variables('n')")),
            4..=5 => self.assign(),
            6 => StepKind::Wait(Wait::For(self.seconds(0, 9))),
            7 => StepKind::AwaitSignal(AwaitedSignal::any(Name::from(self.one_of(&SIGNALS)))),
            8 => self.rare(),
            9..=12 => self.repeat(place),
            13..=14 => self.for_each(place),
            15 => {
                let count = self.random.random_range(1..4);
                let branch = |n: usize, author: &mut Self| {
                    (Name::from(format!("b{n}")), author.block(place.inner()))
                };
                StepKind::Parallel {
                    branches: (0..count).map(|n| branch(n, self)).collect(),
                    isolated: self.random.random_bool(0.5),
                }
            }
            16 => StepKind::If {
                arms: vec![(
                    condition(&self.condition(place.looped)),
                    self.block(place.inner()),
                )],
                otherwise: self.block(place.inner()),
            },
            17 => StepKind::Switch {
                on: template("@mod(variables('n'), 3)"),
                cases: (0..2_i64)
                    .map(|case| (Value::from(case), self.block(place.inner())))
                    .collect(),
                default: self.block(place.inner()),
            },
            18..=19 => StepKind::Catch {
                body: self.block(place.inner()),
                error: Name::from(if self.chance(2) { "error" } else { "" }),
                handler: self.block(place.inner()),
            },
            _ => StepKind::Block(self.block(place.inner())),
        };
        self.around(&name, kind, place)
    }

    /// A step with what may surround it: a timeout, retries, jumps out of the loop.
    fn around(&mut self, name: &str, kind: StepKind, place: Place) -> Step {
        // Without a timeout, a signal that is never sent is waited for until the end.
        let bounded = matches!(kind, StepKind::AwaitSignal(_)) && !self.chance(8);
        let mut step = step(name, kind);
        if bounded || self.chance(8) {
            step.timeout = Some(self.seconds(1, 12));
        }
        if self.chance(5) {
            step.retry = Some(self.retry());
        }
        if place.looped && self.chance(6) {
            step.break_when = Some(condition(&self.condition(true)));
        }
        if place.looped && self.chance(8) {
            step.continue_when = Some(condition(&self.condition(true)));
        }
        if self.chance(10) {
            step.output = Some(template("@variables('result')"));
        }
        step
    }

    fn seconds(&mut self, from: u32, to: u32) -> Template {
        let seconds = self.random.random_range(from..to);
        template(&format!("PT{seconds}S"))
    }

    fn delay(&mut self) -> Delay {
        match self.random.random_range(0..4) {
            0 => Delay::Every(self.seconds(0, 8)),
            // Long enough for the run to leave memory meanwhile.
            1 => Delay::Every(self.seconds(6, 30)),
            _ => Delay::Backoff(self.retry().backoff),
        }
    }

    fn retry(&mut self) -> RetryPolicy {
        let interval = Duration::from_secs(self.random.random_range(1..4));
        let (min, max) = (Duration::ZERO, Duration::from_secs(30));
        let backoff = match self.random.random_range(0..3) {
            0 => Backoff::Fixed {
                interval,
                jitter: Jitter::Full,
            },
            1 => Backoff::Exponential {
                interval,
                max,
                min,
                jitter: Jitter::Tenth,
            },
            _ => Backoff::AzureExponential { interval, max, min },
        };
        RetryPolicy {
            is_default: false,
            backoff,
            count: Template::constant(Value::from(self.random.random_range(0..3_i64))),
            on: Vec::new(),
            when: None,
            span: Span::default(),
        }
    }

    fn call(&mut self) -> StepKind {
        let then = match self.random.random_range(0..4) {
            0 => vec![assignment("n", AssignOp::Set, "@variables('result')")],
            1 => vec![assignment(
                "seen",
                AssignOp::AppendToArray,
                "@variables('result')",
            )],
            _ => Vec::new(),
        };
        // A long value is marked as long.
        let member = |name: &str, value| (Template::constant(Value::from(name)), value);
        let inputs = if then.is_empty() && self.chance(12) {
            Template::object(vec![member("big", Template::constant(Value::Bool(true)))])
        } else {
            Template::object(vec![member("n", template("@variables('n')"))])
        };
        // A GET: without a method, and its result is not a number.
        let safe = then.is_empty() && !self.chance(4);
        let executor = match safe {
            true => "http",
            false => self.one_of(&["shell", "appendFile"]),
        };
        StepKind::Call(Call {
            executor: Name::from(executor),
            inputs,
            attempt_timeout: None,
            then,
        })
    }

    fn assign(&mut self) -> StepKind {
        let (variable, op, value) = self.one_of(&[
            ("n", AssignOp::Increment, "@add(0, 1)"),
            ("n", AssignOp::Set, "@add(variables('n'), 2)"),
            ("seen", AssignOp::AppendToArray, "@variables('n')"),
            ("text", AssignOp::AppendToString, "and on"),
            ("gone", AssignOp::Set, "@variables('seen')"),
            ("", AssignOp::RemoveAll, "@createArray('gone')"),
        ]);
        StepKind::Assign(Assign {
            assignments: vec![assignment(variable, op, value)],
            output: None,
        })
    }

    fn rare(&mut self) -> StepKind {
        match self.random.random_range(0..8) {
            0 => StepKind::Terminate {
                status: self.one_of(&[Status::Succeeded, Status::Failed, Status::Cancelled]),
                error: None,
            },
            1..=2 => StepKind::Raise {
                kind: Name::from("custom"),
                message: template("it was raised"),
            },
            3..=4 => StepKind::Respond(template("@variables('n')")),
            _ => StepKind::Nothing,
        }
    }

    fn repeat(&mut self, place: Place) -> StepKind {
        let times = self.random.random_range(0..4);
        let stop = match self.random.random_range(0..3) {
            0 => String::from("@greater(variables('n'), 6)"),
            _ => format!("@greaterOrEquals(variables('loopIndex'), {times})"),
        };
        let limits = [
            OnLimit::Fail,
            OnLimit::Continue,
            OnLimit::Continue,
            OnLimit::Continue,
            OnLimit::Pause,
        ];
        let body = self.block(place.loop_body());
        let keep = match body.steps().next() {
            Some(first) if self.chance(3) => vec![Keep {
                name: Name::from("kept"),
                take: self.one_of(&[CollectMode::First, CollectMode::Last, CollectMode::All]),
                of: first.name.clone(),
                value: template("@variables('n')"),
            }],
            _ => Vec::new(),
        };
        StepKind::Loop(Box::new(Loop {
            name: None,
            test: self.one_of(&[Test::Before, Test::After]),
            stop_when: condition(&stop),
            condition_text: stop.clone(),
            negated: false,
            count: Template::constant(Value::from(self.random.random_range(1..5_i64))),
            tokens: None,
            cost: None,
            timeout: self.chance(4).then(|| self.seconds(3, 15)),
            delay: self.chance(3).then(|| self.delay()),
            on_missing: OnMissing::Fail,
            on_limit: self.one_of(&limits),
            on_timeout: self.one_of(&limits),
            test_when_spent: !self.chance(4),
            survives_failure: self.chance(4),
            keep,
            pages: self.chance(4).then(|| self.pages()),
            unchanged: self.chance(4).then(|| Unchanged {
                times: 2,
                of: self.chance(2).then(|| template("@mod(variables('n'), 2)")),
            }),
            feedback: self.chance(2),
            body,
        }))
    }

    /// A token that repeats at some time, or not before the loop ends.
    fn pages(&mut self) -> Pages {
        Pages {
            token: template(self.one_of(&[
                "@mod(variables('n'), 4)",
                "@variables('n')",
                "@variables('loopIndex')",
                "@length(variables('seen'))",
            ])),
            on_repeat: self.one_of(&[OnRepeat::Fail, OnRepeat::Stop]),
        }
    }

    fn for_each(&mut self, place: Place) -> StepKind {
        let items = self.one_of(&["@createArray()", "@createArray(1)", "@range(0, 4)"]);
        StepKind::ForEach(Box::new(ForEach {
            items: template(items),
            count: None,
            concurrency: self.random.random_range(1..4),
            on_error: self.one_of(&[
                OnError::Stop,
                OnError::Stop,
                OnError::Finish,
                OnError::Continue,
            ]),
            body: self.block(place.loop_body()),
        }))
    }

    fn condition(&mut self, looped: bool) -> String {
        match self.random.random_range(0..4) {
            0 if looped => String::from("@equals(variables('loopIndex'), 1)"),
            1 => String::from("@greater(variables('n'), 4)"),
            2 => String::from("@greater(length(variables('seen')), 2)"),
            3 => String::from("@equals(mod(variables('n'), 2), 0)"),
            _ => String::from("@equals(1, 2)"),
        }
    }
}

fn assignment(variable: &str, op: AssignOp, value: &str) -> Assignment {
    Assignment {
        variable: Name::from(variable),
        op,
        value: template(value),
        span: Span::default(),
    }
}
