//! `defaults` of a file.
//! It has the values of keys that the file's `http`, `operation` and `ai` actions do not set themselves.

use super::action_fields::ActionFields;
use super::retry::default_retry;
use super::{ActionReader, Format};
use crate::builder::{object, text};
use crate::fields::Fields;
use windlass_expression::Template;
use windlass_model::hir::RetryPolicy;
use windlass_model::model::RATE;
use windlass_source::source::{Entry, Kind, Node};

#[derive(Default)]
pub(super) struct Defaults {
    /// The retry policy of the file. `Some(None)` means that nothing is retried. `None` means that the file has no
    /// policy.
    retry: Option<Option<RetryPolicy>>,
    /// Timeout of one attempt.
    timeout: Option<Template>,
    /// Headers of each `http` action.
    headers: Vec<(String, Template)>,
    /// The name of the rate that limits each call to a server.
    pub(super) rate: Option<Template>,
}

impl<F: Format> ActionReader<'_, F> {
    /// Reads `defaults: {retry, timeout, headers, rate}`.
    pub(crate) fn read_defaults(&mut self, fields: &mut Fields<'_>) {
        let hint = "for example defaults: { retry: none, timeout: 30s, headers: { accept: application/json } }";
        let Some(entry) = fields.non_null(self, "defaults") else {
            return;
        };
        let Some(mut fields) = self.fields(&entry.value, "`defaults`", hint) else {
            return;
        };
        let retry = fields.non_null(self, "retry");
        self.defaults.retry = retry.map(|entry| self.retry_policy(entry));
        let timeout = fields.non_null(self, "timeout");
        let timeout = timeout.and_then(|entry| self.duration(entry));
        self.defaults.timeout = timeout.map(|timeout| timeout.template);
        if let Some(entry) = fields.non_null(self, "headers") {
            match &entry.value.kind {
                Kind::Object(headers) => {
                    let read = |header: &Entry| (header.key.clone(), self.template(&header.value));
                    self.defaults.headers = headers.iter().map(read).collect();
                }
                _ => {
                    let hint = "for example headers: { accept: application/json }";
                    self.wrong_type(&entry.value, "`headers` of `defaults`", "a map", hint);
                }
            }
        }
        let rate = fields.non_null(self, RATE);
        self.defaults.rate = rate.and_then(|entry| self.rate_name(&entry.value));
        fields.finish(self);
    }

    /// Returns the retry policy of an action that does not set one.
    /// It is the policy of the file. Without one, it is the default of Windlass. Returns `None` if the action has a
    /// retry already, and in formats without extended policies.
    pub(crate) fn default_retry(
        &self,
        act: &ActionFields<'_>,
        idempotent: bool,
    ) -> Option<RetryPolicy> {
        if act.has_retry || !F::CONVENTIONS.has_extended_policies {
            return None;
        }
        let ours = || Some(default_retry(idempotent, act.span));
        self.defaults.retry.clone().unwrap_or_else(ours)
    }

    pub(super) fn default_timeout(&self) -> Option<Template> {
        self.defaults.timeout.clone()
    }

    /// Adds to the headers of an action those headers of the file that the action does not set.
    /// If the action's headers are one expression, they stay unchanged, because their names are not known before the
    /// run.
    pub(super) fn with_default_headers(&self, own: Option<(&Node, &Template)>) -> Option<Template> {
        if self.defaults.headers.is_empty() {
            return own.map(|(_, headers)| headers.clone());
        }
        let (entries, headers) = match own.map(|(node, headers)| (&node.kind, headers)) {
            Some((Kind::Object(entries), headers)) => (entries.as_slice(), headers.clone()),
            Some((Kind::Null, _)) | None => (&[][..], object([])),
            Some((_, headers)) => return Some(headers.clone()),
        };
        let is_own = |name: &str| {
            let mut names = entries.iter().map(|entry| &entry.key);
            names.any(|own| own.eq_ignore_ascii_case(name))
        };
        let defaults = self.defaults.headers.iter();
        let defaults = defaults.filter(|(name, _)| !is_own(name));
        let defaults = defaults.map(|(name, value)| (text(name), value.clone()));
        Some(headers.with_members(defaults.collect()))
    }
}
