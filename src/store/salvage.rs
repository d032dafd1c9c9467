//! Takes what can be read out of a damaged store and makes a new one of it. The damaged one stays
//! beside it, as it was found. A run is kept when its head and its whole journal can be read;
//! rows that are only for looking at may be missing from it, and that is told. A run that may be
//! older than it was stands still until someone asks for it: what it did since could be repeated.

use super::check::Checkup;
use super::codec;
use super::commit::{Writer, index};
use super::head::{Root, StoredHead};
use super::journal::{Line, Order};
use super::keys::{self, Family};
use super::kv::{Kv, KvError, prefixed};
use super::memory::Memory;
use super::rows::{Meta, Retention, Rows, corrupt};
use super::stage::Stage;
use super::{PARKED_LABEL, Placement, Store, StoreError};
use crate::model::Name;
use std::collections::BTreeSet;
use std::ops::{Bound, ControlFlow};

/// A stage with more than this is applied.
const FULL: usize = 1 << 20;

/// What became of a damaged store.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Salvaged {
    /// The runs that are in the new store.
    pub kept: Vec<Name>,
    /// The runs that are not.
    pub lost: Vec<Name>,
    /// Whether the runs that are kept may be older than they were, so that they stand still.
    pub older: bool,
    /// All that could not be read.
    pub wrong: Checkup,
}

/// Every row that can be read, checked.
pub(super) fn read_all(from: &impl Kv, told: &mut Checkup) -> Memory {
    let found = Memory::default();
    let mut runs = BTreeSet::new();
    // A page that cannot be read ends a scan: what lies behind is looked for by its beginning.
    for family in Family::ALL {
        scan(from, &[family.byte()], &found, &mut runs, told);
    }
    if !told.wrong.is_empty() {
        for run in runs.clone() {
            for family in Family::OF_RUN {
                let mut prefix = Vec::new();
                keys::of_run(&mut prefix, family, &run);
                scan(from, &prefix, &found, &mut runs, &mut Checkup::default());
            }
        }
    }
    found
}

fn scan(
    from: &impl Kv,
    prefix: &[u8],
    to: &Memory,
    runs: &mut BTreeSet<String>,
    told: &mut Checkup,
) {
    let mut stage = Stage::default();
    for row in from.range(prefixed(prefix)) {
        let (key, value) = match row {
            Ok(row) => row,
            Err(error) => {
                let error = corrupt(&error.to_string());
                told.note(None, "a page of the database", &error);
                break;
            }
        };
        let (key, value) = (key.as_ref(), value.as_ref());
        let Some(parsed) = keys::parse(key) else {
            continue;
        };
        runs.extend(parsed.run.clone());
        // Indexes and fences are made anew.
        if parsed.family.has_no_value() {
            continue;
        }
        match codec::check(key, value) {
            Ok(_) => stage.copy(key, value),
            Err(error) => {
                let run = parsed.run.as_deref().map(Name::from);
                let error = corrupt(&format!("{parsed}: {error}"));
                told.note(run.as_ref(), "a row", &error);
            }
        }
    }
    // A map in memory takes everything.
    let _ = to.apply(&stage);
}

/// Writes what is whole into an empty database.
pub(super) fn rebuild(
    rows: Memory,
    acknowledged: u64,
    into: &impl Kv,
    mut told: Checkup,
) -> Result<Salvaged, StoreError> {
    let view = Rows::fresh(rows, Retention::default(), "the damaged store");
    let found = view.read(|key| keys::single(key, Family::Root), codec::decode::<Root>);
    let found = found.ok().flatten();
    let last = found.map_or(0, |root| root.group);
    let complete = told.wrong.is_empty() && last >= acknowledged && found.is_some();
    if last < acknowledged {
        let error = corrupt(&format!(
            "group {acknowledged} was acknowledged, and the last one found is {last}"
        ));
        told.note(None, "the end of the log", &error);
    }
    let mut out = Salvaged {
        older: !complete,
        wrong: told,
        ..Salvaged::default()
    };
    let mut writer = Writer::new(Root {
        group: last.max(acknowledged),
        digest: 0,
    });
    for run in view.all_runs() {
        if view.rebuild_run(&run, &mut writer, into, &mut out)? {
            out.kept.push(run);
        } else {
            out.lost.push(run);
        }
    }
    view.rebuild_shared(&mut writer, into, &mut out)?;
    writer.stage_meta(&Meta::current())?;
    flush(&mut writer, into, 0)?;
    Ok(out)
}

fn flush(writer: &mut Writer, into: &impl Kv, above: usize) -> Result<(), KvError> {
    if writer.stage.len() <= above {
        return Ok(());
    }
    into.apply(&writer.stage)?;
    into.flush()?;
    into.sync(writer.root.group)?;
    writer.stage.clear();
    Ok(())
}

impl Rows<Memory> {
    fn all_runs(&self) -> BTreeSet<Name> {
        let rows = self.rows(prefixed(&[])).flatten();
        let runs = rows.filter_map(|(key, _)| keys::parse(&key)?.run);
        runs.map(Name::from).collect()
    }

    /// Copies a run; false when it cannot go on from what is there.
    fn rebuild_run(
        &self,
        run: &Name,
        writer: &mut Writer,
        into: &impl Kv,
        out: &mut Salvaged,
    ) -> Result<bool, StoreError> {
        let read = self.load(run).and_then(|_| self.stored_head(run));
        let mut head: StoredHead = match read {
            Ok(Some((head, _))) => head,
            Ok(None) => return Ok(false),
            Err(error) => {
                out.wrong.note(Some(run), "its head or journal", &error);
                return Ok(false);
            }
        };
        if let Err(error) = self.program(head.header.program) {
            out.wrong.note(Some(run), "its program", &error);
        }
        for (what, read) in [
            ("its loops", self.loops(run).map(drop)),
            (
                "its iterations",
                self.iterations(run, None, usize::MAX).map(drop),
            ),
            ("its events", self.history(run, 0, usize::MAX).map(drop)),
        ] {
            if let Err(error) = read {
                out.wrong.note(Some(run), what, &error);
            }
        }
        let Some((first, trimmed)) = self.readable_from(&head) else {
            return Ok(false);
        };
        let sums = &mut head.sums;
        if first > sums.first {
            (sums.first, sums.trimmed) = (first, trimmed);
        }
        if self.kept(run, sums).is_err() {
            (sums.kept, sums.kept_bytes) = (0, 0);
        }
        let keep_rows = sums.kept_bytes > 0;
        let snapshot = head.header.snapshot;
        self.copy_whole(run, Family::Snapshot, writer, |number| {
            number == Some(snapshot)
        });
        self.copy_whole(run, Family::Kept, writer, |_| keep_rows);
        self.copy_whole(run, Family::Changes, writer, |number| number >= Some(first));
        flush(writer, into, FULL)?;
        let ended = head.header.status.is_final();
        if out.older && !ended {
            head.header.placement = Placement::Resting;
            let reason =
                String::from("the store was repaired, and this run may be older than it was");
            head.header.labels.insert(PARKED_LABEL.to_owned(), reason);
        }
        let mut name = Vec::new();
        if index(head.header.placement, run, &mut name) {
            writer.root.add(codec::crc_of_key(&name));
            writer.stage.put_key(|key| key.extend_from_slice(&name));
        }
        let put = writer.stage.put(
            |key| keys::of_run(key, Family::Header, run),
            |out| codec::encode(out, &head),
        );
        let put = put.map_err(|error| corrupt(&error.to_string()))?;
        writer.root.add(put.crc);
        flush(writer, into, FULL)?;
        Ok(true)
    }

    /// From which revision on the records of a run's commits can be read, and the last event before
    /// it; none when the run cannot be loaded from those.
    fn readable_from(&self, head: &StoredHead) -> Option<(u64, u64)> {
        let last = head.header.revision;
        let (mut first, mut trimmed) = (last.saturating_add(1), head.sums.events);
        let all = (head.sums.first, last);
        let run = &head.header.id;
        // What cannot be read ends it, and was told of.
        let _ = self.walk(
            run,
            all,
            Order::NewestFirst,
            Line::decode,
            |number, line| {
                (first, trimmed) = (number, line.events_before());
                ControlFlow::Continue(())
            },
        );
        (first <= head.header.snapshot.saturating_add(1)).then_some((first, trimmed))
    }

    /// Copies the records of a run in a family whose number is to be kept.
    fn copy_whole(
        &self,
        run: &str,
        family: Family,
        writer: &mut Writer,
        keep: impl Fn(Option<u64>) -> bool,
    ) {
        let mut prefix = Vec::new();
        keys::of_run(&mut prefix, family, run);
        for (key, first) in self.records(prefixed(&prefix)).flatten() {
            if keep(keys::parse(&key).and_then(|parsed| parsed.number)) {
                self.copy_record(&key, &first, writer);
            }
        }
    }

    /// Copies a record with its further pieces.
    fn copy_record(&self, key: &[u8], first: &[u8], writer: &mut Writer) {
        writer.stage.copy(key, first);
        let further = codec::check(key, first)
            .ok()
            .and_then(|piece| piece.further);
        for number in 1..=u32::from(further.map_or(0, |(further, _)| further)) {
            let mut name = key.to_vec();
            keys::piece(&mut name, number);
            if let Ok(Some(piece)) = self.kv.get(&name) {
                writer.stage.copy(&name, &piece);
            }
        }
    }

    /// Programs and named workflows.
    fn rebuild_shared(
        &self,
        writer: &mut Writer,
        into: &impl Kv,
        out: &mut Salvaged,
    ) -> Result<(), StoreError> {
        let all = (Bound::Unbounded, Bound::Unbounded);
        for (key, first) in self.records(all).flatten() {
            let family = key.first().and_then(|byte| Family::of(*byte));
            let whole = self.value(&key, &first, |_| Ok(()));
            match (family, whole) {
                (Some(Family::Program | Family::Workflow), Err(error)) => {
                    out.wrong.note(None, "a program or workflow", &error);
                }
                (Some(family @ (Family::Program | Family::Workflow)), Ok(())) => {
                    self.copy_record(&key, &first, writer);
                    if family == Family::Workflow {
                        writer.root.add(codec::crc_of(&first));
                    }
                    flush(writer, into, FULL)?;
                }
                _ => {}
            }
        }
        Ok(())
    }
}
