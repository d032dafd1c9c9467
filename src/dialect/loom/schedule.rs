//! `schedule`: when runs of a workflow that is kept by a server start by themselves.

use super::Loom;
use crate::diagnostic::did_you_mean;
use crate::expression::time_zone;
use crate::model::{Missed, Overlap, Schedule, When};
use crate::source::{Entry, Kind};
use croner::Cron;
use std::str::FromStr;

const HINT: &str = "for example schedule: { cron: \"0 3 * * *\", timezone: Europe/Berlin }";

impl Loom<'_> {
    /// A cron pattern, or `{cron, timezone, overlap, missed}`.
    pub(super) fn schedule(&mut self, entry: &Entry) -> Option<Schedule> {
        if matches!(entry.value.kind, Kind::String(_)) {
            let pattern = self.cron(entry)?;
            return Some(Schedule {
                when: When::Cron {
                    pattern,
                    zone: None,
                },
                overlap: Overlap::Skip,
                missed: Missed::Skip,
            });
        }
        let mut fields = self.reader.fields(&entry.value, "`schedule`", HINT)?;
        let cron = fields.need(&mut self.reader, "cron", entry.key_span, HINT);
        let zone = fields.some(&mut self.reader, "timezone");
        let overlap = fields.some(&mut self.reader, "overlap");
        let missed = fields.some(&mut self.reader, "missed");
        fields.finish(&mut self.reader);
        let pattern = cron.and_then(|cron| self.cron(cron));
        let zone = zone.and_then(|zone| {
            let text = self.reader.text(zone, "for example Europe/Berlin")?;
            if time_zone(text).is_none() {
                let what = format!("`{text}` is no time zone");
                let hint = "an IANA or Windows name, for example Europe/Berlin or UTC";
                self.reader
                    .error("unknown-value", zone.value.span, what, hint);
            }
            Some(text.into())
        });
        let overlap = [
            ("skip", Overlap::Skip),
            ("allow", Overlap::Allow),
            ("queue", Overlap::Queue),
        ]
        .into_iter()
        .find(|(word, _)| self.word(overlap, word, &["skip", "allow", "queue"]));
        let missed = [("skip", Missed::Skip), ("run_once", Missed::RunOnce)]
            .into_iter()
            .find(|(word, _)| self.word(missed, word, &["skip", "run_once"]));
        Some(Schedule {
            when: When::Cron {
                pattern: pattern?,
                zone,
            },
            overlap: overlap.map_or(Overlap::Skip, |(_, overlap)| overlap),
            missed: missed.map_or(Missed::Skip, |(_, missed)| missed),
        })
    }

    fn cron(&mut self, entry: &Entry) -> Option<crate::model::Name> {
        let text = self.reader.text(entry, HINT)?;
        if let Err(error) = Cron::from_str(text) {
            let what = format!("`{text}` is no cron pattern: {error}");
            let hint = "minute, hour, day of the month, month, day of the week: \"0 3 * * 1-5\"";
            self.reader
                .error("bad-schedule", entry.value.span, what, hint);
            return None;
        }
        Some(text.into())
    }

    /// Whether the entry is this one of the words that it may be; reports what is none of them
    /// when it is asked for the first.
    fn word(&mut self, entry: Option<&Entry>, word: &str, all: &[&str]) -> bool {
        let Some(entry) = entry else { return false };
        let text = entry.value.as_str().unwrap_or_default();
        if !all.contains(&text) && all.first() == Some(&word) {
            let what = format!("`{text}` is no value of `{}`", entry.key);
            let hint = did_you_mean(text, all.iter().copied()).unwrap_or_else(|| all.join(", "));
            self.reader
                .error("unknown-value", entry.value.span, what, hint);
        }
        text == word
    }
}
