//! The tree of a file: values of the kinds that JSON has, each with its position. A map preserves the order of its
//! keys, and never has a key twice.

use super::Span;
use windlass_value::Value;

#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    pub span: Span,
    pub kind: Kind,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// `null`, `~`, or a missing value.
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    String(Text),
    Array(Vec<Node>),
    Object(Vec<Entry>),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    pub key: String,
    pub key_span: Span,
    pub value: Node,
}

/// A text, with the data to find a part of it in the file.
#[derive(Clone, Debug, PartialEq)]
pub struct Text {
    /// The value of the text, without escapes and with folded lines joined.
    pub text: String,
    pub(super) style: Style,
    /// The byte of the file's content at which the text begins: at its quote if it has quotes, and at its first line if
    /// it is a block.
    pub(super) start: usize,
}

/// How a text is quoted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Without quotes.
    Plain,
    Single,
    /// `"…"`, YAML or JSON.
    Double,
    Block,
}

impl Node {
    /// Creates a tree from a value that is not written in a file. All parts of the tree have the position `span`.
    #[must_use]
    pub fn made(value: Value, span: Span) -> Self {
        let kind = match value {
            Value::Null => Kind::Null,
            Value::Bool(value) => Kind::Bool(value),
            Value::Int(value) => Kind::Int(value),
            Value::Float(value) => Kind::Float(value),
            Value::Array(items) => {
                let items = items.iter().map(|item| Self::made(item.clone(), span));
                Kind::Array(items.collect())
            }
            Value::Object(map) => {
                let entries = map.iter().map(|(key, value)| Entry {
                    key: key.to_string(),
                    key_span: span,
                    value: Self::made(value.clone(), span),
                });
                Kind::Object(entries.collect())
            }
            other => Kind::String(Text {
                text: other.as_str().unwrap_or_default().to_owned(),
                style: Style::Plain,
                start: usize::MAX,
            }),
        };
        Self { span, kind }
    }

    #[must_use]
    pub fn to_value(&self) -> Value {
        match &self.kind {
            Kind::Null => Value::Null,
            Kind::Bool(value) => Value::Bool(*value),
            Kind::Int(value) => Value::Int(*value),
            Kind::Float(value) => Value::Float(*value),
            Kind::String(text) => Value::text(&text.text),
            Kind::Array(items) => Value::array(items.iter().map(Self::to_value).collect()),
            Kind::Object(entries) => {
                let members = entries.iter();
                Value::from_pairs(members.map(|entry| (entry.key.as_str(), entry.value.to_value())))
            }
        }
    }

    /// Returns a copy of the tree in which `replace` has replaced texts. A text for which it returns `None` stays.
    #[must_use]
    pub fn map_texts(&self, replace: &mut dyn FnMut(&Text, Span) -> Option<Self>) -> Self {
        let kind = match &self.kind {
            Kind::String(text) => {
                return replace(text, self.span).unwrap_or_else(|| self.clone());
            }
            Kind::Array(items) => {
                let items = items.iter().map(|item| item.map_texts(replace));
                Kind::Array(items.collect())
            }
            Kind::Object(entries) => {
                let entries = entries.iter().map(|entry| Entry {
                    key: entry.key.clone(),
                    key_span: entry.key_span,
                    value: entry.value.map_texts(replace),
                });
                Kind::Object(entries.collect())
            }
            other => other.clone(),
        };
        let span = self.span;
        Self { span, kind }
    }

    /// Returns the items of a list, and the values of a map with their keys.
    pub fn children(&self) -> impl Iterator<Item = (Option<&str>, &Self)> {
        let (items, entries): (&[Self], &[Entry]) = match &self.kind {
            Kind::Array(items) => (items, &[]),
            Kind::Object(entries) => (&[], entries),
            _ => (&[], &[]),
        };
        let entries = entries.iter();
        let entries = entries.map(|entry| (Some(entry.key.as_str()), &entry.value));
        items.iter().map(|item| (None, item)).chain(entries)
    }

    /// Returns the name of the kind, for messages to authors.
    #[must_use]
    pub fn kind_name(&self) -> &'static str {
        match self.kind {
            Kind::Null => "nothing",
            Kind::Bool(_) => "a boolean",
            Kind::Int(_) => "a whole number",
            Kind::Float(_) => "a number",
            Kind::String(_) => "text",
            Kind::Array(_) => "a list",
            Kind::Object(_) => "a map",
        }
    }

    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        match &self.kind {
            Kind::String(text) => Some(&text.text),
            _ => None,
        }
    }

    #[must_use]
    pub fn entries(&self) -> Option<&[Entry]> {
        match &self.kind {
            Kind::Object(entries) => Some(entries),
            _ => None,
        }
    }

    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Node> {
        let entries = self.entries()?;
        let entry = entries.iter().find(|entry| entry.key == key)?;
        Some(&entry.value)
    }

    /// Does the same as `get`, for a format whose keys are compared without case.
    #[must_use]
    pub fn get_any_case(&self, key: &str) -> Option<&Node> {
        let mut entries = self.entries()?.iter();
        let same = |entry: &&Entry| entry.key.eq_ignore_ascii_case(key);
        let entry = self.get(key);
        entry.or_else(|| entries.find(same).map(|entry| &entry.value))
    }
}
