//! One run in a list.

use crate::engine::{EngineError, Inspector};
use crate::machine::RunStatus;
use crate::store::{Placement, RunHeader};
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// So many heads are read at a time.
const PAGE: usize = 1_000;

/// What `list` shows of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RunSummary {
    /// The run.
    pub run: String,
    /// The workflow's name.
    pub workflow: String,
    /// What it is doing.
    pub status: RunStatus,
    /// When it was started.
    pub started_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// When its first timer fires, while it waits.
    pub next_due_at: Option<Timestamp>,
    /// How many commits it has.
    pub commit: u64,
    /// What it was compiled from, as a hash.
    pub program: String,
    /// What it was marked with.
    pub labels: BTreeMap<String, String>,
}

impl RunSummary {
    /// What a run's head says.
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
                Placement::Runnable | Placement::Resting => None,
            },
            commit: header.revision,
            program: header.program.to_string(),
            labels: header.labels.clone(),
        }
    }
}

/// Which runs are listed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ListFilter {
    /// Only those that do this.
    pub status: Vec<RunStatus>,
    /// Only those whose ids begin so.
    #[serde(default)]
    pub prefix: Option<String>,
    /// Only those of this workflow.
    pub workflow: Option<String>,
    /// Only those with all of these labels.
    pub labels: BTreeMap<String, String>,
    /// Only those with this in their id, their workflow or a label, in whatever case.
    pub text: Option<String>,
    /// Only those that were started at this instant or later.
    pub since: Option<Timestamp>,
    /// Only those that were started before this instant.
    pub until: Option<Timestamp>,
    /// Whether [`ListReport::facets`] are asked for.
    pub facets: bool,
    /// The newest so many; none: all.
    pub limit: Option<usize>,
    /// Only those behind this place: [`ListReport::next`] of the page before.
    pub after: Option<String>,
}

/// A place in the list: when the last run before it was started, and its id.
type Place = (Timestamp, String);

impl ListFilter {
    /// Whether it takes a run, but for its status and its workflow.
    fn takes(&self, header: &RunHeader) -> bool {
        let labelled = |(name, text): (&String, &String)| header.labels.get(name) == Some(text);
        let begins = |prefix: &str| header.id.starts_with(prefix);
        self.prefix.as_deref().is_none_or(begins)
            && self.since.is_none_or(|since| header.started_at >= since)
            && self.until.is_none_or(|until| header.started_at < until)
            && self.labels.iter().all(labelled)
            && self.text.as_deref().is_none_or(|text| names(header, text))
    }

    fn takes_status(&self, header: &RunHeader) -> bool {
        self.status.is_empty() || self.status.contains(&header.status)
    }

    fn takes_workflow(&self, header: &RunHeader) -> bool {
        let workflow = self.workflow.as_deref();
        workflow.is_none_or(|name| *name == *header.workflow)
    }
}

/// Whether something that people call a run has this text in it.
fn names(header: &RunHeader, text: &str) -> bool {
    let text = text.to_lowercase();
    let labels = header
        .labels
        .iter()
        .flat_map(|(name, text)| [name.as_str(), text]);
    let mut names = labels.chain([&*header.id, &*header.workflow]);
    names.any(|name| name.to_lowercase().contains(&text))
}

/// `MILLISECONDS.RUN`.
fn place(text: &str) -> Option<Place> {
    let (at, run) = text.split_once('.')?;
    Some((Timestamp(at.parse().ok()?), run.to_owned()))
}

/// Runs, newest first, and how many there are that the limit left out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ListReport {
    /// The runs.
    pub runs: Vec<RunSummary>,
    /// How many more there are.
    pub more: usize,
    /// How many go on by themselves while a process owns the store: of all that are asked for, on
    /// whatever page.
    #[serde(default)]
    pub unfinished: usize,
    /// Where the next page begins, when there are more.
    #[serde(default)]
    pub next: Option<String>,
    /// How many there are of each kind, when that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub facets: Option<Facets>,
}

/// How many runs of each kind a filter takes. The filter of a kind itself does not count for it: they
/// say what another choice would show.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Facets {
    /// By what they do.
    pub status: BTreeMap<String, u64>,
    /// By workflow.
    pub workflow: BTreeMap<String, u64>,
}

impl Facets {
    fn count(&mut self, filter: &ListFilter, header: &RunHeader) {
        if filter.takes_workflow(header) {
            let status = header.status.as_str().to_owned();
            *self.status.entry(status).or_default() += 1;
        }
        if filter.takes_status(header) {
            let workflow = header.workflow.to_string();
            *self.workflow.entry(workflow).or_default() += 1;
        }
    }
}

/// The runs of a store. Runs that are started meanwhile move no page.
///
/// # Errors
/// Store errors; [`EngineError::NoPage`] for a place that is none.
pub fn list(inspector: &Inspector, filter: &ListFilter) -> Result<ListReport, EngineError> {
    let behind = match filter.after.as_deref() {
        None => None,
        Some(text) => Some(place(text).ok_or_else(|| EngineError::NoPage(text.to_owned()))?),
    };
    let limit = filter.limit.unwrap_or(usize::MAX);
    // Only the newest are kept while all are looked at.
    let mut newest: BTreeMap<Place, RunHeader> = BTreeMap::new();
    let (mut more, mut unfinished) = (0, 0);
    let mut facets = filter.facets.then(Facets::default);
    let mut after: Option<String> = None;
    loop {
        let page = inspector.list(after.as_deref(), PAGE)?;
        let full = page.len() == PAGE;
        after = page.last().map(|header| header.id.to_string());
        for header in page.iter().filter(|header| filter.takes(header)) {
            if let Some(facets) = &mut facets {
                facets.count(filter, header);
            }
            if !filter.takes_status(header) || !filter.takes_workflow(header) {
                continue;
            }
            unfinished += usize::from(header.status.goes_on());
            let place = (header.started_at, header.id.to_string());
            if behind.as_ref().is_some_and(|behind| place >= *behind) {
                continue;
            }
            newest.insert(place, header.clone());
            if newest.len() > limit {
                newest.pop_first();
                more += 1;
            }
        }
        if !full {
            break;
        }
    }
    let last = newest.first_key_value().filter(|_| more > 0);
    let next = last.map(|((at, run), _)| format!("{}.{run}", at.0));
    let runs = newest.values().rev();
    Ok(ListReport {
        runs: runs.map(|header| summary(inspector, header)).collect(),
        more,
        unfinished,
        next,
        facets,
    })
}

/// A run in a list. When a short wait ends is in its state only.
fn summary(inspector: &Inspector, header: &RunHeader) -> RunSummary {
    let mut summary = RunSummary::new(header);
    if header.status == RunStatus::Waiting && summary.next_due_at.is_none() {
        // What cannot be read is told by `status`.
        let stored = inspector.load(&header.id).ok();
        summary.next_due_at = stored.and_then(|stored| stored.state.next_due_at());
    }
    summary
}
