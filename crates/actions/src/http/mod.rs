//! `http`: one call to a web server (docs/reference/loom.md). It never retries: redirects are followed,
//! everything else is the policy's.

mod client;
mod credentials;
mod egress;
mod fault;
mod links;
mod multipart;
mod operation;
mod redirect;
mod reply;
mod request;
mod signature;
mod text;
mod tokens;
mod trust;

pub(super) use client::Client;
pub(super) use reply::Reply;

use super::inputs::{Inputs, invalid};
use super::secrets::Mask;
use super::{Attempt, Executor};
use credentials::Credentials;
use operation::Step;
use reqwest::header::AUTHORIZATION;
use reqwest::{Method, StatusCode, Url};
use std::sync::Arc;
use std::time::Duration;
use tokens::TokenRequest;
use trust::TrustedCertificates;
use windlass_expression::Value;
use windlass_model::model::{Fault, Request};
use windlass_value::LONGEST_REQUESTED_WAIT;

/// How long a call may take when the action does not say.
pub(super) const DEFAULT_TIMEOUT: Duration = Duration::from_secs(100);

/// How long a call may take whose 202 is followed, when the action does not say.
const ASYNCHRONOUS_TIMEOUT: Duration = Duration::from_secs(24 * 3600);

/// The time between two looks when the server names none.
const POLL_INTERVAL: Duration = Duration::from_secs(20);

pub(super) struct Http {
    client: Arc<Client>,
}

impl Http {
    pub(super) fn new(client: Arc<Client>) -> Self {
        Self { client }
    }
}

impl Executor for Http {
    fn execute<'a>(&'a self, request: &'a Request) -> Attempt<'a> {
        Box::pin(async {
            let mut used = Vec::new();
            let outcome = self.outcome(request, &mut used).await;
            match used.is_empty() {
                true => outcome,
                // A server may send back what it was sent.
                false => Mask::of(used.iter().map(String::as_str)).outcome(outcome),
            }
        })
    }

    fn destination(&self, request: &Request) -> Option<Url> {
        request::address(request).ok()
    }

    fn timeout(&self, request: &Request) -> Option<Duration> {
        let default = match is_asynchronous(request) {
            true => ASYNCHRONOUS_TIMEOUT,
            false => DEFAULT_TIMEOUT,
        };
        let own = request.timeout_ms.map(Duration::from_millis);
        own.or(Some(default))
    }
}

impl Http {
    /// One call, and what it leads to; the tokens that it needed are added to `used`.
    async fn outcome(&self, request: &Request, used: &mut Vec<String>) -> Result<Value, Fault> {
        let inputs = Inputs::of(request)?;
        let signing = Signing {
            client: &self.client,
            credentials: Credentials::of(inputs)?,
            trust: TrustedCertificates::of(inputs)?,
            used,
        };
        let answer = signing.outcome(request).await?;
        match request.inputs.get("parse").and_then(Value::as_str) {
            Some("json") => reply::with_json(answer),
            _ => Ok(answer),
        }
    }
}

/// A call with what it signs in with.
struct Signing<'a> {
    client: &'a Client,
    credentials: Credentials,
    trust: Option<TrustedCertificates>,
    used: &'a mut Vec<String>,
}

impl Signing<'_> {
    async fn outcome(mut self, request: &Request) -> Result<Value, Fault> {
        let (call, at_home) = request::first(request)?;
        let (asked, method) = (call.url().clone(), call.method().clone());
        if !at_home {
            return output(self.client.call(call).await?, request, &method);
        }
        let reply = match self.call(call).await {
            // `check: false`: an answer counts, whatever its status.
            Err(Fault {
                code: Some(_),
                output: Some(answer),
                ..
            }) if request.inputs.get("check") == Some(&Value::Bool(false)) => return Ok(answer),
            other => other?,
        };
        if is_asynchronous(request) {
            // Boxed: else each call has room for it.
            let settled = Box::pin(self.settled(reply, asked, request));
            return output(settled.await?, request, &method);
        }
        output(reply, request, &method)
    }

    /// Signs and calls.
    async fn call(&mut self, mut call: reqwest::Request) -> Result<Reply, Fault> {
        match self.credentials.put_on(&mut call)? {
            None => self.client.call_with(call, self.trust.as_ref()).await,
            Some(asked) => {
                let with_token =
                    call_with_token(self.client, self.trust.as_ref(), asked, self.used, call);
                Box::pin(with_token).await
            }
        }
    }

    /// While the answer is a 202 that says where to look, looks there (Logic Apps reference,
    /// "Asynchronous request-response pattern").
    async fn settled(
        &mut self,
        mut reply: Reply,
        mut at: Url,
        request: &Request,
    ) -> Result<Reply, Fault> {
        while reply.status == StatusCode::ACCEPTED {
            let location = reply.headers.get("location").and_then(Value::as_str);
            let Some(next) = location.and_then(|location| at.join(location).ok()) else {
                break;
            };
            let wait = reply.requested_wait().unwrap_or(POLL_INTERVAL);
            tokio::time::sleep(wait.min(LONGEST_REQUESTED_WAIT)).await;
            let (look, at_home) = request::poll(&next, request)?;
            reply = match at_home {
                true => self.call(look).await?,
                false => self.client.call(look).await?,
            };
            at = next;
        }
        Ok(reply)
    }
}

/// Calls with a token; once more, with a new one, when it is refused. Tokens that were used are added to
/// `used`.
async fn call_with_token(
    client: &Client,
    trust: Option<&TrustedCertificates>,
    asked: &TokenRequest,
    used: &mut Vec<String>,
    call: reqwest::Request,
) -> Result<Reply, Fault> {
    let mut refused: Option<String> = None;
    loop {
        let Some(mut signed) = call.try_clone() else {
            return Err(invalid("the body cannot be sent twice"));
        };
        let tokens = client.tokens();
        let token = tokens.get(client, asked, refused.as_deref()).await?;
        signed
            .headers_mut()
            .insert(AUTHORIZATION, credentials::bearer(&token)?);
        used.push(token.clone());
        let outcome = client.call_with(signed, trust).await;
        let denied = matches!(&outcome, Err(fault) if fault.code.as_deref() == Some("401"));
        if !denied || refused.is_some() {
            return outcome;
        }
        refused = Some(token);
    }
}

fn output(reply: Reply, request: &Request, method: &Method) -> Result<Value, Fault> {
    if let Some(step) = Step::of(&request.inputs) {
        return operation::output(reply, step, method);
    }
    // Null for the first page.
    Ok(match request.inputs.get("page") {
        Some(_) => reply.into_page(),
        None => reply.into_value(),
    })
}

fn is_asynchronous(request: &Request) -> bool {
    request.inputs.get("asyncPattern") == Some(&Value::Bool(true))
}
