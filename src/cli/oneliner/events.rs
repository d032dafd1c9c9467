//! The workflow file of `windlass events`.

use super::complete::fail_if;
use super::file::{LOOK_OUTPUTS, duration_text, policy, request, to_file_expression};
use crate::cli::args::{DurationArg, IntervalArg, ReadEventsArgs};
use serde_json::{Map, Value, json};
use std::time::Duration;

/// The condition that holds if the server has no more events.
const HAS_ENDED: &str = "actions.look.outputs.statusCode == 204";

/// The delay before the next attempt to reach the server. It doubles after each attempt.
const RETRY: IntervalArg = IntervalArg {
    initial: DurationArg(Duration::from_secs(1)),
    max: Some(DurationArg(Duration::from_secs(60))),
};

/// Makes the workflow file for a command line. `to` is the file for the rows (one for each event), if there is one.
pub(super) fn events(args: &ReadEventsArgs, to: Option<&str>, times: u64) -> Result<Value, String> {
    let until = args.until.as_deref().map(to_file_expression);
    let mut look = request(&args.url, &args.request)?;
    if let Some(inputs) = look.get_mut("inputs").and_then(Value::as_object_mut) {
        inputs.insert("events".to_owned(), true.into());
    }
    if args.request.data.is_none() {
        // A server that is down may be available again before the duration is over.
        look.insert("retry".to_owned(), policy(&RETRY, times, &["transient"]));
    }
    let mut actions = Map::new();
    // Without a condition to wait for, reaching the duration or the number of events is not an error.
    let on_limit = if until.is_some() { "fail" } else { "continue" };
    let condition = match (until, args.times) {
        (Some(until), _) => {
            actions.insert("look".to_owned(), look.into());
            let message = "the server has no more events (204), and the condition was never true";
            let check = fail_if("events_have_ended", HAS_ENDED, message);
            actions.insert("check_end".to_owned(), check);
            until
        }
        (None, count) => {
            look.insert("break_when".to_owned(), HAS_ENDED.into());
            actions.insert("look".to_owned(), look.into());
            count.map_or("false".to_owned(), |count| format!("loop.count >= {count}"))
        }
    };
    let last = json!({ "type": "setVariable", "inputs": { "name": "last", "value": "@outputs('look')?['body']" } });
    actions.insert("remember".to_owned(), last);
    if let Some(to) = to {
        let row = format!("{{{{ {LOOK_OUTPUTS}.body.data }}}}");
        let inputs = json!({ "path": to, "row": row });
        let keep = json!({ "type": "appendFile", "inputs": inputs });
        actions.insert("keep".to_owned(), keep);
    }
    Ok(json!({
        "variables": { "last": null },
        "actions": { "events": {
            "type": "doUntil",
            "condition": condition,
            "on_missing": "wait",
            "limit": { "count": times, "timeout": duration_text(args.duration) },
            "on_limit": on_limit,
            "actions": actions,
        } },
        "outputs": "@variables('last')",
    }))
}
