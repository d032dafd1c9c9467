//! How other processes reach an engine: one HTTP API, over TCP and over the control socket, and what
//! `windlass serve` does around it. It uses the engine and nothing behind it.

mod control;
mod http;
mod serve;

pub use control::ControlSocket;
pub use http::Console;
pub use serve::{Options, ServeError, TlsFiles, serve};
