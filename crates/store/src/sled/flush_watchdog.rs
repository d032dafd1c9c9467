//! Wakes threads that wait for the database after an error of its disk. After most errors, sled wakes them. One case
//! remains: a thread already waits for the end of a batch, and this end cannot be written. Then the thread would wait
//! for ever (`exit_reservation` in sled's `logger.rs`).
//! Without an error, this file does nothing. It never writes.

use crate::kv::guard;
use std::io;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Interval of the checks for an error.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// The thread that checks for errors. It has a handle of the database, and ends when this value is dropped.
pub(super) struct FlushWatchdog {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl FlushWatchdog {
    /// Starts the thread for a database that was opened with this configuration.
    pub fn of(config: ::sled::Config, db: ::sled::Db) -> io::Result<Self> {
        let (stop, stopped) = channel::<()>();
        let thread = std::thread::Builder::new()
            .name(String::from("windlass-store"))
            .spawn(move || {
                while stopped.recv_timeout(CHECK_INTERVAL) == Err(RecvTimeoutError::Timeout) {
                    if config.global_error().is_err() {
                        // Because of the error, `flush` returns at once. Before it returns, sled wakes all waiting
                        // threads.
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
            // The thread's calls are guarded, so it does not panic.
            let _ = thread.join();
        }
    }
}
