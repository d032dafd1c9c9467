//! Makes a new store from the readable rows of a damaged one. A run is recovered if its header, its last snapshot and
//! all later commits can be read. Data that is only for display may be missing; this is reported.
//! If the store may have lost its newest commits, a recovered run could repeat what it did in them. So each such run is
//! parked until a user resumes it.

use super::codec;
use super::commit::{Writer, index};
use super::header::{Root, StoredHeader};
use super::integrity::IntegrityReport;
use super::journal::CommitReport;
use super::journal_walk::Order;
use super::keys::{self, Family};
use super::kv::{Kv, KvError, prefixed};
use super::memory::Memory;
use super::rows::{Meta, Retention, Rows, corrupt, decode_header, ends_too_early, older_mark};
use super::write_batch::WriteBatch;
use super::{Placement, QUARANTINE_LABEL, ReadStore, StoreError};
use std::collections::BTreeSet;
use std::ops::{Bound, ControlFlow};
use windlass_model::model::Name;

/// If the batch has more bytes than this, it is applied.
const FULL: usize = 1 << 20;

/// The result of recovering a damaged store.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecoverySummary {
    /// The runs in the new store.
    pub retained: Vec<Name>,
    /// The runs that could not be recovered.
    pub lost: Vec<Name>,
    /// Whether the recovered runs may be in an older state than before the damage. If true, the runs that have not
    /// ended are parked.
    pub older: bool,
    /// All parts of the store that could not be read.
    pub issues: IntegrityReport,
}

/// The readable part of a run's journal.
struct ReadableRun {
    /// The revision of the first readable record, and the sequence number of the last event before it.
    first: u64,
    last_removed_event: u64,
    /// The revision of the last record of each readable row.
    rows: BTreeSet<u64>,
}

/// Writes everything that can be recovered into an empty database.
pub(super) fn rebuild<T: Kv>(
    rows: Memory,
    acknowledged: Result<u64, StoreError>,
    into: &T,
    mut report: IntegrityReport,
) -> Result<RecoverySummary, StoreError> {
    let view = Rows::fresh(rows, Retention::default(), "the damaged store");
    if let (Ok(Some(_)), Err(error @ StoreError::Foreign { .. })) =
        (view.reader.row(&[Family::Meta.byte()]), view.reader.root())
    {
        // A later version of the engine wrote the damaged store. Its rows must not be copied into a store of this
        // version's format.
        return Err(error);
    }
    let found = view
        .reader
        .read(|key| keys::single(key, Family::Root), codec::decode::<Root>);
    let found = found.ok().flatten();
    let last = found.map_or(0, |root| root.group);
    // The root's checksum shows whether a header is missing. The mark (the number of the last durable group) shows
    // whether the root is old. Without a mark, it is unknown whether the end of the log is missing.
    let is_whole = found.is_some_and(|root| view.headers_checksum() == root.checksum);
    let (mut ended, mut acknowledged) = (true, acknowledged);
    let marked = view.reader.last_marked().unwrap_or(0);
    if let Some(error) = acknowledged
        .as_ref()
        .ok()
        .and_then(|group| older_mark(*group, marked))
    {
        acknowledged = Err(error);
    }
    if let Err(error) = &acknowledged {
        ended = false;
        report.note(None, "the mark", error);
    }
    let acknowledged = acknowledged.unwrap_or(0);
    if let Some(error) = ends_too_early(acknowledged, last) {
        ended = false;
        report.note(None, "the end of the log", &error);
    }
    let mut out = RecoverySummary {
        older: !(is_whole && ended),
        issues: report,
        ..RecoverySummary::default()
    };
    let mut writer = Writer::new(Root {
        group: last.max(acknowledged),
        checksum: 0,
    });
    for run in view.all_runs() {
        if view.rebuild_run(&run, &mut writer, into, &mut out)? {
            out.retained.push(run);
        } else {
            out.lost.push(run);
        }
    }
    view.rebuild_shared(&mut writer, into, &mut out)?;
    writer.put_meta(&Meta::current(), &T::padding_rows())?;
    flush(&mut writer, into, 0)?;
    Ok(out)
}

fn flush(writer: &mut Writer, into: &impl Kv, above: usize) -> Result<(), KvError> {
    if writer.batch.len() <= above {
        return Ok(());
    }
    into.apply(&writer.batch)?;
    into.flush()?;
    into.sync(writer.root.group)?;
    writer.batch.clear();
    Ok(())
}

impl Rows<Memory> {
    fn all_runs(&self) -> BTreeSet<Name> {
        let records = self.reader.records(prefixed(&[])).flatten();
        let runs = records.filter_map(|(key, _)| keys::parse(&key)?.run);
        runs.map(Name::from).collect()
    }

    /// Returns the checksum that the root must have if no header and no workflow is missing or old. The checksums of
    /// index rows are computed from the headers.
    fn headers_checksum(&self) -> u64 {
        let mut root = Root::default();
        for (key, first) in self.reader.records(prefixed(&[])).flatten() {
            let Some(parsed) = keys::parse(&key) else {
                continue;
            };
            match parsed.family {
                Family::Workflow | Family::State => root.add_row(codec::crc_of(&first)),
                Family::Header => {
                    root.add_row(codec::crc_of(&first));
                    let head = self.reader.value(&key, &first, decode_header);
                    let mut name = Vec::new();
                    if let (Ok(head), Some(run)) = (head, &parsed.run)
                        && index(head.placement, run, &mut name)
                    {
                        root.add_row(codec::crc_of_key(&name));
                    }
                }
                _ => {}
            }
        }
        root.checksum
    }

    /// If a run's header is older than the run's other rows, removes everything that the run stored after this header.
    /// When the run is resumed, it continues from the header's commit.
    fn cut_after_head(&self, run: &Name) {
        let Ok(Some((head, _))) = self.reader.stored_header(run) else {
            return;
        };
        let mut batch = WriteBatch::default();
        for family in [Family::Snapshot, Family::Changes] {
            let mut prefix = Vec::new();
            keys::of_run(&mut prefix, family, run);
            for (key, first) in self.reader.rows(prefixed(&prefix)).flatten() {
                let parsed = keys::parse(&key);
                let is_first = parsed.as_ref().is_some_and(|parsed| parsed.piece == 0);
                let number = parsed.and_then(|parsed| parsed.number);
                if number.is_some_and(|number| number <= head.header.revision) {
                    continue;
                }
                batch.remove(|out| out.extend_from_slice(&key));
                // The row may also have packed records of commits that the header includes. These are put back.
                let (Family::Changes, Some(last), true) = (family, number, is_first) else {
                    continue;
                };
                let records = self.reader.unpack(&key, &first, last).into_iter();
                for (number, record) in records.filter(|one| one.0 <= head.header.revision) {
                    let key = |key: &mut Vec<u8>| keys::numbered_row(key, family, run, number);
                    let put = |out: &mut Vec<u8>| {
                        out.extend_from_slice(&record);
                        Ok(())
                    };
                    // This cannot fail: the record was part of a stored row before, so it is not too long.
                    let _ = batch.put(key, put);
                }
            }
        }
        // Writing to a map in memory does not fail.
        let _ = self.database().apply(&batch);
        let _ = self.database().sync(0);
    }

    /// Copies a run. Returns false if the run cannot continue from what can be read.
    fn rebuild_run(
        &self,
        run: &Name,
        writer: &mut Writer,
        into: &impl Kv,
        out: &mut RecoverySummary,
    ) -> Result<bool, StoreError> {
        if out.older {
            self.cut_after_head(run);
        }
        let read = self.load(run).and_then(|_| self.reader.stored_header(run));
        let mut head: StoredHeader = match read {
            Ok(Some((head, _))) => head,
            Ok(None) => return Ok(false),
            Err(error) => {
                out.issues.note(Some(run), "its head or journal", &error);
                return Ok(false);
            }
        };
        let program = head.header.program;
        let lost = self.program(program).err();
        if let Some(error) = &lost {
            out.issues.note(Some(run), "its program", error);
        }
        let ended = self.reader.check_archive(run, &head.bounds);
        self.check_rows(run, ended, &mut out.issues);
        let Some(journal) = self.readable_from(&head) else {
            return Ok(false);
        };
        let bounds = &mut head.bounds;
        if journal.first > bounds.first {
            (bounds.first, bounds.last_removed_event) = (journal.first, journal.last_removed_event);
        }
        let retained = self.reader.retained_rows(run, bounds);
        if retained.is_err() {
            (bounds.retained_crc, bounds.retained_bytes) = (0, 0);
        }
        let mut retained = retained.unwrap_or_default();
        let keep_rows = bounds.retained_bytes > 0;
        let forgets = self.reader.forget_unreadable(run, &mut retained.archive);
        let snapshot = head.header.snapshot;
        self.copy_whole(run, Family::Snapshot, writer, |number| {
            number == Some(snapshot)
        });
        if forgets {
            let key = |key: &mut Vec<u8>| keys::of_run(key, Family::Retained, run);
            let put = writer.batch.put(key, |out| retained.encode(out));
            let put = put.map_err(|error| corrupt(&error.to_string()))?;
            (head.bounds.retained_crc, head.bounds.retained_bytes) = (put.crc, put.bytes);
        } else {
            self.copy_whole(run, Family::Retained, writer, |_| keep_rows);
        }
        self.copy_whole(run, Family::Iterations, writer, |number| {
            retained.archive.has(number)
        });
        self.copy_whole(run, Family::Changes, writer, |number| {
            number.is_some_and(|number| journal.rows.contains(&number))
        });
        flush(writer, into, FULL)?;
        let ended = head.header.status.is_final();
        let reason = if lost.is_some() {
            // A run that has ended gets the label as well, because the label explains why its program is missing.
            Some(format!(
                "the store was repaired, and the workflow of this run, {program}, was lost: start a run of \
                 its file, and resume this one"
            ))
        } else {
            let older = out.older && !ended;
            older
                .then(|| "the store was repaired, and this run may be older than it was".to_owned())
        };
        if let Some(reason) = reason {
            head.header.placement = Placement::Idle;
            let labels = &mut head.header.labels;
            labels.insert(QUARANTINE_LABEL.to_owned(), reason);
        }
        let mut name = Vec::new();
        if index(head.header.placement, run, &mut name) {
            writer.root.add_row(codec::crc_of_key(&name));
            writer.batch.put_key(|key| key.extend_from_slice(&name));
        }
        let put = writer.batch.put(
            |key| keys::of_run(key, Family::Header, run),
            |out| codec::encode(out, &head),
        );
        let put = put.map_err(|error| corrupt(&error.to_string()))?;
        writer.root.add_row(put.crc);
        flush(writer, into, FULL)?;
        Ok(true)
    }

    /// Determines which rows of a run's journal can be read, beginning at the newest. Returns `None` if the run cannot
    /// be loaded from these rows.
    fn readable_from(&self, head: &StoredHeader) -> Option<ReadableRun> {
        let last = head.header.revision;
        let mut found = ReadableRun {
            first: last.saturating_add(1),
            last_removed_event: head.bounds.events,
            rows: BTreeSet::new(),
        };
        let all = (head.bounds.first, last);
        let run = &head.header.id;
        // The walk ends at the first unreadable row. The caller has already reported this row.
        let _ = self.reader.walk_rows(
            run,
            all,
            Order::NewestFirst,
            CommitReport::decode,
            |end, reports| {
                found.rows.insert(end);
                if let Some((first, report)) = reports.first() {
                    (found.first, found.last_removed_event) = (*first, report.events_before());
                }
                ControlFlow::Continue(())
            },
        );
        (found.first <= head.header.snapshot.saturating_add(1)).then_some(found)
    }

    /// Copies the records of a run in a family. Copies only records for whose number `keep` returns true.
    fn copy_whole(
        &self,
        run: &str,
        family: Family,
        writer: &mut Writer,
        keep: impl Fn(Option<u64>) -> bool,
    ) {
        let mut prefix = Vec::new();
        keys::of_run(&mut prefix, family, run);
        for (key, first) in self.reader.records(prefixed(&prefix)).flatten() {
            if keep(keys::parse(&key).and_then(|parsed| parsed.number)) {
                self.copy_record(&key, &first, writer);
            }
        }
    }

    /// Copies a record: the row of its first piece, and the rows of its further pieces.
    fn copy_record(&self, key: &[u8], first: &[u8], writer: &mut Writer) {
        writer.batch.copy(key, first);
        let further = codec::check(key, first)
            .ok()
            .and_then(|piece| piece.further);
        for number in 1..=u32::from(further.map_or(0, |(further, _)| further)) {
            let mut name = key.to_vec();
            keys::piece(&mut name, number);
            if let Ok(Some(piece)) = self.reader.row(&name) {
                writer.batch.copy(&name, &piece);
            }
        }
    }

    /// Copies the readable programs, named workflows, and stored values of workflows.
    fn rebuild_shared(
        &self,
        writer: &mut Writer,
        into: &impl Kv,
        out: &mut RecoverySummary,
    ) -> Result<(), StoreError> {
        let all = (Bound::Unbounded, Bound::Unbounded);
        for (key, first) in self.reader.records(all).flatten() {
            let family = key.first().and_then(|byte| Family::of(*byte));
            let whole = match family {
                Some(family) => self.check_named(family, &key, &first),
                None => Ok(()),
            };
            match (family, whole) {
                (Some(family), Err(error)) if is_shared(family) => {
                    out.issues.note(None, "a program or workflow", &error);
                }
                (Some(family), Ok(())) if is_shared(family) => {
                    self.copy_record(&key, &first, writer);
                    if matches!(family, Family::Workflow | Family::State) {
                        writer.root.add_row(codec::crc_of(&first));
                    }
                    flush(writer, into, FULL)?;
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// Returns true if rows of this family do not belong to a run and are copied unchanged.
fn is_shared(family: Family) -> bool {
    matches!(
        family,
        Family::Program | Family::Workflow | Family::FormerWorkflow | Family::State
    )
}
