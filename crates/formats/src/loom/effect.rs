//! Actions that reach outside (http, handlers, ai) and the small ones besides (wait,
//! compose, terminate). What an executor gets as inputs is decided here.

use super::Loom;
use super::action_fields::{ActionFields, Body};
use crate::builder::{call, page_base, text};
use crate::fields::Fields;
use crate::vocabulary::model::MODEL;
use crate::{TERMINAL_STATUSES, checks};
use windlass_expression::{Template, Value};
use windlass_model::hir::{Call, RetryPolicy, StepKind, Wait};
use windlass_model::model::{
    BODY_FILE, EVENTS, IF_CHANGED, RATE, SAVE_TO, Status, named_sha256, overrides_method,
};
use windlass_source::diagnostic::nearest;
use windlass_source::source::{Entry, Kind, Node};

/// Methods of which a repetition has no further effect (RFC 9110, 9.2.2).
const IDEMPOTENT: [&str; 5] = ["GET", "HEAD", "OPTIONS", "PUT", "DELETE"];
const METHODS: [&str; 7] = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"];

/// What an action sends over HTTP.
pub(super) struct HttpRequest {
    pub members: Vec<(Template, Template)>,
    pub attempt_timeout: Option<Template>,
    pub retry: Option<RetryPolicy>,
    /// What the action's record holds instead of the answer.
    pub output: Option<Template>,
}

/// The inputs of an action: under `inputs`, or, in loom, next to the type.
pub(super) struct Inputs<'n> {
    under: Option<Fields<'n>>,
    pub members: Vec<(Template, Template)>,
}

/// Whether a request may be repeated without further effect. A method that is computed may be any, and so may one that
/// a header overrides.
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

impl<'n> Inputs<'n> {
    pub fn get(
        &mut self,
        act: &mut ActionFields<'n>,
        loom: &mut Loom<'_>,
        key: &'static str,
    ) -> Option<&'n Entry> {
        let under = self.under.as_mut().and_then(|fields| fields.get(key));
        if loom.azure() {
            return under;
        }
        let own = act.fields.get(key);
        if let (Some(_), Some(own)) = (under, own) {
            let what = format!("`{key}` is in `inputs` and next to it");
            loom.error("conflict", own.key_span, what, "remove one of the two");
        }
        under.or(own)
    }

    /// Like `pass`, for a key that means something else next to the type.
    fn pass_under(&mut self, loom: &mut Loom<'_>, key: &'static str) {
        let entry = self.under.as_mut().and_then(|fields| fields.get(key));
        if let Some(entry) = entry {
            let template = loom.template(&entry.value);
            self.members.push((text(key), template));
        }
    }

    /// Like `get`, for a value that is a template and goes to the executor as it is.
    pub fn pass(
        &mut self,
        act: &mut ActionFields<'n>,
        loom: &mut Loom<'_>,
        key: &'static str,
    ) -> Option<&'n Entry> {
        let entry = self.get(act, loom, key)?;
        let template = loom.template(&entry.value);
        self.members.push((text(key), template));
        Some(entry)
    }

    pub fn finish(self, loom: &mut Loom<'_>) -> Template {
        if let Some(fields) = self.under {
            fields.finish(loom);
        }
        Template::object(self.members)
    }
}

impl Loom<'_> {
    pub(super) fn inputs<'n>(&mut self, act: &mut ActionFields<'n>, hint: &str) -> Inputs<'n> {
        let what = format!("`inputs` of `{}`", act.name);
        let under = act
            .fields
            .non_null(self, "inputs")
            .and_then(|entry| self.fields(&entry.value, &what, hint));
        Inputs {
            under,
            members: Vec::new(),
        }
    }

    pub(super) fn missing_input(&mut self, act: &ActionFields<'_>, key: &str, hint: &str) {
        let what = format!("`{}` needs `{key}`", act.name);
        self.error("missing-key", act.span, what, hint);
    }

    pub(super) fn call(
        executor: &str,
        inputs: Template,
        attempt_timeout: Option<Template>,
    ) -> StepKind {
        StepKind::Call(Call {
            attempt_timeout,
            ..call(executor, inputs)
        })
    }

    /// `timeout` in the inputs or next to the type: how long one attempt may take. Azure bounds
    /// the whole action, by `limit.timeout`.
    pub(super) fn attempt_timeout<'n>(
        &mut self,
        act: &mut ActionFields<'n>,
        inputs: &mut Inputs<'n>,
    ) -> Option<Template> {
        let entry = inputs.get(act, self, "timeout")?;
        if matches!(entry.value.kind, Kind::Null) {
            let hint = "durations look like 30s, 5m or PT30S";
            self.wrong_type(&entry.value, "`timeout`", "a duration", hint);
            return None;
        }
        Some(self.duration(entry)?.template)
    }

    pub(super) fn http(&mut self, act: &mut ActionFields<'_>) -> Body {
        let mut request = self.request(act, "GET");
        let timeout = self.azure_limit(act);
        let wanted = if self.azure() {
            self.wanted_rows(act)
        } else {
            None
        };
        if let Some(wanted) = wanted {
            return self.paged(act, wanted, request, timeout);
        }
        let name = act.name.clone();
        let follow_up = self.asynchronous(act, &name, &mut request, None);
        let inputs = Template::object(request.members);
        Body {
            retry: request.retry,
            output: request.output,
            follow_up,
            timeout,
            ..Self::call("http", inputs, request.attempt_timeout).into()
        }
    }

    /// The request of an action; one that names no method has `method`.
    pub(super) fn request(&mut self, act: &mut ActionFields<'_>, method: &str) -> HttpRequest {
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
                .is_some_and(|fields| fields.has_slip_of("uri")) => {}
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
        // The requests of an operation follow its answers.
        let is_operation = method != "GET";
        if self.azure() {
            inputs.pass(act, self, "cookie");
        } else if !is_operation
            && inputs.pass(act, self, "page").is_some()
            && inputs.pass(act, self, "page_base").is_none()
        {
            inputs.members.push(page_base(act.name.clone()));
        }
        let body = inputs.pass(act, self, "body");
        if let Some(entry) = body {
            self.no_callback(&entry.value);
        }
        let output = match is_operation || self.azure() {
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
        if !self.azure() {
            if let Some(entry) = inputs.pass(act, self, "tls") {
                checks::tls(self, &entry.value);
            }
            if !is_operation && let Some(entry) = inputs.pass(act, self, "check") {
                let hint = "check: false allows a call to fail: read its `statusCode`";
                self.check_flag(entry, hint);
            }
            match inputs.pass(act, self, "parse") {
                Some(entry) => self.check_parse(entry),
                None if act.wants_json => inputs.members.push((text("parse"), text("json"))),
                None => {}
            }
        }
        if !is_operation
            && !self.azure()
            && let Some(entry) = inputs.get(act, self, EVENTS)
        {
            self.events(act, &mut inputs, entry);
        }
        if !self.azure() {
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

    /// Bodies that are files of this machine: `bodyFile`, and `saveTo` with the `digest` of the file.
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

    /// Warns of a callback address that is sent to a server.
    fn no_callback(&mut self, node: &Node) {
        let within: Vec<&Node> = match &node.kind {
            Kind::Array(items) => items.iter().collect(),
            Kind::Object(entries) => entries.iter().map(|entry| &entry.value).collect(),
            _ => Vec::new(),
        };
        within.into_iter().for_each(|node| self.no_callback(node));
        let text = node.as_str().filter(|_| self.azure());
        if text.is_some_and(|text| text.to_ascii_lowercase().contains("listcallbackurl(")) {
            let what = "`listCallbackUrl` has no endpoint outside Azure";
            let hint = "make it an HttpWebhook, which waits for a request to the address";
            self.warning("not-supported", node.span, what, hint);
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

    /// `inputs.retryPolicy`, or the default of the format.
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
            None if self.azure() => Some(super::retry::azure_default(act.span)),
            None => self.default_retry(act, idempotent),
        }
    }

    /// Azure's `limit: {timeout}` on an action.
    pub(super) fn azure_limit(&mut self, act: &mut ActionFields<'_>) -> Option<Template> {
        let entry = act.fields.non_null(self, "limit")?;
        let hint = "for example limit: { timeout: PT30S }";
        let mut fields = self.fields(&entry.value, "`limit`", hint)?;
        let timeout = fields.non_null(self, "timeout");
        fields.finish(self);
        Some(self.duration(timeout?)?.template)
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
                    let hint = nearest(text, METHODS)
                        .map_or(hint, |near| format!("did you mean `{near}`?"));
                    self.error("unknown-value", entry.value.span, what, hint);
                }
            }
            _ => self.wrong_type(&entry.value, "`method`", "text", hint),
        }
    }

    pub(super) fn check_uri(&mut self, entry: &Entry) {
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
            // What a deployment could not give is reported already.
            Kind::Null if self.azure() => {}
            _ => self.wrong_type(&entry.value, "`uri`", "text", hint),
        }
    }

    /// `check: false`: the workflow reads the exit code and handles a failure.
    pub(super) fn check_flag(&mut self, entry: &Entry, hint: &str) {
        let flag = matches!(entry.value.kind, Kind::Bool(_));
        if !flag && !self.is_computed(&entry.value) {
            self.wrong_type(&entry.value, "`check`", "true or false", hint);
        }
    }

    fn check_parse(&mut self, entry: &Entry) {
        if entry.value.as_str() != Some("json") {
            let hint = "a body that is JSON is parsed then, whatever the server calls it";
            self.wrong_type(&entry.value, "`parse`", "json", hint);
        }
    }

    /// `activity` and `actor`: the handler's name, and its input or all the other keys. In loom,
    /// the name and `input` are allowed next to the type.
    pub(super) fn handler(&mut self, act: &mut ActionFields<'_>, label: &str) -> Body {
        let key = if label == "activity" {
            "activityType"
        } else {
            "actorType"
        };
        let hint = format!("for example inputs: {{ {key}: processor, input: \"@item()\" }}");
        let timeout = act.fields.non_null(self, "timeout");
        let timeout = timeout.and_then(|entry| Some(self.duration(entry)?.template));
        let own = act.fields.get(key);
        let input = act.fields.get("input");
        let under = match own {
            None => act.fields.required(self, "inputs", act.span, &hint),
            Some(_) => act.fields.non_null(self, "inputs"),
        };
        let mut members = Vec::new();
        if let Some(entry) = under {
            let what = format!("`inputs` of `{}`", act.name);
            if let Some(mut fields) = self.fields(&entry.value, &what, &hint) {
                let kind = match own {
                    None => fields.required(self, key, entry.key_span, &hint),
                    Some(_) => fields.get(key),
                };
                kind.and_then(|kind| self.text(kind, &hint));
                for (key, own) in [(key, own), ("input", input)] {
                    if let (Some(_), Some(own)) = (fields.get(key), own) {
                        let what = format!("`{key}` is in `inputs` and next to it");
                        let hint = "remove one of the two";
                        self.error("conflict", own.key_span, what, hint);
                    }
                }
            }
            members.extend(entry.value.entries().unwrap_or_default());
        }
        own.and_then(|kind| self.text(kind, &hint));
        members.extend([own, input].into_iter().flatten());
        let members = members
            .into_iter()
            .map(|entry| (text(&entry.key), self.template(&entry.value)));
        let inputs = Template::object(members.collect());
        Self::call(label, inputs, timeout).into()
    }

    pub(super) fn ai(&mut self, act: &mut ActionFields<'_>) -> Body {
        let hint = "for example inputs: { prompt: \"…\" }";
        let timeout = act.fields.non_null(self, "timeout");
        let timeout = timeout.and_then(|entry| Some(self.duration(entry)?.template));
        let mut inputs = self.inputs(act, hint);
        let mut asks = false;
        for key in MODEL.iter().map(|key| key.name) {
            let entry = inputs.pass(act, self, key);
            asks |= entry.is_some() && matches!(key, "prompt" | "messages");
        }
        // Next to the type it is that of the action.
        inputs.pass_under(self, "timeout");
        let fields = inputs.under.as_ref();
        let slip = |key| {
            act.fields.has_slip_of(key) || fields.is_some_and(|fields| fields.has_slip_of(key))
        };
        if !asks && !slip("prompt") && !slip("messages") {
            self.missing_input(act, "prompt", "give `prompt` or `messages`");
        }
        let rate = inputs.get(act, self, RATE);
        inputs.members.extend(self.rate_member(rate));
        let inputs = inputs.finish(self);
        let timeout = timeout.or_else(|| self.default_timeout());
        Body {
            retry: self.default_retry(act, true),
            ..Self::call("ai", inputs, timeout).into()
        }
    }

    pub(super) fn compose(&mut self, act: &mut ActionFields<'_>) -> StepKind {
        let hint = "the value: for example inputs: \"@body('fetch').items\"";
        match act.fields.get("inputs") {
            Some(entry) => StepKind::Compose(self.template(&entry.value)),
            None => {
                act.fields.required(self, "inputs", act.span, hint);
                StepKind::Nothing
            }
        }
    }

    /// Azure's `Response`: recorded as what the run gives.
    pub(super) fn response(&mut self, act: &mut ActionFields<'_>) -> StepKind {
        let hint = "for example inputs: { statusCode: 200, body: \"@body('fetch')\" }";
        act.fields.allow(&["kind"]);
        let mut inputs = self.inputs(act, hint);
        if inputs.get(act, self, "statusCode").is_none() {
            inputs
                .members
                .push((text("statusCode"), Template::constant(200_i64.into())));
        }
        for key in ["statusCode", "headers", "body"] {
            inputs.pass(act, self, key);
        }
        inputs.get(act, self, "schema");
        StepKind::Respond(inputs.finish(self))
    }

    pub(super) fn wait(&mut self, act: &mut ActionFields<'_>) -> StepKind {
        let hint = "for example inputs: { interval: { count: 5, unit: second } }, or PT5S";
        // `inputs: PT5S` says it all.
        if let Some(entry) = act.fields.get("inputs")
            && matches!(entry.value.kind, Kind::String(_) | Kind::Int(_))
        {
            return self.wait_for(entry);
        }
        let mut inputs = self.inputs(act, hint);
        let interval = inputs.get(act, self, "interval");
        let until = inputs.get(act, self, "until");
        let count = inputs.get(act, self, "count");
        let unit = inputs.get(act, self, "unit");
        let kind = match (interval, until, count.or(unit)) {
            (Some(entry), None, None) => self.wait_for(entry),
            (None, Some(entry), None) => self.wait_until(entry),
            (None, None, Some(_)) => match act.fields.get("inputs") {
                Some(entry) => self.wait_for(entry),
                None => {
                    self.missing_input(act, "interval", hint);
                    StepKind::Nothing
                }
            },
            (None, None, None) => {
                self.missing_input(act, "interval", hint);
                StepKind::Nothing
            }
            _ => {
                let what = "`wait` has either `interval` or `until`";
                self.error("conflict", act.span, what, hint);
                StepKind::Nothing
            }
        };
        inputs.finish(self);
        kind
    }

    /// Azure also waits for months, which have no fixed length: until the same day of another.
    fn wait_months(&mut self, entry: &Entry) -> Option<StepKind> {
        let unit = entry.value.get_any_case("unit").and_then(Node::as_str)?;
        let count = entry.value.get_any_case("count")?;
        if !self.azure() || !unit.eq_ignore_ascii_case("month") {
            return None;
        }
        // A count that is computed may be text.
        let count = Template::call("int", vec![self.template(count)]).ok()?;
        let now = Template::call("utcNow", Vec::new()).ok()?;
        let due = Template::call("addToTime", vec![now, count, text("Month")]).ok()?;
        Some(StepKind::Wait(Wait::Until(due)))
    }

    fn wait_for(&mut self, entry: &Entry) -> StepKind {
        if let Some(kind) = self.wait_months(entry) {
            return kind;
        }
        self.duration(entry).map_or(StepKind::Nothing, |duration| {
            StepKind::Wait(Wait::For(duration.template))
        })
    }

    fn wait_until(&mut self, entry: &Entry) -> StepKind {
        let node = entry
            .value
            .get_any_case("timestamp")
            .unwrap_or(&entry.value);
        let hint = "an instant such as 2026-11-20T14:00:00Z, or an expression that returns one";
        if node.as_str().is_none() {
            self.wrong_type(node, "`until`", "an instant", hint);
            return StepKind::Nothing;
        }
        let template = self.template(node);
        let known = template.as_constant().and_then(Value::as_str);
        if known.is_some_and(|text| chrono::DateTime::parse_from_rfc3339(text).is_err()) {
            let what = format!("`{}` is not a valid instant", known.unwrap_or_default());
            self.error("bad-timestamp", node.span, what, hint);
        }
        StepKind::Wait(Wait::Until(template))
    }

    pub(super) fn terminate(&mut self, act: &mut ActionFields<'_>) -> StepKind {
        let hint = "for example inputs: { runStatus: Failed, runError: { code: E1, message: no } }";
        let mut inputs = self.inputs(act, hint);
        let status = inputs.get(act, self, "runStatus");
        let error = inputs
            .get(act, self, "runError")
            .map(|entry| self.template(&entry.value));
        inputs.finish(self);
        let status = match status {
            Some(entry) => self.run_status(entry),
            None => {
                self.missing_input(act, "runStatus", hint);
                Status::Failed
            }
        };
        StepKind::Terminate { status, error }
    }

    fn run_status(&mut self, entry: &Entry) -> Status {
        self.choice_as("unknown-status", entry, &TERMINAL_STATUSES, |text| {
            format!("a run cannot end as `{text}`")
        })
        .unwrap_or(Status::Failed)
    }
}
