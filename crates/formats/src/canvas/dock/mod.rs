//! Loops in the form of graph editors (docs/reference/canvas.md).
//! The nodes of the body are in the same list as the loop and name it as `parentId`. Edges in the body lead to and from
//! the dock of the loop, whose slots are the iteration number, values for the next iteration, and the condition. Before
//! such a graph (the "drawing") is read, it is rewritten to a graph in which each loop has an inner workflow with
//! mappings.

mod write;

use super::Canvas;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use windlass_source::diagnostic::did_you_mean;
use windlass_source::source::{Kind, Node, Span};

const HANDLES: &str = "handles of a loop are input:NAME, output:NAME:internal, dock:NAME:output, \
                       dock:NAME:input, dock:NAME:prev and dock:NAME:current";

/// The types of the slots of a dock.
const SLOTS: [&str; 3] = ["iteration", "feedback", "continue"];

/// The start of a wire (an edge of the drawing, or a part of one).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Start {
    /// An output of a node.
    Out(usize, String),
    /// An input of a loop, read inside of the loop.
    Given(usize, String),
    /// The number of the iteration, read inside of a loop.
    Iteration(usize),
    /// The value that a slot received in the previous iteration, read inside of a loop.
    Previous(usize, String),
}

/// The end of a wire.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum End {
    /// An input of a node.
    In(usize, String),
    /// Whether the loop continues, written inside of the loop.
    Continue(usize),
    /// The value of a slot in the next iteration, written inside of a loop.
    Current(usize, String),
    /// An output of a loop, written inside of the loop.
    Result(usize, String),
}

struct Wire {
    from: Start,
    to: End,
    span: Span,
}

/// A node of the drawing, or a node that was made because a wire needs it.
struct DockNode<'n> {
    id: String,
    /// The loop that encloses the node.
    parent: Option<usize>,
    node: Option<&'n Node>,
    /// The type of a node that was made. Empty for a node of the drawing.
    made: &'static str,
    span: Span,
}

struct Drawing<'n> {
    nodes: Vec<DockNode<'n>>,
    wires: Vec<Wire>,
    /// Edges without ports, which only order two nodes.
    orders: Vec<(usize, usize, Span)>,
    /// Edges that name an unknown node. They are retained, because the reader of the graph reports them.
    strays: Vec<&'n Node>,
    /// Ports that loops need and do not declare. The flag is true for inputs, and false for outputs.
    more: BTreeMap<(usize, bool), BTreeSet<String>>,
}

fn text<'n>(node: &'n Node, key: &str) -> Option<&'n str> {
    node.get(key).and_then(Node::as_str)
}

fn list(node: Option<&Node>) -> &[Node] {
    match node.map(|node| &node.kind) {
        Some(Kind::Array(items)) => items,
        _ => &[],
    }
}

fn parent_of(node: &Node) -> Option<&Node> {
    node.get("parentId").or_else(|| node.get("parentNode"))
}

fn is_loop(node: &Node) -> bool {
    matches!(text(node, "type"), Some("loop" | "map"))
}

/// Returns the names of the ports that a node declares.
fn ports<'n>(node: Option<&'n Node>, side: &str) -> Vec<&'n str> {
    let data = node.and_then(|node| node.get("data"));
    let ports = list(data.and_then(|data| data.get(side))).iter();
    ports.filter_map(|port| text(port, "name")).collect()
}

impl Canvas<'_> {
    /// Returns the graph in which each loop has an inner workflow.
    /// Returns `None` if no loop is in the form of graph editors.
    pub(super) fn inline_docks(&mut self, nodes: &[Node], edges: &[Node]) -> Option<(Node, Node)> {
        let index: HashMap<&str, usize> = nodes
            .iter()
            .enumerate()
            .filter_map(|(index, node)| Some((text(node, "id")?, index)))
            .collect();
        // In an inner workflow, `parentId` may name the enclosing loop, which is not in the list.
        if self.whole.depth == 0 {
            let unknown = nodes.iter().filter_map(|node| {
                let parent = parent_of(node)?;
                (!index.contains_key(parent.as_str()?)).then_some(parent)
            });
            for parent in unknown {
                self.no_parent(parent, &index);
            }
        }
        let parent = |node: &Node| {
            let parent = index.get(parent_of(node)?.as_str()?).copied()?;
            nodes.get(parent).filter(|parent| is_loop(parent))?;
            Some(parent)
        };
        let drawn = nodes.iter().map(|node| DockNode {
            id: text(node, "id").unwrap_or_default().to_owned(),
            parent: parent(node),
            node: Some(node),
            made: "",
            span: node.span,
        });
        let mut drawing = Drawing {
            nodes: drawn.collect(),
            wires: Vec::new(),
            orders: Vec::new(),
            strays: Vec::new(),
            more: BTreeMap::new(),
        };
        if drawing.nodes.iter().all(|node| node.parent.is_none()) {
            return None;
        }
        if let Some(node) = drawing.in_itself() {
            let what = format!("`{}` is inside of itself", node.id);
            let hint = "parentId names the loop around a node, and loops do not lie in a circle";
            self.error("cycle", node.span, what, hint);
            return None;
        }
        for edge in edges {
            let end = |key| index.get(text(edge, key)?).copied();
            match (end("source"), end("target")) {
                (Some(from), Some(to)) => self.wire(&mut drawing, edge, from, to),
                _ => drawing.strays.push(edge),
            }
        }
        drawing.interfaces();
        drawing.route_through_ports();
        self.conditions(&mut drawing);
        drawing.insert_relay_nodes();
        Some(drawing.scope(None))
    }

    fn no_parent(&mut self, parent: &Node, index: &HashMap<&str, usize>) {
        let id = parent.as_str().unwrap_or_default();
        let what = format!("unknown node `{id}`, so this one does not run in a loop");
        let near = did_you_mean(id, index.keys().copied());
        let hint = near.unwrap_or_else(|| String::from("parentId names the loop around a node"));
        self.warning("unknown-node", parent.span, what, hint);
    }

    /// Adds an edge between nodes that exist.
    fn wire(&mut self, drawing: &mut Drawing<'_>, edge: &Node, from: usize, to: usize) {
        let handle = |key| text(edge, key).filter(|handle| !handle.is_empty());
        let (source, target) = (handle("sourceHandle"), handle("targetHandle"));
        let (Some(source), Some(target)) = (source, target) else {
            return drawing.orders.push((from, to, edge.span));
        };
        let (outer, inner) = (drawing.is_around(from, to), drawing.is_around(to, from));
        let start = drawing.start(from, source, outer);
        let end = drawing.end(to, target, inner);
        match (start, end) {
            (Some(from), Some(to)) => drawing.wires.push(Wire {
                from,
                to,
                span: edge.span,
            }),
            (None, _) => self.unknown_handle(drawing, edge, "sourceHandle", from, source),
            (_, None) => self.unknown_handle(drawing, edge, "targetHandle", to, target),
        }
    }

    fn unknown_handle(
        &mut self,
        drawing: &Drawing<'_>,
        edge: &Node,
        key: &str,
        node: usize,
        handle: &str,
    ) {
        let id = drawing.id(node);
        let span = edge.get(key).map_or(edge.span, |handle| handle.span);
        let what = format!("`{id}` has no handle `{handle}` that an edge can use so");
        let slot = handle
            .strip_prefix("dock:")
            .and_then(|dock| dock.split(':').next());
        let kind = slot.and_then(|slot| Some((slot, drawing.slot(node, slot)?)));
        let hint = match kind.filter(|(_, kind)| !SLOTS.contains(kind)) {
            Some((slot, kind)) => {
                let near = did_you_mean(kind, SLOTS).unwrap_or_else(|| SLOTS.join(", "));
                format!("the slot `{slot}` has the type `{kind}`, which is none: {near}")
            }
            None => HANDLES.to_owned(),
        };
        self.error("bad-handle", span, what, hint);
    }

    /// Reports loops without a condition.
    /// A condition is an edge to the dock, a node inside of the loop, or a key of the loop.
    fn conditions(&mut self, drawing: &mut Drawing<'_>) {
        for at in 0..drawing.nodes.len() {
            let node = drawing.nodes.get(at).and_then(|node| node.node);
            let Some(node) = node.filter(|_| drawing.has_children(at)) else {
                continue;
            };
            let data = node.get("data");
            let says = |key: &str| data.is_some_and(|data| data.get(key).is_some());
            let has_continue_input = drawing.has_continue_input(at);
            if text(node, "type") == Some("loop")
                && !has_continue_input
                && !says("continueWhile")
                && !says("breakWhen")
            {
                let what = format!("`{}` has no condition to continue", drawing.id(at));
                let hint = "draw an edge to dock:continue:input, or put a node of type \
                            interface-continue inside";
                self.error("missing-key", node.span, what, hint);
                drawing.make(at, "continue", "interface-continue");
            }
        }
    }
}

impl<'n> Drawing<'n> {
    fn id(&self, at: usize) -> &str {
        self.nodes.get(at).map_or("", |node| &node.id)
    }

    fn parent(&self, at: usize) -> Option<usize> {
        self.nodes.get(at)?.parent
    }

    fn kind(&self, at: usize) -> &'n str {
        let node = self.nodes.get(at);
        node.map_or("", |drawn| match drawn.node {
            Some(node) => text(node, "type").unwrap_or_default(),
            None => drawn.made,
        })
    }

    fn in_itself(&self) -> Option<&DockNode<'n>> {
        let depth = self.nodes.len();
        let circle = |at: usize| {
            let mut above = (0..=depth).scan(Some(at), |at, _| {
                *at = self.parent((*at)?);
                *at
            });
            above.nth(depth).is_some()
        };
        (0..depth)
            .find(|at| circle(*at))
            .and_then(|at| self.nodes.get(at))
    }

    fn has_children(&self, at: usize) -> bool {
        self.nodes.iter().any(|node| node.parent == Some(at))
    }

    /// Returns the loops that enclose a node, innermost first.
    fn enclosing_loops(&self, at: usize) -> Vec<usize> {
        let mut found = Vec::new();
        let mut next = self.parent(at);
        while let Some(at) = next {
            found.push(at);
            next = self.parent(at);
        }
        found
    }

    fn is_around(&self, outer: usize, inner: usize) -> bool {
        self.enclosing_loops(inner).contains(&outer)
    }

    /// Returns the type of a slot of a loop's dock.
    fn slot(&self, at: usize, name: &str) -> Option<&'n str> {
        let node = self.nodes.get(at)?.node?;
        let slots = node.get("data").and_then(|data| data.get("dockSlots"));
        let mut declared = list(slots).iter();
        let found = declared.find(|slot| text(slot, "name") == Some(name));
        match (found, name) {
            (Some(slot), _) => text(slot, "type"),
            // Every loop has these two slots, even if it does not declare them.
            (None, "iteration") => Some("iteration"),
            (None, "continue") => Some("continue"),
            (None, _) => None,
        }
    }

    /// Parses a `sourceHandle`. `inner` is true if the edge leads from the loop to a node inside of it.
    fn start(&self, at: usize, handle: &str, inner: bool) -> Option<Start> {
        let bare = handle.strip_suffix(":internal");
        let inside = inner || bare.is_some();
        let handle = bare.unwrap_or(handle);
        if let Some(dock) = handle.strip_prefix("dock:") {
            let (name, port) = dock.rsplit_once(':')?;
            return match (self.slot(at, name)?, port) {
                ("iteration", "output") => Some(Start::Iteration(at)),
                ("feedback", "prev") => Some(Start::Previous(at, name.to_owned())),
                _ => None,
            };
        }
        match handle.strip_prefix("input:") {
            Some(name) if inside && self.has_children(at) => {
                Some(Start::Given(at, name.to_owned()))
            }
            Some(_) => None,
            None => {
                let name = handle.strip_prefix("output:").unwrap_or(handle);
                Some(Start::Out(at, name.to_owned()))
            }
        }
    }

    /// Parses a `targetHandle`. `inner` is true if the edge leads from a node inside of the loop to the loop.
    fn end(&self, at: usize, handle: &str, inner: bool) -> Option<End> {
        let bare = handle.strip_suffix(":internal");
        let inside = inner || bare.is_some();
        let handle = bare.unwrap_or(handle);
        if let Some(dock) = handle.strip_prefix("dock:") {
            let (name, port) = dock.rsplit_once(':')?;
            return match (self.slot(at, name), port) {
                (Some("continue"), "input") => Some(End::Continue(at)),
                // Editors write this handle for the slot `continue` if it has no name.
                (None, "input") if name == "continue" => Some(End::Continue(at)),
                (Some("feedback"), "current") => Some(End::Current(at, name.to_owned())),
                _ => None,
            };
        }
        match handle.strip_prefix("output:") {
            Some(name) if inside && self.has_children(at) => Some(End::Result(at, name.to_owned())),
            Some(_) => None,
            None => {
                let name = handle.strip_prefix("input:").unwrap_or(handle);
                Some(End::In(at, name.to_owned()))
            }
        }
    }

    /// Returns the loop inside of which a value is. `None` means the top level.
    fn scope_of_start(&self, from: &Start) -> Option<usize> {
        match from {
            Start::Out(at, _) => self.parent(*at),
            Start::Given(at, _) | Start::Iteration(at) | Start::Previous(at, _) => Some(*at),
        }
    }

    fn scope_of_end(&self, to: &End) -> Option<usize> {
        match to {
            End::In(at, _) => self.parent(*at),
            End::Continue(at) | End::Current(at, _) | End::Result(at, _) => Some(*at),
        }
    }

    /// Adds a node that is not in the drawing, with a free id.
    fn make(&mut self, parent: usize, name: &str, kind: &'static str) -> usize {
        let mut id = name.to_owned();
        while self
            .nodes
            .iter()
            .any(|node| node.id.eq_ignore_ascii_case(&id))
        {
            id.push('_');
        }
        self.nodes.push(DockNode {
            id,
            parent: Some(parent),
            node: None,
            made: kind,
            span: self
                .nodes
                .get(parent)
                .map_or_else(Span::default, |node| node.span),
        });
        self.nodes.len() - 1
    }

    /// Replaces the nodes for inputs and outputs inside of a loop by wires.
    fn interfaces(&mut self) {
        let mut wires = Vec::new();
        for (at, drawn) in self.nodes.iter().enumerate() {
            let (Some(around), Some(node)) = (drawn.parent, drawn.node) else {
                continue;
            };
            let span = node.span;
            match text(node, "type") {
                Some("interface-output") => {
                    for name in ports(Some(node), "inputs") {
                        wires.push(Wire {
                            from: Start::Out(at, name.to_owned()),
                            to: End::Result(around, name.to_owned()),
                            span,
                        });
                    }
                }
                Some("interface-input") => {
                    let given = ports(self.nodes.get(around).and_then(|one| one.node), "inputs");
                    for name in ports(Some(node), "outputs") {
                        let from = match name.strip_prefix("prev.") {
                            _ if given.contains(&name) => continue,
                            Some(before) => Start::Previous(around, before.to_owned()),
                            None if name == "iteration" => Start::Iteration(around),
                            None => continue,
                        };
                        wires.push(Wire {
                            from,
                            to: End::In(at, name.to_owned()),
                            span,
                        });
                    }
                }
                _ => {}
            }
        }
        self.wires.extend(wires);
    }

    /// Splits each wire that crosses the border of a loop at a port of the loop. Then each part is inside of one
    /// graph.
    fn route_through_ports(&mut self) {
        let mut done: BTreeSet<(Start, End)> = BTreeSet::new();
        let mut open: Vec<Wire> = std::mem::take(&mut self.wires);
        open.reverse();
        while let Some(mut wire) = open.pop() {
            let (from, to) = (self.scope_of_start(&wire.from), self.scope_of_end(&wire.to));
            let inside = |outer: Option<usize>, inner: Option<usize>| match (outer, inner) {
                (None, _) => true,
                (Some(outer), Some(inner)) => outer == inner || self.is_around(outer, inner),
                (Some(_), None) => false,
            };
            let span = wire.span;
            match (from, to) {
                (from, to) if from == to => {}
                // The wire leaves the loop inside of which its value is.
                (Some(around), to) if !inside(Some(around), to) => {
                    let name = self.name_of(&wire.from);
                    let out = Start::Out(around, name.clone());
                    open.push(Wire {
                        from: std::mem::replace(&mut wire.from, out),
                        to: End::Result(around, name),
                        span,
                    });
                    open.push(wire);
                    continue;
                }
                // The wire enters the outermost loop that encloses its end and not its start.
                (from, Some(to)) => {
                    let mut path = self.enclosing_loops(to);
                    path.insert(0, to);
                    let next = path.iter().rev().find(|at| self.parent(**at) == from);
                    let Some(next) = next.copied() else { continue };
                    let name = self.name_of(&wire.from);
                    let given = Start::Given(next, name.clone());
                    open.push(Wire {
                        from: std::mem::replace(&mut wire.from, given),
                        to: End::In(next, name),
                        span,
                    });
                    open.push(wire);
                    continue;
                }
                (_, None) => {}
            }
            let known = (wire.from.clone(), wire.to.clone());
            // Several wires may cross a border at the same port, so wires that are equal after the split are retained
            // once.
            let passes = matches!(&wire.to, End::In(at, _) if self.has_children(*at))
                || matches!(wire.to, End::Result(..));
            if !passes || done.insert(known) {
                match &wire.to {
                    End::In(at, name) if self.has_children(*at) => {
                        self.require_port(*at, true, name)
                    }
                    End::Result(at, name) => self.require_port(*at, false, name),
                    _ => {}
                }
                self.wires.push(wire);
            }
        }
    }

    fn name_of(&self, from: &Start) -> String {
        match from {
            Start::Out(at, port) => format!("{}.{port}", self.id(*at)),
            Start::Given(at, name) | Start::Previous(at, name) => {
                format!("{}.{name}", self.id(*at))
            }
            Start::Iteration(at) => format!("{}.iteration", self.id(*at)),
        }
    }

    /// Records a port that a loop needs, unless the loop declares it.
    fn require_port(&mut self, at: usize, input: bool, name: &str) {
        let side = if input { "inputs" } else { "outputs" };
        let node = self.nodes.get(at).and_then(|node| node.node);
        if !ports(node, side).contains(&name) {
            let more = self.more.entry((at, input)).or_default();
            more.insert(name.to_owned());
        }
    }

    fn has_continue_input(&self, at: usize) -> bool {
        let by_node = (0..self.nodes.len())
            .any(|one| self.parent(one) == Some(at) && self.kind(one) == "interface-continue");
        by_node || self.wires.iter().any(|wire| wire.to == End::Continue(at))
    }

    /// Inserts nodes into two kinds of wires: those to the condition of a loop, and those to a slot or an output of a
    /// loop that do not start at the output of an inner node.
    fn insert_relay_nodes(&mut self) {
        for index in 0..self.wires.len() {
            let Some(wire) = self.wires.get(index) else {
                continue;
            };
            let (from, to, span) = (wire.from.clone(), wire.to.clone(), wire.span);
            let (around, name, kind, port) = match &to {
                End::Continue(at) => (*at, "continue", "interface-continue", "continue"),
                End::Current(at, name) | End::Result(at, name)
                    if !matches!(from, Start::Out(..)) =>
                {
                    (*at, name.as_str(), "wire", "value")
                }
                _ => continue,
            };
            let made = self.make(around, name, kind);
            if let Some(wire) = self.wires.get_mut(index) {
                wire.to = End::In(made, port.to_owned());
            }
            if !matches!(to, End::Continue(_)) {
                self.wires.push(Wire {
                    from: Start::Out(made, port.to_owned()),
                    to,
                    span,
                });
            }
        }
    }

    /// Finds the output whose value a slot receives at the end of an iteration.
    /// A wire leads from this output to the slot of the dock, or to an input of the node for outputs inside of the
    /// loop.
    fn source_of_slot(&self, around: usize, slot: &str) -> Option<(usize, &str)> {
        let current = End::Current(around, slot.to_owned());
        let result = End::Result(around, slot.to_owned());
        let find = |to: &End| self.wires.iter().find(|wire| wire.to == *to);
        match &find(&current).or_else(|| find(&result))?.from {
            Start::Out(at, port) => Some((*at, port)),
            _ => None,
        }
    }
}
