//! What a group of commits will write, laid out in one buffer that is used again and again.
//! This file never touches a database.

use super::codec;
use super::keys;
use bincode::error::EncodeError;
use std::ops::Range;

/// Why a record cannot be stored.
#[derive(Debug, thiserror::Error)]
pub enum RecordRejection {
    /// It does not encode: values nest too deep.
    #[error("{0}")]
    Encode(#[from] EncodeError),
    /// It is longer than the longest record.
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

/// A record that was put.
#[derive(Clone, Copy)]
pub struct Put {
    /// The length of its value.
    pub bytes: u64,
    /// The checksum of its first piece.
    pub crc: u32,
}

/// Where a batch stood.
#[derive(Clone, Copy)]
pub struct Savepoint {
    bytes: usize,
    ops: usize,
}

impl WriteBatch {
    /// Its current position, for a rollback.
    pub fn savepoint(&self) -> Savepoint {
        Savepoint {
            bytes: self.bytes.len(),
            ops: self.ops.len(),
        }
    }

    /// How many bytes it has: keys and values.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Forgets what came after `mark`.
    pub fn rollback(&mut self, mark: Savepoint) {
        self.bytes.truncate(mark.bytes);
        self.ops.truncate(mark.ops);
    }

    /// Forgets everything; keeps its memory unless a huge value made it grow.
    pub fn clear(&mut self) {
        const KEEP: usize = 4 << 20;
        self.rollback(Savepoint { bytes: 0, ops: 0 });
        self.bytes.shrink_to(KEEP);
    }

    /// A record under the key that `key` appends, with the value that `value` appends.
    pub fn put(
        &mut self,
        key: impl FnOnce(&mut Vec<u8>),
        value: impl FnOnce(&mut Vec<u8>) -> Result<(), EncodeError>,
    ) -> Result<Put, RecordRejection> {
        self.put_with(key, value, None)
    }

    /// The same of a value whose further pieces are stored, if it has this checksum ([`Pieces`]).
    pub fn put_with(
        &mut self,
        key: impl FnOnce(&mut Vec<u8>),
        value: impl FnOnce(&mut Vec<u8>) -> Result<(), EncodeError>,
        stored: Option<u32>,
    ) -> Result<Put, RecordRejection> {
        let key = self.key(key);
        let start = codec::open(&mut self.bytes);
        let body = self.bytes.len();
        value(&mut self.bytes)?;
        let length = self.bytes.len() - body;
        let crc = if length <= codec::MAX_SINGLE {
            self.seal(key, start)
        } else {
            self.split(key, start, body, stored)?
        };
        Ok(Put {
            bytes: length as u64,
            crc,
        })
    }

    /// A row as it lies in another store.
    pub fn copy(&mut self, key: &[u8], value: &[u8]) {
        let key = self.key(|out| out.extend_from_slice(key));
        let start = self.bytes.len();
        self.bytes.extend_from_slice(value);
        let value = Some(start..self.bytes.len());
        self.ops.push(Op { key, value });
    }

    /// A row that is only a key.
    pub fn put_key(&mut self, key: impl FnOnce(&mut Vec<u8>)) {
        let key = self.key(key);
        let value = Some(key.end..key.end);
        self.ops.push(Op { key, value });
    }

    /// Rows that are only keys.
    pub fn put_keys(&mut self, keys: &[Vec<u8>]) {
        for key in keys {
            self.put_key(|out| out.extend_from_slice(key));
        }
    }

    /// The removal of a row.
    pub fn remove(&mut self, key: impl FnOnce(&mut Vec<u8>)) {
        let key = self.key(key);
        self.ops.push(Op { key, value: None });
    }

    /// Keys, and values or removals.
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

    /// Ends the record or piece at `start`, the last thing in the buffer.
    fn seal(&mut self, key: Range<usize>, start: usize) -> u32 {
        let crc = codec::seal(&mut self.bytes, key.clone(), start);
        let value = Some(start..self.bytes.len());
        self.ops.push(Op { key, value });
        crc
    }

    /// Lays the value that begins at `body` out in pieces, each under its own key; without those that are stored.
    fn split(
        &mut self,
        key: Range<usize>,
        start: usize,
        body: usize,
        stored: Option<u32>,
    ) -> Result<u32, RecordRejection> {
        let value = self.bytes.split_off(body);
        self.bytes.truncate(start);
        let further = value.len().div_ceil(codec::MAX_PIECE).saturating_sub(1);
        let further = u16::try_from(further).map_err(|_| RecordRejection::Long(value.len()))?;
        let name = self.bytes.get(key.clone()).unwrap_or_default().to_vec();
        let mut pieces = value.chunks(codec::MAX_PIECE).zip(0_u32..);
        let start = codec::open_first(&mut self.bytes, further, &value);
        if let Some((first, _)) = pieces.next() {
            self.bytes.extend_from_slice(first);
        }
        let crc = self.seal(key, start);
        if stored != Some(crc32fast::hash(&value)) {
            for (piece, number) in pieces {
                self.put_piece(&name, number, piece);
            }
        }
        Ok(crc)
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

/// All further pieces of a value, which are stored.
pub struct WrittenPieces {
    /// The checksum of the value.
    pub crc: u32,
    /// The key of the last one.
    pub last: Vec<u8>,
}

/// The further pieces of a long record, to be stored before the first one, which alone makes it a record. A large
/// commit is so written in several groups, and others come in between.
pub struct Pieces<'a> {
    name: Vec<u8>,
    value: &'a [u8],
    /// The next one.
    next: u32,
}

impl<'a> Pieces<'a> {
    /// Those of the value under a key.
    pub fn new(name: Vec<u8>, value: &'a [u8]) -> Self {
        Self {
            name,
            value,
            next: 1,
        }
    }

    /// What was stored, after the last of them.
    pub fn written(&self) -> WrittenPieces {
        let mut last = self.name.clone();
        keys::piece(&mut last, self.next.saturating_sub(1));
        WrittenPieces {
            crc: crc32fast::hash(self.value),
            last,
        }
    }

    /// Puts the next ones into a batch, of about this many bytes; false when there are no more.
    pub fn put_next(&mut self, batch: &mut WriteBatch, bytes: usize) -> bool {
        let full = batch.len() + bytes;
        let mut more = self
            .value
            .chunks(codec::MAX_PIECE)
            .skip(self.next as usize)
            .peekable();
        let any = more.peek().is_some();
        for piece in more {
            batch.put_piece(&self.name, self.next, piece);
            self.next += 1;
            if batch.len() >= full {
                break;
            }
        }
        any
    }
}
