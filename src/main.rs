//! The `windlass` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    match windlass::lua_worker() {
        Some(code) => code,
        None => windlass::command_line(),
    }
}
