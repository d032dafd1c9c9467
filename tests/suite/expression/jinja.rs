//! Jinja as TEA's users know it: what a template returns, what is refused, and that every template ends.

use chrono::DateTime;
use std::time::Instant;
use windlass_expression::{Budget, Condition, Context, Env, Syntax, Template, Value};

const WORLD: &str = r#"{
    "state": {"n": 2, "name": "Ada", "items": ["a", "b"], "user": {"city": "Oslo"}, "none": null,
              "done": false, "_private": {"x": 1}, "rate": 0.5, "long": 1e20, "pair": [1, [2, {"k": "v"}]],
              "text": "it's <b> & \"q\" ü", "json": "{\"a\": [1]}", "pending": true},
    "vars": {"url": "http://x", "list": [3, 1, 2]},
    "inputs": {"job": "j1"}
}"#;

fn world() -> Context {
    let context = Value::from_json(WORLD).unwrap();
    Context::new(&context, DateTime::UNIX_EPOCH, 1).unwrap()
}

fn eval(text: &str) -> Result<Value, String> {
    let template = Template::parse(text, Syntax::Jinja).map_err(|error| error.to_string())?;
    template.eval(&world()).map_err(|error| error.to_string())
}

fn gives(text: &str, json: &str) {
    let value = eval(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    assert_eq!(
        value.to_json(),
        Value::from_json(json).unwrap().to_json(),
        "{text}"
    );
}

fn fails(text: &str, part: &str) {
    match eval(text) {
        Ok(value) => panic!("{text} gives {}", value.to_json()),
        Err(error) => assert!(error.contains(part), "{text}: {error}"),
    }
}

fn holds(text: &str) -> Result<bool, String> {
    let condition = Condition::parse(text, Syntax::Jinja).map_err(|error| error.to_string())?;
    condition.holds(&world()).map_err(|error| error.to_string())
}

#[test]
fn values_keep_their_type() {
    gives("{{ state.n }}", "2");
    gives("  {{ state.items }}\n", r#"["a", "b"]"#);
    gives("{{- state.user -}}", r#"{"city": "Oslo"}"#);
    gives(
        "{{ {'a': state.n, 'b': [1, none]} }}",
        r#"{"a": 2, "b": [1, null]}"#,
    );
    gives("{{ (1, 2) }}", "[1, 2]");
    gives("{{ 7 // 2 }}", "3");
    gives("{{ 7 / 2 }}", "3.5");
    gives("{{ -7 % 3 }}", "2");
    gives("{{ 2 ** 10 }}", "1024");
    gives("@{not wdl}", r#""@{not wdl}""#);
    gives("plain", r#""plain""#);
    gives("{{ state.n }}{{ state.n }}", r#""22""#);
}

#[test]
fn text_is_pythons() {
    gives(
        "{{ state.done }}|{{ state.none }}|{{ state.rate }}|{{ state.long }}",
        r#""False|None|0.5|1e+20""#,
    );
    gives("= {{ state.pair }}", r#""= [1, [2, {'k': 'v'}]]""#);
    gives("{{ state.items }} {{ (1,) }}", r#""['a', 'b'] (1,)""#);
    gives(
        "{{ state.pair | tojson }}!",
        r#""[1, [2, {\"k\": \"v\"}]]!""#,
    );
    gives(
        "{{ state.text | tojson }}",
        r#""\"it\\u0027s \\u003cb\\u003e \\u0026 \\\"q\\\" \\u00fc\"""#,
    );
    gives(
        "{{ state.text | json }}",
        r#""\"it's <b> & \\\"q\\\" \\u00fc\"""#,
    );
    gives(
        "{{ {'b': 1, 'a': 2} | tojson }}",
        r#""{\"a\": 2, \"b\": 1}""#,
    );
    gives("{{ {'b': 1, 'a': 2} | json }}", r#""{\"b\": 1, \"a\": 2}""#);
    gives("a\n{{ 1 }}\n", r#""a\n1\n""#);
    gives("{{ 1 ~ true ~ none }}", r#""1TrueNone""#);
}

#[test]
fn filters_and_methods() {
    gives("{{ state.json | fromjson }}", r#"{"a": [1]}"#);
    gives("{{ 'no json' | fromjson }}", r#""no json""#);
    gives(
        "{{ 'a' | sha256 }}",
        r#""ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb""#,
    );
    gives("{{ state.get('k', 0) }}", "0");
    gives("{{ state.get('n') + 1 }}", "3");
    gives("{{ state.name.upper() }}", r#""ADA""#);
    gives("{{ 'a,b'.split(',') }}", r#"["a", "b"]"#);
    gives("{{ state.user.items() | list }}", r#"[["city", "Oslo"]]"#);
    gives("{{ variables.list | sort | first }}", "1");
    gives(
        "{{ variables.list | map('string') | join('-') }}",
        r#""3-1-2""#,
    );
    gives("{{ 'x' | center(3) }}", r#"" x ""#);
    gives("{{ 'a b c' | wordcount }}", "3");
    gives("{{ \"it's a-b, \u{fc}_1\" | wordcount }}", "5");
    gives("{{ 'a' | default('z') }}", r#""a""#);
    gives("{{ '%s=%d' % ('a', 1) }}", r#""a=1""#);
    gives("{{ '%05.1f' | format(2.25) }}", r#""002.2""#);
    gives("{{ 'aXbX' | replace('X', '-') }}", r#""a-b-""#);
    gives("{{ 'abc'[1:] ~ state.items[-1] }}", r#""bcb""#);
    gives("{{ 'a/b' | urlencode }}", r#""a/b""#);
    gives(
        "x{{ '123456789012345678901' | int }}",
        r#""x123456789012345678901""#,
    );
    gives("x{{ 1e308 * 10 }}", r#""xinf""#);
    fails("{{ 1e308 * 10 }}", "infinity");
    fails("{{ {'a': 1e308 * 10} | tojson }}", "infinity");
}

/// minijinja would panic for these.
#[test]
fn what_cannot_be_computed_is_an_error() {
    gives(
        "{{ [6 is divisibleby(3), 7 is divisibleby(3)] }}",
        "[true, false]",
    );
    gives(
        "{{ [1.5 is divisibleby(0.5), 'a' is divisibleby(2)] }}",
        "[true, false]",
    );
    for divisor in ["0", "0.0", "false"] {
        fails(
            &format!("{{{{ 1 is divisibleby({divisor}) }}}}"),
            "division by zero",
        );
        fails(
            &format!("{{{{ [1] | select('divisibleby', {divisor}) }}}}"),
            "division by zero",
        );
    }
    for formatted in [
        "'{:.65536}'.format(1.5)",
        "'{{{:,.65535e}'.format(1.5)",
        "'%.65536g' % 1.5",
        "'%(a)+.65536E' % {'a': 1.5}",
        "'%.*e' % (70000, 1.5)",
        "'%.65536f' | format(1)",
    ] {
        fails(&format!("{{{{ {formatted} }}}}"), "at most 65534 digits");
    }
    gives(
        "{{ '{{}} .70000 {:.1f}% .70000'.format(1.5) }}",
        r#""{} .70000 1.5% .70000""#,
    );
    gives(
        "{{ '%% .70000 %.1f, .70000' % 1.5 }}",
        r#""% .70000 1.5, .70000""#,
    );
    gives("{{ ('%.65534e' % 1.5) | length }}", "65540");
    gives(
        "{{ [[] * 9223372036854775807, [1, 2] * 2, [1] * -1] }}",
        "[[], [1, 2, 1, 2], []]",
    );
    fails("{{ range(0, -9223372036854775808, -1) }}", "60 bits");
    fails("{{ range(0, -1, -9223372036854775808) }}", "60 bits");
    fails(
        "{{ 5 | indent(9223372036854775807, true) }}",
        "more than 32 MiB",
    );
}

#[test]
fn a_mapped_filter_has_its_named_arguments() {
    for (mapped, json) in [
        ("['5', 'n/a'] | map('int', default=-1)", "[5, -1]"),
        ("['1.5', 'n/a'] | map('float', default=-1.5)", "[1.5, -1.5]"),
        ("[1.234] | map('round', precision=2)", "[1.23]"),
        ("['aa'] | map('replace', 'a', 'b', count=1)", r#"["ba"]"#),
        ("['aa'] | map('replace', old='a', new='b')", r#"["bb"]"#),
        (
            "['', 'a'] | map('default', 'x', boolean=true)",
            r#"["x", "a"]"#,
        ),
        ("[[1, 3, 2]] | map('sort', reverse=true)", "[[3, 2, 1]]"),
        ("['-a-'] | map('trim', chars='-')", r#"["a"]"#),
        ("[['a', 'b']] | map('join', d='-')", r#"["a-b"]"#),
        ("['a'] | map('indent', width=1, first=true)", r#"[" a"]"#),
        ("['a'] | map('center', width=3)", r#"[" a "]"#),
        ("[[{'a': 1}, {'a': 2}]] | map('sum', attribute='a')", "[3]"),
        ("[[{'a': 1}]] | map('map', attribute='a')", "[[1]]"),
        ("[{'a': 1}, {}] | map(attribute='a', default=0)", "[1, 0]"),
        ("[{'a': 1}] | map(**{'attribute': 'a'})", "[1]"),
        ("['a'] | map('upper')", r#"["A"]"#),
    ] {
        gives(&format!("{{{{ {mapped} | list }}}}"), json);
    }
    fails(
        "{{ ['a'] | map('upper', x=1) | list }}",
        "too many arguments",
    );
    fails(
        "{{ nothing | map('int', default=1) | list }}",
        "`nothing` is not defined",
    );
    fails("{{ [1] | map(1) | list }}", "name of a filter");
}

#[test]
fn wrong_arguments_are_named() {
    for (wrong, part) in [
        ("'a' | center(5, 'x')", "too many arguments"),
        ("[1] | sort(1, 2, 3, 4)", "too many arguments"),
        ("[1] | max(1, 2, 3)", "too many arguments"),
        ("'a' | indent(1, 2, 3, 4)", "too many arguments"),
        ("'a' | truncate(1, 2, 3, 4, 5)", "too many arguments"),
        ("'a'.title(1)", "too many arguments"),
        ("'a'.zfill(1, 2)", "too many arguments"),
        ("'a'.index('a', 1)", "too many arguments"),
        ("'%*d' % ('a', 1)", "`*` in a format needs an integer"),
        (
            "'a' | replace('a', nwe='c')",
            "`replace` has no argument `nwe`",
        ),
        (
            "'a'.replace('a', nwe='c')",
            "`replace` has no argument `nwe`",
        ),
        ("[1] | sort(nwe=1)", "`sort` has no argument `nwe`"),
        ("'a' | center(nwe=1)", "`center` has no argument `nwe`"),
    ] {
        fails(&format!("{{{{ {wrong} }}}}"), part);
    }
    gives(
        "{{ [{'a': 1}, {}] | groupby('a', default=0) | length }}",
        "2",
    );
}

#[test]
fn numbers_and_formats_are_pythons() {
    gives(
        "{{ [none | int(default=5), none | int, none | float(1.5), none | float] }}",
        "[5, 0, 1.5, 0.0]",
    );
    gives(
        "{{ ['0xff' | int(base=0), '-0B11' | int(base=0), '12' | int(base=0)] }}",
        "[255, -3, 12]",
    );
    gives("{{ ['0xff' | int(base=16), 'ff' | int(-1)] }}", "[255, -1]");
    gives("{{ ((1,) + (2,)) ~ ((1,) + [2]) }}", r#""(1, 2)[1, 2]""#);
    let unused = "not all arguments of the format are used";
    fails("{{ '%s' % (1, 2) }}", unused);
    fails("{{ '100%%' % 1 }}", unused);
    fails("{{ '%s' | format(1, 2) }}", unused);
    gives("{{ '%(a)s%%' % {'a': 1, 'b': 2} }}", r#""1%""#);
    gives(
        "{{ ('a' % {'b': 1}) ~ ('%*d' % (3, 1)) ~ ('%s' % [1, 2]) }}",
        r#""a  1[1, 2]""#,
    );
}

#[test]
fn the_first_of_equal_values_is_the_largest() {
    gives("{{ ['a', 'A'] | max }}", r#""a""#);
    gives("{{ ['A', 'a'] | max }}", r#""A""#);
    gives("{{ [1, 1.0, 0] | max }}", "1");
    gives("{{ [1.0, 1] | min }}", "1.0");
    gives(
        "{{ [{'s': 2, 'n': 1}, {'s': 2, 'n': 2}] | max(attribute='s') }}",
        r#"{"s": 2, "n": 1}"#,
    );
    gives("{{ 'aAb' | max }}", r#""b""#);
    gives("{{ {'a': 1, 'b': 0} | max }}", r#""b""#);
    fails("{{ 5 | max }}", "not iterable");
}

#[test]
fn queries_and_json_have_pythons_form() {
    gives(
        "{{ 'a b/c&~\u{e9}' | urlencode }}",
        r#""a%20b/c%26~%C3%A9""#,
    );
    gives(
        "{{ {'q': 'a b/c', 'n': none, 'f': 1.0, 'l': [1]} | urlencode }}",
        r#""q=a+b%2Fc&n=None&f=1.0&l=%5B1%5D""#,
    );
    gives(
        "{{ [['q', 'a+b'], (1, '')] | urlencode }}",
        r#""q=a%2Bb&1=""#,
    );
    gives("{{ 5 | urlencode }}{{ [] | urlencode }}", r#""5""#);
    fails("{{ [1] | urlencode }}", "not iterable");
    fails("{{ [[1]] | urlencode }}", "needs pairs");
    gives(
        "{{ {'b': [1], 'a': \"'\"} | json(indent=2) }}",
        r#""{\n  \"b\": [\n    1\n  ],\n  \"a\": \"'\"\n}""#,
    );
    gives(
        "{{ {'b': 1, 'a': 2} | json(sort_keys=true, indent=none) }}",
        r#""{\"a\": 2, \"b\": 1}""#,
    );
}

#[test]
fn no_list_is_changed_in_place() {
    fails(
        "{% set l = [1] %}{% set _ = l.append(2) %}{{ l }}",
        "write `list + [x]`",
    );
}

#[test]
fn slices_read_what_they_slice() {
    gives("{{ variables.list[1:] }}", "[1, 2]");
    gives("{{ variables.list[:-1] }}", "[3, 1]");
    gives("{{ (state.items | list)[::2] }}", r#"["a"]"#);
    gives("{{ [1, 2, 3][variables.list[1]:] }}", "[2, 3]");
    gives(
        "{% for n in variables.list[1:] %}{{ [n][0:1] }}{% endfor %}",
        r#""[1][2]""#,
    );
    fails("{{ nothing[1:] }}", "`nothing` is not defined");
    fails("{{ nothing[::2] }}", "`nothing` is not defined");
    let list = "{% set l = [1, 2, 3] %}";
    gives(
        &format!("{list}{{% macro m(x=l[:1]) %}}{{{{ l[1:] ~ x }}}}{{% endmacro %}}{{{{ m() }}}}"),
        r#""[2, 3][1]""#,
    );
    for block in ["filter replace('a', l)", "set y | replace('a', l)"] {
        let end = block.split(' ').next().unwrap();
        let text = format!(
            "{{% set l = 'x' %}}{{% macro m() %}}{{% {block} %}}banana{{% end{end} %}}{{{{ y }}}}{{% endmacro %}}{{{{ m() }}}}"
        );
        let text = match end {
            "filter" => text.replace("{{ y }}", ""),
            _ => text,
        };
        gives(&text, r#""bxnxnx""#);
    }
}

/// In Jinja2 a slice of a list is a list.
#[test]
fn slices_are_lists() {
    gives(
        "{{ [[1, 2, 3][1:] is sequence, [1, 2, 3][1:] < [2, 4], [1, 2, 3][::2] >= [1, 2]] }}",
        "[true, true, true]",
    );
    gives("{{ [1, 2, 3][1:].index(3) }}", "1");
    gives(
        "{{ ((1, 2, 3)[1:] ~ 'abc'[1:][1:], -[1, 2][1:][0]) }}",
        r#"["(2, 3)c", -2]"#,
    );
    gives("{{ range(5)[1:3] + [1][:0] }}", "[1, 2]");
}

#[test]
fn absent_names() {
    gives("{{ state.absent }}", "null");
    gives("{{ state['absent'] }}", "null");
    gives("{{ state.user.absent }}", "null");
    gives("{{ state.absent is none }}", "true");
    gives("{{ state.absent | default('z') }}", "null");
    gives("{{ state._absent | default('z') }}", r#""z""#);
    gives("{{ state._absent }}", "null");
    gives("{{ state._private.x }}", "1");
    gives("{{ variables.absent }}", "null");
    gives("{{ 'absent' in state }}", "false");
    gives("{{ 'n' in state }}", "true");
    gives("{{ absent is defined }}", "false");
    gives(
        "{{ state.absent == none }} {{ state.absent != 'x' }}",
        r#""True True""#,
    );
    fails("{{ absent }}", "`absent` is not defined");
    fails(
        "x {{ stat.n }}",
        "`stat` is not defined; did you mean `state`?",
    );
    fails(
        "{{ state.absent.deep.er }}",
        "`state.absent` is none, which has no member `deep`",
    );
    fails(
        "{{ inputs.job.x == 1 }}",
        "`inputs.job` is a string, which has no member `x`",
    );
    fails("{{ inputs.jobb }} ", "did you mean `inputs.job`?");
}

#[test]
fn comparisons_are_pythons() {
    gives("{{ state.n < 3 and state.n >= 2 }}", "true");
    gives("{{ 1 < state.n < 3 }}", "true");
    gives("{{ 'a' < 'b' }}", "true");
    gives("{{ [1, 2] < [1, 3] }}", "true");
    gives("{{ true < 2 }}", "true");
    gives("{{ 1 == 1.0 }}", "true");
    gives("{{ state.items == ['a', 'b'] }}", "true");
    gives("{{ 3 not in [1, 2] }}", "true");
    fails("{{ state.absent < 3 }}", "`state.absent` (none)");
    fails("{{ state.n < '3' }}", "`<` does not compare");
    fails("{{ absent_root < 3 }}", "`absent_root` is not defined");
    fails("{{ state.n + 'x' }}", "`+` does not accept");
    fails("{{ state.user < 1 }}", "a map");
}

#[test]
fn blocks() {
    gives(
        "{% for x in state.items %}{{ loop.index }}{{ x }}{% if not loop.last %}, {% endif %}{% endfor %}",
        r#""1a, 2b""#,
    );
    gives("{% set x = state.n * 2 %}{{ x }}", r#""4""#);
    gives("{% set a, b = (1, 2) %}{{ a }}{{ b }}", r#""12""#);
    gives(
        "{% for k, v in state.user.items() %}{{ k }}={{ v }}{% endfor %}",
        r#""city=Oslo""#,
    );
    gives(
        "{% if state.done %}a{% elif state.n == 2 %}b{% else %}c{% endif %}",
        r#""b""#,
    );
    gives("{% raw %}{{ x }}{% endraw %}{# gone #}!", r#""{{ x }}!""#);
    gives(
        "{% set ns = namespace(t=0) %}{% for x in variables.list %}{% set ns.t = ns.t + x %}{% endfor %}{{ ns.t }}",
        r#""6""#,
    );
    gives(
        "{% macro m(a, b=2) %}{{ a }}{{ b }}{% endmacro %}{{ m(1) }}{{ m(1, b=3) }}",
        r#""1213""#,
    );
    gives(
        "{% with x = 1 %}{{ x }}{% endwith %}{% filter upper %}a{% endfilter %}",
        r#""1A""#,
    );
    gives(
        "{% for x in [1, 2, 3] if x > 1 %}{{ x }}{% else %}none{% endfor %}",
        r#""23""#,
    );
    gives("a  {%- if true -%}  b  {%- endif %}  c", r#""ab  c""#);
    gives(
        "{% for i in range(2) %}{a long piece of text with {braces}}\n{% endfor %}",
        r#""{a long piece of text with {braces}}\n{a long piece of text with {braces}}\n""#,
    );
    fails("{% include 'x' %}", "cannot use other templates");
    for enabled in ["true", "'html'", "state.done"] {
        let text = format!("{{% autoescape {enabled} %}}{{{{ '<' }}}}{{% endautoescape %}}");
        fails(&text, "write `{{ text | escape }}`");
    }
    gives(
        "{% autoescape false %}{{ '<' }}{% endautoescape %}{{ '<' | escape }}",
        r#""<&lt;""#,
    );
    fails("{% for x in state.n %}{% endfor %}", "not iterable");
    fails("{% if %}{% endif %}", "");
}

#[test]
fn conditions() {
    for (text, wanted) in [
        ("state.n < 3", true),
        ("{{ state.n < 3 }}", true),
        ("{{ state.n }} < 3", true),
        ("pending", true),
        ("!pending", false),
        ("! done", true),
        ("not state.done", true),
        ("True", true),
        ("true", true),
        ("False", false),
        ("{% if state.done %}x{% endif %}", false),
        ("{% if not state.done %}False{% endif %}", true),
        ("state.absent", false),
        ("absent", false),
        ("!absent", true),
        ("state.get('k', 0) < 2", true),
        ("state._retry_exhausted", false),
        ("{{ state._retry_exhausted }}", false),
        ("'a' in state.items", true),
        ("state.items", true),
        ("''", false),
        ("0", false),
    ] {
        assert_eq!(holds(text), Ok(wanted), "{text}");
    }
    for text in [
        "state.absent < 3",
        "absent_root < 3",
        "",
        "state.n <",
        "equals(1, 1)",
    ] {
        assert!(holds(text).is_err(), "{text}");
    }
    let error = Condition::parse("equals(1, 1)", Syntax::Jinja).unwrap_err();
    assert!(
        error
            .hint
            .is_some_and(|hint| hint.contains("begin with `@`")),
        "{:?}",
        error.message
    );
}

#[test]
fn places_are_the_authors() {
    let error = |text: &str| {
        let template = Template::parse(text, Syntax::Jinja).unwrap();
        let error = template.eval(&world()).unwrap_err();
        error
            .text
            .get(error.offset..error.offset + error.length)
            .unwrap()
            .to_owned()
    };
    assert_eq!(error("{{ 1 + (state.n < 'x') }}"), "state.n < 'x'");
    assert_eq!(
        error("text {{ state.n + 1 }} and {{ state.n + 'x' }}!"),
        "state.n + 'x'"
    );
    for (text, part, hint) in [
        ("a {{ state.n | tojsn }}", "tojsn", "`tojson`"),
        ("{{ state.n is nmber }}", "nmber", "`number`"),
        (
            "{% for x in rnge(3) %}{{ x }}{% endfor %}",
            "rnge(3)",
            "`range`",
        ),
    ] {
        let error = Template::parse(text, Syntax::Jinja).unwrap_err();
        assert!(error.message.starts_with("unknown "), "{error:?}");
        assert_eq!(
            text.get(error.offset..error.offset + error.length),
            Some(part)
        );
        assert!(error.hint.unwrap().contains(hint));
    }
    let parse = Template::parse("abc {{ 1 + }}", Syntax::Jinja).unwrap_err();
    assert!(parse.offset >= 4, "{parse:?}");
}

#[test]
fn chains_have_the_stated_length() {
    let chain =
        |first: &str, next: &str, count: usize| format!("{{{{ {first}{} }}}}", next.repeat(count));
    for next in [" + 0", " - 0", " * 1", " // 1", " or 1", " and 1", " | abs"] {
        gives(&chain("1", next, 299), "1");
        fails(&chain("1", next, 301), "more than 300 operators");
    }
    gives(&chain("1", " - 1 + 1", 70), "1");
    gives(
        &chain("1", " ~ ',' ~ state.n", 99).replace("~ state.n }", "}"),
        &format!("\"1{}\"", ",2".repeat(98) + ","),
    );
    gives(&chain("1", " if false else 1", 149), "1");
    let nested = |count: usize| format!("{{{{ {}1{} }}}}", "[".repeat(count), "]".repeat(count));
    assert!(eval(&nested(70)).is_ok());
    fails(&nested(80), "nest deeper than about 70 levels");
    let text = chain("1", " + 1", 301);
    let error = Template::parse(&text, Syntax::Jinja).unwrap_err();
    assert!(error.hint.unwrap().contains("join(',')"));
}

/// The budget bounds each template: it ends in an error immediately.
#[test]
fn hostile_templates_end() {
    let many = |open: &str, close: &str| format!("{}1{}", open.repeat(2000), close.repeat(2000));
    for text in [
        "{% for a in range(100000) %}{% for b in range(100000) %}x{% endfor %}{% endfor %}",
        "{% for a in range(100000) %}a long piece of text, a long piece of text, a long piece{% endfor %}{% for a in range(100000) %}a long piece of text, a long piece of text, a long piece, a long piece of text, a long piece of text, a long piece, a long piece of text, a long piece of text, a long piece, a long piece of text, a long piece of text, a long piece{% endfor %}",
        "{{ 'a' * 1000000000 }}",
        "{{ [1] * 1000000000 }}",
        "{{ 'a' * 20000000 ~ 'a' * 20000000 }}",
        "{% set a = 'a' * 1000000 %}{% set a = a ~ a %}{% set a = a ~ a %}{% set a = a ~ a %}{% set a = a ~ a %}{% set a = a ~ a %}{% set a = a + a %}{{ a }}",
        "{{ ('a' * 100000) | replace('a', 'b' * 100000) }}",
        "{{ ('a' * 100000).replace('a', 'b' * 100000) }}",
        "{{ (range(10000) | list) | join('x' * 100000) }}",
        "{{ ('x' * 100000).join(range(10000) | list) }}",
        "{{ '%1000000000d' | format(1) }}",
        "{{ '{:1000000000}'.format(1) }}",
        "{{ '%1000000000d' % 1 }}",
        "{{ 'a\nb' | indent(1000000000) }}",
        "{{ [1, 2] | batch(1000000000, 'x') | list }}",
        "{{ [1, 2] | slice(1000000000) | list }}",
        "{{ 'a' | center(1000000000) }}",
        "{{ [1] | tojson(indent=1000000000) ~ absent }}",
        "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
        "{% set ns = namespace(x=[]) %}{% for i in range(100000) %}{% set ns.x = [ns.x, range(100000) | list] %}{% endfor %}{{ ns.x }}",
        "{% set ns = namespace(x=[]) %}{% for i in range(100000) %}{% set ns.x = [ns.x] %}{% endfor %}{{ ns.x }}",
        "{% set a = range(100000) | list %}{% for i in a %}{% if i in a and -1 in a %}{% endif %}{% endfor %}",
        "{% set a = range(100000) | list %}{% set b = range(100000) | list %}{% for i in a %}{% if a == b %}{% endif %}{% endfor %}",
        "{{ 10 ** 10 ** 10 }}",
        "{{ 9223372036854775807 + 1 }}",
        "{{ range(1000000000) | list }}",
        &many("{{ ", " }}"),
        &many("{{ (", ") }}"),
        &format!("{{{{ {} }}}}", many("(", ")")),
        &format!("{{{{ {} }}}}", many("not ", "")),
        &format!("{{{{ {} }}}}", many("[", "]")),
        &many("{% if 1 %}", "{% endif %}"),
        &format!("{{{{ {} }}}}", many("- ", "")),
        &format!("{{{{ state{} }}}}", ".a".repeat(20_000)),
        &format!("{{{{ 1{} }}}}", "|string".repeat(20_000)),
        &format!("{{{{ 1{} }}}}", " ~ 1".repeat(20_000)),
        &format!("{{{{ 1{} }}}}", " if 1 else 1".repeat(20_000)),
        &format!("{{% if 0 %}}{}{{% endif %}}", "{% elif 0 %}".repeat(20_000)),
        "{% set ns = namespace(x=[1]) %}{% for i in range(100000) %}{% set ns.x = ns.x | chain([1]) %}{% endfor %}{{ ns.x }}",
        "{% set ns = namespace(x={}) %}{% for i in range(100000) %}{% set ns.x = dict(a=ns.x) %}{% endfor %}{{ ns.x }}",
        &format!("{{{{ 1{} }}}}", " < 1".repeat(20_000)),
        &format!("{{{{ {}1{} }}}}", "(1 < ".repeat(40), " < 2)".repeat(40)),
    ] {
        #[allow(clippy::disallowed_methods)] // A test of how long it takes.
        let start = Instant::now();
        let outcome = eval(text);
        let took = start.elapsed();
        let shown: String = text.chars().take(60).collect();
        assert!(
            outcome.is_err(),
            "{shown}: {:?}",
            outcome.map(|value| value.to_json().len())
        );
        assert!(took.as_secs() < 30, "{shown} took {took:?}");
    }
}

#[test]
fn the_state_is_not_converted() {
    struct Once(std::cell::Cell<u32>, Budget);
    impl Env for Once {
        fn variable(&self, _: &str) -> Option<Value> {
            None
        }
        fn action(&self, _: &str) -> windlass_expression::Lookup<windlass_expression::ActionView> {
            windlass_expression::Lookup::NotRun
        }
        fn root(&self, name: &str) -> Option<Value> {
            self.0.set(self.0.get() + 1);
            (name == "state").then(|| Value::from_pairs([("n", Value::Int(1))]))
        }
        fn budget(&self) -> &Budget {
            &self.1
        }
        fn now(&self) -> DateTime<chrono::Utc> {
            DateTime::UNIX_EPOCH
        }
        fn random(&self) -> u64 {
            0
        }
    }
    let env = Once(std::cell::Cell::new(0), Budget::default());
    let template = Template::parse("{{ state.n + state.n }}", Syntax::Jinja).unwrap();
    assert_eq!(template.eval(&env).unwrap(), Value::Int(2));
    assert_eq!(
        env.0.get(),
        1,
        "only the names a template reads are requested, each once"
    );
}
