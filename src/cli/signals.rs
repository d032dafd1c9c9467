//! Ctrl-C and SIGTERM. While nobody listens they end the process, as they do by default.

use super::exit::Failure;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Both, from the moment this is made.
pub struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    /// Begins to listen.
    pub fn new() -> Result<Self, Failure> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt()).map_err(Failure::Machine)?,
            terminate: signal(SignalKind::terminate()).map_err(Failure::Machine)?,
        })
    }

    /// The next one.
    pub async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
