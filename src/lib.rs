//! Windlass runs loops written in YAML or JSON as durable state machines.
//!
//! An [`Engine`] stores its runs in a directory. After a crash, a `kill -9` or a power cut, a run continues where it
//! was. What a workflow file cannot express is an activity: a Rust closure whose input and output serde converts.
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
//! // Continue the runs that an earlier process left unfinished.
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
//! A program can follow a run while it executes, and each error has a code of its kind:
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
//! Features leave out what a program does not need. All but `temporal` are on by default. `cli` and `server` are the
//! command, `ui` is the console, `http`, `llm` and `lua` are kinds of actions, `schema` is JSON Schema, `azure`,
//! `canvas` and `tea` are formats in addition to Loom, `fjall` is a second database, and `temporal` executes runs on
//! Temporal. `docs/architecture.md` describes the design.

#[cfg(feature = "cli")]
mod cli;

#[cfg(feature = "cli")]
#[doc(hidden)]
pub use cli::main as command_line;

pub use windlass_actions::{ActivityContext, ActivityError, SecretSources, lua_worker};
pub use windlass_engine::report::StatusFilter;
pub use windlass_engine::scheduler::{Limits, ScheduleError, Step, Update};
pub use windlass_engine::{
    Engine, EngineBuilder, EngineError as Error, ErrorCode, Follower, LoadError, LoadOptions,
    Notice, OutputStream, PruneFilter, Pruned, Run, RunFailure, StartOptions, Workflow,
};
pub use windlass_expression::{Object, Value};
pub use windlass_machine::{
    BudgetKind, BudgetUse, HistoryEvent, HistoryKind, IterationRow, LoopEnd, LoopState, Outcome,
    PauseReason, RunError, RunStatus,
};
pub use windlass_model::model::{Dialect, HandlerTarget, Policy, Status};
pub use windlass_source::diagnostic::Diagnostics;
pub use windlass_source::source::{Bundle, SourceFile};
pub use windlass_store::{
    MemoryStore, RunHeader, SledStore, StateKey, Store, StoreError, StoreKind,
};
pub use windlass_value::time::Timestamp;
