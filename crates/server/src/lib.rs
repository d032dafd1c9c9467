//! How other processes reach an engine: one HTTP API, over TCP and over the control socket, and what
//! `windlass serve` does around it; and a [`client`] of that.
//!
//! It uses the engine and nothing behind it, and does not know how a run moves.
//!
//! The most important types: [`Options`], [`ServeError`], [`ControlSocket`], [`api::Problem`], [`client::ClientError`].
//!
//! Test it alone with `cargo test -p windlass-server`.

pub mod api;
pub mod client;

mod control;
mod http;
mod serve;

pub use control::ControlSocket;
pub use http::{Console, FurtherRoutes, InnerApi, Tokens};
pub use serve::{Options, ServeError, TlsFiles, serve};
