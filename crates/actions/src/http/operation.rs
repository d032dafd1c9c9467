//! Long operations: whether one has ended, and where to ask for it next, read from the answers of its server.
//!
//! Known are the `Location`, `Operation-Location` and `Azure-AsyncOperation` headers (RFC 9110, 15.3.3; Azure REST API
//! guidelines, "Long-running operations"), operations of Google (`google.longrunning.Operation`; Compute Engine),
//! background responses and batches of OpenAI, jobs of Kubernetes, runs of GitHub Actions, and answers with a `status`
//! or a `state` in the usual words. Whatever else there is, the action describes by expressions.

use super::reply::Reply;
use reqwest::{Method, StatusCode, Url};
use windlass_expression::{Object, Value, shared_key};
use windlass_model::model::{Fault, fault_kind};

/// Headers that name the address of the operation, and not of what it makes.
const STATUS_HEADERS: [&str; 2] = ["operation-location", "azure-asyncoperation"];

/// Members of the first answer that name the address of an operation that runs.
const ADDRESSES: [&str; 5] = [
    "statusQueryGetUri",
    "status_url",
    "statusUrl",
    "run_url",
    "urls.get",
];

/// Where an answer says how far the operation is.
const STATES: [&str; 7] = [
    "status",
    "state",
    "properties.provisioningState",
    "provisioningState",
    "status.phase",
    "status.state",
    "phase",
];

/// Words of an operation that ended well, in lower case and without `_`, `-` and spaces.
const SUCCEEDED: [&str; 8] = [
    "succeeded",
    "success",
    "successful",
    "completed",
    "complete",
    "done",
    "finished",
    "ok",
];

/// Words of one that did not.
const FAILED: [&str; 14] = [
    "failed",
    "failure",
    "error",
    "errored",
    "canceled",
    "cancelled",
    "expired",
    "timedout",
    "aborted",
    "rejected",
    "incomplete",
    "stopped",
    "terminated",
    "skippedbyerror",
];

/// Conclusions of a run of GitHub Actions that are not a failure.
const CONCLUSIONS: [&str; 3] = ["success", "neutral", "skipped"];

/// Which request of an operation an answer belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Start,
    Status,
}

impl Step {
    /// The input `operation` of an action.
    pub fn of(inputs: &Value) -> Option<Self> {
        match inputs.get("operation")?.as_str()? {
            "start" => Some(Self::Start),
            "status" => Some(Self::Status),
            _ => None,
        }
    }
}

enum Progress {
    Running,
    Succeeded,
    /// The answer says nothing about it.
    Unknown,
}

/// The output of an answer, with its member `operation`: `done`, the `address` to ask next, the address of the `result`,
/// and the `response` within the answer. The last three are null where there are none.
///
/// # Errors
/// The operation failed, or nothing says where to ask for it.
pub(super) fn output(reply: Reply, step: Step, method: &Method) -> Result<Value, Fault> {
    let progress = match progress(&reply.body) {
        Ok(progress) => progress,
        Err(reason) => {
            let message = format!("the operation failed: {reason}");
            return Err(Fault::new(fault_kind::OPERATION, message).output(reply.into_page()));
        }
    };
    let named = STATUS_HEADERS.iter().find_map(|name| text(&reply, name));
    let accepted = reply.status == StatusCode::ACCEPTED;
    let done = match progress {
        Progress::Succeeded => step == Step::Status || named.is_none(),
        Progress::Running => false,
        Progress::Unknown => {
            let runs = named.is_some() || named_address(&reply.body).is_some();
            !accepted && (step == Step::Status || !runs)
        }
    };
    let location = text(&reply, "location");
    let address = match (done, named.or(location.clone().filter(|_| accepted))) {
        (true, _) => None,
        (false, Some(named)) => Some(named),
        (false, None) if step == Step::Status => Some(reply.url.to_string()),
        (false, None) => Some(started_at(&reply).or(location.clone()).ok_or_else(|| {
            let message = "the operation runs, but its answer does not say where to ask for it: \
                           give `status`, for example status: { uri: \"https://…\" }";
            Fault::new(fault_kind::OPERATION, message)
        })?),
    };
    let result = match step {
        // Azure: a PUT made what it names, and a POST says where its result will be.
        Step::Start if !done && *method == Method::PUT => Some(reply.url.to_string()),
        Step::Start if !done => location.filter(|at| Some(at) != address.as_ref()),
        Step::Start => None,
        Step::Status if done => result_of(&reply),
        Step::Status => None,
    };
    let response = reply
        .body
        .get("response")
        .filter(|_| done && is_google(&reply.body));
    let operation = [
        ("done", Value::Bool(done)),
        ("address", address.map_or(Value::Null, Value::text)),
        ("result", result.map_or(Value::Null, Value::text)),
        ("response", response.cloned().unwrap_or(Value::Null)),
    ];
    let mut output = match reply.into_page() {
        Value::Object(output) => Object::clone(&output),
        _ => Object::new(),
    };
    output.insert(shared_key("operation"), Value::from_pairs(operation));
    Ok(Value::object(output))
}

fn text(reply: &Reply, header: &str) -> Option<String> {
    let text = reply.headers.get(header)?.as_str()?.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// The member at a path, names with dots between them.
fn member<'v>(body: &'v Value, path: &str) -> Option<&'v Value> {
    path.split('.')
        .try_fold(body, |value, name| value.get(name))
}

fn member_text<'v>(body: &'v Value, path: &str) -> Option<&'v str> {
    member(body, path)?.as_str().filter(|text| !text.is_empty())
}

/// Whether an answer is an operation of Google: `done` does not exist until it is true.
fn is_google(body: &Value) -> bool {
    let name = member_text(body, "name").unwrap_or_default();
    name.starts_with("operations/") || name.contains("/operations/")
}

/// How far an operation is.
///
/// # Errors
/// It failed: the reason.
fn progress(body: &Value) -> Result<Progress, String> {
    let error = body.get("error").filter(|error| !error.is_null());
    if is_google(body) || matches!(body.get("done"), Some(Value::Bool(_))) {
        return match (body.get("done"), error) {
            (Some(Value::Bool(true)), Some(_)) => Err(reason(body, "error")),
            (Some(Value::Bool(true)), None) => Ok(Progress::Succeeded),
            _ => Ok(Progress::Running),
        };
    }
    if member_text(body, "kind") == Some("Job") {
        return job(body);
    }
    let Some(state) = STATES.iter().find_map(|path| member_text(body, path)) else {
        return Ok(Progress::Unknown);
    };
    let word: String = state
        .chars()
        .filter(|sign| sign.is_alphanumeric())
        .collect();
    let word = word.to_ascii_lowercase();
    if FAILED.contains(&&*word) {
        return Err(reason(body, state));
    }
    if !SUCCEEDED.contains(&&*word) {
        return Ok(Progress::Running);
    }
    match member_text(body, "conclusion") {
        Some(conclusion) if !CONCLUSIONS.contains(&conclusion) => Err(conclusion.to_owned()),
        _ if matches!(error, Some(Value::Object(_) | Value::String(_))) => Err(reason(body, state)),
        _ => Ok(Progress::Succeeded),
    }
}

/// A job of Kubernetes has ended when one of these conditions is true.
fn job(body: &Value) -> Result<Progress, String> {
    let conditions = member(body, "status.conditions").and_then(Value::as_array);
    for condition in conditions.into_iter().flat_map(|list| list.iter()) {
        let kind = member_text(condition, "type").unwrap_or_default();
        match (kind, member_text(condition, "status")) {
            ("Complete", Some("True")) => return Ok(Progress::Succeeded),
            ("Failed", Some("True")) => return Err(reason(condition, kind)),
            _ => {}
        }
    }
    Ok(Progress::Running)
}

/// Why an operation failed, else `word`.
fn reason(body: &Value, word: &str) -> String {
    const PLACES: [&str; 7] = [
        "error.message",
        "error.code",
        "error",
        "incomplete_details.reason",
        "message",
        "reason",
        "statusMessage",
    ];
    let texts = PLACES.iter().filter_map(|path| member_text(body, path));
    texts
        .map(str::to_owned)
        .next()
        .unwrap_or_else(|| word.to_owned())
}

fn named_address(body: &Value) -> Option<&str> {
    ADDRESSES.iter().find_map(|path| member_text(body, path))
}

/// Where to ask for an operation that its first answer describes.
fn started_at(reply: &Reply) -> Option<String> {
    let body = &reply.body;
    if let Some(named) = named_address(body).or_else(|| member_text(body, "selfLink")) {
        return Some(named.to_owned());
    }
    if is_google(body) {
        let name = member_text(body, "name")?;
        let version = reply.url.path_segments()?.next()?;
        let is_version = version
            .strip_prefix('v')
            .is_some_and(|rest| rest.starts_with(|sign: char| sign.is_ascii_digit()));
        return Some(match is_version {
            true => format!("/{version}/{name}"),
            false => format!("/{name}"),
        });
    }
    let id = match body.get("id").or_else(|| member(body, "metadata.name"))? {
        Value::String(id) => id.to_string(),
        Value::Int(id) => id.to_string(),
        _ => return None,
    };
    below(&reply.url, &id)
}

/// The address of an element of a collection.
fn below(collection: &Url, id: &str) -> Option<String> {
    let mut url = collection.clone();
    url.set_query(None);
    url.path_segments_mut().ok()?.pop_if_empty().push(id);
    Some(url.to_string())
}

/// Where the result of an operation is that has ended.
fn result_of(reply: &Reply) -> Option<String> {
    if let Some(named) = member_text(&reply.body, "resourceLocation") {
        return Some(named.to_owned());
    }
    // A batch of OpenAI writes a file.
    let file = member_text(&reply.body, "output_file_id")?;
    let path = reply.url.path();
    let (base, _) = path.split_once("/batches/")?;
    Some(format!("{base}/files/{file}/content"))
}
