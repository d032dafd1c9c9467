//! The `windlass` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    match windlass::engine::lua_worker() {
        Some(code) => code,
        None => windlass::cli::main(),
    }
}
