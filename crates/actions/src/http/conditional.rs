//! `ifChanged`: a request that names the version of the resource in the last answer. If the resource has not changed,
//! the server answers 304 (RFC 9110, 13.1). The version is stored in the output of the last answer.

use super::previous::{URI, previous_value, with_member};
use super::reply::url_text;
use crate::inputs::Inputs;
use reqwest::header::{HeaderName, HeaderValue, IF_MODIFIED_SINCE, IF_NONE_MATCH};
use reqwest::{Method, Request, StatusCode};
use windlass_expression::Value;
use windlass_model::model::{Fault, IF_CHANGED};

/// The member of an output that contains the version of the resource.
const VALIDATOR: &str = "validator";

/// The response headers that name a version, each with the request header for it. If an answer has both, the first one
/// is used.
const HEADERS: [(&str, HeaderName); 2] = [
    ("etag", IF_NONE_MATCH),
    ("last-modified", IF_MODIFIED_SINCE),
];

/// A call of an action with `ifChanged`.
pub(super) struct Conditional {
    uri: Value,
    /// The version that the call sends. `None` if no version is known.
    sent: Option<Value>,
}

impl Conditional {
    /// Adds the stored version to a call, if the version belongs to the address of the call. Returns `None` if the
    /// action does not have `ifChanged`, or if the call is not a GET or HEAD without a body.
    pub(super) fn put_on(call: &mut Request, inputs: Inputs<'_>) -> Result<Option<Self>, Fault> {
        let is_requested = inputs.all().any(|(key, _)| key == IF_CHANGED);
        let is_read = matches!(*call.method(), Method::GET | Method::HEAD);
        if !is_requested || !is_read || call.body().is_some() {
            return Ok(None);
        }
        let mut this = Self {
            uri: url_text(call.url().clone()),
            sent: None,
        };
        let validator = previous_value(inputs, IF_CHANGED, "the version of an answer", &this.uri)?;
        let headers = call.headers();
        let own = HEADERS.iter().any(|(_, name)| headers.contains_key(name));
        let Some(validator) = validator.filter(|_| !own) else {
            return Ok(Some(this));
        };
        for (kind, header) in HEADERS {
            let version = validator.get(kind).and_then(Value::as_str);
            if let Some(Ok(version)) = version.map(HeaderValue::from_str) {
                call.headers_mut().insert(header, version);
                this.sent = Some(validator.clone());
                break;
            }
        }
        Ok(Some(this))
    }

    /// Adds the version of the answer to the output. The next request sends it.
    pub(super) fn with_validator(self, output: Value) -> Value {
        let status = output.get("statusCode").and_then(Value::as_int);
        let is = |status_code: StatusCode| status == Some(status_code.as_u16().into());
        let validator = if is(StatusCode::NOT_MODIFIED) {
            self.sent
        } else if is(StatusCode::OK) {
            self.version_of(&output)
        } else {
            None
        };
        with_member(output, VALIDATOR, validator)
    }

    fn version_of(self, output: &Value) -> Option<Value> {
        let headers = output.get("headers")?;
        let mut versions = HEADERS
            .iter()
            .filter_map(|(kind, _)| Some((*kind, headers.get(kind)?.clone())));
        Some(Value::from_pairs([versions.next()?, (URI, self.uri)]))
    }
}
