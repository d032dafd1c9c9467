//! Each text is a tree whose values have places in it, or its mistakes have places in it. JSON values are the same as
//! those of another JSON reader. The first byte chooses the kind: `j` a file of JSON, `v` a value as in a request, and
//! for anything else the format (YAML or JSON) is detected.

use windlass_expression::Value;
use windlass_source::diagnostic::{Diagnostic, Diagnostics};
use windlass_source::source::{Bundle, Kind, MAX_DEPTH, MAX_NODES, Node, Span, parse};

pub fn check(bytes: &[u8]) -> bool {
    let Some((kind, bytes)) = bytes.split_first() else {
        return false;
    };
    let Ok(text) = std::str::from_utf8(bytes) else {
        return false;
    };
    match kind {
        b'j' => tree("fuzz.json", text),
        b'v' => value(text),
        _ => tree("fuzz.yaml", text),
    }
}

fn value(text: &str) -> bool {
    let Ok(value) = Value::from_json(text) else {
        return false;
    };
    assert!(value.depth_within(MAX_DEPTH), "it nests too deep");
    let written = value.to_json();
    let again = Value::from_json(&written).expect("what was written can be read");
    assert_eq!(again, value);
    assert_eq!(again.to_json(), written);
    true
}

fn tree(path: &str, text: &str) -> bool {
    let bundle = Bundle::single(path, text);
    let content = bundle.files[0].content();
    let (node, mistakes) = parse(&bundle, 0);
    assert!(
        node.is_some() || !mistakes.is_empty(),
        "refused without a word"
    );
    let lines = content.split(['\n', '\r']).count();
    let within = |span: Span| {
        assert!(
            span.line >= 1 && span.column >= 1 && span.length >= 1,
            "{span:?}"
        );
        assert!(span.line as usize <= lines + 1, "{span:?} of {lines} lines");
    };
    let mut shown = Diagnostics::default();
    for mistake in &mistakes {
        within(mistake.span);
        shown.push(Diagnostic::from(mistake.clone()));
    }
    let _ = shown.render(&bundle, false);
    let Some(node) = node else {
        return false;
    };
    let mut open = vec![(&node, 1)];
    let mut nodes = 0;
    while let Some((node, depth)) = open.pop() {
        nodes += 1;
        assert!(depth <= MAX_DEPTH + 1, "it nests too deep");
        within(node.span);
        match &node.kind {
            Kind::Array(items) => open.extend(items.iter().map(|item| (item, depth + 1))),
            Kind::Object(entries) => {
                let mut keys: Vec<&str> = entries.iter().map(|entry| &*entry.key).collect();
                keys.sort_unstable();
                assert!(
                    keys.windows(2).all(|pair| pair[0] != pair[1]),
                    "a key twice"
                );
                for entry in entries {
                    within(entry.key_span);
                    open.push((&entry.value, depth + 1));
                }
            }
            Kind::String(text) => {
                for at in [0, text.text.len() / 2, text.text.len()] {
                    within(node.place(content, at, 1));
                }
            }
            Kind::Null | Kind::Bool(_) | Kind::Int(_) | Kind::Float(_) => {}
        }
    }
    assert!(nodes <= MAX_NODES, "{nodes} values");
    if path.ends_with("json")
        && mistakes.is_empty()
        && let Ok(other) = serde_json::from_str::<serde_json::Value>(content)
    {
        same(&node, &other);
    }
    true
}

/// The tree is equal to what serde_json reads from the same text.
fn same(node: &Node, other: &serde_json::Value) {
    let equal = match (&node.kind, other) {
        (Kind::Null, serde_json::Value::Null) => true,
        (Kind::Bool(one), serde_json::Value::Bool(other)) => one == other,
        (Kind::Int(one), serde_json::Value::Number(other)) => other.as_i64() == Some(*one),
        (Kind::Float(one), serde_json::Value::Number(other)) => other.as_f64() == Some(*one),
        (Kind::String(one), serde_json::Value::String(other)) => one.text == *other,
        (Kind::Array(one), serde_json::Value::Array(other)) => {
            one.iter()
                .zip(other)
                .for_each(|(one, other)| same(one, other));
            one.len() == other.len()
        }
        (Kind::Object(one), serde_json::Value::Object(other)) => {
            for (entry, (key, value)) in one.iter().zip(other) {
                assert_eq!(entry.key, *key);
                same(&entry.value, value);
            }
            one.len() == other.len()
        }
        _ => false,
    };
    assert!(equal, "{node:?} is {other}");
}
