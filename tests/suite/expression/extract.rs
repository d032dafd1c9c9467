//! How values are found in texts.

use windlass_expression::{Extract, Value};

#[test]
fn paths_lead_to_one_value() {
    let text = r#" {"a": {"b c": [10, 20, {"d": true}]}} "#;
    for (path, found) in [
        ("$.a['b c'][0]", "10"),
        ("a[\"b c\"][-1].d", "true"),
        ("$.a.x", "null"),
        ("$.a['b c'][7]", "null"),
        ("$.a['b c'][-7]", "null"),
        ("$", r#"{"a":{"b c":[10,20,{"d":true}]}}"#),
    ] {
        let extract = Extract::path(path).unwrap();
        assert_eq!(extract.find(text).to_json(), found, "{path}");
    }
    assert_eq!(
        Extract::path("$.a").unwrap().find("no json").to_json(),
        "null"
    );
    for (path, mistake) in [
        ("a[", "no closing"),
        ("a[b]", "only names and numbers"),
        ("a['b]", "closing quote"),
        ("a..b", "name is missing"),
        ("$.*", "without `*`"),
        ("a[0]b", "expected `.`"),
    ] {
        let error = Extract::path(path).unwrap_err();
        assert!(error.contains(mistake), "{path}: {error}");
    }
}

#[test]
fn patterns_give_their_first_group() {
    let find = |pattern: &str, text: &str| Extract::regex(pattern).unwrap().find(text);
    assert_eq!(find(r"version:\s*(\d+)", "version: 12").to_json(), "\"12\"");
    assert_eq!(find(r"\d+", "a 7 b 8").to_json(), "\"7\"");
    assert_eq!(find(r"x(y)?", "x").to_json(), "\"x\"");
    assert_eq!(find(r"z", "x"), Value::Null);
    assert!(Extract::regex("(").unwrap_err().contains("unclosed group"));
    assert!(
        Extract::regex(r"(\w{1000}){1000}")
            .unwrap_err()
            .contains("too large")
    );
}
