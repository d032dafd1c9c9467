//! The one structured tree that every dialect lowers to: sequences, DAGs, graphs, loops, tries,
//! branches and calls. It never holds anything unresolved but names, and it never runs.

use crate::model::{
    AssignOp, AwaitedSignal, Backoff, Concurrency, Delay, Dialect, EventTriggers, Expect,
    HANDLER_NAMES, Handler, HostRate, Input, InputKind, Link, Name, NamedSpans, OnError, OnLimit,
    OnMissing, Pages, RetryOn, Rules, Schedule, Secured, Status, Take, Test, Trigger, Unchanged,
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
    /// What that format decides about a run.
    pub rules: Rules,
    /// What the caller gives.
    pub inputs: Vec<Input>,
    /// Initial values, evaluated in order when the run starts.
    pub variables: Vec<(Name, Template)>,
    /// Its values between runs, and what each is before it is written.
    pub state: Vec<(Name, Value)>,
    /// Whether it reads its last run that succeeded.
    pub last_run: bool,
    /// What a variable may hold, where that was declared (Azure).
    pub types: Vec<(Name, InputKind)>,
    /// Definition parameters with their resolved values (Azure).
    pub parameters: Vec<(Name, Value)>,
    /// What starts a run, when the file says (Azure).
    pub trigger: Option<Trigger>,
    /// When runs start automatically.
    pub schedule: Option<Schedule>,
    /// What else starts runs of the saved workflow.
    pub event_triggers: EventTriggers,
    /// Which of its runs exclude each other.
    pub concurrency: Option<Concurrency>,
    /// How often its actions call a host.
    pub rates: Vec<HostRate>,
    /// What is done.
    pub body: Block,
    /// What is done when the body failed, and what whenever the body has ended; either may be empty.
    /// Both read the variable [`FAILURE`], and neither changes how the run ends.
    pub on_failure: Block,
    pub on_finish: Block,
    /// What is done before the two, and also when the run is cancelled: operations that run elsewhere are cancelled.
    pub cleanup: Block,
    /// A call that is made before the run ends as succeeded, and that makes it fail when it fails.
    pub at_success: Option<Call>,
    /// What the run gives.
    pub outputs: Outputs,
    /// Handlers for activities, actors and connectors declared in the file.
    pub handlers: Vec<Handler>,
    /// Which values go from where to where, for people (canvas).
    pub links: Vec<Link>,
    /// The variables of the environment that it reads.
    pub environment: Vec<EnvironmentRead>,
    /// The scripts whose text does not depend on a run (TEA).
    pub scripts: Vec<Script>,
    /// The steps of which something is secure, and all steps in them with them.
    pub secure: Vec<Secure>,
    /// Where its values are.
    pub places: NamedSpans,
    /// Where it begins in the file.
    pub span: Span,
}

/// A variable of the environment that a workflow reads.
#[derive(Clone, Debug)]
pub struct EnvironmentRead {
    pub name: Name,
    /// It is a secret: only the inputs of an action may contain it, and it is never stored. Other
    /// variables are stored with the run, as they were when it began.
    pub secret: bool,
    /// Where it is read first.
    pub span: Span,
}

/// A step whose inputs or outputs are secure.
#[derive(Clone, Debug)]
pub struct Secure {
    pub step: Name,
    pub what: Secured,
    /// Where that is written.
    pub span: Span,
}

/// A script as it is written, so that its syntax can be checked before anything runs.
#[derive(Clone, Debug)]
pub struct Script {
    /// What runs it: `python`, `lua`, `prolog`.
    pub executor: &'static str,
    pub code: String,
    /// Where each line of it is in the file.
    pub lines: Vec<Span>,
}

impl Workflow {
    /// Whether a variable of the environment is a secret.
    #[must_use]
    pub fn is_secret(&self, variable: &str) -> bool {
        let mut reads = self.environment.iter();
        reads.any(|read| read.secret && *read.name == *variable)
    }

    /// The secrets that the inputs of a call name, those of the environment among them.
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
    /// One after the other.
    Sequence(Vec<Step>),
    /// Each when its predecessors ended as required; independent ones run concurrently.
    Dag(Vec<DagStep>),
    /// A graph with goto: the edges of the step that ended say what is next.
    Graph(Graph),
}

/// A handler that a step calls by a name known before it runs.
#[derive(Clone, Debug)]
pub struct HandlerUse<'a> {
    /// `activity`, `actor` or `connector`.
    pub executor: &'a str,
    /// The handler's name; of a connector, `connector/operation`.
    pub name: &'a str,
    /// What else would do, in the order in which it is looked for.
    pub others: Vec<String>,
    /// The step that calls it.
    pub step: &'a Step,
}

impl HandlerUse<'_> {
    /// All names, the first one first.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        [self.name]
            .into_iter()
            .chain(self.others.iter().map(String::as_str))
    }
}

impl Workflow {
    /// All that it does: its body and what is done at its end.
    #[must_use]
    pub fn blocks(&self) -> [&Block; 4] {
        [&self.body, &self.on_failure, &self.cleanup, &self.on_finish]
    }

    /// The handlers that its steps call, in the order of the file.
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

    /// Its calls, at any depth, in the order of the file.
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

    /// Its steps, at any depth, in the order of the file.
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
    /// The blocks directly inside this step, what it does about its failure among them.
    #[must_use]
    pub fn blocks(&self) -> Vec<&Block> {
        let mut blocks = self.kind.blocks();
        blocks.extend(self.follow_up.iter().map(|follow_up| &follow_up.block));
        blocks.extend(&self.catch);
        blocks
    }
}

impl StepKind {
    /// The blocks directly inside this step.
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
    /// Whether it has no step.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.steps().next().is_none()
    }

    /// The steps directly in this block.
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
    /// What is done.
    pub step: Step,
    /// Which steps must have ended, and how; empty: it starts at once.
    pub after: Vec<After>,
}

/// One predecessor of a step in a DAG.
#[derive(Clone, Debug)]
pub struct After {
    /// The predecessor.
    pub name: Name,
    /// The statuses that let the step run; never empty.
    pub statuses: Vec<Status>,
    /// Where it is named.
    pub span: Span,
}

/// A graph with goto.
#[derive(Clone, Debug)]
pub struct Graph {
    /// The node to start with; none: an empty graph, which ends at once.
    pub entry: Option<Name>,
    pub nodes: Vec<Node>,
    /// How many nodes may be entered in all; spent: a fault of kind `limit`.
    pub max_steps: u32,
}

/// A node of a graph.
#[derive(Clone, Debug)]
pub struct Node {
    /// What is done.
    pub step: Step,
    /// The edges out of it: the first that holds is taken. None holds: a fault of kind `edge`.
    pub edges: Vec<Edge>,
}

/// An edge of a graph.
#[derive(Clone, Debug)]
pub struct Edge {
    /// When it is taken; none: always.
    pub when: Option<Condition>,
    /// Where it leads; none: to the end of the graph.
    pub to: Option<Name>,
    /// Where it is written.
    pub span: Span,
}

/// One named thing to do. Its outcome is an action's record, by its name.
#[derive(Clone, Debug)]
pub struct Step {
    /// Unique in the workflow, without case; a dialect makes one where the author gave none.
    pub name: Name,
    /// The authored type, for `actions()`, events and status: `http`, `until`, …
    pub label: Name,
    /// What people call it, where that is not the name.
    pub title: Option<Name>,
    /// The dialect made the name. If this step is alone in a block, its output is the output of the block.
    pub anonymous: bool,
    /// What is done.
    pub kind: StepKind,
    /// What its record holds instead of its own output when it succeeded: evaluated with the
    /// variable `result`, its own output; a loop's also has `kept`, see [`Keep`].
    pub output: Option<Template>,
    /// What its output must be; else the attempt has failed.
    pub expect: Option<Expect>,
    /// Retries around the whole step.
    pub retry: Option<RetryPolicy>,
    /// Cuts the step, all its attempts included, with a fault of kind `timeout`.
    pub timeout: Option<Template>,
    /// What follows it as a part of it, within its timeout.
    pub follow_up: Option<Box<FollowUp>>,
    /// Repeats the earlier step of the same name: it has no action of its own, and its output replaces that of the earlier
    /// step.
    pub is_repeat: bool,
    /// What is done when it failed for good, its retries and its timeout behind it. The failure
    /// counts as handled then; its record keeps it.
    pub catch: Option<Block>,
    /// After the step: ends the innermost loop around it.
    pub break_when: Option<Condition>,
    /// After the step: starts the next iteration of the innermost loop around it.
    pub continue_when: Option<Condition>,
    /// Where it is written: the name.
    pub span: Span,
}

/// What a step does after its call, as a part of it. In lists and diagrams, both are one step.
#[derive(Clone, Debug)]
pub struct FollowUp {
    /// Whether it is done, once the call has ended well.
    pub when: Condition,
    /// What is done.
    pub block: Block,
}

/// What a step does.
#[derive(Clone, Debug)]
pub enum StepKind {
    /// An effect: http, shell, a handler, a script, …
    Call(Call),
    /// A value, computed.
    Compose(Template),
    /// Several assignments in one go; the record's output is `output`, else the new value of the
    /// last one.
    Assign(Assign),
    Wait(Wait),
    /// Waits for a signal's payload; `timeout` on the step bounds it.
    AwaitSignal(AwaitedSignal),
    /// Steps as one (scope).
    Block(Block),
    /// The first arm that holds.
    If {
        /// Conditions and what to do.
        arms: Vec<(Condition, Block)>,
        /// What to do when none holds.
        otherwise: Block,
    },
    /// The case that equals.
    Switch {
        on: Template,
        /// Cases, compared as `equals` does; in loom, `1` written as a key is the text `1` and
        /// equals the number too.
        cases: Vec<(Value, Block)>,
        /// What to do when none equals.
        default: Block,
    },
    Loop(Box<Loop>),
    /// Once per item.
    ForEach(Box<ForEach>),
    /// Named branches, all at once.
    Parallel {
        /// Their names and steps.
        branches: Vec<(Name, Block)>,
        /// Each branch has its own copy of the variables, which is dropped when the branch ends.
        /// The result is then a list of the branches' results, else a map.
        isolated: bool,
    },
    /// Runs `body`; a fault no retry took care of is bound to the variable `error` and handled
    /// by `handler`, after which the step counts as succeeded.
    Catch {
        /// What may fail.
        body: Block,
        /// The variable that gets `{kind, code, message, action, …}`; empty: none does, and the
        /// fault is read from the record of the step that failed.
        error: Name,
        /// What to do then.
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
    /// Fails the step with a fault of its own making.
    Raise {
        /// The fault's kind.
        kind: Name,
        /// The fault's message, text.
        message: Template,
    },
    Nothing,
}

/// An effect requested of the outside world.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// The executor: `http`, `shell`, `activity`, …
    pub executor: Name,
    /// Its inputs, as the executor expects them.
    pub inputs: Template,
    /// How long one attempt may take; the executor's own default applies without it.
    pub attempt_timeout: Option<Template>,
    /// What to do with the outcome besides recording it.
    pub then: Vec<Assignment>,
}

/// One or more assignments.
#[derive(Clone, Debug)]
pub struct Assign {
    /// In order; each sees what the ones before it did.
    pub assignments: Vec<Assignment>,
    /// The step's output; none: the new value of the last variable.
    pub output: Option<Template>,
}

/// One assignment to a variable.
#[derive(Clone, Debug, PartialEq)]
pub struct Assignment {
    /// The variable; empty for what concerns many: `MergeAll`, `ReplaceAll`, `RemoveAll`.
    pub variable: Name,
    /// How the value gets there.
    pub op: AssignOp,
    /// The value; in a call's `then`, the variable `result` is what the executor gave.
    pub value: Template,
    /// Where it is written.
    pub span: Span,
}

/// A loop: every one has both limits. In a compiled program, which holds its body elsewhere, `Of` is an id.
#[derive(Clone, Debug, PartialEq)]
pub struct Loop<Body = Block, Of = Name> {
    /// What it is called in paths, where that is not the name of its step. No other loop of the
    /// workflow is called so.
    pub name: Option<Name>,
    /// When the condition is checked.
    pub test: Test,
    /// The loop stops when this is true; already negated for loops that continue while it is.
    pub stop_when: Condition,
    /// What the author wrote, for status and diagrams: the condition before any negation.
    pub condition_text: String,
    /// True when `condition_text` is the negation of `stop_when`: events and rows show the
    /// authored condition's value.
    pub negated: bool,
    /// How many iterations at most; a whole number.
    pub count: Template,
    /// How long in all at most, from the first start, on the wall clock; none: no deadline, for
    /// formats that have none.
    pub timeout: Option<Template>,
    /// How many tokens of language models its actions may use; a whole number.
    pub tokens: Option<Template>,
    /// What its actions may cost, in the author's unit; a number.
    pub cost: Option<Template>,
    /// Between iterations: never before the first, never after the last.
    pub delay: Option<Delay>,
    /// The effect of a missing member in the condition.
    pub on_missing: OnMissing,
    /// What a spent count does.
    pub on_limit: OnLimit,
    /// What a passed deadline does.
    pub on_timeout: OnLimit,
    /// Whether the condition is checked once more when the count is spent: true everywhere but
    /// in TEA.
    pub test_when_spent: bool,
    /// Azure: a failed body does not stop the loop; the last iteration's status counts.
    pub survives_failure: bool,
    /// The values to collect from every iteration that succeeded.
    pub keep: Vec<Keep<Of>>,
    /// What distinguishes its pages, when it reads pages.
    pub pages: Option<Pages>,
    /// When it makes no progress, which is a limit, too.
    pub unchanged: Option<Unchanged>,
    /// Whether the next iteration may ask what the condition read: `loopFeedback`.
    pub feedback: bool,
    pub body: Body,
}

/// A value to collect from the iterations of a loop, for the output of its step.
#[derive(Clone, Debug, PartialEq)]
pub struct Keep<Of = Name> {
    /// Its name under `kept`.
    pub name: Name,
    /// Which iterations'.
    pub take: Take,
    /// The step of the body that it comes from: an iteration in which that did not run has no
    /// value, which is null in an array.
    pub of: Of,
    /// The value, evaluated at the end of the iteration.
    pub value: Template,
}

/// A loop over items. Each iteration has results of its own; the step gives their array.
#[derive(Clone, Debug)]
pub struct ForEach {
    /// The items: must give an array.
    pub items: Template,
    /// How many of them at most, which is a limit like that of a loop; none: all of them.
    pub count: Option<Template>,
    /// How many at a time, from 1.
    pub concurrency: u32,
    /// What an item that fails does to the others.
    pub on_error: OnError,
    pub body: Block,
}

/// Retries of a step or a block.
#[derive(Clone, Debug, PartialEq)]
pub struct RetryPolicy {
    /// How the waits grow.
    pub backoff: Backoff,
    /// How often at most, beyond the first attempt; a whole number.
    pub count: Template,
    /// Which faults are retried; empty: what the executor calls transient (http: 408, 429, 5xx,
    /// timeouts, connection errors; others: any).
    pub on: Vec<RetryOn>,
    /// Retries only while this holds; without `on` it alone decides.
    pub when: Option<Condition>,
    /// Whether it applies because the file says nothing.
    pub is_default: bool,
    /// Where it is written.
    pub span: Span,
}
