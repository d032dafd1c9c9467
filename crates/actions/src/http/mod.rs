//! `http`: one call to a web server (docs/reference/loom.md). It follows redirects but never retries.

mod client;
mod conditional;
mod credentials;
mod digest;
mod download;
mod egress;
mod event_parser;
mod events;
mod fault;
mod links;
mod masked;
mod multipart;
mod operation;
mod partial;
mod previous;
mod proxy;
mod redirect;
mod reply;
mod request;
mod signature;
mod stall;
mod streams;
mod text;
mod tokens;
mod trust;
mod upload;

pub(super) use client::Client;
pub(super) use reply::Reply;
pub use request::follow_up_address;
#[cfg(feature = "llm")]
pub(super) use request::parse_url;

use super::inputs::{Inputs, invalid, is_accepted};
use super::mask::Mask;
use super::{Attempt, Executor};
use client::CallOptions;
use conditional::Conditional;
use credentials::Credentials;
use operation::Step;
use reply::Answer;
use reqwest::header::{AUTHORIZATION, CONTENT_LENGTH, HeaderValue};
use reqwest::{Method, Url};
use stall::StallWatch;
use std::sync::Arc;
use std::time::Duration;
use streams::Streams;
use tokens::TokenRequest;
use trust::TrustedCertificates;
use upload::Upload;
use windlass_expression::Value;
use windlass_model::model::{Fault, Request, SAVE_TO};

/// The timeout of a call, if the action has none.
pub(super) const DEFAULT_TIMEOUT: Duration = Duration::from_secs(100);

pub(super) struct Http {
    client: Arc<Client>,
    streams: Streams,
}

impl Http {
    pub(super) fn new(client: Arc<Client>) -> Self {
        Self {
            client,
            streams: Streams::default(),
        }
    }
}

impl Executor for Http {
    fn execute<'a>(&'a self, request: &'a Request) -> Attempt<'a> {
        Box::pin(async {
            let mut used = Vec::new();
            let outcome = self.outcome(request, &mut used).await;
            match used.is_empty() {
                true => outcome,
                // A server may send the token back in its answer.
                false => Mask::of(used.iter().map(String::as_str)).outcome(outcome),
            }
        })
    }

    fn destination(&self, request: &Request) -> Option<Url> {
        // If the stream is open, its next event needs no request, so the call has no destination.
        match request.reads_events() && self.streams.has(request) {
            true => None,
            false => request::address(request).ok(),
        }
    }

    fn timeout(&self, request: &Request) -> Option<Duration> {
        let own = request.timeout_ms.map(Duration::from_millis);
        match request.transfers_file() || request.reads_events() {
            // Such a call has no default timeout: it may need any time while data arrives. `stall` ends it when no data
            // arrives.
            true => own,
            false => own.or(Some(DEFAULT_TIMEOUT)),
        }
    }
}

impl Http {
    /// Makes one call and processes its answer. Adds the tokens that the call used to `used`.
    async fn outcome(&self, request: &Request, used: &mut Vec<String>) -> Result<Value, Fault> {
        let inputs = Inputs::of(request)?;
        let progress = StallWatch::new();
        let call = HttpCall {
            client: &self.client,
            credentials: Credentials::of(inputs)?,
            trust: TrustedCertificates::of(inputs)?,
            upload: match request.transfers_file() {
                true => Upload::of(inputs, &progress).await?,
                false => None,
            },
            used,
        };
        let answer = match request.transfers_file() {
            _ if request.reads_events() => {
                return Box::pin(call.event(request, &self.streams)).await;
            }
            // Boxed, because otherwise the future of every call would contain the space for this future.
            true => {
                let transfer = call.transfer(request, &progress);
                Box::pin(progress.watch(transfer)).await??
            }
            false => call.outcome(request).await?,
        };
        match request.inputs.get("parse").and_then(Value::as_str) {
            Some("json") => reply::with_json(answer),
            _ => Ok(answer),
        }
    }
}

/// A call with its credentials.
struct HttpCall<'a> {
    client: &'a Client,
    credentials: Credentials,
    trust: Option<TrustedCertificates>,
    /// The file that is the body of the request.
    upload: Option<Upload>,
    used: &'a mut Vec<String>,
}

impl HttpCall<'_> {
    /// Makes a call that sends or saves a file.
    async fn transfer(self, request: &Request, progress: &StallWatch) -> Result<Value, Fault> {
        match Inputs::of(request)?.path(SAVE_TO)? {
            Some(file) => self.download(request, file, progress).await,
            None => self.outcome(request).await,
        }
    }

    async fn outcome(mut self, request: &Request) -> Result<Value, Fault> {
        let (mut call, at_home) = request::first(request)?;
        let method = call.method().clone();
        let explain = |fault| operation::explain_404(reply::explain_size(fault), &request.inputs);
        if !at_home {
            let reply = self.client.call(call).await.map_err(explain)?;
            return output(reply, request, &method);
        }
        let conditional = Conditional::put_on(&mut call, Inputs::of(request)?)?;
        let reply = match self.call(call).await {
            Ok(reply) => reply,
            Err(fault) => return allowed(explain(fault), request),
        };
        let answer = output(reply, request, &method)?;
        Ok(match conditional {
            Some(conditional) => conditional.with_validator(answer),
            None => answer,
        })
    }

    /// Adds the credentials and sends the request.
    async fn call<A: Answer>(&mut self, call: reqwest::Request) -> Result<A, Fault> {
        self.call_with(call, false).await
    }

    /// Adds the credentials and sends the request, as [`Self::call`] does. With `keeps_bytes`, the body of the answer
    /// remains compressed.
    async fn call_with<A: Answer>(
        &mut self,
        mut call: reqwest::Request,
        keeps_bytes: bool,
    ) -> Result<A, Fault> {
        let options = CallOptions {
            trust: self.trust.as_ref(),
            upload: self.upload.as_ref(),
            keeps_bytes,
        };
        let body_digest = match (&self.credentials, options.upload) {
            (Credentials::Signature(_), Some(upload)) => {
                // Set this header here, because a signature covers it, too.
                let length = HeaderValue::from(upload.length());
                call.headers_mut().insert(CONTENT_LENGTH, length);
                Some(upload.digest().await?)
            }
            _ => None,
        };
        match self.credentials.put_on(&mut call, body_digest)? {
            None => self.client.call_with(call, options).await,
            Some(request) => {
                let with_token = call_with_token(self.client, options, request, self.used, call);
                Box::pin(with_token).await
            }
        }
    }
}

/// Calls with a token. If the server refuses the token, calls once again, with a new token. Adds the tokens to `used`.
async fn call_with_token<A: Answer>(
    client: &Client,
    options: CallOptions<'_>,
    request: &TokenRequest,
    used: &mut Vec<String>,
    call: reqwest::Request,
) -> Result<A, Fault> {
    let mut refused: Option<String> = None;
    loop {
        let Some(mut signed) = call.try_clone() else {
            return Err(invalid("the body cannot be sent twice"));
        };
        let tokens = client.tokens();
        let token = tokens.get(client, request, refused.as_deref()).await?;
        signed
            .headers_mut()
            .insert(AUTHORIZATION, credentials::bearer(&token)?);
        used.push(token.clone());
        let outcome = client.call_with(signed, options).await;
        let denied = matches!(&outcome, Err(fault) if fault.code.as_deref() == Some("401"));
        if !denied || refused.is_some() {
            return outcome;
        }
        refused = Some(token);
    }
}

fn output(reply: Reply, request: &Request, method: &Method) -> Result<Value, Fault> {
    let reply = match operation::is_result(&request.inputs) {
        true => reply.with_text(),
        false => reply,
    };
    if let Some(step) = Step::of(&request.inputs) {
        let requested = request::address(request).ok();
        return operation::output(reply, step, method, requested.as_ref());
    }
    let step = Step::of_pattern(&request.inputs);
    let pending = step.and_then(|step| operation::pending(&reply, step));
    // The input `page` exists only in calls for pages. It is null for the first page.
    let output = match request.inputs.get("page") {
        Some(_) => reply.into_page(),
        None => reply.into_value(),
    };
    Ok(previous::with_member(output, operation::OPERATION, pending))
}

/// Makes the output for a stub's answer, `{statusCode, headers, body}`. The output has the same form as for a server's
/// answer, including the members about a long operation and about a page.
pub(super) fn of_stub(answer: Result<Value, Fault>, request: &Request) -> Result<Value, Fault> {
    let answer = answer.or_else(|fault| allowed(fault, request))?;
    if Step::of(&request.inputs).is_none() && request.inputs.get("page").is_none() {
        return Ok(answer);
    }
    // The address is not valid or not known yet, so a real call would fail here. A stub still answers.
    let Ok(url) = request::address(request) else {
        return Ok(answer);
    };
    let method = request::method(Inputs::of(request)?)?;
    output(Reply::of_stub(&answer, url), request, &method)
}

/// Returns the answer of a fault if its status of 400 or above is accepted.
fn allowed(fault: Fault, request: &Request) -> Result<Value, Fault> {
    let status = fault.code.as_deref().and_then(|code| code.parse().ok());
    let is_accepted = status.is_some_and(|status| is_accepted(&request.inputs, status));
    match fault {
        Fault {
            output: Some(answer),
            ..
        } if is_accepted => Ok(answer),
        fault => Err(fault),
    }
}
