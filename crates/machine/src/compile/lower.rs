//! Lowers steps to states and scopes, from the end of the workflow to its beginning, because a state needs the id of
//! its successor. Afterwards, `number` puts the states in reading order.
//!
//! - An action with a timeout and a retry becomes `Deadline(Try(the action's own states))`.
//! - `break_when` and `continue_when` become a conditional jump after the action.
//! - An asynchronous action of Logic Apps polls in a `FollowUp`: steps after the call that belong to the same action
//!   and count against its timeout.
//! - A DAG (actions with `runAfter`, without cycles) becomes a fork with one branch for each node.
//! - A graph (nodes and edges of The Edge Agent, possibly with cycles) becomes a scope. `Visit` counts the visits of
//!   each node, and the edges are conditional jumps.

mod ending;

use super::names::Names;
use crate::program::{
    ActionId, Call, DagNode, Ending, LoopSpec, Op, Scope, ScopeId, ScopeKind, State, StateId,
};
use std::collections::HashMap;
use windlass_expression::{Binding, Condition, Template, Value};
use windlass_model::hir::{Block, Edge, Graph, Keep, Loop, Outputs, Step, StepKind, Workflow};
use windlass_model::model::{FAILED_CANCEL, Name, Status};
use windlass_source::diagnostic::Diagnostic;
use windlass_source::source::Span;

pub(super) struct Lowered {
    pub entry: StateId,
    pub ending: Option<Ending>,
    pub states: Vec<State>,
    pub scopes: Vec<Scope>,
    /// For each scope that contains actions: the actions directly inside it.
    pub children: Vec<(ScopeId, Vec<ActionId>)>,
}

pub(super) fn lower(workflow: &Workflow, names: &Names) -> Result<Lowered, Vec<Diagnostic>> {
    let mut to = Lowerer {
        workflow,
        names,
        states: Vec::new(),
        scopes: Vec::new(),
        children: Vec::new(),
        loops: Vec::new(),
        in_cleanup: false,
        mistakes: Vec::new(),
    };
    let root = to.scope(&workflow.name, None, ScopeKind::Root);
    to.scopes
        .iter_mut()
        .for_each(|scope| scope.action_range = names.all());
    let end = to.state(&workflow.name, root, Op::Succeed, workflow.span);
    let outputs = match &workflow.outputs {
        Outputs::Template(template) => vec![template.clone()],
        Outputs::Actions | Outputs::State => Vec::new(),
    };
    let mut endings = [&workflow.on_failure, &workflow.on_finish, &workflow.cleanup].into_iter();
    let silent = endings.all(Block::is_empty);
    let (entry, ending) = match silent {
        true => (to.lower_body(root, end, outputs), None),
        false => to.ending(root, end, outputs),
    };
    to.begin(root, entry, end);
    to.set_children(root, &[&workflow.body]);
    if to.mistakes.is_empty() {
        Ok(Lowered {
            entry,
            ending,
            states: to.states,
            scopes: to.scopes,
            children: to.children,
        })
    } else {
        Err(to.mistakes)
    }
}

struct Lowerer<'a> {
    workflow: &'a Workflow,
    names: &'a Names,
    states: Vec<State>,
    scopes: Vec<Scope>,
    children: Vec<(ScopeId, Vec<ActionId>)>,
    /// For each enclosing loop, the innermost last: the states to which `break` and `continue` lead.
    loops: Vec<(StateId, StateId)>,
    /// Whether the current step is in the cleanup. Failures of the cleanup are reported.
    in_cleanup: bool,
    mistakes: Vec<Diagnostic>,
}

impl Lowerer<'_> {
    /// Adds a state that ends its scope. If the state has a successor, `set_next` must set it.
    fn state(&mut self, name: &Name, scope: ScopeId, op: Op, span: Span) -> StateId {
        let id = StateId::from_index(self.states.len());
        self.states.push(State {
            name: name.clone(),
            scope,
            op,
            next: id,
            action: None,
            span,
        });
        id
    }

    fn set_next(&mut self, state: StateId, next: StateId) -> StateId {
        if let Some(state) = self.states.get_mut(state.index()) {
            state.next = next;
        }
        state
    }

    fn set_record_action(&mut self, state: StateId, action: Option<ActionId>) -> StateId {
        if let Some(state) = self.states.get_mut(state.index()) {
            state.action = action;
        }
        state
    }

    fn scope(&mut self, name: &Name, parent: Option<ScopeId>, kind: ScopeKind) -> ScopeId {
        let id = ScopeId::from_index(self.scopes.len());
        self.scopes.push(Scope {
            name: name.clone(),
            parent,
            kind,
            body: StateId(0),
            exit: StateId(0),
            action: None,
            children: Vec::new(),
            action_range: 0..0,
        });
        id
    }

    fn begin(&mut self, scope: ScopeId, body: StateId, exit: StateId) {
        if let Some(scope) = self.scopes.get_mut(scope.index()) {
            scope.body = body;
            scope.exit = exit;
        }
    }

    /// Makes a scope the inside of an action. When the scope ends, it writes the action's record.
    fn set_owner(&mut self, scope: ScopeId, action: Option<ActionId>) {
        let action_range = action.map_or(0..0, |action| self.names.action_range(action));
        if let Some(scope) = self.scopes.get_mut(scope.index()) {
            scope.action = action;
            scope.action_range = action_range;
        }
    }

    fn set_children(&mut self, scope: ScopeId, blocks: &[&Block]) {
        let steps = blocks.iter().flat_map(|block| block.steps());
        let own = steps.filter(|step| !step.is_repeat);
        let children = own.filter_map(|step| self.names.id(step)).collect();
        self.children.push((scope, children));
    }

    fn enter(&mut self, step: &Step, at: ScopeId, inner: ScopeId, next: StateId) -> StateId {
        let enter = self.state(&step.name, at, Op::Enter(inner), step.span);
        let action = self.names.id(step);
        self.set_record_action(enter, action);
        self.set_next(enter, next)
    }

    fn block(
        &mut self,
        block: &Block,
        name: &Name,
        span: Span,
        scope: ScopeId,
        next: StateId,
    ) -> StateId {
        match block {
            Block::Sequence(steps) => steps
                .iter()
                .rev()
                .fold(next, |next, step| self.step(step, scope, next)),
            Block::Dag(steps) => {
                let dag = self.scope(name, Some(scope), ScopeKind::Dag { nodes: Vec::new() });
                let mut indices = HashMap::with_capacity(steps.len());
                for (index, step) in steps.iter().enumerate() {
                    let name = step.step.name.to_ascii_lowercase();
                    indices.entry(name).or_insert(index);
                }
                let mut nodes = Vec::with_capacity(steps.len());
                let mut waited_by = vec![Vec::new(); steps.len()];
                for dag_step in steps {
                    let step = &dag_step.step;
                    let branch = self.branch(&step.name, step.span, dag, |to, branch, join| {
                        to.step(step, branch, join)
                    });
                    let mut after = Vec::new();
                    for wanted in &dag_step.after {
                        match indices.get(&wanted.name.to_ascii_lowercase()) {
                            Some(index) => {
                                after.push((*index, wanted.statuses.clone()));
                                waited_by
                                    .get_mut(*index)
                                    .into_iter()
                                    .for_each(|by: &mut Vec<usize>| by.push(nodes.len()));
                            }
                            None => self.unknown(&wanted.name, wanted.span, "an action here"),
                        }
                    }
                    if let Some(action) = self.names.id(step) {
                        nodes.push(DagNode {
                            action,
                            branch,
                            after,
                            waited_by: Vec::new(),
                        });
                    }
                }
                for (node, by) in nodes.iter_mut().zip(waited_by) {
                    node.waited_by = by;
                }
                if let Some(scope) = self.scopes.get_mut(dag.index()) {
                    scope.kind = ScopeKind::Dag { nodes };
                }
                let enter = self.state(name, scope, Op::Enter(dag), span);
                self.begin(dag, enter, next);
                self.set_next(enter, next)
            }
            Block::Graph(graph) => self.graph(graph, name, span, scope, next),
        }
    }

    fn branch(
        &mut self,
        name: &Name,
        span: Span,
        fork: ScopeId,
        body: impl FnOnce(&mut Self, ScopeId, StateId) -> StateId,
    ) -> ScopeId {
        let branch = self.scope(name, Some(fork), ScopeKind::Branch);
        let join = self.state(name, branch, Op::Join, span);
        let entry = body(self, branch, join);
        self.begin(branch, entry, join);
        branch
    }

    fn graph(
        &mut self,
        graph: &Graph,
        name: &Name,
        span: Span,
        scope: ScopeId,
        next: StateId,
    ) -> StateId {
        let kind = ScopeKind::Graph {
            max_steps: graph.max_steps,
        };
        let inside = self.scope(name, Some(scope), kind);
        let end = self.state(name, inside, Op::Leave, span);
        let mut visits = HashMap::new();
        for node in &graph.nodes {
            let visit = self.state(&node.step.name, inside, Op::Visit, node.step.span);
            visits.insert(node.step.name.clone(), visit);
        }
        for node in &graph.nodes {
            let choice = self.edges(&node.edges, &node.step, inside, end, &visits);
            let entry = self.step(&node.step, inside, choice);
            if let Some(visit) = visits.get(&node.step.name) {
                self.set_next(*visit, entry);
            }
        }
        let entry = match &graph.entry {
            None => end,
            Some(entry) => visits.get(entry).copied().unwrap_or_else(|| {
                self.unknown(entry, span, "a node of this graph");
                end
            }),
        };
        let enter = self.state(name, scope, Op::Enter(inside), span);
        self.begin(inside, entry, next);
        self.set_next(enter, next)
    }

    fn edges(
        &mut self,
        edges: &[Edge],
        from: &Step,
        scope: ScopeId,
        end: StateId,
        visits: &HashMap<Name, StateId>,
    ) -> StateId {
        let mut arms = Vec::new();
        let mut otherwise = None;
        for edge in edges {
            let target = match &edge.to {
                None => end,
                Some(to) => visits.get(to).copied().unwrap_or_else(|| {
                    self.unknown(to, edge.span, "a node of this graph");
                    end
                }),
            };
            match &edge.when {
                Some(when) if otherwise.is_none() => arms.push((when.clone(), target)),
                None if otherwise.is_none() => otherwise = Some(target),
                // A cursor follows the first edge whose condition is true, so it never follows an edge after one
                // without a condition.
                Some(_) | None => {}
            }
        }
        let otherwise = otherwise.unwrap_or_else(|| {
            let message = format!("no edge out of node `{}` holds", from.name);
            let op = Op::Raise {
                kind: Name::from("edge"),
                message: Template::constant(Value::text(message)),
            };
            self.state(&from.name, scope, op, from.span)
        });
        if arms.is_empty() {
            return otherwise;
        }
        let choice = self.state(&from.name, scope, Op::Branch(arms), from.span);
        self.set_next(choice, otherwise)
    }

    fn step(&mut self, step: &Step, scope: ScopeId, next: StateId) -> StateId {
        let after = self.lower_jumps(step, scope, next);
        let Some(handler) = &step.catch else {
            return self.lower_deadline(step, scope, after);
        };
        let handle = match handler.is_empty() {
            true => next,
            false => self.lower_handler(handler, step, scope, next, ScopeKind::Block),
        };
        let variable = match self.in_cleanup {
            true => format!("{FAILED_CANCEL}{}", step.name),
            false => String::new(),
        };
        let kind = ScopeKind::Try {
            retry: None,
            catch: Some((Name::from(variable), handle)),
        };
        self.wrap_in_scope(step, scope, after, kind, |to, inside, leave| {
            to.lower_deadline(step, inside, leave)
        })
    }

    fn lower_deadline(&mut self, step: &Step, scope: ScopeId, next: StateId) -> StateId {
        let Some(after) = &step.timeout else {
            return self.lower_follow_up(step, scope, next);
        };
        let kind = ScopeKind::Deadline {
            after: after.clone(),
        };
        self.wrap_in_scope(step, scope, next, kind, |to, inside, leave| {
            to.set_owner(inside, to.names.id(step));
            to.lower_follow_up(step, inside, leave)
        })
    }

    fn lower_follow_up(&mut self, step: &Step, scope: ScopeId, next: StateId) -> StateId {
        let Some(follow_up) = &step.follow_up else {
            return self.lower_retry(step, scope, next);
        };
        let kind = ScopeKind::FollowUp;
        let to = self.wrap_in_scope(step, scope, next, kind, |to, inside, leave| {
            to.set_owner(inside, to.names.id(step));
            to.block(&follow_up.block, &step.name, step.span, inside, leave)
        });
        let when = follow_up.when.clone();
        let choice = self.state(&step.name, scope, Op::FollowUp { when, to }, step.span);
        self.set_next(choice, next);
        self.lower_retry(step, scope, choice)
    }

    fn lower_retry(&mut self, step: &Step, scope: ScopeId, next: StateId) -> StateId {
        let Some(policy) = &step.retry else {
            return self.lower_kind(step, scope, next);
        };
        let kind = ScopeKind::Try {
            retry: Some(policy.clone()),
            catch: None,
        };
        self.wrap_in_scope(step, scope, next, kind, |to, inside, leave| {
            to.lower_kind(step, inside, leave)
        })
    }

    /// Lowers a scope that encloses a step: a deadline, a retry.
    fn wrap_in_scope(
        &mut self,
        step: &Step,
        scope: ScopeId,
        next: StateId,
        kind: ScopeKind,
        body: impl FnOnce(&mut Self, ScopeId, StateId) -> StateId,
    ) -> StateId {
        let inside = self.scope(&step.name, Some(scope), kind);
        let leave = self.state(&step.name, inside, Op::Leave, step.span);
        let entry = body(self, inside, leave);
        self.begin(inside, entry, next);
        let enter = self.state(&step.name, scope, Op::Enter(inside), step.span);
        self.set_next(enter, next)
    }

    /// Lowers `break_when` and `continue_when`, which are checked after the step.
    fn lower_jumps(&mut self, step: &Step, scope: ScopeId, next: StateId) -> StateId {
        if step.break_when.is_none() && step.continue_when.is_none() {
            return next;
        }
        let Some((break_to, continue_to)) = self.loops.last().copied() else {
            self.mistakes.push(
                Diagnostic::error(
                    "break-outside-loop",
                    step.span,
                    format!(
                        "`{}` breaks or continues a loop, but no loop is around it",
                        step.name
                    ),
                )
                .hint("`break_when` and `continue_when` belong to actions in the body of a loop"),
            );
            return next;
        };
        let arm = |when: &Option<Condition>, to| when.clone().map(|when| (when, to));
        let arms = [
            arm(&step.break_when, break_to),
            arm(&step.continue_when, continue_to),
        ];
        let arms = arms.into_iter().flatten().collect();
        let choice = self.state(&step.name, scope, Op::Branch(arms), step.span);
        self.set_next(choice, next)
    }

    fn lower_kind(&mut self, step: &Step, scope: ScopeId, next: StateId) -> StateId {
        let next = match (&step.expect, self.names.id(step)) {
            (Some(expect), Some(action)) => {
                let op = Op::Expect(action, expect.clone());
                let check = self.state(&step.name, scope, op, step.span);
                self.set_next(check, next)
            }
            _ => next,
        };
        let op = match &step.kind {
            StepKind::Call(call) => Op::Call(call.clone(), self.workflow.secrets_of(call)),
            StepKind::Compose(value) => Op::Compose(value.clone()),
            StepKind::Assign(assign) => Op::Assign {
                assignments: assign.assignments.clone(),
                output: assign.output.clone(),
            },
            StepKind::Wait(sleep) => Op::Sleep(sleep.clone()),
            StepKind::AwaitSignal(awaited) => Op::AwaitSignal(awaited.clone()),
            StepKind::Terminate { status, error } => Op::Terminate {
                status: *status,
                error: error.clone(),
            },
            StepKind::Respond(value) => Op::Respond(value.clone()),
            StepKind::Raise { kind, message } => Op::Raise {
                kind: kind.clone(),
                message: message.clone(),
            },
            StepKind::Nothing => Op::Compose(Template::constant(Value::Null)),
            StepKind::Block(block) => return self.steps(step, scope, next, block),
            StepKind::If { arms, otherwise } => {
                return self.lower_inside(step, scope, next, |to, inside, leave| {
                    let arms = arms
                        .iter()
                        .map(|(when, block)| {
                            (
                                when.clone(),
                                to.block(block, &step.name, step.span, inside, leave),
                            )
                        })
                        .collect();
                    let otherwise = to.block(otherwise, &step.name, step.span, inside, leave);
                    let choice = to.state(&step.name, inside, Op::Branch(arms), step.span);
                    to.set_next(choice, otherwise)
                });
            }
            StepKind::Switch { on, cases, default } => {
                return self.lower_inside(step, scope, next, |to, inside, leave| {
                    let cases = cases
                        .iter()
                        .map(|(value, block)| {
                            (
                                value.clone(),
                                to.block(block, &step.name, step.span, inside, leave),
                            )
                        })
                        .collect();
                    let default = to.block(default, &step.name, step.span, inside, leave);
                    let op = Op::Switch {
                        on: on.clone(),
                        cases,
                    };
                    let choice = to.state(&step.name, inside, op, step.span);
                    to.set_next(choice, default)
                });
            }
            StepKind::Catch {
                body,
                error,
                handler,
            } => {
                return self.lower_inside(step, scope, next, |to, inside, leave| {
                    let handle = to.block(handler, &step.name, step.span, inside, leave);
                    let catch = Some((error.clone(), handle));
                    let kind = ScopeKind::Try { retry: None, catch };
                    to.wrap_in_scope(step, inside, leave, kind, |to, tried, leave| {
                        to.block(body, &step.name, step.span, tried, leave)
                    })
                });
            }
            StepKind::Loop(spec) => return self.lower_loop(step, spec, scope, next),
            StepKind::ForEach(spec) => {
                let each = self.scope(&step.name, Some(scope), ScopeKind::Block);
                self.set_owner(each, self.names.id(step));
                let stop = self.state(&step.name, each, Op::Break, step.span);
                let branch = self.branch(&step.name, step.span, each, |to, branch, join| {
                    to.loops.push((stop, join));
                    let body = to.block(&spec.body, &step.name, step.span, branch, join);
                    to.loops.pop();
                    body
                });
                if let Some(each) = self.scopes.get_mut(each.index()) {
                    each.kind = ScopeKind::ForEach {
                        items: spec.items.clone(),
                        count: spec.count.clone(),
                        concurrency: spec.concurrency.max(1),
                        on_error: spec.on_error,
                        branch,
                    };
                }
                self.begin(each, stop, next);
                self.set_children(each, &[&spec.body]);
                return self.enter(step, scope, each, next);
            }
            StepKind::Parallel { branches, isolated } => {
                let fork = self.scope(&step.name, Some(scope), ScopeKind::Block);
                self.set_owner(fork, self.names.id(step));
                let mut lowered = Vec::with_capacity(branches.len());
                for (name, block) in branches {
                    let branch = self.branch(name, step.span, fork, |to, branch, join| {
                        to.block(block, name, step.span, branch, join)
                    });
                    self.set_children(branch, &[block]);
                    lowered.push((name.clone(), branch));
                }
                if let Some(fork) = self.scopes.get_mut(fork.index()) {
                    fork.kind = ScopeKind::Parallel {
                        branches: lowered,
                        isolated: *isolated,
                    };
                }
                let enter = self.enter(step, scope, fork, next);
                self.begin(fork, enter, next);
                // Set after the branches were lowered. The branches contain these actions directly, but `result('…')`
                // of the parallel must list them, too.
                let blocks: Vec<&Block> = branches.iter().map(|(_, block)| block).collect();
                self.set_children(fork, &blocks);
                return enter;
            }
        };
        let succeeds = matches!(
            op,
            Op::Terminate {
                status: Status::Succeeded,
                ..
            }
        );
        let state = self.state(&step.name, scope, op, step.span);
        let action = self.names.id(step);
        self.set_record_action(state, action);
        self.set_next(state, next);
        match succeeds {
            true => self.at_success(scope, state, Vec::new(), step.span),
            false => state,
        }
    }

    /// Lowers the call that the workflow makes before it succeeds. The call starts only if the outputs of the run can
    /// be computed.
    fn at_success(
        &mut self,
        scope: ScopeId,
        end: StateId,
        outputs: Vec<Template>,
        span: Span,
    ) -> StateId {
        let Some(call) = &self.workflow.at_success else {
            return end;
        };
        let secrets = self.workflow.secrets_of(call);
        let inputs = Template::binding(Binding::Checked(outputs, call.inputs.clone()));
        let call = Call {
            inputs,
            ..call.clone()
        };
        let name = Name::from("$at_success");
        let state = self.state(&name, scope, Op::Call(call, secrets), span);
        self.set_next(state, end)
    }

    fn steps(&mut self, step: &Step, scope: ScopeId, next: StateId, block: &Block) -> StateId {
        self.lower_inside(step, scope, next, |to, inside, leave| {
            to.block(block, &step.name, step.span, inside, leave)
        })
    }

    /// Lowers the scope that is the inside of a step.
    fn lower_inside(
        &mut self,
        step: &Step,
        scope: ScopeId,
        next: StateId,
        body: impl FnOnce(&mut Self, ScopeId, StateId) -> StateId,
    ) -> StateId {
        let inside = self.scope(&step.name, Some(scope), ScopeKind::Block);
        self.set_owner(inside, self.names.id(step));
        let leave = self.state(&step.name, inside, Op::Leave, step.span);
        let entry = body(self, inside, leave);
        self.begin(inside, entry, next);
        self.set_children(inside, &step.kind.blocks());
        self.enter(step, scope, inside, next)
    }

    fn lower_loop(&mut self, step: &Step, spec: &Loop, scope: ScopeId, next: StateId) -> StateId {
        let mut keep = Vec::with_capacity(spec.keep.len());
        for one in &spec.keep {
            match self.names.find(&one.of) {
                Some(of) => keep.push(Keep {
                    name: one.name.clone(),
                    take: one.take,
                    of,
                    value: one.value.clone(),
                }),
                None => self.unknown(&one.of, step.span, "a step of this loop"),
            }
        }
        let own = LoopSpec {
            name: spec.name.clone(),
            test: spec.test,
            stop_when: spec.stop_when.clone(),
            condition_text: spec.condition_text.clone(),
            negated: spec.negated,
            count: spec.count.clone(),
            timeout: spec.timeout.clone(),
            tokens: spec.tokens.clone(),
            cost: spec.cost.clone(),
            delay: spec.delay.clone(),
            on_missing: spec.on_missing,
            on_limit: spec.on_limit,
            on_timeout: spec.on_timeout,
            test_when_spent: spec.test_when_spent,
            survives_failure: spec.survives_failure,
            keep,
            pages: spec.pages.clone(),
            unchanged: spec.unchanged.clone(),
            feedback: spec.feedback,
            body: (),
        };
        let kind = ScopeKind::Loop(step.label.clone(), own);
        let name = spec.name.as_ref().unwrap_or(&step.name);
        let inside = self.scope(name, Some(scope), kind);
        self.set_owner(inside, self.names.id(step));
        let repeat = self.state(&step.name, inside, Op::Repeat, step.span);
        let stop = self.state(&step.name, inside, Op::Break, step.span);
        self.loops.push((stop, repeat));
        let body = self.block(&spec.body, &step.name, step.span, inside, repeat);
        self.loops.pop();
        self.begin(inside, body, next);
        self.set_children(inside, &[&spec.body]);
        self.enter(step, scope, inside, next)
    }

    fn unknown(&mut self, name: &Name, span: Span, what: &str) {
        let message = format!("`{name}` is not {what}");
        self.mistakes.push(
            Diagnostic::error("unknown-name", span, message)
                .hint("names must be those of steps in the same scope"),
        );
    }
}
