//! Converts a server's response to the output of an action, or to its fault. It never follows links in the response.

use super::fault::{connection_fault, shown};
use super::links;
use super::multipart::{self, ReadPart};
use super::text::{header_text, latin1};
use crate::json;
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use chrono::Utc;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, Response, StatusCode, Url};
use std::sync::Arc;
use std::time::Duration;
use windlass_expression::{Object, Value, shared_key};
use windlass_model::model::{Fault, fault_kind};
use windlass_value::{Timestamp, is_over_quota, one_line, requested_wait, shortened};

/// Maximum size in bytes of a body, after decompression.
const MAX_BODY: usize = 16 << 20;

/// Number of characters of a body that an error message quotes.
const EXCERPT: usize = 200;

pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    /// The headers, by their names in lower case. Values of a repeated header are joined with `, `.
    pub(crate) headers: Object,
    pub(crate) body: Value,
    links: Object,
    /// The address of the response, after redirects.
    pub(super) url: Url,
}

/// A type that is read from a response.
pub(super) trait Answer: Sized {
    /// Reads the response, or the part of it that is needed. A status of 400 or above is a fault.
    fn read(
        method: &Method,
        response: Response,
    ) -> impl Future<Output = Result<Self, Fault>> + Send;
}

impl Answer for Reply {
    async fn read(method: &Method, response: Response) -> Result<Self, Fault> {
        let status = response.status();
        let headers = response.headers().clone();
        let reply = Self::without_body(&response);
        let bytes = read_body(response).await?;
        let (body, refused) = parse_body(headers.get(CONTENT_TYPE), bytes);
        let reply = Self { body, ..reply };
        if status.as_u16() < 400 {
            return match refused {
                None => Ok(reply),
                Some(fault) if fault.output.is_some() => Err(fault.output(reply.into_value())),
                Some(fault) => Err(fault),
            };
        }
        let mut message = format!(
            "{method} {} answered {}",
            shown(&reply.url),
            status_text(status)
        );
        if let Some(words) = excerpt(&reply.body) {
            message = format!("{message}: {words}");
        }
        Err(Fault {
            retry_after_ms: requested_wait_ms(&headers),
            transient: is_transient(status, &headers),
            ..Fault::new(fault_kind::HTTP, message)
                .code(status.as_u16())
                .output(reply.into_value())
        })
    }
}

impl Reply {
    /// Makes a reply from a stub's answer.
    pub(super) fn of_stub(answer: &Value, url: Url) -> Self {
        let given = answer.get("headers").and_then(Value::as_object);
        let headers = given.into_iter().flatten().filter_map(|(name, value)| {
            let name = HeaderName::try_from(&**name).ok()?;
            Some((name, HeaderValue::try_from(value.to_text()).ok()?))
        });
        let headers: HeaderMap = headers.collect();
        let status = answer.get("statusCode").and_then(Value::as_int);
        let status = status.and_then(|status| u16::try_from(status).ok());
        let status = status.and_then(|status| StatusCode::from_u16(status).ok());
        Self {
            status: status.unwrap_or_default(),
            headers: header_map(&headers),
            body: answer.get("body").cloned().unwrap_or_default(),
            links: links::parse(&headers, &url),
            url,
        }
    }

    /// Makes a reply from a response, without its body.
    pub(super) fn without_body(response: &Response) -> Self {
        let (headers, url) = (response.headers(), response.url().clone());
        Self {
            status: response.status(),
            headers: header_map(headers),
            links: links::parse(headers, &url),
            body: Value::Null,
            url,
        }
    }

    /// Returns how long the server requests to wait before the next request.
    pub(super) fn requested_wait(&self) -> Option<Duration> {
        requested_wait(|name| self.headers.get(name)?.as_str(), wall_clock())
    }

    /// Returns the output of one page. The member `url` is the base for a relative address of the next page.
    pub(super) fn into_page(self) -> Value {
        let url = url_text(self.url.clone());
        let mut output = self.into_object();
        output.insert(shared_key("url"), url);
        Value::object(output)
    }

    /// Converts the body to text if it is UTF-8, whatever its content type.
    pub(super) fn with_text(self) -> Self {
        let bytes = content(&self.body).filter(|bytes| !bytes.contains(&0));
        match bytes.map(String::from_utf8) {
            Some(Ok(text)) => Self {
                body: Value::text(text),
                ..self
            },
            _ => self,
        }
    }

    /// Returns `{statusCode, headers, body}`, and `links` if the response has any.
    pub(super) fn into_value(self) -> Value {
        Value::object(self.into_object())
    }

    pub(super) fn into_object(self) -> Object {
        let mut output = Object::with_capacity(3 + usize::from(!self.links.is_empty()));
        let status = i64::from(self.status.as_u16());
        output.insert(shared_key("statusCode"), Value::Int(status));
        output.insert(shared_key("headers"), Value::object(self.headers));
        output.insert(shared_key("body"), self.body);
        if !self.links.is_empty() {
            output.insert(shared_key("links"), Value::object(self.links));
        }
        output
    }
}

/// Returns the address of an answer for its output, without credentials.
pub(super) fn url_text(mut url: Url) -> Value {
    // Both calls fail only for a URL without a host.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    Value::text(url.as_str())
}

/// Returns true if the status means that the same call may succeed later (docs/reference/loom.md).
fn is_transient(status: StatusCode, headers: &HeaderMap) -> bool {
    // A status above 599 is treated as one of the class 5xx (RFC 9110, 15).
    status.as_u16() >= 500
        || status == StatusCode::REQUEST_TIMEOUT
        || status == StatusCode::TOO_MANY_REQUESTS
        || status == StatusCode::FORBIDDEN && is_over_quota(text_of(headers))
}

/// Returns a function from the name of a header to its text.
fn text_of<'h>(headers: &'h HeaderMap) -> impl Fn(&str) -> Option<&'h str> {
    |name| headers.get(name)?.to_str().ok()
}

const TOO_LARGE: &str = "is larger than 16 MiB";

/// Adds to the fault about a large body how an `http` action can read it.
pub(super) fn explain_size(mut fault: Fault) -> Fault {
    if fault.message.ends_with(TOO_LARGE) {
        fault.message.push_str(": `saveTo` writes it to a file");
    }
    fault
}

/// Returns a status as a message shows it: with its name, if it has one.
pub(super) fn status_text(status: StatusCode) -> String {
    match status.canonical_reason() {
        Some(name) => format!("{} {name}", status.as_u16()),
        None => status.as_u16().to_string(),
    }
}

async fn read_body(mut response: Response) -> Result<Vec<u8>, Fault> {
    let url = response.url().clone();
    let too_large = || {
        let message = format!("the body of {} {TOO_LARGE}", shown(&url));
        Fault::new(fault_kind::TOO_LARGE, message)
    };
    let announced = response.content_length().unwrap_or(0);
    if usize::try_from(announced).map_or(true, |length| length > MAX_BODY) {
        return Err(too_large());
    }
    let mut body = Vec::new();
    loop {
        match response.chunk().await {
            Ok(None) => return Ok(body),
            Ok(Some(chunk)) if body.len() + chunk.len() > MAX_BODY => return Err(too_large()),
            Ok(Some(chunk)) => body.extend_from_slice(&chunk),
            Err(error) => return Err(connection_fault(&url, error, false)),
        }
    }
}

fn header_map(headers: &HeaderMap) -> Object {
    let mut map = Object::with_capacity(headers.keys_len());
    for name in headers.keys() {
        let values: Vec<_> = headers.get_all(name).iter().map(header_text).collect();
        map.insert(shared_key(name.as_str()), Value::text(values.join(", ")));
    }
    map
}

/// How a body is read, depending on its content type.
enum Form {
    Json,
    Text,
    Bytes,
    Unknown,
}

fn form(essence: &str) -> Form {
    match essence {
        "" => Form::Unknown,
        "application/json" | "text/json" => Form::Json,
        _ if essence.ends_with("+json") => Form::Json,
        _ if essence.starts_with("text/") || essence.ends_with("+xml") => Form::Text,
        "application/xml"
        | "application/javascript"
        | "application/yaml"
        | "application/x-yaml"
        | "application/x-ndjson"
        | "application/jsonl"
        | "application/x-www-form-urlencoded" => Form::Text,
        _ => Form::Bytes,
    }
}

/// Parses a body. JSON and text are recognised by their content type. Other bytes, also those of several parts, become
/// `{"$content-type", "$content": base64}`, as in Logic Apps. An empty body is null, or empty text if the content type
/// is text. If the body is JSON that cannot be stored, also returns a fault; then the body remains text, as if it was
/// not JSON.
fn parse_body(content_type: Option<&HeaderValue>, bytes: Vec<u8>) -> (Value, Option<Fault>) {
    let content_type = content_type.map(header_text).unwrap_or_default();
    let mut parts = content_type
        .split(';')
        .map(|part| part.trim().to_lowercase());
    let essence = parts.next().unwrap_or_default();
    let charset = parts.find_map(|part| {
        let charset = part.strip_prefix("charset=")?;
        Some(charset.trim_matches('"').to_owned())
    });
    let is_latin1 = matches!(charset.as_deref(), Some("iso-8859-1" | "latin1"));
    if essence.starts_with("multipart/")
        && let Some(parts) = multipart::parts(&content_type, &bytes)
    {
        return (several(&content_type, parts), None);
    }
    let form = form(&essence);
    let bytes = match form {
        Form::Json | Form::Text if is_latin1 => latin1(&bytes).into_bytes(),
        _ => bytes,
    };
    let body = match form {
        Form::Bytes | Form::Json | Form::Unknown if bytes.is_empty() => Value::Null,
        Form::Bytes => binary(&content_type, &bytes),
        Form::Json => return json_or_text(&content_type, bytes),
        Form::Text | Form::Unknown => text_or_binary(&content_type, bytes),
    };
    (body, None)
}

/// If the content type is JSON but the body is not, the body is read as text or bytes.
fn json_or_text(content_type: &str, bytes: Vec<u8>) -> (Value, Option<Fault>) {
    match json_of(&bytes) {
        Ok(Some(value)) => (value, None),
        Ok(None) => (text_or_binary(content_type, bytes), None),
        Err(refused) => (text_or_binary(content_type, bytes), Some(refused)),
    }
}

/// Parses JSON. Returns `None` if the bytes are not JSON, and a fault if the value cannot be stored.
fn json_of(bytes: &[u8]) -> Result<Option<Value>, Fault> {
    let text = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    match std::str::from_utf8(text) {
        Ok(text) => json::parsed(text, "the body"),
        Err(_) => Ok(None),
    }
}

/// Returns the bytes of a body that is neither JSON nor text. `None` for any other body.
fn content(body: &Value) -> Option<Vec<u8>> {
    BASE64.decode(body.get("$content")?.as_str()?).ok()
}

/// Parses the body of an answer if it is JSON, whatever its content type.
pub(super) fn with_json(answer: Value) -> Result<Value, Fault> {
    let Some(members) = answer.as_object() else {
        return Ok(answer);
    };
    let bytes = match members.get("body") {
        Some(Value::String(text)) => text.as_str().as_bytes().to_vec(),
        Some(body) => match content(body) {
            Some(bytes) => bytes,
            None => return Ok(answer),
        },
        None => return Ok(answer),
    };
    let Some(value) = json_of(&bytes)? else {
        return Ok(answer);
    };
    let mut members = members.clone();
    members.insert(shared_key("body"), value);
    Ok(Value::object(members))
}

fn text_or_binary(content_type: &str, bytes: Vec<u8>) -> Value {
    match String::from_utf8(bytes) {
        Ok(text) => Value::text(text.strip_prefix('\u{FEFF}').unwrap_or(&text)),
        Err(error) => binary(content_type, error.as_bytes()),
    }
}

fn binary(content_type: &str, bytes: &[u8]) -> Value {
    let kind = match content_type {
        "" => "application/octet-stream",
        kind => kind,
    };
    let pairs: [(Arc<str>, Value); 2] = [
        ("$content-type".into(), Value::text(kind)),
        ("$content".into(), Value::text(BASE64.encode(bytes))),
    ];
    Value::from_pairs(pairs)
}

/// Converts the parts of a body as Logic Apps does: each part has its headers, and its body as bytes in base64.
fn several(content_type: &str, parts: Vec<ReadPart<'_>>) -> Value {
    let part = |(headers, bytes): ReadPart<'_>| {
        let kind = headers
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case("content-type"));
        let body = binary(kind.map_or("", |(_, kind)| kind), bytes);
        let headers = headers
            .into_iter()
            .map(|(name, value)| (Arc::<str>::from(name), Value::text(value)));
        let headers = Value::from_pairs(headers);
        Value::from_pairs([("headers", headers), ("body", body)])
    };
    let parts = parts.into_iter().map(part).collect();
    Value::from_pairs([
        ("$content-type", Value::text(content_type)),
        ("$multipart", Value::array(parts)),
    ])
}

/// Returns the beginning of a body on one line, or `None` if the body is not readable text.
fn excerpt(body: &Value) -> Option<String> {
    if body.is_null() || body.get("$content").is_some() {
        return None;
    }
    let text = shortened(&one_line(&body.to_text()), EXCERPT);
    Some(text).filter(|text| !text.is_empty())
}

/// Returns how long an answer requests to wait, in milliseconds.
fn requested_wait_ms(headers: &HeaderMap) -> Option<u64> {
    let wait = requested_wait(text_of(headers), wall_clock())?;
    u64::try_from(wait.as_millis()).ok()
}

fn wall_clock() -> Timestamp {
    // A header may name a date, which is wall clock time of the server. So it is compared with the wall clock here.
    #[allow(clippy::disallowed_methods)]
    let now = Utc::now();
    Timestamp(now.timestamp_millis())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_charset_counts_for_text_and_for_json() {
        for (kind, bytes, body) in [
            (
                "text/plain; charset=ISO-8859-1",
                b"\"h\xE9\"".as_slice(),
                r#""\"hé\"""#,
            ),
            (
                "application/json; charset=\"iso-8859-1\"",
                b"\"h\xE9\"",
                "\"hé\"",
            ),
            ("application/json", "\"hé\"".as_bytes(), "\"hé\""),
        ] {
            let kind = HeaderValue::from_static(kind);
            let (value, refused) = parse_body(Some(&kind), bytes.to_vec());
            assert_eq!((value.to_json().as_str(), refused.is_none()), (body, true));
        }
    }
}
