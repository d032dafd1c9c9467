//! The actions that Loom files and Logic Apps definitions share, lowered to `hir` (docs/reference/loom.md).
//!
//! No syntax tree is between the tree of the file and `hir`. Reading an action returns its step and the step's
//! position in the order of its scope ([`OrderedStep`]). The names that expressions mention can be defined anywhere
//! in the file, so they are checked at the end ([`names`]).
//!
//! A format declares in [`Conventions`] how its actions differ. It implements in [`Format`] the types and keys that
//! only this format has.

mod action;
mod action_fields;
mod append;
mod block;
mod call_workflow;
mod control;
mod data;
mod defaults;
mod effect;
mod inputs;
mod lint;
mod loops;
mod names;
mod operation;
mod parameters;
mod previous;
mod question;
mod rate;
mod read_order;
mod request;
mod retry;
mod settings;
mod shell;
mod state;
mod turn;
mod variable;

pub(super) use action_fields::{ActionFields, Body, OrderedStep, member, names_option, option};
pub(super) use call_workflow::collect_workflows;
pub(super) use operation::{find_repeated, part_of};
pub(super) use parameters::DEPLOYED_PARAMETERS;
pub(super) use request::HttpRequest;
pub(super) use retry::alert_retry;
pub(super) use settings::{
    ConnectionKind, Settings, connections_only, last_path_segment, settings_in,
};

use super::Caps;
use super::fields::Fields;
use super::missing::MissingInputs;
use super::reader::Reader;
use defaults::Defaults;
use rate::RateNames;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Deref, DerefMut, Range};
use std::time::Duration;
use windlass_expression::{Syntax, Template, Value};
use windlass_model::hir::{Block, RetryPolicy, Secure, Step, StepKind, Workflow};
use windlass_model::model::{
    Backoff, Dialect, FAILURE, Form, InputKind, Jitter, Name, NamedSpan, OnError, OnLimit, Test,
};
use windlass_source::diagnostic::Diagnostics;
use windlass_source::source::{Entry, Node, SourceFile, Span};

/// How the actions of a format differ from those of other formats.
pub(super) struct Conventions {
    pub dialect: Dialect,
    /// The language of the format's expressions.
    pub syntax: Syntax,
    /// Whether a scope, a branch or a file may have no actions.
    pub allows_empty_blocks: bool,
    /// Whether only `runAfter` orders actions. If false, actions run in their written order, unless an action has
    /// `runAfter`.
    pub ordered_by_run_after: bool,
    /// Whether the inputs of an action may also be next to its type.
    pub inputs_next_to_type: bool,
    /// The key of a condition that is accepted in addition to `expression`.
    pub condition_key: &'static str,
    /// The key of the value that a switch compares. It is accepted in addition to `expression`.
    pub switch_key: &'static str,
    /// Whether each case of a switch has a name as its key, and its value as `case`.
    pub cases_have_values: bool,
    /// Whether `InitializeVariable` must declare each variable, with its type, before another action sets the
    /// variable.
    pub declares_variables: bool,
    /// Whether the result of a data operation is the `body` of its output.
    pub result_is_body: bool,
    /// Whether an invalid schema is ignored, and the texts of a schema are escaped like expressions.
    pub accepts_any_schema: bool,
    /// What a failed item does to its foreach. `None` means that the action decides.
    pub foreach_on_error: Option<OnError>,
    /// Whether a foreach inside of another one always runs one item at a time.
    pub nested_foreach_is_sequential: bool,
    /// When an `until` loop checks its condition.
    pub until_test: Test,
    /// Whether a loop continues after an iteration that failed.
    pub loops_survive_failures: bool,
    /// What happens by default when a loop reaches its limit.
    pub on_limit: OnLimit,
    /// Whether three kinds of reads are errors: of an action that has not run yet, of the action itself, and of a
    /// loop from outside.
    /// If false, only reads of an action that has not run yet are reported, as warnings.
    pub refuses_early_reads: bool,
    /// Maximum number of retries of a policy without `count`.
    pub retries: i64,
    /// Whether retry policies may have `when` and `jitter`, may be `none`, and may be set in `defaults`.
    pub has_extended_policies: bool,
    /// Whether requests may have files, TLS settings, rates, events and other inputs that Logic Apps does not have.
    pub has_extended_requests: bool,
    /// Whether a deployment template computed the file's values. If so, each value that is null was already reported.
    pub is_deployed: bool,
}

/// A format that has these actions.
pub(super) trait Format: Sized {
    /// How the actions of this format differ.
    const CONVENTIONS: Conventions;

    /// Returns the list of the action types, for hints.
    fn known_types() -> String;

    /// Returns the type of an action in the form in which it is displayed.
    /// Reports a type that the format does not have.
    fn label<'t>(
        actions: &mut ActionReader<'_, Self>,
        text: &'t str,
        entry: &Entry,
        node: &Node,
    ) -> Option<Cow<'t, str>>;

    /// Reads an action. The action may have a form that only this format has.
    fn read_action(
        actions: &mut ActionReader<'_, Self>,
        node: &Node,
        name: Name,
        span: Span,
        anonymous: bool,
    ) -> OrderedStep {
        actions.action(node, name, span, anonymous)
    }

    /// Reads the keys that only this format has, in actions of all types.
    fn common_keys(actions: &mut ActionReader<'_, Self>, fields: &mut Fields<'_>, step: &mut Step);

    /// Checks the keys of an action that were read.
    fn check_keys(_actions: &mut ActionReader<'_, Self>, _fields: &Fields<'_>) {}

    /// Reads an action of a type that only this format has.
    fn own_action(
        actions: &mut ActionReader<'_, Self>,
        act: &mut ActionFields<'_>,
        label: &str,
    ) -> Body;

    /// Makes the body of an `http` action's step, which sends `request`.
    fn http(
        actions: &mut ActionReader<'_, Self>,
        act: &mut ActionFields<'_>,
        request: HttpRequest,
        timeout: Option<Template>,
    ) -> Body;

    /// Returns the number of items of a foreach that run at the same time by default.
    fn foreach_concurrency(&self) -> u32 {
        1
    }

    /// Checks the body of a request.
    fn check_body(_actions: &mut ActionReader<'_, Self>, _body: &Node) {}

    /// Returns the retry policy of a request that does not set one.
    fn request_retry(
        actions: &ActionReader<'_, Self>,
        act: &ActionFields<'_>,
        idempotent: bool,
    ) -> Option<RetryPolicy>;

    /// Returns the retry policy that the format defines under a name, if it has one.
    fn named_policy(_kind: &str, _span: Span) -> Option<RetryPolicy> {
        None
    }

    /// Makes a backoff whose waits grow with each attempt.
    fn exponential(
        interval: Option<Duration>,
        max: Option<Duration>,
        min: Option<Duration>,
        jitter: Option<Jitter>,
    ) -> Backoff;

    /// Reads a wait in a unit that only this format has.
    fn wait(_actions: &mut ActionReader<'_, Self>, _entry: &Entry) -> Option<StepKind> {
        None
    }

    /// Records that an action makes (declares) a variable.
    fn makes_variable(actions: &mut ActionReader<'_, Self>, name: &str, _span: Span) {
        actions.declared_variables.push(Name::from(name));
    }

    /// Records that an action changes a variable.
    fn sets_variable(
        actions: &mut ActionReader<'_, Self>,
        name: &Name,
        _label: &str,
        _value: &Template,
        span: Span,
    ) {
        Self::makes_variable(actions, name, span);
    }

    /// Returns true if `runAfter` may have this name although it is not an action. It is then the name of something
    /// that ends before all actions, such as a trigger.
    fn is_before_all(_actions: &ActionReader<'_, Self>, _name: &str) -> bool {
        false
    }

    /// Returns true if a deployment sets this parameter for every file.
    fn is_deployed_parameter(_name: &str) -> bool {
        false
    }

    /// Handles a parameter that an expression names and that the file does not declare.
    fn handle_unknown_parameter(_actions: &mut ActionReader<'_, Self>, _name: &str) {}
}

/// Reads the actions of one file, whose format is `F`.
pub(super) struct ActionReader<'a, F> {
    pub reader: Reader<'a>,
    /// The state of the format's own reader.
    pub format: F,
    pub max_count: u64,
    pub max_timeout: Duration,
    /// Default maximum number of iterations of a loop.
    pub count: Template,
    /// Default timeout of a loop.
    pub timeout: Template,
    /// Every action by its name in lower case.
    names: BTreeMap<String, (Name, Span)>,
    loops: Vec<Name>,
    /// The foreach loops, which have items.
    foreaches: Vec<Name>,
    /// The variables that actions make.
    /// Any assignment makes a variable. If the format declares variables, only `InitializeVariable` does.
    pub declared_variables: Vec<Name>,
    /// Whether the file is one action alone. Then the workflow that uses the action may set the variables that it
    /// reads.
    pub is_fragment: bool,
    /// The names of the values that the workflow stores between its runs, and their initial values.
    state: Vec<(Name, Value)>,
    /// The values of the parameters of a definition.
    pub parameters: Vec<(Name, Value)>,
    /// The declared types of variables.
    types: Vec<(Name, InputKind)>,
    /// The names of all variables, in lower case. They are complete only at the end of the file.
    variable_names: BTreeSet<String>,
    /// The span of the condition of each loop.
    conditions: BTreeMap<Name, Span>,
    /// Whether actions of the file can run at the same time.
    concurrent: bool,
    /// Whether an action appends to files. If so, a variable of the run has the lengths of the files.
    appends: bool,
    replaces: bool,
    /// The actions with secure inputs or outputs.
    pub secure: Vec<Secure>,
    /// The mentions in limits and lists of loops that are being read, by their numbers. They are computed before their
    /// loop begins, so they are outside of it.
    loop_headers: Vec<Range<usize>>,
    foreach_depth: usize,
    /// Whether the next action to read is the one that a `retry` action repeats.
    has_outer_retry: bool,
    defaults: Defaults,
    rates: RateNames,
    /// Steps that cancel operations at the end of the run.
    pub cleanup: Vec<Step>,
    cancels: Vec<(Name, Span)>,
    /// The inputs that the file needs and does not have.
    pub missing_inputs: MissingInputs,
    /// The signals that actions wait for, each with the form of its answers.
    pub signals: BTreeMap<Name, Form>,
}

impl<'a, F> Deref for ActionReader<'a, F> {
    type Target = Reader<'a>;

    fn deref(&self) -> &Self::Target {
        &self.reader
    }
}

impl<F> DerefMut for ActionReader<'_, F> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.reader
    }
}

impl<'a, F: Format> ActionReader<'a, F> {
    pub fn new(
        format: F,
        file: &'a SourceFile,
        caps: &Caps,
        diagnostics: &'a mut Diagnostics,
    ) -> Self {
        Self {
            reader: Reader::new(file, F::CONVENTIONS.syntax, diagnostics),
            format,
            max_count: caps.count(F::CONVENTIONS.dialect),
            max_timeout: caps.timeout(),
            count: Template::constant(60_i64.into()),
            timeout: Template::constant("PT1H".into()),
            names: BTreeMap::new(),
            loops: Vec::new(),
            foreaches: Vec::new(),
            declared_variables: Vec::new(),
            is_fragment: false,
            state: Vec::new(),
            parameters: Vec::new(),
            types: Vec::new(),
            variable_names: BTreeSet::new(),
            conditions: BTreeMap::new(),
            concurrent: false,
            appends: false,
            replaces: false,
            secure: Vec::new(),
            loop_headers: Vec::new(),
            foreach_depth: 0,
            has_outer_retry: false,
            defaults: Defaults::default(),
            rates: RateNames::default(),
            cleanup: Vec::new(),
            cancels: Vec::new(),
            missing_inputs: MissingInputs::default(),
            signals: BTreeMap::new(),
        }
    }

    /// Sets the parts of a workflow that are known only after its whole file was read. Also checks the names and the
    /// loops.
    pub fn finish(&mut self, workflow: &mut Workflow, node: &Node) {
        self.check_cancels(workflow);
        self.remember_files(workflow);
        workflow.types = std::mem::take(&mut self.types);
        self.check_set_types(workflow);
        workflow.secure = std::mem::take(&mut self.secure);
        workflow.last_run = self.reads_last_run(workflow);
        workflow.environment = self.check_names(workflow, node);
        if !self.diagnostics.has_errors() {
            self.lint(workflow);
            self.unused_rates();
        }
    }

    /// Sets the steps that clean up at the end of the run.
    /// `first` is the span of the file's own steps for the end of the run, if it has any.
    pub fn clean_up(&mut self, first: Option<Span>, workflow: &mut Workflow) {
        let cleanup = std::mem::take(&mut self.cleanup);
        let first = first.or(cleanup.first().map(|step| step.span));
        workflow.cleanup = Block::Sequence(cleanup);
        let Some(span) = first else { return };
        let mut known = workflow.variables.iter().map(|(name, _)| name);
        if known.any(|name| name.eq_ignore_ascii_case(FAILURE))
            || self
                .declared_variables
                .iter()
                .any(|name| name.eq_ignore_ascii_case(FAILURE))
        {
            let what = format!("the variable `{FAILURE}` says how the run failed");
            let hint = "rename your own variable";
            self.error("conflict", span, what, hint);
        }
        let none = Template::constant(Value::Null);
        workflow.variables.push((Name::from(FAILURE), none));
    }
}

/// Returns the span of each member of a map. If the value is not a map, returns one span without a name.
pub(super) fn places(entry: &Entry) -> Vec<NamedSpan> {
    let place = |name: &str, span| NamedSpan {
        name: Name::from(name),
        span,
    };
    match entry.value.entries() {
        Some(members) => {
            let of = |member: &Entry| place(&member.key, member.key_span);
            members.iter().map(of).collect()
        }
        None => vec![place("", entry.value.span)],
    }
}
