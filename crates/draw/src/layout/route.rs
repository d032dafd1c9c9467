//! Computes the paths of lines.
//! Between two layers is a channel with horizontal tracks: a line goes down to its track, along the track, and down
//! again. A line that leads back, or over too many layers, goes up or down in a vertical lane at the right side.

use super::layers::{Item, Layers, Link, LinkRoute, PASS_AT};
use super::order::Order;
use std::collections::{BTreeSet, HashMap};

/// Distance between two tracks, and between two lanes.
const TRACK: i64 = 10;
/// Distance between a layer and the first track. The minimum height of a channel is twice this distance.
const MARGIN: i64 = 14;
/// Maximum number of nets in a channel for which the best order is searched. If there are more, each uses a free
/// track.
const MANY: usize = 48;

/// The positions of all items and lines.
#[derive(Default)]
pub(super) struct Positions {
    pub width: i64,
    pub height: i64,
    /// The upper left corner of each item.
    pub items: Vec<[i64; 2]>,
    pub links: Vec<Route>,
    pub steps: u64,
}

#[derive(Default)]
pub(super) struct Route {
    pub points: Vec<[i64; 2]>,
    pub label_at: Option<[i64; 2]>,
    pub back: bool,
}

/// The part of a line in a channel, from a position above to a position below.
/// A position in a lane counts as above if the line leaves the lane, and as below if the line enters the lane.
#[derive(Clone, Copy)]
struct Run {
    channel: usize,
    above: i64,
    below: i64,
    /// Where the run starts, with the position there. Runs with the same start may share a track.
    source: (usize, i64),
    /// Where the run ends, with the position there. Runs with the same end may share a track.
    target: (usize, i64),
}

/// Runs that share a track.
#[derive(Default)]
struct Net {
    runs: Vec<usize>,
    above: Vec<i64>,
    below: Vec<i64>,
    from: i64,
    to: i64,
}

/// The lane of a link that is drawn at the side, and the runs at both of its ends.
struct Lane {
    x: i64,
    out: usize,
    into: usize,
}

/// A link that is drawn at the side, with the channels at both of its ends.
struct SideLink {
    high: usize,
    low: usize,
    link: usize,
}

struct Router<'a> {
    layers: &'a mut Layers,
    links: &'a [Link],
    x: &'a [i64],
    runs: Vec<Run>,
    /// The track of each run.
    track: Vec<i64>,
    /// The number of tracks of each channel.
    tracks: Vec<i64>,
}

pub(super) fn route(
    items: &[Item],
    links: &[Link],
    layers: &mut Layers,
    order: &Order,
    x: &[i64],
) -> Positions {
    let count = order.len();
    let width = |vertex: (usize, &i64)| {
        let own = layers.vertices.get(vertex.0).map_or(0, |own| own.width);
        vertex.1 + own
    };
    let width = x.iter().enumerate().map(width).max().unwrap_or(0);
    let mut router = Router {
        layers,
        links,
        x,
        runs: Vec::new(),
        track: Vec::new(),
        tracks: vec![0; count + 1],
    };
    router.hops();
    let (lanes, width) = router.lanes(width);
    router.assign();
    let heights = |layer: &Vec<usize>| {
        let heights = layer
            .iter()
            .filter_map(|one| router.layers.vertices.get(*one));
        heights.map(|vertex| vertex.height).max().unwrap_or(0)
    };
    // The vertical position of the upper side of each layer and of each channel. Channel n is above layer n.
    let mut tops = Vec::with_capacity(count);
    let mut channels = Vec::with_capacity(count + 1);
    let mut y = 0;
    for (index, tracks) in router.tracks.iter().enumerate() {
        let edge = index == 0 || index == count;
        channels.push(y);
        y += match (tracks, edge) {
            (0, true) => 0,
            (tracks, _) => 2 * MARGIN + (tracks - 1).max(0) * TRACK,
        };
        if let Some(layer) = order.get(index) {
            tops.push((y, heights(layer)));
            y += heights(layer);
        }
    }
    let top = |vertex: usize| {
        let vertex = router.layers.vertices.get(vertex)?;
        tops.get(vertex.layer).copied()
    };
    let item = |(index, x): (usize, &i64)| [*x, top(index).unwrap_or_default().0];
    let mut places = Positions {
        width,
        height: y,
        items: x.iter().take(items.len()).enumerate().map(item).collect(),
        links: Vec::with_capacity(links.len()),
        steps: 0,
    };
    let bend = |run: usize| {
        let own = router.runs.get(run)?;
        let track = router.track.get(run)?;
        Some((own, channels.get(own.channel)? + MARGIN + track * TRACK))
    };
    for (index, link) in links.iter().enumerate() {
        let at = |item: usize, at: i64| {
            let [x, y] = places.items.get(item).copied().unwrap_or_default();
            [x + at, y]
        };
        let [from_x, from_y] = at(link.from, link.from_at);
        let from_y = from_y + items.get(link.from).map_or(0, |item| item.height);
        let mut route = Route {
            points: vec![[from_x, from_y]],
            ..Route::default()
        };
        match router.layers.routes.get(index) {
            Some(LinkRoute::Hops(hops, label)) => {
                for (run, y) in hops.iter().filter_map(|hop| bend(*hop)) {
                    route.points.extend([[run.above, y], [run.below, y]]);
                }
                route.label_at = label.and_then(|label| {
                    let (top, height) = top(label)?;
                    Some([x.get(label)? + PASS_AT + 6, top + height / 2])
                });
            }
            Some(LinkRoute::Lane(back)) => {
                route.back = *back;
                if let Some(lane) = lanes.get(&index)
                    && let (Some((out, low)), Some((into, high))) =
                        (bend(lane.out), bend(lane.into))
                {
                    let corners = [
                        [out.above, low],
                        [lane.x, low],
                        [lane.x, high],
                        [into.below, high],
                    ];
                    route.points.extend(corners);
                    let middle = [lane.x + 6, i64::midpoint(low, high)];
                    route.label_at = Some(middle).filter(|_| link.label > 0);
                }
            }
            None => {}
        }
        route.points.push(at(link.to, link.to_at));
        route.points = straight(&route.points);
        places.links.push(route);
    }
    places.steps = router.layers.steps;
    places
}

/// Removes the points that are on a straight line between the points before and after them.
fn straight(points: &[[i64; 2]]) -> Vec<[i64; 2]> {
    let mut corners: Vec<[i64; 2]> = Vec::with_capacity(points.len());
    for point in points {
        if corners.last() == Some(point) {
            continue;
        }
        if let [.., before, last] = &*corners {
            let down = before[0] == last[0] && last[0] == point[0];
            let along = before[1] == last[1] && last[1] == point[1];
            if down || along {
                corners.pop();
            }
        }
        corners.push(*point);
    }
    corners
}

impl Router<'_> {
    fn left(&self, vertex: usize) -> i64 {
        self.x.get(vertex).copied().unwrap_or(0)
    }

    /// Adds a run for each hop. The run has the same index as the hop.
    fn hops(&mut self) {
        for hop in &self.layers.hops {
            self.runs.push(Run {
                channel: self.layers.vertices.get(hop.to).map_or(0, |to| to.layer),
                above: self.left(hop.from) + hop.from_at,
                below: self.left(hop.to) + hop.to_at,
                source: (2 * hop.from, hop.from_at),
                target: (2 * hop.to, hop.to_at),
            });
        }
    }

    /// Assigns lanes to the links at the side. Short links are nearer to the graph than long links.
    fn lanes(&mut self, width: i64) -> (HashMap<usize, Lane>, i64) {
        let layer = |item: usize| self.layers.vertices.get(item).map_or(0, |item| item.layer);
        let side = |(index, way): (usize, &LinkRoute)| {
            let link = self.links.get(index)?;
            let (out, into) = (layer(link.from) + 1, layer(link.to));
            let side = SideLink {
                high: out.min(into),
                low: out.max(into),
                link: index,
            };
            matches!(way, LinkRoute::Lane(_)).then_some(side)
        };
        let routes = self.layers.routes.iter().enumerate();
        let mut sides: Vec<SideLink> = routes.filter_map(side).collect();
        sides.sort_by_key(|side| (side.low - side.high, side.link));
        let few = sides.len() <= 2 * MANY;
        let mut columns: Vec<Vec<SideLink>> = Vec::new();
        for side in sides {
            self.layers.steps += 1;
            let clear = |other: &SideLink| side.low < other.high || other.low < side.high;
            let free = |column: &&mut Vec<SideLink>| column.iter().all(clear);
            match columns.iter_mut().filter(|_| few).find(free) {
                Some(column) => column.push(side),
                None => columns.push(vec![side]),
            }
        }
        let mut lanes = HashMap::new();
        let mut x = width;
        for column in columns {
            x += 2 * TRACK;
            let mut label = 0;
            for side in column {
                if let Some(link) = self.links.get(side.link).copied() {
                    let lane = self.lane(side.link, &link, x);
                    lanes.insert(side.link, lane);
                    label = label.max(link.label);
                }
            }
            x += if label > 0 { label + 6 } else { 0 };
        }
        let width = if lanes.is_empty() { width } else { x };
        (lanes, width)
    }

    fn lane(&mut self, index: usize, link: &Link, x: i64) -> Lane {
        let layer = |item: usize| self.layers.vertices.get(item).map_or(0, |item| item.layer);
        let own = (2 * index + 1, 0);
        let out = Run {
            channel: layer(link.from) + 1,
            above: self.left(link.from) + link.from_at,
            below: x,
            source: own,
            target: own,
        };
        let into = Run {
            channel: layer(link.to),
            above: x,
            below: self.left(link.to) + link.to_at,
            ..out
        };
        self.runs.extend([out, into]);
        Lane {
            x,
            out: self.runs.len() - 2,
            into: self.runs.len() - 1,
        }
    }

    // ── tracks ──────────────────────────────────────────────────────────────────────────────────

    fn assign(&mut self) {
        self.track = vec![0; self.runs.len()];
        let mut by_channel: Vec<Vec<usize>> = vec![Vec::new(); self.tracks.len()];
        for (index, run) in self.runs.iter().enumerate() {
            if let Some(channel) = by_channel.get_mut(run.channel) {
                channel.push(index);
            }
        }
        for (channel, runs) in by_channel.iter().enumerate() {
            let nets = self.nets(runs);
            let placed = match nets.len() <= MANY {
                true => self.in_order(&nets),
                false => self.first_free_tracks(&nets),
            };
            if let Some(tracks) = self.tracks.get_mut(channel) {
                *tracks = placed.iter().max().map_or(0, |most| most + 1);
            }
            for (net, track) in nets.iter().zip(&placed) {
                for run in &net.runs {
                    if let Some(own) = self.track.get_mut(*run) {
                        *own = *track;
                    }
                }
            }
        }
    }

    /// Groups the runs of a channel that need a track into nets.
    /// A net has the runs from the same source. A run that is alone at its source is grouped with others to the same
    /// target.
    fn nets(&mut self, runs: &[usize]) -> Vec<Net> {
        let mut leaving: HashMap<(usize, i64), usize> = HashMap::new();
        for run in runs.iter().filter_map(|run| self.runs.get(*run)) {
            *leaving.entry(run.source).or_default() += 1;
        }
        let mut place: HashMap<(bool, (usize, i64)), usize> = HashMap::new();
        let mut nets: Vec<Net> = Vec::new();
        for index in runs {
            self.layers.steps += 1;
            let Some(run) = self.runs.get(*index).filter(|run| run.above != run.below) else {
                continue;
            };
            let key = match leaving.get(&run.source) {
                Some(1) => (true, run.target),
                _ => (false, run.source),
            };
            let (low, high) = (run.above.min(run.below), run.above.max(run.below));
            let place = *place.entry(key).or_insert_with(|| {
                nets.push(Net {
                    from: low,
                    to: high,
                    ..Net::default()
                });
                nets.len() - 1
            });
            if let Some(net) = nets.get_mut(place) {
                net.runs.push(*index);
                net.above.push(run.above);
                net.below.push(run.below);
                net.from = net.from.min(low);
                net.to = net.to.max(high);
            }
        }
        nets.iter_mut().for_each(|net| net.above.sort_unstable());
        nets
    }

    /// Assigns tracks to nets in an order in which few of them cross and none covers another one.
    fn in_order(&mut self, nets: &[Net]) -> Vec<i64> {
        let mut left: Vec<usize> = (0..nets.len()).collect();
        let mut costs = vec![0_i64; nets.len()];
        for (one, net) in nets.iter().enumerate() {
            for (two, other) in nets.iter().enumerate().filter(|(two, _)| *two != one) {
                if let Some(cost) = costs.get_mut(one) {
                    *cost += net.over(other) - other.over(net);
                }
                self.layers.steps +=
                    (net.runs.len() + other.runs.len()) as u64 + u64::from(two > 0);
            }
        }
        let mut tracks = vec![0_i64; nets.len()];
        let mut placed: Vec<usize> = Vec::with_capacity(nets.len());
        // The next net is the one that costs least if it is above all nets that remain.
        while let Some(at) = least(&left, &costs) {
            let next = left.remove(at);
            let Some(net) = nets.get(next) else { continue };
            for other in &left {
                if let (Some(cost), Some(other)) = (costs.get_mut(*other), nets.get(*other)) {
                    *cost -= other.over(net) - net.over(other);
                }
            }
            let above = placed.iter().filter_map(|before| {
                let other = nets.get(*before)?;
                let touch = other.from <= net.to + TRACK && net.from <= other.to + TRACK;
                touch.then_some(tracks.get(*before)? + 1)
            });
            let track = above.max().unwrap_or(0);
            if let Some(own) = tracks.get_mut(next) {
                *own = track;
            }
            placed.push(next);
        }
        tracks
    }

    /// Assigns tracks to many nets. From left to right, each net uses the first track that is free.
    fn first_free_tracks(&mut self, nets: &[Net]) -> Vec<i64> {
        let mut by_start: Vec<usize> = (0..nets.len()).collect();
        by_start.sort_by_key(|net| nets.get(*net).map_or(0, |net| net.from));
        let mut tracks = vec![0_i64; nets.len()];
        let mut busy: BTreeSet<(i64, i64)> = BTreeSet::new();
        let mut free: BTreeSet<i64> = BTreeSet::new();
        let mut count = 0;
        for index in by_start {
            self.layers.steps += 1;
            let Some(net) = nets.get(index) else { continue };
            while let Some((to, track)) = busy
                .first()
                .copied()
                .filter(|(to, _)| to + TRACK < net.from)
            {
                busy.remove(&(to, track));
                free.insert(track);
            }
            let track = free.pop_first().unwrap_or_else(|| {
                count += 1;
                count - 1
            });
            busy.insert((net.to, track));
            if let Some(own) = tracks.get_mut(index) {
                *own = track;
            }
        }
        tracks
    }
}

/// Returns the index of the net with the lowest cost. If several have this cost, returns the first of them.
fn least(left: &[usize], costs: &[i64]) -> Option<usize> {
    let cost = |(_, net): &(usize, &usize)| costs.get(**net).copied().unwrap_or(0);
    let least = left.iter().enumerate().min_by_key(cost);
    least.map(|(at, _)| at)
}

impl Net {
    /// Returns the cost if this net is above the other one: the number of crossings, and of lines that cover each
    /// other.
    fn over(&self, other: &Self) -> i64 {
        let within = |x: &&i64, net: &Self| net.from < **x && **x < net.to;
        let down = self.below.iter().filter(|x| within(x, other)).count();
        let up = other.above.iter().filter(|x| within(x, self)).count();
        let on_it = |x: &&i64| other.above.binary_search(x).is_ok();
        let same = self.below.iter().filter(on_it).count();
        i64::try_from(down + up + 16 * same).unwrap_or(i64::MAX / 4)
    }
}
