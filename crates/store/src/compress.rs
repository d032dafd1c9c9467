//! Compresses the body of a commit's record with LZ4. A request's result is often in the body twice, in a change and in
//! the row of its iteration, so compression saves much. Decompression does not trust the stored bytes.

use super::codec::{self, BadRecord};
use bincode::error::EncodeError;

/// Minimum size in bytes of a body that is compressed.
const WORTH: usize = 512;
/// Maximum number of bytes that one compressed byte can expand to.
const MOST: usize = 255;

/// The first byte of a body: plain or compressed. Format 1 used the values 0 to 2.
const PLAIN: u8 = 3;
const LZ4: u8 = 4;

/// Appends a body: its first byte, its uncompressed length in bytes if it is compressed, and then its content.
pub fn write(out: &mut Vec<u8>, body: &[u8]) -> Result<(), EncodeError> {
    if body.len() >= WORTH {
        let compressed = lz4_flex::block::compress(body);
        if compressed.len() < body.len() {
            out.push(LZ4);
            codec::encode(out, &(body.len() as u64))?;
            out.extend_from_slice(&compressed);
            return Ok(());
        }
    }
    write_plain(out, body);
    Ok(())
}

/// Appends a body without compression.
pub fn write_plain(out: &mut Vec<u8>, body: &[u8]) {
    out.push(PLAIN);
    out.extend_from_slice(body);
}

/// Reads a body that `write` or [`write_plain`] appended.
pub fn read(bytes: &[u8]) -> Result<Vec<u8>, BadRecord> {
    match bytes.split_first() {
        Some((&PLAIN, body)) => Ok(body.to_vec()),
        Some((&LZ4, rest)) => {
            let (length, used) = codec::decode_first::<u64>(rest)?;
            let compressed = rest.get(used..).unwrap_or_default();
            let length = usize::try_from(length).ok();
            let length = length.filter(|length| *length <= compressed.len().saturating_mul(MOST));
            let length = length.ok_or(BadRecord::Short)?;
            let body = lz4_flex::block::decompress(compressed, length)
                .map_err(|error| BadRecord::Value(error.to_string()))?;
            match body.len() == length {
                true => Ok(body),
                false => Err(BadRecord::Short),
            }
        }
        Some((way, _)) => Err(BadRecord::Value(format!(
            "its body is written in way {way}, which this engine does not know"
        ))),
        None => Err(BadRecord::Short),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn compressed(body: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        write(&mut out, body).unwrap();
        out
    }

    #[test]
    fn what_is_in_a_body_twice_is_written_once() {
        let once: Vec<u8> = (0..15_000_u32)
            .flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes())
            .collect();
        // The result of a request, and its copy in the row of its iteration 60 KB later.
        let twice = [once.as_slice(), b"between", &once].concat();
        let short = compressed(&twice);
        assert!(short.len() < once.len() / 10 * 11, "{}", short.len());
        assert_eq!(read(&short).unwrap(), twice);
        assert_eq!(compressed(&once)[0], PLAIN, "nothing to save");
        assert_eq!(compressed(&[7; WORTH - 1])[0], PLAIN, "too short");
        assert_eq!(compressed(&[7; WORTH])[0], LZ4);
    }

    #[test]
    fn what_is_cut_or_of_another_length_is_refused() {
        let whole = compressed(&b"a text that is a text that is a text that ends".repeat(20));
        assert_eq!(whole[0], LZ4);
        for cut in 0..whole.len() {
            assert!(read(&whole[..cut]).is_err(), "{cut}");
        }
        for length in [0_u64, 919, 921, 1 << 40, u64::MAX] {
            let mut lie = vec![LZ4];
            codec::encode(&mut lie, &length).unwrap();
            lie.extend_from_slice(&whole[4..]);
            assert!(read(&lie).is_err(), "{length}");
        }
        for way in [0, 1, 2, 5] {
            assert!(matches!(read(&[way, 1, 2]), Err(BadRecord::Value(_))));
        }
    }

    proptest! {
        #[test]
        fn all_bytes_come_back(
            parts in proptest::collection::vec(
                (proptest::collection::vec(any::<u8>(), 0..60), 1_usize..40), 0..40,
            ),
        ) {
            let bytes: Vec<u8> = parts.iter().flat_map(|(part, times)| part.repeat(*times)).collect();
            prop_assert_eq!(read(&compressed(&bytes)).unwrap(), bytes);
        }

        #[test]
        fn no_bytes_are_trusted(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let bytes = [&[LZ4], bytes.as_slice()].concat();
            if let Ok(body) = read(&bytes) {
                prop_assert!(body.len() <= bytes.len() * MOST);
            }
        }
    }
}
