//! Windlass on Temporal, from outside: the real binary, real workers that are killed, and a real dev server (`run`
//! installs it, or WINDLASS_TEMPORAL names the program). It is built only with the feature `temporal`.

// An unexpected value in a test or in its helpers is a failure of the test.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    // Tests may read the clock.
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
