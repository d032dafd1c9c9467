//! The fault of a call without a complete reply.

use super::egress::DeniedAddress;
use super::proxy;
use reqwest::Url;
use std::error::Error;
use windlass_model::model::{Fault, NOT_CONNECTED, fault_kind};

/// Returns the URL for messages: without user, password, query and fragment, which may contain secrets.
pub(super) fn shown(url: &Url) -> String {
    let mut url = url.clone();
    // Both calls fail only for URLs that cannot have a user or a password.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.set_query(None);
    url.set_fragment(None);
    url.to_string()
}

/// Makes the fault for a call without a complete reply, with all causes of the error. `is_first`: the call has not
/// followed a redirect yet.
pub(super) fn connection_fault(url: &Url, error: reqwest::Error, is_first: bool) -> Fault {
    if let Some(denied) = source_of::<DeniedAddress>(&error) {
        return Fault::new(fault_kind::DENIED, denied.to_string());
    }
    let shown = shown(error.url().unwrap_or(url));
    let what = if error.is_connect() || error.is_request() {
        format!("cannot reach {shown}")
    } else {
        format!("the answer of {shown} broke off")
    };
    let refused = error.is_builder();
    let is_connect = error.is_connect();
    let nothing_sent = is_first && is_connect;
    let causes = causes(&error.without_url());
    let setting = is_connect.then(|| setting(url, &causes)).flatten();
    let mut message = match &*causes {
        "" => what,
        // The library for TLS says this of an answer that is not TLS.
        causes if causes.contains("InvalidContentType") => {
            format!("{what}: the server does not speak TLS there: write http://")
        }
        causes => format!("{what}: {causes}"),
    };
    if let Some(setting) = setting {
        message.push_str(&format!(" ({setting})"));
    }
    if refused {
        Fault::new(fault_kind::INPUT, message)
    } else {
        let fault = Fault::new(fault_kind::CONNECTION, message).transient();
        match nothing_sent {
            true => fault.code(NOT_CONNECTED),
            false => fault,
        }
    }
}

/// Names the environment variable that may be the cause of a connection that failed.
fn setting(url: &Url, causes: &str) -> Option<String> {
    let value = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    if causes.contains("certificate") {
        let file = value("SSL_CERT_FILE")?;
        let problem = match std::fs::read(&file) {
            Err(_) => "cannot be read",
            Ok(text) if !has_certificate(&text) => "has no certificate (PEM)",
            Ok(_) => return None,
        };
        return Some(format!("SSL_CERT_FILE: {} {problem}", file.display()));
    }
    proxy::variable(url).map(|(name, _)| format!("{name} is set"))
}

fn has_certificate(text: &[u8]) -> bool {
    const BEGIN: &[u8] = b"-----BEGIN CERTIFICATE-----";
    text.windows(BEGIN.len()).any(|part| part == BEGIN)
}

/// Lists the causes of an error (its sources). Each is listed once, because libraries often repeat a lower cause.
fn causes(error: &dyn Error) -> String {
    let mut listed: Vec<String> = Vec::new();
    let mut next = error.source();
    while let Some(cause) = next {
        let text = cause.to_string();
        listed.retain(|above| !text.contains(above.as_str()));
        let news = !listed.iter().any(|above| above.contains(&text));
        // Omit causes that only name a layer of the client library.
        if news && !text.starts_with("client error") {
            listed.push(text);
        }
        next = cause.source();
    }
    listed.join(": ")
}

fn source_of<'e, T: Error + 'static>(error: &'e (dyn Error + 'static)) -> Option<&'e T> {
    let mut next = error.source();
    while let Some(cause) = next {
        if let Some(found) = cause.downcast_ref::<T>() {
            return Some(found);
        }
        next = cause.source();
    }
    None
}
