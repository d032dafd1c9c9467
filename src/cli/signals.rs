//! Ctrl-C, SIGTERM and SIGHUP stop this process, but never a run.
//! Before [`Signals`] is created, they end the process at once, as they do by default.

use super::exit::{Exit, Failure};
use super::output::{self, Screen};
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The time between two checks of whether standard output still has a reader.
const EVERY: Duration = Duration::from_millis(250);

/// Receives these Unix signals after its creation.
pub struct Signals {
    interrupt: Signal,
    terminate: Signal,
    /// `None` if the process was started by `nohup`, because it should then continue without a terminal.
    hangup: Option<Signal>,
}

impl Signals {
    pub fn new() -> Result<Self, Failure> {
        let listen = |kind| signal(kind).map_err(Failure::Machine);
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
            hangup: match ignores_hangup() {
                true => None,
                false => Some(listen(SignalKind::hangup())?),
            },
        })
    }

    /// Waits for the next of these signals, or until the reader of standard output is gone, as in `logs -f | head -1`.
    pub async fn next_or_unread(&mut self) {
        let unread = async {
            while !output::is_unread() {
                tokio::time::sleep(EVERY).await;
            }
        };
        tokio::select! {
            () = self.next() => {}
            () = unread => {}
        }
    }

    pub async fn next(&mut self) {
        let hangup = async {
            match &mut self.hangup {
                Some(hangup) => hangup.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            _ = hangup => {}
        }
        windlass_actions::note_stop_signal();
    }
}

/// Writes output, which can block for ever because its reader is slow. The second Unix signal meanwhile ends the
/// process.
#[allow(
    clippy::disallowed_methods,
    reason = "the thread of the caller is blocked while the task waits for signals"
)]
pub fn while_writing<T>(
    screen: Screen,
    write: impl FnOnce() -> Result<T, Failure>,
) -> Result<T, Failure> {
    let mut signals = Signals::new()?;
    let watch = tokio::spawn(async move {
        signals.next().await;
        screen.say("the output is still being written (again to leave at once)");
        signals.next().await;
        std::process::exit(Exit::Unfinished.code().into());
    });
    let written = write();
    watch.abort();
    written
}

/// Returns whether this process was started with SIGHUP ignored.
fn ignores_hangup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    // SIGHUP has the number 1, so it is the first bit of the mask of ignored signals.
    mask.is_some_and(|mask| mask & 1 == 1)
}
