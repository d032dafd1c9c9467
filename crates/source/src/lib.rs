//! Workflow files as trees with positions, and diagnostics that point into them.
//!
//! [`source`] reads YAML and JSON under limits of size, depth and aliases, and records where each value is written. It
//! repairs a text that is being typed. [`diagnostic`] describes the mistakes of an author, each with a code, a message,
//! a position and a hint, and renders them for a terminal. All mistakes of a file are reported, not only the first.
//!
//! The crate never interprets a key, and never opens a file.
//!
//! The most important types: [`source::Bundle`], [`source::Node`], [`source::Span`], [`diagnostic::Diagnostic`],
//! [`diagnostic::Diagnostics`].
//!
//! Test it alone with `cargo test -p windlass-source`.

// Not published for others: an item whose name explains it has no doc comment.
#![allow(missing_docs)]

pub mod diagnostic;
pub mod source;
pub mod write;
