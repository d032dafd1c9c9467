//! Where nodes and edges lie: inside out. The inside of a frame gives the frame its size.

use super::picture::{Edge, Graph, Node, node};
use super::{BoxId, Drawn, Ends, Inside, Line, LineKind, Shape};
use std::collections::HashMap;

const GAP: i64 = 40;
const PAD: i64 = 24;
const HEAD: i64 = 48;
const LANE: i64 = 16;

pub(super) fn layout(inside: &Inside, around: Option<&Drawn>) -> Graph {
    let mut level = level(inside, around);
    level.shift(PAD, PAD);
    level.width += 2 * PAD;
    level.height += 2 * PAD;
    level
}

fn size(drawn: &Drawn) -> (i64, i64) {
    match (&drawn.shape, drawn.facts.kind) {
        (Shape::Choice, _) => (32, 32),
        (Shape::Closed, "loop" | "foreach") => (260, 96),
        (Shape::Closed, _) => (220, 64),
        _ => (180, 48),
    }
}

fn level(inside: &Inside, around: Option<&Drawn>) -> Graph {
    let parent = around.map(|drawn| drawn.id.to_string());
    let id = |name: &str| match &parent {
        Some(parent) => format!("{parent}.{name}"),
        None => name.to_owned(),
    };
    let point = |name: &str, kind: &str| Node {
        id: id(name),
        kind: kind.to_owned(),
        width: 16,
        height: 16,
        ..Node::default()
    };
    let breaks = inside.lines.iter().any(|line| line.ends == Ends::Loop);
    let mut graph = Graph::default();
    let mut rows = vec![(point("start", "start"), None)];
    let mut place_of: HashMap<BoxId, usize> = HashMap::new();
    for drawn in &inside.boxes {
        place_of.insert(drawn.id, rows.len());
        let mut own = node(drawn);
        (own.width, own.height) = size(drawn);
        let within = match &drawn.shape {
            Shape::Frame(inside) => {
                let within = level(inside, Some(drawn));
                own.width = own.width.max(within.width + 2 * PAD);
                own.height = within.height + HEAD + PAD;
                Some(within)
            }
            _ => None,
        };
        rows.push((own, within));
    }
    let end = rows.len();
    rows.push((point("end", "end"), None));
    if breaks {
        rows.push((point("break", "break"), None));
    }
    let inner = rows.iter().map(|(node, _)| node.width).max().unwrap_or(0);
    let mut y = 0;
    for (node, within) in &mut rows {
        node.parent.clone_from(&parent);
        node.x = (inner - node.width) / 2;
        node.y = y;
        y += node.height + GAP;
        graph.nodes.push(node.clone());
        if let Some(mut within) = within.take() {
            let x = node.x + (node.width - within.width) / 2;
            within.shift(x, node.y + HEAD);
            graph.nodes.extend(within.nodes);
            graph.edges.extend(within.edges);
        }
    }
    let ends = |line: &Line| {
        let from = line.from.map_or(Some(0), |id| place_of.get(&id).copied())?;
        let to = match (line.to, line.ends) {
            (Some(id), _) => place_of.get(&id).copied()?,
            (None, Ends::Loop) => end + 1,
            (None, _) => end,
        };
        Some((from, to))
    };
    let mut lane = inner;
    let mut edge = |from: usize, to: usize, line: &Line, kind: &str| {
        let (Some((a, _)), Some((b, _))) = (rows.get(from), rows.get(to)) else {
            return;
        };
        let label = line.text();
        let points = if to == from + 1 {
            vec![
                [a.x + a.width / 2, a.y + a.height],
                [b.x + b.width / 2, b.y],
            ]
        } else {
            lane += LANE;
            let (ay, by) = (a.y + a.height / 2, b.y + b.height / 2);
            vec![
                [a.x + a.width, ay],
                [lane, ay],
                [lane, by],
                [b.x + b.width, by],
            ]
        };
        let middle = points
            .get(points.len() / 2 - 1)
            .zip(points.get(points.len() / 2));
        let label_at = middle.map(|(a, b)| [a[0].max(b[0]) + 6, (a[1] + b[1]) / 2]);
        graph.edges.push(Edge {
            from: a.id.clone(),
            to: b.id.clone(),
            label_at: label_at.filter(|_| !label.is_empty()),
            label: Some(label).filter(|label| !label.is_empty()),
            kind: kind.to_owned(),
            back: to <= from,
            from_port: None,
            to_port: None,
            points,
        });
    };
    for line in &inside.lines {
        if let Some((from, to)) = ends(line) {
            let kind = match (line.ends, line.kind) {
                (Ends::Loop, _) => "break",
                (_, LineKind::Next) => "next",
                (_, LineKind::Branch) => "branch",
                (_, LineKind::Failed) => "failed",
                (_, LineKind::Data) => "data",
                (_, LineKind::Previous) => "previous",
            };
            edge(from, to, line, kind);
        }
    }
    if around.is_some_and(|drawn| drawn.facts.kind == "loop") {
        edge(end, 0, &Line::new(None, None, ""), "again");
    }
    graph.width = lane + LANE;
    graph.height = y - GAP;
    graph
}

impl Graph {
    fn shift(&mut self, x: i64, y: i64) {
        for node in &mut self.nodes {
            node.x += x;
            node.y += y;
        }
        for edge in &mut self.edges {
            let points = edge.points.iter_mut().chain(&mut edge.label_at);
            points.for_each(|[px, py]| (*px, *py) = (*px + x, *py + y));
        }
    }
}
