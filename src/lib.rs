//! Windlass runs loops written in YAML or JSON as durable state machines.
//!
//! A workflow file becomes one tree ([`hir`]), the tree becomes a table of states
//! ([`program`]), a function without clock or I/O moves a run through that table
//! ([`machine`]), and the [`scheduler`] does what the machine asks for, but only after the
//! [`store`] has made the step durable. `docs/architecture.md` tells the whole story.

// What the suites see needs no documentation; what users see is checked without them.
#![cfg_attr(feature = "internals", allow(missing_docs))]
// What only the suites, or features that are off, would use.
#![cfg_attr(not(feature = "internals"), allow(unused_imports))]
#![cfg_attr(not(feature = "default"), allow(dead_code, unused_imports))]

mod action;
#[cfg(feature = "server")]
mod api;
#[cfg(feature = "cli")]
mod cli;
#[cfg(feature = "cli")]
mod client;
mod compile;
mod diagnostic;
mod dialect;
mod engine;
mod expression;
mod hir;
mod hosted;
mod machine;
mod model;
mod program;
mod scheduler;
#[cfg(feature = "server")]
mod server;
mod source;
mod store;
mod time;

pub use action::{ActivityContext, lua_worker};
#[cfg(feature = "cli")]
#[doc(hidden)]
pub use cli::main as command_line;
pub use engine::{Engine, EngineBuilder, RunFailure, RunHandle};
pub use expression::Value;

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
