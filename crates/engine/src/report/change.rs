//! Compares two results of a loop. Lists the first few changed leaves (values that contain no other values) by their
//! paths. Headers of HTTP responses are ignored: a `Date`, for example, always differs and means nothing.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use windlass_expression::{Object, Value};

/// Maximum number of listed changes.
const MAX_CHANGES: usize = 8;

/// One value that differs between two results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Changed {
    /// Path of the value: `fetch.body.remaining`. `….length` if only the lengths of two lists are compared.
    pub path: String,
    /// Older value. Null if the older result does not have it.
    pub from: Value,
    /// Newer value. Null if the newer result does not have it.
    pub to: Value,
}

/// Returns the first differences between two results, in the order of the newer one.
#[must_use]
pub fn changes(before: &Value, after: &Value) -> Vec<Changed> {
    let mut compared = Comparison::new(MAX_CHANGES, false);
    compared.values("", before, after);
    compared.found
}

/// Returns up to `most` differences between two values, and the number of equal leaves. If two lists differ in length,
/// compares their elements, and not only the lengths.
#[must_use]
pub fn compared(before: &Value, after: &Value, most: usize) -> (Vec<Changed>, u64) {
    let mut compared = Comparison::new(most, true);
    compared.values("", before, after);
    (compared.found, compared.same)
}

/// Returns whether two results are equal, ignoring headers of HTTP responses.
#[must_use]
pub fn same(before: &Value, after: &Value) -> bool {
    changes(before, after).is_empty()
}

struct Comparison {
    most: usize,
    /// Whether headers and the elements of lists of different length are compared, too.
    all: bool,
    found: Vec<Changed>,
    same: u64,
}

impl Comparison {
    fn new(most: usize, all: bool) -> Self {
        Self {
            most,
            all,
            found: Vec::new(),
            same: 0,
        }
    }

    fn values(&mut self, path: &str, before: &Value, after: &Value) {
        if self.found.len() >= self.most {
            return;
        }
        if before == after {
            self.same += if self.all { leaves(after) } else { 0 };
            return;
        }
        match (before, after) {
            (Value::Object(old), Value::Object(new)) => self.objects(path, old, new),
            (Value::Array(old), Value::Array(new)) if self.all || old.len() == new.len() => {
                for index in 0..old.len().max(new.len()) {
                    let at = |items: &[Value]| items.get(index).cloned().unwrap_or_default();
                    self.values(&format!("{path}[{index}]"), &at(old), &at(new));
                }
            }
            (Value::Array(old), Value::Array(new)) => {
                let length =
                    |items: &[Value]| Value::Int(i64::try_from(items.len()).unwrap_or(i64::MAX));
                self.push(&join(path, "length"), length(old), length(new));
            }
            _ => self.push(path, before.clone(), after.clone()),
        }
    }

    fn objects(&mut self, path: &str, old: &Object, new: &Object) {
        let answer = new.contains_key("statusCode") && new.contains_key("headers");
        for (key, value) in new {
            if answer && &**key == "headers" {
                continue;
            }
            let before = old.get(key).cloned().unwrap_or_default();
            self.values(&join(path, key), &before, value);
        }
        for (key, value) in old.iter().filter(|(key, _)| !new.contains_key(*key)) {
            self.values(&join(path, key), value, &Value::Null);
        }
    }

    fn push(&mut self, path: &str, from: Value, to: Value) {
        if self.found.len() < self.most {
            let path = if path.is_empty() { "result" } else { path };
            self.found.push(Changed {
                path: path.to_owned(),
                from,
                to,
            });
        }
    }
}

/// Returns the number of leaves in a value: values that contain no other values.
fn leaves(value: &Value) -> u64 {
    match value {
        Value::Object(members) => members.values().map(leaves).sum(),
        Value::Array(items) => items.iter().map(leaves).sum(),
        _ => 1,
    }
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() {
        key.to_owned()
    } else {
        format!("{path}.{key}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(before: &str, after: &str) -> Vec<String> {
        let value = |text| Value::from_json(text).unwrap();
        changes(&value(before), &value(after))
            .into_iter()
            .map(|one| format!("{} {} → {}", one.path, one.from.to_json(), one.to.to_json()))
            .collect()
    }

    #[test]
    fn leaves_are_named_by_path() {
        assert_eq!(
            shown(
                r#"{"a": {"n": 60, "s": "x"}}"#,
                r#"{"a": {"n": 50, "s": "x"}}"#
            ),
            ["a.n 60 → 50"]
        );
        assert_eq!(shown("1", "2"), ["result 1 → 2"]);
        assert_eq!(
            shown(r#"{"a": 1}"#, r#"{"b": 1}"#),
            ["b null → 1", "a 1 → null"]
        );
        assert_eq!(shown("[1, 2]", "[1, 3]"), ["[1] 2 → 3"]);
        assert_eq!(
            shown(r#"{"l": [1]}"#, r#"{"l": [1, 2]}"#),
            ["l.length 1 → 2"]
        );
    }

    #[test]
    fn headers_of_an_answer_do_not_count() {
        let before = r#"{"get": {"statusCode": 200, "headers": {"date": "a"}, "body": 1}}"#;
        let after = r#"{"get": {"statusCode": 200, "headers": {"date": "b"}, "body": 1}}"#;
        assert!(shown(before, after).is_empty());
        assert_eq!(
            shown(r#"{"headers": 1}"#, r#"{"headers": 2}"#),
            ["headers 1 → 2"]
        );
    }

    #[test]
    fn a_long_list_of_changes_is_cut() {
        let list = |n: i64| Value::array((0..100).map(|i| Value::Int(i + n)).collect());
        assert_eq!(changes(&list(0), &list(1)).len(), MAX_CHANGES);
    }
}
