//! Windlass on Temporal, from outside: the real binary, real workers that are killed, and a real dev
//! server (`run` installs it, or WINDLASS_TEMPORAL names the program). Without the feature
//! `temporal` this is not built.

// A test that meets what it does not expect has failed, helpers of tests included.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    // Tests own their clocks.
    clippy::disallowed_methods
)]

mod called;
mod control;
mod gateway;
mod kills;
mod limits;
mod look;
mod network;
mod sealed;
mod server;
mod upgrades;
