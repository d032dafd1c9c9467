//! The compiled form of a workflow: a table of states in a tree of scopes.
//!
//! A program is immutable. The hash of its sources identifies it, and a run is pinned to that hash. Nothing here
//! executes a program or knows the format of a workflow.

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
    pub name: Name,
    /// The name of its format, for people.
    pub format: &'static str,
    /// The rules of the format that the machine must follow in a run.
    pub rules: Rules,
    /// Where a run begins.
    pub entry: StateId,
    /// The states at which a run continues after the body; `None` if nothing follows the body.
    pub ending: Option<Ending>,
    /// All states, by id.
    pub states: Vec<State>,
    /// All scopes, by id; the root is 0.
    pub scopes: Vec<Scope>,
    /// All actions, by id. An expression can read each of them with `actions('x')`.
    pub actions: Vec<Action>,
    /// All actions, sorted by name without case.
    pub by_name: Vec<ActionId>,
    /// Initial variables, in order.
    pub variables: Vec<(Name, Template)>,
    /// Positions of variables and outputs in the file.
    pub places: NamedSpans,
    /// Declared types of variables, by name without case.
    pub types: Vec<(Name, InputKind)>,
    /// Definition parameters and other constants.
    pub parameters: Vec<(Name, Value)>,
    /// The trigger that starts a run, if the file specifies one. The run's input is the data of the trigger.
    pub trigger: Option<Trigger>,
    /// When runs start automatically.
    pub schedule: Option<Schedule>,
    /// Other events that start runs of the saved workflow.
    pub event_triggers: EventTriggers,
    /// Which runs of the workflow exclude each other: how many runs with the same key may be in progress.
    pub concurrency: Option<Concurrency>,
    /// Limits on how often its actions call a host, over all runs.
    pub rates: Vec<HostRate>,
    /// The inputs that a caller passes.
    pub inputs: Vec<Input>,
    /// The outputs of a run.
    pub outputs: Outputs,
    /// Handlers declared in the file.
    pub handlers: Vec<Handler>,
    /// For people: which values are passed from which step to which other step.
    pub links: Vec<Link>,
    /// The values that the workflow retains between its runs, with their initial values.
    pub state_values: Vec<(Name, Value)>,
    /// Whether the program reads the workflow's last successful run.
    pub last_run: bool,
    /// Environment variables that are stored with a run, as they were when it began.
    pub environment: Vec<Name>,
    /// Environment variables that only actions read, and that are never stored.
    pub environment_secrets: Vec<Name>,
    /// Whether a run of the program may have secure values. If false, no code searches for them.
    pub secure: bool,
    /// The operator's caps on the limits of loops. They apply to computed limits, too.
    pub caps: Caps,
}

/// The states at which a run continues after the body of its workflow: cleanup, `on_failure`, `on_finish`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ending {
    pub body: ScopeId,
    /// Where the run continues if the body failed.
    pub failed: StateId,
    /// Where the run continues if the body did not fail.
    pub ended: StateId,
    /// Where the run continues when it is cancelled. If `None`, the run ends at once.
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
    /// The name as written in the file.
    pub name: Name,
    /// The type that the author wrote.
    pub label: Name,
    /// Display name, if it differs from the name.
    pub title: Option<Name>,
    /// The template that computes the record's output when the action succeeds. In the template, the variable `result`
    /// is the action's own output.
    pub output: Option<Template>,
    /// The innermost scope that contains the action.
    pub scope: ScopeId,
    /// Whether the format named the action and not the author. Then its output is used as the output of the enclosing
    /// action.
    pub anonymous: bool,
    /// Whether the action's output is its input.
    pub gives_inputs: bool,
    /// Which parts of the action (inputs, outputs) are secure.
    pub secure: Secured,
    pub span: Span,
}

/// One state: executes `op`, then continues at `next` unless the operation decides otherwise.
#[derive(Clone, Debug, PartialEq)]
pub struct State {
    /// The name of the step that the state was lowered from.
    pub name: Name,
    /// The innermost scope that contains the state.
    pub scope: ScopeId,
    pub op: Op,
    /// The next state. If the operation ends its scope, this is the state itself.
    pub next: StateId,
    /// The action whose record the state writes.
    pub action: Option<ActionId>,
    pub span: Span,
}

/// What a state does.
#[derive(Clone, Debug, PartialEq)]
pub enum Op {
    /// Requests an effect and waits for its completion. The names are those of the secrets in the inputs.
    Call(Call, Vec<Name>),
    /// Changes variables.
    Assign {
        /// The assignments, in the order in which they are executed.
        assignments: Vec<Assignment>,
        /// The template of the record's output. If `None`, the output is the last variable's new value.
        output: Option<Template>,
    },
    /// Computes the record's output.
    Compose(Template),
    /// Continues at the state of the first condition that is true. If none is true, continues at `next`.
    Branch(Vec<(Condition, StateId)>),
    /// If the condition is true, continues at steps that belong to the preceding call. If false, continues at `next`.
    FollowUp { when: Condition, to: StateId },
    /// Continues at the state of the case that equals the value. If no case does, continues at `next`.
    Switch {
        on: Template,
        cases: Vec<(Value, StateId)>,
    },
    /// Enters a scope: pushes a frame and continues at the scope's body. After the scope, the cursor continues at
    /// `next`.
    Enter(ScopeId),
    /// Counts an entered node of the innermost graph.
    Visit,
    /// The end of a loop's body: the iteration boundary.
    Repeat,
    /// Ends the innermost loop or foreach.
    Break,
    /// The end of a block's, try's or deadline's body.
    Leave,
    /// The end of a branch.
    Join,
    /// Sleeps for a duration or until an instant.
    Sleep(Sleep),
    /// Waits for a signal. The signal's payload is the output.
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

/// A scope of the program. Each time a cursor enters the scope, it gets a frame.
#[derive(Clone, Debug, PartialEq)]
pub struct Scope {
    /// The step that it belongs to, for people.
    pub name: Name,
    /// The enclosing scope.
    pub parent: Option<ScopeId>,
    /// The kind of the scope, and its parameters.
    pub kind: ScopeKind,
    /// The state at which the body begins. Not used for forks, because each branch has a body of its own.
    pub body: StateId,
    /// The state at which a cursor continues after the scope.
    pub exit: StateId,
    /// The action whose record is written when the scope ends.
    pub action: Option<ActionId>,
    /// The actions directly inside the scope. `result('name')` lists these.
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
    /// Steps that follow a call and are a part of the call's action.
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
    /// Cancels its body after a timeout.
    Deadline {
        /// The timeout.
        after: Template,
    },
    /// Runs its branch once for each item.
    ForEach {
        items: Template,
        /// Maximum number of items.
        count: Option<Template>,
        /// Maximum number of concurrent items.
        concurrency: u32,
        /// Whether further items start after an item has failed.
        on_error: OnError,
        branch: ScopeId,
    },
    /// Runs all its branches at once.
    Parallel {
        branches: Vec<(Name, ScopeId)>,
        /// Whether each branch has a copy of the variables.
        isolated: bool,
    },
    /// Runs each node when the node's predecessors have ended.
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
    /// The predecessors of the node, as indices of the DAG's nodes. Each has the statuses after which this node runs.
    pub after: Vec<(usize, Vec<Status>)>,
    /// Indices of the nodes that wait for this node.
    pub waited_by: Vec<usize>,
}

impl Program {
    /// Returns true if the program has a foreach that continues after failed items and lists them.
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

    /// Removes and returns the values that the workflow retains between its runs. `start` has the values that the
    /// engine passes when a run starts. If the engine does not pass a value, the result has the value's initial value.
    /// Returns `None` if the program declares no such values.
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

    /// Returns the names of the signals that steps of the program wait for.
    #[must_use]
    pub fn signals(&self) -> BTreeSet<Name> {
        let awaited = self.states.iter().filter_map(|state| match &state.op {
            Op::AwaitSignal(awaited) => Some(awaited.name.clone()),
            _ => None,
        });
        awaited.collect()
    }

    /// Returns true if an action's inputs may contain the callback address of a signal.
    #[must_use]
    pub fn has_callback(&self, signal: &str) -> bool {
        let secret = callback_secret(signal);
        self.states.iter().any(|state| match &state.op {
            Op::Call(_, secrets) => secrets.iter().any(|name| **name == *secret),
            _ => false,
        })
    }

    /// Returns the form that a signal's payload must fit. If `None`, any payload is accepted. All waits for signals of
    /// one name have the same form.
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

    /// Finds a scope by the name of its step, without case. If several have this name, returns the outermost.
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
