//! Simplifies the tree of boxes of a drawing.
//! A bare box (without a frame) is replaced by its content, frames are closed, and a wrapper is joined with the box
//! inside.

use super::{BoxId, BoxShape, Detail, DrawnBox, Line, LineKind, ScopeDrawing, ScopeEnd};
use std::collections::{HashMap, HashSet};
use windlass_model::model::Name;

impl ScopeDrawing {
    /// Replaces bare boxes by their content.
    /// Then a line to a bare box leads to the first boxes in it, and a line from it starts at the last boxes in it.
    pub(super) fn without_bare(mut self) -> Self {
        let mut boxes = Vec::new();
        let mut lines = std::mem::take(&mut self.lines);
        for drawn in self.boxes {
            match drawn.shape {
                BoxShape::Bare(inside) => {
                    let inside = inside.without_bare();
                    lines = through(drawn.id, &inside, lines);
                    boxes.extend(inside.boxes);
                }
                BoxShape::Frame(inside) => boxes.push(DrawnBox {
                    shape: BoxShape::Frame(inside.without_bare()),
                    ..drawn
                }),
                BoxShape::Step | BoxShape::Choice | BoxShape::Closed => boxes.push(drawn),
            }
        }
        Self { boxes, lines }
    }

    /// Closes the frames that are deeper than the level of detail allows.
    pub(super) fn close(self, detail: Detail) -> Self {
        let boxes = self.boxes.into_iter().map(|drawn| match drawn.shape {
            BoxShape::Frame(_)
                if detail.depth == Some(0) || drawn.facts.closed && !detail.expand =>
            {
                DrawnBox {
                    shape: BoxShape::Closed,
                    ..drawn
                }
            }
            BoxShape::Frame(inside) => {
                let depth = detail.depth.map(|depth| depth.saturating_sub(1));
                DrawnBox {
                    shape: BoxShape::Frame(inside.close(Detail { depth, ..detail })),
                    ..drawn
                }
            }
            BoxShape::Step | BoxShape::Choice | BoxShape::Closed | BoxShape::Bare(_) => drawn,
        });
        Self {
            boxes: boxes.collect(),
            ..self
        }
    }

    /// Closes all frames except those for which `is_open` returns true.
    pub(super) fn close_except(self, is_open: &dyn Fn(&DrawnBox) -> bool) -> Self {
        let boxes = self.boxes.into_iter().map(|drawn| {
            let open = is_open(&drawn);
            match drawn.shape {
                BoxShape::Frame(inside) => DrawnBox {
                    shape: match open {
                        true => BoxShape::Frame(inside.close_except(is_open)),
                        false => BoxShape::Closed,
                    },
                    ..drawn
                },
                _ => drawn,
            }
        });
        Self {
            boxes: boxes.collect(),
            ..self
        }
    }

    /// Joins boxes that an author thinks of as one.
    /// A retry or a time limit is joined with the step that it encloses. A frame that contains only a graph has the
    /// content of the graph. A condition that is always true is not written next to its line.
    pub(super) fn joined(mut self) -> Self {
        let mut renamed = HashMap::new();
        for drawn in &mut self.boxes {
            let BoxShape::Frame(inside) = &mut drawn.shape else {
                continue;
            };
            let mut inner = std::mem::take(inside).joined();
            let wraps = ["retry", "deadline"].contains(&drawn.facts.kind);
            match inner.only_box() {
                Some((mut wrapped, _)) if wraps => {
                    let limits = std::mem::take(&mut drawn.facts.limits);
                    let own = &mut wrapped.facts.limits;
                    own.retry = own.retry.take().or(limits.retry);
                    own.deadline = own.deadline.take().or(limits.deadline);
                    renamed.insert(drawn.id, wrapped.id);
                    *drawn = wrapped;
                }
                Some((only, ends)) => drawn.shape = BoxShape::Frame(Self::unwrap_graph(only, ends)),
                None => drawn.shape = BoxShape::Frame(inner),
            }
        }
        for line in &mut self.lines {
            let new = |id: BoxId| renamed.get(&id).copied().unwrap_or(id);
            line.from = line.from.map(new);
            line.to = line.to.map(new);
            if line.kind == LineKind::Next && line.label == "Succeeded" {
                line.label.clear();
            }
        }
        // If no line leads from a node to another one, the scope ends after it.
        let leads_on = |line: &&Line| line.kind != LineKind::Previous;
        let leads_on = self.lines.iter().filter(leads_on);
        let leads_on: HashSet<BoxId> = leads_on.filter_map(|line| line.from).collect();
        let is_last = |drawn: &&DrawnBox| !leads_on.contains(&drawn.id) && drawn.leads_on();
        let last = self.boxes.iter().filter(is_last);
        let ends = last.map(|drawn| Line::new(Some(drawn.id), None, ""));
        self.lines.extend(ends.collect::<Vec<_>>());
        self
    }

    /// Returns the drawing of a whole program, with joined boxes and with ports.
    pub(super) fn into_program_drawing(self) -> Self {
        let mut inside = self.joined();
        inside = match inside.only_box() {
            Some((drawn, ends)) => Self::unwrap_graph(drawn, ends),
            None => inside,
        };
        inside.find_ports();
        inside
    }

    /// Records for each box which of its ports are connected, outside and inside.
    fn find_ports(&mut self) {
        let mut at = HashMap::new();
        for (place, drawn) in self.boxes.iter_mut().enumerate() {
            at.insert(drawn.id, place);
            if let BoxShape::Frame(inside) = &mut drawn.shape {
                inside.find_ports();
            }
        }
        let place = |id: Option<BoxId>| id.and_then(|id| at.get(&id)).copied();
        for line in &self.lines {
            for wire in &line.wires {
                if let Some(from) = place(line.from).and_then(|from| self.boxes.get_mut(from)) {
                    note(&mut from.facts.outputs, &wire.output);
                }
                if let Some(to) = place(line.to).and_then(|to| self.boxes.get_mut(to)) {
                    note(&mut to.facts.inputs, &wire.input);
                }
            }
        }
        for drawn in &mut self.boxes {
            let BoxShape::Frame(inside) = &drawn.shape else {
                continue;
            };
            for line in &inside.lines {
                for wire in &line.wires {
                    if line.from.is_none() {
                        note(&mut drawn.facts.inputs, &wire.output);
                    }
                    if line.to.is_none() {
                        note(&mut drawn.facts.outputs, &wire.input);
                    }
                }
            }
        }
    }

    /// Returns a drawing with only this box. If the box is a graph, returns the content of the graph.
    fn unwrap_graph(drawn: DrawnBox, ends: ScopeEnd) -> Self {
        match drawn.shape {
            BoxShape::Frame(graph) if drawn.facts.kind == "graph" => graph.ending(ends),
            shape => Self::of_one(DrawnBox { shape, ..drawn }, ends),
        }
    }

    /// Removes and returns the only box, and what ends after it.
    /// Returns `None` if there are other boxes, or if its lines have labels.
    fn only_box(&mut self) -> Option<(DrawnBox, ScopeEnd)> {
        let [first, second] = &*self.lines else {
            return None;
        };
        let (into, out) = match first.from {
            None => (first, second),
            Some(_) => (second, first),
        };
        let only = self.boxes.first().map(|drawn| drawn.id);
        let plain = into.text().is_empty() && out.label.is_empty() && out.wires.is_empty();
        let around = into.from.is_none() && into.to == only && out.from == only && out.to.is_none();
        if self.boxes.len() != 1 || !plain || !around {
            return None;
        }
        let ends = out.ends;
        Some((self.boxes.pop()?, ends))
    }

    fn of_one(drawn: DrawnBox, ends: ScopeEnd) -> Self {
        let into = Line::new(None, Some(drawn.id), "");
        let out = Line::new(Some(drawn.id), None, "");
        Self {
            boxes: vec![drawn],
            lines: vec![into, Line { ends, ..out }],
        }
    }

    /// Sets what ends with the scope, for all lines to the end of the scope.
    fn ending(mut self, ends: ScopeEnd) -> Self {
        for line in self.lines.iter_mut().filter(|line| line.to.is_none()) {
            line.ends = ends;
        }
        self
    }

    /// Returns the boxes of the drawing at any depth. An outer box is before its inner boxes.
    pub(super) fn all(&self) -> Vec<&DrawnBox> {
        let mut all: Vec<&DrawnBox> = Vec::new();
        let mut left: Vec<&DrawnBox> = self.boxes.iter().rev().collect();
        while let Some(drawn) = left.pop() {
            all.push(drawn);
            if let BoxShape::Frame(inside) = &drawn.shape {
                left.extend(inside.boxes.iter().rev());
            }
        }
        all
    }

    /// Removes a frame from the drawing. Returns the frame, now closed, and its content.
    pub(super) fn into_inside_of(self, id: BoxId) -> (Option<DrawnBox>, Self) {
        let mut left = self.boxes;
        while let Some(drawn) = left.pop() {
            match drawn.shape {
                BoxShape::Frame(inside) if drawn.id == id => {
                    let shape = BoxShape::Closed;
                    return (Some(DrawnBox { shape, ..drawn }), inside);
                }
                BoxShape::Frame(inside) => left.extend(inside.boxes),
                _ => {}
            }
        }
        (None, Self::default())
    }
}

impl DrawnBox {
    /// Returns true if a step may follow the box.
    fn leads_on(&self) -> bool {
        !["raise", "terminate"].contains(&self.facts.kind)
    }
}

fn note(ports: &mut Vec<Name>, port: &Name) {
    if !ports.contains(port) {
        ports.push(port.clone());
    }
}

/// Returns the lines outside of a bare box, connected to the boxes inside of it.
fn through(id: BoxId, inside: &ScopeDrawing, outer: Vec<Line>) -> Vec<Line> {
    // A box from which only a line for its failure leads is one of the last boxes, too. A box that ends the run is
    // not.
    let successful = inside
        .lines
        .iter()
        .filter(|line| line.kind != LineKind::Failed);
    let sources: HashSet<BoxId> = successful.filter_map(|line| line.from).collect();
    let is_last = |drawn: &&DrawnBox| !sources.contains(&drawn.id) && drawn.leads_on();
    let last: Vec<BoxId> = inside
        .boxes
        .iter()
        .filter(is_last)
        .map(|drawn| drawn.id)
        .collect();
    let first: Vec<&Line> = inside
        .lines
        .iter()
        .filter(|line| line.from.is_none())
        .collect();
    let within = |line: &&Line| line.from.is_some() && line.to.is_some();
    let mut lines: Vec<Line> = inside.lines.iter().filter(within).cloned().collect();
    for line in outer {
        if line.to == Some(id) {
            lines.extend(first.iter().map(|inner| {
                let parts = [&*line.label, &*inner.label];
                let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
                Line {
                    to: inner.to,
                    label: parts.join(", "),
                    ..line.clone()
                }
            }));
        } else if line.from == Some(id) {
            lines.extend(last.iter().map(|from| Line {
                from: Some(*from),
                ..line.clone()
            }));
        } else {
            lines.push(line);
        }
    }
    lines
}
