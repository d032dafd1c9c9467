//! What a commit writes: its record in the journal, its snapshot if it has one, the run's key in an index, and the
//! run's header. All of these are in one atomic batch. Exception: a value that is too long for one key is split into
//! pieces. The further pieces (all except the first) of a long commit are stored before the batch.

use super::Receipt;
use super::codec;
use super::header::{KnownHeader, Root, StoredHeader};
use super::journal::{EncodedCommit, WrittenCommit};
use super::keys::{self, Family};
use super::kv::Kv;
use super::pack;
use super::rows::{RowReader, Rows, corrupt};
use super::write_batch::{Pieces, Put, RecordRejection, WriteBatch, WrittenPieces};
use super::{Commit, Committed, Placement, StoreError};
use bincode::Encode;
use bincode::error::EncodeError;
use std::collections::{HashMap, HashSet};
use std::ops::Bound;
use std::sync::atomic::{AtomicU64, Ordering};
use windlass_machine::program::ProgramHash;
use windlass_model::model::Name;

/// The map of headers shrinks only if its capacity is greater than this number of headers.
const MANY_HEADERS: usize = 4_096;

/// What the writing thread remembers between groups. A group is the writes of several commits together.
#[derive(Default)]
pub struct Writer {
    /// The writes of the next group.
    pub batch: WriteBatch,
    /// The root after the next group.
    pub root: Root,
    /// Headers of runs that are in flight. When the next group begins, the headers of runs that are not runnable are
    /// removed.
    /// Boxed, because a hash table reserves space for more entries than it has.
    pub headers: HashMap<Name, Box<KnownHeader>>,
    /// The runs of this batch whose headers are removed when the next group begins.
    leaving: Vec<Name>,
    /// The runs that the batch changes.
    pub touched: Vec<Name>,
    /// The last synced mark that is stored. The mark is the number of the last durable group (see `watermark`).
    marked: u64,
    /// Programs that are known to be stored.
    pub programs: HashSet<ProgramHash>,
    /// For each run, the claim of the commit that may store pieces. Only one commit of a run has a claim at a time, so
    /// that pieces of two commits are never mixed under the same keys.
    claims: HashMap<Name, u64>,
}

impl Writer {
    /// Creates a writer that continues after `root`.
    pub fn new(root: Root) -> Self {
        Self {
            root,
            ..Self::default()
        }
    }

    /// Puts the first records of a new store into the batch.
    pub fn put_meta(&mut self, meta: &impl Encode, padding: &[Vec<u8>]) -> Result<(), StoreError> {
        let key = |key: &mut Vec<u8>| keys::single(key, Family::Meta);
        self.batch
            .put(key, |out| codec::encode(out, meta))
            .map_err(|error| corrupt(&error.to_string()))?;
        self.batch.put_keys(padding);
        self.put_root()
    }

    /// Assigns the next number to the group in the batch. `marked` is the last mark that was synced.
    pub fn next_group(&mut self, marked: u64) -> Result<u64, StoreError> {
        self.root.group = self.root.group.saturating_add(1);
        self.put_root()?;
        if self.marked < marked {
            let key = |key: &mut Vec<u8>| keys::single(key, Family::Marked);
            let put = self.batch.put(key, |out| codec::encode(out, &marked));
            put.map_err(|error| corrupt(&error.to_string()))?;
            self.marked = marked;
        }
        Ok(self.root.group)
    }

    fn put_root(&mut self) -> Result<(), StoreError> {
        let root = self.root;
        let key = |key: &mut Vec<u8>| keys::single(key, Family::Root);
        self.batch
            .put(key, |out| codec::encode(out, &root))
            .map_err(|error| corrupt(&error.to_string()))?;
        Ok(())
    }

    /// Removes what the writer remembers of a run, because the run changes without a commit.
    pub fn forget(&mut self, run: &str) {
        self.headers.remove(run);
        self.claims.remove(run);
    }

    fn remember(&mut self, run: &Name, header: Box<KnownHeader>) {
        if header.placement != Some(Placement::Runnable) {
            self.leaving.push(run.clone());
        }
        self.headers.insert(run.clone(), header);
    }

    /// Begins a group. Removes the headers of runs that were not runnable after the last group.
    pub fn begin(&mut self) {
        self.batch.clear();
        for run in self.leaving.drain(..) {
            self.headers.remove(&run);
        }
        // A map does not release memory automatically, so it would retain the memory that it needed for many runs.
        if self.headers.capacity() > (self.headers.len() * 8).max(MANY_HEADERS) {
            self.headers.shrink_to(self.headers.len() * 2);
        }
    }
}

/// One commit while it is put into a batch.
pub(super) struct Entry<'a> {
    pub run: &'a Name,
    pub batch: &'a mut WriteBatch,
    pub header: Box<KnownHeader>,
    pub root: Root,
}

impl Entry<'_> {
    pub fn put(
        &mut self,
        key: impl FnOnce(&mut Vec<u8>),
        value: impl FnOnce(&mut Vec<u8>) -> Result<(), EncodeError>,
    ) -> Result<Put, StoreError> {
        self.batch
            .put(key, value)
            .map_err(|error| rejected(self.run, &error))
    }

    /// Moves the run from its index to the index of `placement`.
    pub fn place(&mut self, placement: Option<Placement>) {
        if self.header.placement == placement {
            return;
        }
        let run = self.run;
        let mut name = Vec::new();
        if let Some(old) = self.header.placement
            && index(old, run, &mut name)
        {
            self.batch.remove(|key| key.extend_from_slice(&name));
            self.root.subtract_row(codec::crc_of_key(&name));
        }
        name.clear();
        if let Some(new) = placement
            && index(new, run, &mut name)
        {
            self.batch.put_key(|key| key.extend_from_slice(&name));
            self.root.add_row(codec::crc_of_key(&name));
        }
        self.header.placement = placement;
    }
}

impl<K: Kv> RowReader<K> {
    /// Puts one commit into the batch. If the commit is refused, nothing of it is in the batch.
    pub(super) fn put_commit(
        &self,
        writer: &mut Writer,
        commit: &Commit,
        encoded: &EncodedCommit,
    ) -> Result<Committed, StoreError> {
        let run = &commit.header.id;
        check_id(run)?;
        // Taken out of the map, because the header is changed below. If a later step fails, the next commit reads the
        // header from the store again.
        let header = match writer.headers.remove(run) {
            Some(header) => header,
            None => Box::new(self.known_header(run)?),
        };
        if commit.header.revision != header.revision.saturating_add(1) {
            let found = header.revision;
            if header.crc.is_some() {
                writer.remember(run, header);
            }
            return Err(StoreError::Conflict {
                run: run.clone(),
                expected: commit.header.revision.saturating_sub(1),
                found,
            });
        }
        let group = writer.root.group.saturating_add(1);
        if header.group == group {
            writer.remember(run, header);
            return Err(StoreError::Rejected {
                run: run.clone(),
                reason: String::from("it is twice in one group"),
            });
        }
        let mark = writer.batch.savepoint();
        let claim = writer.claims.remove(run);
        let known = writer.programs.contains(&commit.header.program);
        let mut entry = Entry {
            run,
            batch: &mut writer.batch,
            header,
            root: writer.root,
        };
        let put = self.put_rows(&mut entry, commit, encoded, (known, claim));
        let (mut header, root) = (entry.header, entry.root);
        header.group = group;
        let committed = put.inspect_err(|_| writer.batch.rollback(mark))?;
        if commit.program.is_some() {
            writer.programs.insert(commit.header.program);
        }
        writer.root = root;
        writer.touched.push(run.clone());
        writer.remember(run, header);
        Ok(committed)
    }

    fn put_rows(
        &self,
        entry: &mut Entry<'_>,
        commit: &Commit,
        encoded: &EncodedCommit,
        (program_is_known, claim): (bool, Option<u64>),
    ) -> Result<Committed, StoreError> {
        if !program_is_known {
            self.put_program(entry, commit)?;
        }
        let committed = self.put_journal(entry, commit, encoded, claim)?;
        entry.place(Some(commit.header.placement));
        // Add a different number for each run. Otherwise, runs that commit at the same time would all be compacted in
        // the same group, which would be slow.
        let turn = u64::from(crc32fast::hash(entry.run.as_bytes()));
        let turn = commit.header.revision.wrapping_add(turn);
        if turn.is_multiple_of(self.retention.compact_every.max(1)) {
            self.compact_journal(entry)?;
        }
        if turn.is_multiple_of(pack::EVERY) {
            self.pack_journal(entry)?;
        }
        self.put_header(entry, commit)?;
        Ok(committed)
    }

    fn put_program(&self, entry: &mut Entry<'_>, commit: &Commit) -> Result<(), StoreError> {
        let Some(source) = &commit.program else {
            return Ok(());
        };
        let mut name = Vec::new();
        keys::program(&mut name, commit.header.program);
        if self.get(&name)?.is_none() {
            entry.put(
                |key| key.extend_from_slice(&name),
                |out| codec::encode(out, source),
            )?;
        }
        Ok(())
    }

    /// Puts the commit's record. If the commit has a snapshot, puts it in place of the run's last snapshot. `claim`
    /// identifies the commit that last stored pieces of the run.
    fn put_journal(
        &self,
        entry: &mut Entry<'_>,
        commit: &Commit,
        encoded: &EncodedCommit,
        claim: Option<u64>,
    ) -> Result<Committed, StoreError> {
        let (run, revision) = (entry.run, commit.header.revision);
        let mut committed = Committed {
            receipt: Receipt { revision },
            change_bytes: 0,
            snapshot_bytes: None,
        };
        let bounds = &mut entry.header.bounds;
        let written = encoded.written.as_ref();
        let is_own =
            |one: &&WrittenCommit| Some(one.claim) == claim && one.events_before == bounds.events;
        let written = written.filter(is_own);
        bounds.events = bounds.events.saturating_add(commit.history.len() as u64);
        bounds.first = bounds.first.max(1);
        let events = bounds.events;
        committed.change_bytes = encoded.body_bytes();
        let key = |key: &mut Vec<u8>| keys::numbered_row(key, Family::Changes, run, revision);
        match written.and_then(|written| written.record.as_ref()) {
            Some(pieces) => entry.batch.put_first(key, pieces),
            None => entry.put(key, |out| encoded.write_record(out, events))?,
        };
        for row in &commit.iterations {
            entry.header.ended(&row.path, row.iteration);
        }
        if let Some(state) = &encoded.snapshot {
            let (mut first, mut own) = (Vec::new(), Vec::new());
            keys::of_run(&mut first, Family::Snapshot, run);
            keys::numbered_row(&mut own, Family::Snapshot, run, revision);
            self.remove_range(entry.batch, (Bound::Included(first), Bound::Excluded(own)))?;
            let key = |key: &mut Vec<u8>| keys::numbered_row(key, Family::Snapshot, run, revision);
            let put = match written.and_then(|written| written.snapshot.as_ref()) {
                Some(pieces) => entry.batch.put_first(key, pieces),
                None => entry.put(key, |out| {
                    out.extend_from_slice(state);
                    Ok(())
                })?,
            };
            entry.header.snapshot = revision;
            committed.snapshot_bytes = Some(put.bytes);
        }
        Ok(committed)
    }

    fn put_header(&self, entry: &mut Entry<'_>, commit: &Commit) -> Result<(), StoreError> {
        let (header, run) = (&commit.header, entry.run);
        let bounds = entry.header.bounds;
        let key = |key: &mut Vec<u8>| keys::of_run(key, Family::Header, run);
        let put = if header.snapshot == entry.header.snapshot {
            entry.put(key, |out| {
                codec::encode(out, header)?;
                codec::encode(out, &bounds)
            })?
        } else {
            let mut header = header.clone();
            header.snapshot = entry.header.snapshot;
            entry.put(key, |out| {
                codec::encode(out, &StoredHeader { header, bounds })
            })?
        };
        if let Some(old) = entry.header.crc {
            entry.root.subtract_row(old);
        }
        entry.root.add_row(put.crc);
        entry.header.crc = Some(put.crc);
        entry.header.revision = header.revision;
        Ok(())
    }

    /// Reads a run's header from the store. Returns the default header if the run is not stored.
    pub(super) fn known_header(&self, run: &str) -> Result<KnownHeader, StoreError> {
        let Some((stored, crc)) = self.stored_header(run)? else {
            return Ok(KnownHeader::default());
        };
        Ok(KnownHeader::of(&stored, crc))
    }

    /// Returns the checksum of the record under a key, if there is one.
    pub(super) fn crc_at(&self, key: impl FnOnce(&mut Vec<u8>)) -> Result<Option<u32>, StoreError> {
        let mut name = Vec::with_capacity(64);
        key(&mut name);
        let stored = self.get(&name)?;
        Ok(stored.map(|stored| codec::crc_of(stored.as_ref())))
    }
}

impl<K: Kv> Rows<K> {
    /// Stores the further pieces of a long commit in groups of their own. So other commits do not wait until the whole
    /// long commit is written.
    /// A reader uses these pieces only after the commit's own group is applied: that group has the first pieces and the
    /// header.
    pub(super) fn write_further_pieces(
        &self,
        commit: &Commit,
        encoded: &mut EncodedCommit,
    ) -> Result<(), StoreError> {
        let (run, revision) = (&commit.header.id, commit.header.revision);
        // A run has no header before its first commit. If such a commit failed, its pieces would remain without a row
        // that refers to them, and would never be removed.
        if revision < 2 || !encoded.is_long() || check_id(run).is_err() {
            return Ok(());
        }
        let claim = NEXT_CLAIM.fetch_add(1, Ordering::Relaxed);
        let Some(events_before) = self.claim_pieces(commit, claim)? else {
            return Ok(());
        };
        let mut record = Vec::new();
        let last = events_before.saturating_add(commit.history.len() as u64);
        encoded
            .write_record(&mut record, last)
            .map_err(|error| rejected(run, &RecordRejection::Encode(error)))?;
        let snapshot = encoded.snapshot.as_deref().unwrap_or_default();
        let record = self.write_pieces_of(commit, Family::Changes, &record, claim)?;
        let snapshot = self.write_pieces_of(commit, Family::Snapshot, snapshot, claim)?;
        encoded.written = Some(WrittenCommit {
            claim,
            events_before,
            record,
            snapshot,
        });
        Ok(())
    }

    /// Stores the further pieces of a value. Returns `None` if the value has only one piece, or if the claim has ended.
    fn write_pieces_of(
        &self,
        commit: &Commit,
        family: Family,
        value: &[u8],
        claim: u64,
    ) -> Result<Option<WrittenPieces>, StoreError> {
        let (run, revision) = (&commit.header.id, commit.header.revision);
        let mut name = Vec::new();
        keys::numbered_row(&mut name, family, run, revision);
        let Some(mut pieces) = Pieces::new(name, value) else {
            return Ok(None);
        };
        while !pieces.is_done() {
            let mut writer = self.next_writer();
            self.reader.check_writable()?;
            // A commit of the run ends the claim.
            if writer.claims.get(run) != Some(&claim) {
                return Ok(None);
            }
            writer.begin();
            // Half of the limit, so that one group can be applied while the one before is synced.
            pieces.put_next(&mut writer.batch, K::MAX_UNSYNCED.min(MAX_GROUP) / 2);
            self.make_durable(writer, || ())?;
        }
        let written = pieces.written();
        written.map(Some).map_err(|error| rejected(run, &error))
    }

    /// Claims the keys of a commit's pieces until the run's next commit. Returns the sequence number of the run's last
    /// event.
    /// Returns `None` if another commit has the claim; then this commit is stored in one group. Also returns `None` if
    /// this commit is not the run's next one.
    fn claim_pieces(&self, commit: &Commit, claim: u64) -> Result<Option<u64>, StoreError> {
        let run = &commit.header.id;
        // The writer is locked for both the read and the claim, so that all earlier commits are applied before the
        // read.
        let mut writer = self.next_writer();
        let header = self.reader.known_header(run)?;
        let is_next = header.revision.checked_add(1) == Some(commit.header.revision);
        if !is_next || writer.claims.contains_key(run) {
            return Ok(None);
        }
        writer.claims.insert(run.clone(), claim);
        Ok(Some(header.bounds.events))
    }
}

/// Appends the key of a placement in its index. Returns false if the placement is in no index.
pub(super) fn index(placement: Placement, run: &str, key: &mut Vec<u8>) -> bool {
    match placement {
        Placement::Runnable => keys::runnable(key, run),
        Placement::Due(at) => keys::due(key, at, run),
        Placement::Idle => return false,
    }
    true
}

/// The number of the next claim.
static NEXT_CLAIM: AtomicU64 = AtomicU64::new(0);

/// Approximate maximum number of bytes of pieces that are in flight at a time; one group has half of it.
const MAX_GROUP: usize = 512 << 10;

/// Approximate number of bytes of keys and headers that a commit has in addition to its record.
const COMMIT_OVERHEAD: usize = 512;

/// Encodes the first commits of a group: at least one, and further ones up to about `bytes` bytes.
/// `already_encoded` is an input and an output. Input: the first commit of `group`, if an earlier call has encoded it.
/// Output: the commit after the last returned one, if this call has encoded it.
pub(super) fn encode_group(
    group: &[Commit],
    bytes: usize,
    already_encoded: &mut Option<EncodedCommit>,
) -> Vec<Result<EncodedCommit, StoreError>> {
    let (mut encoded, mut size) = (Vec::with_capacity(group.len()), 0);
    for commit in group {
        let one = already_encoded
            .take()
            .map_or_else(|| encode_commit(commit), Ok);
        let is_long = one.as_ref().is_ok_and(EncodedCommit::is_long);
        if is_long && !encoded.is_empty() {
            // End before the long commit, so that the commits before it do not wait for its pieces.
            *already_encoded = one.ok();
            break;
        }
        size += one.as_ref().map_or(0, EncodedCommit::bytes) + COMMIT_OVERHEAD;
        encoded.push(one);
        if size > bytes {
            break;
        }
    }
    encoded
}

fn encode_commit(commit: &Commit) -> Result<EncodedCommit, StoreError> {
    let failed = |error| rejected(&commit.header.id, &RecordRejection::Encode(error));
    EncodedCommit::of(commit).map_err(failed)
}

fn rejected(run: &Name, error: &RecordRejection) -> StoreError {
    StoreError::Rejected {
        run: run.clone(),
        reason: error.to_string(),
    }
}

fn check_id(run: &Name) -> Result<(), StoreError> {
    let reason = match run.len() {
        0 => "its id is empty",
        1..=keys::MAX_RUN_ID => return Ok(()),
        _ => "its id is longer than 128 bytes",
    };
    Err(StoreError::Rejected {
        run: run.clone(),
        reason: reason.to_owned(),
    })
}
