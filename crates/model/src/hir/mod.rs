//! The structured tree that every dialect lowers to: sequences, DAGs, graphs, loops, tries, branches and calls.
//! Steps refer to each other by name; everything else is resolved. Nothing here runs.

use crate::model::{
    AssignOp, AwaitedSignal, Backoff, CollectMode, Concurrency, Delay, Dialect, EventTriggers,
    Expect, HANDLER_NAMES, Handler, HostRate, Input, InputKind, Link, Name, NamedSpans, OnError,
    OnLimit, OnMissing, Pages, RetryOn, Rules, Schedule, Secured, Status, Test, Trigger, Unchanged,
};
use windlass_expression::{Condition, Reference, Template, Value, environment_secret};
use windlass_source::source::Span;

pub use crate::model::{Outputs, Sleep as Wait};

/// A whole workflow.
#[derive(Clone, Debug)]
pub struct Workflow {
    /// The workflow's own name. If the file has none, a name made from the file's name.
    pub name: Name,
    /// The format it was written in.
    pub dialect: Dialect,
    /// What the format decides about a run.
    pub rules: Rules,
    /// The inputs that a caller passes.
    pub inputs: Vec<Input>,
    /// Initial values, evaluated in order when the run starts.
    pub variables: Vec<(Name, Template)>,
    /// The values that the workflow retains between runs, with their initial values.
    pub state: Vec<(Name, Value)>,
    /// Whether the workflow reads its last successful run.
    pub last_run: bool,
    /// Declared types of variables, as in Logic Apps.
    pub types: Vec<(Name, InputKind)>,
    /// Definition parameters with their resolved values, as in Logic Apps.
    pub parameters: Vec<(Name, Value)>,
    /// What starts a run, if the file specifies it, as in Logic Apps.
    pub trigger: Option<Trigger>,
    /// When runs start automatically.
    pub schedule: Option<Schedule>,
    /// Other events that start runs of the saved workflow.
    pub event_triggers: EventTriggers,
    /// Which runs of the workflow exclude each other.
    pub concurrency: Option<Concurrency>,
    /// Limits on how often the workflow's actions call a host.
    pub rates: Vec<HostRate>,
    /// The workflow's steps.
    pub body: Block,
    /// The steps that run after the body has failed. `on_finish` has the steps that run after the body has ended in
    /// any way.
    /// Either may be empty. Both read the variable `failure`, and neither changes how the run ends.
    pub on_failure: Block,
    pub on_finish: Block,
    /// The steps that run before `on_failure` and `on_finish`, even if the run is cancelled. They cancel operations
    /// that still run elsewhere.
    pub cleanup: Block,
    /// A call that is made before the run ends as succeeded. If the call fails, the run fails.
    pub at_success: Option<Call>,
    /// The outputs of a run.
    pub outputs: Outputs,
    /// Handlers for activities, actors and connectors declared in the file.
    pub handlers: Vec<Handler>,
    /// The values that are passed between steps, for people to read. Only canvas has links.
    pub links: Vec<Link>,
    /// The environment variables that the workflow reads.
    pub environment: Vec<EnvironmentRead>,
    /// The scripts whose text does not depend on a run. Only TEA has them.
    pub scripts: Vec<Script>,
    /// The steps with secure inputs or outputs, and the steps inside these.
    pub secure: Vec<Secure>,
    /// Positions of the workflow's values in the file.
    pub places: NamedSpans,
    /// Position of the workflow's beginning in the file.
    pub span: Span,
}

/// An environment variable that a workflow reads.
#[derive(Clone, Debug)]
pub struct EnvironmentRead {
    pub name: Name,
    /// Whether the variable is a secret. Only the inputs of an action may contain a secret, and a secret is never
    /// stored.
    /// A variable that is not a secret is stored with the run, with the value that it had when the run began.
    pub secret: bool,
    /// Position where the variable is read first.
    pub span: Span,
}

/// A step whose inputs or outputs are secure.
#[derive(Clone, Debug)]
pub struct Secure {
    pub step: Name,
    pub what: Secured,
    pub span: Span,
}

/// A script as its author wrote it, so that its syntax can be checked before anything runs.
#[derive(Clone, Debug)]
pub struct Script {
    /// The script's executor: `python`, `lua`, `prolog`.
    pub executor: &'static str,
    pub code: String,
    /// Position of each line of the script in the file.
    pub lines: Vec<Span>,
}

impl Workflow {
    /// Returns true if an environment variable is a secret.
    #[must_use]
    pub fn is_secret(&self, variable: &str) -> bool {
        let mut reads = self.environment.iter();
        reads.any(|read| read.secret && *read.name == *variable)
    }

    /// Returns the secrets that the inputs of a call name, including those of the environment.
    #[must_use]
    pub fn secrets_of(&self, call: &Call) -> Vec<Name> {
        let named = call.inputs.references().into_iter();
        let secrets = named.filter_map(|reference| match reference {
            Reference::Environment(name) if self.is_secret(&name) => {
                Some(Name::from(environment_secret(&name)))
            }
            Reference::Secret(name) => Some(Name::from(name)),
            _ => None,
        });
        secrets.collect()
    }
}

/// Steps and their order.
#[derive(Clone, Debug)]
pub enum Block {
    /// One step after the other.
    Sequence(Vec<Step>),
    /// Each step starts when its predecessors have ended with a required status; independent steps run concurrently.
    Dag(Vec<DagStep>),
    /// A graph: the edges of the step that ended determine the next step.
    Graph(Graph),
}

/// A handler that a step calls. Its name is known before the step runs.
#[derive(Clone, Debug)]
pub struct HandlerUse<'a> {
    /// `activity`, `actor` or `connector`.
    pub executor: &'a str,
    /// The handler's name; for a connector, `connector/operation`.
    pub name: &'a str,
    /// Alternative names, in the order in which they are tried if no handler has `name`.
    pub others: Vec<String>,
    /// The step that calls it.
    pub step: &'a Step,
}

impl<'a> HandlerUse<'a> {
    /// Returns the handler that a call of a step needs, or `None` if the call needs none.
    #[must_use]
    pub fn of(step: &'a Step, call: &'a Call) -> Option<Self> {
        let name = call.inputs.member(&format!("{}Type", call.executor))?;
        Some(Self {
            executor: &call.executor,
            name,
            others: others(call),
            step,
        })
    }

    /// Returns `name`, then the alternative names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        [self.name]
            .into_iter()
            .chain(self.others.iter().map(String::as_str))
    }
}

impl Workflow {
    /// Returns the blocks of the workflow: its body, and those that run after the body.
    #[must_use]
    pub fn blocks(&self) -> [&Block; 4] {
        [&self.body, &self.on_failure, &self.cleanup, &self.on_finish]
    }

    /// Returns the handlers that the workflow's steps call, in the order of the file.
    #[must_use]
    pub fn handler_uses(&self) -> Vec<HandlerUse<'_>> {
        let calls = self.calls().into_iter();
        calls
            .filter_map(|(step, call)| HandlerUse::of(step, call))
            .collect()
    }

    /// Returns the calls of the workflow, at any depth, in the order of the file.
    #[must_use]
    pub fn calls(&self) -> Vec<(&Step, &Call)> {
        let calls = self
            .steps()
            .into_iter()
            .filter_map(|step| match &step.kind {
                StepKind::Call(call) => Some((step, call)),
                _ => None,
            });
        calls.collect()
    }

    /// Returns the steps of the workflow, at any depth, in the order of the file.
    #[must_use]
    pub fn steps(&self) -> Vec<&Step> {
        let mut found = Vec::new();
        let blocks = self.blocks().into_iter();
        let mut open: Vec<&Step> = blocks.flat_map(Block::steps).collect();
        open.reverse();
        while let Some(step) = open.pop() {
            found.push(step);
            let blocks = step.blocks().into_iter();
            let mut inner: Vec<&Step> = blocks.flat_map(Block::steps).collect();
            inner.reverse();
            open.extend(inner);
        }
        found
    }
}

fn others(call: &Call) -> Vec<String> {
    let source = call.inputs.source();
    let names = source.get(HANDLER_NAMES).and_then(Value::as_array);
    let names = names.into_iter().flatten().filter_map(Value::as_str);
    names.map(str::to_owned).collect()
}

impl Step {
    /// Returns the blocks directly inside this step, including the steps that handle its failure.
    #[must_use]
    pub fn blocks(&self) -> Vec<&Block> {
        let mut blocks = self.kind.blocks();
        blocks.extend(self.follow_up.iter().map(|follow_up| &follow_up.block));
        blocks.extend(&self.catch);
        blocks
    }
}

impl StepKind {
    /// Returns the blocks directly inside this step.
    #[must_use]
    pub fn blocks(&self) -> Vec<&Block> {
        match self {
            Self::Block(block) => vec![block],
            Self::If { arms, otherwise } => {
                let arms = arms.iter().map(|(_, block)| block);
                arms.chain([otherwise]).collect()
            }
            Self::Switch { cases, default, .. } => {
                let cases = cases.iter().map(|(_, block)| block);
                cases.chain([default]).collect()
            }
            Self::Loop(spec) => vec![&spec.body],
            Self::ForEach(spec) => vec![&spec.body],
            Self::Parallel { branches, .. } => branches.iter().map(|(_, block)| block).collect(),
            Self::Catch { body, handler, .. } => vec![body, handler],
            Self::Call(_)
            | Self::Compose(_)
            | Self::Assign(_)
            | Self::Wait(_)
            | Self::AwaitSignal(_)
            | Self::Terminate { .. }
            | Self::Respond(_)
            | Self::Raise { .. }
            | Self::Nothing => Vec::new(),
        }
    }
}

impl Block {
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.steps().next().is_none()
    }

    /// Returns the steps directly in this block.
    pub fn steps(&self) -> Box<dyn Iterator<Item = &Step> + '_> {
        match self {
            Self::Sequence(steps) => Box::new(steps.iter()),
            Self::Dag(steps) => Box::new(steps.iter().map(|step| &step.step)),
            Self::Graph(graph) => Box::new(graph.nodes.iter().map(|node| &node.step)),
        }
    }
}

#[derive(Clone, Debug)]
pub struct DagStep {
    pub step: Step,
    /// The steps that must have ended, and their required statuses. If this is empty, the step starts at once.
    pub after: Vec<After>,
}

/// One predecessor of a step in a DAG.
#[derive(Clone, Debug)]
pub struct After {
    /// The predecessor.
    pub name: Name,
    /// The statuses after which the step runs; never empty.
    pub statuses: Vec<Status>,
    pub span: Span,
}

/// A graph of nodes and edges.
#[derive(Clone, Debug)]
pub struct Graph {
    /// The first node. `None` if the graph is empty; such a graph ends at once.
    pub entry: Option<Name>,
    pub nodes: Vec<Node>,
    /// Maximum number of times that nodes are entered, in all. Above it, a fault of kind `limit` is raised.
    pub max_steps: u32,
}

/// A node of a graph.
#[derive(Clone, Debug)]
pub struct Node {
    pub step: Step,
    /// The node's outgoing edges. The first edge whose condition holds is taken. If none holds, a fault of kind
    /// `edge` is raised.
    pub edges: Vec<Edge>,
}

/// An edge of a graph.
#[derive(Clone, Debug)]
pub struct Edge {
    /// The condition under which the edge is taken. `None` means always.
    pub when: Option<Condition>,
    /// The node to which the edge leads. `None` means the end of the graph.
    pub to: Option<Name>,
    pub span: Span,
}

/// A named step. Its outcome is the record of an action with this name.
#[derive(Clone, Debug)]
pub struct Step {
    /// Unique in the workflow, ignoring case. If the author wrote no name, the dialect makes one.
    pub name: Name,
    /// The type that the author wrote, for `actions()`, events and status: `http`, `until`, …
    pub label: Name,
    /// Display name, if it differs from the name.
    pub title: Option<Name>,
    /// Whether the dialect made the name. If an anonymous step is alone in a block, its output is the output of the
    /// block.
    pub anonymous: bool,
    pub kind: StepKind,
    /// The template for the output in the record of a step that succeeded.
    /// In it, the variable `result` is the step's own output. The own output of a loop also has `kept`, see [`Keep`].
    pub output: Option<Template>,
    /// What the step's output must be. If it is not, the attempt has failed.
    pub expect: Option<Expect>,
    /// Retries of the whole step.
    pub retry: Option<RetryPolicy>,
    /// Timeout of the step with all its attempts. When it is over, a fault of kind `timeout` is raised.
    pub timeout: Option<Template>,
    /// Steps that follow the step's call as a part of this step, within its timeout.
    pub follow_up: Option<Box<FollowUp>>,
    /// Whether this step repeats the earlier step of the same name.
    /// A repeat has no action of its own, and its output replaces the output of the earlier step.
    pub is_repeat: bool,
    /// The steps that run after this step has failed and its retries or its timeout are used up.
    /// The failure then counts as handled, but remains in the record of the step.
    pub catch: Option<Block>,
    /// Checked after the step. If it holds, the innermost enclosing loop ends.
    pub break_when: Option<Condition>,
    /// Checked after the step. If it holds, the next iteration of the innermost enclosing loop begins.
    pub continue_when: Option<Condition>,
    /// Position of the step's name in the file.
    pub span: Span,
}

/// Steps that follow a call as a part of its step. Lists and diagrams show the call and these steps as one step.
#[derive(Clone, Debug)]
pub struct FollowUp {
    /// The condition under which these steps run, checked once the call has succeeded.
    pub when: Condition,
    pub block: Block,
}

/// What a step does.
#[derive(Clone, Debug)]
pub enum StepKind {
    /// An effect: http, shell, a handler, a script, …
    Call(Call),
    /// A computed value.
    Compose(Template),
    /// Several assignments, in order. The record's output is `output`. Without `output`, it is the new value of the
    /// last variable.
    Assign(Assign),
    Wait(Wait),
    /// Waits for the payload of a signal. The step's `timeout` limits the wait.
    AwaitSignal(AwaitedSignal),
    /// Several steps that are one step for those around it (a scope in Logic Apps).
    Block(Block),
    /// Runs the first arm whose condition holds.
    If {
        /// Conditions and their steps.
        arms: Vec<(Condition, Block)>,
        /// The steps if no arm holds.
        otherwise: Block,
    },
    /// Runs the first case whose value equals the value of `on`.
    Switch {
        on: Template,
        /// Cases, compared as `equals` does.
        /// In Loom, `1` written as a key is the text `1` and also equals the number.
        cases: Vec<(Value, Block)>,
        /// The steps if no case equals.
        default: Block,
    },
    Loop(Box<Loop>),
    /// Runs its body once per item.
    ForEach(Box<ForEach>),
    /// Runs named branches, all at once.
    Parallel {
        /// Their names and steps.
        branches: Vec<(Name, Block)>,
        /// Whether each branch has its own copy of the variables. The copy is dropped when the branch ends.
        /// The result of isolated branches is a list of the branches' results. The result of other branches is a map.
        isolated: bool,
    },
    /// Runs `body`. If a fault of `body` is not handled by a retry, it is bound to the variable `error`, and
    /// `handler` runs. After that the step counts as succeeded.
    Catch {
        /// The steps that may fail.
        body: Block,
        /// The variable that is set to the fault, `{kind, code, message, action, …}`.
        /// If the name is empty, the fault is only in the record of the failed step.
        error: Name,
        /// The steps after a fault.
        handler: Block,
    },
    /// Ends the run.
    Terminate {
        /// Succeeded, Failed or Cancelled.
        status: Status,
        /// The run's error, `{code, message}`.
        error: Option<Template>,
    },
    /// Records the run's output, as `Response` does in Logic Apps.
    Respond(Template),
    /// Raises a fault.
    Raise {
        /// The fault's kind.
        kind: Name,
        /// The fault's message.
        message: Template,
    },
    Nothing,
}

/// A request for an effect.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// The executor: `http`, `shell`, `activity`, …
    pub executor: Name,
    /// Its inputs, as the executor expects them.
    pub inputs: Template,
    /// Timeout of one attempt. `None` means the executor's default.
    pub attempt_timeout: Option<Template>,
    /// Assignments of the outcome to variables.
    pub then: Vec<Assignment>,
}

/// One or more assignments.
#[derive(Clone, Debug)]
pub struct Assign {
    /// The assignments, in order. Each reads the results of the earlier ones.
    pub assignments: Vec<Assignment>,
    /// The step's output. `None` means the new value of the last variable.
    pub output: Option<Template>,
}

/// One assignment to a variable.
#[derive(Clone, Debug, PartialEq)]
pub struct Assignment {
    /// The variable. The name is empty for the operations on many variables: `MergeAll`, `ReplaceAll`, `RemoveAll`.
    pub variable: Name,
    /// How the value is assigned.
    pub op: AssignOp,
    /// The value. In a call's `then`, the variable `result` is the executor's result.
    pub value: Template,
    pub span: Span,
}

/// A loop; its number of iterations is always limited.
/// In a compiled program the body is elsewhere, and `Of` (what [`Keep`] refers to) is an id instead of a name.
#[derive(Clone, Debug, PartialEq)]
pub struct Loop<Body = Block, Of = Name> {
    /// The loop's name in paths, if it differs from the name of its step. Unique among the loops of the workflow.
    pub name: Option<Name>,
    /// When the condition is checked.
    pub test: Test,
    /// The loop stops when this condition holds.
    /// A loop that continues while its condition is true has the negated condition here.
    pub stop_when: Condition,
    /// The condition as the author wrote it, before any negation, for status and diagrams.
    pub condition_text: String,
    /// Whether `condition_text` is the negation of `stop_when`.
    /// Events, and the stored rows of iterations, show the value of the condition that the author wrote.
    pub negated: bool,
    /// Maximum number of iterations; a whole number.
    pub count: Template,
    /// Maximum time of all iterations from the start of the first one, on the wall clock.
    /// `None` means no deadline, which only some formats allow.
    pub timeout: Option<Template>,
    /// Maximum number of tokens of language models that its actions use; a whole number.
    pub tokens: Option<Template>,
    /// Maximum cost of its actions, in the author's unit; a number.
    pub cost: Option<Template>,
    /// Delay between iterations: never before the first, never after the last.
    pub delay: Option<Delay>,
    /// What happens if the condition reads a member that does not exist.
    pub on_missing: OnMissing,
    /// What happens when the maximum number of iterations is reached.
    pub on_limit: OnLimit,
    /// What happens when the deadline passes.
    pub on_timeout: OnLimit,
    /// Whether the condition is checked once more when the maximum number of iterations is reached. False only in
    /// TEA.
    pub test_when_spent: bool,
    /// Whether the loop continues after its body has failed, as in Logic Apps. The status of the last iteration is
    /// then that of the loop.
    pub survives_failure: bool,
    /// The values to collect from every iteration that succeeded.
    pub keep: Vec<Keep<Of>>,
    /// What distinguishes its pages, if it reads pages.
    pub pages: Option<Pages>,
    /// When the loop counts as making no progress. This is a limit, too.
    pub unchanged: Option<Unchanged>,
    /// Whether the next iteration may read the values that the condition read (the variable `loopFeedback`).
    pub feedback: bool,
    pub body: Body,
}

/// A value to collect from the iterations of a loop, for the output of its step.
#[derive(Clone, Debug, PartialEq)]
pub struct Keep<Of = Name> {
    /// The name of the collected value, under `kept` of the loop's output.
    pub name: Name,
    /// The iterations from which the value is collected.
    pub take: CollectMode,
    /// The step of the body that the value depends on.
    /// An iteration in which this step did not succeed has no value. In an array, it is null.
    pub of: Of,
    /// The value, evaluated at the end of the iteration.
    pub value: Template,
}

/// A loop over items. Each iteration has its own results; the loop's output is the array of the iterations' results.
#[derive(Clone, Debug)]
pub struct ForEach {
    /// The items: an array.
    pub items: Template,
    /// Maximum number of items, which is a limit like the count of a loop. `None` means all items.
    pub count: Option<Template>,
    /// Maximum number of concurrent items, from 1.
    pub concurrency: u32,
    /// What a failed item does to the others.
    pub on_error: OnError,
    pub body: Block,
}

/// Retries of a step or a block.
#[derive(Clone, Debug, PartialEq)]
pub struct RetryPolicy {
    /// How long the waits between attempts are.
    pub backoff: Backoff,
    /// Maximum number of retries after the first attempt; a whole number.
    pub count: Template,
    /// Which faults are retried.
    /// If this is empty, those that the executor marks as transient are retried. For http these are 408, 429, 5xx,
    /// timeouts and connection errors. For other executors, they are all faults.
    pub on: Vec<RetryOn>,
    /// A retry is made only while this condition holds. If `on` is empty, only this condition decides.
    pub when: Option<Condition>,
    /// Whether the policy is the default of the format, because the file has none.
    pub is_default: bool,
    pub span: Span,
}
