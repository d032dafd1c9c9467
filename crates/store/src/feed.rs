//! Records which runs changed, for a reader that caches data from their headers. Recording begins with the first read.
//! If too many runs change between two reads, recording stops until the next read.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use windlass_model::model::Name;

/// Maximum number of changed runs that are recorded. If more runs change, the reader has to read all runs again.
const MANY: usize = 65_536;

/// A function that is called when the first run changes after a read.
pub type Wake = Arc<dyn Fn() + Send + Sync>;

/// The recorded changes of runs.
#[derive(Default)]
pub struct Feed {
    is_recording: AtomicBool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The runs that changed; `None` if they are not known.
    runs: Option<HashSet<Name>>,
    wake: Option<Wake>,
}

impl Feed {
    /// Sets the function that is called when the first run changes after each [`Feed::take`].
    pub fn on_change(&self, wake: Wake) {
        self.state().wake = Some(wake);
    }

    /// Records that these runs changed. The changes must already be readable, because the woken reader reads them at
    /// once.
    pub fn changed(&self, names: impl Iterator<Item = Name>) {
        if !self.is_recording.load(Ordering::Relaxed) {
            return;
        }
        let mut state = self.state();
        let Some(runs) = &mut state.runs else {
            return;
        };
        let first = runs.is_empty();
        runs.extend(names);
        let some = first && !runs.is_empty();
        if runs.len() > MANY {
            self.is_recording.store(false, Ordering::Relaxed);
            state.runs = None;
        }
        wake(state, some);
    }

    /// Records that any run may have changed.
    pub fn mark_all_changed(&self) {
        let mut state = self.state();
        let known = state.runs.take().is_some();
        wake(state, known);
    }

    /// Returns the runs that changed since the last call; `None` if they are not known.
    pub fn take(&self) -> Option<Vec<Name>> {
        let mut state = self.state();
        self.is_recording.store(true, Ordering::Relaxed);
        let runs = state.runs.replace(HashSet::new());
        runs.map(|runs| runs.into_iter().collect())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Releases the lock, then calls the function of the waiting reader if there is a change.
fn wake(state: MutexGuard<'_, State>, there_is: bool) {
    let wake = state.wake.clone().filter(|_| there_is);
    drop(state);
    if let Some(wake) = wake {
        wake();
    }
}
