//! How other processes reach an engine: the control socket. It uses the engine and nothing
//! behind it.

pub mod control;
