//! The Loom format and Logic Apps definitions (docs/reference/loom.md): a tree of the file to `hir`.
//!
//! There is no syntax tree between the two: `hir` already has every word that is needed once the
//! forms are distinguished, so reading an action gives its step, with its place in the order of its
//! scope ([`action_fields::OrderedStep`]) as the only type of the format's own. What depends on the whole file
//! (names that expressions mention) is checked at the end ([`names`]).

mod action;
mod action_fields;
mod alert;
mod append;
mod asynchronous;
mod azure;
mod block;
mod call_workflow;
mod concurrency;
mod connector;
mod control;
mod data;
mod defaults;
mod deployable;
mod effect;
mod event_trigger;
mod lint;
mod loops;
mod names;
mod nested;
mod operation;
mod pages;
mod previous;
mod question;
mod rate;
mod read_order;
mod recurrence;
mod retry;
mod schedule;
mod settings;
mod shell;
mod state;
mod trigger;
mod variable;
mod webhook;
mod workflow;

pub(super) use call_workflow::collect_workflows;
pub(super) use event_trigger::are_of_loom;
pub(super) use nested::is_loom;

use super::missing::MissingInputs;
use super::reader::Reader;
use super::{Caps, stem};
use defaults::Defaults;
use rate::RateNames;
use settings::Settings;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Deref, DerefMut};
use std::time::Duration;
use windlass_expression::{Syntax, Template, Value};
use windlass_model::hir::{Secure, Step, Workflow};
use windlass_model::model::{Dialect, Form, InputKind, Name};
use windlass_source::diagnostic::Diagnostics;
use windlass_source::source::{Node, SourceFile, Span};

use self::settings::ConnectionKind;
pub(super) use settings::{connections_only, settings_in};

/// Reads a file as loom or azure. `siblings` are the trees of the files next to a definition, and
/// whether each is for it alone. The workflow means something only when no error was reported.
pub(super) fn read(
    file: &SourceFile,
    node: &Node,
    siblings: &[(Node, bool)],
    dialect: Dialect,
    caps: &Caps,
    diagnostics: &mut Diagnostics,
) -> (Workflow, MissingInputs) {
    let syntax = match dialect {
        Dialect::Azure => Syntax::Azure,
        Dialect::Loom | Dialect::Tea | Dialect::Canvas => Syntax::Loom,
    };
    let mut loom = Loom {
        reader: Reader::new(file, syntax, diagnostics),
        dialect,
        max_count: caps.count(dialect),
        max_timeout: caps.timeout(),
        count: Template::constant(60_i64.into()),
        timeout: Template::constant("PT1H".into()),
        names: BTreeMap::new(),
        loops: Vec::new(),
        foreaches: Vec::new(),
        triggers: Vec::new(),
        answers: None,
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
        webhooks: Vec::new(),
        connected: BTreeMap::new(),
        connections: BTreeMap::new(),
        wanted: MissingInputs::default(),
        signals: BTreeMap::new(),
    };
    let stem = match dialect {
        Dialect::Azure => azure_stem(&file.path),
        _ => stem(&file.path),
    };
    let settings = Settings::of(siblings.iter().map(|(node, strict)| (node, *strict)));
    let mut workflow = loom.workflow(node, &settings, &stem);
    loom.check_cancels(&workflow);
    loom.check_webhooks(&workflow);
    loom.remember_files(&mut workflow);
    workflow.types = std::mem::take(&mut loom.types);
    workflow.secure = std::mem::take(&mut loom.secure);
    workflow.last_run = loom.reads_last_run(&workflow);
    workflow.environment = loom.check_names(&workflow, node);
    if !loom.diagnostics.has_errors() {
        loom.lint(&workflow);
        loom.unused_rates();
        loom.deployable(&workflow);
    }
    (workflow, loom.wanted)
}

/// A workflow of a Standard app is called as its folder is.
fn azure_stem(path: &str) -> String {
    let own = stem(path);
    let folder = std::path::Path::new(path).parent();
    let folder = folder.and_then(|folder| folder.file_name()?.to_str());
    match folder {
        Some(folder) if own == "workflow" => folder.to_owned(),
        _ => own,
    }
}

struct Loom<'a> {
    reader: Reader<'a>,
    dialect: Dialect,
    max_count: u64,
    max_timeout: Duration,
    /// The iterations of a loop that says nothing.
    count: Template,
    /// The timeout of a loop that says nothing.
    timeout: Template,
    /// Every action by its name without case.
    names: BTreeMap<String, (Name, Span)>,
    loops: Vec<Name>,
    /// The loops that have items.
    foreaches: Vec<Name>,
    /// Azure: the triggers. An action that runs after one has nothing to wait for.
    triggers: Vec<Name>,
    /// Azure: whether the trigger waits for an answer; none: the file does not say what it is.
    answers: Option<bool>,
    /// The variables that something makes: in loom every assignment, in azure only
    /// `InitializeVariable`.
    made: Vec<Name>,
    /// The file is one action alone: what surrounds it may set variables.
    is_fragment: bool,
    /// The values between runs, and what each is before it is written.
    state: Vec<(Name, Value)>,
    /// Azure: what the variables were declared to hold.
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
    secure: Vec<Secure>,
    foreach_depth: usize,
    /// Whether the next action is the one that a `retry` repeats.
    has_outer_retry: bool,
    defaults: Defaults,
    rates: RateNames,
    /// What cancels operations at the end of the run, and which have that.
    cleanup: Vec<Step>,
    cancels: Vec<(Name, Span)>,
    /// The actions that wait for a request to an address of their own, and whether they unsubscribe.
    webhooks: Vec<(Name, Span, bool)>,
    /// Azure: what each connection leads to, by its name in lower case.
    connected: BTreeMap<String, String>,
    /// Azure: the names of the connections of each kind, in lower case, where a file or a value has them.
    connections: BTreeMap<ConnectionKind, BTreeSet<String>>,
    wanted: MissingInputs,
    /// The signals that something waits for, and which answers they may carry.
    signals: BTreeMap<Name, Form>,
}

impl<'a> Deref for Loom<'a> {
    type Target = Reader<'a>;

    fn deref(&self) -> &Self::Target {
        &self.reader
    }
}

impl DerefMut for Loom<'_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.reader
    }
}

impl Loom<'_> {
    fn azure(&self) -> bool {
        self.dialect == Dialect::Azure
    }
}
