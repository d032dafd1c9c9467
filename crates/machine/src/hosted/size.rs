//! The size of a run's state. Measuring costs as much as encoding the state, so the size is measured only when it may
//! have doubled.

use crate::RunState;
use bincode::enc::write::{SizeWriter, Writer};
use bincode::error::EncodeError;

/// A state is first measured when it may have more bytes than this.
const SMALL: u64 = 256 * 1024;

/// Approximate bytes of memory that each encoded part (tag, length, text) needs in addition to its encoded bytes.
const PART_OVERHEAD_BYTES: u64 = 16;

/// The size of a state when it was last measured.
pub(super) struct Size {
    bytes: u64,
    /// Bytes that were stored since `bytes` was measured.
    unweighed: u64,
    /// Bytes of memory at the last measurement.
    memory: u64,
    /// Bytes that were stored since `memory` was measured.
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

    /// Sets the size of a state of which a snapshot was just stored.
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

    /// Returns an upper estimate of the state's memory, in bytes. Measures the memory if it may have doubled.
    pub fn memory(&mut self, state: &RunState) -> u64 {
        // The worst case: each stored byte is a value of its own.
        let recorded = self.unmeasured.saturating_mul(PART_OVERHEAD_BYTES + 1);
        match recorded > self.memory.max(SMALL) {
            true => self.measure(state),
            false => self.memory.saturating_add(recorded),
        }
    }

    /// Measures the state's memory, in bytes.
    pub fn measure(&mut self, state: &RunState) -> u64 {
        if self.unmeasured == 0 {
            return self.memory;
        }
        let mut estimate = MemoryEstimate::default();
        // A state that cannot be encoded is refused when it is stored.
        if bincode::encode_into_writer(state, &mut estimate, bincode::config::standard()).is_ok() {
            self.memory = estimate.0;
            self.unmeasured = 0;
        }
        self.memory
    }

    /// Measures the size in bytes if it may have doubled; otherwise returns `None`.
    pub fn weigh(&mut self, state: &RunState) -> Option<u64> {
        if self.unweighed <= self.bytes.max(SMALL) {
            return None;
        }
        self.unweighed = 0;
        // A state that cannot be encoded is refused when it is stored.
        self.bytes = state_size(state).unwrap_or(self.bytes);
        Some(self.bytes)
    }
}

/// Returns the encoded size of a state in bytes; `None` if it cannot be encoded.
#[must_use]
pub fn state_size(state: &RunState) -> Option<u64> {
    let mut size = SizeWriter::default();
    bincode::encode_into_writer(state, &mut size, bincode::config::standard()).ok()?;
    Some(size.bytes_written as u64)
}

/// Estimates bytes of memory from encoded parts.
#[derive(Default)]
struct MemoryEstimate(u64);

impl Writer for MemoryEstimate {
    fn write(&mut self, bytes: &[u8]) -> Result<(), EncodeError> {
        self.0 = self
            .0
            .saturating_add(bytes.len() as u64 + PART_OVERHEAD_BYTES);
        Ok(())
    }
}
