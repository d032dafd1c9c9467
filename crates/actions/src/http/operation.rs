//! Long operations: an answer of the server says that the work is not done yet. This module reads from the answers
//! whether the operation has ended, and the address of the next request about it.
//!
//! Supported are the `Location`, `Operation-Location` and `Azure-AsyncOperation` headers (RFC 9110, 15.3.3; Azure REST
//! API guidelines, "Long-running operations"), operations of Google (`google.longrunning.Operation`; Compute Engine),
//! background responses and batches of OpenAI, jobs of Kubernetes, runs of GitHub Actions, and answers with a `status`
//! or a `state` in the usual words. For any other server, the author has to write expressions that read the answers.

use super::previous::{is_same, with_member};
use super::reply::{Reply, url_text};
use chrono::DateTime;
use reqwest::{Method, StatusCode, Url};
use std::time::Duration;
use windlass_expression::Value;
use windlass_model::model::{ASYNC_PATTERN, Fault, fault_kind};
use windlass_value::time::{Timestamp, format_duration};
use windlass_value::{LONGEST_REQUESTED_WAIT, http_date};

/// The name of an input and of a member of outputs. The input is the kind of request about an operation. The member has
/// the progress of the operation.
pub(super) const OPERATION: &str = "operation";

/// The member of `operation` with the input `operation` of the next request.
const STEP: &str = "step";

/// The message about a start whose answer has no address.
const NO_ADDRESS: &str = "the operation runs, but the answer to its start has no address for its status: \
                          set `status`, for example status: { uri: \"https://…\" }";

/// The member with the runs in GitHub's list of workflow runs.
const RUNS: &str = "workflow_runs";

/// Maximum time, in milliseconds, between the creation of a run of GitHub Actions and the answer to the request
/// (dispatch) that started it.
const DISPATCH_MARGIN_MS: i64 = 5_000;

/// The time between two requests about an operation, if the server names no time.
const POLL_INTERVAL: Duration = Duration::from_secs(20);

/// Headers with the address of the operation itself, not of its result.
const STATUS_HEADERS: [&str; 2] = ["operation-location", "azure-asyncoperation"];

/// Members of the first answer with the address of a running operation.
const ADDRESSES: [&str; 5] = [
    "statusQueryGetUri",
    "status_url",
    "statusUrl",
    "run_url",
    "urls.get",
];

/// Paths at which an answer may have the state of the operation.
const STATES: [&str; 7] = [
    "status",
    "state",
    "properties.provisioningState",
    "provisioningState",
    "status.phase",
    "status.state",
    "phase",
];

/// States of an operation that succeeded, in lower case and without `_`, `-` and spaces.
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

/// States of an operation that failed, in the same form as [`SUCCEEDED`].
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

/// States of a running operation, in the same form as [`SUCCEEDED`]. They are needed only for [`nested`] states: only
/// the word shows that such a state is about an operation.
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

/// Maximum number of objects that may enclose the object with a nested state.
const NESTED: usize = 3;

/// Conclusions of a run of GitHub Actions that do not mean a failure.
const CONCLUSIONS: [&str; 3] = ["success", "neutral", "skipped"];

/// The request to which an answer about an operation belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Start,
    /// A start after which the workflow does not need an address, because it has its own request for the status.
    Begin,
    Status(StateSource),
}

/// How a server has reported the state of an operation until now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StateSource {
    /// No body had a state. An answer with a status other than 202 ends the operation.
    StatusCode,
    /// A body had a state, so the operation ends only with a state.
    Body,
    /// A body had a state, but the server also follows the pattern in which a status other than 202 means the end. So a
    /// result ends the operation, too.
    Both,
}

impl StateSource {
    /// Each source with its text in the input and in the member `operation`.
    const TEXTS: [(Self, &str); 3] = [
        (Self::StatusCode, "status"),
        (Self::Body, "status-of-body"),
        (Self::Both, "status-of-both"),
    ];

    fn of(text: &str) -> Option<Self> {
        let (source, _) = Self::TEXTS.into_iter().find(|(_, known)| *known == text)?;
        Some(source)
    }

    fn text(self) -> Value {
        let mut texts = Self::TEXTS.into_iter();
        let text = texts.find_map(|(source, text)| (source == self).then_some(text));
        Value::text(text.unwrap_or_default())
    }

    /// Returns the source after an answer to a step. `follows_202` is true if the status 202 of the answer means that
    /// a later status means the end.
    fn after(step: Step, progress: &Result<Progress, String>, follows_202: bool) -> Self {
        let source = match step {
            Step::Status(source) => source,
            Step::Start | Step::Begin => Self::StatusCode,
        };
        match (source, progress) {
            (Self::StatusCode, Ok(Progress::Unknown)) | (Self::Both, _) => source,
            _ if follows_202 => Self::Both,
            _ => Self::Body,
        }
    }
}

impl Step {
    /// Reads the input `operation` of an action.
    pub fn of(inputs: &Value) -> Option<Self> {
        match inputs.get(OPERATION)?.as_str()? {
            "start" => Some(Self::Start),
            "begin" => Some(Self::Begin),
            text => StateSource::of(text).map(Self::Status),
        }
    }

    fn is_status(self) -> bool {
        matches!(self, Self::Status(_))
    }

    /// Reads the input `asyncPattern` of an action in a Logic Apps definition.
    pub fn of_pattern(inputs: &Value) -> Option<Self> {
        match inputs.get(ASYNC_PATTERN)? {
            Value::Bool(true) => Some(Self::Start),
            Value::String(_) => Some(Self::Status(StateSource::StatusCode)),
            _ => None,
        }
    }
}

/// Returns true if a request is for the result of an operation.
pub(super) fn is_result(inputs: &Value) -> bool {
    inputs.get(OPERATION).and_then(Value::as_str) == Some("result")
}

/// Extends the fault of a request about an operation. The status 404 means that the server has removed the operation,
/// or never had it.
pub(super) fn explain_404(fault: Fault, inputs: &Value) -> Fault {
    let step = inputs.get(OPERATION).and_then(Value::as_str);
    if !step.is_some_and(|step| step == "check" || step.starts_with("status"))
        || fault.code.as_deref() != Some("404")
    {
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
    /// The answer does not contain the state of the operation.
    Unknown,
}

/// Returns the output of an answer, with the member `operation`. This member has `done`, the input `operation` of the
/// next request as `step`, the `address` of the next request, the address of the `result`, and the `response` that
/// the answer contains. The last three may be null. `requested` is the address of the request, before redirects.
///
/// # Errors
/// Returns a fault if the operation failed, or if no valid address for the next request is known.
pub(super) fn output(
    reply: Reply,
    step: Step,
    method: &Method,
    requested: Option<&Url>,
) -> Result<Value, Fault> {
    let accepted = reply.status == StatusCode::ACCEPTED;
    let progress = progress(&reply.body);
    // An answer at the address of a status header always has a state. That of `Location` may be the result.
    let named = STATUS_HEADERS.iter().find_map(|name| text(&reply, name));
    let has_location = named.is_none() && text(&reply, "location").is_some();
    let follows_202 = accepted && (step.is_status() || has_location);
    let source = (
        STEP,
        StateSource::after(step, &progress, follows_202).text(),
    );
    if step == Step::Begin {
        let operation = Value::from_pairs([source]);
        return Ok(with_member(reply.into_page(), OPERATION, Some(operation)));
    }
    let progress = match progress {
        Ok(progress) => progress,
        Err(reason) => {
            let message = format!("the operation failed: {reason}");
            return Err(Fault::new(fault_kind::OPERATION, message).output(reply.into_page()));
        }
    };
    let run = match step.is_status() {
        false => dispatched_runs(&reply),
        true => found_run(&reply),
    };
    let is_sought = run.is_some() || reply.body.get(RUNS).is_some();
    let named = run.or(named);
    let done = match (progress, step) {
        (Progress::Succeeded, _) => step.is_status() || named.is_none(),
        (Progress::Running, _) => false,
        (Progress::Unknown, _) if is_sought || accepted => false,
        (Progress::Unknown, Step::Status(StateSource::StatusCode)) => true,
        (Progress::Unknown, Step::Status(StateSource::Both)) => is_result_body(&reply),
        // Some servers redirect from the address of an operation that has ended to its result.
        (Progress::Unknown, Step::Status(StateSource::Body)) => {
            requested.is_some_and(|requested| is_other_path(requested, &reply.url))
                && is_result_body(&reply)
        }
        (Progress::Unknown, _) => named.is_none() && named_address(&reply.body).is_none(),
    };
    let location = text(&reply, "location");
    let address = match (done, named.or(location.clone().filter(|_| accepted))) {
        (true, _) => None,
        (false, Some(named)) => Some(named),
        // A redirect may lead to another page only once.
        (false, None) if step.is_status() => Some(requested.unwrap_or(&reply.url).to_string()),
        (false, None) => Some(
            started_at(&reply)
                .or(location.clone())
                .ok_or_else(|| Fault::new(fault_kind::OPERATION, NO_ADDRESS))?,
        ),
    };
    if let Some(address) = &address
        && let Err(error) = reply.url.join(address)
    {
        let headers = STATUS_HEADERS.iter().chain(&["location"]);
        let mut headers = headers.filter(|name| text(&reply, name).as_ref() == Some(address));
        let place = match headers.next() {
            Some(header) => format!("the header `{header}`"),
            None => "the answer".to_owned(),
        };
        let message =
            format!("{place} has an invalid address of the operation, `{address}`: {error}");
        return Err(Fault::new(fault_kind::OPERATION, message).output(reply.into_page()));
    }
    let result = match step.is_status() {
        // In Azure, a PUT creates the resource at the address of the PUT, and the answer to a POST names the address of
        // the resource.
        false if !done && *method == Method::PUT => Some(reply.url.to_string()),
        false if !done => location.filter(|at| Some(at) != address.as_ref()),
        true if done => result_of(&reply),
        _ => None,
    };
    let response = reply
        .body
        .get("response")
        .filter(|_| done && is_google(&reply.body));
    let operation = [
        ("done", Value::Bool(done)),
        source,
        ("address", address.map_or(Value::Null, Value::text)),
        ("result", result.map_or(Value::Null, Value::text)),
        ("response", response.cloned().unwrap_or(Value::Null)),
    ];
    let operation = Value::from_pairs(operation);
    Ok(with_member(reply.into_page(), OPERATION, Some(operation)))
}

/// Returns the pending operation if an answer follows the asynchronous pattern of Logic Apps: status 202 with a
/// `Location`. It has the `address` of the next request, and the duration to `wait` before this request (Logic Apps
/// reference, "Asynchronous request-response pattern"). If a later answer of status 202 has no `Location`, the address
/// remains the same.
pub(super) fn pending(reply: &Reply, step: Step) -> Option<Value> {
    if reply.status != StatusCode::ACCEPTED {
        return None;
    }
    let address = match (text(reply, "location"), step) {
        (Some(location), _) => reply.url.join(&location).ok()?,
        (None, Step::Status(_)) => reply.url.clone(),
        (None, _) => return None,
    };
    let wait = reply.requested_wait().unwrap_or(POLL_INTERVAL);
    let wait = Value::text(format_duration(wait.min(LONGEST_REQUESTED_WAIT)));
    Some(Value::from_pairs([
        ("address", url_text(address)),
        ("wait", wait),
    ]))
}

/// Returns true if the body of an answer without a state can be the result of an operation, and is not empty, the page
/// of a proxy, or an error.
fn is_result_body(reply: &Reply) -> bool {
    let is_html =
        text(reply, "content-type").is_some_and(|kind| kind.to_ascii_lowercase().contains("html"));
    let has_content = match &reply.body {
        Value::Null => false,
        Value::String(text) => !text.trim().is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(members) => !members.is_empty(),
        _ => true,
    };
    let error = reply.body.get("error").filter(|error| !error.is_null());
    has_content && !is_html && error.is_none()
}

/// Returns true if an answer is from another path than the one that was requested, because of a redirect.
fn is_other_path(requested: &Url, answered: &Url) -> bool {
    let [requested, answered] = [requested, answered].map(|url| url.path().trim_end_matches('/'));
    !is_same(requested, answered)
}

fn text(reply: &Reply, header: &str) -> Option<String> {
    let text = reply.headers.get(header)?.as_str()?.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// Returns the member at a path of names with dots between them.
fn member<'v>(body: &'v Value, path: &str) -> Option<&'v Value> {
    path.split('.')
        .try_fold(body, |value, name| value.get(name))
}

fn member_text<'v>(body: &'v Value, path: &str) -> Option<&'v str> {
    member(body, path)?.as_str().filter(|text| !text.is_empty())
}

/// Returns true if an answer is an operation of Google. Such an answer may lack `done` while the operation runs.
fn is_google(body: &Value) -> bool {
    let name = member_text(body, "name").unwrap_or_default();
    name.starts_with("operations/") || name.contains("/operations/")
}

/// Returns the progress of an operation.
///
/// # Errors
/// Returns the reason if the operation failed.
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
        // If a batch of OpenAI has no output file, none of its requests succeeded.
        _ if body.get("output_file_id").is_some_and(Value::is_null) => {
            let errors = member_text(body, "error_file_id").unwrap_or("none");
            Err(format!(
                "no request of the batch succeeded; the file with the errors is {errors}"
            ))
        }
        _ => Ok(Progress::Succeeded),
    }
}

/// Returns a word in lower case and without `_`, `-` and spaces.
fn plain_word(text: &str) -> String {
    let signs = text.chars().filter(|sign| sign.is_alphanumeric());
    signs.collect::<String>().to_ascii_lowercase()
}

/// Finds a state that is nested in other objects, as in `{"QueryExecution": {"Status": {"State": "RUNNING"}}}`. Returns
/// the state with the object that contains it. Finds only the usual words for states, because a `state` in a result may
/// have another meaning, such as a part of a postal address.
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

/// Returns the progress of a Kubernetes job. The job has ended if one of its conditions `Complete` and `Failed` is
/// true.
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

/// Returns the address of GitHub's list of the runs since a dispatch, if the answer to the dispatch does not name the
/// started run (GitHub REST API, "List workflow runs"). The time of the dispatch is a part of this address, so it need
/// not be stored separately.
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

/// Returns the address of the run that a dispatch started. In the list of [`dispatched_runs`], that is the run that was
/// created nearest to the time of the dispatch.
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

/// Converts a time (RFC 3339) to milliseconds.
fn to_ms(time: &str) -> Option<i64> {
    let time = DateTime::parse_from_rfc3339(time).ok()?;
    Some(time.timestamp_millis())
}

/// Returns the reason that an answer states for a failed operation. Without a reason, returns `word`.
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

/// Returns the address of an operation, from the answer to the request that started it.
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

/// Returns the address of an element below the address of a collection.
fn below(collection: &Url, id: &str) -> Option<String> {
    let mut url = collection.clone();
    url.set_query(None);
    url.path_segments_mut().ok()?.pop_if_empty().push(id);
    Some(url.to_string())
}

/// Returns the address of the result of an operation that has ended.
fn result_of(reply: &Reply) -> Option<String> {
    if let Some(named) = member_text(&reply.body, "resourceLocation") {
        return Some(named.to_owned());
    }
    // A batch of OpenAI writes its result to a file.
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
