//! Checks that the names in the expressions of a file exist. This is done after the whole file was read.

use super::{ActionReader, Format};
use crate::environment;
use crate::reader::name_of;
use crate::synonyms::loop_variable;
use std::collections::{BTreeSet, HashMap, HashSet};
use windlass_expression::{
    ACTION_MEMBERS, LOOP_MEMBERS, Reference, foreign_name_hint, of_callback,
};
use windlass_model::hir::{EnvironmentRead, Workflow};
use windlass_model::model::{Name, TURN_SIGNAL};
use windlass_source::diagnostic::did_you_mean;
use windlass_source::source::{Node, Span};
use windlass_value::words;

/// The variables that every loop defines for its body and its condition.
pub(super) const LOOP_VARIABLES: [&str; 5] = [
    "loopIndex",
    "loopCount",
    "loopResult",
    "loopStartTime",
    "loopFeedback",
];

/// The names at the top level of a Jinja expression.
const ROOTS: [&str; 15] = words! {
    inputs variables state actions loop loops item workflow parameters trigger schedule env secrets result
    lastRun
};

/// Maximum number of texts that are compared with all names of the file.
const MAX_PLAIN_PATHS: usize = 1_000;

/// The names of one kind that a file defines.
#[derive(Default)]
struct KnownNames {
    all: Vec<Name>,
    exact: HashSet<Name>,
    /// The names by their lower case.
    folded: HashMap<String, Name>,
}

impl FromIterator<Name> for KnownNames {
    fn from_iter<I: IntoIterator<Item = Name>>(names: I) -> Self {
        let mut known = Self::default();
        for name in names {
            let folded = known.folded.entry(name.to_ascii_lowercase());
            folded.or_insert_with(|| name.clone());
            known.exact.insert(name.clone());
            known.all.push(name);
        }
        known
    }
}

impl KnownNames {
    /// Returns true if a name is known, ignoring case.
    fn has(&self, name: &str) -> bool {
        self.folded.contains_key(&name.to_ascii_lowercase())
    }

    /// Returns the known name that differs from `name` only by case. Returns `None` if `name` itself is known.
    fn in_other_case(&self, name: &str) -> Option<&Name> {
        let found = self.folded.get(&name.to_ascii_lowercase())?;
        (!self.exact.contains(name)).then_some(found)
    }
}

/// Returns the hint for a name with a dash: in Jinja, `actions.my-act` is a subtraction.
fn with_dash(root: &str, name: &str) -> String {
    format!("write a name with a dash as {root}['{name}']")
}

/// The methods of Python that every object has in Jinja.
const DICT_METHODS: [&str; 4] = ["get", "items", "keys", "values"];

impl<F: Format> ActionReader<'_, F> {
    /// Checks all names that expressions mention. Returns the environment variables that the expressions read.
    pub(super) fn check_names(&mut self, workflow: &Workflow, node: &Node) -> Vec<EnvironmentRead> {
        let mentions = std::mem::take(&mut self.mentions);
        let actions = self.names.values().map(|(name, _)| name.clone());
        let actions: KnownNames = actions.filter(|name| **name != *TURN_SIGNAL).collect();
        let inputs = workflow.inputs.iter().map(|input| input.name.clone());
        let inputs: KnownNames = inputs.collect();
        // Parameters with `$` are in every definition, so they are not suggested as a correct spelling.
        let parameters = workflow.parameters.iter().map(|(name, _)| name.clone());
        let parameters: KnownNames = parameters.filter(|name| !name.starts_with('$')).collect();
        let loops: KnownNames = self.loops.iter().cloned().collect();
        let foreaches: KnownNames = self.foreaches.iter().cloned().collect();
        let signals: KnownNames = self.signals.keys().cloned().collect();
        let variables: KnownNames = self.variables(workflow).into_iter().collect();
        let lower = |name: &Name| name.to_lowercase();
        self.variable_names = variables.all.iter().map(lower).collect();
        let reads = environment::reads(self, &mentions, node);
        if let Some(read) = reads.first()
            && self.has_variable("env")
        {
            let what = "`env` is the environment, and a variable of this file is called so too";
            let hint = "rename the variable";
            self.error("conflict", read.span, what, hint);
        }
        let paths = std::mem::take(&mut self.plain_paths).into_iter();
        for (span, path) in paths.take(MAX_PLAIN_PATHS) {
            let mut names = path.split('.');
            let known = match names.next() {
                Some("inputs") => &inputs,
                Some("variables") => &variables,
                Some("actions") => &actions,
                _ => continue,
            };
            if names.next().is_some_and(|name| known.has(name)) {
                let what = "this is plain text, and not the value";
                let hint = format!("for the value, write \"{{{{ {path} }}}}\"");
                self.warning("plain-text", span, what, hint);
            }
        }
        let mut seen: BTreeSet<(Span, Reference)> = BTreeSet::new();
        for mention in mentions {
            if !seen.insert((mention.span, mention.reference.clone())) {
                continue;
            }
            let span = mention.span;
            let is_optional = mention.is_optional || self.is_fragment;
            let known = match &mention.reference {
                Reference::Input(_) => &inputs,
                Reference::Variable(_) | Reference::State(_) => &variables,
                Reference::Loop(_) => &loops,
                _ => &KnownNames::default(),
            };
            if mention.is_jinja
                && let Some(name) = name_of(&mention.reference)
                && let Some(known) = known.in_other_case(name)
            {
                let what = format!("`{name}` is not a known name: names in Jinja have a case");
                let hint = format!("did you mean `{known}`?");
                self.error("unknown-name", span, what, hint);
                continue;
            }
            match &mention.reference {
                Reference::Action(name) | Reference::Scope(name) => {
                    self.check_exists("unknown-action", "action", name, span, &actions);
                }
                Reference::Secret(name)
                    if of_callback(name).is_some_and(|name| !name.is_empty()) =>
                {
                    let name = of_callback(name).unwrap_or_default();
                    // The names of signals are case-sensitive, so a name that differs by case is reported.
                    if signals.in_other_case(name).is_some() {
                        let what = format!("unknown signal `{name}`");
                        self.error_with("unknown-signal", span, what, || {
                            format!(
                                "the names of signals have a case; known are: {}",
                                some_of(&signals.all)
                            )
                        });
                    }
                    self.check_exists("unknown-signal", "signal", name, span, &signals);
                }
                Reference::Items(name) if loops.has(name) && !foreaches.has(name) => {
                    let what = format!("`{name}` is not a foreach, so it has no items");
                    let hint = format!("iterationIndexes('{name}') counts its iterations");
                    self.error("not-a-foreach", span, what, hint);
                }
                Reference::Loop(name) | Reference::Items(name) => {
                    self.check_exists("unknown-loop", "loop", name, span, &loops);
                    if F::CONVENTIONS.refuses_early_reads && !mention.is_inside && loops.has(name) {
                        let what = format!("this is not inside of the loop `{name}`");
                        let hint =
                            format!("after it, outputs('{name}') has what its iterations gave");
                        self.error("outside-loop", span, what, &hint);
                    }
                }
                Reference::Input(name) if !inputs.all.is_empty() => {
                    self.check_exists("unknown-input", "input", name, span, &inputs);
                }
                Reference::Parameter(name) if F::is_deployed_parameter(name) => {}
                Reference::Parameter(name) => {
                    if !parameters.has(name) {
                        F::handle_unknown_parameter(self, name);
                    }
                    self.check_exists("unknown-parameter", "parameter", name, span, &parameters);
                }
                Reference::Variable(name) => {
                    self.check_variable(name, span, &variables, is_optional);
                }
                Reference::State(name) if !workflow.state.is_empty() => {
                    if !workflow.state.iter().any(|(known, _)| **known == **name) {
                        self.unknown_state(name, span);
                    }
                }
                Reference::State(name) => match F::CONVENTIONS.declares_variables {
                    true => self.unknown_state(name, span),
                    false => self.check_variable(name, span, &variables, is_optional),
                },
                Reference::Item if !mention.is_inside && !self.is_fragment => {
                    self.outside_of_foreach(span);
                }
                Reference::Root(name)
                    if matches!(&**name, "item" | "loop")
                        && !mention.is_inside
                        && !is_optional
                        && !variables.has(name) =>
                {
                    match &**name {
                        "item" => self.outside_of_foreach(span),
                        _ => self.outside_of_loop(span),
                    }
                }
                Reference::Root(name) => {
                    let known = [&actions, &inputs, &variables];
                    self.check_root(name, span, known, is_optional);
                }
                Reference::LoopMember(member) => {
                    self.check_loop_member(member, span, is_optional);
                }
                Reference::ActionMember(member) => {
                    self.check_action_member(member, span, is_optional);
                }
                Reference::Input(_)
                | Reference::Item
                | Reference::Secret(_)
                | Reference::Environment(_)
                | Reference::Anything => {}
            }
        }
        reads
    }

    fn outside_of_foreach(&mut self, span: Span) {
        let what = "`item` is known only inside of a foreach, select, query or table";
        let hint = "name the list: outputs('list')[0], or put the action into the foreach";
        self.error("outside-loop", span, what, hint);
    }

    fn outside_of_loop(&mut self, span: Span) {
        let what = "`loop` is known only inside of a loop";
        let hint = "after a loop, `actions.NAME.outputs` has what its iterations gave";
        self.error("outside-loop", span, what, hint);
    }

    pub(super) fn has_variable(&self, name: &str) -> bool {
        self.variable_names.contains(&name.to_lowercase())
    }

    /// Returns the names of all variables that `variables()` can read.
    fn variables(&self, workflow: &Workflow) -> Vec<Name> {
        let declared = workflow.variables.iter().map(|(name, _)| name.clone());
        let mut variables: Vec<Name> = declared
            .chain(self.declared_variables.iter().cloned())
            .collect();
        for variable in LOOP_VARIABLES {
            variables.push(Name::from(variable));
            for name in &self.loops {
                variables.push(Name::from(format!("{name}_{variable}")));
            }
        }
        variables
    }

    /// Reports a name that does not exist. If the template checks whether it exists, this is only a warning.
    fn missing_name(
        &mut self,
        code: &'static str,
        span: Span,
        what: String,
        hint: String,
        is_optional: bool,
    ) {
        match is_optional {
            true => self.warning(code, span, what, hint),
            false => self.error(code, span, what, hint),
        }
    }

    /// Reports a member of a loop in Jinja that does not exist.
    fn check_loop_member(&mut self, member: &str, span: Span, is_optional: bool) {
        if LOOP_MEMBERS.contains(&member) {
            return;
        }
        let what = format!("`loop` has no member `{member}`");
        let meant = loop_variable(member).and_then(|variable| variable.strip_prefix("loop"));
        let meant = meant.map(|meant| format!("did you mean `{}`?", meant.to_lowercase()));
        let hint = meant
            .or_else(|| did_you_mean(member, LOOP_MEMBERS))
            .unwrap_or_else(|| format!("its members are {}", LOOP_MEMBERS.join(", ")));
        self.missing_name("unknown-name", span, what, hint, is_optional);
    }

    /// Reports a member of an action in Jinja that does not exist.
    fn check_action_member(&mut self, member: &str, span: Span, is_optional: bool) {
        if ACTION_MEMBERS.contains(&member) || DICT_METHODS.contains(&member) {
            return;
        }
        let what = format!("an action has no member `{member}`");
        let hint = match did_you_mean(member, ACTION_MEMBERS) {
            Some(hint) => hint,
            None => format!(
                "write `outputs.{member}`, or one of {}",
                ACTION_MEMBERS.join(", ")
            ),
        };
        self.missing_name("unknown-name", span, what, hint, is_optional);
    }

    fn check_exists(
        &mut self,
        code: &'static str,
        what: &str,
        name: &str,
        span: Span,
        known: &KnownNames,
    ) {
        if known.has(name) {
            return;
        }
        let known = &known.all;
        let message = format!("unknown {what} `{name}`");
        self.error_with(code, span, message, || {
            let is_meant = |known: &&Name| {
                let rest = known.strip_prefix(name);
                rest.is_some_and(|rest| rest.starts_with('-'))
            };
            if let Some(known) = known.iter().find(is_meant) {
                return with_dash(&format!("{what}s"), known);
            }
            did_you_mean(name, known).unwrap_or_else(|| {
                if known.is_empty() {
                    format!("this file has no {what}")
                } else {
                    format!("known are: {}", some_of(known))
                }
            })
        });
    }

    /// Reports a top-level name in Jinja that is neither in `ROOTS` nor a variable.
    fn check_root(
        &mut self,
        name: &str,
        span: Span,
        [actions, inputs, variables]: [&KnownNames; 3],
        optional: bool,
    ) {
        if ROOTS.contains(&name) || variables.exact.contains(name) {
            return;
        }
        let message = format!("nothing here is called `{name}`");
        let own = variables.all.iter().map(|name| &**name);
        let dashed = format!("-{name}");
        let dashed = |(root, known): (&str, &KnownNames)| {
            let known = known.all.iter().find(|known| known.ends_with(&dashed))?;
            Some(with_dash(root, known))
        };
        let roots = [
            ("actions", actions),
            ("inputs", inputs),
            ("variables", variables),
        ];
        let near = match self.diagnostics.is_full() {
            true => None,
            false => roots
                .into_iter()
                .find_map(dashed)
                .or_else(|| {
                    actions
                        .has(name)
                        .then(|| format!("did you mean `actions.{name}`?"))
                })
                .or_else(|| foreign_name_hint(name).map(str::to_owned))
                .or_else(|| did_you_mean(name, ROOTS.into_iter().chain(own))),
        };
        let hint = near.unwrap_or_else(|| {
            format!("templates read {}, and variables by name", ROOTS.join(", "))
        });
        self.missing_name("unknown-name", span, message, hint, optional);
    }

    /// Reports a variable that nothing can set.
    /// This is an error, unless the template checks first whether the variable exists (`optional`).
    fn check_variable(&mut self, name: &str, span: Span, known: &KnownNames, optional: bool) {
        if known.has(name) {
            return;
        }
        let near = match self.diagnostics.is_full() {
            true => None,
            false => did_you_mean(name, &known.all),
        };
        if F::CONVENTIONS.declares_variables {
            let message = format!("no InitializeVariable makes the variable `{name}`");
            let hint = near.unwrap_or_else(|| String::from("initialize it before it is used"));
            self.error("unknown-variable", span, message, hint);
        } else {
            let message = format!("nothing in this file sets the variable `{name}`");
            let of_a_loop = loop_variable(name).filter(|_| !self.loops.is_empty());
            let near = of_a_loop
                .map(|meant| format!("did you mean `{meant}`?"))
                .or(near);
            let hint = near.unwrap_or_else(|| {
                String::from("set a value under `variables`, or set it with setVariable")
            });
            self.missing_name("unset-variable", span, message, hint, optional);
        }
    }
}

fn some_of(names: &[Name]) -> String {
    let mut shown: Vec<&str> = names.iter().take(8).map(|name| &**name).collect();
    if names.len() > shown.len() {
        shown.push("…");
    }
    shown.join(", ")
}
