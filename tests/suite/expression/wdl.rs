//! WDL: mistakes are reported, and hostile expressions end.

use chrono::DateTime;
use std::time::Instant;
use windlass_expression::{Context, Subject, Value};

fn eval(text: &str) -> Result<Value, String> {
    let context = Value::from_json(r#"{"vars": {"big": 5}}"#).unwrap();
    let context = Context::new(&context, DateTime::UNIX_EPOCH, 3).unwrap();
    context
        .evaluate(Subject::Template, &Value::text(text))
        .map_err(|error| error.to_string())
}

fn fails(text: &str, part: &str) {
    match eval(text) {
        Ok(value) => panic!("{text} gives {}", value.to_json()),
        Err(error) => assert!(error.contains(part), "{text}: {error}"),
    }
}

#[test]
fn what_is_wrong_says_so() {
    for (text, part) in [
        ("@add(1)", "`add` needs 2 arguments, not 1"),
        ("@utcNow(1, 2)", "`utcNow` needs 0 to 1 arguments, not 2"),
        ("@and()", "at least 1 argument"),
        ("@nosuch(1)", "unknown function `nosuch`"),
        (
            "@add('1', 2)",
            "needs a number as its first argument, not the text '1'",
        ),
        ("@add(9223372036854775807, 1)", "does not fit"),
        ("@mul(9223372036854775807, 2)", "does not fit"),
        ("@sub(-9223372036854775807, 2)", "does not fit"),
        ("@9223372036854775808", "does not fit 64 bits"),
        ("@div(1, 0)", "divides by zero"),
        ("@div(1.0, 0.0)", "divides by zero"),
        ("@mod(1, 0)", "divides by zero"),
        ("@greater(true, false)", "orders two numbers or two texts"),
        ("@less(null, 1)", "orders two numbers or two texts"),
        ("@less('1', 1)", "orders two numbers or two texts"),
        ("@not(1)", "needs a boolean"),
        ("@substring('abc', 4)", "starts at 4"),
        ("@substring('abc', -1)", "a whole number from 0"),
        ("@first(5)", "text or an array"),
        ("@length(null)", "text or an array"),
        ("@int('1.5')", "whole number"),
        ("@int('x')", "whole number"),
        ("@float('x')", "text that is one"),
        ("@float('1', 'xx-YY')", "a locale"),
        ("@bool('yes')", "a boolean"),
        ("@json('{')", "`json`:"),
        ("@base64ToString('!')", "not valid base64"),
        ("@encodeUriComponent(null)", "text, a number or a boolean"),
        ("@base64(null)", "text, a number or a boolean"),
        ("@dataUriToString('x')", "not a valid data URI"),
        ("@uriHost('/a/b')", "an absolute URI"),
        ("@addDays('x', 1)", "a timestamp"),
        ("@addDays('2018-01-01', 999999999)", "outside the years"),
        ("@addToTime('2018-01-01', 1, 'Days')", "one of Second"),
        (
            "@formatDateTime('2018-01-01', 'x')",
            "not a valid format of a date",
        ),
        ("@formatNumber(1, 'Q2')", "not a valid format of a number"),
        ("@convertFromUtc('2018-01-01', 'Mars')", "a time zone"),
        (
            "@convertToUtc('2018-03-25T02:30:00', 'Europe/Berlin')",
            "does not occur",
        ),
        ("@xml('<a>')", "well-formed"),
        ("@xml(json('{\"a\": 1, \"b\": 2}'))", "exactly one root"),
        ("@xpath('<a/>', '//[')", "`xpath`:"),
        ("@rand(5, 5)", "a maximum above"),
        ("@range(0, -1)", "a whole number from 0"),
        ("@replace('a', '', 'b')", "not empty"),
        ("@guid('Z')", "one of 'N'"),
        ("@chunk('abc', 0)", "at least 1"),
        ("@max(createArray())", "at least one number"),
        ("@sort(createArray(1, 'a'))", "cannot order"),
        ("@item()", "only inside a foreach"),
        ("@items('x')", "no foreach `x`"),
        ("@result('x')", "unknown scope `x`"),
        ("@parameters('x')", "unknown parameter `x`"),
        ("@env('HOME')", "unknown environment variable"),
        ("@secret('x')", "unknown secret"),
        ("@action()", "only inside an action"),
        ("@variables(1)", "needs text"),
        ("@add(1, 2", "expected `,` or `)`"),
        ("@'abc", "no closing `'`"),
        ("@\"abc\"", "single quotes"),
        ("@1.2.3", "is not a number"),
        ("@'a'.b", "only a function's value"),
        ("@true()", "unknown function `true`"),
        ("@variables", "neither a call"),
        ("@add(1,)", "expected a function"),
        ("@variables('big')?", "after `?`"),
    ] {
        fails(text, part);
    }
}

/// As designers write it, with several pieces, and as connectors take it, with numbers.
#[test]
fn xpath_compares_every_node_and_knows_a_place_in_a_group() {
    let orders =
        "<r><o id=\"1\"><p>5</p><p>50</p></o><o id=\"2\"><state>done</state><p>7</p></o></r>";
    for (path, value) in [
        ("//o[p > 10]/@id", r#"["1"]"#),
        ("//o[state != ''open'']/@id", r#"["2"]"#),
        ("(//o/p/text())[2]", r#"["50"]"#),
        ("string((//o)[last()]/@id)", r#""2""#),
        ("(//o)[3]", "[]"),
        ("count((//o)[3]/p)", "0.0"),
        ("concat((//o)[2]/state, ''!'')", r#""done!""#),
    ] {
        let found = eval(&format!("@xpath('{orders}', '{path}')")).unwrap();
        assert_eq!(found.to_json(), value, "{path}");
    }
}

#[test]
fn what_is_encoded_may_be_any_scalar() {
    for (text, expected) in [
        ("@encodeUriComponent('a/', 5, '/b')", "a%2F5%2Fb"),
        ("@uriComponent(1.5)", "1.5"),
        ("@encodeURIComponent(true)", "True"),
        ("@uriComponentToString(7)", "7"),
        ("@base64(12)", "MTI="),
        ("@base64(createArray(1))", "WzFd"),
        ("@", "@"),
    ] {
        assert_eq!(eval(text), Ok(Value::text(expected)), "{text}");
    }
}

/// `['a/b']` is a path of members if no member has that name.
#[test]
fn a_key_with_slashes_is_a_way_in_azure() {
    let eval = |mode: &str, text: &str| {
        let context = format!(
            r#"{{"mode": "{mode}", "vars": {{"v": {{"a": {{"b": 1}}, "a/c": 2, "n": null}}}}}}"#
        );
        let context = Value::from_json(&context).unwrap();
        let context = Context::new(&context, DateTime::UNIX_EPOCH, 1).unwrap();
        let value = context.evaluate(Subject::Template, &Value::text(text));
        value.map(|value| value.to_json()).ok()
    };
    for (text, azure, loom) in [
        ("@variables('v')?['a/b']", Some("1"), Some("null")),
        ("@variables('v')['a/b']", Some("1"), None),
        ("@variables('v')['A/B']", Some("1"), None),
        ("@variables('v')[concat('a', '/b')]", Some("1"), None),
        ("@variables('v')['a/c']", Some("2"), Some("2")),
        ("@variables('v')?['n/b']", Some("null"), Some("null")),
        ("@variables('v')['n/b']", None, None),
        ("@variables('v')?['a/b/c']", None, Some("null")),
    ] {
        assert_eq!(eval("azure", text).as_deref(), azure, "{text}");
        assert_eq!(eval("loom", text).as_deref(), loom, "{text}");
    }
}

#[test]
fn a_nested_at_is_the_house_formats() {
    assert_eq!(eval("@add(@variables('big'), 1)"), Ok(Value::Int(6)));
    let azure = Value::from_json(r#"{"mode": "azure"}"#).unwrap();
    let context = Context::new(&azure, DateTime::UNIX_EPOCH, 1).unwrap();
    let text = Value::text("@add(@add(1, 2), 1)");
    let error = context.evaluate(Subject::Template, &text).unwrap_err();
    assert!(error.to_string().contains("only allowed before"), "{error}");
    let text = Value::text("{{ x }} @{1}");
    let value = context.evaluate(Subject::Template, &text).unwrap();
    assert_eq!(value, Value::text("{{ x }} 1"));
}

/// The budget bounds each expression: it ends in an error immediately.
#[test]
fn hostile_expressions_end() {
    let nested = |count: usize, open: &str, close: &str| {
        format!("@{}1{}", open.repeat(count), close.repeat(count))
    };
    let doubled = |count: usize| {
        let mut text = String::from("'aaaaaaaaaaaaaaaa'");
        for _ in 0..count {
            text = format!("replace({text}, 'a', 'aaaaaaaaaaaaaaaa')");
        }
        format!("@{text}")
    };
    let entities: String = (1..20)
        .map(|level| {
            format!(
                "<!ENTITY e{level} \"{}\">",
                format!("&e{};", level - 1).repeat(10)
            )
        })
        .collect();
    let laughs = format!("@xml('<!DOCTYPE a [<!ENTITY e0 \"ha\">{entities}]><a>&e19;</a>')");
    for text in [
        nested(1000, "not(", ")"),
        nested(1000, "createArray(", ")"),
        nested(4000, "(", ")"),
        format!("@{}", "a".repeat(9000)),
        format!("@concat({}'')", "'aaaaaaaa', ".repeat(1000)),
        "@range(0, 2147483648)".into(),
        "@range(9223372036854775807, 10)".into(),
        doubled(12),
        "@join(range(0, 100000), concat(join(range(0, 100000), ''), join(range(0, 100000), '')))".into(),
        "@union(range(0, 100000), range(50000, 100000))".into(),
        "@intersection(range(0, 100000), range(50000, 100000))".into(),
        "@formatDateTime('2018-01-01', join(range(0, 100000), 'dddddddddddddddd'))".into(),
        "@formatNumber(1, 'F999999999')".into(),
        "@chunk(join(range(0, 100000), join(range(0, 100), '')), 1)".into(),
        "@json(concat(join(range(0, 100000), '['), ''))".into(),
        format!("@json('{}')", "[".repeat(5000)),
        format!("@xml('{}')", "<a>".repeat(2000)),
        laughs,
        format!("@xpath('<a><b/></a>', '{}')", "(".repeat(3000)),
        "@xpath(concat('<a>', join(range(0, 20000), '<b/>'), '</a>'), '//*[count(//*[count(//*)])]')".into(),
        "@uriComponent(join(range(0, 100000), join(range(0, 1000), '%')))".into(),
    ] {
        #[allow(clippy::disallowed_methods)] // A test of how long it takes.
        let start = Instant::now();
        let outcome = eval(&text);
        let took = start.elapsed();
        let shown: String = text.chars().take(60).collect();
        assert!(outcome.is_err(), "{shown}: {:?}", outcome.map(|value| value.to_json().len()));
        assert!(took.as_secs() < 30, "{shown} took {took:?}");
    }
}

#[test]
fn values_never_nest_deeper_than_the_store_allows() {
    let mut context = Value::Null;
    for _ in 0..200 {
        let world = Value::from_pairs([("vars", Value::from_pairs([("x", context.clone())]))]);
        let env = Context::new(&world, DateTime::UNIX_EPOCH, 1).unwrap();
        match env.evaluate(
            Subject::Template,
            &Value::text("@createArray(variables('x'))"),
        ) {
            Ok(deeper) => context = deeper,
            Err(error) => {
                assert!(
                    error.to_string().contains("nests deeper than 128"),
                    "{error}"
                );
                return;
            }
        }
    }
    panic!("it nests without end");
}
