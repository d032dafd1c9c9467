//! Every test that looks at Windlass from outside, in one binary: it is linked once.

// A test that meets what it does not expect has failed, helpers of tests included.
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
