//! When runs of a workflow start automatically.

use crate::Workflow;
use crate::calendar::next_after;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use windlass_machine::RunStatus;
use windlass_model::model::{Frequency, Missed, Overlap, Recurrence, When};
use windlass_store::ScheduleState;
use windlass_value::time::Timestamp;

/// Number of future times that are reported.
const TIMES: usize = 5;

/// The schedule of a workflow, with its next times. Without a schedule, it has only `next`, `missed_times` and `last`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ScheduleReport {
    /// Cron pattern, or description of the recurrence. Absent without a schedule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<String>,
    /// Time zone of the schedule; `UTC` if the workflow names none. Absent without a schedule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timezone: Option<String>,
    /// Next five times. Empty while the schedule is paused.
    pub next: Vec<Timestamp>,
    /// Id of the last run that the schedule started. Absent if it started none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<String>,
    /// What happens at a time while an earlier run has not ended: `skip`, `queue`, `allow` or `replace`. Absent without
    /// a schedule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overlap: Option<String>,
    /// What happens with times while no server ran: `skip`, `run_once` or `run_all`. Absent without a schedule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missed: Option<String>,
    /// Number of times that were missed and have no run.
    pub missed_times: u64,
    /// The last missed time. Absent if no time was missed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_missed: Option<Timestamp>,
    /// Time when the schedule was paused. Absent if it is not paused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused_since: Option<Timestamp>,
    /// Why the schedule starts no runs now, such as a permission that the server lacks. Absent if it can start them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cannot_start: Option<String>,
}

/// A past time of a schedule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ScheduledTime {
    pub time: Timestamp,
    /// Id that the run of this time has, or would have.
    pub run: String,
    /// Status of the run. Absent without a run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<RunStatus>,
}

/// Past times of a schedule.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ScheduledTimes {
    pub times: Vec<ScheduledTime>,
}

impl ScheduleReport {
    /// Makes the report of a workflow that was stored at `stored_at`, with its next scheduled times after `after`.
    pub fn new(
        workflow: &Workflow,
        stored_at: Timestamp,
        mut after: Timestamp,
        state: Option<&ScheduleState>,
    ) -> Self {
        let last = state.and_then(|state| Some(state.last_run.as_ref()?.to_string()));
        let Some(schedule) = &workflow.program().schedule else {
            return Self {
                last,
                ..Self::default()
            };
        };
        let pause = state.and_then(|state| state.pauses.last());
        let paused_since = pause.filter(|pause| pause.to.is_none());
        let paused_since = paused_since.map(|pause| pause.from);
        let mut next = Vec::with_capacity(TIMES);
        while paused_since.is_none()
            && let Some(at) = next_after(schedule, stored_at, after).filter(|_| next.len() < TIMES)
        {
            next.push(at);
            after = at;
        }
        let (text, zone) = match &schedule.when {
            When::Cron { pattern, zone } => (pattern.to_string(), zone),
            When::Recurrence(recurrence) => (in_words(recurrence), &recurrence.time_zone),
        };
        Self {
            schedule: Some(text),
            timezone: Some(zone.as_deref().unwrap_or("UTC").to_owned()),
            next,
            last,
            overlap: word(&Overlap::WORDS, schedule.overlap),
            missed: word(&Missed::WORDS, schedule.missed),
            missed_times: state.map_or(0, |state| state.missed),
            last_missed: state.and_then(|state| state.last_missed),
            paused_since,
            cannot_start: None,
        }
    }
}

/// Returns the word for a value, from a table of words and values.
fn word<T: PartialEq>(words: &[(&str, T)], of: T) -> Option<String> {
    let mut words = words.iter();
    let found = words.find(|(_, known)| *known == of);
    found.map(|(word, _)| (*word).to_owned())
}

fn in_words(recurrence: &Recurrence) -> String {
    const DAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
    let unit = word(&Frequency::WORDS, recurrence.frequency)
        .unwrap_or_default()
        .to_lowercase();
    let mut text = match recurrence.interval {
        0 | 1 => format!("every {unit}"),
        several => format!("every {several} {unit}s"),
    };
    let days = recurrence.week_days.iter();
    let days = days.filter_map(|day| DAYS.get(usize::try_from(*day).ok()?));
    let days: Vec<&str> = days.copied().collect();
    let listed = |numbers: &[u32]| {
        let numbers: Vec<String> = numbers.iter().map(ToString::to_string).collect();
        numbers.join(", ")
    };
    let parts = [
        (" on ", days.join(", ")),
        (", hours ", listed(&recurrence.hours)),
        (", minutes ", listed(&recurrence.minutes)),
    ];
    for (word, part) in parts.iter().filter(|(_, part)| !part.is_empty()) {
        text.push_str(word);
        text.push_str(part);
    }
    if let Some(start) = recurrence.start {
        text.push_str(&format!(", from {start}"));
    }
    if let Some(end) = recurrence.end {
        text.push_str(&format!(", until {end}"));
    }
    text
}
