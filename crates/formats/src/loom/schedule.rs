//! `schedule`: when a server automatically starts runs of a stored workflow.

use super::Loom;
use crate::actions::ActionReader;
use windlass_model::model::{Missed, Overlap, Schedule, When, cron_mistake};
use windlass_source::source::{Entry, Kind};

const HINT: &str = "for example schedule: { cron: \"0 3 * * *\", timezone: Europe/Berlin }";

impl ActionReader<'_, Loom> {
    /// Reads a cron pattern, or `{cron, timezone, overlap, missed}`.
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
        let mut fields = self.fields(&entry.value, "`schedule`", HINT)?;
        let cron = fields.required(self, "cron", entry.key_span, HINT);
        let zone = fields.non_null(self, "timezone");
        let overlap = fields.non_null(self, "overlap");
        let missed = fields.non_null(self, "missed");
        fields.finish(self);
        let pattern = cron.and_then(|cron| self.cron(cron));
        let zone = zone.and_then(|zone| self.time_zone(zone));
        let overlap = overlap.and_then(|entry| self.word(entry, &Overlap::WORDS));
        let missed = missed.and_then(|entry| self.word(entry, &Missed::WORDS));
        Some(Schedule {
            when: When::Cron {
                pattern: pattern?,
                zone,
            },
            overlap: overlap.unwrap_or(Overlap::Skip),
            missed: missed.unwrap_or(Missed::Skip),
        })
    }

    fn cron(&mut self, entry: &Entry) -> Option<windlass_model::model::Name> {
        let text = self.text(entry, HINT)?;
        if let Some(error) = cron_mistake(text) {
            let what = format!("`{text}` is not a valid cron pattern: {error}");
            let hint = "minute, hour, day of the month, month, day of the week: \"0 3 * * 1-5\"";
            self.error("bad-schedule", entry.value.span, what, hint);
            return None;
        }
        Some(text.into())
    }

    fn word<T: Copy>(&mut self, entry: &Entry, known: &[(&str, T)]) -> Option<T> {
        self.choice(entry, known, |text| {
            format!("`{text}` is not a valid value of `{}`", entry.key)
        })
    }
}
