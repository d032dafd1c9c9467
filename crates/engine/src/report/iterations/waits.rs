//! The periods in which an iteration only waited: between iterations, between attempts, and during sleeps.

use super::{ActionReport, LoopView, last_name};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use utoipa::ToSchema;
use windlass_machine::program::{Program, ScopeKind};
use windlass_machine::{Change, CursorId, HistoryEvent, HistoryKind, TimerPurpose};
use windlass_store::CommitRecord;
use windlass_value::time::Timestamp;

/// A period in which an iteration only waited.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct WaitReport {
    /// Time when the wait began.
    pub from: Timestamp,
    /// Time when the wait ended, or is due to end.
    pub to: Timestamp,
    /// Reason of the wait: `delay` before the iteration, `retry` between two attempts, or `sleep`.
    pub kind: String,
}

fn wait(from: Timestamp, to: Timestamp, kind: &str) -> WaitReport {
    WaitReport {
        from,
        to,
        kind: kind.to_owned(),
    }
}

/// Returns the waits of an iteration, and of its loop before the iteration.
pub fn waits(
    view: &LoopView,
    number: u64,
    started_at: Timestamp,
    actions: &[ActionReport],
    records: &[CommitRecord],
) -> Vec<WaitReport> {
    let mut waits = Vec::new();
    let is_foreach = view.of.state.is_none();
    let before = number.checked_sub(1).filter(|_| !is_foreach);
    let before = before.and_then(|before| view.of.one(before));
    if let Some(before) = before.filter(|before| before.ended_at < started_at) {
        waits.push(wait(before.ended_at, started_at, "delay"));
    }
    waits.extend(between_attempts(actions));
    let ended_at = view.of.one(number).map(|one| one.ended_at);
    let within =
        |event: &HistoryEvent| event.at >= started_at && ended_at.is_none_or(|end| event.at <= end);
    let mut item = Item::new(view, number);
    for record in records {
        item.follow(&record.changes);
        let mut own = item.sleeps_until(&record.changes);
        for (event, due_at) in sleeps(record).filter(|(event, _)| within(event)) {
            let at = own.iter().position(|own| *own == due_at);
            if !is_foreach || at.map(|at| own.swap_remove(at)).is_some() {
                let end = ended_at.map_or(due_at, |end| end.min(due_at));
                waits.push(wait(event.at, end, "sleep"));
            }
        }
    }
    waits.sort_by_key(|wait| wait.from);
    waits
}

pub fn between_attempts(actions: &[ActionReport]) -> Vec<WaitReport> {
    let mut waits = Vec::new();
    for action in actions {
        for (one, next) in action.attempts.iter().zip(action.attempts.iter().skip(1)) {
            let ended = one.ended_at.filter(|ended| *ended < next.started_at);
            waits.extend(ended.map(|ended| wait(ended, next.started_at, "retry")));
        }
    }
    waits
}

/// Returns the sleeps of steps outside of all loops.
pub fn outermost_sleeps(program: &Program, records: &[CommitRecord]) -> Vec<WaitReport> {
    let sleeps = records.iter().flat_map(sleeps);
    let outside = sleeps.filter(|(event, _)| match &event.what {
        HistoryKind::TimerSet { node_name, .. } => super::is_outside(program, node_name),
        _ => false,
    });
    outside
        .map(|(event, due_at)| wait(event.at, due_at, "sleep"))
        .collect()
}

fn sleeps(record: &CommitRecord) -> impl Iterator<Item = (&HistoryEvent, Timestamp)> {
    let events = record.history.iter();
    events.filter_map(|event| match &event.what {
        HistoryKind::TimerSet { due_at, .. } => Some((event, *due_at)),
        _ => None,
    })
}

/// Tracks the cursors (threads of control) of a foreach item. They are needed because events do not say in which item a
/// step slept.
struct Item<'a> {
    view: &'a LoopView,
    number: u64,
    spawned: HashSet<CursorId>,
    own: HashSet<CursorId>,
}

impl<'a> Item<'a> {
    fn new(view: &'a LoopView, number: u64) -> Self {
        Self {
            view,
            number,
            spawned: HashSet::new(),
            own: HashSet::new(),
        }
    }

    fn follow(&mut self, changes: &[Change]) {
        for change in changes {
            match change {
                Change::CursorSpawned(id, cursor) => {
                    let bottom = cursor.frames.first().map(|frame| frame.scope);
                    if bottom.is_some_and(|scope| self.is_branch(scope)) {
                        self.spawned.insert(*id);
                    }
                    if cursor
                        .parent
                        .is_some_and(|parent| self.own.contains(&parent))
                    {
                        self.own.insert(*id);
                    }
                }
                Change::BranchStarted { index, branch, .. }
                    if u64::from(*index) == self.number && self.spawned.contains(branch) =>
                {
                    self.own.insert(*branch);
                }
                _ => {}
            }
        }
    }

    /// Returns whether a scope is the branch that the foreach executes for each item.
    fn is_branch(&self, scope: windlass_machine::program::ScopeId) -> bool {
        let program = self.view.program.as_deref();
        let parent = program.and_then(|program| program.scope(program.scope(scope)?.parent?));
        parent.is_some_and(|fork| {
            matches!(fork.kind, ScopeKind::ForEach { .. })
                && *fork.name == *last_name(&self.view.path)
        })
    }

    /// Returns when the sleeps that begin in these changes end.
    fn sleeps_until(&self, changes: &[Change]) -> Vec<Timestamp> {
        let timers = changes.iter().filter_map(|change| match change {
            Change::TimerArmed(_, timer) => match timer.purpose {
                TimerPurpose::Sleep | TimerPurpose::SleepSince(_) => Some(timer),
                TimerPurpose::Delay | TimerPurpose::Retry | TimerPurpose::Deadline(_) => None,
            },
            _ => None,
        });
        let own = timers.filter(|timer| self.own.contains(&timer.cursor));
        own.map(|timer| timer.due_at).collect()
    }
}
