//! Ctrl-C, SIGTERM and SIGHUP stop this process, never a run. Until [`Signals`] is made they end the
//! process, as they do by default.

use super::exit::Failure;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// All of them, from the moment this is made.
pub struct Signals {
    interrupt: Signal,
    terminate: Signal,
    /// None under `nohup`: the process is to outlive the terminal.
    hangup: Option<Signal>,
}

impl Signals {
    /// Begins to listen.
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

/// Whether this process was started with SIGHUP ignored.
fn ignores_hangup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    // The first bit is the first signal, which SIGHUP is.
    mask.is_some_and(|mask| mask & 1 == 1)
}
