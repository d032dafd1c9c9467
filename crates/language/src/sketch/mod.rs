//! A tolerant reader of YAML and JSON, which makes a tree of any text, even with mistakes.
//! It uses indentation and brackets, and stores ranges of bytes instead of values. Other, strict readers report the
//! mistakes.

mod flow;
mod reader;

pub(super) use reader::read;

use std::ops::Range;

/// A part of the tree.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SketchNode {
    /// The range of the part's bytes, including quotes and brackets.
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
    /// Whether a colon follows the name. Without a colon, the name is still being typed.
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

    /// Returns a scalar as the text has it, without quotes.
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

/// Where a byte is in the tree.
pub(super) struct SketchLocation<'p> {
    /// The steps from the root to the innermost part. Each has the part from which the step starts.
    pub path: Vec<(&'p SketchNode, Step)>,
    pub at: LocationKind<'p>,
}

pub(super) enum LocationKind<'p> {
    /// The byte is in the name of a member of the innermost part.
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

/// Returns where a byte is: in the innermost part that contains it. If it is between two parts, this is the enclosing
/// part.
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
                // If one part ends and another one begins at the byte, the one that begins is used.
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
