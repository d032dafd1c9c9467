//! Workflows in requests: as a plain body, or inside a JSON envelope.

use super::body::{essence, is_json, read, unreadable, values};
use super::listener::Caller;
use crate::api::{FileText, Problem};
use axum::extract::{FromRequest, Request};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::error::Category;
use std::collections::BTreeMap;
use windlass_engine::{Bundle, Dialect, ErrorCode, SourceFile, dialect_of};

/// The media types of a workflow's text.
const TEXTS: [&str; 5] = [
    "application/yaml",
    "application/x-yaml",
    "text/yaml",
    "text/x-yaml",
    "text/plain",
];

/// A JSON object that contains the text of a workflow, in contrast to a body that is the workflow itself.
pub(super) trait Envelope: DeserializeOwned {
    /// The names of the envelope's members. None of them is a top-level key of a workflow.
    const MEMBERS: &'static [&'static str];
    /// Whether a body of any media type is accepted as a workflow.
    /// A page of another site can send a body of some media types without a preflight request. So this must be false
    /// for a request that starts something.
    const ACCEPTS_ANY_MEDIA_TYPE: bool;
    /// Creates the envelope for a body that is only a workflow.
    fn plain_start(text: String) -> Self;
}

/// The form in which a workflow was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BodyForm {
    /// As text: YAML, or JSON that is sent as text.
    Text,
    Json,
}

impl BodyForm {
    /// Returns the name of the workflow's file if the request names none.
    pub fn file(self, stem: &str) -> String {
        match self {
            Self::Text => format!("{stem}.yaml"),
            Self::Json => format!("{stem}.json"),
        }
    }
}

/// A workflow from a request, plain or in an envelope, and the form in which it was sent.
pub(super) struct Source<T>(pub T, pub BodyForm);

impl<S: Send + Sync, T: Envelope> FromRequest<S> for Source<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, _state: &S) -> Result<Self, Problem> {
        let essence = essence(request.headers());
        let json = is_json(&essence);
        if !(json || T::ACCEPTS_ANY_MEDIA_TYPE || TEXTS.contains(&essence.as_str())) {
            let detail = "send `Content-Type: application/json`, or a workflow as it is with \
                          `application/yaml`";
            return Err(Problem::new(ErrorCode::MediaType, detail));
        }
        let caller = Caller::of(request.extensions());
        let bytes = read(request).await?;
        if json && is_envelope::<T>(&bytes)? {
            return Ok(Self(values(&bytes, caller)?, BodyForm::Text));
        }
        let form = if json { BodyForm::Json } else { BodyForm::Text };
        match String::from_utf8(bytes.into()) {
            Ok(text) => Ok(Self(T::plain_start(text), form)),
            Err(_) => Err(Problem::new(ErrorCode::BadRequest, "the body is not UTF-8")),
        }
    }
}

/// Returns true if a JSON body is the envelope: it has one of the envelope's members.
/// `dialect` does not decide this, because both the envelope and a workflow can have it.
fn is_envelope<T: Envelope>(bytes: &[u8]) -> Result<bool, Problem> {
    let neither = || {
        let members = T::MEMBERS.join("`, `");
        let detail = format!("the body is neither a workflow nor an object of `{members}`");
        Problem::new(ErrorCode::BadRequest, detail)
    };
    let keys: BTreeMap<String, IgnoredAny> =
        serde_json::from_slice(bytes).map_err(|error| match error.classify() {
            Category::Data => neither(),
            Category::Io | Category::Syntax | Category::Eof => unreadable(error),
        })?;
    let known = |key: &String| T::MEMBERS.contains(&key.as_str());
    if keys.keys().any(|key| known(key) && key != "dialect") || keys.keys().all(known) {
        return Ok(true);
    }
    // A body with `dialect` is meant as a workflow, so the errors of the workflow are reported.
    let text = String::from_utf8_lossy(bytes);
    let bundle = Bundle::single(BodyForm::Json.file("workflow"), text);
    if keys.contains_key("dialect") || dialect_of(&bundle, None).is_some() {
        return Ok(false);
    }
    Err(neither())
}

/// Returns the files of a workflow whose text was sent in a request.
pub(super) fn bundle(file: String, text: String, further: &[FileText]) -> Bundle {
    let mut bundle = Bundle::single(file, text);
    bundle.files.extend(further.iter().map(|file| SourceFile {
        path: file.path.clone(),
        text: file.text.clone(),
    }));
    bundle
}

pub(super) fn dialect(word: Option<&str>) -> Result<Option<Dialect>, Problem> {
    let Some(word) = word else { return Ok(None) };
    match Dialect::parse(word) {
        Some(dialect) => Ok(Some(dialect)),
        None => {
            let detail = format!("unknown format `{word}` (expected loom, azure, tea or canvas)");
            Err(Problem::new(ErrorCode::BadRequest, detail))
        }
    }
}
