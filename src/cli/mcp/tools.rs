//! The tools for runs. Most of them send one request of the HTTP API.

use super::trial::Trial;
use super::{MAX_WAIT, resources};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::{Value as Json, json};
use windlass_engine::new_id;
use windlass_server::api::StartRun;
use windlass_server::client::Method;

/// The type of an argument.
#[derive(Clone, Copy)]
enum Kind {
    Text,
    /// A whole number from the first to the second number.
    Whole(u64, u64),
    Object,
    Any,
}

/// An argument: its name, its type, whether it is required, and its description.
type Argument = (&'static str, Kind, bool, &'static str);

const RUN: Argument = ("run", Kind::Text, true, "the run's id");
const LOOP: Argument = (
    "loop",
    Kind::Text,
    true,
    "the loop's path: `poll`, or `outer#2/inner` for the inner loop in iteration 2 of `outer`",
);
const TEXT: Argument = (
    "text",
    Kind::Text,
    true,
    "the workflow, YAML or JSON; workflow_reference describes the format",
);
const FORMAT: Argument = (
    "dialect",
    Kind::Text,
    false,
    "loom, azure, tea or canvas; without it the file's shape decides",
);
const STATUS: Argument = (
    "status",
    Kind::Text,
    false,
    "Running, Waiting, Paused, Succeeded, Failed, TimedOut, Cancelled; several with commas",
);
const LIMIT: Argument = (
    "limit",
    Kind::Whole(1, 1_000),
    false,
    "maximum number of entries (20)",
);

/// A tool: its name, its description, whether it is read-only, and its arguments.
type ToolSpec = (&'static str, &'static str, bool, &'static [Argument]);

const READ_ONLY: bool = true;
const WRITES: bool = false;

macro_rules! tools {
    ($($name:literal $does:ident $about:literal [$($argument:expr),*])*) => {
        &[$(($name, $about, $does, &[$($argument),*])),*]
    };
}

const TOOLS: &[ToolSpec] = tools! {
    "workflow_reference" READ_ONLY
        "How a workflow file is written: every type of action, loops, retries, expressions. Read it before you write one."
        [("format", Kind::Text, false, "loom (default), tea or canvas")]
    "validate_workflow" READ_ONLY
        "Checks a workflow without starting it. Returns all diagnostics with line and hint."
        [TEXT, FORMAT]
    "test_workflow" READ_ONLY
        "Runs a workflow on a virtual clock with stubs in the place of requests and commands: what it would do, and its \
         output. Nothing is sent."
        [
            TEXT, FORMAT, ("inputs", Kind::Object, false, "its inputs by name"),
            ("stubs", Kind::Object, false, "by the name of an action, or `http`, `shell`: a body, {statusCode, body}, {exitCode, stdout}, {error: {kind, message}}, or a list with one for each call, of which the last repeats; `operation` asks as NAME.start, NAME.status, NAME.result"),
            ("signals", Kind::Any, false, "the payloads of the signals that it waits for, by name; or a list of such objects, in order"),
            ("state", Kind::Object, false, "the `state` between runs as it is before, by name"),
            ("at", Kind::Text, false, "stop after this: `check`, `poll#14`, `poll#14/check`")
        ]
    "evaluate" READ_ONLY
        "The value of an expression."
        [
            ("expression", Kind::Text, true, "such as `@equals(body('check').state, 'done')` or `{{ actions.check.outputs.body.state }}`"),
            ("context", Kind::Object, false, "what it reads: {inputs: {…}, vars: {…}, actions: {check: {outputs: {body: …}}}, …}")
        ]
    "start_run" WRITES
        "Starts a durable run of a workflow: of its text, or of a workflow saved on the server. \
         Returns the run's id at once. A repeated id is refused, so an id of your own makes a \
         start safe to repeat."
        [
            ("text", Kind::Text, false, "the workflow, YAML or JSON; or else `workflow`"),
            ("workflow", Kind::Text, false, "the name of a saved workflow"), FORMAT,
            ("id", Kind::Text, false, "an id for the run"),
            ("inputs", Kind::Object, false, "its inputs by name"),
            ("labels", Kind::Object, false, "labels of the run, by name")
        ]
    "list_runs" READ_ONLY
        "Lists runs, newest first, with what each does, waits for or failed with."
        [
            STATUS, ("workflow", Kind::Text, false, "only runs of this workflow"),
            ("label", Kind::Text, false, "only runs with this label: NAME=TEXT"),
            ("contains", Kind::Text, false, "only runs with this text in their id, workflow or labels"), LIMIT
        ]
    "get_run" READ_ONLY
        "Why a run is where it is: its loops with iteration and condition, what it waits for, its error or output."
        [RUN]
    "wait_for_run" READ_ONLY
        "Waits for a run's end and returns its result, or what it does if it has not ended. One call with enough seconds \
         is better than many."
        [RUN, ("seconds", Kind::Whole(0, MAX_WAIT.as_secs()), false, "how long (50, or 600 if your client shows progress)")]
    "list_loops" READ_ONLY
        "The loops of a run, each with its path and how many iterations it made."
        [RUN]
    "list_iterations" READ_ONLY
        "The iterations of a loop: status, condition, duration, error and result."
        [
            RUN, LOOP, STATUS, ("from", Kind::Whole(0, u64::MAX), false, "the first one, from 0"),
            ("contains", Kind::Text, false, "only those with this text in their result or error"), LIMIT
        ]
    "get_iteration" READ_ONLY
        "One iteration whole: inputs, outputs, variables, attempts."
        [RUN, ("path", Kind::Text, true, "the iteration's path: `poll#14` is the fifteenth of `poll`")]
    "get_history" READ_ONLY
        "What happened to a run, event by event, and the last iterations of its loops."
        [RUN, LIMIT, ("after", Kind::Whole(0, u64::MAX), false, "only events after this number")]
    "signal_run" WRITES
        "Sends a signal to a run; an early signal is stored."
        [
            RUN, ("name", Kind::Text, true, "the signal's name"),
            ("payload", Kind::Any, false, "what it carries"),
            ("received", Kind::Whole(0, u64::MAX), false, "of the wait that it answers, from `get_run`: refused if another signal has answered it"),
            ("id", Kind::Text, false, "an id of your own makes a repetition safe: a run receives it once")
        ]
    "pause_run" WRITES
        "Pauses a run: effects in flight end, nothing new starts."
        [RUN]
    "resume_run" WRITES
        "Resumes a paused run."
        [RUN]
    "cancel_run" WRITES
        "Ends a run as cancelled. This cannot be undone."
        [RUN]
    "retry_run" WRITES
        "Retries a run that failed, timed out or was cancelled, as a new run."
        [
            RUN,
            ("from", Kind::Text, false, "where it restarts: `failed`, `fetch`, `poll#14`; default: the beginning")
        ]
};

/// What is done for a tool call.
pub enum Call {
    /// Send a request to the store's owner.
    Ask(Request),
    /// Return this text.
    Page(&'static str),
    /// Wait until this run has ended.
    Wait { run: String, seconds: Option<u64> },
    /// Try a workflow or an expression in this process, without starting a run.
    Try(Trial, JsonObject),
}

/// A request of the HTTP API.
pub struct Request {
    pub method: Method,
    pub path: String,
    pub query: Vec<(&'static str, String)>,
    pub body: Option<Json>,
    /// Whether the request starts a run. Then the answer contains the id of the run.
    pub starts: bool,
}

impl Request {
    /// Returns whether the request may be executed twice with the same effect.
    pub fn is_repeatable(&self) -> bool {
        let has_id = |body: &Json| {
            ["run", "id"]
                .iter()
                .any(|id| body.get(id).is_some_and(Json::is_string))
        };
        let ends = ["/pause", "/resume", "/cancel"];
        self.method == Method::GET
            || self.body.as_ref().is_some_and(has_id)
            || ends.iter().any(|end| self.path.ends_with(end))
            || self.path == "/v1/validate"
    }

    fn new(method: Method, path: impl Into<String>) -> Self {
        Self {
            method,
            path: path.into(),
            query: Vec::new(),
            body: None,
            starts: false,
        }
    }

    /// Returns the request that starts a run.
    pub fn start(body: Json) -> Self {
        Self {
            body: Some(body),
            starts: true,
            ..Self::new(Method::POST, RUNS_PATH)
        }
    }
}

/// The path of the list of runs. A POST to this path starts a run.
const RUNS_PATH: &str = "/v1/runs";

/// Maximum length of a run id in bytes.
const MAX_RUN: usize = 1_000;

fn of_run(run: &str, what: &str, method: Method, body: Option<Json>) -> Request {
    let run = utf8_percent_encode(run, NON_ALPHANUMERIC);
    Request {
        body,
        ..Request::new(method, format!("{RUNS_PATH}/{run}{what}"))
    }
}

/// Checks that a URL can contain a run id.
///
/// # Errors
/// The id is empty, is `.` or `..` (which a path cannot contain even if they are escaped), or is too long.
pub fn check_run(run: &str) -> Result<(), String> {
    match run {
        "" | "." | ".." => Err(String::from(
            "`run` has to be the id of a run: ask `list_runs` for those there are",
        )),
        run if run.len() > MAX_RUN => Err(String::from("unknown run: its id is too long")),
        _ => Ok(()),
    }
}

/// Returns the request for the status of a run.
pub fn status(run: &str) -> Request {
    of_run(run, "", Method::GET, None)
}

/// Returns the request for the files of a run's workflow.
pub fn source(run: &str) -> Request {
    of_run(run, "/source", Method::GET, None)
}

pub fn resume(run: &str) -> Request {
    of_run(run, "/resume", Method::POST, None)
}

pub fn cancel(run: &str) -> Request {
    of_run(run, "/cancel", Method::POST, None)
}

pub fn signal(run: &str, name: &str, payload: &Json, received: Option<u64>, id: &str) -> Request {
    let body = json!({ "name": name, "payload": payload, "received": received, "id": id });
    of_run(run, "/signal", Method::POST, Some(body))
}

/// Returns the request for the runs whose ids begin with `prefix`.
pub fn list_with_prefix(prefix: &str) -> Request {
    Request {
        query: vec![("prefix", prefix.to_owned())],
        ..Request::new(Method::GET, RUNS_PATH)
    }
}

/// Returns the request for a page of runs, the newest first.
pub fn list_page(limit: u64, after: Option<&str>) -> Request {
    let after = after.map(|after| ("after", after.to_owned()));
    Request {
        query: [("limit", limit.to_string())]
            .into_iter()
            .chain(after)
            .collect(),
        ..Request::new(Method::GET, RUNS_PATH)
    }
}

/// Returns the request for a run's result.
/// The server answers when the run has ended, or after `seconds` seconds.
pub fn result(run: &str, seconds: u64) -> Request {
    Request {
        query: vec![("wait", seconds.to_string())],
        ..of_run(run, "/result", Method::GET, None)
    }
}

/// Returns the descriptions of all tools for an agent.
pub fn described() -> Vec<Tool> {
    let tools = TOOLS.iter();
    let tools = tools.map(|&(name, about, is_read_only, arguments)| {
        let hints = ToolAnnotations::new().read_only(is_read_only);
        let hints = hints.destructive(name == "cancel_run");
        Tool::new(name, about, schema(arguments)).with_annotations(hints)
    });
    tools.collect()
}

fn schema(arguments: &[Argument]) -> JsonObject {
    let property = |&(name, kind, _, about): &Argument| {
        let described = match kind {
            Kind::Text => json!({ "type": "string", "description": about }),
            Kind::Whole(min, u64::MAX) => {
                json!({ "type": "integer", "minimum": min, "description": about })
            }
            Kind::Whole(min, max) => {
                json!({ "type": "integer", "minimum": min, "maximum": max, "description": about })
            }
            Kind::Object => json!({ "type": "object", "description": about }),
            Kind::Any => json!({ "description": about }),
        };
        (name.to_owned(), described)
    };
    let needed = arguments.iter().filter(|(_, _, needed, _)| *needed);
    let needed: Vec<&str> = needed.map(|(name, ..)| *name).collect();
    let properties: JsonObject = arguments.iter().map(property).collect();
    object_schema(properties, &needed)
}

/// Returns the JSON Schema of an object with these members and no others.
pub fn object_schema(properties: JsonObject, required: &[impl AsRef<str>]) -> JsonObject {
    let required: Vec<&str> = required.iter().map(AsRef::as_ref).collect();
    JsonObject::from_iter([
        ("type".to_owned(), json!("object")),
        ("properties".to_owned(), Json::Object(properties)),
        ("required".to_owned(), json!(required)),
        ("additionalProperties".to_owned(), json!(false)),
    ])
}

/// Returns the message about an argument that a tool does not have.
pub fn unknown_argument(name: &str, known: &[impl AsRef<str>]) -> String {
    let known: Vec<&str> = known.iter().map(AsRef::as_ref).collect();
    format!(
        "unknown argument `{name}` (expected one of: {})",
        known.join(", ")
    )
}

/// Returns what to do for a tool call.
///
/// # Errors
/// A message that helps the agent to correct the call: the tool is unknown, or an argument is unknown, missing or of
/// another type.
pub fn call(name: &str, given: JsonObject) -> Result<Call, String> {
    let tool = TOOLS.iter().find(|tool| tool.0 == name);
    let &(name, _, _, arguments) = tool.ok_or_else(|| format!("unknown tool `{name}`"))?;
    check(arguments, &given)?;
    let text = |name: &str| given.get(name).and_then(Json::as_str).map(str::to_owned);
    let number = |name: &str| given.get(name).and_then(Json::as_u64);
    let limit = || ("limit", number("limit").unwrap_or(20).to_string());
    let run = text("run");
    run.as_deref().map_or(Ok(()), check_run)?;
    let run = run.unwrap_or_default();
    let with = |fields: &[(&'static str, &str)]| -> Vec<(&'static str, String)> {
        let given = fields.iter();
        let given = given.filter_map(|&(query, argument)| Some((query, text(argument)?)));
        given.chain([limit()]).collect()
    };
    let from = || number("from").map(|from| ("from", from.to_string()));
    let run_request = |what: &str, query| Request {
        query,
        ..of_run(&run, what, Method::GET, None)
    };
    let command = |what: &str| of_run(&run, what, Method::POST, None);
    let request = match name {
        "workflow_reference" => return page(text("format").as_deref()),
        // The workflow is validated as a guest (a workflow that is not from the operator), because it will be started
        // as one.
        "validate_workflow" => Request {
            query: vec![("guest", "true".to_owned())],
            body: Some(Json::Object(given)),
            ..Request::new(Method::POST, "/v1/validate")
        },
        "test_workflow" => return Ok(Call::Try(Trial::Test, given)),
        "evaluate" => return Ok(Call::Try(Trial::Evaluate, given)),
        "start_run" => Request::start(start(given)?),
        "list_runs" => {
            let fields = [
                ("status", "status"),
                ("workflow", "workflow"),
                ("label", "label"),
                ("text", "contains"),
            ];
            let mut query = with(&fields);
            query.push(("detail", "true".to_owned()));
            Request {
                query,
                ..Request::new(Method::GET, RUNS_PATH)
            }
        }
        "get_run" => status(&run),
        "wait_for_run" => {
            let seconds = number("seconds");
            return Ok(Call::Wait { run, seconds });
        }
        "list_loops" => run_request("/loops", Vec::new()),
        "list_iterations" => {
            let mut query = with(&[("loop", "loop"), ("status", "status"), ("text", "contains")]);
            query.extend(from());
            run_request("/iterations", query)
        }
        "get_iteration" => {
            let path = text("path").map(|path| ("path", path));
            run_request("/iteration", path.into_iter().collect())
        }
        "get_history" => {
            let (limit, after) = (limit(), number("after"));
            let mut query = vec![("events", "true".to_owned())];
            query.push(("iterations", limit.1.clone()));
            query.push(limit);
            query.extend(after.map(|after| ("after", after.to_string())));
            run_request("/history", query)
        }
        "signal_run" => {
            let payload = given.get("payload").cloned().unwrap_or_default();
            let id = text("id").unwrap_or_else(|| new_id("signal"));
            let name = text("name").unwrap_or_default();
            signal(&run, &name, &payload, number("received"), &id)
        }
        "pause_run" => command("/pause"),
        "resume_run" => resume(&run),
        "cancel_run" => cancel(&run),
        "retry_run" => Request {
            starts: true,
            body: text("from").map(|from| json!({ "from": from })),
            ..command("/retry")
        },
        other => return Err(format!("the tool `{other}` is not made yet: this is a bug")),
    };
    Ok(Call::Ask(request))
}

fn check(arguments: &[Argument], given: &JsonObject) -> Result<(), String> {
    let names: Vec<&str> = arguments.iter().map(|(name, ..)| *name).collect();
    for name in given.keys() {
        if !names.contains(&name.as_str()) {
            return Err(unknown_argument(name, &names));
        }
    }
    for &(name, kind, needed, about) in arguments {
        let value = given.get(name).filter(|value| !value.is_null());
        let fits = match (value, kind) {
            (None, _) => !needed,
            (Some(value), Kind::Text) => value.is_string(),
            (Some(value), Kind::Whole(min, max)) => value
                .as_u64()
                .is_some_and(|number| (min..=max).contains(&number)),
            (Some(value), Kind::Object) => value.is_object(),
            (Some(_), Kind::Any) => true,
        };
        if !fits {
            let wanted = match kind {
                Kind::Text => String::from("a text"),
                Kind::Whole(0, u64::MAX) => String::from("a whole number"),
                Kind::Whole(min, max) => format!("a whole number from {min} to {max}"),
                Kind::Object => String::from("an object"),
                Kind::Any => String::from("a value"),
            };
            return Err(format!("`{name}` has to be {wanted}: {about}"));
        }
    }
    Ok(())
}

fn page(format: Option<&str>) -> Result<Call, String> {
    let format = format.unwrap_or("loom");
    let page = resources::reference(format);
    let page = page.ok_or_else(|| format!("no format `{format}`: loom, azure, tea or canvas"))?;
    Ok(Call::Page(page.text))
}

/// Returns the body of a request that starts a run.
/// The workflow of an agent is a guest (not from the operator), whichever user started this process.
fn start(mut given: JsonObject) -> Result<Json, String> {
    for (argument, member) in [("id", "run"), ("inputs", "input")] {
        if let Some(value) = given.remove(argument) {
            given.insert(member.to_owned(), value);
        }
    }
    given.retain(|_, value| !value.is_null());
    let body = Json::Object(given);
    let checked: Result<StartRun, _> = serde_json::from_value(body.clone());
    // `check` has checked the types of the arguments, but not those of the labels.
    checked.map_err(|error| format!("`labels` has to have texts: {error}"))?;
    Ok(body)
}
