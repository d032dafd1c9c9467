//! Aborts a transfer without progress. A large body may need a long time, so a transfer has no timeout by default.

use super::DEFAULT_TIMEOUT;
use std::pin::pin;
use std::sync::Arc;
use tokio::sync::watch;
use windlass_model::model::{Fault, fault_kind};

/// Reports the progress of a transfer.
#[derive(Clone)]
pub(super) struct StallWatch(Arc<watch::Sender<()>>);

impl StallWatch {
    pub(super) fn new() -> Self {
        Self(Arc::new(watch::Sender::new(())))
    }

    /// Reports that some bytes were transferred.
    pub(super) fn report(&self) {
        self.0.send_replace(());
    }

    /// Awaits the work. If no progress is reported for 100 s, drops the work and returns a transient fault of kind
    /// `timeout`.
    pub(super) async fn watch<T>(&self, work: impl Future<Output = T>) -> Result<T, Fault> {
        let mut work = pin!(work);
        let mut reports = self.0.subscribe();
        loop {
            let report = tokio::time::timeout(DEFAULT_TIMEOUT, reports.changed());
            tokio::select! {
                done = &mut work => return Ok(done),
                report = report => if report.is_err() {
                    let message = format!("no byte was transferred for {DEFAULT_TIMEOUT:?}");
                    return Err(Fault::new(fault_kind::TIMEOUT, message).transient());
                }
            }
        }
    }
}
