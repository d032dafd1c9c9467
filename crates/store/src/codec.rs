//! The bytes of a record: a version, the number of further pieces, the encoded value, and a checksum over the key and
//! all of these (docs/internals/store-format.md draws them). A value that is too long for one key is split into pieces;
//! the first has a number of further ones.
//! Decoding never panics, never trusts a stored length, and limits the nesting of values. This file never touches a
//! database.

use bincode::config::{self, Configuration};
use bincode::error::{DecodeError, EncodeError};
use bincode::{Decode, Encode};
use std::ops::Range;

/// The version that this engine writes: the first byte of every record. Decoders of older versions are never removed.
pub const VERSION: u8 = 1;
/// Maximum size in bytes of the value under one key. sled writes a leaf of up to 20 keys at once. If the leaf has more
/// than 128 KiB, sled puts it into a file of its own and never syncs that file's directory entry. So 20 keys with their
/// values must stay below 128 KiB.
pub const MAX_VALUE: usize = 5_600;
/// Size in bytes of the version and the number of further pieces.
const HEAD: usize = 3;
/// Size in bytes of the checksum over the whole value. Only the first of several pieces has it. With it, a reader
/// detects a piece of an earlier value that remained under the same key.
const WHOLE: usize = 4;
/// Size in bytes of the checksum over the key and the piece.
const TAIL: usize = 4;
/// Maximum size in bytes of a value that fits under one key.
pub const MAX_SINGLE: usize = MAX_VALUE - HEAD - TAIL;
/// Maximum size in bytes of one piece of a longer value.
pub const MAX_PIECE: usize = MAX_SINGLE - WHOLE;

const CONFIG: Configuration = config::standard();

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadRecord {
    /// There are fewer bytes than the shortest record has.
    #[error("it is cut short")]
    Short,
    /// The checksum does not match: the bytes changed after they were written, or they are under another key.
    #[error("its checksum does not match")]
    Checksum,
    /// The record has a version that this engine does not know.
    #[error("it has version {0}, and this engine knows 1 to {VERSION}")]
    Version(u8),
    /// The pieces of the record belong to different values.
    #[error("its pieces are not of one value")]
    Mixed,
    /// A piece is missing.
    #[error("its piece {0} is missing")]
    Piece(u32),
    /// The bytes are not a valid encoding.
    #[error("it does not decode: {0}")]
    Value(String),
    /// The record has this many bytes after the end of its value.
    #[error("it has {0} bytes too many")]
    Trailing(usize),
}

/// Begins a record at the end of `out`. Returns the record's offset in `out`.
pub fn open(out: &mut Vec<u8>) -> usize {
    let start = out.len();
    out.extend_from_slice(&[VERSION, 0, 0]);
    start
}

/// Begins the first of several pieces. Writes the number of further pieces, and the checksum of the whole value.
pub fn open_first(out: &mut Vec<u8>, further: u16, whole_crc: u32) -> usize {
    let start = out.len();
    out.push(VERSION);
    out.extend_from_slice(&further.to_le_bytes());
    out.extend_from_slice(&whole_crc.to_le_bytes());
    start
}

/// Appends the checksum that ends a record or piece, and returns it. `start` is the offset of the piece, and `key` the
/// range of its key, both in `out`.
pub fn seal(out: &mut Vec<u8>, key: Range<usize>, start: usize) -> u32 {
    let key = out.get(key).unwrap_or_default();
    let crc = checksum(key, out.get(start..).unwrap_or_default());
    out.extend_from_slice(&crc.to_le_bytes());
    crc
}

/// A checked record or piece.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Range of the value's bytes in the stored bytes.
    pub body: Range<usize>,
    /// The number of further pieces, and the checksum of the whole value; `None` if the record has only one piece.
    pub further: Option<(u16, u32)>,
}

/// Checks the bytes under one key.
pub fn check(key: &[u8], stored: &[u8]) -> Result<Piece, BadRecord> {
    let (rest, crc) = stored.split_last_chunk().ok_or(BadRecord::Short)?;
    if checksum(key, rest) != u32::from_le_bytes(*crc) {
        return Err(BadRecord::Checksum);
    }
    match *rest {
        [VERSION, 0, 0, ..] => Ok(Piece {
            body: HEAD..rest.len(),
            further: None,
        }),
        [VERSION, low, high, a, b, c, d, ..] => Ok(Piece {
            body: HEAD + WHOLE..rest.len(),
            further: Some((
                u16::from_le_bytes([low, high]),
                u32::from_le_bytes([a, b, c, d]),
            )),
        }),
        [VERSION, ..] | [] => Err(BadRecord::Short),
        [version, ..] => Err(BadRecord::Version(version)),
    }
}

/// Checks a value that was joined from its pieces.
pub fn check_whole(whole: &[u8], crc: u32) -> Result<(), BadRecord> {
    if crc32fast::hash(whole) == crc {
        Ok(())
    } else {
        Err(BadRecord::Mixed)
    }
}

/// Returns the checksum at the end of a record or piece.
pub fn crc_of(stored: &[u8]) -> u32 {
    stored
        .split_last_chunk()
        .map_or(0, |(_, crc)| u32::from_le_bytes(*crc))
}

/// Returns the checksum of a row that has only a key.
pub fn crc_of_key(key: &[u8]) -> u32 {
    crc32fast::hash(key)
}

fn checksum(key: &[u8], bytes: &[u8]) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    crc.update(key);
    crc.update(bytes);
    crc.finalize()
}

pub fn encode<T: Encode>(out: &mut Vec<u8>, value: &T) -> Result<(), EncodeError> {
    bincode::encode_into_std_write(value, out, CONFIG).map(drop)
}

pub fn encode_all<T: Encode>(out: &mut Vec<u8>, values: &[T]) -> Result<(), EncodeError> {
    encode(out, &(values.len() as u64))?;
    values.iter().try_for_each(|value| encode(out, value))
}

/// Decodes one value from all of the bytes.
pub fn decode<T: Decode<()>>(bytes: &[u8]) -> Result<T, BadRecord> {
    let (value, used) = decode_first(bytes)?;
    match bytes.len() - used {
        0 => Ok(value),
        more => Err(BadRecord::Trailing(more)),
    }
}

/// Decodes a list of values from all of the bytes.
pub fn decode_all<T: Decode<()>>(bytes: &[u8]) -> Result<Vec<T>, BadRecord> {
    let mut at = 0;
    let values = decode_next(bytes, &mut at)?;
    match bytes.len().saturating_sub(at) {
        0 => Ok(values),
        more => Err(BadRecord::Trailing(more)),
    }
}

/// Decodes the list of values at `at`, and moves `at` to the end of the list. The stored number of values is not
/// trusted: if there are fewer values, decoding fails.
pub fn decode_next<T: Decode<()>>(bytes: &[u8], at: &mut usize) -> Result<Vec<T>, BadRecord> {
    let rest = |at: usize| bytes.get(at..).unwrap_or_default();
    let (count, used): (u64, usize) = decode_first(rest(*at))?;
    *at += used;
    let mut values = Vec::new();
    for _ in 0..count {
        let (value, used) = decode_first(rest(*at))?;
        values.push(value);
        *at += used;
    }
    Ok(values)
}

/// Decodes the value at the start of the bytes. Also returns the value's encoded length in bytes.
///
/// If an encoded length is wrong, a limit bounds the memory that the decoder reserves for it. An element of a container
/// can need a few hundred times more memory than its encoded bytes. So the limit grows with the length of the record,
/// in steps.
pub fn decode_first<T: Decode<()>>(bytes: &[u8]) -> Result<(T, usize), BadRecord> {
    const MIB: usize = 1 << 20;
    let result = match bytes.len() {
        0..=0xFFFF => bincode::decode_from_slice(bytes, CONFIG.with_limit::<{ 64 * MIB }>()),
        0x1_0000..=0xF_FFFF => {
            bincode::decode_from_slice(bytes, CONFIG.with_limit::<{ 512 * MIB }>())
        }
        _ => bincode::decode_from_slice(bytes, CONFIG.with_limit::<{ 4096 * MIB }>()),
    };
    result.map_err(|error: DecodeError| BadRecord::Value(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ScheduleState;
    use windlass_expression::Value;
    use windlass_model::model::Name;
    use windlass_value::time::Timestamp;

    fn sealed(key: &[u8], value: &Value) -> Vec<u8> {
        let mut out = key.to_vec();
        let start = open(&mut out);
        encode(&mut out, value).unwrap();
        seal(&mut out, 0..key.len(), start);
        out.split_off(start)
    }

    #[test]
    fn a_schedule_of_an_earlier_version_is_read() {
        let (until, run) = (Timestamp(5), Some(Name::from("r")));
        let mut bytes = Vec::new();
        encode(&mut bytes, &(until, run.clone())).unwrap();
        let expected = ScheduleState {
            until,
            last_run: run,
            ..ScheduleState::default()
        };
        assert_eq!(decode::<ScheduleState>(&bytes).unwrap(), expected);
    }

    /// The memory that a wrong length can make the decoder reserve depends on the length of the record.
    #[test]
    fn a_length_that_a_record_cannot_have_is_refused_before_anything_is_reserved() {
        let refused = |claimed: u64, length: usize| {
            let mut bytes = Vec::new();
            encode(&mut bytes, &claimed).unwrap();
            bytes.resize(length, 0);
            decode_first::<Vec<u64>>(&bytes)
                .map(drop)
                .unwrap_err()
                .to_string()
        };
        for (length, claimed, limited) in [
            (100, 9 << 20, true),
            (0xFFFF, 9 << 20, true),
            (0x1_0000, 9 << 20, false),
            (0x1_0000, 65 << 20, true),
            (0xF_FFFF, 65 << 20, true),
            (0x10_0000, 65 << 20, false),
            (0x10_0000, 513 << 20, true),
        ] {
            let told = refused(claimed, length);
            assert_eq!(told.contains("LimitExceeded"), limited, "{length}: {told}");
        }
    }

    #[test]
    fn every_flipped_bit_and_every_cut_is_noticed() {
        let value = Value::from_pairs([("a", Value::from(1_i64)), ("b", Value::from("text"))]);
        let bytes = sealed(b"key", &value);
        let piece = check(b"key", &bytes).unwrap();
        assert_eq!(piece.further, None);
        assert_eq!(decode::<Value>(&bytes[piece.body]).unwrap(), value);
        assert_eq!(check(b"kez", &bytes), Err(BadRecord::Checksum));
        for bit in 0..bytes.len() * 8 {
            let mut bad = bytes.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(check(b"key", &bad).is_err());
        }
        for cut in 0..bytes.len() {
            assert!(check(b"key", &bytes[..cut]).is_err());
        }
    }

    #[test]
    fn an_unknown_version_is_named() {
        let mut out = vec![b'k', 9, 0, 0];
        seal(&mut out, 0..1, 1);
        assert_eq!(check(b"k", &out[1..]), Err(BadRecord::Version(9)));
    }

    #[test]
    fn lists_do_not_trust_their_count() {
        let mut out = Vec::new();
        encode_all(&mut out, &[1_u64, 2, 300]).unwrap();
        assert_eq!(decode_all::<u64>(&out).unwrap(), [1, 2, 300]);
        let mut lie = Vec::new();
        encode(&mut lie, &u64::MAX).unwrap();
        assert!(matches!(decode_all::<u64>(&lie), Err(BadRecord::Value(_))));
        out.push(0);
        assert_eq!(decode_all::<u64>(&out), Err(BadRecord::Trailing(1)));
    }
}
