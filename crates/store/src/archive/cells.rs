//! Cells: a few bytes for every iteration whose commit's record was removed. A cell has the status, the condition's
//! result, the start, the duration, the number of attempts, and the reason of a failure.
//! The cells of one loop follow each other. Each is encoded as the difference from the cell before. Decoding does not
//! trust the stored bytes.

use super::facts::{IterationFacts, has_error};
use super::gather::{EndedIteration, RowLocation};
use crate::codec::{self, BadRecord};
use crate::compress;
use bincode::error::EncodeError;
use bincode::{Decode, Encode};
use std::sync::Arc;
use std::time::Duration;
use windlass_machine::IterationRow;
use windlass_model::model::Status;
use windlass_value::first_bytes;
use windlass_value::time::Timestamp;

/// Maximum length of a message in bytes. A longer message is truncated.
const MAX_MESSAGE_BYTES: usize = 200;
/// Maximum number of different messages in one row of the store.
const MAX_MESSAGES: usize = 64;

/// Bits of a cell's first byte: the status, the condition, and flags for the cell's optional parts.
const STATUS: u8 = 0b111;
const CONDITION: u8 = 0b1_1000;
const RETRIED: u8 = 0b10_0000;
const FAILURE: u8 = 0b100_0000;
const SKIPS: u8 = 0b1000_0000;

/// The cells of one row of the store.
#[derive(Clone, Debug, Default, PartialEq, Encode, Decode)]
pub struct Cells {
    /// The reasons why iterations, or actions in them, failed.
    messages: Vec<String>,
    segments: Vec<Segment>,
}

/// Consecutive cells of one loop.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
struct Segment {
    path: String,
    /// The iteration and the time to which the first cell is relative.
    iteration: u64,
    at: Timestamp,
    count: u64,
    bytes: Vec<u8>,
    /// The iteration and the time to which the next added cell will be relative.
    next: u64,
    ended_at: Timestamp,
}

impl Cells {
    /// Returns the approximate size in bytes.
    pub fn bytes(&self) -> usize {
        let segments = self.segments.iter();
        let messages = self.messages.iter().map(String::len).sum::<usize>();
        messages
            + segments
                .map(|one| one.bytes.len() + one.path.len() + 16)
                .sum::<usize>()
    }

    pub fn push(&mut self, row: &IterationRow, facts: &IterationFacts) {
        let message = facts.error.as_deref().filter(|_| has_error(row.status));
        let message = message.and_then(|message| {
            // If the row has no room for the message, the cell gets a message number that does not exist. So a reader
            // still sees that an action failed.
            let unknown = (row.status == Status::Succeeded).then_some(MAX_MESSAGES as u64);
            self.message(message).or(unknown)
        });
        if self
            .segments
            .last()
            .is_none_or(|last| last.path != row.path)
        {
            self.segments.push(Segment {
                path: row.path.clone(),
                iteration: row.iteration,
                at: row.started_at,
                count: 0,
                bytes: Vec::new(),
                next: row.iteration,
                ended_at: row.started_at,
            });
        }
        let Some(segment) = self.segments.last_mut() else {
            return;
        };
        let mut first = match row.status {
            Status::Succeeded => 0,
            Status::Failed => 1,
            Status::Skipped => 2,
            Status::TimedOut => 3,
            Status::Cancelled => 4,
        };
        first |= match row.condition {
            None => 0,
            Some(false) => 1 << 3,
            Some(true) => 2 << 3,
        };
        let attempts = facts.attempts.max(1);
        let skips = row.iteration != segment.next;
        first |= if attempts > 1 { RETRIED } else { 0 };
        first |= if message.is_some() { FAILURE } else { 0 };
        first |= if skips { SKIPS } else { 0 };
        let out = &mut segment.bytes;
        out.push(first);
        if skips {
            signed(out, row.iteration.wrapping_sub(segment.next).cast_signed());
        }
        signed(out, row.started_at.0.wrapping_sub(segment.ended_at.0));
        unsigned(out, millis(row.started_at, row.ended_at));
        if attempts > 1 {
            unsigned(out, u64::from(attempts));
        }
        if let Some(message) = message {
            unsigned(out, message);
        }
        segment.count += 1;
        segment.next = row.iteration.wrapping_add(1);
        segment.ended_at = row.ended_at.max(row.started_at);
    }

    /// Returns the number of a message in this row; `None` if the row has too many messages already.
    fn message(&mut self, text: &str) -> Option<u64> {
        let text = first_bytes(text, MAX_MESSAGE_BYTES);
        let known = self.messages.iter().position(|known| known == text);
        let place = known.or_else(|| {
            (self.messages.len() < MAX_MESSAGES).then(|| {
                self.messages.push(text.to_owned());
                self.messages.len() - 1
            })
        });
        place.map(|place| place as u64)
    }

    /// Passes the iterations of the loop with this path to `take`, in the order in which they ended.
    pub fn of(&self, path: &str, mut take: impl FnMut(EndedIteration)) -> Result<(), BadRecord> {
        let messages: Vec<Arc<str>> = self
            .messages
            .iter()
            .map(|text| Arc::from(&**text))
            .collect();
        for segment in self.segments.iter().filter(|one| one.path == path) {
            segment.read(&messages, &mut take)?;
        }
        Ok(())
    }

    /// Decodes every cell.
    pub fn check(&self) -> Result<(), BadRecord> {
        let mut segments = self.segments.iter();
        segments.try_for_each(|segment| segment.read(&[], &mut |_| {}))
    }

    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        let mut plain = Vec::new();
        codec::encode(&mut plain, self)?;
        compress::write(out, &plain)
    }

    pub fn decode(bytes: &[u8]) -> Result<Self, BadRecord> {
        codec::decode(&compress::read(bytes)?)
    }
}

impl Segment {
    fn read(
        &self,
        messages: &[Arc<str>],
        take: &mut impl FnMut(EndedIteration),
    ) -> Result<(), BadRecord> {
        let mut bytes = self.bytes.as_slice();
        let (mut next, mut at) = (self.iteration, self.at);
        for _ in 0..self.count {
            let (first, rest) = bytes.split_first().ok_or(BadRecord::Short)?;
            bytes = rest;
            let iteration = match first & SKIPS {
                0 => next,
                _ => next.wrapping_add(take_signed(&mut bytes)?.cast_unsigned()),
            };
            let started_at = Timestamp(at.0.wrapping_add(take_signed(&mut bytes)?));
            let ended_at = started_at.plus(Duration::from_millis(take_unsigned(&mut bytes)?));
            let attempts = match first & RETRIED {
                0 => 1,
                _ => u32::try_from(take_unsigned(&mut bytes)?).unwrap_or(u32::MAX),
            };
            let error = match first & FAILURE {
                0 => None,
                _ => usize::try_from(take_unsigned(&mut bytes)?).ok(),
            };
            let status = match first & STATUS {
                0 => Status::Succeeded,
                1 => Status::Failed,
                2 => Status::Skipped,
                3 => Status::TimedOut,
                4 => Status::Cancelled,
                _ => return Err(BadRecord::Value(String::from("a status that is none"))),
            };
            take(EndedIteration {
                iteration,
                status,
                condition: match first & CONDITION {
                    0 => None,
                    other => Some(other != 1 << 3),
                },
                started_at,
                ended_at,
                attempts,
                error: error.and_then(|place| match messages.get(place) {
                    None if status == Status::Succeeded => Some(Arc::from("")),
                    message => message.cloned(),
                }),
                row: RowLocation::Retained,
            });
            (next, at) = (iteration.wrapping_add(1), ended_at);
        }
        match bytes.len() {
            0 => Ok(()),
            more => Err(BadRecord::Trailing(more)),
        }
    }
}

fn millis(from: Timestamp, to: Timestamp) -> u64 {
    u64::try_from(to.since(from).as_millis()).unwrap_or(u64::MAX)
}

/// Encodes a number with seven bits per byte, the lowest bits first. The highest bit of a byte is 1 if more bytes
/// follow.
fn unsigned(out: &mut Vec<u8>, mut value: u64) {
    while value > 0x7F {
        out.push(0x80 | (value & 0x7F) as u8);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Encodes a signed number. Numbers near zero are short, both positive and negative ones.
fn signed(out: &mut Vec<u8>, value: i64) {
    unsigned(out, ((value << 1) ^ (value >> 63)).cast_unsigned());
}

fn take_unsigned(bytes: &mut &[u8]) -> Result<u64, BadRecord> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first().ok_or(BadRecord::Short)?;
        *bytes = rest;
        value |= u64::from(byte & 0x7F) << shift;
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err(BadRecord::Value(String::from("a number that is too long")))
}

fn take_signed(bytes: &mut &[u8]) -> Result<i64, BadRecord> {
    let value = take_unsigned(bytes)?;
    Ok((value >> 1).cast_signed() ^ -(value & 1).cast_signed())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use windlass_expression::Value;

    fn row(iteration: u64, status: Status, started_at: i64, took: i64) -> IterationRow {
        IterationRow {
            path: String::from("poll"),
            iteration,
            condition: Some(iteration.is_multiple_of(2)).filter(|_| !iteration.is_multiple_of(3)),
            status,
            result: Value::Null,
            started_at: Timestamp(started_at),
            ended_at: Timestamp(started_at + took),
        }
    }

    proptest! {
        #[test]
        fn what_was_pushed_is_read(
            rows in prop::collection::vec(
                (0..1_000_000_u64, 0..5_usize, -10_000_000..10_000_000_i64, 0..100_000_i64, 0..9_u32),
                0..200,
            )
        ) {
            let mut cells = Cells::default();
            let mut expected = Vec::new();
            for (iteration, status, at, took, attempts) in rows {
                let row = row(iteration, Status::ALL[status], at, took);
                let error = (attempts > 4).then(|| format!("failure {attempts}"));
                cells.push(&row, &IterationFacts { attempts, error: error.clone() });
                expected.push((row, attempts.max(1), error));
            }
            let mut out = Vec::new();
            cells.encode(&mut out).unwrap();
            let read = Cells::decode(&out).unwrap();
            prop_assert_eq!(&read, &cells);
            let mut found = Vec::new();
            read.of("poll", |one| found.push(one)).unwrap();
            prop_assert_eq!(found.len(), expected.len());
            for (one, (row, attempts, error)) in found.into_iter().zip(expected) {
                let error = error.filter(|_| has_error(row.status));
                prop_assert_eq!(one, EndedIteration {
                    iteration: row.iteration,
                    status: row.status,
                    condition: row.condition,
                    started_at: row.started_at,
                    ended_at: row.ended_at,
                    attempts,
                    error: error.as_deref().map(Arc::from),
                    row: RowLocation::Retained,
                });
            }
        }

        #[test]
        fn any_bytes_are_refused_or_read(bytes in prop::collection::vec(any::<u8>(), 0..64), count in 0..40_u64) {
            let segment = Segment {
                path: String::new(), iteration: 0, at: Timestamp(0), count, bytes, next: 0,
                ended_at: Timestamp(0),
            };
            let _ = Cells { messages: Vec::new(), segments: vec![segment] }.check();
        }
    }

    #[test]
    fn a_failure_within_a_success_is_known_without_its_message() {
        let mut cells = Cells::default();
        for n in 0..70 {
            let error = Some(format!("failure {n}"));
            let facts = IterationFacts { attempts: 1, error };
            cells.push(&row(n, Status::Succeeded, 0, 1), &facts);
            cells.push(&row(n, Status::Cancelled, 0, 1), &facts);
        }
        let mut found = Vec::new();
        cells.of("poll", |one| found.push(one)).unwrap();
        let handled = found.iter().filter(|one| one.has_handled_failure());
        assert_eq!(handled.count(), 70);
        let told = |at: usize| found[at].error.as_deref();
        assert_eq!((told(0), told(1)), (Some("failure 0"), None));
        assert_eq!((told(138), told(139)), (Some(""), None));
    }

    #[test]
    fn an_iteration_takes_few_bytes() {
        let mut cells = Cells::default();
        for n in 0..4_096 {
            let at = i64::try_from(n).unwrap() * 60_137;
            cells.push(
                &row(n, Status::Succeeded, at, 137),
                &IterationFacts::default(),
            );
        }
        assert!(cells.bytes() < 4_096 * 7, "{}", cells.bytes());
        let mut out = Vec::new();
        cells.encode(&mut out).unwrap();
        assert!(out.len() < 4_096 * 4, "{}", out.len());
    }
}
