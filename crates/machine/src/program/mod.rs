//! The compiled form of a workflow: a table of states in a tree of scopes.
//!
//! A program is immutable and addressed by the hash of what it was compiled from; a run pins that
//! hash. Nothing here runs, and nothing here knows the format a workflow was written in.

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
    /// What it was compiled from, hashed.
    pub hash: ProgramHash,
    /// The workflow's name.
    pub name: Name,
    /// The word of the format it was written in, for people.
    pub format: &'static str,
    /// What that format decides about a run.
    pub rules: Rules,
    /// Where a run begins.
    pub entry: StateId,
    /// What is done when the body has ended, where there is such a thing.
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
    /// Where variables and outputs are written.
    pub places: NamedSpans,
    /// What a variable may hold, where that was declared: names without case.
    pub types: Vec<(Name, InputKind)>,
    /// Definition parameters and other constants.
    pub parameters: Vec<(Name, Value)>,
    /// What starts a run, where the file says: its input is what that delivers.
    pub trigger: Option<Trigger>,
    /// When runs start automatically.
    pub schedule: Option<Schedule>,
    /// What else starts runs of the saved workflow.
    pub event_triggers: EventTriggers,
    /// Which of its runs exclude each other.
    pub concurrency: Option<Concurrency>,
    /// How often its actions call a host, over all runs.
    pub rates: Vec<HostRate>,
    /// What the caller gives.
    pub inputs: Vec<Input>,
    /// What a run gives.
    pub outputs: Outputs,
    /// Handlers declared in the file.
    pub handlers: Vec<Handler>,
    /// Which values go from where to where, for people.
    pub links: Vec<Link>,
    /// The values that it has between its runs, and what each is before it is written.
    pub state_values: Vec<(Name, Value)>,
    /// Whether it reads its last run that succeeded.
    pub last_run: bool,
    /// The variables of the environment that are stored with a run, as they were when it began.
    pub environment: Vec<Name>,
    /// Those that only actions read, and nothing keeps.
    pub environment_secrets: Vec<Name>,
    /// Whether anything of its runs is secure: without that, nothing has to be looked for.
    pub secure: bool,
    /// The operator's caps on what a loop may ask for; they also hold for computed limits.
    pub caps: Caps,
}

/// What is done when the body of a workflow has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ending {
    pub body: ScopeId,
    /// Where it continues when the body failed.
    pub failed: StateId,
    /// Where it continues when it did not.
    pub ended: StateId,
    /// Where it continues when the run is cancelled; none: it ends at once.
    pub cancelled: Option<StateId>,
}

/// The most a loop may ask for (docs/reference/loom.md).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caps {
    /// Iterations.
    pub count: u64,
    /// Time.
    pub timeout: Duration,
}

/// A named thing that leaves a record.
#[derive(Clone, Debug, PartialEq)]
pub struct Action {
    /// Its name as written.
    pub name: Name,
    /// Its authored type.
    pub label: Name,
    /// What people call it, where that is not the name.
    pub title: Option<Name>,
    /// What its record holds instead of its own output, the variable `result`, when it succeeded.
    pub output: Option<Template>,
    /// The scope it is directly in.
    pub scope: ScopeId,
    /// Named by the dialect, not by the author: its output counts as that of what contains it.
    pub anonymous: bool,
    /// Its output is what it was given.
    pub gives_inputs: bool,
    /// Which parts of it are secure.
    pub secure: Secured,
    /// Where it is written.
    pub span: Span,
}

/// One state: do `op`, then go to `next` unless the operation says otherwise.
#[derive(Clone, Debug, PartialEq)]
pub struct State {
    /// The step it was lowered from.
    pub name: Name,
    /// The scope it is directly in.
    pub scope: ScopeId,
    /// What is done.
    pub op: Op,
    /// What comes after it. An operation that ends its scope points at itself.
    pub next: StateId,
    /// Whose record it writes.
    pub action: Option<ActionId>,
    /// Where it comes from.
    pub span: Span,
}

/// What a state does.
#[derive(Clone, Debug, PartialEq)]
pub enum Op {
    /// Asks the world for something and waits for it; with the secrets that its inputs hold.
    Call(Call, Vec<Name>),
    /// Changes variables.
    Assign {
        /// In order.
        assignments: Vec<Assignment>,
        /// The record's output; none: the last variable's new value.
        output: Option<Template>,
    },
    /// Computes the record's output.
    Compose(Template),
    /// Goes to the first arm that holds, else to `next`.
    Branch(Vec<(Condition, StateId)>),
    /// Goes to what follows the call before it as a part of it, else to `next`.
    FollowUp { when: Condition, to: StateId },
    /// Goes to the case that equals, else to `next`.
    Switch {
        on: Template,
        cases: Vec<(Value, StateId)>,
    },
    /// Pushes a frame and goes to the scope's body; `next` is where the scope leads.
    Enter(ScopeId),
    /// Counts an entered node of the innermost graph.
    Visit,
    /// The end of a loop's body: the iteration boundary.
    Repeat,
    /// Ends the loop or foreach it is directly in.
    Break,
    /// The end of a block's, try's or deadline's body.
    Leave,
    /// The end of a branch.
    Join,
    /// Sleeps for a duration or until an instant.
    Sleep(Sleep),
    /// Waits for a signal; its payload is the output.
    AwaitSignal(AwaitedSignal),
    /// Raises a fault unless the output of an action is what it must be.
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
    /// The step it belongs to, for people.
    pub name: Name,
    /// The scope around it.
    pub parent: Option<ScopeId>,
    /// What kind of scope, and its parameters.
    pub kind: ScopeKind,
    /// Where its body begins. For forks: not used, each branch has its own.
    pub body: StateId,
    /// Where it leads when it is left at its end.
    pub exit: StateId,
    /// Whose record it writes when it ends.
    pub action: Option<ActionId>,
    /// The actions directly inside: what `result('name')` lists.
    pub children: Vec<ActionId>,
    /// All actions inside, at any depth.
    pub inner: Range<u32>,
}

/// What a scope does with its body.
#[derive(Clone, Debug, PartialEq)]
pub enum ScopeKind {
    /// The whole run.
    Root,
    /// Steps as one.
    Block,
    /// What follows a call as a part of it.
    FollowUp,
    /// Nodes and edges; bounded.
    Graph {
        /// How many nodes may be entered.
        max_steps: u32,
    },
    /// Repeats its body; the name is the authored type: `until`, `while`, …
    Loop(Name, LoopSpec),
    /// Retries and catches.
    Try {
        retry: Option<RetryPolicy>,
        /// The variable for the fault, and where to go with it.
        catch: Option<(Name, StateId)>,
    },
    /// Cuts its body.
    Deadline {
        /// After how long.
        after: Template,
    },
    /// Runs its branch once per item.
    ForEach {
        items: Template,
        /// How many of them at most.
        count: Option<Template>,
        /// How many at a time.
        concurrency: u32,
        /// What an item that fails does to the others.
        on_error: OnError,
        branch: ScopeId,
    },
    /// Runs all its branches at once.
    Parallel {
        branches: Vec<(Name, ScopeId)>,
        /// Whether each has a copy of the variables to itself.
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
    /// Predecessors, as indices into the DAG's nodes, and the statuses that let it run.
    pub after: Vec<(usize, Vec<Status>)>,
    /// Those that wait for it, as indices, too.
    pub waited_by: Vec<usize>,
}

impl Program {
    /// Whether a foreach of it continues after items that failed, and lists them.
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

    /// The values between runs as a run begins with them: those that the engine passes, taken out of what it
    /// passes, and the initial ones, if the program declares any.
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

    /// The signals that something in it waits for.
    #[must_use]
    pub fn signals(&self) -> BTreeSet<Name> {
        let awaited = self.states.iter().filter_map(|state| match &state.op {
            Op::AwaitSignal(awaited) => Some(awaited.name.clone()),
            _ => None,
        });
        awaited.collect()
    }

    /// Whether an action may have the address of a signal's callback.
    #[must_use]
    pub fn has_callback(&self, signal: &str) -> bool {
        let secret = callback_secret(signal);
        self.states.iter().any(|state| match &state.op {
            Op::Call(_, secrets) => secrets.iter().any(|name| **name == *secret),
            _ => false,
        })
    }

    /// Which answers a signal may carry; none: any payload. All waits for one name have the same form.
    #[must_use]
    pub fn form(&self, signal: &str) -> Option<&Form> {
        self.states.iter().find_map(|state| match &state.op {
            Op::AwaitSignal(awaited) if *awaited.name == *signal => {
                awaited.question.as_deref().map(|question| &question.form)
            }
            _ => None,
        })
    }

    /// An action by its name, without case.
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

    /// The order that [`Program::find_action`] searches in.
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

    /// A scope by the name of the step it belongs to, without case; the outermost of that name.
    #[must_use]
    pub fn find_scope(&self, name: &str) -> Option<ScopeId> {
        let same = |scope: &Scope| {
            let part = matches!(scope.kind, ScopeKind::Deadline { .. } | ScopeKind::FollowUp);
            scope.action.is_some() && !part && scope.name.eq_ignore_ascii_case(name)
        };
        self.scopes.iter().position(same).map(ScopeId::from_index)
    }

    /// The scopes from `scope` up to the root, `scope` first.
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
