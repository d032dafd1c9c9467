//! The state machine: the only code that changes a run.
//!
//! ```text
//!   Event ──▶ advance(program, run, now) ──▶ Transition { changes, history, iterations, effects }
//!                        │                                   │ stored, synced
//!                        ▼                                   ▼
//!                 run.apply(change)                   release(receipt) ──▶ effects
//! ```
//!
//! A run is a set of cursors. A cursor is at one state of the program and has a stack of frames: one frame for each
//! scope (a loop, a try, …) that the cursor is in. Two rules move cursors. `Movement::jump_to` pops frames until the
//! target's scope is on top: leaving a loop, `break`, and the edges of a workflow with nodes and edges (a graph) all do
//! this. `FaultHandler::settle` pops frames up to the nearest try, to a loop that continues after failures, or to the
//! end of the branch. When a frame is popped, its timers are disarmed, its effects aborted and its branches dropped.
//!
//! [`program`] is a compiled workflow: states in a tree of scopes.
//! [`compile`] makes a program from a workflow, and [`hosted`] holds a run in the memory of a driver.
//!
//! The machine only computes.
//! It never reads a clock: the caller passes the time with the event. It uses no source of randomness: random delays
//! are from a generator that is seeded by run, step and attempt. It knows no store, no executor and no format.
//! [`Transition::release`] returns the effects of a step; it requires a [`Durable`] value, which proves that the step
//! is stored.
//!
//! The most important types: [`program::Program`], [`RunState`], [`Event`], [`Transition`], [`hosted::RunHost`].
//!
//! Test it alone with `cargo test -p windlass-machine`.

// Not published for others: an item whose name explains it has no doc comment.
#![allow(missing_docs)]

pub mod compile;
pub mod hosted;
pub mod program;

mod action_view;
mod advance;
mod apply;
mod bug;
mod calls;
mod change;
mod condition;
mod ending;
mod env;
mod evaluate;
mod event;
mod expect;
mod failed_items;
mod failure;
mod fault;
mod feedback;
mod fork;
mod iterate;
mod mapping;
mod merge;
mod past_state;
mod path;
mod reader;
mod record;
mod retry;
mod rewind;
mod schema;
mod scopes;
mod signal;
mod state;
mod step;
mod transition;
mod usage;
mod variables;
mod waits;

pub use advance::{advance, advance_into};
pub use bug::Bug;
pub use change::{Change, VariableChange};
pub use env::{environment, innermost_iteration};
#[doc(hidden)]
pub use event::sealed;
pub use event::{
    Durable, Effect, Event, HistoryEvent, HistoryKind, IterationRow, SCHEDULE, Transition,
    failed_actions,
};
pub use past_state::{
    ActiveForeach, EarlierState, OuterRecord, active_foreaches, outer_records, variables_at,
};
pub use path::printable;
pub use record::{ActionRecord, LoopEnd, Output, Records};
pub use rewind::{Rewound, Target, VisitedPoint, rewind, visited};
pub use signal::{Delivery, Signal, SignalRefusal, check_signal};
pub use state::{
    BranchState, Cursor, CursorId, DeadlineState, EffectId, Frame, FrameKind, FrameRef, GraphState,
    IsolatedState, ItemState, LoopState, Outcome, PauseReason, PendingEffect, PendingQuestion,
    RunError, RunState, RunStatus, TimerId, TimerPurpose, Wait,
};
pub use usage::{BudgetKind, BudgetUse};
pub use windlass_expression::Budget;
