//! The tree of a text with the ranges of its parts. A text with errors has one, too: the reader repairs what it cannot
//! read, see [`read_repaired`].

use std::ops::Range;
pub(super) use windlass_source::source::Style;
use windlass_source::source::{Form, WrittenEntry, WrittenText, read_repaired};

/// Reads a text. If it has [`MARK`](super::MARK), this is where the text is being typed.
pub(super) fn read(text: &str) -> SketchNode {
    let typed = text.find(super::MARK);
    SketchNode::of(&read_repaired(text, typed), text)
}

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

impl SketchNode {
    fn of(written: &WrittenText, text: &str) -> Self {
        let range = written.range.clone();
        let kind = match &written.form {
            Form::Scalar(_) | Form::Alias if range.is_empty() => Kind::Nothing,
            Form::Scalar(style) => Kind::Text(Scalar::of(range.clone(), *style, text)),
            Form::Alias => Kind::Text(Scalar::of(range.clone(), Style::Plain, text)),
            Form::List { items, .. } => {
                Kind::List(items.iter().map(|item| Self::of(item, text)).collect())
            }
            Form::Map { entries, .. } => {
                let members = entries.iter().map(|entry| Member::of(entry, text));
                Kind::Map(members.collect())
            }
        };
        Self { range, kind }
    }
}

impl Scalar {
    /// Finds the text of a scalar after its anchor and tag, without its quotes.
    fn of(range: Range<usize>, style: Style, text: &str) -> Self {
        let written = text.get(range.clone()).unwrap_or_default();
        let mut content = written;
        while content.starts_with(['&', '!']) {
            let (_, rest) = content.split_once([' ', '\n']).unwrap_or(("", ""));
            content = rest.trim_start();
        }
        let start = range.end - content.len();
        let quote = content
            .chars()
            .next()
            .filter(|char| matches!(char, '"' | '\''));
        let (inner, style) = match (style, quote) {
            (Style::Block, _) => {
                let header = content.find('\n').map_or(content.len(), |end| end + 1);
                (start + header..range.end, Style::Block)
            }
            (_, Some(quote)) => {
                let closed = content.len() > 1 && content.ends_with(quote);
                let style = match quote {
                    '"' => Style::Double,
                    _ => Style::Single,
                };
                (start + 1..range.end - usize::from(closed), style)
            }
            _ => (start..range.end, Style::Plain),
        };
        Self { inner, style }
    }
}

impl Member {
    fn of(entry: &WrittenEntry, text: &str) -> Self {
        let range = entry.key_range.clone();
        let key = Scalar::of(range.clone(), Style::Plain, text);
        let after = text.get(range.end..).unwrap_or_default();
        Self {
            name: text.get(key.inner.clone()).unwrap_or_default().to_owned(),
            quoted: key.style != Style::Plain,
            key: key.inner,
            complete: after.trim_start_matches([' ', '\t']).starts_with(':'),
            value: SketchNode::of(&entry.value, text),
        }
    }
}
