//! Converts values to the types of a schema: text to numbers or booleans, and any value to text. It does not validate
//! the values.

use windlass_expression::{Object, Value};

/// Maximum depth of a schema that is followed. It is limited because a schema may refer to itself.
const MAX_DEPTH: usize = 128;

/// Returns a value with its members converted to the schema's types where possible.
pub(crate) fn coerced(value: &Value, schema: &Value, documents: Option<&Object>) -> Value {
    let place = SchemaPosition {
        root: schema,
        folder: "",
        documents,
    };
    place.coerce(value, schema, 0)
}

/// The position of a part of a schema: the document that contains it.
#[derive(Clone, Copy)]
struct SchemaPosition<'a> {
    root: &'a Value,
    folder: &'a str,
    documents: Option<&'a Object>,
}

impl<'a> SchemaPosition<'a> {
    fn coerce(self, value: &Value, schema: &'a Value, depth: usize) -> Value {
        if depth > MAX_DEPTH {
            return value.clone();
        }
        if let Some(to) = schema.get("$ref").and_then(Value::as_str) {
            return match self.resolve(to) {
                Some((place, schema)) => place.coerce(value, schema, depth + 1),
                None => value.clone(),
            };
        }
        let kind = schema.get("type").and_then(Value::as_str);
        match (kind.unwrap_or_default(), value) {
            ("integer", Value::String(text)) => parsed(integer(text), value),
            ("number", Value::String(text)) => parsed(number(text), value),
            ("boolean", Value::String(text)) => parsed(boolean(text), value),
            ("string", Value::String(_)) => value.clone(),
            ("string", other) => Value::text(super::messages::repr_of(other)),
            ("object", Value::Object(members)) => {
                let known = schema.get("properties");
                let member = |(key, member): (&std::sync::Arc<str>, &Value)| {
                    let schema = known.and_then(|known| known.get(key));
                    let member = match schema {
                        Some(schema) => self.coerce(member, schema, depth + 1),
                        None => member.clone(),
                    };
                    (key.clone(), member)
                };
                Value::object(members.iter().map(member).collect())
            }
            ("array", Value::Array(items)) => match schema.get("items") {
                Some(each @ Value::Object(_)) => {
                    let items = items.iter().map(|item| self.coerce(item, each, depth + 1));
                    Value::array(items.collect())
                }
                _ => value.clone(),
            },
            _ => value.clone(),
        }
    }

    /// Returns the target of `$ref`: a part of this document, or of another document relative to its folder.
    fn resolve(self, to: &'a str) -> Option<(Self, &'a Value)> {
        let (path, pointer) = to.split_once('#').unwrap_or((to, ""));
        let place = if path.is_empty() {
            self
        } else {
            let wanted = joined(self.folder, path);
            let mut documents = self.documents?.iter();
            let (name, root) = documents
                .find(|(name, _)| name.strip_prefix("./").unwrap_or(name) == wanted.as_str())?;
            let folder = name.rsplit_once('/').map_or("", |(folder, _)| folder);
            Self {
                root,
                folder,
                ..self
            }
        };
        let mut part = place.root;
        for step in pointer.split('/').filter(|step| !step.is_empty()) {
            let step = step.replace("~1", "/").replace("~0", "~");
            part = match part {
                Value::Array(items) => items.get(step.parse::<usize>().ok()?)?,
                other => other.get(&step)?,
            };
        }
        Some((place, part))
    }
}

/// Resolves a path relative to a folder, without `.` and `..`.
fn joined(folder: &str, path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in folder.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

fn parsed(found: Option<Value>, value: &Value) -> Value {
    found.unwrap_or_else(|| value.clone())
}

fn integer(text: &str) -> Option<Value> {
    text.trim().parse().ok().map(Value::Int)
}

fn number(text: &str) -> Option<Value> {
    let number: f64 = text.trim().parse().ok()?;
    number.is_finite().then_some(Value::Float(number))
}

fn boolean(text: &str) -> Option<Value> {
    match text.trim().to_lowercase().as_str() {
        "true" | "1" | "yes" => Some(Value::Bool(true)),
        "false" | "0" | "no" => Some(Value::Bool(false)),
        _ => None,
    }
}
