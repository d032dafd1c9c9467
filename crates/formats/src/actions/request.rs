//! The HTTP request of the actions `http` and `operation`.

use super::action_fields::{ActionFields, Body};
use super::inputs::Inputs;
use super::{ActionReader, Format};
use crate::builder::{call, page_base, text};
use crate::checks;
use windlass_expression::{Template, Value};
use windlass_model::hir::{Call, FollowUp, RetryPolicy, StepKind};
use windlass_model::model::{
    BODY_FILE, EVENTS, IF_CHANGED, RATE, SAVE_TO, named_sha256, overrides_method,
};
use windlass_source::diagnostic::did_you_mean;
use windlass_source::source::{Entry, Kind};

/// The idempotent methods: repeating a request with such a method has no further effect (RFC 9110, 9.2.2).
const IDEMPOTENT: [&str; 5] = ["GET", "HEAD", "OPTIONS", "PUT", "DELETE"];
const METHODS: [&str; 7] = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"];

/// The HTTP request of an action.
pub(crate) struct HttpRequest {
    pub members: Vec<(Template, Template)>,
    pub attempt_timeout: Option<Template>,
    pub retry: Option<RetryPolicy>,
    /// The value that the action's record has instead of the answer.
    pub output: Option<Template>,
}

impl HttpRequest {
    /// Makes the body of the step that sends the request.
    /// `timeout` limits all attempts together with the follow-up (later requests of the same action).
    pub(crate) fn into_body(
        self,
        follow_up: Option<Box<FollowUp>>,
        timeout: Option<Template>,
    ) -> Body {
        let call = Call {
            attempt_timeout: self.attempt_timeout,
            ..call("http", Template::object(self.members))
        };
        Body {
            retry: self.retry,
            output: self.output,
            follow_up,
            timeout,
            ..StepKind::Call(call).into()
        }
    }
}

/// Returns true if a request may be repeated without further effect.
/// A method that is computed, or that a header overrides, can be any method. For such a request the result is false.
fn is_idempotent(method: Option<&str>, headers: Option<&Entry>) -> bool {
    let headers = headers.and_then(|entry| entry.value.entries());
    let mut headers = headers.unwrap_or_default().iter();
    if headers.any(|header| overrides_method(&header.key)) {
        return false;
    }
    let method = method.unwrap_or_default();
    IDEMPOTENT
        .iter()
        .any(|known| known.eq_ignore_ascii_case(method))
}

impl<F: Format> ActionReader<'_, F> {
    pub(super) fn http(&mut self, act: &mut ActionFields<'_>) -> Body {
        let request = self.request(act, "GET");
        let timeout = self.limit_timeout_of(act);
        F::http(self, act, request, timeout)
    }

    /// Reads the request of an action. `method` is the method if the action sets none.
    pub(crate) fn request(&mut self, act: &mut ActionFields<'_>, method: &str) -> HttpRequest {
        let hint = "for example inputs: { method: GET, uri: \"https://example.org/status\" }";
        let mut inputs = self.inputs(act, hint);
        let own_method = inputs.pass(act, self, "method");
        match own_method {
            Some(entry) => self.check_method(entry),
            None if method == "GET" => {}
            None => inputs.members.push((text("method"), text(method))),
        }
        match inputs.pass(act, self, "uri") {
            Some(entry) => self.check_uri(entry),
            None if inputs
                .under
                .as_ref()
                .is_some_and(|fields| fields.has_misspelling_of("uri")) => {}
            None => self.missing_input(act, "uri", hint),
        }
        let mut headers = None;
        for key in ["headers", "queries"] {
            let entry = inputs.pass(act, self, key);
            if key == "headers" {
                headers = entry;
                self.add_default_headers(&mut inputs, entry);
            }
            if let Some(entry) = entry {
                let map = matches!(entry.value.kind, Kind::Object(_) | Kind::Null);
                if !map && !self.is_computed(&entry.value) {
                    let hint = "for example { accept: application/json }";
                    let what = format!("`{key}`");
                    self.wrong_type(&entry.value, &what, "a map", hint);
                }
            }
        }
        // An operation does not accept `page`, because its later requests use the addresses in its answers.
        let is_operation = method != "GET";
        let is_extended = F::CONVENTIONS.has_extended_requests;
        if !is_extended {
            inputs.pass(act, self, "cookie");
        } else if !is_operation {
            let has_page = inputs.pass(act, self, "page").is_some();
            let has_base = inputs.pass(act, self, "page_base").is_some();
            if has_page && !has_base {
                inputs.members.push(page_base(act.name.clone()));
            }
        }
        let body = inputs.pass(act, self, "body");
        if let Some(entry) = body {
            F::check_body(self, &entry.value);
        }
        let output = match is_operation || !is_extended {
            true => None,
            false => {
                self.files_of(act, &mut inputs, body);
                let entry = inputs.get(act, self, IF_CHANGED);
                entry.and_then(|entry| self.if_changed(act, &mut inputs, entry))
            }
        };
        if let Some(entry) = inputs.pass(act, self, "authentication") {
            checks::authentication(self, &entry.value);
        }
        if is_extended {
            if let Some(entry) = inputs.pass(act, self, "tls") {
                checks::tls(self, &entry.value);
            }
            if !is_operation && let Some(entry) = inputs.pass(act, self, "check") {
                let hint = "check: false accepts every status, check: [404] only this one";
                self.check_accepted(entry, 400..=599, hint);
            }
            match inputs.pass(act, self, "parse") {
                Some(entry) => self.check_parse(entry),
                None if act.wants_json => inputs.members.push((text("parse"), text("json"))),
                None => {}
            }
        }
        if !is_operation
            && is_extended
            && let Some(entry) = inputs.get(act, self, EVENTS)
        {
            self.events(act, &mut inputs, entry);
        }
        if is_extended {
            let rate = inputs.get(act, self, RATE);
            inputs.members.extend(self.rate_member(rate));
        }
        let method = own_method.map_or(Some(method), |entry| entry.value.as_str());
        let idempotent = is_idempotent(method, headers);
        let retry = self.retry_in_inputs(act, &mut inputs, idempotent);
        let timeout = self.attempt_timeout(act, &mut inputs);
        let members = std::mem::take(&mut inputs.members);
        inputs.finish(self);
        HttpRequest {
            members,
            attempt_timeout: timeout.or_else(|| self.default_timeout()),
            retry,
            output,
        }
    }

    /// Reads the inputs for bodies that are files of this machine: `bodyFile`, and `saveTo` with the `digest` of the
    /// file.
    fn files_of<'n>(
        &mut self,
        act: &mut ActionFields<'n>,
        inputs: &mut Inputs<'n>,
        body: Option<&Entry>,
    ) {
        let sent = inputs.pass(act, self, BODY_FILE);
        if let Some((_, entry)) = body.zip(sent) {
            let what = "`body` and `bodyFile` are both set";
            self.error("conflict", entry.key_span, what, "remove one of the two");
        }
        let saved = inputs.pass(act, self, SAVE_TO);
        for entry in sent.into_iter().chain(saved) {
            let hint = "the path of a file, from the folder where the run was started";
            match entry.value.as_str() {
                Some(path) if path.trim().is_empty() => {
                    let what = format!("`{}` is empty", entry.key);
                    self.error("bad-value", entry.value.span, what, hint);
                }
                Some(_) => {}
                None => self.wrong_type(&entry.value, &format!("`{}`", entry.key), "text", hint),
            }
        }
        if saved.is_some() && act.wants_json {
            let what = "the output of `saveTo` has no body that could be JSON";
            self.error("conflict", act.span, what, "remove `expect: json`");
        }
        let Some(digest) = inputs.pass(act, self, "digest") else {
            return;
        };
        let hint = "for example digest: \"sha256:…\" with 64 hexadecimal digits";
        if saved.is_none() {
            let what = "`digest` is that of the file of `saveTo`, which is missing";
            self.error("missing-key", digest.key_span, what, "add saveTo: FILE");
        }
        let template = self.template(&digest.value);
        match template.as_constant().map(Value::as_str) {
            Some(None) => self.wrong_type(&digest.value, "`digest`", "text", hint),
            Some(Some(text)) if named_sha256(text).is_none() => {
                let what = format!("`{text}` is not a valid digest");
                self.error("bad-digest", digest.value.span, what, hint);
            }
            Some(Some(_)) | None => {}
        }
    }

    fn add_default_headers(&self, inputs: &mut Inputs<'_>, entry: Option<&Entry>) {
        let own = entry.and_then(|_| inputs.members.pop());
        let own = entry.zip(own.as_ref());
        let own = own.map(|(entry, (_, headers))| (&entry.value, headers));
        if let Some(headers) = self.with_default_headers(own) {
            inputs.members.push((text("headers"), headers));
        }
    }

    /// Reads `inputs.retryPolicy`. If it is missing, returns the default of the format.
    fn retry_in_inputs(
        &mut self,
        act: &mut ActionFields<'_>,
        inputs: &mut Inputs<'_>,
        idempotent: bool,
    ) -> Option<RetryPolicy> {
        let policy = inputs
            .under
            .as_mut()
            .and_then(|fields| fields.get("retryPolicy"));
        match policy {
            Some(entry) => self.retry_policy(entry),
            None => F::request_retry(self, act, idempotent),
        }
    }

    fn check_method(&mut self, entry: &Entry) {
        let hint = METHODS.join(", ");
        match &entry.value.kind {
            Kind::String(_) => {
                let template = self.template(&entry.value);
                let Some(text) = template.as_constant().and_then(Value::as_str) else {
                    return;
                };
                if !METHODS.iter().any(|known| known.eq_ignore_ascii_case(text)) {
                    let what = format!("`{text}` is not a valid HTTP method");
                    let hint = did_you_mean(text, METHODS).unwrap_or(hint);
                    self.error("unknown-value", entry.value.span, what, hint);
                }
            }
            _ => self.wrong_type(&entry.value, "`method`", "text", hint),
        }
    }

    pub(crate) fn check_uri(&mut self, entry: &Entry) {
        let hint = "for example https://example.org/status, or an expression that returns text";
        match &entry.value.kind {
            Kind::String(text) => {
                let template = self.template(&entry.value);
                let computed = template.as_constant().is_none();
                let schemes = ["http://", "https://"];
                let begins = schemes.iter().any(|scheme| {
                    text.text
                        .get(..scheme.len())
                        .is_some_and(|start| start.eq_ignore_ascii_case(scheme))
                });
                if !computed && !begins {
                    let what = format!("`{}` begins with neither http:// nor https://", text.text);
                    self.warning("bad-uri", entry.value.span, what, hint);
                }
            }
            // A value that the deployment could not compute is null here, and was already reported.
            Kind::Null if F::CONVENTIONS.is_deployed => {}
            _ => self.wrong_type(&entry.value, "`uri`", "text", hint),
        }
    }

    fn check_parse(&mut self, entry: &Entry) {
        if entry.value.as_str() != Some("json") {
            let hint = "a body that is JSON is parsed then, whatever the server calls it";
            self.wrong_type(&entry.value, "`parse`", "json", hint);
        }
    }
}
