//! What ports accept.

use windlass_expression::{Port, PortKind, Value};

fn value(json: &str) -> Value {
    Value::from_json(json).unwrap()
}

#[test]
fn what_each_kind_takes() {
    use PortKind::{Any, Boolean, Json, Number, String};
    for (kind, given, taken) in [
        (String, r#""a""#, Some(r#""a""#)),
        (String, "1.5", Some(r#""1.5""#)),
        (String, "true", Some(r#""true""#)),
        (String, r#"{"a":[1]}"#, Some(r#""{\"a\":[1]}""#)),
        (Number, "7", Some("7")),
        (Number, r#"" 7 ""#, Some("7")),
        (Number, r#""7.5""#, Some("7.5")),
        (Number, r#""7 apples""#, None),
        (Number, r#""""#, None),
        (Number, "true", None),
        (Number, "[7]", None),
        (Boolean, "false", Some("false")),
        (Boolean, r#""True""#, Some("true")),
        (Boolean, r#""yes""#, None),
        (Boolean, "1", None),
        (Json, r#""{\"a\": 1}""#, Some(r#"{"a":1}"#)),
        (Json, r#""no json""#, None),
        (Json, "[1]", Some("[1]")),
        (Any, r#""{}""#, Some(r#""{}""#)),
    ] {
        let converted = kind.convert(&value(given)).map(|value| value.to_json());
        assert_eq!(converted.as_deref(), taken, "{kind:?} {given}");
    }
}

#[test]
fn null_is_the_default_or_nothing() {
    let port = |required, default: Option<&str>| Port {
        name: "n".into(),
        shown: "input `n` of `x` (line 3)".into(),
        kind: PortKind::Number,
        required,
        must_be_given: false,
        default: default.map(value),
    };
    assert_eq!(port(false, None).accept(&Value::Null), Ok(Value::Null));
    assert_eq!(port(true, Some("4")).accept(&Value::Null), Ok(value("4")));
    assert_eq!(
        port(true, None).accept(&Value::Null).unwrap_err(),
        "input `n` of `x` (line 3) is required and has no value"
    );
    assert_eq!(
        port(false, None).accept(&value(r#""b""#)).unwrap_err(),
        "input `n` of `x` (line 3) must be a number, not \"b\""
    );
}
