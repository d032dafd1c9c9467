//! Computes the horizontal positions of the vertices.
//! Each vertex is placed below or above its neighbours in the other layers, as far as the order of its layer and the
//! gaps allow.

use super::layers::{Layers, Vertex};
use super::order::Order;

/// Number of passes over all layers.
const PASSES: usize = 8;
/// Gap between two boxes.
const GAP: i64 = 32;
/// Gap between a box and a line, or between two lines.
const LINE_GAP: i64 = 12;
/// Two parts of a line whose positions differ by at most this distance are aligned.
const NEAR: u64 = 10;

/// Returns the position of the left side of each vertex. The smallest position is 0.
pub(super) fn across(layers: &mut Layers, order: &Order) -> Vec<i64> {
    let mut x = vec![0; layers.vertices.len()];
    for layer in order {
        let offsets = offsets(layers, layer);
        put(&mut x, layer, &offsets);
    }
    let mut above = vec![Vec::new(); layers.vertices.len()];
    let mut below = above.clone();
    for hop in &layers.hops {
        if let Some(above) = above.get_mut(hop.to) {
            above.push((hop.from, hop.from_at - hop.to_at));
        }
        if let Some(below) = below.get_mut(hop.from) {
            below.push((hop.to, hop.to_at - hop.from_at));
        }
    }
    for pass in 0..PASSES {
        // The direction of the first pass is such that the last pass goes down.
        let down = pass % 2 == PASSES % 2 + 1;
        let sides = if down { &above } else { &below };
        let count = order.len();
        for step in 0..count {
            let index = if down { step } else { count - 1 - step };
            if let Some(layer) = order.get(index) {
                let settled = place_vertices(layers, layer, sides, &x);
                put(&mut x, layer, &settled);
            }
        }
    }
    let left = x.iter().min().copied().unwrap_or(0);
    x.iter_mut().for_each(|x| *x -= left);
    x
}

fn put(x: &mut [i64], layer: &[usize], places: &[i64]) {
    for (vertex, place) in layer.iter().zip(places) {
        if let Some(x) = x.get_mut(*vertex) {
            *x = *place;
        }
    }
}

/// Returns the left sides of a layer's vertices if they are as close together as allowed, beginning at 0.
fn offsets(layers: &Layers, layer: &[usize]) -> Vec<i64> {
    let mut at = 0;
    let mut before: Option<&Vertex> = None;
    let offset = |vertex: &usize| {
        let vertex = layers.vertices.get(*vertex)?;
        if let Some(before) = before {
            let gap = match before.passes || vertex.passes {
                true => LINE_GAP,
                false => GAP,
            };
            at += before.width + gap;
        }
        before = Some(vertex);
        Some(at)
    };
    layer.iter().filter_map(offset).collect()
}

/// Returns the left sides of a layer's vertices. Each is as near as possible to the position that its neighbours
/// suggest (its wish).
/// If several vertices cannot all have their wishes, they form a block around the average of these wishes.
fn place_vertices(
    layers: &mut Layers,
    layer: &[usize],
    sides: &[Vec<(usize, i64)>],
    x: &[i64],
) -> Vec<i64> {
    let offsets = offsets(layers, layer);
    // The wish of each vertex, converted to a position of the leftmost vertex of the layer.
    let mut wished: Vec<i64> = Vec::with_capacity(layer.len());
    // For each block: the sum of its wishes times weights, the sum of the weights, and the number of vertices.
    let mut blocks: Vec<(i64, i64, usize)> = Vec::new();
    let middle = |block: &(i64, i64, usize)| block.0.div_euclid(block.1.max(1));
    for (vertex, offset) in layer.iter().zip(&offsets) {
        let others = sides.get(*vertex).map_or(&[][..], Vec::as_slice);
        let own = x.get(*vertex).copied().unwrap_or(0);
        let mut wishes: Vec<i64> = others
            .iter()
            .filter_map(|(other, at)| Some(x.get(*other)? + at))
            .collect();
        wishes.sort_unstable();
        let half = wishes.len() / 2;
        let upper = wishes.get(half).copied();
        let lower = wishes.get((wishes.len().saturating_sub(1)) / 2).copied();
        let wish = upper.zip(lower).map(|(a, b)| (a + b).div_euclid(2));
        let passes = layers.vertices.get(*vertex).is_some_and(|one| one.passes);
        let weight = match (wish, passes) {
            (None, _) => 1,
            (Some(_), false) => 4,
            (Some(_), true) => 16,
        };
        layers.steps += 1 + wishes.len() as u64;
        let wish = wish.unwrap_or(own) - offset;
        wished.push(wish);
        blocks.push((wish * weight, weight, 1));
        while let [.., before, last] = &*blocks {
            if middle(before) <= middle(last) {
                break;
            }
            layers.steps += 1;
            let joined = (before.0 + last.0, before.1 + last.1, before.2 + last.2);
            blocks.truncate(blocks.len() - 2);
            blocks.push(joined);
        }
    }
    let mut members = wished.iter();
    let mut least = i64::MIN;
    let mut starts = Vec::with_capacity(layer.len());
    for (index, block) in blocks.iter().enumerate() {
        let most = blocks.get(index + 1).map_or(i64::MAX, middle);
        let at = middle(block);
        // A line that is nearly straight becomes straight.
        let near = members
            .by_ref()
            .take(block.2)
            .filter(|wish| (wish.abs_diff(at)) <= NEAR && (least..=most).contains(wish));
        least = near
            .min_by_key(|wish| wish.abs_diff(at))
            .copied()
            .unwrap_or(at);
        starts.extend(std::iter::repeat_n(least, block.2));
    }
    starts
        .iter()
        .zip(&offsets)
        .map(|(at, offset)| at + offset)
        .collect()
}
