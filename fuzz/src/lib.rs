//! What the targets share. `checks` contains what must be true of any input, one file per target. Windlass's tests
//! (tests/suite/fuzz) run the same files.

pub mod checks;

use cap::Cap;
use cpu_time::ThreadTime;
use std::alloc::System;
use std::time::Duration;

#[global_allocator]
static MEMORY: Cap<System> = Cap::new(System, usize::MAX);

/// Maximum memory of an input in bytes, in addition to what was allocated before. A larger allocation aborts.
const MORE: usize = 100 << 20;

/// Checks an input on the current thread. It may use less than `time` of CPU time, and 100 MB. `check` must not wait
/// for other threads, because their time is not measured.
pub fn bounded(time: Duration, check: impl FnOnce()) {
    let begin = ThreadTime::now();
    let _ = MEMORY.set_limit(MEMORY.allocated() + MORE);
    check();
    let _ = MEMORY.set_limit(usize::MAX);
    let took = begin.elapsed();
    assert!(took < time, "it took {took:?}");
}
