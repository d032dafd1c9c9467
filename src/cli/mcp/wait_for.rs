//! The tool `wait_for`, for the things that agents wait for most often.
//! Each becomes a poll, except `time`.

use super::lines::{self, ToolWorkflow};
use super::tools::{object_schema, unknown_argument};
use crate::cli::oneliner;
use crate::cli::yaml;
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::{Value as Json, json};
use windlass_engine::now;
use windlass_value::time::parse_duration;

pub const NAME: &str = "wait_for";

/// What can be waited for: the name of the argument, its JSON type and its description.
const THINGS: [(&str, &str, &str); 6] = [
    (
        "url",
        "string",
        "a URL: waits until it answers with success",
    ),
    (
        "github_run",
        "string",
        "a run of GitHub Actions, as https://github.com/OWNER/REPO/actions/runs/ID or OWNER/REPO/ID: waits until it is completed",
    ),
    (
        "time",
        "string",
        "a duration such as `8m`, or an instant such as `2026-12-01T09:00:00Z`",
    ),
    (
        "command",
        "array",
        "a command as a list of words: waits until its exit code is 0",
    ),
    (
        "file",
        "string",
        "an absolute path on the machine of the server: waits until it exists",
    ),
    (
        "process",
        "integer",
        "the id of a process on the machine of the server: waits until it has ended",
    ),
];

/// Further arguments. They are the same as those of the tool `poll`.
const OF_POLL: [&str; 3] = ["every", "timeout", "header"];

/// Returns the description of the tool for an agent.
pub fn described() -> Tool {
    let mut properties = JsonObject::new();
    for (name, kind, about) in THINGS {
        let property = match kind {
            "array" => {
                json!({ "type": kind, "items": { "type": "string" }, "description": about })
            }
            _ => json!({ "type": kind, "description": about }),
        };
        properties.insert(name.to_owned(), property);
    }
    for (name, about) in [
        ("every", "interval between checks; default: 5s"),
        ("timeout", "maximum total duration; default: 1h"),
    ] {
        let property = json!({ "type": "string", "description": about });
        properties.insert(name.to_owned(), property);
    }
    let header = json!({
        "type": "array", "items": { "type": "string" },
        "description": "headers of the requests, e.g. `Authorization: Bearer ${secret:GITHUB}`",
    });
    properties.insert(String::from("header"), header);
    let schema = object_schema(properties, &[""; 0]);
    let about = "Waits for one thing: a URL, a run of GitHub Actions, a time, a command, a file or the end of a process. The \
                 wait survives the end of this conversation and of the machine.";
    let hints = ToolAnnotations::new().read_only(false);
    Tool::new(NAME, about, schema).with_annotations(hints)
}

/// Makes the workflow of a wait.
///
/// # Errors
/// A message for the agent about the argument that is wrong.
pub fn make(mut given: JsonObject) -> Result<ToolWorkflow, String> {
    given.retain(|_, value| !value.is_null());
    let things = THINGS.map(|(name, ..)| name);
    let known = |name: &str| things.contains(&name) || OF_POLL.contains(&name);
    if let Some(name) = given.keys().find(|name| !known(name)) {
        let known: Vec<&str> = things.into_iter().chain(OF_POLL).collect();
        return Err(unknown_argument(name, &known));
    }
    let mut found = things
        .iter()
        .filter_map(|name| Some((*name, given.remove(*name)?)));
    let (thing, value) = match (found.next(), found.next()) {
        (Some(found), None) => found,
        (None, _) => return Err(format!("one of these is needed: {}", things.join(", "))),
        (Some((one, _)), Some((two, _))) => {
            return Err(format!(
                "`{one}` and `{two}` are two waits: call {NAME} for each"
            ));
        }
    };
    drop(found);
    let word = || match &value {
        Json::String(text) => Ok(text.clone()),
        Json::Number(number) => Ok(number.to_string()),
        _ => Err(format!("`{thing}` has to be a text")),
    };
    let command = |words: &[&str]| json!(words);
    let added = match thing {
        "url" => ("url", value),
        "command" => ("command", value),
        "file" => {
            let path = word()?;
            if !path.starts_with('/') {
                return Err(format!("`{thing}` has to be an absolute path"));
            }
            ("command", command(&["test", "-e", &path]))
        }
        "process" => {
            let id: u32 = word()?
                .parse()
                .map_err(|_| format!("`{thing}` has to be a number"))?;
            if id == 0 {
                return Err(format!("`{thing}` has to be the id of a process"));
            }
            // `kill -0` cannot be used, because a signal to a process of another user is refused.
            let script = "if [ -d /proc/self ]; then ! [ -d \"/proc/$0\" ]; else ! ps -p \"$0\" > /dev/null; fi";
            ("command", command(&["sh", "-c", script, &id.to_string()]))
        }
        "github_run" => {
            given.insert(String::from("until"), json!("body.status == 'completed'"));
            given.insert(String::from("if_changed"), json!(true));
            ("url", json!(github_run(&word()?)?))
        }
        _ => {
            if let Some(other) = given.keys().next() {
                return Err(format!("`{other}` has no meaning for `{thing}`"));
            }
            return time(&word()?);
        }
    };
    given.insert(added.0.to_owned(), added.1);
    let poll = lines::find("poll").ok_or("the tool `poll` is missing")?;
    poll.make(&given)
}

/// Returns the address of a GitHub Actions run in the API of GitHub.
fn github_run(text: &str) -> Result<String, String> {
    let (path, _) = text.split_once(['?', '#']).unwrap_or((text, ""));
    let path = path
        .trim_start_matches("https://github.com/")
        .trim_end_matches('/');
    let parts: Vec<&str> = path.split('/').collect();
    let (owner, repository, id) = match parts.as_slice() {
        [owner, repository, "actions", "runs", id, ..] => (owner, repository, id),
        [owner, repository, id] => (owner, repository, id),
        _ => {
            return Err(String::from(
                "`github_run` has to be OWNER/REPO/ID or the address of the run",
            ));
        }
    };
    if id.parse::<u64>().is_err() {
        return Err(format!("`{id}` is not the number of a run"));
    }
    Ok(format!(
        "https://api.github.com/repos/{owner}/{repository}/actions/runs/{id}"
    ))
}

/// Makes the workflow that waits for a duration, or until an instant.
fn time(text: &str) -> Result<ToolWorkflow, String> {
    // Each call with a duration is a new wait, because its workflow contains another instant. A call with an instant
    // can be repeated.
    let until = match parse_duration(text) {
        Ok(duration) => now().plus(duration),
        Err(_) => text.parse().map_err(|_| {
            format!("`{text}` is neither a duration such as `8m` nor an instant such as `2026-12-01T09:00:00Z`")
        })?,
    };
    let name = oneliner::name("wait", [&text.to_owned()].into_iter());
    let workflow = json!({
        "name": name,
        "actions": { "wait": { "type": "wait", "inputs": { "until": until.to_string() } } },
    });
    Ok(ToolWorkflow {
        text: yaml::to_text(&workflow),
        name,
        id: None,
    })
}
