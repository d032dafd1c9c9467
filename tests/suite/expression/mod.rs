//! Expressions as authors write them: the reference's examples, the examples of docs/reference/expressions.md, hostile
//! ones, and how the engine prints what it parsed.

mod budget;
mod data;
mod exact;
mod extract;
mod jinja;
mod port;
mod templates;
mod wdl;

use chrono::DateTime;
use std::collections::BTreeSet;
use windlass_expression::{Context, Subject, Value};

/// The functions of the documentation and the specification: exactly these must exist.
const FUNCTIONS: &str = "
    chunk concat endsWith formatNumber guid indexOf isFloat isInt lastIndexOf length nthIndexOf
    replace slice split startsWith substring toLower toUpper trim utf8Length utf16Length
    trimByteOrderMark
    contains empty first intersection item join last reverse skip sort take union
    and equals greater greaterOrEquals if isDate less lessOrEquals not or
    array base64 base64ToBinary base64ToString binary bool createArray dataUri dataUriToBinary
    dataUriToString decimal decodeBase64 decodeDataUri decodeUriComponent encodeUriComponent float
    int json string uriComponent uriComponentToBinary uriComponentToString xml
    add div max min mod mul rand range sub
    addDays addHours addMinutes addSeconds addToTime convertFromUtc convertTimeZone convertToUtc
    dateDifference dayOfMonth dayOfWeek dayOfYear formatDateTime formatTimeSpan getFutureTime
    getPastTime parseDateTime startOfDay startOfHour startOfMonth subtractFromTime ticks utcNow
    action actionBody actionOutputs actions body formDataMultiValues formDataValue items
    iterationIndexes listCallbackUrl multipartBody outputs parameters result trigger triggerBody
    triggerFormDataMultiValues triggerFormDataValue triggerMultipartBody triggerOutputs variables
    workflow inputs env schedule secret serverDelay state callbackUrl lastRun
    uriHost uriPath uriPathAndQuery uriPort uriQuery uriScheme
    addProperty coalesce mergeObjects removeProperty setProperty xpath encodeXmlValue
    decodeXmlValue encodeXmlName decodeXmlName";

fn functions() -> BTreeSet<&'static str> {
    FUNCTIONS.split_whitespace().collect()
}

/// The base context, in which the members of `over` replace those of the same name.
fn context(base: &Value, over: Option<&str>) -> Context {
    let mut members = base.as_object().cloned().unwrap_or_default();
    if let Some(over) = over {
        let over = Value::from_json(over).unwrap_or_else(|error| panic!("{over}: {error}"));
        members.extend(over.as_object().cloned().unwrap());
    }
    Context::new(&Value::object(members), DateTime::UNIX_EPOCH, 42).unwrap()
}

/// Runs one example; the error describes the difference.
fn check(context: &Context, expression: &str, expected: &str) -> Result<(), String> {
    let text = Value::text(format!("@{expression}"));
    let outcome = context.evaluate(Subject::Template, &text);
    if let Some(part) = expected.strip_prefix("error") {
        return match outcome {
            Ok(value) => Err(format!("gives {}, not an error", value.to_json())),
            Err(error) if error.to_string().contains(part.trim()) => Ok(()),
            Err(error) => Err(format!("fails with: {error}")),
        };
    }
    let wanted = Value::from_json(expected).map_err(|error| format!("{expected}: {error}"))?;
    match outcome {
        // The reference's page shows no-break spaces as ordinary spaces.
        Ok(value) if value.to_json().replace('\u{a0}', " ") == wanted.to_json() => Ok(()),
        // 3 and 3.0 are the same number.
        Ok(value) if value == wanted => Ok(()),
        Ok(value) => Err(format!("gives {}", value.to_json())),
        Err(error) => Err(error.report()),
    }
}

#[test]
fn the_reference_gives_what_it_says() {
    let mut base = Value::Null;
    let mut seen = BTreeSet::new();
    let mut wrong = Vec::new();
    for line in include_str!("../../expressions/reference.txt").lines() {
        if let Some(given) = line.strip_prefix("context ") {
            base = Value::from_json(given).unwrap();
            continue;
        }
        if line.is_empty() || line.starts_with('#') || line.starts_with("choice:") {
            continue;
        }
        let cells: Vec<&str> = line.split(" | ").collect();
        let (name, expression, expected) = (cells[0], cells[1], cells[2]);
        assert!(
            expression.contains(&format!("{name}(")) || name == "addProperty",
            "{line}"
        );
        seen.insert(name);
        let context = context(&base, cells.get(3).copied());
        if let Err(why) = check(&context, expression, expected) {
            wrong.push(format!("{expression}\n    {why}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // Functions that the reference does not describe are described in docs/reference/expressions.md.
    let undocumented: BTreeSet<&str> = "
        actionBody actionOutputs callbackUrl decodeXmlName decodeXmlValue encodeXmlName encodeXmlValue env
        formatTimeSpan inputs isDate lastRun mergeObjects schedule secret serverDelay state trimByteOrderMark utf16Length utf8Length"
        .split_whitespace()
        .collect();
    let missing: Vec<&str> = functions()
        .into_iter()
        .filter(|name| !seen.contains(name) && !undocumented.contains(name))
        .collect();
    assert!(missing.is_empty(), "no example of {missing:?}");
}

#[test]
fn the_runtime_of_logic_apps_agrees() {
    let base = Value::from_json(r#"{"mode": "azure"}"#).unwrap();
    let context = context(&base, None);
    let mut wrong = Vec::new();
    for line in include_str!("../../expressions/runtime.txt").lines() {
        let case = line.rsplit_once(" | ").filter(|_| !line.starts_with('#'));
        let Some((expression, expected)) = case else {
            continue;
        };
        let text = Value::text(format!("@{expression}"));
        let given = context.evaluate(Subject::Template, &text);
        let given = match given {
            Ok(value) => value.to_json(),
            Err(error) => format!("error {error}"),
        };
        let agrees = match expected.strip_prefix("error ") {
            Some(part) => given.starts_with("error ") && given.contains(part),
            None => given == expected,
        };
        if !agrees {
            wrong.push(format!("{expression}\n    gives {given}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn formats_are_those_of_dotnet() {
    let base = Value::from_json(r#"{"now": "2018-03-15T00:00:00Z"}"#).unwrap();
    let context = context(&base, None);
    let mut wrong = Vec::new();
    for line in include_str!("../../expressions/formats.txt").lines() {
        let example = line.rsplit_once(" | ").filter(|_| !line.starts_with('#'));
        if let Some((expression, expected)) = example
            && let Err(why) = check(&context, expression, expected)
        {
            wrong.push(format!("{expression}\n    {why}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn jinja_gives_what_python_gives() {
    let mut base = Value::Null;
    let mut count = 0;
    let mut wrong = Vec::new();
    for line in include_str!("../../expressions/jinja.txt").lines() {
        if let Some(state) = line.strip_prefix("state ") {
            base = Value::from_pairs([("state", Value::from_json(state).unwrap())]);
        }
        let Some((template, expected)) = line.split_once(" => ") else {
            continue;
        };
        count += 1;
        // A single expression after other text also yields text.
        let text = Value::text(format!("x{template}"));
        let expected = Value::from_json(expected).unwrap();
        let expected = format!("x{}", expected.as_str().unwrap());
        match context(&base, None).evaluate(Subject::Template, &text) {
            Ok(value) if value.as_str() == Some(&*expected) => {}
            Ok(value) => wrong.push(format!("{template}\n    gives {}", value.to_json())),
            Err(error) => wrong.push(format!("{template}\n    {}", error.report())),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count > 300, "only {count} templates were found");
}

/// The data of the examples of docs/reference/expressions.md.
const WORLD: &str = r#"{
    "now": "2024-01-01T00:00:00Z",
    "item": "now",
    "current": {"name": "me", "outputs": {"body": 1}},
    "actions": {
        "get": {"status": "Succeeded", "outputs": {"statusCode": 200, "body": {"id": 7}}},
        "form": {"outputs": {"body": "to=a&to=b&subject=hi+you"}},
        "parts": {"outputs": {"body": {"$multipart": [{"body": "one"}, {"body": "two"}]}}}
    },
    "env": {"HOME_DIR": "/home/me"},
    "secrets": {"token": "<secret token>", "callback:ask": "<address>"},
    "inputs": {"job": "j1"},
    "loops": {"each": {"item": "c", "index": 2}},
    "params": {"region": "west"},
    "results": {"scope": [{"name": "a", "status": "Failed"}]},
    "trigger": {"name": "manual", "callbackUrl": "https://example.com/cb", "outputs": {"body": {"a": 1}}},
    "vars": {"count": 3},
    "workflow": {"name": "demo"},
    "schedule": {"time": "2026-11-28T01:30:00Z"},
    "state": {"n": 2, "done": false, "tags": ["a", "b"], "since": "2026-01-01"},
    "lastRun": {"outputs": {"count": 12}}
}"#;

/// The data of the examples of the trigger's forms and parts.
const FORMS: [(&str, &str); 3] = [
    (
        "triggerFormDataMultiValues",
        r#"{"trigger": {"outputs": {"body": "k=v"}}}"#,
    ),
    (
        "triggerFormDataValue",
        r#"{"trigger": {"outputs": {"body": "k=v"}}}"#,
    ),
    (
        "triggerMultipartBody",
        r#"{"trigger": {"outputs": {"body": {"$multipart": [{"body": "one"}]}}}}"#,
    ),
];

#[test]
fn the_documentation_gives_what_it_says() {
    let base = Value::from_json(WORLD).unwrap();
    let mut seen = BTreeSet::new();
    let mut templates = 0;
    let mut wrong = Vec::new();
    for line in include_str!("../../../docs/reference/expressions.md").lines() {
        let cells: Vec<String> = line
            .replace("\\|", "\u{1}")
            .split(" | ")
            .map(|cell| cell.trim_matches(['|', ' ']).replace('\u{1}', "|"))
            .collect();
        let code = |index: usize| {
            let cell = cells.get(index)?;
            cell.strip_prefix('`')?.strip_suffix('`')
        };
        let outcome = match (cells.first().map(String::as_str), code(0), code(1), code(2)) {
            (Some(name), None, Some(expression), Some(expected)) => {
                assert!(functions().contains(name), "{name} is not a function");
                assert!(expression.contains(&format!("{name}(")), "{line}");
                seen.insert(name.to_owned());
                let over = FORMS.iter().find(|(form, _)| *form == name);
                let context = context(&base, over.map(|(_, over)| *over));
                check(&context, expression, expected)
            }
            (_, Some(template), Some(expected), None)
                if template.contains("{{ ") && cells.len() > 2 =>
            {
                templates += 1;
                let value =
                    context(&base, None).evaluate(Subject::Template, &Value::text(template));
                match value {
                    Ok(value) if value == Value::from_json(expected).unwrap() => Ok(()),
                    Ok(value) => Err(format!("gives {}", value.to_json())),
                    Err(error) => Err(error.report()),
                }
            }
            _ => continue,
        };
        if let Err(why) = outcome {
            wrong.push(format!("{line}\n    {why}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let missing: Vec<&str> = functions()
        .into_iter()
        .filter(|name| !seen.contains(*name))
        .collect();
    assert!(missing.is_empty(), "no example of {missing:?}");
    assert!(templates >= 10, "only {templates} templates were found");
}
