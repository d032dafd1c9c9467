//! Replaces `lua` in a build without the feature `lua`: files with Lua are refused, with the reason.

use std::path::PathBuf;
use std::process::ExitCode;

/// Does nothing, because this build has no Lua.
#[must_use]
pub fn lua_worker() -> Option<ExitCode> {
    None
}

pub(super) fn program() -> Result<PathBuf, String> {
    Err(String::from(
        "this build of Windlass runs no Lua: feature `lua`",
    ))
}

pub(super) fn mistake(_: &str) -> Option<(usize, String)> {
    None
}
