#![no_main]

use libfuzzer_sys::fuzz_target;
use std::time::Duration;
use windlass_fuzz::{bounded, checks};

// Each of the twelve evaluations may use a second, but only two or three of them have a valid input.
fuzz_target!(|bytes: &[u8]| bounded(Duration::from_secs(4), || {
    checks::evaluate::check(bytes);
}));
