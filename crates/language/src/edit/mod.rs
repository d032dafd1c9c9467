//! Small edits of a workflow's text, for the panels and the canvas of an editor.
//! An edit first changes the tree of values. Then the text is changed only where the tree has changed. Before the new
//! text is returned, its value is compared with the intended value.

mod canvas;
mod fields;
mod nodes;
mod panel;
mod ports;
mod rename;
mod rewrite;
mod structure;
#[cfg(test)]
pub(crate) mod tests;
mod types;

pub use fields::{Choice, Column, Field, FieldKind, Parts};
pub use panel::{Panel, Section, panel};
pub use ports::PortOf;
pub use types::{NodeType, types};

use nodes::{AuthoredNode, find};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use similar::{DiffOp, TextDiff};
use utoipa::ToSchema;
use windlass_engine::{Bundle, Dialect, dialect_of};
use windlass_formats::Caps;
use windlass_source::source::{self, Form, Node, TextEdit, WrittenText};

/// Maximum number of edits in one request.
const MANY: usize = 1_000;

/// One edit of a text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "op", rename_all = "snake_case")]
pub enum Edit {
    /// Sets a field of the panel of a node (`node` and `field`), or the value at a JSON pointer (`pointer`).
    Set {
        /// Path of the node, or its name. Absent with `pointer`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        node: Option<String>,
        /// Id of the field in the panel of the node. Absent with `pointer`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        field: Option<String>,
        /// JSON pointer to the value in the text, instead of `node` and `field`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pointer: Option<String>,
        /// New value. For a field, null removes it from the text.
        #[serde(default)]
        value: Value,
    },
    /// Removes the value at a JSON pointer.
    Remove {
        /// JSON pointer to the value in the text.
        pointer: String,
    },
    /// Adds a node.
    Add {
        /// Whether the new node is added before, after or inside of `node`.
        #[serde(rename = "where")]
        place: Where,
        /// Path or name of the existing node to which `where` is relative. If empty, the new node is added at the top.
        #[serde(default)]
        node: String,
        /// Name of the new node. If absent, a name is made from the type.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        /// Type of the new node, as `POST /v1/language/types` lists it.
        #[serde(rename = "type")]
        kind: String,
        /// The new node, without its name. If absent, the smallest valid node of the type.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        value: Option<Value>,
        /// Horizontal position of the new node on a canvas. Used only together with `y`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        x: Option<f64>,
        /// Vertical position of the new node on a canvas. Used only together with `x`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        y: Option<f64>,
    },
    /// Removes a node, and the references to it in orders and connections.
    Delete {
        /// Path of the node, or its name.
        node: String,
    },
    /// Renames a node, and changes all references to it in the text.
    Rename {
        /// Path of the node, or its name.
        node: String,
        /// New name of the node.
        name: String,
    },
    /// Connects an output with an input. Only in a canvas.
    Connect {
        /// Output as `node.port`, or only `node` to set the order.
        from: String,
        /// Input as `node.port`, or only `node` to set the order.
        to: String,
        /// Path of the loop that contains both nodes. If absent, they are at the top.
        #[serde(rename = "in", default, skip_serializing_if = "Option::is_none")]
        inside: Option<String>,
    },
    /// Removes a connection. Only in a canvas.
    Disconnect {
        /// Output as `node.port`, or only `node`.
        from: String,
        /// Input as `node.port`, or only `node`.
        to: String,
        /// Path of the loop that contains both nodes. If absent, they are at the top.
        #[serde(rename = "in", default, skip_serializing_if = "Option::is_none")]
        inside: Option<String>,
    },
    /// Moves a node. Only in a canvas.
    Move {
        /// Path of the node, or its name.
        node: String,
        /// New horizontal position on the canvas.
        x: f64,
        /// New vertical position on the canvas.
        y: f64,
    },
}

/// Where a new node is added: before a node, after it, or inside of it at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Where {
    /// Before the node.
    Before,
    /// After the node.
    After,
    /// At the end of the inside of the node.
    Inside,
}

/// Result of an edit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Edited {
    /// Complete new text, with the byte order mark of the old one.
    pub text: String,
    /// Differences from the old text. Columns do not count a byte order mark.
    pub edits: Vec<TextEdit>,
    /// Path of the node that was added or renamed last. Absent without such a node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
}

/// Applies edits to the first file of a bundle.
///
/// # Errors
/// A message that says why an edit is not possible.
pub fn edit(bundle: &Bundle, dialect: Option<Dialect>, edits: &[Edit]) -> Result<Edited, String> {
    if edits.len() > MANY {
        return Err(format!("at most {MANY} edits are made at a time"));
    }
    let mut document = Document::read(bundle.clone(), dialect)?;
    let before = document.text().to_owned();
    let was_wrong = document.mistake().is_some();
    let mut node = None;
    for one in edits {
        node = document.apply(one)?.or(node);
    }
    if let Some(mistake) = document.mistake().filter(|_| !was_wrong) {
        return Err(mistake);
    }
    let edits = difference(&before, document.text());
    let file = document.bundle.files.into_iter().next();
    Ok(Edited {
        text: file.map(|file| file.text).unwrap_or_default(),
        edits,
        node,
    })
}

/// A workflow's text with its values.
struct Document {
    bundle: Bundle,
    dialect: Dialect,
    json: bool,
    written: WrittenText,
    value: Value,
}

impl Document {
    fn read(bundle: Bundle, dialect: Option<Dialect>) -> Result<Self, String> {
        let Some(read) = source::parse_document(&bundle, 0) else {
            return Err(String::from("the text cannot be read: correct it first"));
        };
        let dialect = dialect_of(&bundle, dialect).unwrap_or(Dialect::Loom);
        Ok(Self {
            value: value_of(&read.node),
            bundle,
            dialect,
            json: read.json,
            written: read.written,
        })
    }

    fn text(&self) -> &str {
        self.bundle
            .file(0)
            .map(|file| file.content())
            .unwrap_or_default()
    }

    fn nodes(&self) -> Vec<AuthoredNode> {
        nodes::nodes(&self.value, self.dialect)
    }

    fn find(&self, path_or_name: &str) -> Result<AuthoredNode, String> {
        find(&self.nodes(), path_or_name)
    }

    fn at(&self, pointer: &str) -> Option<&Value> {
        self.value.pointer(pointer)
    }

    /// Returns the message of the workflow's first error.
    fn mistake(&self) -> Option<String> {
        let (_, found) = windlass_formats::read(&self.bundle, Some(self.dialect), &Caps::default());
        let sorted = found.sorted();
        let mut errors = sorted
            .iter()
            .filter(|one| one.severity == windlass_source::diagnostic::Severity::Error);
        let first = errors.next()?;
        let hint = first.hint.as_ref().map(|hint| format!(" ({hint})"));
        let hint = hint.unwrap_or_default();
        Some(format!("line {}: {}{hint}", first.span.line, first.message))
    }

    /// Changes the text so that its value is `value`.
    fn replace_value(&mut self, value: Value) -> Result<(), String> {
        if value == self.value {
            return Ok(());
        }
        let text = rewrite::rewrite(self.text(), &self.written, self.json, &self.value, &value);
        self.replace_text(text, &value)
    }

    fn replace_text(&mut self, text: String, meant: &Value) -> Result<(), String> {
        let mut bundle = self.bundle.clone();
        if let Some(file) = bundle.files.first_mut() {
            // The byte order mark before the content is retained.
            let mark = file.text.len() - file.content().len();
            file.text.truncate(mark);
            file.text.push_str(&text);
        }
        let refused = "the text is written in a way that this edit cannot keep (an anchor, a merge key, a \
                       tag, or a block of text at the end of a file without a line break): change it by hand";
        let edited = Self::read(bundle, Some(self.dialect)).map_err(|_| refused.to_owned())?;
        if !same(&edited.value, meant) {
            return Err(refused.to_owned());
        }
        *self = edited;
        Ok(())
    }

    /// Renames a key of a map.
    fn rename_key(&mut self, map: &str, old: &str, new: &str) -> Result<(), String> {
        let mut meant = self.value.clone();
        let members = meant.pointer_mut(map).and_then(Value::as_object_mut);
        let members = members.ok_or_else(|| format!("`{map}` is not a map"))?;
        if members.contains_key(new) {
            return Err(format!("there is a `{new}` already"));
        }
        let renamed = std::mem::take(members).into_iter();
        let renamed = renamed.map(|(key, value)| match key == old {
            true => (new.to_owned(), value),
            false => (key, value),
        });
        *members = renamed.collect::<Map<_, _>>();
        let Some(Form::Map { entries, .. }) = written_at(&self.written, map).map(|at| &at.form)
        else {
            return Err(format!("`{old}` is not written there: change it by hand"));
        };
        let Some(entry) = entries.iter().find(|entry| entry.key == old) else {
            return Err(format!("`{old}` is not written there: change it by hand"));
        };
        let text = rewrite::with_key(self.text(), entry, self.json, new);
        self.replace_text(text, &meant)
    }

    /// Applies one edit. Returns the path of the node if the edit adds or renames one.
    fn apply(&mut self, edit: &Edit) -> Result<Option<String>, String> {
        match edit {
            Edit::Set {
                node: Some(node),
                field: Some(field),
                pointer: None,
                value,
            } => {
                let value = panel::with_field(self, node, field, value)?;
                self.replace_value(value)?;
            }
            Edit::Set {
                node: None,
                field: None,
                pointer: Some(pointer),
                value,
            } => {
                let mut document = self.value.clone();
                set(&mut document, pointer, value.clone())?;
                self.replace_value(document)?;
            }
            Edit::Set { .. } => {
                return Err(String::from("`set` needs `node` and `field`, or `pointer`"));
            }
            Edit::Remove { pointer } => {
                let mut document = self.value.clone();
                if !remove(&mut document, pointer) {
                    return Err(format!("there is nothing at `{pointer}`"));
                }
                self.replace_value(document)?;
            }
            Edit::Add { .. } => return structure::add(self, edit).map(Some),
            Edit::Delete { node } => structure::delete(self, node)?,
            Edit::Rename { node, name } => return rename::rename(self, node, name).map(Some),
            Edit::Connect { from, to, inside } => {
                canvas::connect(self, from, to, inside.as_deref().unwrap_or_default())?;
            }
            Edit::Disconnect { from, to, inside } => {
                canvas::disconnect(self, from, to, inside.as_deref().unwrap_or_default())?;
            }
            Edit::Move { node, x, y } => canvas::place(self, node, *x, *y)?,
        }
        Ok(None)
    }
}

/// Converts a tree to a value.
fn value_of(node: &Node) -> Value {
    serde_json::to_value(node.to_value()).unwrap_or_default()
}

/// Returns true if two values are equal. Numbers are compared by value, and the order of keys is ignored.
/// A browser does not distinguish `1.0` from `1`, so a form that it sends back has `1` for both.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => {
            let are_integers = !a.is_f64() && !b.is_f64();
            a == b || (!are_integers && a.as_f64() == b.as_f64())
        }
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            let other = |(key, a): (&String, &Value)| b.get(key).is_some_and(|b| same(a, b));
            a.len() == b.len() && a.iter().all(other)
        }
        _ => a == b,
    }
}

/// Returns the keys of a JSON pointer.
fn keys(pointer: &str) -> Result<Vec<String>, String> {
    match pointer.strip_prefix('/') {
        None if pointer.is_empty() => Ok(Vec::new()),
        None => Err(format!(
            "`{pointer}` is not a valid JSON pointer: it begins with `/`"
        )),
        Some(keys) => keys.split('/').map(|key| unescaped(pointer, key)).collect(),
    }
}

/// Returns a key of a JSON pointer without its escapes (RFC 6901, 3 and 4).
fn unescaped(pointer: &str, key: &str) -> Result<String, String> {
    let mut parts = key.split('~');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (letter, rest) = match (part.strip_prefix('0'), part.strip_prefix('1')) {
            (Some(rest), _) => ('~', rest),
            (_, Some(rest)) => ('/', rest),
            (None, None) => {
                return Err(format!(
                    "`{pointer}` is not a valid JSON pointer: write `~` as `~0`, and `/` in a key as `~1`"
                ));
            }
        };
        plain.push(letter);
        plain.push_str(rest);
    }
    Ok(plain)
}

/// Parses a key of a JSON pointer as an index (RFC 6901, 4): digits without a sign or leading zeros.
fn index(key: &str) -> Option<usize> {
    let is_plain = key == "0" || !key.starts_with(['0', '+']);
    key.parse().ok().filter(|_| is_plain)
}

/// Sets the value at a pointer and creates missing maps. The key `-` appends to a list.
fn set(document: &mut Value, pointer: &str, value: Value) -> Result<(), String> {
    let mut at = document;
    for key in keys(pointer)? {
        if at.is_null() {
            *at = Value::Object(Map::new());
        }
        at = match at {
            Value::Object(members) => members.entry(key).or_insert(Value::Null),
            Value::Array(items) => {
                let index = match key.as_str() {
                    "-" => items.len(),
                    key => index(key).unwrap_or(usize::MAX),
                };
                if index == items.len() {
                    items.push(Value::Null);
                }
                let missing = || format!("`{pointer}` names no item of the list");
                items.get_mut(index).ok_or_else(missing)?
            }
            _ => return Err(format!("`{pointer}` leads into a value that is not a map")),
        };
    }
    *at = value;
    Ok(())
}

/// Removes the value at a pointer. Returns false if it does not exist.
fn remove(document: &mut Value, pointer: &str) -> bool {
    let Ok(mut keys) = keys(pointer) else {
        return false;
    };
    let Some(last) = keys.pop() else { return false };
    let parent = keys.iter().try_fold(document, |at, key| match at {
        Value::Object(members) => members.get_mut(key),
        Value::Array(items) => items.get_mut(index(key)?),
        _ => None,
    });
    match parent {
        Some(Value::Object(members)) => members.shift_remove(&last).is_some(),
        Some(Value::Array(items)) => match index(&last) {
            Some(index) if index < items.len() => {
                items.remove(index);
                true
            }
            _ => false,
        },
        _ => false,
    }
}

fn written_at<'w>(root: &'w WrittenText, pointer: &str) -> Option<&'w WrittenText> {
    keys(pointer)
        .ok()?
        .iter()
        .try_fold(root, |at, key| match &at.form {
            Form::Map { entries, .. } => {
                let entry = entries.iter().find(|entry| entry.key == *key)?;
                Some(&entry.value)
            }
            Form::List { items, .. } => items.get(index(key)?),
            Form::Scalar(_) | Form::Alias => None,
        })
}

/// Returns the changes between two texts.
/// They contain as few lines as possible, and as few characters of each line as possible.
fn difference(before: &str, after: &str) -> Vec<TextEdit> {
    let lines = source::Lines::new(before);
    let diff = TextDiff::from_lines(before, after);
    let starts = |slices: &[&str]| {
        let mut at = 0;
        let mut starts = vec![0];
        starts.extend(slices.iter().map(|slice| {
            at += slice.len();
            at
        }));
        starts
    };
    let (old_starts, new_starts) = (starts(diff.old_slices()), starts(diff.new_slices()));
    let byte =
        |starts: &[usize], line: usize, text: &str| starts.get(line).copied().unwrap_or(text.len());
    let changed = diff
        .ops()
        .iter()
        .filter(|op| !matches!(op, DiffOp::Equal { .. }));
    let edit = |op: &DiffOp| {
        let (old, new) = (op.old_range(), op.new_range());
        let mut bytes = byte(&old_starts, old.start, before)..byte(&old_starts, old.end, before);
        let new = byte(&new_starts, new.start, after)..byte(&new_starts, new.end, after);
        let mut new_text = after.get(new).unwrap_or_default();
        let old_text = before.get(bytes.clone()).unwrap_or_default();
        let head: usize = old_text
            .chars()
            .zip(new_text.chars())
            .take_while(|(a, b)| a == b)
            .map(|(a, _)| a.len_utf8())
            .sum();
        new_text = new_text.get(head..).unwrap_or_default();
        let old_text = old_text.get(head..).unwrap_or_default();
        let tail: usize = old_text
            .chars()
            .rev()
            .zip(new_text.chars().rev())
            .take_while(|(a, b)| a == b)
            .map(|(a, _)| a.len_utf8())
            .sum();
        bytes = bytes.start + head..bytes.end - tail;
        TextEdit {
            range: lines.range(bytes),
            new_text: new_text
                .get(..new_text.len() - tail)
                .unwrap_or_default()
                .to_owned(),
        }
    };
    changed.map(edit).collect()
}
