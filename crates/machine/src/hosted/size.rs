//! How large the state of a run is. To weigh it costs as much as to write it, so that is done only
//! when it may have doubled.

use crate::RunState;
use bincode::enc::write::{SizeWriter, Writer};
use bincode::error::EncodeError;

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

/// What a piece of a state has in memory beyond its bytes: a number, a text, a key.
const PIECE: u64 = 32;

/// A byte of a stored state is this many in memory at most.
pub const MAX_GROWTH: u64 = PIECE + 1;

/// Counts what it would write as memory.
struct MemoryWriter(u64);

impl Writer for MemoryWriter {
    fn write(&mut self, bytes: &[u8]) -> Result<(), EncodeError> {
        let more = PIECE.saturating_add(bytes.len() as u64);
        self.0 = self.0.saturating_add(more);
        Ok(())
    }
}

/// About how many bytes a state has in memory.
#[must_use]
pub fn state_memory(state: &RunState) -> u64 {
    let mut writer = MemoryWriter(0);
    // A state that cannot be encoded cannot be stored: its run fails.
    let _ = bincode::encode_into_writer(state, &mut writer, bincode::config::standard());
    writer.0
}

/// How many bytes a state has as it is stored; none when it cannot be.
#[must_use]
pub fn state_size(state: &RunState) -> Option<u64> {
    let mut size = SizeWriter::default();
    bincode::encode_into_writer(state, &mut size, bincode::config::standard()).ok()?;
    Some(size.bytes_written as u64)
}
