//! Cron patterns.

use super::wall_time::instant_of;
use chrono::{DateTime, TimeZone};
use croner::Cron;
use std::str::FromStr;

/// The fields of a pattern with seconds and years, and their bounds.
const FIELDS: [(&str, &str); 7] = [
    ("seconds", "0 to 59"),
    ("minutes", "0 to 59"),
    ("hours", "0 to 23"),
    ("days of the month", "1 to 31"),
    ("months", "1 to 12"),
    ("days of the week", "0 to 7"),
    ("years", "1 to 5000"),
];

/// Returns the description of the mistake in a pattern, or `None` if the pattern is valid.
#[must_use]
pub fn cron_mistake(pattern: &str) -> Option<String> {
    if let Err(error) = Cron::from_str(pattern) {
        return Some(mistake_of_field(pattern).unwrap_or_else(|| error.to_string()));
    }
    let never = next_of_cron(pattern, &DateTime::UNIX_EPOCH).is_none();
    never.then(|| String::from("it never fires, because no year has such a day"))
}

/// Returns the description of the first invalid field of a pattern. `None`: each field alone is valid.
fn mistake_of_field(pattern: &str) -> Option<String> {
    let fields: Vec<&str> = pattern.split_whitespace().collect();
    if !(5..=7).contains(&fields.len()) {
        return Some(String::from(
            "a cron pattern has 5 fields, or 6 with seconds",
        ));
    }
    let all = ["*"; 7];
    let skipped = usize::from(fields.len() == 5);
    let named = FIELDS.iter().skip(skipped).zip(&fields).enumerate();
    { named }.find_map(|(at, ((name, bounds), field))| {
        let (before, after) = (all.get(..at)?, all.get(at + 1..fields.len())?);
        let alone = [before, &[*field], after].concat().join(" ");
        let is_wrong = Cron::from_str(&alone).is_err();
        is_wrong.then(|| format!("the {name} are {bounds}, not `{field}`"))
    })
}

/// Returns the first time after `after` that a pattern matches, on the clock of the time zone of `after`.
#[must_use]
pub fn next_of_cron<Z: TimeZone>(pattern: &str, after: &DateTime<Z>) -> Option<DateTime<Z>> {
    let cron = Cron::from_str(pattern).ok()?;
    let fields = &cron.pattern;
    let mut times = [&fields.seconds, &fields.minutes, &fields.hours].into_iter();
    if times.any(|field| field.from_wildcard) {
        return cron.find_next_occurrence(after, false).ok();
    }
    // A pattern with fixed times: each time of the wall clock is one instant.
    let mut wall = after.naive_local();
    loop {
        wall = cron
            .find_next_occurrence(&wall.and_utc(), false)
            .ok()?
            .naive_utc();
        let at = instant_of(wall, &after.timezone())?;
        // If the clock was set back before `after`, some of the next wall times have already passed.
        if at > *after {
            return Some(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::cron_mistake;

    #[test]
    fn a_mistake_names_the_field_and_its_bounds() {
        for (pattern, expected) in [
            ("60 * * * *", "the minutes are 0 to 59, not `60`"),
            ("60 * * * * *", "the seconds are 0 to 59, not `60`"),
            ("0 24 * * *", "the hours are 0 to 23, not `24`"),
            ("0 0 0 * *", "the days of the month are 1 to 31, not `0`"),
            ("0 0 * 1-13 *", "the months are 1 to 12, not `1-13`"),
            ("0 0 * * 8", "the days of the week are 0 to 7, not `8`"),
            ("* * *", "a cron pattern has 5 fields, or 6 with seconds"),
            ("", "a cron pattern has 5 fields, or 6 with seconds"),
        ] {
            assert_eq!(
                cron_mistake(pattern).as_deref(),
                Some(expected),
                "{pattern}"
            );
        }
        assert_eq!(cron_mistake("*/15 2 L * MON-FRI"), None);
    }
}
