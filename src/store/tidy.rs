//! What is removed: rows beyond what is kept, runs that are deleted, programs that no run pins.
//! Nothing that a run needs to go on is ever removed here while the run is kept.

use super::codec;
use super::commit::{Entry, Writer};
use super::keys::{self, Family};
use super::kv::{Kv, prefixed};
use super::rows::{Rows, decode_loop};
use super::stage::{Mark, Stage};
use super::{RunHeader, StoreError};
use crate::model::Name;
use crate::program::ProgramHash;
use std::collections::HashSet;
use std::ops::Bound;

/// A record that may go: the keys of its pieces, and the checksum of the first.
struct Candidate<B> {
    keys: Vec<B>,
    crc: u32,
}

impl<K: Kv> Rows<K> {
    /// The removal of all rows of a run in a family.
    pub(super) fn stage_all(
        &self,
        stage: &mut Stage,
        family: Family,
        run: &str,
    ) -> Result<(), StoreError> {
        let mut prefix = Vec::new();
        keys::of_run(&mut prefix, family, run);
        self.stage_under(stage, &prefix)
    }

    /// The removal of all rows whose keys begin so.
    pub(super) fn stage_under(&self, stage: &mut Stage, prefix: &[u8]) -> Result<(), StoreError> {
        for row in self.rows(prefixed(prefix)) {
            let (key, _) = row?;
            stage.remove(|out| out.extend_from_slice(key.as_ref()));
        }
        Ok(())
    }

    /// The removal of rows beyond what is kept; nothing that was put since `mark`.
    pub(super) fn stage_tidying(
        &self,
        entry: &mut Entry<'_>,
        mark: Mark,
    ) -> Result<(), StoreError> {
        self.tidy_events(entry)?;
        let keep = self.retention;
        let all = |_: &K::Bytes, _: &K::Bytes| Ok(true);
        let gone = self.tidy_loops(entry, mark, Family::Iteration, keep.iterations, all)?;
        let sum = &mut entry.head.sums.iterations;
        *sum = sum.wrapping_sub(gone);
        let ended = |key: &K::Bytes, first: &K::Bytes| {
            let row = self.value(key.as_ref(), first.as_ref(), decode_loop)?;
            Ok(row.ended.is_some())
        };
        let gone = self.tidy_loops(entry, mark, Family::Loop, keep.ended_loops, ended)?;
        let sum = &mut entry.head.sums.loops;
        *sum = sum.wrapping_sub(gone);
        entry.head.forget_seen();
        Ok(())
    }

    fn tidy_events(&self, entry: &mut Entry<'_>) -> Result<(), StoreError> {
        let run = entry.run;
        let sums = entry.head.sums;
        let gone = sums.events.saturating_sub(self.retention.events);
        let (mut all, mut to) = (Vec::new(), Vec::new());
        keys::of_run(&mut all, Family::Events, run);
        // A row is named by its last event.
        keys::numbered(&mut to, Family::Events, run, gone.saturating_add(1));
        for row in self.rows((Bound::Included(all), Bound::Excluded(to))) {
            let (key, _) = row?;
            let last = keys::parse(key.as_ref()).and_then(|parsed| parsed.number);
            entry.head.sums.trimmed = entry.head.sums.trimmed.max(last.unwrap_or(0));
            entry
                .stage
                .remove(|out| out.extend_from_slice(key.as_ref()));
        }
        Ok(())
    }

    /// Loop by loop, removes the first of the rows that may go, until `keep` of those are left.
    /// Gives the sum of what was removed.
    fn tidy_loops(
        &self,
        entry: &mut Entry<'_>,
        mark: Mark,
        family: Family,
        keep: usize,
        may_go: impl Fn(&K::Bytes, &K::Bytes) -> Result<bool, StoreError>,
    ) -> Result<u32, StoreError> {
        let mut prefix = Vec::new();
        keys::of_run(&mut prefix, family, entry.run);
        let mut gone = 0;
        let mut names: Option<String> = None;
        let mut candidates: Vec<Candidate<K::Bytes>> = Vec::new();
        let mut remove = |candidates: &mut Vec<Candidate<K::Bytes>>| {
            let extra = candidates.len().saturating_sub(keep);
            for record in candidates.drain(..).take(extra) {
                let first = record.keys.first().map(AsRef::as_ref).unwrap_or_default();
                if entry.stage.puts_since(mark, first) {
                    continue;
                }
                gone = record.crc.wrapping_add(gone);
                for key in record.keys {
                    entry
                        .stage
                        .remove(|out| out.extend_from_slice(key.as_ref()));
                }
            }
        };
        for row in self.rows(prefixed(&prefix)) {
            let (key, first) = row?;
            let Some(parsed) = keys::parse(key.as_ref()) else {
                continue;
            };
            if parsed.piece > 0 {
                let whose = key.as_ref().get(..parsed.record);
                if let Some(record) = candidates.last_mut()
                    && record.keys.first().map(AsRef::as_ref) == whose
                {
                    record.keys.push(key);
                }
                continue;
            }
            if parsed.names != names {
                remove(&mut candidates);
                names = parsed.names;
            }
            if may_go(&key, &first)? {
                let crc = codec::crc_of(first.as_ref());
                let keys = vec![key];
                candidates.push(Candidate { keys, crc });
            }
        }
        remove(&mut candidates);
        Ok(gone)
    }

    /// The removal of everything a run has.
    pub(super) fn stage_removal(&self, writer: &mut Writer, run: &str) -> Result<(), StoreError> {
        writer.heads.remove(run);
        let readable = match self.head(run) {
            Ok(head) if head.crc.is_none() => {
                return Err(StoreError::UnknownRun(Name::from(run)));
            }
            Ok(head) => Some(head),
            Err(StoreError::Corrupt { .. }) => None,
            Err(error) => return Err(error),
        };
        for family in Family::OF_RUN {
            self.stage_all(&mut writer.stage, family, run)?;
        }
        let Some(head) = readable else {
            return self.stage_unreadable_removal(writer, run);
        };
        let name = Name::from(run);
        let crc = head.crc;
        let mut entry = Entry {
            run: &name,
            stage: &mut writer.stage,
            head,
            root: writer.root,
        };
        entry.place(None);
        crc.into_iter().for_each(|crc| entry.root.drop(crc));
        writer.root = entry.root;
        Ok(())
    }

    /// Where a run with an unreadable head stands in the indexes is not known, nor what its head
    /// counted for: looks for it, and counts what is left.
    fn stage_unreadable_removal(&self, writer: &mut Writer, run: &str) -> Result<(), StoreError> {
        for family in [Family::Due, Family::Runnable] {
            for row in self.rows(prefixed(&[family.byte()])) {
                let (key, _) = row?;
                let parsed = keys::parse(key.as_ref());
                if parsed.is_some_and(|parsed| parsed.run.as_deref() == Some(run)) {
                    writer
                        .stage
                        .remove(|out| out.extend_from_slice(key.as_ref()));
                }
            }
        }
        writer.root.digest = self.digest(Some(run))?;
        Ok(())
    }

    /// The removal of the programs that no run pins.
    pub(super) fn stage_sweep(&self, writer: &mut Writer) -> Result<u64, StoreError> {
        let mut pinned = HashSet::new();
        for row in self.records(prefixed(&[Family::Header.byte()])) {
            let (key, first) = row?;
            let header: RunHeader =
                self.value(key.as_ref(), first.as_ref(), super::rows::decode_header)?;
            pinned.insert(header.program);
        }
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
