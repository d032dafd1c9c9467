//! Which runs changed: for one who keeps something that is made from their heads. Nothing is
//! remembered before that one asks, nor when it asks too seldom.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use windlass_model::model::Name;

/// With more runs than this, all of them are read again.
const MANY: usize = 65_536;

/// Called when there is something to ask for.
pub type Wake = Arc<dyn Fn() + Send + Sync>;

/// The runs that changed.
#[derive(Default)]
pub struct Feed {
    /// Whether changes are remembered.
    on: AtomicBool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// None: which ones is not known.
    runs: Option<HashSet<Name>>,
    wake: Option<Wake>,
}

impl Feed {
    /// From now on this is called when the first run changes after a [`Feed::take`].
    pub fn on_change(&self, wake: Wake) {
        self.state().wake = Some(wake);
    }

    /// Reports that these runs changed; a reader already sees the change.
    pub fn changed(&self, names: impl Iterator<Item = Name>) {
        if !self.on.load(Ordering::Relaxed) {
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
            self.on.store(false, Ordering::Relaxed);
            state.runs = None;
        }
        wake(state, some);
    }

    /// Any run may have changed.
    pub fn forget(&self) {
        let mut state = self.state();
        let known = state.runs.take().is_some();
        wake(state, known);
    }

    /// Those that changed since the last call; none when that is not known.
    pub fn take(&self) -> Option<Vec<Name>> {
        let mut state = self.state();
        self.on.store(true, Ordering::Relaxed);
        let runs = state.runs.replace(HashSet::new());
        runs.map(|runs| runs.into_iter().collect())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Calls the one who waits, without the lock.
fn wake(state: MutexGuard<'_, State>, there_is: bool) {
    let wake = state.wake.clone().filter(|_| there_is);
    drop(state);
    if let Some(wake) = wake {
        wake();
    }
}
