//! The `windlass` command.

use std::process::ExitCode;

/// jemalloc replaces the allocator: glibc's retains memory that many threads freed, and musl's is slow with several
/// threads.
#[cfg(all(target_os = "linux", feature = "jemalloc"))]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    match windlass::lua_worker() {
        Some(code) => code,
        None => windlass::command_line(),
    }
}
