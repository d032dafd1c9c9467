//! A replacement for `metrics` in a build without that feature: nothing is counted.

use windlass_model::model::Name;
use windlass_store::Commit;
use windlass_value::time::Timestamp;

#[derive(Clone, Debug, Default)]
pub struct Metrics;

pub(super) struct InFlight;

impl Metrics {
    pub(super) fn group<T, E>(
        &self,
        _: usize,
        commit: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        commit()
    }

    pub(super) fn step(&self, _: &Name, _: Timestamp, _: &Commit, _: u64) {}

    pub(super) fn failed_call(&self, _: &Name, _: &Name) {}

    pub(crate) fn missed(&self, _: &Name, _: u64) {}

    pub(super) fn fired(&self, _: Timestamp, _: Timestamp) {}

    pub(super) fn set_in_memory(&self, _: usize, _: usize, _: (u64, usize)) {}

    pub(super) fn effect(&self) -> InFlight {
        InFlight
    }
}
