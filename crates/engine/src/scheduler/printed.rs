//! The output of commands while they run, for followers of the run. The last lines of a command stay in memory until
//! [`LINGER`] after its end, for followers that connect later. No command waits for a reader: a slow reader misses
//! lines.

use super::clock::now;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc;
use utoipa::ToSchema;
use windlass_actions::OutputStream;
use windlass_machine::EffectId;
use windlass_model::model::Name;
use windlass_value::time::Timestamp;

/// Maximum number of lines that may wait for a reader.
const CHANNEL_CAPACITY: usize = 2_048;

/// Maximum number of lines of one command in memory.
const MAX_LINES: usize = 1_000;
/// Maximum number of bytes of these lines.
const MAX_BYTES: usize = 64 << 10;

/// How long the output of an ended command stays in memory: a caller that starts a run follows it a little later.
const LINGER: Duration = Duration::from_secs(2);

/// If there is output of more runs than this, runs that have neither listeners nor recent output are removed.
const SWEEP_ABOVE: usize = 256;

/// A line that a command printed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = PrintedLine)]
pub struct OutputLine {
    /// Name of the action.
    #[schema(value_type = String)]
    pub action: Name,
    /// Stream of the line: `stdout` or `stderr`.
    #[schema(value_type = String)]
    pub stream: OutputStream,
    /// Text of the line, without its line break.
    pub text: String,
}

/// The output of commands, by run.
#[derive(Clone, Default)]
pub struct OutputLog(Arc<Mutex<HashMap<Name, RunOutput>>>);

#[derive(Default)]
struct RunOutput {
    listeners: Vec<mpsc::Sender<OutputLine>>,
    /// The recent output by call.
    recent: BTreeMap<EffectId, CallOutput>,
}

#[derive(Default)]
struct CallOutput {
    lines: VecDeque<OutputLine>,
    bytes: usize,
    /// When the command ended.
    ended_at: Option<Timestamp>,
}

/// A call whose command may print. On drop, the command counts as ended, and its output expires after [`LINGER`].
pub(super) struct OutputGuard {
    printing: OutputLog,
    run: Name,
    effect: EffectId,
}

impl OutputLog {
    /// Listens to a run. The receiver gets the recent output of its commands, and then each new line.
    #[must_use]
    pub fn listen(&self, run: &str) -> mpsc::Receiver<OutputLine> {
        let (to, from) = mpsc::channel(CHANNEL_CAPACITY);
        let mut runs = self.runs();
        sweep(&mut runs);
        let of = runs.entry(Name::from(run)).or_default();
        for printed in of.recent.values().flat_map(|recent| &recent.lines) {
            // An error is ignored: there may be more lines than the channel accepts.
            let _ = to.try_send(printed.clone());
        }
        of.listeners.push(to);
        from
    }

    /// Returns the recent output of a run's commands.
    #[must_use]
    pub fn recent(&self, run: &str) -> Vec<OutputLine> {
        let runs = self.runs();
        let recent = runs.get(run).into_iter().flat_map(|of| of.recent.values());
        recent.flat_map(|one| one.lines.iter().cloned()).collect()
    }

    pub(super) fn begin_call(&self, run: &Name, effect: EffectId) -> OutputGuard {
        OutputGuard {
            printing: self.clone(),
            run: run.clone(),
            effect,
        }
    }

    /// Adds a line that a command printed.
    pub(super) fn add_line(&self, run: &Name, effect: EffectId, printed: OutputLine) {
        let mut runs = self.runs();
        let of = runs.entry(run.clone()).or_default();
        of.listeners.retain(|to| {
            use mpsc::error::TrySendError::Closed;
            !matches!(to.try_send(printed.clone()), Err(Closed(_)))
        });
        let recent = of.recent.entry(effect).or_default();
        recent.bytes += printed.text.len();
        recent.lines.push_back(printed);
        while recent.lines.len() > MAX_LINES || recent.bytes > MAX_BYTES {
            let Some(oldest) = recent.lines.pop_front() else {
                break;
            };
            recent.bytes -= oldest.text.len();
        }
    }

    fn runs(&self) -> MutexGuard<'_, HashMap<Name, RunOutput>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for OutputGuard {
    fn drop(&mut self) {
        let mut runs = self.printing.runs();
        if let Some(of) = runs.get_mut(&self.run) {
            of.recent.retain(|_, recent| !recent.is_old());
            if let Some(recent) = of.recent.get_mut(&self.effect) {
                recent.ended_at = Some(now());
            }
        }
        if runs.len() > SWEEP_ABOVE {
            sweep(&mut runs);
        }
    }
}

impl CallOutput {
    fn is_old(&self) -> bool {
        self.ended_at
            .is_some_and(|ended_at| ended_at.plus(LINGER) < now())
    }
}

/// Removes closed listeners, and the output of commands that ended some time ago.
fn sweep(runs: &mut HashMap<Name, RunOutput>) {
    runs.retain(|_, of| {
        of.listeners.retain(|one| !one.is_closed());
        of.recent.retain(|_, recent| !recent.is_old());
        !of.listeners.is_empty() || !of.recent.is_empty()
    });
}
