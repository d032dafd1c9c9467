//! What must be true of any input, one file a target. Each looks at bytes, and panics when it finds a fault;
//! whether it was taken is what it gives back.

pub mod evaluate;
pub mod http;
pub mod parse;
pub mod records;
pub mod socket;
pub mod source;
pub mod workflow;

mod server;
