//! A list of runs.

use super::{RunRow, SUCCEEDED_WITH_FAILURES, StatusFilter, rows};
use crate::{EngineError, Inspector, RunIndex, RunIndexEntry, START_LABEL};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;
use windlass_machine::RunStatus;
use windlass_model::model::Name;
use windlass_store::{FAILED_ACTIONS_LABEL, Placement, RunHeader};
use windlass_value::time::Timestamp;

/// One run, as `list` shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RunSummary {
    /// Id of the run.
    pub run: String,
    /// Name of the workflow.
    pub workflow: String,
    /// Status of the run.
    pub status: RunStatus,
    /// Time when the run was started.
    pub started_at: Timestamp,
    /// Time of its last commit.
    pub updated_at: Timestamp,
    /// Time when its first timer fires. Null if the run does not wait for a timer.
    pub next_due_at: Option<Timestamp>,
    /// Number of commits of the run.
    pub commit: u64,
    /// Version of the workflow: the SHA-256 of its files and format, as `sha256:` and 64 hexadecimal digits.
    pub program: String,
    /// Number of actions that failed without failing the run, because their failures were handled. Absent if it is 0.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub failed_actions: u64,
    /// Labels of the run, by name.
    pub labels: BTreeMap<String, String>,
}

pub(super) fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// The labels that reports do not contain.
const HIDDEN_LABELS: [&str; 2] = [FAILED_ACTIONS_LABEL, START_LABEL];

/// Returns the labels of a run that reports contain.
pub(super) fn shown_labels(header: &RunHeader) -> BTreeMap<String, String> {
    let mut labels = header.labels.clone();
    labels.retain(|name, _| !HIDDEN_LABELS.contains(&&**name));
    labels
}

/// Returns the word for the status of a run in which this number of actions failed and the failures were handled.
#[must_use]
pub fn status_word(status: RunStatus, failed_actions: u64) -> &'static str {
    match status {
        RunStatus::Succeeded if failed_actions > 0 => SUCCEEDED_WITH_FAILURES,
        status => status.as_str(),
    }
}

impl RunSummary {
    /// Returns the word for the run's status, with a word of its own for a success with failures.
    #[must_use]
    pub fn status_word(&self) -> &'static str {
        status_word(self.status, self.failed_actions)
    }

    /// Makes the summary from a run's header.
    #[must_use]
    pub fn new(header: &RunHeader) -> Self {
        Self {
            run: header.id.to_string(),
            workflow: header.workflow.to_string(),
            status: header.status,
            started_at: header.started_at,
            updated_at: header.updated_at,
            next_due_at: match header.placement {
                Placement::Due(due) => Some(due),
                Placement::Runnable | Placement::Idle => None,
            },
            commit: header.revision,
            program: header.program.to_string(),
            failed_actions: header.failed_actions(),
            labels: shown_labels(header),
        }
    }
}

/// Selects the runs of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ListFilter {
    /// Only runs with one of these statuses. Empty: runs of any status.
    pub status: Vec<StatusFilter<RunStatus>>,
    /// Only runs whose ids begin with this.
    #[serde(default)]
    pub prefix: Option<String>,
    /// Only runs of one of these workflows. Empty: runs of all workflows.
    pub workflows: Vec<String>,
    /// Only runs with all of these labels.
    pub labels: BTreeMap<String, String>,
    /// Only runs with this text in their id, workflow or a label, ignoring case.
    pub text: Option<String>,
    /// Only runs that were started at this instant or later.
    pub since: Option<Timestamp>,
    /// Only runs that were started before this instant.
    pub until: Option<Timestamp>,
    /// Only runs that should have made a step since this instant, but have not.
    pub stuck_since: Option<Timestamp>,
    /// Only the runs with these ids. Empty: all runs.
    pub runs: Vec<String>,
    /// Whether [`ListReport::facets`] is requested.
    pub facets: bool,
    /// [`Facets::hour`] counts the runs that were started at this instant or later. `None`: no runs.
    pub hours_since: Option<Timestamp>,
    /// Whether the current activity of each run is reported.
    pub detail: bool,
    /// Number of the newest runs after `after` to skip.
    pub offset: usize,
    /// Maximum number of runs. `None`: all runs.
    pub limit: Option<usize>,
    /// Only runs after this position: [`ListReport::next`] of the previous page.
    pub after: Option<String>,
}

/// A position in the list: the start time and the id of the last run before the position.
type PageCursor = (Timestamp, String);

impl ListFilter {
    /// Returns whether the filter accepts a run, ignoring its status, its workflow and its start.
    fn matches(&self, header: &RunIndexEntry, text: Option<&str>) -> bool {
        let labelled = |(name, text): (&String, &String)| header.labels().get(name) == Some(text);
        let begins = |prefix: &str| header.id.starts_with(prefix);
        let meant = |run: &String| **run == *header.id;
        (self.runs.is_empty() || self.runs.iter().any(meant))
            && self.prefix.as_deref().is_none_or(begins)
            && self.stuck_since.is_none_or(|since| header.is_stuck(since))
            && self.labels.iter().all(labelled)
            && text.is_none_or(|text| names(header, text))
    }

    fn matches_start(&self, header: &RunIndexEntry) -> bool {
        self.since.is_none_or(|since| header.started_at >= since)
            && self.until.is_none_or(|until| header.started_at < until)
    }

    fn matches_status(&self, header: &RunIndexEntry) -> bool {
        let accepts = |status: &StatusFilter<_>| {
            status.accepts(header.status, header.succeeded_with_failures())
        };
        self.status.is_empty() || self.status.iter().any(accepts)
    }

    fn matches_workflow(&self, header: &RunIndexEntry) -> bool {
        let is = |name: &String| **name == **header.workflow();
        self.workflows.is_empty() || self.workflows.iter().any(is)
    }
}

/// Returns whether the id, the workflow or a label (`NAME=TEXT`) of a run contains this text, which is in lower case.
fn names(entry: &RunIndexEntry, text: &str) -> bool {
    let labels = entry.labels().iter();
    let mut labels = labels.filter(|(name, _)| !HIDDEN_LABELS.contains(&&***name));
    if text.contains('=')
        && labels
            .clone()
            .any(|(name, label)| has(&format!("{name}={label}"), text))
    {
        return true;
    }
    let labels = labels
        .by_ref()
        .flat_map(|(name, text)| [name.as_str(), text]);
    let mut names = labels.chain([&*entry.id, &**entry.workflow()]);
    names.any(|name| has(name, text))
}

/// Returns whether a name contains this text, which is in lower case.
fn has(name: &str, text: &str) -> bool {
    if !name.is_ascii() {
        return name.to_lowercase().contains(text);
    }
    // A list compares many names, so do not copy each name to lower case.
    let mut windows = name.as_bytes().windows(text.len().max(1));
    text.is_empty() || windows.any(|window| window.eq_ignore_ascii_case(text.as_bytes()))
}

/// Parses the position `MILLISECONDS.RUN`.
fn cursor_of(text: &str) -> Option<PageCursor> {
    let (at, run) = text.split_once('.')?;
    Some((Timestamp(at.parse().ok()?), run.to_owned()))
}

/// A page of runs, newest first, with counts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ListReport {
    /// Runs of the page.
    pub runs: Vec<RunRow>,
    /// Number of runs after this page.
    pub more: usize,
    /// Number of selected runs on all pages.
    pub total: usize,
    /// Number of selected runs on all pages that are `Running` or `Waiting`, and not parked.
    pub unfinished: usize,
    /// Value for `after` of the next page. Null on the last page.
    pub next: Option<String>,
    /// Counts by status, by workflow and by hour. Absent unless they are requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub facets: Option<Facets>,
}

/// Numbers of runs by status, by workflow and by hour. Each count ignores the filter of its own kind, and so shows what
/// another choice would return.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Facets {
    /// Number of runs by status. `SucceededWithFailures` counts the runs of `Succeeded` in which actions failed.
    pub status: BTreeMap<String, u64>,
    /// Number of runs by name of the workflow.
    pub workflow: BTreeMap<String, u64>,
    /// Number of runs that were started in this hour or the 23 hours before it: by the beginning of the hour in UTC,
    /// then by status. An hour without runs is absent.
    pub hour: BTreeMap<Timestamp, BTreeMap<String, u64>>,
}

impl Facets {
    fn count(&mut self, filter: &ListFilter, entry: &RunIndexEntry) {
        let (status, workflow) = (filter.matches_status(entry), filter.matches_workflow(entry));
        let start = filter.matches_start(entry);
        if workflow && start {
            count_status(&mut self.status, entry);
        }
        if status && start {
            one_more(&mut self.workflow, entry.workflow());
        }
        if status && workflow && filter.hours_since.is_some_and(|at| entry.started_at >= at) {
            let hour = entry.started_at.hour();
            count_status(self.hour.entry(hour).or_default(), entry);
        }
    }
}

fn count_status(counts: &mut BTreeMap<String, u64>, entry: &RunIndexEntry) {
    one_more(counts, entry.status.as_str());
    if entry.succeeded_with_failures() {
        one_more(counts, SUCCEEDED_WITH_FAILURES);
    }
}

fn one_more(counts: &mut BTreeMap<String, u64>, name: &str) {
    match counts.get_mut(name) {
        Some(count) => *count += 1,
        None => drop(counts.insert(name.to_owned(), 1)),
    }
}

/// Lists the runs of a store. Runs that are started while a client reads the pages do not move runs to other pages.
///
/// # Errors
/// Returns store errors, or [`EngineError::NoPage`] for an invalid position.
pub fn list(inspector: &Inspector, filter: &ListFilter) -> Result<ListReport, EngineError> {
    let behind = match filter.after.as_deref() {
        None => None,
        Some(text) => Some(cursor_of(text).ok_or_else(|| EngineError::NoPage(text.to_owned()))?),
    };
    let (mut report, page) = inspector.run_index(|index| choose(index, filter, behind.as_ref()))?;
    report.runs = match filter.detail {
        true => rows(inspector, &page)?,
        false => inspector.read_batch(|inspector| {
            let headers = inspector.headers(&page)?.into_iter().flatten();
            let rows = headers.map(|header| RunRow::brief(inspector, &header));
            Ok(rows.collect())
        })?,
    };
    Ok(report)
}

/// Selects the runs of a page, and counts all selected runs.
fn choose(
    index: &RunIndex,
    filter: &ListFilter,
    behind: Option<&PageCursor>,
) -> (ListReport, Vec<Name>) {
    let text = filter.text.as_deref();
    let text = text.map(|text| text.trim().to_lowercase());
    let limit = filter.limit.unwrap_or(usize::MAX);
    let mut report = ListReport {
        facets: filter.facets.then(Facets::default),
        ..ListReport::default()
    };
    let (mut page, mut skipped, mut last) = (Vec::new(), 0, None);
    for entry in index.newest_first() {
        if !filter.matches(entry, text.as_deref()) {
            continue;
        }
        if let Some(facets) = &mut report.facets {
            facets.count(filter, entry);
        }
        let meant = filter.matches_status(entry) && filter.matches_workflow(entry);
        if !meant || !filter.matches_start(entry) {
            continue;
        }
        report.total += 1;
        report.unfinished += usize::from(entry.status.is_progressing() && !entry.is_parked());
        let before = |(at, run): &PageCursor| (entry.started_at, &*entry.id) >= (*at, run.as_str());
        if behind.is_some_and(before) {
            continue;
        }
        if skipped < filter.offset {
            skipped += 1;
        } else if page.len() < limit {
            page.push(entry.id.clone());
            last = Some((entry.started_at, &entry.id));
        } else {
            report.more += 1;
        }
    }
    let last = last.filter(|_| report.more > 0);
    report.next = last.map(|(at, run)| format!("{}.{run}", at.0));
    (report, page)
}
