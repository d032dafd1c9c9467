//! Assigns items (boxes) and links (lines between them) to layers from top to bottom.
//! It decides which links lead back, in which layer each item is, and at which vertices a link passes the layers
//! between its ends.

/// An item to place: a box with a size.
#[derive(Clone, Copy, Debug)]
pub(super) struct Item {
    pub width: i64,
    pub height: i64,
    /// Whether the item is in the last layer, below all others.
    pub last: bool,
}

/// A link between two items.
#[derive(Clone, Copy, Debug)]
pub(super) struct Link {
    pub from: usize,
    pub to: usize,
    /// Distance of the start of the link from the left side of the upper item.
    pub from_at: i64,
    /// Distance of the end of the link from the left side of the lower item.
    pub to_at: i64,
    /// Width of the link's label. 0 means that it has no label.
    pub label: i64,
    /// Whether the caller knows that the link leads back.
    pub back: bool,
}

/// A place in a layer: an item, or a link that passes the layer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Vertex {
    pub layer: usize,
    pub width: i64,
    pub height: i64,
    pub passes: bool,
}

/// The part of a link from one layer to the next.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hop {
    pub from: usize,
    pub to: usize,
    pub from_at: i64,
    pub to_at: i64,
}

/// How a link is drawn from its start to its end.
#[derive(Clone, Debug)]
pub(super) enum LinkRoute {
    /// Down from layer to layer. The fields are the link's hops, and the vertex that has its label.
    Hops(Vec<usize>, Option<usize>),
    /// In a lane at the side. The flag is true if the link leads back.
    Lane(bool),
}

pub(super) struct Layers {
    /// The vertices. The first ones are the items, in their order.
    pub vertices: Vec<Vertex>,
    pub hops: Vec<Hop>,
    pub routes: Vec<LinkRoute>,
    pub layers: usize,
    /// Number of steps of inner loops, as a measure of the work.
    pub steps: u64,
}

/// The width that a passing line has in a layer.
pub(super) const PASS: i64 = 12;
/// The position of the line in this width.
pub(super) const PASS_AT: i64 = 6;
/// The height of a layer for a label.
const LABEL_HEIGHT: i64 = 20;

impl Layers {
    pub fn new(items: &[Item], links: &[Link]) -> Self {
        let mut steps = 0;
        let back = leading_back(items.len(), links, &mut steps);
        let layer_of = layering(items, links, &back, &mut steps);
        let layers = layer_of.iter().max().map_or(0, |last| last + 1);
        let vertex = |(item, layer): (&Item, &usize)| Vertex {
            layer: *layer,
            width: item.width,
            height: item.height,
            passes: false,
        };
        let mut made = Self {
            vertices: items.iter().zip(&layer_of).map(vertex).collect(),
            hops: Vec::new(),
            routes: Vec::with_capacity(links.len()),
            layers,
            steps,
        };
        let longest = max_span(links, &back, &layer_of);
        for (link, back) in links.iter().zip(&back) {
            let span = span(link, &layer_of);
            let route = match *back || span > longest {
                true => LinkRoute::Lane(*back),
                false => made.hops_of(link, span),
            };
            made.routes.push(route);
        }
        made
    }

    fn hops_of(&mut self, link: &Link, span: usize) -> LinkRoute {
        let first = self.vertices.get(link.from).map_or(0, |from| from.layer);
        let mut hops = Vec::with_capacity(span);
        let mut label = None;
        let (mut from, mut from_at) = (link.from, link.from_at);
        for step in 1..span {
            let labelled = step == 1 && link.label > 0;
            let passes = self.vertices.len();
            self.vertices.push(Vertex {
                layer: first + step,
                width: if labelled { PASS + link.label } else { PASS },
                height: if labelled { LABEL_HEIGHT } else { 0 },
                passes: true,
            });
            label = label.or(labelled.then_some(passes));
            hops.push(self.hop(from, passes, from_at, PASS_AT));
            (from, from_at) = (passes, PASS_AT);
        }
        hops.push(self.hop(from, link.to, from_at, link.to_at));
        self.steps += span as u64;
        LinkRoute::Hops(hops, label)
    }

    fn hop(&mut self, from: usize, to: usize, from_at: i64, to_at: i64) -> usize {
        self.hops.push(Hop {
            from,
            to,
            from_at,
            to_at,
        });
        self.hops.len() - 1
    }
}

/// Returns the number of layers that a link goes down.
/// Returns 0 for a link that does not lead down.
fn span(link: &Link, layer_of: &[usize]) -> usize {
    let at = |item: usize| layer_of.get(item).copied().unwrap_or(0);
    at(link.to).saturating_sub(at(link.from))
}

/// Returns the maximum span of a link that is drawn through layers. Longer links are drawn at the side.
/// This limits the number of layers that all links pass together, so that the work is proportional to the size of the
/// graph.
fn max_span(links: &[Link], back: &[bool], layer_of: &[usize]) -> usize {
    let forward = links.iter().zip(back).filter(|(_, back)| !**back);
    let mut spans: Vec<usize> = forward.map(|(link, _)| span(link, layer_of)).collect();
    spans.sort_unstable();
    let mut left = 4 * (links.len() + layer_of.len()) + 400;
    let fits = |span: &&usize| {
        let passes = left.checked_sub(**span);
        left = passes.unwrap_or(0);
        passes.is_some()
    };
    spans.iter().take_while(fits).last().copied().unwrap_or(0)
}

/// Returns for each item the indexes of the links that start at it.
fn outgoing(items: usize, links: &[Link]) -> Vec<Vec<usize>> {
    let mut out = vec![Vec::new(); items];
    for (index, link) in links.iter().enumerate() {
        if let Some(out) = out.get_mut(link.from) {
            out.push(index);
        }
    }
    out
}

/// Finds the links that lead back: those to an item on the path that leads to the link.
fn leading_back(items: usize, links: &[Link], steps: &mut u64) -> Vec<bool> {
    let mut back: Vec<bool> = links.iter().map(|link| link.back).collect();
    let out = outgoing(items, links);
    // The state of each item: 0 is not seen, 1 is on the path to the current item, 2 is done.
    let mut seen = vec![0_u8; items];
    for root in 0..items {
        let mut way = vec![(root, 0)];
        while let Some((item, next)) = way.pop() {
            *steps += 1;
            let Some(state) = seen.get_mut(item) else {
                continue;
            };
            if next == 0 && *state != 0 {
                continue;
            }
            *state = 1;
            let link = out.get(item).and_then(|out| out.get(next)).copied();
            let Some(link) = link else {
                *state = 2;
                continue;
            };
            way.push((item, next + 1));
            let (Some(end), Some(back)) = (links.get(link), back.get_mut(link)) else {
                continue;
            };
            match seen.get(end.to) {
                _ if *back => {}
                Some(1) => *back = true,
                Some(0) => way.push((end.to, 0)),
                _ => {}
            }
        }
    }
    back
}

/// Assigns each item to the highest layer that is below all items that lead to it.
/// An item to which no other item leads is just above the items that it leads to.
fn layering(items: &[Item], links: &[Link], back: &[bool], steps: &mut u64) -> Vec<usize> {
    let out = outgoing(items.len(), links);
    let forward = |index: &usize| back.get(*index) == Some(&false);
    let mut waits = vec![0_usize; items.len()];
    for (link, back) in links.iter().zip(back) {
        if let Some(waits) = waits.get_mut(link.to).filter(|_| !back) {
            *waits += 1;
        }
    }
    let is_free = |(item, waits): (usize, &usize)| (*waits == 0).then_some(item);
    let mut order: Vec<usize> = waits.iter().enumerate().filter_map(is_free).collect();
    let free = order.len();
    let mut layer = vec![0_usize; items.len()];
    let mut next = 0;
    while let Some(item) = order.get(next).copied() {
        next += 1;
        let from = layer.get(item).copied().unwrap_or(0);
        for index in out.get(item).into_iter().flatten().filter(|l| forward(l)) {
            *steps += 1;
            let Some(link) = links.get(*index) else {
                continue;
            };
            if let (Some(to), Some(waits)) = (layer.get_mut(link.to), waits.get_mut(link.to)) {
                *to = (*to).max(from + min_layers(link));
                *waits = waits.saturating_sub(1);
                if *waits == 0 {
                    order.push(link.to);
                }
            }
        }
    }
    // The first item is skipped, because the scope starts there and it stays at the top.
    for item in order.iter().take(free).filter(|item| **item != 0).rev() {
        let all = out.get(*item).into_iter().flatten().filter(|l| forward(l));
        let before = all.filter_map(|index| {
            let link = links.get(*index)?;
            layer.get(link.to)?.checked_sub(min_layers(link))
        });
        if let (Some(before), Some(layer)) = (before.min(), layer.get_mut(*item)) {
            *layer = before;
        }
    }
    let last = layer.iter().max().copied().unwrap_or(0);
    for (item, layer) in items.iter().zip(&mut layer).filter(|(item, _)| item.last) {
        *layer = if item.last { last } else { *layer };
    }
    layer
}

/// Returns the minimum number of layers from one end of a link to the other. A label needs a layer of its own.
fn min_layers(link: &Link) -> usize {
    if link.label > 0 { 2 } else { 1 }
}
