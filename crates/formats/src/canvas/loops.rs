//! The nodes `loop` and `map`: limits, conditions, inputs and outputs (docs/reference/canvas.md).
//! Every loop that was read has a maximum number of iterations, within the cap that the operator sets.

use super::Canvas;
use super::mapping::LoopContext;
use super::node::{Body, NodeReader, open};
use super::port::PortSide;
use super::tree::{Graph, LoopNode, NodeKind, PortRef, Ports, Socket, Test, Text};
use crate::fields::Fields;
use windlass_expression::{Comparison, PortKind, Template};
use windlass_model::model::Name;
use windlass_source::diagnostic::did_you_mean;
use windlass_source::source::{Entry, Kind, Span};

const TEST: &str =
    "for example continueWhile: { output: review.approved, operator: \"==\", value: false }";
/// Default maximum number of iterations of a loop.
const COUNT: i64 = 10;
/// Default number of items of a map that run at the same time.
const CONCURRENCY: u32 = 10;
impl Canvas<'_> {
    pub(super) fn a_loop(&mut self, node: &mut NodeReader<'_>) -> Body {
        let count = self.count(&mut node.data);
        let count = count.unwrap_or_else(|| Text {
            template: Template::constant(COUNT.into()),
            mentions: Vec::new(),
        });
        let delay = self.duration(&mut node.data, "delay");
        let timeout = self.timeout(&mut node.data);
        self.repeated(node, Some(count), delay, timeout, None)
    }

    pub(super) fn map(&mut self, node: &mut NodeReader<'_>) -> Body {
        let count = self.count(&mut node.data);
        let hint = "over: items, an input of this node that accepts a list";
        let over = node.data.required(self, "over", node.span, hint);
        let over = over.and_then(|entry| self.over(entry, node, hint));
        let concurrency = self.concurrency(&mut node.data);
        if let Some(entry) = node.data.get("continueWhile") {
            let what = "the items of a map run side by side: none waits for the one before it";
            let hint = "use a node of type loop, or breakWhen";
            self.error("no-condition", entry.key_span, what, hint);
        }
        let over = over.map_or_else(|| Name::from(""), Name::from);
        self.repeated(node, count, None, None, Some((over, concurrency)))
    }

    fn repeated(
        &mut self,
        node: &mut NodeReader<'_>,
        count: Option<Text>,
        delay: Option<Text>,
        timeout: Option<Text>,
        over: Option<(Name, u32)>,
    ) -> Body {
        let inputs = node.inputs.take();
        let outputs = node.outputs.take();
        let Some(mut inner) = self.inner(&mut node.data, &node.id, node.span) else {
            node.data.allow(&[
                "continueWhile",
                "breakWhen",
                "inputMappings",
                "outputMappings",
            ]);
            return Body {
                spec: NodeKind::Unknown,
                inputs: open(inputs),
                outputs: open(outputs),
            };
        };
        let continue_while = match over {
            Some(_) => None,
            None => self.continue_while(node, &inner),
        };
        let break_when = node.data.non_null(self, "breakWhen");
        let break_when = break_when.and_then(|entry| self.test(entry, &inner));
        for test in continue_while.iter().chain(&break_when) {
            inner.require_of_agent(&test.at);
        }
        let around = LoopContext {
            id: node.id.clone(),
            span: node.span,
            map: over.is_some(),
            inner: &inner,
        };
        let inputs = Ports::of(inputs.unwrap_or_default());
        let mappings = self.input_mappings(&mut node.data, &around, &inputs);
        let (output_mappings, outputs) = self.output_mappings(&mut node.data, &around, outputs);
        Body {
            spec: NodeKind::Loop(Box::new(LoopNode {
                inner,
                over,
                count,
                continue_while,
                break_when,
                delay,
                timeout,
                mappings,
                output_mappings,
            })),
            inputs,
            outputs,
        }
    }

    // ── limits ──────────────────────────────────────────────────────────────────────────────

    fn count(&mut self, data: &mut Fields<'_>) -> Option<Text> {
        let entry = data.non_null(self, "maxIterations")?;
        let value = &entry.value;
        let hint = "how many iterations at most: a whole number from 1, or a template";
        match value.kind {
            Kind::Int(count) => {
                let cap = self.whole.max_count;
                self.within_cap(count, cap, value.span);
                Some(self.rendered(value))
            }
            Kind::String(_) => {
                let text = self.rendered(value);
                if text.template.as_constant().is_some() {
                    self.wrong_type(value, "`maxIterations`", "a whole number", hint);
                }
                Some(text)
            }
            _ => {
                self.wrong_type(value, "`maxIterations`", "a whole number", hint);
                None
            }
        }
    }

    fn timeout(&mut self, data: &mut Fields<'_>) -> Option<Text> {
        let text = self.duration(data, "timeout")?;
        let entry = data.get("timeout")?;
        let known = text.template.as_constant().and_then(|known| known.as_str());
        let known = known.and_then(|known| windlass_value::time::parse_duration(known).ok());
        if let Some(known) = known {
            let cap = self.whole.max_timeout;
            self.within_time(known, cap, entry.value.span);
        }
        Some(text)
    }

    fn over<'n>(&mut self, entry: &'n Entry, node: &NodeReader<'_>, hint: &str) -> Option<&'n str> {
        let name = self.text(entry, hint)?;
        let inputs: &[Socket] = node.inputs.as_deref().unwrap_or_default();
        let span = entry.value.span;
        let Some(socket) = inputs.iter().find(|socket| *socket.port.name == *name) else {
            let what = format!("`{}` has no input `{name}`", node.id);
            let near = did_you_mean(name, inputs.iter().map(|socket| &*socket.port.name));
            let hint = near.unwrap_or_else(|| hint.to_owned());
            self.error("unknown-port", span, what, hint);
            return None;
        };
        if !matches!(
            socket.port.kind,
            PortKind::Json | PortKind::List | PortKind::Any
        ) {
            let kind = socket.port.kind.as_str();
            let what = format!("{} is a {kind}: it never is a list", socket.port.shown);
            self.error("type-mismatch", span, what, "set its type to json");
        }
        Some(name)
    }

    fn concurrency(&mut self, data: &mut Fields<'_>) -> u32 {
        let Some(entry) = data.non_null(self, "concurrency") else {
            return CONCURRENCY;
        };
        let given = match entry.value.kind {
            Kind::Int(given) => u32::try_from(given).ok().filter(|given| *given > 0),
            _ => None,
        };
        given.unwrap_or_else(|| {
            let hint = "how many items at a time: for example concurrency: 5";
            let value = &entry.value;
            match value.kind {
                Kind::Int(given) => {
                    let what = format!("{given} items at a time are none, or too many");
                    self.error("out-of-range", value.span, what, hint);
                }
                _ => {
                    let what = "`concurrency`";
                    self.wrong_type(value, what, "a whole number", hint);
                }
            }
            CONCURRENCY
        })
    }

    // ── conditions ──────────────────────────────────────────────────────────────────────────

    fn continue_while(&mut self, node: &mut NodeReader<'_>, inner: &Graph) -> Option<Test> {
        let entry = match node.data.get("breakWhen") {
            // With `breakWhen`, which is a condition, too, `continueWhile` is not required.
            Some(_) => node.data.non_null(self, "continueWhile"),
            None => node.data.required(self, "continueWhile", node.span, TEST),
        };
        self.test(entry?, inner)
    }

    /// Reads `{output: node.port, operator, value}`.
    fn test(&mut self, entry: &Entry, inner: &Graph) -> Option<Test> {
        let what = format!("`{}`", entry.key);
        let mut fields = self.fields(&entry.value, &what, TEST)?;
        let output = fields.required(self, "output", entry.key_span, TEST);
        let operator = fields.required(self, "operator", entry.key_span, TEST);
        let value = fields.get("value");
        if value.is_none() {
            fields.required(self, "value", entry.key_span, TEST);
        }
        fields.finish(self);
        let comparison = operator.and_then(|operator| self.comparison(operator));
        let (output, value) = (output?, value?);
        let text = self.text(output, TEST)?;
        let at = self.place(text, output.value.span, inner)?;
        let comparison = comparison?;
        let kind = inner
            .nodes
            .get(at.node)
            .map_or(PortKind::Any, |node| node.outputs.kind(&at.port));
        if comparison.orders() && kind == PortKind::Boolean {
            let what = format!("`{text}` is true or false, which have no order");
            let hint = "compare it with == or !=";
            self.error("type-mismatch", entry.value.span, what, hint);
            return None;
        }
        let given = value.value.to_value();
        let converted = match given.is_null() {
            true => Some(given.clone()),
            false => kind.convert(&given),
        };
        let Some(converted) = converted else {
            let what = format!(
                "`{text}` is a {}, and is compared with {}",
                kind.as_str(),
                given.to_json()
            );
            let hint = "compare it with a value of its type";
            self.error("type-mismatch", value.value.span, what, hint);
            return None;
        };
        Some(Test {
            at,
            comparison,
            value: converted,
            text: format!("{text} {} {}", comparison.as_str(), given.to_json()),
            span: output.value.span,
        })
    }

    fn comparison(&mut self, entry: &Entry) -> Option<Comparison> {
        let known = Comparison::ALL.map(|one| (one.as_str(), one));
        self.choice(entry, &known, |text| format!("`{text}` compares nothing"))
    }

    /// Finds the output that `node.port` names.
    fn place(&mut self, text: &str, span: Span, inner: &Graph) -> Option<PortRef> {
        let named = inner.nodes.iter().enumerate().find_map(|(index, node)| {
            let port = text.strip_prefix(&*node.id)?.strip_prefix('.')?;
            Some((index, port))
        });
        match (named, text.split_once('.')) {
            (Some((node, port)), _) => {
                let (port, _) =
                    self.known_port(inner, node, PortSide::Output, (Name::from(port), span))?;
                Some(PortRef { node, port })
            }
            (None, Some((id, _))) => {
                self.unknown_node(inner, id, span);
                None
            }
            (None, None) => {
                let what = format!("`{text}` does not name an output of an inner node");
                self.error(
                    "unknown-port",
                    span,
                    what,
                    "node.output, such as review.approved",
                );
                None
            }
        }
    }
}
