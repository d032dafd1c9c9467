//! The fuzz targets of `fuzz/`, with inputs made from a seed: the reference's examples and some
//! Jinja, mutated. `WINDLASS_FUZZ=N` for more inputs, `WINDLASS_FUZZ_SEED` for others.

use chrono::DateTime;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};
use windlass::expression::{Condition, Context, Subject, Syntax, Template, Value};

const WORLD: &str = r#"{
    "vars": {"n": 3, "list": [1, "a", null, {"k": [true]}], "text": "it's ü 😀"},
    "state": {"n": 2, "items": ["a", "b"], "user": {"city": "Oslo"}, "text": "x"},
    "actions": {"get": {"outputs": {"statusCode": 200, "body": {"id": 7, "xml": "<a b='1'><c/></a>"}}}, "later": null},
    "inputs": {"job": "j1"}, "params": {"p": 1}, "item": {"a": 1}, "loops": {"each": {"item": 1, "index": 2}},
    "results": {"scope": [{"name": "a"}]}, "trigger": {"outputs": {"body": "a=1&a=2"}}
}"#;

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

/// What mutations put in.
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
    let reference = include_str!("../expressions/reference.txt").lines();
    let expressions = reference
        .filter_map(|line| line.split(" | ").nth(1))
        .flat_map(|text| [format!("@{text}"), format!("a @{{{text}}} b")]);
    expressions.chain(JINJA.map(str::to_owned)).collect()
}

/// A seed, a few times cut, repeated, mixed with another or with a piece.
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

/// Any text parses, or says where it does not.
fn parse(text: &str) {
    for syntax in [Syntax::Loom, Syntax::Azure, Syntax::Jinja] {
        match Template::parse(text, syntax) {
            Ok(template) => {
                let _ = template.references();
                assert_eq!(Template::parse(text, syntax).as_ref(), Ok(&template));
            }
            Err(error) => {
                assert!(error.offset <= text.len() && error.length >= 1, "{error:?}");
                assert!(text.is_char_boundary(error.offset), "{error:?}");
            }
        }
        let _ = Condition::parse(text, syntax);
    }
}

/// Whatever parses comes to a value or an error, and to the same again.
fn evaluate(world: &Value, text: &str) {
    let run = || {
        let context = Context::new(world, DateTime::UNIX_EPOCH, 7).unwrap();
        [Subject::Expression, Subject::Template, Subject::Condition]
            .map(|subject| context.evaluate(subject, &Value::text(text)))
    };
    let first = run();
    for outcome in &first {
        match outcome {
            Ok(value) => assert!(value.nests_at_most(128)),
            Err(error) => assert!(!error.report().is_empty()),
        }
    }
    assert_eq!(format!("{first:?}"), format!("{:?}", run()));
}

#[test]
#[allow(clippy::disallowed_methods)] // It measures how long an input takes.
fn mutated_expressions_neither_panic_nor_take_long() {
    let number = |name: &str, default: u64| {
        let given = std::env::var(name).ok();
        given.map_or(default, |given| given.parse().unwrap())
    };
    let count = number("WINDLASS_FUZZ", 6_000);
    let mut random = StdRng::seed_from_u64(number("WINDLASS_FUZZ_SEED", 3));
    let world = Value::from_json(WORLD).unwrap();
    let seeds = seeds();
    let mut slowest = (Duration::ZERO, String::new());
    for _ in 0..count {
        let text = input(&seeds, &mut random);
        let begin = Instant::now();
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            parse(&text);
            evaluate(&world, &text);
        }));
        let took = begin.elapsed();
        assert!(outcome.is_ok(), "this input: {text:?}");
        if took > slowest.0 {
            slowest = (took, text);
        }
    }
    // Six evaluations and as many parses, on a machine that may be busy.
    assert!(slowest.0 < Duration::from_secs(60), "{slowest:?}");
    eprintln!("{count} inputs, the slowest {slowest:?}");
}
