//! What people and programs are told of runs: plain data that serialises to documented JSON
//! (`docs/cli.md`), made from what lies in the store. Nothing here changes a run.

mod census;
mod change;
mod doing;
mod dump;
mod health;
mod history;
mod limits;
mod outcome;
mod reached;
mod schema;
mod status;
mod summary;
mod view;
mod workflow;

pub use census::{Census, census};
pub use doing::Doing;
pub use dump::{
    CursorDump, DumpFilter, DumpReport, FrameKindDump, RecordDump, RunDump, StateDump, Unreadable,
    WaitDump, dump,
};
pub use health::{RawReport, RepairReport, StoreReport};
pub use history::{HistoryFilter, HistoryReport, NumberedEvent, history};
pub use limits::{DiagnosticReport, LoopLimits, diagnostics, loop_limits};
pub use outcome::{ErrorReport, OutcomeReport, PauseReport};
pub use reached::LimitReached;
pub use status::{LoopReport, PausedSince, Read, StatusReport, status};
pub use summary::{ListFilter, ListReport, RunSummary, list};
pub use workflow::{WorkflowReport, WorkflowSummary};
