//! Takes what can be read out of a damaged store and makes a new one of it. The damaged one stays
//! beside it, as it was found. A run is kept when its head and its whole journal can be read;
//! rows that are only for looking at may be missing from it, and that is told. A run that may be
//! older than it was stands still until someone asks for it: what it did since could be repeated.

use super::log_pages::{Pages, Vouch, given};
use super::log_reader::{Log, Message};
use super::mark;
use crate::model::Name;
use crate::store::codec;
use crate::store::commit::{Writer, index};
use crate::store::header::{Root, StoredHead};
use crate::store::integrity::Checkup;
use crate::store::journal::{Line, Order};
use crate::store::keys::{self, Family};
use crate::store::kv::{Kv, KvError, prefixed};
use crate::store::memory::Memory;
use crate::store::rows::{
    Meta, Retention, Rows, corrupt, decode_header, ends_too_early, older_mark,
};
use crate::store::write_batch::Stage;
use crate::store::{PARKED_LABEL, Placement, Store, StoreError};
use std::collections::BTreeSet;
use std::io;
use std::ops::{Bound, ControlFlow};
use std::path::Path;

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

/// Whether a record was written under a key.
pub(in crate::store) const VOUCH: Vouch = |key, value| codec::check(key, value).is_ok();

/// Refuses a finished store without its log or a mark that can be read, and a database that would do away with groups that were acknowledged, and can be read, as
/// soon as it is opened: damage near the end of its log looks to it like the end.
///
/// # Errors
/// [`StoreError::Corrupt`], [`StoreError::Io`] when its log cannot be read.
pub(in crate::store) fn check_end(path: &Path) -> Result<(), StoreError> {
    let Some(acknowledged) = mark::of_finished(path)?.filter(|group| *group > 0) else {
        return Ok(());
    };
    let log = Log::open(path).map_err(StoreError::Io)?;
    let Some(cut) = log.cut().map_err(StoreError::Io)? else {
        return Ok(());
    };
    if log.is_indexed(cut) {
        return Err(corrupt("its log cannot be read up to where its index ends"));
    }
    let group = |message: &Message<'_>| {
        let key = [Family::Root.byte()];
        let row = given(message, &key, VOUCH)?;
        let body = codec::check(&key, &row).ok()?.body;
        let root: Root = codec::decode(row.get(body)?).ok()?;
        Some(root.group)
    };
    let last = log.newest(cut, group).map_err(StoreError::Io)?;
    ends_too_early(acknowledged, last.unwrap_or(0)).map_or(Ok(()), Err)
}

/// Every row that the log of a database comes to, checked.
///
/// # Errors
/// When the log cannot be read at all.
pub(in crate::store) fn read_all(path: &Path, told: &mut Checkup) -> io::Result<Memory> {
    let mut pages = Pages::new(VOUCH);
    let mut odd = 0_u64;
    let mut log = Log::open(path)?;
    log.find_lost(told)?;
    log.messages(u64::MAX, told, |message| {
        odd += u64::from(!pages.take(message))
    })?;
    if odd > 0 {
        let error = corrupt(&format!("{odd} messages say nothing that is known"));
        told.note(None, "the log", &error);
    }
    let found = Memory::default();
    let mut stage = Stage::default();
    for (key, value) in pages.rows() {
        let Some(parsed) = keys::parse(&key) else {
            continue;
        };
        // Indexes and fences are made anew.
        if parsed.family.has_no_value() {
            continue;
        }
        match codec::check(&key, &value) {
            Ok(_) => stage.copy(&key, &value),
            Err(error) => {
                let run = parsed.run.as_deref().map(Name::from);
                let error = corrupt(&format!("{parsed}: {error}"));
                told.note(run.as_ref(), "a row", &error);
            }
        }
        if stage.len() > FULL {
            take_in(&found, &mut stage);
        }
    }
    take_in(&found, &mut stage);
    Ok(found)
}

/// A map in memory takes everything; there is no way back for it to remember.
fn take_in(rows: &Memory, stage: &mut Stage) {
    let _ = rows.apply(stage);
    let _ = rows.sync(0);
    stage.clear();
}

/// Writes what is whole into an empty database.
pub(in crate::store) fn rebuild(
    rows: Memory,
    acknowledged: Result<u64, StoreError>,
    into: &impl Kv,
    mut told: Checkup,
) -> Result<Salvaged, StoreError> {
    let view = Rows::fresh(rows, Retention::default(), "the damaged store");
    if let (Ok(Some(_)), Err(error @ StoreError::Foreign { .. })) =
        (view.kv.get(&[Family::Meta.byte()]), view.root())
    {
        // That of a later version: not to be written as one of this.
        return Err(error);
    }
    let found = view.read(|key| keys::single(key, Family::Root), codec::decode::<Root>);
    let found = found.ok().flatten();
    let last = found.map_or(0, |root| root.group);
    // The root vouches for every head, and the mark for the root; without a mark nobody knows whether
    // the log has its end.
    let vouched = found.is_some_and(|root| view.heads_digest() == root.digest);
    let (mut ended, mut acknowledged) = (true, acknowledged);
    let marked = view.last_marked().unwrap_or(0);
    if let Some(error) = acknowledged
        .as_ref()
        .ok()
        .and_then(|group| older_mark(*group, marked))
    {
        acknowledged = Err(error);
    }
    if let Err(error) = &acknowledged {
        ended = false;
        told.note(None, "the mark", error);
    }
    let acknowledged = acknowledged.unwrap_or(0);
    if let Some(error) = ends_too_early(acknowledged, last) {
        ended = false;
        told.note(None, "the end of the log", &error);
    }
    let mut out = Salvaged {
        older: !(vouched && ended),
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

    /// What the root's digest is when no head and no workflow is missing or older than it was; the
    /// indexes are what the heads say.
    fn heads_digest(&self) -> u64 {
        let mut root = Root::default();
        for (key, first) in self.records(prefixed(&[])).flatten() {
            let Some(parsed) = keys::parse(&key) else {
                continue;
            };
            match parsed.family {
                Family::Workflow => root.add(codec::crc_of(&first)),
                Family::Header => {
                    root.add(codec::crc_of(&first));
                    let head = self.value(&key, &first, decode_header);
                    let mut name = Vec::new();
                    if let (Ok(head), Some(run)) = (head, &parsed.run)
                        && index(head.placement, run, &mut name)
                    {
                        root.add(codec::crc_of_key(&name));
                    }
                }
                _ => {}
            }
        }
        root.digest
    }

    /// Takes away what a run did after its head, when the head is an older one: it goes on from
    /// there, when it is asked to.
    fn cut_after_head(&self, run: &Name) {
        let Ok(Some((head, _))) = self.stored_head(run) else {
            return;
        };
        let mut stage = Stage::default();
        for family in [Family::Snapshot, Family::Changes] {
            let mut prefix = Vec::new();
            keys::of_run(&mut prefix, family, run);
            for (key, _) in self.rows(prefixed(&prefix)).flatten() {
                let number = keys::parse(&key).and_then(|parsed| parsed.number);
                if number.is_none_or(|number| number > head.header.revision) {
                    stage.remove(|out| out.extend_from_slice(&key));
                }
            }
        }
        take_in(&self.kv, &mut stage);
    }

    /// Copies a run; false when it cannot go on from what is there.
    fn rebuild_run(
        &self,
        run: &Name,
        writer: &mut Writer,
        into: &impl Kv,
        out: &mut Salvaged,
    ) -> Result<bool, StoreError> {
        if out.older {
            self.cut_after_head(run);
        }
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
