//! Ctrl-C, SIGTERM and SIGHUP stop this process, never a run. Until [`Signals`] is created, they end the process, as
//! they do by default.

use super::exit::Failure;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Receives all of these signals after its creation.
pub struct Signals {
    interrupt: Signal,
    terminate: Signal,
    /// None under `nohup`, because the process should outlive the terminal.
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
    }
}

/// Returns whether this process was started with SIGHUP ignored.
fn ignores_hangup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    // SIGHUP is signal 1, which has the first bit.
    mask.is_some_and(|mask| mask & 1 == 1)
}
