//! No process outlives the engine: a small shell at the other end of a pipe kills every process
//! group that is still running when the engine is gone, however it went. It never kills anything
//! while the engine lives.
//!
//! A parent-death signal would need code between fork and exec, which is unsafe, and reaches one
//! process only. The end of a pipe reaches whole groups, on every Unix. What it cannot reach is a
//! process of an engine that is killed within the microseconds between the process's start and
//! the line that names it.

use std::collections::BTreeSet;
use std::io::{self, PipeWriter, Write};
use std::process::Stdio;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Reads `+ GROUP` and `- GROUP` until the pipe ends, which is when the engine has.
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

/// Watches over process groups. Its shell starts with the first of them.
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
    /// Starts the shell, so that the time between a process's start and [`Reaper::watch`] is that
    /// of one write.
    pub(super) fn prepare(&self) {
        let mut state = self.lock();
        if state.pipe.is_none() {
            state.start();
        }
    }

    /// The group is killed if the engine ends before it is forgotten.
    pub(super) fn watch(&self, group: i32) {
        let mut state = self.lock();
        state.groups.insert(group);
        if state.write_command('+', group).is_err() {
            // The shell was killed: a new one receives every group.
            state.start();
        }
    }

    pub(super) fn forget(&self, group: i32) {
        let mut state = self.lock();
        state.groups.remove(&group);
        // A shell that is gone needs no message.
        let _ = state.write_command('-', group);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn write_command(&mut self, sign: char, group: i32) -> io::Result<()> {
        let pipe = self.pipe.as_mut().ok_or(io::ErrorKind::NotConnected)?;
        // One write of a short line is atomic.
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
            // Out of the terminal's reach: Ctrl-C is for the engine.
            .process_group(0)
            .spawn()?;
        self.pipe = Some(writer);
        let groups: Vec<i32> = self.groups.iter().copied().collect();
        groups
            .into_iter()
            .try_for_each(|group| self.write_command('+', group))
    }
}
