//! Changes of many runs as server-sent events: the latest state of each changed run, at a limited rate.
//! Nothing is queued for a client. If a client reads slowly or reconnects, it receives the current states of the
//! runs. The changes are read from the store, so they cause no work for the driver. A "row" in this file is a summary
//! of one run.

use super::app::{App, EndSignal, blocking};
use super::body::ValidatedQuery;
use super::concurrency::ActivityGuard;
use super::events::{KEEP_ALIVE, line};
use super::guard::Admitted;
use super::listener::{Caller, ConnectionInfo};
use super::runs::MAX_SELECTED_RUNS;
use crate::api::Problem;
use axum::Extension;
use axum::extract::{ConnectInfo, State};
use axum::http::HeaderMap;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream::{self, Stream};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;
use utoipa::{IntoParams, ToSchema};
use windlass_engine::report::{RunRow, rows, status};
use windlass_engine::{ErrorCode, Inspector, Name, RunIndex, Timestamp, now};

/// The default number of events per second for a client.
const USUAL_HZ: f64 = 10.0;
/// The maximum number of events per second for a client.
const MAX_HZ: f64 = 60.0;

/// Maximum number of rows in an event. If there are more rows, they are in the next events.
const MAX_ROWS_PER_EVENT: usize = 200;

/// While no run changes, the interval of the checks whether the store accepts writes.
const CHECK_INTERVAL: Duration = Duration::from_secs(5);

/// How long a client waits before it reconnects after it has lost its server.
const RECONNECT_AFTER: Duration = Duration::from_millis(500);

/// After a restart of the server, runs that changed within this time before the client's last event are sent again. The
/// client may lack these changes: the time of a change is when the step was computed, and the change is sent later.
const OVERLAP: Duration = Duration::from_secs(10);

/// Maximum number of cached statuses of runs. A cached status is sent on several streams.
const MAX_CACHED_STATUSES: usize = 256;

/// Maximum number of cached rows. A cached row is sent on several streams.
const MAX_CACHED_ROWS: usize = 4_096;

/// Selects the runs of a stream and its rate.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct LiveQuery {
    /// Ids of runs whose rows and statuses are sent, separated by commas, at most 200. `*` or absent: the rows of all
    /// runs. `*,RUN`: both.
    runs: Option<String>,
    /// Maximum number of updates per second: 10 by default, from 0.1 to 60.
    max_hz: Option<f64>,
    /// Id of the last received event, for clients that cannot send `Last-Event-ID`.
    after: Option<String>,
}

/// The first event of a stream: the server that sends it.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(super) struct Hello {
    /// Time when the server was started.
    server_started_at: Timestamp,
    /// Version of the server.
    version: &'static str,
    /// Role of the client's token: `view`, `operate` or `admin`.
    access: &'static str,
    /// Whether all changes after the client's last event follow, including deleted runs. False for a new client, and
    /// after a restart of the server.
    resumed: bool,
    /// Reason why the store accepts no writes. Absent if it accepts writes.
    #[serde(skip_serializing_if = "Option::is_none")]
    outage: Option<String>,
}

/// Stream the latest states of changed runs as server-sent events.
///
/// A run is sent at most `max_hz` times per second, not at every step. Events: `hello` (`Hello`; the first event, sent
/// again when the store fails or works again), `rows` (an array of `RunRow`: changed runs, as a list with `detail=true`
/// has them), `run` (`RunRow`: one of the runs in `runs`), `status` (`StatusReport`: its status), `gone` (an array of
/// ids of deleted runs). A client that reconnects with the last id receives what changed meanwhile.
#[utoipa::path(get, path = "/v1/events", operation_id = "get_live", tag = "runs",
    params(LiveQuery, ("Last-Event-ID" = Option<String>, Header, description = "The last event that is known")),
    responses(
        (status = 200, description = "The events", body = String, content_type = "text/event-stream"),
        (status = "4XX", description = "A parameter cannot be read", body = Problem, content_type = "application/problem+json"),
    ))]
pub(super) async fn live(
    State(app): State<Arc<App>>,
    ConnectInfo(info): ConnectInfo<ConnectionInfo>,
    Extension(admitted): Extension<Admitted>,
    ValidatedQuery(query): ValidatedQuery<LiveQuery>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    app.check_accepts_long(info.caller)?;
    let bad = |detail: String| Problem::new(ErrorCode::BadRequest, detail);
    let hz = query.max_hz.unwrap_or(USUAL_HZ);
    if !(0.1..=MAX_HZ).contains(&hz) {
        return Err(bad(format!("`max_hz` is a number from 0.1 to {MAX_HZ}")));
    }
    let every = Duration::from_secs_f64(1.0 / hz);
    let (all, runs) = selected_runs(query.runs.as_deref());
    if runs.len() > MAX_SELECTED_RUNS {
        return Err(bad(format!("`runs` has {MAX_SELECTED_RUNS} ids at most")));
    }
    let known = match headers.get("last-event-id") {
        Some(value) => Some(value.to_str().unwrap_or("-").to_owned()),
        None => query.after,
    };
    let known = match known.as_deref() {
        None | Some("") => None,
        Some(text) => Some(
            EventId::parse(text)
                .ok_or_else(|| bad(format!("`{text}` is not a valid event's id")))?,
        ),
    };
    let Some(streaming) = info.connection.stream() else {
        let detail = "too many event streams: try again later";
        return Err(Problem::new(ErrorCode::Unavailable, detail));
    };
    let source = LiveStream {
        _streaming: streaming,
        changes: app.engine.changes(),
        ends: app.end_signal(),
        caller: info.caller,
        hello: Hello {
            server_started_at: app.live.started_at,
            version: env!("CARGO_PKG_VERSION"),
            access: admitted.access.as_str(),
            resumed: known
                .as_ref()
                .is_some_and(|mark| mark.server == app.live.started_at),
            outage: None,
        },
        place: Some(StreamPosition::new(&app.live, all, runs, known, every)),
        every,
        next: Instant::now(),
        ready: VecDeque::new(),
        greeted: false,
        app,
    };
    let keep = KeepAlive::new().interval(KEEP_ALIVE);
    Ok(Sse::new(source.stream()).keep_alive(keep).into_response())
}

/// Returns whether all runs are selected, and the names of the selected runs.
fn selected_runs(runs: Option<&str>) -> (bool, BTreeSet<Name>) {
    let words = runs.unwrap_or("*").split(',').map(str::trim);
    let (all, names): (Vec<&str>, Vec<&str>) = words
        .filter(|word| !word.is_empty())
        .partition(|word| *word == "*");
    (!all.is_empty(), names.into_iter().map(Name::from).collect())
}

/// Changes whenever a row changes: the revision of the run, and the version of its queue of waiting effects.
type RowVersion = (u64, u64);

/// The state that all streams share.
pub(super) struct Live {
    /// When this process began to number changes. It identifies the server in [`EventId`].
    started_at: Timestamp,
    /// The last status that was sent for each run, as text, and the version of the run's row at that time.
    statuses: Mutex<HashMap<String, (RowVersion, Arc<str>)>>,
    /// The last row that was sent for each run.
    rows: Mutex<HashMap<Name, SharedRow>>,
}

/// A row that several streams send.
struct SharedRow {
    of: RowVersion,
    made_at: Instant,
    row: RunRow,
}

impl Live {
    pub fn new() -> Self {
        Self {
            started_at: now(),
            statuses: Mutex::default(),
            rows: Mutex::default(),
        }
    }

    /// Returns the rows of those of the runs that exist.
    /// A row that was created less than `lasts` ago is reused, so that many streams do not read a busy run more than
    /// once. Also returns the runs whose reused rows are older than their last change.
    fn rows(
        &self,
        runs: &Inspector,
        page: &[Name],
        lasts: Duration,
    ) -> Result<(Vec<RunRow>, Vec<Name>), Problem> {
        // Other streams wait for the lock while this one creates the rows, and then find them in the cache.
        let mut shared = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        if shared.len() >= MAX_CACHED_ROWS {
            shared.clear();
        }
        let now = Instant::now();
        let is_young = |one: &SharedRow| now.duration_since(one.made_at) < lasts;
        let old = page
            .iter()
            .filter(|run| !shared.get(*run).is_some_and(is_young));
        let old: Vec<Name> = old.cloned().collect();
        for run in &old {
            shared.remove(run);
        }
        let queued: HashMap<&Name, u64> = { old.iter() }
            .map(|run| (run, runs.queued(run).version))
            .collect();
        for row in rows(runs, &old)? {
            let run = Name::from(row.summary.run.as_str());
            let of = (row.summary.commit, queued.get(&run).copied().unwrap_or(0));
            let made_at = now;
            shared.insert(run, SharedRow { of, made_at, row });
        }
        let states: Vec<Option<RowVersion>> = runs.run_index(|index| {
            page.iter()
                .map(|run| Some(index.get(run)?.state()))
                .collect()
        })?;
        let (mut rows, mut newer) = (Vec::new(), Vec::new());
        for (run, state) in page.iter().zip(states) {
            let (Some(one), Some(state)) = (shared.get(run), state) else {
                continue;
            };
            if state.0 > one.of.0 || state.1 != one.of.1 {
                newer.push(run.clone());
            }
            rows.push(one.row.clone());
        }
        Ok((rows, newer))
    }

    /// Returns the status of a run as text. The text is created once for each version of the run.
    fn status(&self, runs: &Inspector, row: &RunRow) -> Result<Arc<str>, Problem> {
        let statuses = || self.statuses.lock().unwrap_or_else(PoisonError::into_inner);
        let run = &row.summary.run;
        let queued = runs.queued(run).version;
        if let Some((of, text)) = statuses().get(run)
            && *of == (row.summary.commit, queued)
        {
            return Ok(Arc::clone(text));
        }
        let report = status(runs, run, now())?;
        let text: Arc<str> = line(&report).into();
        let mut statuses = statuses();
        if statuses.len() >= MAX_CACHED_STATUSES {
            statuses.clear();
        }
        statuses.insert(run.clone(), ((report.commit, queued), Arc::clone(&text)));
        Ok(text)
    }
}

/// What a client has received, encoded in the id of its last event: `SERVER-NUMBER-TIME`.
#[derive(Clone, Copy, Debug, PartialEq)]
struct EventId {
    /// The start time of the server that sent the event.
    server: Timestamp,
    /// The number of the last change that was sent.
    number: u64,
    /// When the event was sent.
    at: Timestamp,
}

impl EventId {
    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('-');
        let mut part = || parts.next();
        let mark = Self {
            server: Timestamp(part()?.parse().ok()?),
            number: part()?.parse().ok()?,
            at: Timestamp(part()?.parse().ok()?),
        };
        part().is_none().then_some(mark)
    }

    fn text(self) -> String {
        format!("{}-{}-{}", self.server.0, self.number, self.at.0)
    }
}

/// Which runs must still be sent to a client.
enum PendingRuns {
    /// The runs that the client named.
    Named,
    /// Runs that changed after this number.
    After(u64),
    /// Runs that changed shortly before this time or later, while another server sent events.
    Since(Timestamp),
}

/// The position of a stream.
struct StreamPosition {
    server: Timestamp,
    /// Whether the client selected all runs.
    all: bool,
    /// The runs that the client named. They are sent with their statuses.
    runs: BTreeSet<Name>,
    unsent: PendingRuns,
    /// The runs that are sent next. When all of them were sent, the client has received the changes up to
    /// `mark_when_sent`.
    pending: VecDeque<Name>,
    mark_when_sent: EventId,
    /// Runs whose latest state was not sent yet, because a row from before the last change was reused.
    stale: BTreeSet<Name>,
    /// How long a cached row may be reused.
    lasts: Duration,
}

/// The content of one event.
struct LiveBatch {
    /// Rows of listed runs.
    rows: Vec<RunRow>,
    /// Rows and statuses of named runs.
    statuses: Vec<(RunRow, Arc<str>)>,
    gone: Vec<String>,
    /// The id of this event: what the client has received after it. `None` while runs are pending.
    mark: Option<EventId>,
    outage: Option<String>,
}

impl StreamPosition {
    fn new(
        live: &Live,
        all: bool,
        runs: BTreeSet<Name>,
        known: Option<EventId>,
        every: Duration,
    ) -> Self {
        let server = live.started_at;
        let unsent = match known {
            Some(mark) if mark.server == server => PendingRuns::After(mark.number),
            Some(mark) => PendingRuns::Since(mark.at),
            None => PendingRuns::Named,
        };
        Self {
            server,
            all,
            runs,
            unsent,
            pending: VecDeque::new(),
            mark_when_sent: EventId {
                server,
                number: 0,
                at: Timestamp(0),
            },
            stale: BTreeSet::new(),
            lasts: every / 2,
        }
    }

    /// Returns the changes that are sent in the next event.
    fn next_changes(&mut self, runs: &Inspector, live: &Live) -> Result<LiveBatch, Problem> {
        if self.pending.is_empty() {
            let at = now();
            let (pending, number) =
                runs.run_index(|index| (self.changed(index), index.number()))?;
            let mut stale = std::mem::take(&mut self.stale);
            for run in &pending {
                stale.remove(run);
            }
            self.pending = pending;
            self.pending.extend(stale);
            self.mark_when_sent = EventId {
                server: self.server,
                number,
                at,
            };
            self.unsent = PendingRuns::After(number);
        }
        let page: Vec<Name> = self
            .pending
            .iter()
            .take(MAX_ROWS_PER_EVENT)
            .cloned()
            .collect();
        let (rows, newer) = live.rows(runs, &page, self.lasts)?;
        self.stale.extend(newer);
        let there: BTreeSet<&str> = rows.iter().map(|row| row.summary.run.as_str()).collect();
        let gone = page.iter().filter(|run| !there.contains(&***run));
        let gone = gone.map(ToString::to_string).collect();
        let mut statuses = Vec::new();
        for row in &rows {
            if self.runs.contains(row.summary.run.as_str()) {
                statuses.push((row.clone(), live.status(runs, row)?));
            }
        }
        self.pending.drain(..page.len());
        Ok(LiveBatch {
            rows: if self.all { rows } else { Vec::new() },
            statuses,
            gone,
            // A client that reconnects with this mark (the id of an event) receives all later changes.
            mark: (self.pending.is_empty() && self.stale.is_empty()).then_some(self.mark_when_sent),
            outage: runs.check_writable().err().map(|error| error.to_string()),
        })
    }

    fn changed(&self, index: &RunIndex) -> VecDeque<Name> {
        let meant = |run: &&Name| self.all || self.runs.contains(*run);
        match &self.unsent {
            PendingRuns::Named => self.runs.iter().cloned().collect(),
            PendingRuns::After(number) => index
                .changed_after(*number)
                .filter(meant)
                .cloned()
                .collect(),
            PendingRuns::Since(at) => {
                // Parking a run (removing it from the indexes after repeated errors) is not a step, so it does not
                // change `updated_at`.
                let index = index
                    .all()
                    .filter(|entry| entry.updated_at.plus(OVERLAP) >= *at || entry.is_parked());
                index
                    .map(|entry| &entry.id)
                    .filter(meant)
                    .cloned()
                    .collect()
            }
        }
    }
}

struct LiveStream {
    _streaming: ActivityGuard,
    app: Arc<App>,
    changes: watch::Receiver<()>,
    ends: EndSignal,
    caller: Caller,
    hello: Hello,
    /// The position of the stream. `None` while the next changes are read, because the reading thread has it.
    place: Option<StreamPosition>,
    every: Duration,
    /// The next event is not sent before this time.
    next: Instant,
    ready: VecDeque<Event>,
    greeted: bool,
}

impl LiveStream {
    fn stream(self) -> impl Stream<Item = Result<Event, Infallible>> {
        stream::unfold(self, |mut source| async move {
            let event = source.next().await?;
            Some((Ok(event), source))
        })
    }

    /// Returns the next event, or `None` if the server stops and the client must reconnect.
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            let (ends, caller) = (self.ends.clone(), self.caller);
            tokio::select! {
                () = self.wait() => {}
                () = ends.must_end(caller) => return None,
            }
            self.next = Instant::now() + self.every;
            // This line is before the read, so that a change during the read causes another read.
            self.changes.mark_unchanged();
            let mut place = self.place.take()?;
            let app = Arc::clone(&self.app);
            let looked = blocking(move || {
                let batch = place.next_changes(app.engine.inspector(), &app.live);
                Ok((batch, place))
            });
            let (batch, place) = looked.await.ok()?;
            self.place = Some(place);
            match batch {
                Ok(batch) => self.push_changes(batch),
                Err(problem) => {
                    self.next = Instant::now() + RECONNECT_AFTER;
                    self.send_hello(Some(problem.detail), None);
                }
            }
        }
    }

    /// Waits until there may be a change to send and the minimum interval since the last event is over.
    async fn wait(&mut self) {
        tokio::time::sleep_until(self.next).await;
        let rest = self
            .place
            .as_ref()
            .is_none_or(|place| place.pending.is_empty() && place.stale.is_empty());
        if self.greeted && rest {
            // The result is ignored: an error means that the engine has ended, and then the server stops.
            let _ = tokio::time::timeout(CHECK_INTERVAL, self.changes.changed()).await;
        }
    }

    /// Sends `hello` at the beginning of the stream, and when the store begins or stops accepting writes.
    fn send_hello(&mut self, outage: Option<String>, mark: Option<EventId>) {
        if self.greeted && self.hello.outage == outage {
            return;
        }
        self.greeted = true;
        self.hello.outage = outage;
        let event = Event::default().event("hello").retry(RECONNECT_AFTER);
        let event = event.data(line(&self.hello));
        self.ready.push_back(with_id(event, mark));
    }

    fn push_changes(&mut self, batch: LiveBatch) {
        let LiveBatch {
            rows,
            statuses,
            gone,
            mark,
            outage,
        } = batch;
        let nothing = rows.is_empty() && statuses.is_empty() && gone.is_empty();
        self.send_hello(outage, mark.filter(|_| nothing));
        if nothing {
            return;
        }
        let mut events = Vec::new();
        if !gone.is_empty() {
            events.push(Event::default().event("gone").data(line(&gone)));
        }
        if !rows.is_empty() {
            events.push(Event::default().event("rows").data(line(&rows)));
        }
        for (row, status) in &statuses {
            events.push(Event::default().event("run").data(line(row)));
            events.push(Event::default().event("status").data(&**status));
        }
        // Only the last event has the mark. A client that disconnects before this event receives all of these events
        // again.
        let last = events.pop();
        self.ready.extend(events);
        self.ready.extend(last.map(|last| with_id(last, mark)));
    }
}

fn with_id(event: Event, mark: Option<EventId>) -> Event {
    match mark {
        Some(mark) => event.id(mark.text()),
        None => event,
    }
}
