//! How long a transfer may make no progress. A body of any size may take any time, so the attempt has no timeout of its
//! own.

use super::DEFAULT_TIMEOUT;
use std::pin::pin;
use std::sync::Arc;
use tokio::sync::watch;
use windlass_model::model::{Fault, fault_kind};

/// Reports of a transfer that it moves.
#[derive(Clone)]
pub(super) struct Progress(Arc<watch::Sender<()>>);

impl Progress {
    pub(super) fn new() -> Self {
        Self(Arc::new(watch::Sender::new(())))
    }

    /// Some bytes were moved.
    pub(super) fn report(&self) {
        self.0.send_replace(());
    }

    /// The result of the work; a transient fault of kind `timeout` after 100 s without a report.
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
