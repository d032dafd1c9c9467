//! Builds a request without credentials from the inputs of an action. It never sends anything.

use super::masked;
use super::multipart::{self, MultipartPart};
use super::reply::url_text;
use crate::execution_context::{holds_secret, traceparent};
use crate::inputs::{Inputs, invalid, scalar};
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use percent_encoding::percent_decode_str;
use reqwest::header::{
    AUTHORIZATION, CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_TYPE, COOKIE, HeaderMap,
    HeaderName, HeaderValue, TRANSFER_ENCODING,
};
use reqwest::{Method, Url};
use url::form_urlencoded;
use windlass_expression::Value;
use windlass_model::model::{ASYNC_PATTERN, BODY_FILE, Fault, Request};
use windlass_value::first_chars;

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
/// The input with the address of the page on which the address `page` was found. A workflow format sets it from the
/// last output.
pub(super) const PAGE_BASE: &str = "page_base";
const FORM: &str = "application/x-www-form-urlencoded";

/// The content type of a form with a part for each field.
const MULTIPART_FORM: &str = "multipart/form-data";

/// Builds the first request of an action. With the input `page`, this is a request to the address that the previous
/// page named. The boolean is true if the request is sent to the server that the inputs name.
pub(super) fn first(request: &Request) -> Result<(reqwest::Request, bool), Fault> {
    let inputs = Inputs::of(request)?;
    let home = uri(inputs)?;
    let own = with_queries(home.clone(), inputs)?;
    masked::check(&own)?;
    if let Some(operation) = operation(inputs)? {
        let operation = masked::unmasked("the address of the operation", operation, &own)?;
        return operation_request(&operation, &home, inputs);
    }
    if inputs.get("page").is_none() {
        return Ok((from_inputs(&home, own, request)?, true));
    }
    let page = masked::unmasked("the address of the next page", address(request)?, &own)?;
    if home.origin() == page.origin() {
        return Ok((from_inputs(&home, page, request)?, true));
    }
    match method(inputs)? {
        Method::GET => Ok((reqwest::Request::new(Method::GET, page), false)),
        other => Err(invalid(format!(
            "the next page is at another server, {}, and {other} goes to that of `uri` only",
            page.origin().ascii_serialization()
        ))),
    }
}

/// Returns the address of the first request of an action.
pub(super) fn address(request: &Request) -> Result<Url, Fault> {
    let inputs = Inputs::of(request)?;
    if let Some(operation) = operation(inputs)? {
        return Ok(operation);
    }
    let uri = uri(inputs)?;
    let Some(page) = inputs.text("page")? else {
        return Ok(uri);
    };
    let base = page_base(inputs, &uri)?;
    let next = base.join(page);
    served("page", next)
}

/// Returns the address of a request for a page or about an operation, without credentials. Returns `None` for other
/// requests and if the address is not valid.
#[must_use]
pub fn follow_up_address(request: &Request) -> Option<String> {
    let inputs = Inputs::of(request).ok()?;
    let is_follow_up = inputs.text("page").ok()?.is_some() || operation(inputs).ok()?.is_some();
    let address = is_follow_up.then(|| address(request).ok()).flatten()?;
    url_text(address).as_str().map(ToOwned::to_owned)
}

/// Returns the address of the page on which the address `page` was found. It is the base if `page` is relative (RFC
/// 3986, 5.1.3).
fn page_base(inputs: Inputs<'_>, uri: &Url) -> Result<Url, Fault> {
    let Some(base) = inputs.text(PAGE_BASE)? else {
        return Ok(uri.clone());
    };
    Url::parse(base).map_err(|error| invalid(format!("`{PAGE_BASE}` is not a valid URL: {error}")))
}

/// Builds a request to an address of the server in the inputs.
fn from_inputs(home: &Url, to: Url, request: &Request) -> Result<reqwest::Request, Fault> {
    let inputs = Inputs::of(request)?;
    let mut call = reqwest::Request::new(method(inputs)?, to);
    *call.headers_mut() = headers(inputs)?;
    if let Some(body) = inputs.get("body") {
        set_body(&mut call, body)?;
    }
    if inputs.get(BODY_FILE).is_some() {
        default_type(&mut call, "application/octet-stream");
    }
    sign_in(&mut call, home)?;
    set_no_length(&mut call);
    set_key(&mut call, request);
    Ok(call)
}

/// Converts the user and the password in an address to Basic authentication (RFC 7617), unless the action has other
/// credentials. If the address has no user and password, those of `home` (the address in the inputs) are used.
fn sign_in(call: &mut reqwest::Request, home: &Url) -> Result<(), Fault> {
    let named = |url: &Url| !url.username().is_empty() || url.password().is_some();
    let from = if named(call.url()) { call.url() } else { home };
    if !named(from) {
        return Ok(());
    }
    let mut pair: Vec<u8> = percent_decode_str(from.username()).collect();
    pair.push(b':');
    pair.extend(percent_decode_str(from.password().unwrap_or_default()));
    let mut basic = HeaderValue::try_from(format!("Basic {}", BASE64.encode(pair)))
        .map_err(|_| invalid("the user and the password of `uri` are not a valid header"))?;
    basic.set_sensitive(true);
    call.headers_mut().entry(AUTHORIZATION).or_insert(basic);
    // Both calls fail only for a URL without a host.
    let _ = call.url_mut().set_username("");
    let _ = call.url_mut().set_password(None);
    Ok(())
}

/// Sets the header for the length 0 if the request has no body: a server may refuse POST, PUT or PATCH without a length
/// (RFC 9110, 8.6).
fn set_no_length(call: &mut reqwest::Request) {
    let sends = [Method::POST, Method::PUT, Method::PATCH].contains(call.method());
    let body = call.body().and_then(reqwest::Body::as_bytes);
    if sends && body.is_none_or(<[u8]>::is_empty) {
        call.headers_mut()
            .insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
    }
}

pub(super) fn post_json(
    url: &str,
    body: &Value,
    request: &Request,
) -> Result<reqwest::Request, Fault> {
    let url = parse_url("uri", url)?;
    let mut call = reqwest::Request::new(Method::POST, url.clone());
    set_json(&mut call, body);
    sign_in(&mut call, &url)?;
    set_key(&mut call, request);
    Ok(call)
}

/// Returns the address of a running operation, which an answer of status 202 named. `None` if the call is not about an
/// operation.
fn operation(inputs: Inputs<'_>) -> Result<Option<Url>, Fault> {
    match inputs.get(ASYNC_PATTERN) {
        Some(Value::String(address)) => parse_url("uri", address).map(Some),
        _ => Ok(None),
    }
}

/// Builds a request about an operation. The boolean is true if the request is sent to the server that the inputs name:
/// only this server gets the headers and the credentials.
fn operation_request(
    url: &Url,
    home: &Url,
    inputs: Inputs<'_>,
) -> Result<(reqwest::Request, bool), Fault> {
    let mut call = reqwest::Request::new(Method::GET, url.clone());
    let at_home = home.origin() == url.origin();
    if at_home {
        *call.headers_mut() = headers(inputs)?;
        sign_in(&mut call, home)?;
    }
    Ok((call, at_home))
}

pub(super) fn method(inputs: Inputs<'_>) -> Result<Method, Fault> {
    let method = inputs.text("method")?.unwrap_or("GET").to_uppercase();
    Method::from_bytes(method.as_bytes())
        .map_err(|_| invalid(format!("`method` is not a valid HTTP method: {method:?}")))
}

fn uri(inputs: Inputs<'_>) -> Result<Url, Fault> {
    match (inputs.text("uri")?, inputs.get("url")) {
        (Some(uri), _) => parse_url("uri", uri),
        (None, Some(_)) => Err(invalid("`uri` is missing; it is not called `url`")),
        (None, None) => Err(invalid("`uri` is missing")),
    }
}

/// Reads the URL of the input `key`. If the URL is relative, the message has its path.
pub(crate) fn parse_url(key: &str, text: &str) -> Result<Url, Fault> {
    const SHOWN: usize = 60;
    let url = Url::parse(text);
    let path = text.split(['?', '#']).next().unwrap_or_default();
    let is_public = !path.contains('@') && !holds_secret(text.as_bytes());
    if let Err(error @ url::ParseError::RelativeUrlWithoutBase) = url
        && is_public
    {
        let shown = first_chars(path, SHOWN);
        return Err(invalid(format!(
            "`{key}` is not a valid URL: {error}: `{shown}`"
        )));
    }
    served(key, url)
}

/// Checks the URL of the input `key`. The messages omit an absolute URL, which may contain a password.
fn served(key: &str, url: Result<Url, url::ParseError>) -> Result<Url, Fault> {
    let url = url.map_err(|error| invalid(format!("`{key}` is not a valid URL: {error}")))?;
    match url.scheme() {
        "http" | "https" => Ok(url),
        scheme => Err(invalid(format!(
            "`{key}` must begin with http:// or https://, not {scheme}:"
        ))),
    }
}

/// Returns the address with the input `queries`.
fn with_queries(mut url: Url, inputs: Inputs<'_>) -> Result<Url, Fault> {
    let mut pairs = Vec::new();
    for (name, value) in inputs.members("queries")? {
        pairs.extend(repeated("queries", name, value)?);
    }
    if !pairs.is_empty() {
        // Encode a space as `%20`: unlike in a form, some servers do not read `+` as a space in a query.
        let added = encoded(pairs).replace('+', "%20");
        let query = match url.query() {
            Some(query) if !query.is_empty() => format!("{query}&{added}"),
            _ => added,
        };
        url.set_query(Some(&query));
    }
    Ok(url)
}

/// Returns pairs of a name and its value. A list makes one pair for each value, and null makes none.
fn repeated<'a>(key: &str, name: &'a str, value: &Value) -> Result<Vec<(&'a str, String)>, Fault> {
    let key = format!("{key}.{name}");
    let values = match value {
        Value::Array(items) => items.as_slice(),
        single => std::slice::from_ref(single),
    };
    let texts: Result<Vec<_>, _> = values.iter().map(|value| scalar(&key, value)).collect();
    Ok(texts?
        .into_iter()
        .flatten()
        .map(|text| (name, text))
        .collect())
}

fn headers(inputs: Inputs<'_>) -> Result<HeaderMap, Fault> {
    let mut headers = HeaderMap::new();
    for (name, value) in inputs.members("headers")? {
        for (name, text) in repeated("headers", name, value)? {
            let bad = |what| invalid(format!("`headers.{name}` is not a valid {what}"));
            let header: HeaderName = name.parse().map_err(|_| bad("name of a header"))?;
            let value = HeaderValue::from_str(&text)
                .or_else(|_| HeaderValue::from_bytes(text.as_bytes()))
                .map_err(|_| bad("header: it has control characters"))?;
            // The client library sets these headers itself.
            if header != CONTENT_LENGTH && header != TRANSFER_ENCODING {
                headers.append(header, value);
            }
        }
    }
    if let Some(cookie) = inputs.text("cookie")? {
        let value = HeaderValue::from_str(cookie)
            .map_err(|_| invalid("`cookie` is not a valid header: it has control characters"))?;
        headers.append(COOKIE, value);
    }
    Ok(headers)
}

fn set_body(call: &mut reqwest::Request, body: &Value) -> Result<(), Fault> {
    let sent_as = content_type(call).unwrap_or_default().to_owned();
    let is_sent_as = |kind: &str| {
        let begins = sent_as.get(..kind.len());
        begins.is_some_and(|begins| begins.eq_ignore_ascii_case(kind))
    };
    match body {
        Value::String(text) => {
            default_type(call, "text/plain; charset=utf-8");
            *call.body_mut() = Some(text.as_str().to_owned().into());
        }
        Value::Object(_) if body.get("$multipart").is_some() => set_multipart(call, body)?,
        Value::Object(_) if body.get("$content").is_some() => set_binary(call, body)?,
        Value::Object(_) if is_sent_as(FORM) => {
            *call.body_mut() = Some(form(body)?.into());
        }
        Value::Object(_) if is_sent_as(MULTIPART_FORM) => {
            set_parts(call, &sent_as, &form_parts(body)?)?;
        }
        other => set_json(call, other),
    }
    Ok(())
}

fn set_json(call: &mut reqwest::Request, body: &Value) {
    default_type(call, "application/json");
    *call.body_mut() = Some(body.to_json().into());
}

/// Sets a body of bytes as Logic Apps writes them: `{"$content-type": …, "$content": base64}`.
fn set_binary(call: &mut reqwest::Request, body: &Value) -> Result<(), Fault> {
    let (kind, bytes) = binary(body)?;
    default_type(call, kind.unwrap_or("application/octet-stream"));
    *call.body_mut() = Some(bytes.into());
    Ok(())
}

/// Returns the content type and the bytes of a body `{"$content-type": …, "$content": base64}`.
fn binary(body: &Value) -> Result<(Option<&str>, Vec<u8>), Fault> {
    let inputs = Inputs::from_value("body", body)?;
    let bytes = BASE64
        .decode(inputs.required_text("$content")?)
        .map_err(|error| invalid(format!("`body.$content` is not valid base64: {error}")))?;
    Ok((inputs.text("$content-type")?, bytes))
}

/// Sets a body of several parts as Logic Apps writes them: `{"$content-type": …, "$multipart": [{headers, body}]}`.
fn set_multipart(call: &mut reqwest::Request, body: &Value) -> Result<(), Fault> {
    let inputs = Inputs::from_value("body", body)?;
    let Some(Value::Array(items)) = inputs.get("$multipart") else {
        return Err(invalid("`body.$multipart` must be a list of parts"));
    };
    let parts: Result<Vec<MultipartPart>, Fault> = items.iter().map(part).collect();
    let parts = parts?;
    let kind = content_type(call).or(inputs.text("$content-type")?);
    let kind = kind.unwrap_or(MULTIPART_FORM).to_owned();
    set_parts(call, &kind, &parts)
}

fn set_parts(
    call: &mut reqwest::Request,
    kind: &str,
    parts: &[MultipartPart],
) -> Result<(), Fault> {
    let (kind, bytes) = multipart::encode(kind, parts);
    let kind = HeaderValue::from_str(&kind)
        .map_err(|_| invalid("`body.$content-type` is not a valid header"))?;
    call.headers_mut().insert(CONTENT_TYPE, kind);
    *call.body_mut() = Some(bytes.into());
    Ok(())
}

/// Returns the parts of a form (RFC 7578): one for each member, or for each element of a member that is a list.
/// `{"$content-type", "$content"}` is a file that has the name of the member.
fn form_parts(body: &Value) -> Result<Vec<MultipartPart>, Fault> {
    let inputs = Inputs::from_value("body", body)?;
    let mut parts = Vec::new();
    for (name, value) in inputs.all() {
        if value.get("$content").is_some() {
            let (kind, bytes) = binary(value)?;
            let kind = kind.unwrap_or("application/octet-stream").to_owned();
            parts.push(form_part(name, Some(kind), bytes)?);
            continue;
        }
        for (name, text) in repeated("body", name, value)? {
            parts.push(form_part(name, None, text.into_bytes())?);
        }
    }
    Ok(parts)
}

fn form_part(name: &str, kind: Option<String>, bytes: Vec<u8>) -> Result<MultipartPart, Fault> {
    let quoted = name.replace('"', "%22");
    let mut disposition = format!("form-data; name=\"{quoted}\"");
    if kind.is_some() {
        disposition.push_str(&format!("; filename=\"{quoted}\""));
    }
    let value = HeaderValue::from_bytes(disposition.as_bytes())
        .map_err(|_| invalid(format!("`body.{name}` is not a valid name of a part")))?;
    Ok(MultipartPart {
        headers: HeaderMap::from_iter([(CONTENT_DISPOSITION, value)]),
        kind,
        bytes,
    })
}

fn part(item: &Value) -> Result<MultipartPart, Fault> {
    let inputs = Inputs::from_value("body.$multipart", item)?;
    let headers = headers(inputs)?;
    let (kind, bytes) = match inputs.get("body") {
        None => (None, Vec::new()),
        Some(Value::String(text)) => (None, text.as_bytes().to_vec()),
        Some(body) if body.get("$content").is_some() => binary(body)?,
        Some(other) => (Some("application/json"), other.to_json().into_bytes()),
    };
    let kind = kind.map(str::to_owned);
    Ok(MultipartPart {
        headers,
        kind,
        bytes,
    })
}

fn form(body: &Value) -> Result<String, Fault> {
    let inputs = Inputs::from_value("body", body)?;
    let mut pairs = Vec::new();
    for (name, value) in inputs.all() {
        pairs.extend(repeated("body", name, value)?);
    }
    Ok(encoded(pairs))
}

/// Encodes pairs as in a form, where a space becomes `+`.
fn encoded(pairs: Vec<(&str, String)>) -> String {
    form_urlencoded::Serializer::new(String::new())
        .extend_pairs(pairs)
        .finish()
}

fn content_type(call: &reqwest::Request) -> Option<&str> {
    call.headers().get(CONTENT_TYPE)?.to_str().ok()
}

fn default_type(call: &mut reqwest::Request, kind: &str) {
    if let Ok(value) = HeaderValue::from_str(kind) {
        call.headers_mut().entry(CONTENT_TYPE).or_insert(value);
    }
}

/// Adds the idempotency key and the trace context, unless the author set these headers.
fn set_key(call: &mut reqwest::Request, request: &Request) {
    if let Ok(value) = HeaderValue::from_str(&printable(&request.key)) {
        call.headers_mut().entry(IDEMPOTENCY_KEY).or_insert(value);
    }
    let span = traceparent(request).and_then(|span| HeaderValue::try_from(span).ok());
    if let Some(span) = span {
        call.headers_mut().entry(TRACEPARENT).or_insert(span);
    }
}

/// Escapes a key for a header. A key contains names of actions, which may have any characters, and a header may have
/// only visible ASCII.
fn printable(key: &str) -> String {
    key.bytes().fold(String::new(), |mut text, byte| {
        match byte {
            b'!'..=b'~' => text.push(char::from(byte)),
            other => text.push_str(&format!("%{other:02X}")),
        }
        text
    })
}

#[cfg(test)]
mod tests {
    use super::printable;

    #[test]
    fn a_key_is_printable() {
        assert_eq!(printable("run/loop[3]/a"), "run/loop[3]/a");
        assert_eq!(printable("prüfen 1"), "pr%C3%BCfen%201");
    }
}
