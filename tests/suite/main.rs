//! Every test that looks at Windlass from outside, in one binary: it is linked once.

// A test that meets what it does not expect has failed, helpers of tests included.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod action;
#[path = "../../examples/support/app.rs"]
mod app;
mod architecture;
mod azure;
mod azure_samples;
mod canvas;
mod canvas_cli;
mod crash;
mod crowd;
mod diagnostics;
mod examples;
mod expressions;
mod files;
mod first_use;
mod fuzz;
mod intake;
mod life;
mod loom;
mod loom_cli;
mod machine;
mod serve;
mod simulation;
mod support;
mod tea;
mod tea_branches;
mod tea_env;

mod store_calls;
mod store_contract;
mod store_damage;
mod store_end;
mod store_errors;
mod store_format;
mod store_full;
mod store_golden;
mod store_kill;
mod store_mark;
mod store_power;
mod store_repair;
