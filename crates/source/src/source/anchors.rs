//! The values that the anchors of a YAML text name, and limits on the values and bytes that anchors and aliases may
//! copy.

use super::{Kind, MAX_BYTES, MAX_NODES, Mistake, Node, Span};
use std::collections::HashMap;

const MAX_COPIED_NODES: usize = 2 * MAX_NODES;
const MAX_COPIED_BYTES: usize = 4 * MAX_BYTES;

#[derive(Default)]
pub(super) struct Anchors {
    /// The values by the parser's number of the anchor. A list or map is added when its end is read.
    anchored: HashMap<usize, Anchored>,
    /// Total size of all copies, in values and in bytes.
    nodes: usize,
    bytes: usize,
}

struct Anchored {
    node: Node,
    /// The value as a key, if it is text.
    text_as_key: Option<String>,
    size: Size,
}

/// The size of a value.
#[derive(Clone, Copy, Default)]
pub(super) struct Size {
    pub nodes: usize,
    bytes: usize,
    /// Nesting of lists and maps.
    pub depth: usize,
}

impl Size {
    /// Adds the size of a value. `above` is the number of lists and maps that the value is inside of.
    fn add(&mut self, node: &Node, above: usize) {
        self.nodes += 1;
        match &node.kind {
            Kind::String(text) => self.bytes += text.text.len(),
            Kind::Array(items) => {
                self.depth = self.depth.max(above + 1);
                items.iter().for_each(|item| self.add(item, above + 1));
            }
            Kind::Object(entries) => {
                self.depth = self.depth.max(above + 1);
                for entry in entries {
                    self.bytes += entry.key.len();
                    self.add(&entry.value, above + 1);
                }
            }
            Kind::Null | Kind::Bool(_) | Kind::Int(_) | Kind::Float(_) => {}
        }
    }
}

impl Anchors {
    /// Stores the value of an anchor. Does nothing if `number` is 0, because then the value has no anchor.
    pub fn add(
        &mut self,
        number: usize,
        node: &Node,
        text_as_key: Option<String>,
    ) -> Result<(), Mistake> {
        if number == 0 {
            return Ok(());
        }
        let mut size = Size::default();
        size.add(node, 0);
        self.count(size.nodes, size.bytes, node.span)?;
        let node = node.clone();
        let anchored = Anchored {
            node,
            text_as_key,
            size,
        };
        self.anchored.insert(number, anchored);
        Ok(())
    }

    /// Returns the value that an alias refers to.
    pub fn value(&mut self, number: usize, span: Span) -> Result<(Node, Size), Mistake> {
        let size = self.find(number, span)?.size;
        self.count(size.nodes, size.bytes, span)?;
        Ok((self.find(number, span)?.node.clone(), size))
    }

    /// Returns the key that an alias refers to; `None` if the value is not text.
    pub fn key(&mut self, number: usize, span: Span) -> Result<Option<String>, Mistake> {
        let length = self
            .find(number, span)?
            .text_as_key
            .as_ref()
            .map_or(0, String::len);
        // The key is copied several times: for the tree, for the notation, and for the search for repeated keys.
        self.count(0, 4 * length, span)?;
        Ok(self.find(number, span)?.text_as_key.clone())
    }

    fn find(&self, number: usize, span: Span) -> Result<&Anchored, Mistake> {
        // The parser refuses aliases of undefined anchors. So if the value is missing here, it is not complete yet: it
        // encloses the alias.
        self.anchored.get(&number).ok_or_else(|| {
            let what = "this alias is inside of the value that it names";
            Mistake::new("too-deep", span, what).hint("write the value out, or remove the alias")
        })
    }

    fn count(&mut self, nodes: usize, bytes: usize, span: Span) -> Result<(), Mistake> {
        self.nodes += nodes;
        self.bytes += bytes;
        if self.nodes <= MAX_COPIED_NODES && self.bytes <= MAX_COPIED_BYTES {
            return Ok(());
        }
        let megabytes = MAX_COPIED_BYTES / 1024 / 1024;
        let hint = format!("they may repeat {MAX_COPIED_NODES} values and {megabytes} MiB of text");
        let what = "the file's anchors and aliases repeat too much";
        Err(Mistake::new("too-many-values", span, what).hint(hint))
    }
}
