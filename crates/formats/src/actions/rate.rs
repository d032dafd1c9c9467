//! The rate limits of a file: `rates`, and the key `rate` of an action or of `defaults`, which names one of the
//! `rates`.

use super::{ActionReader, Format};
use crate::builder::text;
use crate::fields::Fields;
use std::collections::BTreeSet;
use windlass_expression::Template;
use windlass_model::model::{HostRate, RATE, check_rate_name};
use windlass_source::source::{Entry, Kind, Node, Span};

const HINT: &str = "for example rate: quota-a, which `rates` or --rate quota-a=100/1s limits";

/// The names of rates that occur in a file.
#[derive(Default)]
pub(super) struct RateNames {
    /// The names under `rates` that are certainly not hosts, and their spans.
    declared: Vec<(String, Span)>,
    /// The names that actions use, in lower case.
    used: BTreeSet<String>,
    is_computed: bool,
}

impl<F: Format> ActionReader<'_, F> {
    /// Reads `rates: {NAME: RATE}`.
    pub(crate) fn read_rates(&mut self, fields: &mut Fields<'_>) -> Vec<HostRate> {
        let hint = "for example rates: { api.example.com: 100/1s }";
        let Some(entry) = fields.non_null(self, "rates") else {
            return Vec::new();
        };
        let Kind::Object(names) = &entry.value.kind else {
            self.wrong_type(&entry.value, "`rates`", "a map of hosts", hint);
            return Vec::new();
        };
        let mut rates = Vec::new();
        for name in names {
            let Some(rate) = self.text(name, hint) else {
                continue;
            };
            match HostRate::new(&name.key, rate) {
                Ok(rate) => {
                    if !rate.is_host() {
                        let declared = (name.key.clone(), name.key_span);
                        self.rates.declared.push(declared);
                    }
                    rates.push(rate);
                }
                Err(message) if check_rate_name(&name.key).is_err() => {
                    self.error("bad-value", name.key_span, message, hint);
                }
                Err(message) => self.error("bad-value", name.value.span, message, hint),
            }
        }
        rates
    }

    /// Reads the value of a `rate`. Returns `None` if it is null.
    pub(super) fn rate_name(&mut self, node: &Node) -> Option<Template> {
        let template = self.template(node);
        match (&node.kind, template.as_constant()) {
            (Kind::Null, _) => return None,
            (Kind::String(text), Some(_)) => {
                if let Err(message) = check_rate_name(&text.text) {
                    self.error("bad-value", node.span, message, HINT);
                }
                self.rates.used.insert(text.text.to_lowercase());
            }
            (Kind::String(_), None) => self.rates.is_computed = true,
            _ => self.wrong_type(node, "`rate`", "text", HINT),
        }
        Some(template)
    }

    /// Makes the input of a request with the name of its rate: the one of the action, or the file's default.
    pub(super) fn rate_member(&mut self, entry: Option<&Entry>) -> Option<(Template, Template)> {
        let name = match entry {
            Some(entry) => self.rate_name(&entry.value),
            None => self.defaults.rate.clone(),
        };
        Some((text(RATE), name?))
    }

    /// Warns of a name in `rates` that no action uses.
    pub(super) fn unused_rates(&mut self) {
        let names = std::mem::take(&mut self.rates);
        for (name, span) in names.declared {
            if !names.is_computed && !names.used.contains(&name.to_lowercase()) {
                let what = format!("nothing counts against the rate `{name}`");
                let hint = format!(
                    "set rate: {name} in the inputs of actions; a host is written with its domain or port, e.g. \
                     {name}.example.com or {name}:8080"
                );
                self.warning("unused-rate", span, what, hint);
            }
        }
    }
}
