#![no_main]

use libfuzzer_sys::fuzz_target;
use windlass_fuzz::checks;

fuzz_target!(|bytes: &[u8]| {
    checks::socket::check(bytes);
});
