//! Removes data beyond the retention, deleted runs, and programs that no run is pinned to. Data that a run needs to
//! continue is never removed while the run exists.

use super::archive::ArchiveRows;
use super::commit::{Entry, Writer};
use super::header::Bounds;
use super::journal::{CommitReport, LoopRows, NewestRows, RetainedRows};
use super::journal_walk::Order;
use super::keys::{self, Family};
use super::kv::{Kv, Range, prefixed};
use super::rows::RowReader;
use super::write_batch::WriteBatch;
use super::{RunHeader, StoreError};
use std::collections::HashSet;
use std::ops::{Bound, ControlFlow};
use windlass_machine::IterationRow;
use windlass_machine::program::ProgramHash;
use windlass_model::model::Name;

impl<K: Kv> RowReader<K> {
    /// Puts the removal of all rows of a run in a family into the batch.
    pub(super) fn remove_family(
        &self,
        batch: &mut WriteBatch,
        family: Family,
        run: &str,
    ) -> Result<(), StoreError> {
        let mut prefix = Vec::new();
        keys::of_run(&mut prefix, family, run);
        self.remove_under(batch, &prefix)
    }

    /// Puts the removal of all rows whose keys begin with `prefix` into the batch.
    pub(super) fn remove_under(
        &self,
        batch: &mut WriteBatch,
        prefix: &[u8],
    ) -> Result<(), StoreError> {
        self.remove_range(batch, prefixed(prefix))
    }

    /// Puts the removal of all rows in a range into the batch.
    pub(super) fn remove_range(
        &self,
        batch: &mut WriteBatch,
        range: Range,
    ) -> Result<(), StoreError> {
        for row in self.rows(range) {
            let (key, _) = row?;
            batch.remove(|out| out.extend_from_slice(key.as_ref()));
        }
        Ok(())
    }

    /// Removes the records of a run's oldest commits: those that are before the run's last snapshot and have only
    /// events beyond the retention. The rows of loops and iterations that must remain are added to the retained rows.
    /// This rewrites all retained rows. So it does nothing until the removable records have at least as many bytes as
    /// the retained rows.
    pub(super) fn compact_journal(&self, entry: &mut Entry<'_>) -> Result<(), StoreError> {
        let (run, bounds, keep) = (entry.run, entry.header.bounds, self.retention);
        // The record of the current commit is not in the store yet, so it cannot be read.
        let last = entry.header.snapshot.min(entry.header.revision);
        let may_go = bounds.events.saturating_sub(keep.events);
        let (mut bytes, mut reports) = (0, Vec::new());
        let sized = |bytes: &[u8]| Ok((bytes.len() as u64, CommitReport::decode(bytes)?));
        let all = (bounds.first, last);
        self.walk_rows(run, all, Order::OldestFirst, sized, |end, row| {
            // Records that are packed in one row of the store are removed together.
            let stays = row
                .last()
                .is_none_or(|(_, (_, report))| report.last_event > may_go);
            if stays || end > last {
                return ControlFlow::Break(());
            }
            for (_, (size, report)) in row {
                bytes += size;
                reports.push(report);
            }
            ControlFlow::Continue(())
        })?;
        let Some(end) = reports.last() else {
            return Ok(());
        };
        if bytes < bounds.retained_bytes {
            return Ok(());
        }
        let last_removed_event = end.last_event;
        let first = bounds.first.saturating_add(reports.len() as u64);
        let mut before = self.retained_rows(run, &bounds)?;
        let archive =
            self.archive_iterations(entry, std::mem::take(&mut before.archive), &reports)?;
        let rows = self.merged(entry, before, archive, reports);
        let (mut from, mut to) = (Vec::new(), Vec::new());
        keys::numbered_row(&mut from, Family::Changes, run, bounds.first);
        keys::numbered_row(&mut to, Family::Changes, run, first);
        self.remove_range(entry.batch, (Bound::Included(from), Bound::Excluded(to)))?;
        self.remove_family(entry.batch, Family::Retained, run)?;
        let (retained_crc, retained_bytes) = if rows.is_empty() {
            (0, 0)
        } else {
            let put = entry.put(
                |key| keys::of_run(key, Family::Retained, run),
                |out| rows.encode(out),
            )?;
            (put.crc, put.bytes)
        };
        entry.header.bounds = Bounds {
            events: bounds.events,
            last_removed_event,
            first,
            retained_crc,
            retained_bytes,
        };
        Ok(())
    }

    /// Merges the rows of loops and iterations in the removed records into the rows that were retained before.
    fn merged(
        &self,
        entry: &Entry<'_>,
        before: RetainedRows,
        archive: ArchiveRows,
        reports: Vec<CommitReport>,
    ) -> RetainedRows {
        let mut loops = LoopRows::default();
        let mut iterations = before.iterations;
        loops.put(before.loops);
        for report in reports {
            loops.put(report.loops);
            iterations.extend(report.iterations);
        }
        let keep = self.retention;
        let mut newest = NewestRows::new(keep.iterations);
        // The loop's newest iteration among those that have a row in a later commit. If it is far enough ahead, the
        // retained rows need no rows of older iterations.
        let later = |row: &IterationRow| entry.header.newest(&row.path).unwrap_or(0);
        let enough =
            |row: &IterationRow| later(row) >= row.iteration.saturating_add(keep.iterations as u64);
        let mut iterations: Vec<IterationRow> = iterations
            .into_iter()
            .rev()
            .filter(|row| !enough(row) && newest.select(row))
            .collect();
        iterations.reverse();
        RetainedRows {
            loops: loops.retained(keep.ended_loops),
            iterations,
            archive,
        }
    }

    /// Puts the removal of all rows of a run into the batch.
    pub(super) fn remove_run(&self, writer: &mut Writer, run: &str) -> Result<(), StoreError> {
        writer.forget(run);
        let readable = match self.known_header(run) {
            Ok(header) if header.crc.is_none() => {
                return Err(StoreError::UnknownRun(Name::from(run)));
            }
            Ok(header) => Some(header),
            Err(StoreError::Corrupt { .. }) => None,
            Err(error) => return Err(error),
        };
        for family in Family::OF_RUN {
            self.remove_family(&mut writer.batch, family, run)?;
        }
        let Some(header) = readable else {
            return self.remove_unreadable_run(writer, run);
        };
        let name = Name::from(run);
        let crc = header.crc;
        let mut entry = Entry {
            run: &name,
            batch: &mut writer.batch,
            header: Box::new(header),
            root: writer.root,
        };
        entry.place(None);
        crc.into_iter().for_each(|crc| entry.root.subtract_row(crc));
        writer.root = entry.root;
        Ok(())
    }

    /// Removes a run whose header cannot be read. Without the header, two things are unknown: the run's key in an
    /// index, and the part of the root's checksum that belongs to the run. So all index rows are searched, and the
    /// checksum is computed again from the remaining rows.
    fn remove_unreadable_run(&self, writer: &mut Writer, run: &str) -> Result<(), StoreError> {
        for family in [Family::Due, Family::Runnable] {
            for row in self.rows(prefixed(&[family.byte()])) {
                let (key, _) = row?;
                let parsed = keys::parse(key.as_ref());
                if parsed.is_some_and(|parsed| parsed.run.as_deref() == Some(run)) {
                    writer
                        .batch
                        .remove(|out| out.extend_from_slice(key.as_ref()));
                }
            }
        }
        writer.root.checksum = self.checksum(Some(run))?;
        Ok(())
    }

    /// Puts the removal of programs that no run is pinned to into the batch. Returns the number of removed programs.
    pub(super) fn remove_unused_programs(&self, writer: &mut Writer) -> Result<u64, StoreError> {
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
                    .batch
                    .remove(|out| out.extend_from_slice(key.as_ref()));
                swept += u64::from(key.as_ref().len() == 33);
            }
        }
        Ok(swept)
    }
}
