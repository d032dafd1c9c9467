//! Expressions through the public interface: from a text and a context to a value or an error.

use windlass_expression::*;

fn context(json: &str) -> Context {
    let now = chrono::DateTime::from_timestamp(1_800_000_000, 0).unwrap();
    Context::new(&Value::from_json(json).unwrap(), now, 7).unwrap()
}

const WORLD: &str = r#"{
    "vars": {"n": 3, "Status": "done", "list": [1, 2, 3], "nothing": null, "half": 0.5},
    "inputs": {"job": "j1"},
    "actions": {
        "check": {"status": "Succeeded", "outputs": {"statusCode": 200, "body": {"Status": "complete", "n": null}}},
        "plain": {"outputs": [1, 2]},
        "later": null
    },
    "loops": {"each": {"item": {"a": 1}, "index": 4}},
    "item": 9,
    "state": {"n": 2, "items": ["a"], "done": false, "_private": 1}
}"#;

fn eval(text: &str) -> Result<Value, String> {
    let value = Value::text(text);
    let outcome = context(WORLD).evaluate(Subject::Template, &value);
    outcome.map_err(|error| error.report())
}

fn gives(text: &str, json: &str) {
    let wanted = Value::from_json(json).unwrap();
    match eval(text) {
        Ok(value) => {
            assert_eq!(value, wanted, "{text}");
            assert_eq!(value.kind(), wanted.kind(), "{text}");
        }
        Err(report) => panic!("{text}: {report}"),
    }
}

fn fails(text: &str, part: &str) {
    match eval(text) {
        Ok(value) => panic!("{text} gives {}", value.to_json()),
        Err(report) => assert!(report.contains(part), "{text}: {report}"),
    }
}

fn holds(text: &str) -> Result<bool, String> {
    let condition = Condition::parse(text, Syntax::Loom).map_err(|error| error.to_string())?;
    condition
        .holds(&context(WORLD))
        .map_err(|error| error.to_string())
}

#[test]
fn templates() {
    gives("plain", r#""plain""#);
    gives("@@equals(1, 1)", r#""@equals(1, 1)""#);
    gives("a@example.com", r#""a@example.com""#);
    gives("@variables('n')", "3");
    gives("@{variables('n')}", r#""3""#);
    gives("n=@{variables('n')}, @{true}@{null}.", r#""n=3, True.""#);
    gives("@@{x} and more", r#""@{x} and more""#);
    gives("see @@{x} @{1}", r#""see @{x} 1""#);
    gives(
        "@{createArray(1, 'a', null, 5.0)}",
        r#""[1,\"a\",null,5.0]""#,
    );
    gives("@{5.0} @{2.50}", r#""5 2.5""#);
    gives("@add(variables('N'), 1)\n", "4");
    fails("@variables('n') more", "expected the end of the expression");
    fails("@{variables('n')", "no closing");
}

#[test]
fn jinja_in_loom() {
    gives("{{ state.n + 1 }}", "3");
    gives(" {{ state.items }} ", r#"["a"]"#);
    gives(
        "n: {{ state.n }} {{ state.done }} {{ state.absent }}",
        r#""n: 2 False None""#,
    );
    gives("{{ state.get('k', 0) }}", "0");
    gives("{{ 'a'.upper() }}{{ '}}' }}", r#""A}}""#);
    gives(
        "{% for x in variables.list %}{{ x }},{% endfor %}",
        r#""1,2,3,""#,
    );
    gives("{{ inputs.job }}", r#""j1""#);
    gives("{{ actions.check.outputs.body.Status }}", r#""complete""#);
    gives("{{ variables.list[0] }}", "1");
    gives("@{1} {{ x }}", r#""1 {{ x }}""#);
    fails("{{ stat.n }}", "did you mean `state`?");
    fails("{{ inputs.jobb }}", "did you mean `inputs.job`?");
    fails("{{ 1 +", "");
    fails(
        "{{ actions.check.outputs.body.Statu == 1 }}",
        "`actions.check.outputs.body` has no member `Statu`; did you mean `Status`?",
    );
    fails(
        "{{ actions.check.outputs.body.absent }}",
        "write `| default('')` behind it if it may be missing; it has ",
    );
    fails(
        "{{ actions.later.outputs }}",
        "`actions.later` has not run yet",
    );
}

#[test]
fn members() {
    gives("@body('check').status", r#""complete""#);
    gives("@BODY('CHECK')?['status']", r#""complete""#);
    gives("@outputs('check').statusCode", "200");
    gives("@body('check')?.absent?.deep", "null");
    gives("@variables('nothing')?.x", "null");
    gives("@variables('list')[0]", "1");
    gives("@variables('list')?[7]", "null");
    gives("@items('each').a", "1");
    gives("@actions('check')['outputs']['statusCode']", "200");
    gives("@body('plain')[1]", "2");
    gives("<e>@{xml('<a/>')}</e>", r#""<e><a /></e>""#);
    gives("@concat('x', binary('hi'))", r#""xhi""#);
    fails("@body('check').statu", "did you mean `Status`?");
    fails("@variables('nothing').x", "null has no member");
    fails("@variables('list')[3]", "out of range");
    fails("@variables('n')?.x", "the integer 3 has no member");
    fails("@body('chek')", "did you mean `check`?");
    fails("@body('later')", "has not run");
    fails("@variables('m')", "did you mean `n`?");
}

#[test]
fn carets() {
    let report = eval("@add(1, variables('nn'))").unwrap_err();
    assert!(
        report.contains("\n  @add(1, variables('nn'))\n                    ^^^^"),
        "{report}"
    );
    let report = eval("a @{lenght('x')}").unwrap_err();
    assert!(
        report.contains("\n  a @{lenght('x')}\n      ^^^^^^\n  hint: did you mean `length`?"),
        "{report}"
    );
}

#[test]
fn laziness() {
    gives("@if(true, 1, div(1, 0))", "1");
    gives("@and(false, div(1, 0))", "false");
    gives("@or(true, div(1, 0))", "true");
    gives("@coalesce(null, 2, div(1, 0))", "2");
    fails("@and(true, 1)", "accepts booleans");
    fails("@if('true', 1, 2)", "accepts booleans");
}

#[test]
fn conditions() {
    assert_eq!(holds("@equals(body('check').status, 'complete')"), Ok(true));
    assert_eq!(holds("state.n < 3"), Ok(true));
    assert_eq!(holds("{{ state.done }}"), Ok(false));
    assert_eq!(holds("!done"), Ok(true));
    assert_eq!(holds("{{ state.n }} x"), Ok(true));
    assert!(holds("@variables('n')").is_err());
    let condition = Condition::parse("@equals(1, 1)", Syntax::Loom).unwrap();
    assert!(!condition.clone().negated().holds(&context(WORLD)).unwrap());
    assert_eq!(condition.negated().text(), "@equals(1, 1)");
    assert!(Condition::parse("plain text", Syntax::Azure).is_err());
}

fn object_form(json: &str) -> Result<Value, TryError> {
    context(WORLD).evaluate(Subject::Condition, &Value::from_json(json).unwrap())
}

#[test]
fn conditions_in_object_form() {
    let form = r#"{"and": [{"greater": ["@variables('n')", 2]}, {"not": {"equals": [1, "x"]}}]}"#;
    assert_eq!(object_form(form).unwrap(), Value::Bool(true));
    let form = r#"{"OR": [{"equals": ["@body('check')?.n", null]}, "@div(1, 0)"]}"#;
    assert_eq!(object_form(form).unwrap(), Value::Bool(true));
    assert_eq!(
        object_form(r#"{"equals": [{"a": 1}, {"a": 1}]}"#).unwrap(),
        Value::Bool(true)
    );
    assert_eq!(object_form("true").unwrap(), Value::Bool(true));
    for bad in [
        r#"{"equals": [1]}"#,
        r#"{"eqauls": [1, 2]}"#,
        r#"{"a": 1, "b": 2}"#,
        "[]",
        "5",
    ] {
        assert!(object_form(bad).is_err(), "{bad}");
    }
    let error = object_form(r#"{"and": ["@div(1, 0)"]}"#).unwrap_err();
    assert_eq!(error.place(), Some(("@div(1, 0)", 8, 1)));
}

struct Forgiving(Context);
impl Env for Forgiving {
    fn variable(&self, name: &str) -> Option<Value> {
        self.0.variable(name)
    }
    fn action(&self, name: &str) -> Lookup<ActionView> {
        self.0.action(name)
    }
    fn missing_as_null(&self) -> bool {
        true
    }
    fn budget(&self) -> &windlass_expression::Budget {
        self.0.budget()
    }
    fn now(&self) -> chrono::DateTime<chrono::Utc> {
        self.0.now()
    }
    fn random(&self) -> u64 {
        0
    }
}

#[test]
fn actions_that_have_not_run_are_null_where_forgiven() {
    let env = Forgiving(context(WORLD));
    let eval = |text: &str| Template::parse(text, Syntax::Loom).unwrap().eval(&env);
    assert_eq!(
        eval("@equals(body('later').status.deep, 'x')").unwrap(),
        Value::Bool(false)
    );
    assert_eq!(eval("@body('later')[0]").unwrap(), Value::Null);
    assert!(eval("@body('check').n.deep").is_err());
    let error = eval("@greater(body('later').n, 3)").unwrap_err();
    assert!(error.message.contains("`later` has not run yet"), "{error}");
    assert!(eval("@body('unknown')").is_err());
}

#[test]
fn references() {
    let references = |text: &str| Template::parse(text, Syntax::Loom).unwrap().references();
    assert_eq!(
        references("@if(equals(body('a'), inputs('i')), variables(item()), inputs().j)"),
        [
            Reference::Action("a".into()),
            Reference::Input("i".into()),
            Reference::Input("j".into()),
            Reference::Item,
            Reference::Anything,
        ]
    );
    assert_eq!(
        references(
            "{{ state.x }} {{ actions.a.outputs }} {% for y in loops.l.item %}{{ y }}{% endfor %}"
        ),
        [
            Reference::State("x".into()),
            Reference::Action("a".into()),
            Reference::ActionMember("outputs".into()),
            Reference::Loop("l".into()),
            Reference::LoopMember("item".into()),
        ]
    );
}

#[test]
fn constants() {
    let constant = |text: &str| Template::parse(text, Syntax::Loom).unwrap();
    let all = Template::array(vec![
        constant("a"),
        Template::object(vec![(constant("k"), constant("@@v"))]),
    ]);
    assert_eq!(all.as_constant().unwrap().to_json(), r#"["a",{"k":"@v"}]"#);
    let not = Template::array(vec![all, constant("@item()")]);
    assert!(not.as_constant().is_none());
    assert_eq!(not.source().to_json(), r#"[["a",{"k":"@v"}],"@item()"]"#);
}

#[test]
fn batch_lines() {
    let now = chrono::DateTime::from_timestamp(0, 0).unwrap();
    let line = |text: &str| evaluate_line(text, now, 1).to_json();
    assert_eq!(line(r#"{"expr": "add(1, 2)"}"#), r#"{"value":3}"#);
    assert_eq!(line(r#"{"expr": "@vars"}"#).get(..9), Some(r#"{"error":"#));
    assert_eq!(
        line(r#"{"expr": "state.n + 1", "state": {"n": 1}}"#),
        r#"{"value":2}"#
    );
    assert_eq!(
        line(r#"{"template": {"a": "@{1}"}}"#),
        r#"{"value":{"a":"1"}}"#
    );
    assert_eq!(
        line(r#"{"cond": {"equals": [1, 1.0]}}"#),
        r#"{"value":true}"#
    );
    assert_eq!(line("nonsense").get(..9), Some(r#"{"error":"#));
}

const fn sent<T: Send + Sync + Clone>() {}

#[test]
fn shared_between_threads() {
    sent::<Template>();
    sent::<Condition>();
}
