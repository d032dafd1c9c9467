//! How large the state of a run is. To weigh it costs as much as to write it, so that is done only
//! when it may have doubled.

use crate::RunState;
use bincode::enc::write::{SizeWriter, Writer};
use bincode::error::EncodeError;

/// The size of a state below this many bytes is not measured.
const SMALL: u64 = 256 * 1024;

/// A value in memory has about this many bytes for each part that is encoded: its tag, its length, its text.
const PART: u64 = 16;

/// The size of a state, as it was weighed last.
pub(super) struct Size {
    bytes: u64,
    /// How much was recorded since then.
    unweighed: u64,
    /// How much memory it took when that was measured last.
    memory: u64,
    /// How much was recorded since then.
    unmeasured: u64,
}

impl Size {
    pub fn of(bytes: u64) -> Self {
        Self {
            bytes,
            unweighed: 0,
            memory: 0,
            unmeasured: bytes,
        }
    }

    /// The whole state was recorded, in this many bytes.
    pub fn set_bytes(&mut self, bytes: u64) {
        self.bytes = bytes;
        self.unweighed = 0;
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    pub fn add(&mut self, bytes: u64) {
        self.unweighed = self.unweighed.saturating_add(bytes);
        self.unmeasured = self.unmeasured.saturating_add(bytes);
    }

    /// At most about how many bytes of memory the state takes: measured when it may have doubled.
    pub fn memory(&mut self, state: &RunState) -> u64 {
        // Each byte may be a value.
        let recorded = self.unmeasured.saturating_mul(PART + 1);
        match recorded > self.memory.max(SMALL) {
            true => self.measure(state),
            false => self.memory.saturating_add(recorded),
        }
    }

    /// About how many bytes of memory the state takes.
    pub fn measure(&mut self, state: &RunState) -> u64 {
        if self.unmeasured == 0 {
            return self.memory;
        }
        let mut estimate = MemoryEstimate::default();
        // What cannot be encoded is refused when it is to be stored.
        if bincode::encode_into_writer(state, &mut estimate, bincode::config::standard()).is_ok() {
            self.memory = estimate.0;
            self.unmeasured = 0;
        }
        self.memory
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

/// Bytes of memory, from what is encoded.
#[derive(Default)]
struct MemoryEstimate(u64);

impl Writer for MemoryEstimate {
    fn write(&mut self, bytes: &[u8]) -> Result<(), EncodeError> {
        self.0 = self.0.saturating_add(bytes.len() as u64 + PART);
        Ok(())
    }
}
