//! What the C library does with the memory that a server has freed. It changes nothing else.

use std::env;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{self, Command};

/// Where glibc reads how it is to behave, once, when a process begins (glibc manual, "Tunables").
const TUNABLES: &str = "GLIBC_TUNABLES";
/// Blocks of this many bytes are asked of the system one by one, and go back when they are freed.
/// glibc begins with it, but raises it as soon as it sees a larger one freed, as the database does
/// with its buffers of 2 MiB: from then on they are cut from heaps whose holes nobody gets back. Two
/// heaps have fewer holes than one for each thread, and cost a server of many runs next to nothing.
const FIXED: &str = "glibc.malloc.mmap_threshold=131072:glibc.malloc.arena_max=2";

/// Says which process was begun anew, so that none is twice: where the library takes `TUNABLES` away from
/// a program with rights of its own (glibc 2.39), it would be for ever.
const ANEW: &str = "WINDLASS_BEGUN_ANEW";

/// Begins this process anew, with the same id, such that freed buffers go back to the system; one
/// that somebody has tuned stays as it is. Where this cannot be done a server takes some 10 MB more.
pub fn give_back_what_is_freed() {
    let own = process::id().to_string();
    let anew = env::var_os(ANEW).is_some_and(|process| *process == *own);
    if !cfg!(target_env = "gnu") || anew || env::var_os(TUNABLES).is_some() {
        return;
    }
    let mut args = env::args_os();
    let (Some(name), Ok(program)) = (args.next(), env::current_exe()) else {
        return;
    };
    // One that was started through another program, as the dynamic linker, would become that.
    if program.file_name() != Path::new(&name).file_name() {
        return;
    }
    let mut again = Command::new(program);
    again.arg0(name).args(args);
    let error = again.env(TUNABLES, FIXED).env(ANEW, own).exec();
    tracing::debug!(%error, "freed memory stays with the process");
}
