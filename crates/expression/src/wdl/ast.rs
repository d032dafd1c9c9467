//! The tree of a WDL expression. Its names are resolved: a call contains its function.

use super::functions::Function;
use crate::{Template, Value};

/// A range of the string: offset and length in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AstSpan {
    pub offset: u32,
    pub length: u32,
}

/// A node and its range in the text. Equality compares only the tree, never the range.
#[derive(Clone, Debug)]
pub(crate) struct Expr {
    pub node: Node,
    pub place: AstSpan,
}

impl PartialEq for Expr {
    fn eq(&self, other: &Self) -> bool {
        self.node == other.node
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Node {
    /// A number, text, true, false or null.
    Literal(Value),
    /// `name(arguments)`.
    Call(&'static Function, Vec<Expr>),
    /// `base.key?[key]…`: a flat list, so that a long path does not use the stack.
    Path(Box<Expr>, Vec<Step>),
    /// A call that the function does not accept: it fails when it is evaluated.
    Refused(Box<RefusedCall>),
    /// A leaf of a condition in object form.
    Template(Template),
}

/// A call of an unknown function, or with the wrong number of arguments.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RefusedCall {
    pub name: String,
    pub arguments: Vec<Expr>,
    pub why: String,
    pub hint: Option<String>,
}

#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub key: Expr,
    /// With `?`, a member of null and a missing member are null.
    pub safe: bool,
    /// From the beginning of the path to the end of this step.
    pub place: AstSpan,
}

impl PartialEq for Step {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key && self.safe == other.safe
    }
}

impl Expr {
    /// Returns the expressions that this expression consists of, in the order of the text.
    pub(crate) fn children(&self) -> impl Iterator<Item = &Self> {
        let (base, steps, arguments): (Option<&Self>, &[Step], &[Self]) = match &self.node {
            Node::Literal(_) | Node::Template(_) => (None, &[], &[]),
            Node::Path(base, steps) => (Some(base), steps, &[]),
            Node::Call(_, arguments) => (None, &[], arguments),
            Node::Refused(refused) => (None, &[], &refused.arguments),
        };
        let keys = steps.iter().map(|step| &step.key);
        base.into_iter().chain(keys).chain(arguments)
    }

    pub(crate) fn literal_text(&self) -> Option<&str> {
        match &self.node {
            Node::Literal(value) => value.as_str(),
            _ => None,
        }
    }
}
