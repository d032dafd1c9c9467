//! Random workflows in random worlds, with crashes at random points: they come to the same end.

use super::laws;
use super::play::{Answer, Case, Crash, Outside, START, fails, json, ok, read};
use crate::support::sized;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::collections::hash_map::DefaultHasher;
use std::fmt::Write;
use std::hash::{Hash, Hasher};
use std::time::Duration;
use windlass_machine::RunStatus;

/// A condition that an `if` can evaluate although no action has run before it.
pub fn condition_of_if(condition: String, looped: bool) -> String {
    match condition {
        text if looped && text.contains("loopIndex") => text,
        text if text.contains("variables('n')") => text,
        _ => "@equals(mod(variables('n'), 2), 0)".into(),
    }
}

/// Writes a workflow.
struct Author {
    random: StdRng,
    text: String,
    names: usize,
}

impl Author {
    fn workflow(seed: u64) -> String {
        let mut author = Self {
            random: StdRng::seed_from_u64(seed),
            text: String::from("variables: { seen: [], n: 0, text: \"\" }\nactions:\n"),
            names: 0,
        };
        author.actions(1, 0, false);
        let outputs = "outputs: { seen: \"@variables('seen')\", n: \"@variables('n')\" }\n";
        author.text + if seed.is_multiple_of(2) { outputs } else { "" }
    }

    fn chance(&mut self, of: u32) -> bool {
        self.random.random_range(0..of) == 0
    }

    fn line(&mut self, indent: usize, text: &str) {
        let _ = writeln!(self.text, "{}{text}", "  ".repeat(indent));
    }

    /// The actions of a scope; `looped` is whether it is inside a loop.
    fn actions(&mut self, indent: usize, depth: usize, looped: bool) {
        let count = self.random.random_range(1..=if depth == 0 { 4 } else { 3 });
        let dag = self.chance(4);
        let first = self.names;
        for place in 0..count {
            let name = self.names;
            self.names += 1;
            self.line(indent, &format!("a{name}:"));
            let inner = self.names;
            self.action(indent + 1, depth, looped);
            if looped && self.chance(6) {
                let condition = self.condition(name);
                let jump = if self.chance(2) {
                    "break_when"
                } else {
                    "continue_when"
                };
                self.line(indent + 1, &format!("{jump}: \"{condition}\""));
            }
            if dag && place > 0 {
                // After the previous action, which can only be named if it contains no others; otherwise immediately.
                let statuses = [
                    "[Succeeded]",
                    "[Failed, TimedOut]",
                    "[Succeeded, Failed, Skipped]",
                ];
                let status = statuses[self.random.random_range(0..3)];
                let before = name - 1;
                let known =
                    inner == self.names && before >= first && self.is_sibling(indent, before);
                let after = match known {
                    true => format!("runAfter: {{ a{before}: {status} }}"),
                    false => String::from("runAfter: {}"),
                };
                self.line(indent + 1, &after);
            }
        }
    }

    fn is_sibling(&self, indent: usize, name: usize) -> bool {
        let line = format!("\n{}a{name}:\n", "  ".repeat(indent));
        self.text.contains(&line)
    }

    fn condition(&mut self, name: usize) -> String {
        match self.random.random_range(0..5) {
            0 => "@equals(variables('loopIndex'), 1)".into(),
            1 => "@greater(variables('n'), 3)".into(),
            2 => format!("@equals(actions('a{name}').status, 'Failed')"),
            3 => "@greater(length(variables('seen')), 4)".into(),
            _ => "@equals(1, 2)".into(),
        }
    }

    fn action(&mut self, indent: usize, depth: usize, looped: bool) {
        let kinds = if depth >= 4 { 6 } else { 14 };
        match self.random.random_range(0..kinds) {
            0..=1 => self.call(indent),
            2 => {
                let value = if looped {
                    "@variables('loopCount')"
                } else {
                    "@variables('n')"
                };
                self.line(
                    indent,
                    &format!("type: compose\n{}inputs: \"{value}\"", "  ".repeat(indent)),
                );
            }
            3 => {
                self.line(indent, "type: incrementVariable");
                self.line(indent, "inputs: { name: n }");
            }
            4 => {
                self.line(indent, "type: appendToArrayVariable");
                self.line(indent, "inputs: { name: seen, value: \"@variables('n')\" }");
            }
            5 => {
                let seconds = self.random.random_range(0..5);
                self.line(
                    indent,
                    &format!("type: wait\n{}interval: PT{seconds}S", "  ".repeat(indent)),
                );
            }
            6..=8 => self.repeat(indent, depth),
            9 => {
                let items =
                    ["[]", "[1]", "[1, 2, 3]", "\"@range(0, 5)\""][self.random.random_range(0..4)];
                let concurrency = self.random.random_range(1..4);
                self.line(indent, "type: foreach");
                self.line(indent, &format!("foreach: {items}"));
                self.line(indent, &format!("concurrency: {concurrency}"));
                self.line(indent, "actions:");
                self.actions(indent + 1, depth + 1, true);
            }
            10 => {
                self.line(indent, "type: parallel");
                self.line(indent, "branches:");
                for branch in 0..self.random.random_range(1..4) {
                    self.line(indent + 1, &format!("b{branch}:"));
                    self.line(indent + 2, "actions:");
                    self.actions(indent + 3, depth + 1, looped);
                }
            }
            11 => {
                let name = self.names - 1;
                let condition = condition_of_if(self.condition(name), looped);
                self.line(indent, "type: if");
                self.line(indent, &format!("condition: \"{condition}\""));
                self.line(indent, "actions:");
                self.actions(indent + 1, depth + 1, looped);
                if self.chance(2) {
                    self.line(indent, "else:");
                    self.line(indent + 1, "actions:");
                    self.actions(indent + 2, depth + 1, looped);
                }
            }
            12 => {
                self.line(indent, "type: scope");
                if self.chance(3) {
                    self.line(indent, "timeout: PT5S");
                }
                if self.chance(3) {
                    self.line(
                        indent,
                        "retry: { type: exponential, interval: PT1S, count: 1 }",
                    );
                }
                self.line(indent, "actions:");
                self.actions(indent + 1, depth + 1, looped);
            }
            _ if self.chance(12) => {
                self.line(indent, "type: terminate");
                self.line(indent, "inputs: { runStatus: Failed }");
            }
            _ => self.call(indent),
        }
    }

    fn call(&mut self, indent: usize) {
        self.line(indent, "type: shell");
        self.line(indent, "run: x");
        if self.chance(3) {
            let kind = if self.chance(2) {
                "fixed"
            } else {
                "exponential"
            };
            let count = self.random.random_range(0..3);
            self.line(
                indent,
                &format!("retry: {{ type: {kind}, interval: PT2S, count: {count} }}"),
            );
        }
    }

    fn repeat(&mut self, indent: usize, depth: usize) {
        let kind = ["until", "while", "doUntil"][self.random.random_range(0..3)];
        let times = self.random.random_range(0..4);
        let condition = match (kind, self.random.random_range(0..3)) {
            ("while", 0) => "@less(variables('n'), 9)".into(),
            ("while", _) => format!("@less(variables('loopIndex'), {times})"),
            (_, 0) => "@greater(variables('n'), 9)".into(),
            _ => format!("@equals(variables('loopIndex'), {times})"),
        };
        self.line(indent, &format!("type: {kind}"));
        self.line(indent, &format!("condition: \"{condition}\""));
        let count = self.random.random_range(2..6);
        let timeout = if self.chance(6) {
            ", timeout: PT7S"
        } else {
            ""
        };
        self.line(indent, &format!("limit: {{ count: {count}{timeout} }}"));
        let on_limit =
            ["fail", "continue", "continue", "continue", "pause"][self.random.random_range(0..5)];
        self.line(indent, &format!("on_limit: {on_limit}"));
        if self.chance(3) {
            self.line(indent, "delay: PT3S");
        }
        self.line(indent, "actions:");
        self.actions(indent + 1, depth + 1, true);
    }
}

/// A world that gives the same answer to the same request.
fn answer(seed: u64, name: &str, n: usize) -> Answer {
    let mut hasher = DefaultHasher::new();
    (seed, name, n).hash(&mut hasher);
    let hash = hasher.finish();
    let after = (hash >> 8) % 7;
    match hash % 100 {
        0 => Answer::Never,
        1..6 => fails("shell").after(after),
        6 => fails("timeout").after(after),
        _ => ok(&(hash % 7).to_string()).after(after),
    }
}

fn case(seed: u64, text: &str) -> Case {
    let mut workflow = read(text);
    if seed.is_multiple_of(5) {
        workflow.dialect = windlass_model::model::Dialect::Azure;
        workflow.rules = windlass_formats::rules(workflow.dialect);
    }
    let mut case = Case::hir(&workflow).world(move |call| answer(seed, call.name, call.n));
    let mut random = StdRng::seed_from_u64(seed ^ 1);
    for resume in 0..6 {
        let at = 20 + resume * 20 + random.random_range(0..10);
        case = case.at(at, Outside::Resume);
    }
    if random.random_range(0..3) == 0 {
        case = case.at(random.random_range(0..20), Outside::Pause);
    }
    if random.random_range(0..8) == 0 {
        case = case.at(random.random_range(0..30), Outside::Cancel);
    }
    if random.random_range(0..4) == 0 {
        case = case.at(3, Outside::Signal("go", json("1")));
    }
    case
}

/// Which workflows are tried; `WINDLASS_RANDOM=from..to` chooses others.
fn seeds() -> std::ops::Range<u64> {
    let given = std::env::var("WINDLASS_RANDOM").ok();
    let given = given.as_deref().and_then(|text| text.split_once(".."));
    match given {
        Some((from, to)) => from.parse().unwrap()..to.parse().unwrap(),
        None => 0..sized(120, 40),
    }
}

#[test]
fn whatever_is_crashed_comes_to_the_same_end() {
    let mut ends = std::collections::BTreeMap::<RunStatus, usize>::new();
    let mut longest = 0;
    for seed in seeds() {
        let text = Author::workflow(seed);
        let tried = std::panic::catch_unwind(|| {
            let case = case(seed, &text);
            let calm = case.play_with(&mut |_, _| None);
            laws::ended_well(&calm);
            let mut random = StdRng::seed_from_u64(seed ^ 2);
            for often in [2, 5, 20] {
                let crashed = case.play_with(&mut |_, tries| {
                    let crash = tries < 3 && random.random_range(0..often) == 0;
                    let before = random.random_range(0..2) == 0;
                    crash.then_some(if before { Crash::Before } else { Crash::After })
                });
                laws::same(&calm, &crashed);
            }
            (calm.status(), calm.steps.len(), calm.now)
        });
        let Ok((status, steps, now)) = tried else {
            panic!(
                "seed {seed} (WINDLASS_RANDOM={seed}..{}):\n{text}",
                seed + 1
            );
        };
        assert!(
            now <= START.plus(Duration::from_secs(86_400)),
            "seed {seed}:\n{text}"
        );
        *ends.entry(status).or_default() += 1;
        longest = longest.max(steps);
    }
    println!("{ends:?}, the longest of {longest} transitions");
    if seeds() == (0..120) {
        assert!(
            ends[&RunStatus::Succeeded] > 20 && ends[&RunStatus::Failed] > 10,
            "{ends:?}"
        );
    }
}
