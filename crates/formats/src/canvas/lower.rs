//! Lowers the tree to `hir`: nodes become steps of a DAG, and edges become bindings from port to port.

use super::scope::{Scope, read_codes};
use super::tree::{Graph, NodeKind, Socket};
use crate::builder::step;
use crate::reader::Reader;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use windlass_expression::{Binding, Condition, Port, PortKind, Template, Value};
use windlass_model::hir::{After, DagStep, Step, StepKind};
use windlass_model::model::{Input, InputKind, Link, LinkKind, Name, Status};
use windlass_source::diagnostic::Diagnostic;

pub(super) struct Lowered {
    pub steps: Vec<DagStep>,
    pub inputs: Vec<Input>,
    pub links: Vec<Link>,
}

pub(super) fn lower(graph: &Graph, reader: &mut Reader<'_>) -> Lowered {
    let mut lowerer = Lowerer {
        reader,
        links: Vec::new(),
        inputs: Vec::new(),
    };
    let around = GraphContext {
        container: None,
        looped: None,
        given: InputSource::Run,
        reads: BTreeSet::new(),
        break_when: None,
    };
    let steps = lowerer.graph(graph, &around);
    Lowered {
        steps,
        inputs: lowerer.inputs,
        links: lowerer.links,
    }
}

pub(super) struct Lowerer<'a, 'd> {
    pub reader: &'a mut Reader<'d>,
    pub links: Vec<Link>,
    /// The inputs of the run.
    inputs: Vec<Input>,
}

/// What is around a graph that is being lowered.
pub(super) struct GraphContext<'g> {
    /// The node whose inner workflow the graph is.
    pub container: Option<&'g Name>,
    /// The innermost loop that encloses the graph.
    pub looped: Option<&'g Name>,
    pub given: InputSource,
    /// The outputs of the graph's nodes that are read from outside of the graph.
    pub reads: BTreeSet<(usize, Name)>,
    /// The node after which `breakWhen` is checked, and this condition.
    pub break_when: Option<(usize, Condition)>,
}

/// Where the value of an input is from if no edge leads to the input.
pub(super) enum InputSource {
    /// The run's inputs, by name.
    Run,
    /// A component's inputs, by name.
    Component(BTreeMap<Name, Template>),
    /// The loop's mappings, by node and input. The second field has the loop's inputs by name, for source nodes.
    Loop(
        HashMap<(usize, Name), MappedInput>,
        BTreeMap<Name, Template>,
    ),
}

/// The value that is mapped to an input.
pub(super) struct MappedInput {
    pub value: Template,
    /// Whether the input has a value in the first iteration.
    pub first: bool,
    /// Whether the input has a value in later iterations.
    pub later: bool,
}

/// The result of lowering a node.
pub(super) struct LoweredNode {
    pub kind: StepKind,
    pub output: Option<Template>,
}

impl Lowerer<'_, '_> {
    pub(super) fn graph(&mut self, graph: &Graph, around: &GraphContext<'_>) -> Vec<DagStep> {
        let mut steps = Vec::with_capacity(graph.nodes.len());
        let codes = read_codes(graph);
        for (index, node) in graph.nodes.iter().enumerate() {
            let mut own = Vec::with_capacity(node.inputs.list.len());
            for socket in &node.inputs.list {
                let binding = self.feed(graph, index, socket, around);
                let port = Binding::Port(binding, socket.port.clone());
                own.push((socket.port.name.clone(), Template::binding(port)));
            }
            let scope = Scope {
                graph,
                node: index,
                own: &own,
                looped: around.looped,
                codes: &codes,
                session: None,
            };
            let made = self.node(node, &scope, around);
            let timeout = node.timeout.as_ref();
            let timeout = timeout.map(|text| scope.text(text, self.reader.diagnostics));
            let break_when = around.break_when.as_ref().filter(|(at, _)| *at == index);
            let step = Step {
                title: node.title.clone(),
                output: made.output,
                timeout,
                break_when: break_when.map(|(_, when)| when.clone()),
                ..step(node.step.clone(), node.kind, made.kind, node.span)
            };
            let after = predecessors(graph, index);
            steps.push(DagStep { step, after });
        }
        steps
    }

    // ── in ──────────────────────────────────────────────────────────────────────────────────

    /// Returns the value of an input: that of its edge, or, without an edge, that of the input source.
    fn feed(
        &mut self,
        graph: &Graph,
        index: usize,
        socket: &Socket,
        around: &GraphContext<'_>,
    ) -> Template {
        let Some(node) = graph.nodes.get(index) else {
            return Template::constant(Value::Null);
        };
        let input = &socket.port.name;
        for edge in graph.into(index) {
            if let (Some((output, to)), Some(from)) = (&edge.ports, graph.nodes.get(edge.from))
                && to == input
            {
                let kind = LinkKind::Edge;
                self.link(Some(&from.step), output, &node.step, input, kind, None);
                return Template::binding(Binding::Outputs(from.step.clone())).part(output);
            }
        }
        let required = socket.port.required && socket.port.default.is_none();
        let nothing = Template::constant(Value::Null);
        match &around.given {
            InputSource::Run => {
                self.run_input(socket);
                self.outer_link(None, input, &node.step);
                Template::binding(Binding::Input(input.clone()))
            }
            InputSource::Component(inputs) => match inputs.get(input) {
                Some(value) => {
                    self.outer_link(around.container, input, &node.step);
                    value.clone()
                }
                None => {
                    if required {
                        let container = around.container.map_or("", |name| name);
                        let hint =
                            format!("connect it, or add an input `{input}` to `{container}`");
                        self.no_value(socket, "nothing is connected to it", hint);
                    }
                    nothing
                }
            },
            InputSource::Loop(mapped, inputs) => {
                if let Some(mapped) = mapped.get(&(index, input.clone())) {
                    let missing = match (mapped.first, mapped.later) {
                        (true, true) => None,
                        (true, false) => Some("has none after the first iteration"),
                        (false, _) => Some("has none in the first iteration"),
                    };
                    if let Some(missing) = missing.filter(|_| required) {
                        let hint =
                            "use a mapping that applies in `all` iterations, or set a default";
                        self.no_value(socket, missing, hint.to_owned());
                    }
                    return mapped.value.clone();
                }
                let is_source = matches!(node.spec, NodeKind::Source { .. });
                if let Some(value) = inputs.get(input).filter(|_| is_source) {
                    self.outer_link(around.container, input, &node.step);
                    return value.clone();
                }
                if required {
                    let hint = "connect it, or map something to it under inputMappings";
                    self.no_value(socket, "nothing is connected to it", hint.to_owned());
                }
                nothing
            }
        }
    }

    fn no_value(&mut self, socket: &Socket, why: &str, hint: String) {
        let what = format!("{} needs a value, and {why}", socket.port.shown);
        self.reader
            .diagnostics
            .push(Diagnostic::error("missing-input", socket.span, what).hint(hint));
    }

    /// Adds an input of the run. It is required, unless it has a default or may be null.
    fn run_input(&mut self, socket: &Socket) {
        let Port {
            name,
            kind,
            required,
            default,
            ..
        } = &socket.port;
        let kind = match kind {
            PortKind::String => InputKind::String,
            PortKind::Number => InputKind::Number,
            PortKind::Boolean => InputKind::Boolean,
            PortKind::Json | PortKind::List | PortKind::Any => InputKind::Any,
        };
        let default = match (default, required) {
            (Some(default), _) => Some(default.clone()),
            (None, true) => None,
            (None, false) => Some(Value::Null),
        };
        let known = self.inputs.iter_mut().find(|input| input.name == *name);
        let Some(known) = known else {
            self.inputs.push(Input {
                name: name.clone(),
                kind,
                default,
                description: None,
                span: socket.span,
            });
            return;
        };
        // Several nodes read this input with different types, so each node converts the value itself.
        if known.kind != kind {
            known.kind = InputKind::Any;
        }
        known.default = match (known.default.take(), default) {
            (Some(Value::Null), other) => other,
            (one, Some(Value::Null)) => one,
            (Some(one), Some(_)) => Some(one),
            _ => None,
        };
    }

    /// Records that an input has the value of the enclosing node's input of the same name.
    fn outer_link(&mut self, around: Option<&Name>, input: &Name, to: &Name) {
        self.link(around, input, to, input, LinkKind::Outer, None);
    }

    pub(super) fn link(
        &mut self,
        from: Option<&Name>,
        output: &Name,
        to: &Name,
        input: &Name,
        kind: LinkKind,
        when: Option<&str>,
    ) {
        self.links.push(Link {
            from: from.cloned(),
            output: output.clone(),
            to: to.clone(),
            input: input.clone(),
            kind,
            when: when.map(Name::from),
        });
    }
}

/// Returns the steps that must end before a node starts.
fn predecessors(graph: &Graph, index: usize) -> Vec<After> {
    let mut after: Vec<After> = Vec::new();
    for edge in graph.into(index) {
        let Some(from) = graph.nodes.get(edge.from) else {
            continue;
        };
        if !after.iter().any(|after| after.name == from.step) {
            after.push(After {
                name: from.step.clone(),
                statuses: vec![Status::Succeeded],
                span: edge.span,
            });
        }
    }
    after
}
