//! What commands print while they run, for those who follow their run. The last lines of a command are
//! remembered until it has ended and a little longer, for who comes later. No command waits for a reader: a
//! slow one misses lines.

use super::clock::now;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc;
use windlass_actions::OutputStream;
use windlass_machine::EffectId;
use windlass_model::model::Name;
use windlass_value::time::Timestamp;

/// So many lines may wait for a reader.
const WAITING: usize = 2_048;

/// So many lines of a command are remembered, and so many bytes.
const LINES: usize = 1_000;
const BYTES: usize = 64 << 10;

/// One who starts a run follows it from a little later on: what ended within this time is still told.
const LATE: Duration = Duration::from_secs(2);

/// With more runs than this, those that print nothing any more are forgotten.
const MANY: usize = 256;

/// A line that a command printed.
#[derive(Clone, Debug)]
pub struct Printed {
    /// The action.
    pub action: Name,
    /// Where it printed it.
    pub stream: OutputStream,
    /// The line, without its end.
    pub text: String,
}

/// What commands print.
#[derive(Clone, Default)]
pub struct Printing(Arc<Mutex<HashMap<Name, OfRun>>>);

#[derive(Default)]
struct OfRun {
    listeners: Vec<mpsc::Sender<Printed>>,
    /// By the calls that are under way.
    recent: BTreeMap<EffectId, Recent>,
}

#[derive(Default)]
struct Recent {
    lines: VecDeque<Printed>,
    bytes: usize,
    /// When the command ended.
    ended_at: Option<Timestamp>,
}

/// A call whose command may print, for as long as this is held.
pub(super) struct Prints {
    printing: Printing,
    run: Name,
    effect: EffectId,
}

impl Printing {
    /// Listens to a run: what its commands that run now have printed, and will print.
    #[must_use]
    pub fn listen(&self, run: &str) -> mpsc::Receiver<Printed> {
        let (to, from) = mpsc::channel(WAITING);
        let mut runs = self.runs();
        sweep(&mut runs);
        let of = runs.entry(Name::from(run)).or_default();
        for printed in of.recent.values().flat_map(|recent| &recent.lines) {
            // There may be more than it takes.
            let _ = to.try_send(printed.clone());
        }
        of.listeners.push(to);
        from
    }

    /// The last lines of a run's commands that run now.
    #[must_use]
    pub fn recent(&self, run: &str) -> Vec<Printed> {
        let runs = self.runs();
        let recent = runs.get(run).into_iter().flat_map(|of| of.recent.values());
        recent.flat_map(|one| one.lines.iter().cloned()).collect()
    }

    /// A call begins.
    pub(super) fn begins(&self, run: &Name, effect: EffectId) -> Prints {
        Prints {
            printing: self.clone(),
            run: run.clone(),
            effect,
        }
    }

    /// A command printed a line.
    pub(super) fn tell(&self, run: &Name, effect: EffectId, printed: Printed) {
        let mut runs = self.runs();
        let of = runs.entry(run.clone()).or_default();
        of.listeners.retain(|to| {
            use mpsc::error::TrySendError::Closed;
            !matches!(to.try_send(printed.clone()), Err(Closed(_)))
        });
        let recent = of.recent.entry(effect).or_default();
        recent.bytes += printed.text.len();
        recent.lines.push_back(printed);
        while recent.lines.len() > LINES || recent.bytes > BYTES {
            let Some(oldest) = recent.lines.pop_front() else {
                break;
            };
            recent.bytes -= oldest.text.len();
        }
    }

    fn runs(&self) -> MutexGuard<'_, HashMap<Name, OfRun>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Prints {
    fn drop(&mut self) {
        let mut runs = self.printing.runs();
        if let Some(of) = runs.get_mut(&self.run) {
            of.recent.retain(|_, recent| !recent.is_old());
            if let Some(recent) = of.recent.get_mut(&self.effect) {
                recent.ended_at = Some(now());
            }
        }
        if runs.len() > MANY {
            sweep(&mut runs);
        }
    }
}

impl Recent {
    fn is_old(&self) -> bool {
        self.ended_at
            .is_some_and(|ended_at| ended_at.plus(LATE) < now())
    }
}

/// Forgets those that have gone, and what commands printed that ended long ago.
fn sweep(runs: &mut HashMap<Name, OfRun>) {
    runs.retain(|_, of| {
        of.listeners.retain(|one| !one.is_closed());
        of.recent.retain(|_, recent| !recent.is_old());
        !of.listeners.is_empty() || !of.recent.is_empty()
    });
}
