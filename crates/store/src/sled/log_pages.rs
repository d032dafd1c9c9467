//! Makes rows (keys with values) from the messages of sled's log. The rows of a page are those of the last message with
//! the whole page, plus the later changes.
//! If a message is lost, an older message of the page is used instead. If two pages have the same key, the row that was
//! written later is used. So the resulting rows may be inconsistent, and a caller must check them. This file trusts no
//! stored length and never panics.

use super::log_reader::{Kind, Log, Message};
use super::log_segment::{take, varint};
use crate::codec;
use crate::integrity::IntegrityReport;
use crate::rows::corrupt;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::ops::Bound;

type Bytes = Vec<u8>;

/// A function that returns true if this value (which is not empty) was written under this key.
pub(super) type IsValid = fn(&[u8], &[u8]) -> bool;

/// Returns true if the value is a record that was written under the key.
pub(super) const RECORD_IS_VALID: IsValid = |key, value| codec::check(key, value).is_ok();

/// The pages of a log, as far as the log was read.
pub(super) struct Pages {
    leaves: BTreeMap<u64, LeafNode>,
    /// Pages that refer to other pages.
    indexes: BTreeSet<u64>,
    /// Rows of pages that were removed, or that moved these rows to another page. They are used if the other page is
    /// lost.
    orphaned: BTreeMap<Bytes, Bytes>,
    /// Changes of pages that are not known, by page: the suffix of each changed key, and its value.
    unresolved: BTreeMap<u64, Vec<(Bytes, Bytes)>>,
    is_valid: IsValid,
}

/// A page with rows. If `hi` is empty, the page's range of keys has no end.
struct LeafNode {
    /// The page with the following keys; 0 for the last page.
    next: u64,
    lo: Bytes,
    hi: Bytes,
    /// Number of bytes of `lo` with which every key of the page begins. The log stores the keys without these bytes.
    prefix: usize,
    /// Whether `prefix` is a guess, because the message with the real one is lost.
    guessed: bool,
    /// The position in the log of the message with the whole page.
    base: u64,
    /// Rows by key: the log position of the row's last change, and the value. The value is `None` if the row was
    /// removed.
    rows: BTreeMap<Bytes, (u64, Option<Bytes>)>,
}

impl LeafNode {
    fn covers(&self, key: &[u8]) -> bool {
        key >= self.lo.as_slice() && (self.hi.is_empty() || key < self.hi.as_slice())
    }

    /// Returns true if a row changed after the whole page was written. A removed row counts, because it remains as an
    /// entry.
    fn is_changed(&self) -> bool {
        self.rows.values().any(|(lsn, _)| *lsn != self.base)
    }

    fn key(&self, prefix: usize, end: &[u8]) -> Bytes {
        [self.lo.get(..prefix).unwrap_or_default(), end].concat()
    }

    /// Sets a row. `end` is the suffix of its key, as the log stores it. If the message that gave the page another
    /// prefix is lost, the known prefix may be wrong, so other prefixes are tried. Returns false if no prefix fits.
    fn set(&mut self, lsn: u64, end: &[u8], value: &[u8], is_valid: IsValid) -> bool {
        let mut key = self.key(self.prefix, end);
        if !value.is_empty() && !is_valid(&key, value) {
            let other = (0..=self.lo.len()).find(|prefix| is_valid(&self.key(*prefix, end), value));
            let Some(prefix) = other else {
                return false;
            };
            self.prefix = prefix;
            self.guessed = true;
            key = self.key(prefix, end);
        }
        self.rows.insert(key, (lsn, Some(value.to_vec())));
        true
    }
}

/// The content of a page's message.
enum Node {
    /// A page that refers to other pages.
    Index,
    Leaf(LeafNode),
}

fn node(lsn: u64, mut bytes: &[u8]) -> Option<Node> {
    let bytes = &mut bytes;
    let next = varint(bytes)?;
    let _merging_child = varint(bytes)?;
    let _merging = take(bytes)?;
    let prefix = usize::from(take(bytes)?);
    let lo = text(bytes)?;
    let hi = text(bytes)?;
    let shared = lo.get(..prefix)?;
    if !hi.is_empty() && lo >= hi {
        return None;
    }
    if take(bytes)? != 0 {
        return Some(Node::Index);
    }
    let count = varint(bytes)?;
    let mut keys = Vec::new();
    for _ in 0..count {
        keys.push([shared, text(bytes)?].concat());
    }
    let mut rows = BTreeMap::new();
    for key in keys {
        rows.insert(key, (lsn, Some(text(bytes)?.to_vec())));
    }
    Some(Node::Leaf(LeafNode {
        next,
        lo: lo.to_vec(),
        hi: hi.to_vec(),
        prefix,
        guessed: false,
        base: lsn,
        rows,
    }))
}

/// Returns the value that a message sets for a key.
pub(super) fn value_in_message(
    message: &Message<'_>,
    key: &[u8],
    is_valid: IsValid,
) -> Option<Bytes> {
    let mut bytes: &[u8] = &message.body;
    match message.kind {
        Kind::Free => None,
        Kind::Node => match node(message.lsn, bytes)? {
            Node::Leaf(mut leaf) => leaf.rows.remove(key)?.1,
            Node::Index => None,
        },
        Kind::Link => {
            let bytes = &mut bytes;
            let set = take(bytes)? == 0;
            let (_end, value) = (text(bytes)?, text(bytes)?);
            (set && is_valid(key, value)).then(|| value.to_vec())
        }
    }
}

/// Splits off a length and that number of bytes after it. Returns the bytes.
fn text<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = usize::try_from(varint(bytes)?).ok()?;
    let (text, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(text)
}

impl Pages {
    /// Creates an empty list. `is_valid` returns whether a value that is not empty was written under a key.
    pub fn new(is_valid: IsValid) -> Self {
        Self {
            leaves: BTreeMap::new(),
            indexes: BTreeSet::new(),
            orphaned: BTreeMap::new(),
            unresolved: BTreeMap::new(),
            is_valid,
        }
    }

    /// Reads the pages from the log up to a position. Also reports what cannot be read.
    ///
    /// # Errors
    /// If the log cannot be read at all.
    pub fn read(log: &mut Log<'_>, until: u64) -> io::Result<(Self, IntegrityReport)> {
        let mut report = IntegrityReport::default();
        let (mut pages, mut odd) = (Self::new(RECORD_IS_VALID), 0_u64);
        log.find_lost(&mut report)?;
        log.messages(until, &mut report, |message| {
            odd += u64::from(!pages.take(message));
        })?;
        if odd > 0 {
            let error = corrupt(&format!("{odd} messages say nothing that is known"));
            report.note(None, "the log", &error);
        }
        Ok((pages, report))
    }

    /// Adds the next message of the log. Returns false if its content is not valid.
    pub fn take(&mut self, message: &Message<'_>) -> bool {
        match message.kind {
            Kind::Free => {
                self.unresolved.remove(&message.page);
                self.indexes.remove(&message.page);
                if let Some(leaf) = self.leaves.remove(&message.page) {
                    self.detach(leaf, |_| true);
                }
                true
            }
            Kind::Node => match node(message.lsn, &message.body) {
                Some(node) => {
                    self.replace(message.page, node);
                    true
                }
                None => false,
            },
            Kind::Link => self.link(message).is_some(),
        }
    }

    fn replace(&mut self, page: u64, node: Node) {
        self.unresolved.remove(&page);
        let old = self.leaves.remove(&page);
        let Node::Leaf(leaf) = node else {
            self.indexes.insert(page);
            return;
        };
        self.indexes.remove(&page);
        let under: Vec<Bytes> = keys_in_range(&self.orphaned, &leaf).cloned().collect();
        for key in under {
            self.orphaned.remove(&key);
        }
        if let Some(old) = old.filter(|old| (&old.lo, &old.hi) != (&leaf.lo, &leaf.hi)) {
            self.detach(old, |key| !leaf.covers(key));
        }
        self.leaves.insert(page, leaf);
    }

    fn detach(&mut self, leaf: LeafNode, which: impl Fn(&[u8]) -> bool) {
        for (key, (_, value)) in leaf.rows {
            if let Some(value) = value.filter(|_| which(&key)) {
                self.orphaned.insert(key, value);
            }
        }
    }

    fn link(&mut self, message: &Message<'_>) -> Option<()> {
        let mut bytes: &[u8] = &message.body;
        let bytes = &mut bytes;
        let leaf = self.leaves.get_mut(&message.page);
        match take(bytes)? {
            0 if self.indexes.contains(&message.page) => {}
            0 => {
                let (end, value) = (text(bytes)?, text(bytes)?);
                let placed =
                    leaf.is_some_and(|leaf| leaf.set(message.lsn, end, value, self.is_valid));
                if !placed {
                    let those = self.unresolved.entry(message.page).or_default();
                    those.push((end.to_vec(), value.to_vec()));
                }
            }
            1 => {
                let end = text(bytes)?;
                if let Some(leaf) = leaf {
                    let key = leaf.key(leaf.prefix, end);
                    leaf.rows.insert(key, (message.lsn, None));
                }
            }
            // Merges of pages. They need no handling, because the following messages contain their result.
            2..=4 => {}
            _ => return None,
        }
        Some(())
    }

    /// Returns the rows if no message is missing. Then each page refers to the next one, beginning with the page of the
    /// first key, and every change belongs to a known page. A page to which no other page refers is ignored if it was
    /// not changed. Such a page exists if the process ended during a split: after the new page was created, and before
    /// the old page was shortened.
    pub fn whole(mut self) -> Option<BTreeMap<Bytes, Bytes>> {
        let first = |(page, leaf): (&u64, &LeafNode)| leaf.lo.is_empty().then_some(*page);
        let mut firsts = self.leaves.iter().filter_map(first);
        let (mut next, None) = (firsts.next()?, firsts.next()) else {
            return None;
        };
        let mut rows = BTreeMap::new();
        let mut known = Bytes::new();
        loop {
            // Removed from the map, so that this loop ends even if pages refer to each other in a circle.
            let leaf = self.leaves.remove(&next)?;
            if leaf.guessed || leaf.lo != known {
                return None;
            }
            let live = leaf.rows.into_iter();
            rows.extend(live.filter_map(|(key, (_, value))| Some((key, value?))));
            if leaf.hi.is_empty() {
                // If a page without a reference to it was changed, the message with the reference is missing.
                let used = self.leaves.values().any(LeafNode::is_changed);
                return (self.unresolved.is_empty() && !used).then_some(rows);
            }
            (known, next) = (leaf.hi, leaf.next);
        }
    }

    /// Returns the rows that result from all messages that were read, even if other messages are missing.
    pub fn rows(self) -> BTreeMap<Bytes, Bytes> {
        let is_valid = self.is_valid;
        let mut leaves: Vec<LeafNode> = self.leaves.into_values().collect();
        leaves.sort_by_key(|leaf| leaf.base);
        let gaps = gaps(&leaves);
        let orphaned = self.orphaned.into_iter();
        let mut rows: BTreeMap<Bytes, (u64, Option<Bytes>)> = orphaned
            .map(|(key, value)| (key, (0, Some(value))))
            .collect();
        for leaf in leaves {
            // Rows in the page's range that are older than the page did not exist any more when the page was written.
            let gone: Vec<Bytes> = keys_in_range(&rows, &leaf)
                .filter(|key| rows.get(*key).is_some_and(|(lsn, _)| *lsn < leaf.base))
                .cloned()
                .collect();
            for key in gone {
                rows.remove(&key);
            }
            for (key, row) in leaf.rows {
                if rows.get(&key).is_none_or(|(lsn, _)| *lsn < row.0) {
                    rows.insert(key, row);
                }
            }
        }
        // If only changes of a page remain, and not the page, then its keys are in a range that no known page has.
        for (end, value) in self.unresolved.into_values().flatten() {
            let key = gaps.iter().find_map(|(lo, hi)| {
                let keys = (0..=lo.len()).rev().filter_map(|prefix| lo.get(..prefix));
                let mut keys = keys.map(|shared| [shared, &end].concat());
                keys.find(|key| {
                    key >= lo && hi.as_ref().is_none_or(|hi| key < hi) && is_valid(key, &value)
                })
            });
            if let Some(key) = key {
                rows.insert(key, (u64::MAX, Some(value)));
            }
        }
        let live = rows.into_iter();
        live.filter_map(|(key, (_, value))| Some((key, value?)))
            .collect()
    }
}

/// Returns the keys that are in a page's range.
fn keys_in_range<'a, T>(
    rows: &'a BTreeMap<Bytes, T>,
    leaf: &LeafNode,
) -> impl Iterator<Item = &'a Bytes> + use<'a, T> {
    let to = match leaf.hi.as_slice() {
        [] => Bound::Unbounded,
        hi => Bound::Excluded(hi),
    };
    let range = (Bound::Included(leaf.lo.as_slice()), to);
    rows.range::<[u8], _>(range).map(|(key, _)| key)
}

/// Returns the ranges of keys that no known page has. If the end of a range is `None`, the range has no end.
fn gaps(leaves: &[LeafNode]) -> Vec<(Bytes, Option<Bytes>)> {
    let ranges: BTreeSet<(&[u8], &[u8])> =
        leaves.iter().map(|leaf| (&*leaf.lo, &*leaf.hi)).collect();
    let mut out = Vec::new();
    let mut known: &[u8] = &[];
    for (lo, hi) in ranges {
        if lo > known {
            out.push((known.to_vec(), Some(lo.to_vec())));
        }
        if hi.is_empty() {
            return out;
        }
        known = known.max(hi);
    }
    out.push((known.to_vec(), None));
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::DiskKv;

    /// Returns true if the value begins with `v` and the key.
    fn is_valid(key: &[u8], value: &[u8]) -> bool {
        value
            .strip_prefix(b"v")
            .is_some_and(|rest| rest.starts_with(key))
    }

    fn text(out: &mut Bytes, bytes: &str) {
        out.push(u8::try_from(bytes.len()).unwrap());
        out.extend_from_slice(bytes.as_bytes());
    }

    /// Encodes a leaf whose keys begin with the first `prefix` bytes of `lo`.
    fn leaf(lo: &str, hi: &str, prefix: usize, keys: &[&str]) -> Bytes {
        // The page with the following keys is page 3 in all tests.
        let next = if hi.is_empty() { 0 } else { 3 };
        let mut out = vec![next, 0, 0, u8::try_from(prefix).unwrap()];
        text(&mut out, lo);
        text(&mut out, hi);
        out.extend_from_slice(&[0, u8::try_from(keys.len()).unwrap()]);
        keys.iter().for_each(|key| text(&mut out, &key[prefix..]));
        keys.iter()
            .for_each(|key| text(&mut out, &format!("v{key}")));
        out
    }

    fn set(end: &str, value: &str) -> Bytes {
        let mut out = vec![0];
        text(&mut out, end);
        text(&mut out, value);
        out
    }

    fn del(end: &str) -> Bytes {
        let mut out = vec![1];
        text(&mut out, end);
        out
    }

    /// Returns the values of the rows that result from these messages.
    fn rows(messages: &[(u64, Kind, Bytes)]) -> Vec<String> {
        let mut pages = Pages::new(is_valid);
        for (lsn, (page, kind, body)) in (1..).zip(messages) {
            let (page, kind) = (*page, *kind);
            let body = body.into();
            assert!(pages.take(&Message {
                lsn,
                page,
                kind,
                body
            }));
        }
        let values = pages.rows().into_iter();
        values
            .inspect(|(key, value)| assert!(is_valid(key, value), "{}", key.escape_ascii()))
            .map(|(_, value)| String::from_utf8(value).unwrap())
            .collect()
    }

    #[test]
    fn what_is_missing_or_guessed_is_not_whole() {
        let all = [
            (2, Kind::Node, leaf("", "", 0, &["ka1", "kb1", "kb2"])),
            (3, Kind::Node, leaf("kb", "", 2, &["kb1", "kb2"])),
            (2, Kind::Node, leaf("", "kb", 0, &["ka1"])),
            (3, Kind::Link, set("2", "vkb2new")),
        ];
        let whole = |messages: &[(u64, Kind, Bytes)]| {
            let mut pages = Pages::new(is_valid);
            for (lsn, (page, kind, body)) in (1..).zip(messages) {
                let (page, kind, body) = (*page, *kind, body.into());
                pages.take(&Message {
                    lsn,
                    page,
                    kind,
                    body,
                });
            }
            pages.whole()
        };
        let values: Vec<Bytes> = whole(&all).unwrap().into_values().collect();
        assert_eq!(values, [&b"vka1"[..], b"vkb1", b"vkb2new"]);
        // Without the message about page 3, or without the message that page 2 ends where page 3 begins.
        for lost in [1, 2] {
            let mut some = all.to_vec();
            some.remove(lost);
            assert_eq!(whole(&some), None, "without {lost}");
        }
        let before: Vec<Bytes> = whole(&all[..2]).unwrap().into_values().collect();
        assert_eq!(before, [&b"vka1"[..], b"vkb1", b"vkb2"], "a split not done");
        assert_eq!(
            whole(&all[3..]),
            None,
            "a change of a page that is not known"
        );
        assert_eq!(whole(&[]), None);
        let other = [all[0].clone(), (2, Kind::Link, set("1", "vkb1 of another"))];
        assert_eq!(
            whole(&other),
            None,
            "a change that is of no key of its page"
        );
    }

    #[test]
    fn a_page_is_its_last_base_with_the_changes_since() {
        let all = [
            (2, Kind::Node, leaf("", "", 0, &["a", "b", "c"])),
            (2, Kind::Link, set("c", "vc2")),
            (2, Kind::Link, del("a")),
            (3, Kind::Link, set("x", "vx of a page that is not there")),
        ];
        assert_eq!(rows(&all), ["vb", "vc2"]);
    }

    #[test]
    fn a_split_gives_the_same_rows_when_either_half_is_lost() {
        let all = [
            (
                2,
                Kind::Node,
                leaf("", "", 0, &["ka1", "ka2", "kb1", "kb2"]),
            ),
            (3, Kind::Node, leaf("kb", "", 0, &["kb1", "kb2"])),
            (2, Kind::Node, leaf("", "kb", 0, &["ka1", "ka2"])),
            (3, Kind::Link, set("kb2", "vkb2new")),
        ];
        let expected = ["vka1", "vka2", "vkb1", "vkb2new"];
        assert_eq!(rows(&all), expected);
        for lost in [1, 2] {
            let mut some = all.to_vec();
            some.remove(lost);
            assert_eq!(rows(&some), expected, "without {lost}");
        }
    }

    #[test]
    fn a_beginning_of_keys_that_was_lost_is_found_by_the_values() {
        let all = [
            (2, Kind::Node, leaf("ka", "", 0, &["kaa", "kab", "kb"])),
            // Lost: the message by which the page ends at "kb" and its keys begin with "ka".
            (2, Kind::Link, set("b", "vkab2")),
            (2, Kind::Link, del("a")),
        ];
        assert_eq!(rows(&all), ["vkab2", "vkb"]);
    }

    #[test]
    fn a_page_that_was_given_up_says_nothing() {
        let all = [
            (2, Kind::Node, leaf("", "", 0, &["a", "b"])),
            (2, Kind::Link, set("b", "vb2")),
            (3, Kind::Node, leaf("b", "", 0, &["b"])),
            (3, Kind::Free, Bytes::new()),
        ];
        assert_eq!(rows(&all), ["va", "vb2"]);
    }

    #[test]
    fn a_row_that_was_removed_stays_away() {
        let all = [
            (2, Kind::Node, leaf("", "b", 0, &["a"])),
            (3, Kind::Node, leaf("b", "", 0, &["b", "c"])),
            (2, Kind::Node, leaf("", "", 0, &["a", "c"])),
            // Lost: the message that page 3 is free.
        ];
        assert_eq!(rows(&all), ["va", "vc"]);
    }

    #[test]
    fn what_a_page_gave_up_and_what_it_removed_are_told_apart() {
        let all = [
            (2, Kind::Node, leaf("", "", 0, &["a", "c", "m"])),
            // Lost: page 3, which has "m". The key "c" is removed.
            (2, Kind::Node, leaf("", "m", 0, &["a"])),
            (2, Kind::Free, Bytes::new()),
        ];
        assert_eq!(rows(&all), ["va", "vm"]);
    }

    #[test]
    fn of_two_pages_that_speak_of_a_key_the_newer_one_does() {
        let mut all = vec![
            (2, Kind::Node, leaf("", "", 0, &["a", "b"])),
            (3, Kind::Node, leaf("b", "", 0, &["b"])),
            // Lost: the message that page 2 ends at "b".
            (2, Kind::Link, set("b", "vb of 2")),
        ];
        assert_eq!(rows(&all), ["va", "vb of 2"]);
        all.push((3, Kind::Link, set("b", "vb of 3")));
        assert_eq!(rows(&all), ["va", "vb of 3"]);
    }

    #[test]
    fn changes_of_a_page_that_is_lost_are_within_what_no_page_knows() {
        let all = [
            (3, Kind::Node, leaf("m", "", 0, &["m"])),
            // Lost: page 2, which ends at "m".
            (2, Kind::Link, set("a", "va")),
            (2, Kind::Link, set("m", "vm of another")),
        ];
        assert_eq!(rows(&all), ["va", "vm"]);
    }

    /// Returns the rows of a log, and the position of its last message.
    fn read(path: &std::path::Path) -> (BTreeMap<Bytes, Bytes>, u64) {
        let mut report = crate::IntegrityReport::default();
        let mut last = 0;
        let (mut pages, mut same) = (Pages::new(|_, _| true), Pages::new(|_, _| true));
        let log = crate::sled::log_reader::Log::open(path).unwrap();
        assert_eq!(log.sled_end().unwrap(), None);
        log.messages(u64::MAX, &mut report, |message| {
            last = message.lsn;
            assert!(pages.take(message) && same.take(message));
        })
        .unwrap();
        assert_eq!(report.issues, []);
        let rows = pages.rows();
        assert!(same.whole().as_ref() == Some(&rows));
        (rows, last)
    }

    /// Includes splits and merges of pages, segments that are used again, batches, and opening the database again.
    #[test]
    fn the_rows_are_those_that_the_database_has() {
        use crate::kv::{Kv, prefixed};
        use crate::sled::{Sled, retry_while_locked};
        use crate::write_batch::WriteBatch;
        let dir = tempfile::tempdir().unwrap();
        let mut expected: BTreeMap<Bytes, Bytes> = BTreeMap::new();
        let mut state = 7_u64;
        let mut roll = |below: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) % below
        };
        let mut batch = WriteBatch::default();
        let mut written = 0;
        for round in 0..12_u64 {
            let db = retry_while_locked(|| Sled::open_unchecked(dir.path())).unwrap();
            for group in 0..30 {
                batch.clear();
                for _ in 0..20 {
                    let key = format!("{}-{}", roll(4), roll(200)).into_bytes();
                    // Some rounds remove most of the rows.
                    if roll(10) < if round % 4 == 3 { 9 } else { 2 } {
                        batch.remove(|out| out.extend_from_slice(&key));
                        expected.remove(&key);
                    } else {
                        let value = vec![group; usize::try_from(roll(3_000)).unwrap()];
                        batch.copy(&key, &value);
                        expected.insert(key, value);
                    }
                }
                db.apply(&batch).unwrap();
                db.flush().unwrap();
            }
            let rows = db.range(prefixed(&[])).map(|row| row.unwrap());
            let rows: BTreeMap<_, _> = rows.map(|(k, v)| (k.to_vec(), v.to_vec())).collect();
            assert!(rows == expected, "round {round}: the database itself");
            // A read may split a page, so the log may have changed.
            db.flush().unwrap();
            let (now, _) = read(dir.path());
            assert!(
                now == expected,
                "round {round}: {} and {}",
                now.len(),
                expected.len()
            );
            drop(db);
            let (closed, last) = read(dir.path());
            assert!(closed == expected, "round {round}, closed");
            written = last;
        }
        let kept = std::fs::metadata(dir.path().join("db")).unwrap().len();
        assert!(
            written > kept,
            "{written} bytes in {kept}: no segment was used again"
        );
    }

    #[test]
    fn no_bytes_make_it_panic() {
        let whole = leaf("ka", "kb", 1, &["kaa", "kab"]);
        for bit in 0..whole.len() * 8 {
            let mut bad = whole.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            let mut pages = Pages::new(|_, _| true);
            for body in [&bad[..], &bad[..bit / 8]] {
                for (lsn, kind) in [(1, Kind::Node), (2, Kind::Link), (3, Kind::Link)] {
                    let (page, body) = (2, body.into());
                    let message = Message {
                        lsn,
                        page,
                        kind,
                        body,
                    };
                    value_in_message(&message, b"kaa", |_, _| true);
                    pages.take(&message);
                }
            }
            pages.rows();
        }
    }
}
