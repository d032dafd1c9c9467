//! Makes the bytes of a record fewer: what was there before in the same record is said by where it
//! was. The answer of a request is in a commit twice, as a change and as what its iteration shows,
//! and text repeats itself. No byte that is read back is trusted.

use super::codec::{self, BadRecord};
use bincode::error::EncodeError;

/// What repeats for fewer bytes is written as it is.
const SHORTEST: usize = 8;
/// The longest repetition in one piece: bounds what a few bad bytes can make the reader reserve.
const LONGEST: usize = 4_096;
/// How many places are remembered, as a power of two.
const PLACES_BITS: u32 = 12;
/// After so many bytes in a row that repeat nothing they are looked at less closely.
const PATIENCE: usize = 64;

/// Appends the bytes, squeezed: how many they are, then by turns new bytes, by their number, and a
/// repetition, by its length and how far back it begins.
pub fn squeeze(out: &mut Vec<u8>, bytes: &[u8]) -> Result<(), EncodeError> {
    codec::encode(out, &(bytes.len() as u64))?;
    let mut places = vec![0_u32; 1 << PLACES_BITS];
    let (mut at, mut new) = (0, 0);
    while let Some(word) = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        let spread = u64::from_le_bytes(*word).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let place = (spread >> (u64::BITS - PLACES_BITS)) as usize;
        let Some(place) = places.get_mut(place) else {
            break;
        };
        // Counted from one; what is too far in to be counted is not remembered.
        let before = *place as usize;
        *place = u32::try_from(at + 1).unwrap_or(0);
        let length = match before.checked_sub(1) {
            Some(before) => repeats(bytes, before, at),
            None => 0,
        };
        if length < SHORTEST {
            at += 1 + (at - new) / PATIENCE;
            continue;
        }
        put(out, bytes.get(new..at).unwrap_or_default())?;
        codec::encode(out, &(length as u64))?;
        codec::encode(out, &((at + 1 - before) as u64))?;
        at += length;
        new = at;
    }
    put(out, bytes.get(new..).unwrap_or_default())
}

fn put(out: &mut Vec<u8>, new: &[u8]) -> Result<(), EncodeError> {
    codec::encode(out, &(new.len() as u64))?;
    out.extend_from_slice(new);
    Ok(())
}

/// For how many bytes the same follows at both places.
fn repeats(bytes: &[u8], before: usize, at: usize) -> usize {
    let earlier = bytes.get(before..).unwrap_or_default();
    let later = bytes.get(at..).unwrap_or_default();
    let pairs = earlier.iter().zip(later).take(LONGEST);
    pairs.take_while(|(one, other)| one == other).count()
}

/// The bytes that were squeezed into these.
pub fn unsqueeze(squeezed: &[u8]) -> Result<Vec<u8>, BadRecord> {
    let mut rest = squeezed;
    let number = |rest: &mut &[u8]| {
        let (number, used) = codec::decode_first::<u64>(rest)?;
        *rest = rest.get(used..).unwrap_or_default();
        usize::try_from(number).map_err(|_| BadRecord::Short)
    };
    let whole = number(&mut rest)?;
    let mut out = Vec::with_capacity(whole.min(squeezed.len().saturating_mul(16)));
    loop {
        let new = number(&mut rest)?;
        let (new, after) = rest.split_at_checked(new).ok_or(BadRecord::Short)?;
        out.extend_from_slice(new);
        rest = after;
        if out.len() >= whole {
            break;
        }
        let (length, back) = (number(&mut rest)?, number(&mut rest)?);
        let from = out.len().checked_sub(back).ok_or(BadRecord::Short)?;
        if back == 0 || length == 0 || length > LONGEST {
            return Err(BadRecord::Short);
        }
        // What repeats may reach into itself.
        let mut missing = length;
        while missing > 0 {
            let some = missing.min(out.len() - from);
            out.extend_from_within(from..from + some);
            missing -= some;
        }
    }
    match (out.len() == whole, rest.len()) {
        (true, 0) => Ok(out),
        (true, more) => Err(BadRecord::Trailing(more)),
        (false, _) => Err(BadRecord::Short),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn squeezed(bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        squeeze(&mut out, bytes).unwrap();
        out
    }

    #[test]
    fn what_repeats_is_written_once() {
        let once: Vec<u8> = (0..2_000_u32)
            .flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes())
            .collect();
        let twice = [once.as_slice(), b"between", &once].concat();
        let short = squeezed(&twice);
        assert!(short.len() < once.len() / 10 * 11, "{}", short.len());
        assert_eq!(unsqueeze(&short).unwrap(), twice);
        let same = vec![b'x'; 100_000];
        assert!(squeezed(&same).len() < 300);
        assert_eq!(unsqueeze(&squeezed(&same)).unwrap(), same);
        assert!(squeezed(&once).len() < once.len() + 20);
    }

    #[test]
    fn what_is_cut_is_refused() {
        let bytes = b"a text that is a text that is a text that ends".repeat(9);
        let whole = squeezed(&bytes);
        for cut in 0..whole.len() {
            assert!(unsqueeze(&whole[..cut]).is_err());
        }
        let longer = [whole.as_slice(), b"x"].concat();
        assert!(unsqueeze(&longer).is_err());
    }

    /// `abcd`, then a repetition of `length` bytes from `back` on, then `e`.
    fn crafted(length: usize, back: u64) -> Result<Vec<u8>, BadRecord> {
        let mut out = Vec::new();
        codec::encode(&mut out, &(5 + length as u64)).unwrap();
        put(&mut out, b"abcd").unwrap();
        codec::encode(&mut out, &(length as u64)).unwrap();
        codec::encode(&mut out, &back).unwrap();
        put(&mut out, b"e").unwrap();
        unsqueeze(&out)
    }

    #[test]
    fn a_repetition_of_nothing_or_of_too_much_is_refused() {
        assert_eq!(crafted(3, 2).unwrap(), b"abcdcdce");
        assert_eq!(crafted(LONGEST, 1).unwrap().len(), LONGEST + 5);
        assert_eq!(crafted(0, 1), Err(BadRecord::Short));
        assert_eq!(crafted(LONGEST + 1, 1), Err(BadRecord::Short));
        assert_eq!(crafted(3, 5), Err(BadRecord::Short));
        // Last: without the check it would not come back.
        assert_eq!(crafted(3, 0), Err(BadRecord::Short));
    }

    proptest! {
        #[test]
        fn all_bytes_come_back(
            parts in proptest::collection::vec(
                (proptest::collection::vec(0_u8..4, 0..60), 0_usize..4), 0..40,
            ),
        ) {
            let bytes: Vec<u8> = parts
                .iter()
                .flat_map(|(part, times)| part.repeat(*times))
                .collect();
            prop_assert_eq!(unsqueeze(&squeezed(&bytes)).unwrap(), bytes);
        }

        #[test]
        fn no_bytes_are_trusted(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(whole) = unsqueeze(&bytes) {
                prop_assert!(whole.len() <= bytes.len() * LONGEST);
            }
        }
    }
}
