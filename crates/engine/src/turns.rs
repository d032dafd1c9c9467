//! Runs of which only some may be under way at a time (`concurrency` of a file): those with the same key. Later ones
//! wait at their beginning for a signal, are not started, or replace the earlier ones. The order is that of the starts,
//! and nothing of it is stored besides a label and the signal.

use super::report::{AwaitedRun, Stop};
use super::{EngineError, Inspector, RunBackend, Workflow};
use crate::scheduler::now;
use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch::Receiver;
use tokio::sync::{Mutex as AsyncMutex, MutexGuard as AsyncMutexGuard};
use windlass_expression::{Context, Template, Value};
use windlass_machine::{Event, RunStatus, Signal, Wait};
use windlass_model::model::{ConcurrencyPolicy, Name, TURN_SIGNAL};
use windlass_store::{QUARANTINE_LABEL, RunHeader};
use windlass_value::time::Timestamp;

/// The label with the workflow and the key.
pub const CONCURRENCY_LABEL: &str = "windlass.concurrency";

/// The longest key, in bytes.
const MAX_KEY: usize = 1_024;

/// The least time between two searches for runs that have ended.
const PAUSE: Duration = Duration::from_millis(20);

/// Gives runs their turns.
pub(super) struct Turns {
    inspector: Inspector,
    runs: Arc<dyn RunBackend>,
    /// Whether any run may have a key. Without one, nothing is looked at.
    is_used: Arc<AtomicBool>,
    /// One start at a time decides by which runs there are.
    starting: AsyncMutex<()>,
    /// Those that have their turn.
    given: Mutex<HashSet<Name>>,
}

/// A start that is decided, and the label of its run.
pub(super) struct TurnPermit<'a> {
    pub label: (String, String),
    _starting: AsyncMutexGuard<'a, ()>,
}

impl Turns {
    pub fn new(inspector: Inspector, runs: Arc<dyn RunBackend>) -> Arc<Self> {
        Arc::new(Self {
            inspector,
            runs,
            is_used: Arc::default(),
            starting: AsyncMutex::default(),
            given: Mutex::default(),
        })
    }

    /// Gives the next runs their turns whenever a run changes; ends with the engine, whose store it does not hold.
    pub fn follow(self: &Arc<Self>, mut changes: Receiver<()>) -> impl Future<Output = ()> + use<> {
        let (turns, is_used) = (Arc::downgrade(self), Arc::clone(&self.is_used));
        async move {
            while changes.changed().await.is_ok() {
                if !is_used.load(Ordering::Acquire) {
                    continue;
                }
                tokio::time::sleep(PAUSE).await;
                let Some(turns) = turns.upgrade() else {
                    return;
                };
                if let Err(error) = turns.give().await {
                    tracing::warn!(%error, "the next runs of a concurrency key are not known");
                }
            }
        }
    }

    /// Decides about a start; none: its workflow has no `concurrency`.
    ///
    /// # Errors
    /// The key cannot be computed, or another run has it and the policy is `skip`.
    pub async fn permit(
        &self,
        workflow: &Workflow,
        input: &Value,
    ) -> Result<Option<TurnPermit<'_>>, EngineError> {
        let program = &workflow.loaded.program;
        let Some(concurrency) = &program.concurrency else {
            return Ok(None);
        };
        let key = match &concurrency.key {
            None => String::new(),
            Some(key) => key_of(key, &program.name, input)?,
        };
        let label = format!("{} {key}", program.name);
        let starting = self.starting.lock().await;
        let earlier = unfinished(&self.inspector, Some(&label))?.remove(&label);
        let earlier = earlier.unwrap_or_default();
        // The earliest runs, as far as they and the new one are more than there may be.
        let surplus = (earlier.len() + 1).saturating_sub(concurrency.max as usize);
        for (_, run) in earlier.into_iter().take(surplus) {
            match concurrency.policy {
                ConcurrencyPolicy::Queue => break,
                ConcurrencyPolicy::Skip => return Err(EngineError::SameKey { run, key }),
                ConcurrencyPolicy::Replace => self.replace(&run).await,
            }
        }
        Ok(Some(TurnPermit {
            label: (CONCURRENCY_LABEL.to_owned(), label),
            _starting: starting,
        }))
    }

    /// Cancels a run for a later one, once.
    async fn replace(&self, run: &Name) {
        // A second cancel would not wait for its operations.
        let stored = self.inspector.load(run);
        if stored.is_ok_and(|stored| stored.state.is_cancelling()) {
            return;
        }
        // It may have ended meanwhile.
        let _ = self.runs.deliver(run, Event::CancelRequested).await;
    }

    /// Whether a run has a key.
    pub fn has_key(&self, run: &str) -> bool {
        let header = self.inspector.header(run);
        header.is_ok_and(|header| header.labels.contains_key(CONCURRENCY_LABEL))
    }

    /// Gives the first runs of each key their turns.
    pub async fn give(&self) -> Result<(), EngineError> {
        let keys = unfinished(&self.inspector, None)?;
        self.is_used.store(!keys.is_empty(), Ordering::Release);
        let unfinished: HashSet<Name> = keys
            .values()
            .flatten()
            .map(|(_, run)| run.clone())
            .collect();
        self.given().retain(|run| unfinished.contains(run));
        for runs in keys.values() {
            let max = runs
                .first()
                .map_or(0, |(_, run)| max_of(&self.inspector, run));
            for (_, run) in runs.iter().take(max) {
                if !self.given().contains(run) {
                    self.give_turn(run).await?;
                    self.given().insert(run.clone());
                }
            }
        }
        Ok(())
    }

    async fn give_turn(&self, run: &Name) -> Result<(), EngineError> {
        let state = self.inspector.load(run)?.state;
        let is_turn = |wait: &Wait| matches!(wait, Wait::Signal(name) if &**name == TURN_SIGNAL);
        if state.cursors.values().any(|cursor| is_turn(&cursor.wait)) {
            let signal = Event::Signalled(Signal::new(Name::from(TURN_SIGNAL), Value::Null));
            self.runs.deliver(run, signal).await?;
        }
        Ok(())
    }

    fn given(&self) -> MutexGuard<'_, HashSet<Name>> {
        self.given.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How many runs of the key of this one may be under way.
fn max_of(inspector: &Inspector, run: &Name) -> usize {
    let header = inspector.header(run).ok();
    let program = header.and_then(|header| inspector.program_of(header.program));
    let concurrency = program.and_then(|program| program.concurrency.clone());
    concurrency.map_or(1, |concurrency| concurrency.max as usize)
}

/// The runs that have not ended, in the order of their starts, by their labels.
fn unfinished(
    inspector: &Inspector,
    label: Option<&str>,
) -> Result<BTreeMap<String, Vec<(Timestamp, Name)>>, EngineError> {
    inspector.run_index(|index| {
        let mut keys: BTreeMap<String, Vec<(Timestamp, Name)>> = BTreeMap::new();
        for run in index.all().filter(|run| !run.status.is_final()) {
            let key = run.labels().get(CONCURRENCY_LABEL);
            let key = key.filter(|key| label.is_none_or(|label| label == *key));
            if let Some(key) = key {
                let runs = keys.entry(key.clone()).or_default();
                runs.push((run.started_at, run.id.clone()));
            }
        }
        keys.values_mut().for_each(|runs| runs.sort());
        keys
    })
}

/// The run whose end a run with this header waits for: of those that have their turn, the first that does not continue,
/// else the first.
pub(super) fn awaited_run(
    inspector: &Inspector,
    header: &RunHeader,
) -> Result<Option<AwaitedRun>, EngineError> {
    let Some(label) = header.labels.get(CONCURRENCY_LABEL) else {
        return Ok(None);
    };
    let runs = unfinished(inspector, Some(label))?.remove(label);
    let runs = runs.unwrap_or_default().into_iter().map(|(_, run)| run);
    let earlier = runs.take(max_of(inspector, &header.id));
    let mut first = None;
    for run in earlier.filter(|run| *run != header.id) {
        let header = inspector.header(&run)?;
        let awaited = AwaitedRun {
            stopped: stop_of(inspector, &header),
            run: run.to_string(),
        };
        if awaited.stopped.is_some() {
            return Ok(Some(awaited));
        }
        first = first.or(Some(awaited));
    }
    Ok(first)
}

/// Why a run does not continue until it is resumed, if so.
fn stop_of(inspector: &Inspector, header: &RunHeader) -> Option<Stop> {
    match header.status {
        RunStatus::Paused => Some(Stop::Paused),
        _ if header.labels.contains_key(QUARANTINE_LABEL) => Some(Stop::Parked),
        _ if !inspector.executes(&header.id) => Some(Stop::Left),
        _ => None,
    }
}

/// The key of a run with this input.
fn key_of(key: &Template, workflow: &Name, input: &Value) -> Result<String, EngineError> {
    let refused = |why: String| EngineError::Input(format!("the key of `concurrency`: {why}"));
    let context = Value::from_pairs([
        ("inputs", input.clone()),
        (
            "workflow",
            Value::from_pairs([("name", Value::from(&**workflow))]),
        ),
    ]);
    let context = Context::new(&context, now().to_utc(), 0);
    let context = context.map_err(|error| refused(error.to_string()))?;
    let key = key
        .eval(&context)
        .map_err(|error| refused(error.to_string()))?;
    let text = key.to_text();
    match key {
        Value::Null => Err(refused("it is null".to_owned())),
        _ if text.len() > MAX_KEY => Err(refused(format!(
            "it has {} bytes, and may have {MAX_KEY}",
            text.len()
        ))),
        _ => Ok(text),
    }
}
