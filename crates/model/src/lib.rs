//! What a workflow is, whichever format it was written in.
//!
//! [`model`] has the words that all layers share: statuses, faults, requests, retry policies, limits and schedules.
//! [`hir`] is a workflow as the formats read it: blocks, steps, loops and handlers, with templates in place.
//!
//! It never reads a file, and knows no format and no way to run a workflow.
//!
//! The most important types: [`hir::Workflow`], [`hir::Step`], [`model::Status`], [`model::Fault`], [`model::Request`].
//!
//! Test it alone with `cargo test -p windlass-model`.

// Not published for others: where the name says all, nothing is added.
#![allow(missing_docs)]

pub mod hir;
pub mod model;
