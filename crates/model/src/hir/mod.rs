//! The structured tree that every dialect lowers to: sequences, DAGs, graphs, loops, tries, branches and calls.
//! Only names in it are unresolved. Nothing here runs.

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
    /// The workflow's own name, or one made from the file's.
    pub name: Name,
    /// The format it was written in.
    pub dialect: Dialect,
    /// What the format decides about a run.
    pub rules: Rules,
    /// The inputs that a caller passes.
    pub inputs: Vec<Input>,
    /// Initial values, evaluated in order when the run starts.
    pub variables: Vec<(Name, Template)>,
    /// The values that it retains between runs, with their initial values.
    pub state: Vec<(Name, Value)>,
    /// Whether it reads its last successful run.
    pub last_run: bool,
    /// Declared types of variables (Azure).
    pub types: Vec<(Name, InputKind)>,
    /// Definition parameters with their resolved values (Azure).
    pub parameters: Vec<(Name, Value)>,
    /// What starts a run, if the file specifies it (Azure).
    pub trigger: Option<Trigger>,
    /// When runs start automatically.
    pub schedule: Option<Schedule>,
    /// Other events that start runs of the saved workflow.
    pub event_triggers: EventTriggers,
    /// Which of its runs exclude each other.
    pub concurrency: Option<Concurrency>,
    /// Limits on how often its actions call a host.
    pub rates: Vec<HostRate>,
    /// Its steps.
    pub body: Block,
    /// The steps after the body failed, and the steps after the body ended in any way; either may be empty.
    /// Both read the variable [`FAILURE`], and neither changes how the run ends.
    pub on_failure: Block,
    pub on_finish: Block,
    /// The steps before these two, also of a run that is cancelled: they cancel operations that run elsewhere.
    pub cleanup: Block,
    /// A call before the run ends as succeeded. If the call fails, the run fails.
    pub at_success: Option<Call>,
    /// The outputs of a run.
    pub outputs: Outputs,
    /// Handlers for activities, actors and connectors declared in the file.
    pub handlers: Vec<Handler>,
    /// Which values are passed from where to where, for people (canvas).
    pub links: Vec<Link>,
    /// The environment variables that it reads.
    pub environment: Vec<EnvironmentRead>,
    /// The scripts whose text does not depend on a run (TEA).
    pub scripts: Vec<Script>,
    /// The steps with secure inputs or outputs; this includes their inner steps.
    pub secure: Vec<Secure>,
    /// Positions of its values.
    pub places: NamedSpans,
    /// Position of its beginning in the file.
    pub span: Span,
}

/// An environment variable that a workflow reads.
#[derive(Clone, Debug)]
pub struct EnvironmentRead {
    pub name: Name,
    /// Whether it is a secret. Only the inputs of an action may contain a secret, and it is never stored. Other
    /// variables are stored with the run, as they were when it began.
    pub secret: bool,
    /// Position where it is read first.
    pub span: Span,
}

/// A step whose inputs or outputs are secure.
#[derive(Clone, Debug)]
pub struct Secure {
    pub step: Name,
    pub what: Secured,
    /// Position in the file.
    pub span: Span,
}

/// A script as its author wrote it, so that its syntax can be checked before anything runs.
#[derive(Clone, Debug)]
pub struct Script {
    /// Its executor: `python`, `lua`, `prolog`.
    pub executor: &'static str,
    pub code: String,
    /// Position of each of its lines in the file.
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
    /// Each step starts when its predecessors ended as required; independent steps run concurrently.
    Dag(Vec<DagStep>),
    /// A graph: the edges of the step that ended determine the next step.
    Graph(Graph),
}

/// A handler that a step calls by a name known before it runs.
#[derive(Clone, Debug)]
pub struct HandlerUse<'a> {
    /// `activity`, `actor` or `connector`.
    pub executor: &'a str,
    /// The handler's name; for a connector, `connector/operation`.
    pub name: &'a str,
    /// Alternative names, in the order of the search.
    pub others: Vec<String>,
    /// The step that calls it.
    pub step: &'a Step,
}

impl HandlerUse<'_> {
    /// Returns all names, the first one first.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        [self.name]
            .into_iter()
            .chain(self.others.iter().map(String::as_str))
    }
}

impl Workflow {
    /// Returns all its blocks: its body, and what follows the body.
    #[must_use]
    pub fn blocks(&self) -> [&Block; 4] {
        [&self.body, &self.on_failure, &self.cleanup, &self.on_finish]
    }

    /// Returns the handlers that its steps call, in the order of the file.
    #[must_use]
    pub fn handler_uses(&self) -> Vec<HandlerUse<'_>> {
        let calls = self.calls().into_iter();
        let used = calls.filter_map(|(step, call)| {
            let name = call.inputs.member(&format!("{}Type", call.executor))?;
            Some(HandlerUse {
                executor: &call.executor,
                name,
                others: others(call),
                step,
            })
        });
        used.collect()
    }

    /// Returns its calls, at any depth, in the order of the file.
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

    /// Returns its steps, at any depth, in the order of the file.
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
    /// Returns the blocks directly inside this step, including the handler of its failure.
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
    /// Returns true if it has no step.
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
    /// The steps that must have ended, and their required statuses; empty: it starts at once.
    pub after: Vec<After>,
}

/// One predecessor of a step in a DAG.
#[derive(Clone, Debug)]
pub struct After {
    /// The predecessor.
    pub name: Name,
    /// The statuses after which the step runs; never empty.
    pub statuses: Vec<Status>,
    /// Position in the file.
    pub span: Span,
}

/// A graph of nodes and edges.
#[derive(Clone, Debug)]
pub struct Graph {
    /// The first node; `None`: an empty graph, which ends at once.
    pub entry: Option<Name>,
    pub nodes: Vec<Node>,
    /// Maximum number of entered nodes in all. Above: a fault of kind `limit`.
    pub max_steps: u32,
}

/// A node of a graph.
#[derive(Clone, Debug)]
pub struct Node {
    pub step: Step,
    /// Its outgoing edges: the first that holds is taken. If none holds: a fault of kind `edge`.
    pub edges: Vec<Edge>,
}

/// An edge of a graph.
#[derive(Clone, Debug)]
pub struct Edge {
    /// When it is taken; `None`: always.
    pub when: Option<Condition>,
    /// Where it leads; `None`: to the end of the graph.
    pub to: Option<Name>,
    /// Position in the file.
    pub span: Span,
}

/// A named step. Its outcome is the record of an action with this name.
#[derive(Clone, Debug)]
pub struct Step {
    /// Unique in the workflow, without case. If the author wrote no name, the dialect makes one.
    pub name: Name,
    /// The authored type, for `actions()`, events and status: `http`, `until`, …
    pub label: Name,
    /// Display name, if it differs from the name.
    pub title: Option<Name>,
    /// Whether the dialect made the name. If this step is alone in a block, its output is the output of the block.
    pub anonymous: bool,
    pub kind: StepKind,
    /// The template for the record's output when it succeeds.
    /// The variable `result` is its own output; that of a loop also has `kept`, see [`Keep`].
    pub output: Option<Template>,
    /// What its output must be; if it is not, the attempt has failed.
    pub expect: Option<Expect>,
    /// Retries of the whole step.
    pub retry: Option<RetryPolicy>,
    /// Timeout of the step with all its attempts. It raises a fault of kind `timeout`.
    pub timeout: Option<Template>,
    /// Steps that follow as a part of it, within its timeout.
    pub follow_up: Option<Box<FollowUp>>,
    /// Whether it repeats the earlier step of the same name.
    /// It then has no action of its own, and its output replaces the output of the earlier step.
    pub is_repeat: bool,
    /// The steps after it failed for good, after its retries and its timeout.
    /// The failure then counts as handled, but remains in its record.
    pub catch: Option<Block>,
    /// Checked after the step: ends the innermost enclosing loop.
    pub break_when: Option<Condition>,
    /// Checked after the step: begins the next iteration of the innermost enclosing loop.
    pub continue_when: Option<Condition>,
    /// Position of its name in the file.
    pub span: Span,
}

/// Steps that follow a call as a part of its step. In lists and diagrams, both are one step.
#[derive(Clone, Debug)]
pub struct FollowUp {
    /// Whether they run, once the call has succeeded.
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
    /// Several assignments at once. The record's output is `output`, or else the new value of the last variable.
    Assign(Assign),
    Wait(Wait),
    /// Waits for a signal's payload, at most until the step's `timeout`.
    AwaitSignal(AwaitedSignal),
    /// A group of steps (scope).
    Block(Block),
    /// Runs the first arm that holds.
    If {
        /// Conditions and their steps.
        arms: Vec<(Condition, Block)>,
        /// The steps if no arm holds.
        otherwise: Block,
    },
    /// Runs the case that equals the value.
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
        /// Whether each branch has its own copy of the variables, which is dropped when the branch ends.
        /// The result is then a list of the branches' results, else a map.
        isolated: bool,
    },
    /// Runs `body`. If no retry handles a fault of it, the fault is bound to the variable `error`, and `handler`
    /// runs. After that the step counts as succeeded.
    Catch {
        /// The steps that may fail.
        body: Block,
        /// The variable that gets `{kind, code, message, action, …}`.
        /// If it is empty, the fault is only in the record of the failed step.
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
    /// Records the run's output (Azure `Response`).
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
    /// Timeout of one attempt; `None`: the executor's default.
    pub attempt_timeout: Option<Template>,
    /// Assignments of the outcome to variables.
    pub then: Vec<Assignment>,
}

/// One or more assignments.
#[derive(Clone, Debug)]
pub struct Assign {
    /// In order; each reads the results of the earlier ones.
    pub assignments: Vec<Assignment>,
    /// The step's output; `None`: the new value of the last variable.
    pub output: Option<Template>,
}

/// One assignment to a variable.
#[derive(Clone, Debug, PartialEq)]
pub struct Assignment {
    /// The variable; empty for operations on many variables: `MergeAll`, `ReplaceAll`, `RemoveAll`.
    pub variable: Name,
    /// How the value is assigned.
    pub op: AssignOp,
    /// The value. In a call's `then`, the variable `result` is the executor's result.
    pub value: Template,
    /// Position in the file.
    pub span: Span,
}

/// A loop; its number of iterations is always limited.
/// In a compiled program, which has its body elsewhere, `Of` is an id.
#[derive(Clone, Debug, PartialEq)]
pub struct Loop<Body = Block, Of = Name> {
    /// Its name in paths, if that differs from the name of its step. Unique among the loops of the workflow.
    pub name: Option<Name>,
    /// When the condition is checked.
    pub test: Test,
    /// The loop stops when this is true.
    /// For a loop that continues while its condition is true, it is the negated condition.
    pub stop_when: Condition,
    /// The authored condition, before any negation, for status and diagrams.
    pub condition_text: String,
    /// Whether `condition_text` is the negation of `stop_when`.
    /// Events and rows show the value of the authored condition.
    pub negated: bool,
    /// Maximum number of iterations; a whole number.
    pub count: Template,
    /// Maximum time in all, from the first start, on the wall clock; `None`: no deadline, in formats that have none.
    pub timeout: Option<Template>,
    /// Maximum number of tokens of language models that its actions use; a whole number.
    pub tokens: Option<Template>,
    /// Maximum cost of its actions, in the author's unit; a number.
    pub cost: Option<Template>,
    /// Delay between iterations: never before the first, never after the last.
    pub delay: Option<Delay>,
    /// The effect of a missing member in the condition.
    pub on_missing: OnMissing,
    /// What happens when the maximum number of iterations is reached.
    pub on_limit: OnLimit,
    /// What happens when the deadline passes.
    pub on_timeout: OnLimit,
    /// Whether the condition is checked once more when the count is used up: true except in TEA.
    pub test_when_spent: bool,
    /// Whether a failed body does not stop the loop (Azure); the status of the last iteration counts.
    pub survives_failure: bool,
    /// The values to collect from every iteration that succeeded.
    pub keep: Vec<Keep<Of>>,
    /// What distinguishes its pages, if it reads pages.
    pub pages: Option<Pages>,
    /// When it makes no progress, which is a limit, too.
    pub unchanged: Option<Unchanged>,
    /// Whether the next iteration may read what the condition read: `loopFeedback`.
    pub feedback: bool,
    pub body: Body,
}

/// A value to collect from the iterations of a loop, for the output of its step.
#[derive(Clone, Debug, PartialEq)]
pub struct Keep<Of = Name> {
    /// Its name under `kept`.
    pub name: Name,
    /// The iterations that it is collected from.
    pub take: CollectMode,
    /// The step of the body that it depends on.
    /// An iteration in which this step did not succeed has no value, which is null in an array.
    pub of: Of,
    /// The value, evaluated at the end of the iteration.
    pub value: Template,
}

/// A loop over items. Each iteration has its own results; the output is the array of these.
#[derive(Clone, Debug)]
pub struct ForEach {
    /// The items: an array.
    pub items: Template,
    /// Maximum number of items, which is a limit like that of a loop; `None`: all items.
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
    /// How the waits grow.
    pub backoff: Backoff,
    /// Maximum number of retries after the first attempt; a whole number.
    pub count: Template,
    /// Which faults are retried. If empty: those that the executor marks as transient (http: 408, 429, 5xx, timeouts,
    /// connection errors; others: any).
    pub on: Vec<RetryOn>,
    /// Retries only while this holds; without `on`, only this decides.
    pub when: Option<Condition>,
    /// Whether it is the default, because the file has no policy.
    pub is_default: bool,
    /// Position in the file.
    pub span: Span,
}
