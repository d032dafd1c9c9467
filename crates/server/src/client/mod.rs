//! A client of the HTTP API.
//! The other process is a server at a URL, or the owner (the process that has opened the store) of a store on this
//! machine. An owner is reached over its control socket.

mod error;
mod notices;

pub use error::ClientError;
pub use notices::Notices;
pub use reqwest::Method;

use crate::api::{
    BackupTo, BulkReport, BulkRuns, BulkVerb, LocalStart, Owner, Problem, PruneRuns, Resumed,
    RetryRun, RunState, SOCKET_NAME, Signal, StartRun, StateDirectory, StateList, StateValue,
    Ticket, WorkflowList, WorkflowText,
};
use error::chain;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, PercentEncode, utf8_percent_encode};
use reqwest::header::{CONTENT_TYPE, IF_MATCH, IF_NONE_MATCH};
use reqwest::redirect::Policy;
use reqwest::{ClientBuilder, RequestBuilder, Response, StatusCode, Url};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use url::Host;
use windlass_engine::report::{
    DumpFilter, DumpReport, ExportReport, HistoryFilter, HistoryReport, ListFilter, ListReport,
    RunSummary, ScheduleReport, ScheduledTime, ScheduledTimes, StateReport, StatusReport,
    VersionsReport, WorkflowReport, WorkflowSummary,
};
use windlass_engine::{
    AuditFilter, AuditReport, BackedUp, ErrorCode, Origin, PruneFilter, Pruned, PutIf, RunStatus,
    format_duration,
};

/// Timeout for connecting to a server.
const CONNECT_TIME: Duration = Duration::from_secs(10);

/// Timeout for a server's answer, except for streams of events.
const ANSWER_TIME: Duration = Duration::from_secs(120);

/// Timeout for the first answer of an owner. An owner that is not suspended answers in time, even if it is busy.
const PING_TIME: Duration = Duration::from_secs(5);

/// Maximum number of runs, and of iterations and events, in one request to a server. An owner has no maximum.
const PAGE: usize = 1_000;
const MAX_ROWS: usize = 10_000;
const ALL: usize = u32::MAX as usize;

/// The characters to escape when a name is a part of a path.
const PATH: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~');

/// A client of another process that manages runs.
#[derive(Clone)]
pub struct Client {
    http: reqwest::Client,
    base: String,
    token: Option<String>,
    /// The owner of a store on this machine. `None` for a server at a URL.
    owner: Option<Arc<LocalOwner>>,
}

struct LocalOwner {
    owner: Owner,
    /// The state directory. It is open for as long as the socket's address is used, because the address may refer to
    /// it.
    _directory: StateDirectory,
}

impl Client {
    /// Creates a client of a server at a URL, with an access token. Nothing is sent yet.
    ///
    /// # Errors
    /// If the URL is not an http or https URL, or if the token would be sent to another machine in plain text and
    /// `allow_plain` is false.
    pub fn for_url(url: &str, token: Option<String>, allow_plain: bool) -> Result<Self, String> {
        let parsed =
            Url::parse(url).map_err(|error| format!("`{url}` is not a valid URL: {error}"))?;
        if !matches!(parsed.scheme(), "http" | "https") || parsed.host().is_none() {
            return Err(format!(
                "`{url}` is not a valid URL of a server: http://HOST:PORT"
            ));
        }
        if token.is_some() && parsed.scheme() == "http" && !allow_plain && !is_here(&parsed) {
            let host = parsed.host_str().unwrap_or_default();
            return Err(format!(
                "the token would be sent to {host} in plain text: use https://{host}, or \
                 --allow-plain-http on a trusted network"
            ));
        }
        let http = builder().connect_timeout(CONNECT_TIME).build();
        Ok(Self {
            http: http.map_err(|error| chain(&error))?,
            base: url.trim_end_matches('/').to_owned(),
            token,
            owner: None,
        })
    }

    /// Connects to the owner of the store in a directory.
    /// Returns `None` if the store has no owner. A socket that a crash left behind does not count as an owner.
    ///
    /// # Errors
    /// [`ClientError::Silent`], [`ClientError::Foreign`], and [`ClientError::Socket`] if the socket belongs to another
    /// user.
    pub async fn for_state_dir(state: &Path) -> Result<Option<Self>, ClientError> {
        let Ok(directory) = StateDirectory::open(state) else {
            return Ok(None);
        };
        let Ok(address) = directory.socket(SOCKET_NAME) else {
            return Ok(None);
        };
        // No certificates are needed for a socket, and reading those of the system would slow every command down.
        let builder = builder().no_proxy().tls_built_in_root_certs(false);
        let http = builder.unix_socket(address).build();
        let mut client = Self {
            http: http.map_err(|error| ClientError::Foreign(chain(&error)))?,
            base: String::from("http://localhost"),
            token: None,
            owner: None,
        };
        let request = client.request(Method::GET, "/v1/owner").send();
        let answer = match tokio::time::timeout(PING_TIME, request).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(error)) => {
                return match ClientError::of_socket(&error) {
                    // No process listens, or it ended while the client connected.
                    ClientError::Lost => Ok(None),
                    ClientError::Socket(error) => {
                        let path = state.join(SOCKET_NAME);
                        let what = format!("{error}: {}", path.display());
                        Err(ClientError::Socket(io::Error::new(error.kind(), what)))
                    }
                    error => Err(error),
                };
            }
            Err(_) => return Err(ClientError::Silent),
        };
        let owner = read(client.accept(answer).await?).await?;
        client.owner = Some(Arc::new(LocalOwner {
            owner,
            _directory: directory,
        }));
        Ok(Some(client))
    }

    /// Returns the URL of the server.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.base
    }

    /// Returns the process that owns the store, or `None` for a server at a URL.
    #[must_use]
    pub fn owner(&self) -> Option<&Owner> {
        self.owner.as_ref().map(|local| &local.owner)
    }

    /// Checks whether a server accepts work. This needs no token.
    pub async fn ready(&self) -> Result<(), ClientError> {
        let request = self.request(Method::GET, "/readyz");
        self.send(request).await.map(drop)
    }

    /// Lists runs.
    pub async fn list(&self, filter: &ListFilter) -> Result<ListReport, ClientError> {
        let status = filter
            .status
            .iter()
            .map(|status| status.as_str().to_owned());
        let labels = filter.labels.iter();
        let labels = labels.map(|(name, text)| format!("{name}={text}"));
        // An empty name selects nothing, so it must not become a missing selector, which selects everything.
        let listed = |words: Vec<String>| (!words.is_empty()).then(|| words.join(","));
        let (status, labels) = (listed(status.collect()), listed(labels.collect()));
        let most = self.at_most(PAGE);
        let mut report = ListReport {
            next: filter.after.clone(),
            ..ListReport::default()
        };
        loop {
            let left = filter.limit.unwrap_or(usize::MAX);
            let left = left.saturating_sub(report.runs.len()).clamp(1, most);
            let mut query = vec![("limit", left.to_string())];
            let given = [
                ("status", status.clone()),
                ("label", labels.clone()),
                ("workflow", listed(filter.workflows.clone())),
                ("prefix", filter.prefix.clone()),
                ("text", filter.text.clone()),
                ("since", filter.since.map(|at| at.to_string())),
                ("until", filter.until.map(|at| at.to_string())),
                ("stuck_since", filter.stuck_since.map(|at| at.to_string())),
                ("detail", filter.detail.then(|| String::from("true"))),
                ("facets", filter.facets.then(|| String::from("true"))),
                ("after", report.next.clone()),
            ];
            let given = given.into_iter();
            query.extend(given.filter_map(|(name, text)| Some((name, text?))));
            let page: ListReport = self.get("/v1/runs", &query).await?;
            report.runs.extend(page.runs);
            (report.more, report.next, report.total) = (page.more, page.next, page.total);
            (report.unfinished, report.facets) = (page.unfinished, page.facets);
            let full = filter.limit.is_some_and(|limit| report.runs.len() >= limit);
            if report.next.is_none() || full {
                return Ok(report);
            }
        }
    }

    /// Returns the status of a run.
    pub async fn status(&self, run: &str) -> Result<StatusReport, ClientError> {
        self.get(&of_run(run, "")?, &()).await
    }

    /// Returns a run in one document.
    pub async fn export(&self, run: &str) -> Result<ExportReport, ClientError> {
        self.get(&of_run(run, "/export")?, &()).await
    }

    /// Returns the history of a run.
    pub async fn history(
        &self,
        run: &str,
        filter: &HistoryFilter,
    ) -> Result<HistoryReport, ClientError> {
        let number = |count: Option<usize>| count.unwrap_or(self.at_most(MAX_ROWS)).to_string();
        let mut query = vec![
            ("iterations", number(filter.iterations)),
            ("limit", number(filter.limit)),
            ("after", filter.after.to_string()),
            ("events", filter.events.to_string()),
        ];
        query.extend(filter.loop_path.clone().map(|path| ("loop", path)));
        self.get(&of_run(run, "/history")?, &query).await
    }

    /// Returns the checkpoint of one run, or of all runs.
    pub async fn dump(&self, filter: &DumpFilter) -> Result<DumpReport, ClientError> {
        let last = filter.iterations.unwrap_or(self.at_most(MAX_ROWS));
        let iterations = ("iterations", last.to_string());
        if let Some(run) = &filter.run {
            return self.get(&of_run(run, "/dump")?, &[iterations]).await;
        }
        let mut query = vec![iterations];
        if self.owner.is_some() {
            query.push(("limit", ALL.to_string()));
        }
        let mut report: DumpReport = self.get("/v1/dump", &query).await?;
        let mut after = report.runs.last().map(|run| run.header.run.clone());
        while let Some(run) = after.take_if(|_| self.owner.is_none()) {
            let query = [query.as_slice(), &[("after", run)]].concat();
            let page: DumpReport = self.get("/v1/dump", &query).await?;
            after = page.runs.last().map(|run| run.header.run.clone());
            report.runs.extend(page.runs);
            report.unreadable.extend(page.unreadable);
        }
        Ok(report)
    }

    /// Starts a run and returns its id.
    /// The run's first step is durable when this returns. `local.folder` is not sent to a server at a URL.
    pub async fn start(&self, start: &StartRun) -> Result<String, ClientError> {
        let mut start = start.clone();
        if self.owner.is_none()
            && let Some(local) = &mut start.local
        {
            local.folder = None;
            start.local = start.local.filter(|local| *local != LocalStart::default());
        }
        let run: RunSummary = self.post("/v1/runs", &start).await?;
        Ok(run.run)
    }

    /// Retries a run that did not succeed; returns the id of the new run.
    pub async fn retry(&self, run: &str, retry: &RetryRun) -> Result<String, ClientError> {
        let run: RunSummary = self.post(&of_run(run, "/retry")?, retry).await?;
        Ok(run.run)
    }

    /// Pauses a run. Returns the run's new status.
    pub async fn pause(&self, run: &str) -> Result<RunStatus, ClientError> {
        self.command(run, "/pause").await
    }

    /// Resumes a run. Returns the run's new status.
    pub async fn resume(&self, run: &str) -> Result<RunStatus, ClientError> {
        self.command(run, "/resume").await
    }

    /// Cancels a run. Returns the run's new status.
    pub async fn cancel(&self, run: &str) -> Result<RunStatus, ClientError> {
        self.command(run, "/cancel").await
    }

    /// Sends one command to many runs.
    pub async fn bulk(&self, verb: BulkVerb, runs: &[String]) -> Result<BulkReport, ClientError> {
        let mut report = BulkReport::default();
        for runs in runs.chunks(PAGE) {
            let runs = runs.to_vec();
            let page: BulkReport = self.post("/v1/runs/bulk", &BulkRuns { verb, runs }).await?;
            report.done.extend(page.done);
            report.failed.extend(page.failed);
        }
        Ok(report)
    }

    async fn command(&self, run: &str, verb: &str) -> Result<RunStatus, ClientError> {
        let request = self.request(Method::POST, &of_run(run, verb)?);
        let state: RunState = read(self.send(request).await?).await?;
        Ok(state.status)
    }

    /// Sends a signal to a run. Returns the run's new status.
    pub async fn signal(&self, run: &str, signal: &Signal) -> Result<RunStatus, ClientError> {
        let path = of_run(run, "/signal")?;
        let state: RunState = self.post(&path, signal).await?;
        Ok(state.status)
    }

    /// Resumes every run that has not ended, and returns the ids of these runs. Paused runs are included if `paused`
    /// is true.
    pub async fn recover(&self, paused: bool) -> Result<Vec<String>, ClientError> {
        let path = format!("/v1/resume?paused={paused}");
        let request = self.request(Method::POST, &path);
        let resumed: Resumed = read(self.send(request).await?).await?;
        Ok(resumed.runs)
    }

    /// Prunes runs that have ended.
    pub async fn prune(&self, filter: &PruneFilter) -> Result<Pruned, ClientError> {
        let age = filter.older_than_ms.map(Duration::from_millis);
        let request = PruneRuns {
            older_than: age.map(format_duration),
            keep: filter.keep,
            workflow: match filter.workflows.is_empty() {
                true => None,
                false => Some(filter.workflows.join(",")),
            },
            labels: filter.labels.clone(),
            status: filter.status.clone(),
            dry_run: filter.dry_run,
        };
        self.post("/v1/prune", &request).await
    }

    /// Requests the owner to release its store to a server. It does so if [`Owner::releases`] is true.
    pub async fn request_release(&self) -> Result<Owner, ClientError> {
        self.post("/v1/owner/release", &()).await
    }

    /// Requests the owner to copy its store into a directory, which must be an absolute path.
    pub async fn backup(&self, dir: &Path) -> Result<BackedUp, ClientError> {
        let dir = dir.display().to_string();
        self.post("/v1/backup", &BackupTo { dir }).await
    }

    /// Returns the stored workflows.
    pub async fn workflows(&self) -> Result<Vec<WorkflowSummary>, ClientError> {
        let mut workflows = Vec::new();
        let mut after: Option<String> = None;
        loop {
            let mut query = vec![("limit", PAGE.to_string())];
            query.extend(after.take().map(|name| ("after", name)));
            let page: WorkflowList = self.get("/v1/workflows", &query).await?;
            workflows.extend(page.workflows);
            match page.next {
                Some(next) => after = Some(next),
                None => return Ok(workflows),
            }
        }
    }

    /// Returns a stored workflow, in its current version or in the given one.
    pub async fn workflow(
        &self,
        name: &str,
        version: Option<&str>,
    ) -> Result<WorkflowReport, ClientError> {
        let query: Vec<_> = version
            .map(|version| ("version", version))
            .into_iter()
            .collect();
        self.get(&of_workflow(name, "")?, &query).await
    }

    /// Returns the versions of a stored workflow.
    pub async fn workflow_versions(&self, name: &str) -> Result<VersionsReport, ClientError> {
        self.get(&of_workflow(name, "/versions")?, &()).await
    }

    /// Returns the schedule of a workflow.
    pub async fn workflow_schedule(&self, name: &str) -> Result<ScheduleReport, ClientError> {
        self.get(&of_workflow(name, "/schedule")?, &()).await
    }

    /// Returns the times of a workflow's schedule in a range of the past.
    pub async fn scheduled_times(
        &self,
        name: &str,
        from: &str,
        to: Option<&str>,
    ) -> Result<Vec<ScheduledTime>, ClientError> {
        let mut query = vec![("from", from)];
        query.extend(to.map(|to| ("to", to)));
        let path = of_workflow(name, "/schedule/times")?;
        let found: ScheduledTimes = self.get(&path, &query).await?;
        Ok(found.times)
    }

    /// Pauses a workflow's schedule.
    pub async fn pause_schedule(&self, name: &str) -> Result<ScheduleReport, ClientError> {
        self.post(&of_workflow(name, "/schedule/pause")?, &()).await
    }

    /// Resumes a workflow's schedule.
    pub async fn resume_schedule(&self, name: &str) -> Result<ScheduleReport, ClientError> {
        self.post(&of_workflow(name, "/schedule/resume")?, &())
            .await
    }

    /// Stores a workflow under a name. Also returns whether a workflow of this name existed before.
    pub async fn put_workflow(
        &self,
        name: &str,
        text: &WorkflowText,
        condition: &PutIf,
    ) -> Result<(WorkflowReport, bool), ClientError> {
        let request = self.request(Method::PUT, &of_workflow(name, "")?);
        let request = match condition {
            PutIf::Always => request,
            PutIf::Absent => request.header(IF_NONE_MATCH, "*"),
            PutIf::Version(version) => request.header(IF_MATCH, format!("\"{version}\"")),
        };
        let request = with_body(request, text)?;
        let response = self.send(request).await?;
        let replaced = response.status() == StatusCode::OK;
        Ok((read(response).await?, replaced))
    }

    /// Removes a stored workflow.
    pub async fn remove_workflow(&self, name: &str) -> Result<(), ClientError> {
        let request = self.request(Method::DELETE, &of_workflow(name, "")?);
        self.send(request).await.map(drop)
    }

    /// Returns the values that one workflow, or every workflow, stores between its runs.
    pub async fn state_values(
        &self,
        workflow: Option<&str>,
    ) -> Result<Vec<StateReport>, ClientError> {
        let query: Vec<_> = workflow
            .map(|name| ("workflow", name))
            .into_iter()
            .collect();
        let list: StateList = self.get("/v1/state", &query).await?;
        Ok(list.values)
    }

    /// Returns a value that a workflow stores between its runs.
    pub async fn state_value(
        &self,
        workflow: &str,
        name: &str,
        origin: Origin,
    ) -> Result<StateReport, ClientError> {
        let guest = [("guest", origin == Origin::Guest)];
        self.get(&of_state(workflow, name)?, &guest).await
    }

    /// Writes a value that a workflow stores between its runs.
    pub async fn set_state(
        &self,
        workflow: &str,
        name: &str,
        value: &StateValue,
        origin: Origin,
    ) -> Result<StateReport, ClientError> {
        let request = self.request(Method::PUT, &of_state(workflow, name)?);
        let request = request.query(&[("guest", origin == Origin::Guest)]);
        read(self.send(with_body(request, value)?).await?).await
    }

    /// Deletes a value that a workflow stores between its runs.
    pub async fn remove_state(
        &self,
        workflow: &str,
        name: &str,
        if_version: Option<u64>,
        origin: Origin,
    ) -> Result<(), ClientError> {
        let request = self.request(Method::DELETE, &of_state(workflow, name)?);
        let request = request.query(&[("guest", origin == Origin::Guest)]);
        let request = match if_version {
            Some(version) => request.query(&[("if_version", version)]),
            None => request,
        };
        self.send(request).await.map(drop)
    }

    /// Returns the newest entries of the audit log.
    pub async fn audit(&self, filter: &AuditFilter) -> Result<AuditReport, ClientError> {
        let limit = filter.limit.unwrap_or(ALL).min(self.at_most(MAX_ROWS));
        let query = [
            ("name", filter.name.clone()),
            ("action", filter.action.clone()),
            ("target", filter.target.clone()),
            ("since", filter.since.map(|since| since.to_string())),
            ("limit", Some(limit.to_string())),
        ];
        let query = query
            .into_iter()
            .filter_map(|(name, value)| Some((name, value?)));
        self.get("/v1/audit", &query.collect::<Vec<_>>()).await
    }

    /// Requests a ticket for the console from the owner.
    pub async fn ticket(&self) -> Result<Ticket, ClientError> {
        let request = self.request(Method::POST, "/v1/tickets");
        read(self.send(request).await?).await
    }

    /// Follows a run: returns a stream of its notices. With `events`, the stream also has the history after the event
    /// of this number.
    pub async fn follow(&self, run: &str, events: Option<u64>) -> Result<Notices, ClientError> {
        let request = self.request(Method::GET, &of_run(run, "/events")?);
        let request = match events {
            Some(after) => request.query(&[("after", after)]),
            None => request.query(&[("history", false)]),
        };
        // A server's stream fails if it is silent. An owner may be suspended and continue later, so its stream does
        // not fail.
        let silence = self.owner.is_none();
        Ok(Notices::new(self.send_untimed(request).await?, silence))
    }

    /// Sends any request of the API. Returns the answer as JSON.
    ///
    /// # Errors
    /// [`ClientError`], as for all other requests.
    pub async fn json(
        &self,
        method: Method,
        path: &str,
        query: &[(&'static str, String)],
        body: Option<&serde_json::Value>,
    ) -> Result<serde_json::Value, ClientError> {
        let request = self.request(method, path).query(query);
        let request = match body {
            Some(body) => request
                .header(CONTENT_TYPE, "application/json")
                .body(body.to_string()),
            None => request,
        };
        read(self.send(request).await?).await
    }

    /// Returns the maximum number of entries in an answer: that of a server, or no maximum for an owner.
    fn at_most(&self, of_a_server: usize) -> usize {
        match &self.owner {
            Some(_) => ALL,
            None => of_a_server,
        }
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.http.request(method, format!("{}{path}", self.base));
        match &self.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }

    async fn get<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &(impl Serialize + ?Sized),
    ) -> Result<T, ClientError> {
        let request = self.request(Method::GET, path).query(query);
        read(self.send(request).await?).await
    }

    async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, ClientError> {
        let request = with_body(self.request(Method::POST, path), body)?;
        read(self.send(request).await?).await
    }

    /// Sends a request. With a server, it has a timeout.
    /// A request to an owner has no timeout, because the owner has answered when the client connected.
    async fn send(&self, request: RequestBuilder) -> Result<Response, ClientError> {
        let request = match &self.owner {
            Some(_) => request,
            None => request.timeout(ANSWER_TIME),
        };
        self.send_untimed(request).await
    }

    async fn send_untimed(&self, request: RequestBuilder) -> Result<Response, ClientError> {
        let sent = request.send().await.map_err(|error| match &self.owner {
            Some(_) => ClientError::of_socket(&error),
            None => ClientError::Unreachable(format!("{}: {}", self.base, chain(&error))),
        });
        self.accept(sent?).await
    }

    /// Returns a successful response. Converts the problem in any other response into an error.
    async fn accept(&self, response: Response) -> Result<Response, ClientError> {
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let text = response.text().await.unwrap_or_default();
        let problem: Problem = serde_json::from_str(&text).map_err(|_| {
            ClientError::Foreign(format!("{} answers {status} and no problem", self.base))
        })?;
        Err(problem.into())
    }
}

fn builder() -> ClientBuilder {
    reqwest::Client::builder()
        // A redirect would send the token to another server.
        .redirect(Policy::none())
        .user_agent(concat!("windlass/", env!("CARGO_PKG_VERSION")))
}

/// Returns true if a URL refers to this machine.
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

async fn read<T: DeserializeOwned>(response: Response) -> Result<T, ClientError> {
    let text = response.bytes().await.map_err(|_| ClientError::Lost)?;
    serde_json::from_slice(&text).map_err(|error| ClientError::Foreign(error.to_string()))
}

fn with_body(
    request: RequestBuilder,
    body: &impl Serialize,
) -> Result<RequestBuilder, ClientError> {
    let foreign = |error: serde_json::Error| ClientError::Foreign(error.to_string());
    let body = serde_json::to_vec(body).map_err(foreign)?;
    Ok(request.body(body).header(CONTENT_TYPE, "application/json"))
}

fn of_workflow(name: &str, what: &str) -> Result<String, ClientError> {
    let part = part(name, ErrorCode::UnknownWorkflow)?;
    Ok(format!("/v1/workflows/{part}{what}"))
}

fn of_state(workflow: &str, name: &str) -> Result<String, ClientError> {
    let workflow = part(workflow, ErrorCode::UnknownWorkflow)?;
    let name = part(name, ErrorCode::UnknownState)?;
    Ok(format!("/v1/state/{workflow}/{name}"))
}

fn of_run(run: &str, what: &str) -> Result<String, ClientError> {
    let part = part(run, ErrorCode::UnknownRun)?;
    Ok(format!("/v1/runs/{part}{what}"))
}

/// Escapes a name as a part of a path.
/// Refuses names that a path cannot contain, even escaped: `/v1/runs/../resume` would resume all runs.
fn part(name: &str, unknown: ErrorCode) -> Result<PercentEncode<'_>, ClientError> {
    match name {
        "" | "." | ".." => Err(ClientError::Refused {
            code: unknown,
            message: format!("`{name}` is not a valid name: use the name of a run or a workflow"),
        }),
        _ => Ok(utf8_percent_encode(name, PATH)),
    }
}
