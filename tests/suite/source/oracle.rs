//! YAML is read as another reader reads it: each file of the examples and tests, and mutations of them.

use crate::fuzz::{corpus, mutated};
use crate::store::damage::{Dice, from_env};
use crate::support::sized;
use serde_yaml::Value;
use windlass_source::source::{Bundle, parse};

/// Codes of mistakes that this reader refuses and serde_yaml accepts. The syntax of YAML 1.2 is stricter than that of
/// 1.1 at byte order marks, tabs and the indentation inside brackets.
const STRICTER: [&str; 7] = [
    "key",
    "merge",
    "number",
    "syntax",
    "tag",
    "too-deep",
    "unquoted-template",
];

/// What serde_yaml reads from a text that does not begin with JSON, if all its keys are text.
fn expected(text: &str) -> Option<serde_json::Value> {
    let mut value: Value = serde_yaml::from_str(text).ok()?;
    value.apply_merge().ok()?;
    has_text_keys(&value).then(|| serde_json::to_value(value).ok())?
}

fn has_text_keys(value: &Value) -> bool {
    match value {
        Value::Mapping(map) => map
            .iter()
            .all(|(key, value)| key.is_string() && has_text_keys(value)),
        Value::Sequence(items) => items.iter().all(has_text_keys),
        Value::Tagged(_) => false,
        _ => true,
    }
}

#[derive(PartialEq)]
enum Comparison {
    /// Both read it, with the same result.
    Same,
    /// Only serde_yaml reads it.
    Refused,
    Skipped,
}

fn compare(text: &str) -> Comparison {
    if text
        .trim_start_matches(['\u{feff}', ' ', '\n'])
        .starts_with(['{', '['])
    {
        return Comparison::Skipped;
    }
    let Some(expected) = expected(text) else {
        return Comparison::Skipped;
    };
    let (node, mistakes) = parse(&Bundle::single("w.yaml", text), 0);
    let Some(node) = node else {
        let last = mistakes.last().expect("a mistake");
        let empty = last.code == "empty-file" && expected.is_null();
        assert!(empty || STRICTER.contains(&last.code), "{last:?}\n{text}");
        return Comparison::Refused;
    };
    if !mistakes.is_empty() {
        return Comparison::Skipped;
    }
    let ours: serde_json::Value = serde_json::from_str(&node.to_value().to_json()).unwrap();
    assert_eq!(ours, expected, "{text}");
    Comparison::Same
}

#[test]
fn yaml_is_what_serde_yaml_says_of_all_files_and_mutations() {
    let corpus = corpus();
    let same = |text: &&String| compare(text) == Comparison::Same;
    let read = corpus.iter().filter(same).count();
    assert!(read > 150, "{read} files");
    let mut dice = Dice(from_env("WINDLASS_FUZZ_SEED", 7));
    let count = from_env("WINDLASS_FUZZ", sized(6_000, 2_000));
    let (mut read, mut refused) = (0, 0);
    for _ in 0..count {
        match compare(&mutated(&mut dice, &corpus)) {
            Comparison::Same => read += 1,
            Comparison::Refused => refused += 1,
            Comparison::Skipped => {}
        }
    }
    println!("{read} read the same, {refused} refused, of {count}");
    assert!(
        read > count / 10 && refused < read / 10,
        "{read}, {refused}"
    );
}
