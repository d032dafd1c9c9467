//! Random workflows in Loom, and the answers of their world.

use super::model::{Event, Reply};
use crate::machine::random::condition_of_if;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::collections::hash_map::DefaultHasher;
use std::fmt::Write;
use std::hash::{Hash, Hasher};
use std::time::Duration;
use windlass_expression::Value;
use windlass_model::model::Fault;

/// What surrounds the action that is written.
#[derive(Clone, Copy)]
struct Spot {
    indent: usize,
    depth: usize,
    looped: bool,
}

impl Spot {
    fn inner(self, by: usize) -> Self {
        Self {
            indent: self.indent + by,
            depth: self.depth + 1,
            ..self
        }
    }

    fn in_loop(self) -> Self {
        Self {
            looped: true,
            ..self
        }
    }
}

/// Writes a workflow.
struct Author {
    random: StdRng,
    text: String,
    names: usize,
    /// The loops and foreaches around the current place, innermost last.
    loops: Vec<usize>,
    items: Vec<usize>,
    /// The actions around the current place. The reference does not define what such an action returned in an earlier
    /// attempt.
    around: Vec<usize>,
}

/// The workflow for a seed.
pub fn workflow(seed: u64) -> String {
    let variables = "variables: { seen: [], n: 0, text: \"\" }\nactions:\n";
    let mut author = Author {
        random: StdRng::seed_from_u64(seed),
        text: String::from(variables),
        names: 0,
        loops: Vec::new(),
        items: Vec::new(),
        around: Vec::new(),
    };
    let spot = Spot {
        indent: 1,
        depth: 0,
        looped: false,
    };
    author.actions(spot);
    let outputs = "outputs: { seen: \"@variables('seen')\", n: \"@variables('n')\" }\n";
    author.text + if seed.is_multiple_of(2) { outputs } else { "" }
}

impl Author {
    fn below(&mut self, end: usize) -> usize {
        self.random.random_range(0..end)
    }

    fn chance(&mut self, of: usize) -> bool {
        self.below(of) == 0
    }

    fn one_of<'t>(&mut self, all: &[&'t str]) -> &'t str {
        let at = self.below(all.len());
        all[at]
    }

    fn line(&mut self, indent: usize, text: &str) {
        let _ = writeln!(self.text, "{}{text}", "  ".repeat(indent));
    }

    /// The actions of a block: a sequence or a `runAfter` graph.
    fn actions(&mut self, spot: Spot) {
        let count = 1 + self.below(if spot.depth == 0 { 4 } else { 3 });
        let is_graph = self.chance(4);
        let mut siblings: Vec<usize> = Vec::new();
        for _ in 0..count {
            let name = self.names;
            self.names += 1;
            self.line(spot.indent, &format!("a{name}:"));
            self.around.push(name);
            self.action(spot.inner(1));
            self.handler(spot.inner(1));
            self.around.pop();
            if spot.looped && self.chance(4) {
                let condition = self.condition(name);
                let jump = self.one_of(&["break_when", "continue_when"]);
                self.line(spot.indent + 1, &format!("{jump}: \"{condition}\""));
            }
            if is_graph && !siblings.is_empty() {
                self.run_after(spot, &siblings);
            }
            siblings.push(name);
        }
    }

    fn run_after(&mut self, spot: Spot, siblings: &[usize]) {
        let statuses = [
            "[Succeeded]",
            "[Failed, TimedOut]",
            "[Succeeded, Failed, Skipped]",
            "[Skipped]",
        ];
        let mut after = Vec::new();
        for before in siblings.iter().rev().take(2) {
            if after.is_empty() && !self.chance(4) || self.chance(3) {
                after.push(format!("a{before}: {}", self.one_of(&statuses)));
            }
        }
        let after = after.join(", ");
        self.line(spot.indent + 1, &format!("runAfter: {{ {after} }}"));
    }

    /// The handler for a failed action.
    fn handler(&mut self, spot: Spot) {
        match self.below(24) {
            0 => {
                self.line(spot.indent, "catch:");
                self.line(spot.indent + 1, "actions:");
                self.actions(spot.inner(2));
            }
            1 => self.line(spot.indent, "continue_on_error: true"),
            _ => {}
        }
    }

    /// A value to store or to send.
    fn value(&mut self, looped: bool) -> String {
        let (outer, item) = (self.pick_loop(), self.items.last().copied());
        let before = self.below(self.names.max(1));
        match (self.below(9), outer, item) {
            (0, Some(outer), _) => format!("@variables('a{outer}_loopIndex')"),
            (1, Some(outer), _) => format!("@iterationIndexes('a{outer}')"),
            (2, _, Some(item)) => format!("@items('a{item}')"),
            (3, _, Some(_)) => "@item()".into(),
            (4, ..) if !self.around.contains(&before) => {
                format!("@coalesce(body('a{before}'), 'none')")
            }
            (5, ..) if looped && !self.around.contains(&before) => {
                format!("@coalesce(variables('loopResult')?['a{before}'], 'none')")
            }
            (6, ..) if looped => "@variables('loopCount')".into(),
            (7, ..) if looped => "@variables('loopStartTime')".into(),
            _ => "@variables('n')".into(),
        }
    }

    fn pick_loop(&mut self) -> Option<usize> {
        let at = self.below(self.loops.len().max(1));
        self.loops.get(at).copied()
    }

    fn condition(&mut self, name: usize) -> String {
        match self.below(9) {
            0 | 8 => format!("@equals(variables('loopIndex'), {})", self.below(3)),
            1 => "@greater(variables('n'), 3)".into(),
            2 => format!("@equals(actions('a{name}').status, 'Failed')"),
            3 => "@greater(length(variables('seen')), 4)".into(),
            4 => format!("@equals(body('a{name}'), 3)"),
            5 => "@greater(variables('text'), 3)".into(),
            _ => "@equals(1, 2)".into(),
        }
    }

    fn action(&mut self, spot: Spot) {
        let Spot { indent, looped, .. } = spot;
        match self.below(if spot.depth > 4 { 9 } else { 22 }) {
            0..=1 => self.call(spot),
            2 => {
                let value = self.value(looped);
                self.line(indent, "type: compose");
                self.line(indent, &format!("inputs: \"{value}\""));
            }
            3 => {
                let kind = self.one_of(&["incrementVariable", "decrementVariable"]);
                self.line(indent, &format!("type: {kind}"));
                let by = 1 + self.below(2);
                self.line(indent, &format!("inputs: {{ name: n, value: {by} }}"));
            }
            4 => {
                let value = self.value(looped);
                self.line(indent, "type: appendToArrayVariable");
                self.line(
                    indent,
                    &format!("inputs: {{ name: seen, value: \"{value}\" }}"),
                );
            }
            5 => {
                self.line(indent, "type: appendToStringVariable");
                self.line(
                    indent,
                    "inputs: { name: text, value: \"x@{variables('n')}\" }",
                );
            }
            6 => {
                self.line(indent, "type: setVariable");
                let value = self.one_of(&["0", "\"@add(variables('n'), 2)\"", "\"none\""]);
                self.line(indent, &format!("inputs: {{ name: n, value: {value} }}"));
            }
            7 => {
                let seconds = self.below(5);
                self.line(indent, "type: wait");
                self.line(indent, &format!("interval: PT{seconds}S"));
            }
            8 if self.chance(3) => {
                self.line(indent, "type: waitForSignal");
                self.line(indent, "signal: go");
                self.timeout(spot, 2);
            }
            8 => self.call(spot),
            9..=13 => self.repeat(spot),
            14 | 15 => self.each(spot),
            16 => {
                self.line(indent, "type: parallel");
                self.timeout(spot, 8);
                self.retry(spot, 8);
                self.line(indent, "branches:");
                for branch in 0..1 + self.below(3) {
                    self.line(indent + 1, &format!("b{branch}:"));
                    self.line(indent + 2, "actions:");
                    self.actions(spot.inner(3));
                }
            }
            17 => {
                let name = self.names - 1;
                let condition = condition_of_if(self.condition(name), looped);
                self.line(indent, "type: if");
                self.timeout(spot, 8);
                self.line(indent, &format!("condition: \"{condition}\""));
                self.line(indent, "actions:");
                self.actions(spot.inner(1));
                if self.chance(2) {
                    self.line(indent, "else:");
                    self.line(indent + 1, "actions:");
                    self.actions(spot.inner(2));
                }
            }
            18 => {
                self.line(indent, "type: switch");
                self.retry(spot, 8);
                self.line(indent, "on: \"@mod(variables('n'), 3)\"");
                self.line(indent, "cases:");
                for case in 0..1 + self.below(2) {
                    self.line(indent + 1, &format!("{case}:"));
                    self.line(indent + 2, "actions:");
                    self.actions(spot.inner(3));
                }
                if self.chance(2) {
                    self.line(indent, "default:");
                    self.line(indent + 1, "actions:");
                    self.actions(spot.inner(2));
                }
            }
            19 | 20 => {
                self.line(indent, "type: scope");
                self.timeout(spot, 3);
                self.retry(spot, 3);
                self.line(indent, "actions:");
                self.actions(spot.inner(1));
            }
            _ if self.chance(8) => {
                let status = self.one_of(&["Failed", "Succeeded", "Cancelled"]);
                self.line(indent, "type: terminate");
                self.line(indent, &format!("inputs: {{ runStatus: {status} }}"));
            }
            _ => self.call(spot),
        }
    }

    fn timeout(&mut self, spot: Spot, of: usize) {
        if self.chance(of) {
            let seconds = 3 + self.below(5);
            self.line(spot.indent, &format!("timeout: PT{seconds}S"));
        }
    }

    fn retry(&mut self, spot: Spot, of: usize) {
        if !self.chance(of) {
            return;
        }
        let kind = self.one_of(&["fixed", "exponential"]);
        let jitter = if self.chance(20) { "full" } else { "none" };
        let (interval, count) = (1 + self.below(3), self.below(3));
        let mut policy =
            format!("type: {kind}, interval: PT{interval}S, count: {count}, jitter: {jitter}");
        if self.chance(6) {
            policy += ", when: \"@less(variables('n'), 2)\"";
        }
        self.line(spot.indent, &format!("retry: {{ {policy} }}"));
    }

    fn call(&mut self, spot: Spot) {
        self.line(spot.indent, "type: shell");
        self.line(spot.indent, "run: x");
        if self.chance(2) {
            self.line(spot.indent, "env: { N: \"@{variables('n')}\" }");
        }
        self.retry(spot, 3);
    }

    fn each(&mut self, spot: Spot) {
        let indent = spot.indent;
        let lists = [
            "[]",
            "[1]",
            "[1, 2, 3]",
            "\"@range(0, 5)\"",
            "\"@variables('seen')\"",
            "\"@variables('n')\"",
        ];
        let items = self.one_of(&lists);
        let concurrency = 1 + self.below(3);
        let own = self.own_name();
        self.line(indent, "type: foreach");
        self.timeout(spot, 8);
        self.line(indent, &format!("foreach: {items}"));
        self.line(indent, &format!("concurrency: {concurrency}"));
        if self.chance(3) {
            self.line(indent, "on_error: continue");
        }
        self.retry(spot, 6);
        self.line(indent, "actions:");
        self.loops.push(own);
        self.items.push(own);
        self.actions(spot.inner(1).in_loop());
        self.loops.pop();
        self.items.pop();
    }

    /// The name of the action that is written now.
    fn own_name(&self) -> usize {
        self.names - 1
    }

    fn repeat(&mut self, spot: Spot) {
        let indent = spot.indent;
        let kind = self.one_of(&["until", "while", "doUntil"]);
        let (times, which) = (self.below(4), self.below(4));
        let (own, body) = (self.own_name(), self.names);
        let condition = match (kind, which) {
            ("while", 0) => "@less(variables('n'), 9)".into(),
            ("while", _) => format!("@less(variables('loopIndex'), {times})"),
            (_, 0) => "@greater(variables('n'), 9)".into(),
            (_, 1) => format!("@equals(body('a{body}'), 5)"),
            _ => format!("@equals(variables('loopIndex'), {times})"),
        };
        self.line(indent, &format!("type: {kind}"));
        self.line(indent, &format!("condition: \"{condition}\""));
        let mut limit = match self.below(6) {
            0 => String::from("count: \"@add(1, mod(variables('n'), 4))\""),
            _ => format!("count: {}", 1 + self.below(5)),
        };
        if self.chance(5) {
            let _ = write!(limit, ", timeout: PT{}S", 4 + self.below(9));
        }
        if self.chance(6) {
            limit += ", unchanged: 2";
        }
        self.line(indent, &format!("limit: {{ {limit} }}"));
        let on_limit = self.one_of(&["fail", "continue", "continue", "continue", "pause"]);
        self.line(indent, &format!("on_limit: {on_limit}"));
        if self.chance(8) {
            self.line(indent, "page: \"@mod(variables('n'), 4)\"");
            let on_repeat = self.one_of(&["fail", "stop"]);
            self.line(indent, &format!("on_repeat: {on_repeat}"));
        }
        match self.below(7) {
            6 => self.line(indent, "delay: \"PT@{mod(variables('n'), 3)}S\""),
            0 | 1 => {
                let seconds = self.below(4);
                self.line(indent, &format!("delay: PT{seconds}S"));
            }
            2 => {
                let own = "type: exponential, interval: PT1S, maxInterval: PT5S, jitter: none";
                self.line(indent, &format!("delay: {{ {own} }}"));
            }
            _ => {}
        }
        self.retry(spot, 6);
        self.line(indent, "actions:");
        self.loops.push(own);
        self.actions(spot.inner(1).in_loop());
        self.loops.pop();
    }
}

/// A world that gives the same answer to the same request.
pub fn answer(seed: u64, name: &str, before: usize) -> Reply {
    let mut hasher = DefaultHasher::new();
    (seed, name, before).hash(&mut hasher);
    let hash = hasher.finish();
    let after = Duration::from_secs((hash >> 8) % 7);
    let fails = |kind: &str| Fault::new(kind, format!("it was {kind}")).transient();
    match hash % 100 {
        0 => None,
        1..6 => Some((after, Err(fails("shell")))),
        6 => Some((after, Err(fails("timeout")))),
        7 => Some((after, Err(Fault::new("shell", "for good")))),
        8 => {
            let mut fault = fails("shell");
            fault.retry_after_ms = Some(4_000);
            Some((after, Err(fault)))
        }
        9 => Some((after, Ok(Value::text("long ".repeat(300))))),
        _ => Some((after, Ok(Value::Int((hash % 7).cast_signed())))),
    }
}

/// The events that arrive from outside, with their seconds.
pub fn arrivals(seed: u64) -> Vec<(u64, Event)> {
    let mut random = StdRng::seed_from_u64(seed ^ 1);
    let mut all = Vec::new();
    for resume in 0..6 {
        let at = 20 + resume * 20 + random.random_range(0..10);
        all.push((at, Event::Resume));
    }
    if random.random_range(0..3) == 0 {
        all.push((random.random_range(0..20), Event::Pause));
    }
    if random.random_range(0..8) == 0 {
        all.push((random.random_range(0..30), Event::Cancel));
    }
    if random.random_range(0..2) == 0 {
        let at = random.random_range(0..12);
        all.push((at, Event::Signal("go".into(), Value::Int(1))));
    }
    all
}
