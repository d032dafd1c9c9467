//! The machine: the only place where a run changes.
//!
//! ```text
//!   Event ──▶ advance(program, run, now) ──▶ Transition { changes, history, iterations, effects }
//!                        │                                   │ stored, synced
//!                        ▼                                   ▼
//!                 run.apply(change)                   release(receipt) ──▶ effects
//! ```
//!
//! A run is a set of cursors, each at a state with a stack of frames, one per scope it is in.
//! Two rules move everything: `go` pops frames until the target's scope is on top (leaving a
//! loop, `break`, a graph's goto are the same), and `raise` pops to the nearest try, or to the
//! branch's end. A popped frame disarms its timers, aborts its effects and drops its branches.
//!
//! This module never reads a clock, draws a random number, or does anything but compute: time
//! comes in with the event, jitter from a generator seeded by run, step and attempt. It knows no
//! store, no executor and no format.

mod action_view;
mod advance;
mod apply;
mod bug;
mod change;
mod env;
mod evaluate;
mod event;
mod expect;
mod failed_items;
mod fault;
mod feedback;
mod fork;
mod iterate;
mod mapping;
mod merge;
mod movement;
mod path;
mod recall;
mod record;
mod retry;
mod rewind;
mod state;
mod step;
mod variables;

pub use crate::expression::Budget;
#[cfg(feature = "internals")]
pub use advance::advance;
pub use advance::advance_into;
pub use bug::Bug;
pub use change::Change;
#[cfg(feature = "internals")]
pub use change::VariableChange;
pub use env::{environment, innermost_iteration};
pub(crate) use event::sealed;
pub use event::{Durable, Effect, Event, HistoryEvent, HistoryKind, IterationRow, Transition};
pub use path::printable;
pub use recall::{Earlier, Fork, Outer, forks, outer_records, variables_at};
pub use record::{ActionRecord, LoopEnd, Output, Records};
pub use rewind::{Rewound, Target, Visited, rewind, visited};
pub use state::{
    BranchState, Cursor, CursorId, DeadlineState, EffectId, Frame, FrameKind, GraphState,
    IsolatedState, ItemState, LoopState, Outcome, PauseReason, PendingEffect, RunError, RunState,
    RunStatus, TimerId, TimerPurpose, Wait,
};
