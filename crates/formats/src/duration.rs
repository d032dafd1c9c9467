//! Durations of a file.
//! A duration is `5s`, ISO 8601, `{count, unit}`, `{interval: …}`, or an expression that computes a duration. A
//! number without a unit is refused.

use super::builder::{object, text};
use super::reader::Reader;
use std::time::Duration;
use windlass_expression::Template;
use windlass_source::source::{Entry, Kind, Node};
use windlass_value::time::{format_duration, parse_duration};

const FORMS: &str = "durations look like 30s, 5m, 1h30m or 1d, or PT30S, PT5M, PT1H30M or P1D";
const UNITS: [(&str, u64); 5] = [
    ("second", 1),
    ("minute", 60),
    ("hour", 3600),
    ("day", 86_400),
    ("week", 604_800),
];

/// A duration that is constant or that an expression computes.
pub struct Span {
    pub template: Template,
    /// The duration, if it is constant. `None` if an expression computes it.
    pub known: Option<Duration>,
}

impl Span {
    fn known(duration: Duration) -> Self {
        Self {
            template: Template::constant(format_duration(duration).into()),
            known: Some(duration),
        }
    }
}

impl Reader<'_> {
    /// Reads a duration in any of its forms.
    pub fn duration(&mut self, entry: &Entry) -> Option<Span> {
        self.duration_node(&entry.value, &entry.key)
    }

    fn duration_node(&mut self, node: &Node, key: &str) -> Option<Span> {
        match &node.kind {
            Kind::String(_) => {
                let template = self.template(node);
                let Some(text) = template.as_constant() else {
                    return Some(Span {
                        template,
                        known: None,
                    });
                };
                let text = text.as_str()?.to_owned();
                match parse_duration(&text) {
                    Ok(duration) => Some(Span::known(duration)),
                    Err(error) => {
                        self.error("bad-duration", node.span, error.to_string(), FORMS);
                        None
                    }
                }
            }
            Kind::Object(entries) => {
                let interval = entries.iter().find(|entry| entry.key == "interval");
                match interval {
                    Some(entry) if entries.len() == 1 => self.duration(entry),
                    _ => self.interval(node, key),
                }
            }
            Kind::Int(seconds) => {
                let what = format!("`{key}` is a number without a unit");
                let hint = format!("for seconds write {seconds}s");
                self.error("bad-duration", node.span, what, hint);
                None
            }
            Kind::Null | Kind::Bool(_) | Kind::Float(_) | Kind::Array(_) => {
                let what = format!("`{key}`");
                self.wrong_type(node, &what, "a duration", FORMS);
                None
            }
        }
    }

    /// Reads `{count, unit}`.
    fn interval(&mut self, node: &Node, key: &str) -> Option<Span> {
        let hint = "for example { count: 5, unit: second }, or 5s";
        let mut fields = self.fields(node, &format!("`{key}`"), hint)?;
        let count = fields.required(self, "count", node.span, hint);
        let unit = fields.required(self, "unit", node.span, hint);
        fields.finish(self);
        let (count, unit) = (count?, unit?);
        let seconds = self.unit(unit)?;
        let known = match (self.whole(&count.value), &count.value.kind) {
            (Some(count), _) => u64::try_from(count).ok(),
            (None, Kind::String(_)) => {
                let template = self.template(&count.value);
                if template.as_constant().is_none() {
                    let unit = text(unit_name(seconds));
                    return Some(Span {
                        template: object([("count", template), ("unit", unit)]),
                        known: None,
                    });
                }
                None
            }
            _ => None,
        };
        let Some(known) = known else {
            let hint = "a whole number from 0, or an expression";
            let what = format!(
                "the `count` of `{key}` is not a number of {}s",
                unit_name(seconds)
            );
            self.error("bad-duration", count.value.span, what, hint);
            return None;
        };
        Some(Span::known(Duration::from_secs(
            known.saturating_mul(seconds),
        )))
    }

    fn unit(&mut self, entry: &Entry) -> Option<u64> {
        let hint = "second, minute, hour, day or week";
        let text = self.text(entry, hint)?;
        let lower = text.to_lowercase();
        let singular = lower.strip_suffix('s').unwrap_or(&lower);
        let found = UNITS.iter().find(|(unit, _)| *unit == singular);
        if found.is_none() {
            let what = format!("`{text}` is not a valid unit of time");
            self.error("bad-duration", entry.value.span, what, hint);
        }
        found.map(|(_, seconds)| *seconds)
    }
}

fn unit_name(seconds: u64) -> &'static str {
    UNITS
        .iter()
        .find(|(_, length)| *length == seconds)
        .map_or("second", |(unit, _)| unit)
}
