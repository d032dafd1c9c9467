//! Long operations: whether one has ended, and where to ask for it next, read from the answers of its server.
//!
//! Known are the `Location`, `Operation-Location` and `Azure-AsyncOperation` headers (RFC 9110, 15.3.3; Azure REST API
//! guidelines, "Long-running operations"), operations of Google (`google.longrunning.Operation`; Compute Engine),
//! background responses and batches of OpenAI, jobs of Kubernetes, runs of GitHub Actions, and answers with a `status`
//! or a `state` in the usual words. Whatever else there is, the action describes by expressions.

use super::previous::with_member;
use super::reply::{Reply, url_text};
use chrono::DateTime;
use reqwest::{Method, StatusCode, Url};
use std::time::Duration;
use windlass_expression::Value;
use windlass_model::model::{ASYNC_PATTERN, Fault, fault_kind};
use windlass_value::time::{Timestamp, format_duration};
use windlass_value::{LONGEST_REQUESTED_WAIT, http_date};

/// The input that says which request of an operation it is, and the member of an output that says how far that is.
pub(super) const OPERATION: &str = "operation";

/// The member of a list of runs of GitHub Actions.
const RUNS: &str = "workflow_runs";

/// A run may have been created that long before the answer to its dispatch, in milliseconds.
const DISPATCH_MARGIN_MS: i64 = 5_000;

/// The time between two requests about an operation whose server names none.
const POLL_INTERVAL: Duration = Duration::from_secs(20);

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
const FAILED: [&str; 13] = [
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
];

/// Words of one that has not ended, where the place of a word does not say that it is about an operation.
const RUNNING: [&str; 14] = [
    "running",
    "queued",
    "pending",
    "inprogress",
    "processing",
    "working",
    "submitted",
    "accepted",
    "scheduled",
    "starting",
    "started",
    "notstarted",
    "provisioning",
    "waiting",
];

/// Maximum number of objects around the one that has the state.
const NESTED: usize = 3;

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
        match inputs.get(OPERATION)?.as_str()? {
            "start" => Some(Self::Start),
            "status" => Some(Self::Status),
            _ => None,
        }
    }

    /// The input `asyncPattern` of an action of a Logic Apps definition.
    pub fn of_pattern(inputs: &Value) -> Option<Self> {
        match inputs.get(ASYNC_PATTERN)? {
            Value::Bool(true) => Some(Self::Start),
            Value::String(_) => Some(Self::Status),
            _ => None,
        }
    }
}

/// Whether a request is for the result of an operation.
pub(super) fn is_result(inputs: &Value) -> bool {
    inputs.get(OPERATION).and_then(Value::as_str) == Some("result")
}

/// The fault of a request about an operation. A server that does not know the operation has removed it, if it ever
/// knew it.
pub(super) fn name_gone(fault: Fault, inputs: &Value) -> Fault {
    let step = inputs.get(OPERATION).and_then(Value::as_str);
    if !matches!(step, Some("status" | "check")) || fault.code.as_deref() != Some("404") {
        return fault;
    }
    Fault {
        message: format!("the operation is gone: {}", fault.message),
        ..fault
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
    let run = match step {
        Step::Start => dispatched_runs(&reply),
        Step::Status => found_run(&reply),
    };
    let is_sought = run.is_some() || reply.body.get(RUNS).is_some();
    let named = STATUS_HEADERS.iter().find_map(|name| text(&reply, name));
    let named = run.or(named);
    let accepted = reply.status == StatusCode::ACCEPTED;
    let done = match progress {
        Progress::Succeeded => step == Step::Status || named.is_none(),
        Progress::Running => false,
        Progress::Unknown if is_sought => false,
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
    let operation = Value::from_pairs(operation);
    Ok(with_member(reply.into_page(), OPERATION, Some(operation)))
}

/// The operation that an answer of the asynchronous pattern of Logic Apps starts or continues, a 202 with a `Location`:
/// the `address` to ask next and the time to `wait` before, a duration (Logic Apps reference, "Asynchronous
/// request-response pattern"). A later 202 without one keeps the address.
pub(super) fn pending(reply: &Reply, step: Step) -> Option<Value> {
    if reply.status != StatusCode::ACCEPTED {
        return None;
    }
    let address = match (text(reply, "location"), step) {
        (Some(location), _) => reply.url.join(&location).ok()?,
        (None, Step::Start) => return None,
        (None, Step::Status) => reply.url.clone(),
    };
    let wait = reply.requested_wait().unwrap_or(POLL_INTERVAL);
    let wait = Value::text(format_duration(wait.min(LONGEST_REQUESTED_WAIT)));
    Some(Value::from_pairs([
        ("address", url_text(address)),
        ("wait", wait),
    ]))
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
    let state = STATES.iter().find_map(|path| member_text(body, path));
    let Some((body, state)) = state.map(|state| (body, state)).or_else(|| nested(body)) else {
        return Ok(Progress::Unknown);
    };
    let word = plain_word(state);
    if FAILED.contains(&&*word) {
        return Err(reason(body, state));
    }
    if !SUCCEEDED.contains(&&*word) {
        return Ok(Progress::Running);
    }
    match member_text(body, "conclusion") {
        Some(conclusion) if !CONCLUSIONS.contains(&conclusion) => Err(conclusion.to_owned()),
        _ if matches!(error, Some(Value::Object(_) | Value::String(_))) => Err(reason(body, state)),
        // A batch of OpenAI of which no request succeeded.
        _ if body.get("output_file_id").is_some_and(Value::is_null) => {
            let errors = member_text(body, "error_file_id").unwrap_or("none");
            Err(format!(
                "no request of the batch succeeded; the file with the errors is {errors}"
            ))
        }
        _ => Ok(Progress::Succeeded),
    }
}

/// A word in lower case and without `_`, `-` and spaces.
fn plain_word(text: &str) -> String {
    let signs = text.chars().filter(|sign| sign.is_alphanumeric());
    signs.collect::<String>().to_ascii_lowercase()
}

/// The state that an answer has in objects around it: `{"QueryExecution": {"Status": {"State": "RUNNING"}}}`; and the
/// object that has it. Only a usual word counts: a result may have any state, such as that of an address.
fn nested(body: &Value) -> Option<(&Value, &str)> {
    let mut object = body;
    for _ in 0..=NESTED {
        let members = object.as_object()?;
        let of = |name: &str| {
            let mut named = members.iter();
            named.find_map(|(key, value)| key.eq_ignore_ascii_case(name).then_some(value))
        };
        let (status, state) = (of("status"), of("state"));
        let texts = status.into_iter().chain(state).filter_map(Value::as_str);
        let mut words = texts.filter(|text| {
            let word = plain_word(text);
            let known = [&SUCCEEDED[..], &FAILED, &RUNNING];
            known.iter().any(|words| words.contains(&&*word))
        });
        if let Some(word) = words.next() {
            return Some((object, word));
        }
        let only = || members.values().next().filter(|_| members.len() == 1);
        let inner = status.filter(|status| status.as_object().is_some());
        object = inner.or_else(only)?;
    }
    None
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

/// The list of the runs that GitHub began since a dispatch, if its answer does not say which one it began (GitHub REST
/// API, "List workflow runs"). The address has the time, so that nothing else needs to know it.
fn dispatched_runs(reply: &Reply) -> Option<String> {
    let path = reply.url.path().strip_suffix("/dispatches")?;
    if reply.status != StatusCode::NO_CONTENT {
        return None;
    }
    let (path, event) = match path.contains("/actions/workflows/") {
        true => (format!("{path}/runs"), "workflow_dispatch"),
        false => (format!("{path}/actions/runs"), "repository_dispatch"),
    };
    let now = http_date(&text(reply, "date")?)?;
    let since = Timestamp(now.0.saturating_sub(DISPATCH_MARGIN_MS));
    let mut url = reply.url.clone();
    url.set_path(&path);
    url.set_query(None);
    url.query_pairs_mut()
        .append_pair("event", event)
        .append_pair("created", &format!(">={since}"));
    Some(url.to_string())
}

/// The address of the run that a dispatch began: of that list, the one that was created nearest to the answer.
fn found_run(reply: &Reply) -> Option<String> {
    let mut pairs = reply.url.query_pairs();
    let (_, since) = pairs.find(|(name, _)| name == "created")?;
    let answered = to_ms(since.strip_prefix(">=")?)?.saturating_add(DISPATCH_MARGIN_MS);
    let runs = reply.body.get(RUNS)?.as_array()?.iter();
    let runs = runs.filter_map(|run| {
        let created = to_ms(member_text(run, "created_at")?)?.saturating_sub(answered);
        Some((created, member_text(run, "url")?))
    });
    let new = runs.filter(|(created, _)| *created >= -DISPATCH_MARGIN_MS);
    let (_, url) = new.min_by_key(|(created, _)| created.abs())?;
    Some(url.to_owned())
}

/// A time (RFC 3339) in milliseconds.
fn to_ms(time: &str) -> Option<i64> {
    let time = DateTime::parse_from_rfc3339(time).ok()?;
    Some(time.timestamp_millis())
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
    let listed = ["errors.data", "errors"].iter().filter_map(|path| {
        let first = member(body, path)?.as_array()?.first()?;
        first.as_str().or_else(|| member_text(first, "message"))
    });
    let texts = PLACES.iter().filter_map(|path| member_text(body, path));
    let reason = texts.chain(listed).next();
    reason.unwrap_or(word).to_owned()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_within_objects_is_found_if_its_word_is_usual() {
        let said = |text: &str| {
            let body = Value::from_json(text).unwrap();
            match progress(&body) {
                Ok(Progress::Running) => "running".to_owned(),
                Ok(Progress::Succeeded) => "succeeded".to_owned(),
                Ok(Progress::Unknown) => "unknown".to_owned(),
                Err(reason) => reason,
            }
        };
        for (body, expected) in [
            (
                r#"{"QueryExecution":{"Status":{"State":"RUNNING"}}}"#,
                "running",
            ),
            (
                r#"{"QueryExecution":{"Id":"a","Status":{"State":"SUCCEEDED"}}}"#,
                "succeeded",
            ),
            (
                r#"{"a":{"b":{"status":"failed","message":"no room"}}}"#,
                "no room",
            ),
            (r#"{"Status":"Queued"}"#, "running"),
            (r#"{"a":{"b":{"c":{"d":{"state":"running"}}}}}"#, "unknown"),
            (r#"{"address":{"state":"CA"}}"#, "unknown"),
            (r#"{"a":{"state":"running"},"b":1}"#, "unknown"),
            (r#"{"state":"still working"}"#, "running"),
            (r#"{"id":5,"name":"created"}"#, "unknown"),
        ] {
            assert_eq!(said(body), expected, "{body}");
        }
    }
}
