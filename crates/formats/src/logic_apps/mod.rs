//! Logic Apps definitions (docs/reference/azure.md).
//! This module has their wrappers, triggers and connectors, and the actions and patterns that only they have. What
//! they share with Loom, such as parameters, is in [`crate::actions`].

mod asynchronous;
mod configuration;
mod connector;
mod definition;
mod deployable;
mod function_action;
mod pages;
mod recurrence;
mod response;
mod trigger;
mod variables;
mod webhook;

use super::actions::{
    ActionFields, ActionReader, Body, ConnectionKind, Conventions, DEPLOYED_PARAMETERS, Format,
    HttpRequest, Settings,
};
use super::builder::{self, text};
use super::fields::Fields;
use super::missing::MissingInputs;
use super::vocabulary::loom as vocabulary;
use super::{Caps, workflow_name};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use windlass_expression::{Syntax, Template, Value};
use windlass_model::hir::{RetryPolicy, Step, StepKind, Wait, Workflow};
use windlass_model::model::{Backoff, Dialect, Jitter, Name, OnError, OnLimit, Test, WORKFLOW};
use windlass_source::diagnostic::{Diagnostics, nearest};
use windlass_source::source::{Entry, Node, SourceFile, Span};
use windlass_value::words;

/// The types of actions that Loom does not have. The types of connectors are in `connector`.
const OWN_TYPES: [&str; 3] = ["Response", "Expression", "HttpWebhook"];

/// The types of actions that Logic Apps does not have.
const LOOM_TYPES: [&str; 14] = words! {
    operation workflow while doUntil retry parallel waitForSignal ai activity actor shell appendFile
    setState getState
};

/// The keys of actions that Logic Apps does not have.
const LOOM_KEYS: [&str; 10] = words! {
    retry break_when continue_when timeout delay on_missing on_limit page on_repeat concurrency
};

/// Reads a definition. The workflow is valid only if no error was reported.
/// `siblings` are the trees of the files next to the definition. The flag is true if a file is for this definition
/// alone.
pub(super) fn read(
    file: &SourceFile,
    node: &Node,
    siblings: &[(Node, bool)],
    caps: &Caps,
    diagnostics: &mut Diagnostics,
) -> (Workflow, MissingInputs) {
    let mut actions = ActionReader::new(LogicApps::default(), file, caps, diagnostics);
    let settings = Settings::of(siblings.iter().map(|(node, strict)| (node, *strict)));
    let mut workflow = builder::workflow(&stem_of(&file.path), Dialect::Azure, node.span);
    actions.definition(node, &settings, &mut workflow);
    actions.check_webhooks(&workflow);
    actions.finish(&mut workflow, node);
    if !actions.diagnostics.has_errors() {
        actions.deployable(&workflow);
    }
    (workflow, actions.missing_inputs)
}

/// Returns the name of a workflow from the path of its file. In a Standard app, this is the name of the folder.
fn stem_of(path: &str) -> String {
    let own = workflow_name(path);
    let folder = std::path::Path::new(path).parent();
    let folder = folder.and_then(|folder| folder.file_name()?.to_str());
    match folder {
        Some(folder) if own == "workflow" => folder.to_owned(),
        _ => own,
    }
}

#[derive(Default)]
struct LogicApps {
    /// Whether the definition is a flow of Power Automate, whose loops run one item at a time by default.
    is_flow: bool,
    /// The names of the triggers. `runAfter` with the name of a trigger means that there is nothing to wait for.
    triggers: Vec<Name>,
    /// Whether the caller of the trigger waits for an answer. `None` if the type of the trigger is unknown.
    trigger_awaits_response: Option<bool>,
    /// The `HttpWebhook` actions. The flag is true if the action unsubscribes.
    webhooks: Vec<(Name, Span, bool)>,
    /// The target of each connection, by the connection's name in lower case.
    connection_targets: BTreeMap<String, String>,
    /// The names of the connections of each kind, in lower case. Empty if the connections are not known.
    connections: BTreeMap<ConnectionKind, BTreeSet<String>>,
}

impl Format for LogicApps {
    const CONVENTIONS: Conventions = Conventions {
        dialect: Dialect::Azure,
        syntax: Syntax::Azure,
        allows_empty_blocks: true,
        ordered_by_run_after: true,
        inputs_next_to_type: false,
        condition_key: "expression",
        switch_key: "expression",
        cases_have_values: true,
        declares_variables: true,
        result_is_body: true,
        accepts_any_schema: true,
        foreach_on_error: Some(OnError::Finish),
        nested_foreach_is_sequential: true,
        until_test: Test::After,
        loops_survive_failures: true,
        on_limit: OnLimit::Continue,
        refuses_early_reads: true,
        retries: 4,
        has_extended_policies: false,
        has_extended_requests: false,
        is_deployed: true,
    };

    fn foreach_concurrency(&self) -> u32 {
        if self.is_flow { 1 } else { 20 }
    }

    fn known_types() -> String {
        let shared = vocabulary::types().filter(|word| !LOOM_TYPES.contains(word));
        let words: Vec<String> = shared.chain(own_types()).map(pascal).collect();
        words.join(", ")
    }

    /// Returns the type of an action.
    /// An unknown type is accepted, because a handler may execute it.
    fn label<'t>(
        actions: &mut ActionReader<'_, Self>,
        text: &'t str,
        entry: &Entry,
        node: &Node,
    ) -> Option<Cow<'t, str>> {
        // `Workflow` is excluded here: in Logic Apps, it is the type of a connector.
        let shared = vocabulary::types().filter(|known| *known != WORKFLOW);
        let known: Vec<&str> = shared.chain(own_types()).collect();
        let exact = known.iter().find(|known| known.eq_ignore_ascii_case(text));
        if let Some(label) = exact {
            return Some(Cow::Borrowed(*label));
        }
        let near = nearest(text, known.iter().copied());
        if node.get_any_case("actions").is_some() {
            actions.unknown_type(text, entry, None, near);
            return near.map(Cow::Borrowed);
        }
        if let Some(near) = near {
            let what = format!("`{text}` is not a known type of action: a handler executes it");
            let hint = format!("did you mean `{near}`?");
            actions.warning("unknown-type", entry.value.span, what, hint);
        }
        Some(Cow::Borrowed(text))
    }

    fn common_keys(actions: &mut ActionReader<'_, Self>, fields: &mut Fields<'_>, step: &mut Step) {
        fields.allow(&["kind", "correlation", "conversion"]);
        let configuration = fields.get("runtimeConfiguration");
        actions.known_configuration(configuration, &["repetitions"]);
        actions.static_result(configuration);
        actions.known_options(fields.get("operationOptions"));
        actions.secure_data(configuration, &step.name);
        if &*step.label != "http" {
            actions.pagination(configuration);
        }
    }

    fn check_keys(actions: &mut ActionReader<'_, Self>, fields: &Fields<'_>) {
        for entry in fields.read_entries(&LOOM_KEYS) {
            let what = format!("the key `{}` of Loom", entry.key);
            let hint = match &*entry.key {
                "retry" => "to deploy it, write a `retryPolicy` in `inputs`",
                "concurrency" => "to deploy it, write it in `runtimeConfiguration`",
                _ => "to deploy it, remove the key",
            };
            actions.no_deploy(&what, entry.key_span, hint);
        }
    }

    fn own_action(
        actions: &mut ActionReader<'_, Self>,
        act: &mut ActionFields<'_>,
        label: &str,
    ) -> Body {
        match label {
            "Response" => actions.response(act).into(),
            "Expression" => actions.function_action(act).into(),
            "HttpWebhook" => actions.http_webhook(act),
            _ => actions.connector(act, label),
        }
    }

    fn http(
        actions: &mut ActionReader<'_, Self>,
        act: &mut ActionFields<'_>,
        mut request: HttpRequest,
        timeout: Option<Template>,
    ) -> Body {
        if let Some(wanted) = actions.wanted_rows(act) {
            return actions.paged(act, wanted, request, timeout);
        }
        let name = act.name.clone();
        let follow_up = actions.asynchronous(act, &name, &mut request, None);
        request.into_body(follow_up, timeout)
    }

    /// Warns if a callback address is sent to a server in the body of a request.
    fn check_body(actions: &mut ActionReader<'_, Self>, body: &Node) {
        let text = body.as_str().unwrap_or_default().to_ascii_lowercase();
        if text.contains("listcallbackurl(") {
            let what = "`listCallbackUrl` has no endpoint outside Azure";
            let hint = "make it an HttpWebhook, which waits for a request to the address";
            actions.warning("not-supported", body.span, what, hint);
        }
        body.children()
            .for_each(|(_, child)| Self::check_body(actions, child));
    }

    fn request_retry(
        _: &ActionReader<'_, Self>,
        act: &ActionFields<'_>,
        _idempotent: bool,
    ) -> Option<RetryPolicy> {
        Some(default_policy(act.span))
    }

    fn named_policy(kind: &str, span: Span) -> Option<RetryPolicy> {
        let is_default = kind.eq_ignore_ascii_case("default");
        is_default.then(|| default_policy(span))
    }

    fn exponential(
        interval: Option<Duration>,
        max: Option<Duration>,
        min: Option<Duration>,
        _: Option<Jitter>,
    ) -> Backoff {
        Backoff::AzureExponential {
            interval: interval.unwrap_or(Duration::from_millis(7500)),
            max: max.unwrap_or(Duration::from_secs(3600)),
            min: min.unwrap_or(Duration::from_secs(5)),
        }
    }

    /// Reads a wait in months.
    /// Months have no fixed length, so the wait ends on the same day of a later month.
    fn wait(actions: &mut ActionReader<'_, Self>, entry: &Entry) -> Option<StepKind> {
        let unit = entry.value.get_any_case("unit").and_then(Node::as_str)?;
        let count = entry.value.get_any_case("count")?;
        if !unit.eq_ignore_ascii_case("month") {
            return None;
        }
        // A count that an expression computes may be text.
        let count = Template::call("int", vec![actions.template(count)]).ok()?;
        let now = Template::call("utcNow", Vec::new()).ok()?;
        let due = Template::call("addToTime", vec![now, count, text("Month")]).ok()?;
        Some(StepKind::Wait(Wait::Until(due)))
    }

    fn makes_variable(actions: &mut ActionReader<'_, Self>, name: &str, span: Span) {
        actions.initializes(name, span);
    }

    fn sets_variable(
        actions: &mut ActionReader<'_, Self>,
        name: &Name,
        label: &str,
        value: &Template,
        span: Span,
    ) {
        actions.sets_initialized(name, label, value, span);
    }

    fn is_before_all(actions: &ActionReader<'_, Self>, name: &str) -> bool {
        let mut triggers = actions.format.triggers.iter();
        triggers.any(|trigger| trigger.eq_ignore_ascii_case(name))
    }

    /// Returns true for the parameters that a deployment sets for every definition.
    fn is_deployed_parameter(name: &str) -> bool {
        DEPLOYED_PARAMETERS
            .iter()
            .any(|known| name.eq_ignore_ascii_case(known))
    }

    fn handle_unknown_parameter(actions: &mut ActionReader<'_, Self>, name: &str) {
        let value = Value::text(name);
        let wanted = actions.missing_inputs.parameters.entry(name.to_owned());
        wanted.or_insert(value);
    }
}

/// Returns the types that only Logic Apps has.
fn own_types() -> impl Iterator<Item = &'static str> {
    OWN_TYPES.iter().chain(&connector::TYPES).copied()
}

/// Returns the policy of a request that sets none (Logic Apps reference, "Default retry policy").
/// There are 4 retries. The waits grow from a base of 7.5 s, and are between 5 s and 45 s.
fn default_policy(span: Span) -> RetryPolicy {
    RetryPolicy {
        backoff: Backoff::AzureExponential {
            interval: Duration::from_millis(7500),
            max: Duration::from_secs(45),
            min: Duration::from_secs(5),
        },
        count: Template::constant(4_i64.into()),
        on: Vec::new(),
        when: None,
        is_default: false,
        span,
    }
}

/// Converts a type to the form that definitions have: `setVariable` becomes `SetVariable`.
fn pascal(word: &str) -> String {
    let mut letters = word.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}
