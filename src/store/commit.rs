//! What a commit writes: its changes or a snapshot, the rows of loops and iterations, history,
//! the index its run is in, and the run's head; and what is removed with it. Everything of one
//! commit goes into one atomic batch. This file never decides when a batch is made durable.

use super::codec;
use super::keys::{self, Family, LoopPath};
use super::kv::{Kv, prefixed};
use super::rows::{Rows, corrupt, index};
use super::stage::{Stage, Unfit};
use super::{Commit, Committed, Placement, StoreError};
use crate::machine::{LoopState, Receipt};
use crate::model::Name;
use crate::program::ProgramHash;
use bincode::Encode;
use std::collections::{HashMap, HashSet};
use std::ops::Bound;

/// So many heads are remembered before those of runs that wait are forgotten.
const MAX_HEADS: usize = 8_192;

/// What the one who writes remembers between groups.
pub struct Writer {
    /// What the next group writes.
    pub stage: Stage,
    heads: HashMap<Name, Head>,
    programs: HashSet<ProgramHash>,
    group: u64,
}

/// Where a run's journal stands.
#[derive(Clone, Copy)]
struct Head {
    revision: u64,
    snapshot: u64,
    placement: Option<Placement>,
    /// The sequence number of its last event.
    events: u64,
}

impl Writer {
    pub fn new(group: u64) -> Self {
        Self {
            stage: Stage::default(),
            heads: HashMap::new(),
            programs: HashSet::new(),
            group,
        }
    }

    /// The first records of a store.
    pub fn stage_meta(&mut self, meta: &impl Encode) -> Result<(), StoreError> {
        let key = |key: &mut Vec<u8>| keys::single(key, Family::Meta);
        self.stage
            .put(key, |out| codec::encode(out, meta))
            .map_err(|error| corrupt(&error.to_string()))?;
        self.stage_group()
    }

    /// Numbers the group that is staged.
    pub fn next_group(&mut self) -> Result<u64, StoreError> {
        self.group = self.group.saturating_add(1);
        self.stage_group()?;
        Ok(self.group)
    }

    fn stage_group(&mut self) -> Result<(), StoreError> {
        let group = self.group;
        let key = |key: &mut Vec<u8>| keys::single(key, Family::Group);
        self.stage
            .put(key, |out| codec::encode(out, &group))
            .map_err(|error| corrupt(&error.to_string()))?;
        Ok(())
    }

    fn remember(&mut self, run: &Name, head: Head) {
        if self.heads.len() >= MAX_HEADS && !self.heads.contains_key(run) {
            self.heads
                .retain(|_, head| head.placement == Some(Placement::Runnable));
        }
        self.heads.insert(run.clone(), head);
    }
}

impl<K: Kv> Rows<K> {
    /// Stages one commit, or nothing of it when it is refused.
    pub(super) fn stage(
        &self,
        writer: &mut Writer,
        commit: &Commit,
    ) -> Result<Committed, StoreError> {
        let run = &commit.header.id;
        let head = self.head(writer, run)?;
        if commit.header.revision != head.revision.saturating_add(1) {
            return Err(StoreError::Conflict {
                run: run.clone(),
                expected: commit.header.revision.saturating_sub(1),
                found: head.revision,
            });
        }
        let mark = writer.stage.mark();
        let staged = check_id(run)
            .and_then(|()| self.stage_rows(writer, commit, head))
            .inspect_err(|_| writer.stage.rollback(mark))?;
        let (committed, head) = staged;
        if commit.program.is_some() {
            writer.programs.insert(commit.header.program);
        }
        writer.remember(run, head);
        Ok(committed)
    }

    fn stage_rows(
        &self,
        writer: &mut Writer,
        commit: &Commit,
        before: Head,
    ) -> Result<(Committed, Head), StoreError> {
        let header = &commit.header;
        let run = &header.id;
        let unfit = |error: Unfit| StoreError::Unfit {
            run: run.clone(),
            reason: error.to_string(),
        };
        let mut head = Head {
            revision: header.revision,
            placement: Some(header.placement),
            ..before
        };
        self.stage_program(writer, commit)?;
        let stage = &mut writer.stage;

        let mut committed = Committed {
            receipt: Receipt {
                revision: header.revision,
            },
            change_bytes: 0,
            snapshot_bytes: None,
        };
        let revision = header.revision;
        if let Some(state) = &commit.snapshot {
            head.snapshot = revision;
            self.stage_compaction(stage, run)?;
            let bytes = stage
                .put(
                    |key| keys::numbered(key, Family::Snapshot, run, revision),
                    |out| codec::encode(out, state),
                )
                .map_err(unfit)?;
            committed.snapshot_bytes = Some(bytes);
        } else {
            committed.change_bytes = stage
                .put(
                    |key| keys::numbered(key, Family::Changes, run, revision),
                    |out| codec::encode_all(out, &commit.changes),
                )
                .map_err(unfit)?;
        }

        for row in &commit.loops {
            let path = LoopPath::new(&row.path);
            let key = |key: &mut Vec<u8>| keys::loop_row(key, run, &path);
            let put = |row: &LoopState, stage: &mut Stage| {
                stage.put(key, |out| codec::encode(out, row)).map_err(unfit)
            };
            if row.last.is_empty() && row.kept.is_null() {
                put(row, stage)?;
            } else {
                put(&row.row(), stage)?;
            }
        }
        for row in &commit.iterations {
            let path = LoopPath::new(&row.path);
            stage
                .put(
                    |key| keys::iteration(key, run, &path, row.iteration),
                    |out| codec::encode(out, row),
                )
                .map_err(unfit)?;
        }
        if !commit.history.is_empty() {
            head.events = head.events.saturating_add(commit.history.len() as u64);
            stage
                .put(
                    |key| keys::numbered(key, Family::Events, run, head.events),
                    |out| codec::encode_all(out, &commit.history),
                )
                .map_err(unfit)?;
        }

        if before.placement != head.placement {
            for placement in before
                .placement
                .iter()
                .filter(|p| **p != Placement::Resting)
            {
                stage.remove(|key| index(*placement, run, key));
            }
            if header.placement != Placement::Resting {
                stage.put_key(|key| index(header.placement, run, key));
            }
        }
        let key = |key: &mut Vec<u8>| keys::of_run(key, Family::Header, run);
        if header.snapshot == head.snapshot {
            stage.put(key, |out| codec::encode(out, header))
        } else {
            let mut header = header.clone();
            header.snapshot = head.snapshot;
            stage.put(key, |out| codec::encode(out, &header))
        }
        .map_err(unfit)?;

        // Spread over the runs, so that a group of runs in step does not tidy all at once.
        let turn = revision.wrapping_add(u64::from(crc32fast::hash(run.as_bytes())));
        if turn.is_multiple_of(self.retention.tidy_every.max(1)) {
            self.stage_tidying(stage, run, head.events)?;
        }
        Ok((committed, head))
    }

    fn head(&self, writer: &Writer, run: &Name) -> Result<Head, StoreError> {
        if let Some(head) = writer.heads.get(run) {
            return Ok(*head);
        }
        let Some(header) = self.header_of(run)? else {
            return Ok(Head {
                revision: 0,
                snapshot: 0,
                placement: None,
                events: 0,
            });
        };
        let mut prefix = Vec::new();
        keys::of_run(&mut prefix, Family::Events, run);
        let last = self.rows(prefixed(&prefix)).next_back().transpose()?;
        let events = last.and_then(|(key, _)| keys::parse(key.as_ref())?.number);
        Ok(Head {
            revision: header.revision,
            snapshot: header.snapshot,
            placement: Some(header.placement),
            events: events.unwrap_or(0),
        })
    }

    fn stage_program(&self, writer: &mut Writer, commit: &Commit) -> Result<(), StoreError> {
        let Some(source) = &commit.program else {
            return Ok(());
        };
        let hash = commit.header.program;
        if writer.programs.contains(&hash) {
            return Ok(());
        }
        let mut key = Vec::new();
        keys::program(&mut key, hash);
        if self.kv.get(&key)?.is_none() {
            writer
                .stage
                .put(
                    |out| out.extend_from_slice(&key),
                    |out| codec::encode(out, source),
                )
                .map_err(|error| StoreError::Unfit {
                    run: commit.header.id.clone(),
                    reason: error.to_string(),
                })?;
        }
        Ok(())
    }

    /// Earlier changes and snapshots are not needed any more.
    fn stage_compaction(&self, stage: &mut Stage, run: &str) -> Result<(), StoreError> {
        for family in [Family::Changes, Family::Snapshot] {
            self.stage_all(stage, family, run)?;
        }
        Ok(())
    }

    /// The removal of all rows of a run in a family.
    fn stage_all(&self, stage: &mut Stage, family: Family, run: &str) -> Result<(), StoreError> {
        let mut prefix = Vec::new();
        keys::of_run(&mut prefix, family, run);
        for row in self.rows(prefixed(&prefix)) {
            let (key, _) = row?;
            stage.remove(|out| out.extend_from_slice(key.as_ref()));
        }
        Ok(())
    }

    /// The removal of rows beyond what is kept.
    fn stage_tidying(&self, stage: &mut Stage, run: &str, events: u64) -> Result<(), StoreError> {
        self.tidy_events(stage, run, events)?;
        let keep = self.retention;
        let everything = |_: &K::Bytes, _: &K::Bytes| Ok(true);
        self.tidy_loops(stage, Family::Iteration, run, keep.iterations, everything)?;
        let ended = |key: &K::Bytes, first: &K::Bytes| {
            let row: LoopState = self.value(key.as_ref(), first.as_ref(), codec::decode)?;
            Ok(row.ended.is_some())
        };
        self.tidy_loops(stage, Family::Loop, run, keep.ended_loops, ended)
    }

    fn tidy_events(&self, stage: &mut Stage, run: &str, events: u64) -> Result<(), StoreError> {
        let mut all = Vec::new();
        keys::of_run(&mut all, Family::Events, run);
        let keep_from = events.saturating_sub(self.retention.events);
        let mut to = Vec::new();
        // A row is named by its last event.
        keys::numbered(&mut to, Family::Events, run, keep_from.saturating_add(1));
        for row in self.rows((Bound::Included(all), Bound::Excluded(to))) {
            let (key, _) = row?;
            stage.remove(|out| out.extend_from_slice(key.as_ref()));
        }
        Ok(())
    }

    /// Loop by loop, removes the first of the rows that may go, until `keep` of those are left.
    fn tidy_loops(
        &self,
        stage: &mut Stage,
        family: Family,
        run: &str,
        keep: usize,
        may_go: impl Fn(&K::Bytes, &K::Bytes) -> Result<bool, StoreError>,
    ) -> Result<(), StoreError> {
        let mut prefix = Vec::new();
        keys::of_run(&mut prefix, family, run);
        let mut names: Option<String> = None;
        // Records of the current loop that may go, each with the keys of its pieces.
        let mut candidates: Vec<Vec<K::Bytes>> = Vec::new();
        for row in self.rows(prefixed(&prefix)) {
            let (key, first) = row?;
            let Some(parsed) = keys::parse(key.as_ref()) else {
                continue;
            };
            if parsed.piece > 0 {
                if let Some(pieces) = candidates.last_mut() {
                    let ours = pieces.first().is_some_and(|first| {
                        key.as_ref().get(..parsed.record) == Some(first.as_ref())
                    });
                    if ours {
                        pieces.push(key);
                    }
                }
                continue;
            }
            if parsed.names != names {
                remove_first(stage, &mut candidates, keep);
                names = parsed.names;
            }
            if may_go(&key, &first)? {
                candidates.push(vec![key]);
            }
        }
        remove_first(stage, &mut candidates, keep);
        Ok(())
    }

    /// The removal of everything a run has.
    pub(super) fn stage_removal(&self, writer: &mut Writer, run: &str) -> Result<(), StoreError> {
        let placement = match self.header_of(run) {
            Ok(Some(header)) => Some(header.placement),
            Ok(None) => return Err(StoreError::UnknownRun(Name::from(run))),
            Err(_) => None,
        };
        for family in Family::OF_RUN {
            self.stage_all(&mut writer.stage, family, run)?;
        }
        match placement {
            Some(Placement::Resting) => {}
            Some(placement) => writer.stage.remove(|key| index(placement, run, key)),
            None => self.stage_index_removal(&mut writer.stage, run)?,
        }
        writer.heads.remove(run);
        Ok(())
    }

    /// Where a run with an unreadable head stands in the indexes is not known: looks for it.
    fn stage_index_removal(&self, stage: &mut Stage, run: &str) -> Result<(), StoreError> {
        for family in [Family::Due, Family::Runnable] {
            for row in self.rows(prefixed(&[family.byte()])) {
                let (key, _) = row?;
                let parsed = keys::parse(key.as_ref());
                if parsed.is_some_and(|parsed| parsed.run.as_deref() == Some(run)) {
                    stage.remove(|out| out.extend_from_slice(key.as_ref()));
                }
            }
        }
        Ok(())
    }

    /// The removal of the programs that no run pins.
    pub(super) fn stage_sweep(
        &self,
        writer: &mut Writer,
        pinned: &HashSet<ProgramHash>,
    ) -> Result<u64, StoreError> {
        let mut swept = 0;
        for row in self.rows(prefixed(&[Family::Program.byte()])) {
            let (key, _) = row?;
            let hash = key
                .as_ref()
                .get(1..33)
                .and_then(|hash| hash.try_into().ok());
            let Some(hash) = hash.map(ProgramHash) else {
                continue;
            };
            if !pinned.contains(&hash) {
                writer.programs.remove(&hash);
                writer
                    .stage
                    .remove(|out| out.extend_from_slice(key.as_ref()));
                swept += u64::from(key.as_ref().len() == 33);
            }
        }
        Ok(swept)
    }
}

fn remove_first<B: AsRef<[u8]>>(stage: &mut Stage, records: &mut Vec<Vec<B>>, keep: usize) {
    let extra = records.len().saturating_sub(keep);
    for key in records.drain(..).take(extra).flatten() {
        stage.remove(|out| out.extend_from_slice(key.as_ref()));
    }
}

fn check_id(run: &Name) -> Result<(), StoreError> {
    let reason = match run.len() {
        0 => "its id is empty",
        1..=keys::MAX_RUN_ID => return Ok(()),
        _ => "its id is longer than 128 bytes",
    };
    Err(StoreError::Unfit {
        run: run.clone(),
        reason: reason.to_owned(),
    })
}
