//! The mappings of a loop (docs/reference/canvas.md).
//! They set the inputs of its inner workflow, in the first and in later iterations, and the outputs of the loop.

use super::Canvas;
use super::port::PortSide;
use super::tree::{Graph, Mapping, MappingPhase, Origin, Outcome, PortRef, Ports, Socket};
use crate::fields::Fields;
use std::collections::HashMap;
use windlass_expression::{Port, PortKind};
use windlass_model::model::{CollectMode, Name};
use windlass_source::diagnostic::did_you_mean;
use windlass_source::source::{Entry, Node, Span};

/// The outputs that every loop has.
pub(super) const BUILT_IN: [(&str, PortKind); 2] = [
    ("iteration_count", PortKind::Number),
    ("status", PortKind::String),
];
const INPUT: &str = "for example { source: { type: outer, name: task }, target: { node: coder, \
                     input: task }, iterations: all }";
const OUTPUT: &str = "for example { source: { node: review, output: approved }, target: approved, \
                      take: last }";
const SAME_TYPE: &str = "use the same type for both";

/// The loop whose mappings are read.
pub(super) struct LoopContext<'g> {
    pub id: Name,
    pub span: Span,
    pub map: bool,
    pub inner: &'g Graph,
}

impl LoopContext<'_> {
    fn port(&self, place: &PortRef, side: PortSide) -> Option<&Socket> {
        self.inner
            .nodes
            .get(place.node)?
            .side(side)
            .find(&place.port)
    }
}

impl Canvas<'_> {
    pub(super) fn input_mappings(
        &mut self,
        data: &mut Fields<'_>,
        around: &LoopContext<'_>,
        inputs: &Ports,
    ) -> Vec<Mapping> {
        let Some(items) = self.items(data.get("inputMappings"), INPUT) else {
            return Vec::new();
        };
        let mut mappings = Vec::new();
        // The last mapping to each input of an inner node. The flag distinguishes the first iteration from later
        // ones.
        let mut taken: HashMap<(usize, Name, bool), Span> = HashMap::new();
        for item in items {
            let Some((mapping, span)) = self.input_mapping(item, around, inputs) else {
                continue;
            };
            let iterations = [(mapping.when.first(), true), (mapping.when.later(), false)];
            let held = iterations.into_iter().filter(|(holds, _)| *holds);
            let mut free = true;
            for (_, first) in held {
                let key = (mapping.to.node, mapping.to.port.clone(), first);
                if let Some(before) = taken.insert(key, span)
                    && free
                {
                    free = false;
                    self.two_values(around, &mapping.to, span, before, first);
                }
            }
            if around.inner.is_fed(mapping.to.node, &mapping.to.port) {
                free = false;
                let node = around.inner.nodes.get(mapping.to.node);
                let what = format!(
                    "input `{}` of `{}` has an edge already",
                    mapping.to.port,
                    node.map_or("", |node| &node.id)
                );
                let hint = "an input has one value: remove the edge or the mapping";
                self.error("two-values", span, what, hint);
            }
            if free {
                mappings.push(mapping);
            }
        }
        mappings
    }

    fn two_values(
        &mut self,
        around: &LoopContext<'_>,
        to: &PortRef,
        span: Span,
        before: Span,
        first: bool,
    ) {
        let id = around.inner.nodes.get(to.node).map_or("", |node| &node.id);
        let when = if first {
            "the first iteration"
        } else {
            "later iterations"
        };
        let what = format!(
            "two mappings lead to input `{}` of `{id}` in {when}, the first at line {}",
            to.port, before.line
        );
        let hint = "use one in the `first` iteration and the other in `subsequent` ones";
        self.error("two-values", span, what, hint);
    }

    fn input_mapping(
        &mut self,
        node: &Node,
        around: &LoopContext<'_>,
        inputs: &Ports,
    ) -> Option<(Mapping, Span)> {
        let mut fields = self.fields(node, "an input mapping", INPUT)?;
        fields.allow(&["id", "label", "description"]);
        let source = fields.required(self, "source", node.span, INPUT);
        let target = fields.required(self, "target", node.span, INPUT);
        let when = fields.non_null(self, "iterations");
        fields.finish(self);
        let target = target.and_then(|entry| self.inner_port(entry, around, PortSide::Input));
        let when_span = when.map(|entry| entry.value.span);
        let when = when.map_or(Some(MappingPhase::All), |entry| self.when(entry));
        let source = source.and_then(|entry| Some((self.origin(entry, around, inputs)?, entry)));
        let ((from, kind), entry) = source?;
        let (to, span) = target?;
        let when = when?;
        if let (Origin::Previous(_), MappingPhase::First, Some(span)) = (&from, when, when_span) {
            let what = "the first iteration has no previous one: this is always null";
            let hint = "iterations: subsequent";
            self.warning("always-null", span, what, hint);
        }
        if let Some(target) = around.port(&to, PortSide::Input) {
            let span = entry.value.span;
            self.must_become("the source", kind, &target.port, span, SAME_TYPE);
        }
        Some((Mapping { from, to, when }, span))
    }

    fn when(&mut self, entry: &Entry) -> Option<MappingPhase> {
        let known = MappingPhase::ALL.map(|when| (when.as_str(), when));
        self.choice(entry, &known, |text| {
            format!("`{text}` says nothing about iterations")
        })
    }

    /// Reads the source of a mapping's value. Returns the source and the type of the value.
    fn origin(
        &mut self,
        entry: &Entry,
        around: &LoopContext<'_>,
        inputs: &Ports,
    ) -> Option<(Origin, PortKind)> {
        let hint = "{ type: outer, name: task }, { type: previous, node: review, output: feedback } \
                    or { type: builtin, name: iteration_count }";
        let mut fields = self.fields(&entry.value, "`source`", hint)?;
        let kind = fields.required(self, "type", entry.key_span, hint)?;
        match self.text(kind, hint)? {
            "outer" => {
                let name = fields.required(self, "name", entry.key_span, hint);
                fields.finish(self);
                let name = name?;
                let text = self.text(name, hint)?;
                self.outer(around, inputs, text, name.value.span)
            }
            "previous" => {
                let id = fields.required(self, "node", entry.key_span, hint);
                let output = fields.required(self, "output", entry.key_span, hint);
                fields.finish(self);
                if around.map {
                    let what =
                        "the items of a map run concurrently: they have no previous iteration";
                    let hint = "use a node of type loop";
                    self.error("no-previous", kind.value.span, what, hint);
                    return None;
                }
                let (place, _) = self.at(id?, output?, around, PortSide::Output)?;
                let kind = around
                    .port(&place, PortSide::Output)
                    .map_or(PortKind::Any, |socket| socket.port.kind);
                Some((Origin::Previous(place), kind))
            }
            "builtin" => {
                let name = fields.required(self, "name", entry.key_span, hint);
                fields.finish(self);
                let name = name?;
                let text = self.text(name, hint)?;
                if text != "iteration_count" {
                    let what = format!("unknown builtin `{text}` of an input mapping");
                    let hint = "the only one is iteration_count";
                    self.error("unknown-value", name.value.span, what, hint);
                    return None;
                }
                Some((Origin::Iteration, PortKind::Number))
            }
            other => {
                let what = format!("`{other}` is not a valid source of a mapping");
                self.error("unknown-value", kind.value.span, what, hint);
                None
            }
        }
    }

    fn outer(
        &mut self,
        around: &LoopContext<'_>,
        inputs: &Ports,
        name: &str,
        span: Span,
    ) -> Option<(Origin, PortKind)> {
        if inputs.find(name).is_none() {
            let what = format!("`{}` has no input `{name}`", around.id);
            let hint = did_you_mean(name, inputs.names())
                .unwrap_or_else(|| format!("declare it: inputs: [{{ name: {name}, type: any }}]"));
            self.error("unknown-port", span, what, hint);
            return None;
        }
        // In a map, the input with the list has the value of one item, whose type is not known.
        let kind = match around.map {
            true => PortKind::Any,
            false => inputs.kind(name),
        };
        Some((Origin::Outer(Name::from(name)), kind))
    }

    /// Reads `{node, input}` or `{node, output}`.
    fn inner_port(
        &mut self,
        entry: &Entry,
        around: &LoopContext<'_>,
        side: PortSide,
    ) -> Option<(PortRef, Span)> {
        let hint = match side {
            PortSide::Input => "{ node: coder, input: task }",
            PortSide::Output => "{ node: review, output: approved }",
        };
        let what = format!("`{}`", entry.key);
        let mut fields = self.fields(&entry.value, &what, hint)?;
        let id = fields.required(self, "node", entry.key_span, hint);
        let port = fields.required(self, side.word(), entry.key_span, hint);
        fields.finish(self);
        self.at(id?, port?, around, side)
    }

    fn at(
        &mut self,
        id: &Entry,
        port: &Entry,
        around: &LoopContext<'_>,
        side: PortSide,
    ) -> Option<(PortRef, Span)> {
        let text = self.text(id, "the id of an inner node")?;
        let name = self.text(port, "the name of a port")?;
        let Some(node) = around.inner.find(text) else {
            self.unknown_node(around.inner, text, id.value.span);
            return None;
        };
        let named = (Name::from(name), port.value.span);
        let (port, span) = self.known_port(around.inner, node, side, named)?;
        Some((PortRef { node, port }, span))
    }

    // ── out ─────────────────────────────────────────────────────────────────────────────────

    pub(super) fn output_mappings(
        &mut self,
        data: &mut Fields<'_>,
        around: &LoopContext<'_>,
        declared: Option<Vec<Socket>>,
    ) -> (Vec<Outcome>, Ports) {
        let items = self.items(data.get("outputMappings"), OUTPUT);
        let any = declared.is_none();
        let mut outputs = Ports::of(declared.unwrap_or_default());
        let mut results: Vec<Outcome> = Vec::new();
        for item in items.unwrap_or_default() {
            let Some((result, kind, span)) = self.output_mapping(item, around) else {
                continue;
            };
            let target = &result.target;
            if let Some(twice) = results.iter().find(|other| other.target == *target) {
                let what = format!("two mappings lead to output `{}`", twice.target);
                let hint = "use another target for one of them";
                self.error("two-values", span, what, hint);
                continue;
            }
            match outputs.find(target) {
                Some(socket)
                    if kind.may_become(socket.port.kind)
                        && result.take == CollectMode::All
                        && is_single(&socket.port) =>
                {
                    let what = format!(
                        "{} accepts one value, and `take: all` returns a list",
                        socket.port.shown
                    );
                    let hint = "set its type to json, or take: last";
                    self.error("type-mismatch", span, what, hint);
                }
                Some(socket) => {
                    self.must_become("the source", kind, &socket.port, span, SAME_TYPE);
                }
                None if any => {
                    outputs
                        .list
                        .push(self.built_in(target, PortKind::Any, &around.id, span))
                }
                None => {
                    let what = format!("`{}` has no output `{target}`", around.id);
                    let hint = did_you_mean(target, outputs.names()).unwrap_or_else(|| {
                        format!("declare it: outputs: [{{ name: {target}, type: any }}]")
                    });
                    self.error("unknown-port", span, what, hint);
                    continue;
                }
            }
            results.push(result);
        }
        for socket in &outputs.list {
            let name = &socket.port.name;
            let built_in = BUILT_IN.iter().any(|(known, _)| *known == &**name);
            if !built_in && !results.iter().any(|result| result.target == *name) {
                let what = format!("nothing leads to {}: it is always null", socket.port.shown);
                self.warning("always-null", socket.span, what, OUTPUT);
            }
        }
        for (name, kind) in BUILT_IN {
            if outputs.find(name).is_none() {
                outputs
                    .list
                    .push(self.built_in(name, kind, &around.id, around.span));
            }
        }
        (results, outputs)
    }

    fn output_mapping(
        &mut self,
        node: &Node,
        around: &LoopContext<'_>,
    ) -> Option<(Outcome, PortKind, Span)> {
        let mut fields = self.fields(node, "an output mapping", OUTPUT)?;
        fields.allow(&["id", "label", "description"]);
        let source = fields.required(self, "source", node.span, OUTPUT);
        let target = fields.required(self, "target", node.span, OUTPUT);
        let take = fields.non_null(self, "take");
        fields.finish(self);
        let take = take.map_or(Some(CollectMode::Last), |entry| self.take(entry));
        let source = source.and_then(|entry| self.result(entry, around));
        let target = target?;
        let text = self.text(target, "the name of an output")?;
        let (from, built_in, kind) = source?;
        let take = take?;
        let kind = match take {
            CollectMode::All => PortKind::Any,
            CollectMode::First | CollectMode::Last => kind,
        };
        let outcome = Outcome {
            from,
            builtin: built_in,
            target: Name::from(text),
            take,
        };
        Some((outcome, kind, target.value.span))
    }

    fn take(&mut self, entry: &Entry) -> Option<CollectMode> {
        let known = [
            ("last", CollectMode::Last),
            ("first", CollectMode::First),
            ("all", CollectMode::All),
        ];
        self.choice(entry, &known, |text| format!("`{text}` accepts no inputs"))
    }

    /// Reads `{node, output}` or `{type: builtin, name}`.
    fn result(
        &mut self,
        entry: &Entry,
        around: &LoopContext<'_>,
    ) -> Option<(Option<PortRef>, &'static str, PortKind)> {
        let hint =
            "{ node: review, output: approved }, or { type: builtin, name: iteration_count }";
        let kind = entry.value.get("type").and_then(Node::as_str);
        if kind != Some("builtin") {
            let mut fields = self.fields(&entry.value, "`source`", hint)?;
            // The only other type is `inner`, which is the default.
            fields.allow(&["type"]);
            let id = fields.required(self, "node", entry.key_span, hint);
            let port = fields.required(self, "output", entry.key_span, hint);
            fields.finish(self);
            let (place, _) = self.at(id?, port?, around, PortSide::Output)?;
            let kind = around
                .port(&place, PortSide::Output)
                .map_or(PortKind::Any, |socket| socket.port.kind);
            return Some((Some(place), "", kind));
        }
        let mut fields = self.fields(&entry.value, "`source`", hint)?;
        fields.allow(&["type"]);
        let name = fields.required(self, "name", entry.key_span, hint);
        fields.finish(self);
        let known = BUILT_IN.map(|known| (known.0, known));
        let (known, kind) =
            self.choice(name?, &known, |text| format!("unknown builtin `{text}`"))?;
        Some((None, known, kind))
    }
}

/// Returns true if a port accepts only numbers or only booleans, and so never a list.
fn is_single(port: &Port) -> bool {
    matches!(port.kind, PortKind::Number | PortKind::Boolean)
}
