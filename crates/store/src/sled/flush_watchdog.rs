//! Wakes who waits for the database after an error of its disk. sled wakes them itself after most errors,
//! but not when the end of a batch cannot be written while someone waits for it already: they would wait for ever
//! (`exit_reservation` in its `logger.rs`). Without an error it does nothing, and never writes.

use crate::kv::guard;
use std::io;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// How often it looks for an error.
const LOOK: Duration = Duration::from_secs(1);

/// The thread that looks; it ends when this is dropped, and has its handle of the database until then.
pub(super) struct FlushWatchdog {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl FlushWatchdog {
    /// For a database that was opened with this configuration.
    pub fn of(config: ::sled::Config, db: ::sled::Db) -> io::Result<Self> {
        let (stop, stopped) = channel::<()>();
        let thread = std::thread::Builder::new()
            .name(String::from("windlass-store"))
            .spawn(move || {
                while stopped.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
                    if config.global_error().is_err() {
                        // Comes back at once, with that error, and wakes all others on its way.
                        let _ = guard(|| db.flush());
                    }
                }
            })?;
        Ok(Self {
            stop: Some(stop),
            thread: Some(thread),
        })
    }
}

impl Drop for FlushWatchdog {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // What panics in there is guarded.
            let _ = thread.join();
        }
    }
}
