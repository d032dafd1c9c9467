//! What is stored of iterations whose commits were removed, in rows of their own: a cell of every one (`cells`), and
//! whole rows of the first ones and of those that failed (`rows`). Together with the journal it has all that is
//! known of a loop's iterations (`gather`). No other file knows how such a row is written.

mod cells;
mod facts;
mod gather;
mod loop_iterations;
mod rows;

pub use facts::iteration_of;
pub(super) use facts::reported_facts;
pub use gather::{EndedIteration, RowLocation};
pub use loop_iterations::LoopIterations;
pub(super) use rows::{ArchiveRows, describe_row};
