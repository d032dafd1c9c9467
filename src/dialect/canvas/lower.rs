//! From the tree to `hir`: nodes become steps of a DAG, and values wires from port to port.

use super::effect::{EXIT_CODE, OPENAI, SESSION};
use super::scope::{Scope, object};
use super::tree::{Agent, Graph, Node, Ports, Shell, Socket, Text, What};
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::expression::{Condition, Port, PortKind, Template, Value, Wire};
use crate::hir::{After, Block, Call, DagStep, Step, StepKind};
use crate::model::{Input, InputKind, Link, LinkKind, Name, Status};
use std::collections::{BTreeMap, BTreeSet, HashMap};

pub(super) struct Lowered {
    pub steps: Vec<DagStep>,
    pub inputs: Vec<Input>,
    pub links: Vec<Link>,
}

pub(super) fn lower(graph: &Graph, diagnostics: &mut Diagnostics) -> Lowered {
    let mut lowerer = Lowerer {
        diagnostics,
        links: Vec::new(),
        inputs: Vec::new(),
    };
    let around = Around {
        container: None,
        looped: None,
        given: Given::Run,
        reads: BTreeSet::new(),
        leave: None,
    };
    let steps = lowerer.graph(graph, &around);
    Lowered {
        steps,
        inputs: lowerer.inputs,
        links: lowerer.links,
    }
}

pub(super) struct Lowerer<'a> {
    pub diagnostics: &'a mut Diagnostics,
    pub links: Vec<Link>,
    /// The run's inputs.
    inputs: Vec<Input>,
}

/// What a graph is inside of.
pub(super) struct Around<'g> {
    /// The node that it is the inside of.
    pub container: Option<&'g Name>,
    /// The innermost loop around its nodes.
    pub looped: Option<&'g Name>,
    pub given: Given,
    /// The outputs of its nodes that are read from outside.
    pub reads: BTreeSet<(usize, Name)>,
    /// After this node, whether the loop is left.
    pub leave: Option<(usize, Condition)>,
}

/// Where inputs get their values that no edge gives one.
pub(super) enum Given {
    /// From the run's inputs, by name.
    Run,
    /// From a component's inputs, by name.
    Component(BTreeMap<Name, Template>),
    /// From mappings; an entrance also from the loop's inputs, by name.
    Loop(HashMap<(usize, Name), Mapped>, BTreeMap<Name, Template>),
}

/// What is mapped to an input.
pub(super) struct Mapped {
    pub value: Template,
    /// Whether it has a value in the first and in later iterations.
    pub first: bool,
    pub later: bool,
}

/// What a node becomes.
pub(super) struct Made {
    pub kind: StepKind,
    pub output: Option<Template>,
}

impl Lowerer<'_> {
    pub(super) fn graph(&mut self, graph: &Graph, around: &Around<'_>) -> Vec<DagStep> {
        let mut steps = Vec::with_capacity(graph.nodes.len());
        for (index, node) in graph.nodes.iter().enumerate() {
            let mut own = Vec::with_capacity(node.inputs.list.len());
            for socket in &node.inputs.list {
                let wire = self.feed(graph, index, socket, around);
                let port = Wire::Port(wire, socket.port.clone());
                own.push((socket.port.name.clone(), Template::wire(port)));
            }
            let scope = Scope {
                graph,
                node: index,
                own: &own,
                looped: around.looped,
                session: None,
            };
            let made = self.node(node, &scope, around);
            let timeout = node.timeout.as_ref();
            let timeout = timeout.map(|text| scope.text(text, self.diagnostics));
            let leave = around.leave.as_ref().filter(|(at, _)| *at == index);
            let step = Step {
                name: node.step.clone(),
                label: Name::from(node.kind),
                title: node.title.clone(),
                anonymous: false,
                kind: made.kind,
                output: made.output,
                retry: None,
                timeout,
                break_when: leave.map(|(_, when)| when.clone()),
                continue_when: None,
                span: node.span,
            };
            let after = predecessors(graph, index);
            steps.push(DagStep { step, after });
        }
        steps
    }

    // ── in ──────────────────────────────────────────────────────────────────────────────────

    /// Where an input gets its value.
    fn feed(
        &mut self,
        graph: &Graph,
        index: usize,
        socket: &Socket,
        around: &Around<'_>,
    ) -> Template {
        let Some(node) = graph.nodes.get(index) else {
            return Template::constant(Value::Null);
        };
        let input = &socket.port.name;
        for edge in graph.into(index) {
            if let (Some((output, to)), Some(from)) = (&edge.ports, graph.nodes.get(edge.from))
                && to == input
            {
                self.link(
                    Some(&from.step),
                    output,
                    &node.step,
                    input,
                    LinkKind::Edge,
                    None,
                );
                return Template::wire(Wire::Outputs(from.step.clone())).part(output);
            }
        }
        let required = socket.port.required && socket.port.default.is_none();
        let nothing = Template::constant(Value::Null);
        match &around.given {
            Given::Run => {
                self.run_input(socket);
                self.link(None, input, &node.step, input, LinkKind::Outer, None);
                Template::wire(Wire::Input(input.clone()))
            }
            Given::Component(inputs) => match inputs.get(input) {
                Some(value) => {
                    self.link(
                        around.container,
                        input,
                        &node.step,
                        input,
                        LinkKind::Outer,
                        None,
                    );
                    value.clone()
                }
                None => {
                    if required {
                        let container = around.container.map_or("", |name| name);
                        let hint = format!("connect it, or give `{container}` an input `{input}`");
                        self.no_value(socket, "nothing gives it one", hint);
                    }
                    nothing
                }
            },
            Given::Loop(mapped, inputs) => {
                if let Some(mapped) = mapped.get(&(index, input.clone())) {
                    let missing = match (mapped.first, mapped.later) {
                        (true, true) => None,
                        (true, false) => Some("has none after the first iteration"),
                        (false, _) => Some("has none in the first iteration"),
                    };
                    if let Some(missing) = missing.filter(|_| required) {
                        let hint = "let a mapping hold in `all` iterations, or give it a default";
                        self.no_value(socket, missing, hint.to_owned());
                    }
                    return mapped.value.clone();
                }
                let entrance = matches!(node.what, What::Source { .. });
                if let Some(value) = inputs.get(input).filter(|_| entrance) {
                    self.link(
                        around.container,
                        input,
                        &node.step,
                        input,
                        LinkKind::Outer,
                        None,
                    );
                    return value.clone();
                }
                if required {
                    let hint = "connect it, or map something to it under inputMappings";
                    self.no_value(socket, "nothing gives it one", hint.to_owned());
                }
                nothing
            }
        }
    }

    fn no_value(&mut self, socket: &Socket, why: &str, hint: String) {
        let what = format!("{} needs a value, and {why}", socket.port.shown);
        self.diagnostics
            .push(Diagnostic::error("missing-input", socket.span, what).hint(hint));
    }

    /// The run must be given this, unless it may be null.
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
            PortKind::Json | PortKind::Any => InputKind::Any,
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
                span: socket.span,
            });
            return;
        };
        // Several nodes take it: each converts it for itself.
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

    // ── nodes ───────────────────────────────────────────────────────────────────────────────

    fn node(&mut self, node: &Node, scope: &Scope<'_>, around: &Around<'_>) -> Made {
        match &node.what {
            What::Source { whole: true } => entrance(around),
            What::Source { whole: false } | What::Sink => {
                compose(object(scope.own.iter().cloned()))
            }
            What::Constant(outputs) => compose(Template::constant(outputs.clone())),
            What::Agent(agent) => self.agent(node, agent, scope),
            What::Shell(shell) => self.shell(node, shell, scope, around),
            What::Function { language, code } => {
                let inputs = [
                    (Name::from("code"), Template::constant(code.as_str().into())),
                    (Name::from("globals"), {
                        let inputs = object(scope.own.iter().cloned());
                        object([(Name::from("inputs"), inputs)].into_iter())
                    }),
                ];
                let kind = call(language, scope, inputs.into_iter());
                let ports = node.outputs.list.iter().map(|socket| socket.port.clone());
                let ports = Wire::Ports(result().part("result"), ports.collect());
                Made {
                    kind,
                    output: Some(Template::wire(ports)),
                }
            }
            What::Http(inputs) => {
                let inputs = self.texts(inputs, scope);
                Made {
                    kind: call("http", scope, inputs.into_iter()),
                    output: Some(outputs(&node.outputs, &result().part("body"))),
                }
            }
            What::Component(graph) => self.component(node, graph, scope, around),
            What::Loop(repeated) => self.repeated(node, repeated, scope),
            What::Unknown => Made {
                kind: StepKind::Nothing,
                output: None,
            },
        }
    }

    fn texts(
        &mut self,
        texts: &[(&'static str, Text)],
        scope: &Scope<'_>,
    ) -> Vec<(Name, Template)> {
        let lower =
            |(name, text): &(&str, Text)| (Name::from(*name), scope.text(text, self.diagnostics));
        texts.iter().map(lower).collect()
    }

    fn agent(&mut self, node: &Node, agent: &Agent, scope: &Scope<'_>) -> Made {
        // What the same node ended its last iteration with.
        let before = agent.session.then(|| {
            let before = Wire::Previous(node.step.clone(), None);
            Template::wire(before).part(SESSION)
        });
        let scope = Scope {
            session: before.clone(),
            ..*scope
        };
        let prompt = scope.text(&agent.prompt, self.diagnostics);
        let mut inputs = vec![(Name::from("prompt"), prompt)];
        let executor = if agent.runner == OPENAI {
            inputs.extend(self.texts(&agent.options, &scope));
            "ai"
        } else {
            let runner = Template::constant(agent.runner.as_str().into());
            inputs.insert(0, (Name::from("runnerType"), runner));
            inputs.extend(before.clone().map(|before| (Name::from(SESSION), before)));
            "runner"
        };
        let session = |socket: &&Socket| !(agent.session && *socket.port.name == *SESSION);
        let ports = node.outputs.list.iter().filter(session);
        let ports: Vec<Port> = ports.map(|socket| socket.port.clone()).collect();
        let answer = Wire::Answer(result().part("content"), ports.into(), before);
        Made {
            kind: call(executor, &scope, inputs.into_iter()),
            output: Some(Template::wire(answer)),
        }
    }

    fn shell(
        &mut self,
        node: &Node,
        shell: &Shell,
        scope: &Scope<'_>,
        around: &Around<'_>,
    ) -> Made {
        self.lint_script(node, shell);
        let env = scope
            .own
            .iter()
            .map(|(name, value)| (variable(name), value.clone()));
        let mut inputs = vec![
            (
                Name::from("run"),
                scope.text(&shell.script, self.diagnostics),
            ),
            (Name::from("env"), object(env)),
        ];
        if let Some(cwd) = &shell.cwd {
            inputs.push((Name::from("cwd"), scope.text(cwd, self.diagnostics)));
        }
        if !shell
            .fails
            .unwrap_or_else(|| !exit_code_is_read(scope, around))
        {
            inputs.push((Name::from("check"), Template::constant(false.into())));
        }
        Made {
            kind: call("shell", scope, inputs.into_iter()),
            output: Some(outputs(&node.outputs, &result().part("body"))),
        }
    }

    /// Data in a script's text could be read as code.
    fn lint_script(&mut self, node: &Node, shell: &Shell) {
        for mention in &shell.script.mentions {
            let Some(name) = crate::dialect::reader::name_of(&mention.reference) else {
                continue;
            };
            if name == super::scope::ITERATION {
                continue;
            }
            let input = node.inputs.find(name).is_some();
            let what = format!("`{name}` is rendered into the text of a script");
            let variable = variable(name);
            let hint = if input {
                format!("a value could be read as code: write \"${variable}\" instead")
            } else {
                format!(
                    "a value could be read as code: give it an input, and write \"${variable}\""
                )
            };
            let warning = Diagnostic::warning("data-in-command", mention.span, what).hint(hint);
            self.diagnostics.push(warning);
        }
    }

    fn component(
        &mut self,
        node: &Node,
        graph: &Graph,
        scope: &Scope<'_>,
        around: &Around<'_>,
    ) -> Made {
        let mut reads = BTreeSet::new();
        let mut members = Vec::new();
        for socket in &node.outputs.list {
            let name = &socket.port.name;
            match graph.exit(name) {
                Some((index, inner)) => {
                    reads.insert((index, name.clone()));
                    self.link(
                        Some(&inner.step),
                        name,
                        &node.step,
                        name,
                        LinkKind::Result,
                        None,
                    );
                    let value = Template::wire(Wire::Outputs(inner.step.clone())).part(name);
                    let port = Wire::Port(value, socket.port.clone());
                    members.push((name.clone(), Template::wire(port)));
                }
                None => {
                    let what = format!("no inner node gives {}", socket.port.shown);
                    let exits = graph.exits();
                    let names: Vec<&str> = exits.iter().map(|exit| &*exit.port.name).collect();
                    let hint = match names.as_slice() {
                        [] => String::from("give the inner workflow an interface-output"),
                        names => format!("the inner workflow gives: {}", names.join(", ")),
                    };
                    let error = Diagnostic::error("unknown-port", socket.span, what);
                    self.diagnostics.push(error.hint(hint));
                }
            }
        }
        for socket in &node.inputs.list {
            let name = &socket.port.name;
            let taken = graph
                .entrances()
                .iter()
                .any(|entrance| entrance.port.name == *name);
            let whole = |node: &Node| matches!(node.what, What::Source { whole: true });
            if !taken && !graph.nodes.iter().any(whole) {
                let what = format!("no inner node takes {}", socket.port.shown);
                let hint = "give an interface-input of the inner workflow an output of this name";
                let warning = Diagnostic::warning("unused-input", socket.span, what);
                self.diagnostics.push(warning.hint(hint));
            }
        }
        let inner = Around {
            container: Some(&node.step),
            looped: around.looped,
            given: Given::Component(scope.own.iter().cloned().collect()),
            reads,
            leave: None,
        };
        let steps = self.graph(graph, &inner);
        Made {
            kind: StepKind::Block(Block::Dag(steps)),
            output: Some(object(members.into_iter())),
        }
    }
}

/// The steps that a node waits for.
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

fn compose(value: Template) -> Made {
    Made {
        kind: StepKind::Compose(value),
        output: None,
    }
}

/// All that is given, as one output.
fn entrance(around: &Around<'_>) -> Made {
    let all = match &around.given {
        Given::Run => Template::wire(Wire::Root(Name::from("inputs"))),
        Given::Component(inputs) | Given::Loop(_, inputs) => {
            let given = inputs
                .iter()
                .map(|(name, value)| (name.clone(), value.clone()));
            object(given)
        }
    };
    compose(object([(Name::from("input"), all)].into_iter()))
}

/// A call whose inputs are evaluated when those of its node were checked.
fn call(
    executor: &str,
    scope: &Scope<'_>,
    inputs: impl Iterator<Item = (Name, Template)>,
) -> StepKind {
    let checks = scope.own.iter().map(|(_, value)| value.clone()).collect();
    StepKind::Call(Call {
        executor: Name::from(executor),
        inputs: Template::wire(Wire::Checked(checks, object(inputs))),
        attempt_timeout: None,
        then: Vec::new(),
    })
}

/// What a node's executor gave.
pub(super) fn result() -> Template {
    Template::wire(Wire::Root(Name::from("result")))
}

/// The outputs of a node whose executor gives a map: what is extracted from its body, what it
/// gives by that name, and all others from the body.
fn outputs(ports: &Ports, body: &Template) -> Template {
    let given = [
        "stdout",
        "stderr",
        EXIT_CODE,
        "statusCode",
        "headers",
        "body",
    ];
    let rest: Vec<Port> = ports
        .list
        .iter()
        .filter(|socket| socket.extract.is_none() && !given.contains(&&*socket.port.name))
        .map(|socket| socket.port.clone())
        .collect();
    let from_body = Template::wire(Wire::Ports(body.clone(), rest.clone().into()));
    let members = ports.list.iter().map(|socket| {
        let name = &socket.port.name;
        let value = match &socket.extract {
            Some(how) => Template::wire(Wire::Extract(body.clone(), how.clone())),
            None if rest.contains(&socket.port) => from_body.clone().part(name),
            None => result().part(name),
        };
        let port = Wire::Port(value, socket.port.clone());
        (name.clone(), Template::wire(port))
    });
    object(members)
}

/// The variable of the environment that an input is in.
fn variable(input: &str) -> Name {
    let letter = |c: char| match c {
        c if c.is_ascii_alphanumeric() => c.to_ascii_uppercase(),
        _ => '_',
    };
    let name: String = input.chars().map(letter).collect();
    Name::from(format!("INPUT_{name}"))
}

/// Whether anything reads the exit code of a node, and so takes care of a command that failed.
fn exit_code_is_read(scope: &Scope<'_>, around: &Around<'_>) -> bool {
    let Some(node) = scope.graph.nodes.get(scope.node) else {
        return false;
    };
    let by_edge = scope.graph.edges.iter().any(|edge| {
        let output = edge.ports.as_ref().map(|(output, _)| &**output);
        edge.from == scope.node && output == Some(EXIT_CODE)
    });
    let outside = around.reads.contains(&(scope.node, Name::from(EXIT_CODE)));
    by_edge
        || outside
        || scope
            .graph
            .nodes
            .iter()
            .any(|other| other.reads(&node.id, EXIT_CODE))
}

impl Node {
    /// Whether one of its texts reads this output of another node.
    fn reads(&self, id: &str, output: &str) -> bool {
        let reads = |text: &Text| {
            let members = text.template.members_of(id);
            members.iter().any(|member| member == output)
        };
        match &self.what {
            What::Agent(agent) => {
                reads(&agent.prompt) || agent.options.iter().any(|(_, text)| reads(text))
            }
            What::Shell(shell) => reads(&shell.script) || shell.cwd.iter().any(reads),
            What::Http(inputs) => inputs.iter().any(|(_, text)| reads(text)),
            What::Loop(node) => [&node.count, &node.delay, &node.timeout]
                .into_iter()
                .flatten()
                .any(reads),
            What::Source { .. }
            | What::Sink
            | What::Constant(_)
            | What::Function { .. }
            | What::Component(_)
            | What::Unknown => false,
        }
    }
}

impl Graph {
    /// What a component of this graph takes when it does not say: what its entrances take, and
    /// what nothing inside gives a value.
    pub(super) fn entrances(&self) -> Vec<Socket> {
        let mut found: Vec<Socket> = Vec::new();
        for (index, node) in self.nodes.iter().enumerate() {
            for socket in &node.inputs.list {
                let name = &socket.port.name;
                let known = found.iter().any(|other| other.port.name == *name);
                if !known && !self.is_fed(index, name) {
                    found.push(socket.clone());
                }
            }
        }
        found
    }

    /// What a component of this graph gives when it does not say.
    pub(super) fn exits(&self) -> Vec<Socket> {
        let sink = |node: &&Node| matches!(node.what, What::Sink);
        let sinks = self.nodes.iter().filter(sink);
        let mut sockets: Vec<&Socket> = sinks.flat_map(|node| &node.outputs.list).collect();
        if sockets.is_empty() {
            sockets = self
                .nodes
                .iter()
                .flat_map(|node| &node.outputs.list)
                .collect();
            sockets.retain(|socket| self.exit(&socket.port.name).is_some());
        }
        sockets.into_iter().cloned().collect()
    }

    /// The node that gives an output of a component: an interface-output, or the only one that
    /// has an output of this name.
    fn exit(&self, name: &str) -> Option<(usize, &Node)> {
        let has = |(_, node): &(usize, &Node)| node.outputs.find(name).is_some();
        let nodes = || self.nodes.iter().enumerate().filter(has);
        let sink = nodes().find(|(_, node)| matches!(node.what, What::Sink));
        sink.or_else(|| {
            let mut all = nodes();
            all.next().filter(|_| all.next().is_none())
        })
    }
}
