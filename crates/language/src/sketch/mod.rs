//! A tolerant reader of YAML and JSON: any text results in a tree, even with mistakes. It uses indentation and
//! brackets, and stores ranges of bytes instead of values. The strict readers report mistakes.

mod flow;
mod reader;

pub(super) use reader::read;

use std::ops::Range;

/// A part of the tree.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SketchNode {
    /// The range of its bytes, including quotes and brackets.
    pub range: Range<usize>,
    pub kind: Kind,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind {
    Nothing,
    Text(Scalar),
    Map(Vec<Member>),
    List(Vec<SketchNode>),
}

/// A text, number or word.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Scalar {
    /// The range of bytes between the quotes.
    pub inner: Range<usize>,
    pub style: Style,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    Plain,
    Single,
    Double,
    Block,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Member {
    pub name: String,
    /// The range of the name's bytes, without quotes.
    pub key: Range<usize>,
    pub quoted: bool,
    /// Whether a colon follows. A name without a colon is still being typed.
    pub complete: bool,
    pub value: SketchNode,
}

impl SketchNode {
    fn nothing(at: usize) -> Self {
        Self {
            range: at..at,
            kind: Kind::Nothing,
        }
    }

    pub fn members(&self) -> &[Member] {
        match &self.kind {
            Kind::Map(members) => members,
            _ => &[],
        }
    }

    pub fn items(&self) -> &[SketchNode] {
        match &self.kind {
            Kind::List(items) => items,
            _ => &[],
        }
    }

    pub fn get(&self, key: &str) -> Option<&SketchNode> {
        let mut members = self.members().iter();
        members
            .find(|member| member.name == key)
            .map(|member| &member.value)
    }

    /// Returns a member by its key, ignoring case.
    pub fn get_any_case(&self, key: &str) -> Option<&SketchNode> {
        let mut members = self.members().iter();
        let found = members.find(|member| member.name.eq_ignore_ascii_case(key));
        found.map(|member| &member.value)
    }

    /// Returns a scalar as it is written, without quotes.
    pub fn text<'t>(&self, text: &'t str) -> Option<&'t str> {
        match &self.kind {
            Kind::Text(scalar) => text.get(scalar.inner.clone()),
            _ => None,
        }
    }

    /// Returns the text of a member.
    pub fn member_text<'t>(&self, key: &str, text: &'t str) -> Option<&'t str> {
        self.get(key)?.text(text).map(str::trim)
    }
}

/// A step into the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Key(String),
    Index(usize),
}

/// The location of a byte in the tree.
pub(super) struct SketchLocation<'p> {
    /// The steps from the root, each with the part that it starts from.
    pub path: Vec<(&'p SketchNode, Step)>,
    pub at: LocationKind<'p>,
}

pub(super) enum LocationKind<'p> {
    /// In the name of a member of the last part.
    Key(&'p Member),
    Value(&'p SketchNode),
}

impl SketchLocation<'_> {
    /// Returns the keys of the path, the outermost first.
    pub fn keys(&self) -> Vec<&str> {
        let keys = self.path.iter().filter_map(|(_, step)| match step {
            Step::Key(key) => Some(&**key),
            Step::Index(_) => None,
        });
        keys.collect()
    }
}

/// Returns the location of a byte: the innermost part, or the enclosing part if the byte is between two parts.
pub(super) fn locate(root: &SketchNode, at: usize) -> SketchLocation<'_> {
    let mut path = Vec::new();
    let mut part = root;
    loop {
        let covers = |range: &Range<usize>| range.start <= at && at <= range.end;
        match &part.kind {
            Kind::Map(members) => {
                if let Some(member) = members.iter().find(|member| covers(&member.key)) {
                    path.push((part, Step::Key(member.name.clone())));
                    let at = LocationKind::Key(member);
                    return SketchLocation { path, at };
                }
                // If a part begins where another one ends, the beginning one is used.
                let mut found = members.iter().rev();
                match found.find(|member| covers(&member.value.range)) {
                    Some(member) => {
                        path.push((part, Step::Key(member.name.clone())));
                        part = &member.value;
                    }
                    None => break,
                }
            }
            Kind::List(items) => {
                let mut found = items.iter().enumerate().rev();
                match found.find(|(_, item)| covers(&item.range)) {
                    Some((index, item)) => {
                        path.push((part, Step::Index(index)));
                        part = item;
                    }
                    None => break,
                }
            }
            Kind::Text(_) | Kind::Nothing => break,
        }
    }
    let at = LocationKind::Value(part);
    SketchLocation { path, at }
}
