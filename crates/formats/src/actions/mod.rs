//! The actions that Loom files and Logic Apps definitions share (docs/reference/loom.md): a tree of the file to `hir`.
//!
//! There is no syntax tree between the two: `hir` already has every word that is needed once the
//! forms are distinguished, so reading an action gives its step, with its place in the order of its
//! scope ([`OrderedStep`]) as the only type of its own. What depends on the whole file
//! (names that expressions mention) is checked at the end ([`names`]).
//!
//! A format says in [`Conventions`] how its actions differ, and in [`Format`] which types and keys only it has.

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
mod variable;

pub(super) use action_fields::{ActionFields, Body, OrderedStep, member, names_option, option};
pub(super) use call_workflow::collect_workflows;
pub(super) use operation::{find_repeated, part_of};
pub(super) use parameters::DEPLOYED_PARAMETERS;
pub(super) use request::HttpRequest;
pub(super) use retry::alert_retry;
pub(super) use settings::{ConnectionKind, Settings, connections_only, last, settings_in};

use super::Caps;
use super::fields::Fields;
use super::missing::MissingInputs;
use super::reader::Reader;
use defaults::Defaults;
use rate::RateNames;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Deref, DerefMut};
use std::time::Duration;
use windlass_expression::{Syntax, Template, Value};
use windlass_model::hir::{Block, RetryPolicy, Secure, Step, StepKind, Workflow};
use windlass_model::model::{
    Backoff, Dialect, FAILURE, Form, InputKind, Jitter, Name, NamedSpan, OnError, OnLimit, Test,
};
use windlass_source::diagnostic::Diagnostics;
use windlass_source::source::{Entry, Node, SourceFile, Span};

/// How the actions of a format differ from those of others.
pub(super) struct Conventions {
    pub dialect: Dialect,
    /// The language of expressions.
    pub syntax: Syntax,
    /// A scope, a branch or a file may have no actions.
    pub allows_empty_blocks: bool,
    /// The order is that of `runAfter` alone. Else it is the written one, unless an action has `runAfter`.
    pub ordered_by_run_after: bool,
    /// The inputs of an action may also be next to its type.
    pub inputs_next_to_type: bool,
    /// The key of a condition. `expression` is always one.
    pub condition_key: &'static str,
    /// The key of what a switch compares. `expression` is always one.
    pub switch_key: &'static str,
    /// Each case of a switch has a name, and its value as `case`.
    pub cases_have_values: bool,
    /// `InitializeVariable` makes each variable, with its type, before anything sets it.
    pub declares_variables: bool,
    /// What a data operation computes is the `body` of its output.
    pub result_is_body: bool,
    /// A schema that is wrong is ignored, and its text is escaped as expressions are.
    pub accepts_any_schema: bool,
    /// Number of items of a foreach that run at a time by default.
    pub foreach_concurrency: u32,
    /// What an item that fails does to its foreach; none: its action says so.
    pub foreach_on_error: Option<OnError>,
    /// When an `until` checks its condition.
    pub until_test: Test,
    /// A loop continues after an iteration that failed.
    pub loops_survive_failures: bool,
    /// What the limit of a loop does by default.
    pub on_limit: OnLimit,
    /// Reading what has no value yet, or has none there, is an error. Else it is a warning.
    pub refuses_early_reads: bool,
    /// Number of repetitions of a retry policy without `count`.
    pub retries: i64,
    /// Policies have `when` and `jitter`, may be `none`, and come from `defaults`.
    pub has_extended_policies: bool,
    /// Requests have files, TLS settings, rates, events and other inputs that Logic Apps does not have.
    pub has_extended_requests: bool,
    /// A deployment computed the file's values: one that is null is reported already.
    pub is_deployed: bool,
}

/// A format that has these actions.
pub(super) trait Format: Sized {
    /// How its actions differ.
    const CONVENTIONS: Conventions;

    /// The types of actions in its words, for hints.
    fn known_types() -> String;

    /// The type of an action as it is shown. Reports one that it does not have.
    fn label<'t>(
        actions: &mut ActionReader<'_, Self>,
        text: &'t str,
        entry: &Entry,
        node: &Node,
    ) -> Option<Cow<'t, str>>;

    /// Reads an action, which may be in a form that only this format has.
    fn read_action(
        actions: &mut ActionReader<'_, Self>,
        node: &Node,
        name: Name,
        span: Span,
        anonymous: bool,
    ) -> OrderedStep {
        actions.action(node, name, span, anonymous)
    }

    /// Reads the keys that actions of all types have in this format alone.
    fn common_keys(actions: &mut ActionReader<'_, Self>, fields: &mut Fields<'_>, step: &mut Step);

    /// Reads an action of a type that only this format has.
    fn own_action(
        actions: &mut ActionReader<'_, Self>,
        act: &mut ActionFields<'_>,
        label: &str,
    ) -> Body;

    /// Sends the request of an `http` action.
    fn http(
        actions: &mut ActionReader<'_, Self>,
        act: &mut ActionFields<'_>,
        request: HttpRequest,
        timeout: Option<Template>,
    ) -> Body;

    /// Checks the body of a request.
    fn check_body(_actions: &mut ActionReader<'_, Self>, _body: &Node) {}

    /// The retries of a request that says nothing about them.
    fn request_retry(
        actions: &ActionReader<'_, Self>,
        act: &ActionFields<'_>,
        idempotent: bool,
    ) -> Option<RetryPolicy>;

    /// A retry policy that is known by its name.
    fn named_policy(_kind: &str, _span: Span) -> Option<RetryPolicy> {
        None
    }

    /// Waits that grow.
    fn exponential(
        interval: Option<Duration>,
        max: Option<Duration>,
        min: Option<Duration>,
        jitter: Option<Jitter>,
    ) -> Backoff;

    /// A wait whose unit only this format has.
    fn wait(_actions: &mut ActionReader<'_, Self>, _entry: &Entry) -> Option<StepKind> {
        None
    }

    /// An action makes a variable.
    fn makes_variable(actions: &mut ActionReader<'_, Self>, name: &str, _span: Span) {
        actions.made.push(Name::from(name));
    }

    /// An action changes a variable.
    fn sets_variable(
        actions: &mut ActionReader<'_, Self>,
        name: &Name,
        _label: &str,
        _value: &Template,
        span: Span,
    ) {
        Self::makes_variable(actions, name, span);
    }

    /// Whether `runAfter` may name this, which is not an action and ends before all of them.
    fn is_before_all(_actions: &ActionReader<'_, Self>, _name: &str) -> bool {
        false
    }

    /// Whether every file has this parameter.
    fn is_deployed_parameter(_name: &str) -> bool {
        false
    }

    /// An expression names a parameter that the file does not declare.
    fn lacks_parameter(_actions: &mut ActionReader<'_, Self>, _name: &str) {}
}

/// Reads the actions of one file, whose format is `F`.
pub(super) struct ActionReader<'a, F> {
    pub reader: Reader<'a>,
    /// What the format itself must know.
    pub format: F,
    pub max_count: u64,
    pub max_timeout: Duration,
    /// The iterations of a loop that says nothing.
    pub count: Template,
    /// The timeout of a loop that says nothing.
    pub timeout: Template,
    /// Every action by its name without case.
    names: BTreeMap<String, (Name, Span)>,
    loops: Vec<Name>,
    /// The loops that have items.
    foreaches: Vec<Name>,
    /// The variables that something makes: every assignment or, where the format declares them, `InitializeVariable`.
    pub made: Vec<Name>,
    /// The file is one action alone: what surrounds it may set variables.
    pub is_fragment: bool,
    /// The values between runs, and what each is before it is written.
    state: Vec<(Name, Value)>,
    /// What the variables were declared to hold.
    types: Vec<(Name, InputKind)>,
    /// All variables that something sets, without case; known at the end.
    set: BTreeSet<String>,
    /// Where the condition of each loop is written.
    conditions: BTreeMap<Name, Span>,
    /// Whether anything in the file runs at the same time as something else.
    concurrent: bool,
    /// Whether anything appends to files: their lengths are a variable of the run.
    appends: bool,
    replaces: bool,
    /// The actions of which something is secure.
    pub secure: Vec<Secure>,
    foreach_depth: usize,
    /// Whether the next action is the one that a `retry` repeats.
    has_outer_retry: bool,
    defaults: Defaults,
    rates: RateNames,
    /// What cancels operations at the end of the run, and which have that.
    pub cleanup: Vec<Step>,
    cancels: Vec<(Name, Span)>,
    /// What the file needs and nothing gives.
    pub wanted: MissingInputs,
    /// The signals that something waits for, and which answers they may carry.
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
            made: Vec::new(),
            is_fragment: false,
            state: Vec::new(),
            types: Vec::new(),
            set: BTreeSet::new(),
            conditions: BTreeMap::new(),
            concurrent: false,
            appends: false,
            replaces: false,
            secure: Vec::new(),
            foreach_depth: 0,
            has_outer_retry: false,
            defaults: Defaults::default(),
            rates: RateNames::default(),
            cleanup: Vec::new(),
            cancels: Vec::new(),
            wanted: MissingInputs::default(),
            signals: BTreeMap::new(),
        }
    }

    /// Adds to a workflow what is known only when all of its file was read, and checks what depends on that.
    pub fn finish(&mut self, workflow: &mut Workflow, node: &Node) {
        self.check_cancels(workflow);
        self.remember_files(workflow);
        workflow.types = std::mem::take(&mut self.types);
        workflow.secure = std::mem::take(&mut self.secure);
        workflow.last_run = self.reads_last_run(workflow);
        workflow.environment = self.check_names(workflow, node);
        if !self.diagnostics.has_errors() {
            self.lint(workflow);
            self.unused_rates();
        }
    }

    /// What the actions leave to be done at the end; `first` is where the file says more of that.
    pub fn clean_up(&mut self, first: Option<Span>, workflow: &mut Workflow) {
        let cleanup = std::mem::take(&mut self.cleanup);
        let first = first.or(cleanup.first().map(|step| step.span));
        workflow.cleanup = Block::Sequence(cleanup);
        let Some(span) = first else { return };
        let mut known = workflow.variables.iter().map(|(name, _)| name);
        if known.any(|name| name.eq_ignore_ascii_case(FAILURE))
            || self
                .made
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

/// Where the members of a map are; of anything else, where it is.
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
