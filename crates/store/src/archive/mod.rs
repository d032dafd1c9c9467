//! The archive: what is stored of iterations after the records of their commits were removed. It has a cell (a few
//! bytes) for every such iteration (`cells`). It has whole rows for the first iterations and for failed ones (`rows`).
//! `gather` reads the archive and the journal together. Only the files of this folder know how an archive row is
//! encoded.

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
