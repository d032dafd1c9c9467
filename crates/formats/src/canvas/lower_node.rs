//! Lowers one node to `hir`.
//! It becomes a call, a value, or the block of an inner graph. The inputs of a call are checked, and its outputs are
//! converted.

use super::effect::{EXIT_CODE, OPENAI, SESSION, SESSION_ID};
use super::lower::{GraphContext, InputSource, LoweredNode, Lowerer};
use super::scope::{ITERATION, Scope, identifier, object};
use super::tree::{Agent, Graph, Node, NodeKind, Ports, Shell, Socket, Text};
use crate::builder::{self, expression};
use crate::reader::name_of;
use std::collections::BTreeSet;
use std::sync::Arc;
use windlass_expression::{Binding, Extract, Port, PortKind, Template, Value};
use windlass_model::hir::{Block, StepKind};
use windlass_model::model::{LinkKind, Name};
use windlass_source::diagnostic::Diagnostic;

/// Whether a value makes a loop continue: the text `true` in any case, or another value that counts as true.
const CONTINUES: &str =
    "value.lower().strip() == 'true' if value is string else value and true or false";

impl Lowerer<'_, '_> {
    pub(super) fn node(
        &mut self,
        node: &Node,
        scope: &Scope<'_>,
        around: &GraphContext<'_>,
    ) -> LoweredNode {
        match &node.spec {
            NodeKind::Source { whole: true } => compose_inputs(around),
            NodeKind::Source { whole: false } | NodeKind::Sink => {
                compose(object(scope.own.iter().cloned()))
            }
            NodeKind::Continue => compose(object(scope.own.iter().map(|(name, value)| {
                let value = [(Name::from("value"), value.clone())];
                let test = expression(self.reader, CONTINUES);
                let test = Binding::Scoped(value.into(), test);
                (name.clone(), Template::binding(test))
            }))),
            NodeKind::Constant(outputs) => compose(Template::constant(outputs.clone())),
            NodeKind::Agent(agent) => self.agent(node, agent, scope),
            NodeKind::Shell(shell) => self.shell(node, shell, scope, around),
            NodeKind::Function { language, code } => {
                let inputs = [
                    (Name::from("code"), Template::constant(code.as_str().into())),
                    (Name::from("globals"), {
                        let inputs = object(scope.own.iter().cloned());
                        object([(Name::from("inputs"), inputs)].into_iter())
                    }),
                ];
                let kind = call(language, scope, inputs.into_iter());
                let returned = result().part("result");
                let output = if node.outputs.open {
                    let outputs = Binding::Ports(returned, [].into());
                    Binding::Returned(Template::binding(outputs), read_ports(scope, around))
                } else {
                    let ports = node.outputs.list.iter().map(|socket| socket.port.clone());
                    let ports: Arc<[Port]> = ports.collect();
                    let returned = Binding::Returned(returned, Arc::clone(&ports));
                    Binding::Ports(Template::binding(returned), ports)
                };
                LoweredNode {
                    kind,
                    output: Some(Template::binding(output)),
                }
            }
            NodeKind::Http(inputs) => {
                let inputs = self.texts(inputs, scope);
                LoweredNode {
                    kind: call("http", scope, inputs.into_iter()),
                    output: Some(outputs(&node.outputs, &result().part("body"))),
                }
            }
            NodeKind::Component(graph) => self.component(node, graph, scope, around),
            NodeKind::Loop(repeated) => self.repeated(node, repeated, scope),
            NodeKind::Unknown => LoweredNode {
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
        let lower = |(name, text): &(&str, Text)| {
            (Name::from(*name), scope.text(text, self.reader.diagnostics))
        };
        texts.iter().map(lower).collect()
    }

    fn agent(&mut self, node: &Node, agent: &Agent, scope: &Scope<'_>) -> LoweredNode {
        // The session is that of the same node in the previous iteration, or the value of an edge.
        let brought = scope.own.iter().find(|(name, _)| **name == *SESSION_ID);
        let before = match (agent.session, brought) {
            (true, _) => {
                let before = Binding::Previous(node.step.clone(), None);
                Some(Template::binding(before).part(SESSION))
            }
            (false, Some((_, brought))) => Some(brought.clone()),
            (false, None) if node.outputs.find(SESSION_ID).is_some() => {
                Some(Template::constant(Value::Null))
            }
            (false, None) => None,
        };
        let scope = Scope {
            session: before.clone(),
            ..*scope
        };
        let prompt = scope.text(&agent.prompt, self.reader.diagnostics);
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
        let session = |socket: &&Socket| {
            let name = &*socket.port.name;
            !(agent.session && name == SESSION) && name != SESSION_ID && name != EXIT_CODE
        };
        let ports = node.outputs.list.iter().filter(session);
        let ports: Vec<Port> = ports.map(|socket| socket.port.clone()).collect();
        let answer = Binding::Answer(result().part("content"), ports.into(), before);
        let answer = Template::binding(answer);
        let others = [SESSION_ID, EXIT_CODE];
        let output = match others.iter().any(|name| node.outputs.find(name).is_some()) {
            false => answer,
            // Graph editors have other names for the outputs with the session and the exit code.
            true => object(node.outputs.list.iter().map(|socket| {
                let name = &socket.port.name;
                let value = match &**name {
                    SESSION_ID => answer.clone().part(SESSION),
                    EXIT_CODE => Template::constant(0_i64.into()),
                    name => answer.clone().part(name),
                };
                let port = Binding::Port(value, socket.port.clone());
                (name.clone(), Template::binding(port))
            })),
        };
        LoweredNode {
            kind: call(executor, &scope, inputs.into_iter()),
            output: Some(output),
        }
    }

    fn shell(
        &mut self,
        node: &Node,
        shell: &Shell,
        scope: &Scope<'_>,
        around: &GraphContext<'_>,
    ) -> LoweredNode {
        self.lint_script(node, shell);
        let env = scope
            .own
            .iter()
            .map(|(name, value)| (env_name(name), value.clone()));
        let mut inputs = vec![
            (
                Name::from("run"),
                scope.text(&shell.script, self.reader.diagnostics),
            ),
            (Name::from("env"), object(env)),
        ];
        if let Some(cwd) = &shell.cwd {
            inputs.push((Name::from("cwd"), scope.text(cwd, self.reader.diagnostics)));
        }
        if !shell
            .fails
            .unwrap_or_else(|| !exit_code_is_read(scope, around))
        {
            inputs.push((Name::from("check"), Template::constant(false.into())));
        }
        LoweredNode {
            kind: call("shell", scope, inputs.into_iter()),
            output: Some(outputs(&node.outputs, &result().part("body"))),
        }
    }

    /// Warns if data is written into the text of a script, because it could be read as code.
    fn lint_script(&mut self, node: &Node, shell: &Shell) {
        for mention in &shell.script.mentions {
            let root = mention.reference.root();
            let Some(name) = root.or_else(|| name_of(&mention.reference)) else {
                continue;
            };
            if name == ITERATION {
                continue;
            }
            let input = node.inputs.find(name).is_some();
            let what = format!("`{name}` is rendered into the text of a script");
            let variable = env_name(name);
            let hint = if input {
                format!("a value could be read as code: write \"${variable}\" instead")
            } else {
                format!("a value could be read as code: add an input, and write \"${variable}\"")
            };
            let warning = Diagnostic::warning("data-in-command", mention.span, what).hint(hint);
            self.reader.diagnostics.push(warning);
        }
    }

    fn component(
        &mut self,
        node: &Node,
        graph: &Graph,
        scope: &Scope<'_>,
        around: &GraphContext<'_>,
    ) -> LoweredNode {
        let mut reads = BTreeSet::new();
        let mut members = Vec::new();
        for socket in &node.outputs.list {
            let name = &socket.port.name;
            match graph.find_component_output(name) {
                Some((index, inner)) => {
                    reads.insert((index, name.clone()));
                    let kind = LinkKind::Result;
                    self.link(Some(&inner.step), name, &node.step, name, kind, None);
                    let value = Template::binding(Binding::Outputs(inner.step.clone())).part(name);
                    let port = Binding::Port(value, socket.port.clone());
                    members.push((name.clone(), Template::binding(port)));
                }
                None => {
                    let what = format!("no inner node returns {}", socket.port.shown);
                    let outputs = graph.component_outputs();
                    let names: Vec<&str> =
                        outputs.iter().map(|output| &*output.port.name).collect();
                    let hint = match names.as_slice() {
                        [] => String::from("add an interface-output to the inner workflow"),
                        names => format!("the inner workflow returns: {}", names.join(", ")),
                    };
                    let error = Diagnostic::error("unknown-port", socket.span, what);
                    self.reader.diagnostics.push(error.hint(hint));
                }
            }
        }
        for socket in &node.inputs.list {
            let name = &socket.port.name;
            let taken = graph
                .component_inputs()
                .iter()
                .any(|input| input.port.name == *name);
            let whole = |node: &Node| matches!(node.spec, NodeKind::Source { whole: true });
            if !taken && !graph.nodes.iter().any(whole) {
                let what = format!("no inner node accepts {}", socket.port.shown);
                let hint = "add an output of this name to an interface-input of the inner workflow";
                let warning = Diagnostic::warning("unused-input", socket.span, what);
                self.reader.diagnostics.push(warning.hint(hint));
            }
        }
        let inner = GraphContext {
            container: Some(&node.step),
            looped: around.looped,
            given: InputSource::Component(scope.own.iter().cloned().collect()),
            reads,
            break_when: None,
        };
        let steps = self.graph(graph, &inner);
        LoweredNode {
            kind: StepKind::Block(Block::Dag(steps)),
            output: Some(object(members.into_iter())),
        }
    }
}

fn compose(value: Template) -> LoweredNode {
    LoweredNode {
        kind: StepKind::Compose(value),
        output: None,
    }
}

/// Makes a node whose only output is a map with all inputs of the graph.
fn compose_inputs(around: &GraphContext<'_>) -> LoweredNode {
    let all = match &around.given {
        InputSource::Run => Template::binding(Binding::Root(Name::from("inputs"))),
        InputSource::Component(inputs) | InputSource::Loop(_, inputs) => {
            let given = inputs
                .iter()
                .map(|(name, value)| (name.clone(), value.clone()));
            object(given)
        }
    };
    compose(object([(Name::from("input"), all)].into_iter()))
}

/// Makes a call. Its inputs are evaluated after the inputs of the node were checked.
fn call(
    executor: &str,
    scope: &Scope<'_>,
    inputs: impl Iterator<Item = (Name, Template)>,
) -> StepKind {
    let checks = scope.own.iter().map(|(_, value)| value.clone()).collect();
    let inputs = Template::binding(Binding::Checked(checks, object(inputs)));
    StepKind::Call(builder::call(executor, inputs))
}

/// Makes the template of the result of a node's executor.
pub(super) fn result() -> Template {
    Template::binding(Binding::Root(Name::from("result")))
}

/// Makes the outputs of a node whose executor returns a map.
/// An output is a value that is extracted from the body, or a member of the result such as `stdout`. All other
/// outputs are members of the body.
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
    let stdout = ports.find("stdout").map(|_| result().part("stdout"));
    let given_body = match (&stdout, &*rest) {
        (Some(_), [only]) if only.kind == PortKind::String => {
            Template::binding(Binding::Printed(result()))
        }
        _ => body.clone(),
    };
    let from_body = Template::binding(Binding::Ports(given_body, rest.clone().into()));
    let members = ports.list.iter().map(|socket| {
        let name = &socket.port.name;
        let value = match &socket.extract {
            Some(how) => {
                // A text is extracted from the printed text, and not from the JSON value that this contains.
                let from = match (how, &stdout) {
                    (Extract::Full | Extract::Regex(_), Some(text)) => text.clone(),
                    _ => body.clone(),
                };
                Template::binding(Binding::Extract(from, how.clone()))
            }
            None if rest.contains(&socket.port) => from_body.clone().part(name),
            None => result().part(name),
        };
        let port = Binding::Port(value, socket.port.clone());
        (name.clone(), Template::binding(port))
    });
    object(members)
}

/// Returns the name of the environment variable with the value of an input.
fn env_name(input: &str) -> Name {
    let letter = |c: char| match c {
        c if c.is_ascii_alphanumeric() => c.to_ascii_uppercase(),
        _ => '_',
    };
    let name: String = input.chars().map(letter).collect();
    Name::from(format!("INPUT_{name}"))
}

/// Returns the outputs of a node that edges, mappings and conditions read. Templates report a missing output themselves.
fn read_ports(scope: &Scope<'_>, around: &GraphContext<'_>) -> Arc<[Port]> {
    let edges = scope.graph.edges.iter();
    let edges = edges.filter(|edge| edge.from == scope.node);
    let by_edge = edges.filter_map(|edge| Some(&edge.ports.as_ref()?.0));
    let outside = around.reads.iter();
    let outside = outside.filter_map(|(node, name)| (*node == scope.node).then_some(name));
    let names: BTreeSet<&Name> = by_edge.chain(outside).collect();
    let port = |name: &Name| Port {
        name: name.clone(),
        shown: Name::from(format!("output `{name}` of `{}`", scope.id())),
        kind: PortKind::Any,
        required: false,
        must_be_given: false,
        default: None,
    };
    names.into_iter().map(port).collect()
}

/// Returns true if anything reads the exit code of a node. Then a command that fails does not fail the node.
fn exit_code_is_read(scope: &Scope<'_>, around: &GraphContext<'_>) -> bool {
    let by_edge = scope.graph.edges.iter().any(|edge| {
        let output = edge.ports.as_ref().map(|(output, _)| &**output);
        edge.from == scope.node && output == Some(EXIT_CODE)
    });
    let outside = around.reads.contains(&(scope.node, Name::from(EXIT_CODE)));
    let node = scope.graph.nodes.get(scope.node);
    by_edge
        || outside
        || node.is_some_and(|node| {
            scope.codes.contains(&*node.id) || scope.codes.contains(&identifier(&node.id))
        })
}
