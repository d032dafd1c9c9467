//! Estimates the memory that the values of a text need in a run, before the text is read: 16 MB of
//! JSON may come to 400 MB of values, and of YAML to 1.2 GB. It only reads bytes, and makes no
//! values.

use serde::de::IgnoredAny;

/// What comes from outside may take this much, in bytes.
pub const MAX_MEMORY: usize = 62 << 20;

/// What an action gives may take more: 5 MB of records, as a page of an API has them, come to
/// 170 MB by this measure.
const MAX_RESULT_MEMORY: usize = 256 << 20;

/// Why something of this size is refused, in words that continue "its values would"; none when it is
/// accepted.
#[must_use]
pub fn over_memory(estimate: usize, limit: usize) -> Option<String> {
    let [takes, most] = [estimate, limit].map(|bytes| bytes >> 20);
    let message = format!("need about {takes} MiB of memory; the maximum is {most}");
    (estimate > limit).then_some(message)
}

/// Why the values of this text are refused, in words that continue "its values would"; none when they
/// are accepted, or when the text is not JSON.
#[must_use]
pub fn over_memory_json(text: &[u8]) -> Option<String> {
    let message = over_memory(memory_of_json(text), MAX_RESULT_MEMORY)?;
    let is_json = serde_json::from_slice::<IgnoredAny>(text).is_ok();
    is_json.then_some(message)
}

// Measured: what a run takes at most that is started with many of them.

/// An object with its first four places.
const OBJECT: usize = 560;
/// An array with its first four places.
const ARRAY: usize = 250;
/// A place in either.
const PLACE: usize = 80;
/// What keys have beyond a text.
const KEY: usize = 30;
/// What a text has beyond its bytes.
const TEXT: usize = 200;
/// A value of YAML: all of the file is made of events first.
const EVENT: usize = 240;

/// About how many bytes the values of a JSON text come to.
#[must_use]
pub fn memory_of_json(text: &[u8]) -> usize {
    let (mut estimate, mut quoted, mut escaped) = (0_usize, false, false);
    for byte in text {
        estimate = estimate.saturating_add(match (quoted, byte) {
            (true, _) if escaped => {
                escaped = false;
                1
            }
            (true, b'\\') => {
                escaped = true;
                1
            }
            (true, b'"') => {
                quoted = false;
                0
            }
            (true, _) => 1,
            (false, b'"') => {
                quoted = true;
                TEXT
            }
            (false, b'{') => OBJECT,
            (false, b'[') => ARRAY,
            (false, b',') => PLACE,
            (false, b':') => KEY,
            (false, _) => 0,
        });
    }
    estimate
}

/// The same for YAML: an upper bound on the values that its characters can make.
#[must_use]
pub fn memory_of_yaml(text: &[u8]) -> usize {
    let one = |byte: &u8| match byte {
        b'\n' | b',' | b':' => EVENT,
        b'{' | b'[' => EVENT + ARRAY,
        _ => 1,
    };
    text.iter().map(one).fold(0, usize::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_quoted_takes_no_more_than_its_bytes() {
        assert_eq!(memory_of_json(b"1"), 0);
        assert_eq!(memory_of_json(br#""a{[,:\"b\\""#), TEXT + 10);
        assert_eq!(
            memory_of_json(br#"{"k": [1, 2]}"#),
            OBJECT + TEXT + 1 + KEY + ARRAY + PLACE
        );
    }

    #[test]
    fn yaml_takes_by_what_may_be_values() {
        assert_eq!(memory_of_yaml(b"ab\n"), 2 + EVENT);
        assert_eq!(memory_of_yaml(b"[1]"), EVENT + ARRAY + 2);
    }
}
