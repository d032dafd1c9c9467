//! The `windlass` command.

use std::process::ExitCode;

/// glibc's own keeps what many threads gave back, and musl's is slow with several.
#[cfg(all(target_os = "linux", feature = "jemalloc"))]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    match windlass::lua_worker() {
        Some(code) => code,
        None => windlass::command_line(),
    }
}
