//! Workflows that a workflow starts as separate runs (`type: workflow`). Has the files of the called workflows (they
//! are part of the calling workflow's bundle), and the input and the result of a call.

use super::launch::{DEPTH_LABEL, MAX_DEPTH, refuse_on_temporal};
use super::load::{LoadOptions, Workflows, read_stored, stored_caps};
use crate::scheduler::{CallingRun, PARENT_LABEL, Start, child_id};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use windlass_expression::Value;
use windlass_machine::Outcome;
use windlass_model::hir;
#[cfg(feature = "tea")]
use windlass_model::model::Dialect;
use windlass_model::model::{Fault, Name, Request, Status, WORKFLOW, fault_kind};
use windlass_source::diagnostic::{Diagnostic, Diagnostics, did_you_mean};
use windlass_source::source::{Bundle, SourceFile};
use windlass_store::ProgramSource;

/// Returns the name of the workflow that a request calls.
pub(super) fn called_name(request: &Request) -> String {
    let inputs = request.inputs.revealed();
    inputs.get(WORKFLOW).map(Value::to_text).unwrap_or_default()
}

/// Returns the input of the run that a request starts. If the request is secure, the input is secure, too.
pub(super) fn input(request: &Request) -> Value {
    let is_secure = matches!(request.inputs, Value::Secure(_));
    let inputs = request.inputs.revealed();
    let input = inputs.get("inputs").cloned().unwrap_or_default();
    match input.as_object() {
        Some(members) if is_secure => {
            let members = members.iter();
            let members = members.map(|(name, value)| (name.clone(), value.clone().secure()));
            Value::from_pairs(members)
        }
        _ => input,
    }
}

/// Returns the result of a call whose run has ended.
pub fn result(run: &Name, outcome: Outcome) -> Result<Value, Fault> {
    let Outcome { status, error, .. } = outcome;
    if status == Status::Succeeded {
        return Ok(outcome.output);
    }
    let fault = error.map(|error| error.fault);
    let why = fault.as_ref().map(|fault| format!(": {}", fault.message));
    let message = format!(
        "run {run} ended as {}{}",
        status.as_str(),
        why.unwrap_or_default()
    );
    let kind = fault.as_ref().map(|fault| Value::text(&*fault.kind));
    let output = [
        ("run", Value::text(&**run)),
        ("status", Value::text(status.as_str())),
        ("kind", kind.unwrap_or_default()),
    ];
    Err(Fault::new(fault_kind::WORKFLOW, message).output(Value::from_pairs(output)))
}

/// Returns the bundle of a called workflow, if it is a file of the calling workflow's bundle.
pub(super) fn bundle_of(bundle: &Bundle, name: &str) -> Option<Bundle> {
    let file = bundle.named_by(0, name)?;
    Some(part_of(bundle, file)?.0)
}

/// Returns a file of a bundle as a workflow of its own, with the files that it names. Also returns the number that each
/// of these files has in `bundle`.
fn part_of(bundle: &Bundle, file: u16) -> Option<(Bundle, Vec<u16>)> {
    let first = bundle.file(file)?;
    let folder = match file {
        0 => Path::new(""),
        _ => Path::new(&first.path).parent()?,
    };
    let mut part = Bundle {
        files: vec![first.clone()],
    };
    let mut from = vec![file];
    #[cfg(feature = "tea")]
    if let Some(option) = bundle.named(windlass_formats::AUTO_CONTINUE)
        && windlass_formats::detect_dialect(&part, None) == Some(Dialect::Tea)
    {
        part.files.extend(bundle.file(option).cloned());
        from.push(option);
    }
    loop {
        let before = part.files.len();
        for reference in windlass_formats::references(&part, None) {
            let Some(path) = part.resolve_sibling(reference.span.file, &reference.path) else {
                continue;
            };
            let outer = folder.join(&path);
            let outer = outer.to_str().and_then(|path| bundle.named(path));
            if part.named(&path).is_none()
                && let Some(outer) = outer
                && let Some(SourceFile { text, .. }) = bundle.file(outer)
            {
                let text = text.clone();
                part.files.push(SourceFile { path, text });
                from.push(outer);
            }
        }
        if part.files.len() == before {
            return Some((part, from));
        }
    }
}

/// Returns the depth that a child run has, for the labels of its parent run.
pub(super) fn depth_below(labels: &BTreeMap<String, String>) -> usize {
    depth(labels).saturating_add(1)
}

/// Returns the number of runs that wait, directly or indirectly, for a run with these labels.
pub(super) fn depth(labels: &BTreeMap<String, String>) -> usize {
    let depth = labels.get(DEPTH_LABEL);
    let depth = depth.and_then(|depth| depth.parse::<usize>().ok());
    depth.unwrap_or_default()
}

/// Returns the fault of a call that exceeds the maximum depth.
pub(super) fn too_deep(workflow: &str) -> Fault {
    let message =
        format!("`{workflow}` was not started: {MAX_DEPTH} runs wait for each other already");
    Fault::new(fault_kind::WORKFLOW, message)
}

/// Returns the names of the saved workflows that a workflow or a file of its bundle calls.
pub(super) fn saved_names(source: &ProgramSource) -> BTreeSet<Name> {
    let mut names = BTreeSet::new();
    let mut checked = BTreeSet::from([0]);
    let mut open = Vec::new();
    let mut note = |workflow: &hir::Workflow, bundle: &Bundle| {
        let (files, saved): (Vec<_>, Vec<_>) = called_by(workflow, bundle).partition(Result::is_ok);
        names.extend(saved.into_iter().filter_map(Result::err));
        files.into_iter().filter_map(Result::ok).collect::<Vec<_>>()
    };
    if let Ok(workflow) = read_stored(source) {
        open = note(&workflow, &source.bundle);
    }
    while let Some(file) = open.pop() {
        if !checked.insert(file) {
            continue;
        }
        if let Some((part, from)) = part_of(&source.bundle, file)
            && let (Some(workflow), _) = windlass_formats::read(&part, None, &stored_caps(source))
        {
            let inner = note(&workflow, &part).into_iter();
            open.extend(inner.filter_map(|file| from.get(usize::from(file)).copied()));
        }
    }
    names
}

impl Workflows {
    /// Returns the start of the child run that a call requests. The source is read from the calling run, not from a
    /// store.
    pub(super) fn start_of(&self, caller: &CallingRun<'_>, call: &Request) -> Result<Start, Fault> {
        let name = called_name(call);
        let failed = |why: String| {
            let message = format!("`{name}` was not started: {why}");
            Fault::new(fault_kind::WORKFLOW, message)
        };
        // This process may not be the one that executes the actions, so a missing handler is not an error here.
        let reader = Self {
            commands_only: true,
            ..self.with(&LoadOptions::default())
        };
        let loaded = match (
            bundle_of(&caller.source.bundle, &name),
            caller.saved.get(&*name),
        ) {
            (Some(bundle), _) => reader.load_as(caller.source, bundle, None),
            (None, Some(saved)) => reader.load_as(saved, saved.bundle.clone(), Some(saved.dialect)),
            (None, None) => {
                let why = "there was no saved workflow of this name where the run was started";
                return Err(failed(why.to_owned()));
            }
        };
        let workflow = loaded.map_err(|error| failed(error.to_string()))?;
        workflow
            .refuse("denied")
            .map_err(|error| failed(error.to_string()))?;
        let depth = depth_below(caller.labels);
        if depth > MAX_DEPTH {
            return Err(too_deep(&workflow.program().name));
        }
        let accepted = refuse_on_temporal(workflow.program());
        let accepted = accepted.and_then(|()| workflow.accept(input(call)));
        let input = accepted.map_err(|error| failed(error.to_string()))?;
        let labels = BTreeMap::from([
            (PARENT_LABEL.to_owned(), caller.run.to_string()),
            (DEPTH_LABEL.to_owned(), depth.to_string()),
        ]);
        Ok(Start {
            run: child_id(caller.run, call),
            environment: super::environment(&workflow.loaded, &labels),
            loaded: workflow.loaded,
            source: workflow.source,
            input,
            from: None,
            labels,
            watcher: None,
            saved: caller.saved.clone(),
        })
    }

    /// Reports the mistakes in the files of called workflows, and in the files that these files call.
    pub(super) fn check_called(
        &self,
        workflow: &hir::Workflow,
        bundle: &Bundle,
        diagnostics: &mut Diagnostics,
    ) {
        let mut checked = BTreeSet::from([0]);
        let mut open: Vec<u16> = called_files(workflow, bundle).collect();
        while let Some(file) = open.pop() {
            if !checked.insert(file) {
                continue;
            }
            let Some((part, from)) = part_of(bundle, file) else {
                continue;
            };
            let (called, found) = self.read_checked(&part, None);
            if let Some(called) = &called {
                check_inputs(workflow, bundle, file, called, diagnostics);
            }
            let of_bundle = |file: u16| from.get(usize::from(file)).copied().unwrap_or_default();
            for mistake in found.sorted() {
                let mut mistake = mistake.clone();
                mistake.span.file = of_bundle(mistake.span.file);
                diagnostics.push(mistake);
            }
            let inner = called.iter();
            let inner = inner.flat_map(|called| called_files(called, &part));
            open.extend(inner.map(of_bundle));
        }
    }
}

/// Reports inputs in the calls of a file that the called workflow does not have, and required inputs that are missing.
fn check_inputs(
    workflow: &hir::Workflow,
    bundle: &Bundle,
    file: u16,
    called: &hir::Workflow,
    diagnostics: &mut Diagnostics,
) {
    if called.inputs.is_empty() {
        return;
    }
    for (step, call) in workflow.calls() {
        let source = call.inputs.source();
        let name = source.get(WORKFLOW).map(Value::to_text);
        if &*call.executor != WORKFLOW
            || name.and_then(|name| bundle.named_by(0, &name)) != Some(file)
        {
            continue;
        }
        // Computed inputs are known only in a run.
        let given: Vec<&str> = match source.get("inputs") {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::Object(given)) => given.keys().map(|name| &**name).collect(),
            Some(_) => continue,
        };
        let known = || called.inputs.iter().map(|input| &*input.name);
        let mut report = |message: String, hint: String| {
            diagnostics.push(Diagnostic::error("called-input", step.span, message).hint(hint));
        };
        for name in &given {
            if !known().any(|known| known == *name) {
                let message = format!(
                    "the workflow that `{}` calls has no input `{name}`",
                    step.name
                );
                let all = known().collect::<Vec<_>>().join(", ");
                let hint = did_you_mean(name, known());
                report(message, hint.unwrap_or_else(|| format!("it has {all}")));
            }
        }
        for input in called.inputs.iter().filter(|input| input.default.is_none()) {
            if !given.contains(&&*input.name) {
                let message = format!(
                    "the workflow that `{}` calls needs the input `{}`",
                    step.name, input.name
                );
                let hint = "add it to `inputs`, or give it a default in the called file";
                report(message, hint.to_owned());
            }
        }
    }
}

/// Returns the files of a bundle that a workflow calls.
fn called_files<'a>(
    workflow: &'a hir::Workflow,
    bundle: &'a Bundle,
) -> impl Iterator<Item = u16> + 'a {
    called_by(workflow, bundle).filter_map(Result::ok)
}

/// Returns what a workflow calls: a file of its bundle (`Ok`), or the name of a saved workflow (`Err`).
fn called_by<'a>(
    workflow: &'a hir::Workflow,
    bundle: &'a Bundle,
) -> impl Iterator<Item = Result<u16, Name>> + 'a {
    let calls = workflow.calls();
    let calls = calls
        .into_iter()
        .filter(|(_, call)| &*call.executor == WORKFLOW);
    calls.filter_map(|(_, call)| {
        let name = call.inputs.source().get(WORKFLOW).map(Value::to_text)?;
        let file = bundle.named_by(0, &name);
        Some(file.ok_or_else(|| Name::from(name)))
    })
}
