//! The schedule of a Recurrence trigger (Logic Apps reference, "Recurrence trigger").

use super::Loom;
use crate::diagnostic::did_you_mean;
use crate::model::{Frequency, Recurrence};
use crate::source::{Entry, Kind, Node};
use chrono::NaiveDateTime;

const HINT: &str = "for example recurrence: { frequency: Hour, interval: 2 }";
const DAYS: [&str; 7] = [
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
    "Sunday",
];

impl Loom<'_> {
    /// `{frequency, interval, startTime, endTime, timeZone, schedule: {hours, minutes, weekDays}}`.
    pub(super) fn recurrence(&mut self, entry: &Entry) -> Option<Recurrence> {
        let mut fields = self.fields(&entry.value, "`recurrence`", HINT)?;
        let frequency = fields.need(self, "frequency", entry.key_span, HINT);
        let interval = fields.get("interval");
        let start = fields.get("startTime");
        let end = fields.get("endTime");
        let zone = fields.get("timeZone");
        let schedule = fields.get("schedule");
        fields.finish(self);
        let frequency = self.frequency(frequency?)?;
        let interval = match interval.map(|entry| (self.whole(&entry.value), entry)) {
            None => 1,
            Some((Some(interval @ 1..=1_000_000), _)) => u32::try_from(interval).ok()?,
            Some((_, entry)) => {
                let wanted = "a whole number from 1";
                self.wrong_type(&entry.value, "`interval`", wanted, HINT);
                return None;
            }
        };
        let start = start.and_then(|entry| self.instant(entry));
        let end = end.and_then(|entry| self.instant(entry));
        let zone = zone.and_then(|entry| self.text(entry, "a time zone"));
        let part = |key: &str, most: i64| {
            let node = schedule.and_then(|entry| entry.value.get_any_case(key));
            numbers(node, most)
        };
        let week_days = schedule.and_then(|entry| entry.value.get_any_case("weekDays"));
        Some(Recurrence {
            frequency,
            interval,
            start,
            end,
            time_zone: zone.map(Into::into),
            hours: part("hours", 23),
            minutes: part("minutes", 59),
            week_days: self.week_days(week_days),
        })
    }

    fn frequency(&mut self, entry: &Entry) -> Option<Frequency> {
        let known = ["Second", "Minute", "Hour", "Day", "Week", "Month"];
        let known = known.map(|word| (word, word));
        let word = self.choice(entry, &known, |text| format!("`{text}` is no frequency"))?;
        Frequency::parse(word)
    }

    /// With `Z` or an offset it is UTC, else local to the time zone.
    fn instant(&mut self, entry: &Entry) -> Option<NaiveDateTime> {
        let hint = "for example 2026-11-20T08:00:00Z";
        let text = self.text(entry, hint)?;
        let exact = chrono::DateTime::parse_from_rfc3339(text).map(|at| at.naive_utc());
        let found = exact.or_else(|_| text.parse::<NaiveDateTime>());
        if found.is_err() {
            let what = format!("`{text}` is no instant");
            self.error("bad-timestamp", entry.value.span, what, hint);
        }
        found.ok()
    }

    fn week_days(&mut self, node: Option<&Node>) -> Vec<u32> {
        let Some(Kind::Array(items)) = node.map(|node| &node.kind) else {
            return Vec::new();
        };
        let mut days = Vec::new();
        for item in items {
            let text = item.as_str().unwrap_or_default();
            let day = DAYS.iter().position(|day| day.eq_ignore_ascii_case(text));
            match day.and_then(|day| u32::try_from(day).ok()) {
                Some(day) => days.push(day),
                None => {
                    let what = format!("`{text}` is no day of the week");
                    let hint = did_you_mean(text, DAYS).unwrap_or_else(|| DAYS.join(", "));
                    self.error("unknown-value", item.span, what, hint);
                }
            }
        }
        days
    }
}

/// A number, or a list of numbers; what is out of range is left out.
fn numbers(node: Option<&Node>, most: i64) -> Vec<u32> {
    let number = |node: &Node| match &node.kind {
        Kind::Int(number) if (0..=most).contains(number) => u32::try_from(*number).ok(),
        Kind::String(text) => text.text.parse().ok().filter(|n| i64::from(*n) <= most),
        _ => None,
    };
    match node.map(|node| (&node.kind, node)) {
        Some((Kind::Array(items), _)) => items.iter().filter_map(number).collect(),
        Some((_, node)) => number(node).into_iter().collect(),
        None => Vec::new(),
    }
}
