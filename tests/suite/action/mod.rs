//! The executors with real servers and real processes.

pub mod ai;
mod cli;
mod files;
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
use std::io::{BufRead, BufReader};
use std::process::Child;
use std::time::Duration;
use windlass_actions::Registry;
use windlass_expression::Value;
use windlass_model::model::{Fault, Request};

/// Kills an engine of another process that waits in [`wait_to_be_killed`].
pub fn kill_when_it_waits(mut engine: Child) {
    let mut waits = String::new();
    let mut stdout = BufReader::new(engine.stdout.take().unwrap());
    while !waits.ends_with("the engine waits\n") {
        assert_ne!(stdout.read_line(&mut waits).unwrap(), 0, "{waits}");
    }
    engine.kill().unwrap();
    engine.wait().unwrap();
}

/// Starts an action that does not end, reports that, and waits until this process is killed.
pub async fn wait_to_be_killed(request: &Request) {
    let registry = Registry::new();
    tokio::select! {
        biased;
        given = registry.execute(request) => panic!("it was to be killed: {given:?}"),
        () = async {
            println!("the engine waits");
            std::future::pending().await
        } => {}
    }
}

/// A request as the machine sends it.
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

/// The fault's kind, its code, whether it is retried, and Retry-After.
pub fn gist(fault: &Fault) -> Json {
    json!([
        &*fault.kind,
        fault.code.as_deref(),
        fault.transient,
        fault.retry_after_ms
    ])
}

/// Awaits a future that must end; the time limit only turns a hang into a failure.
pub async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(120), what)
        .await
        .expect("it never happened")
}
