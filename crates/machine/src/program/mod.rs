//! The compiled form of a workflow: a table of states in a tree of scopes.
//!
//! A program is immutable and addressed by the hash of its sources; a run pins that hash.
//! Nothing here runs anything or knows the format of a workflow.

mod display;
mod ids;
mod verify;

pub use display::{duration_text, retry_title, template_text};
pub use ids::{ActionId, ProgramHash, ScopeId, StateId};
pub use verify::verify;
pub use windlass_model::hir::{Assignment, Call, RetryPolicy};
pub use windlass_model::model::{Concurrency, Outputs, STATE_VARIABLE, Sleep};

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::ops::Range;
use std::time::Duration;
use windlass_expression::{Condition, Template, Value, callback_secret};
use windlass_model::hir::Loop;
use windlass_model::model::{
    AwaitedSignal, EventTriggers, Expect, Form, Handler, HostRate, Input, InputKind, Link, Name,
    NamedSpans, OnError, Rules, Schedule, Secured, Status, Trigger,
};
use windlass_source::source::Span;

/// A compiled workflow.
#[derive(Clone, Debug)]
pub struct Program {
    /// The hash of its sources.
    pub hash: ProgramHash,
    /// The workflow's name.
    pub name: Name,
    /// The name of its format, for people.
    pub format: &'static str,
    /// What the format decides about a run.
    pub rules: Rules,
    /// Where a run begins.
    pub entry: StateId,
    /// Where a run continues after the body, if the workflow has an ending.
    pub ending: Option<Ending>,
    /// All states, by id.
    pub states: Vec<State>,
    /// All scopes, by id; the root is 0.
    pub scopes: Vec<Scope>,
    /// All actions: what `actions('x')` can name.
    pub actions: Vec<Action>,
    /// The actions in the order of their names without case.
    pub by_name: Vec<ActionId>,
    /// Initial variables, in order.
    pub variables: Vec<(Name, Template)>,
    /// Positions of variables and outputs in the file.
    pub places: NamedSpans,
    /// Declared types of variables, by name without case.
    pub types: Vec<(Name, InputKind)>,
    /// Definition parameters and other constants.
    pub parameters: Vec<(Name, Value)>,
    /// What starts a run, if the file specifies it. The run's input is what the trigger delivers.
    pub trigger: Option<Trigger>,
    /// When runs start automatically.
    pub schedule: Option<Schedule>,
    /// Other events that start runs of the saved workflow.
    pub event_triggers: EventTriggers,
    /// Which of its runs exclude each other.
    pub concurrency: Option<Concurrency>,
    /// Limits on how often its actions call a host, over all runs.
    pub rates: Vec<HostRate>,
    /// The inputs that a caller passes.
    pub inputs: Vec<Input>,
    /// The outputs of a run.
    pub outputs: Outputs,
    /// Handlers declared in the file.
    pub handlers: Vec<Handler>,
    /// Which values are passed from where to where, for people.
    pub links: Vec<Link>,
    /// The values that the workflow retains between its runs, with their initial values.
    pub state_values: Vec<(Name, Value)>,
    /// Whether it reads its last successful run.
    pub last_run: bool,
    /// Environment variables that are stored with a run, as they were when it began.
    pub environment: Vec<Name>,
    /// Environment variables that only actions read, and that are never stored.
    pub environment_secrets: Vec<Name>,
    /// Whether any value of its runs is secure. If not, code need not search for secure values.
    pub secure: bool,
    /// The operator's caps on the limits of loops, also on computed limits.
    pub caps: Caps,
}

/// Where a run continues after the body of its workflow: cleanup, `on_failure`, `on_finish`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ending {
    pub body: ScopeId,
    /// Where the run continues if the body failed.
    pub failed: StateId,
    /// Where the run continues if the body did not fail.
    pub ended: StateId,
    /// Where the run continues when it is cancelled; `None`: it ends at once.
    pub cancelled: Option<StateId>,
}

/// The operator's caps on the limits of a loop (docs/reference/loom.md).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caps {
    /// Maximum number of iterations.
    pub count: u64,
    /// Maximum timeout.
    pub timeout: Duration,
}

/// A named part of a workflow that leaves a record.
#[derive(Clone, Debug, PartialEq)]
pub struct Action {
    /// Its name as written.
    pub name: Name,
    /// Its authored type.
    pub label: Name,
    /// Display name, if it differs from the name.
    pub title: Option<Name>,
    /// The template for the record's output when it succeeds. The variable `result` is the action's own output.
    pub output: Option<Template>,
    /// The scope it is directly in.
    pub scope: ScopeId,
    /// Whether the dialect named it, not the author: its output counts as the output of the enclosing action.
    pub anonymous: bool,
    /// Whether its output is its input.
    pub gives_inputs: bool,
    /// Which parts of it are secure.
    pub secure: Secured,
    /// Position in the file.
    pub span: Span,
}

/// One state: executes `op`, then continues at `next` unless the operation decides otherwise.
#[derive(Clone, Debug, PartialEq)]
pub struct State {
    /// The step it was lowered from.
    pub name: Name,
    /// The scope it is directly in.
    pub scope: ScopeId,
    /// The operation.
    pub op: Op,
    /// The next state. An operation that ends its scope points at itself.
    pub next: StateId,
    /// The action whose record it writes.
    pub action: Option<ActionId>,
    /// Position in the file.
    pub span: Span,
}

/// What a state does.
#[derive(Clone, Debug, PartialEq)]
pub enum Op {
    /// Requests an effect and waits for it. The names are the secrets in its inputs.
    Call(Call, Vec<Name>),
    /// Changes variables.
    Assign {
        /// In order.
        assignments: Vec<Assignment>,
        /// The record's output; `None`: the last variable's new value.
        output: Option<Template>,
    },
    /// Computes the record's output.
    Compose(Template),
    /// Continues at the first arm that holds, else at `next`.
    Branch(Vec<(Condition, StateId)>),
    /// Continues at what follows the preceding call as a part of it, else at `next`.
    FollowUp { when: Condition, to: StateId },
    /// Continues at the case that equals, else at `next`.
    Switch {
        on: Template,
        cases: Vec<(Value, StateId)>,
    },
    /// Pushes a frame and continues at the scope's body; `next` is where the scope leads.
    Enter(ScopeId),
    /// Counts an entered node of the innermost graph.
    Visit,
    /// The end of a loop's body: the iteration boundary.
    Repeat,
    /// Ends the loop or foreach that it is directly in.
    Break,
    /// The end of a block's, try's or deadline's body.
    Leave,
    /// The end of a branch.
    Join,
    /// Sleeps for a duration or until an instant.
    Sleep(Sleep),
    /// Waits for a signal; its payload is the output.
    AwaitSignal(AwaitedSignal),
    /// Raises a fault unless the output of an action meets the expectation.
    Expect(ActionId, Expect),
    /// Raises a fault.
    Raise { kind: Name, message: Template },
    /// Records the run's response.
    Respond(Template),
    /// Ends the run with a status and an error.
    Terminate {
        /// Succeeded, Failed or Cancelled.
        status: Status,
        /// `{code, message}`.
        error: Option<Template>,
    },
    /// The end of the root scope: the run succeeded.
    Succeed,
}

/// A scope: a frame of a cursor is one entry into it.
#[derive(Clone, Debug, PartialEq)]
pub struct Scope {
    /// The step that it belongs to, for people.
    pub name: Name,
    /// The enclosing scope.
    pub parent: Option<ScopeId>,
    /// What kind of scope, and its parameters.
    pub kind: ScopeKind,
    /// Where its body begins. Not used for forks: each branch has its own.
    pub body: StateId,
    /// Where it leads when it ends.
    pub exit: StateId,
    /// The action whose record it writes when it ends.
    pub action: Option<ActionId>,
    /// The actions directly inside: what `result('name')` lists.
    pub children: Vec<ActionId>,
    /// All actions inside, at any depth.
    pub action_range: Range<u32>,
}

/// What a scope does with its body.
#[derive(Clone, Debug, PartialEq)]
pub enum ScopeKind {
    /// The whole run.
    Root,
    /// A group of steps.
    Block,
    /// Steps that follow a call as a part of it.
    FollowUp,
    /// Nodes and edges, with a maximum number of entered nodes.
    Graph {
        /// Maximum number of entered nodes.
        max_steps: u32,
    },
    /// Repeats its body; the name is the authored type: `until`, `while`, …
    Loop(Name, LoopSpec),
    /// Retries and catches.
    Try {
        retry: Option<RetryPolicy>,
        /// The variable for the fault, and the state that handles it.
        catch: Option<(Name, StateId)>,
    },
    /// Cancels its body after a time.
    Deadline {
        /// The time.
        after: Template,
    },
    /// Runs its branch once per item.
    ForEach {
        items: Template,
        /// Maximum number of items.
        count: Option<Template>,
        /// Maximum number of concurrent items.
        concurrency: u32,
        /// What a failed item does to the others.
        on_error: OnError,
        branch: ScopeId,
    },
    /// Runs all its branches at once.
    Parallel {
        branches: Vec<(Name, ScopeId)>,
        /// Whether each branch has a copy of the variables.
        isolated: bool,
    },
    /// Runs its nodes as their predecessors end.
    Dag { nodes: Vec<DagNode> },
    /// One branch of a fork: the bottom frame of a cursor of its own.
    Branch,
}

/// A loop's parameters.
pub type LoopSpec = Loop<(), ActionId>;

#[derive(Clone, Debug, PartialEq)]
pub struct DagNode {
    pub action: ActionId,
    pub branch: ScopeId,
    /// Predecessors, as indices into the DAG's nodes, and the statuses after which this node runs.
    pub after: Vec<(usize, Vec<Status>)>,
    /// Indices of the nodes that wait for it.
    pub waited_by: Vec<usize>,
}

impl Program {
    /// Returns true if a foreach of it continues after failed items and lists them.
    #[must_use]
    pub fn lists_failed_items(&self) -> bool {
        let lists = |scope: &Scope| {
            let ScopeKind::ForEach { on_error, .. } = &scope.kind else {
                return false;
            };
            *on_error == OnError::Continue
        };
        self.scopes.iter().any(lists)
    }

    /// Removes the values between runs from what the engine passes at the start, and returns them. A value that the
    /// engine does not pass has its initial value. Returns `None` if the program declares no such values.
    pub(crate) fn take_state(&self, start: &mut Value) -> Option<Value> {
        if self.state_values.is_empty() {
            return None;
        }
        let mut rest = start.as_object().cloned().unwrap_or_default();
        let passed = rest.shift_remove(STATE_VARIABLE).unwrap_or_default();
        *start = Value::object(rest);
        let values = self.state_values.iter().map(|(name, initial)| {
            let passed = passed.get(name).cloned();
            let first =
                || Value::from_pairs([("value", initial.clone()), ("version", Value::Int(0))]);
            (name.clone(), passed.unwrap_or_else(first))
        });
        Some(Value::from_pairs(values))
    }

    #[must_use]
    pub fn state(&self, id: StateId) -> Option<&State> {
        self.states.get(id.index())
    }

    #[must_use]
    pub fn scope(&self, id: ScopeId) -> Option<&Scope> {
        self.scopes.get(id.index())
    }

    #[must_use]
    pub fn action(&self, id: ActionId) -> Option<&Action> {
        self.actions.get(id.index())
    }

    /// Returns the names of the signals that its steps wait for.
    #[must_use]
    pub fn signals(&self) -> BTreeSet<Name> {
        let awaited = self.states.iter().filter_map(|state| match &state.op {
            Op::AwaitSignal(awaited) => Some(awaited.name.clone()),
            _ => None,
        });
        awaited.collect()
    }

    /// Returns true if an action may have the address of a signal's callback.
    #[must_use]
    pub fn has_callback(&self, signal: &str) -> bool {
        let secret = callback_secret(signal);
        self.states.iter().any(|state| match &state.op {
            Op::Call(_, secrets) => secrets.iter().any(|name| **name == *secret),
            _ => false,
        })
    }

    /// Returns the form of a signal's answers; `None`: any payload. All waits for one name have the same form.
    #[must_use]
    pub fn form(&self, signal: &str) -> Option<&Form> {
        self.states.iter().find_map(|state| match &state.op {
            Op::AwaitSignal(awaited) if *awaited.name == *signal => {
                awaited.question.as_deref().map(|question| &question.form)
            }
            _ => None,
        })
    }

    /// Finds an action by its name, without case.
    #[must_use]
    pub fn find_action(&self, name: &str) -> Option<ActionId> {
        let place = self.by_name.binary_search_by(|id| {
            let action = self.action(*id).map_or("", |action| &*action.name);
            without_case(action, name)
        });
        place
            .ok()
            .and_then(|place| self.by_name.get(place))
            .copied()
    }

    /// Sorts actions into the order that [`Program::find_action`] searches in.
    #[must_use]
    pub fn sorted_by_name(actions: &[Action]) -> Vec<ActionId> {
        let mut named: Vec<(&str, ActionId)> = actions
            .iter()
            .enumerate()
            .map(|(index, action)| (&*action.name, ActionId::from_index(index)))
            .collect();
        named.sort_by(|(a, _), (b, _)| without_case(a, b));
        named.into_iter().map(|(_, id)| id).collect()
    }

    /// Finds a scope by the name of its step, without case; of several, the outermost.
    #[must_use]
    pub fn find_scope(&self, name: &str) -> Option<ScopeId> {
        let same = |scope: &Scope| {
            let part = matches!(scope.kind, ScopeKind::Deadline { .. } | ScopeKind::FollowUp);
            scope.action.is_some() && !part && scope.name.eq_ignore_ascii_case(name)
        };
        self.scopes.iter().position(same).map(ScopeId::from_index)
    }

    /// Returns the scopes from `scope` up to the root, `scope` first.
    pub fn ancestry(&self, scope: ScopeId) -> impl Iterator<Item = (ScopeId, &Scope)> {
        let mut next = Some(scope);
        std::iter::from_fn(move || {
            let id = next?;
            let scope = self.scope(id)?;
            next = scope.parent;
            Some((id, scope))
        })
    }
}

fn without_case(a: &str, b: &str) -> Ordering {
    let lower = |byte: u8| byte.to_ascii_lowercase();
    a.bytes().map(lower).cmp(b.bytes().map(lower))
}
