//! Every value of many files is set, set back and removed.
//! The text must then have the intended value, and nothing else in it may change.

use super::{Document, Edit, edit, panel, remove, set};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use windlass_engine::Bundle;

/// Number of values in each file that are tried.
const TRIED: usize = 10;

pub(crate) fn files() -> Vec<PathBuf> {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let mut open: Vec<PathBuf> = [
        "examples",
        "tests/canvas",
        "tests/tea",
        "tests/azure",
        "tests/graph",
    ]
    .map(|folder| root.join(folder))
    .into();
    let mut found = Vec::new();
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let extension = path.extension().and_then(|extension| extension.to_str());
            match extension {
                _ if path.is_dir() => open.push(path),
                Some("yaml" | "yml" | "json") => found.push(path),
                _ => {}
            }
        }
    }
    found.sort();
    found
}

fn read(path: &Path) -> Option<Document> {
    let text = std::fs::read_to_string(path).ok()?;
    Document::read(Bundle::single(path.to_string_lossy(), text), None).ok()
}

/// Returns the pointers of the values. If there are many, returns only some of them.
fn pointers(value: &Value) -> Vec<String> {
    fn all(value: &Value, at: &str, found: &mut Vec<String>) {
        match value {
            Value::Object(members) => {
                for (key, member) in members {
                    let at = format!("{at}/{}", super::nodes::escaped(key));
                    found.push(at.clone());
                    all(member, &at, found);
                }
            }
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    let at = format!("{at}/{index}");
                    found.push(at.clone());
                    all(item, &at, found);
                }
            }
            _ => {}
        }
    }
    let mut found = Vec::new();
    all(value, "", &mut found);
    let step = found.len().div_ceil(TRIED).max(1);
    found.into_iter().step_by(step).collect()
}

fn other(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::from(format!("{text}x")),
        Value::Number(number) => Value::from(number.as_i64().unwrap_or(0) + 1),
        Value::Bool(value) => Value::from(!value),
        Value::Null => Value::from("something"),
        Value::Array(items) => {
            let mut items = items.clone();
            items.push(items.first().cloned().unwrap_or(json!(7)));
            Value::Array(items)
        }
        Value::Object(members) => {
            let mut members = members.clone();
            members.insert(
                String::from("x-new"),
                json!({ "a": [1, "b: c"], "d": "e\nf\n" }),
            );
            Value::Object(members)
        }
    }
}

/// Returns true if a text has anchors and aliases, which an edit may refuse to change.
fn is_shared(text: &str) -> bool {
    text.contains("<<:") || text.contains(": &") || text.contains("- &") || text.contains(": *")
}

/// Returns the value of a text, or `None` if it cannot be read.
pub(crate) fn value(path: &Path) -> Option<Value> {
    read(path).map(|document| document.value)
}

#[test]
fn every_value_is_set_and_put_back() {
    let (mut tried, mut back, mut seen) = (0, 0, 0);
    for path in files() {
        let Some(document) = read(&path) else {
            continue;
        };
        let before = document.text().to_owned();
        seen += 1;
        for pointer in pointers(&document.value) {
            let old = document
                .value
                .pointer(&pointer)
                .cloned()
                .unwrap_or_default();
            let mut meant = document.value.clone();
            set(&mut meant, &pointer, other(&old)).unwrap();
            let mut edited = read(&path).unwrap();
            // `replace_value` itself compares the value of the new text with the intended value.
            match edited.replace_value(meant) {
                Ok(()) => {}
                Err(_) if is_shared(&before) => continue,
                Err(why) => panic!("{}: {pointer}: {why}", path.display()),
            }
            tried += 1;
            let changed = super::difference(&before, edited.text());
            let lines = |value: &Value| value.to_string().matches("\\n").count();
            if lines(&old) == 0 && !matches!(old, Value::Null) {
                let told: Vec<_> = changed.iter().map(|one| &one.new_text).collect();
                assert!(
                    changed.len() <= 3,
                    "{}: {pointer}: {told:?}",
                    path.display()
                );
            }
            let mut again = edited.value.clone();
            set(&mut again, &pointer, old).unwrap();
            if let Err(why) = edited.replace_value(again) {
                panic!("{}: {pointer}: back: {why}", path.display());
            }
            if edited.text() == before {
                back += 1;
            } else if std::env::var_os("WINDLASS_SHOW").is_some() {
                eprintln!("{}: {pointer}", path.display());
                eprintln!("{:?}", super::difference(&before, edited.text()));
            }
        }
    }
    println!("{seen} files, {tried} values set, {back} put back to the same text");
    assert!(seen > 100 && tried > 800, "{seen} {tried}");
    // The remaining texts had a special notation, such as folded texts or numbers in the form `1e3`.
    assert!(back * 100 >= tried * 97, "{back} of {tried}");
}

#[test]
fn every_value_is_taken_away() {
    let mut tried = 0;
    for path in files() {
        let Some(document) = read(&path) else {
            continue;
        };
        for pointer in pointers(&document.value) {
            let mut meant = document.value.clone();
            assert!(remove(&mut meant, &pointer));
            let mut edited = read(&path).unwrap();
            match edited.replace_value(meant) {
                Ok(()) => tried += 1,
                Err(_) if is_shared(document.text()) => {}
                Err(why) => panic!("{}: {pointer}: {why}", path.display()),
            }
        }
    }
    assert!(tried > 800, "{tried}");
}

#[test]
fn fields_of_every_panel_are_set_and_put_back() {
    let mut tried = 0;
    for path in files() {
        let Some(document) = read(&path) else {
            continue;
        };
        let before = document.text().to_owned();
        let nodes = document.nodes();
        for node in nodes.iter().take(12) {
            let Ok(panel) = panel(&document.bundle, None, &node.path, Some(1_000)) else {
                continue;
            };
            let fields = panel.sections.iter().flat_map(|section| &section.fields);
            for field in fields.filter(|field| !field.value.is_null()) {
                let mut edited = read(&path).unwrap();
                let new = match field.kind {
                    super::FieldKind::Table | super::FieldKind::Condition => continue,
                    _ => other(&field.value),
                };
                let value = super::panel::with_field(&edited, &node.path, &field.id, &new);
                match edited.replace_value(value.unwrap()) {
                    Ok(()) => {}
                    Err(_) if is_shared(&before) => continue,
                    Err(why) => panic!("{}: {} {}: {why}", path.display(), node.path, field.id),
                }
                // Changing the type would change the panel itself, so the old panel may not be available.
                let Ok(old) =
                    super::panel::with_field(&edited, &node.path, &field.id, &field.value)
                else {
                    continue;
                };
                edited.replace_value(old).unwrap();
                assert_eq!(
                    edited.value,
                    document.value,
                    "{} {}",
                    path.display(),
                    field.id
                );
                tried += 1;
            }
        }
    }
    println!("{tried} fields");
    assert!(tried > 500, "{tried}");
}

const YAML: &str = "# A loop.\nname: poll   # its name\nactions:\n  # until it is done\n  wait_for:\n    type: until\n    condition: \"@equals(body('check'), 'done')\"   # the end\n    limit: { count: 5, timeout: 1h }\n    actions:\n      check: { type: compose, inputs: done }   # looks\n      # the last one\n  after: { type: compose, inputs: \"@body('wait_for')\" }\n";

fn edited(text: &str, edits: Value) -> Result<String, String> {
    let edits: Vec<Edit> = serde_json::from_value(edits).unwrap();
    let file = if text.starts_with('{') {
        "a.json"
    } else {
        "a.yaml"
    };
    let bundle = Bundle::single(file, text);
    let done = edit(&bundle, None, &edits)?;
    assert_eq!(
        windlass_source::source::edited(text, &done.edits).as_deref(),
        Some(done.text.as_str())
    );
    Ok(done.text)
}

#[test]
fn an_edit_keeps_comments_and_layout() {
    let set = |field: &str, value: Value| {
        edited(
            YAML,
            json!([{ "op": "set", "node": "wait_for", "field": field, "value": value }]),
        )
        .unwrap()
    };
    assert_eq!(set("count", json!(7)), YAML.replace("count: 5", "count: 7"));
    let text = set("condition", json!("@equals(body('check'), 'ready')"));
    assert_eq!(text, YAML.replace("'done')", "'ready')"));
    let text = set("on_limit", json!("continue"));
    assert_eq!(text.replace("    on_limit: continue\n", ""), YAML);
    let text = set("retry_count", json!(2));
    assert!(text.contains("\n    retry: { count: 2 }\n"), "{text}");
    assert_eq!(
        set("timeout", Value::Null),
        YAML.replace("count: 5, timeout: 1h", "count: 5")
    );
    let refused = edited(
        YAML,
        json!([{ "op": "set", "node": "wait_for", "field": "timeout", "value": "soon" }]),
    );
    assert!(refused.unwrap_err().starts_with("line 8: "));
    let refused = edited(YAML, json!([{ "op": "delete", "node": "check" }])).unwrap_err();
    assert!(refused.contains("check"), "{refused}");

    let renamed = edited(
        YAML,
        json!([{ "op": "rename", "node": "wait_for/check", "name": "look" }]),
    )
    .unwrap();
    assert_eq!(renamed, YAML.replace("check", "look"));
    let added = edited(
        YAML,
        json!([
            { "op": "add", "where": "after", "node": "wait_for/check", "type": "http", "name": "fetch" },
            { "op": "add", "where": "before", "node": "wait_for", "type": "wait", "name": "first" },
        ]),
    );
    let added = added.unwrap();
    let first = "  first: { type: wait, inputs: 10s }\n";
    let fetch = "      fetch: { type: http, inputs: { method: GET, uri: https://example.org/ } }\n";
    assert!(added.contains(first) && added.contains(fetch), "{added}");
    assert_eq!(added.replace(first, "").replace(fetch, ""), YAML);
}

#[test]
fn an_edit_keeps_the_comments_of_other_entries() {
    let json = "{\n  \"actions\": { \"a\": { \"type\": \"compose\", \"inputs\": 1 } },\n  \"x-l\": [1, 2], // of l\n  // of m\n  /* z */ \"x-m\": 1\n}\n";
    let removed = edited(json, json!([{ "op": "remove", "pointer": "/x-l" }])).unwrap();
    assert_eq!(removed, json.replace("\"x-l\": [1, 2], // of l\n  ", ""));
    let yaml = "x-a: 2 # c\nactions: { a: { type: compose, inputs: 1 } }\n";
    let set = json!([{ "op": "set", "pointer": "/x-a", "value": "m\nl\n" }]);
    assert_eq!(
        edited(yaml, set).unwrap(),
        yaml.replace("2 # c", "\"m\\nl\\n\" # c")
    );
}

#[test]
fn an_operation_is_renamed_with_its_parts() {
    let text = "actions:\n  batch: { type: operation, inputs: { uri: https://a.example/ } }\n  batch.copy: { type: compose, inputs: 1 }\n  last:\n    type: compose\n    inputs: \"{{ actions['batch.status'].outputs }} {{ actions['batch.copy'].outputs }}\"\n  next: { type: compose, inputs: \"@outputs('batch.start')\" }\n";
    let renamed = edited(
        text,
        json!([{ "op": "rename", "node": "batch", "name": "job" }]),
    );
    let wanted = text
        .replace("batch: {", "job: {")
        .replace("'batch.start'", "'job.start'")
        .replace("'batch.status'", "'job.status'");
    assert_eq!(renamed.unwrap(), wanted);
}

#[test]
fn a_condition_without_braces_is_renamed() {
    let text = "actions:\n  look:\n    type: doUntil\n    condition: actions.check.outputs == 1 and actions['check'].status == 'Succeeded'\n    limit: { count: 2 }\n    actions:\n      check: { type: compose, inputs: 1, break_when: actions.check.outputs == 2 }\n  last: { type: compose, inputs: \"check actions.check {{ actions.look.outputs }}\" }\n";
    let rename = |name: &str| {
        let edits = json!([{ "op": "rename", "node": "look/check", "name": name }]);
        edited(text, edits).unwrap()
    };
    let all = |dot: &str, bracket: &str, key: &str| {
        text.replace("      check:", &format!("      {key}:"))
            .replace("actions.check.outputs", dot)
            .replace("actions['check']", bracket)
    };
    assert_eq!(
        rename("probe"),
        all("actions.probe.outputs", "actions['probe']", "probe")
            .replace("check actions.check {{", "check actions.probe {{")
    );
    // Names that Jinja reads after a dot as something else.
    for (name, key) in [("1a", "1a"), ("in", "in"), ("true", "\"true\"")] {
        let bracket = format!("actions['{name}']");
        let renamed = rename(name);
        assert!(
            renamed.contains(&format!("{bracket}.outputs == 1 and {bracket}.status")),
            "{renamed}"
        );
        assert!(renamed.contains(&format!("      {key}:")), "{renamed}");
    }
    let renamed = rename("it's");
    assert!(
        renamed.contains(r"actions['it\\'s'].outputs == 1"),
        "{renamed}"
    );
}

/// A key whose text is an expression without braces is one that the vocabulary declares as a condition.
#[test]
fn conditions_are_those_of_the_vocabulary() {
    for key in [
        "break_when",
        "condition",
        "continue_when",
        "done",
        "expect",
        "failed",
        "when",
        "where",
    ] {
        assert!(crate::schema::is_condition(key), "{key}");
    }
    for key in ["inputs", "run", "value", "actions", "until", "status"] {
        assert!(!crate::schema::is_condition(key), "{key}");
    }
}

/// A browser sends 1.0 as 1, 1e3 as 1000, and a long decimal as the nearest double.
#[test]
fn numbers_that_a_browser_sends_back_keep_their_text() {
    let text = "actions:\n  a:\n    type: compose\n    inputs: { rate: 1.0, many: 1e3, \
                long: 0.12345678901234567890, list: [2.0, 3.50], big: 9007199254740993, b: 1 }\n";
    let sent = json!({ "rate": 1, "many": 1000, "long": 0.123_456_789_012_345_68_f64,
                       "list": [2, 3.5], "big": 9_007_199_254_740_993_u64, "b": 2 });
    let set = json!([{ "op": "set", "pointer": "/actions/a/inputs", "value": sent }]);
    assert_eq!(edited(text, set).unwrap(), text.replace("b: 1", "b: 2"));
    let mut nearly = sent.clone();
    nearly["big"] = json!(9_007_199_254_740_992_u64);
    let set = json!([{ "op": "set", "pointer": "/actions/a/inputs", "value": nearly }]);
    assert!(edited(text, set).unwrap().contains("9007199254740992"));
}

#[test]
fn a_byte_order_mark_stays() {
    let text = "\u{feff}x-a: 1\nactions: { a: { type: compose, inputs: 1 } }\n";
    let set = json!([{ "op": "set", "pointer": "/x-a", "value": 2 }]);
    assert_eq!(edited(text, set).unwrap(), text.replace("x-a: 1", "x-a: 2"));
}

#[test]
fn a_pointer_is_read_as_the_rfc_says() {
    let text = "x-l: [1, 2]\nx~a: 1\nactions: { a: { type: compose, inputs: 1 } }\n";
    let set = |pointer: &str| {
        let set = json!([{ "op": "set", "pointer": pointer, "value": 3 }]);
        edited(text, set)
    };
    assert_eq!(set("/x-l/1").unwrap(), text.replace("2]", "3]"));
    assert_eq!(set("/x~0a").unwrap(), text.replace("a: 1", "a: 3"));
    for wrong in ["/x-l/01", "/x-l/+1", "/x-l/-1", "/x~a", "/x~2a", "x-l"] {
        let refused = set(wrong).unwrap_err();
        assert!(refused.contains(wrong), "{wrong}: {refused}");
    }
}

const DRAWN: &str = r#"nodes:
  - id: repeat   # the loop
    type: loop
    data:
      continueWhile: { output: count.n, operator: "<", value: 3 }
      maxIterations: 5
      inputMappings:
        # the number
        - { source: { type: builtin, name: iteration_count }, target: { node: count, input: i } }
      outputMappings:
        - { source: { node: count, output: n }, target: all, take: all }
      inlineWorkflow:
        nodes:
          - id: count
            type: function
            data:
              inputs: [{ name: i, type: number }]
              outputs: [{ name: n, type: number }]
              code: return { n = inputs.i }
"#;

#[test]
fn a_canvas_is_edited_in_place() {
    let bundle = Bundle::single("a.yaml", DRAWN);
    let panel = panel(&bundle, None, "repeat", Some(1_000)).unwrap();
    let field = |id: &str| {
        let mut fields = panel.sections.iter().flat_map(|section| &section.fields);
        fields.find(|field| field.id == id).unwrap().clone()
    };
    let parts = field("continue_while").parts.unwrap();
    assert_eq!(parts.output[0].value, "count.n");
    assert_eq!(parts.output[0].kind.as_deref(), Some("number"));
    assert_eq!(
        (field("max_iterations").value, field("max_iterations").cap),
        (json!(5), Some(1_000))
    );
    let rows = field("input_mappings").value;
    assert_eq!(
        rows,
        json!([{ "source": "builtin:iteration_count", "target": "count.i", "iterations": "all" }])
    );
    let mut more = field("output_mappings").value;
    more.as_array_mut()
        .unwrap()
        .push(json!({ "source": "count.n", "target": "last", "take": "last" }));
    let text = edited(
        DRAWN,
        json!([{ "op": "set", "node": "repeat", "field": "output_mappings", "value": more }]),
    );
    let row = "        - { source: { node: count, output: n }, target: last, take: last }\n";
    let text = text.unwrap();
    assert!(text.contains(row), "{text}");
    assert_eq!(text.replace(row, ""), DRAWN);

    let while_ = json!({ "output": "count.n", "operator": "<=", "value": 4 });
    let text = edited(
        DRAWN,
        json!([{ "op": "set", "node": "repeat", "field": "continue_while", "value": while_ }]),
    );
    assert_eq!(
        text.unwrap(),
        DRAWN.replace("\"<\", value: 3", "\"<=\", value: 4")
    );
    let text = edited(
        DRAWN,
        json!([
            { "op": "add", "where": "after", "node": "repeat/count", "type": "function", "name": "next", "x": 300, "y": 80,
              "value": { "type": "function", "data": { "inputs": [{ "name": "n", "type": "number" }], "outputs": [{ "name": "m", "type": "number" }], "code": "return { m = inputs.n }" } } },
            { "op": "connect", "from": "count.n", "to": "next.n", "in": "repeat" },
            { "op": "move", "node": "repeat/next", "x": 320, "y": 80.4 },
            { "op": "rename", "node": "repeat/count", "name": "counter" },
        ]),
    );
    let text = text.unwrap();
    assert!(text.contains("position: { x: 320, y: 80 }"), "{text}");
    assert!(text.contains("output: counter.n"), "{text}");
    assert!(
        text.contains("source: counter, target: next, sourceHandle: output:n"),
        "{text}"
    );
    let twice = edited(
        &text,
        json!([{ "op": "connect", "from": "counter.n", "to": "next.n", "in": "repeat" }]),
    );
    assert!(twice.unwrap_err().contains("connected already"));
    let text = edited(
        &text,
        json!([
            { "op": "disconnect", "from": "counter.n", "to": "next.n", "in": "repeat" },
            { "op": "delete", "node": "repeat/next" },
        ]),
    );
    assert!(!text.unwrap().contains("next"));
    let code = "code: return { n = inputs.i }";
    let text = DRAWN.replace(code, "code: \"return {{ count.n }}\"");
    let edits = json!([{ "op": "rename", "node": "repeat/count", "name": "it's" }]);
    let text = edited(&text, edits).unwrap();
    assert!(text.contains(r"nodes['it\\'s'].n"), "{text}");
}

#[test]
fn json_and_agents_are_edited_too() {
    let json_text = "{\n  // a comment\n  \"actions\": {\n    \"a\": { \"type\": \"compose\", \"inputs\": 1 }, // first\n    \"b\": { \"type\": \"compose\", \"inputs\": \"@body('a')\" }\n  }\n}\n";
    let text = edited(
        json_text,
        json!([{ "op": "rename", "node": "a", "name": "one" }]),
    )
    .unwrap();
    assert_eq!(
        text,
        json_text
            .replace("\"a\"", "\"one\"")
            .replace("body('a')", "body('one')")
    );
    let text = edited(
        json_text,
        json!([{ "op": "add", "where": "after", "node": "b", "type": "wait", "name": "c" }]),
    );
    let text = text.unwrap();
    assert!(text.contains("\"inputs\": \"@body('a')\" },\n    \"c\": { \"type\": \"wait\", \"inputs\": \"10s\" }\n  }"), "{text}");
    assert_eq!(
        edited(&text, json!([{ "op": "delete", "node": "c" }])).unwrap(),
        json_text
    );

    let agent = "name: a\nnodes:\n  - name: one   # first\n    run: return {}\n  - name: two\n    run: return {}\nedges:\n  - { from: __start__, to: one }\n  - { from: one, to: two }\n  - { from: two, to: __end__ }\n";
    let text = edited(
        agent,
        json!([{ "op": "add", "where": "after", "node": "one", "type": "while_loop", "name": "again" }]),
    );
    let text = text.unwrap();
    assert!(
        text.contains("{ from: again, to: two }") && text.contains("{ from: one, to: again }"),
        "{text}"
    );
    let text = edited(&text, json!([{ "op": "delete", "node": "again" }])).unwrap();
    assert!(text.contains("{ from: one, to: two }"), "{text}");
    let text = edited(
        agent,
        json!([{ "op": "rename", "node": "two", "name": "last" }]),
    )
    .unwrap();
    assert_eq!(text, agent.replace("two", "last"));
}

#[test]
fn the_smallest_of_each_type_loads() {
    use windlass_engine::Dialect;
    let empty = [
        (
            Dialect::Loom,
            "actions:\n  a: { type: compose, inputs: 1 }\nvariables: { result: 0, count: 0, all: [] }\n",
        ),
        (
            Dialect::Azure,
            "{\"definition\": {\"actions\": {\"a\": {\"type\": \"Compose\", \"inputs\": 1}}}}",
        ),
        (
            Dialect::Canvas,
            "nodes:\n  - { id: a, type: constant, data: { value: 1 } }\n",
        ),
        (
            Dialect::Tea,
            "name: a\nnodes:\n  - name: one\n    run: return {}\n",
        ),
    ];
    let mut wrong = Vec::new();
    for (dialect, text) in empty {
        let types = super::types(dialect);
        assert!(!types.is_empty(), "{}", dialect.as_str());
        for one in types {
            let add = json!([{ "op": "add", "where": "inside", "node": "", "type": one.kind }]);
            if let Err(why) = edited(text, add) {
                wrong.push(format!("{} {}: {why}", dialect.as_str(), one.kind));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_panel_has_one_field_for_each_key_at_the_place_that_the_file_uses() {
    for (keys, title) in [
        ("choices: [go]", "/actions/ask/title"),
        ("inputs: { choices: [go] }", "/actions/ask/inputs/title"),
        ("signal: go", "/actions/ask/title"),
    ] {
        let text = format!("actions:\n  ask: {{ type: waitForSignal, {keys} }}\n");
        let bundle = Bundle::single("w.yaml", &text);
        let panel = panel(&bundle, None, "ask", None).unwrap();
        let fields = panel.sections.iter().flat_map(|section| &section.fields);
        let titles: Vec<&str> = fields
            .filter(|field| field.label == "title")
            .map(|field| &*field.pointer)
            .collect();
        assert_eq!(titles, [title], "{keys}");
    }
}
