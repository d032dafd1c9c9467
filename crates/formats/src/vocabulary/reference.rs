//! Makes the tables of keys in docs/reference from the vocabulary, and compares them with the pages.
//! In a page, a table is between the lines `<!-- keys: NAME -->` and `<!-- end -->`. `WINDLASS_BLESS=1` writes the
//! tables.

use super::{Definition, Key, Map, Type, canvas, loom, model, tea};
use serde_json::Value as Json;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// A table of keys in a page.
struct Table {
    name: &'static str,
    keys: &'static [&'static [Key]],
    /// The keys that the table does not show.
    omitted: &'static [&'static str],
}

const fn table(name: &'static str, keys: &'static [&'static [Key]]) -> Table {
    Table {
        name,
        keys,
        omitted: &[],
    }
}

const TABLES: &[Table] = &[
    Table {
        omitted: &["contentVersion", "parameters", "staticResults"],
        ..table("loom file", &[loom::WORKFLOW])
    },
    Table {
        omitted: &[
            "operationOptions",
            "runtimeConfiguration",
            "trackedProperties",
        ],
        ..table(
            "loom actions",
            &[loom::COMMON, loom::OUTCOME, &[loom::TIMEOUT]],
        )
    },
    table("loom http", &[loom::REQUEST, loom::HTTP]),
    table("loom shell", &[loom::SHELL]),
    table(
        "loom ai",
        &[model::MODEL, &[loom::AI_RATE, model::MODEL_TIMEOUT]],
    ),
    table("loom operation", &[loom::OPERATION]),
    table("loom workflow", &[loom::CALLED_WORKFLOW]),
    table("loom appendFile", &[&[loom::PATH], loom::FILE]),
    table("loom loop", &[loom::LOOP]),
    table("loom limit", &[loom::LIMIT_KEYS]),
    table("loom retry", loom::RETRY_POLICY_KEYS),
    table("loom schedule", &[loom::SCHEDULE]),
    Table {
        omitted: &["description", "version", "metadata", "$schema"],
        ..table("tea file", tea::ROOT.keys)
    },
    table("tea on_error", tea::ON_ERROR.keys),
    table("tea dynamic_parallel", &[tea::PARALLEL]),
    table("tea retry.loop", tea::RETRY_LOOP_ARGUMENTS.keys),
    table("tea reflection.loop", tea::REFLECTION_LOOP_ARGUMENTS.keys),
    Table {
        omitted: &["label", "nodeType", "inputs", "outputs"],
        ..table(
            "canvas loop",
            &[canvas::REFERENCE_KEYS, canvas::LOOP, canvas::NODE_DATA],
        )
    },
];

/// Keys without a table that have no effect.
const NO_EFFECT: &[&[Key]] = &[
    canvas::DRAWING,
    canvas::EDGE_NOTES,
    canvas::NODE_NOTES,
    canvas::WORKFLOW_NOTES,
];

/// For each format, the keys that a page describes in its text or in a table that is written by hand.
const LOOM_ELSEWHERE: &str = "\
    accessKeyId action actions activityType actorType audience authority body branches ca case cases certificate \
    choices clientAuthentication clientId clientSecret code columns command concurrency condition content count \
    default else expression folder foreach format from headers input inputs interval joinWith key limit max \
    message name on on_error overwrite password path pattern policy rate region required resource retry \
    retryPolicy runError runStatus schema scope secret secretAccessKey select service sessionToken signal \
    signature tenant text timeout title token tokenUrl unit until url username value webhook where";
const TEA_ELSEWHERE: &str = "\
    action body code coerce condition error_handling examples fan_in from goto if interrupt interrupt_after \
    interrupt_before language llm max_iterations max_steps model name on_error output output_key prompt run \
    schema script shell_providers steps timeout to type uses value when with";
const CANVAS_ELSEWHERE: &str = "\
    apiKey apiKeyFile api_key api_key_file authentication baseUrl base_url body breakWhen code command commands \
    components concurrency continueOnFailure cwd default edges extract failOnError headers input iterations \
    language maxIterations maxRetries maxTokens max_retries max_tokens method model name node nodes operator \
    output over path pattern prompt provider queries query required responseFormat response_format runner runners \
    schema script session source sourceHandle system take target targetHandle temperature tls uri url value";

impl Table {
    fn shown(&self) -> impl Iterator<Item = &'static Key> {
        let keys = self.keys.iter().copied().flatten();
        keys.filter(|key| !self.omitted.contains(&key.name))
    }

    fn render(&self) -> String {
        let mut text = String::from("| key | value | meaning |\n|---|---|---|\n");
        for key in self.shown() {
            let value = joined(alternatives(&key.value));
            for cell in [code(key.name), value, meaning(key)] {
                let space = if cell.is_empty() { "" } else { " " };
                text += &format!("|{space}{} ", cell.replace('|', r"\|"));
            }
            text += "|\n";
        }
        text
    }
}

/// Returns the text about a key. It names the default value.
fn meaning(key: &Key) -> String {
    let own = match key.reference {
        "" => key.description,
        reference => reference,
    };
    let names_default = own.to_lowercase().contains("default");
    let default = key.default.filter(|_| !names_default).map(code);
    let required = key.required && !own.starts_with("required");
    let mut parts = Vec::new();
    parts.extend(required.then(|| String::from("required")));
    parts.extend((!own.is_empty()).then(|| own.to_owned()));
    let text = parts.join("; ");
    match default {
        None => text,
        Some(default) if text.is_empty() => format!("default {default}"),
        Some(default) => format!("{}. Default {default}", text.trim_end_matches('.')),
    }
}

/// Returns the kinds of values that a type accepts, for people.
fn alternatives(value: &Type) -> Vec<String> {
    let text = |text: &str| vec![text.to_owned()];
    match *value {
        Type::Any => Vec::new(),
        Type::Json(kinds) => kinds.iter().flat_map(|kind| kind_of(kind)).collect(),
        Type::NonEmptyText | Type::Pattern(_) => text("text"),
        Type::Integer(from, None) => vec![format!("whole number from {from}")],
        Type::Integer(from, Some(to)) => vec![format!("whole number from {from} to {to}")],
        Type::Words(words) | Type::AnyCase(words) => vec![choice(words)],
        Type::AnyCaseOrExpression(words) => vec![choice(words), String::from("expression")],
        Type::Exactly(value) => vec![code(value)],
        Type::Def(name) => defined(name),
        Type::ListOf(_) => text("list"),
        Type::ListOrNull(_) => owned(&["list", "null"]),
        Type::MapOf(_) | Type::Map(_) => text("map"),
        Type::MapOrNull(_) => owned(&["map", "null"]),
        Type::AnyOf(types) | Type::OneOf(types) => types.iter().flat_map(alternatives).collect(),
        Type::About(_, value) => alternatives(value),
        Type::WithRules(rules, value) => {
            let rules: Json = serde_json::from_str(rules).unwrap();
            match rules["enum"].as_array() {
                Some(words) => words.iter().map(|word| code(&word.to_string())).collect(),
                None => alternatives(value),
            }
        }
    }
}

/// Returns the words for a type of JSON.
fn kind_of(kind: &str) -> Vec<String> {
    owned(match kind {
        "string" => &["text"],
        "integer" => &["whole number"],
        "boolean" => &["true", "false"],
        "array" => &["list"],
        "object" => &["map"],
        "number" => &["number"],
        "null" => &["null"],
        other => panic!("JSON has no type `{other}`"),
    })
}

/// Returns the words for a [`Definition`].
fn defined(name: &str) -> Vec<String> {
    owned(match name {
        "action" => &["action"],
        "actions" => &["actions"],
        "actionOrActions" => &["action", "actions"],
        "actionName" => &["name of an action"],
        "condition" => &["condition"],
        "delay" => &["duration", "`server`", "map"],
        "duration" => &["duration"],
        "expression" => &["expression"],
        "retryPolicy" => &["`none`", "map"],
        "secure" => &["list"],
        "alert" | "authentication" | "limit" | "runAfter" | "test" | "workflow" => &["map"],
        other => panic!("the tables have no word for values of `{other}`"),
    })
}

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn choice(words: &[&str]) -> String {
    let words: Vec<String> = words.iter().map(|word| code(word)).collect();
    words.join(" ")
}

fn code(json: &str) -> String {
    format!("`{}`", json.trim_matches('"'))
}

fn joined(alternatives: Vec<String>) -> String {
    let mut different: Vec<String> = Vec::new();
    for one in alternatives {
        if !different.contains(&one) {
            different.push(one);
        }
    }
    match different.pop() {
        Some(last) if !different.is_empty() => format!("{} or {last}", different.join(", ")),
        last => last.unwrap_or_default(),
    }
}

fn pages() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference");
    let entries = folder.read_dir().unwrap();
    let mut pages: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    pages.sort();
    pages
}

const BEGIN: &str = "<!-- keys: ";
const END: &str = "<!-- end -->\n";

/// Returns a page in which every table is replaced by that of the vocabulary. Adds the tables' names to `names`.
fn with_tables(page: &str, names: &mut BTreeSet<&'static str>) -> String {
    let mut parts = page.split(BEGIN);
    let mut text = parts.next().unwrap().to_owned();
    for part in parts {
        let (name, part) = part.split_once(" -->\n").unwrap();
        let table = TABLES.iter().find(|table| table.name == name);
        let table = table.unwrap_or_else(|| panic!("the vocabulary has no table `{name}`"));
        assert!(names.insert(table.name), "two tables `{name}`");
        let (_, rest) = part.split_once(END).unwrap();
        text += &format!("{BEGIN}{name} -->\n{}{END}{rest}", table.render());
    }
    text
}

#[test]
#[allow(clippy::disallowed_methods, reason = "it reads and writes pages")]
fn tables_of_the_reference_match_the_vocabulary() {
    let mut names = BTreeSet::new();
    let mut different = Vec::new();
    for path in pages() {
        let page = std::fs::read_to_string(&path).unwrap();
        let text = with_tables(&page, &mut names);
        if std::env::var_os("WINDLASS_BLESS").is_some() {
            std::fs::write(&path, text).unwrap();
        } else if text != page {
            different.push(path);
        }
    }
    assert!(
        different.is_empty(),
        "WINDLASS_BLESS=1 writes the tables of these pages: {different:?}"
    );
    let without_page = TABLES.iter().filter(|table| !names.contains(table.name));
    let without_page: Vec<&str> = without_page.map(|table| table.name).collect();
    assert!(without_page.is_empty(), "no page has {without_page:?}");
}

/// A key's name, description and reference text. The texts distinguish keys of the same name in different maps.
type Identity = (&'static str, &'static str, &'static str);

fn identity(key: &Key) -> Identity {
    (key.name, key.description, key.reference)
}

fn collect_map(map: &'static Map, found: &mut BTreeSet<Identity>) {
    for key in map.keys.iter().copied().flatten() {
        if !key.description.contains("no effect") {
            found.insert(identity(key));
        }
        collect(&key.value, found);
    }
    for case in map.cases {
        collect_map(&case.then, found);
    }
}

fn collect(value: &'static Type, found: &mut BTreeSet<Identity>) {
    match *value {
        Type::Map(map) | Type::MapOrNull(map) => collect_map(map, found),
        Type::ListOf(value) | Type::ListOrNull(value) | Type::MapOf(value) => collect(value, found),
        Type::About(_, value) | Type::WithRules(_, value) => collect(value, found),
        Type::AnyOf(types) | Type::OneOf(types) => {
            types.iter().for_each(|value| collect(value, found));
        }
        Type::Any | Type::Json(_) | Type::NonEmptyText | Type::Pattern(_) | Type::Integer(..) => {}
        Type::Words(_) | Type::AnyCase(_) | Type::AnyCaseOrExpression(_) | Type::Exactly(_) => {}
        // The caller collects the keys of definitions separately (see `formats`).
        Type::Def(_) => {}
    }
}

type Format = (
    &'static str,
    Vec<&'static Map>,
    &'static [Definition],
    &'static str,
);

fn formats() -> [Format; 3] {
    let actions = loom::TYPES.iter().map(|action| &action.map).collect();
    [
        ("Loom", actions, loom::DEFINITIONS, LOOM_ELSEWHERE),
        (
            "The Edge Agent",
            vec![&tea::ROOT],
            tea::DEFINITIONS,
            TEA_ELSEWHERE,
        ),
        ("canvas", Vec::new(), canvas::DEFINITIONS, CANVAS_ELSEWHERE),
    ]
}

#[test]
fn every_key_is_in_a_table_or_elsewhere() {
    let shown = TABLES.iter().map(|table| table.keys);
    let shown: BTreeSet<Identity> = shown
        .chain([NO_EFFECT])
        .flat_map(|keys| keys.iter().copied().flatten())
        .map(identity)
        .collect();
    for (format, maps, definitions, elsewhere) in formats() {
        let mut keys = BTreeSet::new();
        maps.iter().for_each(|map| collect_map(map, &mut keys));
        let definitions = definitions.iter();
        definitions.for_each(|definition| collect(&definition.value, &mut keys));
        let without_table: BTreeSet<&str> = keys.difference(&shown).map(|key| key.0).collect();
        let elsewhere: BTreeSet<&str> = elsewhere.split(' ').collect();
        let wrong: Vec<_> = without_table.symmetric_difference(&elsewhere).collect();
        assert!(
            wrong.is_empty(),
            "{format}: add new keys to TABLES, or to ELSEWHERE if the page has them in its text, and remove old ones: {wrong:?}"
        );
    }
}
