//! The events of a run as server-sent events.
//! A stream has the history after the client's last event, and then every step as soon as it is durable. A client
//! that reconnects sends the last id in `Last-Event-ID`. It receives every later event once, even after a restart of
//! the server.

use super::app::{App, EndSignal};
use super::body::{PathParam, ValidatedQuery};
use super::concurrency::ActivityGuard;
use super::listener::{Caller, ConnectionInfo};
use crate::api::Problem;
use axum::extract::{ConnectInfo, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream::{self, Stream};
use serde::Deserialize;
use serde_json::json;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use utoipa::IntoParams;
use windlass_engine::{ErrorCode, Follower, Notice};

/// Suffix of the id of a stream's last event. A client that sends such an id has received all events.
const END: &str = "-end";

/// Interval of the comments on a stream without events. By sending them, the server notices that a client has
/// disconnected.
pub(super) const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Selects the events of a stream.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct EventsQuery {
    /// Id of the last received event, for clients that cannot send `Last-Event-ID`. If absent or 0, all events are
    /// sent.
    after: Option<String>,
    /// Whether `history` events are sent: `true` by default.
    history: Option<bool>,
}

/// Stream the events of a run as server-sent events.
///
/// The stream starts with the first event, or after `Last-Event-ID`, and continues with new events. Events: `history`
/// (its id is its number, its data has `event` and `at`), `step` (status, loops, and the actions of loops that began),
/// `printed` (a line of a running command: action, stream, text; it is not stored), `paused`, `stuck`, `error` (a
/// problem; the stream ends), and `finished`, which is the last one. If the client has received all events of an ended
/// run, the response is 204.
#[utoipa::path(get, path = "/v1/runs/{run}/events", operation_id = "get_events", tag = "runs",
    params(("run" = String, Path, description = "Run id"), EventsQuery,
        ("Last-Event-ID" = Option<String>, Header, description = "The last event that the client received")),
    responses(
        (status = 200, description = "The events", body = String, content_type = "text/event-stream"),
        (status = 204, description = "The run has ended and every event was sent"),
        (status = 404, description = "Unknown run", body = Problem, content_type = "application/problem+json"),
    ))]
pub(super) async fn events(
    State(app): State<Arc<App>>,
    ConnectInfo(info): ConnectInfo<ConnectionInfo>,
    PathParam(run): PathParam,
    ValidatedQuery(query): ValidatedQuery<EventsQuery>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    app.check_accepts_long(info.caller)?;
    let known = match headers.get("last-event-id") {
        Some(value) => Some(value.to_str().unwrap_or("-").to_owned()),
        None => query.after,
    };
    let known = known.unwrap_or_else(|| String::from("0"));
    let (number, ended) = match known.strip_suffix(END) {
        Some(number) => (number, true),
        None => (known.as_str(), false),
    };
    let Ok(after) = number.parse::<u64>() else {
        let detail = format!("`{known}` is not a valid event's id");
        return Err(Problem::new(ErrorCode::BadRequest, detail));
    };
    let events = query.history.unwrap_or(true).then_some(after);
    let follower = app.engine.follow(&run, events).await?;
    if ended {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let Some(streaming) = info.connection.stream() else {
        let detail = "too many event streams: try again later";
        return Err(Problem::new(ErrorCode::Unavailable, detail));
    };
    let source = EventStream {
        _streaming: streaming,
        follower: follower.through_pauses(),
        ends: app.end_signal(),
        caller: info.caller,
        done: false,
    };
    let keep = KeepAlive::new().interval(KEEP_ALIVE);
    Ok(Sse::new(source.stream()).keep_alive(keep).into_response())
}

struct EventStream {
    _streaming: ActivityGuard,
    follower: Follower,
    ends: EndSignal,
    caller: Caller,
    done: bool,
}

impl EventStream {
    fn stream(self) -> impl Stream<Item = Result<Event, Infallible>> {
        stream::unfold(self, |mut source| async move {
            let event = source.next().await?;
            Some((Ok(event), source))
        })
    }

    /// Returns the next event.
    /// Returns `None` if the run has ended, or if the server stops and the client must reconnect.
    async fn next(&mut self) -> Option<Event> {
        if self.done {
            return None;
        }
        let notice = tokio::select! {
            notice = self.follower.next() => notice,
            () = self.ends.must_end(self.caller) => return None,
        };
        match notice {
            Ok(Some(notice)) => Some(self.event(&notice)),
            Ok(None) => None,
            Err(error) => {
                self.done = true;
                let problem = Problem::from(error);
                Some(Event::default().event("error").data(line(&problem)))
            }
        }
    }

    fn event(&mut self, notice: &Notice) -> Event {
        let event = Event::default();
        match notice {
            Notice::Event {
                sequence,
                event: happened,
            } => event
                .event("history")
                .id(sequence.to_string())
                .data(line(happened)),
            Notice::Step {
                status,
                loops,
                began,
                retry,
            } => event.event("step").data(line(
                &json!({ "status": status, "loops": loops, "began": began, "retry": retry }),
            )),
            Notice::Printed {
                action,
                stream,
                text,
            } => event.event("printed").data(line(
                &json!({ "action": action, "stream": stream, "text": text }),
            )),
            Notice::Paused { pause } => event.event("paused").data(line(pause)),
            Notice::Stuck { store, message } => event
                .event("stuck")
                .data(line(&json!({ "store": store, "message": message }))),
            Notice::Finished { outcome } => {
                self.done = true;
                let id = format!("{}{END}", self.follower.last_event());
                event.event("finished").id(id).data(line(outcome))
            }
        }
    }
}

pub(super) fn line(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap_or_else(|_| String::from("null"))
}
