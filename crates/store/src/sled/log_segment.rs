//! One segment of the log of sled 0.34 (a part of fixed size): its header, and its messages with a valid checksum. This
//! file reads no files and needs no other segment.

use super::Sled;
use std::ops::Range;

/// The distance between the beginnings of two segments in the log, in bytes.
pub(super) const STEP: u64 = Sled::SEGMENT as u64;
/// Size of a segment's header in bytes. The header has a checksum, the segment's position, and the position up to which
/// the log was complete when the segment was begun.
pub(super) const HEADER: usize = 20;
/// Every message begins before this offset, because the last bytes of a segment are too few for a message.
const LAST: usize = Sled::SEGMENT - 32 + 1;
/// Maximum number of bytes whose checksum is computed to find the next message after damage.
const MAX_SEARCH: usize = 64 << 20;

/// The location of a message in a segment.
pub(super) struct LogMessage {
    pub kind: u8,
    /// The number of the message's segment.
    pub segment: u64,
    pub page: u64,
    /// Offset in the segment.
    pub at: usize,
    pub body: Range<usize>,
}

impl LogMessage {
    const CAP: u8 = 2;
    const BATCH: u8 = 3;

    /// Returns the message at offset `at` if its checksum is valid. Adds to `summed` the number of bytes whose checksum
    /// was computed.
    fn at(segment: &[u8], at: usize, number: Option<u64>, summed: &mut usize) -> Option<Self> {
        let bytes = segment.get(at..)?;
        let mut rest = bytes.get(4..)?;
        let kind = take(&mut rest).filter(|kind| (1..=11).contains(kind))?;
        let length = varint(&mut rest)?;
        let segment = varint(&mut rest)?;
        if number.is_some_and(|number| number != segment) {
            return None;
        }
        let page = varint(&mut rest)?;
        let start = bytes.len() - rest.len();
        let body = rest.get(..usize::try_from(length).ok()?)?;
        let mut sum = crc32fast::Hasher::new();
        sum.update(body);
        sum.update(bytes.get(4..start)?);
        *summed = summed.saturating_add(body.len() + start);
        let expected = u32::from_le_bytes(*bytes.first_chunk()?);
        (sum.finalize() ^ u32::MAX == expected).then(|| Self {
            kind,
            segment,
            page,
            at,
            body: at + start..at + start + body.len(),
        })
    }

    /// Returns the first message at or after offset `at`.
    pub fn from(segment: &Segment, at: usize, number: Option<u64>) -> Option<Self> {
        let mut summed = 0;
        for at in at..LAST.min(segment.filled) {
            let found = Self::at(&segment.bytes, at, number, &mut summed);
            if found.is_some() || summed > MAX_SEARCH {
                return found;
            }
        }
        None
    }

    pub fn bytes<'a>(&self, segment: &'a [u8]) -> &'a [u8] {
        segment.get(self.body.clone()).unwrap_or_default()
    }

    /// Returns the position of a batch's last message, if this message is the batch's first.
    pub fn batch(&self, segment: &[u8]) -> Option<u64> {
        let last = self.bytes(segment).first_chunk()?;
        (self.kind == Self::BATCH).then_some(u64::from_le_bytes(*last))
    }
}

/// A segment that was read.
pub(super) struct Segment {
    pub bytes: Vec<u8>,
    /// The segment has only zeros from this offset on.
    pub filled: usize,
}

/// Iterates over the complete messages of a segment. Each item also has the offset at which a message was expected; if
/// it is not the message's own offset, there is damage in between.
pub(super) struct Messages<'a> {
    segment: &'a Segment,
    number: u64,
    pub place: usize,
    /// Whether the iterator has reached the end of the segment.
    pub ended: bool,
}

impl<'a> Messages<'a> {
    pub const fn new(segment: &'a Segment, number: u64) -> Self {
        Self {
            segment,
            number,
            place: HEADER,
            ended: false,
        }
    }
}

impl Iterator for Messages<'_> {
    type Item = (usize, LogMessage);

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended || self.place >= LAST {
            self.ended = true;
            return None;
        }
        let (place, number) = (self.place, Some(self.number));
        let found = LogMessage::at(&self.segment.bytes, place, number, &mut 0)
            .or_else(|| LogMessage::from(self.segment, place, number))?;
        self.place = found.body.end;
        self.ended = found.kind == LogMessage::CAP;
        Some((place, found))
    }
}

/// Returns the number of a segment and the position up to which the log was complete when the segment was begun.
pub(super) fn header(bytes: &[u8; HEADER]) -> Option<(u64, u64)> {
    let (sum, rest) = bytes.split_first_chunk::<4>()?;
    let (place, stable) = rest.split_first_chunk::<8>()?;
    let [place, stable] = [*place, *stable.first_chunk()?].map(|number| {
        let number = i64::from_le_bytes(number) ^ i64::MAX;
        // The stored value is -1 if no position was complete yet.
        u64::try_from(number).unwrap_or(0)
    });
    let whole = crc32fast::hash(rest) == u32::from_le_bytes(*sum) ^ u32::MAX;
    (whole && place.is_multiple_of(STEP)).then_some((place / STEP, stable))
}

/// Splits off the first byte.
pub(super) fn take(bytes: &mut &[u8]) -> Option<u8> {
    let (first, rest) = bytes.split_first()?;
    *bytes = rest;
    Some(*first)
}

/// Splits off a number, which has one to nine bytes. A small number is its first byte. For other numbers, the first
/// byte determines the length.
pub(super) fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let first = u64::from(take(bytes)?);
    match first {
        0..=240 => Some(first),
        241..=248 => Some(240 + 256 * (first - 241) + u64::from(take(bytes)?)),
        249 => Some(2288 + 256 * u64::from(take(bytes)?) + u64::from(take(bytes)?)),
        _ => {
            let (number, rest) = bytes.split_at_checked(usize::try_from(first).ok()? - 247)?;
            *bytes = rest;
            let low = number.iter().rev();
            Some(low.fold(0, |sum, byte| sum << 8 | u64::from(*byte)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_as_they_are_written() {
        for (bytes, number) in [
            (&[0][..], 0),
            (&[240], 240),
            (&[241, 0], 240),
            (&[241, 1], 241),
            (&[248, 255], 2_287),
            (&[249, 0, 0], 2_288),
            (&[249, 255, 255], 67_823),
            (&[250, 1, 2, 3], 0x03_02_01),
            (&[255, 255, 255, 255, 255, 255, 255, 255, 255], u64::MAX),
        ] {
            let mut rest = bytes;
            assert_eq!(varint(&mut rest), Some(number), "{bytes:?}");
            assert!(rest.is_empty());
            for cut in 0..bytes.len() {
                assert_eq!(varint(&mut &bytes[..cut]), None, "{bytes:?}");
            }
        }
    }
}
