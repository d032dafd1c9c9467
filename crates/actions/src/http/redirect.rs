//! The next request after a redirect. Nothing that could be secret is sent to another origin (scheme, host and port).
//! Only a few headers are sent there. A header, address or body that contains a secret of the program is not sent. This
//! module never sends anything.

use super::events::LAST_EVENT_ID;
use super::fault::shown;
use crate::execution_context;
use reqwest::header::{
    ACCEPT, ACCEPT_LANGUAGE, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderName, LOCATION,
    TRANSFER_ENCODING, USER_AGENT,
};
use reqwest::{Method, Request, Response, StatusCode, Url};
use windlass_model::model::{Fault, fault_kind};

/// The headers that are also sent to another origin.
const CARRIED: [HeaderName; 7] = [
    ACCEPT,
    ACCEPT_LANGUAGE,
    CONTENT_ENCODING,
    CONTENT_TYPE,
    USER_AGENT,
    HeaderName::from_static("idempotency-key"),
    LAST_EVENT_ID,
];

/// The headers that describe a body. They are removed together with the body.
const OF_BODY: [HeaderName; 4] = [
    CONTENT_ENCODING,
    CONTENT_LENGTH,
    CONTENT_TYPE,
    TRANSFER_ENCODING,
];

/// Returns the request that follows a response to `call`, or `None` if the response does not redirect and so is the
/// answer of the call.
pub(super) fn next(call: Option<Request>, response: &Response) -> Result<Option<Request>, Fault> {
    let Some((mut call, to)) = call.zip(target(response)) else {
        return Ok(None);
    };
    let stays = matches!(*call.method(), Method::GET | Method::HEAD);
    if !keeps_body(response.status()) {
        if !stays {
            *call.method_mut() = Method::GET;
        }
        *call.body_mut() = None;
        for name in &OF_BODY {
            call.headers_mut().remove(name);
        }
    }
    if to.origin() != call.url().origin() {
        leave_home(&mut call, &to)?;
    }
    *call.url_mut() = to;
    Ok(Some(call))
}

/// Returns true if a redirect repeats the request with its body.
pub(super) fn keeps_body(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT
    )
}

/// Returns the target of a redirect that can be followed.
fn target(response: &Response) -> Option<Url> {
    if !matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
        return None;
    }
    let location = response.headers().get(LOCATION)?;
    let to = response.url().join(location.to_str().ok()?).ok()?;
    matches!(to.scheme(), "http" | "https").then_some(to)
}

/// Removes what another origin must not receive from a request.
fn leave_home(call: &mut Request, to: &Url) -> Result<(), Fault> {
    let headers = std::mem::take(call.headers_mut());
    for (name, value) in &headers {
        if CARRIED.contains(name) && !execution_context::holds_secret(value.as_bytes()) {
            call.headers_mut().append(name, value.clone());
        }
    }
    let body = call.body().and_then(|body| body.as_bytes());
    let body = body.is_some_and(execution_context::holds_secret);
    if !body && !execution_context::holds_secret(to.as_str().as_bytes()) {
        return Ok(());
    }
    let message = format!(
        "{} redirects to {}, and a secret would go along: call that address itself",
        shown(call.url()),
        shown(to)
    );
    Err(Fault::new(fault_kind::HTTP, message))
}
