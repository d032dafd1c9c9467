//! `http`: one call to a web server (spec: loom.md, Actions). It never retries: redirects are
//! followed, everything else is the policy's.

mod client;
mod links;
mod reply;
mod request;

pub(super) use client::Client;
pub(super) use reply::Reply;

use super::{Attempt, Executor};
use crate::model::Request;
use std::sync::Arc;
use std::time::Duration;

/// How long a call may take when the action does not say.
pub(super) const DEFAULT_TIMEOUT: Duration = Duration::from_secs(100);

/// The executor of `http`.
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
            Ok(self.client.call(call).await?.into_value())
        })
    }

    fn default_timeout(&self, _: &Request) -> Option<Duration> {
        Some(DEFAULT_TIMEOUT)
    }
}
