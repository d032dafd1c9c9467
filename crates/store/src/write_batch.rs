//! The writes of a group (several commits together), in one buffer that is used again for the next group. This file
//! never touches a database.

use super::codec;
use super::keys;
use bincode::error::EncodeError;
use std::ops::Range;

/// Why a record cannot be stored.
#[derive(Debug, thiserror::Error)]
pub enum RecordRejection {
    /// The value cannot be encoded: it nests too deep.
    #[error("{0}")]
    Encode(#[from] EncodeError),
    /// The record is longer than the maximum.
    #[error("a record of {0} bytes is larger than the store's maximum")]
    Long(usize),
}

/// Writes and removals, in order.
#[derive(Default)]
pub struct WriteBatch {
    bytes: Vec<u8>,
    ops: Vec<Op>,
}

struct Op {
    key: Range<usize>,
    value: Option<Range<usize>>,
}

/// A record that was put into a batch.
#[derive(Clone, Copy)]
pub struct Put {
    /// Size of the record's value in bytes.
    pub bytes: u64,
    /// The checksum of the record's first piece.
    pub crc: u32,
}

/// A position in a batch.
#[derive(Clone, Copy)]
pub struct Savepoint {
    bytes: usize,
    ops: usize,
}

impl WriteBatch {
    /// Returns the current position, for a rollback.
    pub fn savepoint(&self) -> Savepoint {
        Savepoint {
            bytes: self.bytes.len(),
            ops: self.ops.len(),
        }
    }

    /// Returns the size of keys and values in bytes.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Removes all writes after `mark`.
    pub fn rollback(&mut self, mark: Savepoint) {
        self.bytes.truncate(mark.bytes);
        self.ops.truncate(mark.ops);
    }

    /// Removes all writes. The buffer keeps its memory for the next value, up to a limit. After a larger value it
    /// shrinks to this limit.
    pub fn clear(&mut self) {
        const KEEP: usize = 4 << 20;
        self.rollback(Savepoint { bytes: 0, ops: 0 });
        self.bytes.shrink_to(KEEP);
    }

    /// Puts a record. `key` appends its key and `value` its value.
    pub fn put(
        &mut self,
        key: impl FnOnce(&mut Vec<u8>),
        value: impl FnOnce(&mut Vec<u8>) -> Result<(), EncodeError>,
    ) -> Result<Put, RecordRejection> {
        let key = self.key(key);
        let start = codec::open(&mut self.bytes);
        let body = self.bytes.len();
        value(&mut self.bytes)?;
        let length = self.bytes.len() - body;
        let crc = if length <= codec::MAX_SINGLE {
            self.seal(key, start)
        } else {
            self.split(key, start, body)?
        };
        Ok(Put {
            bytes: length as u64,
            crc,
        })
    }

    /// Copies a row, unchanged, from another store.
    pub fn copy(&mut self, key: &[u8], value: &[u8]) {
        let key = self.key(|out| out.extend_from_slice(key));
        let start = self.bytes.len();
        self.bytes.extend_from_slice(value);
        let value = Some(start..self.bytes.len());
        self.ops.push(Op { key, value });
    }

    /// Puts a row that has only a key.
    pub fn put_key(&mut self, key: impl FnOnce(&mut Vec<u8>)) {
        let key = self.key(key);
        let value = Some(key.end..key.end);
        self.ops.push(Op { key, value });
    }

    /// Puts rows that have only keys.
    pub fn put_keys(&mut self, keys: &[Vec<u8>]) {
        for key in keys {
            self.put_key(|out| out.extend_from_slice(key));
        }
    }

    /// Puts the removal of a row.
    pub fn remove(&mut self, key: impl FnOnce(&mut Vec<u8>)) {
        let key = self.key(key);
        self.ops.push(Op { key, value: None });
    }

    /// Returns each key with its value. For a removal, the value is `None`.
    pub fn ops(&self) -> impl Iterator<Item = (&[u8], Option<&[u8]>)> {
        let at = |range: &Range<usize>| self.bytes.get(range.clone()).unwrap_or_default();
        self.ops
            .iter()
            .map(move |op| (at(&op.key), op.value.as_ref().map(at)))
    }

    fn key(&mut self, key: impl FnOnce(&mut Vec<u8>)) -> Range<usize> {
        let start = self.bytes.len();
        key(&mut self.bytes);
        start..self.bytes.len()
    }

    /// Completes the record or piece that begins at `start`, which must be the last one in the buffer. Appends its
    /// checksum and returns it.
    fn seal(&mut self, key: Range<usize>, start: usize) -> u32 {
        let crc = codec::seal(&mut self.bytes, key.clone(), start);
        let value = Some(start..self.bytes.len());
        self.ops.push(Op { key, value });
        crc
    }

    /// Splits the value that begins at `body` into pieces. Each piece has its own key.
    fn split(
        &mut self,
        key: Range<usize>,
        start: usize,
        body: usize,
    ) -> Result<u32, RecordRejection> {
        let value = self.bytes.split_off(body);
        self.bytes.truncate(start);
        let further = further_pieces(&value)?;
        let name = self.bytes.get(key.clone()).unwrap_or_default().to_vec();
        let mut pieces = value.chunks(codec::MAX_PIECE).zip(0_u32..);
        let first = pieces.next().map_or(&[][..], |(first, _)| first);
        let crc = self.seal_first(key, further, crc32fast::hash(&value), first);
        for (piece, number) in pieces {
            self.put_piece(&name, number, piece);
        }
        Ok(crc)
    }

    fn seal_first(&mut self, key: Range<usize>, further: u16, crc: u32, first: &[u8]) -> u32 {
        let start = codec::open_first(&mut self.bytes, further, crc);
        self.bytes.extend_from_slice(first);
        self.seal(key, start)
    }

    /// Puts the first piece of a record whose further pieces are already stored. With the first piece, the record
    /// becomes readable.
    pub fn put_first(&mut self, key: impl FnOnce(&mut Vec<u8>), written: &WrittenPieces) -> Put {
        let key = self.key(key);
        Put {
            bytes: written.bytes,
            crc: self.seal_first(key, written.further, written.crc, &written.first),
        }
    }

    fn put_piece(&mut self, name: &[u8], number: u32, piece: &[u8]) {
        let key = self.key(|out| {
            out.extend_from_slice(name);
            keys::piece(out, number);
        });
        let start = codec::open(&mut self.bytes);
        self.bytes.extend_from_slice(piece);
        self.seal(key, start);
    }
}

/// Returns the number of pieces after a value's first piece.
fn further_pieces(value: &[u8]) -> Result<u16, RecordRejection> {
    let further = value.len().div_ceil(codec::MAX_PIECE).saturating_sub(1);
    u16::try_from(further).map_err(|_| RecordRejection::Long(value.len()))
}

/// The first piece of a value whose further pieces are all stored.
pub struct WrittenPieces {
    bytes: u64,
    crc: u32,
    further: u16,
    first: Vec<u8>,
}

/// The further pieces (all except the first) of a long value. They are stored before the first piece, without which no
/// reader uses them. So a long commit can be written in several groups, and other commits can be written in between.
pub struct Pieces<'a> {
    name: Vec<u8>,
    value: &'a [u8],
    /// The number of the next piece.
    next: usize,
}

impl<'a> Pieces<'a> {
    /// Prepares the pieces of the value under a key. Returns `None` if the value has only one piece, or too many
    /// pieces.
    pub fn new(name: Vec<u8>, value: &'a [u8]) -> Option<Self> {
        let is_split = value.len() > codec::MAX_SINGLE && further_pieces(value).is_ok();
        let next = 1;
        is_split.then_some(Self { name, value, next })
    }

    /// Returns true if all further pieces have been put into batches.
    pub fn is_done(&self) -> bool {
        self.next * codec::MAX_PIECE >= self.value.len()
    }

    /// Puts the next pieces into an empty batch, up to about `bytes` bytes.
    pub fn put_next(&mut self, batch: &mut WriteBatch, bytes: usize) {
        let pieces = self.value.chunks(codec::MAX_PIECE).zip(0_u32..);
        for (piece, number) in pieces.skip(self.next) {
            batch.put_piece(&self.name, number, piece);
            self.next += 1;
            if batch.len() >= bytes {
                break;
            }
        }
    }

    /// Returns the first piece. Call this only after all further pieces are stored.
    pub fn written(&self) -> Result<WrittenPieces, RecordRejection> {
        let first = self.value.chunks(codec::MAX_PIECE).next();
        Ok(WrittenPieces {
            bytes: self.value.len() as u64,
            crc: crc32fast::hash(self.value),
            further: further_pieces(self.value)?,
            first: first.unwrap_or_default().to_vec(),
        })
    }
}
