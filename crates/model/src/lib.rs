//! A workflow, independent of the format that it was written in.
//!
//! [`model`] has the terms that all layers share: statuses, faults, requests, retry policies, limits and schedules.
//! [`hir`] is a workflow as the formats read it: blocks, steps, loops and handlers, with templates in place.
//!
//! The crate reads no file, knows no format and cannot run a workflow.
//!
//! The most important types: [`hir::Workflow`], [`hir::Step`], [`model::Status`], [`model::Fault`], [`model::Request`].
//!
//! Test it alone with `cargo test -p windlass-model`.

// Not published for others: an item whose name explains it has no doc comment.
#![allow(missing_docs)]

pub mod hir;
pub mod model;
