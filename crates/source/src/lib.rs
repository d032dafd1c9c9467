//! Workflow files as trees with positions, and diagnostics that point into them.
//!
//! [`source`] reads YAML and JSON under limits of size, depth and aliases, and remembers where each value is written.
//! [`diagnostic`] has an author's mistakes: a code, a message, a position and a hint, and how they are rendered for a
//! terminal. All mistakes of a file are reported, not the first.
//!
//! It never interprets what a key means, and never reads a file.
//!
//! The most important types: [`source::Bundle`], [`source::Node`], [`source::Span`], [`diagnostic::Diagnostic`],
//! [`diagnostic::Diagnostics`].
//!
//! Test it alone with `cargo test -p windlass-source`.

// Not published for others: where the name says all, nothing is added.
#![allow(missing_docs)]

pub mod diagnostic;
pub mod source;
pub mod write;
