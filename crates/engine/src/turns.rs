//! Limits how many runs with the same key execute at a time (`concurrency` of a file). The key is computed from the
//! input. If there are too many runs, a later run waits at its beginning for a signal, or is not started, or replaces
//! the earliest ones. Runs get their turns in the order of their starts. Only a label and the signal are stored.

use super::launch::MAX_DEPTH;
use super::report::{AwaitedRun, Stop};
use super::{EngineError, Inspector, RunBackend, Workflow};
use crate::scheduler::{PARENT_LABEL, now};
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

/// The label of a run with the name of its workflow and its key.
pub const CONCURRENCY_LABEL: &str = "windlass.concurrency";

/// Maximum length of a key, in bytes.
const MAX_KEY: usize = 1_024;

/// Minimum time between two searches for runs that have ended.
const PAUSE: Duration = Duration::from_millis(20);

/// Starts the waiting runs of each key when it is their turn.
pub(super) struct Turns {
    inspector: Inspector,
    runs: Arc<dyn RunBackend>,
    /// Whether any run may have a key. While false, changes of runs are ignored.
    is_used: Arc<AtomicBool>,
    /// Locked during a start, so that each start sees the runs of earlier starts.
    starting: AsyncMutex<()>,
    /// The runs that have received the signal for their turn.
    given: Mutex<HashSet<Name>>,
}

/// Allows the start of a run with `label`. While it exists, no other run with a key is started.
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

    /// Starts waiting runs whenever a run changes. The returned future ends with the engine, and does not keep the
    /// store open.
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
                if let Err(error) = turns.start_next_runs().await {
                    tracing::warn!(%error, "the next runs of a concurrency key are not known");
                }
            }
        }
    }

    /// Decides whether a run with these labels may start. Returns `None` if its workflow has no `concurrency`.
    ///
    /// # Errors
    /// Returns an error if the key cannot be computed, if another run has the key and the policy is `skip`, or if the
    /// run would wait for a run that waits for it, or replace it.
    pub async fn permit(
        &self,
        workflow: &Workflow,
        input: &Value,
        labels: &BTreeMap<String, String>,
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
        // The number of earlier runs for which there is no room next to the new run. These are the earliest ones.
        let max = concurrency.max as usize;
        let surplus = (earlier.len() + 1).saturating_sub(max);
        let earlier = earlier.into_iter().map(|(_, run)| run);
        let waiting = self.waiting_for(labels);
        let waits = |run: &Name| waiting.contains(run);
        let caller = match concurrency.policy {
            _ if surplus == 0 => None,
            // The new run would never get its turn if each run that has a turn waits for it.
            ConcurrencyPolicy::Queue if !earlier.clone().take(max).all(|run| waits(&run)) => None,
            ConcurrencyPolicy::Queue => earlier.clone().next(),
            ConcurrencyPolicy::Replace => earlier.clone().take(surplus).find(waits),
            ConcurrencyPolicy::Skip => None,
        };
        if let Some(run) = caller {
            return Err(EngineError::KeyOfCaller { run, key });
        }
        for run in earlier.take(surplus) {
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

    /// Returns the runs that wait for a run with these labels, directly or indirectly.
    fn waiting_for(&self, labels: &BTreeMap<String, String>) -> Vec<Name> {
        let mut waiting: Vec<Name> = Vec::new();
        let mut parent = labels.get(PARENT_LABEL).cloned();
        while let Some(run) = parent.filter(|_| waiting.len() <= MAX_DEPTH) {
            let header = self.inspector.header(&run).ok();
            waiting.push(Name::from(run));
            parent = header.and_then(|header| header.labels.get(PARENT_LABEL).cloned());
        }
        waiting
    }

    /// Cancels a run that a later one replaces, unless it is being cancelled already.
    async fn replace(&self, run: &Name) {
        // Do not cancel a run twice: the second cancel would not wait until the run's operations are cancelled.
        let stored = self.inspector.load(run);
        if stored.is_ok_and(|stored| stored.state.is_cancelling()) {
            return;
        }
        // An error is ignored, because the run may have ended meanwhile.
        let _ = self.runs.deliver(run, Event::CancelRequested).await;
    }

    /// Returns whether a run has a key.
    pub fn has_key(&self, run: &str) -> bool {
        let header = self.inspector.header(run);
        header.is_ok_and(|header| header.labels.contains_key(CONCURRENCY_LABEL))
    }

    /// Starts the turn of the earliest runs of each key, up to the key's maximum: sends the signal to those that wait
    /// for it.
    pub async fn start_next_runs(&self) -> Result<(), EngineError> {
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

/// Returns how many runs with the key of this run may run at a time.
fn max_of(inspector: &Inspector, run: &Name) -> usize {
    let header = inspector.header(run).ok();
    let program = header.and_then(|header| inspector.program_of(header.program));
    let concurrency = program.and_then(|program| program.concurrency.clone());
    concurrency.map_or(1, |concurrency| concurrency.max as usize)
}

/// Returns the runs that have not ended, grouped by concurrency label, in the order of their starts. With a label, only
/// its runs.
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

/// Returns the run whose end the run with this header waits for.
///
/// The candidates are the earlier runs that have their turn. If one of them is stopped (see [`stop_of`]), it is
/// returned, because it may never end. If none is stopped, the first one is returned.
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

/// Returns a child run if it is paused or parked. `None` if it is not, or if it has not started.
pub(super) fn stopped_child(inspector: &Inspector, child: &str) -> Option<AwaitedRun> {
    let stopped = stop_of(inspector, &inspector.header(child).ok()?);
    // The process that executes a run executes its child runs, too.
    let stopped = stopped.filter(|stopped| *stopped != Stop::Left);
    stopped.map(|stopped| AwaitedRun {
        run: child.to_owned(),
        stopped: Some(stopped),
    })
}

/// Returns the reason if a run does not continue on its own. `None` if it continues.
fn stop_of(inspector: &Inspector, header: &RunHeader) -> Option<Stop> {
    match header.status {
        RunStatus::Paused => Some(Stop::Paused),
        _ if header.labels.contains_key(QUARANTINE_LABEL) => Some(Stop::Parked),
        _ if !inspector.executes(&header.id) => Some(Stop::Left),
        _ => None,
    }
}

/// Returns the key of a run with this input.
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
