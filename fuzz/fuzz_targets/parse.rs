#![no_main]

use libfuzzer_sys::fuzz_target;
use std::time::Duration;
use windlass_fuzz::{bounded, checks};

fuzz_target!(|bytes: &[u8]| bounded(Duration::from_secs(1), || {
    checks::parse::check(bytes);
}));
