//! Makes the tree of boxes and lines of a program.

use super::wires::{Links, wires};
use super::{
    BoxId, BoxShape, DrawnBox, Facts, Line, LineKind, NodeLimits, ScopeDrawing, ScopeEnd, cut,
};
use std::collections::HashSet;
use windlass_machine::program::duration_text;
use windlass_machine::program::retry_title;
use windlass_machine::program::template_text;
use windlass_machine::program::{
    Action, DagNode, Op, Program, Scope, ScopeId, ScopeKind, State, StateId,
};
use windlass_model::model::{Delay, Name, Status, path_part};

/// Returns the drawing of a whole program, without bare boxes.
pub(super) fn drawing(program: &Program) -> ScopeDrawing {
    let mut states_of = vec![Vec::new(); program.scopes.len()];
    for (index, state) in program.states.iter().enumerate() {
        if let Some(states) = states_of.get_mut(state.scope.index()) {
            states.push(StateId::from_index(index));
        }
    }
    // The follow-up of a call (the steps that follow as a part of it) is drawn as a part of the call's box.
    let parts = program.states.iter().filter_map(|state| match state.op {
        Op::FollowUp { to, .. } => Some(to),
        _ => None,
    });
    let parts: HashSet<StateId> = parts.collect();
    for states in &mut states_of {
        states.retain(|state| !parts.contains(state));
    }
    let tree = Tree {
        program,
        states_of,
        links: Links::new(program),
    };
    tree.inside(ScopeId(0), "").without_bare()
}

struct Tree<'p> {
    program: &'p Program,
    states_of: Vec<Vec<StateId>>,
    links: Links<'p>,
}

impl Tree<'_> {
    /// Returns the content of a scope. `path` is the path of the enclosing loops.
    fn inside(&self, id: ScopeId, path: &str) -> ScopeDrawing {
        let mut drawn = ScopeDrawing::default();
        let Some(scope) = self.program.scope(id) else {
            return drawn;
        };
        match &scope.kind {
            ScopeKind::ForEach { branch, .. } => return self.inside(*branch, path),
            ScopeKind::Parallel { branches, .. } => {
                for (name, branch) in branches {
                    self.lane(scope, name, *branch, path, &mut drawn);
                }
                return drawn;
            }
            ScopeKind::Dag { nodes } => {
                self.dag(nodes, path, &mut drawn);
                return drawn;
            }
            _ => {}
        }
        let first = Line::new(None, end(self.program, scope.body), "");
        drawn.lines.push(first);
        for id in self.states_of.get(id.index()).into_iter().flatten() {
            if let Some(state) = self.program.state(*id) {
                self.draw(*id, state, path, &mut drawn);
            }
        }
        drawn
    }

    /// Draws a branch of a parallel.
    fn lane(
        &self,
        fork: &Scope,
        name: &Name,
        branch: ScopeId,
        path: &str,
        drawn: &mut ScopeDrawing,
    ) {
        let id = BoxId::Scope(branch);
        let action = fork.action.and_then(|action| self.program.action(action));
        drawn.boxes.push(DrawnBox {
            id,
            facts: Facts {
                kind: "lane",
                name: name.clone(),
                path: below(path, name),
                line: action.map_or(0, |action| action.span.line),
                file: action.map_or(0, |action| action.span.file),
                text: name.to_string(),
                closed_text: name.to_string(),
                ..Facts::default()
            },
            shape: BoxShape::Frame(self.inside(branch, path)),
        });
        drawn.lines.push(Line::new(None, Some(id), ""));
        drawn.lines.push(Line::new(Some(id), None, ""));
    }

    fn dag(&self, nodes: &[DagNode], path: &str, drawn: &mut ScopeDrawing) {
        let entry = |node: &DagNode| {
            let scope = self.program.scope(node.branch)?;
            end(self.program, scope.body)
        };
        let shows_ports = self.program.rules.shows_ports;
        for node in nodes {
            let part = self.inside(node.branch, path);
            drawn.boxes.extend(part.boxes);
            let through = |line: &Line| line.from.is_some() && line.to.is_some();
            drawn.lines.extend(part.lines.into_iter().filter(through));
            if shows_ports {
                continue;
            }
            if node.after.is_empty() {
                drawn.lines.push(Line::new(None, entry(node), ""));
            }
            for (before, statuses) in &node.after {
                let before = nodes.get(*before).and_then(entry);
                let words: Vec<&str> = statuses.iter().map(|status| status.as_str()).collect();
                let line = Line::new(before, entry(node), &words.join(", "));
                let kind = match statuses.contains(&Status::Succeeded) {
                    true => LineKind::Next,
                    false => LineKind::Failed,
                };
                drawn.lines.push(Line { kind, ..line });
            }
        }
        if shows_ports {
            wires(self.program, &self.links, nodes, &entry, drawn);
        }
    }

    fn draw(&self, id: StateId, state: &State, path: &str, drawn: &mut ScopeDrawing) {
        let me = BoxId::State(id);
        match &state.op {
            // These states have no box. They are drawn as the lines that lead to them.
            Op::Repeat
            | Op::Break
            | Op::Leave
            | Op::Join
            | Op::Succeed
            | Op::Visit
            | Op::FollowUp { .. }
            | Op::Expect(..) => {}
            Op::Branch(arms) => {
                drawn.boxes.push(self.choice(me, state, path));
                for (when, to) in arms {
                    self.lead(drawn, me, *to, LineKind::Branch, &when.text());
                }
                self.lead(drawn, me, state.next, LineKind::Branch, "else");
            }
            Op::Switch { cases, .. } => {
                drawn.boxes.push(self.choice(me, state, path));
                for (case, to) in cases {
                    self.lead(drawn, me, *to, LineKind::Branch, &case.to_json());
                }
                self.lead(drawn, me, state.next, LineKind::Branch, "default");
            }
            Op::Enter(scope) => self.enter(*scope, state, path, drawn),
            Op::Raise { .. } | Op::Terminate { .. } => {
                drawn.boxes.push(self.step(me, state, path));
            }
            Op::Call(..)
            | Op::Assign { .. }
            | Op::Compose(_)
            | Op::Sleep(_)
            | Op::AwaitSignal(_)
            | Op::Respond(_) => {
                drawn.boxes.push(self.step(me, state, path));
                self.lead(drawn, me, state.next, LineKind::Next, "");
            }
        }
    }

    fn enter(&self, id: ScopeId, state: &State, path: &str, drawn: &mut ScopeDrawing) {
        let Some(scope) = self.program.scope(id) else {
            return;
        };
        let frame = BoxId::Scope(id);
        let is_dag = matches!(&scope.kind, ScopeKind::Dag { nodes } if !nodes.is_empty());
        let facts = self.frame(scope, state, path);
        let inside = match &scope.kind {
            ScopeKind::Loop(..) | ScopeKind::ForEach { .. } => self.inside(id, &facts.path),
            _ => self.inside(id, path),
        };
        drawn.boxes.push(DrawnBox {
            id: frame,
            facts,
            shape: match is_dag && !self.program.rules.shows_ports {
                true => BoxShape::Bare(inside),
                false => BoxShape::Frame(inside),
            },
        });
        self.lead(drawn, frame, state.next, LineKind::Next, "");
        if let ScopeKind::Try {
            catch: Some((_, to)),
            ..
        } = &scope.kind
        {
            self.lead(drawn, frame, *to, LineKind::Failed, "failed");
        }
    }

    fn lead(
        &self,
        drawn: &mut ScopeDrawing,
        from: BoxId,
        to: StateId,
        kind: LineKind,
        label: &str,
    ) {
        let ends = match self.program.state(to).map(|state| &state.op) {
            Some(Op::Repeat) => ScopeEnd::Iteration,
            Some(Op::Break) => ScopeEnd::Loop,
            _ => ScopeEnd::Scope,
        };
        let line = Line::new(Some(from), end(self.program, to), label);
        drawn.lines.push(Line { kind, ends, ..line });
    }

    // ── what is reported about a box ───────────────────────────────────────────────────────────────────

    fn choice(&self, id: BoxId, state: &State, path: &str) -> DrawnBox {
        let facts = self.facts("choice", state, path);
        let condition = tested_value(state);
        DrawnBox {
            id,
            facts: Facts {
                summary: String::new(),
                condition,
                ..facts
            },
            shape: BoxShape::Choice,
        }
    }

    fn step(&self, id: BoxId, state: &State, path: &str) -> DrawnBox {
        let kind = match &state.op {
            Op::Assign { .. } => "set",
            Op::Compose(_) => "compute",
            Op::Sleep(_) => "wait",
            Op::AwaitSignal(_) => "signal",
            Op::Respond(_) => "respond",
            Op::Raise { .. } => "raise",
            Op::Terminate { .. } => "terminate",
            _ => "action",
        };
        let action = self.action_of(state);
        let text = match action.filter(|_| self.program.rules.shows_ports) {
            Some(action) => format!("{}: {}", titled(action), action.label),
            None => format!("{}: {}", state.name, state.title()),
        };
        DrawnBox {
            id,
            facts: Facts {
                text,
                ..self.facts(kind, state, path)
            },
            shape: BoxShape::Step,
        }
    }

    fn facts(&self, kind: &'static str, state: &State, path: &str) -> Facts {
        let action = self.action_of(state);
        Facts {
            kind,
            name: state.name.clone(),
            path: below(path, &state.name),
            line: state.span.line,
            file: state.span.file,
            summary: cut(&state.title()),
            ..of_action(action, &state.name)
        }
    }

    fn action_of(&self, state: &State) -> Option<&Action> {
        self.program.action(state.action?)
    }

    /// Returns the facts about the scope that a state enters.
    fn frame(&self, scope: &Scope, state: &State, path: &str) -> Facts {
        let program = self.program;
        let action = scope.action.and_then(|action| program.action(action));
        let does = cut(&scope.title());
        let title = action.map_or(&scope.name, titled_or(&scope.name));
        let named = format!("{title}: {}", scope.title());
        let own = !matches!(
            scope.kind,
            ScopeKind::Deadline { .. } | ScopeKind::Try { .. }
        );
        let closes = |action: &&Action| own && program.rules.closed_nodes.contains(&&*action.label);
        let closed = action.filter(closes);
        let closed_text = match (closed, &scope.kind) {
            (Some(action), ScopeKind::Block) => format!("{title}: {}", action.label),
            _ => named.clone(),
        };
        let span = action.map_or(state.span, |action: &Action| action.span);
        let mut limits = NodeLimits::default();
        let mut condition = None;
        let kind = self.kind(scope);
        let mut summary = match scope.kind {
            ScopeKind::Dag { .. }
            | ScopeKind::Deadline { .. }
            | ScopeKind::FollowUp
            | ScopeKind::Try { retry: Some(_), .. } => String::new(),
            _ => does,
        };
        match &scope.kind {
            ScopeKind::Loop(_, spec) => {
                condition = Some(spec.condition_text.clone()).filter(|text| !text.is_empty());
                limits.count = Some(template_text(&spec.count));
                limits.timeout = spec.timeout.as_ref().map(duration_text);
                limits.delay = spec.delay.as_ref().map(Delay::title);
            }
            ScopeKind::ForEach {
                items, concurrency, ..
            } => {
                condition = Some(template_text(items));
                limits.concurrency = Some(*concurrency);
            }
            ScopeKind::Graph { max_steps } => limits.count = Some(max_steps.to_string()),
            ScopeKind::Try { retry, .. } => {
                let authored = retry.as_ref().filter(|retry| !retry.is_default);
                limits.retry = authored.map(retry_title);
            }
            ScopeKind::Deadline { after } => limits.deadline = Some(duration_text(after)),
            ScopeKind::Block => {
                condition = program.state(scope.body).and_then(tested_value);
                summary = match &condition {
                    Some(condition) => cut(&format!("{kind} {condition}")),
                    None => String::new(),
                };
            }
            ScopeKind::Root
            | ScopeKind::FollowUp
            | ScopeKind::Branch
            | ScopeKind::Parallel { .. }
            | ScopeKind::Dag { .. } => {}
        }
        Facts {
            kind,
            name: scope.name.clone(),
            path: below(path, &scope.name),
            line: span.line,
            file: span.file,
            summary,
            text: match scope.kind {
                ScopeKind::Dag { .. } => scope.name.to_string(),
                _ => named,
            },
            closed_text,
            closed: closed.is_some(),
            condition,
            limits,
            ..of_action(action, &scope.name)
        }
    }

    fn kind(&self, scope: &Scope) -> &'static str {
        match &scope.kind {
            ScopeKind::Loop(..) => "loop",
            ScopeKind::ForEach { .. } => "foreach",
            ScopeKind::Parallel { .. } => "parallel",
            ScopeKind::Graph { .. } | ScopeKind::Dag { .. } => "graph",
            ScopeKind::Try { retry: Some(_), .. } => "retry",
            ScopeKind::Try { retry: None, .. } => "tried",
            ScopeKind::Deadline { .. } => "deadline",
            ScopeKind::FollowUp => "block",
            ScopeKind::Root | ScopeKind::Block | ScopeKind::Branch => {
                let first = self.program.state(scope.body);
                match first.map(|first| &first.op) {
                    Some(Op::Branch(_)) => "if",
                    Some(Op::Switch { .. }) => "switch",
                    Some(Op::Enter(inner)) => match self.program.scope(*inner) {
                        Some(inner) if catches(inner) => "try",
                        _ => "block",
                    },
                    _ => "block",
                }
            }
        }
    }
}

/// Returns the value that a choice tests. Returns `None` if it tests several values.
fn tested_value(state: &State) -> Option<String> {
    match &state.op {
        Op::Branch(arms) => match &**arms {
            [(when, _)] => Some(when.text()),
            _ => None,
        },
        Op::Switch { on, .. } => Some(template_text(on)),
        _ => None,
    }
}

fn catches(scope: &Scope) -> bool {
    matches!(scope.kind, ScopeKind::Try { catch: Some(_), .. })
}

/// Returns the display name of an action.
fn titled(action: &Action) -> &Name {
    action.title.as_ref().unwrap_or(&action.name)
}

/// Returns the display name of a scope's action. If the action has no title, returns `name`.
fn titled_or<'a>(name: &'a Name) -> impl Fn(&'a Action) -> &'a Name {
    move |action| action.title.as_ref().unwrap_or(name)
}

/// Returns the facts that an action adds to a box. `name` is the name of the box.
fn of_action(action: Option<&Action>, name: &Name) -> Facts {
    let Some(action) = action else {
        return Facts::default();
    };
    Facts {
        action: Some(action.name.clone()).filter(|own| own != name),
        title: action.title.clone(),
        label: Some(action.label.clone()),
        ..Facts::default()
    }
}

fn below(path: &str, name: &Name) -> String {
    match path {
        "" => path_part(name).into_owned(),
        path => format!("{path}/{}", path_part(name)),
    }
}

/// Returns the box at which a line to this state ends. `None` means the end of the scope.
fn end(program: &Program, to: StateId) -> Option<BoxId> {
    let mut at = to;
    loop {
        let state = program.state(at)?;
        return match &state.op {
            Op::Repeat | Op::Break | Op::Leave | Op::Join | Op::Succeed => None,
            Op::Enter(scope) => Some(BoxId::Scope(*scope)),
            // A visit only counts. A check and a follow-up belong to the box of the state before them.
            Op::Visit | Op::Expect(..) | Op::FollowUp { .. } if state.next != at => {
                at = state.next;
                continue;
            }
            _ => Some(BoxId::State(at)),
        };
    }
}

impl Line {
    pub(super) fn new(from: Option<BoxId>, to: Option<BoxId>, label: &str) -> Self {
        Self {
            from,
            to,
            label: label.to_owned(),
            kind: LineKind::Next,
            ends: ScopeEnd::Scope,
            wires: Vec::new(),
        }
    }
}
