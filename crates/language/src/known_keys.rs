//! Compares the keys that the reader of each format knows with the keys that completions offer, in the project's
//! workflows. Completions come from the vocabulary, so a key that is missing there is found here.

use super::{CompletionKind, Lines, complete};
use crate::edit::tests;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use windlass_engine::{Bundle, Dialect};
use windlass_formats::{Caps, read};

/// The key that is inserted into each map. No format knows it, so the reader lists the keys that it knows.
const PROBE: &str = "qqzzqq";

/// Keys that a reader knows and completions do not offer, each with its reason.
const NOT_OFFERED: [(Dialect, &str, &str); 6] = [
    (
        Dialect::Azure,
        "a definition may have Loom's keys",
        "break_when continue_when concurrency cost delay dialect maxInterval minInterval name on on_limit on_missing \
         count on_repeat page retry timeout tokens unchanged unchanged_of unit value",
    ),
    (
        Dialect::Azure,
        "they have no effect",
        "conversion correlation description evaluatedRecurrence kind metadata runAfter splitOnConfiguration \
         schema trackedProperties",
    ),
    (
        Dialect::Azure,
        "the inputs of an Expression depend on its kind",
        "formatString startIndex",
    ),
    (
        Dialect::Canvas,
        "they have no effect, or belong to another type of node",
        "continueWhile file triggerType",
    ),
    (
        Dialect::Tea,
        "they are refused, or have no effect",
        "capture_traceback clear_on_success cond condition error_responses fallback if imports interrupt \
         interrupt_after interrupt_before on_error parallel_config parallel_each retry steps_parallel strategy unless \
         when",
    ),
    (Dialect::Tea, "an argument has a second name", "run"),
];

/// Keys that completions offer, and that no reader lists as known for these workflows, each with its reason.
const NOT_LISTED: [(Dialect, &str, &str); 3] = [
    (
        Dialect::Loom,
        "a file with the `$schema` of Logic Apps has them, or a case of a switch",
        "case contentVersion parameters staticResults",
    ),
    (
        Dialect::Canvas,
        "an agent has them if its runner is a model",
        "apiKey apiKeyFile api_key api_key_file baseUrl base_url maxRetries maxTokens max_retries max_tokens model \
         provider responseFormat response_format system temperature",
    ),
    (
        Dialect::Canvas,
        "they are removed before the nodes are read",
        "dockSlots",
    ),
];

/// What is compared of one format.
#[derive(Default)]
struct Keys {
    /// The keys that a reader knows anywhere.
    known: BTreeSet<String>,
    /// The keys that completions offer anywhere.
    offered: BTreeSet<String>,
    /// The keys that a reader knows in a map, and that completions do not offer there, by map.
    missing: BTreeMap<String, BTreeSet<String>>,
}

#[test]
fn completions_offer_the_keys_that_the_reader_knows() {
    let mut keys: BTreeMap<&str, Keys> = BTreeMap::new();
    let mut seen = BTreeSet::new();
    for path in tests::files() {
        let (Ok(text), Some(value)) = (std::fs::read_to_string(&path), tests::value(&path)) else {
            continue;
        };
        let path = path.to_string_lossy();
        // The schema does not describe the templates in which definitions are deployed.
        if value.get("resources").is_some() {
            continue;
        }
        let bundle = Bundle::single(path.clone(), text);
        let Some(dialect) = windlass_engine::dialect_of(&bundle, None) else {
            continue;
        };
        if !read(&bundle, Some(dialect), &Caps::unlimited())
            .1
            .is_empty()
        {
            continue;
        }
        let format = keys.entry(dialect.as_str()).or_default();
        each_map(&value, "", &mut |probed, map, name| {
            let kinds = ["type", "uses", "action"].map(|key| map.get(key).map(Value::to_string));
            let names: Vec<&String> = map.keys().collect();
            if seen.insert(format!("{dialect:?} {name} {kinds:?} {names:?}")) {
                compare(&path, dialect, &probed, map, format);
            }
        });
    }
    for (format, keys) in &keys {
        let missing = &keys.missing;
        assert!(missing.is_empty(), "{format}: not offered: {missing:?}");
        let unknown = keys.offered.difference(&keys.known);
        let unknown: Vec<&String> = unknown
            .filter(|key| !is_in(&NOT_LISTED, format, key))
            .collect();
        assert!(
            unknown.is_empty(),
            "{format}: offered, but no reader knows them: {unknown:?}"
        );
    }
    assert_eq!(keys.len(), 4, "{:?}", keys.keys());
}

/// Returns true if a key of a format is in a list of exceptions.
fn is_in(exceptions: &[(Dialect, &str, &str)], format: &str, key: &str) -> bool {
    let mut lists = exceptions
        .iter()
        .filter(|(dialect, ..)| format == dialect.as_str());
    lists.any(|(_, _, keys)| keys.split(' ').any(|one| one == key))
}

/// Receives a whole value in which one map has the probe as its first key, that map without the probe, and its name.
type Receive<'r> = dyn FnMut(Value, &Map<String, Value>, &str) + 'r;

/// Calls `found` for each map in a value.
fn each_map(value: &Value, name: &str, found: &mut Receive<'_>) {
    match value {
        Value::Object(members) => {
            let mut probed = Map::from_iter([(PROBE.to_owned(), Value::from(1))]);
            probed.extend(members.clone());
            found(Value::Object(probed), members, name);
            for (key, member) in members {
                each_map(member, key, &mut |inner, map, name| {
                    let mut outer = members.clone();
                    outer.insert(key.clone(), inner);
                    found(Value::Object(outer), map, name);
                });
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                each_map(item, name, &mut |inner, map, name| {
                    let mut outer = items.clone();
                    outer[index] = inner;
                    found(Value::Array(outer), map, name);
                });
            }
        }
        _ => {}
    }
}

/// Adds the keys that the reader knows and that completions offer in the map with the probe.
fn compare(
    path: &str,
    dialect: Dialect,
    probed: &Value,
    map: &Map<String, Value>,
    keys: &mut Keys,
) {
    let text = serde_json::to_string_pretty(probed).unwrap();
    let at = Lines::new(&text).position(text.find(PROBE).unwrap() + PROBE.len());
    let bundle = Bundle::single(path, text.clone());
    let (_, diagnostics) = read(&bundle, Some(dialect), &Caps::unlimited());
    let unknown = format!("unknown key `{PROBE}` in ");
    let reports = diagnostics.sorted().into_iter();
    let Some((report, place)) = reports
        .filter_map(|one| Some((one, one.message.strip_prefix(&unknown)?)))
        .next()
    else {
        return;
    };
    let hint = report.hint.as_deref().unwrap_or_default();
    let (_, known) = hint.split_once("known are: ").unwrap();
    let known: BTreeSet<String> = known.split(", ").map(str::to_owned).collect();
    let items = complete(&bundle, Some(dialect.into()), at)
        .items
        .into_iter();
    let items = items.filter(|item| item.kind == CompletionKind::Key);
    let offered: BTreeSet<String> = items.map(|item| item.label).collect();
    let missing = known.difference(&offered);
    let missing: BTreeSet<String> = missing
        .filter(|key| {
            !map.keys().any(|own| own.eq_ignore_ascii_case(key))
                && !is_in(&NOT_OFFERED, dialect.as_str(), key)
        })
        .cloned()
        .collect();
    if !missing.is_empty() {
        keys.missing
            .entry(format!("{place} ({path})"))
            .or_default()
            .extend(missing);
    }
    keys.known.extend(known);
    keys.offered.extend(offered);
}
