//! Why the schedules of this process do not start runs. Each cause is logged once.

use super::{EngineError, LoadError};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use windlass_model::model::Name;
use windlass_source::diagnostic::Severity;

/// What failed for a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Failing {
    /// This process refuses the workflow.
    Load,
    /// The engine does not start the run of a time.
    Start,
    /// The run of a time is tried again later.
    Late,
}

impl Failing {
    fn message(self) -> &'static str {
        match self {
            Self::Load => "its schedule cannot be read",
            Self::Start => "it cannot be started",
            Self::Late => "its time is late",
        }
    }
}

/// The last failures, by workflow.
#[derive(Debug, Default)]
pub(super) struct ScheduleFailures(Mutex<BTreeMap<Name, BTreeMap<Failing, String>>>);

impl ScheduleFailures {
    /// Records a failure. Logs it, unless the last failure of this kind had the same cause.
    pub fn record(&self, workflow: &Name, what: Failing, error: &EngineError) {
        let cause = brief(error);
        let mut all = self.lock();
        let earlier = all.entry(workflow.clone()).or_default();
        if earlier.insert(what, cause.clone()).as_ref() != Some(&cause) {
            tracing::warn!(%workflow, %error, "{}", what.message());
        }
    }

    /// Removes a failure that is over. Returns its cause.
    pub fn clear(&self, workflow: &str, what: Failing) -> Option<String> {
        self.lock().get_mut(workflow)?.remove(&what)
    }

    /// Removes all failures of a workflow that is replaced or deleted.
    pub fn forget(&self, workflow: &str) {
        self.lock().remove(workflow);
    }

    /// Returns why the schedule of a workflow starts no runs.
    pub fn of(&self, workflow: &str) -> Option<String> {
        self.lock().get(workflow)?.values().next().cloned()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Name, BTreeMap<Failing, String>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns an error in one line.
fn brief(error: &EngineError) -> String {
    let text = match error {
        EngineError::Load(LoadError::Refused { diagnostics, .. }) => {
            let mut sorted = diagnostics.sorted().into_iter();
            let first = sorted.find(|one| one.severity == Severity::Error);
            first.map(|first| first.to_line())
        }
        _ => None,
    };
    let text = text.unwrap_or_else(|| error.to_string());
    text.lines().next().unwrap_or_default().to_owned()
}
