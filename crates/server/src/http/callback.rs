//! The URLs that `callbackUrl` returns. With each, one signal can be answered without a token.
//! In a browser, the URL shows the question. Only a POST answers it, because programs that check mails open every
//! link.

use super::app::App;
use super::body::{PathParam, ValidatedQuery, essence, is_json, json_value, read};
use crate::api::{Problem, RunState};
use axum::Extension;
use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;
use minijinja::Environment;
use minijinja::value::Serde;
use serde::{Deserialize, Serialize};
use std::sync::{Arc, LazyLock};
use utoipa::IntoParams;
use windlass_engine::report::{self, FieldKind, FormField, QuestionReport, field_text};
use windlass_engine::{
    Actor, CALLBACK_PATH, CallbackClaim, ErrorCode, Inspector, Name, Signal, Timestamp, Value, now,
};

/// The page for browsers.
static PAGE: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut pages = Environment::new();
    // The result is ignored: a test renders the page, and a page that cannot be parsed counts as missing.
    let _ = pages.add_template("callback.html", include_str!("callback.html"));
    pages
});

/// These headers forbid the page to load anything, and forbid other pages to show it in a frame.
const HEADERS: [(HeaderName, &str); 2] = [
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    ),
    (header::REFERRER_POLICY, "no-referrer"),
];

pub(super) fn routes() -> Router<Arc<App>> {
    Router::new().route(
        &format!("{CALLBACK_PATH}/{{run}}/{{signal}}"),
        get(question).post(answer),
    )
}

/// Returns true if a path is the URL of a callback. Its signature replaces a token.
pub(super) fn is_callback(path: &str) -> bool {
    path.strip_prefix(CALLBACK_PATH)
        .is_some_and(|rest| rest.starts_with('/'))
}

/// The parameters of a callback address. Mail programs and services may add parameters of their own.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct CallbackQuery {
    /// Number of signals of the name that the run had received, or stopped waiting for, when the address was made.
    received: u64,
    /// Time when the address expires, in milliseconds since 1970-01-01T00:00:00Z.
    expires: i64,
    /// Signature of the address.
    signature: String,
}

impl CallbackQuery {
    fn check(self, app: &App, run: &str, signal: &str) -> Result<CallbackClaim, Problem> {
        let claim = CallbackClaim {
            received: self.received,
            expires_at: Timestamp(self.expires),
        };
        if !app
            .engine
            .callbacks()
            .is_signed(run, signal, claim, &self.signature)
        {
            let detail = "the address is incomplete or was not made by this server";
            return Err(Problem::new(ErrorCode::Forbidden, detail));
        }
        if claim.expires_at < now() {
            let detail = format!("the address was valid until {}", claim.expires_at);
            return Err(Problem::new(ErrorCode::Expired, detail));
        }
        Ok(claim)
    }
}

/// Show the question that a callback address answers.
///
/// A browser receives a page with a form, other clients receive JSON. The address is made by `callbackUrl` in a
/// workflow, and needs no token.
#[utoipa::path(get, path = "/v1/callbacks/{run}/{signal}", operation_id = "get_callback", tag = "runs",
    params(("run" = String, Path, description = "Run id"), ("signal" = String, Path, description = "Name of the signal"), CallbackQuery),
    responses(
        (status = 200, description = "The question, without its title while the run does not wait for the signal", body = QuestionReport),
        (status = "4XX", description = "403 another signature, 404 unknown run, 409 it is answered, 410 the address has expired", body = Problem, content_type = "application/problem+json"),
    ))]
pub(super) async fn question(
    State(app): State<Arc<App>>,
    PathParam((run, signal)): PathParam<(String, String)>,
    ValidatedQuery(query): ValidatedQuery<CallbackQuery>,
    headers: HeaderMap,
) -> Response {
    let found = find(&app, query, &run, &signal).await;
    if !wants_page(&headers) {
        return found.map(axum::Json).into_response();
    }
    match found {
        Ok(question) => page(StatusCode::OK, &Page::form(run, signal, question, &[])),
        Err(problem) => problem_page(&problem),
    }
}

/// Answer a signal with a callback address.
///
/// The body is the payload as JSON, or the form of the page. The address is made by `callbackUrl` in a workflow, and
/// needs no token.
#[utoipa::path(post, path = "/v1/callbacks/{run}/{signal}", operation_id = "answer_callback", tag = "runs",
    params(("run" = String, Path, description = "Run id"), ("signal" = String, Path, description = "Name of the signal"), CallbackQuery),
    request_body(content = Option<Object>, description = "Payload of the signal"),
    responses(
        (status = 200, description = "State of the run; the change is durable", body = RunState),
        (status = "4XX", description = "403 another signature, 404 unknown run, 409 it is answered or has ended, 410 the address has expired, 422 the question does not accept it", body = Problem, content_type = "application/problem+json"),
    ))]
pub(super) async fn answer(
    State(app): State<Arc<App>>,
    Extension(actor): Extension<Actor>,
    PathParam((run, signal)): PathParam<(String, String)>,
    ValidatedQuery(query): ValidatedQuery<CallbackQuery>,
    request: Request,
) -> Response {
    let as_page = wants_page(request.headers());
    let actor = Actor {
        name: format!("link ({})", actor.from),
        ..actor
    };
    let delivered = deliver(&app, query, (&run, &signal), actor, request).await;
    match delivered {
        Ok(_) if as_page => {
            let shown = Page {
                run,
                is_answered: true,
                ..Page::default()
            };
            page(StatusCode::OK, &shown)
        }
        Ok(state) => axum::Json(state).into_response(),
        Err(Refusal { problem, form }) if as_page => match form {
            Some(form) => page(status_of(&problem), &form.with(problem)),
            None => problem_page(&problem),
        },
        Err(Refusal { problem, .. }) => problem.into_response(),
    }
}

/// Why an answer to the question was not accepted.
struct Refusal {
    problem: Problem,
    /// The page with the form as the person filled it in, so that it can be corrected and sent again.
    form: Option<Page>,
}

impl From<Problem> for Refusal {
    fn from(problem: Problem) -> Self {
        Self {
            problem,
            form: None,
        }
    }
}

async fn find(
    app: &App,
    query: CallbackQuery,
    run: &str,
    signal: &str,
) -> Result<QuestionReport, Problem> {
    let claim = query.check(app, run, signal)?;
    let (id, name) = (run.to_owned(), signal.to_owned());
    let read = move |store: &Inspector| report::callback_question(store, &id, &name, claim);
    app.inspect(read).await?.ok_or_else(|| {
        let detail =
            format!("run {run} has received `{signal}`, waits for it no more, or has ended");
        Problem::new(ErrorCode::Answered, detail)
    })
}

async fn deliver(
    app: &App,
    query: CallbackQuery,
    (run, signal): (&str, &str),
    actor: Actor,
    request: Request,
) -> Result<RunState, Refusal> {
    let received = query.received;
    // The signature is checked first, so that requests with invalid URLs cannot fill the audit log.
    let question = find(app, query, run, signal).await?;
    let kind = essence(request.headers());
    let bytes = read(request).await?;
    if kind != "application/x-www-form-urlencoded" {
        let payload = match bytes.is_empty() {
            true => Value::Null,
            false if is_json(&kind) => json_value(&bytes)?,
            false => {
                let detail = "send the header `Content-Type: application/json`";
                return Err(Problem::new(ErrorCode::MediaType, detail).into());
            }
        };
        return Ok(send(app, (run, signal), payload, received, actor).await?);
    }
    let members: Vec<(String, String)> = url::form_urlencoded::parse(&bytes).into_owned().collect();
    let sent = match entered(&question, &members) {
        Ok(payload) => send(app, (run, signal), payload, received, actor).await,
        Err(problem) => Err(problem),
    };
    sent.map_err(|problem| Refusal {
        form: (problem.code() == ErrorCode::RefusedAnswer)
            .then(|| Page::form(run.to_owned(), signal.to_owned(), question, &members)),
        problem,
    })
}

async fn send(
    app: &App,
    (run, signal): (&str, &str),
    payload: Value,
    received: u64,
    actor: Actor,
) -> Result<RunState, Problem> {
    let signal = Signal {
        name: Name::from(signal),
        payload,
        by: Some(Name::from(actor.name.as_str())),
        received: Some(received),
        id: None,
    };
    let command = async { Ok(app.engine.signal(run, signal).await?) };
    let recorded = app
        .audit
        .record(actor, "answer", Some(run), command, Problem::code);
    Ok(RunState {
        run: run.to_owned(),
        status: recorded.await?,
    })
}

/// Returns the answer to a question from the members that the page's form sends.
fn entered(question: &QuestionReport, members: &[(String, String)]) -> Result<Value, Problem> {
    if question.choices.is_empty() && question.fields.is_empty() {
        let members = members.iter();
        let members = members.map(|(name, text)| (name.as_str(), Value::text(text.as_str())));
        return Ok(Value::from_pairs(members));
    }
    let choice = text_of(members, "choice");
    let answer = question.answer(choice, |field| {
        text_of(members, &field_name(field)).map(str::to_owned)
    });
    answer.map_err(|why| Problem::new(ErrorCode::RefusedAnswer, why))
}

fn text_of<'m>(members: &'m [(String, String)], name: &str) -> Option<&'m str> {
    let found = members.iter().find(|(key, _)| key == name);
    found.map(|(_, text)| text.as_str())
}

/// Returns the name of a field in the form. Its prefix distinguishes it from the member `choice` of the form.
fn field_name(field: &FormField) -> String {
    format!("field.{}", field.name)
}

fn wants_page(headers: &HeaderMap) -> bool {
    let accepts = headers.get(header::ACCEPT);
    let accepts = accepts.and_then(|value| value.to_str().ok());
    accepts.is_some_and(|text| text.contains("text/html"))
}

/// The data of the page.
#[derive(Default, Serialize)]
struct Page {
    run: String,
    signal: String,
    question: QuestionReport,
    fields: Vec<ShownField>,
    has_form: bool,
    is_answered: bool,
    problem: Option<Problem>,
}

impl Page {
    /// Creates the page with a question's form. Its fields have the texts in `members`.
    fn form(
        run: String,
        signal: String,
        question: QuestionReport,
        members: &[(String, String)],
    ) -> Self {
        let fields = question.fields.iter().map(|field| {
            let entered = text_of(members, &field_name(field));
            ShownField::new(field, entered)
        });
        Self {
            run,
            signal,
            fields: fields.collect(),
            has_form: true,
            question,
            ..Self::default()
        }
    }

    fn with(self, problem: Problem) -> Self {
        Self {
            problem: Some(problem),
            ..self
        }
    }
}

/// A field of the form.
#[derive(Serialize)]
struct ShownField {
    name: String,
    label: String,
    /// The HTML element: `input`, `number`, `select` or `textarea`.
    element: &'static str,
    options: Vec<String>,
    required: bool,
    /// The text in the field when the page is opened.
    text: String,
}

impl ShownField {
    fn new(field: &FormField, entered: Option<&str>) -> Self {
        let default = || field.default.as_ref().map(field_text);
        let text = entered.map(str::to_owned).or_else(default);
        let mut options: Vec<String> = field.options.iter().map(field_text).collect();
        let element = match field.kind {
            FieldKind::Text => "input",
            FieldKind::Integer | FieldKind::Number => "number",
            FieldKind::Boolean => {
                options = vec![String::from("true"), String::from("false")];
                "select"
            }
            FieldKind::Options => "select",
            FieldKind::Json => "textarea",
        };
        Self {
            name: field_name(field),
            label: field.label.clone(),
            element,
            options,
            required: field.required,
            text: text.unwrap_or_default(),
        }
    }
}

fn problem_page(problem: &Problem) -> Response {
    page(status_of(problem), &Page::default().with(problem.clone()))
}

fn status_of(problem: &Problem) -> StatusCode {
    StatusCode::from_u16(problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

fn page(status: StatusCode, shown: &Page) -> Response {
    let rendered = PAGE
        .get_template("callback.html")
        .and_then(|page| page.render(Serde(shown)));
    match rendered {
        Ok(text) => (status, HEADERS, Html(text)).into_response(),
        Err(error) => Problem::new(ErrorCode::Internal, error.to_string()).into_response(),
    }
}
