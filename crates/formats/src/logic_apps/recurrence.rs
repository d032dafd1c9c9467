//! The schedule of a Recurrence trigger (Logic Apps reference, "Recurrence trigger").

use super::LogicApps;
use crate::actions::ActionReader;
use chrono::NaiveDateTime;
use std::borrow::Cow;
use windlass_expression::{Context, Value, time_zone};
use windlass_model::model::{Frequency, Name, Recurrence};
use windlass_source::diagnostic::did_you_mean;
use windlass_source::source::{Entry, Kind, Node};

pub(super) const HINT: &str = "for example recurrence: { frequency: Hour, interval: 2 }";
const DAYS: [&str; 7] = [
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
    "Sunday",
];

impl ActionReader<'_, LogicApps> {
    /// Replaces the expressions of a recurrence by their values.
    /// The expressions may read only parameters. If an expression has no value here, warns and returns `None`,
    /// because a deployment may have other values.
    pub(super) fn computed_recurrence<'n>(
        &mut self,
        entry: &'n Entry,
        parameters: &[(Name, Value)],
    ) -> Option<Cow<'n, Entry>> {
        let template = self.template(&entry.value);
        if template.as_constant().is_some() {
            return Some(Cow::Borrowed(entry));
        }
        let values = Value::from_pairs(parameters.iter().cloned());
        let context = Value::from_pairs([("mode", Value::text("azure")), ("parameters", values)]);
        let context = Context::new(&context, chrono::DateTime::UNIX_EPOCH, 0).ok()?;
        let why = match template.eval(&context) {
            Ok(value) => {
                let word = value.get("frequency").and_then(Value::as_str);
                let frequency = word.is_some_and(|word| {
                    Frequency::WORDS
                        .iter()
                        .any(|(known, _)| known.eq_ignore_ascii_case(word))
                });
                let interval = value.get("interval").is_none_or(|interval| {
                    interval.as_whole().is_some_and(|interval| interval > 0)
                });
                let text = |key: &str| value.get(key).and_then(Value::as_str);
                let times = ["startTime", "endTime"].into_iter().filter_map(text);
                let times = times.map(instant_of).all(|time| time.is_some());
                let zone = text("timeZone").is_none_or(|zone| time_zone(zone).is_some());
                if frequency && interval && times && zone {
                    let value = Node::made(value, entry.value.span);
                    return Some(Cow::Owned(Entry {
                        value,
                        ..entry.clone()
                    }));
                }
                String::from("one of its values is not valid")
            }
            Err(error) => error.message,
        };
        let what = format!("the recurrence cannot be computed: {why}");
        let hint = "no run starts by it; set values of its parameters with --parameters FILE";
        self.warning("not-supported", entry.key_span, what, hint);
        None
    }

    /// Reads `{frequency, interval, startTime, endTime, timeZone, schedule: {hours, minutes, weekDays}}`.
    pub(super) fn recurrence(&mut self, entry: &Entry) -> Option<Recurrence> {
        let mut fields = self.fields(&entry.value, "`recurrence`", HINT)?;
        let frequency = fields.required(self, "frequency", entry.key_span, HINT);
        let interval = fields.get("interval");
        let start = fields.get("startTime");
        let end = fields.get("endTime");
        let zone = fields.get("timeZone");
        let schedule = fields.get("schedule");
        fields.finish(self);
        let frequency = self.choice(frequency?, &Frequency::WORDS, |text| {
            format!("`{text}` is not a valid frequency")
        })?;
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
        let zone = zone.and_then(|entry| self.time_zone(entry));
        let [hours, minutes, week_days] = match schedule {
            Some(schedule) => self.at(schedule, frequency)?,
            None => Default::default(),
        };
        Some(Recurrence {
            frequency,
            interval,
            start,
            end,
            time_zone: zone,
            hours,
            minutes,
            week_days,
        })
    }

    /// Reads the hours, the minutes and the days of the week at which the trigger fires.
    fn at(&mut self, schedule: &Entry, frequency: Frequency) -> Option<[Vec<u32>; 3]> {
        let hint = "for example schedule: { hours: [8, 17], minutes: [30] }";
        let mut fields = self.fields(&schedule.value, "`schedule`", hint)?;
        let daily = matches!(frequency, Frequency::Day | Frequency::Week);
        let hours = self.used_entry(fields.get("hours"), daily, "Day or Week");
        let minutes = self.used_entry(fields.get("minutes"), daily, "Day or Week");
        let days = self.used_entry(fields.get("weekDays"), frequency == Frequency::Week, "Week");
        fields.finish(self);
        Some([
            self.numbers(hours, 23),
            self.numbers(minutes, 59),
            self.week_days(days.map(|entry| &entry.value)),
        ])
    }

    /// Returns the entry of a key.
    /// If the key has no effect with this frequency, it is reported and ignored.
    fn used_entry<'n>(
        &mut self,
        entry: Option<&'n Entry>,
        used: bool,
        by: &str,
    ) -> Option<&'n Entry> {
        let entry = entry?;
        if !used {
            let what = format!("`{}` counts with the frequency {by} only", entry.key);
            let hint = "it is ignored; `startTime` sets the time of the day, or of the hour";
            self.warning("not-supported", entry.key_span, what, hint);
        }
        used.then_some(entry)
    }

    /// Reads a number, or a list of numbers, each up to `most`.
    fn numbers(&mut self, entry: Option<&Entry>, most: u32) -> Vec<u32> {
        let Some(entry) = entry else {
            return Vec::new();
        };
        let nodes = match &entry.value.kind {
            Kind::Array(items) => items.as_slice(),
            _ => std::slice::from_ref(&entry.value),
        };
        let mut numbers = Vec::with_capacity(nodes.len());
        for node in nodes {
            let number = self
                .whole(node)
                .and_then(|number| u32::try_from(number).ok());
            match number.filter(|number| *number <= most) {
                Some(number) => numbers.push(number),
                None => {
                    let what = format!("`{}` are whole numbers from 0 to {most}", entry.key);
                    self.error("out-of-range", node.span, what, HINT);
                }
            }
        }
        numbers
    }

    /// Reads an instant.
    /// With `Z` or an offset, the instant is UTC. Without, it is local to the time zone.
    fn instant(&mut self, entry: &Entry) -> Option<NaiveDateTime> {
        let hint = "for example 2026-11-20T08:00:00Z";
        let text = self.text(entry, hint)?;
        let found = instant_of(text);
        if found.is_none() {
            let what = format!("`{text}` is not a valid instant");
            self.error("bad-timestamp", entry.value.span, what, hint);
        }
        found
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
                    let what = format!("`{text}` is not a valid day of the week");
                    let hint = did_you_mean(text, DAYS).unwrap_or_else(|| DAYS.join(", "));
                    self.error("unknown-value", item.span, what, hint);
                }
            }
        }
        days
    }
}

fn instant_of(text: &str) -> Option<NaiveDateTime> {
    let exact = chrono::DateTime::parse_from_rfc3339(text).map(|at| at.naive_utc());
    exact.or_else(|_| text.parse::<NaiveDateTime>()).ok()
}
