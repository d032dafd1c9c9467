//! The executors against real servers and real processes.

pub mod ai;
mod cli;
mod handler;
mod http;
mod http_faults;
mod script;
mod script_prolog;
mod shell;
mod tls;
mod validators;

use serde_json::{Value as Json, json};
use std::future::Future;
use std::time::Duration;
use windlass::action::Registry;
use windlass::expression::Value;
use windlass::model::{Fault, Request};

/// A request as the machine would ask for it.
pub fn request(executor: &str, inputs: Json) -> Request {
    Request {
        executor: executor.into(),
        action: "an_action".into(),
        inputs: value(&inputs),
        key: "run-1/loop[3]/an_action".to_owned(),
        attempt: 2,
        timeout_ms: None,
    }
}

/// One attempt.
pub async fn attempt(executor: &str, inputs: Json) -> Result<Json, Fault> {
    let request = request(executor, inputs);
    let given = Registry::new().execute(&request).await?;
    Ok(plain(&given))
}

pub fn value(json: &Json) -> Value {
    Value::from_json(&json.to_string()).unwrap()
}

pub fn plain(value: &Value) -> Json {
    serde_json::from_str(&value.to_json()).unwrap()
}

/// Kind, code, whether it is retried, and Retry-After.
pub fn gist(fault: &Fault) -> Json {
    json!([
        &*fault.kind,
        fault.code.as_deref(),
        fault.transient,
        fault.retry_after_ms
    ])
}

/// Awaits something that must happen; the limit only turns a hang into a failure.
pub async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), what)
        .await
        .expect("it never happened")
}
