//! The workflow file of `operation`, which has one action.

use super::file::{
    duration_text, invalid_url, parse_url, request, server_delay, to_file_expression_at,
};
use crate::cli::args::OperationArgs;
use serde_json::{Value, json};
use windlass_engine::Value as Output;

/// The path of the last answer about the operation, in the workflow file. The expressions of the line read it.
pub(super) const STATUS_OUTPUTS: &str = "actions['operation.status'].outputs";

pub(super) fn operation(args: &OperationArgs, times: u64) -> Result<Value, String> {
    let mut action = request(&args.url, &args.request)?;
    action.insert("type".to_owned(), "operation".into());
    if let Some(inputs) = action.get_mut("inputs").and_then(Value::as_object_mut) {
        inputs.insert("method".to_owned(), args.method.clone().into());
    }
    action.insert("delay".to_owned(), server_delay(&args.every));
    let limit = json!({ "count": times, "timeout": duration_text(args.timeout) });
    action.insert("limit".to_owned(), limit);
    for (key, expression) in [("done", &args.done), ("failed", &args.failed)] {
        if let Some(expression) = expression {
            let expression = to_file_expression_at(expression, STATUS_OUTPUTS);
            action.insert(key.to_owned(), expression.into());
        }
    }
    let requests = [
        ("status", "--status-url", &args.status_url),
        ("result", "--result", &args.result),
        ("cancel", "--cancel", &args.cancel),
    ];
    for (key, flag, address) in requests {
        let Some(address) = address else { continue };
        let is_computed = address.contains('@') || address.contains("{{");
        let checked = match key {
            _ if is_computed || (key, &**address) == ("result", "none") => Ok(()),
            // This address may be relative to the URL.
            "cancel" => parse_url(&args.url)?
                .join(address)
                .map(drop)
                .map_err(|error| invalid_url(address, error)),
            _ => parse_url(address).map(drop),
        };
        checked.map_err(|error| format!("{flag}: {error}"))?;
        action.insert(key.to_owned(), address.clone().into());
    }
    Ok(json!({
        "actions": { "operation": action },
        "outputs": "@outputs('operation')?['body']",
    }))
}

/// Returns whether an answer has a member that usually contains the state of a long operation.
pub(super) fn names_state(answer: &Output) -> bool {
    let names = ["status", "state", "done"];
    let members = answer.as_object();
    let mut members = members.into_iter().flat_map(|members| members.keys());
    members.any(|key| names.iter().any(|name| key.eq_ignore_ascii_case(name)))
}
