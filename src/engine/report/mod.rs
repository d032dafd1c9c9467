//! What people and programs are told of runs: plain data that serialises to documented JSON
//! (`docs/cli.md`), made from what lies in the store. Nothing here changes a run.

mod limits;
mod outcome;

pub use limits::{DiagnosticReport, LoopLimits, diagnostics, loop_limits};
pub use outcome::{ErrorReport, OutcomeReport, PauseReport};
