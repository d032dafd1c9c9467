//! Orders the vertices of each layer so that few lines cross.
//! Each sweep moves every vertex to the middle of its neighbours in the next layer.

use super::layers::Layers;

/// Maximum number of sweeps.
const SWEEPS: usize = 12;
/// Maximum number of sweeps without an improvement.
const STALE: usize = 4;

/// The vertices of each layer from left to right.
pub(super) type Order = Vec<Vec<usize>>;

/// Number of positions within a vertex, so that lines to different ports of the same vertex are ordered as well.
const PLACE: usize = 1_024;

/// For each vertex, the vertices at the other end of its hops, and the position of the hop at that vertex.
struct Neighbors {
    above: Vec<Vec<(usize, usize)>>,
    below: Vec<Vec<(usize, usize)>>,
}

impl Neighbors {
    fn new(layers: &Layers) -> Self {
        let none = || vec![Vec::new(); layers.vertices.len()];
        let (mut above, mut below) = (none(), none());
        for hop in &layers.hops {
            if let Some(below) = below.get_mut(hop.from) {
                below.push((hop.to, part(layers, hop.to, hop.to_at)));
            }
            if let Some(above) = above.get_mut(hop.to) {
                above.push((hop.from, part(layers, hop.from, hop.from_at)));
            }
        }
        Self { above, below }
    }
}

/// Returns the distance of a position from the left side of a vertex, in units of 1/[`PLACE`] of the vertex.
fn part(layers: &Layers, vertex: usize, at: i64) -> usize {
    let width = layers
        .vertices
        .get(vertex)
        .map_or(1, |vertex| vertex.width.max(1));
    let steps = i64::try_from(PLACE).unwrap_or(1) * at / (width + 1);
    usize::try_from(steps).unwrap_or(0)
}

pub(super) fn order(layers: &mut Layers) -> Order {
    let neighbours = Neighbors::new(layers);
    let mut order = first(layers, &neighbours);
    let mut best = order.clone();
    let mut fewest = crossings(layers, &order);
    let mut stale = 0;
    for sweep in 0..SWEEPS {
        if fewest == 0 || stale == STALE {
            break;
        }
        stale += 1;
        let down = sweep % 2 == 0;
        sort(layers, &neighbours, &mut order, down);
        let found = crossings(layers, &order);
        if found < fewest {
            fewest = found;
            stale = 0;
            best.clone_from(&order);
        }
    }
    best
}

/// Orders the vertices in the order in which they are reached from the first one.
/// If the graph is a tree, no lines cross in this order.
fn first(layers: &mut Layers, neighbours: &Neighbors) -> Order {
    let mut order = vec![Vec::new(); layers.layers];
    let mut seen = vec![false; layers.vertices.len()];
    for root in 0..layers.vertices.len() {
        let mut left = vec![root];
        while let Some(vertex) = left.pop() {
            layers.steps += 1;
            let Some(seen) = seen.get_mut(vertex).filter(|seen| !**seen) else {
                continue;
            };
            *seen = true;
            let layer = layers.vertices.get(vertex).map_or(0, |vertex| vertex.layer);
            if let Some(order) = order.get_mut(layer) {
                order.push(vertex);
            }
            let below = neighbours.below.get(vertex).into_iter().flatten();
            left.extend(below.rev().map(|(vertex, _)| vertex));
        }
    }
    order
}

/// Returns the index of each vertex within its layer.
fn places(vertices: usize, order: &Order) -> Vec<usize> {
    let mut places = vec![0; vertices];
    for layer in order {
        for (place, vertex) in layer.iter().enumerate() {
            if let Some(own) = places.get_mut(*vertex) {
                *own = place;
            }
        }
    }
    places
}

fn sort(layers: &mut Layers, neighbours: &Neighbors, order: &mut Order, down: bool) {
    let mut places = places(layers.vertices.len(), order);
    let sides = match down {
        true => &neighbours.above,
        false => &neighbours.below,
    };
    let count = order.len();
    for step in 0..count {
        let index = if down { step } else { count - 1 - step };
        let Some(layer) = order.get_mut(index) else {
            continue;
        };
        let middle = |vertex: &usize| {
            let others = sides.get(*vertex).map_or(&[][..], Vec::as_slice);
            let at = |(one, part): &(usize, usize)| Some(PLACE * places.get(*one)? + part);
            let sum: usize = others.iter().filter_map(at).sum();
            let own = || PLACE * places.get(*vertex).copied().unwrap_or(0) + PLACE / 2;
            sum.checked_div(others.len()).unwrap_or_else(own)
        };
        layer.sort_by_cached_key(middle);
        for (place, vertex) in layer.iter().enumerate() {
            layers.steps += 1 + sides.get(*vertex).map_or(0, |side| side.len() as u64);
            if let Some(own) = places.get_mut(*vertex) {
                *own = place;
            }
        }
    }
}

/// Counts the pairs of hops that cross.
fn crossings(layers: &mut Layers, order: &Order) -> u64 {
    let places = places(layers.vertices.len(), order);
    let place = |vertex: usize| places.get(vertex).copied().unwrap_or(0);
    let mut between: Vec<Vec<(usize, usize)>> = vec![Vec::new(); order.len()];
    for hop in &layers.hops {
        let layer = layers.vertices.get(hop.to).map_or(0, |to| to.layer);
        if let Some(between) = between.get_mut(layer) {
            let from = PLACE * place(hop.from) + part(layers, hop.from, hop.from_at);
            between.push((from, place(hop.to)));
        }
    }
    let mut crossings = 0;
    for (pairs, layer) in between.iter_mut().zip(order) {
        pairs.sort_unstable();
        // A binary indexed tree over the vertices of the layer below. It counts how many of the hops so far end at
        // each.
        let mut tree = vec![0_u64; layer.len() + 1];
        for (sofar, (_, to)) in pairs.iter().enumerate() {
            let mut before = 0;
            let mut index = to + 1;
            while let Some(count) = tree.get(index).filter(|_| index > 0) {
                before += count;
                index &= index - 1;
                layers.steps += 1;
            }
            crossings += (sofar as u64).saturating_sub(before);
            index = to + 1;
            while let Some(count) = tree.get_mut(index) {
                *count += 1;
                index += index & index.wrapping_neg();
                layers.steps += 1;
            }
        }
    }
    crossings
}
