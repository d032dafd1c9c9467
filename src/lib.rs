//! Windlass runs loops written in YAML or JSON as durable state machines.
//!
//! A workflow file becomes one tree ([`hir`]), the tree becomes a table of states
//! ([`program`]), a function without clock or I/O moves a run through that table
//! ([`machine`]), and the [`scheduler`] does what the machine asks for, but only after the
//! [`store`] has made the step durable. `docs/architecture.md` tells the whole story.

pub mod action;
#[doc(hidden)]
pub mod cli;
pub mod compile;
pub mod diagnostic;
pub mod dialect;
pub mod engine;
pub mod expression;
pub mod hir;
pub mod hosted;
pub mod machine;
pub mod model;
pub mod program;
pub mod scheduler;
pub mod server;
pub mod source;
pub mod store;
pub mod time;
