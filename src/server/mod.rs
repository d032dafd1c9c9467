//! How other processes reach an engine: the control socket for those of this machine, HTTP for
//! everybody else, and what `windlass serve` does around both. It uses the engine and nothing
//! behind it.

pub mod control;
pub mod http;
mod peer;
mod remote;
mod serve;
mod threads;

pub use peer::Peer;
pub use remote::Remote;
pub use serve::{Options, ServeError, TlsFiles, serve};
