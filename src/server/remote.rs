//! A client of the HTTP API that is asked like the owner of a store on this machine: the same
//! requests, the same answers, the same refusals.

use super::control::{ControlError, Refusal, RefusalKind, Request, StartRequest};
use super::http::{FileText, Problem, PruneRuns, RetryRun, Signal, StartRun};
use crate::engine::report::{
    DumpFilter, DumpReport, HistoryFilter, ListFilter, ListReport, OutcomeReport,
};
use crate::engine::{HistoryEvent, Notice, RunStatus, format_duration};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::redirect::Policy;
use reqwest::{Method, RequestBuilder, Response, Url};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::error::Error;
use std::time::Duration;
use url::Host;

/// How long a connection may take to come about.
const CONNECT_TIME: Duration = Duration::from_secs(10);

/// How long an answer may take; a stream of events is as long as it is.
const ANSWER_TIME: Duration = Duration::from_secs(120);

/// A stream that says nothing for so long is dead: a server sends a comment more often.
const SILENCE: Duration = Duration::from_secs(60);

/// So many runs are asked for at a time.
const PAGE: usize = 1_000;

/// As many rows as a server tells at once.
const MAX_ROWS: usize = 10_000;

/// What a name in a path is made of.
const PATH: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~');

/// A server somewhere.
#[derive(Clone)]
pub struct Remote {
    http: reqwest::Client,
    base: String,
    token: Option<String>,
}

/// Whether a URL leads to this machine.
fn is_here(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => ip.is_loopback(),
        Some(Host::Domain(name)) => {
            let name = name.trim_end_matches('.');
            name == "localhost" || name.ends_with(".localhost")
        }
        None => false,
    }
}

/// An answer that only says what a run does.
#[derive(Deserialize)]
struct Told {
    status: RunStatus,
}

impl Remote {
    /// A server at a URL, with the token that it wants. Nothing is sent yet.
    ///
    /// # Errors
    /// When the URL is none of http or https, or when the token would go to another machine as plain
    /// text and nobody allowed that, in words.
    pub fn new(url: &str, token: Option<String>, allow_plain: bool) -> Result<Self, String> {
        let parsed = Url::parse(url).map_err(|error| format!("`{url}` is no URL: {error}"))?;
        if !matches!(parsed.scheme(), "http" | "https") || parsed.host().is_none() {
            return Err(format!("`{url}` is no URL of a server: http://HOST:PORT"));
        }
        if token.is_some() && parsed.scheme() == "http" && !allow_plain && !is_here(&parsed) {
            let host = parsed.host_str().unwrap_or_default();
            return Err(format!(
                "the token would go to {host} as plain text: ask https://{host}, or say \
                 --allow-plain-http where nobody listens on the way"
            ));
        }
        let http = reqwest::Client::builder()
            // A redirect would take the token elsewhere.
            .redirect(Policy::none())
            .connect_timeout(CONNECT_TIME)
            .user_agent(concat!("windlass/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| chain(&error))?;
        Ok(Self {
            http,
            base: url.trim_end_matches('/').to_owned(),
            token,
        })
    }

    /// Its URL.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.base
    }

    /// Whether it takes work; also one without a token is told.
    ///
    /// # Errors
    /// [`ControlError`].
    pub async fn ready(&self) -> Result<(), ControlError> {
        let request = self.request(Method::GET, "/readyz").timeout(ANSWER_TIME);
        self.send(request).await.map(drop)
    }

    /// Asks, and reads the answer.
    ///
    /// # Errors
    /// [`ControlError`].
    pub async fn ask<T: DeserializeOwned>(&self, request: &Request) -> Result<T, ControlError> {
        let answer = match request {
            Request::List { filter } => json(&self.list(filter).await?)?,
            Request::Status { run } => self.get(&of_run(run, ""), &[]).await?,
            Request::History { run, filter } => self.history(run, filter).await?,
            Request::Dump { filter } => json(&self.dump(filter).await?)?,
            Request::Pause { run } => self.command(run, "/pause", None).await?,
            Request::Resume { run } => self.command(run, "/resume", None).await?,
            Request::Cancel { run } => self.command(run, "/cancel", None).await?,
            Request::Signal { run, name, payload } => {
                let signal = Signal {
                    name: name.clone(),
                    payload: payload.clone(),
                };
                self.command(run, "/signal", Some(json(&signal)?)).await?
            }
            Request::Start(start) => self.start(start).await?,
            Request::Retry { run, id, from } => {
                let body = RetryRun {
                    run: Some(id.clone()),
                    from: from.clone(),
                };
                let path = of_run(run, "/retry");
                let summary = self.post(&path, Some(json(&body)?)).await?;
                summary.get("run").cloned().unwrap_or_default()
            }
            Request::Prune { filter } => {
                let age = filter.older_than_ms.map(Duration::from_millis);
                let body = PruneRuns {
                    older_than: age.map(format_duration),
                    keep: filter.keep,
                    workflow: filter.workflow.clone(),
                    dry_run: filter.dry_run,
                };
                self.post("/v1/prune", Some(json(&body)?)).await?
            }
            Request::Recover { paused } => {
                let path = format!("/v1/resume?paused={paused}");
                let resumed = self.post(&path, None).await?;
                resumed.get("runs").cloned().unwrap_or_default()
            }
            Request::Ping | Request::Backup { .. } | Request::Follow { .. } => {
                return Err(only_local("that"));
            }
        };
        typed(answer)
    }

    /// Follows a run: its notices, and with `events` its history after that number.
    ///
    /// # Errors
    /// [`ControlError`].
    pub async fn follow(&self, run: &str, events: Option<u64>) -> Result<Notices, ControlError> {
        let request = self.request(Method::GET, &of_run(run, "/events"));
        let request = match events {
            Some(after) => request.query(&[("after", after)]),
            None => request.query(&[("history", false)]),
        };
        let response = self.send(request).await?;
        Ok(Notices {
            response,
            text: Vec::new(),
            ready: VecDeque::new(),
        })
    }

    async fn list(&self, filter: &ListFilter) -> Result<ListReport, ControlError> {
        let words: Vec<&str> = filter.status.iter().map(|status| status.as_str()).collect();
        let (status, labels) = (
            words.join(","),
            filter
                .labels
                .iter()
                .map(|(name, text)| format!("{name}={text}"))
                .collect::<Vec<_>>()
                .join(","),
        );
        let mut report = ListReport {
            runs: Vec::new(),
            more: 0,
            unfinished: 0,
            next: filter.after.clone(),
        };
        loop {
            let left = filter
                .limit
                .map_or(PAGE, |limit| limit.saturating_sub(report.runs.len()));
            let limit = left.clamp(1, PAGE).to_string();
            let mut query = vec![("limit", limit.as_str())];
            let given = [
                (
                    "status",
                    Some(status.as_str()).filter(|text| !text.is_empty()),
                ),
                (
                    "label",
                    Some(labels.as_str()).filter(|text| !text.is_empty()),
                ),
                ("workflow", filter.workflow.as_deref()),
                ("prefix", filter.prefix.as_deref()),
                ("after", report.next.as_deref()),
            ];
            query.extend(
                given
                    .into_iter()
                    .filter_map(|(name, text)| Some((name, text?))),
            );
            let page = self.get("/v1/runs", &query).await?;
            let page: ListReport = typed(page)?;
            report.runs.extend(page.runs);
            (report.more, report.next) = (page.more, page.next);
            report.unfinished = page.unfinished;
            let full = filter.limit.is_some_and(|limit| report.runs.len() >= limit);
            if report.next.is_none() || full {
                return Ok(report);
            }
        }
    }

    /// A dump of one run, or of all of them page by page.
    async fn dump(&self, filter: &DumpFilter) -> Result<DumpReport, ControlError> {
        let last = filter.iterations.unwrap_or(MAX_ROWS).to_string();
        let query = [("iterations", last.as_str())];
        if let Some(run) = &filter.run {
            return typed(self.get(&of_run(run, "/dump"), &query).await?);
        }
        let mut report: DumpReport = typed(self.get("/v1/dump", &query).await?)?;
        let mut after = report.runs.last().map(|run| run.header.run.clone());
        while let Some(run) = &after {
            let query = [("iterations", last.as_str()), ("after", run)];
            let page: DumpReport = typed(self.get("/v1/dump", &query).await?)?;
            after = page.runs.last().map(|run| run.header.run.clone());
            report.runs.extend(page.runs);
            report.unreadable.extend(page.unreadable);
        }
        Ok(report)
    }

    async fn history(&self, run: &str, filter: &HistoryFilter) -> Result<Value, ControlError> {
        let number = |count: Option<usize>| count.unwrap_or(MAX_ROWS).to_string();
        let (iterations, limit) = (number(filter.iterations), number(filter.limit));
        let after = filter.after.to_string();
        let mut query = vec![
            ("iterations", iterations.as_str()),
            ("limit", &limit),
            ("after", &after),
            ("events", if filter.events { "true" } else { "false" }),
        ];
        query.extend(filter.loop_path.as_deref().map(|path| ("loop", path)));
        self.get(&of_run(run, "/history"), &query).await
    }

    /// A command to a run gives what it does then.
    async fn command(
        &self,
        run: &str,
        verb: &str,
        body: Option<Value>,
    ) -> Result<Value, ControlError> {
        let told = self.post(&of_run(run, verb), body).await?;
        let told: Told = typed(told)?;
        json(&told.status)
    }

    async fn start(&self, start: &StartRequest) -> Result<Value, ControlError> {
        if !start.handlers.is_empty() || start.max_count.is_some() || start.max_timeout_ms.is_some()
        {
            return Err(only_local("run with handlers or caps of its own"));
        }
        let files = start.files.iter().map(|file| FileText {
            path: file.path.clone(),
            text: file.text.clone(),
        });
        let body = StartRun {
            workflow: None,
            text: Some(start.text.clone()),
            file: Some(start.path.clone()),
            files: files.collect(),
            dialect: start.dialect.clone(),
            run: Some(start.run.clone()),
            input: start.input.clone(),
            labels: start.labels.clone(),
        };
        let summary = self.post("/v1/runs", Some(json(&body)?)).await?;
        Ok(summary.get("run").cloned().unwrap_or_default())
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.http.request(method, format!("{}{path}", self.base));
        match &self.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }

    async fn get(&self, path: &str, query: &[(&str, &str)]) -> Result<Value, ControlError> {
        let request = self.request(Method::GET, path).query(query);
        read(self.send(request.timeout(ANSWER_TIME)).await?).await
    }

    async fn post(&self, path: &str, body: Option<Value>) -> Result<Value, ControlError> {
        let mut request = self.request(Method::POST, path).timeout(ANSWER_TIME);
        if let Some(body) = body {
            let kind = reqwest::header::CONTENT_TYPE;
            request = request
                .header(kind, "application/json")
                .body(body.to_string());
        }
        read(self.send(request).await?).await
    }

    /// Sends, and turns a problem into a refusal.
    async fn send(&self, request: RequestBuilder) -> Result<Response, ControlError> {
        let response = request.send().await.map_err(|error| {
            ControlError::Unreachable(format!("{}: {}", self.base, chain(&error)))
        })?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let text = response.text().await.unwrap_or_default();
        let problem: Problem = serde_json::from_str(&text).map_err(|_| {
            ControlError::Foreign(format!("{} answers {status} and no problem", self.base))
        })?;
        Err(refusal(&problem).into())
    }
}

fn json(value: &impl Serialize) -> Result<Value, ControlError> {
    serde_json::to_value(value).map_err(|error| ControlError::Foreign(error.to_string()))
}

async fn read(response: Response) -> Result<Value, ControlError> {
    let text = response.text().await.map_err(|_| ControlError::Lost)?;
    serde_json::from_str(&text).map_err(|error| ControlError::Foreign(error.to_string()))
}

fn typed<T: DeserializeOwned>(answer: Value) -> Result<T, ControlError> {
    serde_json::from_value(answer).map_err(|error| ControlError::Foreign(error.to_string()))
}

fn of_run(run: &str, what: &str) -> String {
    format!("/v1/runs/{}{what}", utf8_percent_encode(run, PATH))
}

fn only_local(what: &str) -> ControlError {
    let message = format!("`{what}` is not done over HTTP: a server on this machine does it");
    ControlError::Refused(Refusal {
        kind: RefusalKind::BadRequest,
        message,
    })
}

/// The refusal that a problem is, with the places of all mistakes.
fn refusal(problem: &Problem) -> Refusal {
    let kind = match problem.word() {
        "unknown-run" => RefusalKind::UnknownRun,
        "run-exists" => RefusalKind::Exists,
        "run-ended" => RefusalKind::Ended,
        "refused-input" | "key-reused" => RefusalKind::Input,
        "refused-workflow" | "not-loaded" => RefusalKind::Workflow,
        "unavailable" => RefusalKind::Stopping,
        "busy" => RefusalKind::Busy,
        "store" => RefusalKind::Store,
        "internal" => RefusalKind::Internal,
        _ => RefusalKind::BadRequest,
    };
    let mut message = match problem.word() {
        // Their details are what a process on this machine says.
        "unknown-run" | "run-exists" | "run-ended" | "not-retried" | "no-place" | "no-signal"
        | "not-loaded" | "key-reused" => problem.detail.clone(),
        _ => format!("{}: {}", problem.title, problem.detail),
    };
    if !problem.diagnostics.is_empty() {
        problem.title.clone_into(&mut message);
        for one in &problem.diagnostics {
            let file = one.file.as_deref().unwrap_or("workflow");
            let place = format!("{file}:{}:{}", one.line, one.column);
            message.push_str(&format!("\n{place}: {}: {}", one.severity, one.message));
            if let Some(hint) = &one.hint {
                message.push_str(&format!("\n  hint: {hint}"));
            }
        }
    }
    Refusal { kind, message }
}

/// An error and what it came from.
fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        text.push_str(&format!(": {inner}"));
        source = inner.source();
    }
    text
}

/// The notices of a run that is followed.
pub struct Notices {
    response: Response,
    /// What has come of the next event.
    text: Vec<u8>,
    ready: VecDeque<Notice>,
}

impl Notices {
    /// The next notice; none when nothing more comes.
    ///
    /// # Errors
    /// [`ControlError`].
    pub async fn next(&mut self) -> Result<Option<Notice>, ControlError> {
        loop {
            if let Some(notice) = self.ready.pop_front() {
                return Ok(Some(notice));
            }
            let chunk = tokio::time::timeout(SILENCE, self.response.chunk()).await;
            let chunk = chunk.map_err(|_| ControlError::Lost)?;
            let Some(chunk) = chunk.map_err(|_| ControlError::Lost)? else {
                return Ok(None);
            };
            self.text.extend_from_slice(&chunk);
            while let Some(end) = self.text.windows(2).position(|two| two == b"\n\n") {
                let block: Vec<u8> = self.text.drain(..end + 2).collect();
                self.ready.extend(notice(&String::from_utf8_lossy(&block))?);
            }
        }
    }
}

/// The notice of a server-sent event; none for a comment.
fn notice(block: &str) -> Result<Option<Notice>, ControlError> {
    let (mut name, mut id, mut data) = ("", "", "");
    for line in block.lines() {
        match line.split_once(": ") {
            Some(("event", text)) => name = text,
            Some(("id", text)) => id = text,
            Some(("data", text)) => data = text,
            _ => {}
        }
    }
    let foreign = |error: serde_json::Error| ControlError::Foreign(error.to_string());
    Ok(Some(match name {
        "history" => {
            let event: HistoryEvent = serde_json::from_str(data).map_err(foreign)?;
            let sequence = id.parse().unwrap_or(0);
            Notice::Event { sequence, event }
        }
        "finished" => {
            let outcome: OutcomeReport = serde_json::from_str(data).map_err(foreign)?;
            Notice::Finished { outcome }
        }
        "step" | "paused" | "stuck" => {
            let mut value: Value = serde_json::from_str(data).map_err(foreign)?;
            if name == "paused" {
                value = json!({ "pause": value });
            }
            if let Some(map) = value.as_object_mut() {
                map.insert(String::from("notice"), json!(name));
                map.entry("store").or_insert(json!(false));
            }
            serde_json::from_value(value).map_err(foreign)?
        }
        "error" => {
            let problem: Problem = serde_json::from_str(data).map_err(foreign)?;
            return Err(refusal(&problem).into());
        }
        _ => return Ok(None),
    }))
}
