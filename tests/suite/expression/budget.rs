//! One budget for a whole evaluation, which all work uses: no expression, template or schema can run longer, whatever
//! it does.

use serde_json::json;
use windlass_expression::{Budget, Condition, Context, Env, Syntax, TableFormat, Template, Value};

/// Enough for every expression that an author writes, and so low that all of these expressions end immediately.
const WORK: u64 = 700_000;

/// The data of the expressions: a text of a quarter of a megabyte, one that is not ASCII, a list, a map, and XML.
fn context() -> Context {
    let many: Vec<i64> = (0..5_000).collect();
    let map: serde_json::Map<String, serde_json::Value> = (0..5_000)
        .map(|number| (format!("key{number}"), json!(number)))
        .collect();
    let vars = json!({
        "big": "x".repeat(1 << 18),
        "wide": "ä".repeat(1 << 17),
        "texts": vec!["x".repeat(250); 1_000],
        "json": format!("[{}]", vec!["1"; 50_000].join(",")),
        "xml": format!("<a>{}</a>", "<b>text</b>".repeat(5_000)),
        "ends": "&".repeat(1 << 18),
        "many": many,
        "map": map,
    });
    let context = json!({"mode": "azure", "vars": vars, "state": vars});
    let context = Value::from_json(&context.to_string()).unwrap();
    let context = Context::new(&context, chrono::DateTime::UNIX_EPOCH, 0).unwrap();
    context.with_budget(Budget::of(WORK))
}

fn wdl(text: &str) -> Template {
    Template::parse(text, Syntax::Azure).unwrap()
}

/// A select that evaluates `each` for many elements.
fn select(each: &str) -> Template {
    Template::select(wdl("@range(0, 100000)"), wdl(each))
}

/// Expressions whose time grows with the length of the text that they read.
const HEAVY: [&str; 34] = [
    "@contains(variables('big'), 'zz')",
    "@contains(variables('texts'), 'zz')",
    "@indexOf(variables('big'), 'zz')",
    "@indexOf(variables('wide'), 'zz')",
    "@lastIndexOf(variables('big'), 'zz')",
    "@nthIndexOf(variables('big'), 'zz', 1)",
    "@startsWith(variables('big'), 'zz')",
    "@startsWith(variables('wide'), 'zz')",
    "@endsWith(variables('big'), 'zz')",
    "@length(split(variables('big'), 'zz'))",
    "@length(replace(variables('big'), 'zz', 'y'))",
    "@length(concat(variables('big'), 'y'))",
    "@length(join(variables('texts'), 'y'))",
    "@length(toUpper(variables('big')))",
    "@length(toLower(variables('wide')))",
    "@length(trim(variables('big')))",
    "@length(substring(variables('wide'), 3, 10))",
    "@length(base64(variables('big')))",
    "@length(uriComponent(variables('wide')))",
    "@length(decodeXmlValue(variables('ends')))",
    "@length(string(variables('map')))",
    "@length(json(variables('json')))",
    "@length(string(xml(variables('xml'))))",
    "@length(xpath(xml(variables('xml')), '//b'))",
    "@length(sort(variables('many')))",
    "@length(reverse(variables('many')))",
    "@length(union(take(variables('texts'), 300), take(variables('texts'), 300)))",
    "@length(intersection(take(variables('texts'), 300), take(variables('texts'), 300)))",
    "@max(variables('many'))",
    "@equals(variables('texts'), take(variables('texts'), 1000))",
    "@equals(variables('map'), setProperty(variables('map'), 'x', 1))",
    "@variables('map')?['KEY4999']",
    "@variables('map')?['none']",
    "@isInt(variables('big'))",
];

#[test]
fn what_an_expression_looks_at_is_counted_for_each_element() {
    for each in HEAVY {
        let context = context();
        // One evaluation alone stays within the budget.
        wdl(each)
            .eval(&context)
            .unwrap_or_else(|error| panic!("{each}: {error}"));
        assert!(context.budget().spent() < WORK, "{each}");
        let error = select(each).eval(&context).unwrap_err().message;
        assert!(error.contains("more work than one step"), "{each}: {error}");
    }
}

#[test]
fn every_operation_on_data_shares_the_budget() {
    let heavy = "@contains(variables('big'), 'zz')";
    let when = Condition::parse(heavy, Syntax::Azure).unwrap();
    let column = vec![(Template::constant("a".into()), wdl(heavy))];
    let all = [
        Template::select(wdl("@range(0, 100000)"), wdl(heavy)),
        Template::query(wdl("@range(0, 100000)"), when),
        Template::table(wdl("@range(0, 100000)"), TableFormat::Csv, Some(column)),
        Template::array(vec![wdl(heavy); 5_000]),
    ];
    for template in all {
        let error = template.eval(&context()).unwrap_err().message;
        assert!(error.contains("more work than one step"), "{error}");
    }
}

#[test]
fn schemas_are_counted() {
    for schema in [
        doubling(60, "allOf"),
        doubling(60, "anyOf"),
        doubling(60, "oneOf"),
    ] {
        let parse = Template::parse_json(Template::constant(Value::Int(1)), Some(&schema)).unwrap();
        let error = parse.eval(&context()).unwrap_err().message;
        assert!(error.contains("more work than one step"), "{error}");
        let small = doubling_levels(&schema, 8);
        let parse = Template::parse_json(Template::constant(Value::Int(1)), Some(&small)).unwrap();
        let small = parse.eval(&context());
        assert!(small.is_ok() || small.unwrap_err().message.contains("as its schema says"));
    }
}

/// Definitions that each refer twice to the next one.
fn doubling(levels: usize, how: &str) -> Value {
    let mut definitions = serde_json::Map::new();
    for level in 0..levels {
        let next = json!({"$ref": format!("#/definitions/d{}", level + 1)});
        definitions.insert(format!("d{level}"), json!({how: [next, next]}));
    }
    definitions.insert(format!("d{levels}"), json!({"type": "integer"}));
    let schema = json!({"definitions": definitions, "$ref": "#/definitions/d0"});
    Value::from_json(&schema.to_string()).unwrap()
}

fn doubling_levels(schema: &Value, levels: usize) -> Value {
    let how = ["allOf", "anyOf", "oneOf"];
    let text = schema.to_json();
    let how = how.into_iter().find(|how| text.contains(how)).unwrap();
    doubling(levels, how)
}

#[test]
fn templates_of_jinja_share_the_budget() {
    let loops = [
        "{% for a in state.many %}{% for b in state.many %}{{ b }}{% endfor %}{% endfor %}",
        "{% for a in state.many %}{% if state.big == state.wide %}x{% endif %}{% endfor %}",
        "{% for a in state.many %}{% if 'zz' in state.big %}x{% endif %}{% endfor %}",
        "{% for a in state.many %}{{ state.big | replace('zz', 'y') | length }}{% endfor %}",
        "{% for a in state.many %}{{ state.map | tojson | length }}{% endfor %}",
        "{% for a in state.many %}{% if state.texts == state.texts[:999] %}x{% endif %}{% endfor %}",
        "{% macro m(n) %}{% if n > 0 %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}{% endmacro %}{% for a in state.many %}{{ m(6) }}{% endfor %}",
        "{{ state.many | map('string') | select('in', state.texts) | list | length }}",
    ];
    for text in loops {
        let template = Template::parse(text, Syntax::Jinja).unwrap();
        let context = context();
        let error = template.eval(&context).unwrap_err().message;
        let known = ["more work than one step", "steps", "MiB", "recursion"];
        assert!(
            known.iter().any(|words| error.contains(words)),
            "{text}: {error}"
        );
        assert!(
            context.budget().spent() > 50_000,
            "{text}: {}",
            context.budget().spent()
        );
    }
    // Several templates in one value share the budget as well.
    let one = "{% for a in state.many %}{{ a }}{% endfor %}";
    let one = Template::parse(one, Syntax::Jinja).unwrap();
    let all = Template::array(vec![one; 100]);
    let error = all.eval(&context()).unwrap_err().message;
    assert!(error.contains("more work than one step"), "{error}");
}

#[test]
fn what_a_person_writes_costs_little() {
    for (text, most) in [
        ("@equals(variables('many')[3], 3)", 100),
        ("@concat('a', 'b', string(3))", 100),
        ("@variables('map')?['key7']", 100),
        ("@empty(variables('big'))", 100),
        ("@if(equals(1, 2), variables('big'), 'b')", 100),
        ("@contains(variables('many'), 4999)", 100_000),
    ] {
        let context = context();
        wdl(text).eval(&context).unwrap();
        let spent = context.budget().spent();
        assert!(spent < most, "{text}: {spent}");
    }
}
