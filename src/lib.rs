//! Windlass runs loops written in YAML or JSON as durable state machines.
//!
//! An [`Engine`] keeps its runs in a directory. A run goes on where it was after a crash, a `kill -9` or a
//! power cut. What a workflow cannot say itself is an activity: a Rust closure, typed by serde.
//!
//! ```
//! use serde::{Deserialize, Serialize};
//! use windlass::{ActivityError, Engine, Value};
//!
//! #[derive(Serialize, Deserialize)]
//! struct Order {
//!     amount: u32,
//! }
//!
//! #[derive(Serialize)]
//! struct Receipt {
//!     open: u32,
//! }
//!
//! #[derive(Debug, PartialEq, Deserialize)]
//! struct Paid {
//!     rates: u64,
//! }
//!
//! const WORKFLOW: &str = "
//! name: rates
//! inputs: { amount: { type: integer } }
//! variables: { open: \"@inputs('amount')\" }
//! actions:
//!   pay:
//!     type: doUntil
//!     condition: \"@equals(variables('open'), 0)\"
//!     actions:
//!       rate:
//!         type: activity
//!         inputs: { activityType: charge, input: { amount: \"@variables('open')\" } }
//!       keep: { type: setVariable, name: open, value: \"@body('rate').open\" }
//! outputs: { rates: \"@outputs('pay').iterations\" }
//! ";
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! let engine = Engine::builder()
//!     .register("charge", |_, order: Order| async move {
//!         if order.amount == 0 {
//!             return Err(ActivityError::permanent("there is nothing to charge"));
//!         }
//!         Ok(Receipt { open: order.amount.saturating_sub(100) })
//!     })
//!     .open(dir.path())?;
//! // What a process before this one left unfinished goes on.
//! engine.recover(false).await?;
//!
//! let workflow = engine.load_text("rates.yaml", WORKFLOW)?;
//! let run = engine.start(&workflow, Value::encode(Order { amount: 250 })?).await?;
//! let paid: Paid = run.result().await?;
//! assert_eq!(paid, Paid { rates: 3 });
//! # Ok(())
//! # }
//! ```
//!
//! A run can be followed while it goes on, and errors say of what kind they are:
//!
//! ```
//! use windlass::{Engine, ErrorCode, StartOptions, Update, Value};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let engine = Engine::builder().in_memory()?;
//! let workflow = engine.load_text("a.yaml", "actions: { a: { type: compose, inputs: 1 } }")?;
//!
//! let options = StartOptions::default().id("first").label("team", "blue");
//! let mut run = engine.start_with(&workflow, Value::Null, options.clone()).await?;
//! while let Some(update) = run.next().await {
//!     if let Update::Finished(outcome) = update {
//!         println!("{}", outcome.output.to_json());
//!     }
//! }
//!
//! let again = engine.start_with(&workflow, Value::Null, options).await;
//! assert_eq!(again.err().map(|error| error.code()), Some(ErrorCode::RunExists));
//! # Ok(())
//! # }
//! ```
//!
//! Features leave out what a program does not need; all are on by default. `cli` and `server` are the
//! command, `ui` is the console, `http`, `llm` and `lua` are kinds of actions, `schema` is JSON Schema,
//! `azure`, `canvas` and `tea` are formats beside Loom, `fjall` is a second database. `temporal` puts runs on Temporal
//! and is off by default. `docs/architecture.md` tells how it is built.

// What the suites see needs no documentation; what users see is checked without them.
#![cfg_attr(feature = "internals", allow(missing_docs))]
// What only the suites, or features that are off, would use.
#![cfg_attr(not(feature = "internals"), allow(unused_imports))]
#![cfg_attr(not(feature = "default"), allow(dead_code, unused_imports))]

use windlass_draw as draw;
use windlass_expression as expression;
use windlass_formats as dialect;
use windlass_machine as machine;
use windlass_machine::{compile, hosted, program};
use windlass_model::{hir, model};
use windlass_source::{diagnostic, source};
use windlass_store as store;
use windlass_value::time;

mod action;
#[cfg(feature = "server")]
mod api;
#[cfg(feature = "cli")]
mod cli;
#[cfg(feature = "cli")]
mod client;
mod engine;
#[cfg(feature = "server")]
mod language;
mod scheduler;
#[cfg(feature = "server")]
mod server;
#[cfg(feature = "temporal")]
mod temporal;

#[cfg(feature = "cli")]
#[doc(hidden)]
pub use cli::main as command_line;

pub use action::{ActivityContext, ActivityError, SecretSources, lua_worker};
pub use diagnostic::Diagnostics;
pub use engine::{
    Engine, EngineBuilder, EngineError as Error, ErrorCode, Follower, LoadError, LoadOptions,
    Notice, OutputStream, PruneFilter, Pruned, Run, RunFailure, StartOptions, Workflow,
};
pub use expression::{Object, Value};
pub use machine::{
    HistoryEvent, HistoryKind, IterationRow, LoopEnd, LoopState, Outcome, PauseReason, RunError,
    RunStatus,
};
pub use model::{Dialect, HandlerTarget, Policy, Status};
pub use scheduler::{Limits, ScheduleError, Step, Update};
pub use source::{Bundle, SourceFile};
pub use store::{MemoryStore, RunHeader, SledStore, StateKey, Store, StoreError, StoreKind};
pub use time::Timestamp;

/// The modules themselves, for this project's own suites, benches and fuzz targets. No promise of
/// semantic versioning holds for what is in here.
#[cfg(feature = "internals")]
#[doc(hidden)]
pub mod internals {
    pub mod action {
        pub use crate::action::*;
    }
    pub mod compile {
        pub use crate::compile::*;
    }
    pub mod diagnostic {
        pub use crate::diagnostic::*;
    }
    pub mod dialect {
        pub use crate::dialect::*;
    }
    pub mod draw {
        pub use crate::draw::*;
    }
    pub mod engine {
        pub use crate::engine::*;
    }
    pub mod expression {
        pub use crate::expression::*;
    }
    pub mod hir {
        pub use crate::hir::*;
    }
    pub mod hosted {
        pub use crate::hosted::*;
    }
    #[cfg(feature = "server")]
    pub mod language {
        pub use crate::language::*;
    }
    pub mod machine {
        pub use crate::machine::*;
    }
    pub mod model {
        pub use crate::model::*;
    }
    pub mod program {
        pub use crate::program::*;
    }
    pub mod scheduler {
        pub use crate::scheduler::*;
    }
    #[cfg(feature = "server")]
    pub mod server {
        pub use crate::server::*;
    }
    pub mod source {
        pub use crate::source::*;
    }
    pub mod store {
        pub use crate::store::*;
    }
    pub mod time {
        pub use crate::time::*;
    }
}
