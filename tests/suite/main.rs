//! All tests of Windlass from outside, in one binary, so that it is linked only once.

// An unexpected value in a test or in its helpers is a failure of the test.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod action;
#[path = "../../examples/server/src/app.rs"]
mod app;
mod architecture;
mod azure;
mod canvas;
mod diagnostic;
mod examples;
mod expression;
mod fuzz;
mod graph;
mod hosted;
mod language;
mod life;
mod loom;
mod machine;
mod reference;
mod serve;
mod simulation;
mod source;
mod store;
mod support;
mod tea;
mod words;
