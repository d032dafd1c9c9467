//! What must be true of any input, one file per target. Each check reads the bytes, panics on a fault, and returns
//! whether the input was accepted.

pub mod evaluate;
pub mod http;
pub mod parse;
pub mod records;
pub mod socket;
pub mod source;
pub mod workflow;

mod server;
