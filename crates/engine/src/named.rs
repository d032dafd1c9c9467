//! Workflows that are stored under a name: putting and reading them. Each workflow is compiled once and cached until
//! another one replaces it.

use super::StoreReader;
use super::load::{Workflows, hash};
use super::report::{
    CurrentWorkflow, ScheduleReport, VersionReport, VersionsReport, WorkflowReport, WorkflowSummary,
};
use super::schedule::state_of;
use super::{
    Bundle, Dialect, Engine, EngineError, Inspector, LoadOptions, Origin, Workflow, is_dots, now,
};
use std::sync::Arc;
use std::time::Duration;
use windlass_expression::{Value, excerpt};
use windlass_machine::program::ProgramHash;
use windlass_model::model::Name;
use windlass_source::diagnostic::did_you_mean;
use windlass_store::{MAX_RUN_ID, ProgramSource, ScheduleState, StoredWorkflow, WorkflowVersion};

/// Maximum number of names that a misspelt name is compared with.
const MAX_COMPARED: usize = 1_000;

/// Maximum number of former versions of a workflow in the store.
const MAX_FORMER: usize = 50;

/// The condition for replacing a workflow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum PutIf {
    /// Replace any workflow.
    #[default]
    Always,
    /// Put the workflow only if the name has none.
    Absent,
    Version(String),
}

/// Number of workflows that are read at a time.
const PAGE: usize = 256;

impl Engine {
    /// Checks a workflow and stores it under a name. Blocks.
    ///
    /// It replaces the workflow that the name had. When this returns, the change is durable. Returns the report of the
    /// workflow, and whether it replaced another one.
    ///
    /// # Errors
    /// Returns [`EngineError::Load`] with all mistakes of the workflow, [`EngineError::Input`] for an invalid name, or
    /// store errors.
    pub fn put_workflow(
        &self,
        name: &str,
        bundle: Bundle,
        options: &LoadOptions,
    ) -> Result<(WorkflowReport, bool), EngineError> {
        self.put_workflow_if(name, bundle, options, &PutIf::Always)
    }

    /// Stores a workflow under a name if the condition holds.
    ///
    /// With a condition, a workflow that another caller put meanwhile is not replaced. The replaced workflow becomes a
    /// former version.
    ///
    /// # Errors
    /// Returns [`EngineError::WorkflowChanged`], and the errors of [`Engine::put_workflow`].
    pub fn put_workflow_if(
        &self,
        name: &str,
        bundle: Bundle,
        options: &LoadOptions,
        condition: &PutIf,
    ) -> Result<(WorkflowReport, bool), EngineError> {
        check_name(name)?;
        let workflow = self.load_bundle(bundle, options)?;
        let workflow = Arc::new(workflow.refuse_bad_scripts()?);
        let mut inputs = workflow.program().inputs.iter();
        let required = inputs.find(|input| input.default.is_none());
        if let (Some(_), Some(input)) = (&workflow.program().schedule, required) {
            let name = &input.name;
            let message =
                format!("its schedule cannot start runs: the input `{name}` has no default");
            return Err(EngineError::Input(message));
        }
        let mut stored = StoredWorkflow {
            name: Name::from(name),
            source: workflow.source.clone(),
            stored_at: now(),
            schedule: None,
        };
        let report = WorkflowReport::new(&stored, &workflow);
        // A stored workflow that this engine refuses has no schedule here.
        let earlier = self.workflow(name).ok().flatten();
        let has_same_schedule = earlier.as_ref().is_some_and(|earlier| {
            earlier.program().schedule.is_some()
                && earlier.program().schedule == workflow.program().schedule
        });
        let mut compiled = self.launcher.compiled();
        let before = self.launcher.store.workflow(name)?;
        check_unchanged(name, before.as_ref(), condition)?;
        let (former, gone) = self.history_of(before.as_ref(), workflow.program().hash)?;
        let former = former.as_ref().zip(before.as_ref());
        let former = former.map(|(version, before)| (version, &before.source));
        // The pause of the schedule and the missed times belong to the name, so the new workflow has them, too. If the
        // schedule is another one, its times begin again. Otherwise, times that wait for their runs still get them.
        stored.schedule = match &before {
            Some(before) if has_same_schedule => Some(state_of(before)),
            Some(before) => before.schedule.clone().map(|state| ScheduleState {
                until: stored.stored_at,
                pauses: { state.pauses.into_iter() }
                    .filter(|pause| pause.to.is_none())
                    .collect(),
                ..state
            }),
            None => None,
        };
        let replaced = self
            .launcher
            .store
            .replace_workflow(&stored, former, &gone)?;
        self.schedule_failures.forget(name);
        compiled.insert(stored.name, workflow);
        self.changed.send_replace(());
        Ok((report, replaced))
    }

    /// Returns the workflow that is stored under a name, compiled. `None` if the name has no workflow. Blocks.
    ///
    /// # Errors
    /// Returns [`EngineError::Load`] if this engine refuses a workflow that another one accepted; store errors.
    pub fn workflow(&self, name: &str) -> Result<Option<Arc<Workflow>>, EngineError> {
        self.launcher.workflow(name)
    }

    /// Returns the next page of saved workflows after the name `after`. Empty at the end. Blocks.
    ///
    /// Sets `after` to the last name of the page.
    pub(super) fn saved_page(
        &self,
        after: &mut Option<Name>,
    ) -> Result<Vec<StoredWorkflow>, EngineError> {
        let page = self.launcher.store.workflows(after.as_deref(), PAGE)?;
        *after = page.last().map(|last| last.name.clone());
        Ok(page)
    }

    /// Returns the workflow of a name without blocking.
    ///
    /// `None` if it is not compiled yet, or while a workflow is being put or removed.
    #[doc(hidden)]
    #[must_use]
    pub fn workflow_at_hand(&self, name: &str) -> Option<Arc<Workflow>> {
        self.launcher.compiled.try_read().ok()?.get(name).cloned()
    }

    /// Returns how the former versions of a workflow change when `program` is put.
    ///
    /// The first value is the version that becomes a former one, if the text changes. The second value has the former
    /// versions to remove: those with the same text as the old or the new version, and the oldest ones above the
    /// maximum.
    fn history_of(
        &self,
        before: Option<&StoredWorkflow>,
        program: ProgramHash,
    ) -> Result<(Option<WorkflowVersion>, Vec<WorkflowVersion>), EngineError> {
        let Some(before) = before else {
            return Ok((None, Vec::new()));
        };
        let now = version_of(before);
        let former = self.launcher.store.former_workflows(&before.name)?;
        let (mut gone, others): (Vec<_>, Vec<_>) = former
            .into_iter()
            .partition(|version| [program, now.program].contains(&version.program));
        let most = MAX_FORMER.saturating_sub(1);
        let too_many = others.len().saturating_sub(most);
        gone.extend(others.into_iter().take(too_many));
        Ok(((now.program != program).then_some(now), gone))
    }

    /// Returns the maximum number of iterations of a loop, for workflows of this dialect and origin.
    #[doc(hidden)]
    #[must_use]
    pub fn max_iterations(&self, dialect: Dialect, origin: Origin) -> u64 {
        let options = LoadOptions {
            origin,
            ..LoadOptions::default()
        };
        self.launcher.workflows.with(&options).caps.count(dialect)
    }

    /// Deletes the workflow of a name. The runs of the workflow continue. Returns false if the name has no workflow.
    /// Blocks.
    ///
    /// # Errors
    /// Returns [`EngineError::WorkflowChanged`] if the workflow is not the one of `condition`, or store errors.
    pub fn remove_workflow(&self, name: &str, condition: &PutIf) -> Result<bool, EngineError> {
        let mut compiled = self.launcher.compiled();
        let Some(stored) = self.launcher.store.workflow(name)? else {
            return Ok(false);
        };
        check_unchanged(name, Some(&stored), condition)?;
        compiled.remove(name);
        self.schedule_failures.forget(name);
        Ok(self.launcher.store.remove_workflow(name)?)
    }
}

impl Inspector {
    /// Returns the workflows of the store in the order of their names, after the name `after`.
    ///
    /// # Errors
    /// Returns store errors.
    pub fn workflows(
        &self,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<WorkflowSummary>, EngineError> {
        let stored = self.stored();
        let stored = stored.read_durable(|store| store.workflows(after, limit))?;
        Ok(stored.iter().map(WorkflowSummary::new).collect())
    }

    /// Returns the report of a named workflow with its text: of the current version, or of the one that `version`
    /// names.
    ///
    /// # Errors
    /// Returns [`EngineError::NoWorkflow`], [`EngineError::NoVersion`], or store errors. Returns [`EngineError::Load`]
    /// if this version of Windlass refuses a workflow that another version accepted.
    pub fn describe_workflow(
        &self,
        name: &str,
        version: Option<&str>,
    ) -> Result<WorkflowReport, EngineError> {
        let mut stored = self.stored_or_error(name)?;
        if let Some(requested) = version
            && !is_version(version_of(&stored).program, requested)
        {
            let reader = self.stored();
            let former = reader.read_durable(|store| store.former_workflows(name))?;
            let mut found = former.iter().rev();
            let found = found.find(|version| is_version(version.program, requested));
            let source = match found {
                Some(version) => reader
                    .read_durable(|store| store.former_workflow(name, version))?
                    .map(|source| (version, source)),
                None => None,
            };
            let Some((version, source)) = source else {
                return Err(EngineError::NoVersion {
                    name: stored.name,
                    version: requested.to_owned(),
                });
            };
            (stored.source, stored.stored_at) = (source, version.stored_at);
        }
        let workflow = load_again(&stored.source)?;
        Ok(WorkflowReport::new(&stored, &workflow))
    }

    /// Returns the versions of a workflow, the newest first. Each has the number of its runs by status.
    ///
    /// # Errors
    /// Returns [`EngineError::NoWorkflow`] or store errors.
    pub fn workflow_versions(&self, name: &str) -> Result<VersionsReport, EngineError> {
        let stored = self.stored_or_error(name)?;
        let mut versions = vec![version_of(&stored)];
        let former = self
            .stored()
            .read_durable(|store| store.former_workflows(name))?;
        versions.extend(former.into_iter().rev());
        let programs: Vec<ProgramHash> = versions.iter().map(|version| version.program).collect();
        let mut counts = self.run_index(|index| index.counts(&programs))?.into_iter();
        let versions = versions.iter().enumerate();
        let versions = versions.map(|(place, version)| VersionReport {
            version: version.program.to_string(),
            stored_at: version.stored_at,
            current: place == 0,
            runs: counts.next().unwrap_or_default(),
        });
        Ok(VersionsReport {
            versions: versions.collect(),
        })
    }

    /// Returns when the schedule of a named workflow starts runs.
    ///
    /// # Errors
    /// Returns the errors of [`Inspector::describe_workflow`].
    pub fn workflow_schedule(&self, name: &str) -> Result<ScheduleReport, EngineError> {
        let (stored, workflow) = self.stored_workflow(name)?;
        let state = stored.schedule.as_ref();
        // Scheduled times up to `until` are decided: they start no run any more, even if the clock was set back.
        let until = state.map_or(stored.stored_at, |state| state.until);
        let after = now().max(until);
        Ok(ScheduleReport::new(
            &workflow,
            stored.stored_at,
            after,
            state,
        ))
    }

    /// Returns the workflow of a name, as the store has it and compiled.
    pub(super) fn stored_workflow(
        &self,
        name: &str,
    ) -> Result<(StoredWorkflow, Workflow), EngineError> {
        let stored = self.stored_or_error(name)?;
        let workflow = load_again(&stored.source)?;
        Ok((stored, workflow))
    }

    fn stored(&self) -> &StoreReader {
        (**self).workflows()
    }

    fn stored_or_error(&self, name: &str) -> Result<StoredWorkflow, EngineError> {
        let stored = self.stored().read_durable(|store| store.workflow(name))?;
        stored.map_or_else(|| Err(self.no_workflow(name)), Ok)
    }

    /// Returns the error for a name without a workflow, with a similar name as a hint. Blocks.
    #[doc(hidden)]
    #[must_use]
    pub fn no_workflow(&self, name: &str) -> EngineError {
        let reader = self.stored();
        let workflows = reader.read_durable(|store| store.workflows(None, MAX_COMPARED));
        let workflows = workflows.unwrap_or_default();
        EngineError::NoWorkflow {
            name: Name::from(name),
            hint: did_you_mean(name, workflows.iter().map(|workflow| &*workflow.name)),
        }
    }
}

fn version_of(stored: &StoredWorkflow) -> WorkflowVersion {
    WorkflowVersion {
        stored_at: stored.stored_at,
        program: hash(&stored.source),
    }
}

/// Returns whether `requested` is the hash of a program, or at least the first six digits of it.
fn is_version(program: ProgramHash, requested: &str) -> bool {
    const LEAST: usize = 6;
    let whole = program.to_string();
    let digits = whole.strip_prefix("sha256:").unwrap_or(&whole);
    let requested = requested.strip_prefix("sha256:").unwrap_or(requested);
    requested.len() >= LEAST && digits.starts_with(requested)
}

fn check_unchanged(
    name: &str,
    before: Option<&StoredWorkflow>,
    condition: &PutIf,
) -> Result<(), EngineError> {
    let now = before.map(|before| version_of(before).program.to_string());
    let unchanged = match condition {
        PutIf::Always => true,
        PutIf::Absent => now.is_none(),
        PutIf::Version(wanted) => now.as_ref() == Some(wanted),
    };
    if unchanged {
        return Ok(());
    }
    let text = before.and_then(|before| before.source.bundle.file(0));
    let current = now.zip(text).map(|(version, file)| {
        let text = file.text.clone();
        Box::new(CurrentWorkflow { version, text })
    });
    let name = Name::from(name);
    Err(EngineError::WorkflowChanged { name, current })
}

/// Loads a workflow that was accepted before, to inspect it. It uses the caps with which the workflow was accepted, and
/// ignores what this process lacks to run it.
fn load_again(source: &ProgramSource) -> Result<Workflow, EngineError> {
    let options = LoadOptions {
        dialect: Some(source.dialect),
        max_count: Some(source.max_count),
        max_timeout: Some(Duration::from_millis(source.max_timeout_ms)),
        origin: source.origin,
        folder: source.folder.clone(),
        ..LoadOptions::default()
    };
    let workflows = Workflows::without_engine().with(&options);
    Ok(workflows.load_bundle(source.bundle.clone(), None, options.dialect)?)
}

/// Checks that a name can be part of a path and a word on a command line.
fn check_name(name: &str) -> Result<(), EngineError> {
    let fits = |c: char| c.is_alphanumeric() || "-_.".contains(c);
    if name.is_empty() || name.len() > MAX_RUN_ID || !name.chars().all(fits) || is_dots(name) {
        return Err(EngineError::Input(format!(
            "a workflow's name has 1 to {MAX_RUN_ID} bytes of letters, digits and -_., and is not `.` or `..`: \
             `{}`",
            excerpt(&Value::text(name))
        )));
    }
    Ok(())
}
