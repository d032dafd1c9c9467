//! The notation of a file: how each value is written, and where its parts begin and end. With it, an edit can change
//! only one part of the file. The notation is made together with the tree, in the same pass over the text.

use super::mistakes::duplicate;
use super::tree::Style;
use super::{Entry, Kind, Mistake, Node, Span};
use std::collections::HashMap;
use std::ops::Range;

/// The notation of a value: how it is written in the file.
#[derive(Clone, Debug)]
pub struct WrittenText {
    /// The bytes of the value. For a list or map without brackets, these are from its first key or dash to the end of
    /// its last value.
    pub range: Range<usize>,
    pub form: Form,
}

#[derive(Clone, Debug)]
pub enum Form {
    /// A single value. If the value is missing, its range is empty.
    Scalar(Style),
    /// An alias: the value is written at its anchor.
    Alias,
    List {
        /// Whether the list is in brackets.
        flow: bool,
        items: Vec<WrittenText>,
    },
    Map {
        /// Whether the map is in braces.
        flow: bool,
        entries: Vec<WrittenEntry>,
    },
}

#[derive(Clone, Debug)]
pub struct WrittenEntry {
    pub key: String,
    pub key_range: Range<usize>,
    pub value: WrittenText,
}

/// A file that was read.
#[derive(Clone, Debug)]
pub struct Document {
    pub node: Node,
    pub written: WrittenText,
    pub json: bool,
}

/// A value, and how it is written.
pub(super) struct ReadValue {
    pub node: Node,
    pub written: WrittenText,
}

impl ReadValue {
    pub fn scalar(span: Span, kind: Kind, range: Range<usize>, style: Style) -> Self {
        Self {
            node: Node { span, kind },
            written: WrittenText {
                range,
                form: Form::Scalar(style),
            },
        }
    }
}

/// A key that was read.
pub(super) struct Key {
    pub text: String,
    pub span: Span,
    pub range: Range<usize>,
}

/// The entries of a list while it is read.
#[derive(Default)]
pub(super) struct ListParts {
    items: Vec<Node>,
    written: Vec<WrittenText>,
}

impl ListParts {
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    pub fn add(&mut self, value: ReadValue) {
        self.items.push(value.node);
        self.written.push(value.written);
    }

    pub fn finish(self, span: Span, range: Range<usize>, flow: bool) -> ReadValue {
        let form = Form::List {
            flow,
            items: self.written,
        };
        ReadValue {
            node: Node {
                span,
                kind: Kind::Array(self.items),
            },
            written: WrittenText { range, form },
        }
    }
}

/// The entries of a map while it is read. If a key occurs several times, its last value is used.
#[derive(Default)]
pub(super) struct MapParts {
    entries: Vec<Entry>,
    written: Vec<WrittenEntry>,
    /// The first position of each key, and the index of its entry.
    seen: HashMap<String, (Span, usize)>,
    merges: Vec<Node>,
}

impl MapParts {
    pub fn is_empty(&self) -> bool {
        self.written.is_empty()
    }

    pub fn add(&mut self, key: Key, value: ReadValue, mistakes: &mut Vec<Mistake>) {
        self.write(&key, value.written);
        let Some((first, index)) = self.seen.get(&key.text) else {
            self.insert(Entry {
                key: key.text,
                key_span: key.span,
                value: value.node,
            });
            return;
        };
        mistakes.push(duplicate(&key.text, key.span, *first));
        if let Some(entry) = self.entries.get_mut(*index) {
            entry.value = value.node;
        }
    }

    /// Adds the value of the merge key `<<`.
    pub fn add_merge(&mut self, key: &Key, value: ReadValue) {
        self.write(key, value.written);
        self.merges.push(value.node);
    }

    pub fn finish(
        mut self,
        span: Span,
        range: Range<usize>,
        flow: bool,
        mistakes: &mut Vec<Mistake>,
    ) -> ReadValue {
        for merge in std::mem::take(&mut self.merges) {
            self.merge(merge, mistakes);
        }
        let form = Form::Map {
            flow,
            entries: self.written,
        };
        ReadValue {
            node: Node {
                span,
                kind: Kind::Object(self.entries),
            },
            written: WrittenText { range, form },
        }
    }

    fn write(&mut self, key: &Key, value: WrittenText) {
        self.written.push(WrittenEntry {
            key: key.text.clone(),
            key_range: key.range.clone(),
            value,
        });
    }

    fn insert(&mut self, entry: Entry) {
        let index = self.entries.len();
        self.seen.insert(entry.key.clone(), (entry.key_span, index));
        self.entries.push(entry);
    }

    /// Adds the entries of a map (or of several maps) that the merge key `<<` names. The map's own keys have precedence
    /// over these entries, and entries of earlier maps over those of later ones.
    fn merge(&mut self, from: Node, mistakes: &mut Vec<Mistake>) {
        match from.kind {
            Kind::Object(merged) => {
                for entry in merged {
                    if !self.seen.contains_key(&entry.key) {
                        self.insert(entry);
                    }
                }
            }
            Kind::Array(items) if items.iter().all(|item| item.entries().is_some()) => {
                for item in items {
                    self.merge(item, mistakes);
                }
            }
            _ => mistakes.push(
                Mistake::new("merge", from.span, "`<<` accepts a map or a list of maps")
                    .hint("use an alias of a map, as in `<<: *defaults`"),
            ),
        }
    }
}
