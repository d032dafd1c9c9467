//! What the two readers return, the places in it, and what they refuse.

mod bundle;
mod oracle;

use std::sync::mpsc;
use std::thread;
use std::time::Duration;
use windlass_source::source::{Bundle, Kind, Node, parse, parse_yaml_1_1};

fn read(text: &str) -> Node {
    let (node, mistakes) = parse(&Bundle::single("w.yaml", text), 0);
    assert_eq!(mistakes, [], "{text}");
    node.expect("a tree")
}

fn refuse(path: &str, text: &str) -> (String, u32, u32, String) {
    let (_, mistakes) = parse(&Bundle::single(path, text), 0);
    let first = mistakes.into_iter().next().expect("a mistake");
    let hint = first.hint.unwrap_or_default();
    (
        format!("{}: {}", first.code, first.message),
        first.span.line,
        first.span.column,
        hint,
    )
}

fn at<'a>(node: &'a Node, path: &str) -> &'a Node {
    path.split('.').fold(node, |node, key| match &node.kind {
        Kind::Array(items) => &items[key.parse::<usize>().unwrap()],
        _ => node.get(key).unwrap_or_else(|| panic!("no {key}")),
    })
}

#[test]
fn yaml_is_what_serde_yaml_says() {
    let text = "
a: [1, 0x10, 0o17, -3, 1.5, 1e3, .5]
b: {yes: yes, t: true, n: ~, e: , s: '1', q: \"a\\tb\\u00e9\"}
c: |
  two
    lines
d: >-
  folded
  text

  para
e: plain over
  two lines
f: &x {k: [1, 2]}
g: *x
1: number key
true: bool key
h: !!str 5
\"i j\": ''
";
    let oracle: serde_json::Value = {
        let value: serde_yaml::Value = serde_yaml::from_str(text).unwrap();
        let mut out = serde_json::Map::new();
        for (key, value) in value.as_mapping().unwrap() {
            let key = match key {
                serde_yaml::Value::String(text) => text.clone(),
                other => serde_json::to_string(other).unwrap(),
            };
            out.insert(key, serde_json::to_value(value).unwrap());
        }
        out.into()
    };
    let ours: serde_json::Value = serde_json::from_str(&read(text).to_value().to_json()).unwrap();
    assert_eq!(ours, oracle);
}

#[test]
fn an_anchor_changes_no_value() {
    let text = "{a: &a 3, b: &b no, c: [*a, *b], t: !<tag:yaml.org,2002:str> 5, d: &d 1_000, e: &e \"5\", *e : *d}";
    let (node, mistakes) = parse_yaml_1_1(&Bundle::single("w.yaml", text), 0);
    assert_eq!(mistakes, []);
    let expected = r#"{"a":3,"b":false,"c":[3,false],"t":"5","d":1000,"e":"5","5":1000}"#;
    assert_eq!(node.unwrap().to_value().to_json(), expected);
}

#[test]
fn a_block_at_the_end_of_a_file_has_only_the_line_breaks_that_are_written() {
    for (text, expected) in [
        ("a: |\n  b", "b"),
        ("a: |\n  b\n", "b\n"),
        ("a: |\n  b\n ", "b\n"),
        ("a: |\n  b\n    ", "b\n"),
        ("a: |+\n  b\n\n", "b\n\n"),
        ("a: |-\n  b\n", "b"),
        ("a: |\n  b\n# c", "b\n"),
        ("a: |\r  b\r", "b\n"),
    ] {
        assert_eq!(at(&read(text), "a").as_str(), Some(expected), "{text:?}");
    }
}

#[test]
fn a_number_that_does_not_fit_is_text_in_yaml_1_1() {
    let text = "a: 1_000_000_000_000_000_000_000\nb: no\n";
    let (node, mistakes) = parse_yaml_1_1(&Bundle::single("w.yaml", text), 0);
    let codes: Vec<_> = mistakes.iter().map(|mistake| mistake.code).collect();
    assert_eq!(codes, ["number"]);
    let expected = r#"{"a":"1_000_000_000_000_000_000_000","b":false}"#;
    assert_eq!(node.unwrap().to_value().to_json(), expected);
}

#[test]
fn json_and_yaml_are_the_same_tree() {
    let json =
        r#"{"a": [1, 2.5, "x\n\u00e9\ud83d\ude00", true, null, {}, []], "b": {"c": -7, "d": 1e3}}"#;
    let (node, mistakes) = parse(&Bundle::single("w.json", json), 0);
    assert_eq!(mistakes, []);
    let yaml = "a:\n- 1\n- 2.5\n- \"x\\né😀\"\n- true\n- ~\n- {}\n- []\nb:\n  c: -7\n  d: 1e3\n";
    assert_eq!(node.unwrap().to_value(), read(yaml).to_value());
}

#[test]
fn every_value_knows_its_place() {
    let text = "\u{feff}name: x\nactions:\n  été:\n    type: \"http\"\n    on: [a, 'b']\n  next: {type: wait}\n";
    let node = read(text);
    let place = |path: &str| {
        let span = at(&node, path).span;
        (span.line, span.column, span.length)
    };
    assert_eq!(place("name"), (1, 7, 1));
    assert_eq!(place("actions.été.type"), (4, 11, 6));
    assert_eq!(place("actions.été.on.1"), (5, 13, 3));
    assert_eq!(place("actions.next"), (6, 9, 1));
    assert_eq!(place("actions.next.type"), (6, 16, 4));
    let key = &at(&node, "actions").entries().unwrap()[0];
    assert_eq!(
        (key.key_span.line, key.key_span.column, key.key_span.length),
        (3, 3, 3)
    );

    let json = "{\n  \"été\": {\"type\": \"http\", \"n\": 12}\n}";
    let (node, _) = parse(&Bundle::single("w.json", json), 0);
    let node = node.unwrap();
    let span = at(&node, "été.n").span;
    assert_eq!((span.line, span.column, span.length), (2, 32, 2));
}

#[test]
fn a_part_of_a_text_is_found_in_every_notation() {
    // The expected place in each text is the word `here`.
    let cases = [
        ("a: x and here too", 1, 10),
        ("a: x and\n   more\n   here too", 3, 4),
        ("a: 'it''s é here'", 1, 13),
        ("a: \"tab\\t \\u00e9 \\\\ here\"", 1, 21),
        ("a: \"one \\\n    two here\"", 2, 9),
        ("a: \"one\n\n    two here\"", 3, 9),
        ("a: |\n  one\n   two here\n  three", 3, 8),
        ("a: >- # why\n  one\n\n  two\n  or here\n", 5, 6),
        ("- b\n- |2\n   here", 3, 4),
        ("{\"a\": \"\\ud83d\\ude00 \\n here\"}", 1, 24),
        ("a: 'b'\r\nc: |\r\n  x\r\n  here\r\n", 4, 3),
        ("a: &a  x here", 1, 10),
        ("a: &a |\n  x\n  here\n", 3, 3),
        ("a: [&a !!str # |\n  'x here']", 2, 6),
        ("a: !!str 'here'", 1, 11),
    ];
    for (text, line, column) in cases {
        let node = read(text);
        let mut found = None;
        let mut stack = vec![&node];
        while let Some(node) = stack.pop() {
            match &node.kind {
                Kind::String(value) => {
                    if let Some(offset) = value.text.find("here") {
                        found = Some(node.place(text, offset, 4));
                    }
                }
                Kind::Array(items) => stack.extend(items),
                Kind::Object(entries) => stack.extend(entries.iter().map(|entry| &entry.value)),
                _ => {}
            }
        }
        let span = found.expect("the word");
        assert_eq!(
            (span.line, span.column, span.length),
            (line, column, 4),
            "{text}"
        );
    }
}

#[test]
fn merge_keys_and_aliases() {
    let node = read(
        "base: &b {x: 1, y: 2}\nmore: &m {y: 3, z: 4}\nall:\n  y: 0\n  <<: [*b, *m]\none: {<<: *b}\nq: {'<<': 1}",
    );
    assert_eq!(
        at(&node, "all").to_value().to_json(),
        r#"{"y":0,"x":1,"z":4}"#
    );
    assert_eq!(at(&node, "one").to_value().to_json(), r#"{"x":1,"y":2}"#);
    assert_eq!(at(&node, "q").to_value().to_json(), r#"{"<<":1}"#);
    let (code, line, column, _) = refuse("w.yaml", "a:\n  <<: 7\n");
    assert_eq!(
        (code.as_str(), line, column),
        ("merge: `<<` accepts a map or a list of maps", 2, 7)
    );
}

#[test]
fn the_usual_slips_are_named() {
    let cases = [
        ("a: @equals(1, 2)\n", "unquoted-expression", 1, 4),
        ("a:\n  - @equals(1, 2)\n", "unquoted-expression", 2, 5),
        ("a:\n  b: {{ x }}\n", "unquoted-template", 2, 6),
        ("a:\n  b: {{ x }} and more\n", "unquoted-template", 2, 6),
        (
            "a:\n  b: {{ x | default('y') }}\n  c: 1\n",
            "unquoted-template",
            2,
            6,
        ),
        ("a:\n\tb: 1\n", "tab-indentation", 2, 1),
        ("a: 1\nb: 2\na: 3\n", "duplicate-key", 3, 1),
        ("{\"a\": 1,\n \"a\": 2}", "duplicate-key", 2, 2),
        ("a: 1\n---\nb: 2\n", "multiple-documents", 2, 1),
        ("[1, 2]: x\n", "key", 1, 1),
        ("a: !ruby/object x\n", "tag", 1, 4),
        ("a: .inf\n", "number", 1, 4),
        ("a: !!int x\n", "tag", 1, 4),
        ("a: !!int 99999999999999999999\n", "number", 1, 4),
        ("a:\n  - \"x\u{1b}\"\n", "syntax", 2, 7),
        ("a: [1, | 2]\n", "syntax", 1, 8),
        ("a: [1, 2\nb: 3\n", "syntax", 1, 4),
        ("a:\n  b: { c: 1\n", "syntax", 2, 6),
        ("a: 1\nfoo\n", "syntax", 2, 1),
        ("a:\n  b: 1\n  foo\n", "syntax", 3, 3),
        ("name\na: 1\n", "syntax", 1, 1),
        ("name:t\na: 1\n", "syntax", 1, 5),
        ("a:\n  b: x\n  type:compose\n  c: 1\n", "syntax", 3, 7),
        ("a:\n  - b\n\t- c\n", "tab-indentation", 3, 1),
        ("a: 'it's'\n", "syntax", 1, 8),
        ("a: {x: 1 y: 2}\n", "syntax", 1, 11),
        ("a: !!binary aGk=\n", "tag", 1, 4),
        ("a: &m [*m]\n", "too-deep", 1, 8),
        ("a: {b: 1, : 2}\n", "key", 1, 11),
        ("a: 1_0\nb: [1, 2\n", "syntax", 2, 4),
        ("a: 1e999\nb: [1, 2\n", "number", 1, 4),
        ("a: *nope\n", "syntax", 1, 4),
        ("", "empty-file", 1, 1),
        ("# only a comment\n", "", 1, 1),
    ];
    for (text, code, line, column) in cases {
        let (_, mistakes) = parse(&Bundle::single("w.yaml", text), 0);
        let Some(first) = mistakes.first() else {
            assert_eq!(code, "", "{text}");
            continue;
        };
        assert_eq!(
            (first.code, first.span.line, first.span.column),
            (code, line, column),
            "{text} {first:?}"
        );
        assert!(first.hint.is_some(), "{text}");
    }
}

#[test]
fn bad_json_says_where() {
    let cases = [
        ("{\"a\": 1,}", 1, 9),
        ("{\"a\": 1 # x\n}", 1, 9),
        ("{\"a\": 1 /* x\n}", 1, 9),
        ("{\"a\": 1 / x\n}", 1, 9),
        ("{\"a\" 1}", 1, 6),
        ("{\"a\": tru}", 1, 7),
        ("{\"a\": 01}", 1, 7),
        ("{\"a\": \"x\ny\"}", 1, 7),
        ("{\"a\": \"\\q\"}", 1, 9),
        ("{\"a\": \"x", 1, 7),
        ("[1, 2] 3", 1, 8),
        ("{'a': 1}", 1, 2),
    ];
    for (text, line, column) in cases {
        let (what, at_line, at_column, hint) = refuse("w.json", text);
        assert!(what.starts_with("syntax"), "{text}: {what}");
        assert_eq!((at_line, at_column), (line, column), "{text}: {what}");
        assert!(!hint.is_empty(), "{text}");
    }
}

#[test]
fn json_may_have_comments() {
    let text = "// a\n{\"a\": /* 1, */ 2, // \"b\": 3\n\"c\": \"// no\" /**/}\n// end";
    let (node, mistakes) = parse(&Bundle::single("w.json", text), 0);
    assert!(mistakes.is_empty(), "{mistakes:?}");
    assert_eq!(node.unwrap().to_value().to_json(), r#"{"a":2,"c":"// no"}"#);
}

/// Mistakes that Azure's own reader accepts. In other formats they stay mistakes.
#[test]
fn what_azure_forgives_is_read_all_the_same() {
    let text = "{\"a\": [1, 2,], \"b\": \"x\n\ty\", \"a\": [3 , /**/ ], }";
    let (node, mistakes) = parse(&Bundle::single("w.json", text), 0);
    assert_eq!(
        node.unwrap().to_value().to_json(),
        r#"{"a":[3],"b":"x\n\ty"}"#
    );
    assert_eq!(mistakes.len(), 5, "{mistakes:?}");
    assert!(mistakes.iter().all(|mistake| mistake.azure.is_some()));
    for text in ["[,]", "{,}", "[1,,]", "{\"a\": 1,,}"] {
        let (node, _) = parse(&Bundle::single("w.json", text), 0);
        assert_eq!(node, None, "{text}");
    }
}

#[test]
fn hostile_texts_are_refused_quickly() {
    let bomb = {
        let mut text = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
        for level in 1..12 {
            let before = format!("*a{}", level - 1);
            let list = vec![before; 10].join(", ");
            text.push_str(&format!("a{level}: &a{level} [{list}]\n"));
        }
        text
    };
    let wide = {
        let anchored = vec!["x"; 20_000].join(", ");
        let aliases = vec!["*a"; 20_000].join(", ");
        format!("a: &a [{anchored}]\nb: [{aliases}]\n")
    };
    let nested: String = (0..3_000)
        .map(|level| format!("{}a:\n", " ".repeat(level)))
        .collect();
    // Whether it is a key is known only at its end.
    let flow = |head: &str, one: &str, end: &str| {
        let all = one.repeat(2_000_000);
        format!("{head}[{all}{end}\n")
    };
    let cases = [
        ("too-many-values", bomb),
        ("too-many-values", wide),
        ("too-deep", "[".repeat(10_000)),
        ("too-deep", "{\"a\":".repeat(10_000)),
        ("too-deep", "- ".repeat(10_000)),
        ("too-deep", nested),
        ("too-deep", "a: ".to_owned() + &"{a: ".repeat(10_000)),
        ("too-many-values", "- x\n".repeat(2_000_000)),
        ("too-many-values", flow("", "1,", "1]")),
        (
            "too-many-values",
            flow("# a comment, of two\n- ", "1,", "1]"),
        ),
        ("too-many-values", flow("- { b: ", "'1',", "1] }")),
        ("too-many-values", flow("- ", "[] ", "")),
        ("file-too-large", " ".repeat(100_000_000)),
        ("too-deep", "a: &a [*a]".to_owned()),
        (
            "too-many-values",
            format!(
                "a: &a {}\nb:\n{}",
                "x".repeat(1_000_000),
                "- *a\n".repeat(50_000)
            ),
        ),
        (
            "too-many-values",
            format!(
                "- &k {}\n{}",
                "x".repeat(1_000_000),
                "- {*k : 1}\n".repeat(50)
            ),
        ),
        (
            "too-many-values",
            format!("{}{}", "&a [".repeat(100), "x".repeat(1_000_000)) + &"]".repeat(100),
        ),
    ];
    for (code, text) in cases {
        for path in ["w.yaml", "w.json"] {
            let (_, mistakes) = parse(&Bundle::single(path, text.clone()), 0);
            let first = mistakes.first().expect("a mistake");
            if path == "w.yaml" {
                assert_eq!(first.code, code, "{first:?}");
            }
        }
    }
}

#[test]
fn a_large_file_is_read_once() {
    let items = "&a,".repeat(40_000);
    let blanks = " ".repeat(8_000_000);
    for text in [
        format!("a: [{items}{}]", "x".repeat(8_000_000)),
        format!("a: [x{blanks},{items}y]"),
        format!("a: {{{}\nb: {blanks}", "a, ".repeat(40_000)),
    ] {
        let (done, ended) = mpsc::channel();
        thread::spawn(move || {
            drop(parse(&Bundle::single("w.yaml", text), 0));
            done.send(()).unwrap();
        });
        // A time that grows with the square of its size would be hours.
        ended.recv_timeout(Duration::from_secs(60)).unwrap();
    }
}

#[test]
fn a_long_text_may_hold_any_signs() {
    let long = "a, [b]: {c}? & * ! ".repeat(50_000);
    for text in [
        format!("k: |\n  {long}\n"),
        format!("- \"{long}\"\n"),
        format!("- k: '{long}'\n"),
        format!("# {long}\nk: v\n"),
    ] {
        let (node, mistakes) = parse(&Bundle::single("w.yaml", text), 0);
        assert_eq!(mistakes, []);
        assert!(node.is_some());
    }
}
