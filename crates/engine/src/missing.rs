//! Checks for what a workflow needs and this process does not have: handlers, tokens, secrets, interpreters.

use super::error::{and_more, hint_suffix};
use super::load::Workflows;
use std::collections::BTreeSet;
use windlass_actions::{IDENTITIES, Registry, has_secret, interpreter, required_feature};
use windlass_expression::{of_callback, of_environment};
use windlass_model::hir::{self, Call, HandlerUse, Step};
use windlass_model::model::{Origin, WORKFLOW};
use windlass_source::diagnostic::{Diagnostic, Diagnostics, did_you_mean};

/// Maximum number of missing handlers in a message.
const MAX_NAMED: usize = 12;
/// Maximum number of actions that a message lists for each handler.
const MAX_ACTIONS: usize = 3;

impl Workflows {
    /// Reports handlers that are not registered. A missing connector of a Logic Apps definition is an error, because a
    /// run could do half of its work before it needs the connector. All missing connectors are reported at once. Other
    /// handlers are only a warning, because another process may have them.
    ///
    /// `registry` is that of the workflow: see [`Self::registry_of`].
    pub(super) fn missing_handlers(
        registry: &Registry,
        workflow: &hir::Workflow,
        diagnostics: &mut Diagnostics,
    ) {
        let uses = workflow.handler_uses();
        let unanswered = |used: &&HandlerUse<'_>| {
            let names: Vec<&str> = used.names().collect();
            let is_stubbed = registry.has_stub(used.executor, &names, &used.step.name);
            !is_stubbed && !names.into_iter().any(|name| registry.answers(name))
        };
        let (connectors, others): (Vec<_>, Vec<_>) = uses
            .iter()
            .filter(unanswered)
            .partition(|used| used.executor == "connector");
        if let Some(first) = connectors.first() {
            let message = grouped(&connectors);
            let connector = first.name.split('/').next().unwrap_or(first.name);
            let known = registry.handler_names().chain(registry.stub_names());
            let near = hint_suffix(&did_you_mean(first.name, known));
            let or = match connector == first.name {
                true => String::new(),
                false => format!(" or `{connector}`"),
            };
            let hint = format!(
                "`windlass validate FILE --write-stubs stubs.json` writes answers to fill in for \
                 --stub; or register `{}`{or} with --handlers FILE{near}",
                first.name,
            );
            let error = Diagnostic::error("missing-handler", first.step.span, message);
            diagnostics.push(error.hint(hint));
        }
        for used in others {
            let (key, word) = match used.executor {
                "runner" => ("runners", "runner"),
                _ => ("handlers", "handler"),
            };
            let message = format!("`{}` needs the {word} `{}`", used.step.name, used.name);
            let hint = did_you_mean(used.name, registry.handler_names()).unwrap_or_else(|| {
                format!("add it under `{key}`, or pass it with --handlers FILE")
            });
            let warning = Diagnostic::warning("missing-handler", used.step.span, message);
            diagnostics.push(warning.hint(hint));
        }
        missing_tokens(registry, workflow, diagnostics);
    }

    /// Returns the registry for the workflow: with the handlers that it declares, and with the titles of its actions.
    pub(super) fn registry_of(&self, workflow: &hir::Workflow) -> Registry {
        let calls = workflow.calls().into_iter();
        let titled = calls.filter_map(|(step, _)| Some((&step.name, step.title.as_deref()?)));
        let registry = self.registry.with_handlers(&workflow.handlers);
        registry.with_titles(titled)
    }

    /// Warns of stubs (of `--stub`) that no action uses: the action that was meant would really be carried out.
    pub(super) fn unused_stubs(&self, workflow: &hir::Workflow, diagnostics: &mut Diagnostics) {
        if !self.registry.has_stubs() {
            return;
        }
        let (calls, uses) = (workflow.calls(), workflow.handler_uses());
        let Some((first, _)) = calls.first() else {
            return;
        };
        let asking = calls.iter().flat_map(|(step, call)| {
            let author = step.name.rsplit_once('.').map(|(author, _)| author);
            let title = step.title.as_deref();
            let names = [Some(&*step.name), author, title, Some(&*call.executor)];
            names.into_iter().flatten()
        });
        let handlers = uses.iter().flat_map(HandlerUse::names);
        let handlers = handlers.flat_map(|name| [Some(name), name.split('/').next()]);
        let known: BTreeSet<&str> = asking.chain(handlers.flatten()).chain(IDENTITIES).collect();
        let is_known = |name: &&str| known.iter().any(|known| known.eq_ignore_ascii_case(name));
        let (mut others, mut names) = (0, Vec::new());
        for name in self.registry.stub_names().filter(|name| !is_known(name)) {
            match did_you_mean(name, known.iter().copied()) {
                Some(hint) => {
                    let message = format!("no action uses the stub `{name}`");
                    let warning = Diagnostic::warning("unused-stub", first.span, message);
                    diagnostics.push(warning.hint(hint));
                }
                None if names.len() < MAX_NAMED => names.push(format!("`{name}`")),
                None => others += 1,
            }
        }
        // The other names may be those of actions in called workflows.
        let calls_workflows = calls.iter().any(|(_, call)| &*call.executor == WORKFLOW);
        if names.is_empty() || calls_workflows {
            return;
        }
        let more = and_more(", ", others);
        let stubs = if names.len() == 1 { "stub" } else { "stubs" };
        let message = format!("no action uses the {stubs} {}{more}", names.join(", "));
        let hint =
            "a stub has the name of an action, of its handler or of its type, such as `http`";
        diagnostics.push(Diagnostic::warning("unused-stub", first.span, message).hint(hint));
    }

    /// Returns what a run needs and this process does not have: the first missing thing, in words.
    ///
    /// Actions that need it would fail for good. So the run is not loaded until the operator provides it and resumes
    /// the run.
    pub(super) fn unmet_requirements(
        &self,
        workflow: &hir::Workflow,
        origin: Origin,
    ) -> Option<String> {
        let mut unmet = Diagnostics::default();
        let registry = self.registry_of(workflow);
        Self::missing_handlers(&registry, workflow, &mut unmet);
        self.missing_secrets(&registry, workflow, origin, &mut unmet);
        unmet.sorted().first().map(|first| first.to_line())
    }

    /// Warns of missing secrets. It is only a warning, because a secret may be added before the action starts.
    pub(super) fn missing_secrets(
        &self,
        registry: &Registry,
        workflow: &hir::Workflow,
        origin: Origin,
        diagnostics: &mut Diagnostics,
    ) {
        for (step, call) in workflow.calls() {
            if is_stubbed(registry, step, call) {
                continue;
            }
            for name in workflow.secrets_of(call) {
                let is_left = of_environment(&name)
                    .is_some_and(|variable| !call.inputs.needs_variable(variable));
                // The address of a callback is not read from a source: it is made when the action starts.
                if is_left
                    || of_callback(&name).is_some()
                    || !self.may_name(&name, origin)
                    || self.registry.secret_sources().knows(&name)
                {
                    continue;
                }
                let (shown, hint) = match of_environment(&name) {
                    Some(variable) => (
                        variable,
                        format!("set {variable} where the engine runs, before the action starts"),
                    ),
                    None => (
                        &*name,
                        format!(
                            "put it into a file `{name}` in the directory of --secrets, or into \
                             the environment as WINDLASS_SECRET_{name}"
                        ),
                    ),
                };
                let message = format!(
                    "`{}` needs the secret `{shown}`, which is not there",
                    step.name
                );
                diagnostics
                    .push(Diagnostic::warning("missing-secret", step.span, message).hint(hint));
            }
        }
    }

    /// Warns of callback addresses if no server runs in this process. It is only a warning, because the run may be
    /// started on a server.
    pub(super) fn missing_server(
        registry: &Registry,
        workflow: &hir::Workflow,
        diagnostics: &mut Diagnostics,
    ) {
        if registry.callbacks().has_server() {
            return;
        }
        for (step, call) in workflow.calls() {
            let secrets = workflow.secrets_of(call);
            let mut signals = secrets.iter().filter_map(|name| of_callback(name));
            if signals.next().is_none() || is_stubbed(registry, step, call) {
                continue;
            }
            let message = format!(
                "`{}` needs a callback address, and no server runs here",
                step.name
            );
            let hint =
                "`windlass run` cannot receive the answer: start the run on `windlass serve`";
            let warning = Diagnostic::warning("missing-server", step.span, message);
            diagnostics.push(warning.hint(hint));
        }
    }

    /// Refuses actions that this build does not include, and scripts in a language that this machine cannot run. They
    /// are refused before a run starts, because the run could do half of its work before it reaches them.
    pub(super) fn missing_interpreters(
        registry: &Registry,
        workflow: &hir::Workflow,
        diagnostics: &mut Diagnostics,
    ) {
        for (step, call) in workflow.calls() {
            if is_stubbed(registry, step, call) {
                continue;
            }
            if let Some(feature) = required_feature(&call.executor) {
                let message = format!(
                    "this build of Windlass has no `{}`: feature `{feature}`",
                    call.executor
                );
                diagnostics.push(Diagnostic::error("missing-feature", step.span, message));
            }
            if let Err(missing) = interpreter(&call.executor) {
                let message = format!("`{}` is a script in {}", step.name, call.executor);
                let diagnostic = Diagnostic::error("missing-interpreter", step.span, message);
                diagnostics.push(diagnostic.hint(missing));
            }
        }
    }
}

/// Returns true if a stub answers the calls of a step. Then it needs neither secrets nor an interpreter.
fn is_stubbed(registry: &Registry, step: &Step, call: &Call) -> bool {
    registry.has_stubs() && {
        let used = HandlerUse::of(step, call);
        let names: Vec<&str> = used.iter().flat_map(HandlerUse::names).collect();
        registry.has_stub(&call.executor, &names, &step.name)
    }
}

/// Lists the missing handlers, each once, with the actions that need it.
fn grouped(missing: &[&HandlerUse<'_>]) -> String {
    let mut groups: Vec<(&str, Vec<&str>)> = Vec::new();
    for used in missing {
        match groups.iter_mut().find(|(name, _)| *name == used.name) {
            Some((_, actions)) => actions.push(&used.step.name),
            None => groups.push((used.name, vec![&used.step.name])),
        }
    }
    let shown = groups.iter().take(MAX_NAMED).map(|(name, actions)| {
        let named: Vec<&str> = actions.iter().take(MAX_ACTIONS).copied().collect();
        let rest = and_more(" ", actions.len().saturating_sub(MAX_ACTIONS));
        format!("`{name}` ({}{rest})", named.join(", "))
    });
    let shown: Vec<String> = shown.collect();
    let rest = and_more(", ", groups.len().saturating_sub(MAX_NAMED));
    let actions = match missing.len() {
        1 => "1 action has no handler".to_owned(),
        count => format!("{count} actions have no handler"),
    };
    format!("{actions}: {}{rest}", shown.join(", "))
}

/// Warns once for each kind of platform identity (such as a managed identity) that HTTP calls sign in with, if no
/// handler returns its token.
fn missing_tokens(registry: &Registry, workflow: &hir::Workflow, diagnostics: &mut Diagnostics) {
    for name in IDENTITIES {
        let signs_in = |call: &hir::Call| {
            let inputs = call.inputs.source();
            let given = inputs.get("authentication");
            let kind = given.and_then(|given| given.get("type")?.as_str());
            kind.is_some_and(|kind| kind.eq_ignore_ascii_case(name))
                && !given.is_some_and(|given| has_secret(name, given))
        };
        let calls = workflow.calls().into_iter();
        let steps: Vec<_> = calls
            .filter(|(step, call)| {
                &*call.executor == "http" && signs_in(call) && !is_stubbed(registry, step, call)
            })
            .map(|(step, _)| step)
            .collect();
        let Some(first) = steps.first().filter(|_| !registry.answers(name)) else {
            continue;
        };
        let named: Vec<&str> = steps
            .iter()
            .take(MAX_NAMED)
            .map(|step| &*step.name)
            .collect();
        let message = format!(
            "no handler returns the token that {} needs: `authentication` is of type {name}",
            named.join(", ")
        );
        let hint = format!(
            "register `{name}` with --handlers FILE: a command or a URL that answers with the \
             token; or pass it with --stub FILE"
        );
        let warning = Diagnostic::warning("missing-token", first.span, message);
        diagnostics.push(warning.hint(hint));
    }
}
