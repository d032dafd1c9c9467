//! Runs on Temporal: Temporal stores the events, and our machine decides what follows from them.
//!
//! ```text
//!   history ─▶ workflow task ─▶ RunExecution::take ─▶ orders ─▶ history
//!                                  │
//!                         hosted ─▶ machine
//! ```
//!
//! One workflow type hosts the machine. An event of the machine is the answer of an activity, a timer or an update in
//! Temporal. An effect of the machine is an activity. The orders in the picture are our commands to Temporal. When a
//! caller reads a run, the same module `run_execution` folds the history (computes the state from its events), so
//! reading needs no worker.
//!
//! This crate does not depend on a workflow format, and no other crate depends on Temporal.
//!
//! The most important types: [`Target`], [`Worker`], [`WorkerOptions`], [`Wire`], [`TemporalError`].
//!
//! Test it alone with `cargo test -p windlass-temporal`.

// Only the exports of the crate `windlass` are a published library. So an item whose name says everything has no
// comment.
#![allow(missing_docs)]

mod called;
mod client;
mod connection;
mod effect;
mod fold;
mod inspect;
mod run_execution;
mod stuck;
mod target;
mod wire;
mod worker;

pub use client::connect;
pub use target::Target;
pub use wire::Wire;
pub use worker::{Worker, WorkerOptions};

use temporalio_client::tonic::{Code, Status};
use windlass_engine::EngineError;
use windlass_machine::Bug;

/// The workflow type that hosts the machine.
const WORKFLOW: &str = "windlass.run";

/// The activity type that executes effects.
const EFFECT: &str = "windlass.effect";

/// The name of the update that delivers commands.
const COMMAND: &str = "windlass.command";

/// Why something on Temporal failed.
#[derive(Debug, thiserror::Error)]
pub enum TemporalError {
    /// The address of the engine on Temporal (`temporal://…`) is not valid.
    #[error("{0}")]
    Target(String),
    /// Temporal was not reached.
    #[error("Temporal at {at} was not reached: {why}")]
    Unreachable {
        /// The address of Temporal.
        at: String,
        why: String,
    },
    /// Temporal refused a request.
    #[error("Temporal refused: {}", .0.message())]
    Refused(Box<Status>),
    /// Temporal did not answer a request, or is still starting.
    #[error("Temporal {}: {}", how_it_failed(.0), .0.message())]
    Outage(Box<Status>),
    /// A payload (the encoded data of an event) cannot be written or read.
    #[error("a payload cannot be used: {0}")]
    Payload(String),
    /// A payload was sealed with a key that this process does not have.
    #[error(
        "the run's data is encrypted with {0}: pass the key that it was started with, --state-key \
         FILE"
    )]
    Sealed(&'static str),
    /// The workflow of a run cannot be loaded here.
    #[error("the workflow cannot be loaded here: {0}")]
    Unloadable(String),
    /// The state of the run is inconsistent.
    #[error(transparent)]
    Bug(#[from] Bug),
    /// The worker cannot continue.
    #[error("the worker stopped: {0}")]
    Worker(String),
}

impl From<Status> for TemporalError {
    fn from(status: Status) -> Self {
        match is_outage(&status) {
            true => Self::Outage(Box::new(status)),
            false => Self::Refused(Box::new(status)),
        }
    }
}

fn how_it_failed(outage: &Status) -> &'static str {
    match outage.code() {
        Code::NotFound => "refused",
        _ => "does not answer",
    }
}

/// Returns whether a request may succeed later.
fn is_outage(status: &Status) -> bool {
    match status.code() {
        Code::Unavailable => true,
        // The connection was closed during the request.
        Code::Unknown => status.message() == "transport error",
        // A server that starts does not know its namespaces yet.
        Code::NotFound => status.message().starts_with("Namespace "),
        _ => false,
    }
}

impl From<TemporalError> for EngineError {
    fn from(error: TemporalError) -> Self {
        match error {
            TemporalError::Unreachable { .. } | TemporalError::Outage(_) => {
                Self::Outage(error.to_string())
            }
            other => Self::Elsewhere(other.to_string()),
        }
    }
}

impl TemporalError {
    /// Returns whether Temporal refused a start because it has a run with this id already.
    fn is_taken(&self) -> bool {
        matches!(self, Self::Refused(status) if status.code() == Code::AlreadyExists)
    }

    /// Returns whether Temporal does not know the requested object.
    fn is_unknown(&self) -> bool {
        matches!(self, Self::Refused(status) if status.code() == Code::NotFound)
    }
}
