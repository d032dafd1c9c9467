//! Makes the bytes of a longer record fewer with deflate (RFC 1951), when that is worth it. It takes
//! what `squeeze` left: what repeats over more than 32 KiB is not there any more. No byte that is
//! read back is trusted.

use super::codec::{self, BadRecord};
use bincode::error::EncodeError;
use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

/// Shorter ones are left as they are: a poll's record, which would take longer for a few bytes.
const WORTH: usize = 1_024;
/// No byte that is deflated stands for more.
const MOST: usize = 1_032;

/// Deflates records, with memory that is used again: some 300 KiB, from the first long one on.
#[derive(Default)]
pub struct Deflater(Option<Box<Compress>>);

impl Deflater {
    /// Puts what is in `out` from `start` on deflated there, after how many bytes it was; false, and
    /// nothing is done, where that does not save an eighth of it.
    pub fn deflate(&mut self, out: &mut Vec<u8>, start: usize) -> Result<bool, EncodeError> {
        let whole = out.get(start..).unwrap_or_default();
        if whole.len() < WORTH {
            return Ok(false);
        }
        let mut deflated = Vec::with_capacity(whole.len() - whole.len() / 8);
        codec::encode(&mut deflated, &(whole.len() as u64))?;
        // The fastest: more effort takes longer and saves little more of text.
        let fresh = || Box::new(Compress::new(Compression::fast(), false));
        let compress = self.0.get_or_insert_with(fresh);
        compress.reset();
        // Where there is no room it is not worth it.
        let done = compress.compress_vec(whole, &mut deflated, FlushCompress::Finish);
        let fits = matches!(done, Ok(Status::StreamEnd));
        if fits {
            out.truncate(start);
            out.extend_from_slice(&deflated);
        }
        Ok(fits)
    }
}

/// The bytes that were deflated into these.
pub fn inflate(deflated: &[u8]) -> Result<Vec<u8>, BadRecord> {
    let (whole, used) = codec::decode_first::<u64>(deflated)?;
    let deflated = deflated.get(used..).unwrap_or_default();
    let whole = usize::try_from(whole).ok();
    let whole = whole.filter(|whole| *whole <= deflated.len().saturating_mul(MOST));
    let whole = whole.ok_or(BadRecord::Short)?;
    let mut out = Vec::with_capacity(whole);
    let mut decompress = Decompress::new(false);
    let done = decompress
        .decompress_vec(deflated, &mut out, FlushDecompress::Finish)
        .map_err(|error| BadRecord::Value(error.to_string()))?;
    let read = usize::try_from(decompress.total_in()).unwrap_or(usize::MAX);
    match (done, deflated.len().saturating_sub(read)) {
        (Status::StreamEnd, 0) if out.len() == whole => Ok(out),
        (Status::StreamEnd, more) if out.len() == whole => Err(BadRecord::Trailing(more)),
        _ => Err(BadRecord::Short),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn deflated(bytes: &[u8]) -> Option<Vec<u8>> {
        let mut out = b"before".to_vec();
        out.extend_from_slice(bytes);
        let done = Deflater::default().deflate(&mut out, 6).unwrap();
        assert_eq!(&out[..6], b"before");
        let rest = out.split_off(6);
        if !done {
            assert_eq!(rest, bytes, "what is not deflated is as it was");
        }
        done.then_some(rest)
    }

    /// As random as its bytes are few.
    fn noise(length: usize, letters: u32) -> Vec<u8> {
        let mut state = 7_u32;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            u8::try_from((state >> 16) % letters).unwrap()
        };
        (0..length).map(|_| next()).collect()
    }

    #[test]
    fn only_what_saves_an_eighth_is_deflated() {
        let text = noise(WORTH, 16);
        let short = deflated(&text).unwrap();
        assert!(short.len() < text.len() * 2 / 3, "{}", short.len());
        assert_eq!(inflate(&short).unwrap(), text);
        assert_eq!(deflated(&text[1..]), None, "too short to be worth it");
        assert_eq!(deflated(&noise(WORTH * 8, 256)), None, "nothing to save");
    }

    #[test]
    fn one_after_another_is_as_the_first() {
        let mut deflater = Deflater::default();
        let texts = [noise(5_000, 9), noise(9_000, 256), noise(3_000, 30)];
        for text in texts.iter().chain(&texts) {
            let mut out = text.clone();
            if deflater.deflate(&mut out, 0).unwrap() {
                assert_eq!(Some(&out), deflated(text).as_ref());
                assert_eq!(inflate(&out).unwrap(), *text);
            }
        }
    }

    #[test]
    fn what_is_cut_or_longer_or_of_another_length_is_refused() {
        let whole = deflated(&noise(2_000, 4)).unwrap();
        for cut in 0..whole.len() {
            assert!(inflate(&whole[..cut]).is_err(), "{cut}");
        }
        let longer = [whole.as_slice(), b"x"].concat();
        assert_eq!(inflate(&longer), Err(BadRecord::Trailing(1)));
        for length in [0_u64, 1_999, 2_001, 1 << 40, u64::MAX] {
            let mut lie = Vec::new();
            codec::encode(&mut lie, &length).unwrap();
            lie.extend_from_slice(&whole[3..]);
            assert_eq!(inflate(&lie), Err(BadRecord::Short), "{length}");
        }
    }

    proptest! {
        #[test]
        fn all_bytes_come_back(
            parts in proptest::collection::vec(
                (proptest::collection::vec(any::<u8>(), 0..60), 1_usize..40), 1..40,
            ),
        ) {
            let bytes: Vec<u8> = parts.iter().flat_map(|(part, times)| part.repeat(*times)).collect();
            if let Some(short) = deflated(&bytes) {
                prop_assert!(short.len() <= bytes.len() - bytes.len() / 8);
                prop_assert_eq!(inflate(&short).unwrap(), bytes);
            }
        }

        #[test]
        fn no_bytes_are_trusted(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(whole) = inflate(&bytes) {
                prop_assert!(whole.len() <= bytes.len() * MOST);
            }
        }
    }
}
