//! Computes the positions of nodes and edges, from the inside out.
//! The inside of a frame is a graph in layers from top to bottom, and determines the size of the frame. All numbers
//! are integers, so a graph has the same layout everywhere.

mod across;
mod layers;
mod order;
mod route;

use super::picture::{Edge, Graph, Node, Port, node};
use super::{BoxId, BoxShape, DrawnBox, Line, LineKind, ScopeDrawing, ScopeEnd, Wire};
use layers::{Item, Layers, Link};
use route::Positions;
use std::collections::HashMap;
use windlass_model::model::Name;

/// Padding inside of a frame, and around the whole graph.
const PAD: i64 = 20;
/// Size of the point at which a scope starts or ends.
const POINT: i64 = 16;
/// Size of the diamond of a choice.
const CHOICE: i64 = 32;
/// Height of a line of text in a node.
const TEXT: i64 = 18;
/// Maximum number of characters in the label of an edge.
pub(super) const EDGE_TEXT: usize = 36;
/// Maximum number of characters in the title of a node.
pub(super) const NODE_TEXT: usize = 40;
/// Maximum number of characters in the text about what a node does.
const FRAME_TEXT: usize = 56;

/// Returns the graph of a drawing, and the number of steps of inner loops that its layout needed.
pub(super) fn layout(inside: &ScopeDrawing, around: Option<&DrawnBox>) -> (Graph, u64) {
    let mut steps = 0;
    let mut level = level(inside, around, &mut steps);
    level.shift(PAD, PAD);
    level.width += 2 * PAD;
    level.height += 2 * PAD;
    (level, steps)
}

/// Returns the width of a text after it is cut to `most` characters.
/// `size` is the width of a character in tenths of a pixel.
pub(super) fn text_width(text: &str, most: usize, size: i64) -> i64 {
    let wide = |c: char| if u32::from(c) >= 0x1100 { 17 } else { 10 };
    let tenths: i64 = text.chars().take(most).map(wide).sum();
    tenths * size / 100
}

fn place_of(layers: &mut Layers, items: &[Item], links: &[Link]) -> Positions {
    let order = order::order(layers);
    let x = across::across(layers, &order);
    route::route(items, links, layers, &order, &x)
}

/// The nodes of one frame (or of the top) with their sizes, before they have positions.
struct Level<'a> {
    inside: &'a ScopeDrawing,
    nodes: Vec<Node>,
    within: Vec<Option<Graph>>,
    place: HashMap<BoxId, usize>,
    end: usize,
}

fn level(inside: &ScopeDrawing, around: Option<&DrawnBox>, steps: &mut u64) -> Graph {
    let parent = around.map(|drawn| drawn.id.to_string());
    let level = Level::new(inside, parent.as_deref(), steps);
    let repeats = around.is_some_and(|drawn| drawn.facts.kind == "loop");
    let edges = level.edges(repeats);
    let item = |node: &Node| Item {
        width: node.width,
        height: node.height,
        last: node.kind == "end" || node.kind == "break",
    };
    let items: Vec<Item> = level.nodes.iter().map(item).collect();
    let links: Vec<Link> = edges.iter().map(|one| one.link).collect();
    let mut layers = Layers::new(&items, &links);
    let places = place_of(&mut layers, &items, &links);
    *steps += places.steps;
    let mut graph = Graph {
        width: places.width,
        height: places.height,
        ..Graph::default()
    };
    let parts = level.nodes.into_iter().zip(level.within).zip(places.items);
    for ((mut node, within), [x, y]) in parts {
        (node.x, node.y) = (x, y);
        for port in &mut node.ports {
            (port.x, port.y) = (port.x + x, port.y + y);
        }
        let (width, above) = (node.width, header(&node));
        graph.nodes.push(node);
        if let Some(mut within) = within {
            within.shift(x + (width - within.width) / 2, y + above);
            graph.nodes.extend(within.nodes);
            graph.edges.extend(within.edges);
        }
    }
    for (drawn, route) in edges.into_iter().zip(places.links) {
        graph.edges.push(Edge {
            points: route.points,
            label_at: route.label_at,
            back: route.back,
            ..drawn.edge
        });
    }
    graph
}

/// An edge, and the link by which it is laid out.
struct Drawing {
    edge: Edge,
    link: Link,
}

impl<'a> Level<'a> {
    fn new(inside: &'a ScopeDrawing, parent: Option<&str>, steps: &mut u64) -> Self {
        let point = |name: &str| Node {
            id: match parent {
                Some(parent) => format!("{parent}.{name}"),
                None => name.to_owned(),
            },
            kind: name.to_owned(),
            parent: parent.map(str::to_owned),
            width: POINT,
            height: POINT,
            ..Node::default()
        };
        let mut level = Level {
            inside,
            nodes: vec![point("start")],
            within: vec![None],
            place: HashMap::new(),
            end: 0,
        };
        for drawn in &inside.boxes {
            let mut node = node(drawn);
            node.parent = parent.map(str::to_owned);
            let within = match &drawn.shape {
                BoxShape::Frame(inside) => Some(self::level(inside, Some(drawn), steps)),
                _ => None,
            };
            measure(&mut node, drawn, within.as_ref());
            level.place.insert(drawn.id, level.nodes.len());
            level.nodes.push(node);
            level.within.push(within);
        }
        level.end = level.nodes.len();
        level.nodes.push(point("end"));
        level.within.push(None);
        if inside.lines.iter().any(|line| line.ends == ScopeEnd::Loop) {
            level.nodes.push(point("break"));
            level.within.push(None);
        }
        level
    }

    /// Returns the edges of this frame: one for each connected pair of ports, or one for each line without ports.
    fn edges(&self, repeats: bool) -> Vec<Drawing> {
        let mut edges = Vec::with_capacity(self.inside.lines.len() + 1);
        for line in &self.inside.lines {
            let from = match line.from {
                None => Some(0),
                Some(id) => self.place.get(&id).copied(),
            };
            let to = match (line.to, line.ends) {
                (Some(id), _) => self.place.get(&id).copied(),
                (None, ScopeEnd::Loop) => Some(self.end + 1),
                (None, _) => Some(self.end),
            };
            let (Some(from), Some(to)) = (from, to) else {
                continue;
            };
            if line.wires.is_empty() {
                edges.extend(self.edge(from, to, line.kind(), &line.label, None));
            }
            for wire in &line.wires {
                let label = line.label_of(wire);
                edges.extend(self.edge(from, to, line.kind(), &label, Some(wire)));
            }
        }
        if repeats {
            edges.extend(self.edge(self.end, 0, "again", "", None));
        }
        edges
    }

    fn edge(
        &self,
        from: usize,
        to: usize,
        kind: &str,
        label: &str,
        wire: Option<&Wire>,
    ) -> Option<Drawing> {
        let (a, b) = (self.nodes.get(from)?, self.nodes.get(to)?);
        let back = kind == "again" || kind == "previous" || from == to;
        // A line that leads up enters a node near its side, and the line of a failure leaves a node there. Other
        // lines use the centre.
        let side = |node: &Node, apart: bool| match apart && node.width > 3 * POINT {
            true => node.width - POINT,
            false => node.width / 2,
        };
        let apart = back || kind == "failed";
        let at = |node: &Node, ports: &str, name: Option<&Name>| {
            let mut all = node.ports.iter().filter(|port| port.side == ports);
            let found = name.and_then(|name| all.find(|port| *port.name == **name));
            found.map(|port| (port.x, port.name.clone()))
        };
        let out = at(a, "out", wire.map(|wire| &wire.output));
        let into = at(b, "in", wire.map(|wire| &wire.input));
        let label_width = match label {
            "" => 0,
            label => text_width(label, EDGE_TEXT, 62) + 12,
        };
        Some(Drawing {
            link: Link {
                from,
                to,
                from_at: out.as_ref().map_or_else(|| side(a, apart), |out| out.0),
                to_at: into.as_ref().map_or_else(|| side(b, back), |into| into.0),
                label: label_width,
                back,
            },
            edge: Edge {
                from: a.id.clone(),
                to: b.id.clone(),
                label: Some(label.to_owned()).filter(|label| !label.is_empty()),
                kind: kind.to_owned(),
                back,
                from_port: out.map(|out| out.1),
                to_port: into.map(|into| into.1),
                points: Vec::new(),
                label_at: None,
            },
        })
    }
}

impl Line {
    fn kind(&self) -> &'static str {
        match (self.ends, self.kind) {
            (ScopeEnd::Loop, _) => "break",
            (_, LineKind::Next) => "next",
            (_, LineKind::Branch) => "branch",
            (_, LineKind::Failed) => "failed",
            (_, LineKind::Data) => "data",
            (_, LineKind::Previous) => "previous",
        }
    }

    /// Returns the label of a wire: what the ports at its ends do not already show.
    fn label_of(&self, wire: &Wire) -> String {
        let name = match (self.from, self.to) {
            (None, _) => &*wire.output,
            (_, None) => &*wire.input,
            _ if self.kind == LineKind::Previous => "previous",
            _ => "",
        };
        match (name, &wire.when) {
            (name, None) => name.to_owned(),
            ("", Some(when)) => when.to_string(),
            (name, Some(when)) => format!("{name} ({when})"),
        }
    }
}

// ── sizes ───────────────────────────────────────────────────────────────────────────────────────

/// Describes in one line what a node does and which limits it has.
pub(super) fn does(node: &Node) -> String {
    let cut = node.limits.deadline.as_ref();
    let cut = cut.map(|after| format!("cut after {after}"));
    let parts = [Some(node.summary.clone()), node.limits.retry.clone(), cut];
    let parts = parts.into_iter().flatten().filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join(" · ")
}

/// Sets the size of a node and the positions of its ports.
fn measure(node: &mut Node, drawn: &DrawnBox, within: Option<&Graph>) {
    let title = node.title.as_ref().unwrap_or(&node.name);
    let title = text_width(title, NODE_TEXT, 80) + 48;
    let does = text_width(&does(node), FRAME_TEXT, 65) + 32;
    let (width, height) = match (&drawn.shape, node.kind.as_str()) {
        (BoxShape::Choice, _) => (CHOICE, CHOICE),
        (BoxShape::Closed, "loop" | "foreach") => (title.max(does.min(340)).max(260), 96),
        (BoxShape::Closed, _) => (title.max(does.min(300)).max(220), 64),
        (BoxShape::Frame(_), _) => {
            let (width, height) = within.map_or((0, 0), |all| (all.width, all.height));
            let width = width + 2 * PAD;
            (width.max(title).max(does), header(node) + height + PAD)
        }
        (BoxShape::Step | BoxShape::Bare(_), _) => (title.max(does.min(300)).max(180), 48),
    };
    let ports = |names: &[Name]| {
        let widest = names.iter().map(|name| text_width(name, 20, 60) + 16).max();
        (
            widest.unwrap_or(0).max(40),
            i64::try_from(names.len()).unwrap_or(0),
        )
    };
    let (inputs, outputs) = (&drawn.facts.inputs, &drawn.facts.outputs);
    let (into, out) = (ports(inputs), ports(outputs));
    let width = width.max(into.0 * into.1).max(out.0 * out.1);
    // The width is a multiple of 4, so a line to the middle is straight.
    node.width = width.div_euclid(4) * 4 + 4 * i64::from(width % 4 > 0);
    let rows = i64::from(into.1 > 0) + i64::from(out.1 > 0);
    node.height = height + rows * TEXT;
    for (names, side, y) in [(inputs, "in", 0), (outputs, "out", node.height)] {
        let count = i64::try_from(names.len()).unwrap_or(1);
        for (place, name) in (0..).zip(names) {
            node.ports.push(Port {
                name: name.to_string(),
                side: side.to_owned(),
                x: node.width * (2 * place + 1) / (2 * count),
                y,
            });
        }
    }
}

/// Returns the height of the part of a frame above its content: the title, what it does, and its inputs.
fn header(node: &Node) -> i64 {
    let does = i64::from(!does(node).is_empty());
    let inputs = i64::from(node.ports.iter().any(|port| port.side == "in"));
    2 * POINT + 8 + TEXT * (does + inputs)
}

impl Graph {
    fn shift(&mut self, x: i64, y: i64) {
        for node in &mut self.nodes {
            (node.x, node.y) = (node.x + x, node.y + y);
            for port in &mut node.ports {
                (port.x, port.y) = (port.x + x, port.y + y);
            }
        }
        for edge in &mut self.edges {
            let points = edge.points.iter_mut().chain(&mut edge.label_at);
            points.for_each(|[px, py]| (*px, *py) = (*px + x, *py + y));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Item, Layers, Link, place_of};

    /// Lays out `count` items. Each is linked from some earlier items that are at most `near` items away.
    fn steps(count: usize, near: usize) -> u64 {
        let item = |place: usize| Item {
            width: 180,
            height: 48,
            last: place + 1 == count,
        };
        let items: Vec<Item> = (0..count).map(item).collect();
        let link = |to: usize, turn: usize| Link {
            from: to - 1 - (to * 7 + turn * turn * 13) % near.min(to),
            to,
            from_at: 90,
            to_at: 90,
            label: if (to + turn).is_multiple_of(5) { 60 } else { 0 },
            back: false,
        };
        let links = (1..count).flat_map(|to| (0..2).map(move |turn| link(to, turn)));
        let links: Vec<Link> = links.collect();
        let places = place_of(&mut Layers::new(&items, &links), &items, &links);
        assert_eq!(
            (places.items.len(), places.links.len()),
            (count, links.len())
        );
        places.steps
    }

    #[test]
    fn the_work_is_in_proportion_to_the_graph() {
        for near in [1, 5, 1_000] {
            let (half, all) = (steps(500, near), steps(1_000, near));
            assert!(all < 3_000_000, "{near}: {all} steps for 1,000 items");
            assert!(all < 3 * half, "{near}: {half} steps became {all}");
        }
    }
}
