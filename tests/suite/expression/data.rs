//! The data operations of Logic Apps as templates.

use windlass_expression::{Condition, Context, Syntax, TableFormat, Template, Value};

fn json(text: &str) -> Value {
    Value::from_json(text).unwrap()
}

fn wdl(text: &str) -> Template {
    Template::parse(text, Syntax::Azure).unwrap()
}

fn eval(template: &Template) -> Result<Value, String> {
    let context =
        json(r#"{"vars": {"rows": [{"a": 1, "b": "x,\"y\""}, {"a": 2}], "n": [1, 2, 3]}}"#);
    let context = Context::new(&context, chrono::DateTime::UNIX_EPOCH, 0).unwrap();
    template.eval(&context).map_err(|error| error.message)
}

#[test]
fn select_query_and_join() {
    let rows = wdl("@variables('rows')");
    let select = Template::object(vec![(
        Template::constant("id".into()),
        wdl("@add(item().a, 10)"),
    )]);
    assert_eq!(
        eval(&Template::select(rows, select)).unwrap().to_json(),
        r#"[{"id":11},{"id":12}]"#
    );
    let when = Condition::parse("@greater(item(), 1)", Syntax::Azure).unwrap();
    let query = Template::query(wdl("@variables('n')"), when);
    assert_eq!(eval(&query).unwrap().to_json(), "[2,3]");
    let join = Template::join(wdl("@variables('n')"), Template::constant("; ".into()));
    assert_eq!(eval(&join).unwrap(), Value::from("1; 2; 3"));
    let wrong = Template::join(wdl("@first(variables('n'))"), Template::constant("".into()));
    assert!(eval(&wrong).unwrap_err().contains("must be an array"));
}

#[test]
fn tables() {
    let rows = || wdl("@variables('rows')");
    let table = Template::table(rows(), TableFormat::Csv, None);
    assert_eq!(
        eval(&table).unwrap(),
        Value::from("a,b\r\n1,\"x,\"\"y\"\"\"\r\n2,\r\n")
    );
    let columns = vec![(Template::constant("<A>".into()), wdl("@item().a"))];
    let table = Template::table(rows(), TableFormat::Html, Some(columns));
    assert_eq!(
        eval(&table).unwrap(),
        Value::from(
            "<table><thead><tr><th>&lt;A&gt;</th></tr></thead><tbody>\
             <tr><td>1</td></tr><tr><td>2</td></tr></tbody></table>"
        )
    );
}

#[test]
fn parse_json_checks_its_schema() {
    let schema = json(
        r#"{"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}"#,
    );
    let parse = |text: &str| {
        let content = Template::constant(Value::from(text));
        eval(&Template::parse_json(content, Some(&schema)).unwrap())
    };
    assert_eq!(parse(r#"{"id": 7}"#).unwrap().to_json(), r#"{"id":7}"#);
    assert!(parse(r#"{"id": "7"}"#).unwrap_err().contains("id"));
    assert!(parse("{}").unwrap_err().contains("id"));
    assert!(parse("{").unwrap_err().contains("not JSON"));
}

/// A word of draft 4 must not disable the whole schema.
#[test]
fn parse_json_knows_the_words_of_draft_4() {
    let schema = json(
        r#"{"properties": {"n": {"minimum": 0, "exclusiveMinimum": true},
            "list": {"type": "array", "items": [{"type": "string"}]}}}"#,
    );
    let parse = |text: &str| {
        let content = Template::constant(Value::from(text));
        eval(&Template::parse_json(content, Some(&schema)).unwrap())
    };
    assert!(parse(r#"{"n": 1, "list": ["a"]}"#).is_ok());
    assert!(parse(r#"{"n": 0}"#).unwrap_err().contains("/n"));
    assert!(parse(r#"{"list": [1]}"#).unwrap_err().contains("/list/0"));
    let wrong = json(r#"{"properties": {"a": {"type": "objekt"}}}"#);
    let parsed = Template::parse_json(Template::constant(Value::from("1")), Some(&wrong));
    assert!(parsed.unwrap_err().contains("/properties/a/type"));
}

#[test]
fn a_call_of_templates() {
    let call = Template::call("concat", vec![wdl("@first(variables('n'))"), wdl("-")]).unwrap();
    assert_eq!(eval(&call).unwrap(), Value::from("1-"));
    assert!(Template::call("concatt", Vec::new()).is_err());
}
