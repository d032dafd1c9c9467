//! Estimates how much memory the values of a text will need in a run, before the text is read. The estimate is needed
//! because 16 MB of JSON may need 400 MB as values, and 16 MB of YAML 1.2 GB. This file only scans bytes, and makes no
//! values.

use serde::de::IgnoredAny;

/// Maximum memory in bytes for the values of input from outside.
pub const MAX_MEMORY: usize = 62 << 20;

/// Maximum memory in bytes for an action's output. This is higher than [`MAX_MEMORY`], because 5 MB of records, such as
/// a page of an API, need 170 MB by this estimate.
const MAX_RESULT_MEMORY: usize = 256 << 20;

/// Explains why values of this size are refused, in words that continue "its values would"; `None` if they are
/// accepted.
#[must_use]
pub fn over_memory(estimate: usize, limit: usize) -> Option<String> {
    let [takes, most] = [estimate, limit].map(|bytes| bytes >> 20);
    let message = format!("need about {takes} MiB of memory; the maximum is {most}");
    (estimate > limit).then_some(message)
}

/// Explains why the values of this text are refused, in words that continue "its values would"; `None` if they are
/// accepted, or if the text is not JSON.
#[must_use]
pub fn over_memory_json(text: &[u8]) -> Option<String> {
    let message = over_memory(memory_of_json(text), MAX_RESULT_MEMORY)?;
    let is_json = serde_json::from_slice::<IgnoredAny>(text).is_ok();
    is_json.then_some(message)
}

// Measured: the maximum number of bytes that a run needs for one of the following, if it is started with many of them.

/// An object with room for four members.
const OBJECT: usize = 560;
/// An array with room for four items.
const ARRAY: usize = 250;
/// Each further member of an object, or item of an array.
const PLACE: usize = 80;
/// A key needs this in addition to the bytes for a text.
const KEY: usize = 30;
/// A text needs this in addition to its own bytes.
const TEXT: usize = 200;
/// A value of a YAML file. It needs much memory, because the whole file is first converted to events.
const EVENT: usize = 240;

/// Estimates the bytes of memory that the values of a JSON text need.
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

/// Does the same as [`memory_of_json`], for YAML. The result is an upper bound for all values that the text can have.
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
