//! How large the state of a run is. To weigh it costs as much as to write it, so that is done only
//! when it may have doubled.

use crate::RunState;
use bincode::enc::write::SizeWriter;

/// The size of a state below this many bytes is not measured.
const SMALL: u64 = 256 * 1024;

/// The size of a state, as it was weighed last.
pub(super) struct Size {
    bytes: u64,
    /// How much was recorded since then.
    unweighed: u64,
}

impl Size {
    pub fn of(bytes: u64) -> Self {
        Self {
            bytes,
            unweighed: 0,
        }
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    pub fn add(&mut self, bytes: u64) {
        self.unweighed = self.unweighed.saturating_add(bytes);
    }

    /// The size, when it was time to weigh it.
    pub fn weigh(&mut self, state: &RunState) -> Option<u64> {
        if self.unweighed <= self.bytes.max(SMALL) {
            return None;
        }
        self.unweighed = 0;
        // What cannot be encoded is refused when it is to be stored.
        self.bytes = state_size(state).unwrap_or(self.bytes);
        Some(self.bytes)
    }
}

/// How many bytes a state has as it is stored; none when it cannot be.
#[must_use]
pub fn state_size(state: &RunState) -> Option<u64> {
    let mut size = SizeWriter::default();
    bincode::encode_into_writer(state, &mut size, bincode::config::standard()).ok()?;
    Some(size.bytes_written as u64)
}
