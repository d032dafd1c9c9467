//! Values between runs of a workflow: what a run starts with, what its actions read and write, and what users read and
//! write.

use super::error::hint_suffix;
use super::launch::Launcher;
use super::schedule::scheduled_time;
use super::{Engine, EngineError, Inspector, SimulationSpec, Value, Workflow, now};
use crate::report::StateReport;
use crate::run_index::RunIndex;
use crate::scheduler::Loaded;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Weak};
use windlass_actions::SharedState;
use windlass_expression::{LAST_RUN, Object};
use windlass_machine::RunStatus;
use windlass_model::model::{Fault, GET_STATE, Name, Origin, Request, STATE_VARIABLE, fault_kind};
use windlass_source::diagnostic::did_you_mean;
use windlass_store::{
    RunHeader, StateCondition, StateEntry, StateOutcome, StateOwner, StateWrite, StateWriter,
    Store, StoreError,
};
use windlass_value::time::Timestamp;

/// Maximum size of a value, in bytes of JSON. Larger data belongs in a file.
const MAX_VALUE: usize = 1 << 20;

/// Executes the state actions of runs on a store. The reference is weak: a workflow may outlive its engine, and must
/// not keep the store open.
pub(super) struct StoreState(pub Weak<dyn Store>);

impl SharedState for StoreState {
    fn execute(&self, origin: Origin, request: &Request) -> Result<Value, Fault> {
        let Some(store) = self.0.upgrade() else {
            let what = "the engine has stopped";
            return Err(Fault::new(fault_kind::STORE, what).transient());
        };
        execute(&*store, origin, request, now())
    }
}

/// Executes `getState` or `setState`.
pub(super) fn execute(
    store: &dyn Store,
    origin: Origin,
    request: &Request,
    at: Timestamp,
) -> Result<Value, Fault> {
    let text = |key: &str| {
        request
            .inputs
            .get(key)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let owner = StateOwner::new(origin, Name::from(text("workflow")));
    let name = Name::from(text("name"));
    let given = |key: &str| request.inputs.get(key).cloned().unwrap_or_default();
    if &*request.executor == GET_STATE {
        let all = store
            .state(Some(&owner))
            .map_err(|error| store_fault(&error))?;
        let found = all.into_iter().find(|entry| entry.name == name);
        return Ok(shown(&name, found.as_ref(), &given("initial")));
    }
    let value = given("value");
    check_value(&name, &value).map_err(|what| Fault::new(fault_kind::TOO_LARGE, what))?;
    let expected = match given("overwrite") {
        Value::Bool(true) => StateCondition::Always,
        _ => StateCondition::Version(version_of(&given("version"))),
    };
    let write = StateWrite {
        owner,
        name: name.clone(),
        value: Some(value.clone()),
        expected,
        at,
        by: Some(StateWriter {
            run: Name::from(text("run")),
            key: request.key.clone(),
            started_at: text("startedAt").to_owned(),
        }),
    };
    match store
        .write_state(&write)
        .map_err(|error| store_fault(&error))?
    {
        StateOutcome::Written(version) => Ok(Value::from_pairs([
            ("name", Value::from(&*name)),
            ("value", value),
            ("version", number(version)),
        ])),
        StateOutcome::Conflict(found) => Err(conflict(&name, found.as_deref())),
    }
}

fn check_value(name: &str, value: &Value) -> Result<(), String> {
    let bytes = value.to_json().len();
    if bytes <= MAX_VALUE {
        return Ok(());
    }
    Err(format!(
        "the value of the state `{name}` has {bytes} bytes as JSON; the limit is {MAX_VALUE}: store it in a file, and \
         the file's name here"
    ))
}

fn version_of(value: &Value) -> u64 {
    let version = value
        .as_int()
        .and_then(|version| u64::try_from(version).ok());
    version.unwrap_or_default()
}

fn number(version: u64) -> Value {
    Value::Int(i64::try_from(version).unwrap_or(i64::MAX))
}

/// Returns what an action reads: a value, its version, and the run that wrote it.
fn shown(name: &str, found: Option<&StateEntry>, initial: &Value) -> Value {
    let run = found.and_then(|found| found.run.as_deref());
    let value = found.and_then(|found| found.value.clone());
    Value::from_pairs([
        ("name", Value::from(name)),
        ("value", value.unwrap_or_else(|| initial.clone())),
        ("version", number(found.map_or(0, |found| found.version))),
        ("run", run.map_or(Value::Null, Value::from)),
        (
            "time",
            found.map_or(Value::Null, |found| {
                Value::text(found.written_at.to_string())
            }),
        ),
    ])
}

fn conflict(name: &str, found: Option<&StateEntry>) -> Fault {
    let message = match found {
        Some(found) => format!(
            "the state `{name}` was changed since this run read it: {} wrote version {} at {}; read it again with getState",
            writer(found),
            found.version,
            found.written_at,
        ),
        None => format!("the state `{name}` is not stored any more; read it again with getState"),
    };
    let fault = Fault::new(fault_kind::CONFLICT, message);
    fault.output(shown(name, found, &Value::Null))
}

/// Describes what wrote a value.
fn writer(entry: &StateEntry) -> String {
    match &entry.run {
        Some(run) => format!("the run {run}"),
        None => String::from("a person"),
    }
}

/// Makes a transient fault. While the store refuses writes, the driver cannot store the answer of an action. So the
/// action is repeated when the store accepts writes again.
fn store_fault(error: &StoreError) -> Fault {
    Fault::new(fault_kind::STORE, error.to_string()).transient()
}

impl Launcher {
    /// Returns what a program reads at the start of a run: environment variables, the values between runs, and its last
    /// successful run.
    pub(super) async fn start_values(
        &self,
        workflow: &Workflow,
        labels: &BTreeMap<String, String>,
    ) -> Result<Value, EngineError> {
        let loaded = &workflow.loaded;
        let environment = super::environment(loaded, labels);
        let program = &loaded.program;
        if program.state_values.is_empty() && !program.last_run {
            return Ok(environment);
        }
        let (store, inspector) = (Arc::clone(&self.store), self.inspector.clone());
        let (loaded, origin) = (loaded.clone(), workflow.source.origin);
        let read = move || {
            let mut values = environment.as_object().cloned().unwrap_or_default();
            let state = stored_values(&*store, &loaded, origin)?;
            values.insert(Name::from(STATE_VARIABLE), state);
            if loaded.program.last_run {
                let last = last_run(&inspector, &loaded.program.name, origin)?;
                values.insert(Name::from(LAST_RUN), last);
            }
            Ok(Value::object(values))
        };
        match tokio::task::spawn_blocking(read).await {
            Ok(values) => values,
            Err(_) => Err(super::ScheduleError::Stopped.into()),
        }
    }
}

impl Engine {
    /// Writes a value between runs, or deletes it if `value` is `None`. When this returns, the change is durable.
    /// Blocks.
    ///
    /// # Errors
    /// Returns [`EngineError::StateChanged`] if the condition does not hold, [`EngineError::Input`] for a name or a
    /// value that cannot be stored, or store errors.
    pub fn write_state(
        &self,
        workflow: &str,
        name: &str,
        value: Option<Value>,
        condition: StateCondition,
        origin: Origin,
    ) -> Result<StateReport, EngineError> {
        for (what, given) in [("workflow's name", workflow), ("name of a state", name)] {
            let most = windlass_store::MAX_RUN_ID;
            if given.is_empty() || given.len() > most {
                let message = format!("a {what} has 1 to {most} bytes");
                return Err(EngineError::Input(message));
            }
        }
        if let Some(value) = &value {
            check_value(name, value).map_err(EngineError::Input)?;
        }
        let write = StateWrite {
            owner: StateOwner::new(origin, Name::from(workflow)),
            name: Name::from(name),
            value: value.clone(),
            expected: condition,
            at: now(),
            by: None,
        };
        if value.is_none() {
            // Do not write a value that does not exist: its deletion would leave a record.
            self.launcher
                .inspector
                .state_value(workflow, name, origin)?;
        }
        let unread = match &value {
            Some(_) => self.unread(&write.owner, name)?,
            None => None,
        };
        match self.launcher.store.write_state(&write)? {
            StateOutcome::Written(version) => Ok(StateReport {
                workflow: workflow.to_owned(),
                name: name.to_owned(),
                value: value.unwrap_or_default(),
                version,
                written_at: write.at,
                run: None,
                key: None,
                guest: origin == Origin::Guest,
                unread,
            }),
            StateOutcome::Conflict(found) => Err(EngineError::StateChanged {
                workflow: write.owner.workflow,
                name: write.name,
                current: found.as_deref().and_then(StateReport::new).map(Box::new),
            }),
        }
    }
}

impl Engine {
    /// Returns why no saved workflow reads a value between runs: a name may be misspelt. Returns `None` for a value that
    /// is stored already, because a workflow that is not saved may read it.
    fn unread(&self, owner: &StateOwner, name: &str) -> Result<Option<String>, EngineError> {
        let stored = self.launcher.store.state(Some(owner))?;
        if stored.iter().any(|entry| *entry.name == *name) {
            return Ok(None);
        }
        let (mut after, mut workflows) = (None, BTreeSet::new());
        let (mut declared, mut is_saved) = (BTreeSet::new(), false);
        loop {
            let page = self.saved_page(&mut after)?;
            if page.is_empty() {
                break;
            }
            for saved in page {
                // A workflow that this process refuses may read the value.
                let Ok(Some(workflow)) = self.workflow(&saved.name) else {
                    return Ok(None);
                };
                let program = workflow.program();
                if StateOwner::new(workflow.source.origin, program.name.clone()) == *owner {
                    is_saved = true;
                    let names = program.state_values.iter().map(|(name, _)| name.clone());
                    declared.extend(names);
                }
                workflows.insert(program.name.clone());
            }
        }
        let workflow = &owner.workflow;
        let (what, hint) = match is_saved {
            _ if !is_saved && workflows.contains(workflow) => (
                format!("the saved workflow `{workflow}` reads other values"),
                Some(String::from(
                    "those of guest workflows are separate (--guest)",
                )),
            ),
            true if declared.contains(name) => return Ok(None),
            true => (
                format!("the workflow `{workflow}` declares no state `{name}`"),
                did_you_mean(name, declared.iter().map(|name| &**name)),
            ),
            // The workflow of a run that is not saved may read the value.
            false if self.has_runs_of(workflow)? => return Ok(None),
            false => (
                format!("no saved workflow has the name `{workflow}`"),
                did_you_mean(workflow, workflows.iter().map(|name| &**name)),
            ),
        };
        Ok(Some(format!("{what}{}", hint_suffix(&hint))))
    }

    fn has_runs_of(&self, workflow: &Name) -> Result<bool, EngineError> {
        let is = |index: &RunIndex| index.all().any(|run| **run.workflow() == **workflow);
        self.inspector().run_index(is)
    }
}

/// Returns the stored values between runs that a program declares, with their versions.
fn stored_values(store: &dyn Store, loaded: &Loaded, origin: Origin) -> Result<Value, StoreError> {
    let program = &loaded.program;
    let owner = StateOwner::new(origin, program.name.clone());
    let declared = |entry: &StateEntry| {
        let mut known = program.state_values.iter();
        let (_, initial) = known.find(|(name, _)| *name == entry.name)?;
        let value = entry.value.clone().unwrap_or_else(|| initial.clone());
        let known = [("value", value), ("version", number(entry.version))];
        Some((entry.name.clone(), Value::from_pairs(known)))
    };
    let stored = store.state(Some(&owner))?;
    Ok(Value::from_pairs(stored.iter().filter_map(declared)))
}

/// Returns the values between runs, as a run last read or wrote them. `variables` are the variables of the run.
pub(super) fn last_values(variables: &Value) -> Object {
    let known = variables.get(STATE_VARIABLE).and_then(Value::as_object);
    let values = known.into_iter().flatten().map(|(name, known)| {
        let value = known.get("value").cloned().unwrap_or_default();
        (name.clone(), value)
    });
    values.collect()
}

/// Returns what a program reads at the start of a simulated run. The specification of the simulation has the stored
/// values.
pub(super) fn simulated_start(
    store: &dyn Store,
    workflow: &Workflow,
    given: &SimulationSpec,
    labels: &BTreeMap<String, String>,
) -> Result<Value, EngineError> {
    let (loaded, origin) = (&workflow.loaded, workflow.source.origin);
    for (name, value) in &given.state {
        let mut known = loaded.program.state_values.iter().map(|(name, _)| name);
        if !known.any(|known| known == name) {
            let names = loaded.program.state_values.iter().map(|(name, _)| &**name);
            let hint = hint_suffix(&did_you_mean(name, names));
            let what = format!("the workflow declares no state `{name}`{hint}");
            return Err(EngineError::Input(what));
        }
        store.write_state(&StateWrite {
            owner: StateOwner::new(origin, loaded.program.name.clone()),
            name: name.clone(),
            value: Some(value.clone()),
            expected: StateCondition::Always,
            at: given.now,
            by: None,
        })?;
    }
    let environment = super::environment(loaded, labels);
    let mut values = environment.as_object().cloned().unwrap_or_default();
    let state = stored_values(store, loaded, origin)?;
    values.insert(Name::from(STATE_VARIABLE), state);
    values.insert(Name::from(LAST_RUN), given.last_run.clone());
    Ok(Value::object(values))
}

/// Returns the last successful run of a workflow. Null if no run succeeded, or if that run was pruned.
fn last_run(inspector: &Inspector, workflow: &str, origin: Origin) -> Result<Value, EngineError> {
    let succeeded: Vec<Name> = inspector.run_index(|runs| {
        let own = runs
            .newest_first()
            .filter(|run| **run.workflow() == *workflow && run.status == RunStatus::Succeeded);
        own.map(|run| run.id.clone()).collect()
    })?;
    for run in succeeded {
        let Ok(header) = inspector.header(&run) else {
            continue;
        };
        if inspector.source(header.program)?.origin == origin {
            let outcome = inspector.load(&run)?.state.outcome;
            let outputs = outcome.map(|outcome| outcome.output).unwrap_or_default();
            return Ok(described(&header, outputs));
        }
    }
    Ok(Value::Null)
}

fn described(header: &RunHeader, outputs: Value) -> Value {
    let time = |at: Timestamp| Value::text(at.to_string());
    Value::from_pairs([
        ("id", Value::from(&*header.id)),
        ("outputs", outputs),
        ("startTime", time(header.started_at)),
        ("endTime", time(header.updated_at)),
        (
            "scheduledTime",
            scheduled_time(header).map_or(Value::Null, time),
        ),
    ])
}

/// Allows the retry of a run to overwrite values that the retried run wrote.
///
/// The retry continues from an earlier position, where it knows only earlier versions of these values. So the store
/// would refuse its writes. This function sets the stored versions in `variables`. The values remain as they were at
/// that position.
pub(super) fn adopt_writes(
    store: &dyn Store,
    workflow: &Workflow,
    retried: &str,
    variables: &mut Value,
) -> Result<(), StoreError> {
    let program = &workflow.loaded.program;
    let Some(mut known) = variables
        .get(STATE_VARIABLE)
        .and_then(Value::as_object)
        .cloned()
    else {
        return Ok(());
    };
    let owner = StateOwner::new(workflow.source.origin, program.name.clone());
    for entry in store.state(Some(&owner))? {
        if entry.run.as_deref() == Some(retried)
            && let Some(read) = known.get_mut(&*entry.name)
        {
            let value = read.get("value").cloned().unwrap_or_default();
            *read = Value::from_pairs([("value", value), ("version", number(entry.version))]);
        }
    }
    let mut all = variables.as_object().cloned().unwrap_or_default();
    all.insert(Name::from(STATE_VARIABLE), Value::object(known));
    *variables = Value::object(all);
    Ok(())
}

impl Inspector {
    /// Returns the values between runs of one workflow, or of all workflows. Blocks.
    ///
    /// # Errors
    /// Returns store errors.
    pub fn state_values(&self, workflow: Option<&str>) -> Result<Vec<StateReport>, EngineError> {
        let owners = workflow.map(|name| {
            let both = [Origin::Operator, Origin::Guest];
            both.map(|origin| StateOwner::new(origin, Name::from(name)))
        });
        let stored = (**self).workflows();
        let entries = stored.read_durable(|store| match &owners {
            None => store.state(None),
            Some(owners) => {
                let read = owners.iter().map(|owner| store.state(Some(owner)));
                Ok(read.collect::<Result<Vec<_>, _>>()?.concat())
            }
        })?;
        Ok(entries.iter().filter_map(StateReport::new).collect())
    }

    /// Returns one value between runs. Blocks.
    ///
    /// # Errors
    /// Returns [`EngineError::NoState`] or store errors.
    pub fn state_value(
        &self,
        workflow: &str,
        name: &str,
        origin: Origin,
    ) -> Result<StateReport, EngineError> {
        let mut all = self.state_values(Some(workflow))?;
        all.retain(|one| one.guest == (origin == Origin::Guest));
        let hint = did_you_mean(name, all.iter().map(|one| &*one.name));
        let found = all.into_iter().find(|one| one.name == name);
        found.ok_or_else(|| EngineError::NoState {
            workflow: Name::from(workflow),
            name: Name::from(name),
            hint,
        })
    }
}
