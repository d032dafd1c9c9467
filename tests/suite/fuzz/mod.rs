//! Runs the checks of the fuzz targets of `fuzz/` on their seeds, which include every input that caused a fault before,
//! and on generated expressions: the reference's examples and some Jinja, mutated. `WINDLASS_FUZZ=N` sets the number of
//! inputs and `WINDLASS_FUZZ_SEED` the seed. Workflows and records: `intake.rs`; requests: `serve/fuzz.rs`.

mod intake;

pub use intake::{corpus, mutated};

#[path = "../../../fuzz/src/checks/mod.rs"]
pub mod checks;

use crate::support::sized;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

const JINJA: [&str; 14] = [
    "{{ state.n + 1 }}",
    "{{ state.items[0] | upper }} and {{ state.text[::-1] }}",
    "{% for x in state['items'] if x != 'q' %}{{ loop.index }}{{ x }},{% else %}-{% endfor %}",
    "{% if state.n > 1 and not state.done %}a{% elif 1 is odd %}b{% else %}c{% endif %}",
    "{% set ns = namespace(c=0) %}{% set ns.c = ns.c + 1 %}{{ ns.c }}",
    "{{ state.get('missing', {'a': (1, 2.5)}) | tojson(indent=2) }}",
    "{{ '%05.2f' % 3.14159 }}{{ '{:>8}'.format('x') }}",
    "{{ state.user.city.split('s', 1) | join('-') | center(20) | truncate(9) }}",
    "{% macro m(a, b=2) %}{{ a ~ b }}{% endmacro %}{{ m(1) }}{{ m(1, b='é') }}",
    "{{ [3, 1, 2] | sort | map('string') | list | batch(2) | list }}",
    "{{ range(10) | select('odd') | sum // 2 ** 3 % 5 }}",
    "{{ 'a' if none else state.items | last | default('z') }}",
    "state.n < 3 or 'a' in state.items",
    "{% raw %}{{ x }}{% endraw %}{# c #}{{- ' y ' -}}",
];

/// What mutations insert.
const PIECES: [&str; 48] = [
    "@",
    "@{",
    "}",
    "@@",
    "(",
    ")",
    "[",
    "]",
    "?",
    ".",
    "?.",
    "?[",
    "'",
    "''",
    ",",
    " ",
    "{{",
    "}}",
    "{%",
    "%}",
    "|",
    "\\",
    "\"",
    "-",
    "0",
    "1e308",
    "9223372036854775807",
    "-1",
    "null",
    "true",
    "none",
    "range(0, 99999)",
    "'😀'",
    "\u{feff}",
    "\0",
    "\n",
    "é",
    "%s",
    "{0}",
    "yyyy-MM-dd'T'",
    "N99",
    "#,##0.0;",
    "concat(",
    "if(true,",
    " for x in ",
    "**",
    "[::-1]",
    "* 99999",
];

pub fn seeds() -> Vec<String> {
    let reference = include_str!("../../expressions/reference.txt").lines();
    let expressions = reference
        .filter_map(|line| line.split(" | ").nth(1))
        .flat_map(|text| [format!("@{text}"), format!("a @{{{text}}} b")]);
    expressions.chain(JINJA.map(str::to_owned)).collect()
}

/// A seed after a few changes: cut, repeated, or combined with another seed or a piece.
fn input(seeds: &[String], random: &mut StdRng) -> String {
    let pick = |random: &mut StdRng| -> Vec<char> {
        seeds[random.random_range(0..seeds.len())].chars().collect()
    };
    let mut text = pick(random);
    for _ in 0..random.random_range(0..6) {
        let at = random.random_range(0..=text.len());
        let end = random.random_range(at..=text.len().min(at + 20));
        match random.random_range(0..5) {
            0 => drop(text.drain(at..end)),
            1 => {
                let again: Vec<char> = text[at..end].to_vec();
                for _ in 0..random.random_range(1..4) {
                    text.splice(at..at, again.iter().copied());
                }
            }
            2 => {
                let other = pick(random);
                let from = random.random_range(0..=other.len());
                let to = random.random_range(from..=other.len());
                text.splice(at..end, other[from..to].iter().copied());
            }
            _ => {
                let piece = PIECES[random.random_range(0..PIECES.len())];
                text.splice(at..at, piece.chars());
            }
        }
    }
    text.into_iter().collect()
}

#[test]
#[allow(clippy::disallowed_methods)] // It measures how long an input takes.
fn mutated_expressions_neither_panic_nor_take_long() {
    let number = |name: &str, default: u64| {
        let given = std::env::var(name).ok();
        given.map_or(default, |given| given.parse().unwrap())
    };
    let count = number("WINDLASS_FUZZ", sized(6_000, 1_500));
    let mut random = StdRng::seed_from_u64(number("WINDLASS_FUZZ_SEED", 3));
    let seeds = seeds();
    let mut slowest = (Duration::ZERO, String::new());
    for _ in 0..count {
        let text = input(&seeds, &mut random);
        let begin = Instant::now();
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            checks::parse::check(text.as_bytes());
            checks::evaluate::check(text.as_bytes());
        }));
        let took = begin.elapsed();
        assert!(outcome.is_ok(), "this input: {text:?}");
        if took > slowest.0 {
            slowest = (took, text);
        }
    }
    // The time of twelve evaluations and as many parses, on a machine that may be busy.
    assert!(slowest.0 < Duration::from_secs(60), "{slowest:?}");
    eprintln!("{count} inputs, the slowest {slowest:?}");
}

/// Every seed of a target is checked, within a time limit; some are accepted.
fn replay(target: &str, check: fn(&[u8]) -> bool, end: fn()) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/seeds");
    let entries = fs::read_dir(folder.join(target)).unwrap();
    let paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    let (sender, receiver) = mpsc::channel();
    let all = paths.clone();
    let checking = thread::spawn(move || {
        for path in &all {
            sender.send(check(&fs::read(path).unwrap())).unwrap();
        }
        end();
    });
    let mut taken = 0;
    for path in &paths {
        // It is a second in an optimised build on an idle machine.
        match receiver.recv_timeout(Duration::from_secs(30)) {
            Ok(yes) => taken += usize::from(yes),
            Err(error) => panic!("{}: {error}", path.display()),
        }
    }
    checking.join().unwrap();
    println!("{target}: of {} seeds {taken} are taken", paths.len());
    assert!(
        taken >= 10,
        "{target}: of {} seeds {taken} are taken",
        paths.len()
    );
}

#[test]
fn seeds_of_sources() {
    replay("source", checks::source::check, || ());
}

#[test]
fn seeds_of_workflows() {
    replay("workflow", checks::workflow::check, || ());
}

#[test]
fn seeds_of_expressions() {
    replay("parse", checks::parse::check, || ());
    replay("evaluate", checks::evaluate::check, || ());
}

#[test]
fn seeds_of_records() {
    replay("records", checks::records::check, || ());
}

#[test]
fn seeds_of_requests_to_an_owner() {
    replay("socket", checks::socket::check, checks::socket::end);
}

#[test]
fn seeds_of_requests() {
    replay("http", checks::http::check, checks::http::end);
}
