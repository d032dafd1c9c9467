//! How other processes reach an engine.
//! It has one HTTP API, over TCP and over the control socket. This crate also has the other tasks of `windlass
//! serve`, and a [`client`] of the API.
//!
//! This crate uses only the engine's API, and does not depend on how a run progresses.
//!
//! The most important types: [`Options`], [`ServeError`], [`ControlSocket`], [`api::Problem`], [`client::ClientError`].
//!
//! Test it alone with `cargo test --test suite -- serve::`.

pub mod api;
pub mod client;

mod certificate;
mod control;
mod http;
mod serve;

pub use control::ControlSocket;
pub use http::{Console, FurtherRoutes, InnerApi, Tokens};
pub use serve::{Options, ServeError, TlsFiles, serve};
