//! Workflows that are kept in the store under a name: put, found again, started. Each is compiled
//! once and kept as long as nobody puts another one in its place.

use super::load::Workflows;
use super::report::{WorkflowReport, WorkflowSummary};
use super::{Bundle, Engine, EngineError, Inspector, LoadOptions, Workflow, now};
use crate::diagnostic::did_you_mean;
use crate::model::Name;
use crate::store::{MAX_RUN_ID, ScheduleState, StoredWorkflow};
use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockWriteGuard};

/// Named workflows that were compiled. Locked for as long as one is put, compiled or removed, so
/// that it never says anything else than the store.
pub(super) type Compiled = RwLock<HashMap<Name, Arc<Workflow>>>;

/// So many names a misspelt one is compared with.
const COMPARED: usize = 1_000;

impl Engine {
    /// Checks a workflow and keeps it under a name, in place of the one that was there. It is
    /// durable when this returns. Blocks. Gives what it is, and whether there was one before.
    ///
    /// # Errors
    /// [`EngineError::Load`] with all of its mistakes, [`EngineError::Input`] for a name that is
    /// none, store errors.
    pub fn put_workflow(
        &self,
        name: &str,
        bundle: Bundle,
        options: &LoadOptions,
    ) -> Result<(WorkflowReport, bool), EngineError> {
        check_name(name)?;
        let workflow = self.load_bundle(bundle, options)?;
        let workflow = Arc::new(workflow.refuse_bad_scripts()?);
        let mut stored = StoredWorkflow {
            name: Name::from(name),
            source: workflow.source.clone(),
            stored_at: now(),
            schedule: None,
        };
        let report = WorkflowReport::new(&stored, &workflow);
        let mut compiled = self.compiled();
        let before = self.store.workflow(name)?;
        let last_run = before.and_then(|before| before.schedule?.last_run);
        stored.schedule = last_run.map(|run| ScheduleState {
            until: stored.stored_at,
            last_run: Some(run),
        });
        let replaced = self.store.put_workflow(&stored)?;
        compiled.insert(stored.name, workflow);
        self.changed.notify_one();
        Ok((report, replaced))
    }

    /// The workflow of a name, ready to be started; none when there is none. Blocks.
    ///
    /// # Errors
    /// [`EngineError::Load`] when this engine refuses what another one took; store errors.
    pub fn workflow(&self, name: &str) -> Result<Option<Arc<Workflow>>, EngineError> {
        let mut compiled = self.compiled();
        if let Some(workflow) = compiled.get(name) {
            return Ok(Some(Arc::clone(workflow)));
        }
        let Some(stored) = self.store.workflow(name)? else {
            return Ok(None);
        };
        let workflow = self.compile(&stored, self.workflows.commands_only)?;
        compiled.insert(stored.name, Arc::clone(&workflow));
        Ok(Some(workflow))
    }

    /// The same where it is compiled already and nobody puts one just now. Does not block.
    #[doc(hidden)]
    #[must_use]
    pub fn workflow_at_hand(&self, name: &str) -> Option<Arc<Workflow>> {
        self.compiled.try_read().ok()?.get(name).cloned()
    }

    /// What a name that nothing is kept under was meant to be, as a hint. Blocks.
    ///
    /// # Errors
    /// Store errors.
    #[doc(hidden)]
    pub fn meant_workflow(&self, name: &str) -> Result<Option<String>, EngineError> {
        let kept = self.store.workflows(None, COMPARED)?;
        Ok(did_you_mean(name, kept.iter().map(|kept| &*kept.name)))
    }

    /// What the workflow of a name is, with its text. Blocks.
    ///
    /// # Errors
    /// As [`Engine::workflow`].
    #[doc(hidden)]
    pub fn describe_workflow(&self, name: &str) -> Result<Option<WorkflowReport>, EngineError> {
        let Some(stored) = self.store.workflow(name)? else {
            return Ok(None);
        };
        // What it may not do any more is said, and it can be looked at.
        let workflow = self.compile(&stored, true)?;
        Ok(Some(WorkflowReport::new(&stored, &workflow)))
    }

    /// Forgets the workflow of a name; its runs go on. False when there is none. Blocks.
    ///
    /// # Errors
    /// Store errors.
    pub fn remove_workflow(&self, name: &str) -> Result<bool, EngineError> {
        let mut compiled = self.compiled();
        compiled.remove(name);
        Ok(self.store.remove_workflow(name)?)
    }

    fn compile(
        &self,
        stored: &StoredWorkflow,
        commands_only: bool,
    ) -> Result<Arc<Workflow>, EngineError> {
        let source = &stored.source;
        let options = LoadOptions {
            dialect: Some(source.dialect),
            origin: source.origin,
            folder: source.folder.clone(),
            ..LoadOptions::default()
        };
        let workflows = Workflows {
            commands_only,
            ..self.workflows.with(&options)
        };
        let (bundle, dialect) = (source.bundle.clone(), options.dialect);
        Ok(Arc::new(workflows.load_bundle(bundle, None, dialect)?))
    }

    pub(super) fn compiled(&self) -> RwLockWriteGuard<'_, HashMap<Name, Arc<Workflow>>> {
        let compiled = self.compiled.write();
        compiled.unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inspector {
    /// The named workflows of the store, in the order of their names, after `after`.
    ///
    /// # Errors
    /// Store errors.
    pub fn workflows(
        &self,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<WorkflowSummary>, EngineError> {
        let stored = self.stored_workflows(after, limit)?;
        Ok(stored.iter().map(WorkflowSummary::new).collect())
    }
}

/// A name that can be part of a path and a word of a command line.
fn check_name(name: &str) -> Result<(), EngineError> {
    let fits = |c: char| c.is_alphanumeric() || "-_.".contains(c);
    if name.is_empty() || name.len() > MAX_RUN_ID || !name.chars().all(fits) {
        return Err(EngineError::Input(format!(
            "a workflow's name has 1 to {MAX_RUN_ID} bytes of letters, digits and -_., not `{name}`"
        )));
    }
    Ok(())
}
