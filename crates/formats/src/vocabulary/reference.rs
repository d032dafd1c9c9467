//! Makes the tables of keys in docs/reference from the vocabulary, and compares them with the pages.
//! In a page, a table is between the lines `<!-- keys: NAME -->` and `<!-- end -->`. `WINDLASS_BLESS=1` writes the
//! tables.

use super::{Key, Type, canvas, loom, model, tea};
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
        &[model::MODEL, &[loom::AI_RATE, model::ANSWER_TIME]],
    ),
    table("loom operation", &[loom::OPERATION]),
    table("loom workflow", &[loom::CALLED_WORKFLOW]),
    table("loom appendFile", &[&[loom::PATH], loom::FILE]),
    table("loom loop", &[loom::LOOP]),
    table("loom limit", &[loom::LIMITS]),
    table("loom retry", loom::POLICY),
    table("loom schedule", &[loom::SCHEDULE]),
    Table {
        omitted: &["description", "version", "metadata", "$schema"],
        ..table("tea file", tea::ROOT.keys)
    },
    table("tea on_error", tea::ON_ERROR.keys),
    table("tea dynamic_parallel", &[tea::PARALLEL]),
    table("tea retry.loop", tea::CORRECTIONS.keys),
    table("tea reflection.loop", tea::REFLECTIONS.keys),
    Table {
        omitted: &["label", "nodeType", "inputs", "outputs"],
        ..table(
            "canvas loop",
            &[canvas::REFERENCE, canvas::LOOP, canvas::NODE_DATA],
        )
    },
];

impl Table {
    fn shown(&self) -> impl Iterator<Item = &'static Key> {
        let keys = self.keys.iter().copied().flatten();
        keys.filter(|key| !self.omitted.contains(&key.name))
    }

    fn render(&self) -> String {
        let mut text = String::from("| key | value | meaning |\n|---|---|---|\n");
        for key in self.shown() {
            let (value, meaning) = (alternatives(&key.value), meaning(key));
            let cells = [format!("`{}`", key.name), joined(value), meaning];
            let cells = cells.map(|cell| cell.replace('|', r"\|"));
            text += &format!("| {} |\n", cells.join(" | ").replace("  ", " "));
        }
        text
    }
}

fn meaning(key: &Key) -> String {
    let mut text = match key.reference {
        "" => key.description.to_owned(),
        reference => reference.to_owned(),
    };
    if key.required && !text.starts_with("required") {
        let before = if text.is_empty() {
            "required"
        } else {
            "required; "
        };
        text.insert_str(0, before);
    }
    if let Some(default) = key.default
        && !text.to_lowercase().contains("default")
    {
        let before = match text.is_empty() {
            true => "default",
            false => ". Default",
        };
        text = format!("{}{before} {}", text.trim_end_matches('.'), code(default));
    }
    text
}

/// Returns the kinds of values that a type accepts, for people.
fn alternatives(value: &Type) -> Vec<String> {
    let kinds: &[&str] = match *value {
        Type::Any => &[],
        Type::Json(kinds) => return kinds.iter().copied().flat_map(kind).collect(),
        Type::Name | Type::Pattern(_) => &["text"],
        Type::Integer(from, None) => return vec![format!("whole number from {from}")],
        Type::Integer(from, Some(to)) => {
            return vec![format!("whole number from {from} to {to}")];
        }
        Type::Words(words) | Type::AnyCase(words) => return vec![choice(words)],
        Type::Computed(words) => return vec![choice(words), String::from("expression")],
        Type::Exactly(value) => return vec![code(value)],
        Type::Def(name) => defined(name),
        Type::ListOf(_) => &["list"],
        Type::ListOrNull(_) => &["list", "null"],
        Type::MapOf(_) | Type::Map(_) => &["map"],
        Type::MapOrNull(_) => &["map", "null"],
        Type::AnyOf(types) | Type::OneOf(types) => {
            return types.iter().flat_map(alternatives).collect();
        }
        Type::About(_, value) => return alternatives(value),
        Type::With(rules, value) => {
            let rules: Json = serde_json::from_str(rules).unwrap();
            return match rules["enum"].as_array() {
                Some(words) => words.iter().map(|word| code(&word.to_string())).collect(),
                None => alternatives(value),
            };
        }
    };
    kinds.iter().map(|kind| (*kind).to_owned()).collect()
}

fn kind(kind: &str) -> Vec<String> {
    let words: &[&str] = match kind {
        "string" => &["text"],
        "integer" => &["whole number"],
        "boolean" => &["true", "false"],
        "array" => &["list"],
        "object" => &["map"],
        other => &[other],
    };
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn defined(name: &'static str) -> &'static [&'static str] {
    match name {
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
        "unit" => &["unit"],
        _ => &["map"],
    }
}

fn choice(words: &[&str]) -> String {
    words
        .iter()
        .map(|word| code(word))
        .collect::<Vec<_>>()
        .join(" ")
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

/// Returns a page with the tables of the vocabulary, and adds the names of these tables.
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
