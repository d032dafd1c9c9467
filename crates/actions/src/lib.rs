//! Executors carry out effects. An executor gets one rendered [`Request`] and returns a value or a [`Fault`].
//!
//! A driver calls executors through [`Registry`], by name. To add a kind of action, write an [`Executor`] in a file of
//! its own and name it in [`Registry::new`], or pass it to [`Registry::register_executor`] from outside. The registry
//! enforces timeouts and the size and depth of results, and catches panics, so that executors need not do this.
//!
//! Executors never see the machine or a run.
//!
//! The most important types: [`Registry`], [`Executor`], [`Attempt`], [`SecretSources`], [`ActivityContext`].
//!
//! Test it alone with `cargo test -p windlass-actions`.

// Without these features, some of the items are unused.
#![cfg_attr(
    not(all(feature = "http", feature = "llm", feature = "lua", feature = "tea")),
    allow(dead_code, unused_imports)
)]

mod activity;
mod append;
mod callback;
#[cfg(feature = "tea")]
mod compute;
#[cfg(feature = "tea")]
mod data;
mod encodings;
mod execution_context;
#[cfg(feature = "tea")]
mod extraction;
#[cfg(feature = "tea")]
mod files;
mod handler;
#[cfg_attr(not(feature = "http"), path = "http_off.rs")]
mod http;
mod identity;
mod inputs;
mod json;
mod live;
#[cfg(feature = "llm")]
mod llm;
mod mask;
mod private_file;
mod process;
mod reaper;
#[cfg(feature = "tea")]
mod reflection;
mod registry;
mod runner;
#[cfg(feature = "tea")]
mod schema;
mod script;
mod secret_command;
mod secrets;
mod secure;
mod shell;
mod sink;
mod state;
mod stub;
mod untrusted;
mod webhook;

pub use activity::{ActivityContext, ActivityError};
pub use append::{is_append_bookkeeping, simulate_append};
pub use callback::{CALLBACK_PATH, Callbacks};
pub use http::follow_up_address;
pub use identity::{IDENTITIES, has_secret};
pub use live::{Listener, OutputStream};
pub use mask::MASK;
pub use private_file::replace_private_file;
pub use process::note_stop_signal;
pub use registry::{Registry, required_feature};
pub use script::{interpreter, lua_worker, syntax_mistakes};
pub use secrets::{SecretSources, fits_pattern};
pub use state::SharedState;
pub use stub::Stubs;
pub use webhook::{check_webhook, signature_header};

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;
use url::Url;
use windlass_expression::Value;
use windlass_model::model::{Fault, Request};

/// The future of one attempt. Dropping it must abort the attempt: close the connection, kill the process group.
pub type Attempt<'a> = Pin<Box<dyn Future<Output = Result<Value, Fault>> + Send + 'a>>;

/// Does one kind of action.
pub trait Executor: Send + Sync + 'static {
    /// Makes one attempt. Dropping the future aborts it.
    fn execute<'a>(&'a self, request: &'a Request) -> Attempt<'a>;

    /// Returns the URL to which an attempt sends its request, if it is known before the attempt.
    fn destination(&self, request: &Request) -> Option<Url> {
        let _ = request;
        None
    }

    /// Returns the timeout of an attempt. `None`: the attempt has no timeout, or the executor enforces its own.
    fn timeout(&self, request: &Request) -> Option<Duration> {
        request.timeout_ms.map(Duration::from_millis)
    }
}

/// Makes the request of an action's first attempt, for tests.
#[cfg(test)]
fn asking(executor: &str, inputs: &str) -> Request {
    Request {
        executor: executor.into(),
        action: "a".into(),
        inputs: Value::from_json(inputs).unwrap(),
        key: String::new(),
        attempt: 1,
        timeout_ms: None,
    }
}
