#![no_main]

use libfuzzer_sys::fuzz_target;
use std::time::Duration;
use windlass_fuzz::{bounded, checks};

// A second for each of twelve evaluations, of which two or three are of an input that is no mistake.
fuzz_target!(|bytes: &[u8]| bounded(Duration::from_secs(4), || {
    checks::evaluate::check(bytes);
}));
