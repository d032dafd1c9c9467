//! Loom, Windlass's own format (docs/reference/loom.md).
//! This module reads the file outside of its actions, and the keys and forms of actions that only Loom has.
//! Everything else about actions is in [`crate::actions`].

mod alert;
mod concurrency;
mod event_trigger;
mod failure_keys;
mod nested;
mod schedule;
mod workflow;

pub(super) use event_trigger::are_of_loom;
pub(super) use nested::is_loom;

use super::actions::Settings;
use super::actions::{
    ActionFields, ActionReader, Body, Conventions, Format, HttpRequest, OrderedStep,
};
use super::fields::Fields;
use super::missing::MissingInputs;
use super::synonyms::action_type;
use super::vocabulary::loom as vocabulary;
use super::{Caps, workflow_name};
use std::borrow::Cow;
use std::time::Duration;
use windlass_expression::{Syntax, Template};
use windlass_model::hir::{RetryPolicy, Step, StepKind, Workflow};
use windlass_model::model::{Backoff, Dialect, Jitter, Name, OnLimit, Test};
use windlass_source::diagnostic::{Diagnostics, nearest};
use windlass_source::source::{Entry, Node, SourceFile, Span};

/// Reads a Loom file. The workflow is valid only if no error was reported.
/// `siblings` are the trees of the files next to the file. The flag is true if a sibling is for this file alone. Only
/// a file in the form of a definition uses them.
pub(super) fn read(
    file: &SourceFile,
    node: &Node,
    siblings: &[(Node, bool)],
    caps: &Caps,
    diagnostics: &mut Diagnostics,
) -> (Workflow, MissingInputs) {
    let mut actions = ActionReader::new(Loom, file, caps, diagnostics);
    let settings = Settings::of(siblings.iter().map(|(node, strict)| (node, *strict)));
    let mut workflow = actions.workflow(node, &settings, &workflow_name(&file.path));
    actions.finish(&mut workflow, node);
    (workflow, actions.missing_inputs)
}

struct Loom;

impl Format for Loom {
    const CONVENTIONS: Conventions = Conventions {
        dialect: Dialect::Loom,
        syntax: Syntax::Loom,
        allows_empty_blocks: false,
        ordered_by_run_after: false,
        inputs_next_to_type: true,
        condition_key: "condition",
        switch_key: "on",
        cases_have_values: false,
        declares_variables: false,
        result_is_body: false,
        accepts_any_schema: false,
        foreach_on_error: None,
        nested_foreach_is_sequential: false,
        until_test: Test::Before,
        loops_survive_failures: false,
        on_limit: OnLimit::Fail,
        refuses_early_reads: false,
        retries: 3,
        has_extended_policies: true,
        has_extended_requests: true,
        is_deployed: false,
    };

    fn known_types() -> String {
        vocabulary::types().collect::<Vec<_>>().join(", ")
    }

    /// Returns the type of an action.
    /// If the type of an action that contains actions is misspelt, it is reported and the action is read as the most
    /// similar type. So mistakes in the inner actions are reported, too.
    fn label<'t>(
        actions: &mut ActionReader<'_, Self>,
        text: &'t str,
        entry: &Entry,
        node: &Node,
    ) -> Option<Cow<'t, str>> {
        let exact = vocabulary::types().find(|known| known.eq_ignore_ascii_case(text));
        if let Some(label) = exact {
            return Some(Cow::Borrowed(label));
        }
        let near = nearest(text, vocabulary::types());
        actions.unknown_type(text, entry, action_type(text), near);
        let near = near.filter(|_| node.get_any_case("actions").is_some());
        near.map(Cow::Borrowed)
    }

    fn read_action(
        actions: &mut ActionReader<'_, Self>,
        node: &Node,
        name: Name,
        span: Span,
        anonymous: bool,
    ) -> OrderedStep {
        let Some(flat) = actions.flat(node) else {
            return actions.action(node, name, span, anonymous);
        };
        let mut placed = actions.action(&flat, name, span, anonymous);
        nested::as_nested(actions, &mut placed.step);
        placed
    }

    fn common_keys(actions: &mut ActionReader<'_, Self>, fields: &mut Fields<'_>, step: &mut Step) {
        if let Some(entry) = fields.non_null(actions, "secure") {
            actions.read_secure(entry, &step.name, "for example secure: [inputs, outputs]");
        }
        step.catch = actions.catch(fields, &step.name);
        let expect = fields.non_null(actions, "expect");
        step.expect = expect.and_then(|entry| actions.expect(entry));
    }

    fn own_action(_: &mut ActionReader<'_, Self>, _: &mut ActionFields<'_>, _: &str) -> Body {
        StepKind::Nothing.into()
    }

    fn http(
        _: &mut ActionReader<'_, Self>,
        _: &mut ActionFields<'_>,
        request: HttpRequest,
        timeout: Option<Template>,
    ) -> Body {
        request.into_body(None, timeout)
    }

    fn request_retry(
        actions: &ActionReader<'_, Self>,
        act: &ActionFields<'_>,
        idempotent: bool,
    ) -> Option<RetryPolicy> {
        actions.default_retry(act, idempotent)
    }

    fn exponential(
        interval: Option<Duration>,
        max: Option<Duration>,
        min: Option<Duration>,
        jitter: Option<Jitter>,
    ) -> Backoff {
        let seconds = Duration::from_secs;
        let first = interval.unwrap_or(seconds(5));
        Backoff::Exponential {
            interval: first,
            max: max.unwrap_or(seconds(60).max(interval.unwrap_or_default())),
            min: min.unwrap_or(seconds(1).min(interval.unwrap_or(seconds(1)))),
            jitter: jitter.unwrap_or(Jitter::Tenth),
        }
    }
}
