//! Converts the answer of a program or a model to named outputs (docs/reference/canvas.md).
//! JSON sets several outputs by name; text is the value of the only output.

use super::port::{Port, excerpt};
use crate::{Object, Value};
use std::sync::Arc;
use windlass_value::nearest;

/// The parsed answer.
pub(super) struct ModelAnswer {
    pub outputs: Object,
    /// The id of the conversation (session) that the answer belongs to, if it has one.
    pub session: Option<Value>,
}

/// Sets the outputs from the answer of a program.
///
/// A JSON object sets the ports by name. Text around the object, or a code fence, is ignored if the outputs cannot be
/// plain text.
///
/// Command-line agents print an envelope: a map with a text `result` and without the name of any port. Then the text
/// in `result` is the answer.
///
/// Text that is not an object is the value of the only declared output. If no output is declared, it is the output
/// `response`.
///
/// # Errors
/// An output is missing or has the wrong kind; the message has its name and line.
pub(super) fn read(answer: &Value, ports: &[Port]) -> Result<ModelAnswer, String> {
    let parsed = match answer {
        Value::String(text) => Value::from_json(text.trim()).ok(),
        other => Some(other.clone()),
    };
    let members = parsed.as_ref().and_then(Value::as_object);
    let mut session = members.and_then(session_of);
    let names_one = |map: &Object| ports.iter().any(|port| map.contains_key(&*port.name));
    let envelope = members
        .filter(|map| !names_one(map))
        .and_then(|map| map.get("result"))
        .filter(|result| result.as_str().is_some());
    if let Some(result) = envelope {
        let inner = read(result, ports)?;
        return Ok(ModelAnswer {
            session: inner.session.or(session),
            ..inner
        });
    }
    let outputs = match (members, ports) {
        (_, []) => Object::from_iter([(Arc::from("response"), answer.clone())]),
        (Some(map), _) if names_one(map) => by_name(map, ports)?,
        (_, [only]) if takes_text(only) => single_output(answer, only)?,
        _ => {
            let inside = answer.as_str().and_then(|text| object_inside(text, ports));
            match (inside, ports) {
                (Some(map), _) => {
                    session = session_of(&map).or(session);
                    by_name(&map, ports)?
                }
                (None, [only]) => single_output(answer, only)?,
                (None, _) => return Err(not_an_object_message(answer, ports)),
            }
        }
    };
    Ok(ModelAnswer { outputs, session })
}

fn session_of(map: &Object) -> Option<Value> {
    let named = map.get("session_id").or_else(|| map.get("sessionId"));
    named.filter(|value| !value.is_null()).cloned()
}

/// Checks the members of a returned map for misspelt names of ports.
/// A name may be missing without an error, because nil in Lua is not a member.
///
/// # Errors
/// A port has no value, and another member has nearly its name.
pub(super) fn misspelt(returned: &Value, ports: &[Port]) -> Result<(), String> {
    let Some(map) = returned.as_object() else {
        return Ok(());
    };
    let left = ports.iter().filter(|port| !map.contains_key(&*port.name));
    let left: Vec<&Port> = left.collect();
    let more = map
        .keys()
        .filter(|key| ports.iter().all(|port| port.name != **key));
    for key in more {
        let near = nearest(key, left.iter().map(|port| &*port.name));
        if let Some(port) = left.iter().find(|port| Some(&*port.name) == near) {
            let message = format!("{} was not given, but `{key}`: is it misspelt?", port.shown);
            return Err(message);
        }
    }
    Ok(())
}

/// Fills ports from the members of a map.
///
/// # Errors
/// A member is missing or has the wrong kind; the message has its name and line.
pub(super) fn by_name(map: &Object, ports: &[Port]) -> Result<Object, String> {
    let mut outputs = Object::with_capacity(ports.len());
    for port in ports {
        let value = match (map.get(&*port.name), &port.default) {
            (Some(value), _) => port.accept(value)?,
            (None, Some(default)) => default.clone(),
            (None, None) if port.required || port.must_be_given => {
                let hint = match port.must_be_given {
                    true => ", and the condition of a loop reads it",
                    false => "",
                };
                return Err(format!("{} was not given{hint}", port.shown));
            }
            (None, None) => Value::Null,
        };
        outputs.insert(Arc::clone(&port.name), value);
    }
    Ok(outputs)
}

fn takes_text(port: &Port) -> bool {
    use super::PortKind::{Any, Boolean, Json, List, Number, String};
    match port.kind {
        String | Any => true,
        Number | Boolean | Json | List => false,
    }
}

fn single_output(answer: &Value, port: &Port) -> Result<Object, String> {
    let value = port.accept(answer)?;
    Ok(Object::from_iter([(Arc::clone(&port.name), value)]))
}

/// Returns the JSON object in a code fence. Without a fence, returns the object from the first brace to the last.
fn object_inside(text: &str, ports: &[Port]) -> Option<Object> {
    let named = |text: &str| {
        let Ok(Value::Object(map)) = Value::from_json(text.trim()) else {
            return None;
        };
        let one = ports.iter().any(|port| map.contains_key(&*port.name));
        one.then(|| Arc::unwrap_or_clone(map))
    };
    // The last fence has the answer. Text before it is the model's reasoning.
    let fenced = text.split("```").skip(1).step_by(2).filter_map(|block| {
        let (language, body) = block.split_once('\n')?;
        let language = language.trim();
        (language.is_empty() || language.eq_ignore_ascii_case("json")).then(|| named(body))?
    });
    fenced.last().or_else(|| {
        let (start, end) = (text.find('{')?, text.rfind('}')?);
        named(text.get(start..=end)?)
    })
}

fn not_an_object_message(answer: &Value, ports: &[Port]) -> String {
    let names: Vec<String> = ports
        .iter()
        .map(|port| format!("`{}`", port.name))
        .collect();
    let shown = ports.first().map_or("", |port| &*port.shown);
    format!(
        "the answer has no JSON object with {}: {} cannot be read from {}",
        names.join(", "),
        shown,
        excerpt(answer)
    )
}

#[cfg(test)]
mod tests {
    use super::super::PortKind;
    use super::*;

    fn port(name: &str, kind: PortKind) -> Port {
        Port {
            name: name.into(),
            shown: format!("output `{name}` of `x` (line 1)").into(),
            kind,
            required: true,
            must_be_given: false,
            default: None,
        }
    }

    fn answer(said: &str, ports: &[Port]) -> Result<(String, Option<String>), String> {
        let answer = read(&Value::text(said), ports)?;
        let session = answer.session.map(|session| session.to_json());
        Ok((Value::object(answer.outputs).to_json(), session))
    }

    #[test]
    fn json_fills_outputs_by_name() {
        let review = [
            port("approved", PortKind::Boolean),
            port("feedback", PortKind::String),
        ];
        let expected = r#"{"approved":false,"feedback":"no"}"#;
        for said in [
            r#"{"feedback": "no", "approved": false, "more": 1, "session_id": "s"}"#,
            r#" {"session_id":"s","result":"{\"approved\": \"false\", \"feedback\": \"no\"}"}"#,
            "Well.\n```json\n{\"approved\": false, \"feedback\": \"no\"}\n```\nSo.",
            "Sure:\n```\n{\"approved\": false, \"feedback\": \"no\", \"session_id\": \"s\"}\n```",
            "I say {\"approved\": false, \"feedback\": \"no\"}.",
        ] {
            let (outputs, session) = answer(said, &review).unwrap();
            assert_eq!(outputs, expected, "{said}");
            assert_eq!(session.is_some(), said.contains("session_id"), "{said}");
        }
        let error = answer("fine by me", &review).unwrap_err();
        assert!(
            error.contains("no JSON object with `approved`, `feedback`"),
            "{error}"
        );
        let error = answer(r#"{"approved": true}"#, &review).unwrap_err();
        assert_eq!(error, "output `feedback` of `x` (line 1) was not given");
        let error = answer(r#"{"approved": "maybe", "feedback": ""}"#, &review).unwrap_err();
        assert!(
            error.contains("must be true or false, not \"maybe\""),
            "{error}"
        );
    }

    #[test]
    fn text_is_the_only_output() {
        let code = [port("code", PortKind::String)];
        for (said, outputs) in [
            ("fn main() {}\n", r#"{"code":"fn main() {}\n"}"#),
            (r#"{"code": "x"}"#, r#"{"code":"x"}"#),
            (r#"{"other": "x"}"#, r#"{"code":"{\"other\": \"x\"}"}"#),
            (r#"{"result": "x = 1"}"#, r#"{"code":"x = 1"}"#),
        ] {
            assert_eq!(answer(said, &code).unwrap().0, outputs);
        }
        let score = [port("score", PortKind::Number)];
        assert_eq!(answer("7\n", &score).unwrap().0, r#"{"score":7}"#);
        assert!(answer("seven", &score).is_err());
        assert_eq!(answer("hi", &[]).unwrap().0, r#"{"response":"hi"}"#);
    }
}
