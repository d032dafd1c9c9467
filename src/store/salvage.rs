//! Takes what can be read out of a damaged store and makes a new one of it. The damaged one stays
//! beside it, as it was found. A run is kept when its head and its whole journal can be read;
//! rows that are only for looking at may be missing from it, and that is told. A run that may be
//! older than it was stands still until someone asks for it: what it did since could be repeated.

use super::check::Checkup;
use super::codec;
use super::commit::{Writer, index};
use super::head::{Root, StoredHead};
use super::keys::{self, Family};
use super::kv::{Kv, KvError, prefixed};
use super::memory::Memory;
use super::rows::{Meta, Retention, Rows, corrupt, decode_loop};
use super::stage::Stage;
use super::{PARKED_LABEL, Placement, Store, StoreError};
use crate::machine::{HistoryEvent, IterationRow};
use crate::model::Name;
use std::collections::BTreeSet;
use std::ops::Bound;

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
        // Indexes are made anew.
        if matches!(parsed.family, Family::Due | Family::Runnable) {
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
            ("its iterations", self.iterations(run, None, 0).map(drop)),
            ("its events", self.history(run, 0, usize::MAX).map(drop)),
        ] {
            if let Err(error) = read {
                out.wrong.note(Some(run), what, &error);
            }
        }
        for family in [Family::Snapshot, Family::Changes] {
            self.copy_whole(run, family, writer, |_, _| true);
            flush(writer, into, FULL)?;
        }
        let sums = &mut head.sums;
        let loops = self.copy_whole(run, Family::Loop, writer, |key, first| {
            self.value(key, first, decode_loop).is_ok()
        });
        let decode = codec::decode::<IterationRow>;
        let iterations = self.copy_whole(run, Family::Iteration, writer, |key, first| {
            self.value(key, first, decode).is_ok()
        });
        (sums.loops, sums.iterations) = (loops, iterations);
        let (trimmed, last) = self.last_events(run, sums.events);
        (sums.trimmed, sums.events) = (trimmed, last);
        self.copy_whole(run, Family::Events, writer, |key, _| {
            let number = keys::parse(key).and_then(|parsed| parsed.number);
            number.is_some_and(|number| number > trimmed)
        });
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

    /// Copies the records of a run in a family that are whole; gives the sum of their checksums.
    fn copy_whole(
        &self,
        run: &str,
        family: Family,
        writer: &mut Writer,
        keep: impl Fn(&[u8], &[u8]) -> bool,
    ) -> u32 {
        let mut prefix = Vec::new();
        keys::of_run(&mut prefix, family, run);
        let mut sum = 0_u32;
        for (key, first) in self.records(prefixed(&prefix)).flatten() {
            if keep(&key, &first) {
                sum = sum.wrapping_add(codec::crc_of(&first));
                self.copy_record(&key, &first, writer);
            }
        }
        sum
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

    /// The longest end of a run's events without a gap: what lies before it, and its last one.
    fn last_events(&self, run: &str, known: u64) -> (u64, u64) {
        let mut prefix = Vec::new();
        keys::of_run(&mut prefix, Family::Events, run);
        let mut from: Option<(u64, u64)> = None;
        for (key, first) in self.records(prefixed(&prefix)).flatten() {
            let events = self.value(&key, &first, codec::decode_all::<HistoryEvent>);
            let last = keys::parse(&key).and_then(|parsed| parsed.number);
            let (Ok(events), Some(last)) = (events, last) else {
                from = None;
                continue;
            };
            let before = last.saturating_sub(events.len() as u64);
            from = match from {
                Some((begin, end)) if end == before => Some((begin, last)),
                _ => Some((before, last)),
            };
        }
        from.unwrap_or((known, known))
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
