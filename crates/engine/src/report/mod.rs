//! What users and programs see of runs: plain data that serialises to documented JSON (`docs/reference/cli.md`), made
//! from the contents of the store. Nothing here changes a run.

mod budget;
mod change;
mod counts;
mod current_activity;
mod dump;
mod export;
mod graph;
mod health;
mod history;
mod iterations;
mod limits;
mod limits_hit;
mod outcome;
mod question;
mod row;
mod schedule;
mod source;
mod state;
mod status;
mod status_filter;
mod summary;
mod view;
mod workflow;

pub use budget::BudgetReport;
pub use counts::{RunCounts, count_runs};
pub use current_activity::{AwaitedRun, CurrentActivity, ForkReport, Stop};
pub use dump::{DumpFilter, DumpReport, RunDump, Unreadable, dump};
pub use export::{ExportReport, LoopExport, export};
pub use graph::graph;
pub use health::{RawReport, RepairReport, StoreReport};
pub use history::{HistoryFilter, HistoryReport, NumberedEvent, history};
pub use iterations::{
    ActionReport, AttemptReport, DifferenceReport, FailureCount, IterationEntry, IterationReport,
    IterationsFilter, IterationsReport, LoopSummary, LoopsReport, StoredDetail, StripCell,
    StripFilter, StripReport, Totals, WaitReport, difference, iteration, iteration_value,
    iteration_values, iterations, loops, strip,
};
pub use limits::{
    ActionRetry, DiagnosticReport, LoopLimits, action_retries, diagnostics, loop_limits,
};
pub use limits_hit::LimitReached;
pub use outcome::{ErrorReport, OutcomeReport, PauseReport};
pub use question::{FieldKind, FormField, QuestionReport, callback_question, field_text};
pub use row::{LoopCell, RunDetail, RunRow, rows};
pub use schedule::{ScheduleReport, ScheduledTime, ScheduledTimes};
pub use source::{PlacesReport, SourceReport, places, source};
pub use state::StateReport;
pub use status::{LoopReport, PausedSince, Read, StatusReport, status};
pub use status_filter::{SUCCEEDED_WITH_FAILURES, StatusFilter};
pub use summary::{Facets, ListFilter, ListReport, RunSummary, list, status_word};
pub use view::shown as masked;
pub use workflow::{
    CurrentWorkflow, FileReport, InputReport, VersionReport, VersionsReport, WorkflowReport,
    WorkflowSummary, inputs,
};
