//! Loom files as users write them: the first examples as bare actions, and the same content in YAML and JSON.

mod cli;
mod nested;

use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use windlass_formats::Caps;
use windlass_model::hir::Workflow;
use windlass_model::model::Dialect;
use windlass_source::source::Bundle;

fn read(path: &str, text: &str) -> Workflow {
    let bundle = Bundle::single(path, text);
    let (workflow, diagnostics) = windlass_formats::read(&bundle, None, &Caps::default());
    workflow.unwrap_or_else(|| panic!("{}", diagnostics.render(&bundle, false)))
}

/// The tree without its source positions.
fn shape(workflow: &Workflow) -> String {
    let text = format!("{workflow:?}");
    let mut out = String::new();
    let mut rest = text.as_str();
    while let Some(start) = rest.find("Span {") {
        out.push_str(&rest[..start]);
        let end = rest[start..].find('}').unwrap();
        rest = &rest[start + end + 1..];
    }
    out.push_str(rest);
    out
}

#[test]
fn the_examples_of_the_seed_are_workflows() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/seed");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let json = read(path.to_str().unwrap(), &text);
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        let yaml = serde_yaml::to_string(&value).unwrap();
        let name = path.with_extension("yaml");
        let yaml = read(name.to_str().unwrap(), &yaml);
        assert_eq!(shape(&json), shape(&yaml), "{}", path.display());
        count += 1;
    }
    assert!(count >= 10, "only {count} examples");
}

#[test]
fn the_examples_have_nothing_to_complain_about() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|ending| ending != "yaml") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let bundle = Bundle::single(path.to_str().unwrap(), text);
        let (workflow, diagnostics) = windlass_formats::read(&bundle, None, &Caps::default());
        assert!(
            workflow.is_some() && diagnostics.is_empty(),
            "{}",
            diagnostics.render(&bundle, false)
        );
        count += 1;
    }
    assert!(count >= 6, "only {count} examples");
}

/// The first examples are JSON, which has no place for a modeline.
fn is_json(path: &std::path::Path) -> bool {
    path.extension().is_some_and(|ending| ending == "json")
}

/// Every example names the schema with which an editor checks it, and is valid under that schema.
#[test]
fn the_examples_and_the_seed_are_what_the_schema_says() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let files = |folder: &str| {
        let entries = std::fs::read_dir(root.join(folder)).unwrap();
        entries.map(|entry| entry.unwrap().path()).filter(|path| {
            let ending = path.extension().and_then(|ending| ending.to_str());
            matches!(ending, Some("yaml" | "json"))
        })
    };
    let mut count = 0;
    for path in files("examples").chain(files("tests/seed")) {
        let text = std::fs::read_to_string(&path).unwrap();
        let modeline = "# yaml-language-server: $schema=";
        let first = text.lines().next().unwrap();
        let schema = match first.strip_prefix(modeline) {
            Some(schema) => path.parent().unwrap().join(schema),
            None => {
                assert!(is_json(&path), "{} has no modeline", path.display());
                root.join("schemas/loom.json")
            }
        };
        let schema = std::fs::read_to_string(schema).unwrap();
        let schema: serde_json::Value = serde_json::from_str(&schema).unwrap();
        let document: serde_json::Value = serde_yaml::from_str(&text).unwrap();
        let validator = jsonschema::validator_for(&schema).unwrap();
        let errors: Vec<String> = validator
            .iter_errors(&document)
            .map(|error| format!("{error} at {}", error.instance_path()))
            .collect();
        assert!(errors.is_empty(), "{}: {errors:?}", path.display());
        count += 1;
    }
    assert!(count >= 18, "only {count} files");
}

/// The schema files that editors and the examples use are those of this version. `WINDLASS_BLESS=1` writes them.
#[test]
fn the_schemas_in_the_repository_are_those_of_the_program() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    for format in ["loom", "azure", "tea", "canvas"] {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_windlass"))
            .args(["schema", format])
            .output()
            .unwrap();
        let file = root.join(format!("schemas/{format}.json"));
        if std::env::var_os("WINDLASS_BLESS").is_some() {
            std::fs::write(&file, &output.stdout).unwrap();
        }
        let stdout = String::from_utf8(output.stdout).unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), stdout, "{format}");
    }
}

/// Each key that a schema knows is on a page. `windlass-formats` compares the tables of keys with the vocabulary.
#[test]
fn the_reference_has_the_keys_of_the_schemas() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let folders = ["docs/reference", "docs/guides"].map(|name| root.join(name).read_dir().unwrap());
    let pages_of = folders.into_iter().flatten();
    let everywhere: Vec<String> = pages_of
        .map(|entry| std::fs::read_to_string(entry.unwrap().path()).unwrap())
        .collect();
    let words = everywhere
        .iter()
        .flat_map(|text| text.split(|char: char| !is_word(char)));
    let written: BTreeSet<&str> = words.collect();
    for format in ["loom", "tea", "canvas"] {
        let text = std::fs::read_to_string(root.join(format!("schemas/{format}.json"))).unwrap();
        let mut keys = BTreeMap::new();
        collect_keys(&serde_json::from_str(&text).unwrap(), &mut keys);
        for (key, has_effect) in &keys {
            let is_written = written.contains(key.as_str());
            assert!(
                is_written || !has_effect,
                "no page has the key `{key}` of {format}"
            );
        }
    }
}

fn is_word(char: char) -> bool {
    char.is_ascii_alphanumeric() || char == '_' || char == '$'
}

/// The keys of a schema, and whether they have an effect.
fn collect_keys(schema: &serde_json::Value, keys: &mut BTreeMap<String, bool>) {
    match schema {
        serde_json::Value::Object(members) => {
            for (name, member) in members {
                if name == "properties" {
                    for (key, rule) in member.as_object().unwrap() {
                        let about = rule["description"].as_str().unwrap_or_default();
                        *keys.entry(key.clone()).or_default() |= !about.contains("no effect");
                    }
                }
                collect_keys(member, keys);
            }
        }
        serde_json::Value::Array(items) => items.iter().for_each(|item| collect_keys(item, keys)),
        _ => {}
    }
}

/// The schema of `windlass schema` refuses what the binary refuses for its shape.
#[test]
fn the_schemas_refuse_what_is_refused() {
    let schema = |format: &str| {
        let binary = std::process::Command::new(env!("CARGO_BIN_EXE_windlass"))
            .args(["schema", format])
            .output();
        let schema: serde_json::Value = serde_json::from_slice(&binary.unwrap().stdout).unwrap();
        jsonschema::validator_for(&schema).unwrap()
    };
    let loom = schema("loom");
    let takes = |validator: &jsonschema::Validator, text: &str| {
        let document: serde_json::Value = serde_yaml::from_str(text).unwrap();
        let errors: Vec<String> = validator
            .iter_errors(&document)
            .map(|error| format!("{error} at {}", error.instance_path()))
            .collect();
        errors
    };
    let action =
        |action: &str| format!("variables: {{ t: PT5S, n: 1 }}\nactions: {{ a: {{ {action} }} }}");
    for good in [
        "type: COMPOSE, inputs: 1",
        "type: compose, inputs: 1, x-note: mine",
        "type: wait, inputs: PT5S",
        "type: wait, inputs: 1h30m",
        "type: wait, inputs: \"@variables('t')\"",
        "type: wait, inputs: { interval: { count: 5, unit: Seconds } }",
        "type: wait, interval: { interval: { count: \"@variables('n')\", unit: day } }",
        "type: wait, inputs: { count: 5, unit: minute }",
        "type: wait, interval: P1DT2H30M0.5S",
        "type: wait, interval: P2W",
        "type: wait, interval: \"PT1,5S\"",
        "type: wait, interval: \"PT@{variables('n')}S\"",
        "type: http, method: get, uri: \"https://example.org\", timeout: \"{{ t }}\"",
        "type: compose, inputs: 1, retry: { type: Fixed, interval: PT1S, count: 2 }",
        "type: terminate, runStatus: succeeded",
        "type: http, uri: \"https://example.org\", check: false, parse: json",
        "type: http, inputs: { uri: \"https://example.org\", page: \"@variables('t')\", parse: json, check: false }",
        "type: until, expression: \"@true\", actions: { b: { type: compose, inputs: 1 } }",
        "type: until, condition: \"@true\", on_limit: Pause, limit: { count: \"@inputs('n')\" }, actions: { b: { type: compose, inputs: 1 } }",
    ] {
        let text = action(good);
        assert_eq!(takes(&loom, &text), Vec::<String>::new(), "{good}");
        read("good.yaml", &text);
    }
    for bad in [
        "type: htpp, uri: x",
        "type: sleep, interval: PT5S",
        "type: compose, inputs: 1, wherever: 2",
        "type: wait, inputs: 5 minutes",
        "type: wait, interval: PT5X",
        "type: wait, interval: 5x",
        "type: wait, interval: P1W2D",
        "type: wait, interval: PT",
        "type: wait, interval: PT5",
        "type: wait, interval: PT5M3H",
        "type: wait, interval: P1Y",
        "type: wait, interval: { count: 5, unit: fortnight }",
        "type: wait, interval: { count: 5 }",
        "type: http, method: GRAB, uri: \"https://example.org\"",
        "type: http, uri: \"https://example.org\", timeout: 30 s",
        "type: compose, inputs: 1, retry: { type: sometimes }",
        "type: compose, inputs: 1, retry: { interval: soon }",
        "type: compose, inputs: 1, runAfter: { b: [Suceeded] }",
        "type: terminate, runStatus: Done",
        "type: until, condition: \"@true\", on_limit: explode, actions: { b: { type: compose, inputs: 1 } }",
        "type: until, condition: \"@true\", limit: { count: many }, actions: { b: { type: compose, inputs: 1 } }",
        "type: until, condition: \"@true\", delay: soon, actions: { b: { type: nope } }",
    ] {
        let text = action(bad);
        assert!(!takes(&loom, &text).is_empty(), "{bad}");
        let bundle = Bundle::single("bad.yaml", text);
        let (workflow, _) = windlass_formats::read(&bundle, None, &Caps::default());
        assert!(workflow.is_none(), "{bad}");
    }
    let tea = schema("tea");
    let node = |node: &str| format!("name: t\nnodes: [{{ name: a, {node} }}]\n");
    for good in [
        "uses: wait, with: { interval: PT1S }",
        "uses: actions.llm_call, timeout: PT5S, with: { prompt: hi }",
    ] {
        assert_eq!(takes(&tea, &node(good)), Vec::<String>::new(), "{good}");
    }
    for bad in [
        "uses: llm.cal",
        "uses: llm.call, timeout: soon",
        "run: x, language: perl",
    ] {
        assert!(!takes(&tea, &node(bad)).is_empty(), "{bad}");
    }
    let canvas = schema("canvas");
    let text = std::fs::read_to_string("tests/kills/canvas.yaml").unwrap();
    assert_eq!(takes(&canvas, &text), Vec::<String>::new());
    let slip = text.replacen("type: loop", "type: lopp", 1);
    assert_ne!(slip, text);
    assert!(!takes(&canvas, &slip).is_empty());
}

/// An editor and the binary know the same keys: each key of any action is tried with each type of action.
#[test]
fn an_action_has_the_keys_that_its_schema_says() {
    let schema = windlass_formats::json_schema(Dialect::Loom).unwrap();
    let schema: serde_json::Value = serde_json::from_str(schema).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let action = &schema["$defs"]["action"];
    let types = action["properties"]["type"]["examples"].as_array().unwrap();
    let branches = action["allOf"].as_array().unwrap().iter();
    let properties = branches.map(|branch| branch["then"]["properties"].as_object().unwrap());
    let mut keys: BTreeSet<&str> = BTreeSet::new();
    keys.extend(properties.flat_map(|properties| properties.keys().map(String::as_str)));
    // What `inputs` of a loop means depends on their content.
    keys.remove("inputs");
    let mut actions = Vec::new();
    for key in keys {
        actions.extend(types.iter().map(|kind| json!({ "type": kind, key: kind })));
        let closed = ["http", "shell", "waitForSignal"];
        actions.extend(closed.map(|kind| json!({ "type": kind, "inputs": { key: kind } })));
    }
    assert!(actions.len() > 1_000, "only {} keys", actions.len());
    for action in actions {
        let document = json!({ "actions": { "a": action } });
        let mut errors = validator.iter_errors(&document);
        let refused = errors.any(|error| error.to_string().contains("was unexpected"));
        let bundle = Bundle::single("keys.json", document.to_string());
        let (_, diagnostics) = windlass_formats::read(&bundle, None, &Caps::default());
        let unknown = diagnostics.render(&bundle, false).contains("unknown-key");
        assert_eq!(refused, unknown, "{document}");
    }
}

#[test]
fn scopes_nest_as_deep_as_a_file_may() {
    // Each scope needs two levels of the file, and the surrounding keys need some more.
    let nested = |depth: usize| {
        let open: String = (0..depth)
            .map(|level| format!("{{type: scope, actions: {{s{level}: "))
            .collect();
        format!(
            "actions: {{all: {open}{{type: compose, inputs: 1}}{}}}",
            "}}".repeat(depth)
        )
    };
    let workflow = read("deep.yaml", &nested(60));
    let source = windlass_machine::program::ProgramHash([0; 32]);
    let caps = windlass_machine::program::Caps {
        count: 1000,
        timeout: std::time::Duration::from_secs(3600),
    };
    assert!(windlass_machine::compile::compile(&workflow, source, caps).is_ok());
    let bundle = Bundle::single("deep.yaml", nested(70));
    let (workflow, diagnostics) = windlass_formats::read(&bundle, None, &Caps::default());
    assert!(workflow.is_none());
    assert!(diagnostics.render(&bundle, false).contains("too-deep"));
}

/// A template may read exactly the members that a run has.
#[test]
fn every_member_of_a_loop_is_known_and_there() {
    let place = crate::life::process::Place::new();
    let text = "name: members\nactions:\n  each:\n    type: foreach\n    foreach: [7]\n    actions:\n      all:\n        type: compose\n        inputs: \"{{ [loop.index, loop.count, loop.result, loop.feedback, loop.item, loops.each.item, loop.started_at[:2]] | tojson }}\"\n";
    let file = place.file("members.yaml", text);
    let outputs = place.json(&["run", &file, "-o", "json"]);
    let all = outputs["each"][0]["all"].as_str().unwrap();
    let all: serde_json::Value = serde_json::from_str(all).unwrap();
    assert_eq!(all, json!([0, 1, null, null, 7, 7, "20"]));
}
