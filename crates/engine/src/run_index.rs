//! A summary of every run in memory, enough to find, sort and count runs without reading them again. The index follows
//! the store: at each request it reads the runs that changed since the last one. Without the index, one page of a list
//! of 100,000 runs would need all headers, and reading them takes half a second.

use super::EngineError;
use super::inspect::Inspector;
use std::borrow::Borrow;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use windlass_machine::RunStatus;
use windlass_machine::program::ProgramHash;
use windlass_model::model::Name;
use windlass_store::{FAILED_ACTIONS_LABEL, Placement, QUARANTINE_LABEL, RunHeader};
use windlass_value::time::Timestamp;

/// Number of headers that are read at a time.
const PAGE: usize = 1_000;

/// Maximum number of deleted runs in the index.
const MAX_DELETED: usize = 10_000;

/// Maximum number of runs in the order of their changes.
const MAX_CHANGES: usize = 65_536;

/// The summary of a run.
#[derive(Debug)]
pub struct RunIndexEntry {
    pub id: Name,
    program: Arc<IndexedProgram>,
    pub started_at: Timestamp,
    /// Time of the last change.
    pub updated_at: Timestamp,
    /// When a sleeping run continues; otherwise [`NEVER`].
    due_at: Timestamp,
    rare: Option<Box<RareFacts>>,
    revision: u64,
    /// The number of the run's last observed change. 0 if the run has not changed since the first read of all runs.
    number: u64,
    pub status: RunStatus,
}

// An index may have a million entries, so each has to be small.
const _: () = assert!(size_of::<RunIndexEntry>() <= 80);

/// The program of one or more runs.
#[derive(Debug)]
struct IndexedProgram {
    hash: ProgramHash,
    workflow: Name,
}

/// Facts that most runs do not have. They are stored separately, so that an entry is small.
#[derive(Debug)]
struct RareFacts {
    labels: BTreeMap<String, String>,
    /// The version of the run's waits for permits. 0 if the run does not wait for one.
    queued: u64,
}

static NO_FACTS: RareFacts = RareFacts {
    labels: BTreeMap::new(),
    queued: 0,
};

/// The due time in the entry of a run that does not sleep.
const NEVER: Timestamp = Timestamp(i64::MAX);

impl RunIndexEntry {
    #[must_use]
    pub fn workflow(&self) -> &Name {
        &self.program.workflow
    }

    #[must_use]
    pub fn labels(&self) -> &BTreeMap<String, String> {
        &self.rare().labels
    }

    /// Returns when the run continues, if it sleeps for long.
    #[must_use]
    pub fn due_at(&self) -> Option<Timestamp> {
        Some(self.due_at).filter(|due_at| *due_at != NEVER)
    }

    /// Returns the revision of the run, and the version of its waits for permits.
    #[must_use]
    pub fn state(&self) -> (u64, u64) {
        (self.revision, self.rare().queued)
    }

    fn rare(&self) -> &RareFacts {
        self.rare.as_deref().unwrap_or(&NO_FACTS)
    }

    /// Returns whether the run has not changed since `since`, although it should have.
    #[must_use]
    pub fn is_stuck(&self, since: Timestamp) -> bool {
        let moves_at = self
            .due_at()
            .unwrap_or(self.updated_at)
            .max(self.updated_at);
        self.status.is_progressing() && moves_at < since
    }

    /// Returns whether the run succeeded although some of its actions failed.
    #[must_use]
    pub fn succeeded_with_failures(&self) -> bool {
        self.status == RunStatus::Succeeded && self.labels().contains_key(FAILED_ACTIONS_LABEL)
    }

    /// Returns whether the run is parked: it does not continue until a command resumes it.
    #[must_use]
    pub fn is_parked(&self) -> bool {
        !self.status.is_final() && self.labels().contains_key(QUARANTINE_LABEL)
    }
}

/// An entry that is compared by the run's id. The index may have a million entries, so its sets share one copy of each
/// entry and have no separate keys.
#[derive(Clone, Debug)]
struct ById(Arc<RunIndexEntry>);

impl Borrow<str> for ById {
    fn borrow(&self) -> &str {
        &self.0.id
    }
}

impl Hash for ById {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (*self.0.id).hash(state);
    }
}

impl Ord for ById {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.id.cmp(&other.0.id)
    }
}

impl PartialOrd for ById {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for ById {
    fn eq(&self, other: &Self) -> bool {
        self.0.id == other.0.id
    }
}

impl Eq for ById {}

#[derive(Default)]
pub struct RunIndex {
    /// Whether the index needs only the changes of the store. False before the first read of all runs, and after a
    /// failed read.
    follows: bool,
    /// The number of the last observed change of any run.
    number: u64,
    of: HashSet<ById>,
    by_start: BTreeSet<(Timestamp, ById)>,
    /// The runs that changed since the first read, by the number of their last change.
    by_change: BTreeMap<u64, ById>,
    /// The highest number that was removed from `by_change` because there were too many. Changes up to it are not
    /// known.
    forgotten: u64,
    /// Deleted runs, by the number of the change that deleted them.
    deleted: BTreeMap<u64, Name>,
    /// Each program, stored once.
    programs: HashMap<ProgramHash, Arc<IndexedProgram>>,
}

impl RunIndex {
    pub fn newest_first(&self) -> impl Iterator<Item = &RunIndexEntry> {
        self.by_start.iter().rev().map(|(_, run)| &*run.0)
    }

    /// Returns all runs, in no particular order.
    pub fn all(&self) -> impl Iterator<Item = &RunIndexEntry> {
        self.of.iter().map(|run| &*run.0)
    }

    /// Returns a run, if the index has it.
    #[must_use]
    pub fn get(&self, run: &str) -> Option<&RunIndexEntry> {
        self.of.get(run).map(|run| &*run.0)
    }

    /// Returns the number of runs of each of these programs, by status.
    #[must_use]
    pub fn counts(&self, programs: &[ProgramHash]) -> Vec<BTreeMap<RunStatus, u64>> {
        let mut counts = vec![BTreeMap::new(); programs.len()];
        let places = programs.iter().enumerate();
        let places: HashMap<ProgramHash, usize> =
            places.map(|(place, program)| (*program, place)).collect();
        for entry in self.all() {
            let place = places.get(&entry.program.hash);
            if let Some(count) = place.and_then(|at| counts.get_mut(*at)) {
                *count.entry(entry.status).or_default() += 1;
            }
        }
        counts
    }

    /// Returns the number of the last observed change of any run.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Returns the runs that were changed or deleted after this number.
    pub fn changed_after(&self, number: u64) -> impl Iterator<Item = &Name> {
        let after = number.saturating_add(1);
        let deleted = self.deleted.range(after..).map(|(_, run)| run);
        let last = self.by_change.range(after..).map(|(_, run)| &*run.0);
        let earlier = (number < self.forgotten).then(|| {
            let forgotten = number.saturating_add(1)..=self.forgotten;
            self.all()
                .filter(move |run| forgotten.contains(&run.number))
        });
        let changed = earlier.into_iter().flatten().chain(last);
        deleted.chain(changed.map(|run| &run.id))
    }

    /// Updates the entry of a run, if its header or `queued` differ from it.
    ///
    /// A `header` of `None`: the run was deleted. `queued` is the version of the run's waits. `seen`: the change gets a
    /// number, because it is not part of the first read of all runs.
    fn apply_header(&mut self, run: &Name, header: Option<&RunHeader>, queued: u64, seen: bool) {
        let known = self.get(run);
        let same = match (known, header) {
            (None, None) => true,
            (Some(known), Some(header)) => {
                known.state() == (header.revision, queued) && *known.labels() == header.labels
            }
            _ => false,
        };
        if same {
            return;
        }
        if let Some(old) = self.of.take(&**run) {
            let (started_at, number) = (old.0.started_at, old.0.number);
            self.by_start.remove(&(started_at, old));
            self.by_change.remove(&number);
        }
        self.number += u64::from(seen);
        let Some(header) = header else {
            self.deleted.insert(self.number, run.clone());
            if self.deleted.len() > MAX_DELETED {
                self.deleted.pop_first();
            }
            return;
        };
        let number = if seen { self.number } else { 0 };
        let program = self.programs.entry(header.program).or_insert_with(|| {
            Arc::new(IndexedProgram {
                hash: header.program,
                workflow: header.workflow.clone(),
            })
        });
        let has_rare = queued > 0 || !header.labels.is_empty();
        let rare = has_rare.then(|| {
            Box::new(RareFacts {
                labels: header.labels.clone(),
                queued,
            })
        });
        let run = ById(Arc::new(RunIndexEntry {
            id: header.id.clone(),
            program: program.clone(),
            status: header.status,
            started_at: header.started_at,
            updated_at: header.updated_at,
            due_at: match header.placement {
                Placement::Due(due_at) => due_at,
                Placement::Runnable | Placement::Idle => NEVER,
            },
            rare,
            revision: header.revision,
            number,
        }));
        if seen {
            self.by_change.insert(number, run.clone());
            if self.by_change.len() > MAX_CHANGES
                && let Some((oldest, _)) = self.by_change.pop_first()
            {
                self.forgotten = oldest;
            }
        }
        self.by_start.insert((header.started_at, run.clone()));
        self.of.insert(run);
    }
}

/// The index of all runs, with what it needs to follow the store.
#[derive(Default)]
pub(super) struct RunIndexCache {
    index: RwLock<RunIndex>,
    /// Held by the one caller that updates the index. Other callers wait for this caller.
    follow_lock: Mutex<()>,
}

impl RunIndexCache {
    /// Passes the index of all runs, as they are now, to `read`.
    pub fn read<T>(
        &self,
        runs: &Inspector,
        read: impl FnOnce(&RunIndex) -> T,
    ) -> Result<T, EngineError> {
        self.follow(runs)?;
        Ok(read(
            &self.index.read().unwrap_or_else(PoisonError::into_inner),
        ))
    }

    fn follow(&self, runs: &Inspector) -> Result<(), EngineError> {
        let _guard = self
            .follow_lock
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let changed = runs.changed_runs();
        let follows = self
            .index
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .follows;
        let followed = match changed.filter(|_| follows) {
            Some(changed) => self.update(runs, &changed),
            None => self.read_all(runs),
        };
        self.change(|index| index.follows = followed.is_ok());
        followed
    }

    fn update(&self, runs: &Inspector, changed: &[Name]) -> Result<(), EngineError> {
        for page in changed.chunks(PAGE) {
            let headers = runs.headers(page)?;
            self.change(|index| {
                for (run, header) in page.iter().zip(&headers) {
                    index.apply_header(run, header.as_ref(), runs.queued(run).version, true);
                }
            });
        }
        Ok(())
    }

    fn read_all(&self, runs: &Inspector) -> Result<(), EngineError> {
        let mut missing: HashSet<Name> = HashSet::new();
        let mut first = true;
        self.change(|index| {
            first = index.of.is_empty() && index.number == 0;
            missing.extend(index.all().map(|run| run.id.clone()));
        });
        let mut after: Option<Name> = None;
        loop {
            let page = runs.list(after.as_deref(), PAGE)?;
            self.change(|index| {
                for header in &page {
                    missing.remove(&header.id);
                    let queued = runs.queued(&header.id).version;
                    index.apply_header(&header.id, Some(header), queued, !first);
                }
            });
            match page.last() {
                Some(last) if page.len() == PAGE => after = Some(last.id.clone()),
                _ => break,
            }
        }
        self.change(|index| {
            missing
                .iter()
                .for_each(|run| index.apply_header(run, None, 0, true))
        });
        Ok(())
    }

    fn change(&self, change: impl FnOnce(&mut RunIndex)) {
        change(&mut self.index.write().unwrap_or_else(PoisonError::into_inner));
    }
}
