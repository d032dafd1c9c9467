//! `events`: returns one event of a stream (WHATWG HTML, 9.2). The output contains the id of the event. If the next
//! call must open a new connection, it sends this id. Between calls the stream remains open in memory: see `streams`.

use super::event_parser::{Event, EventParser, MAX_EVENT, TooLarge};
use super::fault::{connection_fault, shown};
use super::previous::{URI, previous_value, with_member};
use super::reply::{Answer, Reply, status_text, url_text};
use super::stall::StallWatch;
use super::streams::Streams;
use super::{HttpCall, allowed, request};
use crate::inputs::{Inputs, invalid};
use crate::json;
use crate::mask::MASK;
use bytes::Bytes;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue};
use reqwest::{Method, Response, StatusCode, Url};
use std::time::Duration;
use windlass_expression::{Object, Value, shared_key};
use windlass_model::model::{EVENTS, Fault, Request, fault_kind};

const EVENT_STREAM: &str = "text/event-stream";
/// The header with the id of the last event.
pub(super) const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// The member of an output that contains the position in the stream.
const POSITION: &str = "position";

/// The member of the position with the id of the last event.
const ID: &str = "id";

/// The wait before the next connection, if the server requests no wait. Browsers use the same time.
const DEFAULT_RETRY: Duration = Duration::from_secs(3);

/// The minimum wait after a connection without an event. It doubles with each such connection, up to
/// [`LONGEST_IDLE_WAIT`].
const FIRST_IDLE_WAIT: Duration = Duration::from_millis(50);
/// The longest wait after a connection without an event.
const LONGEST_IDLE_WAIT: Duration = Duration::from_secs(30);

/// An answer. If it is not a stream of events, its body is read at once.
enum Arrival {
    Stream(Box<Response>),
    Other(Box<Reply>),
}

impl Answer for Arrival {
    async fn read(method: &Method, response: Response) -> Result<Self, Fault> {
        let status = response.status();
        if status == StatusCode::NO_CONTENT || status.as_u16() >= 400 {
            let reply = Reply::read(method, response).await?;
            return Ok(Self::Other(Box::new(reply)));
        }
        let content_type = response.headers().get(CONTENT_TYPE);
        let content_type = content_type.and_then(|value| value.to_str().ok());
        let essence = content_type.unwrap_or_default().split(';').next();
        let is_stream = essence.is_some_and(|kind| kind.trim().eq_ignore_ascii_case(EVENT_STREAM));
        if status == StatusCode::OK && is_stream {
            return Ok(Self::Stream(Box::new(response)));
        }
        let message = format!(
            "{method} {} answered {} with {}: `{EVENTS}` needs 200 with {EVENT_STREAM}, or 204",
            shown(response.url()),
            status_text(status),
            content_type.map_or("no content type".to_owned(), |kind| format!("`{kind}`")),
        );
        Err(Fault::new(fault_kind::EXPECT, message))
    }
}

/// An open stream.
pub(super) struct EventStream {
    response: Response,
    /// The bytes that have arrived and are not parsed yet.
    bytes: Bytes,
    parser: EventParser,
    url: Url,
    /// The members of an output that do not describe the event.
    head: Object,
    /// The tokens with which the stream was opened, to be masked in outputs.
    used: Vec<String>,
}

impl EventStream {
    fn new(response: Response, parser: EventParser, used: Vec<String>) -> Self {
        let reply = Reply::without_body(&response);
        Self {
            url: reply.url.clone(),
            head: reply.into_object(),
            bytes: Bytes::new(),
            response,
            parser,
            used,
        }
    }

    /// Returns the next event, or `None` if the connection ended, or stopped sending, between two events.
    async fn next_event(&mut self) -> Result<Option<Event>, Fault> {
        loop {
            let event = self.parser.next_event(&mut self.bytes);
            if let Some(event) = event.map_err(|TooLarge| self.too_large())? {
                return Ok(Some(event));
            }
            let chunk = StallWatch::new().watch(self.response.chunk()).await;
            let fault = match chunk {
                Ok(Ok(Some(bytes))) => {
                    self.bytes = bytes;
                    continue;
                }
                _ if !self.parser.is_within_event() => return Ok(None),
                Ok(Ok(None)) => {
                    let message = format!("the stream of {} ended within an event", self.shown());
                    Fault::new(fault_kind::CONNECTION, message).transient()
                }
                Ok(Err(error)) => connection_fault(&self.url, error, false),
                Err(stalled) => stalled,
            };
            let retry = self.parser.retry().map(|wait| wait.as_millis());
            let retry_after_ms = retry.and_then(|wait| u64::try_from(wait).ok());
            return Err(Fault {
                retry_after_ms,
                ..fault
            });
        }
    }

    fn shown(&self) -> String {
        shown(&self.url)
    }

    fn too_large(&self) -> Fault {
        let most = MAX_EVENT >> 20;
        let message = format!("an event of {} is larger than {most} MiB", self.shown());
        Fault::new(fault_kind::TOO_LARGE, message)
    }

    /// Builds the output for an event.
    fn output(&self, event: Event) -> Result<Value, Fault> {
        let Event { name, data } = event;
        let data = json::parsed(&data, "an event")?.unwrap_or_else(|| Value::text(data));
        let id = match self.parser.last_id() {
            "" => Value::Null,
            id => Value::text(id),
        };
        let body = Value::from_pairs([(ID, id), ("event", Value::text(name)), ("data", data)]);
        let mut output = self.head.clone();
        output.insert(shared_key("body"), body);
        Ok(Value::object(output))
    }
}

/// The position of a run in a stream.
struct Position {
    uri: Value,
    /// The id of the last event. Empty if there was no id.
    id: String,
    /// Whether the iteration before this one received an event from this address.
    continues: bool,
}

impl Position {
    fn of(inputs: Inputs<'_>, call: &reqwest::Request) -> Result<Self, Fault> {
        let uri = url_text(call.url().clone());
        let previous = previous_value(inputs, EVENTS, "the position of an event", &uri)?;
        let id = previous
            .and_then(|previous| previous.get(ID))
            .and_then(Value::as_str);
        if id.is_some_and(|id| id.contains(MASK)) {
            return Err(invalid(
                "the id of the last event has a secret, which is not stored",
            ));
        }
        Ok(Self {
            id: id.unwrap_or_default().to_owned(),
            continues: previous.is_some(),
            uri,
        })
    }

    /// Adds the position in the stream after a call to the output of the call.
    fn put_on(&self, output: Value, id: &str) -> Value {
        let id = (!id.is_empty()).then(|| (ID, Value::text(id)));
        let uri = (URI, self.uri.clone());
        let position = Value::from_pairs([uri].into_iter().chain(id));
        with_member(output, POSITION, Some(position))
    }
}

impl HttpCall<'_> {
    /// Returns the next event of a stream. If the connection ends between two events, connects again.
    pub(super) async fn event(
        mut self,
        request: &Request,
        streams: &Streams,
    ) -> Result<Value, Fault> {
        let (call, _) = request::first(request)?;
        let position = Position::of(Inputs::of(request)?, &call)?;
        let mut held = streams.take(request).filter(|_| position.continues);
        let mut parser = EventParser::after(&position.id);
        let mut wait = FIRST_IDLE_WAIT;
        loop {
            let mut stream = match held.take() {
                Some(stream) => {
                    self.used.extend(stream.used.iter().cloned());
                    stream
                }
                None => {
                    let id = parser.last_id().to_owned();
                    match self.connect(request, parser).await? {
                        Connected::Open(stream) => stream,
                        Connected::Closed(output) => return Ok(position.put_on(output, &id)),
                    }
                }
            };
            if let Some(event) = stream.next_event().await? {
                let output = position.put_on(stream.output(event)?, stream.parser.last_id());
                streams.hold(request, stream);
                return Ok(output);
            }
            if !request.is_safe() {
                let shown = stream.shown();
                let message = format!(
                    "the stream of {shown} ended, and only a retry policy repeats a request that may have effects"
                );
                return Err(Fault::new(fault_kind::CONNECTION, message).transient());
            }
            parser = stream.parser.reconnected();
            drop(stream);
            // Wait longer each time, because a connection without an event costs the server as much as a call.
            wait = wait.saturating_mul(2).min(LONGEST_IDLE_WAIT);
            let wait = parser.retry().unwrap_or(DEFAULT_RETRY).max(wait);
            tokio::time::sleep(wait).await;
        }
    }

    async fn connect(
        &mut self,
        request: &Request,
        parser: EventParser,
    ) -> Result<Connected, Fault> {
        let (mut call, _) = request::first(request)?;
        let headers = call.headers_mut();
        let accepted = HeaderValue::from_static(EVENT_STREAM);
        headers.entry(ACCEPT).or_insert(accepted);
        if !parser.last_id().is_empty() {
            let id = HeaderValue::from_bytes(parser.last_id().as_bytes()).map_err(|_| {
                invalid("the id of the last event has characters that no header can have")
            })?;
            headers.insert(LAST_EVENT_ID, id);
        }
        let before = self.used.len();
        let answer = StallWatch::new().watch(self.call(call)).await?;
        let used = self.used.iter().skip(before).cloned().collect();
        Ok(match answer {
            Ok(Arrival::Stream(response)) => {
                Connected::Open(Box::new(EventStream::new(*response, parser, used)))
            }
            Ok(Arrival::Other(reply)) => Connected::Closed(reply.into_value()),
            Err(fault) => Connected::Closed(allowed(fault, request)?),
        })
    }
}

/// The result of opening a connection.
enum Connected {
    Open(Box<EventStream>),
    /// The output of a call whose answer is not a stream.
    Closed(Value),
}
