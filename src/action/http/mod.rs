//! `http`: one call to a web server (docs/loom.md). It never retries: redirects are followed,
//! everything else is the policy's.

mod client;
mod egress;
mod fault;
mod links;
mod multipart;
mod redirect;
mod reply;
mod request;
mod text;

pub(super) use client::Client;
pub(super) use reply::Reply;

use super::{Attempt, Executor};
use crate::expression::Value;
use crate::model::{Fault, Request};
use reqwest::{StatusCode, Url};
use std::sync::Arc;
use std::time::Duration;

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
            let call = request::from_inputs(request)?;
            let asked = call.url().clone();
            let reply = self.client.call(call).await?;
            if is_asynchronous(request) {
                return Ok(self.settled(reply, asked, request).await?.into_value());
            }
            Ok(reply.into_value())
        })
    }

    fn destination(&self, request: &Request) -> Option<Url> {
        Url::parse(request.inputs.get("uri")?.as_str()?).ok()
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
    /// While the answer is a 202 that says where to look, looks there (Logic Apps reference,
    /// "Asynchronous request-response pattern").
    async fn settled(
        &self,
        mut reply: Reply,
        mut at: Url,
        request: &Request,
    ) -> Result<Reply, Fault> {
        while reply.status == StatusCode::ACCEPTED {
            let location = reply.headers.get("location").and_then(Value::as_str);
            let Some(next) = location.and_then(|location| at.join(location).ok()) else {
                break;
            };
            let wait = reply.headers.get("retry-after").and_then(Value::as_str);
            let wait = wait.and_then(|seconds| seconds.trim().parse().ok());
            tokio::time::sleep(wait.map_or(POLL_INTERVAL, Duration::from_secs)).await;
            reply = self.client.call(request::poll(&next, request)?).await?;
            at = next;
        }
        Ok(reply)
    }
}

fn is_asynchronous(request: &Request) -> bool {
    request.inputs.get("asyncPattern") == Some(&Value::Bool(true))
}
