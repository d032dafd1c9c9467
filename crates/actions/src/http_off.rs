//! Replaces `http` in a build without the feature `http`: calls to URLs are refused, with the reason.

use std::time::Duration;
use windlass_expression::Value;
use windlass_model::model::{Fault, Request, fault_kind};

pub(super) const DEFAULT_TIMEOUT: Duration = Duration::from_secs(100);

#[derive(Default)]
pub(super) struct Client;

impl Client {
    pub fn public_only() -> Self {
        Self
    }

    pub async fn post_json(&self, _: &str, _: &Value, _: &Request) -> Result<Reply, Fault> {
        let message = "this build of Windlass cannot make HTTP calls: feature `http`";
        Err(Fault::new(fault_kind::INPUT, message))
    }
}

pub(super) struct Reply {
    pub body: Value,
}

/// Returns a stub's answer unchanged.
pub(super) fn of_stub(answer: Result<Value, Fault>, _: &Request) -> Result<Value, Fault> {
    answer
}

/// Returns `None`: this build makes no requests.
#[must_use]
pub fn follow_up_address(_: &Request) -> Option<String> {
    None
}
