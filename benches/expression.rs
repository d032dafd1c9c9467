//! How long expressions take: parsing, and evaluation with a body of 10 KB. Run with `cargo bench --bench expression`.
//! The target is less than a microsecond per evaluation.

// A benchmark reads the clock and prints.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, clippy::print_stdout)]

use chrono::{DateTime, Utc};
use std::hint::black_box;
use std::time::{Duration, Instant};
use windlass_expression::{ActionView, Budget, Condition, Env, Lookup, Syntax, Template, Value};

/// One action with a body of 10 KB, and a state of the same size.
struct World {
    outputs: Value,
    state: Value,
    budget: Budget,
}

impl World {
    fn new() -> Self {
        let items: Vec<String> = (0..100)
            .map(|n| {
                format!(
                    r#"{{"id": {n}, "name": "item number {n}", "note": "{}"}}"#,
                    "x".repeat(60)
                )
            })
            .collect();
        let body = format!(
            r#"{{"items": [{}], "status": "complete", "n": 2}}"#,
            items.join(",")
        );
        let body = Value::from_json(&body).unwrap();
        let outputs = Value::from_pairs([("statusCode", Value::Int(200)), ("body", body.clone())]);
        Self {
            outputs,
            state: body,
            budget: Budget::of(u64::MAX),
        }
    }
}

impl Env for World {
    fn variable(&self, _: &str) -> Option<Value> {
        None
    }
    fn action(&self, _: &str) -> Lookup<ActionView> {
        Lookup::Unknown(Vec::new())
    }
    fn action_outputs(&self, _: &str) -> Lookup<Value> {
        Lookup::Found(self.outputs.clone())
    }
    fn root(&self, name: &str) -> Option<Value> {
        (name == "state").then(|| self.state.clone())
    }
    fn budget(&self) -> &Budget {
        &self.budget
    }
    fn now(&self) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH
    }
    fn random(&self) -> u64 {
        4
    }
}

/// The shortest of several rounds, in nanoseconds per call: other processes can only make a round longer.
fn measure<T>(name: &str, mut call: impl FnMut() -> T) {
    let mut best = f64::INFINITY;
    for _ in 0..20 {
        let mut count = 0_u32;
        let start = Instant::now();
        while start.elapsed() < Duration::from_millis(25) {
            for _ in 0..100 {
                black_box(call());
            }
            count += 100;
        }
        let each = start.elapsed().as_secs_f64() * 1e9 / f64::from(count);
        best = best.min(each);
    }
    println!("{name:<44} {best:>10.0} ns");
}

fn main() {
    let world = World::new();
    let text = "@equals(body('check').status, 'complete')";
    measure("parse a WDL condition", || {
        Condition::parse(black_box(text), Syntax::Loom)
    });
    let condition = Condition::parse(text, Syntax::Loom).unwrap();
    measure("evaluate a WDL condition", || condition.holds(&world));
    let text = "jobs/@{body('check').items[7].id}/@{body('check').status}";
    let template = Template::parse(text, Syntax::Loom).unwrap();
    measure("evaluate a WDL text", || template.eval(&world));

    let text = "state.status == 'complete'";
    measure("parse a Jinja condition", || {
        Condition::parse(black_box(text), Syntax::Jinja)
    });
    let condition = Condition::parse(text, Syntax::Jinja).unwrap();
    measure("evaluate a Jinja condition", || condition.holds(&world));
    let condition = Condition::parse("state.n < 3", Syntax::Jinja).unwrap();
    measure("evaluate a Jinja comparison", || condition.holds(&world));
    let template = Template::parse("{{ state.items }}", Syntax::Jinja).unwrap();
    measure("evaluate a Jinja value", || template.eval(&world));
    let text = "jobs/{{ state['items'][7].id }}/{{ state.status }}";
    let template = Template::parse(text, Syntax::Jinja).unwrap();
    measure("evaluate a Jinja text", || template.eval(&world));
}
