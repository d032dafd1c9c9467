//! Reads one node: the keys that all types share, and the keys of its type.

use super::Canvas;
use super::port::PortSide;
use super::tree::{Node, NodeKind, Ports, Socket, Text};
use crate::fields::Fields;
use crate::vocabulary::canvas::{DRAWING, NODE_NOTES, NODE_TYPES, data_key};
use windlass_expression::{PortKind, Value};
use windlass_model::model::Name;
use windlass_source::source::{self, Entry, Kind, Span};

pub(super) struct NodeReader<'n> {
    pub data: Fields<'n>,
    pub id: Name,
    pub span: Span,
    pub inputs: Option<Vec<Socket>>,
    pub outputs: Option<Vec<Socket>>,
}

pub(super) struct Body {
    pub spec: NodeKind,
    pub inputs: Ports,
    pub outputs: Ports,
}

impl Canvas<'_> {
    /// Reads one node. Returns `None` if the node has no id.
    pub(super) fn node(&mut self, node: &source::Node) -> Option<Node> {
        let hint = "for example { id: coder, type: agent, data: { runner: claude-code, … } }";
        let mut fields = self.fields(node, "a node", hint)?;
        fields.allow_keys(DRAWING);
        let id = fields.required(self, "id", node.span, hint);
        let kind = fields.required(self, "type", node.span, &types());
        let data = fields.non_null(self, "data");
        for entry in fields.rest().collect::<Vec<_>>() {
            let Some(key) = data_key(&entry.key) else {
                continue;
            };
            let what = format!("`{}` is not a key of a node, but of its `data`", entry.key);
            let hint = format!("write it there: data: {{ {}: … }}", entry.key);
            self.error("misplaced-key", entry.key_span, what, hint);
            fields.allow(&[key]);
        }
        fields.finish(self);
        let id = id?;
        let span = id.value.span;
        let id = Name::from(self.text(id, "text, such as coder")?);
        if id.trim().is_empty() {
            self.error("missing-value", span, "this node's id is empty", hint);
            return None;
        }
        let kind = kind.and_then(|entry| self.kind(entry));
        let empty = source::Node {
            span,
            kind: Kind::Object(Vec::new()),
        };
        let data = data.map_or(&empty, |data| &data.value);
        let what = format!("`data` of `{id}`");
        let unknown = |id: Name| Node {
            step: id.clone(),
            id,
            kind: "unknown",
            title: None,
            span,
            inputs: open(None),
            outputs: open(None),
            timeout: None,
            spec: NodeKind::Unknown,
        };
        let (Some(kind), Some(mut data)) = (kind, self.fields(data, &what, hint)) else {
            return Some(unknown(id));
        };
        data.allow_keys(NODE_NOTES);
        let title = self.title(&mut data, kind, &id);
        let inputs = self.ports(&mut data, PortSide::Input, &id);
        let outputs = self.ports(&mut data, PortSide::Output, &id);
        let timeout = match kind {
            // For a loop, the reader of loops reads this key, because the loop itself checks its timeout.
            "loop" => None,
            _ => self.duration(&mut data, "timeout"),
        };
        let mut reading = NodeReader {
            data,
            id: id.clone(),
            span,
            inputs,
            outputs,
        };
        let body = self.body(&mut reading, kind);
        reading.data.finish(self);
        Some(Node {
            step: id.clone(),
            id,
            kind,
            title,
            span,
            inputs: body.inputs,
            outputs: body.outputs,
            timeout,
            spec: body.spec,
        })
    }

    fn kind(&mut self, entry: &Entry) -> Option<&'static str> {
        let known = NODE_TYPES
            .iter()
            .map(|kind| (*kind, *kind))
            .collect::<Vec<_>>();
        self.choice_as("unknown-type", entry, &known, |text| {
            format!("`{text}` is not a valid type of node")
        })
    }

    /// Reads `label`. Warns if the node has a `nodeType` that differs from its type.
    fn title(&mut self, data: &mut Fields<'_>, kind: &str, id: &Name) -> Option<Name> {
        if let Some(entry) = data.get("nodeType")
            && let Some(text) = entry.value.as_str()
            && text != kind
        {
            let what = format!("`{id}` is of type {kind}, and its `nodeType` says {text}");
            let hint = "the `type` next to the id counts: make them the same";
            self.warning("type-differs", entry.value.span, what, hint);
        }
        let entry = data.get("label")?;
        let title = entry.value.as_str().map(str::trim)?;
        (!title.is_empty() && *title != **id).then(|| Name::from(title))
    }

    fn body(&mut self, node: &mut NodeReader<'_>, kind: &str) -> Body {
        match kind {
            "loop" => self.a_loop(node),
            "map" => self.map(node),
            "component" => self.component(node),
            "agent" => self.agent(node),
            "shell" => self.shell(node),
            "function" => self.function(node),
            "constant" => self.constant(node),
            "http" => self.http(node),
            "trigger" => {
                // These keys are ignored: the server and not the graph decides how a trigger fires.
                node.data
                    .allow(&["triggerType", "schedule", "cron", "config", "payload"]);
                Self::source(self, node)
            }
            "interface-input" => Self::source(self, node),
            "interface-continue" => self.through(node, "continue", NodeKind::Continue),
            "wire" => self.through(node, "value", NodeKind::Sink),
            _ => Self::sink(node),
        }
    }

    fn source(&mut self, node: &mut NodeReader<'_>) -> Body {
        let declared = node.outputs.take().or(node.inputs.take());
        let drawn = declared.is_none() && node.data.get("triggerType").is_some();
        let declared = declared.or_else(|| drawn.then(|| self.of_a_trigger(node)));
        let kind = node
            .data
            .get("triggerType")
            .and_then(|entry| entry.value.as_str());
        let declared = declared.map(|mut list| {
            let named = list.iter_mut().find(|socket| *socket.port.name == *"type");
            if let (Some(kind), Some(socket)) = (kind, named) {
                let kind = Value::text(kind);
                socket.port.default.get_or_insert(kind);
            }
            list
        });
        let whole = declared.is_none();
        let input = || self.built_in("input", PortKind::Any, &node.id, node.span);
        let list = declared.unwrap_or_else(|| vec![input()]);
        let inputs = if whole { Vec::new() } else { list.clone() };
        Body {
            spec: NodeKind::Source { whole },
            inputs: Ports::of(inputs),
            outputs: Ports::of(list),
        }
    }

    /// Returns the outputs that a trigger has in graph editors.
    fn of_a_trigger(&self, node: &NodeReader<'_>) -> Vec<Socket> {
        let ports = [
            ("timestamp", PortKind::String),
            ("type", PortKind::String),
            ("text", PortKind::String),
            ("params", PortKind::Json),
        ];
        let socket = |(name, kind)| self.built_in(name, kind, &node.id, node.span);
        ports.map(socket).to_vec()
    }

    fn sink(node: &mut NodeReader<'_>) -> Body {
        let list = node
            .inputs
            .take()
            .or(node.outputs.take())
            .unwrap_or_default();
        Body {
            spec: NodeKind::Sink,
            inputs: Ports::of(list.clone()),
            outputs: Ports::of(list),
        }
    }

    /// Reads a node that passes its inputs on as its outputs.
    fn through(&mut self, node: &mut NodeReader<'_>, name: &str, spec: NodeKind) -> Body {
        let declared = node.inputs.take().or(node.outputs.take());
        let any = || self.built_in(name, PortKind::Any, &node.id, node.span);
        let mut list = declared.unwrap_or_else(|| vec![any()]);
        if matches!(spec, NodeKind::Continue) {
            // Any value is accepted here. Later it counts as true or false: see `lower_node`.
            list.iter_mut()
                .for_each(|socket| socket.port.kind = PortKind::Any);
        }
        Body {
            spec,
            inputs: Ports::of(list.clone()),
            outputs: Ports::of(list),
        }
    }

    fn component(&mut self, node: &mut NodeReader<'_>) -> Body {
        let inputs = node.inputs.take();
        let outputs = node.outputs.take();
        let Some(graph) = self.inner(&mut node.data, &node.id, node.span) else {
            return Body {
                spec: NodeKind::Unknown,
                inputs: open(inputs),
                outputs: open(outputs),
            };
        };
        let given = |list: Option<Vec<Socket>>| list.map(Ports::of);
        let inputs = given(inputs).unwrap_or_else(|| Ports::of(graph.component_inputs()));
        let outputs = given(outputs).unwrap_or_else(|| Ports::of(graph.component_outputs()));
        Body {
            spec: NodeKind::Component(graph),
            inputs,
            outputs,
        }
    }

    // ── parts ───────────────────────────────────────────────────────────────────────────────

    /// Reads a value whose strings are templates.
    pub(super) fn rendered(&mut self, node: &source::Node) -> Text {
        let before = std::mem::take(&mut self.mentions);
        let hyphened = without_hyphens(node, &self.whole.hyphened);
        let template = self.template(hyphened.as_ref().unwrap_or(node));
        let mentions = std::mem::replace(&mut self.mentions, before);
        Text { template, mentions }
    }

    pub(super) fn duration(&mut self, fields: &mut Fields<'_>, key: &'static str) -> Option<Text> {
        let entry = fields.non_null(self, key)?;
        let before = std::mem::take(&mut self.mentions);
        let duration = self.reader.duration(entry);
        let mentions = std::mem::replace(&mut self.mentions, before);
        Some(Text {
            template: duration?.template,
            mentions,
        })
    }
}

/// Makes the ports of a side that may also have ports that are not declared.
pub(super) fn open(declared: Option<Vec<Socket>>) -> Ports {
    Ports {
        list: declared.unwrap_or_default(),
        open: true,
    }
}

/// Replaces ids with hyphens in a template by names, because graph editors write such ids unchanged.
/// All positions in the text stay the same.
fn without_hyphens(node: &source::Node, ids: &[String]) -> Option<source::Node> {
    let Kind::String(text) = &node.kind else {
        return None;
    };
    if !text.text.contains("{{") || !ids.iter().any(|id| text.text.contains(id.as_str())) {
        return None;
    }
    let mut made = text.clone();
    let mut out = String::with_capacity(text.text.len());
    let mut rest = text.text.as_str();
    while let Some((before, from)) = rest.split_once("{{") {
        let (inside, after) = from.split_once("}}")?;
        out.push_str(before);
        out.push_str("{{");
        let id = inside.trim().split_once('.').map(|(id, _)| id);
        match id.filter(|id| ids.iter().any(|known| known == id)) {
            Some(id) => out.push_str(&inside.replacen(id, &id.replace('-', "_"), 1)),
            None => out.push_str(inside),
        }
        out.push_str("}}");
        rest = after;
    }
    out.push_str(rest);
    made.text = out;
    Some(source::Node {
        span: node.span,
        kind: Kind::String(made),
    })
}

fn types() -> String {
    format!("types are {}", NODE_TYPES.join(", "))
}
