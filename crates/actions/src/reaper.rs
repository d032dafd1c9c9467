//! Ensures that no process outlives the engine. A small shell reads a pipe from the engine. The pipe ends when the
//! engine ends for any reason; then the shell kills every process group that still runs.
//!
//! A parent-death signal would need unsafe code between fork and exec, and it reaches one process only. The end of a
//! pipe works for whole groups, on every Unix. It misses a process only if the engine is killed in the microseconds
//! between the start of the process and the write of the line that names its group.

use std::collections::BTreeSet;
use std::io::{self, PipeWriter, Write};
use std::process::Stdio;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The script of the shell. It reads lines `+ GROUP` and `- GROUP` until the pipe ends, which is when the engine ends.
const SCRIPT: &str = r#"
trap '' HUP INT QUIT TERM
groups=
while read -r sign group; do
    rest=
    for known in $groups; do
        [ "$known" = "$group" ] || rest="$rest $known"
    done
    groups=$rest
    [ "$sign" = + ] && groups="$groups $group"
done
for group in $groups; do
    kill -9 "-$group" 2>/dev/null
done
"#;

/// Watches process groups. Its shell starts with the first group.
#[derive(Default)]
pub(super) struct Reaper {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    pipe: Option<PipeWriter>,
    groups: BTreeSet<i32>,
}

impl Reaper {
    /// Starts the shell if necessary. Call this before a process is started, so that [`Reaper::watch`] only has to
    /// write one line after the start.
    pub(super) fn prepare(&self) {
        let mut state = self.lock();
        if state.pipe.is_none() {
            state.start();
        }
    }

    /// Adds a group. It is killed if the engine ends before [`Reaper::forget`] removes the group.
    pub(super) fn watch(&self, group: i32) {
        let mut state = self.lock();
        state.groups.insert(group);
        if state.write_command('+', group).is_err() {
            // The write failed, so the shell was killed. Start a new one, which receives every group.
            state.start();
        }
    }

    pub(super) fn forget(&self, group: i32) {
        let mut state = self.lock();
        state.groups.remove(&group);
        // An error is ignored: if the shell has ended, it needs no message.
        let _ = state.write_command('-', group);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn write_command(&mut self, sign: char, group: i32) -> io::Result<()> {
        let pipe = self.pipe.as_mut().ok_or(io::ErrorKind::NotConnected)?;
        // Write the line with one call: a short write to a pipe is atomic.
        pipe.write_all(format!("{sign} {group}\n").as_bytes())
    }

    fn start(&mut self) {
        if let Err(error) = self.try_start() {
            self.pipe = None;
            tracing::warn!(%error, "processes may outlive a killed engine: no watching shell");
        }
    }

    fn try_start(&mut self) -> io::Result<()> {
        let (reader, writer) = io::pipe()?;
        tokio::process::Command::new("sh")
            .args(["-c", SCRIPT])
            .stdin(reader)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .current_dir("/")
            // The shell has its own group, so that Ctrl-C in the terminal reaches only the engine.
            .process_group(0)
            .spawn()?;
        self.pipe = Some(writer);
        let groups: Vec<i32> = self.groups.iter().copied().collect();
        groups
            .into_iter()
            .try_for_each(|group| self.write_command('+', group))
    }
}
