//! The position of a cursor in a run: the enclosing loops with their iterations, and the paths, idempotency keys and
//! seeds that are made of these. This file reads no variable and no output.

use super::env::{Enclosing, View};
use super::state::{Cursor, CursorId, Frame, FrameKind, LoopState};
use crate::program::{Scope, ScopeKind};
use std::fmt::Write;
use windlass_model::model::{Test, path_part, sha256};

impl<'a> View<'a> {
    /// Returns this cursor and the cursors that it was forked from, innermost first.
    pub fn lineage(&self) -> impl Iterator<Item = (CursorId, &'a Cursor)> {
        let run = self.run;
        let mut next = Some(self.cursor);
        std::iter::from_fn(move || {
            let id = next?;
            let cursor = run.cursors.get(&id)?;
            next = cursor.forked_by(id);
            Some((id, &**cursor))
        })
    }

    /// Returns the frames of this cursor and of the cursors that it was forked from, innermost first.
    pub fn frames(&self) -> impl Iterator<Item = (CursorId, &'a Frame)> {
        self.lineage()
            .flat_map(|(id, cursor)| cursor.frames.iter().rev().map(move |frame| (id, frame)))
    }

    /// Returns the number of the current attempt in the innermost enclosing retry, from 1. This may be a retry that
    /// encloses the fork of the cursor's branch.
    pub fn current_attempt(&self) -> u32 {
        let retries = self.frames().find_map(|(_, frame)| match &frame.kind {
            FrameKind::Try(state) if state.max_attempts > 1 => Some(state.attempt),
            _ => None,
        });
        retries.unwrap_or(1)
    }

    pub fn enclosing(&self) -> impl Iterator<Item = Enclosing<'a>> + '_ {
        let program = self.program;
        self.frames()
            .filter_map(move |(cursor, frame)| match &frame.kind {
                FrameKind::Loop(state) => {
                    Some(Enclosing::Loop(program.scope(frame.scope)?, cursor, state))
                }
                FrameKind::Branch(branch) => Some(Enclosing::Item {
                    fork: self.foreach_of(frame)?,
                    index: branch.index,
                    item: &branch.item,
                    entered_at: frame.entered_at,
                }),
                _ => None,
            })
    }

    pub fn named(&self, name: &str) -> Option<Enclosing<'a>> {
        self.enclosing()
            .find(|one| one.name().eq_ignore_ascii_case(name))
    }

    /// Returns the path that a loop with this name has at the cursor's position. The path includes the iterations of
    /// the enclosing loops.
    pub fn path_of(&self, name: &str) -> String {
        let mut path = self.path();
        if !path.is_empty() {
            path.push('/');
        }
        path.push_str(&path_part(name));
        path
    }

    /// Returns the cursor's path, such as `outer#2/inner#0`: names of loops with their current iterations, from 0. `~2`
    /// marks the second visit of a graph's node. Names are escaped, so that no two positions have the same path.
    pub fn path(&self) -> String {
        let program = self.program;
        let frames: Vec<&Frame> = self.frames().map(|(_, frame)| frame).collect();
        let mut path = String::new();
        for frame in frames.into_iter().rev() {
            let slash = if path.is_empty() { "" } else { "/" };
            let _ = match &frame.kind {
                FrameKind::Loop(state) => match program.scope(frame.scope) {
                    Some(scope) => {
                        write!(
                            path,
                            "{slash}{}#{}",
                            path_part(&scope.name),
                            state.iteration
                        )
                    }
                    None => Ok(()),
                },
                FrameKind::Branch(branch) => match self.foreach_of(frame) {
                    Some(fork) => {
                        write!(path, "{slash}{}#{}", path_part(&fork.name), branch.index)
                    }
                    None => Ok(()),
                },
                FrameKind::Graph(graph) if graph.visit > 1 => {
                    write!(path, "{slash}~{}", graph.visit)
                }
                _ => Ok(()),
            };
        }
        path
    }

    /// Returns the foreach that the branch with this frame belongs to; `None` if its fork is not a foreach.
    fn foreach_of(&self, branch: &Frame) -> Option<&'a Scope> {
        let parent = self.program.scope(branch.scope)?.parent?;
        let fork = self.program.scope(parent)?;
        matches!(fork.kind, ScopeKind::ForEach { .. }).then_some(fork)
    }

    /// Returns the idempotency key of a step at the cursor's position. It is made of run, loop path, iteration and
    /// step, without the attempt, so all attempts have the same key. It is printable ASCII, so that it can be sent in a
    /// header.
    pub fn key(&self, step: &str) -> String {
        format!(
            "{}{}",
            key_of_run(&self.run.id),
            printable(&self.path_of(step))
        )
    }

    /// Returns the innermost enclosing loop: its path, and its iteration from 0.
    pub fn innermost_iteration(&self) -> Option<(String, u64)> {
        self.enclosing().next().map(|one| match one {
            Enclosing::Loop(scope, _, state) => (state.path.clone(), current(scope, state)),
            Enclosing::Item { index, .. } => {
                // The path of an item ends with `#` and the item's index. Return the path without this end.
                let path = self.path();
                let own = path.rsplit_once('#').map_or(&*path, |(own, _)| own);
                (own.to_owned(), u64::from(index))
            }
        })
    }

    /// Returns a seed that is computed from the run, the cursor's path and `salt`. It is the same again after a crash.
    pub fn seed(&self, salt: &str) -> u64 {
        let place = format!("{}/{}", self.key(salt), self.run.next_id);
        let digest = sha256(place.as_bytes());
        digest
            .iter()
            .take(8)
            .fold(0, |seed, byte| (seed << 8) | u64::from(*byte))
    }
}

/// Returns the prefix of all idempotency keys of a run.
pub(super) fn key_of_run(run: &str) -> String {
    format!("{}/", printable(&path_part(run)))
}

/// Returns a path in printable ASCII. Other bytes are written as `%` and two hexadecimal digits. A `%` in a name was
/// escaped before.
#[must_use]
pub fn printable(path: &str) -> String {
    let mut key = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            b'!'..=b'~' => key.push(char::from(byte)),
            _ => {
                let _ = write!(key, "%{byte:02X}");
            }
        }
    }
    key
}

impl Enclosing<'_> {
    pub fn name(&self) -> &str {
        match self {
            Self::Loop(scope, ..) | Self::Item { fork: scope, .. } => &scope.name,
        }
    }

    pub fn index(&self) -> i64 {
        match self {
            Self::Loop(scope, _, state) => i64::try_from(current(scope, state)).unwrap_or(i64::MAX),
            Self::Item { index, .. } => i64::from(*index),
        }
    }
}

/// Returns the number of a loop's current iteration. Between two iterations, this depends on when the loop checks its
/// condition. If it checks before an iteration, the next iteration is the current one. If it checks after an iteration,
/// the last iteration is still the current one: a `doUntil` with the condition that `loopCount` equals 3 runs three
/// times.
fn current(scope: &Scope, state: &LoopState) -> u64 {
    let after = matches!(&scope.kind, ScopeKind::Loop(_, spec) if spec.test == Test::After);
    if after && state.iteration_started_at.is_none() {
        return state.iteration.saturating_sub(1);
    }
    state.iteration
}
