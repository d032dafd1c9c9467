//! What the targets share. `checks` holds what must be true of any input, one file a target; the tests
//! of Windlass (tests/suite/fuzz.rs) run the same files.

pub mod checks;

use cap::Cap;
use cpu_time::ThreadTime;
use std::alloc::System;
use std::time::Duration;

#[global_allocator]
static MEMORY: Cap<System> = Cap::new(System, usize::MAX);

/// Maximum memory of an input, in addition to what was there before, in bytes. What asks for more aborts.
const MORE: usize = 100 << 20;

/// Looks at an input that one thread works at, without waiting: it takes less than `time` of the processor,
/// and 100 MB.
pub fn bounded(time: Duration, check: impl FnOnce()) {
    let begin = ThreadTime::now();
    let _ = MEMORY.set_limit(MEMORY.allocated() + MORE);
    check();
    let _ = MEMORY.set_limit(usize::MAX);
    let took = begin.elapsed();
    assert!(took < time, "it took {took:?}");
}
