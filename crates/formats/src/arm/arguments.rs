//! Checks the arguments of the functions in deployment expressions.
//! Functions that WDL implements check their arguments themselves.

use windlass_expression::Value;

/// Returns the minimum and maximum number of arguments of a function.
fn counts(lower: &str) -> Option<(usize, usize)> {
    Some(match lower {
        "parameters" | "variables" | "items" | "objectkeys" | "base64tojson"
        | "datetimefromepoch" | "datetimetoepoch" | "shallowmerge" | "flatten"
        | "lambdavariables" => (1, 1),
        "uri" | "indexfromend" | "tryindexfromend" | "map" | "filter" | "sort" => (2, 2),
        "tryget" => (2, usize::MAX),
        "if" | "reduce" => (3, 3),
        "padleft" | "toobject" => (2, 3),
        "datetimeadd" => (2, 3),
        "utcnow" => (0, 1),
        "copyindex" => (0, 2),
        "format" | "concat" | "uniquestring" | "guid" => (1, usize::MAX),
        "newguid" | "true" | "false" | "null" => (0, 0),
        _ => return None,
    })
}

/// Refuses a number of arguments that a function does not accept.
pub(super) fn check_count(name: &str, lower: &str, given: usize) -> Result<(), String> {
    match counts(lower) {
        Some((least, most)) if given < least || given > most => {
            let takes = match (least, most) {
                (least, usize::MAX) => format!("{least} or more"),
                (least, most) if least == most => least.to_string(),
                (least, most) => format!("{least} to {most}"),
            };
            Err(format!("`{name}` needs {takes} arguments, and has {given}"))
        }
        _ => Ok(()),
    }
}

/// Refuses arguments whose type the function would ignore or have to guess.
pub(super) fn check_kinds(name: &str, lower: &str, arguments: &[Value]) -> Result<(), String> {
    let wrong = |value: &Value, wanted: &str| {
        Err(format!("`{name}` needs {wanted}, and has {}", value.kind()))
    };
    match (lower, arguments) {
        ("concat", [first, ..]) => {
            let lists = matches!(first, Value::Array(_));
            let wanted = match lists {
                true => "only arrays after an array",
                false => "text, or only arrays",
            };
            let fits = |value: &&Value| match value {
                Value::Array(_) => lists,
                Value::Object(_) => false,
                _ => !lists,
            };
            match arguments.iter().find(|value| !fits(value)) {
                Some(other) => wrong(other, wanted),
                None => Ok(()),
            }
        }
        ("items" | "objectkeys", [value]) if value.as_object().is_none() => {
            wrong(value, "an object")
        }
        ("shallowmerge", [value])
            if value
                .as_array()
                .is_none_or(|all| all.iter().any(|one| one.as_object().is_none())) =>
        {
            wrong(value, "an array of objects")
        }
        ("flatten", [value])
            if value
                .as_array()
                .is_none_or(|all| all.iter().any(|one| one.as_array().is_none())) =>
        {
            wrong(value, "an array of arrays")
        }
        ("indexfromend" | "tryindexfromend", [items, back])
            if items.as_array().is_none() || back.as_int().is_none() =>
        {
            wrong(items, "an array and a whole number")
        }
        ("padleft", [_, width, ..]) if width.as_int().is_none() => {
            wrong(width, "a whole number as the length")
        }
        ("padleft", [_, _, with]) if with.as_str().is_none_or(|with| with.chars().count() != 1) => {
            Err(format!(
                "`{name}` needs one character to fill with, and has {}",
                with.to_json()
            ))
        }
        _ => Ok(()),
    }
}
